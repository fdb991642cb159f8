"""Compare compiled functions with a reference: ``launch.py tvm.reference.vote repro.py [ARGUMENT…]``.

This module contains the reference for Relax functions, which is NumPy. ``kernels/watch.py`` contains the one for
kernels, ``rewrites/watch.py`` for passes and schedules of the testcase, and ``analyses/watch.py`` for the arithmetic
analyzer.

The testcase runs unmodified. Each call of a function that was built from a module is evaluated with NumPy, from that
module before the testcase's own passes: passes preserve the meaning of a module, unless they change its functions or
parameters. The vote is ``differs`` if a call returned another value, and ``agrees`` if all calls were evaluated and
returned the same. Otherwise there is no vote. A module that was translated from another format, exported from layers,
or made by a pass that changed functions, parameters or precision, may be wrong itself. Then no vote agrees. Gradients
that a pass derived are compared with difference quotients. For a module that was translated from ONNX, the evaluator
of the package ``onnx`` votes instead, on the model itself. If ONNX's shape inference agrees with TVM and not with the
evaluator, the evaluator is wrong. The evaluator has no vote on a model that it computes differently from ONNX's
definition. It never agrees if the testcase uses the evaluator too.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from runners.guest.tvm.findings import Findings
from runners.guest.tvm.reference.ballot import Ballot
from runners.guest.tvm.testcase import import_compiler, run_testcase, set_script

MAX_CALLS = 16
MAX_SECONDS = 20.0
MAX_NODES = 200
"""Maximum number of nodes of a model for ONNX's evaluator, which is slow."""
EVALUATOR = "ReferenceEvaluator"
_HALF = re.compile(r"(?<!b)float16")
_MAKES_KERNELS = re.compile(r"emit_te|call_te|create_prim_func|LegalizeOps|\btopi\b|ir_builder|IRBuilder")
"""Text of a testcase that lets the compiler write kernels, or that writes them without TVMScript."""


def main(arguments: list[str]) -> int:
    path, *rest = arguments
    file = os.path.abspath(path)
    ballot, text = Ballot(Findings(os.environ.pop("REPROBOT_FINDINGS", None))), _read_text(file)
    try:
        Voter(ballot, text).install()
    except Exception as error:
        # For example, the compiler cannot be imported. Then the testcase itself fails.
        ballot.note("no call could be watched", error)
    try:
        importlib.import_module("runners.guest.tvm.reference.kernels.watch").KernelVoter(ballot, file, text).install()
    except Exception as error:
        # For example, a release before 0.24, whose IR has other nodes.
        ballot.note("no kernel could be watched", error)
    try:
        home = "runners.guest.tvm.reference"
        importlib.import_module(f"{home}.rewrites.watch").RewriteVoter(ballot, file, text).install()
        importlib.import_module(f"{home}.analyses.watch").AnalysisVoter(ballot, file).install()
    except Exception as error:
        # For example, for the same reason.
        ballot.note("no rewrite or analysis could be watched", error)
    set_script(path, rest)
    return run_testcase(file)


def _read_text(file: str) -> str:
    with open(file, encoding="utf-8", errors="replace") as script:
        return script.read()


