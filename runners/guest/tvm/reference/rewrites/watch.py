"""Check that the passes and schedules of a testcase preserve the meaning of its functions.

A function is evaluated before and after with the same generated arguments: a kernel by the TIR interpreter, a Relax
function with NumPy. Another result shows that the pass or the schedule is wrong, even if the testcase only prints the
module. Equal results prove nothing, because a report may be about the form of the module. Then there is no vote.
Nothing is compared if the testcase defines passes, or if names or parameters change.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.ballot import Ballot
from runners.guest.tvm.reference.compare import DIFFERS, SAME, Difference, compare_values, narrow_floats
from runners.guest.tvm.reference.evaluate import evaluate_function, get_annotation
from runners.guest.tvm.reference.kernels.evaluate import evaluate_kernel
from runners.guest.tvm.reference.kernels.origins import (
    CHANGES_MEANING,
    CHOOSES_MEANING,
    DECLARES_ACCESSES,
    OWN_PASS,
    Kernels,
    list_given,
    list_kernels,
    pair_kernels,
)
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value
from runners.guest.tvm.reference.rewrites.arguments import Generator

MAX_SECONDS = 5.0
PAIR_SECONDS = 2.0
"""Time limit for a function before and after. A large kernel is left out."""
MAX_PAIRS = 32
"""Maximum number of functions that are compared."""
SIZES = (4, 6)
"""Extents of the shape variables, one after another. Integers are signed with the second."""
REWRITE = "rewrite"
_MIXED = "MixedPrecision"
"""Part of the name of a pass that computes in half precision. There, only a large difference counts."""

Evaluate = Callable[[int, float, bool], tuple[Value, Value]]
"""Takes a size, a deadline, and True to compute in the widest types. Returns the values before and after, in the
widest types only the value before."""


class RewriteVoter:
    """Watches the passes and schedules that the testcase itself applies."""

    def __init__(self, ballot: Ballot, file: str, script: str) -> None:
        self._ballot = ballot
        self._file = file
        self._script = script
        self._ends = 0.0
        self._pairs = 0
        self._schedules: dict[int, tuple[Any, Kernels]] = {}
        """Schedules with their original kernels, by id."""
        self._seen: set[int] = set()
        """Kernels that schedules made and that were already compared, by the hashes of their bodies."""

    def install(self) -> None:
        if OWN_PASS.search(self._script):
            return
        tvm: Any = importlib.import_module("tvm")
        passes = tvm.ir.transform.Pass
        passes.__call__ = self._watch_pass(passes.__call__)
        if not CHANGES_MEANING.search(self._script) and not DECLARES_ACCESSES.search(self._script):
            home: Any = getattr(tvm, "s_tir", None) or tvm.tir
            self._watch_schedule(home.Schedule)

    def _watch_pass(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def apply(applied: Any, *args: Any, **words: Any) -> Any:
            made = original(applied, *args, **words)
            if sys._getframe(1).f_code.co_filename == self._file:
                given = args[0] if args else words.get("mod")
                self._try(lambda: self._judge_pass(str(applied.info.name), given, made))
            return made

        return apply

    def _judge_pass(self, name: str, given: Node, made: Node) -> None:
        coarse = _MIXED in name
        halves = () if coarse else (given, made)
        if CHOOSES_MEANING.search(name) or any("float16" in str(one) for one in halves):
            return
        self._judge_kernels(name, list_kernels(given), list_kernels(made))
        for function in _list_functions(made):
            if function in _list_functions(given):
                evaluate = functools.partial(_evaluate_functions, given, made, function)
                self._compare(name, function, evaluate, coarse=coarse)

    def _watch_schedule(self, schedule: Any) -> None:
        make, read = schedule.__init__, schedule.mod.fget

        @functools.wraps(make)
        def begin(made: Any, *args: Any, **words: Any) -> None:
            make(made, *args, **words)
            if sys._getframe(1).f_code.co_filename == self._file:
                given = args[0] if args else words.get("mod")
                self._try(lambda: self._schedules.__setitem__(id(made), (made, list_given(given))))

        @functools.wraps(read)
        def get_module(made: Any) -> Any:
            module = read(made)
            known, given = self._schedules.get(id(made), (None, {}))
            if known is made:
                self._try(lambda: self._judge_kernels("the schedule", given, list_kernels(module)))
            return module

        schedule.__init__ = begin
        schedule.mod = property(get_module)

    def _judge_kernels(self, rewrite: str, before: Kernels, after: Kernels) -> None:
        for name, kernel, given in pair_kernels(before, after):
            if hash(kernel.body) not in self._seen:
                self._seen.add(hash(kernel.body))
                self._compare(rewrite, name, functools.partial(_evaluate_kernels, given, kernel))

    def _compare(self, rewrite: str, name: str, evaluate: Evaluate, *, coarse: bool = False) -> None:
        """Report the first difference between a function before and after."""
        for size in SIZES:
            if self._ballot.is_decided or self._pairs >= MAX_PAIRS or 0 < self._ends < time.monotonic():
                return
            self._ends = self._ends or time.monotonic() + MAX_SECONDS
            self._pairs += 1
            deadline = min(self._ends, time.monotonic() + PAIR_SECONDS)
            try:
                own, after = evaluate(size, deadline, False)
                if compare_values(after, own, own, exact=True)[0] == SAME:
                    continue
                wide, _ = evaluate(size, self._ends, True)
                if coarse:
                    own, after, wide = map(narrow_floats, (own, after, wide))
            except CannotEvaluate:
                return  # another size has no equivalent either, or takes equally long
            vote, where = compare_values(after, wide, own, "result")
            if vote == DIFFERS and where is not None:
                return self._report(rewrite, name, where)

    def _report(self, rewrite: str, name: str, where: Difference) -> None:
        function = f"{name} after {rewrite}"
        told = {"function": function[:100], "returned": where.returned, "expected": where.expected, "at": where.path}
        summary = f"{function} computes {where.returned} at {where.path}; before, the value is {where.expected}"
        self._ballot.hold(summary, {"name": REWRITE, "by": REWRITE, **told})

    @staticmethod
    def _try(action: Callable[[], Any]) -> None:
        """Run an action that must not disturb the testcase. If it fails, there is no vote."""
        try:
            action()
        except Exception:
            return


def _list_functions(module: Node) -> list[str]:
    """Return the names of a module's public Relax functions."""
    functions = getattr(module, "functions", {})
    return [
        str(variable.name_hint)
        for variable, one in functions.items()
        if ir.get_kind(one) == "Function" and one.attrs and "global_symbol" in one.attrs
    ]


def _evaluate_kernels(before: Node, after: Node, size: int, deadline: float, wide: bool) -> tuple[Value, Value]:
    given = Generator(size, signed=size == SIZES[1]).make_for_kernel(before)
    first = evaluate_kernel(before, given, wide=wide, deadline=deadline).values
    return first, first if wide else evaluate_kernel(after, given, wide=False, deadline=deadline).values


def _evaluate_functions(before: Node, after: Node, name: str, size: int, _: float, wide: bool) -> tuple[Value, Value]:
    parameters = [get_annotation(one) for one in before[name].params]
    given = Generator(size, signed=size == SIZES[1]).make_for_function(parameters)
    first = evaluate_function(before, name, given, widen=wide)
    return first, first if wide else evaluate_function(after, name, given, widen=False)
