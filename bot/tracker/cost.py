"""The cost of a sweep: measured after it, estimated before it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from bot.tracker.rows import IssueRow

USUAL_SECONDS = 60.0
"""Time of an issue's runs if no issue of the tracker ran before, from sweeps over TVM and IREE issues."""
USUAL_RUNS = 12
BYTES_PER_RUN = 2_000
"""Size of a run in the ledger, from sweeps over TVM and IREE issues."""
REQUESTS_PER_ISSUE = 2


class SweepSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep. ``verdicts`` counts all rows of the selection, the others count this sweep's work."""

    sweep: int
    listed: int
    answered: int
    failed: int
    unchanged: int
    left: int = 0
    """Issues that were not reached."""
    stopped: str = ""
    """The budget that ended the sweep; empty if the sweep was complete."""
    verdicts: dict[str, int] = {}
    changed: int = 0
    runs_made: int = 0
    runs_reused: int = 0
    run_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Processor time of this process and its children, including sandboxes that are its children."""
    jobs: int = 1
    """Issues at the same time, each with one run at a time."""
    elsewhere_s: float = 0.0
    """Time of runs that other machines made for this sweep, beside ``wall_s``."""
    requests: int = 0
    ledger_bytes: int = 0

    @property
    def core_hours(self) -> float:
        """Core-hours that the sweep occupied: wall time × jobs, idle or not, and runs on other machines."""
        return (self.wall_s * self.jobs + self.elsewhere_s) / 3600

    @property
    def issues_per_core_hour(self) -> float | None:
        """Answered issues for each core-hour; None if no issue was answered."""
        return self.answered / self.core_hours if self.core_hours and self.answered else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The expected cost of a sweep. Runs that the ledger has are counted as made, so it is an upper estimate."""

    due: Counter[str]
    """Reason → number of issues."""
    runs: int
    seconds: float
    core_hours: float
    requests: int
    ledger_bytes: int
    """Bytes that the ledger grows by."""
    measured: int
    """Number of issues behind the figures; 0 for the usual figures."""


def estimate_cost(reasons: Iterable[str], rows: Sequence[IssueRow], *, jobs: int, remote: bool) -> Estimate:
    """Estimate a sweep from the issues that were run before: the median of their runs and times."""
    due = Counter(reasons)
    ran = [row.work for row in rows if row.work.made]
    seconds = median(work.seconds for work in ran) if ran else USUAL_SECONDS
    runs = median(work.made for work in ran) if ran else USUAL_RUNS
    return Estimate(
        due=due,
        runs=round(runs * due.total()),
        seconds=seconds * due.total() / jobs,
        core_hours=seconds * due.total() / 3600,
        ledger_bytes=round(runs * due.total()) * BYTES_PER_RUN,
        requests=REQUESTS_PER_ISSUE * due.total() if remote else 0,
        measured=len(ran),
    )


def describe_estimate(one: Estimate) -> tuple[str, ...]:
    """Return the estimate as lines of text."""
    if not one.due:
        return ("nothing to run: no answer can have changed",)
    why = ", ".join(f"{count} {reason}" for reason, count in one.due.most_common())
    source = f"from {one.measured} issues that ran before" if one.measured else "no issue ran before: usual figures"
    return (
        f"{one.due.total()} issues to answer ({why})",
        f"about {one.runs} runs, {format_time(one.seconds)}, {one.core_hours:.1f} core-hours, "
        f"{one.requests} requests, {one.ledger_bytes / 2**20:.1f} MiB of the ledger ({source})",
    )


def describe_summary(one: SweepSummary) -> tuple[str, ...]:
    """Return the summary as lines of text."""
    lines = [f"{count:5} {kind}" for kind, count in sorted(one.verdicts.items(), key=lambda it: (-it[1], it[0]))]
    lines.append(
        f"{one.listed} issues: {one.answered} answered, {one.failed} failed, {one.unchanged} unchanged"
        + (f", {one.left} left" if one.left else "")
        + (f"; {one.changed} verdicts changed" if one.changed else "")
    )
    rate = one.issues_per_core_hour
    lines.append(
        f"{one.runs_made} runs made, {one.runs_reused} from the ledger; {format_time(one.wall_s)}, "
        f"{format_time(one.cpu_s)} of processor time"
        + (f", {one.core_hours:.2g} core-hours, {rate:.0f} issues per core-hour" if rate is not None else "")
        + f"; {one.requests} requests; ledger {one.ledger_bytes / 2**20:.1f} MiB"
    )
    if one.stopped:
        lines.append(f"stopped: {one.stopped}. The same command goes on from here")
    return tuple(lines)


def format_time(seconds: float) -> str:
    """Return ``8 s``, ``12 min`` or ``3 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
