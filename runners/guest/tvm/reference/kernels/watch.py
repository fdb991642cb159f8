"""Compare the arguments after calls of compiled kernels with an interpreter of their TIR.

The vote is ``differs`` if a call left another value, and ``agrees`` if all calls were evaluated and left the same
values. A kernel that the testcase wrote as TVMScript or as tensor expressions is evaluated in its form before the
testcase's passes, before and after its schedule. Any other kernel (from a builder, a frontend or the testcase's own
pass) may be wrong itself. It is evaluated as it was compiled, and never agrees.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.arguments import read_value
from runners.guest.tvm.reference.ballot import AGREES, DIFFERS, UNDEFINED, Ballot
from runners.guest.tvm.reference.compare import SAME, compare_values
from runners.guest.tvm.reference.kernels.evaluate import Evaluated, evaluate_kernel
from runners.guest.tvm.reference.kernels.library import Library, LibraryCalls
from runners.guest.tvm.reference.kernels.origins import (
    DECLARES_ACCESSES,
    OWN_PASS,
    Kernels,
    Origins,
    get_symbol,
    list_kernels,
)
from runners.guest.tvm.reference.kernels.tensor_expressions import evaluate_expressions
from runners.guest.tvm.reference.kernels.types import UndefinedResult
from runners.guest.tvm.reference.operators.basic import demand

MAX_CALLS = 64
MAX_SECONDS = 20.0
"""Time limit for all evaluations."""
NAME = "definitions"
BY_LIBRARY = "library"
"""The reference that computes functions of the compiler's library with NumPy."""
TIR = "its TIR"
BEFORE_SCHEDULE = "its TIR before the schedule"
_REPLACES_PIPELINE = re.compile(r"tir_pipeline|pipeline\s*=|lower_pass|\btransform\.\w+\s*=[^=]")
_OPERATIONS = ("an overflow", "a shift", "a cast", "clz of 0")
"""Operations whose result is undefined for some values: prefixes of the interpreter's reasons."""
_SHARED = "one memory for two arguments"
_RELAXES_FLOATS = re.compile(r"fast.?math|FastMath|reassoc", re.IGNORECASE)
"""Text of a testcase that lets the compiler compute floats with fewer digits."""
_OTHER_CLAIM = re.compile(r"structural_equal|Analyzer\(|time_evaluator|pytest\.raises|assertRaises")
"""Text of a testcase that may fail for another reason than the values of its calls."""
_MAY_CLAIM_MORE = re.compile(r"\.script\(|\.show\(|\btransform\.|\bexcept\b")
"""Text of a testcase whose claim may also be about a module or an error."""


