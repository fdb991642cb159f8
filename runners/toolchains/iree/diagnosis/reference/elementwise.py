"""Read the function that a command calls, its inputs, and the lines of ``arith`` and ``math``. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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
from runners.toolchains.iree.diagnosis.reference.statements import (
    Region,
    UndefinedResult,
    find_closing,
    read_dense,
    read_literal,
    read_shape,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values
from runners.toolchains.iree.reports.inputs import find_called

MAX_CHARS, MAX_ELEMENTS, MAX_LINES, MAX_FUNCTIONS = 20_000, 10_000, 200, 20
_VALUE = r"%[A-Za-z0-9_$.-]{1,80}"
_TYPE = r"(?:tensor<(?P<{0}shape>(?:(?:\d{{1,9}}|\?)x){{0,8}})(?P<{0}in>\w{{1,12}})>|(?P<{0}alone>\w{{1,12}}))"
_FUNCTION = re.compile(
    r"^[ \t]*func\.func[ \t]+(?:(?P<visibility>public|private)[ \t]+)?@(?P<name>[\w$.-]{1,200})"
    r"\((?P<arguments>[^()]{0,4000})\)[^\n]{0,1000}\{[ \t]*$",
    re.M,
)
_ARGUMENT = re.compile(rf"(?P<name>{_VALUE})\s*:\s*{_TYPE.format('t')}\s*(?:,|$)")
_ALIAS = re.compile(r"^[ \t]*(?P<name>#\w+)\s*=\s*(?P<map>affine_map<[^\n]*>)[ \t]*$", re.M)
_CONSTANT = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*arith\.constant\s+(?:dense<(?P<dense>[-+\w.]+)>|(?P<one>[-+\w.]+))\s*:\s*{_TYPE.format('t')}$"
)
_COMPARE = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*arith\.(?P<kind>cmp[if])\s+(?P<predicate>\w+),\s*(?P<a>{_VALUE}),\s*(?P<b>{_VALUE})"
    rf"\s*:\s*{_TYPE.format('t')}$"
)
_SELECT = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*arith\.select\s+(?P<of>{_VALUE}),\s*(?P<a>{_VALUE}),\s*(?P<b>{_VALUE})\s*:[^\n]*$"
)
_CONVERT = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*arith\.(?P<how>\w+)\s+(?P<of>{_VALUE})\s*:\s*{_TYPE.format('s')}\s+to\s+{_TYPE.format('t')}$"
)
_COMPUTE = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*(?P<operation>(?:arith|math)\.\w+)\s+(?P<of>{_VALUE}(?:,\s*{_VALUE}){{0,2}})\s*:\s*{_TYPE.format('t')}$"
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
    """Aliases of affine maps in the text."""
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
    plain = write_builtin_types(re.sub(r"//[^\n]*", "", sources[0]))
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
        maps={found["name"]: found["map"] for found in _ALIAS.finditer(text)},
        others=bodies,
        held=dict(_list_globals(text)),
    )


_GLOBAL = re.compile(
    r"^[ \t]*util\.global[ \t]+(?:(?:public|private)[ \t]+)?(?:mutable[ \t]+)?@(?P<name>[\w$.-]{1,200})"
    rf"[ \t]*=[ \t]*(?P<value>dense<[^<>]{{0,20000}}>|[-+\w.]{{1,60}})[ \t]*:[ \t]*{_TYPE.format('t')}[ \t]*$",
    re.M,
)


def _list_globals(text: str) -> Iterator[tuple[str, Values]]:
    """Yield the globals whose initial value is in the text."""
    for found in _GLOBAL.finditer(text):
        element, shape = found["tin"] or found["talone"], read_shape(found["tshape"] or "")
        size = math.prod(shape)
        if not is_known(element) or not 0 <= size <= MAX_ELEMENTS:
            continue
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
    names = re.findall(rf"({_VALUE})\s*:", function["arguments"])
    return Region(tuple(names), text[begin + 1 : find_closing(text, begin)])


def read_arguments(listed: str, inputs: Sequence[str]) -> dict[str, Values] | None:
    """Return the arguments of a function, from the words of its call. None if they do not fit together."""
    plain = re.sub(r"\{[^{}]*\}", "", listed)  # attributes
    arguments = list(_ARGUMENT.finditer(plain))
    if len(arguments) != len(inputs) or _ARGUMENT.sub("", plain).strip():
        return None
    given: dict[str, Values] = {}
    for argument, word in zip(arguments, inputs, strict=True):
        found, element = _INPUT.match(word), argument["tin"] or argument["talone"]
        element = "i64" if element == "index" else element
        if found is None or not is_known(element) or not _fits(argument["tshape"] or "", found["shape"] or ""):
            return None
        shape = tuple(int(n) for n in (found["shape"] or "").split("x")[:-1])
        size = math.prod(shape)
        read = [read_number(one, element) for one in re.split(r"[\s,\[\]]+", found["values"]) if one]
        numbers = [number for number in read if number is not None]
        if size > MAX_ELEMENTS or len(numbers) != len(read) or len(numbers) not in (1, size):
            return None
        given[argument["name"]] = Values(element, tuple(numbers * (size if len(numbers) == 1 else 1)), shape)
    return given


def _fits(declared: str, passed: str) -> bool:
    """True if an input has the extents of an argument. A dynamic extent fits every input."""
    pairs = list(zip_longest(declared.split("x")[:-1], passed.split("x")[:-1]))
    return all(one == other or (one == "?" and other is not None) for one, other in pairs)


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
    found: re.Match[str] | None
    if found := _CONSTANT.match(line):
        element = found["tin"] or found["talone"]
        word = found["dense"] or found["one"]
        try:
            value = read_literal(word, element) if is_known(element) else None
        except UndefinedResult:
            return False
        return _keep(known, found["to"], element, [value])
    if found := _COMPARE.match(line):
        operands = _get_operands(known, found["a"], found["b"])
        element = found["tin"] or found["talone"]
        numbers = [compare(found["kind"], found["predicate"], element, a, b) for a, b in operands]
        return is_known(element) and _keep(known, found["to"], "i1", numbers)
    if found := _SELECT.match(line):
        operands = _get_operands(known, found["of"], found["a"], found["b"])
        chosen = known.get(found["a"])
        return chosen is not None and _keep(
            known, found["to"], chosen.element, [a if of else b for of, a, b in operands]
        )
    if found := _CONVERT.match(line):
        source, element = found["sin"] or found["salone"], found["tin"] or found["talone"]
        if not (is_known(source) and is_known(element)):
            return False
        given = [one for (one,) in _get_operands(known, found["of"])]
        numbers = [convert(found["how"], one, source, element) for one in given]
        if found["how"] in ("fptosi", "fptoui") and None in numbers:
            value = given[numbers.index(None)]
            raise ExcludedOperand(
                Operand(
                    operation=f"arith.{found['how']}",
                    result=found["to"],
                    name=found["of"],
                    value=value,
                    fault=CastOutOfRange(source, element),
                )
            )
        return _keep(known, found["to"], element, numbers)
    if found := _COMPUTE.match(line):
        element = found["tin"] or found["talone"]
        operands = _get_operands(known, *(name.strip() for name in found["of"].split(",")))
        results = compute_each(found["operation"], element, operands) if is_known(element) else []
        if None in results:
            _check_second(found, element, operands[results.index(None)])
        return _keep(known, found["to"], element, results)
    return False


_DIVISION = re.compile(r"arith\.(?:div|rem|ceildiv|floordiv)[su]i$")
_SHIFT = re.compile(r"arith\.sh(?:l|rs|ru)i$")


def _check_second(found: re.Match[str], element: str, operands: Sequence[Number]) -> None:
    """Raise `ExcludedOperand` for a divisor of zero, and for a shift by all bits or more."""
    name, second = found["of"].rpartition(",")[2].strip(), operands[-1]
    fault: ZeroDivisor | ShiftTooFar
    if _DIVISION.match(found["operation"]) and not second:
        fault = ZeroDivisor()
    elif _SHIFT.match(found["operation"]) and not 0 <= second < count_bits(element):
        fault = ShiftTooFar(count_bits(element))
    else:
        return
    raise ExcludedOperand(
        Operand(operation=found["operation"], result=found["to"], name=name, value=second, fault=fault)
    )


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
