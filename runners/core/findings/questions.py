"""Answer questions about a finding: the party at fault, the vote, the proof. Pure."""

from __future__ import annotations

from typing import assert_never

from runners.core.findings.calls import (
    CallDifference,
    DemotedType,
    LeftOut,
    NoFunction,
    OldNotation,
    OtherCount,
    OtherParameterType,
    OtherSize,
    OtherTarget,
    OtherType,
    PrivateFunction,
    RawFile,
    ReplacedType,
    UnknownDevice,
    UnknownFlag,
)
from runners.core.findings.kinds import KINDS, Blame, Cause, ControlEnd, Origin, PassLevel, Settles, Vote
from runners.core.findings.record import add_evidence, read_evidence
from runners.core.findings.types import (
    CallEvidence,
    CauseEvidence,
    Confirmation,
    ConstantsEvidence,
    DispatchEvidence,
    FaultEvidence,
    FindingEvidence,
    MissingEvidence,
    MovedEvidence,
    MutationEvidence,
    PackageEvidence,
    PassEvidence,
    ReferenceEvidence,
    RuleEvidence,
    SignatureEvidence,
)
from runners.core.protocol import Finding

_INSTRUMENTED = "the fault was seen in a rerun of the unmodified testcase under instrumentation"


def render_title(finding: Finding) -> str:
    """Return the heading of a finding in a report."""
    kind = KINDS[finding.kind]
    match read_evidence(finding):
        case PassEvidence(level=PassLevel() as level) | DispatchEvidence(level=PassLevel() as level):
            return kind.titles.get(level, kind.title)
        case _:
            return kind.title


def get_origin(finding: Finding) -> Origin | None:
    """Return the origin of a fault of the testcase. None if the finding states none."""
    evidence = read_evidence(finding)
    return evidence.origin if isinstance(evidence, FaultEvidence) else None


def get_blame(finding: Finding) -> Blame:
    """Return the party at fault. No party if the origin is unknown, because the access may be the compiler's."""
    return Blame.NOBODY if get_origin(finding) is Origin.UNKNOWN else KINDS[finding.kind].blames


def settles_cause(finding: Finding) -> bool:
    """True if the cause is known, so that costlier diagnosers need not run."""
    settles = KINDS[finding.kind].settles
    traced = get_origin(finding) is Origin.TESTCASE
    known = get_blame(finding) is not Blame.NOBODY
    return (settles is Settles.ALWAYS and known) or (settles is Settles.IF_TRACED and traced)


def clears_passes(finding: Finding, level: PassLevel | None = None) -> bool:
    """True if the failure remains with each pass of a level left out. TVM's passes have no level."""
    evidence = read_evidence(finding)
    return isinstance(evidence, PassEvidence) and evidence.names_none and evidence.level is level


def fails_while_read(finding: Finding) -> bool:
    """True if compiling fails while the input is read, before any pass."""
    evidence = read_evidence(finding)
    return isinstance(evidence, PassEvidence) and evidence.level is PassLevel.PARSING


def get_vote(finding: Finding) -> Vote | None:
    """Return the vote of a computation without the compiler. None for another finding."""
    evidence = read_evidence(finding)
    return evidence.vote if isinstance(evidence, ReferenceEvidence) else None


def get_cause(finding: Finding) -> Cause | None:
    """Return the cause of a nondeterministic result. None for another finding, or for a name that is no cause."""
    evidence = read_evidence(finding)
    return evidence.cause if isinstance(evidence, CauseEvidence) else None


def get_version(finding: Finding) -> str:
    """Return the build that a finding is about. Empty if it names none."""
    return read_evidence(finding).version or ""


def get_pass(evidence: FindingEvidence) -> str:
    """Return the class of the pass that a finding is about. Empty without one."""
    match evidence:
        case PassEvidence() | SignatureEvidence() | MutationEvidence() | ConstantsEvidence():
            return evidence.pass_name or ""
        case _:
            return ""


def get_difference(evidence: FindingEvidence) -> tuple[str, ...]:
    """Return the lines of the diff that a finding shows. Empty without one."""
    match evidence:
        case PassEvidence() | MutationEvidence() | RuleEvidence():
            return evidence.difference or ()
        case _:
            return ()


def get_subject(finding: Finding) -> str:
    """Return the name that a finding is about. Its summary if it is about none."""
    match read_evidence(finding):
        case (
            PassEvidence(name=str() as name)
            | DispatchEvidence(name=str() as name)
            | ReferenceEvidence(name=str() as name)
            | MovedEvidence(name=str() as name)
            | MissingEvidence(name=str() as name)
            | PackageEvidence(name=str() as name)
        ):
            return str(name)
        case CallEvidence(
            call=OtherTarget(name=name)
            | UnknownFlag(name=name)
            | UnknownDevice(name=name)
            | RawFile(name=name)
            | LeftOut(name=name)
            | OtherParameterType(name=name)
        ):
            return name
        case _:
            return finding.summary


def list_call_names(call: CallDifference) -> tuple[str, ...]:
    """Return the names in a wrong call that a report may defend: the function, the flag, the file, the given type."""
    match call:
        case OtherCount() | NoFunction() | PrivateFunction():
            return (call.function,)
        case OtherType():
            return call.given, call.function
        case OtherSize():
            return tuple(name for name in (call.given, call.function) if name is not None)
        case OtherTarget() | UnknownFlag() | UnknownDevice():
            return (call.name,)
        case RawFile():
            return call.name, call.given
        case DemotedType() | ReplacedType():
            return (call.given,)
        case LeftOut() | OtherParameterType():
            return call.name, call.function
        case OldNotation():
            return ()
        case never:
            assert_never(never)


def get_control_end(evidence: FindingEvidence) -> ControlEnd | None:
    """Return the end of the control run of a finding; None without a run that proves or refutes something."""
    return evidence.control_end if isinstance(evidence, FaultEvidence) else None


def explain_proof(finding: Finding) -> str:
    """Describe the proof of the testcase's fault, as a clause."""
    proof = KINDS[finding.kind].proof
    match get_control_end(read_evidence(finding)):
        case None | ControlEnd.NOT_CLEAN:
            return _INSTRUMENTED
        case ControlEnd.FILL_IS_PRINTED:
            return "with that memory filled the same testcase prints one output or another: the filling decides"
        case ControlEnd.OTHER_VALUE:
            return proof.format(ends="prints another value")
        case ControlEnd.REACHES_CHECK:
            return proof.format(ends="runs to the check of its result")
        case ControlEnd.REFUSED:
            return "a check that does not use the compiler refuses it, too"
        case ControlEnd.FAILURE_GONE | ControlEnd.FILL_DECIDES:
            return proof.format(ends="runs cleanly")
        case _ as never:
            assert_never(never)


def add_refutation(finding: Finding) -> Finding:
    """Add the refutation of its kind to a finding, unless the diagnoser stated one."""
    refuted_by = KINDS[finding.kind].refuted_by
    if not refuted_by or read_evidence(finding).refuted_by is not None:
        return finding
    return add_evidence(finding, Confirmation(refuted_by=refuted_by))
