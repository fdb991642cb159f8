"""Confirm that the testcase violates a rule of an operation, and that this causes the failure.

The text alone is not proof. The rule is the cause only if the failure disappears once the testcase follows it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice, takewhile

from runners.core.failure.oracle import CHECKS
from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings.kinds import CONTROL_ENDS, ControlEnd, Origin, Rule
from runners.core.findings.record import make_finding
from runners.core.findings.types import RuleEvidence
from runners.core.protocol import Exited, Observation, Outcome, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

MAX_LINES, MAX_LINE_LENGTH = 60, 300
"""Limits of a diff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """One rule that the text violates, and the testcase that follows the rule."""

    operation: str
    file: str
    line: int
    """1-based."""
    rule: Rule
    of: str
    """The dimensions, the argument or the input that the rule is about."""
    words: str
    """The violation, as a predicate of the operation."""
    instead: str
    """The corresponding text of the repaired testcase, in words."""
    mended: Testcase
    traps: bool = False
    """True if the violation may end the program, in addition to undefined values."""

    @property
    def leaves_open(self) -> bool:
        """True if the definition leaves the value open, so that no value is right.

        Then any other value of the repaired testcase shows that the result depends on the rule.
        """
        return self.rule is Rule.NOT_ASSOCIATIVE

    def render_difference(self, testcase: Testcase) -> list[str]:
        """Return the difference between the testcase and the repaired one, as lines of a diff without a header."""
        mine, mended = _list_lines(testcase, self.file), _list_lines(self.mended, self.file)
        before = max(0, _count_common(mine, mended) - 1)
        after = max(0, _count_common(mine[before + 1 :][::-1], mended[before + 1 :][::-1]) - 1)
        shown = difflib.unified_diff(
            mine[before : len(mine) - after], mended[before : len(mended) - after], n=1, lineterm=""
        )
        lines = (line for line in islice(shown, 2, None) if not line.startswith("@@"))  # positions within the excerpt
        return [line[:MAX_LINE_LENGTH] for line in islice(lines, MAX_LINES)]

    def __str__(self) -> str:
        return f"{self.operation} in {self.file}:{self.line} {self.words}"


def _count_common(one: list[str], other: list[str]) -> int:
    """Count the common lines at the beginning of both lists."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _list_lines(testcase: Testcase, file: str) -> list[str]:
    return [*testcase.files[file].split("\n"), *(" ".join(step) for step in testcase.steps)]


def confirm_broken_rule(rule: BrokenRule, failure: Failure, means: Means) -> Diagnosis:
    """Run the repaired testcase. Return a finding if the failure is gone.

    Undefined values explain a wrong result. They do not explain a crash, a hang or a rejection, which are faults of
    the compiler.
    """
    if not (rule.traps or _gives_a_result(failure.seen)):
        return NOTHING_FOUND
    control = means.run_control(failure, rule.mended)
    gone = find_absence(control, failure.seen)
    if gone is None and rule.leaves_open and _prints_another(control, failure.seen):
        gone = ControlEnd.OTHER_VALUE
    if gone is None:
        return Diagnosis(controls=(control,))
    evidence = RuleEvidence(
        operation=rule.operation,
        file=rule.file,
        line=rule.line,
        version=failure.seen.version,
        rule=rule.rule,
        rule_of=rule.of,
        origin=Origin.TESTCASE,
        control=f"{rule.instead}: {CONTROL_ENDS[gone]}",
        control_end=gone,
        difference=tuple(rule.render_difference(failure.testcase)),
    )
    finding = make_finding(evidence, f"{rule}; with {rule.instead} {CONTROL_ENDS[gone]}")
    return Diagnosis(controls=(control,), findings=(finding,))


def _prints_another(control: Observation, failing: Observation) -> bool:
    return control.ended == failing.ended == Exited(code=0) and control.excerpt != failing.excerpt


def find_absence(control: Observation, failing: Observation) -> ControlEnd | None:
    """Return how a control run ends without the failure; None if the failure or another failure is there.

    If the report quotes a wrong value and no right one, any other value counts as absence. The same applies if a
    runner compares the result with an expected value, because that value may depend on the fault. Where the output of
    the failing run decides nothing, only another output shows that the result depends on the fault.
    """
    if control.outcome is Outcome.PASS:
        return ControlEnd.FAILURE_GONE
    decides = failing.outcome is Outcome.MATCH or control.excerpt != failing.excerpt
    if control.outcome is Outcome.OTHER_FAILURE and control.ended == Exited(code=0) and decides:
        return ControlEnd.OTHER_VALUE
    before, after = _read_wrong_output(failing), _read_wrong_output(control)
    if not after or before == after:
        return None
    return ControlEnd.OTHER_VALUE if before else ControlEnd.REACHES_CHECK


def _read_wrong_output(seen: Observation) -> str:
    """Return the message of a runner that compared the result. Empty for a run that ended in another way."""
    signature = seen.signature
    return signature.message if signature is not None and signature.type == WRONG_OUTPUT else ""


def _gives_a_result(seen: Observation) -> bool:
    """True if the run had a result: it ended normally, or a check of its result failed."""
    checked = seen.signature is not None and seen.signature.type in CHECKS
    return seen.ended == Exited(code=0) or (isinstance(seen.ended, Exited) and checked)
