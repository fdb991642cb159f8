"""Run the steps of a probe and report how each ended, in one JSON line per step. A session runs several probes.

The host starts the supervisor as ``python -I -S launch.py probe.supervisor`` with an interpreter that it trusts,
normally as process 1 of the sandbox. The standard input has one line per job::

    {"files": {"repro.py": "..."}, "wall_s": 60.0, "cpu_s": 120.0, "environment": {"LANG": "C.UTF-8"},
     "steps": [{"argv": ["/opt/env/bin/python", "repro.py"], "timeout_s": 60.0, "prints_stack": true,
                "script": true, "preload": null}],
     "compile_functions": ["package.compile"], "reports_at_exit": ["package"],
     "limits": {"output_bytes": 65536, "file_bytes": 536870912}, "probe_file": null, "scratch": null}

and then remains open. Its end of file means that the host is gone. Then the supervisor kills everything. A blank line
during a job means that the job has used up its processor time, which only the host sees. Then the step ends as if it
had timed out.

The records are written to the standard output, which no step inherits. The streams of a step are fields of its
record. The steps are hostile. This process is undumpable, so that they can neither trace it nor open its descriptors,
and it trusts none of their output.

A step with ``prints_stack`` runs a program that prints its stack on a fatal signal. A step whose time is over gets
such a signal.

A step with ``script`` (its argv is an interpreter, a file, arguments) runs the file through ``script/run.py``, which
records failures and calls of the ``compile_functions``, and prints stacks on a signal. ``preload`` is a list of
import statements. Then the file runs in a fork of a process that has executed them (``forking.py``), if such a
process exists and the imports reach none of the testcase's ``own`` modules. The fork sets the ``late`` variables, the
``perturb`` byte and the ``seed``. ``reports_at_exit`` are packages that report their live objects at exit.

A job with ``scratch``, the writable folders, belongs to a session. A blank line follows its records. The next job
finds those folders empty, and no process of the last job is alive. If the supervisor cannot ensure this, the last
record contains the reason in ``spent``, and the supervisor ends.

Standard library only, with the other modules of this folder; Python 3.10 or newer.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
import time

from runners.guest.probe.processes import act_as_step_user, reap_all
from runners.guest.probe.session import SupervisorSession
from runners.guest.probe.step import HostGone, ProbeStep

TYPE_CHECKING = False  # every probe pays for each import here: no `typing`, and no module that few probes need
if TYPE_CHECKING:
    from typing import Any

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
MAX_JOB_BYTES = 64 * 1024 * 1024
MAX_PROBE_FILE_BYTES = 160 * 1024


class JobRefused(Exception):
    """The job itself is invalid. The supervisor reports it as an ``error`` record and never blames the testcase."""


# ------------------------------------------------------------------------------------------- this process


def become_untouchable() -> None:
    """Prevent processes of the same user from tracing this process or opening its descriptors. Adopt orphans."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_DUMPABLE, 0), (PR_SET_CHILD_SUBREAPER, 1)):
        if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    # Process 1 is immune only to signals without a handler, and Python installs a handler for SIGINT.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def take_streams() -> tuple[int, int]:
    """Return input and output as descriptors that no child inherits. 0 and 1 become the null device."""
    job, records = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.close(null)
    return job, records


def read_job(descriptor: int, *, may_end: bool) -> dict[str, Any]:
    """Return the next job.

    Raises:
        HostGone: the input ended before a job, and ``may_end``.
        JobRefused: the job is incomplete, too large or not an object.
    """
    data = bytearray()
    while not data.endswith(b"\n") or data.isspace():  # blank: a request to end that was too late for the last job
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
        raise JobRefused("the job is not an object")
    return job


def send_record(descriptor: int, record: dict[str, Any]) -> None:
    """Write a whole record. A pipe may accept only a part of the data at a time."""
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
    """Return the text of a hook's file, cut at the limit. None without a regular file. The text is a claim."""
    try:
        # A symbolic link could point elsewhere, and a named pipe could block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, MAX_PROBE_FILE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def run_job(job: dict[str, Any], records: int, session: SupervisorSession) -> None:
    # HOME, PATH and TMPDIR come from the engine. Steps inherit no other variable of the supervisor.
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    job["environment"] = {**inherited, **job["environment"]}
    with act_as_step_user():
        write_files(os.getcwd(), job["files"])
    deadline = time.monotonic() + job["wall_s"]
    for step in job["steps"]:
        child = ProbeStep(step, job, deadline, session)
        record = child.run()
        deadline += child.preload_s  # a zygote's imports serve many probes, and count for none of them
        send_record(records, {"step": record})
        if record["status"] != 0 or record["timed_out"]:
            break
    probe_file = job.get("probe_file")
    with act_as_step_user():
        text = read_probe_file(probe_file) if probe_file else None
    send_record(records, {"end": {"probe_file": text}})


def serve_jobs(host: int, records: int) -> None:
    """Run one job, or the jobs of a session until the host ends it or the sandbox accepts no further job."""
    session: SupervisorSession | None = None
    while True:
        job = read_job(host, may_end=session is not None)
        send_record(records, {"started": {"pid": os.getpid(), "python": sys.version.split()[0]}})
        scratch = job.get("scratch")
        session = session or SupervisorSession(host, scratch)
        run_job(job, records, session)
        if scratch is None:
            return
        spent = session.prepare_next_job()
        send_record(records, {"session": {"spent": spent}})
        os.write(records, b"\n")
        if spent:
            session.close()
            return


def main(arguments: list[str]) -> int:
    become_untouchable()
    host, records = take_streams()
    try:
        serve_jobs(host, records)
    except HostGone:
        reap_all(None, None)
        return 1
    except (JobRefused, OSError, ValueError, KeyError) as error:
        reap_all(None, None)
        send_record(records, {"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0
