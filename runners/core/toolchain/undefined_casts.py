"""Find a cast of the testcase that NumPy warns about, and confirm by a run in which all values fit the type.

If an integer type cannot represent a float, NumPy's cast gives an arbitrary value and warns: ``invalid value
encountered in cast``. Such data or references prove nothing about the compiler.
"""

from __future__ import annotations

import ast
import math
import re

import msgspec

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

WARNING = ("RuntimeWarning", "invalid value encountered in cast")
_PLACE = re.compile(
    r"(?P<file>[\w.-]{1,100}\.py):(?P<line>\d{1,6}): RuntimeWarning: invalid value encountered in cast"
)
_INTEGER = re.compile(r"(?P<unsigned>u?)int(?P<bits>8|16|32|64)$")
MAX_CHARS = 200_000


def check_numpy_casts(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with the values of a warned cast moved into the range of its type."""
    seen = failure.seen
    if seen.record is None or WARNING not in seen.record.warnings:
        return NOTHING_FOUND
    place = _PLACE.search(seen.excerpt)
    rule = find_cast(failure.testcase, place["file"], int(place["line"])) if place is not None else None
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_cast(testcase: Testcase, file: str, line: int) -> BrokenRule | None:
    """Return the only cast to an integer type in a line. None for another number of casts."""
    text = testcase.files.get(file, "")
    try:
        tree = ast.parse(text) if 0 < len(text) <= MAX_CHARS else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if tree is None:
        return None
    casts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "astype"
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and node.args
    ]
    found = [(node, limits) for node in casts if (limits := _read_limits(node.args[0])) is not None]
    if len(found) != 1:
        return None
    node, (name, low, high) = found[0]
    source = ast.get_source_segment(text, node)
    of = ast.get_source_segment(text, node.func.value) if isinstance(node.func, ast.Attribute) else None
    if source is None or of is None or text.count(source) != 1 or not source.startswith(of):
        return None
    numpy = _find_numpy(tree)
    clipped = f"{numpy}.clip({numpy}.nan_to_num({of}), {low!r}, {high!r})"
    return BrokenRule(
        operation="astype",
        file=file,
        line=line,
        rule=Rule.CAST_OUT_OF_RANGE,
        of=of[:80],
        words=f"casts values to {name}, which cannot hold all of them",
        instead="values that the type holds",
        mended=msgspec.structs.replace(
            testcase, files={**testcase.files, file: text.replace(source, clipped + source[len(of) :])}
        ),
    )


def _find_numpy(tree: ast.Module) -> str:
    """Return the name under which a program imports NumPy. An expression if there is none, as in a star import."""
    imports = (one for node in tree.body if isinstance(node, ast.Import) for one in node.names)
    return next((one.asname or one.name for one in imports if one.name == "numpy"), "__import__('numpy')")


def _read_limits(kind: ast.expr) -> tuple[str, float, float] | None:
    """Return the name of an integer type, and the least and the greatest float64 that it can represent."""
    match kind:
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            found = _INTEGER.match(name)
        case _:
            return None
    if found is None:
        return None
    bits = int(found["bits"])
    low, high = (0, 2**bits) if found["unsigned"] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return name, float(low), math.nextafter(float(high), 0.0) if bits > 52 else float(high - 1)
