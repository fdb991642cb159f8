"""Run the requested diagnosers in one instrumented process, with shared hooks into the compiler."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax

from runners.guest.tvm.pass_checks.mutation import MutationDiagnoser
from runners.guest.tvm.pass_checks.signature import SignatureDiagnoser, read_signatures, repair_arguments
from runners.guest.tvm.pass_checks.values import EqualityDiagnoser, ValuesDiagnoser
from runners.guest.tvm.passes import PassWatch
from runners.guest.tvm.trace import Tracer

if TYPE_CHECKING:
    from runners.guest.tvm.bounds.diagnoser import BoundsDiagnoser
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.pass_checks.signature import Signature, SignatureChange
    from runners.guest.tvm.uninitialized.diagnoser import UnwrittenDiagnoser

Built = dict[str, "Signature"]


def _import_module(name: str) -> Any:
    return importlib.import_module(f"runners.guest.tvm.{name}")


class DiagnosisSession:
    """Installs the hooks on construction. ``finish`` writes the results that need the whole run."""

    def __init__(self, findings: Findings, path: str, modes: list[str]) -> None:
        with open(path, encoding="utf-8", errors="replace") as source:
            text = source.read()
        self._text = text
        self._tracer = Tracer(path, text)
        self._findings = findings
        self._building = 0
        self._built: dict[int, tuple[Any, Built]] = {}
        """Built objects and the signatures of their modules, by id. Keeping an object alive keeps its id unique."""
        self._signature: SignatureDiagnoser | None = None
        if "signature" in modes or "repair" in modes:
            self._signature = SignatureDiagnoser(findings, repair="repair" in modes)
        self._bounds: BoundsDiagnoser | None = None
        self._unwritten: UnwrittenDiagnoser | None = None
        self._watch_builds()
        self._watch_calls()
        if "bounds" in modes:
            self._try_action(self._install_bounds, "kernels could not be instrumented")
        self._watch_parser(path, text, modes)
        passes = PassWatch(findings, lambda: self._building > 0)
        passes.watchers.append(self._tracer)
        if self._signature is not None:
            passes.watchers.append(self._signature)
        if "mutation" in modes:
            passes.watchers.append(MutationDiagnoser(findings, self._tracer.defines_pass))
        if "nan" in modes:
            passes.watchers.append(ValuesDiagnoser(findings))
            EqualityDiagnoser(findings).install()
        passes.install()

    def _install_bounds(self) -> None:
        # Lazy import: only this diagnoser needs the IR of 0.24 and later.
        bounds = _import_module("bounds.diagnoser").BoundsDiagnoser(self._findings, self._tracer)
        bounds.install()
        self._tracer.watch_expressions(_import_module("ir").has_library_expressions)
        self._bounds = bounds
        _import_module("bounds.opaque_kernels").OpaqueKernels(self._findings, self._tracer, self._text).install()

    def _watch_parser(self, path: str, text: str, modes: list[str]) -> None:
        fills = [mode for mode in modes if mode.startswith("fill-")]
        if "unwritten" not in modes and not fills:
            return

        def install_unwritten() -> None:
            # Lazy import, as above.
            diagnoser = _import_module("uninitialized.diagnoser").UnwrittenDiagnoser
            unwritten = diagnoser(self._findings, path, text, next(iter(fills), None))
            unwritten.install()
            self._unwritten = unwritten

        self._try_action(install_unwritten, "parsed functions could not be examined")

    def finish(self) -> None:
        if self._bounds is not None:
            self._bounds.finish()

    # ------------------------------------------------------------------------------------------ builds

    def _watch_builds(self) -> None:
        for owner, name in ((tvm, "compile"), (relax, "build"), (getattr(tvm, "tirx", None), "build")):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._wrap_build(original))

    def _wrap_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call_build(*args: Any, **kwargs: Any) -> Any:
            module = args[0] if args else kwargs.get("mod")
            outermost = not self._building and isinstance(module, tvm.IRModule)
            signatures = self._try_action(lambda: self._record_signatures(module)) if outermost else None
            self._building += 1
            try:
                built = original(*args, **kwargs)
            finally:
                self._building -= 1
            if signatures is not None:
                self._built[id(built)] = (built, signatures)
            return built

        return call_build

    def _record_signatures(self, module: Any) -> Built:
        self._tracer.record_module(module)
        return read_signatures(module)

    # ------------------------------------------------------------------------------------------ calls

    def _watch_calls(self) -> None:
        machine = relax.VirtualMachine
        initialize, get_item, set_input = machine.__init__, machine.__getitem__, machine.set_input

        def initialize_vm(vm: Any, rt_mod: Any, *args: Any, **kwargs: Any) -> None:
            initialize(vm, rt_mod, *args, **kwargs)
            vm._reprobot_built = self._built.get(id(rt_mod), (None, None))[1]

        def get_function(vm: Any, key: str) -> Any:
            built = getattr(vm, "_reprobot_built", None)
            return self._wrap_function(get_item(vm, key), key, built, lambda name: get_item(vm, name))

        def set_checked_input(vm: Any, func_name: str, *args: Any, **kwargs: Any) -> None:
            if kwargs:
                set_input(vm, func_name, *args, **kwargs)
                return
            built = getattr(vm, "_reprobot_built", None)
            change = self._try_action(lambda: self._check_signature(func_name, built, args))
            set_input(vm, func_name, *_repair_call(change, args, lambda name: get_item(vm, name)))

        machine.__init__, machine.__getitem__, machine.set_input = initialize_vm, get_function, set_checked_input
        if hasattr(tvm.runtime, "Executable"):
            self._watch_executables(tvm.runtime.Executable)

    def _watch_executables(self, executable: Any) -> None:
        call_main, get_function = executable.__call__, executable.__getitem__

        def call_executable(built: Any, *args: Any, **kwargs: Any) -> Any:
            self._check_unwritten("main", args)
            return self._wrap_function(functools.partial(call_main, built), "main", None)(*args, **kwargs)

        def get_executable_function(built: Any, name: str) -> Any:
            function = get_function(built, name)
            if name == "vm_load_executable":  # how a virtual machine gets its loader, not a call
                return function

            def call_checked(*args: Any, **kwargs: Any) -> Any:
                self._check_unwritten(name, args)
                return function(*args, **kwargs)

            return self._wrap_function(call_checked, name, None)

        executable.__call__, executable.__getitem__ = call_executable, get_executable_function

    def _check_unwritten(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check a kernel that the testcase itself is about to call."""
        unwritten = self._unwritten
        if unwritten is not None:
            self._try_action(lambda: unwritten.check_call(name, arguments))

    def _wrap_function(
        self, function: Any, name: str, built: Built | None, beside: Callable[[str], Any] | None = None
    ) -> Any:
        """Wrap a function. ``beside`` returns another function of its object. Without it, no call is repaired."""

        def call_function(*args: Any, **kwargs: Any) -> Any:
            change = self._try_action(lambda: self._check_signature(name, built, args))
            if change is not None and beside is not None and not kwargs:
                args = _repair_call(change, args, beside)
            self._tracer.calls.append((name, args))
            try:
                return function(*args, **kwargs)
            finally:
                self._tracer.calls.pop()

        return call_function

    def _check_signature(self, name: str, built: Built | None, arguments: tuple[Any, ...]) -> SignatureChange | None:
        return None if self._signature is None else self._signature.check_call(name, built, arguments)

    def _try_action(self, action: Callable[[], Any], failure: str = "a module or call could not be examined") -> Any:
        try:
            return action()
        except Exception as error:
            self._findings.note(failure, why=f"{type(error).__name__}: {error}"[-200:])
            return None


def _repair_call(
    change: SignatureChange | None, arguments: tuple[Any, ...], beside: Callable[[str], Any]
) -> tuple[Any, ...]:
    """Return the arguments for the changed function. They are unchanged if no function must run first."""
    if change is None or change.preparing is None:
        return arguments
    return tuple(repair_arguments(change, beside(change.preparing), arguments))
