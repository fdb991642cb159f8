"""Find the pass in which the compilation of an IREE testcase fails.

    python launch.py iree.pass_bisect JSON

JSON is ``{"steps": [[word, …], …], "seconds": n}``. The steps run in order. If ``iree-compile`` or ``iree-opt``
fails, its dumps show the pass, the operation and the IR, and its phases show how far compilation comes. If no pass
began, each pass that the command line writes is tried alone (``pipelines.py``). If everything compiles,
``run_program.py`` leaves out the passes from the nth on, bisects n, and compares each run with the run of all passes.

The finding is written as a line of JSON to the file that REPROBOT_FINDINGS names. The finding is a claim: the host
runs both sides again, separately.
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
    UnknownProgram,
    find_program,
    limit_lines,
    run_step,
    write_finding,
)
from runners.guest.iree.ir_dumps import Dump, Dumps, read_dumps
from runners.guest.iree.pipelines import PipelinePass, guess_passes_by_flag, list_written_passes
from runners.guest.iree.run_program import bisect_llvm_passes, bisect_written_passes

MAX_REPRODUCER = 24 * 1024
"""Part of the claim, which has at most 48 KiB."""
MAX_HELP = 4 << 20
DUMPS = (
    ONE_THREAD,
    "--mlir-print-ir-before-all",
    "--mlir-print-ir-after-failure",
    "--mlir-print-assume-verified",  # print the IR of a failing pass in the usual form
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=64",
)

_EXECUTING = re.compile(r"Pipeline failed while executing (?P<stack>[^\n]{1,4000})")
_ONE = re.compile(r"`(?P<name>[^`]{1,200})` on '(?P<kind>[\w.]{1,80})' operation(?:: @(?P<symbol>[\w.$-]{1,200}))?")
Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    job = json.loads(arguments[0])
    steps: list[list[str]] = job["steps"]
    deadline = time.monotonic() + float(job["seconds"])
    try:
        found = bisect_passes(steps, deadline)
    except UnknownProgram:
        return 0
    if found is not None:
        write_finding(json.dumps({"kind": "guilty-pass", "evidence": found}))
    return 0


def bisect_passes(steps: Sequence[Sequence[str]], deadline: float) -> Json | None:
    """Run the steps. Return the evidence about the first compilation that fails, or about the run."""
    for number, step in enumerate(steps):
        ended = run_step(step, deadline)
        if ended.code is None:
            return None
        if ended.code != 0 and step[0] in (*COMPILERS, *OPTIMIZERS):
            return {**diagnose_compilation(step, deadline), "step": number}
        if step[0] in RUNNERS:
            by_written = bisect_written_passes(steps, number, ended, deadline)
            return by_written or bisect_llvm_passes(steps, number, ended, deadline)
        if ended.code != 0:
            return None
    return None


# ---------------------------------------------------------------------------------------------- a compilation


def diagnose_compilation(step: Sequence[str], deadline: float) -> Json:
    """Return the pass in which a compilation fails, from its dumps and its error, and the first failing phase."""
    dumps = read_dumps(_read_stderr(step, deadline))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reproducer.mlir")
        ended = run_step(step, deadline, (ONE_THREAD, f"--mlir-pass-pipeline-crash-reproducer={path}", _LOCAL))
        reproducer = _read_reproducer(path)
    if dumps.begun == 0:
        setup_failure = find_setup_failure(step, ended.stderr, deadline)
        if setup_failure is not None:
            return setup_failure
    innermost = _find_innermost_pass(ended.stderr)
    dump = _find_failing_dump(dumps, innermost)
    last, first = find_phases(step, deadline)
    kind, symbol = dump.operation if dump is not None else ("", "")
    if innermost is not None:
        kind, symbol = innermost["kind"], innermost["symbol"] or symbol
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
        "option": find_option(step, first, deadline) if dump is None and first else "",
        "reproducer": reproducer,
        "difference": [] if dump is None else diff_dumps(dump, dumps.failed),
    }


_LOCAL = "--mlir-pass-pipeline-local-reproducer"


def find_setup_failure(step: Sequence[str], errors: str, deadline: float) -> Json | None:
    """Find the pass on the command line whose setup fails.

    A pass manager sets up all of its passes before it begins the first (``Pass::initialize``). A pass that fails in
    its setup is in no dump and in no reproducer. Alone, on an empty module, it fails with the same error.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "empty.mlir")
        with open(path, "w", encoding="ascii") as file:
            file.write("module {}\n")
        for candidate in _list_setup_candidates(step[1:], deadline):
            if time.monotonic() > deadline - SHORTEST_S:
                return None
            ended = run_step(("iree-opt", f"--pass-pipeline={candidate.pipeline}", path), deadline)
            error = _find_error(ended.stderr)
            if ended.code not in (0, None) and error and error in errors:
                return {
                    "level": "pass",
                    "pass": candidate.name,
                    "written": candidate.text,
                    "pipeline": candidate.pipeline,
                }
    return None


