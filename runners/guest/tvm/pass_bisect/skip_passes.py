"""Runs a TVM testcase without some of its passes: which may be left out, and an instrument that does it."""

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
"""Passes that the testcase applies itself; passes that compiling applies."""


@dataclass(frozen=True)
class Choice:
    """Which passes run: of ``scope`` the first ``limit`` that may be left out; and all others."""

    limit: int = EVERYTHING
    scope: str = OWN
    always: frozenset[str] = frozenset()
    """Passes that later steps need."""
    outer: frozenset[str] = frozenset()
    """Passes that apply other passes."""
    without: frozenset[str] = frozenset()
    """Passes left out wherever they would run."""
    show: bool = False
    """Keep the module before and after the last pass that runs."""


@dataclass
class Course:
    """One run, by the instrument. ``tell`` is given a line for each event, so that a crash leaves all before it.

    ``own NAME``, ``pipeline NAME``: a pass that could be left out is reached; ``+NAME``: a pass begins; ``-``: the
    innermost ends.
    """

    tell: Callable[[str], None] = lambda _line: None
    reached: dict[str, int] = field(default_factory=lambda: {OWN: 0, PIPELINE: 0})
    last: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    building: int = 0


def install(tvm: Any, choice: Choice, course: Course) -> None:
    """Into the default context, and into each that the testcase makes."""
    watch_builds(tvm, course)
    instrument = make_instrument(choice, course)
    context_class = tvm.ir.transform.PassContext
    original = context_class.__init__

    def made(
        self: Any, opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None,
        instruments: Any = None, config: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        original(self, opt_level, required_pass, disabled_pass, [*(instruments or ()), instrument], config, **more)

    context_class.__init__ = made
    context_class.current().override_instruments([instrument])


def watch_builds(tvm: Any, course: Course) -> None:
    """Tell the passes of a build from those of the testcase."""
    relax = importlib.import_module("tvm.relax")
    for owner, name in ((tvm, "compile"), (relax, "build"), (getattr(tvm, "tirx", None), "build"), (tvm, "build")):
        original = getattr(owner, name, None)
        if callable(original):
            setattr(owner, name, _counted(original, course))


def _counted(original: Any, course: Course) -> Any:
    @functools.wraps(original)
    def build(*args: Any, **kwargs: Any) -> Any:
        course.building += 1
        try:
            return original(*args, **kwargs)
        finally:
            course.building -= 1

    return build


def make_instrument(choice: Choice, course: Course) -> Any:
    base = importlib.import_module("tvm.ir.instrument").PassInstrument

    class Chooser(base):  # type: ignore[misc, valid-type]  # the compiler ships no type stubs
        def should_run(self, _module: Any, info: Any) -> bool:
            name = str(info.name)
            if name in choice.outer or name in choice.always:
                return True
            scope = PIPELINE if course.building else OWN
            course.reached[scope] += 1
            course.last[scope] = name
            course.tell(f"{scope} {name}")
            return scope != choice.scope or (course.reached[scope] <= choice.limit and name not in choice.without)

        def run_before_pass(self, module: Any, info: Any) -> None:
            course.tell(f"+{info.name}")
            self._look(module, info)

        def run_after_pass(self, module: Any, info: Any) -> None:
            course.tell("-")
            self._look(module, info)

        def _look(self, module: Any, info: Any) -> None:
            last = choice.show and course.reached[choice.scope] == choice.limit and len(course.texts) < 2
            if last and str(info.name) == course.last[choice.scope]:
                course.texts.append(module.script()[:MAX_TEXT])

    return Chooser()


def difference(texts: list[str]) -> tuple[str, ...]:
    """A unified diff of the module before and after, bounded."""
    if len(texts) < 2:
        return ()
    lines = difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), "before", "after", n=1, lineterm="")
    kept = [line[:160] for line in lines][2 : MAX_DIFF_LINES + 3]
    return tuple(
        kept[:MAX_DIFF_LINES] + ([f"… more than {MAX_DIFF_LINES} lines"] if len(kept) > MAX_DIFF_LINES else [])
    )
