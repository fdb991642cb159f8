"""Compute the results of an MLIR program from the inputs on its command line, without a compiler. Pure.

A program may use ``arith``, ``math``, ``tensor``, ``linalg``, ``scf``, ``stablehlo``, ``chlo``, ``tosa``, ``torch``
and globals of ``util``, and may call functions. Any other operation ends the computation without a result, because a
reference must not be wrong. Dynamic extents are those of the inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from runners.core.mlir.operations import Region
from runners.core.mlir.types import DYNAMIC
from runners.core.protocol import Testcase
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.control_flow import run_flow
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, count_bits, to_unsigned, wrap_value
from runners.toolchains.iree.diagnosis.reference.dialects.linalg_ext import run_linalg_ext
from runners.toolchains.iree.diagnosis.reference.dialects.stablehlo import run_stablehlo
from runners.toolchains.iree.diagnosis.reference.dialects.tensor import run_tensor
from runners.toolchains.iree.diagnosis.reference.dialects.torch import run_torch
from runners.toolchains.iree.diagnosis.reference.dialects.tosa import run_tosa
from runners.toolchains.iree.diagnosis.reference.elementwise import find_called_function, read_arguments, run_line
from runners.toolchains.iree.diagnosis.reference.excluded import ExcludedOperand, Operand, check_assumption
from runners.toolchains.iree.diagnosis.reference.loops import run_loops
from runners.toolchains.iree.diagnosis.reference.statements import (
    Statement,
    UndefinedResult,
    iterate_statements,
    read_dense,
    read_integers,
    require_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values

BUDGET, ELEMENTS_OF_ONE = 20_000, 100
"""Maximum number of statements of one computation. `ELEMENTS_OF_ONE` touched elements count as one more."""
_MANY_STEPS, MOST_STEPS = re.compile(r"^linalg\.|conv|dot|window|matmul|pool"), 50
"""Operations that may need many steps for each element, and their cost in statements."""


_NO_RESULT = (UndefinedResult, LookupError, ValueError, TypeError, ArithmeticError, RecursionError)
"""The interpreter does not know a part, or the text only resembles the operations that it names."""


def find_excluded_operand(testcase: Testcase) -> Operand | None:
    """Return the first operand of a called function that its operation excludes. None if no call reaches one."""
    runs = [at for at, step in enumerate(testcase.steps, start=1) if step[:1] == ("iree-run-module",)]
    for end in runs[:MAX_RUNS]:
        try:
            _run_program(msgspec.structs.replace(testcase, steps=testcase.steps[:end]), wide=False)
        except ExcludedOperand as found:
            return found.operand
        except _NO_RESULT:
            continue
    return None


MAX_RUNS = 8
"""Maximum number of calls of one testcase that are computed."""


def _run_program(testcase: Testcase, *, wide: bool) -> tuple[Values, ...]:
    called = find_called_function(testcase)
    given = read_arguments(called.arguments, called.inputs) if called is not None else None
    if called is None or given is None:
        raise UndefinedResult("no call with inputs")
    program = _Program(
        maps=called.maps, functions=called.others, wide=wide, held=dict(called.held), budget=iter(range(BUDGET))
    )
    return _run_body(called.body, given, program)


def compute_program(testcase: Testcase) -> tuple[Values, ...] | None:
    """Return the results of the function that the command calls. None if the program has other operations.

    The program is computed in its own types and again in float64. A result that differs is marked as rounded.
    """
    try:
        own, wide = (_run_program(testcase, wide=wide) for wide in (False, True))
    except _NO_RESULT:
        return None
    if len(own) != len(wide):
        return None
    return tuple(
        replace(one, is_rounded=one.is_rounded or not tensors.is_near(one, other))
        for one, other in zip(own, wide, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """The state that all bodies of one computation share."""

    maps: Mapping[str, str]
    functions: Mapping[str, Region]
    wide: bool
    held: dict[str, Values]
    """The values of the globals. Statements change them."""
    budget: Iterator[int]
    """One item for each statement that may still run, and additional ones for a statement on large tensors."""


def _run_body(
    body: str, known: Mapping[str, Values], program: _Program, *, returns: bool = True
) -> tuple[Values, ...]:
    """Run statements up to the one that returns, and return its operands. A region may return nothing."""
    values, wide = dict(known), program.wide

    def run_region(region: Region, arguments: Sequence[Values]) -> Sequence[Values]:
        if len(region.arguments) != len(arguments):
            raise UndefinedResult("arguments of a region")
        given = values | dict(zip(region.arguments, arguments, strict=True))
        return _run_body(region.text, given, program, returns=False)

    for statement in _list_statements(body):
        dialect, _, name = statement.operation.rpartition(".")
        if dialect in ("stablehlo", "chlo", "mhlo", "tosa") and any(DYNAMIC in one.shape for one in statement.types):
            raise UndefinedResult("a dynamic extent")
        if name in ("return", "yield", "condition"):
            return tuple(values[operand] for operand in statement.operands)
        _spend(program.budget, statement, values)
        results: Sequence[Values]
        match dialect:
            case "stablehlo" | "chlo" | "mhlo":
                operands = [values[one] for one in statement.operands]
                results = run_stablehlo(statement, operands, run_region, wide=wide)
            case _ if statement.operation.startswith("torch."):
                results = run_torch(statement, values, wide=wide)
            case "torch_c":
                results = [values[one] for one in statement.operands]
            case "tosa":
                results = run_tosa(statement, [values[one] for one in statement.operands], wide=wide)
            case "tensor" | "linalg" if name in ("pack", "unpack"):
                results = [_run_packing(statement, values)]
            case "tensor":
                results = [run_tensor(statement, values, run_region)]
            case "linalg":
                results = (
                    [_soften(statement, values)]
                    if name == "softmax"
                    else run_loops(statement.text, values, program.maps)
                )
            case "iree_linalg_ext":
                results = run_linalg_ext(statement, values, run_region, program.maps)
            case "scf":
                results = run_flow(statement, [values[one] for one in statement.operands], run_region)
            case "util.global":
                results = _access_global(statement, name, values, program.held)
            case "util.assume" if name == "int":
                results = [_assume(statement, values)]
            case "" | "func" if name == "call":
                results = _call(statement, values, program)
            case _:
                results = [_run_plain(statement, values, wide=wide)]
        for to, one in zip(statement.results, results, strict=True):
            values[to] = one
    if returns:
        raise UndefinedResult("no statement returns")
    return ()


def _assume(statement: Statement, values: Mapping[str, Values]) -> Values:
    """Run ``util.assume.int`` with the bounds of one value: the value itself, if it is within them."""
    found = _BOUNDS.fullmatch(statement.attributes)
    if found is None or len(statement.operands) != 1:
        raise UndefinedResult("an assumption")
    name, given = statement.operands[0], values[statement.operands[0]]
    bits = MAX_BITS if given.element == "index" else count_bits(given.element)
    bounds = {key: int(value) for key, value in _BOUND.findall(found["bounds"])}
    numbers = [to_unsigned(int(one), bits) for one in given.numbers]
    limits = (bounds.get("umin", 0), bounds.get("umax", (1 << bits) - 1))
    check_assumption(statement.operation, statement.results[0], name, numbers, limits)
    return given


_BOUNDS = re.compile(r"[^<]{1,200}<(?P<bounds>[^<>]{0,200})>\s*")
_BOUND = re.compile(r"\b(umin|umax)\s*=\s*(\d{1,20})\b")
MAX_BITS = 64
"""Bits of ``index``."""


_list_statements = lru_cache(maxsize=128)(lambda body: tuple(iterate_statements(body)))
"""Statements of a body. A region may run many times."""


def _spend(budget: Iterator[int], statement: Statement, values: Mapping[str, Values]) -> None:
    read = sum(len(values[name].numbers) for name in statement.operands if name in values)
    written = sum(math.prod(one.shape) for one in statement.types)
    lines = statement.text.count("\n") + 1 if statement.operation.startswith("linalg.") else 1
    count = 1 + min(BUDGET, max(0, read + written) * lines // ELEMENTS_OF_ONE)
    for _ in range(count + MOST_STEPS * bool(_MANY_STEPS.search(statement.operation))):
        if next(budget, None) is None:
            raise UndefinedResult("a long computation")


def _soften(statement: Statement, values: Mapping[str, Values]) -> Values:
    """Run ``linalg.softmax``."""
    given = values[statement.operands[0]]
    found = re.search(r"dimension\((\d{1,2})\)", statement.attributes)
    if found is None or int(found[1]) >= len(given.shape) or given.element not in FLOATS:
        raise UndefinedResult("a softmax")
    at, elements = int(found[1]), tensors.list_elements(given)
    numbers = list(elements)
    for index in tensors.iterate_indices([1 if n == at else extent for n, extent in enumerate(given.shape)]):
        places = [tensors.find_place(given.shape, [*index[:at], i, *index[at + 1 :]]) for i in range(given.shape[at])]
        row = [elements[place] for place in places]
        greatest = max(row)
        powers = [math.exp(one - greatest) for one in row]
        total = sum(powers)
        for place, one in zip(places, powers, strict=True):
            numbers[place] = wrap_value(one / total, given.element)
    return replace(given, numbers=tuple(numbers))


def _run_packing(statement: Statement, values: Mapping[str, Values]) -> Values:
    """Run ``pack`` and ``unpack``. They belong to ``tensor`` in older releases and to ``linalg`` in newer ones."""
    given, to = values[statement.operands[0]], statement.types[0]
    if DYNAMIC in (*to.shape, *given.shape):
        raise UndefinedResult("a dynamic extent")
    text, is_unpacked = statement.attributes, statement.operation.endswith("unpack")
    positions, tiles = (require_integers(text, name) for name in ("inner_dims_pos", "inner_tiles"))
    rank = len(to.shape if is_unpacked else given.shape)
    outer = read_integers(text, "outer_dims_perm") or tuple(range(rank))
    alike = len(positions) == len(tiles) and sorted(outer) == list(range(rank)) and {*positions} <= {*outer}
    if not alike or rank + len(tiles) != len(given.shape if is_unpacked else to.shape) or min(tiles, default=1) < 1:
        raise UndefinedResult("dimensions of tiles")
    tiling = tensors.Tiling(outer, positions, tiles)
    if is_unpacked:
        return tensors.unpack(given, tiling, to.shape)
    padding = re.search(r"padding_value\(\s*(%[\w$.-]+)", text)
    return tensors.pack(given, tiling, values[padding[1]] if padding else None, to.shape)


def _access_global(
    statement: Statement, name: str, values: Mapping[str, Values], held: dict[str, Values]
) -> Sequence[Values]:
    """Run ``util.global.load`` or ``util.global.store``."""
    symbol = re.search(r"@([\w$.-]{1,200})", statement.attributes)
    if symbol is None or symbol[1] not in held or name not in ("load", "store"):
        raise UndefinedResult(statement.operation)
    if name == "load":
        return [held[symbol[1]]]
    held[symbol[1]] = values[statement.operands[0]]
    return []


def _call(statement: Statement, values: Mapping[str, Values], program: _Program) -> Sequence[Values]:
    """Run another function of the text. It sees only its arguments."""
    named = re.match(r"\s*@([\w$.-]{1,200})\s*\(", statement.attributes)
    function = program.functions.get(named[1]) if named else None
    if function is None or len(function.arguments) != len(statement.operands):
        raise UndefinedResult("a call")
    arguments = (values[one] for one in statement.operands)
    return _run_body(function.text, dict(zip(function.arguments, arguments, strict=True)), program)


def _run_plain(statement: Statement, values: dict[str, Values], *, wide: bool) -> Values:
    """Run an operation of ``arith`` or ``math`` on whole tensors of one shape."""
    if statement.operation == "arith.constant" and re.match(r"\s*dense<\s*[^\w\s.+-]", statement.attributes):
        to = statement.types[0]
        return Values(to.element, read_dense(statement.attributes, to.element, math.prod(to.shape)), to.shape)
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
    if DYNAMIC in shape:  # the shape of the operands
        shape = next((one.shape for one in operands if len(one.shape) == len(shape)), shape)
    return replace(result, element=element, shape=shape, is_rounded=rounded)
