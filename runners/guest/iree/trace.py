"""Record the inputs and outputs of every dispatch of an IREE program: compile its testcase with traces and run it.

    python launch.py iree.trace JSON

JSON is ``{"steps": [[word, …], …], "seconds": n}``. ``iree-compile`` gets ``--iree-flow-trace-dispatch-tensors``, and
the program then prints the tensors around each dispatch on standard error. The tensors and the program's own output
are written as a line of JSON to the file that REPROBOT_FINDINGS names: ``data`` is base64 of zlib of ``{"dispatches":
[{"name", "inputs", "outputs"}], "tensors": [[type, digest, values]], "results": text}``. Inputs and outputs are
indices into ``tensors``. The trace is a claim: any program may print such lines.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from runners.guest.iree.commands import (
    COMPILERS,
    RUNNERS,
    SHORTEST_S,
    UnknownProgram,
    find_program,
    run_step,
    write_finding,
)
from runners.guest.iree.dispatch_trace import pack_claim, parse_trace

TRACES = "--iree-flow-trace-dispatch-tensors"
MAX_STDERR_BYTES = 64 << 20
MAX_RESULTS = 8_000

Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    job = json.loads(arguments[0])
    deadline = time.monotonic() + float(job["seconds"])
    try:
        found = trace_dispatches(job["steps"], deadline)
    except UnknownProgram:
        return 0
    if found is not None:
        write_finding(json.dumps({"kind": "dispatch-trace", "data": pack_claim(found)}))
    return 0


def trace_dispatches(steps: Sequence[Sequence[str]], deadline: float) -> Json | None:
    """Return the trace of the first run. None if a step before the run fails, or if the run exceeds the deadline."""
    for step in steps:
        if step[0] in RUNNERS:
            return _run_traced(step, deadline)
        if run_step(step, deadline, (TRACES,) if step[0] in COMPILERS else ()).code != 0:
            return None
    return None


def _run_traced(step: Sequence[str], deadline: float) -> Json | None:
    left = max(SHORTEST_S, deadline - time.monotonic())
    argv = [find_program(step[0]), *step[1:]]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return None
    printed = done.stderr[:MAX_STDERR_BYTES].decode("utf-8", "replace").splitlines()
    return {
        **parse_trace(printed),
        "results": done.stdout.decode("utf-8", "replace")[-MAX_RESULTS:],
        "code": done.returncode,
    }
