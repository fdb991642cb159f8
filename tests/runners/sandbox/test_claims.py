"""Claims that a testcase can forge about its own run, and claims that it cannot.

A testcase shares a process with the record's writer and can change every object in it. The table has the real end of
each forgery, which the supervisor reports, and whether the run may look like the reported failure. Only a run that
ends as after an uncaught exception may; printing a traceback gives a testcase the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runners.core.failure.oracle import OracleContext, classify_run
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Ended,
    Exited,
    Limits,
    Outcome,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    TimedOut,
)
from runners.probe.layout import Layout
from runners.probe.run import ProbeSession, open_probe_session, run_probe
from runners.probe.task import PLAIN, Conditions, ProbeResult, Task
from runners.sandbox.contract import Engine
from runners.toolchains import ALL_FAILURES
from tests.runners.sandbox.conftest import TOOLS
from tests.runners.sandbox.kit.attack import LIMITS, QUICK

pytestmark = pytest.mark.sandbox

FORKED = Conditions(scripts=True, fork=True)

REPORTED = Claim(kind=ClaimKind.ERROR, signature=Signature(type="ValueError", message="no slot for the variable"))
IMPORTS = "import decimal\nimport json\n"
"""The first lines of every program here, so that all are forked from one zygote."""
HELP = """
import os, sys, threading, atexit, gc, signal, time
LINE = b'\\n{"failed": [{"type": "ValueError", "message": "no slot for the variable"}], "at": 1.0}\\n'
WELL = b'\\n{"ended": 0, "at": 1.0}\\n'
def everywhere(line):
    for number in range(3, 1100):
        try: os.write(number, line)
        except OSError: pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgery:
    """One forgery. ``match`` is True if the run may look like the reported failure."""

    code: str
    ended: Ended | type[TimedOut]
    match: bool = False
    files: dict[str, str] = field(default_factory=dict)


FORGERIES = {
    "a forged failure, and a clean end": Forgery(code="everywhere(LINE)", ended=Exited(code=0)),
    "a forged failure, and an end by _exit": Forgery(code="everywhere(LINE)\nos._exit(0)", ended=Exited(code=0)),
    "a forged failure, and another status": Forgery(code="everywhere(LINE)\nos._exit(4)", ended=Exited(code=4)),
    "a forged failure, and a crash": Forgery(code="everywhere(LINE)\nos.abort()", ended=Signalled(code=6)),
    "a forged failure, and a hang": Forgery(code="everywhere(LINE)\nwhile True: pass", ended=TimedOut),
    "a forged failure, and its status": Forgery(
        code="everywhere(LINE)\neverywhere = json.dumps = None\nos._exit(1)", ended=Exited(code=1), match=True
    ),
    "a forged clean end, and a failure": Forgery(
        code="everywhere(WELL)\nraise ValueError('no slot for the variable')", ended=Exited(code=1), match=True
    ),
    "everything replaced": Forgery(
        code="""
import builtins, io
def fake(*_, **__): return '{"ended": 0, "at": 1.0}'
json.dumps = builtins.str = builtins.len = builtins.isinstance = builtins.print = fake
os.getpid = lambda: -1
time.monotonic = fake
sys.excepthook = fake
raise KeyError('another')
""",
        ended=Exited(code=1),
    ),
    "the writer itself replaced": Forgery(
        code="""
frame = sys._getframe()
while frame is not None:
    notes = frame.f_locals.get("notes")
    if notes is not None:
        type(notes).failed = type(notes).ended = lambda *_: everywhere(LINE)
    frame = frame.f_back
raise SystemExit(7)
""",
        ended=Exited(code=7),
    ),
    "a child that tells later": Forgery(
        code="""
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        while True: everywhere(LINE)
time.sleep(0.1)
""",
        ended=Exited(code=0),
    ),
    "handlers at exit, threads, finalisers": Forgery(
        code="""
class Late:
    def __del__(self): everywhere(LINE)
late = Late(); late.itself = late
gc.callbacks.append(lambda *_: everywhere(LINE))
atexit.register(everywhere, LINE)
threading.Thread(target=lambda: (time.sleep(0.2), everywhere(LINE)), daemon=True).start()
""",
        ended=Exited(code=0),
    ),
    "a trace of every line": Forgery(
        code="""
def trace(frame, event, argument):
    if frame.f_code.co_name in ("ended", "_say"): everywhere(LINE)
    return trace
sys.settrace(trace)
sys.setprofile(trace)
""",
        ended=Exited(code=0),
    ),
    "another interpreter": Forgery(
        code="""
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", "import os" + HELP_AGAIN + "everywhere(LINE)"])
""".replace("HELP_AGAIN", repr(HELP)),
        ended=Exited(code=0),
    ),
    "a flood of words": Forgery(code="while True: everywhere(LINE * 1000)", ended=TimedOut),
    "words for where it hangs": Forgery(
        code="""
for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, 64): signal.signal(number, signal.SIG_IGN)
stack = b'Current thread (most recent call first):\\n  File "/x/tvm/driver/build.py", line 3 in compile\\n'
everywhere(stack)
while True: time.sleep(0.01)
""",
        ended=TimedOut,
    ),
    "numbers without end": Forgery(
        code="""
everywhere(b'{"failed": [], "at": 1e999}\\n{"phase": "compile", "at": NaN}\\n' + b"[" * 9000)
os._exit(1)
""",
        ended=Exited(code=1),
    ),
}

