"""Watch the passes that a testcase itself applies, and the passes inside them.

Passes inside ``tvm.compile`` or ``relax.build`` are internal to the compiler and not watched. For example,
``tirx.AnnotateEntryFunc`` of 0.25 to 0.27 changes its input module in place there.
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
    """A diagnoser that sees each pass application. ``applied`` is the pass that the testcase itself called. None for
    an inner pass."""

    def before_pass(self, module: Module, applied: Pass | None) -> Snapshot: ...

    def after_pass(
        self, name: str, snapshot: Snapshot, given: Module, result: Module, applied: Pass | None
    ) -> None: ...


class PassWatch:
    """Calls the watchers around every pass that the testcase applies, inner passes first."""

    def __init__(self, findings: Findings, is_building: Callable[[], bool]) -> None:
        self._findings = findings
        self._is_building = is_building
        self._depth = 0
        self.watchers: list[Watcher] = []

    def install(self) -> None:
        original = tvm.ir.transform.Pass.__call__

        def call_pass(applied: Any, module: Module) -> Module:
            if self._depth or self._is_building() or not isinstance(module, tvm.IRModule):
                return original(applied, module)
            return self._apply_watched(applied, module, original)

        tvm.ir.transform.Pass.__call__ = call_pass

    def _apply_watched(self, applied: Any, module: Module, original: Callable[[Any, Module], Module]) -> Module:
        self._depth += 1
        context = self._install_instrument()
        try:
            snapshots = self._take_snapshots(module, applied)
            result = original(applied, module)
            self._compare_snapshots(get_pass_name(applied), snapshots, module, result, applied)
            return result
        finally:
            self._depth -= 1
            if context is not None:
                context.override_instruments([])

    def _install_instrument(self) -> Any | None:
        """Return the current context, with an instrument. None if the testcase has installed its own instruments."""
        try:
            context = tvm.ir.transform.PassContext.current()
            if len(context.instruments):
                self._findings.note("inner passes were not watched: the testcase has its own pass instruments")
                return None
            context.override_instruments(
                [make_instrument(self._take_snapshots, self._compare_snapshots, self._is_building)]
            )
        except Exception as error:
            self._findings.note("inner passes were not watched", why=str(error)[-200:])
            return None
        return context

    def _take_snapshots(self, module: Module, applied: Pass | None) -> list[Snapshot]:
        return [self._call_safely(watcher.before_pass, module, applied) for watcher in self.watchers]

    def _compare_snapshots(
        self, name: str, snapshots: list[Snapshot], given: Module, result: Module, applied: Pass | None
    ) -> None:
        for watcher, snapshot in zip(self.watchers, snapshots, strict=True):
            if snapshot is not None:
                self._call_safely(watcher.after_pass, name, snapshot, given, result, applied)

    def _call_safely(self, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except Exception as error:
            self._findings.note("a pass could not be watched", why=f"{type(error).__name__}: {error}"[-200:])
            return None


def make_instrument(
    before: Callable[[Module, Pass | None], list[Snapshot]],
    after: Callable[[str, list[Snapshot], Module, Module, Pass | None], None],
    is_building: Callable[[], bool],
) -> Any:
    """Return an instrument for the passes inside the pass that the testcase called.

    The instrument keeps each input alive. So copy-on-write passes copy, and only a pass that really writes into its
    input is reported. The state is in a closure, because from 0.27 on the compiler's objects accept no attributes.
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


def get_pass_name(applied: Any) -> str:
    try:
        return str(applied.info.name)
    except Exception:
        return type(applied).__name__
