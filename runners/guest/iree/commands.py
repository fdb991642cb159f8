"""Runs the command lines of an IREE testcase inside the sandbox, with flags of ours; used by the IREE hooks."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FOLDERS = ("iree/_runtime_libs", "iree/compiler/_mlir_libs")
"""Where the wheels keep their programs, below site-packages."""
COMPILERS = ("iree-compile",)
OPTIMIZERS = ("iree-opt",)
RUNNERS = ("iree-run-module",)
ONE_THREAD = "--mlir-disable-threading"
MAX_OUTPUT = 64 * 1024
MAX_DIFF_LINES = 60
MAX_DIFF_LINE = 160
SHORTEST_S = 1.0
"""A step that is started at all has this long."""


class Unknown(Exception):
    """A step that these hooks do not run, such as an importer that is a Python module."""


@dataclass(frozen=True)
class Ended:
    """How one step ended. ``code`` is minus the signal, None at the time limit; output is cut to its end."""

    code: int | None
    stdout: str
    stderr: str


def program(name: str) -> str:
    """The path of a program of the wheels.

    Raises:
        Unknown: there is none of that name.
    """
    if name == "python":
        return sys.executable
    site = sysconfig.get_paths()["purelib"]
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(glob.escape(os.path.join(site, folder)), "iree-*")):
            if os.path.basename(path) == name and os.access(path, os.X_OK):
                return path
    raise Unknown(name)


def run(step: Sequence[str], deadline: float, more: Iterable[str] = (), most: int = MAX_OUTPUT) -> Ended:
    """Run a step with more words behind it, until ``deadline`` (`time.monotonic`); keeps the last ``most`` bytes.

    Raises:
        Unknown: its program is none of the wheels'.
    """
    argv = [program(step[0]), *step[1:], *more]
    left = max(SHORTEST_S, deadline - time.monotonic())
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return Ended(None, "", "")
    return Ended(done.returncode, _text(done.stdout, most), _text(done.stderr, most))


def _text(data: bytes, most: int) -> str:
    # Of thousands of LLVM passes each says that it was left out; the few that ran would be lost before them.
    kept = b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b"BISECT: NOT running"))
    return kept[-most:].decode("utf-8", "replace")


def leave(line: str) -> None:
    """Write the hook's one line to the file that REPROBOT_FINDINGS names: a claim to the host."""
    path = os.environ.get("REPROBOT_FINDINGS")
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write(line + "\n")


def bounded(lines: list[str]) -> list[str]:
    kept = [line[:MAX_DIFF_LINE] for line in lines[:MAX_DIFF_LINES]]
    return kept if len(lines) <= MAX_DIFF_LINES else [*kept, f"… {len(lines) - MAX_DIFF_LINES} more lines"]
