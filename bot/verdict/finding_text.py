"""State a finding in one sentence. Pure.

A finding comes from a machine that ran strangers' code. So the sentence is this project's own, and each word of the
finding is in a code span. A finding of an unknown form, such as an old record, is quoted as a whole. A rule uses
these sentences too, so the module is not in `bot.report`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar, assert_never

from bot.verdict.rules.phrases import join_names, quote_span
from runners.core.failure.tensor_difference import OUTCOMES
from runners.core.findings import (
    ADDED_IN,
    BY_DEFINITION,
    BY_LIBRARY,
    BY_POINTS,
    BY_REWRITE,
    CALL_FAULT,
    CAUSES,
    CONTROL,
    HELPERS,
    LEVEL,
    MOVED,
    MOVED_IN,
    RULE,
    RULE_OF,
    SHARED_MEMORY,
    VOTE,
    CallFault,
    Cause,
    ControlEnd,
    Moved,
    Rule,
    Vote,
    get_control_end,
    render_title,
)
from runners.core.protocol import Finding, FindingKind

Evidence = Mapping[str, object]
Choice = TypeVar("Choice", bound=StrEnum)


class UnknownShapeError(LookupError):
    """The evidence lacks a value that the sentence needs."""


def describe_finding(finding: Finding) -> str:
    """Return one sentence without its full stop, with the finding's words in code spans."""
    try:
        return _SENTENCES[finding.kind](finding.evidence, finding.summary)
    except UnknownShapeError:
        return _quote_summary(finding)


def _quote_summary(finding: Finding) -> str:
    title = render_title(finding)
    return f"{title}: {quote_span(finding.summary.replace('`', ''), 400)}" if finding.summary.strip() else title


# ---------------------------------------------------------------------------------------------- values


def _name(evidence: Evidence, key: str, limit: int = 100) -> str:
    value = evidence.get(key)
    if not isinstance(value, str) or not (name := value.replace("`", "").strip()):
        raise UnknownShapeError(key)
    return quote_span(name, limit)


def _names(evidence: Evidence, key: str) -> str:
    value = evidence.get(key)
    if not isinstance(value, list | tuple) or not value:
        raise UnknownShapeError(key)
    shown = [quote_span(str(one), 60) for one in value[:4] if str(one).strip()]
    return join_names(shown) + (f" and {len(value) - 4} more" if len(value) > 4 else "")


def _number(evidence: Evidence, key: str) -> int:
    value = evidence.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnknownShapeError(key)
    return value


def _choice(evidence: Evidence, key: str, values: type[Choice]) -> Choice:
    try:
        return values(str(evidence.get(key)))
    except ValueError as error:
        raise UnknownShapeError(key) from error


def _range(evidence: Evidence, key: str) -> str:
    """Return ``4`` or ``12…15``."""
    match evidence.get(key):
        case [int(low), int(high)]:
            return str(low) if low == high else f"{low}…{high}"
        case _:
            raise UnknownShapeError(key)


def _place(evidence: Evidence) -> str:
    """Return ``at.mlir:4`` as a code span."""
    return quote_span(f"{_name(evidence, 'file').strip('`')}:{_number(evidence, 'line')}")


def _on(evidence: Evidence) -> str:
    return f"On {_name(evidence, 'version')}"


def _describe_control(evidence: Evidence) -> str:
    """Return the behaviour with the fault removed; empty without such a run."""
    end = get_control_end(evidence)
    return "" if end is None else _CONTROL_ENDS.get(end, "")


_CONTROL_ENDS: Mapping[ControlEnd, str] = {
    ControlEnd.FAILURE_GONE: "the failure is gone",
    ControlEnd.REACHES_CHECK: "the testcase runs to the check of its result",
    ControlEnd.OTHER_VALUE: "the testcase prints another value",
}


# ---------------------------------------------------------------------------------------------- faults of testcases


