"""Runs the steps of one probe and says, one JSON line per step, how each ended; in a session, of one after another.

Started by the host as ``python -I -S launch.py probe.supervisor`` with the interpreter it trusts, normally as process
1 of the sandbox. Its standard input carries a line per job::

    {"files": {"repro.py": "..."}, "wall_s": 60.0, "cpu_s": 120.0, "environment": {"LANG": "C.UTF-8"},
     "steps": [{"argv": ["/opt/env/bin/python", "repro.py"], "timeout_s": 60.0, "prints_stack": true,
                "script": true, "preload": null}],
     "compile_functions": ["package.compile"], "reports_at_exit": ["package"],
     "limits": {"output_bytes": 65536, "file_bytes": 536870912}, "probe_file": null, "scratch": null}

and then stays open: its end of file means that the host is gone, and everything here dies; a blank line during a job
means that its processor time is up, which the host sees and we don't: the step ends as if it had timed out.

The records leave by the standard output, which no step inherits; a step's own streams are fields in them. The steps
are hostile: this process is made undumpable, so that they can neither trace it nor open its descriptors, and it
believes none of their words.

A step with ``prints_stack`` runs a program that prints its stack on a fatal signal. When the time of such a program
is up, it is sent one.

``script`` (the argv is an interpreter, a file, arguments) runs the file through ``script.py``, which leaves a record
of how it failed and of its calls of the ``compile_functions``, and can say where it hangs. With ``preload``, a list
of import statements, it runs in a fork of a process that has executed them already (``forking.py``), if one can be
had and they reach none of its ``own`` modules; ``late`` variables, the ``perturb`` byte and the ``seed`` are then set
in the fork. ``reports_at_exit`` are packages that report at exit which of their objects live (``zygote.py``).

A job with ``scratch``, the places that can be written, is one of a session: a blank line follows its records, and
the next job finds those places empty and no process of the last one alive. Where that can't be made sure of, the
last record's ``spent`` says why, and this process ends.

Standard library only, with its neighbours in this folder; Python 3.10 or newer.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
import time

from runners.guest.probe.processes import as_the_steps, reap_all
from runners.guest.probe.session import Session
from runners.guest.probe.step import HostGone, Step

TYPE_CHECKING = False  # each import here is a part of every probe: no `typing`, and none of what few probes need
if TYPE_CHECKING:
    from typing import Any

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
MAX_JOB_BYTES = 64 * 1024 * 1024
MAX_PROBE_FILE_BYTES = 48 * 1024


class JobRefused(Exception):
    """The job itself is wrong: reported as an ``error`` record, never blamed on the testcase."""


# ------------------------------------------------------------------------------------------- this process


def become_untouchable() -> None:
    """Nobody of our uid may trace us or read our memory and descriptors; orphans become our children."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_DUMPABLE, 0), (PR_SET_CHILD_SUBREAPER, 1)):
        if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    # Process 1 is immune only to signals that it has no handler for; Python installs one for SIGINT.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def take_streams() -> tuple[int, int]:
    """Our streams on descriptors that no child inherits; 0 and 1 become the null device."""
    job, records = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.close(null)
    return job, records


def read_job(descriptor: int, *, may_end: bool) -> dict[str, Any]:
    data = bytearray()
    while not data.endswith(b"\n") or data.isspace():  # blank: a word that came too late for the last job
        piece = os.read(descriptor, 1024 * 1024)
        if not piece and not data and may_end:
            raise HostGone
        if not piece:
            raise JobRefused("the job ended before its newline")
        data += piece
        if len(data) > MAX_JOB_BYTES:
            raise JobRefused(f"the job is larger than {MAX_JOB_BYTES} bytes")
    job = json.loads(data)
    if not isinstance(job, dict):
        raise JobRefused("the job isn't an object")
    return job


def send(descriptor: int, record: dict[str, Any]) -> None:
    """One record, whole (a pipe may take less than it is given)."""
    data = memoryview(json.dumps(record).encode("ascii") + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]


# ------------------------------------------------------------------------------------------- files


def write_files(root: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        parts = name.split("/")
        if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise JobRefused(f"{name!r} is not a relative path below the working directory")
        path = os.path.join(root, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))


def read_probe_file(path: str) -> str | None:
    """What a hook left, cut at the limit; None when there is no regular file. Whatever it says is a claim."""
    try:
        # Neither a symbolic link nor a named pipe may lead us elsewhere or make us wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, MAX_PROBE_FILE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def run_job(job: dict[str, Any], records: int, session: Session) -> None:
    # HOME, PATH and TMPDIR are the engine's; the rest of our own environment stays with us.
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    job["environment"] = {**inherited, **job["environment"]}
    with as_the_steps():
        write_files(os.getcwd(), job["files"])
    deadline = time.monotonic() + job["wall_s"]
    for step in job["steps"]:
        one = Step(step, job, deadline, session)
        record = one.run()
        deadline += one.preload_s  # imports that are done once are on no probe's clock
        send(records, {"step": record})
        if record["status"] != 0 or record["timed_out"]:
            break
    probe_file = job.get("probe_file")
    with as_the_steps():
        found = read_probe_file(probe_file) if probe_file else None
    send(records, {"end": {"probe_file": found}})


def serve(host: int, records: int) -> None:
    """One job, or those of a session until the host ends it or this sandbox is spent."""
    session: Session | None = None
    while True:
        job = read_job(host, may_end=session is not None)
        send(records, {"started": {"pid": os.getpid(), "python": sys.version.split()[0]}})
        scratch = job.get("scratch")
        session = session or Session(host, scratch)
        run_job(job, records, session)
        if scratch is None:
            return
        spent = session.spent()
        send(records, {"session": {"spent": spent}})
        os.write(records, b"\n")
        if spent:
            session.close()
            return


def main(arguments: list[str]) -> int:
    become_untouchable()
    host, records = take_streams()
    try:
        serve(host, records)
    except HostGone:
        reap_all(None, None)
        return 1
    except (JobRefused, OSError, ValueError, KeyError) as error:
        reap_all(None, None)
        send(records, {"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0