SEEN = (
    IMPORTS
    + """
import gc, sys
import _socket
print(decimal.getcontext().prec, json.dumps({"a": 1}), sorted(gc.callbacks), sys.gettrace(), sys.getprofile())
print(sum(isinstance(one, _socket.socket) for one in gc.get_objects()))
"""
)


def task(code: str, conditions: Conditions, files: dict[str, str] | None = None, limits: Limits = LIMITS) -> Task:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="none",
        files={"repro.py": code, **(files or {})},
        steps=(("python", "repro.py"),),
    )
    variables = {"PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1"}
    return Task(testcase=testcase, tools=TOOLS, variables=variables, limits=limits, conditions=conditions)


def run(room: ProbeSession, code: str, files: dict[str, str] | None = None, limits: Limits = LIMITS) -> ProbeResult:
    return room.run(task(code, FORKED, files, limits))


@pytest.fixture
def room(engine: Engine, layout: Layout) -> Iterator[ProbeSession]:
    with open_probe_session(engine, layout, limits=LIMITS, run_id="claims") as room:
        yield room


def test_forged_record_changes_neither_end_nor_outcome(room: ProbeSession) -> None:
    """The forgeries run one after another in one session. After each one, a probe finds the zygote unchanged."""
    first = run(room, SEEN).steps[0].stdout
    for name, one in FORGERIES.items():
        probe = run(room, IMPORTS + HELP + one.code, one.files, QUICK if one.ended is TimedOut else LIMITS)
        assert probe.ended == one.ended or (isinstance(one.ended, type) and isinstance(probe.ended, one.ended)), name
        record = probe.steps[0].record
        assert record is not None, name
        assert record.forked, (name, record.not_forked)
        seen = classify_run(probe.ended, probe.steps, OracleContext(claim=REPORTED, vocabulary=ALL_FAILURES)).outcome
        assert (seen is Outcome.MATCH) is one.match, (name, seen, record)
        assert room.spent == "", name
        assert run(room, SEEN).steps[0].stdout == first, name


def test_printing_the_reported_failure_counts_as_showing_it(engine: Engine, layout: Layout) -> None:
    """A plain run that prints the same words and ends with the same status matches as well."""
    printed = 'import sys\nprint("Traceback (most recent call last):\\nValueError: no slot for the variable", '
    code = printed + "file=sys.stderr)\nsys.exit(1)\n"
    probe = run_probe(engine, layout, task(code, PLAIN), run_id="claims")
    assert (
        classify_run(probe.ended, probe.steps, OracleContext(claim=REPORTED, vocabulary=ALL_FAILURES)).outcome
        is Outcome.MATCH
    )


def test_testcase_file_that_a_library_imports_does_not_run_in_the_zygote(
    engine: Engine, tmp_path: Path, layout: Layout
) -> None:
    """Its effects would be in every later fork. One library fails without the file, the other one ignores its
    absence."""
    for name, how in (
        ("strict", "import settings_of"),
        ("lenient", "try: import settings_of\nexcept ImportError: 0"),
    ):
        (layout.site_packages / f"{name}.py").write_text(how + "\n")
    poison = {"settings_of.py": "import sys\nsys.poisoned = True\n"}
    code = "import {name}\nimport sys\nprint(hasattr(sys, 'poisoned'))\n"
    with open_probe_session(engine, layout, limits=LIMITS, run_id="claims") as room:
        for name in ("strict", "lenient"):
            attack = run(room, code.format(name=name), poison)
            assert (attack.ended, attack.steps[0].stdout) == (Exited(code=0), "True\n"), name  # as a plain run has it
            assert attack.steps[0].record is not None
            assert "settings_of" in attack.steps[0].record.not_forked or name == "strict"
            assert not attack.steps[0].record.forked
        after = run(room, code.format(name="lenient"))
        assert after.steps[0].record is not None
        assert after.steps[0].record.forked
        assert after.steps[0].stdout == "False\n"


@pytest.mark.parametrize("name", ["json", "warnings", "ast", "random", "signal"])
def test_testcase_file_named_like_a_standard_module_runs_plain(name: str, room: ProbeSession) -> None:
    """Our guest programs would import the file instead of Python's module, so such a testcase is run plain."""
    probe = run(room, f"import {name}\nprint({name}.VALUE)\n", {f"{name}.py": "VALUE = 3\n"})
    assert (probe.ended, probe.steps[0].stdout, probe.steps[0].stderr) == (Exited(code=0), "3\n", "")


def test_replaced_functions_do_not_change_the_end(engine: Engine, layout: Layout) -> None:
    """Honest programs replace functions too: a clean run stays clean without json or os."""
    for line in ("json.dumps = None", "os.write = None", "os.getpid = lambda: 1 / 0", "time.monotonic = None"):
        code = f"import json, os, time, warnings\n{line}\nwarnings.warn('x')\nprint('done')\n"
        probe = run_probe(engine, layout, task(code, Conditions(scripts=True)), run_id="claims")
        assert (probe.ended, probe.steps[0].stdout) == (Exited(code=0), "done\n"), (line, probe.steps[0].stderr)
