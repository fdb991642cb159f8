"""State a finding in one sentence. Pure.

A finding comes from a machine that ran strangers' code. So the sentence is this project's own, and each word of the
finding is in a code span. A finding of an unknown form, such as an old record, is quoted as a whole. A rule uses
these sentences too, so the module is not in `bot.report`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from bot.verdict.rules.phrases import join_names, quote_span
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
from runners.core.findings.kinds import (
    CAUSES,
    SHARED_MEMORY,
    ControlEnd,
    Differ,
    Moved,
    PassLevel,
    Reference,
    Rule,
    Vote,
)
from runners.core.findings.questions import render_title
from runners.core.findings.record import read_evidence
from runners.core.findings.types import (
    ByteAccess,
    CallEvidence,
    CauseEvidence,
    ConstantsEvidence,
    DeviceEvidence,
    DispatchEvidence,
    FindingEvidence,
    IndexAccess,
    KernelAccess,
    MissingEvidence,
    MovedEvidence,
    MutationEvidence,
    NanEvidence,
    PackageEvidence,
    PassEvidence,
    ReachEvidence,
    ReferenceEvidence,
    RuleEvidence,
    SignatureEvidence,
    UndefinedStep,
    UndefinedValue,
    UnwrittenEvidence,
)
from runners.core.protocol import Finding


class UnknownShapeError(LookupError):
    """The evidence lacks a value that the sentence needs."""


def describe_finding(finding: Finding) -> str:
    """Return one sentence without its full stop, with the finding's words in code spans."""
    try:
        return _describe(read_evidence(finding))
    except UnknownShapeError:
        return _quote_summary(finding)


def _quote_summary(finding: Finding) -> str:
    title = render_title(finding)
    return f"{title}: {quote_span(finding.summary.replace('`', ''), 400)}" if finding.summary.strip() else title


def _describe(evidence: FindingEvidence) -> str:
    match evidence:
        case ByteAccess():
            return _describe_bytes(evidence)
        case IndexAccess():
            return _describe_index(evidence)
        case KernelAccess():
            return _describe_access(evidence)
        case UndefinedStep():
            return _describe_step(evidence)
        case UndefinedValue():
            return _describe_undefined(evidence)
        case UnwrittenEvidence():
            return _describe_unwritten(evidence)
        case RuleEvidence():
            return _describe_rule(evidence)
        case SignatureEvidence():
            return _describe_signature(evidence)
        case CallEvidence():
            return _describe_wrong_call(evidence)
        case MissingEvidence():
            return _describe_missing(evidence)
        case PassEvidence():
            return _describe_pass(evidence)
        case DispatchEvidence():
            return _describe_dispatch(evidence)
        case MutationEvidence():
            return _describe_mutation(evidence)
        case ConstantsEvidence():
            return _describe_constants(evidence)
        case NanEvidence():
            return f"{_quote(evidence.comparison)} calls two modules different that differ only in NaN constants"
        case DeviceEvidence():
            return _describe_devices(evidence)
        case CauseEvidence():
            return _describe_cause(evidence)
        case ReferenceEvidence():
            return _describe_reference(evidence)
        case ReachEvidence():
            return f"{_on(evidence)}, the run never calls {_quote_all(evidence.names)}, which the title names"
        case MovedEvidence():
            return _describe_moved_name(evidence)
        case PackageEvidence():
            with_package = f"{_quote(evidence.name)} {_quote(evidence.younger)}"
            return (
                f"{_quote(evidence.version)} fails as reported with {with_package},"
                f" which is younger than the release, and runs cleanly with {_quote(evidence.older)}"
            )
        case never:
            assert_never(never)


# ---------------------------------------------------------------------------------------------- values


def _quote(name: str | None, limit: int = 100) -> str:
    bare = (name or "").replace("`", "").strip()
    if not bare:
        raise UnknownShapeError
    return quote_span(bare, limit)


def _quote_all(names: Sequence[str] | None) -> str:
    if not names:
        raise UnknownShapeError
    shown = [quote_span(one, 60) for one in names[:4] if one.strip()]
    return join_names(shown) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _number(value: int | None) -> int:
    if value is None:
        raise UnknownShapeError
    return value


def _render_range(ends: tuple[int, int] | None) -> str:
    """Return ``4`` or ``12…15``."""
    if ends is None:
        raise UnknownShapeError
    low, high = ends
    return str(low) if low == high else f"{low}…{high}"


def _place(evidence: IndexAccess | UndefinedStep | UnwrittenEvidence | RuleEvidence) -> str:
    """Return ``at.mlir:4`` as a code span."""
    return quote_span(f"{_quote(evidence.file).strip('`')}:{_number(evidence.line)}")