class Voter:
    """Watches passes, builds and calls, and evaluates each call of a Relax function."""

    def __init__(self, ballot: Ballot, script: str = "") -> None:
        self._ballot = ballot
        self._reads_onnx = "from_onnx" in script
        self._asks_evaluator = EVALUATOR in script
        """True if the testcase itself uses ONNX's evaluator. Then a failing run would not agree with it."""
        self._makes_kernels = _MAKES_KERNELS.search(script) is not None
        self._models: dict[int, tuple[Any, Any]] = {}
        """Modules that were translated from ONNX, with their models, by id."""
        self._began = time.monotonic()
        self._depth = 0
        self._origins: dict[int, tuple[Any, Any]] = {}
        """Module and built object → its original module, by id. Keeping both alive keeps ids unique."""
        self._remade: dict[int, Any] = {}
        """Modules that a frontend exported, or that a pass made with other functions, parameters or precision, by id.
        The compiler may have made them wrong."""
        self._derived: dict[int, tuple[Any, Any]] = {}
        """Modules to which a pass added the gradients of functions, each with the previous module, by id."""
        self._calls = 0

    def install(self) -> None:
        self._tvm = import_compiler()
        self._evaluate = importlib.import_module("runners.guest.tvm.reference.evaluate")
        self._compare = importlib.import_module("runners.guest.tvm.reference.compare")
        self._exact = importlib.import_module("runners.guest.tvm.reference.operators.table").EXACT
        self._chooses_meaning = importlib.import_module("runners.guest.tvm.reference.kernels.origins").CHOOSES_MEANING
        self._gradients = importlib.import_module("runners.guest.tvm.reference.gradients")
        self._read = importlib.import_module("runners.guest.tvm.reference.arguments").read_value
        self._signatures = importlib.import_module("runners.guest.tvm.pass_checks.signature").read_signatures
        relax = importlib.import_module("tvm.relax")
        passes = self._tvm.ir.transform.Pass
        passes.__call__ = self._follow(passes.__call__, position=1)
        for owner, name in ((self._tvm, "compile"), (relax, "build")):
            if hasattr(owner, name):
                setattr(owner, name, self._follow(getattr(owner, name), position=0))
        self._watch_machine(relax.VirtualMachine)
        layers = importlib.import_module("tvm.relax.frontend.nn").Module
        layers.export_tvm = self._watch_export(layers.export_tvm)
        self._loaded = frozenset(sys.modules)
        if self._reads_onnx:
            frontend: Any = importlib.import_module("tvm.relax.frontend.onnx")
            frontend.from_onnx = self._watch_translation(frontend.from_onnx)
            self._evaluator = getattr(importlib.import_module("onnx.reference"), EVALUATOR)
            self._onnx = importlib.import_module("runners.guest.tvm.reference.evaluator")
            self._name_type = importlib.import_module("onnx.helper").tensor_dtype_to_np_dtype
            self._infer = importlib.import_module("onnx.shape_inference").infer_shapes

    def _watch_translation(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the translation of a model. A module that takes the parameters as inputs is left out."""

        @functools.wraps(original)
        def call(model: Any, *args: Any, **words: Any) -> Any:
            made = original(model, *args, **words)
            if isinstance(made, self._tvm.IRModule) and len(model.graph.node) <= MAX_NODES:
                self._models[id(made)] = made, model
            return made

        return call

    def _ask_evaluator(self, model: Any, name: str, given: list[Any], value: Any) -> bool:
        """Let ONNX's own evaluator vote on a call. Return False if it has no vote."""
        parameters = {one.name for one in model.graph.initializer}
        inputs = [one.name for one in model.graph.input if one.name not in parameters]
        if len(inputs) != len(given):
            return False
        evaluator, fed = self._evaluator(model), dict(zip(inputs, given, strict=True))
        results = evaluator.run(None, fed)
        expected = results[0] if len(results) == 1 else tuple(results)
        value = value[0] if len(results) == 1 and isinstance(value, tuple) and len(value) == 1 else value
        if len(results) == 1 and self._contradicts_inference(model, given, results[0], value):
            summary = f"{name} returns the shape that ONNX infers, and ONNX's evaluator returns another"
            self._ballot.report(self._compare.SAME, summary, {"by": "ONNX shapes"})
            self._ballot.is_decided = True
            return True
        departs = self._onnx.departs_from_definition(model, evaluator)
        if departs:
            model = self._onnx.translate_model(model)
            evaluator = self._evaluator(model)
            if self._onnx.departs_from_definition(model, evaluator):
                return len(results) == 1 and self._departs_from_inference(model, name, given, value)
            results = evaluator.run(None, fed)
            expected = results[0] if len(results) == 1 else tuple(results)
        if len(results) == 1 and self._has_other_type(model, name, value):
            return True
        vote, where = self._compare.compare_values(value, expected, expected)
        if vote == self._compare.DIFFERS:
            told = {"function": name, "returned": where.returned, "expected": where.expected, "at": where.path}
            self._ballot.report(vote, f"{name} returns another value than ONNX's evaluator", {**told, "by": "ONNX"})
        elif vote == self._compare.SAME and self._asks_evaluator and not departs:
            return False
        elif vote == self._compare.SAME and not self._ballot.silent:
            self._ballot.report(vote, f"{name} returns what ONNX's evaluator computes", {"by": "ONNX"})
        return bool(vote != self._compare.UNCERTAIN)

    def _has_other_type(self, model: Any, name: str, value: Any) -> bool:
        """Report a result whose type differs from the model's declaration of its output."""
        declared = model.graph.output[0].type.tensor_type.elem_type
        returned = getattr(value, "dtype", None)
        if not declared or returned is None:  # float64 is equal to None
            return False
        expected = self._name_type(declared)
        if returned == expected:
            return False
        told = {"function": name, "returned": f"the type {returned}", "expected": f"the type {expected}"}
        summary = f"{name} returns a result of another type than the model declares"
        self._ballot.report(self._compare.DIFFERS, summary, {**told, "by": "ONNX"})
        return True

    def _contradicts_inference(self, model: Any, given: list[Any], expected: Any, value: Any) -> bool:
        """True if ONNX's shape inference agrees with the result, and not with the evaluator.

        The evaluator of onnx 1.23 pairs the ends of ``pads`` wrongly for ``MaxPool``.
        """
        shapes = [getattr(one, "shape", None) for one in (expected, value)]
        if None in shapes or shapes[0] == shapes[1]:
            return False
        return self._infer_shape(model, given) == tuple(shapes[1] or ())

    def _infer_shape(self, model: Any, given: list[Any]) -> tuple[int | None, ...]:
        """Return the shape that ONNX infers for the only output. None for an unknown extent."""
        copy = type(model)()
        copy.CopyFrom(model)
        parameters = {one.name for one in copy.graph.initializer}
        inputs = [one for one in copy.graph.input if one.name not in parameters]
        for one, array in zip(inputs, given, strict=True):
            for dimension, extent in zip(one.type.tensor_type.shape.dim, array.shape, strict=False):
                dimension.dim_value = extent
        for one in copy.graph.output:
            one.type.tensor_type.ClearField("shape")
        inferred = self._infer(copy).graph.output[0].type.tensor_type.shape.dim
        return tuple(one.dim_value if one.HasField("dim_value") else None for one in inferred)

    def _departs_from_inference(self, model: Any, name: str, given: list[Any], value: Any) -> bool:
        """Report a result whose shape differs from the one that ONNX infers for the model."""
        shape, inferred = getattr(value, "shape", None), self._infer_shape(model, given)
        if shape is None or None in inferred or shape == inferred:
            return False
        told = {"function": name, "returned": f"the shape {shape}", "expected": f"the shape {inferred}"}
        summary = f"{name} returns a result of another shape than ONNX infers"
        self._ballot.report(self._compare.DIFFERS, summary, {**told, "by": "ONNX shapes"})
        return True

    def _follow(self, original: Callable[..., Any], position: int) -> Callable[..., Any]:
        """Wrap a function that makes an object from a module, and record the module."""

        @functools.wraps(original)
        def call(*args: Any, **words: Any) -> Any:
            given = args[position] if len(args) > position else words.get("mod")
            self._depth += 1
            try:
                made = original(*args, **words)
            finally:
                self._depth -= 1
            if not self._depth and isinstance(given, self._tvm.IRModule):
                named = str(args[0].info.name) if position else ""  # of the pass
                if not self._chooses_meaning.search(named) and self._has_same_functions(given, made):
                    self._origins[id(made)] = (made, self._origins.get(id(given), (None, given))[1])
                else:
                    self._remade[id(made)] = made
                    self._derived[id(made)] = made, self._origins.get(id(given), (None, given))[1]
            return made

        return call

    def _watch_export(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the export of layers, which returns a module with its parameters."""

        @functools.wraps(original)
        def call(*args: Any, **words: Any) -> Any:
            made = original(*args, **words)
            module = made[0] if isinstance(made, tuple) and made else made
            self._remade[id(module)] = module
            return made

        return call

    def _has_same_functions(self, given: Any, made: Any) -> bool:
        """True unless a pass changed functions, parameters or precision. Then the values may differ for a reason."""
        if not isinstance(made, self._tvm.IRModule):
            return True
        narrow = ["float16" in str(module) for module in (given, made)]
        return narrow[0] == narrow[1] and bool(self._signatures(given) == self._signatures(made))

    def _watch_machine(self, machine: Any) -> None:
        initialize, get_item = machine.__init__, machine.__getitem__

        def initialize_vm(vm: Any, rt_mod: Any, *args: Any, **words: Any) -> None:
            initialize(vm, rt_mod, *args, **words)
            vm._reprobot_module = self._origins.get(id(rt_mod), (None, None))[1]

        def get_function(vm: Any, name: str) -> Any:
            function, module = get_item(vm, name), getattr(vm, "_reprobot_module", None)

            def call(*args: Any, **words: Any) -> Any:
                given = self._ballot.try_action(lambda: [self._read(one) for one in args])
                returned = function(*args, **words)
                self._ballot.try_action(
                    lambda: self._judge_call(module, name, None if words else given, args, returned)
                )
                return returned

            return call

        machine.__init__, machine.__getitem__ = initialize_vm, get_function

    def _judge_call(
        self, module: Any, name: str, given: list[Any] | None, arguments: tuple[Any, ...], returned: Any
    ) -> None:
        if self._ballot.is_decided or self._calls >= MAX_CALLS or time.monotonic() - self._began > MAX_SECONDS:
            return
        self._calls += 1
        if module is None or given is None:
            self._ballot.withdraw("a call of a function without a known module")
            return
        value = self._read(returned)
        _, model = self._models.get(id(module), (None, None))
        if model is not None and self._ask_evaluator(model, name, given, value):
            return
        left = tuple(map(self._read, arguments))  # a call keeps its arguments, unless the module states otherwise
        used: set[str] = set()
        own = self._evaluate.evaluate_function(module, name, given, widen=False, used=used)
        wide = self._evaluate.evaluate_function(module, name, given, widen=True)
        exact = used <= self._exact and not self._evaluate.calls_kernels(module)
        if _HALF.search(str(module)) and not exact:  # inner rounding decides digits that a wider result still shows
            value, wide, own = map(self._compare.narrow_floats, (value, wide, own))
        vote, where = self._compare.compare_values(left, tuple(given), tuple(given), "arguments")
        if vote == self._compare.SAME:
            vote, where = self._compare.compare_values(value, own if exact else wide, own, exact=exact)
        if vote == self._compare.DIFFERS:
            summary = f"{name} leaves {where.returned} at {where.path or 'its only element'}; NumPy computes"
            summary += f" {where.expected} from the same module and arguments"
            told = {"function": name, "returned": where.returned, "expected": where.expected, "at": where.path}
            self._ballot.report(vote, summary, told)
        elif vote == self._compare.SAME and (source := self._find_source(module, name)) is not None:
            self._judge_gradients(source, name, given, value)
        elif vote == self._compare.UNCERTAIN:
            self._ballot.withdraw("the values are neither the same nor different")
        elif any(map(self._is_translated, sys.modules)):
            self._ballot.withdraw("the module was translated from another format: NumPy would only repeat that")
        elif id(module) in self._remade or (self._makes_kernels and self._evaluate.calls_kernels(module)):
            self._ballot.withdraw("the compiler made this module: NumPy would only repeat what the compiler made")
        elif not self._ballot.silent:
            self._ballot.report(vote, f"{name} returns what NumPy computes from the same module and arguments", {})

    def _find_source(self, module: Any, name: str) -> Any:
        """Return the module with the function whose gradients a pass derived. None for another function."""
        _, source = self._derived.get(id(module), (None, None))
        names = () if source is None else [one.name_hint for one in source.functions]
        plain = name.removesuffix(self._gradients.SUFFIX)
        return source if plain != name and plain in names and name not in names else None

    def _judge_gradients(self, source: Any, name: str, given: list[Any], value: Any) -> None:
        plain = name.removesuffix(self._gradients.SUFFIX)
        vote, where = self._gradients.compare_gradients(
            self._compare.compare_values,
            lambda arguments: self._evaluate.evaluate_function(source, plain, arguments, widen=True),
            given,
            value,
        )
        if vote == self._compare.DIFFERS:
            summary = f"{name} returns {where.returned} at {where.path}; the difference quotient of {plain} is"
            told = {"function": name, "returned": where.returned, "expected": where.expected, "at": where.path}
            self._ballot.report(vote, f"{summary} {where.expected}", told)
        elif vote == self._compare.UNCERTAIN:
            self._ballot.withdraw("the gradients are neither the same nor different")
        elif not self._ballot.silent:
            self._ballot.report(vote, f"{name} returns the difference quotients of {plain}", {})

    def _is_translated(self, module: str) -> bool:
        """True for a frontend that the testcase itself imported. TVM imports no frontend for other formats."""
        return module.startswith("tvm.relax.frontend.") and module not in self._loaded
