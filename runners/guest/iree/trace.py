"""What every dispatch of an IREE program takes and gives: its testcase, compiled with traces and run.

    python trace_iree.py JSON

JSON is ``{"steps": [[word, …], …], "seconds": n}``. ``iree-compile`` gets ``--iree-flow-trace-dispatch-tensors``, and
the program then prints the tensors around each dispatch on standard error. They go, with what it printed itself, as
one JSON line to the file that REPROBOT_FINDINGS names: ``data`` is base64 of zlib of ``{"dispatches": [{"name",
"inputs", "outputs"}], "tensors": [[type, digest, values]], "results": text}``, where inputs and outputs are places in
``tensors``. A claim: any program may print such lines.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from runners.guest.iree.commands import COMPILERS, RUNNERS, SHORTEST_S, Unknown, leave, program, run
from runners.guest.iree.dispatch_trace import packed, read

TRACES = "--iree-flow-trace-dispatch-tensors"
MAX_STDERR_BYTES = 64 << 20
MAX_RESULTS = 8_000

Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    asked = json.loads(arguments[0])
    deadline = time.monotonic() + float(asked["seconds"])
    try:
        found = trace(asked["steps"], deadline)
    except Unknown:
        return 0
    if found is not None:
        leave(json.dumps({"kind": "dispatch-trace", "data": packed(found)}))
    return 0


def trace(steps: Sequence[Sequence[str]], deadline: float) -> Json | None:
    """The trace of the first run; None where something before it fails, or it runs into the deadline."""
    for step in steps:
        if step[0] in RUNNERS:
            return _run(step, deadline)
        if run(step, deadline, (TRACES,) if step[0] in COMPILERS else ()).code != 0:
            return None
    return None


def _run(step: Sequence[str], deadline: float) -> Json | None:
    left = max(SHORTEST_S, deadline - time.monotonic())
    argv = [program(step[0]), *step[1:]]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return None
    printed = done.stderr[:MAX_STDERR_BYTES].decode("utf-8", "replace").splitlines()
    return {
        **read(printed),
        "results": done.stdout.decode("utf-8", "replace")[-MAX_RESULTS:],
        "code": done.returncode,
    }