def _on(evidence: FindingEvidence) -> str:
    return f"On {_quote(evidence.version)}"


def _describe_control(end: ControlEnd | None) -> str:
    """Return the behaviour with the fault removed; empty without such a run."""
    return "" if end is None else _CONTROL_ENDS.get(end, "")


_CONTROL_ENDS: Mapping[ControlEnd, str] = {
    ControlEnd.FAILURE_GONE: "the failure is gone",
    ControlEnd.REACHES_CHECK: "the testcase runs to the check of its result",
    ControlEnd.OTHER_VALUE: "the testcase prints another value",
}


# ---------------------------------------------------------------------------------------------- faults of testcases


def _describe_bytes(evidence: ByteAccess) -> str:
    extent = _number(evidence.extent)
    return (
        f"A run that checks accesses finds one of {_number(evidence.length)} bytes at offset"
        f" {_number(evidence.offset)} of a buffer of {extent} bytes; the testcase or the compiler made it"
    )


def _describe_index(evidence: IndexAccess) -> str:
    gone = _describe_control(evidence.control_end)
    return (
        f"{_quote(evidence.operation)} in {_place(evidence)} takes index {_number(evidence.value)} of an"
        f" axis with {_count(_number(evidence.extent), 'element')}"
        + (f"; with index {evidence.instead or 0} instead, {gone}" if gone else "")
    )


def _describe_access(evidence: KernelAccess) -> str:
    extent = _count(_number(evidence.extent), "element")
    subject = _quote(evidence.operator) if evidence.operator else f"the kernel {_quote(evidence.kernel)}"
    outside = _render_range(evidence.outside_range)
    if evidence.access is None:
        return f"{subject} is asked for {outside} elements of an axis with {extent}"
    verb = "writes" if evidence.access == "store" else "reads"
    source = f"; the index comes from {_describe_source(evidence)}" if evidence.testcase_value else ""
    where = f"axis {_number(evidence.axis)} of {_quote(evidence.buffer)}"
    return f"{subject} {verb} index {outside} of {where}, which has {extent}{source}"


def _describe_source(evidence: KernelAccess) -> str:
    """Return a value of the testcase: a name such as ``ids``, or an argument, with only the function in code."""
    value = _quote(evidence.testcase_value)
    given = re.fullmatch(r"`argument (\d{1,4}) of ([^`]+)`", value)
    return f"argument {given[1]} of {quote_span(given[2])}" if given else value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _describe_undefined(evidence: UndefinedValue) -> str:
    if evidence.operation == SHARED_MEMORY:
        return (
            f"{_quote(evidence.function)} gets the same memory as two arguments and writes to it, and the compiler"
            " may assume that no arguments overlap (`noalias`); with a memory for each, its values are right"
        )
    step = _OPERATIONS.get(evidence.operation or "", "an operation outside its range")
    return (
        f"{_quote(evidence.function)} computes {_quote(evidence.at)} by {step}, which has no defined result;"
        " every value with a defined result is right"
    )


def _describe_step(evidence: UndefinedStep) -> str:
    gone = _describe_control(evidence.control_end)
    return (
        f"{_quote(evidence.operation)} in {_place(evidence)} has the step {_number(evidence.value)}, and a step"
        " must be positive" + (f"; with step 1 instead, {gone}" if gone else "")
    )


_OPERATIONS = {
    "an overflow": "an operation that overflows a signed integer",
    "a shift": "a shift by the number of bits or further",
    "a cast": "a cast of a value that its type cannot hold",
    "clz of 0": "`clz` of zero",
}


def _describe_unwritten(evidence: UnwrittenEvidence) -> str:
    buffer = _quote(evidence.buffer)
    if evidence.operation is not None:
        reader = f"{_quote(evidence.operation)} in {_place(evidence)}"
    else:
        reader = f"the function {_quote(evidence.function)}"
    end = evidence.control_end
    decides = "" if end is None else _DECIDED_BY_MEMORY.get(end, "")
    return f"{reader} reads {buffer}, to which nothing was written{decides}"


_DECIDED_BY_MEMORY: Mapping[ControlEnd, str] = {
    ControlEnd.FILL_DECIDES: "; what this memory holds decides whether the testcase fails",
    ControlEnd.FILL_IS_PRINTED: "; what this memory holds decides what the testcase prints",
}


