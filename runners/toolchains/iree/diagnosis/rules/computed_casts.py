"""Find a cast of a computed float to an integer type that cannot hold the float. Pure.

``arith.fptosi`` and ``arith.fptoui`` become LLVM's operations of these names, whose result is poison then. The
interpreter of the definitions runs the program up to the first such cast. In the mended testcase the operand is
clamped to the range of the integer type.
"""

from __future__ import annotations

import math
import re

import msgspec

from runners.core.findings import Rule
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.broken_rule import BrokenRule
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, count_bits, wrap_value
from runners.toolchains.iree.diagnosis.reference.program import find_poison
from runners.toolchains.iree.diagnosis.reference.statements import CastOutOfRange

MAX_CHARS = 400_000


def find_computed_cast(testcase: Testcase) -> BrokenRule | None:
    """Return the first such cast that a call of the program makes; None if its place in the text is not certain."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    name, text = sources[0], testcase.files[sources[0]]
    cast = find_poison(testcase) if len(text) <= MAX_CHARS else None
    if cast is None:
        return None
    pattern = re.compile(
        rf"^(?P<indent>[ \t]*)(?P<head>{re.escape(cast.result)}\s*=\s*arith\.{cast.operation}\s+)"
        rf"{re.escape(cast.operand)}(?P<tail>\s*:\s*(?P<type>[^\n]*?)\s+to\b)",
        re.M,
    )
    places = list(pattern.finditer(text))
    if len(places) != 1 or "?" in places[0]["type"]:
        return None
    found = places[0]
    mended = f"{text[: found.start()]}{_write_clamp(found, cast)}{text[found.end() :]}"
    return BrokenRule(
        operation=f"arith.{cast.operation}",
        file=name,
        line=text.count("\n", 0, found.start()) + 1,
        rule=Rule.CAST_OUT_OF_RANGE,
        of=cast.operand,
        words=f"casts {cast.value:g} to {cast.target}, which cannot hold that value",
        instead=f"{cast.operand} clamped to the range of {cast.target}",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, name: mended}),
    )


def _write_clamp(found: re.Match[str], cast: CastOutOfRange) -> str:
    """Return the cast with its operand clamped. ``maxnumf`` and ``minnumf`` also replace NaN."""
    kind, indent = found["type"].strip(), found["indent"]
    low, high = list_limits(cast)
    rows = []
    operand = cast.operand
    for at, (operation, limit) in enumerate((("maxnumf", low), ("minnumf", high))):
        value = f"dense<{limit!r}>" if "<" in kind else repr(limit)
        rows.append(f"{indent}%held_limit_{at} = arith.constant {value} : {kind}")
        rows.append(f"{indent}%held_{at} = arith.{operation} {operand}, %held_limit_{at} : {kind}")
        operand = f"%held_{at}"
    return "\n".join((*rows, f"{indent}{found['head']}{operand}{found['tail']}"))


def list_limits(cast: CastOutOfRange) -> tuple[float, float]:
    """Return the least and the greatest value of the float type that the integer type holds."""
    bits, signed = count_bits(cast.target), cast.operation == "fptosi"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return _round_inward(low, cast.source), _round_inward(high, cast.source)


def _round_inward(limit: int, element: str) -> float:
    """Return the float nearest to a limit that does not lie beyond the limit."""
    assert element in FLOATS
    value = float(wrap_value(float(limit), element))
    shift = 0
    while not math.isfinite(value) or abs(value) > abs(limit):
        shift += 1
        value = float(wrap_value(float((abs(limit) >> shift << shift) * (1 if limit > 0 else -1)), element))
    return value
