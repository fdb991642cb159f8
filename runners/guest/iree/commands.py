"""Run the command lines of an IREE testcase inside the sandbox, with additional flags."""

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
"""Folders below site-packages in which the wheels install their programs."""
COMPILERS = ("iree-compile",)
OPTIMIZERS = ("iree-opt",)
RUNNERS = ("iree-run-module",)
ONE_THREAD = "--mlir-disable-threading"
MAX_OUTPUT = 64 * 1024
MAX_DIFF_LINES = 60
MAX_DIFF_LINE = 160
SHORTEST_S = 1.0
"""Minimum time for a step, even close to the deadline."""


class UnknownProgram(Exception):
    """The wheels lack the program. For example, some importers are Python modules."""


@dataclass(frozen=True)
class StepResult:
    """Result of one step. ``code`` is minus the signal, or None after a time-out. Only the end of output is kept."""

    code: int | None
    stdout: str
    stderr: str


def find_program(name: str) -> str:
    """Return the path of a program of the wheels.

    Raises:
        UnknownProgram: no program has that name.
    """
    if name == "python":
        return sys.executable
    site = sysconfig.get_paths()["purelib"]
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(glob.escape(os.path.join(site, folder)), "iree-*")):
            if os.path.basename(path) == name and os.access(path, os.X_OK):
                return path
    raise UnknownProgram(name)


def run_step(step: Sequence[str], deadline: float, more: Iterable[str] = (), most: int = MAX_OUTPUT) -> StepResult:
    """Run a step with ``more`` arguments until ``deadline`` (`time.monotonic`). Keep ``most`` bytes of output.

    Raises:
        UnknownProgram: the wheels lack the program.
    """
    argv = [find_program(step[0]), *step[1:], *more]
    left = max(SHORTEST_S, deadline - time.monotonic())
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return StepResult(None, "", "")
    return StepResult(done.returncode, _decode_output(done.stdout, most), _decode_output(done.stderr, most))


def _decode_output(data: bytes, most: int) -> str:
    # LLVM prints a line for each of thousands of skipped passes. The few other lines would be cut off.
    kept = b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b"BISECT: NOT running"))
    return kept[-most:].decode("utf-8", "replace")


def write_finding(line: str) -> None:
    """Write the finding, a line of JSON, to the file that REPROBOT_FINDINGS names. The finding is a claim."""
    path = os.environ.get("REPROBOT_FINDINGS")
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write(line + "\n")


def limit_lines(lines: list[str]) -> list[str]:
    """Return the lines of a difference cut to ``MAX_DIFF_LINES`` lines of ``MAX_DIFF_LINE`` characters."""
    kept = [line[:MAX_DIFF_LINE] for line in lines[:MAX_DIFF_LINES]]
    return kept if len(lines) <= MAX_DIFF_LINES else [*kept, f"… {len(lines) - MAX_DIFF_LINES} more lines"]