def _describe_access(evidence: Evidence, summary: str) -> str:
    extent = _number(evidence, "extent")
    if "offset" in evidence:
        return (
            f"A run that checks accesses finds one of {_number(evidence, 'length')} bytes at offset"
            f" {_number(evidence, 'offset')} of a buffer of {extent} bytes; the testcase or the compiler made it"
        )
    if "operation" in evidence:
        gone = _describe_control(evidence)
        instead = _number(evidence, "instead") if "instead" in evidence else 0
        return (
            f"{_name(evidence, 'operation')} in {_place(evidence)} takes index {_number(evidence, 'value')} of an"
            f" axis with {_count(extent, 'element')}" + (f"; with index {instead} instead, {gone}" if gone else "")
        )
    subject = _name(evidence, "operator") if evidence.get("operator") else f"the kernel {_name(evidence, 'kernel')}"
    if "access" not in evidence:
        asked = _range(evidence, "outside_range")
        return f"{subject} is asked for {asked} elements of an axis with {_count(extent, 'element')}"
    verb = "writes" if evidence.get("access") == "store" else "reads"
    source = f"; the index comes from {_describe_source(evidence)}" if evidence.get("testcase_value") else ""
    where = f"axis {_number(evidence, 'axis')} of {_name(evidence, 'buffer')}"
    outside = _range(evidence, "outside_range")
    return f"{subject} {verb} index {outside} of {where}, which has {_count(extent, 'element')}{source}"


def _describe_source(evidence: Evidence) -> str:
    """Return a value of the testcase: a name such as ``ids``, or an argument, with only the function in code."""
    value = _name(evidence, "testcase_value")
    given = re.fullmatch(r"`argument (\d{1,4}) of ([^`]+)`", value)
    return f"argument {given[1]} of {quote_span(given[2])}" if given else value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _describe_operand(evidence: Evidence, summary: str) -> str:
    if evidence.get("operation") == SHARED_MEMORY:
        return (
            f"{_name(evidence, 'function')} gets the same memory as two arguments and writes to it, and the compiler"
            " may assume that no arguments overlap (`noalias`); with a memory for each, its values are right"
        )
    if "at" in evidence:
        step = _OPERATIONS.get(str(evidence.get("operation")), "an operation outside its range")
        return (
            f"{_name(evidence, 'function')} computes {_name(evidence, 'at')} by {step}, which has no defined result;"
            " every value with a defined result is right"
        )
    gone = _describe_control(evidence)
    return (
        f"{_name(evidence, 'operation')} in {_place(evidence)} has the step {_number(evidence, 'value')}, and a step"
        " must be positive" + (f"; with step 1 instead, {gone}" if gone else "")
    )


_OPERATIONS = {
    "an overflow": "an operation that overflows a signed integer",
    "a shift": "a shift by the number of bits or further",
    "a cast": "a cast of a value that its type cannot hold",
    "clz of 0": "`clz` of zero",
}


def _describe_unwritten(evidence: Evidence, summary: str) -> str:
    buffer = _name(evidence, "buffer")
    if "operation" in evidence:
        reader = f"{_name(evidence, 'operation')} in {_place(evidence)}"
    else:
        reader = f"the function {_name(evidence, 'function')}"
    end = get_control_end(evidence)
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
    Rule.CHANGES_VALUES: "changes values or arguments by definition, as its documentation says",
    Rule.CAST_OUT_OF_RANGE: "casts values of {of} that the integer type cannot hold",
    Rule.EQUAL_INDICES: "promises distinct indices, and {of} holds equal ones",
    Rule.BROKEN_PROMISE: "promises bounds of {of}, and the value is outside of them",
    Rule.WRONG_EXTENT: "takes {of} for an extent, and gives the shape another number of elements than the tensor has",
}


def _describe_rule(evidence: Evidence, summary: str) -> str:
    subject = f"{_name(evidence, 'operation')} in {_place(evidence)}"
    gone = _describe_control(evidence)
    said = _RULES[_choice(evidence, RULE, Rule)].format(of=_name(evidence, RULE_OF))
    return f"{subject} {said}" + (f"; with only that repaired, {gone}" if gone else "")


def _describe_call(evidence: Evidence, summary: str) -> str:
    first = f"{_name(evidence, 'pass')} changed the parameters of {_name(evidence, 'function')}"
    works = evidence.get("call_that_works")
    call = f"; {quote_span(works, 160)} works" if isinstance(works, str) and works.strip() else ""
    return f"{first}, and the testcase calls it the old way{call}"


def _describe_wrong_call(evidence: Evidence, summary: str) -> str:
    gone = _describe_control(evidence)
    said = _CALL_FAULTS[_choice(evidence, CALL_FAULT, CallFault)](evidence)
    return said + (f"; with only this repaired, {gone}" if gone else "")


def _describe_count(evidence: Evidence) -> str:
    takes, passed = _number(evidence, "count"), _number(evidence, "passed")
    return f"{_name(evidence, 'function')} takes {_count(takes, 'argument')}; the testcase gives {passed}"