class KernelVoter:
    """Watches builds and calls, and evaluates each call of a kernel."""

    def __init__(self, ballot: Ballot, path: str, script: str) -> None:
        self._ballot = ballot
        self._script = script
        self._own_passes = OWN_PASS.search(script) is not None
        self._origins = Origins(ballot, path, script, self._own_passes)
        self._library = Library(lambda: self._origins.depth > 0)
        self._built: dict[int, tuple[Any, Kernels]] = {}
        """Built objects with the kernels to evaluate, by id."""
        self._files: dict[str, Kernels] = {}
        """The same for the files to which built objects were exported."""
        self._calls = 0
        self._seconds = 0.0

    def install(self) -> None:
        if self._own_passes and _REPLACES_PIPELINE.search(self._script):
            self._ballot.silent = True  # the testcase's own pass may run inside any build
            return
        self._tvm = tvm = importlib.import_module("tvm")
        self._origins.install()
        self._library.install()
        homes = (tvm, getattr(tvm, "tirx", None), getattr(tvm, "tir", None))
        for owner, name in [(tvm, "compile"), *((home, "build") for home in homes)]:
            if callable(getattr(owner, name, None)):
                setattr(owner, name, self._watch_build(getattr(owner, name)))
        executable = tvm.runtime.Executable
        executable.jit = self._watch_jit(executable.jit)
        for owner in (executable, tvm.runtime.Module):
            owner.export_library = self._watch_export(owner.export_library)
        tvm.runtime.load_module = self._watch_loading(tvm.runtime.load_module)
        module: Any = importlib.import_module("tvm_ffi").Module
        module.get_function = self._watch_lookup(module.get_function)

    # ------------------------------------------------------------------------------------------ builds and calls

    def _watch_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def build(*args: Any, **words: Any) -> Any:
            given = args[0] if args else words.get("mod")
            kernels = self._ballot.try_action(lambda: self._list_built(given)) if not self._origins.depth else None
            made = self._origins.run_inside(original, *args, **words)
            if kernels:
                self._record_built(made, kernels)
            return made

        return build

    def _list_built(self, module: Any) -> Kernels:
        """Return the kernels to evaluate for a build. For a build of Relax functions, NumPy votes."""
        functions = getattr(module, "functions", {})
        if any(ir.get_kind(function) == "Function" for function in functions.values()):
            return {}
        return {name: self._origins.find_before_passes(kernel) for name, kernel in list_kernels(module).items()}

    def _record_built(self, made: Any, kernels: Kernels) -> None:
        for one in (made, getattr(made, "mod", None) if ir.get_kind(made) == "Executable" else None):
            if one is not None:
                self._built[id(one)] = one, kernels

    def _watch_jit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(executable: Any, *args: Any, **words: Any) -> Any:
            loaded = self._origins.run_inside(original, executable, *args, **words)
            if id(executable) in self._built:
                self._record_built(loaded, self._built[id(executable)][1])
            return loaded

        return load

    def _watch_export(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def export(built: Any, file_name: Any, *args: Any, **words: Any) -> Any:
            result = self._origins.run_inside(original, built, file_name, *args, **words)
            path, (_, kernels) = os.path.realpath(file_name), self._built.get(id(built), (None, None))
            self._files.pop(path, None)
            if kernels is not None:
                self._files[path] = kernels
            return result

        return export

    def _watch_loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(path: Any, *args: Any, **words: Any) -> Any:
            loaded = original(path, *args, **words)
            if (kernels := self._files.get(os.path.realpath(path))) is not None:
                self._record_built(loaded, kernels)
            elif not self._origins.depth:
                self._ballot.silent = True  # calls of other code are not observed
            return loaded

        return load

    def _watch_lookup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def get_function(module: Any, name: str, *args: Any, **words: Any) -> Any:
            function = original(module, name, *args, **words)
            _, kernels = self._built.get(id(module), (None, None))
            if kernels is None or self._origins.depth or function is None:
                return function
            return self._watch_call(function, name, kernels)

        return get_function

    def _watch_call(self, function: Callable[..., Any], name: str, kernels: Kernels) -> Callable[..., Any]:
        def call(*args: Any, **words: Any) -> Any:
            given = (
                self._ballot.try_action(lambda: [read_value(one) for one in args])
                if not self._ballot.is_decided
                else None
            )
            try:
                returned = function(*args, **words)
            except BaseException:
                self._ballot.withdraw("a call that fails")
                raise
            if given is not None:
                self._ballot.try_action(lambda: self._judge_call(function, kernels, name, given, args, returned))
            return returned

        return call

    # ------------------------------------------------------------------------------------------ votes

    def _judge_call(
        self,
        function: Callable[..., Any],
        kernels: Kernels,
        name: str,
        given: list[Any],
        arguments: tuple[Any, ...],
        returned: Any,
    ) -> None:
        kernel = _find_kernel(kernels, name)
        self._calls += 1
        left = [one for one in map(read_value, arguments) if hasattr(one, "shape")]
        left += [] if returned is None else [read_value(returned)]
        demand(self._calls <= MAX_CALLS, "more calls than are evaluated")
        arrays = [one for one in given if hasattr(one, "shape")]
        undefined: UndefinedResult | None = None
        meanings = list(self._list_meanings(kernel))
        for meaning, evaluate in meanings:
            try:
                own, wide = self._evaluate(evaluate, given)
            except UndefinedResult as why:
                # A schedule may have made it undefined. Then the kernel before the schedule defines the meaning.
                undefined = undefined or why
                if meaning == meanings[-1][0]:
                    if (calls := self._list_library_calls(kernel)).names:
                        return self._ask_library(kernel, replace(calls, is_whole=False), name, given, left)
                    if not self._report_undefined(kernel, name, given, left):
                        self._withdraw_undefined(undefined)
                    return
                continue
            if _changes_shared(arguments, arrays, own.values):
                return self._judge_shared(function, kernel, name, given, left, (own, wide))
            exact = meaning == TIR and _needs_no_rounding(own, wide)
            alone = meaning == TIR and not (own.accumulates or _RELAXES_FLOATS.search(self._script))
            vote, where = compare_values(tuple(left), wide.values, own.values, "arguments", exact=exact, alone=alone)
            source, summary = meaning, f"an interpreter of {meaning} computes"
            if vote != SAME:
                break
        if undefined is not None and vote != DIFFERS:
            return self._withdraw_undefined(undefined)
        declared = self._is_script(kernel) and DECLARES_ACCESSES.search(self._script)
        if vote == DIFFERS and source == BEFORE_SCHEDULE and declared:
            self._ballot.withdraw("a block of the testcase's own may declare other accesses than it makes")
        elif vote == DIFFERS and where is not None:
            summary = f"{name} leaves {where.returned} at {where.path}; {summary} {where.expected}"
            told = {"function": name[:80], "returned": where.returned, "expected": where.expected, "at": where.path}
            self._report(vote, f"{summary} from the same arguments", told)
        elif vote != SAME:
            self._ballot.withdraw("the values are neither the same nor different")
        elif (calls := self._list_library_calls(kernel)).names:
            self._ask_library(kernel, calls, name, given, left)
        elif not self._is_written(kernel):
            self._ballot.withdraw("the compiler made this kernel: an interpreter would only repeat what it made")
        elif _OTHER_CLAIM.search(self._script):
            self._ballot.withdraw("the testcase may fail for another reason than these values")
        elif not self._ballot.silent:
            exact = self._ballot.is_exact and not own.has_floats and not _MAY_CLAIM_MORE.search(self._script)
            helpers = list_helpers(self._script, [kernel, *self._find_expressions(kernel)])
            self._report(AGREES, f"{name} leaves what {summary}", {"exact": exact, "helpers": helpers})

    def _list_library_calls(self, kernel: Node) -> LibraryCalls:
        """Return the functions of the compiler's library with which the testcase wrote a kernel."""
        return self._library.list_calls(self._find_expressions(kernel))

    def _find_expressions(self, kernel: Node) -> list[Node]:
        """Return the tensors and variables of a kernel of tensor expressions. Empty for another kernel."""
        return self._origins.find_expressions(self._origins.find_before_schedule(kernel) or kernel) or []

    def _ask_library(self, kernel: Node, calls: LibraryCalls, name: str, given: list[Any], left: list[Any]) -> None:
        """Vote on a kernel whose expressions the compiler's library wrote, with NumPy instead of the library."""
        expressions = self._find_expressions(kernel)
        own, wide = self._evaluate(functools.partial(evaluate_expressions, expressions, library=self._library), given)
        vote, where = compare_values(tuple(left), wide.values, own.values, "arguments")
        if vote == DIFFERS and where is not None:
            summary = f"{name} leaves {where.returned} at {where.path}; NumPy computes {where.expected}"
            told = {"function": name[:80], "returned": where.returned, "expected": where.expected, "at": where.path}
            self._report(vote, summary, {**told, "by": BY_LIBRARY})
        elif vote != SAME:
            self._ballot.withdraw("the values are neither the same nor different")
        elif not calls.is_whole:
            self._ballot.withdraw("another function of the compiler's library made an expression")
        elif _OTHER_CLAIM.search(self._script):
            self._ballot.withdraw("the testcase may fail for another reason than these values")
        elif not self._ballot.silent:
            known = {one.rpartition(".")[2] for one in calls.names}
            helpers = [one for one in list_helpers(self._script, [kernel, *expressions]) if one not in known]
            self._report(AGREES, f"{name} leaves what NumPy computes", {"helpers": helpers, "by": BY_LIBRARY})

    def _report_undefined(self, kernel: Node, name: str, given: list[Any], left: list[Any]) -> bool:
        """Report a call of the testcase's own kernel with some undefined results. Return False if others may differ.

        All defined results must match the kernel's meaning. Then a wrong value is an undefined one.
        """
        kernel = self._origins.find_before_schedule(kernel) or kernel
        if self._ballot.silent or not self._is_written(kernel) or _OTHER_CLAIM.search(self._script):
            return False
        own, wide = self._evaluate(functools.partial(evaluate_kernel, kernel, lenient=True), given)
        operation = next((one for one in _OPERATIONS if own.undefined.startswith(one)), None)
        undefined = [bool(mask.any()) for mask in own.masks]
        if operation is None or not any(undefined) or len(left) != len(own.values) or len(left) != len(own.masks):
            return False
        known = [
            np.where(mask, np.zeros((), value.dtype), value) for value, mask in zip(left, own.masks, strict=True)
        ]
        if compare_values(tuple(known), wide.values, own.values, "arguments")[0] != SAME:
            return False
        at = undefined.index(True)
        place = [int(axis[0]) for axis in np.nonzero(own.masks[at])]
        summary = f"{name} leaves an undefined value at arguments[{at}]{place}: {own.undefined}; all others agree"
        told = {"function": name[:80], "at": f"arguments[{at}]{place}"[:80], "operation": operation}
        self._report(UNDEFINED, summary, told)
        return True

    def _judge_shared(
        self,
        function: Callable[..., Any],
        kernel: Node,
        name: str,
        given: list[Any],
        left: list[Any],
        evaluated: tuple[Evaluated, Evaluated],
    ) -> None:
        """Report a call that passes one memory as two arguments, and so contradicts its kernel's meaning.

        The same call with separate memory for each argument must match the meaning.
        """
        own, wide = evaluated
        arrays = [one for one in given if hasattr(one, "shape")]
        written = [
            not np.array_equal(np.asarray(one, value.dtype), value)
            for one, value in zip(arrays, own.values, strict=True)
        ]
        aliased, wanted, narrow = (
            tuple(value for value, is_written in zip(values, written, strict=True) if is_written)
            for values in (left, wide.values, own.values)
        )
        if compare_values(aliased, wanted, narrow, "arguments")[0] == SAME:
            return
        demand(_may_assume_no_alias(kernel), "two arguments with the same memory, which the call changes")
        demand(self._is_written(kernel) and not _OTHER_CLAIM.search(self._script), "a claim about something else")
        demand(not self._ballot.silent, "a call that was not evaluated")
        separate = [self._tvm.runtime.tensor(one) if hasattr(one, "shape") else one for one in given]
        self._origins.run_inside(function, *separate)
        again = tuple(one for one in map(read_value, separate) if hasattr(one, "shape"))
        demand(
            compare_values(again, wide.values, own.values, "arguments")[0] == SAME, "other values without an alias"
        )
        summary = f"{name} gets one memory as two arguments and changes it; with two memories, all values agree"
        self._report(UNDEFINED, summary, {"function": name[:80], "operation": _SHARED})

    def _withdraw_undefined(self, why: UndefinedResult) -> None:
        outside = str(why).startswith("an index outside")
        self._ballot.withdraw(str(why), "an index is outside its buffer" if outside else "a call is undefined")

    def _list_meanings(self, kernel: Node) -> Iterator[tuple[str, Callable[..., Evaluated]]]:
        """Yield the meanings of the kernel: as it is, before its schedule, and as its tensor expressions."""
        yield TIR, functools.partial(evaluate_kernel, kernel)
        origin = self._origins.find_before_schedule(kernel)
        if origin is not None:
            yield BEFORE_SCHEDULE, functools.partial(evaluate_kernel, origin)
        if expressions := self._find_expressions(kernel):
            yield "its tensor expressions", functools.partial(evaluate_expressions, expressions)

    def _is_written(self, kernel: Node) -> bool:
        """True if the testcase wrote the kernel, as TVMScript or as tensor expressions."""
        origin = self._origins.find_before_schedule(kernel) or kernel
        return self._is_script(kernel) or self._origins.has_own_expressions(origin)

    def _is_script(self, kernel: Node) -> bool:
        return self._origins.is_written(self._origins.find_before_schedule(kernel) or kernel)

    def _evaluate(self, evaluate: Callable[..., Evaluated], given: list[Any]) -> tuple[Evaluated, Evaluated]:
        """Return the values after a kernel, in its own types and in the widest ones."""
        began = time.monotonic()
        deadline = began + MAX_SECONDS - self._seconds
        try:
            own = evaluate(given, wide=False, deadline=deadline)
            return own, evaluate(given, wide=True, deadline=deadline) if own.has_floats else own
        finally:
            self._seconds += time.monotonic() - began

    def _report(self, vote: str, summary: str, evidence: dict[str, Any]) -> None:
        self._ballot.report(vote, summary, {"name": NAME, "by": NAME, **evidence})


def list_helpers(script: str, meant: list[Node]) -> list[str]:
    """Return functions that the testcase calls to write expressions, and whose names are not in the kernel.

    Such a helper is absent from the written kernel: ``T.ceildiv(a, b)`` becomes ``(a + b - 1) // b``. An interpreter
    of the kernel cannot check whether the helper's expression matches its name.
    """
    text = "".join(str(one) for one in meant)
    called = dict.fromkeys(_HELPER.findall(script))
    gone = (name for name in called if not re.search(rf"\b{name}\b", text) and _SIGNS.get(name, "\0") not in text)
    return [name[:40] for name in gone][:MAX_HELPERS]


MAX_HELPERS = 32
_HELPER = re.compile(r"\b(?:T|tirx?|te|topi)\.(?:\w+\.)?([a-z]\w+)\s*\(")
_SIGNS = {"floordiv": "//", "indexdiv": "//", "floormod": "%", "indexmod": "%", "truncdiv": "Div", "div": "Div"} | {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>", "cast": "Cast"
}  # fmt: skip
"""Text of some functions in the printed kernel."""


def _needs_no_rounding(own: Evaluated, wide: Evaluated) -> bool:
    """True if float32 or less gives the values of float64, so that no rounding explains a difference.

    Schedules may change the order of a sum, and so the rounding. So this applies only to the compiled kernel.
    """
    pairs = zip(own.values, wide.values, strict=True)
    return not own.approximates and all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def _find_kernel(kernels: Kernels, name: str) -> Node:
    """Return the kernel that a call names. A function that is built alone is also called ``main``."""
    if name in kernels:
        return kernels[name]
    named = [kernel for kernel in kernels.values() if get_symbol(kernel) == name]
    named = named or (list(kernels.values()) if name == "main" else [])
    demand(len(named) == 1, "a call of an unknown function")
    return named[0]


def _changes_shared(arguments: tuple[Any, ...], arrays: list[Any], computed: tuple[Any, ...]) -> bool:
    """True if two arguments have the same memory and a call changes it."""
    tensors = [one for one in arguments if not isinstance(one, bool | int | float)]
    places = [_get_address(one) for one in tensors]
    shared = [places.count(place) > 1 for place in places]
    return any(
        is_shared and not np.array_equal(np.asarray(before, after.dtype), after)
        for is_shared, before, after in zip(shared, arrays, computed, strict=False)
    )


def _may_assume_no_alias(kernel: Node) -> bool:
    """True if the compiler may assume that no two arguments share memory, by ``tir.noalias``."""
    attributes = kernel.attrs
    names = () if attributes is None else attributes.keys()  # iterating the object fails
    return any(str(name).rpartition(".")[2] == "noalias" and bool(attributes[name]) for name in names)


def _get_address(tensor: Any) -> int:
    if callable(getattr(tensor, "data_ptr", None)):
        return int(tensor.data_ptr())
    return int(tensor.ctypes.data) if hasattr(tensor, "ctypes") else hash(tensor)
