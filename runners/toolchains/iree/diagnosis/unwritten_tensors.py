"""What an MLIR testcase reads of a ``tensor.empty``, whose elements hold nothing in particular. Pure, by its text.

Looked at are tensors of a static shape, used as they come by an operation that reads them for certain: one that adds
to its output (a matrix product, a convolution, a pooling, a reduction), a ``linalg.generic`` whose body uses its
value, ``tensor.extract``, an input whose elements count. One that is first filled has another name and is none of
these. What is inserted into or carried through a loop is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from runners.core.protocol import Finding, FindingKind, Observation, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.memory_fills import decide_origin

MOST_CHARACTERS, MOST_EMPTY, MOST_OPERATIONS, MOST_OF_A_BODY = 200_000, 20, 1_000, 4_000
"""What is looked at of a file, of it, of what follows a ``tensor.empty``, and of a region, in characters: a text that
is made to be slow takes no longer than a large one."""
_VALUE = r"%[A-Za-z0-9_$.-]{1,80}"
_EMPTY = re.compile(
    rf"^[ \t]*(?P<name>{_VALUE})[ \t]*=[ \t]*tensor\.empty\(\)[ \t]*:[ \t]*"
    r"(?P<type>tensor<(?:\d{1,9}x){0,8}(?P<element>f16|bf16|f32|f64|i\d{1,2})>)[ \t]*$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^[ \t]*(?:func|util)\.func\b", re.MULTILINE)
_OPERATION = re.compile(r"^[ \t]*(?:%[^\n=]{1,200}=[ \t]*)?\"?(?P<name>[a-z_]{1,40}\.[a-z0-9_.]{1,60})", re.MULTILINE)
_ADDS = re.compile(
    r"linalg\.(?:\w*matmul\w*|conv_\w+|depthwise_conv_\w+|pooling_\w+|matvec|vecmat|batch_matvec|dot|\w*mmt4d|reduce)"
)
_OUTS = re.compile(r"\bouts\([ \t]*(?P<names>[^:)]{1,400}):")
_INS = re.compile(r"\bins\([ \t]*(?P<names>[^:)]{1,400}):")
_BLOCK = re.compile(r"\^\w{1,40}\((?P<arguments>[^)]{1,2000})\)[ \t]*:")
_COMMENT = re.compile(r"//[^\n]*")

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

    def __str__(self) -> str:
        return f"{self.operation} in {self.file}:{self.line} reads {self.name}, a tensor.empty that nothing filled"

    def filled(self, fill: str) -> Testcase:
        """The same testcase with a constant in the place of this ``tensor.empty``, and nothing else changed."""
        text = self._testcase.files[self.file]
        start, end = self._at
        constant = f"    {self.name} = arith.constant dense<{_number(fill, self._element)}> : {self._type}"
        files = {**self._testcase.files, self.file: text[:start] + constant + text[end:]}
        return msgspec.structs.replace(self._testcase, files=files)


def check_unwritten_tensors(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with constants in the place of a ``tensor.empty`` that it reads."""
    unwritten = find_unwritten(failure.testcase)
    if unwritten is None:
        return NOTHING_FOUND

    def run_filled(fill: str) -> Observation:
        return means.run_control(failure, unwritten.filled(fill))

    controls, evidence = decide_origin(run_filled)
    finding = Finding(
        kind=FindingKind.UNINITIALIZED_READ,
        summary=str(unwritten),
        evidence={
            "operation": unwritten.operation,
            "file": unwritten.file,
            "line": unwritten.line,
            "buffer": unwritten.name,
            "version": failure.seen.version,
            **evidence,
        },
    )
    return Diagnosis(controls=controls, findings=(finding,))


def find_unwritten(testcase: Testcase) -> Unwritten | None:
    """The first that the text shows; None where it shows none."""
    if testcase.kind is not TestcaseKind.COMMAND_LINE:
        return None
    for file, text in testcase.files.items():
        if not file.endswith(".mlir") or len(text) > MOST_CHARACTERS:
            continue
        # Comments become blanks, so that places stay where they are.
        code = _COMMENT.sub(lambda found: " " * len(found[0]), text)
        for empty in islice(_EMPTY.finditer(code), MOST_EMPTY):
            for operation, at in _readers(code, empty):
                return Unwritten(
                    operation=operation, file=file, line=code.count("\n", 0, at) + 1, name=empty["name"],
                    _testcase=testcase, _at=empty.span(), _type=empty["type"], _element=empty["element"],
                )  # fmt: skip
    return None


def _readers(code: str, empty: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Operations of the same function that read the tensor, with the place where each begins."""
    following = _FUNCTION.search(code, empty.end())
    end = following.start() if following else len(code)
    operations = list(islice(_OPERATION.finditer(code, empty.end(), end), MOST_OPERATIONS))
    for place, found in enumerate(operations):
        stop = operations[place + 1].start() if place + 1 < len(operations) else end
        if _reads(found["name"], code, found.start(), stop, empty["name"]):
            yield found["name"], found.start() + len(found[0]) - len(found[0].lstrip())


def _reads(operation: str, code: str, start: int, stop: int, name: str) -> bool:
    """Whether an operation, which stands between two places, reads the tensor for certain."""
    text = code[start:stop]
    if operation == "tensor.extract":
        return re.search(rf"tensor\.extract[ \t]+{re.escape(name)}\[", text) is not None
    if not operation.startswith("linalg.") or operation == "linalg.index":
        return False
    given, output = _names(_INS.search(text), name), _names(_OUTS.search(text), name)
    if operation == "linalg.generic":
        inputs = _INS.search(text)
        first = len(inputs["names"].split(",")) if inputs else 0
        places = ([] if given is None else [given]) + ([] if output is None else [first + output])
        return any(_body_uses(code, start, text, place) for place in places)
    if given is not None:
        # The second operand of a pooling is the window: only its shape is used.
        return given == 0 or not operation.startswith("linalg.pooling_")
    return output is not None and _ADDS.fullmatch(operation) is not None


def _names(listed: re.Match[str] | None, name: str) -> int | None:
    """The place of a value in an operand list."""
    names = [one.strip() for one in listed["names"].split(",")] if listed else []
    return names.index(name) if name in names else None


def _body_uses(code: str, start: int, text: str, place: int) -> bool:
    """Whether the region of a ``linalg.generic`` uses one of its arguments."""
    block = _BLOCK.search(text)
    arguments = [one.partition(":")[0].strip() for one in block["arguments"].split(",")] if block else []
    if block is None or place >= len(arguments):
        return False
    begin = start + block.end()
    body = code[begin : _closing(code, begin)]
    return re.search(rf"{re.escape(arguments[place])}(?![\w$.-])", body) is not None


def _closing(code: str, begin: int) -> int:
    """Where the region ends in which ``begin`` lies."""
    depth, stop = 1, min(len(code), begin + MOST_OF_A_BODY)
    for brace in re.compile(r"[{}]").finditer(code, begin, stop):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return stop


def _number(fill: str, element: str) -> str:
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