_RULES = {
    Rule.PARALLEL_WRITES: "calls {of} parallel, and all iterations along this dimension write the same element",
    Rule.NOT_ASSOCIATIVE: "combines elements by {of}, which is not associative, and the order is not defined",
    Rule.LIVE_ARGUMENT: "writes into {of}, which is read again later",
    Rule.ZERO_DIVISOR: "divides by zero: {of} holds zeros",
    Rule.DATAFLOW_OUTPUT: "does not give out {of}, which is read after the block",
    Rule.SHIFT_TOO_FAR: "shifts by the number of bits or further: {of} holds the amounts",
    Rule.MISSING_INIT: "adds to {of} over a reduction axis and never sets it, so it adds to what the caller passes",
    Rule.OTHER_ACCESS: "accesses {of} beside what its `T.reads` and `T.writes` declare, which schedules trust",
    Rule.ARGUMENT_ORDER: "has the order of {of}, and the function takes its parameters in the order of definition",
    Rule.SAFEGUARD_OFF: "switches a safeguard of the compiler off by {of}, and does not keep its conditions",
    Rule.INVALID_MODEL: "breaks a rule of ONNX, whose own checker refuses the model: {of}",
    Rule.UNFIT_SHAPES: "takes {of}, whose declared shapes do not fit",
    Rule.CHANGES_VALUES: "changes values or arguments by definition, as its documentation says",
    Rule.CAST_OUT_OF_RANGE: "casts values of {of} that the integer type cannot hold",
    Rule.EQUAL_INDICES: "promises distinct indices, and {of} holds equal ones",
    Rule.BROKEN_PROMISE: "promises bounds of {of}, and the value is outside of them",
    Rule.WRONG_EXTENT: "takes {of} for an extent, and gives the shape another number of elements than the tensor has",
}


def _describe_rule(evidence: RuleEvidence) -> str:
    subject = f"{_quote(evidence.operation)} in {_place(evidence)}"
    gone = _describe_control(evidence.control_end)
    if evidence.rule is None:
        raise UnknownShapeError
    said = _RULES[evidence.rule].format(of=_quote(evidence.rule_of))
    return f"{subject} {said}" + (f"; with only that repaired, {gone}" if gone else "")


def _describe_signature(evidence: SignatureEvidence) -> str:
    first = f"{_quote(evidence.pass_name)} changed the parameters of {_quote(evidence.function)}"
    works = evidence.call_that_works or ""
    call = f"; {quote_span(works, 160)} works" if works.strip() else ""
    return f"{first}, and the testcase calls it the old way{call}"


def _describe_wrong_call(evidence: CallEvidence) -> str:
    if evidence.call is None:
        raise UnknownShapeError
    gone = _describe_control(evidence.control_end)
    return _describe_call(evidence.call) + (f"; with the call repaired, {gone}" if gone else "")


def _describe_call(call: CallDifference) -> str:
    match call:
        case OtherCount():
            takes = _count(call.count, "argument")
            return f"{_quote(call.function)} takes {takes}; the testcase gives {call.passed}"
        case OtherType():
            argument = f"argument {call.argument} of {_quote(call.function)}"
            return f"{argument} is {_quote(call.declared)}; the testcase gives {_quote(call.given)}"
        case OtherSize():
            has = _count(call.count, "element")
            return f"the testcase gives {_count(call.passed, 'value')} for {_quote(call.given)}, which has {has}"
        case NoFunction():
            declared = _quote_all(call.functions)
            return f"the testcase calls {_quote(call.function)}, and the program declares only {declared}"
        case PrivateFunction():
            return f"the testcase calls {_quote(call.function)}, which the program declares private"
        case OtherTarget():
            return f"the program is compiled for {_quote(call.name)} alone, and run on {_quote(call.device)}"
        case UnknownFlag(successor=None):
            return f"no known release of {_quote(call.program)} has the flag {_quote(call.name)}"
        case UnknownFlag():
            follows = f"; its successor is {_quote(call.successor)}" if call.successor else ""
            return f"{_quote(call.name)} of {_quote(call.program)} is a flag of older releases{follows}"
        case UnknownDevice():
            takes = f"takes no {_quote(call.name)} in any known release"
            return f"{_quote(call.flag)} of {_quote(call.program)} {takes}"
        case RawFile():
            return (
                f"{_quote(call.flag)} reads {_quote(call.name)} as raw numbers, because the type"
                f" {_quote(call.given)} stands before the file"
            )
        case LeftOut():
            called = f"unless it is called with {_quote(call.option)}"
            return f"{_quote(call.function)} leaves out {_quote(call.name)} {called}"
        case DemotedType():
            return (
                f"the compiler turns {_quote(call.given)} into {_quote(call.taken)} by default, and the"
                f" testcase {'computes in' if call.values else 'passes'} {_quote(call.given)};"
                f" {_quote(call.flag)} keeps the type"
            )
        case ReplacedType():
            return (
                f"the testcase asks the compiler to turn {_quote(call.given)} into {_quote(call.taken)};"
                f" {_quote(call.flag)} keeps the type"
            )
        case OtherParameterType():
            return (
                f"{_quote(call.function)} adds the bytes of an array for the parameter {_quote(call.name)}, which"
                f" the program reads as {_quote(call.taken)}: the array has another type"
            )
        case OldNotation():
            return (
                f"line {call.line} of {_quote(call.file)} is in the notation of older releases;"
                f" newer releases read {_quote(call.successor)}"
            )
        case never:
            assert_never(never)


