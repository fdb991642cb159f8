"""Run programs one after another in forks of a process that has imported the compiler.

``python batch.py ROOT MODES FILE…``; the mode ``plain`` runs the programs without instrumentation.

Print a line of JSON per program: status (negative: a signal), seconds, standard output, standard error and the
findings file. A child per program has its own streams, directory and memory, in a fifth of the time of a new process.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

PROGRAM_S = 120


def main(root: str, modes: str, *files: str) -> None:
    sys.path.insert(0, root)
    from runners.guest.tvm import diagnose, session  # noqa: F401  # imports the compiler before the forks

    for file in files:
        folder = Path(tempfile.mkdtemp())
        shutil.copy(file, folder / "repro.py")
        started = time.perf_counter()
        child = os.fork()
        if child == 0:
            _set_up_child(folder)
            _run_and_exit(diagnose.main if modes != "plain" else _run_plain, modes)
        _, status = os.waitpid(child, 0)
        seconds = time.perf_counter() - started
        texts = {name: _read_text(folder / name) for name in ("stdout", "stderr", "findings")}
        line = {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, **texts}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()  # or the next child would write it again
        shutil.rmtree(folder)


def _set_up_child(folder: Path) -> None:
    """Give the child its own directory, streams and time limit."""
    signal.alarm(PROGRAM_S)
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.environ["REPROBOT_FINDINGS"] = str(folder / "findings")


def _run_and_exit(run: object, modes: str) -> None:
    """End as the interpreter: with the status of SystemExit, or 1 after a traceback."""
    code = 1
    try:
        code = run([modes, "repro.py"])  # type: ignore[operator]  # one of two functions of one shape
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run_plain(arguments: list[str]) -> int:
    import runpy

    sys.argv = arguments[1:]
    runpy.run_path(arguments[1], run_name="__main__")
    return 0


def _read_text(path: Path) -> str:
    return path.read_text(errors="replace")[-20_000:] if path.exists() else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