def _list_setup_candidates(words: Sequence[str], deadline: float) -> Iterator[PipelinePass]:
    """Yield the passes on the command line, then, if necessary, the passes that its flags may add."""
    yield from list_written_passes(words)
    yield from guess_passes_by_flag(words, run_step(("iree-opt", "--help"), deadline, most=MAX_HELP).stdout)


_ERROR = re.compile(r"error: [^\n]{1,2000}")


def _find_error(errors: str) -> str:
    found = _ERROR.search(errors)
    return found[0] if found else ""


def _read_stderr(step: Sequence[str], deadline: float) -> Iterator[str]:
    """Yield the lines of standard error with all dumps while the step runs."""
    process = subprocess.Popen(
        [find_program(step[0]), *step[1:], *DUMPS],
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


def _find_innermost_pass(errors: str) -> Json | None:
    """Return the last pass of ``[`A` on 'x' operation: @y, `B` on …]``, which the other passes run."""
    found = _EXECUTING.search(errors)
    passes = list(_ONE.finditer(found["stack"])) if found else []
    return passes[-1].groupdict() if passes else None


def _find_failing_dump(dumps: Dumps, innermost: Json | None) -> Dump | None:
    """Return the dump before the failing pass: the pass that failed, else ran at the crash, else began last."""
    if dumps.failed is not None:
        return dumps.before.get(dumps.failed.name, dumps.failed)
    if innermost is not None and innermost["name"] in dumps.before:
        return dumps.before[innermost["name"]]
    return dumps.last


def _read_reproducer(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_REPRODUCER + 1)
    except OSError:
        return ""
    return text if len(text) <= MAX_REPRODUCER else ""


def diff_dumps(before: Dump, after: Dump | None) -> list[str]:
    """Return the changes of the pass until it failed, as a diff. After a crash, return the IR before the pass."""
    if after is not None and after is not before:
        return limit_lines(list(difflib.unified_diff(before.lines, after.lines, "before", "after", n=2, lineterm="")))
    return limit_lines([" " + line for line in before.lines])


def find_phases(step: Sequence[str], deadline: float) -> tuple[str, str]:
    """Return the last phase that succeeds and the first that fails. Empty if the step itself selects a phase."""
    if step[0] not in COMPILERS:
        return "", ""
    if any(word.lstrip("-").startswith(("compile-to", "compile-mode")) for word in step):
        return "", ""

    def is_failing(name: str) -> bool:
        return run_step(step, deadline, (f"--compile-to={name}",)).code != 0

    at = find_first(len(PHASES), lambda index: is_failing(PHASES[index]))
    if at is None:
        return PHASES[-1], ""
    return (PHASES[at - 1] if at else ""), PHASES[at]


def find_option(step: Sequence[str], phase: str, deadline: float) -> str:
    """Return the first flag without which the phase succeeds. Empty if no such flag exists.

    A flag may add passes to a phase, or name a file that the passes cannot read.
    """
    for word in step[1:]:
        if not word.startswith("--") or time.monotonic() > deadline - SHORTEST_S:
            continue
        rest = [other for other in step if other is not word]
        if run_step(rest, deadline, (f"--compile-to={phase}",)).code == 0:
            return word
    return ""


PHASES = (
    "input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream",
    "executable-sources", "executable-configurations", "executable-targets", "hal", "vm", "end",
)  # fmt: skip
"""Values of ``--compile-to`` in order, the same from 2.9.0 to 3.13.0. ``start`` is only for ``--compile-from``."""


def find_first(count: int, holds: Callable[[int], bool]) -> int | None:
    """Return the least index at which ``holds`` is true. None if there is none. Once true, it must remain true."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low if low < count else None
