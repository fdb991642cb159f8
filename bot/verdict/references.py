"""List the references for a value that the report calls wrong, with the vote of each. Pure.

A report alone shows no right value. A reference is a second computation of the value: the testcase's own, NumPy, the
same build without a pass, another release. Builds that agree with the failing build are not references: they may have
the same fault.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.extract.python.reference.own_reference import computes_reference
from bot.extract.python.reference.round_trip import checks_round_trip
from bot.extract.python.reference.same_model import runs_same_model
from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import join_names, quote_span
from bot.verdict.verdict import Vote as ReferenceVote
from runners.core.findings.kinds import PassLevel, Reference, Vote
from runners.core.findings.record import read_evidence
from runners.core.findings.types import PassEvidence, ReferenceEvidence
from runners.core.protocol import Answer, Finding, Reason
from runners.toolchains import find_toolchain

NUMPY = "NumPy, from the same module and arguments"
DEFINITIONS = "an interpreter, by the definitions of the operations"
ONNX = "ONNX's evaluator, from the same model and inputs"
OWN = "a computation of the testcase's own, without the compiler"


LIBRARY = "NumPy in place of the compiler's operator library"
ROUND_TRIP = "the compiler's own object, before it was printed and read again"
RUNTIME = "another runtime, from the same model and inputs"
ONNX_SHAPES = "ONNX's shape inference, from the same model and inputs"
REWRITE = "the same function before the pass or the schedule, with generated arguments"
POINTS = "the expression itself, evaluated at points of its domain"
_VOTERS: Mapping[Reference, str] = {
    Reference.NUMPY: NUMPY,
    Reference.DEFINITION: DEFINITIONS,
    Reference.LIBRARY: LIBRARY,
    Reference.POINTS: POINTS,
    Reference.REWRITE: REWRITE,
    Reference.ONNX: ONNX,
    Reference.ONNX_SHAPES: ONNX_SHAPES,
}


def list_votes(evidence: Evidence) -> tuple[ReferenceVote, ...]:
    """Return the vote of each reference, the independent ones first."""
    own = computes_reference(evidence.plan.testcase) or any(
        one.reason is Reason.OTHER_REFERENCE for one in evidence.observations
    )
    name = RUNTIME if own and runs_same_model(evidence.plan.testcase) else OWN
    found = [ReferenceVote(reference=name, wrong=True)] if own else []
    for finding in evidence.findings:
        match read_evidence(finding):
            case ReferenceEvidence(vote=Vote() as vote) as told if not wrote_accused(finding, evidence):
                reference = _VOTERS[told.name or Reference.NUMPY]
                found.append(
                    ReferenceVote(reference=reference, wrong=vote is Vote.DIFFERS, version=told.version or "")
                )
            case _:
                pass
    for finding in evidence.findings:
        match read_evidence(finding):
            case (
                PassEvidence(
                    name=str() as left_out, level=None | PassLevel.WRITTEN | PassLevel.LLVM, names_none=False
                ) as known
            ):
                reference = f"the build without {quote_span(left_out, 80)}"
                found.append(ReferenceVote(reference=reference, wrong=True, version=known.version or ""))
            case _:
                pass
    if (devices := _list_twin_devices(evidence)) and devices[1:]:
        found.append(ReferenceVote(reference=f"the program on {join_names(devices)}, which differ", wrong=True))
    if checks_round_trip(evidence.plan.testcase):
        found.append(ReferenceVote(reference=ROUND_TRIP, wrong=True))
    good = evidence.find_versions(Answer.GOOD)
    if good:
        found.append(ReferenceVote(reference=join_names([quote_span(one) for one in good[-3:]]), wrong=True))
    return tuple(found)


def wrote_accused(finding: Finding, evidence: Evidence) -> bool:
    """True for a vote on a program that was written by a function which the title accuses.

    The function may have written operations other than its name means, so the vote is not on the function.
    """
    told = read_evidence(finding)
    helpers = told.helpers if isinstance(told, ReferenceEvidence) else None
    return any(name in (helpers or ()) for name in evidence.plan.claim.accused)


def name_reference(reference: str) -> str:
    """Return the short name of a reference, for the middle of a sentence."""
    return _SHORT.get(reference, reference)


_SHORT = {
    NUMPY: "NumPy",
    ONNX: "ONNX's evaluator",
    ONNX_SHAPES: "ONNX's shape inference",
    DEFINITIONS: "an interpreter of the operations' definitions",
    LIBRARY: "NumPy in place of the operator library",
    POINTS: "the expression's own values",
    REWRITE: "the same function before the pass or the schedule",
    RUNTIME: "another runtime's run of the same model",
    OWN: "the testcase's own computation",
}


def _list_twin_devices(evidence: Evidence) -> list[str]:
    """Return the devices for which a testcase compiles one program, if the results differ on the newest release.

    At most one of the results is right. Other flags may change what a program means.
    """
    newest = [seen for seen in evidence.list_originals() if seen.version == evidence.plan.order[-1]]
    if not newest or any(seen.reason is not Reason.TWINS_DIFFER for seen in newest):
        return []
    steps = evidence.plan.testcase.steps
    named = (value for step in steps for word in step for value in word.partition("=")[2].split(","))
    known = {one.name for one in find_toolchain(evidence.plan.testcase.toolchain).DEVICES}
    return [name for name in dict.fromkeys(named) if name in known]
