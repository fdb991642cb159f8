"""Finds the pass with which a TVM testcase begins to fail.

    python bisect_tvm.py search SECONDS repro.py [ARGUMENT…]
    python bisect_tvm.py limit JSON repro.py [ARGUMENT…]

``search`` runs the testcase again and again in forked children, each with all passes after the nth left out, and
bisects over n: first over the passes that it applies itself, then over those inside ``tvm.compile`` and
``relax.build``, in the order in which they run. A pass with others inside is never left out, nor one without which a
later step cannot work: these are found by leaving each out alone. ``limit`` runs the testcase once, as itself, with
the passes of one such trial: that is how the host sees for itself what was found. JSON is
``{"limit": n, "scope": "own" | "pipeline", "always": […], "outer": […]}``.

The finding goes as one JSON line to the file that REPROBOT_FINDINGS names. It is a claim: the testcase runs here.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runners.guest.diagnose_tvm import leave_no_modules, run_testcase
    from runners.guest.tvm_findings import Findings
else:
    from diagnose_tvm import leave_no_modules, run_testcase
    from tvm_findings import Findings

EVERYTHING = 1 << 30
MAX_DIFF_LINES = 60
MAX_TEXT = 400_000
TRIAL_S = 30
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
    without: str = ""
    """A pass left out wherever it would run."""
    show: bool = False
    """Keep the module before and after the last pass that runs."""


@dataclass
class Course:
    """What happened in one run, by the instrument. ``applied`` are the passes that could have been left out."""

    applied: list[tuple[str, str]] = field(default_factory=list)
    outer: set[str] = field(default_factory=set)
    stack: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    building: int = 0


@dataclass(frozen=True)
class Trial:
    """How one run ended: ``ok``, ``exception`` or ``signal``."""

    end: str
    what: str = ""
    inside: tuple[str, ...] = ()
    """The passes under way when it failed, outermost first."""
    applied: tuple[tuple[str, str], ...] = ()
    outer: frozenset[str] = frozenset()
    difference: tuple[str, ...] = ()

    def like(self, other: Trial) -> bool:
        return (self.end, self.what) == (other.end, other.what)


def main(arguments: list[str]) -> int:
    mode, setting, path, *rest = arguments
    file = os.path.abspath(path)
    findings = Findings(os.environ.pop("REPROBOT_FINDINGS", None))
    tvm = importlib.import_module("tvm")
    leave_no_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    if mode == "limit":
        asked = json.loads(setting)
        outer, always = frozenset(asked["outer"]), frozenset(asked["always"])
        choice = Choice(limit=asked["limit"], scope=asked["scope"], always=always, outer=outer)
        install(tvm, choice, Course())
        return run_testcase(file)
    Search(tvm, file, findings, time.monotonic() + float(setting)).run()
    return 0


# ---------------------------------------------------------------------------------------------- passes left out


def install(tvm: Any, choice: Choice, course: Course) -> None:
    """Into the default context, and into each that the testcase makes."""
    watch_builds(tvm, course)
    instrument = make_instrument(tvm, choice, course)
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


def make_instrument(tvm: Any, choice: Choice, course: Course) -> Any:
    base = importlib.import_module("tvm.ir.instrument").PassInstrument

    class Chooser(base):  # type: ignore[misc, valid-type]  # the compiler ships no type stubs
        def should_run(self, _module: Any, info: Any) -> bool:
            name = str(info.name)
            if (course.building > 0) is (choice.scope == OWN) or name in choice.outer or name in choice.always:
                return True
            course.applied.append((name, course.stack[-1] if course.stack else ""))
            return len(course.applied) <= choice.limit and name != choice.without

        def run_before_pass(self, module: Any, info: Any) -> None:
            if course.stack:
                course.outer.add(course.stack[-1])
            course.stack.append(str(info.name))
            self._look(module, info)

        def run_after_pass(self, module: Any, info: Any) -> None:
            if course.stack:
                course.stack.pop()
            self._look(module, info)

        def _look(self, module: Any, info: Any) -> None:
            last = choice.show and len(course.applied) == choice.limit and len(course.texts) < 2
            if last and str(info.name) == course.applied[-1][0]:
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


# ---------------------------------------------------------------------------------------------- one trial


def attempt(tvm: Any, file: str, choice: Choice) -> Trial:
    """The testcase in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _in_child(tvm, file, choice, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read(2_000_000)
    _, status = os.waitpid(child, 0)
    lines = told.decode("utf-8", "replace").splitlines()
    if os.WIFSIGNALED(status) or not lines or not lines[-1].startswith("{"):
        entered = tuple(line[1:] for line in lines if line.startswith("+"))[-1:]
        return Trial(end="signal", what=str(status & 0x7F), inside=entered)
    said = json.loads(lines[-1])
    return Trial(
        end=said["end"],
        what=said["what"],
        inside=tuple(said["inside"]),
        applied=tuple((name, outer) for name, outer in said["applied"]),
        outer=frozenset(said["outer"]),
        difference=tuple(said["difference"]),
    )


def _in_child(tvm: Any, file: str, choice: Choice, writer: int) -> None:
    """Never returns."""
    try:
        signal.alarm(TRIAL_S)  # by default it kills, wherever the compiler is
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        course = Course()
        install(tvm, choice, course)
        end, what = _run(file)
        told = {
            "end": end,
            "what": what,
            "inside": course.stack[-6:],
            "applied": course.applied[:5000],
            "outer": sorted(course.outer),
            "difference": difference(course.texts),
        }
        os.write(writer, b"\n" + json.dumps(told).encode())
    finally:
        os._exit(0)


def _run(file: str) -> tuple[str, str]:
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    try:
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox
    except SystemExit as end:
        return ("ok", "") if end.code in (None, 0) else ("exception", f"exit {str(end.code)[:80]}")
    except BaseException as error:
        return "exception", f"{type(error).__name__}: {_normal(str(error))}"
    return "ok", ""


def _normal(message: str) -> str:
    """The first words of a message without its numbers, which change from run to run."""
    return re.sub(r"[-+\d.e]+", "#", " ".join(message.split()))[:60]


# ---------------------------------------------------------------------------------------------- the search


class Search:
    """Bisection over the passes of one testcase; ends with at most one finding, or a note why there is none."""

    def __init__(self, tvm: Any, file: str, findings: Findings, deadline: float) -> None:
        self._tvm = tvm
        self._file = file
        self._findings = findings
        self._deadline = deadline
        self._trials = 0

    def run(self) -> None:
        try:
            self._search()
        except TimeoutError:
            self._findings.note("the pass was not found in time", trials=self._trials)

    def _try(self, choice: Choice) -> Trial:
        if time.monotonic() > self._deadline:
            raise TimeoutError
        self._trials += 1
        return attempt(self._tvm, self._file, choice)

    def _search(self) -> None:
        full = self._try(Choice())
        if full.end == "ok":
            self._findings.note("the testcase did not fail when it was run again", trials=self._trials)
            return
        last, left_out = full, False
        for scope in (OWN, PIPELINE):
            choice = Choice(scope=scope, outer=full.outer)
            if not self._try(choice).applied:
                continue
            last, left_out = self._try(replace(choice, limit=0)), True
            if last.end != "ok" and not last.like(full):
                choice = replace(choice, always=self._needed(full, choice))
                last = self._try(replace(choice, limit=0))
            if last.end == "ok":
                self._bisect(full, choice)
                return
        if not left_out:
            self._findings.note("it applies no pass that could be left out", trials=self._trials)
        elif last.like(full):
            self._report_none(full)
        else:
            self._report_unclear(full, last)

    def _needed(self, full: Trial, choice: Choice) -> frozenset[str]:
        """Passes whose absence alone makes it fail in another way."""
        needed = set()
        for name in dict.fromkeys(name for name, _ in self._try(choice).applied):
            trial = self._try(replace(choice, without=name))
            if trial.end != "ok" and not trial.like(full):
                needed.add(name)
        return frozenset(needed)

    def _bisect(self, full: Trial, choice: Choice) -> None:
        good, bad = 0, len(self._try(choice).applied)
        while bad - good > 1:
            middle = self._decided(full, choice, good, bad)
            if middle is None:
                break
            good, bad = middle
        last = self._try(replace(choice, limit=bad, show=True))
        name, around = last.applied[bad - 1] if len(last.applied) >= bad else ("?", "")
        where = "that the testcase applies" if choice.scope == OWN else "that compiling applies"
        exact = bad - good == 1
        which = f"pass {bad}" if exact else f"passes {good + 1} to {bad}"
        self._findings.add(
            "guilty",
            "guilty-pass",
            f"it fails with {which} of the {len(last.applied)} {where}, and not without",
            {
                "pass": name if exact else "",
                "inside": around,
                "application": bad,
                "passes_without": good,
                "of": len(last.applied),
                "scope": choice.scope,
                "difference": list(last.difference),
                "trials": self._trials,
                "always": sorted(choice.always),
                "outer": sorted(choice.outer),
            },
        )

    def _decided(self, full: Trial, choice: Choice, good: int, bad: int) -> tuple[int, int] | None:
        """Narrower bounds; of limits that fail in another way the nearest others are tried. None: none decides."""
        middle = (good + bad) // 2
        near = sorted(range(good + 1, bad), key=lambda limit: abs(limit - middle))[:8]
        for limit in near:
            trial = self._try(replace(choice, limit=limit))
            if trial.end == "ok":
                return limit, bad
            if trial.like(full):
                return good, limit
        return None

    def _report_none(self, full: Trial) -> None:
        self._findings.add(
            "guilty",
            "guilty-pass",
            "it fails the same way with every pass left out that can be: the fault lies before the passes, in the"
            " testcase, or in one that must run",
            {"pass": "", "application": 0, "inside_when_it_failed": list(full.inside), "trials": self._trials},
        )

    def _report_unclear(self, full: Trial, none: Trial) -> None:
        self._findings.note(
            "without passes it fails in another way, so no pass can be told",
            raised_in=list(full.inside),
            without=none.what,
            trials=self._trials,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
