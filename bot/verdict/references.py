"""List the references for a value that the report calls wrong, with the vote of each. Pure.

A report alone shows no right value. A reference is a second computation of the value: the testcase's own, NumPy, the
same build without a pass, another release. Builds that agree with the failing build are not references: they may have
the same fault.
"""

from __future__ import annotations

from bot.extract.python.reference.own_reference import computes_reference
from bot.extract.python.reference.round_trip import checks_round_trip
from bot.extract.python.reference.same_model import runs_same_model
from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import join_names, quote_span
from bot.verdict.verdict import Vote as ReferenceVote
from runners.core.findings import BY_DEFINITION, BY_LIBRARY, BY_POINTS, BY_REWRITE, HELPERS, LEVEL, Vote, get_vote
from runners.core.protocol import Answer, Finding, FindingKind, Reason
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
_VOTERS = {
    BY_DEFINITION: DEFINITIONS,
    BY_LIBRARY: LIBRARY,
    BY_POINTS: POINTS,
    BY_REWRITE: REWRITE,
    "ONNX": ONNX,
    "ONNX shapes": ONNX_SHAPES,
}


def list_votes(evidence: Evidence) -> tuple[ReferenceVote, ...]:
    """Return the vote of each reference, the independent ones first."""
    own = computes_reference(evidence.plan.testcase) or any(
        one.reason is Reason.OTHER_REFERENCE for one in evidence.observations
    )
    name = RUNTIME if own and runs_same_model(evidence.plan.testcase) else OWN
    found = [ReferenceVote(reference=name, wrong=True)] if own else []
    for finding in evidence.findings:
        version = str(finding.evidence.get("version", ""))
        if (vote := get_vote(finding)) is not None and not wrote_accused(finding, evidence):
            name = _VOTERS.get(str(finding.evidence.get("name")), NUMPY)
            found.append(ReferenceVote(reference=name, wrong=vote is Vote.DIFFERS, version=version))
    for finding in evidence.findings:
        name, level = str(finding.evidence.get("name", "none")), finding.evidence.get(LEVEL)
        if finding.kind is FindingKind.GUILTY_PASS and name != "none" and level in (None, "written", "llvm-pass"):
            version = str(finding.evidence.get("version", ""))
            found.append(
                ReferenceVote(reference=f"the build without {quote_span(name, 80)}", wrong=True, version=version)
            )
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
    helpers = finding.evidence.get(HELPERS)
    return isinstance(helpers, list) and any(name in helpers for name in evidence.plan.claim.accused)


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