def _describe_argument(evidence: Evidence) -> str:
    argument = f"argument {_number(evidence, 'argument')} of {_name(evidence, 'function')}"
    return f"{argument} is {_name(evidence, 'declared')}; the testcase gives {_name(evidence, 'given')}"


def _describe_function(evidence: Evidence) -> str:
    declared = _names(evidence, "functions")
    return f"the testcase calls {_name(evidence, 'function')}, and the program declares only {declared}"


_CALL_FAULTS: Mapping[CallFault, Callable[[Evidence], str]] = {
    CallFault.COUNT: _describe_count,
    CallFault.TYPE: _describe_argument,
    CallFault.VALUES: lambda evidence: (
        f"the testcase gives {_count(_number(evidence, 'passed'), 'value')} for {_name(evidence, 'given')}, which has"
        f" {_count(_number(evidence, 'count'), 'element')}"
    ),
    CallFault.NO_FUNCTION: _describe_function,
    CallFault.PRIVATE: lambda evidence: (
        f"the testcase calls {_name(evidence, 'function')}, which the program declares private"
    ),
    CallFault.TARGET: lambda evidence: (
        f"the program is compiled for {_name(evidence, 'name')} alone, and run on {_name(evidence, 'device')}"
    ),
    CallFault.FLAG: lambda evidence: (
        f"no known release of {_name(evidence, 'program')} has the flag {_name(evidence, 'name')}"
        if "successor" not in evidence
        else f"{_name(evidence, 'name')} of {_name(evidence, 'program')} is a flag of older releases"
        + (f"; its successor is {_name(evidence, 'successor')}" if evidence["successor"] else "")
    ),
    CallFault.RAW_FILE: lambda evidence: (
        f"{_name(evidence, 'flag')} reads {_name(evidence, 'name')} as raw numbers, because the type"
        f" {_name(evidence, 'given')} stands before the file"
    ),
    CallFault.OPTION: lambda evidence: (
        f"{_name(evidence, 'function')} leaves out {_name(evidence, 'name')} unless it is called with"
        f" {_name(evidence, 'option')}"
    ),
    CallFault.DEMOTED: lambda evidence: (
        f"the compiler turns {_name(evidence, 'given')} into {_name(evidence, 'taken')} by default, and the"
        f" testcase {'computes in' if evidence.get('values') is True else 'passes'} {_name(evidence, 'given')};"
        f" {_name(evidence, 'flag')} keeps the type"
    ),
    CallFault.TYPE_REPLACED: lambda evidence: (
        f"the testcase asks the compiler to turn {_name(evidence, 'given')} into {_name(evidence, 'taken')};"
        f" {_name(evidence, 'flag')} keeps the type"
    ),
    CallFault.PARAMETER: lambda evidence: (
        f"{_name(evidence, 'function')} adds the bytes of an array for the parameter {_name(evidence, 'name')}, which"
        f" the program reads as {_name(evidence, 'taken')}: the array has another type"
    ),
    CallFault.NOTATION: lambda evidence: (
        f"line {_number(evidence, 'line')} of {_name(evidence, 'file')} is in the notation of older releases;"
        f" newer releases read {_name(evidence, 'successor')}"
    ),
    CallFault.DEVICE: lambda evidence: (
        f"{_name(evidence, 'flag')} of {_name(evidence, 'program')} takes no {_name(evidence, 'name')} in any known"
        " release"
    ),
}


def _describe_missing(evidence: Evidence, summary: str) -> str:
    if "module" in evidence:
        added = f"; with {_name(evidence, CONTROL)} it runs cleanly" if evidence.get(CONTROL) else ""
        return f"the testcase uses {_name(evidence, 'module')} without importing it{added}"
    part = _KINDS_OF_PARTS.get(str(evidence.get("kind")), "part")
    return f"the testcase needs the {part} {_name(evidence, 'name')}"


_KINDS_OF_PARTS = {
    "file": "file",
    "name": "definition of",
    "module": "module",
    "code": "code",
    "call": "call",
    "rest": "rest of",
}


# ---------------------------------------------------------------------------------------------- passes


def _describe_pass(evidence: Evidence, summary: str) -> str:
    level = str(evidence.get(LEVEL, ""))
    if evidence.get("name") == "none":
        passes = "LLVM pass" if level == "llvm-pass" else "optional pass"
        return f"{_on(evidence)}, leaving out every {passes} changes nothing, so no {passes} is the cause"
    return _LEVELS.get(level, _describe_left_out)(evidence)


