"""Find an operand in an MLIR testcase that is undefined: an index outside a tensor, a loop step below one. Pure.

A fault must follow from the text and the inputs on the command line: constants, index casts and their sums, in the
straight-line code of the called function. Conditional code, and values that the program computes, are ignored. Each
fault has a testcase in which only that operand is repaired. A run of it shows whether the fault explains the failure.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from runners.core.mlir.brackets import partition, remove_comments, split_list
from runners.core.mlir.operations import VALUE
from runners.core.mlir.types import match_static
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.reports.inputs import Function, find_called, list_functions

MAX_LINES = 5_000
_MAX_VALUE = 2**31 - 1
"""Largest known value. A larger sum may wrap, at a width that is unknown here."""
_SCALAR = re.compile(r"index|i\d{1,2}|tensor<(?:index|i\d{1,2})>")
_CONSTANT = re.compile(
    rf"^\s*(?P<to>{VALUE})\s*=\s*arith\.constant\s+(?P<value>-?\d{{1,18}})\s*:\s*(?:index|i\d+)\s*$"
)
_CAST = re.compile(rf"^\s*(?P<to>{VALUE})\s*=\s*arith\.(?:index_cast|extsi)\s+(?P<of>{VALUE})\s*:")
_ALONE = re.compile(rf"^\s*(?P<to>{VALUE})\s*=\s*tensor\.extract\s+(?P<of>{VALUE})\[\]\s*:")
_SUM = re.compile(
    rf"^\s*(?P<to>{VALUE})\s*=\s*arith\.(?P<how>addi|subi|muli)\s+(?P<a>{VALUE})\s*,\s*(?P<b>{VALUE})\s*:"
)
_ACCESS = re.compile(r"\b(?P<operation>tensor\.(?:extract|insert))\b[^\[\n]*\[(?P<at>[^\]\n]+)\]\s*:")
_SLICE = re.compile(
    r"\b(?P<operation>tensor\.(?:extract_slice|insert_slice))\b[^\[\n]{0,300}\[(?P<at>[^\]\n]+)\]\s*\[(?P<sizes>[^\]\n]+)\]"
    r"\s*\[(?P<strides>[^\]\n]+)\]\s*:"
)
_LOOP = re.compile(rf"\bscf\.for\s+{VALUE}\s*=\s*{VALUE}\s+to\s+{VALUE}\s+step\s+(?P<step>{VALUE})")
_OPERATORS = {"addi": operator.add, "subi": operator.sub, "muli": operator.mul}
_INPUT = re.compile(r"^--input=(?:(?:index|i\d{1,2})=)?(?P<value>-?\d{1,18})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One operand that makes an operation undefined."""

    operation: str
    file: str
    line: int
    """1-based."""
    value: int
    extent: int | None
    """Size of the axis whose bounds are exceeded. None for the step of a loop."""
    axis: int | None
    instead: int
    """The repaired operand."""
    mended: Testcase
    """The same testcase with only this operand repaired."""

    def __str__(self) -> str:
        where = f"{self.operation} in {self.file}:{self.line}"
        if self.extent is None:
            return f"{where} steps by {self.value}, and a step is required to be positive"
        return f"{where} takes element {self.value} of {self.extent} along axis {self.axis}"


def find_fault(testcase: Testcase) -> Fault | None:
    """Return the first fault that follows from the text. None without one, or if the text is too complex to read."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    text = testcase.files[sources[0]]
    lines = text.split("\n")
    called = _find_called(text, testcase.steps) if len(lines) <= MAX_LINES else None
    if called is None:
        return None
    known = _read_arguments(called, testcase.steps)
    body = list(_list_straight_lines(lines, text.count("\n", 0, called.at)))
    if any(line.lstrip().startswith("^") for _, line in body):
        return None  # a block may not be reached
    for at, line in body:
        for operand, shown in _find_faults(line, known):
            fixed = _mend_operand(lines, at, line, operand, shown.right)
            files = {**testcase.files, sources[0]: fixed}
            return Fault(
                operation=shown.operation, file=sources[0], line=at + 1, value=shown.value, extent=shown.extent,
                axis=shown.axis, instead=shown.right, mended=msgspec.structs.replace(testcase, files=files),
            )  # fmt: skip
        _propagate_value(line, known)
    return None


# ------------------------------------------------------------------------------------------ the function called


def _find_called(text: str, steps: Sequence[Sequence[str]]) -> Function | None:
    """Return the only function, or the function that the command line names."""
    name = find_called([word for step in steps for word in step])
    functions = [one for one in list_functions(text) if not one.private and name in (None, one.name)]
    return functions[0] if len(functions) == 1 else None


def _read_arguments(called: Function, steps: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the scalar arguments whose values are on the command line."""
    inputs = [word for step in steps for word in step if word.startswith("--input=")]
    return {
        name: int(value["value"])
        for name, kind, word in zip(called.names, called.types, inputs, strict=False)
        if _SCALAR.fullmatch(kind) and (value := _INPUT.match(word))
    }


