"""A rule of an operation that a testcase breaks in its own text, and the run that shows whether it matters.

Nothing is concluded from the text alone: the rule is the cause only if the failure goes when this alone is put right.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice, takewhile

from runners.core.findings import CONTROL, DIFFERENCE, FAILURE_GONE, ORIGIN, PRINTS_ANOTHER_VALUE, Blame
from runners.core.protocol import Exited, Finding, FindingKind, Observation, Outcome, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

MOST_LINES, MOST_OF_A_LINE = 60, 300
"""Of a difference."""
CHECKS = frozenset({"AssertionError", "unexpected-output"})
"""Signature types of a check of the result: the testcase's own, or one that a runner makes for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """One rule that the text breaks."""

    operation: str
    file: str
    line: int
    """1-based."""
    words: str
    """What the operation does and must not."""
    instead: str
    """What the mended testcase does there."""
    mended: Testcase
    traps: bool = False
    """True if it may end the program, and not only give it undefined values."""

    def render_difference(self, testcase: Testcase) -> list[str]:
        """The lines that differ between the testcase and the mended one, as a diff without its header."""
        mine, mended = _lines(testcase, self.file), _lines(self.mended, self.file)
        before = max(0, _count_common(mine, mended) - 1)
        after = max(0, _count_common(mine[before + 1 :][::-1], mended[before + 1 :][::-1]) - 1)
        shown = difflib.unified_diff(
            mine[before : len(mine) - after], mended[before : len(mended) - after], n=1, lineterm=""
        )
        lines = (line for line in islice(shown, 2, None) if not line.startswith("@@"))  # places within these parts
        return [line[:MOST_OF_A_LINE] for line in islice(lines, MOST_LINES)]

    def __str__(self) -> str:
        return f"{self.operation} in {self.file}:{self.line} {self.words}"


def _count_common(one: list[str], other: list[str]) -> int:
    """Count the lines with which both lists begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lines(testcase: Testcase, file: str) -> list[str]:
    return [*testcase.files[file].split("\n"), *(" ".join(step) for step in testcase.steps)]


def confirm_broken_rule(rule: BrokenRule, failure: Failure, means: Means) -> Diagnosis:
    """Run the mended testcase. A finding needs the failure to be gone.

    Undefined values explain a wrong result. A crash, a hang or a refusal that goes with them is the compiler's.
    """
    if not (rule.traps or _gives_a_result(failure.seen)):
        return NOTHING_FOUND
    control = means.run_control(failure, rule.mended)
    gone = describe_absence(control)
    if gone is None:
        return Diagnosis(controls=(control,))
    finding = Finding(
        kind=FindingKind.BROKEN_RULE,
        summary=f"{rule}; with {rule.instead} {gone}",
        evidence={
            "operation": rule.operation,
            "file": rule.file,
            "line": rule.line,
            "version": failure.seen.version,
            ORIGIN: Blame.TESTCASE.value,
            CONTROL: f"{rule.instead}: {gone}",
            DIFFERENCE: rule.render_difference(failure.testcase),
        },
    )
    return Diagnosis(controls=(control,), findings=(finding,))


def describe_absence(control: Observation) -> str | None:
    """Say how the failure is absent from a control run; None where it stays, or another takes its place.

    Where a report quotes a wrong value and not the right one, another value is enough.
    """
    if control.outcome is Outcome.PASS:
        return FAILURE_GONE
    if control.outcome is Outcome.OTHER_FAILURE and control.ended == Exited(code=0):
        return PRINTS_ANOTHER_VALUE
    return None


def _gives_a_result(seen: Observation) -> bool:
    """True if the run came to a result, right or wrong: it ran to its end, or a check of its result failed."""
    checked = seen.signature is not None and seen.signature.type in CHECKS
    return seen.ended == Exited(code=0) or (isinstance(seen.ended, Exited) and checked)
