"""Re-runs an unmodified TVM testcase under instrumentation: ``launch.py tvm.diagnose MODES repro.py [ARGUMENT…]``.

MODES is a comma-separated list of ``bounds``, ``signature``, ``mutation``, ``nan`` and ``unwritten``. Two kinds of
mode change what the testcase does: with ``repair`` a call that does not know of a pass's new parameters is made the
new way, and with one of ``FILLS`` buffers of its TIR hold a constant from the start (``fill-zero=f/tmp+f/sum``). It
runs as ``__main__`` in the working directory with its own arguments; its streams, exception and exit status are its
own.
Findings go, as JSON lines ``{"kind", "summary", "evidence"}``, to the file that REPROBOT_FINDINGS names; a line of
kind ``note`` names an instrumentation that was not available, which limits what a missing finding means.

What is trusted: nothing. This program shares its process with the testcase, which can read and write every object
here, forge or erase findings, and end the process. Its file is a claim that the host bounds, checks against the
protocol and weighs; a verdict needs the host's own observation of the failure beside it. What this program owes
an *honest* testcase is to leave a valid run's results, output and exit status as they were.

It needs the compiler under test with its numpy, and otherwise the standard library alone.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType

from runners.guest import forget_modules
from runners.guest.tvm.findings import Findings

FILLS = ("fill-zero", "fill-one", "fill-lowest", "fill-highest")
MODES = ("bounds", "signature", "mutation", "nan", "unwritten", "repair", *FILLS)


def main(arguments: list[str]) -> int:
    modes, path, *rest = arguments
    wanted = [mode for mode in modes.split(",") if mode]
    unknown = sorted({mode.partition("=")[0] for mode in wanted} - set(MODES))
    if unknown:
        sys.stderr.write(f"unknown diagnosers {', '.join(unknown)}; known: {', '.join(MODES)}\n")
        return 2
    file = os.path.abspath(path)
    finish = install(wanted, file)
    forget_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    try:
        return run_testcase(file)
    finally:
        finish()


def install(modes: list[str], file: str) -> Callable[[], None]:
    """Put the instrumentation in place; returns what to call when the testcase has ended."""
    findings = Findings(os.environ.pop("REPROBOT_FINDINGS", None))
    try:
        session_class = importlib.import_module("runners.guest.tvm.session").Session
        session = session_class(findings, file, modes)
    except Exception as error:
        # Such as a toolchain that can't be imported: the testcase itself will say so.
        findings.note("no instrumentation could be installed", why=f"{type(error).__name__}: {error}"[-300:])
        return lambda: None
    return lambda: quietly(session.finish, findings)


def quietly(action: Callable[[], None], findings: Findings) -> None:
    try:
        action()
    except Exception as error:
        findings.note("a diagnoser could not finish", why=f"{type(error).__name__}: {error}"[-300:])


def run_testcase(file: str) -> int:
    """Run the testcase as ``__main__``; an exception ends in the traceback that a plain run prints, and status 1.

    Not by ``runpy``, which puts its own path into ``sys.argv``.
    """
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    try:
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox
    except SystemExit:
        raise
    except BaseException as error:
        # Set on the exception too: the default hook prints what the exception carries.
        error.__traceback__ = testcase_traceback(error, file)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def testcase_traceback(error: BaseException, file: str) -> TracebackType | None:
    """The traceback from the testcase's first frame on; none when it has no frame (a syntax error)."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != file:
        traceback = traceback.tb_next
    return traceback
