"""Find a ``tensor.empty`` that an MLIR testcase reads. Its elements are undefined. Pure, by the text.

A tensor counts if an operation certainly reads it unchanged: an operation that adds to its output (a matrix product,
a convolution, a pooling, a reduction), a ``linalg.generic`` whose body uses its value, ``tensor.extract``, or an
operation with the tensor as an input whose elements matter. A tensor that is filled first gets another name, and does
not count. An insertion counts if a part is inserted and the function returns the whole. Tensors that are carried
through a loop are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from runners.core.findings.record import add_evidence, make_finding
from runners.core.findings.types import UnwrittenEvidence
from runners.core.mlir.brackets import blank_comments, split_list
from runners.core.mlir.operations import VALUE, Operation, Region, split_operations
from runners.core.mlir.types import TensorType, match_static, parse_type
from runners.core.protocol import Observation, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.memory_fills import decide_origin

MAX_CHARS, MAX_EMPTY, MAX_OPERATIONS, MAX_OPERATION_CHARS = 200_000, 20, 1_000, 4_000
"""Limits, so that no text makes the search slow: characters of a file, ``tensor.empty`` operations of a file,
operations after each of them, characters of an operation."""
MAX_USES = 50
"""Maximum number of operations that are read for each ``tensor.empty``. Reading takes up to 2 ms."""
_EMPTY = re.compile(
    rf"^[ \t]*(?P<name>{VALUE})[ \t]*=[ \t]*tensor\.empty\((?P<sizes>[^()\n]{{0,400}})\)[ \t]*:[ \t]*"
    r"(?P<type>tensor<[^\n]{1,400}>)[ \t]*$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^[ \t]*(?:func|util)\.func\b", re.MULTILINE)
_OPERATION = re.compile(r"^[ \t]*(?:%[^\n=]{1,200}=[ \t]*)?\"?(?P<name>[a-z_]{1,40}\.[a-z0-9_.]{1,60})", re.MULTILINE)
_ADDS = re.compile(
    r"linalg\.(?:\w*matmul\w*|conv_\w+|depthwise_conv_\w+|pooling_\w+|matvec|vecmat|batch_matvec|dot|\w*mmt4d|reduce)"
)
_MAY_READ = re.compile(r"tensor\.(?:extract|insert_slice)|linalg\.(?!(?:fill|index|yield)$)[\w.]+")
_ELEMENT = re.compile(r"f16|bf16|f32|f64|i\d{1,2}")
_OUTS = re.compile(r"\bouts\([ \t]*(?P<names>[^:)]{1,400}):")
_INS = re.compile(r"\bins\([ \t]*(?P<names>[^:)]{1,400}):")

_FLOATS = {
    "f16": ("0x7BFF", "0xFBFF"),
    "bf16": ("0x7F7F", "0xFF7F"),
    "f32": ("0x7F7FFFFF", "0xFF7FFFFF"),
    "f64": ("0x7FEFFFFFFFFFFFFF", "0xFFEFFFFFFFFFFFFF"),
}
"""The highest and the lowest finite number of each type, as MLIR writes their bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """A ``tensor.empty`` and the first operation that reads it."""

    operation: str
    file: str
    line: int
    """1-based, of the operation."""
    name: str
    _testcase: Testcase
    _at: tuple[int, int]
    _type: str
    _element: str
    _sizes: str
    """The operands of the ``tensor.empty``: its dynamic extents."""

    def __str__(self) -> str:
        return f"{self.operation} in {self.file}:{self.line} reads {self.name}, a tensor.empty that nothing filled"

    def fill_with(self, fill: str) -> Testcase:
        """Return the same testcase with only this ``tensor.empty`` replaced by a tensor of equal elements."""
        text, number = self._testcase.files[self.file], _write_constant(fill, self._element)
        start, end = self._at
        filled = f"    {self.name} = arith.constant dense<{number}> : {self._type}"
        if self._sizes:
            filled = (
                f"    %held_empty = tensor.empty({self._sizes}) : {self._type}\n"
                f"    %held_fill = arith.constant {number} : {self._element}\n"
                f"    {self.name} = linalg.fill ins(%held_fill : {self._element}) outs(%held_empty : {self._type})"
                f" -> {self._type}"
            )
        files = {**self._testcase.files, self.file: text[:start] + filled + text[end:]}
        return msgspec.structs.replace(self._testcase, files=files)


