"""Group observations into tables: every build in a row of its own, or equal neighbours in one row. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from bot.verdict.behaviour import Behaviour, find_behaviour
from runners.core.packages.versions import order_version
from runners.core.protocol import Answer, Observation, Variant

MARKS = {
    Behaviour.FAILS: "❌",
    Behaviour.ACCEPTS: "❌",
    Behaviour.CLEAN: "✅",
    Behaviour.REFUSES: "✅",
    Behaviour.FAILS_OTHERWISE: "🟠",
    Behaviour.COMPILES: "🟦",
}
"""Signs beside the words, never instead of them. A behaviour without its own sign has `NO_ANSWER`."""
NO_ANSWER = "⚪"

WORDS = {
    Behaviour.FAILS: "fails as reported",
    Behaviour.ACCEPTS: "accepts it, as reported",
    Behaviour.CLEAN: "runs cleanly",
    Behaviour.REFUSES: "refuses it",
    Behaviour.FAILS_OTHERWISE: "fails in another way",
    Behaviour.COMPILES: "compiles, not run",
    Behaviour.UNJUDGED: "runs, correctness unknown",
    Behaviour.API_DIFFERS: "cannot run it: API differs",
    Behaviour.UNAVAILABLE: "not available",
    Behaviour.TIMEOUT: "time limit reached",
    Behaviour.OUT_OF_MEMORY: "out of memory",
    Behaviour.NOT_RUN: "did not run (our failure)",
}


def describe_run(seen: Observation) -> str:
    """Return how one run ended, in words.

    A run that exits with 0, but whose result cannot be judged, is not called a failure.
    """
    return WORDS[find_behaviour(seen)]


def mark_run(seen: Observation) -> str:
    """Return the sign of a run's behaviour."""
    return MARKS.get(find_behaviour(seen), NO_ANSWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTally:
    """How often one behaviour occurred in one cell of a table: ``times`` of ``runs``."""

    answer: Answer
    behaviour: Behaviour
    times: int
    runs: int

    @property
    def text(self) -> str:
        return WORDS[self.behaviour]

    def describe(self) -> str:
        """Return ``❌ fails as reported``, with ``(2 of 5)`` after more than one run."""
        count = f" ({self.times} of {self.runs})" if self.runs > 1 else ""
        return f"{MARKS.get(self.behaviour, NO_ANSWER)} {self.text}{count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One build and variant. ``cells`` has one entry per device of ``Matrix.devices``, empty without a run."""

    toolchain: str
    version: str
    variant: Variant
    cells: tuple[tuple[RunTally, ...], ...]
    fork: str = ""
    """The fork's commit and its wheel, for a build that is not a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    devices: tuple[str, ...]
    rows: tuple[Row, ...]


def make_matrix(observations: Sequence[Observation]) -> Matrix:
    """Return the table: toolchains by name, versions oldest first, the posted testcase before its variants."""
    devices = tuple(dict.fromkeys(seen.device for seen in observations))
    builds = {(seen.toolchain, seen.version, seen.variant) for seen in observations}
    return Matrix(
        devices=devices,
        rows=tuple(_make_row(build, devices, observations) for build in sorted(builds, key=_get_row_key)),
    )


def _get_row_key(build: tuple[str, str, Variant]) -> tuple[str, bool, Version, str, int]:
    toolchain, version, variant = build
    known, parsed = _parse_version(version)
    return toolchain, not known, parsed, version, list(Variant).index(variant)


def _parse_version(text: str) -> tuple[bool, Version]:
    """Return whether ``text`` is a version, and the version. Names of bundles and commits sort after all releases."""
    try:
        return True, order_version(text)
    except InvalidVersion:
        return False, Version("0")


def sort_versions(versions: Iterable[str]) -> list[str]:
    """Return each version once, oldest first. A version may follow its toolchain's name: ``tvm 0.20.0``."""
    return sorted(set(versions), key=_get_build_key)


def _get_build_key(text: str) -> tuple[str, bool, Version, str]:
    toolchain, _, version = text.rpartition(" ")
    known, parsed = _parse_version(version)
    return toolchain, not known, parsed, text


def _make_row(build: tuple[str, str, Variant], devices: Sequence[str], observations: Sequence[Observation]) -> Row:
    toolchain, version, variant = build
    mine = [seen for seen in observations if (seen.toolchain, seen.version, seen.variant) == build]
    cells = tuple(_count_tallies([seen for seen in mine if seen.device == device]) for device in devices)
    fork = next((seen.fork for seen in mine if seen.fork), "")
    return Row(toolchain=toolchain, version=version, variant=variant, cells=cells, fork=fork)


def _count_tallies(seen: Sequence[Observation]) -> tuple[RunTally, ...]:
    counts = Counter((one.answer, find_behaviour(one)) for one in seen)
    return tuple(
        RunTally(answer=answer, behaviour=behaviour, times=times, runs=len(seen))
        for (answer, behaviour), times in counts.most_common()
    )


# ---------------------------------------------------------------------------------------------- equal neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCell:
    """The behaviours of neighbouring builds on one device; no tally if no build ran there."""

    tallies: tuple[RunTally, ...] = ()
    variant: Variant = Variant.ORIGINAL
    versions: tuple[str, ...] = ()
    """The builds that ran on this device."""

    @property
    def key(self) -> tuple[Variant, frozenset[Behaviour]]:
        return self.variant, frozenset(tally.behaviour for tally in self.tallies)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRow:
    """Neighbouring builds that behave alike on each device on which they ran."""

    toolchain: str
    versions: tuple[str, ...]
    cells: tuple[MergedCell, ...]
    fork: str = ""


def merge_rows(observations: Sequence[Observation]) -> tuple[tuple[str, ...], tuple[MergedRow, ...]]:
    """Return the devices, and the builds that ran, oldest first, with equal neighbours in one row.

    Controls are left out. A variant represents its build if only the variant was good or bad there.
    """
    shown = [seen for seen in observations if seen.variant is not Variant.CONTROL]
    devices = tuple(dict.fromkeys(seen.device for seen in shown))
    builds = sorted({(seen.toolchain, seen.version, Variant.ORIGINAL) for seen in shown}, key=_get_row_key)
    merged: list[MergedRow] = []
    for toolchain, version, _ in builds:
        mine = [seen for seen in shown if (seen.toolchain, seen.version) == (toolchain, version)]
        row = MergedRow(
            toolchain=toolchain,
            versions=(version,),
            cells=tuple(_make_cell(version, [seen for seen in mine if seen.device == device]) for device in devices),
            fork=next((seen.fork for seen in mine if seen.fork), ""),
        )
        if merged and _are_alike(merged[-1], row):
            merged[-1] = _join_rows(merged[-1], row)
        else:
            merged.append(row)
    return devices, tuple(merged)


def _make_cell(version: str, seen: Sequence[Observation]) -> MergedCell:
    variant, runs = choose_telling(seen)
    return MergedCell(tallies=_count_tallies(runs), variant=variant, versions=(version,)) if runs else MergedCell()


def choose_telling(seen: Sequence[Observation]) -> tuple[Variant, Sequence[Observation]]:
    """Return the runs of the posted testcase, or of a variant if only the variant was good or bad. No controls."""
    runs = {variant: own for variant in _PREFERRED if (own := [one for one in seen if one.variant is variant])}
    telling = (v for v, own in runs.items() if any(one.answer is not Answer.SKIP for one in own))
    variant = next(telling, next(iter(runs), Variant.ORIGINAL))
    return variant, runs.get(variant, ())


_PREFERRED = (Variant.ORIGINAL, Variant.PORTED, Variant.RETARGETED)


def _are_alike(above: MergedRow, row: MergedRow) -> bool:
    """True if no device distinguishes the builds. A fork is not a release, so it keeps its own row."""
    same = above.toolchain == row.toolchain and not above.fork and not row.fork
    return same and all(
        not a.tallies or not b.tallies or a.key == b.key for a, b in zip(above.cells, row.cells, strict=True)
    )


def _join_rows(above: MergedRow, row: MergedRow) -> MergedRow:
    return MergedRow(
        toolchain=above.toolchain,
        versions=above.versions + row.versions,
        cells=tuple(_join_cells(a, b) for a, b in zip(above.cells, row.cells, strict=True)),
    )


def _join_cells(a: MergedCell, b: MergedCell) -> MergedCell:
    if not a.tallies or not b.tallies:
        return a if a.tallies else b
    runs = a.tallies[0].runs + b.tallies[0].runs
    times = Counter({tally.behaviour: tally.times for tally in a.tallies})
    times.update({tally.behaviour: tally.times for tally in b.tallies})
    answers = {tally.behaviour: tally.answer for tally in (*a.tallies, *b.tallies)}
    tallies = tuple(
        RunTally(answer=answers[behaviour], behaviour=behaviour, times=n, runs=runs)
        for behaviour, n in times.most_common()
    )
    return MergedCell(tallies=tallies, variant=a.variant, versions=a.versions + b.versions)
