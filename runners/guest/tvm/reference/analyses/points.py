"""Find points of the domain of an analysis: numbers for its variables that satisfy all facts given to the analyzer.

A fact comes from the analyzer's input or from the arguments of a call: a range, a value, a condition, a set. Each
becomes a condition over the variables, so that the order of the facts does not matter. Conditions only remove points.
An empty or unknown domain has no point, and then an analysis has no counterexample.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.expressions import Evaluate, ExpressionCompiler, Variables
from runners.guest.tvm.reference.kernels.types import UndefinedResult, read_type
from runners.guest.tvm.reference.operators.basic import demand

MAX_POINTS = 4096
"""Maximum number of points that are tried for one result."""
MAX_VALUES = 64
"""Maximum number of values that are all tried. A larger range is tried at its ends and in some places."""
_SMALL = range(-9, 10)
_VARIABLES = ("Var", "SizeVar")
_INFINITY = 2**63 - 1


@dataclass(frozen=True)
class Fact:
    """A condition on the domain: a variable or an expression is in ``low`` … ``high``, or has a remainder.

    ``low`` and ``high`` are expressions, numbers, or None for no limit. With ``modulus``, the expression has the
    remainder ``remainder``.
    """

    expression: Node
    low: Node | int | None = None
    high: Node | int | None = None
    modulus: int = 0
    remainder: int = 0


class Space(ExpressionCompiler):
    """The variables of some expressions and facts, with the points at which these can be evaluated."""

    def __init__(self, expressions: Sequence[Node], facts: Sequence[Fact]) -> None:
        super().__init__(wide=False)
        self.variables: list[Node] = []
        self._numbers: set[int] = set()
        parts = [fact.expression for fact in facts]
        parts += [limit for fact in facts for limit in (fact.low, fact.high) if ir.is_expression(limit)]
        for part in [*expressions, *parts]:
            self._collect(part)
        for variable in self.variables:
            demand(read_type(ir.get_dtype(variable)).kind != "f", "a variable that is no integer")
            self._get_slot(hash(variable))
        self._facts = [self.compile_fact(fact) for fact in facts]
        self._choices = [self._find_values(one, facts) for one in self.variables]

    def compile_integer(self, expression: Node) -> Evaluate:
        """Compile an integer expression. Floats are left out, because rounding is not a fault of an analysis."""
        value = self._compile_scalar(expression)
        demand(not self.has_floats, "floats")
        return value

    def list_points(self) -> Iterator[Variables]:
        """Yield points of the domain: all, or a sample that is the same in every run."""
        for numbers in _choose(self._choices):
            point = [*self._initial]
            for variable, number in zip(self.variables, numbers, strict=True):
                point[self._slots[hash(variable)]] = number
            if all(_holds(fact, point) for fact in self._facts):
                yield point

    def describe(self, point: Variables) -> str:
        """Return a point as text: ``x = -5, n = 3``."""
        return ", ".join(f"{one.name} = {point[self._slots[hash(one)]]}" for one in self.variables)

    def _collect(self, expression: Node) -> None:
        """Record the variables that an expression needs from outside, and its numbers."""
        kind = ir.get_kind(expression)
        if kind in _VARIABLES and not any(expression.same_as(one) for one in self.variables):
            self.variables.append(expression)
        elif kind == "IntImm":
            self._numbers.add(int(expression.value))
        demand(kind != "Let", "a variable of the expression's own")
        for _, operand in ir.iterate_operands(expression):
            self._collect(operand)

    def compile_fact(self, fact: Fact) -> Evaluate:
        """Compile a condition on the domain."""
        value = self.compile_integer(fact.expression)
        limits = [self.compile_integer(one) if ir.is_expression(one) else one for one in (fact.low, fact.high)]

        def holds(point: Variables) -> bool:
            number = value(point)
            low, high = (limit(point) if callable(limit) else limit for limit in limits)
            if (low is not None and number < low) or (high is not None and number > high):
                return False
            return not fact.modulus or (number - fact.remainder) % fact.modulus == 0

        return holds

    def _find_values(self, variable: Node, facts: Iterable[Fact]) -> list[int]:
        """Return the values of a variable to try, in order of absolute value."""
        low, high = read_type(ir.get_dtype(variable)).limits
        if ir.get_kind(variable) == "SizeVar":
            low = 0
        for fact in facts:
            if fact.expression.same_as(variable):
                low = max(low, _read_number(fact.low, low))
                high = min(high, _read_number(fact.high, high))
        if high - low < MAX_VALUES:
            return sorted(range(low, high + 1), key=abs)
        beside = itertools.product(self._numbers, (-2, -1, 1, 2), (-1, 0, 1))
        near = {factor * number + step for number, factor, step in beside}
        wanted = {*_SMALL, *near, *range(low, low + 3), *range(high - 2, high + 1)}
        if high - low < 2**31:
            wanted |= {low + (high - low) * part // 16 for part in range(17)}
        return sorted((one for one in wanted if low <= one <= high), key=abs)


def _read_number(limit: Node | int | None, otherwise: int) -> int:
    if isinstance(limit, int):
        return limit
    return int(limit.value) if limit is not None and ir.get_kind(limit) == "IntImm" else otherwise


def _choose(choices: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """Yield combinations: all if they are few, otherwise a sample."""
    if math.prod(map(len, choices)) <= MAX_POINTS:
        yield from itertools.product(*choices)
        return
    chance = random.Random(0)
    for _ in range(MAX_POINTS):
        yield [chance.choice(one) for one in choices]


def _holds(fact: Evaluate, point: Variables) -> bool:
    try:
        return bool(fact(point))
    except UndefinedResult:
        return False


def make_range(variable: Node, low: Node, extent: Node) -> list[Fact]:
    """Return the facts of a variable in a half-open range."""
    return [Fact(variable, low, low + extent - 1)]


def read_set(expression: Node, found: Node) -> list[Fact] | None:
    """Return the facts of an expression in a set, between bounds, or with a remainder. None for another set."""
    if hasattr(found, "coeff"):
        modulus, base = int(found.coeff), int(found.base)
        return [Fact(expression, modulus=modulus, remainder=base) if modulus else Fact(expression, base, base)]
    if not hasattr(found, "min_value") or not hasattr(found, "max_value"):
        return None
    return [Fact(expression, _read_limit(found.min_value), _read_limit(found.max_value))]


def _read_limit(limit: Any) -> Node | int | None:
    """Return a limit, or None for infinity: a variable of this name in a set, and the largest int64 in a bound."""
    if isinstance(limit, int):
        return limit if abs(limit) < _INFINITY else None
    return None if getattr(limit, "name", "") in ("pos_inf", "neg_inf") else limit
