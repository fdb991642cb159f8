"""What an MLIR testcase itself asks for and must not: an element outside a tensor, a loop that never steps. Pure.

Only what follows from the text and the inputs on the command line, without the compiler: constants, index casts and
sums of them, in straight lines of the function that is called. What is conditional, or depends on values that the
program works out, is not looked at. A fault comes with the testcase in which only that operand is mended: a run of
it shows whether the fault explains the failure.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from runners.core.protocol import Testcase, TestcaseKind

MOST_LINES = 5_000
_MOST = 2**31 - 1
"""Beyond, what a sum wraps to depends on its width: no longer known here."""
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
_ACCESS = re.compile(
    r"\b(?P<operation>tensor\.(?:extract|insert))\b[^\[\n]*\[(?P<at>[^\]\n]+)\]\s*:\s*tensor<(?P<shape>(?:\d{1,12}x)+)\w+>"
)
_SLICE = re.compile(
    r"\b(?P<operation>tensor\.(?:extract_slice|insert_slice))\b[^\[\n]{0,300}\[(?P<at>[^\]\n]+)\]\s*\[(?P<sizes>[^\]\n]+)\]"
    r"\s*\[(?P<strides>[^\]\n]+)\]\s*:\s*(?:tensor<[^>\n]+>\s+into\s+)?tensor<(?P<shape>(?:\d{1,12}x)+)\w+>"
)
"""A slice, with the shape of the tensor that it is taken from or put into."""
_LOOP = re.compile(rf"\bscf\.for\s+{_VALUE}\s*=\s*{_VALUE}\s+to\s+{_VALUE}\s+step\s+(?P<step>{_VALUE})")
_HOW = {"addi": operator.add, "subi": operator.sub, "muli": operator.mul}
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
    """Elements along the axis that is left; None for the step of a loop."""
    axis: int | None
    mended: Testcase
    """The same testcase with this operand put right, and nothing else changed."""

    def __str__(self) -> str:
        where = f"{self.operation} in {self.file}:{self.line}"
        if self.extent is None:
            return f"{where} steps by {self.value}, and a step is required to be positive"
        return f"{where} takes element {self.value} of {self.extent} along axis {self.axis}"


def find_fault(testcase: Testcase) -> Fault | None:
    """The first fault that the text shows by itself; None where it shows none, or cannot be read this simply."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    lines = testcase.files[sources[0]].split("\n")
    called = _called(lines, testcase.steps)
    if len(lines) > MOST_LINES or called is None:
        return None
    known = _arguments(lines[called], testcase.steps)
    body = list(_straight(lines, called))
    if any(line.lstrip().startswith("^") for _, line in body):
        return None  # blocks: what stands in one need not be reached
    for at, line in body:
        for operand, shown in _faults_of(line, known):
            fixed = _mended(lines, at, line, operand, shown.right)
            files = {**testcase.files, sources[0]: fixed}
            return Fault(
                operation=shown.operation, file=sources[0], line=at + 1, value=shown.value, extent=shown.extent,
                axis=shown.axis, mended=msgspec.structs.replace(testcase, files=files),
            )  # fmt: skip
        _learn(line, known)
    return None


# ------------------------------------------------------------------------------------------ the function called


def _called(lines: Sequence[str], steps: Sequence[Sequence[str]]) -> int | None:
    """The line of the only function, or of the one that the command line names."""
    found = {m["name"]: at for at, line in enumerate(lines) if (m := _FUNCTION.match(line))}
    named = [word.partition("=")[2] for step in steps for word in step if word.startswith("--function=")]
    if named:
        return found.get(named[0])
    return next(iter(found.values())) if len(found) == 1 else None


def _arguments(header: str, steps: Sequence[Sequence[str]]) -> dict[str, int]:
    """Scalar arguments whose value stands on the command line."""
    inputs = [word for step in steps for word in step if word.startswith("--input=")]
    found = _FUNCTION.match(header)
    listed = found["arguments"].partition(" -> ")[0] if found else ""
    names = [m["name"] for m in _ARGUMENT.finditer(listed)]
    return {
        name: int(value["value"])
        for name, word in zip(names, inputs, strict=False)
        if name is not None and (value := _INPUT.match(word))
    }


def _straight(lines: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    """Lines of the body that every call runs through: those in no region of an operation."""
    depth = 0
    for at in range(start, len(lines)):
        line = lines[at].partition("//")[0]
        if at > start and depth == 1:
            yield at, line
        depth += line.count("{") - line.count("}")
        if at > start and depth <= 0:
            return


# ------------------------------------------------------------------------------------------ values


def _learn(line: str, known: dict[str, int]) -> None:
    """What one operation makes known of its result."""
    if found := _CONSTANT.match(line):
        known[found["to"]] = int(found["value"])
    elif found := (_CAST.match(line) or _ALONE.match(line)):
        if found["of"] in known:
            known[found["to"]] = known[found["of"]]
    elif (found := _SUM.match(line)) and found["a"] in known and found["b"] in known:
        value = _HOW[found["how"]](known[found["a"]], known[found["b"]])
        if abs(value) <= _MOST:
            known[found["to"]] = value


@dataclass(frozen=True, slots=True)
class _Shown:
    operation: str
    value: int
    right: int
    extent: int | None = None
    axis: int | None = None


def _faults_of(line: str, known: Mapping[str, int]) -> Iterator[tuple[str, _Shown]]:
    if found := _ACCESS.search(line):
        extents = [int(size) for size in found["shape"].split("x")[:-1]]
        names = [name.strip() for name in found["at"].split(",")]
        for axis, (name, extent) in enumerate(zip(names, extents, strict=False)):
            if name in known and not 0 <= known[name] < extent and extent > 0:
                yield name, _Shown(found["operation"], known[name], 0, extent, axis)
    elif found := _SLICE.search(line):
        yield from _beyond(found, known)
    elif (found := _LOOP.search(line)) and known.get(found["step"], 1) <= 0:
        yield found["step"], _Shown("scf.for", known[found["step"]], 1)


def _beyond(found: re.Match[str], known: Mapping[str, int]) -> Iterator[tuple[str, _Shown]]:
    """Offsets, by name, of a slice that begins or ends outside its tensor though it would fit into it from 0 on."""
    extents = [int(size) for size in found["shape"].split("x")[:-1]]
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


def _mended(lines: Sequence[str], at: int, line: str, operand: str, right: int) -> str:
    """The text in which only this operation takes another operand."""
    name = "%reprobot_mended"
    place = re.compile(rf"(?P<before>\bstep\s+|\[[^\]]*?){re.escape(operand)}(?![\w$.-])")
    changed = place.sub(lambda found: f"{found['before']}{name}", line, count=1)
    return "\n".join([*lines[:at], f"    {name} = arith.constant {right} : index", changed, *lines[at + 1 :]])