def _describe_failing_pass(evidence: Evidence) -> str:
    where = _name(evidence, "operation") if evidence.get("operation") else ""
    where += f" {_name(evidence, 'symbol')}" if evidence.get("symbol") else ""
    subject = _name(evidence, "pass") if evidence.get("pass") else _name(evidence, "name")
    return f"{_on(evidence)}, compiling fails in the pass {subject}" + (f" on {where.strip()}" if where else "")


def _describe_phase(evidence: Evidence) -> str:
    option = f"; without {_name(evidence, 'option')} it does not" if evidence.get("option") else ""
    return f"{_on(evidence)}, compiling fails in the phase {_name(evidence, 'name')}{option}"


_NUMBERED = re.compile(r"pass(?:es)? \d{1,6}(?: to \d{1,6})?")


def _describe_left_out(evidence: Evidence) -> str:
    kind = {"llvm-pass": "LLVM ", "written": ""}.get(str(evidence.get(LEVEL)), "")
    name = str(evidence.get("name"))
    blamed = f"{kind}{name}" if _NUMBERED.fullmatch(name) else f"the {kind}pass {_name(evidence, 'name')}"
    return f"{_on(evidence)}, it fails with {blamed}, but not without it and later passes"


def _describe_dispatch(evidence: Evidence) -> str:
    match evidence.get("values"):
        case [str(wrong), str(right)]:
            values = f"{quote_span(wrong)} instead of {quote_span(right)}"
        case _:
            raise UnknownShapeError("values")
    version, _, device = _name(evidence, "against").strip("`").partition(" on ")
    if device == evidence.get("device"):
        here, there = _name(evidence, "version"), quote_span(version)
    else:
        here, there = _name(evidence, "device"), quote_span(device or version)
    return (
        f"The dispatch {_name(evidence, 'name')} is the first one that takes the same inputs on {here} as on {there}"
        f" and computes other values: {values}"
    )


_LEVELS: Mapping[str, Callable[[Evidence], str]] = {
    "pass": _describe_failing_pass,
    "parsing": lambda evidence: f"{_on(evidence)}, compiling fails while the input is read, before any pass",
    "phase": _describe_phase,
    "dispatch": _describe_dispatch,
}


def _describe_mutation(evidence: Evidence, summary: str) -> str:
    own = "the testcase's own pass" if evidence.get("defined_in_testcase") else "the pass"
    return f"{own} {_name(evidence, 'pass')} changes the module that it receives, in place"


def _describe_constants(evidence: Evidence, summary: str) -> str:
    return (
        f"the pass {_name(evidence, 'pass')} replaces outputs of {_name(evidence, 'function')} that depend on"
        f" parameters by {_names(evidence, 'constants')}"
    )


def _describe_nan(evidence: Evidence, summary: str) -> str:
    return f"{_name(evidence, 'comparison')} calls two modules different that differ only in NaN constants"


# ---------------------------------------------------------------------------------------------- circumstances


def _describe_devices(evidence: Evidence, summary: str) -> str:
    match evidence:
        case {"differ": differ} if differ == OUTCOMES:
            how = "one fails as reported, the other runs cleanly"
        case {"count": int(count), "total": int(total), "worst": [str(a), str(b)]}:
            how = f"{count} of {total} values differ, at worst {quote_span(a)} and {quote_span(b)}"
        case _:
            raise UnknownShapeError("differ")
    agreed = f"; they agree on {_names(evidence, 'agree_on')}" if evidence.get("agree_on") else ""
    return (
        f"{_name(evidence, 'device')} differs from {_names(evidence, 'differs_from')} on"
        f" {_names(evidence, 'versions')}: {how}{agreed}"
    )


def _describe_nondeterminism(evidence: Evidence, summary: str) -> str:
    return f"{_on(evidence)}, {CAUSES[_choice(evidence, 'cause', Cause)].sentence}"


def _describe_moved_name(evidence: Evidence, summary: str) -> str:
    """State what runs and the lists of names show: which release has the name. Who changed it, and when, they do not.

    A successor is from the reviewed table of renames. For a release that is too old for the name, it would be a later
    name, so it is left out.
    """
    name, version = _name(evidence, "name"), _name(evidence, MOVED_IN)
    successor = f"; {_name(evidence, 'successor')} replaces it" if evidence.get("successor") else ""
    match _choice(evidence, MOVED, Moved):
        case Moved.REMOVED:
            return f"{version} does not have {name}{successor}"
        case Moved.MISSING_SINCE:
            return f"{version} and later releases do not have {name}{successor}"
        case Moved.ABSENT:
            has = f"; {_name(evidence, ADDED_IN)} has it" if evidence.get(ADDED_IN) else ""
            return f"{version} does not have {name}{has}"
        case Moved.UNKNOWN:
            return f"{version} does not know {name}"
        case Moved.NEEDED:
            return f"{version} reads this input only with {name}"
        case never:
            assert_never(never)


