"""Find a computed operand that the definition of its operation excludes. Pure.

The interpreter of the definitions runs the program up to the first such operand: a cast of a float that does not fit
its integer type, a divisor of zero, a shift by all bits or more, an index outside a tensor, an extent that gives a
shape another number of elements than the tensor has, equal indices of a scatter that promises distinct ones, or a
value outside the bounds that the program promises. The repaired testcase clamps the operand, has the right extent, or
omits the promise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import assert_never

import msgspec

from runners.core.findings.kinds import Rule
from runners.core.mlir.brackets import remove_comments
from runners.core.mlir.operations import split_types
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.broken_rule import BrokenRule
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, count_bits, wrap_value
from runners.toolchains.iree.diagnosis.reference.excluded import (
    CastOutOfRange,
    EqualIndices,
    IndexOutside,
    Operand,
    OutsideAssumption,
    ShiftTooFar,
    WrongExtent,
    ZeroDivisor,
)
from runners.toolchains.iree.diagnosis.reference.program import find_excluded_operand
from runners.toolchains.iree.diagnosis.rules.undefined_operands import Fault

MAX_CHARS = 400_000
_Bound = tuple[str, str]
"""An operation of ``arith`` and its second operand. Together they bound a value on one side."""


def find_computed_operand(testcase: Testcase) -> BrokenRule | Fault | None:
    """Return the first such operand that the call reaches. None if its place in the text is uncertain."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    name, text = sources[0], testcase.files[sources[0]]
    operand = find_excluded_operand(testcase) if len(text) <= MAX_CHARS else None
    place = None if operand is None else _find_place(text, operand)
    if operand is None or place is None:
        return None
    mended = _mend(text, place, operand)
    if mended is None:
        return None
    line = text.count("\n", 0, place.start()) + 1
    return _describe(operand, name, line, msgspec.structs.replace(testcase, files={**testcase.files, name: mended}))


