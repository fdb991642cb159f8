"""The timeline: releases by date with their outcome, and the day of the report."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from bot.report.matrix import MARKS, NO_ANSWER, WORDS, choose_telling
from bot.report.sections.table import SILENT
from bot.verdict.behaviour import BAD, GOOD, Behaviour, find_behaviour
from bot.verdict.forks import list_forks
from bot.verdict.verdict import Report
from runners.core.protocol import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedBuild:
    """One build of the testcase's own device, on the day of its release."""

    version: str
    day: date
    behaviours: tuple[Behaviour, ...]
    """The behaviours of its runs, the most frequent first, and a run that did not start last."""

    @property
    def agreed(self) -> Behaviour | None:
        """Return the behaviour; None if runs disagree: neither the sign of a failure nor of a clean run fits."""
        seen = set(self.behaviours)
        return None if seen & BAD and seen & GOOD else self.behaviours[0]

    @property
    def words(self) -> str:
        return _DISAGREE if self.agreed is None else WORDS[self.agreed]

    @property
    def short(self) -> str:
        """Return `words` in at most two words."""
        return _DISAGREE if self.agreed is None else _SHORT[self.agreed]

    @property
    def mark(self) -> str:
        return NO_ANSWER if self.agreed is None else MARKS.get(self.agreed, NO_ANSWER)


_DISAGREE = "runs disagree"


_SHORT = {
    Behaviour.FAILS: "fails",
    Behaviour.ACCEPTS: "accepts",
    Behaviour.CLEAN: "clean",
    Behaviour.REFUSES: "refuses",
    Behaviour.FAILS_OTHERWISE: "fails otherwise",
    Behaviour.COMPILES: "compiles only",
    Behaviour.UNJUDGED: "unknown",
    Behaviour.API_DIFFERS: "API differs",
    Behaviour.UNAVAILABLE: "not available",
    Behaviour.TIMEOUT: "time limit",
    Behaviour.OUT_OF_MEMORY: "out of memory",
    Behaviour.NOT_RUN: "not run",
}


def list_dated_builds(report: Report) -> tuple[DatedBuild, ...]:
    """Return the builds that ran the testcase on its own device, by the day of their release.

    A ported run represents its build if only the ported run was good or bad there, as in the table.
    """
    if report.plan is None:
        return ()
    runs: dict[str, list[Observation]] = {}
    for seen in report.observations:
        if seen.device == report.plan.device:
            runs.setdefault(seen.version, []).append(seen)
    runs = {version: list(own) for version, seen in runs.items() if (own := choose_telling(seen)[1])}
    dated = [
        DatedBuild(version=version, day=release.released, behaviours=_rank_behaviours(seen))
        for version, seen in runs.items()
        if (release := report.find_release(version)) is not None
    ]
    forks = list_forks(report.observations)
    telling = [one for one in dated if one.version not in forks or not SILENT.issuperset(one.behaviours)]
    dated = telling or dated
    places = {one.version: i for i, one in enumerate(report.releases)}
    return tuple(sorted(dated, key=lambda one: (one.day, places[one.version])))


def _rank_behaviours(seen: Sequence[Observation]) -> tuple[Behaviour, ...]:
    found = [find_behaviour(one) for one in seen]
    return tuple(sorted(set(found), key=lambda one: (one is Behaviour.NOT_RUN, -found.count(one), one)))


def find_report_day(report: Report) -> date | None:
    """Return the day of the report; None if it is unknown.

    A file without a date counts as written today: only a day before the newest release is known to be the report's.
    """
    days = [one.day for one in list_dated_builds(report)]
    known = report.issue.number is not None or (days and report.issue.created <= max(days))
    return report.issue.created if known and days else None


MAX_EVENTS, MAX_MARKS = 7, 12


def render_timeline(report: Report) -> str:
    """Return the timeline as one line: each period of equal outcomes with a sign per release, and the report's day.

    The report's day divides its period: a release younger than the report is after it. Within about a year, and if
    two periods begin in one month, the day is shown too. Empty if there is no order: one period, and no known day of
    the report.
    """
    builds = list_dated_builds(report)
    reported = find_report_day(report)
    parts = [
        part
        for period in _list_periods(builds)
        for younger in (False, True)
        if (part := [one for one in period if (reported is not None and one.day > reported) is younger])
    ]
    events = [(one[0].day, 0, _describe_period(one)) for one in parts]
    months = Counter(f"{day:%Y-%m}" for day, *_ in events)
    if reported is not None:
        events.append((reported, 1, "**reported**"))
    close = bool(builds) and (builds[-1].day - builds[0].day).days < 400
    told = [
        f"{day:%Y-%m-%d} {text}" if close or months[f"{day:%Y-%m}"] > 1 else f"{day:%Y-%m} {text}"
        for day, _, text in sorted(events, key=lambda event: event[:2])
    ]
    if len(told) > MAX_EVENTS:
        told = [*told[: MAX_EVENTS // 2], "…", *told[-MAX_EVENTS // 2 :]]
    return f"Timeline: {' → '.join(told)}" if len(told) > 1 else ""


def _list_periods(builds: Sequence[DatedBuild]) -> Iterator[tuple[DatedBuild, ...]]:
    for _, group in itertools.groupby(builds, key=lambda one: one.words):
        yield tuple(group)


def _describe_period(period: Sequence[DatedBuild]) -> str:
    """Return ``❌❌❌ fails``: one sign per release that ran."""
    signs = "".join(one.mark for one in period[:MAX_MARKS]) + ("…" if len(period) > MAX_MARKS else "")
    return f"{signs} {period[0].short}"
