"""Run Python programs, each in a fork of this process, which has imported the compiler.

``python forks.py ROOT`` reads a request per line of standard input, and answers each with a line of standard output.
A request is a JSON object: ``arguments`` as after ``python``, the first of them a script; ``variables`` to add to the
environment; ``folder``, where the program runs and where its streams go, into files. The answer has ``code`` (the
exit status; negative: a signal) and ``seconds``.

A fork has its own streams, directory and memory, in a fifth of the time of a new process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from typing import TypedDict

PROGRAM_S = 240
STREAMS = ("stdout", "stderr")
IMPORTED = ("diagnose", "session", "reference.vote")
"""Guest programs that are imported before the forks, and with them the compiler."""


class Request(TypedDict):
    arguments: list[str]
    variables: dict[str, str]
    folder: str


def main(root: str) -> None:
    sys.path.insert(0, root)
    for name in IMPORTED:
        importlib.import_module(f"runners.guest.tvm.{name}")
    del sys.path[0]
    gc.freeze()
    for line in sys.stdin:
        request: Request = json.loads(line)
        started = time.perf_counter()
        child = os.fork()
        if child == 0:
            _run_and_exit(request)
        _, status = os.waitpid(child, 0)
        answer = {"code": os.waitstatus_to_exitcode(status), "seconds": time.perf_counter() - started}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()  # or the next child would write the answer again


def _run_and_exit(request: Request) -> None:
    """End as the interpreter: with the status of SystemExit, or 1 after a traceback."""
    code = 1
    try:
        _set_up_child(request["folder"], request["variables"])
        sys.argv = request["arguments"]
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _set_up_child(folder: str, variables: dict[str, str]) -> None:
    """Give the child its own directory, streams, variables and time limit."""
    signal.alarm(PROGRAM_S)
    os.chdir(folder)
    os.environ.update(variables)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(STREAMS, start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)


if __name__ == "__main__":
    main(*sys.argv[1:])
