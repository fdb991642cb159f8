"""Run the testcase as the user of this process: the engine ``none``.

It is for code that the user would run by hand anyway.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from runners.core.errors import InfraError
from runners.sandbox import owner
from runners.sandbox.contract import LIMITED, EngineReport, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time
from runners.sandbox.process import DRAIN_S, build_report, close_streams, exchange_data


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
            "an environment built from nothing, and its own temporary directory",
            "its processes are killed when it ends, as far as they can be found",
        )

    @property
    def limitations(self) -> tuple[str, ...]:
        return (
            "THE TESTCASE RUNS AS YOU: it can read, change and delete whatever you can",
            "it has the network, and every secret that lies in your files",
            "it can see and kill your processes, this one included",
            "disk is not limited; memory and processor time are, but per process where no control group can be made",
        )

    def find_problem(self) -> str | None:
        return None

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start the process, wait for its end, kill all processes that are found, and report.

        Raises:
            InfraError: the run was stopped from outside.
        """
        began = time.monotonic()
        limits = spec.limits
        with (
            owner.open_private_directory() as work,
            _open_group(spec) as group,
            _start_process(spec, str(work)) as process,
        ):
            # The process waits for its job, so the limits apply before any step starts.
            try:
                if group is not None:
                    group.add(process.pid)
                else:
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
            except ProcessLookupError:
                raise InfraError("the process was killed before it began") from None
            exchange = exchange_data(
                process,
                stdin=spec.stdin,
                stdout_limit=limits.output_bytes,
                wall_s=limits.wall_s,
                meter=cpu_time.start_meter(None if group is None else group.read_cpu_s, limits.cpu_s),
            )
            oom = group is not None and group.ran_out_of_memory()
            peak = 0 if group is None else group.read_peak_bytes()
        return build_report(exchange, began=began, oom_limit=limits.memory_bytes if oom else None, peak_bytes=peak)


@contextlib.contextmanager
def _open_group(spec: SandboxSpec) -> Iterator[cgroup.Cgroup | None]:
    """Create a control group if possible. It limits all processes together, and finds all of them to kill."""
    try:
        group = cgroup.create_group(owner.make_name(), spec.limits)
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.close()


@contextlib.contextmanager
def _start_process(spec: SandboxSpec, work: str) -> Iterator[subprocess.Popen[bytes]]:
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
        # The supervisor collects its orphans. At the end of its input it kills them all and exits.
        close_streams(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(DRAIN_S)
        process.kill()
        process.wait()
