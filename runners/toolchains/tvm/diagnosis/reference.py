"""Ask NumPy, ONNX's evaluator, or an interpreter of TIR for the values that compiled functions should compute.

The guest (``guest/tvm/reference/vote.py``) evaluates the Relax module or the kernel of each call without the
compiler's lowering. A vote is a claim: the testcase could have computed a wrong reference itself as well.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from runners.core.failure.oracle import is_about_values
from runners.core.findings import BY_DEFINITION, EXACT, REFUTED_BY, VOTE, Vote
from runners.core.protocol import Finding, FindingKind
from runners.core.toolchain.claims import read_evidence
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step

_PROGRAM = "tvm.reference.vote"
_Word = Annotated[str, msgspec.Meta(max_length=100)]


class _Evidence(msgspec.Struct, frozen=True):
    """The guest's claim; other fields are ignored."""

    vote: Vote
    function: _Word = ""
    returned: _Word = ""
    expected: _Word = ""
    at: _Word = ""
    by: Literal["NumPy", "ONNX", "ONNX shapes", "definitions"] = "NumPy"
    exact: bool = False
    """True if all values are integers, so that no rounding hides a difference."""


_VOTERS = {
    "NumPy": "NumPy computes from the same module and arguments",
    "ONNX": "ONNX's evaluator computes from the same model and inputs",
    "definitions": "an interpreter of its TIR computes from the same arguments",
    "ONNX shapes": "ONNX's shape inference computes from the same model and inputs",
}


def ask_reference(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase once beside the references. Return at most one finding."""
    if len(failure.testcase.steps) > 1 or not is_about_values(failure.seen):
        return NOTHING_FOUND
    script, *arguments = failure.testcase.steps[0][1:]
    step = make_launch_step(_PROGRAM, script, *arguments)
    asking = msgspec.structs.replace(failure.testcase, steps=(step,))
    claim = read_evidence(means.run_hook(failure.seen.version, asking), FindingKind.REFERENCE, _Evidence)
    return NOTHING_FOUND if claim is None else Diagnosis(findings=(_report_vote(claim, failure.seen.version),))


def _report_vote(claim: _Evidence, version: str) -> Finding:
    values = {"function": claim.function, "returned": claim.returned, "expected": claim.expected, "at": claim.at}
    told: dict[str, object] = {key: value for key, value in values.items() if value and claim.vote is Vote.DIFFERS}
    name = BY_DEFINITION if claim.by == "definitions" else claim.by
    if name == BY_DEFINITION:
        told = {EXACT: claim.exact} if claim.vote is Vote.AGREES else told
        told[REFUTED_BY] = "an operation of the kernel that TIR defines in another way"
    verb = "another value than" if claim.vote is Vote.DIFFERS else "the same as"
    return Finding(
        kind=FindingKind.REFERENCE,
        summary=f"on {version} a compiled function returns {verb} {_VOTERS[claim.by]}",
        evidence={"name": name, VOTE: claim.vote.value, "version": version, **told},
    )
