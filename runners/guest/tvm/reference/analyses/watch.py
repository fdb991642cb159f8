"""Check the arithmetic analyzer's statements about an expression by evaluating the expression at points.

A simplified expression must have the value of the given one. A bound or a set must contain every value. A proven
condition must be true. One point of the domain that contradicts this shows that the analyzer is wrong. Any number of
other points proves nothing, because a report may also state that a bound is too wide. Then there is no vote.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.analyses.points import Fact, Space, make_range, read_set
from runners.guest.tvm.reference.ballot import Ballot
from runners.guest.tvm.reference.kernels.types import UndefinedResult

MAX_RESULTS = 64
"""Maximum number of results that are checked."""
MAX_SECONDS = 5.0
MAX_TEXT = 100
POINTS = "points"
_SIMPLIFIES = ("simplify", "rewrite_simplify", "canonical_simplify")
_BOUNDS = ("const_int_bound", "modular_set", "int_set")
_PROVES = ("can_prove", "can_prove_equal")

Counterexample = tuple[str, str, str]
"""The analyzer's result, the value, and the point."""


class AnalysisVoter:
    """Watches the calls of analyzers that the testcase itself makes."""

    def __init__(self, ballot: Ballot, file: str) -> None:
        self._ballot = ballot
        self._file = file
        self._facts: dict[int, list[Fact]] = {}
        """The facts given to each analyzer, by its id. ``_analyzers`` keeps ids unique."""
        self._analyzers: list[Node] = []
        self._results = 0
        self._ends = float("inf")

    def install(self) -> None:
        tvm: Any = importlib.import_module("tvm")
        home: Any = importlib.import_module("tvm.arith" if hasattr(tvm, "arith") else "tvm.sym")
        analyzer = home.Analyzer
        for name in ("bind", "update"):
            setattr(analyzer, name, self._watch_telling(getattr(analyzer, name)))
        if hasattr(analyzer, "clone"):
            analyzer.clone = self._watch_clone(analyzer.clone)
        analyzer.constraint_scope = self._watch_scope(analyzer.constraint_scope)
        for names, check in ((_SIMPLIFIES, check_value), (_BOUNDS, check_bound), (_PROVES, check_proof)):
            for name in names:
                if hasattr(analyzer, name):
                    setattr(analyzer, name, self._watch_asking(getattr(analyzer, name), check))

    # ------------------------------------------------------------------------------------------ what it is told

    def _watch_telling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method that gives the analyzer a fact about a variable: a range, a value, bounds or a set."""

        @functools.wraps(original)
        def tell(analyzer: Node, *args: Any, **words: Any) -> Any:
            result = original(analyzer, *args, **words)
            given = [*args, *words.values()]
            self._add_facts(analyzer, self._try_action(lambda: read_told(given[0], given[1])))
            return result

        return tell

    def _watch_scope(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the scope of a condition. The condition is kept afterwards, because it only removes points."""

        @functools.wraps(original)
        def open_scope(analyzer: Node, *args: Any, **words: Any) -> Any:
            given = [*args, *words.values()]
            self._add_facts(analyzer, self._try_action(lambda: [Fact(ir.make_condition(given[0]), 1, 1)]))
            return original(analyzer, *args, **words)

        return open_scope

    def _watch_clone(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the copy of an analyzer. The copy has the same facts."""

        @functools.wraps(original)
        def clone(analyzer: Node) -> Any:
            made = original(analyzer)
            self._add_facts(made, [*self._facts.get(hash(analyzer), [])])
            return made

        return clone

    def _add_facts(self, analyzer: Node, facts: list[Fact] | None) -> None:
        """Add facts. If they are unknown, so is the domain, and it has no points."""
        self._analyzers.append(analyzer)
        known = self._facts.setdefault(hash(analyzer), [])
        known += facts if facts is not None else [Fact(ir.make_constant(0), 1, 1)]

    @staticmethod
    def _try_action(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception:
            return None

    # ------------------------------------------------------------------------------------------ what it says

    def _watch_asking(self, original: Callable[..., Any], check: Check) -> Callable[..., Any]:
        name = original.__name__

        @functools.wraps(original)
        def ask(analyzer: Node, *args: Any, **words: Any) -> Any:
            result = original(analyzer, *args, **words)
            if sys._getframe(1).f_code.co_filename == self._file:
                self._try_action(lambda: self._judge(analyzer, name, check, [*args, *words.values()], result))
            return result

        return ask

    def _judge(self, analyzer: Node, name: str, check: Check, given: list[Any], result: Any) -> None:
        if self._ballot.is_decided or self._results >= MAX_RESULTS or time.monotonic() > self._ends:
            return
        self._results += 1
        self._ends = min(self._ends, time.monotonic() + MAX_SECONDS)
        facts = [*self._facts.get(hash(analyzer), [])]
        for domain in (one for one in given if _is_mapping(one)):
            for variable, found in domain.items():
                read = read_set(variable, found)
                if read is None:
                    return
                facts += read
        expressions = [one for one in given if ir.is_expression(one)]
        for returned, value, point in check(expressions, result, facts):
            shown = ", ".join(map(str, expressions))
            told = {"function": f"{name}({shown})", "returned": returned, "expected": value, "at": point}
            told = {key: text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…" for key, text in told.items()}
            summary = f"{name}({shown}) returns {returned}, and the value at {point} is {value}"
            self._ballot.hold(summary, {"name": POINTS, "by": POINTS, **told})
            return


Check = Callable[[list[Node], Any, list[Fact]], Iterator[Counterexample]]


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or ir.get_kind(value) in ("Map", "dict")


def read_told(variable: Node, told: Any) -> list[Fact] | None:
    """Return the facts about a variable in an analyzer's input. None for an input that is not a fact."""
    if hasattr(told, "extent"):
        return make_range(variable, told.min, told.extent)
    if ir.is_expression(told):
        return [Fact(variable, told, told)]
    return read_set(variable, told)


def check_value(given: list[Node], result: Any, facts: list[Fact]) -> Iterator[Counterexample]:
    """Yield points where a simplified expression has another value than the given one."""
    space = Space([given[0], result], facts)
    before, after = space.compile_integer(given[0]), space.compile_integer(result)
    for point in space.list_points():
        try:
            values = before(point), after(point)
        except UndefinedResult:
            continue
        if values[0] != values[1]:
            number = "" if str(result) == str(values[1]) else f", so {values[1]}"
            yield f"{result}{number}", str(values[0]), space.describe(point)


def check_bound(given: list[Node], result: Any, facts: list[Fact]) -> Iterator[Counterexample]:
    """Yield points where an expression has a value outside its bounds or its set."""
    claimed = read_set(given[0], result)
    if claimed is None:
        return
    limits = [one for fact in claimed for one in (fact.low, fact.high) if ir.is_expression(one)]
    space = Space([given[0], *limits], facts)
    value, holds = space.compile_integer(given[0]), [space.compile_fact(fact) for fact in claimed]
    for point in space.list_points():
        try:
            number, is_within = value(point), all(one(point) for one in holds)
        except UndefinedResult:
            continue
        if not is_within:
            yield _show_set(result), str(number), space.describe(point)


def check_proof(given: list[Node], result: Any, facts: list[Fact]) -> Iterator[Counterexample]:
    """Yield points where a condition that the analyzer proves is false."""
    if result is not True:
        return
    space = Space(given, facts)
    parts = [space.compile_integer(one) for one in given]
    for point in space.list_points():
        try:
            values = [part(point) for part in parts]
        except UndefinedResult:
            continue
        if len(values) == 1 and not values[0]:
            yield "True", "False", space.describe(point)
        elif len(values) == 2 and values[0] != values[1]:
            yield "True", f"{values[0]} and {values[1]}", space.describe(point)


def _show_set(found: Any) -> str:
    if hasattr(found, "coeff"):
        return f"{found.coeff} * k + {found.base}"
    return f"[{found.min_value}, {found.max_value}]"