def _describe_missing(evidence: MissingEvidence) -> str:
    if evidence.module is not None:
        added = f"; with {_quote(evidence.control)} it runs cleanly" if evidence.control else ""
        return f"the testcase uses {_quote(evidence.module)} without importing it{added}"
    part = _KINDS_OF_PARTS.get(evidence.kind or "", "part")
    return f"the testcase needs the {part} {_quote(evidence.name)}"


_KINDS_OF_PARTS = {
    "file": "file",
    "name": "definition of",
    "module": "module",
    "code": "code",
    "call": "call",
    "rest": "rest of",
}


# ---------------------------------------------------------------------------------------------- passes


def _describe_pass(evidence: PassEvidence) -> str:
    if evidence.names_none:
        passes = "LLVM pass" if evidence.level is PassLevel.LLVM else "optional pass"
        return f"{_on(evidence)}, leaving out every {passes} changes nothing, so no {passes} is the cause"
    match evidence.level:
        case PassLevel.PASS:
            return _describe_failing_pass(evidence)
        case PassLevel.PARSING:
            return f"{_on(evidence)}, compiling fails while the input is read, before any pass"
        case PassLevel.PHASE:
            return _describe_phase(evidence)
        case None | PassLevel.WRITTEN | PassLevel.LLVM | PassLevel.UNKNOWN | PassLevel.DISPATCH:
            return _describe_left_out(evidence)
        case never:
            assert_never(never)


def _describe_failing_pass(evidence: PassEvidence) -> str:
    where = _quote(evidence.operation) if evidence.operation else ""
    where += f" {_quote(evidence.symbol)}" if evidence.symbol else ""
    subject = _quote(evidence.pass_name or evidence.name)
    return f"{_on(evidence)}, compiling fails in the pass {subject}" + (f" on {where.strip()}" if where else "")


def _describe_phase(evidence: PassEvidence) -> str:
    option = f"; without {_quote(evidence.option)} it does not" if evidence.option else ""
    return f"{_on(evidence)}, compiling fails in the phase {_quote(evidence.name)}{option}"


_NUMBERED = re.compile(r"pass(?:es)? \d{1,6}(?: to \d{1,6})?")


def _describe_left_out(evidence: PassEvidence) -> str:
    kind = "LLVM " if evidence.level is PassLevel.LLVM else ""
    name = evidence.name or ""
    blamed = f"{kind}{name}" if _NUMBERED.fullmatch(name) else f"the {kind}pass {_quote(name)}"
    return f"{_on(evidence)}, it fails with {blamed}, but not without it and later passes"


def _describe_dispatch(evidence: DispatchEvidence) -> str:
    if evidence.values is None:
        raise UnknownShapeError
    wrong, right = evidence.values
    version, _, device = _quote(evidence.against).strip("`").partition(" on ")
    if device == evidence.device:
        here, there = _quote(evidence.version), quote_span(version)
    else:
        here, there = _quote(evidence.device), quote_span(device or version)
    return (
        f"The dispatch {_quote(evidence.name)} is the first one that takes the same inputs on {here} as on {there}"
        f" and computes other values: {quote_span(wrong)} instead of {quote_span(right)}"
    )


def _describe_mutation(evidence: MutationEvidence) -> str:
    own = "the testcase's own pass" if evidence.defined_in_testcase else "the pass"
    return f"{own} {_quote(evidence.pass_name)} changes the module that it receives, in place"


def _describe_constants(evidence: ConstantsEvidence) -> str:
    return (
        f"the pass {_quote(evidence.pass_name)} replaces outputs of {_quote(evidence.function)} that depend on"
        f" parameters by {_quote_all(evidence.constants)}"
    )


# ---------------------------------------------------------------------------------------------- circumstances


