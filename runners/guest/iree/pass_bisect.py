"""Finds where the compilation of an IREE testcase goes wrong.

    python bisect_iree.py JSON

JSON is ``{"steps": [[word, …], …], "seconds": n}``. The steps are run in order. If ``iree-compile`` or ``iree-opt``
fails, its own dumps tell in which pass, on which operation, and with which IR; where no pass was begun, each that the
command line writes is tried alone (``mlir_pipelines.py``); its phases tell how far it comes. If everything
compiles and the program fails or prints when it runs, passes are left out from the nth on, and n is bisected
(``iree_running.py``): what it does with all of them is what the others are compared with.

The finding goes as one JSON line to the file that REPROBOT_FINDINGS names. It is a claim: the host runs both sides
again, each by itself.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runners.guest.iree.commands import (
    COMPILERS,
    ONE_THREAD,
    OPTIMIZERS,
    RUNNERS,
    SHORTEST_S,
    Unknown,
    bounded,
    leave,
    program,
    run,
)
from runners.guest.iree.ir_dumps import Dump, Dumps, read
from runners.guest.iree.pipelines import Written, passes_by_flag, passes_written
from runners.guest.iree.run_program import llvm, written

MAX_REPRODUCER = 24 * 1024
"""Of the claim, which has 48 KiB in all."""
MAX_HELP = 4 << 20
DUMPS = (
    ONE_THREAD,
    "--mlir-print-ir-before-all",
    "--mlir-print-ir-after-failure",
    "--mlir-print-assume-verified",  # what a pass leaves that fails is printed as anything else is
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=64",
)

_EXECUTING = re.compile(r"Pipeline failed while executing (?P<stack>[^\n]{1,4000})")
_ONE = re.compile(r"`(?P<name>[^`]{1,200})` on '(?P<kind>[\w.]{1,80})' operation(?:: @(?P<symbol>[\w.$-]{1,200}))?")
Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    asked = json.loads(arguments[0])
    steps: list[list[str]] = asked["steps"]
    deadline = time.monotonic() + float(asked["seconds"])
    try:
        found = search(steps, deadline)
    except Unknown:
        return 0
    if found is not None:
        leave(json.dumps({"kind": "guilty-pass", "evidence": found}))
    return 0


def search(steps: Sequence[Sequence[str]], deadline: float) -> Json | None:
    """Which compilation or which run fails, and what is to be found out about it."""
    for number, step in enumerate(steps):
        ended = run(step, deadline)
        if ended.code is None:
            return None
        if ended.code != 0 and step[0] in (*COMPILERS, *OPTIMIZERS):
            return {**compilation(step, deadline), "step": number}
        if step[0] in RUNNERS:
            return written(steps, number, ended, deadline) or llvm(steps, number, ended, deadline)
        if ended.code != 0:
            return None
    return None


# ---------------------------------------------------------------------------------------------- a compilation


def compilation(step: Sequence[str], deadline: float) -> Json:
    """The pass in which it fails, by two witnesses, and the first phase that it does not come through."""
    dumps = read(_errors(step, deadline))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reproducer.mlir")
        told = run(step, deadline, (ONE_THREAD, f"--mlir-pass-pipeline-crash-reproducer={path}", _LOCAL))
        reproducer = _small_text(path)
    if dumps.begun == 0:
        unset = set_up(step, told.stderr, deadline)
        if unset is not None:
            return unset
    under_way = _innermost(told.stderr)
    dump = _failing(dumps, under_way)
    last, first = phases(step, deadline)
    kind, symbol = dump.where if dump is not None else ("", "")
    if under_way is not None:
        kind, symbol = under_way["kind"], under_way["symbol"] or symbol
    return {
        "level": "pass" if dump is not None else "parsing" if dumps.begun == 0 else "unknown",
        "pass": "" if dump is None else dump.name,
        "argument": "" if dump is None else dump.argument,
        "application": 0 if dump is None else dump.application,
        "of": dumps.begun,
        "operation": kind,
        "symbol": symbol,
        "phase": first,
        "phase_before": last,
        "option": option(step, first, deadline) if dump is None and first else "",
        "reproducer": reproducer,
        "difference": [] if dump is None else shown(dump, dumps.failed),
    }


_LOCAL = "--mlir-pass-pipeline-local-reproducer"


def set_up(step: Sequence[str], said: str, deadline: float) -> Json | None:
    """The pass, of those that the command line writes, that fails before there is anything to run it on.

    A pass manager sets up all of its passes before it begins the first (``Pass::initialize``): one that fails there
    is in no dump and in no reproducer. Alone, on an empty module, it fails with the same words.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "empty.mlir")
        with open(path, "w", encoding="ascii") as file:
            file.write("module {}\n")
        for written in _to_set_up(step[1:], deadline):
            if time.monotonic() > deadline - SHORTEST_S:
                return None
            ended = run(("iree-opt", f"--pass-pipeline={written.pipeline}", path), deadline)
            error = _first_error(ended.stderr)
            if ended.code not in (0, None) and error and error in said:
                return {"level": "pass", "pass": written.name, "written": written.text, "pipeline": written.pipeline}
    return None