def check_unwritten_tensors(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with constants instead of a ``tensor.empty`` that it reads."""
    unwritten = find_unwritten(failure.testcase)
    if unwritten is None:
        return NOTHING_FOUND

    def run_filled(fill: str) -> Observation:
        return means.run_control(failure, unwritten.fill_with(fill))

    controls, decided = decide_origin(run_filled)
    evidence = UnwrittenEvidence(
        operation=unwritten.operation,
        file=unwritten.file,
        line=unwritten.line,
        buffer=unwritten.name,
        version=failure.seen.version,
    )
    finding = add_evidence(make_finding(evidence, str(unwritten)), decided)
    return Diagnosis(controls=controls, findings=(finding,))


def find_unwritten(testcase: Testcase) -> Unwritten | None:
    """Return the first ``tensor.empty`` that is read. None without one."""
    if testcase.kind is not TestcaseKind.COMMAND_LINE:
        return None
    for file, text in testcase.files.items():
        if not file.endswith(".mlir") or len(text) > MAX_CHARS:
            continue
        code = blank_comments(text)
        for empty in islice(_EMPTY.finditer(code), MAX_EMPTY):
            kind = parse_type(empty["type"])
            if not isinstance(kind, TensorType) or not _ELEMENT.fullmatch(kind.element):
                continue
            for operation, at in _find_readers(code, empty):
                return Unwritten(
                    operation=operation, file=file, line=code.count("\n", 0, at) + 1, name=empty["name"],
                    _testcase=testcase, _at=empty.span(), _type=empty["type"], _element=kind.element,
                    _sizes=empty["sizes"].strip(),
                )  # fmt: skip
    return None


def _find_readers(code: str, empty: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Find the operations of the same function that read the tensor. Return each with its offset."""
    following = _FUNCTION.search(code, empty.end())
    end = following.start() if following else len(code)
    for begin in islice(_list_uses(code, empty, end), MAX_USES):
        operation = next(split_operations(code[begin : min(end, begin + MAX_OPERATION_CHARS)]), None)
        if operation is not None and _does_read(operation, code[begin:end], empty["name"]):
            yield operation.name, begin


def _list_uses(code: str, empty: re.Match[str], end: int) -> Iterator[int]:
    """Yield the offsets of the operations that may read the tensor and name it before another operation begins."""
    found = list(islice(_OPERATION.finditer(code, empty.end(), end), MAX_OPERATIONS))
    stops = [*(one.start() for one in found[1:]), end]
    name = re.compile(rf"{re.escape(empty['name'])}(?![\w$.-])")
    for one, stop in zip(found, stops, strict=False):
        if _MAY_READ.fullmatch(one["name"]) and name.search(code, one.end(), stop):
            yield one.start() + len(one[0]) - len(one[0].lstrip())


def _does_read(operation: Operation, code: str, name: str) -> bool:
    """True if an operation certainly reads the tensor. ``code`` reaches from the operation to the function's end."""
    if operation.name == "tensor.insert_slice":
        return _returns_rest(operation, code, name)
    if operation.name == "tensor.extract":
        return operation.operands[:1] == (name,)
    if not operation.name.startswith("linalg.") or operation.name == "linalg.index":
        return False
    given, outputs = (_list_names(pattern.search(operation.attributes)) for pattern in (_INS, _OUTS))
    if operation.name == "linalg.generic":
        places = [at for at, one in enumerate((*given, *outputs)) if one == name]
        return any(_body_uses(region, place) for region in operation.regions for place in places)
    if name in given:
        # The second operand of a pooling is the window: only its shape is used.
        return given.index(name) == 0 or not operation.name.startswith("linalg.pooling_")
    return name in outputs and _ADDS.fullmatch(operation.name) is not None


def _returns_rest(insert: Operation, code: str, name: str) -> bool:
    """True if a part is inserted into the tensor, and the function returns all of it, unwritten elements included."""
    part, whole = (match_static(one[0], 0) if one else None for one in (insert.takes, insert.types))
    if insert.operands[1:2] != (name,) or len(insert.results) != 1 or part is None or whole is None:
        return False
    at = max(0, code.rfind("return"))
    returned = re.match(rf"return[ \t]+{re.escape(insert.results[0])}[ \t]*:", code[at : at + 200])
    return math.prod(part.shape) < math.prod(whole.shape) and returned is not None


def _list_names(listed: re.Match[str] | None) -> list[str]:
    return split_list(listed["names"]) if listed else []


def _body_uses(region: Region, place: int) -> bool:
    """True if the region of a ``linalg.generic`` uses one of its arguments."""
    argument = region.arguments[place : place + 1]
    return bool(argument) and re.search(rf"{re.escape(argument[0])}(?![\w$.-])", region.text) is not None


def _write_constant(fill: str, element: str) -> str:
    if fill in ("fill-zero", "fill-one"):
        number = "01"[fill == "fill-one"]
        return f"{number}.0" if element in _FLOATS else number if element != "i1" else ("false", "true")[int(number)]
    highest = fill == "fill-highest"
    if element in _FLOATS:
        return _FLOATS[element][0 if highest else 1]
    bits = int(element[1:])
    if bits == 1:
        return "true" if highest else "false"
    return str(2 ** (bits - 1) - 1 if highest else -(2 ** (bits - 1)))
