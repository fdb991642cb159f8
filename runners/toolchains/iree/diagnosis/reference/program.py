"""Compute the results of an MLIR program from the inputs on its command line, without a compiler. Pure.

A program in ``arith``, ``math``, ``tensor``, ``linalg``, ``stablehlo``, ``chlo`` and ``tosa``. Any other operation
ends the computation without a result: a reference that may be wrong is no reference. Extents are those of the inputs;
a tensor that is made with dynamic extents ends the computation too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runners.core.protocol import Testcase
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, wrap_value
from runners.toolchains.iree.diagnosis.reference.elementwise import find_called_function, read_arguments, run_line
from runners.toolchains.iree.diagnosis.reference.loops import run_loops
from runners.toolchains.iree.diagnosis.reference.stablehlo import run_stablehlo
from runners.toolchains.iree.diagnosis.reference.statements import (
    DYNAMIC,
    Region,
    Statement,
    UndefinedResult,
    iterate_statements,
    read_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values
from runners.toolchains.iree.diagnosis.reference.tosa import run_tosa

_NEAR = {"f32": 1e-5, "f64": 1e-5}
"""Greatest difference, relative, between a result and its computation in float64 that another order may explain."""


def compute_program(testcase: Testcase) -> tuple[Values, ...] | None:
    """Return the results of the function that the command calls; None if the program has other operations.

    The program is computed in its own types and again in float64. A result that differs is marked as rounded.
    """
    called = find_called_function(testcase)
    given = read_arguments(called.arguments, called.inputs) if called is not None else None
    if called is None or given is None:
        return None
    try:
        own = _run_body(called.body, given, called.maps, wide=False)
        wide = _run_body(called.body, given, called.maps, wide=True)
    except (UndefinedResult, LookupError, ValueError, TypeError, ArithmeticError, RecursionError):
        return None  # text that only looks like the operations it names
    if len(own) != len(wide):
        return None
    return tuple(
        replace(one, is_rounded=one.is_rounded or not _is_near(one, other))
        for one, other in zip(own, wide, strict=True)
    )


def _is_near(own: Values, wide: Values) -> bool:
    if len(own.numbers) != len(wide.numbers):
        return False
    if own.element not in FLOATS:
        return own.numbers == wide.numbers
    near = _NEAR.get(own.element, 0.0)
    pairs = ((a, wrap_value(b, own.element)) for a, b in zip(own.numbers, wide.numbers, strict=True))
    return all(
        (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=near, abs_tol=near / 10)
        for a, b in pairs
    )


def _run_body(body: str, known: Mapping[str, Values], maps: Mapping[str, str], *, wide: bool) -> tuple[Values, ...]:
    """Run statements up to the one that returns, and return its operands."""
    values = dict(known)

    def run_region(region: Region, arguments: Sequence[Values]) -> Sequence[Values]:
        if len(region.arguments) != len(arguments):
            raise UndefinedResult("arguments of a region")
        return _run_body(region.text, values | dict(zip(region.arguments, arguments, strict=True)), maps, wide=wide)

    for statement in iterate_statements(body):
        dialect, _, name = statement.operation.rpartition(".")
        if dialect in ("stablehlo", "chlo", "mhlo", "tosa") and any(DYNAMIC in one.shape for one in statement.types):
            raise UndefinedResult("a dynamic extent")
        if name in ("return", "yield"):
            return tuple(values[operand] for operand in statement.operands)
        match dialect:
            case "stablehlo" | "chlo" | "mhlo":
                operands = [values[one] for one in statement.operands]
                results = run_stablehlo(statement, operands, run_region, wide=wide)
            case "tosa":
                results = run_tosa(statement, [values[one] for one in statement.operands], wide=wide)
            case "tensor":
                results = [] if name == "empty" else [_run_tensor(statement, values)]
            case "linalg":
                results = [run_loops(statement.text, values, maps)]
            case _:
                results = [_run_plain(statement, values, wide=wide)]
        for to, one in zip(statement.results, results, strict=name != "empty"):
            values[to] = one
    raise UndefinedResult("no statement returns")


def _run_plain(statement: Statement, values: dict[str, Values], *, wide: bool) -> Values:
    """Run an operation of ``arith`` or ``math`` on whole tensors of one shape."""
    operands = [values[name] for name in statement.operands]
    if len({one.shape for one in operands if len(one.numbers) > 1}) > 1:
        raise UndefinedResult("tensors of several shapes")
    line = re.sub(r"\bindex\b", "i64", " ".join(statement.text.split()))
    if wide and not re.search(r"\bto\b|arith\.constant", line):
        line = re.sub(r"(?<=x|<|\s)(?:f16|bf16|f32)(?=>?$)", "f64", line)
    inner = dict(values)
    if not run_line(line, inner):
        raise UndefinedResult(line[:80])
    result = inner[statement.results[0]]
    rounded = any(one.is_rounded for one in operands)
    element = result.element if result.element not in FLOATS else statement.types[0].element
    shape = statement.types[0].shape
    if DYNAMIC in shape:  # that of the operands
        shape = next((one.shape for one in operands if len(one.shape) == len(shape)), shape)
    return replace(result, element=element, shape=shape, is_rounded=rounded)


_LISTED = re.compile(r"\[([-\d,\s]*)\]")


def _run_tensor(statement: Statement, values: Mapping[str, Values]) -> Values:
    """Run an operation of ``tensor`` whose offsets, sizes and padding are constants of the text."""
    text, to = statement.attributes, statement.types[0]
    operands = [values[name] for name in statement.operands]
    listed = [tuple(map(int, re.findall(r"-?\d+", one))) for one in _LISTED.findall(text)]
    match statement.operation.partition(".")[2]:
        case "dim" if len(operands) == 2:
            return Values("i64", (operands[0].shape[int(operands[1].pick(0))],))
        case _ if DYNAMIC in to.shape:
            raise UndefinedResult("a dynamic extent")
        case "extract_slice" if len(operands) == 1 and len(listed) == 3:
            starts, sizes, steps = listed
            cut = tensors.cut_slice(operands[0], starts, steps, sizes)
            return tensors.reshape(cut, to.shape)
        case "insert_slice" if len(operands) == 2 and len(listed) == 3:
            starts, sizes, steps = listed
            source, target = tensors.reshape(operands[0], sizes), operands[1]
            numbers = list(tensors.list_elements(target))
            for index, number in zip(tensors.iterate_indices(sizes), tensors.list_elements(source), strict=True):
                place = [a + i * s for a, i, s in zip(starts, index, steps, strict=True)]
                numbers[tensors.find_place(target.shape, place)] = number
            return replace(target, numbers=tuple(numbers), is_rounded=source.is_rounded or target.is_rounded)
        case "collapse_shape" | "expand_shape" | "reshape" | "cast":
            return tensors.reshape(operands[0], to.shape)
        case "splat" if len(operands) == 1:
            return replace(operands[0], shape=to.shape)
        case "from_elements":
            numbers = [one.pick(0) for one in operands]
            return Values(to.element, tuple(numbers), to.shape, any(one.is_rounded for one in operands))
        case "concat":
            found = re.search(r"dim\((\d+)\)", text)
            return tensors.concatenate(operands, int(found[1]) if found else -1, to)
        case "pad" if len(operands) == 1 and len(statement.regions) == 1:
            low = read_integers(re.sub(r"\b(low|high)\[", r"\1 = [", text), "low")
            yielded = re.fullmatch(r"\s*tensor\.yield\s+(%[\w$.-]+)\s*:\s*\w+\s*", statement.regions[0].text)
            if low is None or yielded is None:
                raise UndefinedResult("padding")
            return tensors.pad(operands[0], values[yielded[1]], low, [0] * len(low), to.shape)
        case _:
            raise UndefinedResult(statement.operation)
