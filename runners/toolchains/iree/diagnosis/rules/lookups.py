"""Find a lookup in an MLIR testcase whose index, an element of a command-line input, is outside the table. Pure.

Only the simplest form is read: a ``tensor.extract`` in the body of a ``linalg.generic`` whose index is one element of
an input, cast to an index. A bounded index has another name, and is ignored. Each element of the input is used at
least once. In the repaired testcase, each index is moved to the nearest end of the axis.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice

import msgspec

from runners.core.mlir.brackets import blank_comments
from runners.core.mlir.operations import VALUE
from runners.core.mlir.types import match_static
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.rules.operation_rules import (
    MAX_CHARS,
    MAX_OPERATIONS,
    find_inputs,
    replace_numbers,
    resolve_value,
)
from runners.toolchains.iree.diagnosis.rules.undefined_operands import Fault

_EXTRACT = re.compile(rf"\b(?P<operation>tensor\.extract)\s+{VALUE}\[(?P<at>[^\]\n]{{1,400}})\]\s*:")
_INPUT = re.compile(r"^--input=(?P<type>(?:\d{1,9}x)+[su]?i\d{1,2})=(?P<values>[-\d,\[\] ]{1,20000})$")
_BRANCH = re.compile(r"\bscf\.(?:if|for|while|index_switch)\b|\bcf\.")


def find_lookup(testcase: Testcase) -> Fault | None:
    """Return the first index beyond its table. None without one, or if the testcase is not one MLIR file."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    bare = blank_comments(testcase.files[sources[0]])
    if len(bare) > MAX_CHARS or _BRANCH.search(bare):
        return None  # a branch may not be reached
    given = find_inputs(bare, testcase)
    for found in islice(_EXTRACT.finditer(bare), MAX_OPERATIONS):
        table = match_static(bare, found.end())
        for axis, (name, extent) in enumerate(
            zip(found["at"].split(","), table.shape if table else (), strict=False)
        ):
            word = given.get(_trace_index(bare, found.start(), name.strip()), "")
            values = _INPUT.match(word)
            outside = [n for n in _list_numbers(values["values"]) if not 0 <= n < extent] if values else []
            if values is None or not outside or extent < 1:
                continue
            inside = replace_numbers(values["values"], partial(_move_inside, extent))
            mended = f"--input={values['type']}={inside}"
            steps = tuple(tuple(mended if one == word else one for one in step) for step in testcase.steps)
            return Fault(
                operation=found["operation"], file=sources[0], line=bare.count("\n", 0, found.start()) + 1,
                value=outside[0], extent=extent, axis=axis, instead=_move_inside(extent, outside[0]),
                mended=msgspec.structs.replace(testcase, steps=steps),
            )  # fmt: skip
    return None


def _trace_index(bare: str, at: int, name: str) -> str:
    """Return the input from whose elements an index is cast. The name itself for an index of another origin."""
    begin = bare.rfind("linalg.generic", 0, at)
    cast = re.compile(rf"{re.escape(name)}\s*=\s*arith\.index_cast\s+(?P<of>{VALUE})\s*:")
    casts = list(cast.finditer(bare, max(begin, 0), at))
    return resolve_value(bare, at, casts[-1]["of"]) if begin >= 0 and casts else name


def _move_inside(extent: int, index: int) -> int:
    """Return the nearest index of an axis."""
    return min(max(index, 0), extent - 1)


def _list_numbers(values: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d{1,18}", values)]
