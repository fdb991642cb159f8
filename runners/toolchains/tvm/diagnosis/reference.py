"""Ask NumPy, ONNX's evaluator, or a TIR interpreter for the values that compiled functions should compute.

The guest (``guest/tvm/reference/vote.py``) evaluates the Relax module or the kernel of each call without the
compiler's lowering. It also evaluates functions before and after the passes and the schedule of the testcase. It
compares the arithmetic analyzer's statements about an expression with the expression's values at points. A vote is a
claim, because the testcase itself could have computed a wrong reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from runners.core.failure.oracle import is_about_values
from runners.core.findings.kinds import SHARED_MEMORY, Reference, Vote
from runners.core.findings.record import make_finding
from runners.core.findings.types import ReferenceEvidence, UndefinedValue
from runners.core.protocol import Finding, FindingKind
from runners.core.toolchain.claims import read_claim
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step

_PROGRAM = "tvm.reference.vote"
_Word = Annotated[str, msgspec.Meta(max_length=100)]


class _Evidence(msgspec.Struct, frozen=True):
    """The guest's claim. Other fields are ignored."""

    vote: Literal["agrees", "differs", "undefined"]
    """``undefined``: some values have no defined result, and all others agree."""
    function: _Word = ""
    returned: _Word = ""
    expected: _Word = ""
    at: _Word = ""
    by: Literal["NumPy", "ONNX", "ONNX shapes", "definitions", "library", "points", "rewrite"] = "NumPy"
    """A `Reference`, and ``definitions`` for `Reference.DEFINITION`."""
    operation: Literal["", "an overflow", "a shift", "a cast", "clz of 0", "one memory for two arguments"] = ""
    """The operation whose result is undefined for some value."""
    exact: bool = False
    """True if all values are integers, so that no rounding hides a difference."""
    helpers: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=32)] = ()
    """Helper functions that generated the kernel and are not in it."""


_ONLY_DIFFER = frozenset({Reference.POINTS, Reference.REWRITE})
"""References that never agree, because undetected differences may remain."""
_VOTERS: Mapping[Reference, str] = {
    Reference.NUMPY: "NumPy computes from the same module and arguments",
    Reference.ONNX: "ONNX's evaluator computes from the same model and inputs",
    Reference.DEFINITION: "an interpreter of its TIR computes from the same arguments",
    Reference.LIBRARY: "NumPy computes in place of TVM's operator library, from the same arguments",
    Reference.REWRITE: "before a pass or a schedule that must keep its meaning",
    Reference.POINTS: "a point of the domain shows for the same expression",
    Reference.ONNX_SHAPES: "ONNX's shape inference computes from the same model and inputs",
}
_REFUTED_BY: Mapping[Reference, str] = {
    Reference.DEFINITION: "an operation of the kernel that TIR defines in another way",
    Reference.POINTS: "a fact about the variables that excludes this point",
    Reference.REWRITE: "a definition by which the pass or the schedule may change these values",
}
"""The refutations of references that have one of their own."""


def ask_reference(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase once together with the references. Return at most one finding.

    If all defined values agree, and others are undefined, a wrong value must be an undefined one.
    """
    if len(failure.testcase.steps) > 1 or not is_about_values(failure.seen):
        return NOTHING_FOUND
    script, *arguments = failure.testcase.steps[0][1:]
    step = make_launch_step(_PROGRAM, script, *arguments)
    asking = msgspec.structs.replace(failure.testcase, steps=(step,))
    claim = read_claim(means.run_hook(failure.seen.version, asking), FindingKind.REFERENCE, _Evidence)
    if claim is None or (claim.by in _ONLY_DIFFER and claim.vote != "differs"):
        return NOTHING_FOUND
    version = failure.seen.version
    if claim.vote != "undefined":
        return Diagnosis(findings=(_report_vote(claim, Vote(claim.vote), version),))
    return Diagnosis(findings=(_report_undefined(claim, version),)) if claim.operation else NOTHING_FOUND


def _report_undefined(claim: _Evidence, version: str) -> Finding:
    shared = claim.operation == SHARED_MEMORY
    told = (
        f"on {version} a call has {claim.operation}; with two, its values are right"
        if shared
        else f"on {version} a value is undefined because of {claim.operation}, and all others are right"
    )
    refuted_by = (
        "other values from the same call with a memory for each argument"
        if shared
        else "another value than the defined one at any other element"
    )
    evidence = UndefinedValue(
        function=claim.function, at=claim.at, operation=claim.operation, version=version, refuted_by=refuted_by
    )
    return make_finding(evidence, told)


def _report_vote(claim: _Evidence, vote: Vote, version: str) -> Finding:
    name = Reference.DEFINITION if claim.by == "definitions" else Reference(claim.by)
    evidence = ReferenceEvidence(name=name, vote=vote, version=version, refuted_by=_REFUTED_BY.get(name))
    if vote is Vote.DIFFERS:
        evidence = msgspec.structs.replace(
            evidence,
            function=claim.function or None,
            returned=claim.returned or None,
            expected=claim.expected or None,
            at=claim.at or None,
        )
    else:
        exact = claim.exact if name is Reference.DEFINITION else None
        evidence = msgspec.structs.replace(evidence, helpers=claim.helpers or None, exact=exact)
    verb = "another value than" if vote is Vote.DIFFERS else "the same as"
    who = {Reference.POINTS: "the analyzer", Reference.REWRITE: "a function"}.get(name, "a compiled function")
    return make_finding(evidence, f"on {version} {who} returns {verb} {_VOTERS[name]}")
