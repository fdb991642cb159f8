"""One probe: a testcase, run once in a sandbox against one toolchain environment, alone or in a room that stays."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from runners.core import conditions
from runners.core.errors import InfraError
from runners.core.protocol import Exited, Limits, NotRun
from runners.core.toolchain.guest import LAUNCHER
from runners.probe.guest_records import read_records
from runners.probe.imports import hides_the_library, leading_imports, own_modules
from runners.probe.layout import GUEST_ENV, Layout, Place, shown_inside
from runners.probe.result import read_report
from runners.probe.task import Probe, Task, script_of
from runners.sandbox.contract import SCRATCH, Engine, SandboxSession, SandboxSpec, SessionEngine
from runners.sandbox.limits import cpu_time
from runners.sandbox.process import defer_interrupts

SUPERVISOR = "probe.supervisor"
MAX_STREAM_BYTES = 60_000
"""Per step and stream, so that with the note on what was left out it fits ``protocol.Text``."""
GRACE_S = 15.0
"""What the engine gives the supervisor beyond the testcase's own time: to start, and to end a step that won't."""
_STEP_RECORD_BYTES = (2 * MAX_STREAM_BYTES + 3 * 50_000) * 6 + 256 * 1024
"""Longest record of a step: JSON writes a control character as six; the rest is for its argv."""
PRELOAD_S = 45.0
"""What a session's engine gives the supervisor to start a zygote, beyond the testcase's own time."""
SESSION_S = 3600.0
"""Longest life of a session, should we be killed without a chance to end it."""


def run_probe(engine: Engine, layout: Layout, task: Task, *, run_id: str, devices: tuple[str, ...] = ()) -> Probe:
    """Run the testcase's steps in order until one fails, in a sandbox of its own.

    Raises:
        InfraError: the engine or the supervisor could not start; the testcase has not run.
    """
    unable = _unable(engine, task)
    if unable is not None:
        return unable
    with defer_interrupts(), shown_inside(layout, remapped=engine.remaps_paths, probe_file=task.probe_file) as place:
        spec = _spec(place, layout, _job(place, layout, task), _room(task), run_id)
        report = engine.run(replace(spec, devices=devices))
    return read_report(engine.name, task, report)


def _unable(engine: Engine, task: Task) -> Probe | None:
    unknown = sorted({step[0] for step in task.testcase.steps} - task.tools.keys())
    if not unknown:
        return None
    why = f"this build has no program named {', '.join(unknown)}"
    return Probe(steps=(), ended=NotRun(why=why, cause="unavailable"), seconds=0.0, peak_bytes=0, engine=engine.name)


class Room:
    """A sandbox that stays, for the probes of one issue on one environment: see `open_room`.

    ``over`` is why it takes no further probe; empty as long as it does.
    """

    def __init__(self, engine: Engine, layout: Layout, place: Place, session: SandboxSession) -> None:
        self.engine = engine
        self.layout = layout
        self.over = ""
        self._place = place
        self._session = session

    def probe(self, task: Task) -> Probe:
        """As `run_probe`, in this room. Memory and disk are as it was opened with.

        Raises:
            InfraError: the engine or the supervisor failed; the testcase may not have run. The room is over.
        """
        unable = _unable(self.engine, task)
        if unable is not None:
            return unable
        job = _job(self._place, self.layout, task)
        job["scratch"] = SCRATCH
        self.over = "its last probe did not come to an end"
        report = self._session.send_request(msgspec.json.encode(job) + b"\n", _room(task, more_s=PRELOAD_S))
        probe = read_report(self.engine.name, task, report)
        if report.ended == Exited(code=0):
            self.over = read_records(report.stdout).spent
        # The group's counter has seen all probes, and the zygote.
        peaks = (step.record.peak_bytes for step in probe.steps if step.record is not None)
        return replace(probe, peak_bytes=max(peaks, default=0))


@contextlib.contextmanager
def open_room(engine: Engine, layout: Layout, *, limits: Limits, run_id: str) -> Iterator[Room]:
    """A sandbox for many probes, each of which finds it as the first did; everything is killed on the way out.

    Raises:
        InfraError: the engine could not start it, or can't keep one open.
    """
    if not isinstance(engine, SessionEngine):
        raise InfraError(f"{engine.name} keeps no sandbox open: run each probe by itself")
    with shown_inside(layout, remapped=True, probe_file=None) as place:
        lasting = msgspec.structs.replace(limits, wall_s=SESSION_S)
        with engine.open_session(_spec(place, layout, {}, lasting, run_id)) as session:
            yield Room(engine, layout, place, session)


def _job(place: Place, layout: Layout, task: Task) -> dict[str, object]:
    """What the supervisor is told: see its own description."""
    libraries = _libraries(place, layout)
    inside = {name: place.path(value) for name, value in {**task.variables, **task.conditions.early}.items()}
    if "LD_LIBRARY_PATH" in inside and libraries:
        inside["LD_LIBRARY_PATH"] += ":" + libraries["LD_LIBRARY_PATH"]
    path = f"{place.path(GUEST_ENV)}/bin:/usr/bin:/bin"
    return {
        "files": task.testcase.files,
        "steps": [_step_job(step, task, place) for step in task.testcase.steps],
        "wall_s": task.limits.wall_s,
        "cpu_s": cpu_time.compute_allowance(task.limits),
        "environment": {"LANG": "C.UTF-8", "PATH": path, **libraries, **inside},
        "limits": {
            "output_bytes": min(MAX_STREAM_BYTES, task.limits.output_bytes),
            "file_bytes": task.limits.disk_bytes,
        },
        "probe_file": None if task.probe_file is None else place.path(task.probe_file),
        "late": conditions.set_threads(task.conditions.threads, task.guest),
        "perturb": task.conditions.perturb,
        "seed": task.conditions.seed,
        "compile_functions": task.guest.compile_functions,
        "reports_at_exit": task.guest.reports_at_exit,
    }


def _step_job(step: tuple[str, ...], task: Task, place: Place) -> dict[str, object]:
    argv = _argv(step, task, place)
    job: dict[str, object] = {"argv": argv, "timeout_s": task.limits.wall_s}
    job["prints_stack"] = _prints_stack(argv[0], task)
    script = (
        script_of(step, task.testcase) if task.conditions.scripts and not hides_the_library(task.testcase) else None
    )
    if script is None:
        return job
    preload = leading_imports(task.testcase, script) if task.conditions.fork else ()
    return {**job, "script": True, "preload": list(preload) or None, "own": sorted(own_modules(task.testcase))}


def _prints_stack(program: str, task: Task) -> bool:
    """True for programs that print their stack on a fatal signal: Python does if its fault handler is on."""
    name = os.path.basename(program)
    if name.startswith("python"):
        return bool(task.variables.get("PYTHONFAULTHANDLER"))
    return name.startswith(task.guest.programs)


def _argv(step: tuple[str, ...], task: Task, place: Place) -> list[str]:
    """A tool becomes its path inside."""
    program = task.tools[step[0]]
    words = (program,) if isinstance(program, str) else program
    return [place.path(word) for word in (*words, *step[1:])]


def _libraries(place: Place, layout: Layout) -> dict[str, str]:
    return {} if layout.library_path is None else {"LD_LIBRARY_PATH": place.path(layout.library_path)}


def _room(task: Task, *, more_s: float = 0.0) -> Limits:
    """What the engine allows, so that the supervisor has time and room to report."""
    output = _STEP_RECORD_BYTES * (len(task.testcase.steps) + 1)
    wall_s = task.limits.wall_s + GRACE_S + more_s
    return msgspec.structs.replace(
        task.limits, wall_s=wall_s, cpu_s=cpu_time.compute_allowance(task.limits), output_bytes=output
    )


def _spec(place: Place, layout: Layout, job: dict[str, object], limits: Limits, run_id: str) -> SandboxSpec:
    return SandboxSpec(
        argv=(place.path(layout.guest_python), "-I", "-S", place.path(LAUNCHER), SUPERVISOR),
        mounts=place.mounts,
        environment=_libraries(place, layout),
        stdin=msgspec.json.encode(job) + b"\n",
        limits=limits,
        run_id=run_id,
    )
