"""Run a TVM testcase without some of its passes: the selection, and the instrument that applies the selection."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EVERYTHING = 1 << 30
MAX_DIFF_LINES = 60
MAX_TEXT = 400_000
OWN, PIPELINE = "own", "pipeline"
"""Scopes: passes that the testcase itself applies, and passes that a compilation applies."""


@dataclass(frozen=True)
class PassSelection:
    """Passes to run: the first ``limit`` removable passes of ``scope``, and all other passes."""

    limit: int = EVERYTHING
    scope: str = OWN
    always: frozenset[str] = frozenset()
    """Passes that later steps require."""
    outer: frozenset[str] = frozenset()
    """Passes that apply other passes."""
    without: frozenset[str] = frozenset()
    """Passes left out wherever they would run."""
    show: bool = False
    """Keep the module before and after the last pass that runs."""


@dataclass
class PassLog:
    """Log of one run. The instrument calls ``write`` with a line for each event, so that the log survives a crash.

    ``own NAME`` or ``pipeline NAME``: the run reaches a removable pass. ``+NAME``: a pass begins. ``-``: the
    innermost pass ends.
    """

    write: Callable[[str], None] = lambda _line: None
    reached: dict[str, int] = field(default_factory=lambda: {OWN: 0, PIPELINE: 0})
    last: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    building: int = 0


def install_selection(tvm: Any, choice: PassSelection, log: PassLog) -> None:
    """Install the instrument in the default context and in each context that the testcase creates."""
    watch_builds(tvm, log)
    instrument = make_instrument(choice, log)
    context_class = tvm.ir.transform.PassContext
    original = context_class.__init__

    def create_context(
        self: Any, opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None,
        instruments: Any = None, config: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        original(self, opt_level, required_pass, disabled_pass, [*(instruments or ()), instrument], config, **more)

    context_class.__init__ = create_context
    context_class.current().override_instruments([instrument])


def watch_builds(tvm: Any, log: PassLog) -> None:
    """Count the builds in progress, to distinguish the passes of a build from those of the testcase."""
    relax = importlib.import_module("tvm.relax")
    for owner, name in ((tvm, "compile"), (relax, "build"), (getattr(tvm, "tirx", None), "build"), (tvm, "build")):
        original = getattr(owner, name, None)
        if callable(original):
            setattr(owner, name, _count_calls(original, log))


def _count_calls(original: Any, log: PassLog) -> Any:
    @functools.wraps(original)
    def call_build(*args: Any, **kwargs: Any) -> Any:
        log.building += 1
        try:
            return original(*args, **kwargs)
        finally:
            log.building -= 1

    return call_build


def make_instrument(choice: PassSelection, log: PassLog) -> Any:
    base = importlib.import_module("tvm.ir.instrument").PassInstrument

    class SkipPasses(base):  # type: ignore[misc, valid-type]  # the compiler ships no type stubs
        def should_run(self, _module: Any, info: Any) -> bool:
            name = str(info.name)
            if name in choice.outer or name in choice.always:
                return True
            scope = PIPELINE if log.building else OWN
            log.reached[scope] += 1
            log.last[scope] = name
            log.write(f"{scope} {name}")
            return scope != choice.scope or (log.reached[scope] <= choice.limit and name not in choice.without)

        def run_before_pass(self, module: Any, info: Any) -> None:
            log.write(f"+{info.name}")
            self._keep_text(module, info)

        def run_after_pass(self, module: Any, info: Any) -> None:
            log.write("-")
            self._keep_text(module, info)

        def _keep_text(self, module: Any, info: Any) -> None:
            last = choice.show and log.reached[choice.scope] == choice.limit and len(log.texts) < 2
            if last and str(info.name) == log.last[choice.scope]:
                log.texts.append(module.script()[:MAX_TEXT])

    return SkipPasses()


def diff_texts(texts: list[str]) -> tuple[str, ...]:
    """Return a unified diff of the module before and after, of at most ``MAX_DIFF_LINES`` lines."""
    if len(texts) < 2:
        return ()
    lines = difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), "before", "after", n=1, lineterm="")
    kept = [line[:160] for line in lines][2 : MAX_DIFF_LINES + 3]
    return tuple(
        kept[:MAX_DIFF_LINES] + ([f"… more than {MAX_DIFF_LINES} lines"] if len(kept) > MAX_DIFF_LINES else [])
    )
