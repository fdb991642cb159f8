"""Watching the passes a testcase applies itself, and the passes inside those.

Passes that run inside ``tvm.compile`` or ``relax.build`` are the compiler's own business and not watched. Known
there: ``tirx.AnnotateEntryFunc`` of 0.25 to 0.27 changes its input module in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import tvm
from tvm.ir.instrument import PassInstrument

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings

Module = Any
Pass = Any
Snapshot = Any


class Watcher(Protocol):
    """One diagnoser's view of a pass application. ``applied`` is the pass of the call the testcase itself made, None
    for a pass inside it."""

    def before(self, module: Module, applied: Pass | None) -> Snapshot: ...

    def after(self, name: str, snapshot: Snapshot, given: Module, result: Module, applied: Pass | None) -> None: ...


class PassWatch:
    """Calls its watchers around every user-level pass application, inner passes first."""

    def __init__(self, findings: Findings, is_building: Callable[[], bool]) -> None:
        self._findings = findings
        self._is_building = is_building
        self._depth = 0
        self.watchers: list[Watcher] = []

    def install(self) -> None:
        original = tvm.ir.transform.Pass.__call__

        def call(applied: Any, module: Module) -> Module:
            if self._depth or self._is_building() or not isinstance(module, tvm.IRModule):
                return original(applied, module)
            return self._watched(applied, module, original)

        tvm.ir.transform.Pass.__call__ = call

    def _watched(self, applied: Any, module: Module, original: Callable[[Any, Module], Module]) -> Module:
        self._depth += 1
        context = self._instrumented_context()
        try:
            snapshots = self._before(module, applied)
            result = original(applied, module)
            self._after(pass_name(applied), snapshots, module, result, applied)
            return result
        finally:
            self._depth -= 1
            if context is not None:
                context.override_instruments([])

    def _instrumented_context(self) -> Any | None:
        """The current context with our instrument in it; None when the testcase has instruments of its own there."""
        try:
            context = tvm.ir.transform.PassContext.current()
            if len(context.instruments):
                self._findings.note("inner passes were not watched: the testcase has pass instruments of its own")
                return None
            context.override_instruments([inner_instrument(self._before, self._after, self._is_building)])
        except Exception as error:
            self._findings.note("inner passes were not watched", why=str(error)[-200:])
            return None
        return context

    def _before(self, module: Module, applied: Pass | None) -> list[Snapshot]:
        return [self._quietly(watcher.before, module, applied) for watcher in self.watchers]

    def _after(
        self, name: str, snapshots: list[Snapshot], given: Module, result: Module, applied: Pass | None
    ) -> None:
        for watcher, snapshot in zip(self.watchers, snapshots, strict=True):
            if snapshot is not None:
                self._quietly(watcher.after, name, snapshot, given, result, applied)

    def _quietly(self, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except Exception as error:
            self._findings.note("a pass could not be watched", why=f"{type(error).__name__}: {error}"[-200:])
            return None


def inner_instrument(
    before: Callable[[Module, Pass | None], list[Snapshot]],
    after: Callable[[str, list[Snapshot], Module, Module, Pass | None], None],
    is_building: Callable[[], bool],
) -> Any:
    """An instrument for the passes inside the one that the testcase called.

    It keeps each input alive, so that a pass which copies on write copies, and only a pass which really writes into
    its input is seen to do so. Its state lives in this closure: from 0.27 the compiler's objects take no attributes.
    """
    opened: list[tuple[Module, list[Snapshot]] | None] = []

    class InnerPasses(PassInstrument):  # type: ignore[misc]  # the compiler ships no type stubs
        def run_before_pass(self, module: Module, _info: Any) -> None:
            watched = isinstance(module, tvm.IRModule) and not is_building()
            opened.append((module, before(module, None)) if watched else None)

        def run_after_pass(self, module: Module, info: Any) -> None:
            entry = opened.pop() if opened else None
            if entry is not None:
                given, snapshots = entry
                after(str(info.name), snapshots, given, module, None)

    return InnerPasses()


def pass_name(applied: Any) -> str:
    try:
        return str(applied.info.name)
    except Exception:
        return type(applied).__name__
