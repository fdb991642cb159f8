"""One instrumented run: the diagnosers that were asked for, and the hooks into the compiler they share."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax

from runners.guest.tvm.pass_checks.mutation import MutationDiagnoser
from runners.guest.tvm.pass_checks.signature import SignatureDiagnoser, repaired, signatures
from runners.guest.tvm.pass_checks.values import EqualityDiagnoser, ValuesDiagnoser
from runners.guest.tvm.passes import PassWatch
from runners.guest.tvm.trace import Tracer

if TYPE_CHECKING:
    from runners.guest.tvm.bounds.diagnoser import BoundsDiagnoser
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.pass_checks.signature import Change, Signature
    from runners.guest.tvm.uninitialized.diagnoser import UnwrittenDiagnoser

Built = dict[str, "Signature"]


def _module(name: str) -> Any:
    return importlib.import_module(f"runners.guest.tvm.{name}")


class Session:
    """Installs hooks on construction; ``finish`` writes what is only known at the end."""

    def __init__(self, findings: Findings, path: str, modes: list[str]) -> None:
        with open(path, encoding="utf-8", errors="replace") as source:
            text = source.read()
        self._testcase = text
        self._tracer = Tracer(path, text)
        self._findings = findings
        self._building = 0
        self._built: dict[int, tuple[Any, Built]] = {}
        """What was built, with the signatures it was built from; kept alive so that an id stays its own."""
        self._signature: SignatureDiagnoser | None = None
        if "signature" in modes or "repair" in modes:
            self._signature = SignatureDiagnoser(findings, repair="repair" in modes)
        self._bounds: BoundsDiagnoser | None = None
        self._unwritten: UnwrittenDiagnoser | None = None
        self._watch_builds()
        self._watch_calls()
        if "bounds" in modes:
            self._attempt(self._install_bounds, "kernels could not be instrumented")
        self._watch_parser(path, text, modes)
        passes = PassWatch(findings, lambda: self._building > 0)
        passes.watchers.append(self._tracer)
        if self._signature is not None:
            passes.watchers.append(self._signature)
        if "mutation" in modes:
            passes.watchers.append(MutationDiagnoser(findings, self._tracer.wrote_pass))
        if "nan" in modes:
            passes.watchers.append(ValuesDiagnoser(findings))
            EqualityDiagnoser(findings).install()
        passes.install()

    def _install_bounds(self) -> None:
        # Imported here: it needs the IR of 0.24 and later, the other diagnosers don't.
        bounds = _module("bounds.diagnoser").BoundsDiagnoser(self._findings, self._tracer)
        bounds.install()
        self._bounds = bounds
        _module("bounds.opaque_kernels").OpaqueKernels(self._findings, self._tracer, self._testcase).install()

    def _watch_parser(self, path: str, text: str, modes: list[str]) -> None:
        fills = [mode for mode in modes if mode.startswith("fill-")]
        if "unwritten" not in modes and not fills:
            return

        def install() -> None:
            # As above: it needs the IR of 0.24 and later.
            diagnoser = _module("uninitialized.diagnoser").UnwrittenDiagnoser
            unwritten = diagnoser(self._findings, path, text, next(iter(fills), None))
            unwritten.install()
            self._unwritten = unwritten

        self._attempt(install, "what is parsed could not be looked at")

    def finish(self) -> None:
        if self._bounds is not None:
            self._bounds.finish()

    # ------------------------------------------------------------------------------------------ builds

    def _watch_builds(self) -> None:
        for owner, name in ((tvm, "compile"), (relax, "build"), (getattr(tvm, "tirx", None), "build")):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._watched_build(original))

    def _watched_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def build(*args: Any, **kwargs: Any) -> Any:
            module = args[0] if args else kwargs.get("mod")
            outermost = not self._building and isinstance(module, tvm.IRModule)
            known = self._attempt(lambda: self._signatures_of(module)) if outermost else None
            self._building += 1
            try:
                built = original(*args, **kwargs)
            finally:
                self._building -= 1
            if known is not None:
                self._built[id(built)] = (built, known)
            return built

        return build

    def _signatures_of(self, module: Any) -> Built:
        self._tracer.saw_module(module)
        return signatures(module)

    # ------------------------------------------------------------------------------------------ calls

    def _watch_calls(self) -> None:
        machine = relax.VirtualMachine
        initialise, get_item, set_input = machine.__init__, machine.__getitem__, machine.set_input

        def init(vm: Any, rt_mod: Any, *args: Any, **kwargs: Any) -> None:
            initialise(vm, rt_mod, *args, **kwargs)
            vm._reprobot_built = self._built.get(id(rt_mod), (None, None))[1]

        def getitem(vm: Any, key: str) -> Any:
            built = getattr(vm, "_reprobot_built", None)
            return self._watched_function(get_item(vm, key), key, built, lambda name: get_item(vm, name))

        def watched_set_input(vm: Any, func_name: str, *args: Any, **kwargs: Any) -> None:
            if kwargs:
                set_input(vm, func_name, *args, **kwargs)
                return
            built = getattr(vm, "_reprobot_built", None)
            change = self._attempt(lambda: self._called(func_name, built, args))
            set_input(vm, func_name, *_mended(change, args, lambda name: get_item(vm, name)))

        machine.__init__, machine.__getitem__, machine.set_input = init, getitem, watched_set_input
        if hasattr(tvm.runtime, "Executable"):
            self._watch_executables(tvm.runtime.Executable)

    def _watch_executables(self, executable: Any) -> None:
        call_main, get_function = executable.__call__, executable.__getitem__

        def call(built: Any, *args: Any, **kwargs: Any) -> Any:
            self._looked_at("main", args)
            return self._watched_function(functools.partial(call_main, built), "main", None)(*args, **kwargs)

        def function(built: Any, name: str) -> Any:
            # A virtual machine takes its loader this way: not a call of the testcase's.
            found = get_function(built, name)
            if name == "vm_load_executable":
                return found

            def looked_at(*args: Any, **kwargs: Any) -> Any:
                self._looked_at(name, args)
                return found(*args, **kwargs)

            return self._watched_function(looked_at, name, None)

        executable.__call__, executable.__getitem__ = call, function

    def _looked_at(self, name: str, arguments: tuple[Any, ...]) -> None:
        """A kernel is about to be called by the testcase itself."""
        unwritten = self._unwritten
        if unwritten is not None:
            self._attempt(lambda: unwritten.called(name, arguments))

    def _watched_function(
        self, function: Any, name: str, built: Built | None, beside: Callable[[str], Any] | None = None
    ) -> Any:
        """``beside`` finds another function of what this one is of; without it no call is repaired."""

        def call(*args: Any, **kwargs: Any) -> Any:
            change = self._attempt(lambda: self._called(name, built, args))
            if change is not None and beside is not None and not kwargs:
                args = _mended(change, args, beside)
            self._tracer.calls.append((name, args))
            try:
                return function(*args, **kwargs)
            finally:
                self._tracer.calls.pop()

        return call

    def _called(self, name: str, built: Built | None, arguments: tuple[Any, ...]) -> Change | None:
        return None if self._signature is None else self._signature.called(name, built, arguments)

    def _attempt(self, action: Callable[[], Any], failure: str = "a module or call could not be looked at") -> Any:
        try:
            return action()
        except Exception as error:
            self._findings.note(failure, why=f"{type(error).__name__}: {error}"[-200:])
            return None


def _mended(change: Change | None, arguments: tuple[Any, ...], beside: Callable[[str], Any]) -> tuple[Any, ...]:
    """The arguments as the changed function takes them; as they are where nothing has to be prepared."""
    if change is None or change.preparing is None:
        return arguments
    return tuple(repaired(change, beside(change.preparing), arguments))