def _describe_reference(evidence: Evidence, summary: str) -> str:
    if evidence.get("name") == BY_DEFINITION:
        return _describe_definition(evidence)
    if evidence.get("name") == BY_POINTS and evidence.get(VOTE) == Vote.DIFFERS:
        return (
            f"{_on(evidence)}, {_name(evidence, 'function')} returns {_name(evidence, 'returned')}; at"
            f" {_name(evidence, 'at')}, the value is {_name(evidence, 'expected')}"
        )
    if evidence.get("name") == BY_REWRITE and evidence.get(VOTE) == Vote.DIFFERS:
        return (
            f"{_on(evidence)}, {_name(evidence, 'function')} computes {_name(evidence, 'returned')} at"
            f" {_name(evidence, 'at')} from generated arguments; before, the value is {_name(evidence, 'expected')}"
        )
    by_onnx = str(evidence.get("name")).startswith("ONNX")
    who = {"ONNX": "ONNX's evaluator", "ONNX shapes": "ONNX's shape inference"}.get(
        str(evidence.get("name")), "NumPy"
    )
    source = "from the same model and inputs" if by_onnx else "from the same module and arguments"
    if evidence.get("name") == BY_LIBRARY:
        source = "in place of the compiler's operator library, from the same arguments"
    match evidence.get(VOTE):
        case Vote.DIFFERS:
            at = f" at {_name(evidence, 'at')}" if evidence.get("at") else ""
            return (
                f"{_on(evidence)}, {_name(evidence, 'function')} returns {_name(evidence, 'returned')}{at};"
                f" {who} computes {_name(evidence, 'expected')} {source}"
            )
        case Vote.AGREES:
            return f"{_on(evidence)}, every compiled function returns what {who} computes {source}"
        case _:
            raise UnknownShapeError(VOTE)


def _describe_definition(evidence: Evidence) -> str:
    match _choice(evidence, VOTE, Vote):
        case Vote.DIFFERS:
            return (
                f"{_on(evidence)}, the program returns {_name(evidence, 'returned')} at {_name(evidence, 'at')}; by"
                f" the definitions of its operations, the value is {_name(evidence, 'expected')}"
            )
        case Vote.AGREES:
            wrote = f"; {_names(evidence, HELPERS)} wrote some of them" if evidence.get(HELPERS) else ""
            return f"{_on(evidence)}, the program returns what the definitions of its operations give{wrote}"
        case never:
            assert_never(never)


def _describe_reach(evidence: Evidence, summary: str) -> str:
    return f"{_on(evidence)}, the run never calls {_names(evidence, 'names')}, which the title names"


_SENTENCES: Mapping[FindingKind, Callable[[Evidence, str], str]] = {
    FindingKind.OUT_OF_BOUNDS_ACCESS: _describe_access,
    FindingKind.UNDEFINED_OPERAND: _describe_operand,
    FindingKind.UNINITIALIZED_READ: _describe_unwritten,
    FindingKind.BROKEN_RULE: _describe_rule,
    FindingKind.SIGNATURE_CHANGED: _describe_call,
    FindingKind.WRONG_CALL: _describe_wrong_call,
    FindingKind.MISSING: _describe_missing,
    FindingKind.GUILTY_PASS: _describe_pass,
    FindingKind.INPUT_MUTATED: _describe_mutation,
    FindingKind.VALUES_REPLACED: _describe_constants,
    FindingKind.NAN_INEQUALITY: _describe_nan,
    FindingKind.DEVICE_SPECIFIC: _describe_devices,
    FindingKind.NONDETERMINISTIC: _describe_nondeterminism,
    FindingKind.REFERENCE: _describe_reference,
    FindingKind.REACH: _describe_reach,
    FindingKind.API_MOVED: _describe_moved_name,
    FindingKind.YOUNGER_PACKAGE: lambda evidence, summary: (
        f"{_name(evidence, 'version')} fails as reported with {_name(evidence, 'name')} {_name(evidence, 'younger')},"
        f" which is younger than the release, and runs cleanly with {_name(evidence, 'older')}"
    ),
}