def _list_straight_lines(lines: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    """List the lines of the body that every call runs: those outside the regions of operations."""
    depth = 0
    for at in range(start, len(lines)):
        line = remove_comments(lines[at])
        if at > start and depth == 1:
            yield at, line
        depth += line.count("{") - line.count("}")
        if at > start and depth <= 0:
            return


# ------------------------------------------------------------------------------------------ values


def _propagate_value(line: str, known: dict[str, int]) -> None:
    """Add the result of an operation to the known values, if the operation determines it."""
    if found := _CONSTANT.match(line):
        known[found["to"]] = int(found["value"])
    elif found := (_CAST.match(line) or _ALONE.match(line)):
        if found["of"] in known:
            known[found["to"]] = known[found["of"]]
    elif (found := _SUM.match(line)) and found["a"] in known and found["b"] in known:
        value = _OPERATORS[found["how"]](known[found["a"]], known[found["b"]])
        if abs(value) <= _MAX_VALUE:
            known[found["to"]] = value


@dataclass(frozen=True, slots=True)
class _Shown:
    operation: str
    value: int
    right: int
    extent: int | None = None
    axis: int | None = None


def _find_faults(line: str, known: Mapping[str, int]) -> Iterator[tuple[str, _Shown]]:
    if found := _ACCESS.search(line):
        extents = _read_extents(line[found.end() :])
        for axis, (name, extent) in enumerate(zip(split_list(found["at"]), extents, strict=False)):
            if name in known and not 0 <= known[name] < extent and extent > 0:
                yield name, _Shown(found["operation"], known[name], 0, extent, axis)
    elif found := _SLICE.search(line):
        yield from _check_slice(found, known)
    elif (found := _LOOP.search(line)) and known.get(found["step"], 1) <= 0:
        yield found["step"], _Shown("scf.for", known[found["step"]], 1)


def _check_slice(found: re.Match[str], known: Mapping[str, int]) -> Iterator[tuple[str, _Shown]]:
    """Find the offsets, by name, with which a slice exceeds its tensor, although a slice from 0 on would fit."""
    part, into, whole = partition(found.string[found.end() :], " into ")
    extents = _read_extents(whole if into else part)
    offsets, sizes, strides = (split_list(found[key]) for key in ("at", "sizes", "strides"))
    for axis, (name, size, stride, extent) in enumerate(zip(offsets, sizes, strides, extents, strict=False)):
        if name not in known or not (size + stride).isdigit() or size == "0":
            continue
        reach = (int(size) - 1) * int(stride)
        last = known[name] + reach
        if reach < extent and (known[name] < 0 or last >= extent):
            yield name, _Shown(found["operation"], known[name] if known[name] < 0 else last, 0, extent, axis)


def _read_extents(text: str) -> tuple[int, ...]:
    """Return the shape of the type with which a text begins. Empty if it is not known."""
    kind = match_static(text, 0)
    return kind.shape if kind else ()


def _mend_operand(lines: Sequence[str], at: int, line: str, operand: str, right: int) -> str:
    """Return the text in which only this operation has another operand."""
    name = "%reprobot_mended"
    place = re.compile(rf"(?P<before>\bstep\s+|\[[^\]]*?){re.escape(operand)}(?![\w$.-])")
    changed = place.sub(lambda found: f"{found['before']}{name}", line, count=1)
    return "\n".join([*lines[:at], f"    {name} = arith.constant {right} : index", changed, *lines[at + 1 :]])