def _describe_devices(evidence: DeviceEvidence) -> str:
    match evidence:
        case DeviceEvidence(differ=Differ.OUTCOMES):
            how = "one fails as reported, the other runs cleanly"
        case DeviceEvidence(count=int(count), total=int(total), worst=(a, b)):
            how = f"{count} of {total} values differ, at worst {quote_span(a)} and {quote_span(b)}"
        case _:
            raise UnknownShapeError
    agreed = f"; they agree on {_quote_all(evidence.agree_on)}" if evidence.agree_on else ""
    return (
        f"{_quote(evidence.device)} differs from {_quote_all(evidence.differs_from)} on"
        f" {_quote_all(evidence.versions)}: {how}{agreed}"
    )


def _describe_cause(evidence: CauseEvidence) -> str:
    if evidence.cause is None:
        raise UnknownShapeError
    return f"{_on(evidence)}, {CAUSES[evidence.cause].sentence}"


def _describe_moved_name(evidence: MovedEvidence) -> str:
    """State what runs and the lists of names show: which release has the name. Who changed it, and when, they do not.

    A successor is from the reviewed table of renames. For a release that is too old for the name, it would be a later
    name, so it is left out.
    """
    name, version = _quote(evidence.name), _quote(evidence.moved_in)
    successor = f"; {_quote(evidence.successor)} replaces it" if evidence.successor else ""
    match evidence.moved:
        case Moved.REMOVED:
            return f"{version} does not have {name}{successor}"
        case Moved.MISSING_SINCE:
            return f"{version} and later releases do not have {name}{successor}"
        case Moved.ABSENT:
            has = f"; {_quote(evidence.added_in)} has it" if evidence.added_in else ""
            return f"{version} does not have {name}{has}"
        case Moved.UNKNOWN:
            return f"{version} does not know {name}"
        case Moved.NEEDED:
            return f"{version} reads this input only with {name}"
        case Moved.ELSEWHERE:
            return f"{version} runs the pass {name} on functions only"
        case None:
            raise UnknownShapeError
        case never:
            assert_never(never)


def _describe_reference(evidence: ReferenceEvidence) -> str:
    match evidence.vote:
        case Vote.DIFFERS:
            return _describe_other_value(evidence)
        case Vote.AGREES:
            return _describe_same_value(evidence)
        case None:
            raise UnknownShapeError
        case never:
            assert_never(never)


def _describe_other_value(evidence: ReferenceEvidence) -> str:
    returned, expected = _quote(evidence.returned), _quote(evidence.expected)
    match evidence.name:
        case Reference.DEFINITION:
            return (
                f"{_on(evidence)}, the program returns {returned} at {_quote(evidence.at)}; by"
                f" the definitions of its operations, the value is {expected}"
            )
        case Reference.POINTS:
            return (
                f"{_on(evidence)}, {_quote(evidence.function)} returns {returned}; at"
                f" {_quote(evidence.at)}, the value is {expected}"
            )
        case Reference.REWRITE:
            return (
                f"{_on(evidence)}, {_quote(evidence.function)} computes {returned} at"
                f" {_quote(evidence.at)} from generated arguments; before, the value is {expected}"
            )
        case None | Reference.NUMPY | Reference.ONNX | Reference.ONNX_SHAPES | Reference.LIBRARY:
            at = f" at {_quote(evidence.at)}" if evidence.at else ""
            who, source = _VOTERS.get(evidence.name or Reference.NUMPY, _NUMPY)
            return (
                f"{_on(evidence)}, {_quote(evidence.function)} returns {returned}{at};"
                f" {who} computes {expected} {source}"
            )
        case never:
            assert_never(never)


def _describe_same_value(evidence: ReferenceEvidence) -> str:
    if evidence.name is Reference.DEFINITION:
        wrote = f"; {_quote_all(evidence.helpers)} wrote some of them" if evidence.helpers else ""
        return f"{_on(evidence)}, the program returns what the definitions of its operations give{wrote}"
    who, source = _VOTERS.get(evidence.name or Reference.NUMPY, _NUMPY)
    return f"{_on(evidence)}, every compiled function returns what {who} computes {source}"


_NUMPY = ("NumPy", "from the same module and arguments")
_VOTERS: Mapping[Reference, tuple[str, str]] = {
    Reference.ONNX: ("ONNX's evaluator", "from the same model and inputs"),
    Reference.ONNX_SHAPES: ("ONNX's shape inference", "from the same model and inputs"),
    Reference.LIBRARY: ("NumPy", "in place of the compiler's operator library, from the same arguments"),
}
"""The names of references and of their inputs, apart from `_NUMPY`."""
