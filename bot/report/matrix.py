"""Group observations into a table: versions down, devices across, repeated runs counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from runners.core.protocol import Answer, Exited, Observation, Outcome, Variant

MARKS = {Answer.GOOD: "✅", Answer.BAD: "❌", Answer.SKIP: "⚪"}

WORDS = {
    Outcome.MATCH: "reported failure",
    Outcome.OTHER_FAILURE: "another failure",
    Outcome.PASS: "passes",
    Outcome.TIMEOUT: "timeout",
    Outcome.OUT_OF_MEMORY: "out of memory",
    Outcome.INCOMPATIBLE: "incompatible",
    Outcome.UNAVAILABLE: "not available",
    Outcome.INFRA: "did not run (our failure)",
}


def describe_run(seen: Observation) -> str:
    """Return how one run ended, in words.

    A run that exits with 0, but whose result cannot be judged, is not called a failure.
    """
    if seen.outcome is Outcome.OTHER_FAILURE and seen.ended == Exited(code=0):
        return "runs, correctness unknown"
    return WORDS[seen.outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTally:
    """How often one outcome occurred in one cell of the table: ``times`` of ``runs``."""

    answer: Answer
    outcome: Outcome
    text: str
    times: int
    runs: int

    def describe(self) -> str:
        """Return ``❌ reported failure``, with ``(2 of 5)`` after more than one run."""
        count = f" ({self.times} of {self.runs})" if self.runs > 1 else ""
        return f"{MARKS[self.answer]} {self.text}{count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One build and variant. ``cells`` has one entry per device of ``Matrix.devices``, empty without a run."""

    toolchain: str
    version: str
    variant: Variant
    cells: tuple[tuple[RunTally, ...], ...]
    fork: str = ""
    """For a build that is not a release: the fork's commit and its wheel."""


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
        return True, Version(text)
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
    counts = Counter((one.answer, one.outcome, describe_run(one)) for one in seen)
    return tuple(
        RunTally(answer=answer, outcome=outcome, text=text, times=times, runs=len(seen))
        for (answer, outcome, text), times in counts.most_common()
    )
