"""Run an unmodified TVM testcase again under instrumentation: ``launch.py tvm.diagnose MODES repro.py [ARGUMENT…]``.

MODES is a comma-separated list of ``bounds``, ``signature``, ``mutation``, ``nan`` and ``unwritten``. Two kinds of
mode change the testcase's behaviour. ``repair`` updates calls that miss the new parameters of a pass. A mode of
``FILLS`` fills buffers of the testcase's TIR with a constant from the start (``fill-zero=f/tmp+f/sum``). The testcase
runs as ``__main__`` in the working directory with its own arguments, streams, exceptions and exit status.

Findings are written as JSON lines ``{"kind", "summary", "evidence"}`` to the file that REPROBOT_FINDINGS names. A
line of kind ``note`` names an instrumentation that was not available. Then a missing finding proves less.

This program is not trusted. It shares its process with the testcase, which can read and write every object, forge or
erase findings, and end the process. The file is a claim: the host limits its size, checks it against the protocol and
weighs it. A verdict also needs the host's own observation of the failure. For an *honest* testcase, this program must
leave the results, output and exit status of a valid run unchanged.

The program needs the compiler under test with its numpy, and otherwise only the standard library.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from runners.guest.tvm.findings import Findings
from runners.guest.tvm.testcase import import_compiler, run_testcase, set_script

FILLS = ("fill-zero", "fill-one", "fill-lowest", "fill-highest")
MODES = ("bounds", "signature", "mutation", "nan", "unwritten", "repair", *FILLS)


def main(arguments: list[str]) -> int:
    modes, path, *rest = arguments
    requested = [mode for mode in modes.split(",") if mode]
    unknown = sorted({mode.partition("=")[0] for mode in requested} - set(MODES))
    if unknown:
        sys.stderr.write(f"unknown diagnosers {', '.join(unknown)}; known: {', '.join(MODES)}\n")
        return 2
    file = os.path.abspath(path)
    finish = start_session(requested, file)
    set_script(path, rest)
    try:
        return run_testcase(file)
    finally:
        finish()


def start_session(modes: list[str], file: str) -> Callable[[], None]:
    """Install the instrumentation. Return the function to call after the testcase."""
    findings = Findings(os.environ.pop("REPROBOT_FINDINGS", None))
    try:
        import_compiler()
        session_class = importlib.import_module("runners.guest.tvm.session").DiagnosisSession
        session = session_class(findings, file, modes)
    except Exception as error:
        # For example, the compiler cannot be imported. Then the testcase itself fails.
        findings.note("no instrumentation could be installed", why=f"{type(error).__name__}: {error}"[-300:])
        return lambda: None
    return lambda: finish_session(session.finish, findings)


def finish_session(finish: Callable[[], None], findings: Findings) -> None:
    try:
        finish()
    except Exception as error:
        findings.note("a diagnoser could not finish", why=f"{type(error).__name__}: {error}"[-300:])
