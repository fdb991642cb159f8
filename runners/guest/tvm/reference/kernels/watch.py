"""Compare what compiled kernels leave in their arguments with an interpreter of their TIR.

The vote is ``differs`` if a call left another value, and ``agrees`` if all calls were evaluated and left the same. A
kernel that the testcase wrote as TVMScript is evaluated as it was before the passes that the testcase applied. Any
other kernel (from tensor expressions, a schedule, a builder, a frontend or a pass of the testcase's own) may be wrong
itself: it is evaluated as it was compiled, and never agrees.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.arguments import read_value
from runners.guest.tvm.reference.ballot import AGREES, DIFFERS, Ballot
from runners.guest.tvm.reference.compare import SAME, compare_values
from runners.guest.tvm.reference.kernels.evaluate import evaluate_kernel
from runners.guest.tvm.reference.kernels.types import UndefinedResult
from runners.guest.tvm.reference.operators import demand

MAX_CALLS = 64
MAX_SECONDS = 20.0
"""Time for all evaluations."""
PARSER = "tvm.script.parser.core.entry"
NAME = "definitions"
_OWN_PASS = re.compile(r"\b(?:prim_func_pass|module_pass|Apply)\b|StmtExprMutator|stmt_functor|ir_transform")
"""Text of a testcase that defines passes, which may change what a kernel means."""
_REPLACES_PIPELINE = re.compile(r"tir_pipeline|pipeline\s*=|lower_pass|\btransform\.\w+\s*=[^=]")
_OTHER_CLAIM = re.compile(r"structural_equal|Analyzer\(|time_evaluator|pytest\.raises|assertRaises")
"""Text of a testcase that may fail for another reason than the values of its calls."""
_MAY_CLAIM_MORE = re.compile(r"\.script\(|\.show\(|\btransform\.|Schedule\(|\bexcept\b")
"""Text of a testcase whose claim may be about a module or an error, too."""

Kernels = Mapping[str, Node]


class KernelVoter:
    """Watches the parser, passes, builds and calls, and evaluates each call of a kernel."""

    def __init__(self, ballot: Ballot, path: str, script: str) -> None:
        self._ballot = ballot
        self._path = path
        self._script = script
        self._own_passes = _OWN_PASS.search(script) is not None
        self._depth = 0
        self._parsed: dict[int, Node] = {}
        """Kernels that the testcase wrote, by their bodies. Keeping them alive keeps the hashes unique."""
        self._origins: dict[int, tuple[Node, Node]] = {}
        """Kernels that passes made, with the kernels before all passes, by the bodies of the former."""
        self._built: dict[int, tuple[Any, Kernels]] = {}
        """Built objects with the kernels to evaluate, by id."""
        self._files: dict[str, Kernels] = {}
        """The same for the files to which built objects were exported."""
        self._calls = 0
        self._seconds = 0.0

    def install(self) -> None:
        if self._own_passes and _REPLACES_PIPELINE.search(self._script):
            self._ballot.silent = True  # a pass of the testcase's own may run within any build
            return
        self._tvm = tvm = importlib.import_module("tvm")
        self._watch_parser()
        passes = tvm.ir.transform.Pass
        passes.__call__ = self._watch_pass(passes.__call__)
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

    def _run_inside(self, original: Callable[..., Any], *args: Any, **words: Any) -> Any:
        """Run a function of the compiler, which may apply passes, build and call by itself."""
        self._depth += 1
        try:
            return original(*args, **words)
        finally:
            self._depth -= 1

    # ------------------------------------------------------------------------------------------ origins

    def _watch_parser(self) -> None:
        """Replace the parser's entry in every module that imported it."""
        original = sys.modules[PARSER].parse

        @functools.wraps(original)
        def parse(program: Any, *arguments: Any, **options: Any) -> Any:
            parsed = original(program, *arguments, **options)
            # Text that the compiler printed may be what a pass or a schedule made.
            if _is_called_from(self._path) and (not isinstance(program, str) or program in self._script):
                for kernel in self._list_kernels(parsed).values():
                    self._parsed[hash(kernel.body)] = kernel
            return parsed

        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "tvm":
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        setattr(module, attribute, parse)

    def _list_kernels(self, module: Any) -> dict[str, Node]:
        """Return the kernels of a module, or of a single function, by name."""
        if ir.get_kind(module) == "PrimFunc":
            return {_get_symbol(module) or "main": module}
        if not isinstance(module, self._tvm.IRModule):
            return {}
        found = {str(variable.name_hint): function for variable, function in module.functions.items()}
        return {name: function for name, function in found.items() if ir.get_kind(function) == "PrimFunc"}

    def _find_origin(self, kernel: Node) -> Node:
        return self._origins.get(hash(kernel.body), (None, kernel))[1]

    def _watch_pass(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the application of a pass: a kernel keeps its meaning if it keeps its name and parameters."""

        @functools.wraps(original)
        def apply(applied: Any, *args: Any, **words: Any) -> Any:
            given = args[0] if args else words.get("mod")
            before = self._ballot.try_action(lambda: self._list_kernels(given)) if not self._depth else None
            made = self._run_inside(original, applied, *args, **words)
            if before and not self._own_passes:
                self._ballot.try_action(lambda: self._record_pass(before, made))
            return made

        return apply

    def _record_pass(self, before: Kernels, made: Any) -> None:
        for name, kernel in self._list_kernels(made).items():
            given = before.get(name)
            if given is None or hash(given.body) == hash(kernel.body):
                continue
            if _list_parameters(given) == _list_parameters(kernel):
                self._origins[hash(kernel.body)] = kernel, self._find_origin(given)

    # ------------------------------------------------------------------------------------------ builds and calls

    def _watch_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def build(*args: Any, **words: Any) -> Any:
            given = args[0] if args else words.get("mod")
            kernels = self._ballot.try_action(lambda: self._list_built(given)) if not self._depth else None
            made = self._run_inside(original, *args, **words)
            if kernels:
                self._record_built(made, kernels)
            return made

        return build

    def _list_built(self, module: Any) -> Kernels:
        """Return the kernels to evaluate for a build. For a build of Relax functions, NumPy votes."""
        functions = getattr(module, "functions", {})
        if any(ir.get_kind(function) == "Function" for function in functions.values()):
            return {}
        return {name: self._find_origin(kernel) for name, kernel in self._list_kernels(module).items()}

    def _record_built(self, made: Any, kernels: Kernels) -> None:
        for one in (made, getattr(made, "mod", None) if ir.get_kind(made) == "Executable" else None):
            if one is not None:
                self._built[id(one)] = one, kernels

    def _watch_jit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(executable: Any, *args: Any, **words: Any) -> Any:
            loaded = self._run_inside(original, executable, *args, **words)
            if id(executable) in self._built:
                self._record_built(loaded, self._built[id(executable)][1])
            return loaded

        return load

    def _watch_export(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def export(built: Any, file_name: Any, *args: Any, **words: Any) -> Any:
            result = self._run_inside(original, built, file_name, *args, **words)
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
            elif not self._depth:
                self._ballot.silent = True  # calls of other code are not seen
            return loaded

        return load

    def _watch_lookup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def get_function(module: Any, name: str, *args: Any, **words: Any) -> Any:
            function = original(module, name, *args, **words)
            _, kernels = self._built.get(id(module), (None, None))
            if kernels is None or self._depth or function is None:
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
                self._ballot.try_action(lambda: self._judge_call(kernels, name, given, args, returned))
            return returned

        return call

    # ------------------------------------------------------------------------------------------ votes

    def _judge_call(
        self, kernels: Kernels, name: str, given: list[Any], arguments: tuple[Any, ...], returned: Any
    ) -> None:
        kernel = _find_kernel(kernels, name)
        self._calls += 1
        left = [one for one in map(read_value, arguments) if hasattr(one, "shape")]
        left += [] if returned is None else [read_value(returned)]
        demand(self._calls <= MAX_CALLS, "more calls than are evaluated")
        began = time.monotonic()
        deadline = began + MAX_SECONDS - self._seconds
        try:
            own = evaluate_kernel(kernel, given, wide=False, deadline=deadline)
            wide = evaluate_kernel(kernel, given, wide=True, deadline=deadline) if own.has_floats else own
        except UndefinedResult as why:
            outside = str(why).startswith("an index outside")
            self._ballot.withdraw(str(why), "an index is outside its buffer" if outside else "a call is undefined")
            return
        finally:
            self._seconds += time.monotonic() - began
        _demand_constant(arguments, [one for one in given if hasattr(one, "shape")], own.values)
        vote, where = compare_values(tuple(left), wide.values, own.values, "arguments")
        if vote == DIFFERS and where is not None:
            summary = f"{name} leaves {where.returned} at {where.path}; an interpreter of its TIR computes"
            told = {"function": name[:80], "returned": where.returned, "expected": where.expected, "at": where.path}
            self._report(vote, f"{summary} {where.expected} from the same arguments", told)
        elif vote != SAME:
            self._ballot.withdraw("the values are neither the same nor different")
        elif hash(kernel.body) not in self._parsed:
            self._ballot.withdraw("the compiler made this kernel: an interpreter would only repeat what it made")
        elif _OTHER_CLAIM.search(self._script):
            self._ballot.withdraw("the testcase may fail for another reason than these values")
        elif not self._ballot.silent:
            exact = self._ballot.is_exact and not own.has_floats and not _MAY_CLAIM_MORE.search(self._script)
            self._report(AGREES, f"{name} leaves what an interpreter of its TIR computes", {"exact": exact})

    def _report(self, vote: str, summary: str, evidence: dict[str, Any]) -> None:
        self._ballot.report(vote, summary, {"name": NAME, "by": NAME, **evidence})


def _is_called_from(path: str) -> bool:
    """Return True if the testcase, not the compiler, called the function that calls this one."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "tvm":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == path


def _get_symbol(kernel: Node) -> str:
    return str(kernel.attrs["global_symbol"]) if kernel.attrs and "global_symbol" in kernel.attrs else ""


def _find_kernel(kernels: Kernels, name: str) -> Node:
    """Return the kernel that a call names. A function that is built alone is called ``main`` too."""
    if name in kernels:
        return kernels[name]
    named = [kernel for kernel in kernels.values() if _get_symbol(kernel) == name]
    named = named or (list(kernels.values()) if name == "main" else [])
    demand(len(named) == 1, "a call of an unknown function")
    return named[0]


def _list_parameters(kernel: Node) -> list[tuple[str, ...]]:
    """Return the types of a kernel's parameters. Shapes with variables count by their rank."""
    buffers = ir.list_buffers(kernel)
    told: list[tuple[str, ...]] = []
    for position, parameter in enumerate(kernel.params):
        buffer = buffers.get(position)
        if buffer is None:
            told.append((ir.get_dtype(parameter),))
        else:
            told.append((str(buffer.dtype), *(str(getattr(one, "value", "?")) for one in buffer.shape)))
    return told


def _demand_constant(arguments: tuple[Any, ...], arrays: list[Any], computed: tuple[Any, ...]) -> None:
    """End the evaluation if two arguments have the same memory and a call changes it."""
    tensors = [one for one in arguments if not isinstance(one, bool | int | float)]
    places = [_get_address(one) for one in tensors]
    shared = [places.count(place) > 1 for place in places]
    for is_shared, before, after in zip(shared, arrays, computed, strict=False):
        same = not is_shared or np.array_equal(np.asarray(before, after.dtype), after)
        demand(same, "two arguments with the same memory, which the call changes")


def _get_address(tensor: Any) -> int:
    if callable(getattr(tensor, "data_ptr", None)):
        return int(tensor.data_ptr())
    return int(tensor.ctypes.data) if hasattr(tensor, "ctypes") else hash(tensor)