def _describe(operand: Operand, file: str, line: int, mended: Testcase) -> BrokenRule | Fault:
    value = operand.value
    traps = False
    match operand.fault:
        case CastOutOfRange(target=target):
            rule, words = Rule.CAST_OUT_OF_RANGE, f"casts {value:g} to {target}, which cannot hold that value"
            instead = f"{operand.name} clamped to the range of {target}"
        case ZeroDivisor():
            rule, words, traps = Rule.ZERO_DIVISOR, f"divides by {operand.name}, which is zero", True
            instead = f"a one where {operand.name} is zero"
        case ShiftTooFar(bits=bits):
            rule, words = Rule.SHIFT_TOO_FAR, f"shifts {bits} bits by {value}"
            instead = f"{operand.name} clamped to {bits - 1}"
        case WrongExtent(right=right):
            rule = Rule.WRONG_EXTENT
            words = f"is given the extent {operand.name} = {value}, and the elements of its operand fill {right}"
            instead = f"{right} for {operand.name}"
        case EqualIndices():
            rule, words = Rule.EQUAL_INDICES, f"promises distinct indices, and {operand.name} holds equal ones"
            instead = "without that promise"
        case OutsideAssumption(low=low, high=high):
            rule = Rule.BROKEN_PROMISE
            words = f"promises that {operand.name} is in [{low}, {high}], and it is {value}"
            instead = f"{operand.name} clamped to [{low}, {high}]"
        case IndexOutside(extent=extent, axis=axis):
            return Fault(
                operation=operand.operation, file=file, line=line, value=int(value), extent=extent, axis=axis,
                instead=min(max(int(value), 0), extent - 1), mended=mended,
            )  # fmt: skip
        case _:
            assert_never(operand.fault)
    return BrokenRule(
        operation=operand.operation, file=file, line=line, rule=rule, of=operand.name, words=words,
        instead=instead, mended=mended, traps=traps,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- the repaired text


def _find_place(text: str, operand: Operand) -> re.Match[str] | None:
    """Return the only line where the operation takes the operand. The last operand counts if it takes it twice."""
    pattern = re.compile(
        rf"^(?P<indent>[ \t]*)(?P<head>{re.escape(operand.result)}\s*=\s*\"?{re.escape(operand.operation)}\b[^\n]*)"
        rf"(?<![\w$.#-]){re.escape(operand.name)}(?![\w$.#-])(?P<tail>[^\n]*)$",
        re.M,
    )
    places = list(pattern.finditer(text))
    return places[0] if len(places) == 1 else None


def _mend(text: str, place: re.Match[str], operand: Operand) -> str | None:
    """Return the text with the operand repaired. None if its type is unknown."""
    prefix = _choose_prefix(text)
    if isinstance(operand.fault, WrongExtent):
        return _replace_value(text, operand, prefix)
    if isinstance(operand.fault, EqualIndices):
        return _take_back_promise(text, place)
    kind = _read_type(place, operand)
    if kind is None:
        return None
    rows, name = [], operand.name
    for at, (operation, limit) in enumerate(_list_bounds(operand)):
        value = f"dense<{limit}>" if "<" in kind else limit
        rows.append(f"{place['indent']}{prefix}limit_{at} = arith.constant {value} : {kind}")
        rows.append(f"{place['indent']}{prefix}{at} = arith.{operation} {name}, {prefix}limit_{at} : {kind}")
        name = f"{prefix}{at}"
    rows.append(f"{place['indent']}{place['head']}{name}{place['tail']}")
    return "\n".join((text[: place.start()] + rows[0], *rows[1:])) + text[place.end() :]


def _choose_prefix(text: str) -> str:
    """Return a prefix that no name in the text has."""
    prefix = "%held_"
    while prefix in text:
        prefix = f"{prefix}_"
    return prefix


def _read_type(place: re.Match[str], operand: Operand) -> str | None:
    """Return the type of the operand. None for dynamic extents, for which no constant can be written."""
    if isinstance(operand.fault, IndexOutside):
        return "index"
    _, takes, types = split_types(remove_comments(place["tail"]))
    kind = next(iter(types if takes is None else takes), "?")
    return None if "?" in kind else kind


def _list_bounds(operand: Operand) -> Sequence[_Bound]:
    match operand.fault:
        case CastOutOfRange():
            low, high = list_limits(operand.operation, operand.fault)
            return (("maxnumf", repr(low)), ("minnumf", repr(high)))  # these also replace NaN
        case ZeroDivisor():
            return (("maxui", "1"),)  # unsigned, so that only zero is changed
        case ShiftTooFar(bits=bits):
            return (("minui", str(bits - 1)),)
        case IndexOutside(extent=extent):
            return (("maxsi", "0"), ("minsi", str(extent - 1)))
        case OutsideAssumption(low=low, high=high):
            return (("maxui", str(low)), ("minui", str(high)))
        case WrongExtent() | EqualIndices():
            return ()
        case _:
            assert_never(operand.fault)


def _replace_value(text: str, operand: Operand, prefix: str) -> str | None:
    """Return the text in which the right extent replaces a value of a function in all of its uses.

    Other tensors have the same extent. Changing only this operand would break their rules.
    """
    assert isinstance(operand.fault, WrongExtent)
    named = re.escape(operand.name)
    defined = list(re.finditer(rf"^[^\n]*(?:(?<![\w$.#-]){named}\s*(?:=|:\s*index\b))[^\n]*$", text, re.M))
    if len(defined) != 1:
        return None
    row, rest = defined[0][0], text[defined[0].end() :]
    if "func.func" in row and not row.rstrip().endswith("{"):
        return None
    end = re.search(r"^[ \t]*func\.func\b", rest, re.M)
    body, others = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    changed = re.sub(rf"(?<![\w$.#-]){named}(?![\w$.#-])", f"{prefix}extent", body)
    constant = f"\n    {prefix}extent = arith.constant {operand.fault.right} : index"
    return f"{text[: defined[0].end()]}{constant}{changed}{others}"


_PROMISE = re.compile(r"(\bunique_indices\s*[=(]\s*)true\b")


def _take_back_promise(text: str, place: re.Match[str]) -> str | None:
    """Return the text in which the scatter at ``place`` does not promise distinct indices."""
    begin, end = place.start(), place.end() + MAX_ATTRIBUTES
    found = _PROMISE.search(text, begin, end)
    return None if found is None else f"{text[: found.start()]}{found[1]}false{text[found.end() :]}"


MAX_ATTRIBUTES = 2_000
"""Maximum distance between the line of an operation and the end of its attributes."""


def list_limits(operation: str, cast: CastOutOfRange) -> tuple[float, float]:
    """Return the least and the greatest value of the float type that the integer type can represent."""
    bits, signed = count_bits(cast.target), operation.endswith("fptosi")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return _round_inward(low, cast.source), _round_inward(high, cast.source)


def _round_inward(limit: int, element: str) -> float:
    """Return the float nearest to a limit that does not exceed the limit."""
    assert element in FLOATS
    value = float(wrap_value(float(limit), element))
    shift = 0
    while not math.isfinite(value) or abs(value) > abs(limit):
        shift += 1
        value = float(wrap_value(float((abs(limit) >> shift << shift) * (1 if limit > 0 else -1)), element))
    return value