def _to_set_up(words: Sequence[str], deadline: float) -> Iterator[Written]:
    """What the command line writes; then, asked only if need be, what its flags may stand for."""
    yield from passes_written(words)
    yield from passes_by_flag(words, run(("iree-opt", "--help"), deadline, most=MAX_HELP).stdout)


_ERROR = re.compile(r"error: [^\n]{1,2000}")


def _first_error(said: str) -> str:
    found = _ERROR.search(said)
    return found[0] if found else ""


def _errors(step: Sequence[str], deadline: float) -> Iterator[str]:
    """The lines that it prints with all dumps, as they come."""
    process = subprocess.Popen(
        [program(step[0]), *step[1:], *DUMPS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stderr is not None
    with process:
        for line in process.stderr:
            if time.monotonic() > deadline:
                process.kill()
                return
            yield line


def _innermost(errors: str) -> Json | None:
    """Of ``[`A` on 'x' operation: @y, `B` on …]`` the last, which the others run."""
    found = _EXECUTING.search(errors)
    passes = list(_ONE.finditer(found["stack"])) if found else []
    return passes[-1].groupdict() if passes else None


def _failing(dumps: Dumps, under_way: Json | None) -> Dump | None:
    """The dump before the failing pass: which says so itself, or was under way at the crash, or was begun last."""
    if dumps.failed is not None:
        return dumps.before.get(dumps.failed.name, dumps.failed)
    if under_way is not None and under_way["name"] in dumps.before:
        return dumps.before[under_way["name"]]
    return dumps.last


def _small_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_REPRODUCER + 1)
    except OSError:
        return ""
    return text if len(text) <= MAX_REPRODUCER else ""


def shown(before: Dump, after: Dump | None) -> list[str]:
    """What the pass did until it failed, as a diff; of a crash, the IR that it was given."""
    if after is not None and after is not before:
        return bounded(list(difflib.unified_diff(before.lines, after.lines, "before", "after", n=2, lineterm="")))
    return bounded([" " + line for line in before.lines])


def phases(step: Sequence[str], deadline: float) -> tuple[str, str]:
    """The last phase that it comes through and the first that it does not; empty where the step chooses itself."""
    if step[0] not in COMPILERS:
        return "", ""
    if any(word.lstrip("-").startswith(("compile-to", "compile-mode")) for word in step):
        return "", ""

    def fails(name: str) -> bool:
        return run(step, deadline, (f"--compile-to={name}",)).code != 0

    at = first_true(len(PHASES), lambda index: fails(PHASES[index]))
    if at is None:
        return PHASES[-1], ""
    return (PHASES[at - 1] if at else ""), PHASES[at]


def option(step: Sequence[str], phase: str, deadline: float) -> str:
    """The first flag without which it comes through the phase; empty where there is none.

    A flag may add passes of its own to a phase, or give them a file that they cannot read.
    """
    for word in step[1:]:
        if not word.startswith("--") or time.monotonic() > deadline - SHORTEST_S:
            continue
        rest = [other for other in step if other is not word]
        if run(rest, deadline, (f"--compile-to={phase}",)).code == 0:
            return word
    return ""


PHASES = (
    "input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream",
    "executable-sources", "executable-configurations", "executable-targets", "hal", "vm", "end",
)  # fmt: skip
"""Of ``--compile-to``, in order; the same from 2.9.0 to 3.13.0. ``start`` is only one to come from."""


def first_true(count: int, holds: Callable[[int], bool]) -> int | None:
    """Least index below ``count`` at which it holds, if it holds from there on; None where it does at none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low if low < count else None
