"""One instrumented run: the diagnosers that were asked for, and the hooks into the compiler they share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax

if TYPE_CHECKING:
    from runners.guest.tvm_bounds import BoundsDiagnoser
    from runners.guest.tvm_findings import Findings
    from runners.guest.tvm_trace import Tracer
else:
    from tvm_bounds import BoundsDiagnoser
    from tvm_trace import Tracer


class Session:
    """Installs hooks on construction; ``finish`` writes what is only known at the end."""

    def __init__(self, findings: Findings, path: str, modes: list[str]) -> None:
        with open(path, encoding="utf-8", errors="replace") as source:
            self._tracer = Tracer(path, source.read())
        self._findings = findings
        self._building = 0
        self._finishers: list[Callable[[], None]] = []
        self._watch_builds()
        self._watch_calls()
        if "bounds" in modes:
            bounds = BoundsDiagnoser(findings, self._tracer)
            bounds.install()
            self._finishers.append(bounds.finish)

    def finish(self) -> None:
        for finish in self._finishers:
            finish()

    # ------------------------------------------------------------------------------------------ builds

    def _watch_builds(self) -> None:
        for owner, name in ((tvm, "compile"), (relax, "build"), (tvm.tirx, "build")):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._watched_build(original))

    def _watched_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def build(*args: Any, **kwargs: Any) -> Any:
            module = args[0] if args else kwargs.get("mod")
            if not self._building and isinstance(module, tvm.IRModule):
                self._attempt(lambda: self._tracer.saw_module(module), "operators of a module could not be read")
            self._building += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._building -= 1

        return build

    # ------------------------------------------------------------------------------------------ calls

    def _watch_calls(self) -> None:
        machine = relax.VirtualMachine
        original = machine.__getitem__

        def getitem(vm: Any, key: str) -> Any:
            return self._watched_function(original(vm, key), key)

        machine.__getitem__ = getitem

    def _watched_function(self, function: Any, name: str) -> Any:
        @functools.wraps(function, updated=())
        def call(*args: Any) -> Any:
            self._tracer.calls.append((name, args))
            try:
                return function(*args)
            finally:
                self._tracer.calls.pop()

        return call

    def _attempt(self, action: Callable[[], None], failure: str) -> None:
        try:
            action()
        except Exception as error:
            self._findings.note(failure, why=f"{type(error).__name__}: {error}"[-200:])
