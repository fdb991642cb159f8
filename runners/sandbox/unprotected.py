"""No sandbox: the testcase runs as the user who started us. For code that one would run by hand anyway."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from runners.core.protocol import OutOfMemory
from runners.sandbox import owner
from runners.sandbox.contract import LIMITED, EngineReport, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time
from runners.sandbox.process import DRAIN_S, close_streams, communicate, ended_by


@dataclass(frozen=True, slots=True)
class Unprotected:
    """See ``contract.Engine``."""

    name: str = "none"
    remaps_paths: bool = False
    image: str = ""
    own_system: bool = False

    @property
    def guarantees(self) -> tuple[str, ...]:
        return (
            LIMITED,
            "an environment built from nothing, and a temporary directory of its own",
            "its processes are killed when it ends, as far as they can be found",
        )

    @property
    def gives_up(self) -> tuple[str, ...]:
        return (
            "THE TESTCASE RUNS AS YOU: it can read, change and delete whatever you can",
            "it has the network, and every secret that lies in your files",
            "it can see and kill your processes, this one included",
            "disk is not limited; memory and processor time are, but per process where no control group can be made",
        )

    def unusable(self) -> str | None:
        return None

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start, wait, kill what can be found, report.

        Raises:
            InfraError: stopped from outside.
        """
        began = time.monotonic()
        limits = spec.limits
        with owner.private_directory() as work, _group(spec) as group, _process(spec, str(work)) as process:
            # It waits for its job, so this holds before any step starts.
            if group is not None:
                group.add(process.pid)
            else:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
            talk = communicate(
                process,
                stdin=spec.stdin,
                stdout_limit=limits.output_bytes,
                wall_s=limits.wall_s,
                watch=cpu_time.watch(None if group is None else group.cpu_s, limits.cpu_s),
            )
            oom = group is not None and group.ran_out_of_memory()
            peak = 0 if group is None else group.peak_bytes()
        return EngineReport(
            ended=OutOfMemory(limit_bytes=limits.memory_bytes) if oom else ended_by(talk),
            stdout=talk.stdout,
            stderr=talk.stderr,
            seconds=time.monotonic() - began,
            peak_bytes=peak,
            truncated=talk.truncated,
        )


@contextlib.contextmanager
def _group(spec: SandboxSpec) -> Iterator[cgroup.Cgroup | None]:
    """Where control groups can be written, one makes the limits and the killing whole, even here."""
    try:
        group = cgroup.create(owner.new_name(), spec.limits)
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.close()


@contextlib.contextmanager
def _process(spec: SandboxSpec, work: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {"PATH": os.defpath, "HOME": work, "TMPDIR": work, **spec.environment}
    process = subprocess.Popen(
        spec.argv,
        cwd=work,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # The supervisor collects its orphans; the end of its input tells it to kill them all and go.
        close_streams(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(DRAIN_S)
        process.kill()
        process.wait()
