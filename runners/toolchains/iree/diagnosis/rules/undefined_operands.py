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

from runners.core.mlir.brackets import partition, remove_comments
from runners.core.mlir.types import match_static_shape
from runners.core.protocol import Testcase, TestcaseKind

MAX_LINES = 5_000
_MAX_VALUE = 2**31 - 1
"""Largest known value. A larger sum may wrap, at a width that is unknown here."""
_VALUE = r"%[A-Za-z0-9_$.-]+"
_FUNCTION = re.compile(r"^\s*(?:func|util)\.func\s+(?:public\s+)?@(?P<name>[\w$.-]+)\((?P<arguments>[^\n]*)$")
_ARGUMENT = re.compile(
    rf"(?P<name>{_VALUE})\s*:\s*(?:tensor<)?(?:index|i\d{{1,2}})>?\s*(?=[,)])|(?P<other>{_VALUE})\s*:"
)
_CONSTANT = re.compile(
    rf"^\s*(?P<to>{_VALUE})\s*=\s*arith\.constant\s+(?P<value>-?\d{{1,18}})\s*:\s*(?:index|i\d+)\s*$"
)
_CAST = re.compile(rf"^\s*(?P<to>{_VALUE})\s*=\s*arith\.(?:index_cast|extsi)\s+(?P<of>{_VALUE})\s*:")
_ALONE = re.compile(rf"^\s*(?P<to>{_VALUE})\s*=\s*tensor\.extract\s+(?P<of>{_VALUE})\[\]\s*:")
_SUM = re.compile(
    rf"^\s*(?P<to>{_VALUE})\s*=\s*arith\.(?P<how>addi|subi|muli)\s+(?P<a>{_VALUE})\s*,\s*(?P<b>{_VALUE})\s*:"
)
_ACCESS = re.compile(r"\b(?P<operation>tensor\.(?:extract|insert))\b[^\[\n]*\[(?P<at>[^\]\n]+)\]\s*:")
_SLICE = re.compile(
    r"\b(?P<operation>tensor\.(?:extract_slice|insert_slice))\b[^\[\n]{0,300}\[(?P<at>[^\]\n]+)\]\s*\[(?P<sizes>[^\]\n]+)\]"
    r"\s*\[(?P<strides>[^\]\n]+)\]\s*:"
)
_LOOP = re.compile(rf"\bscf\.for\s+{_VALUE}\s*=\s*{_VALUE}\s+to\s+{_VALUE}\s+step\s+(?P<step>{_VALUE})")
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
    lines = testcase.files[sources[0]].split("\n")
    called = _find_called(lines, testcase.steps)
    if len(lines) > MAX_LINES or called is None:
        return None
    known = _read_arguments(lines[called], testcase.steps)
    body = list(_list_straight_lines(lines, called))
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


def _find_called(lines: Sequence[str], steps: Sequence[Sequence[str]]) -> int | None:
    """Return the line of the only function, or of the function that the command line names."""
    found = {m["name"]: at for at, line in enumerate(lines) if (m := _FUNCTION.match(line))}
    named = [word.partition("=")[2] for step in steps for word in step if word.startswith("--function=")]
    if named:
        return found.get(named[0])
    return next(iter(found.values())) if len(found) == 1 else None


def _read_arguments(header: str, steps: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the scalar arguments whose values are on the command line."""
    inputs = [word for step in steps for word in step if word.startswith("--input=")]
    found = _FUNCTION.match(header)
    listed = found["arguments"].partition(" -> ")[0] if found else ""
    names = [m["name"] for m in _ARGUMENT.finditer(listed)]
    return {
        name: int(value["value"])
        for name, word in zip(names, inputs, strict=False)
        if name is not None and (value := _INPUT.match(word))
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
        extents = match_static_shape(line, found.end()) or ()
        names = [name.strip() for name in found["at"].split(",")]
        for axis, (name, extent) in enumerate(zip(names, extents, strict=False)):
            if name in known and not 0 <= known[name] < extent and extent > 0:
                yield name, _Shown(found["operation"], known[name], 0, extent, axis)
    elif found := _SLICE.search(line):
        yield from _check_slice(found, known)
    elif (found := _LOOP.search(line)) and known.get(found["step"], 1) <= 0:
        yield found["step"], _Shown("scf.for", known[found["step"]], 1)


def _check_slice(found: re.Match[str], known: Mapping[str, int]) -> Iterator[tuple[str, _Shown]]:
    """Find the offsets, by name, with which a slice exceeds its tensor, although a slice from 0 on would fit."""
    part, into, whole = partition(found.string[found.end() :], " into ")
    extents = match_static_shape(whole if into else part, 0) or ()
    offsets, sizes, strides = (
        [word.strip() for word in found[part].split(",")] for part in ("at", "sizes", "strides")
    )
    for axis, (name, size, stride, extent) in enumerate(zip(offsets, sizes, strides, extents, strict=False)):
        if name not in known or not (size + stride).isdigit() or size == "0":
            continue
        reach = (int(size) - 1) * int(stride)
        last = known[name] + reach
        if reach < extent and (known[name] < 0 or last >= extent):
            yield name, _Shown(found["operation"], known[name] if known[name] < 0 else last, 0, extent, axis)


def _mend_operand(lines: Sequence[str], at: int, line: str, operand: str, right: int) -> str:
    """Return the text in which only this operation has another operand."""
    name = "%reprobot_mended"
    place = re.compile(rf"(?P<before>\bstep\s+|\[[^\]]*?){re.escape(operand)}(?![\w$.-])")
    changed = place.sub(lambda found: f"{found['before']}{name}", line, count=1)
    return "\n".join([*lines[:at], f"    {name} = arith.constant {right} : index", changed, *lines[at + 1 :]])
