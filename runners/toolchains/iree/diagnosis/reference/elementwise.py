"""Read the function that a command calls, its inputs, and the lines of ``arith`` and ``math``. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from runners.core.mlir.affine_maps import read_named_maps
from runners.core.mlir.brackets import find_closing, partition, remove_comments, split_list
from runners.core.mlir.operations import Operation, Region, parse_operation
from runners.core.mlir.types import DYNAMIC, ScalarType, TensorType, fits_shape, parse_type
from runners.core.protocol import Testcase
from runners.toolchains.iree.diagnosis.reference.definitions import (
    FLOATS,
    Number,
    compare,
    compute_each,
    convert,
    count_bits,
    is_known,
    wrap_value,
)
from runners.toolchains.iree.diagnosis.reference.dialects.torch.types import write_builtin_types
from runners.toolchains.iree.diagnosis.reference.excluded import (
    CastOutOfRange,
    ExcludedOperand,
    Operand,
    ShiftTooFar,
    ZeroDivisor,
)
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult, read_dense, read_literal
from runners.toolchains.iree.diagnosis.reference.tensors import Values
from runners.toolchains.iree.reports.inputs import find_called

MAX_CHARS, MAX_ELEMENTS, MAX_LINES, MAX_FUNCTIONS = 20_000, 10_000, 200, 20
_FUNCTION = re.compile(
    r"^[ \t]*func\.func[ \t]+(?:(?P<visibility>public|private)[ \t]+)?@(?P<name>[\w$.-]{1,200})"
    r"\((?P<arguments>[^()]{0,4000})\)[^\n]{0,1000}\{[ \t]*$",
    re.M,
)
_INPUT = re.compile(
    r"--input=(?:(?P<shape>(?:\d{1,9}x){0,8})(?P<element>\w{1,12})=)?(?P<values>[-+\w.,\[\] ]{1,200000})$"
)


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """The only function that the only run of a testcase calls."""

    arguments: str
    body: str
    inputs: tuple[str, ...]
    """The words of the run that pass arguments."""
    maps: dict[str, str]
    """The affine maps that the text names."""
    others: dict[str, Region]
    """The other functions of the text, which this function may call."""
    held: dict[str, Values]
    """The initial values of the globals of the text."""


_KEEPS_TYPES = re.compile(
    r"--iree-input-type=(?:auto|none|stablehlo|tosa|stablehlo_xla|torch|onnx)$|--iree-input-demote-f64-to-f32=(?:false|0)$"
)


def find_called_function(testcase: Testcase) -> CalledFunction | None:
    """Return the function that the last command calls. None if the text or the call does not determine it."""
    sources = [text for name, text in testcase.files.items() if name.endswith(".mlir")]
    run = testcase.steps[-1] if testcase.steps else ("",)
    if len(sources) != 1 or run[0] != "iree-run-module" or len(sources[0]) > MAX_CHARS:
        return None
    plain = write_builtin_types(remove_comments(sources[0]))
    text = _WHOLE.sub(r"\g<head>\n\g<body>\n\g<end>\n}", plain)
    called = find_called(run)
    listed = list(_FUNCTION.finditer(text))
    public = [one for one in listed if one["visibility"] != "private"]
    functions = [one for one in public if called in (None, one["name"])]
    flags = [word for step in testcase.steps for word in step if word.startswith("--iree-input")]
    if len(functions) != 1 or not all(map(_KEEPS_TYPES.match, flags)) or len(listed) > MAX_FUNCTIONS:
        return None
    try:
        bodies = {one["name"]: _cut_body(text, one) for one in listed}
    except UndefinedResult:
        return None
    return CalledFunction(
        arguments=functions[0]["arguments"],
        body=bodies[functions[0]["name"]].text,
        inputs=tuple(word for word in run if word.startswith("--input=")),
        maps=read_named_maps(text),
        others=bodies,
        held=dict(_list_globals(text)),
    )


_GLOBAL = re.compile(
    r"^[ \t]*util\.global[ \t]+(?:(?:public|private)[ \t]+)?(?:mutable[ \t]+)?@(?P<name>[\w$.-]{1,200})"
    r"[ \t]*=[ \t]*(?P<value>dense<[^<>]{0,20000}>|[-+\w.]{1,60})[ \t]*:(?P<type>[^\n]*)$",
    re.M,
)


def _list_globals(text: str) -> Iterator[tuple[str, Values]]:
    """Yield the globals whose initial value is in the text."""
    for found in _GLOBAL.finditer(text):
        kind = _read_type(found["type"])
        if kind is None or DYNAMIC in kind.shape or math.prod(kind.shape) > MAX_ELEMENTS:
            continue
        element, shape, size = kind.element, kind.shape, math.prod(kind.shape)
        if found["value"].startswith("dense"):
            yield found["name"], Values(element, read_dense(found["value"], element, size), shape)
        elif (number := read_number(found["value"], element)) is not None and not shape:
            yield found["name"], Values(element, (number,), ())


_WHOLE = re.compile(
    r"^(?P<head>[ \t]*func\.func\b[^\n{}]{1,1000}\{)(?P<body>[^\n{}]{0,1000}?)"
    r"(?P<end>\breturn\b[^\n{}]{0,1000})\}[ \t]*$",
    re.M,
)
"""A function on one line."""


def _cut_body(text: str, function: re.Match[str]) -> Region:
    begin = text.rindex("{", 0, function.end())
    end = find_closing(text, begin)
    if end < 0:
        raise UndefinedResult("unbalanced brackets")
    names = (partition(one, ":")[0] for one in split_list(function["arguments"]))
    return Region(tuple(names), text[begin + 1 : end])


def read_arguments(listed: str, inputs: Sequence[str]) -> dict[str, Values] | None:
    """Return the arguments of a function, from the words of its call. None if they do not fit together."""
    arguments = [partition(one, ":") for one in split_list(re.sub(r"\{[^{}]*\}", "", listed))]  # no attributes
    if len(arguments) != len(inputs):
        return None
    given: dict[str, Values] = {}
    for (name, _, declared), word in zip(arguments, inputs, strict=True):
        found, kind = _INPUT.match(word), _read_type(re.sub(r"index(?=>?$)", "i64", declared))
        shape = tuple(int(n) for n in (found["shape"] or "").split("x")[:-1]) if found else ()
        if found is None or kind is None or not fits_shape(kind.shape, shape):
            return None
        element, size = kind.element, math.prod(shape)
        read = [read_number(one, element) for one in re.split(r"[\s,\[\]]+", found["values"]) if one]
        numbers = [number for number in read if number is not None]
        if size > MAX_ELEMENTS or len(numbers) != len(read) or len(numbers) not in (1, size):
            return None
        given[name] = Values(element, tuple(numbers * (size if len(numbers) == 1 else 1)), shape)
    return given


_Known: TypeAlias = TensorType | ScalarType


@lru_cache(maxsize=1024)
def _read_type(text: str) -> _Known | None:
    """Return a type without encoding whose elements the definitions know."""
    match parse_type(text):
        case (TensorType(encoding="", element=element) | ScalarType(element=element)) as kind if is_known(element):
            return kind
        case _:
            return None


def read_number(word: str, element: str) -> Number | None:
    try:
        return wrap_value(float(word) if element in FLOATS else int(word), element)
    except ValueError:
        return None


def run_line(line: str, known: dict[str, Values]) -> bool:
    """Add the result of one operation. Return False if the operation is unknown or its result is undefined.

    Raises:
        ExcludedOperand: the definition of the operation excludes an operand.
    """
    operation = _parse_line(line)
    kinds = [_read_type(one) for one in (*(operation.takes or ()), *operation.types)] if operation else []
    if operation is None or len(operation.results) != 1 or not kinds or len(operation.operands) > MAX_OPERANDS:
        return False
    (to,), name, given, kind = operation.results, operation.name, operation.operands, kinds[-1]
    if name == "arith.select" and len(given) == 3 and _has_only_operands(operation):
        operands, chosen = _get_operands(known, *given), known.get(given[1])
        return chosen is not None and _keep(known, to, chosen.element, [a if of else b for of, a, b in operands])
    if kind is None:
        return False
    element = kind.element
    if found := _CONSTANT.fullmatch(operation.attributes) if name == "arith.constant" else None:
        try:
            return _keep(known, to, element, [read_literal(found["dense"] or found["one"], element)])
        except UndefinedResult:
            return False
    if found := _PREDICATE.match(operation.attributes) if name in ("arith.cmpf", "arith.cmpi") else None:
        if not _has_only_operands(operation, found.end()) or len(given) != 2:
            return False
        pairs = _get_operands(known, *given)
        how = name.removeprefix("arith.")
        return _keep(known, to, "i1", [compare(how, found["predicate"], element, a, b) for a, b in pairs])
    if not name.startswith(("arith.", "math.")) or not given or not _has_only_operands(operation):
        return False
    if operation.takes is not None:
        return len(kinds) == 2 and len(given) == 1 and _convert(operation, kinds[0], element, known)
    operands = _get_operands(known, *given)
    results = compute_each(name, element, operands)
    if None in results:
        _check_second(operation, element, operands[results.index(None)])
    return _keep(known, to, element, results)


_CONSTANT = re.compile(r"dense<(?P<dense>[-+\w.]+)>|(?P<one>[-+\w.]+)")
_PREDICATE = re.compile(r"(?P<predicate>\w+),")
MAX_OPERANDS = 3
_parse_line = lru_cache(maxsize=1024)(parse_operation)


def _has_only_operands(operation: Operation, at: int = 0) -> bool:
    """True without flags such as ``fastmath<fast>``, which allow other results. ``at``: where the operands begin."""
    return tuple(split_list(operation.attributes[at:])) == operation.operands and not operation.regions


def _convert(operation: Operation, source: _Known | None, element: str, known: dict[str, Values]) -> bool:
    if source is None or not operation.name.startswith("arith."):
        return False
    how, (name,), (to,) = operation.name.removeprefix("arith."), operation.operands, operation.results
    given = [one for (one,) in _get_operands(known, name)]
    numbers = [convert(how, one, source.element, element) for one in given]
    if how in ("fptosi", "fptoui") and None in numbers:
        value, fault = given[numbers.index(None)], CastOutOfRange(source.element, element)
        raise ExcludedOperand(Operand(operation=operation.name, result=to, name=name, value=value, fault=fault))
    return _keep(known, to, element, numbers)


_DIVISION = re.compile(r"arith\.(?:div|rem|ceildiv|floordiv)[su]i$")
_SHIFT = re.compile(r"arith\.sh(?:l|rs|ru)i$")


def _check_second(operation: Operation, element: str, operands: Sequence[Number]) -> None:
    """Raise `ExcludedOperand` for a divisor of zero, and for a shift by all bits or more."""
    name, second = operation.operands[-1], operands[-1]
    fault: ZeroDivisor | ShiftTooFar
    if _DIVISION.match(operation.name) and not second:
        fault = ZeroDivisor()
    elif _SHIFT.match(operation.name) and not 0 <= second < count_bits(element):
        fault = ShiftTooFar(count_bits(element))
    else:
        return
    (to,) = operation.results
    raise ExcludedOperand(Operand(operation=operation.name, result=to, name=name, value=second, fault=fault))


def _get_operands(known: dict[str, Values], *names: str) -> list[tuple[Number, ...]]:
    """Return the operands of each element. Empty if one is unknown."""
    values = [known[name] for name in names if name in known]
    if len(values) != len(names):
        return []
    size = max(len(one.numbers) for one in values)
    if any(len(one.numbers) not in (1, size) for one in values):
        return [tuple(one.pick(at) for one in values) for at in range(size)]
    columns = [one.numbers if len(one.numbers) == size else one.numbers * size for one in values]
    return list(zip(*columns, strict=True))


def _keep(known: dict[str, Values], name: str, element: str, numbers: Sequence[Number | None]) -> bool:
    defined = tuple(number for number in numbers if number is not None)
    if not defined or len(defined) != len(numbers):
        return False
    known[name] = Values(element, defined)
    return True
