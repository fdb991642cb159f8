"""One probe: a testcase, run once in a sandbox against one toolchain environment.

What ended it is put together here from two witnesses. The engine stands outside (memory, wall clock, did it start
at all); the supervisor stands inside, next to the testcase but out of its reach, and knows each step's wait status.
Where they differ, the engine is believed. Output is never asked.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from runners.compiled import compiled
from runners.environments import default_root
from runners.errors import InfraError
from runners.preload import leading_imports
from runners.protocol import (
    Ended,
    Exited,
    Hang,
    Limits,
    NotRun,
    OutOfMemory,
    Record,
    Signalled,
    StepResult,
    Testcase,
    TimedOut,
)
from runners.records import Records, StepRecord, read_record, read_records, without_our_frames
from runners.retarget import GUEST_HOOKS
from runners.sandbox import meter, owner
from runners.sandbox.contract import SCRATCH, Engine, EngineReport, Mount, Resident, SandboxSpec, Session
from runners.sandbox.process import uninterrupted

GUEST = Path(__file__).parent / "guest"
GUEST_SUPERVISOR = f"{GUEST_HOOKS}/start.py"
GUEST_PYTHON = "/opt/python"
GUEST_ENV = "/opt/env"

MAX_STREAM_BYTES = 60_000
"""Per step and stream, so that with the note on what was left out it fits ``protocol.Text``."""
GRACE_S = 15.0
"""What the engine gives the supervisor beyond the testcase's own time: to start, and to end a step that won't."""
_STEP_RECORD_BYTES = (2 * MAX_STREAM_BYTES + 3 * 50_000) * 6 + 256 * 1024
"""Longest record of a step: JSON writes a control character as six; the rest is for its argv."""
_MAX_FRAMES = 5
PRELOAD_S = 45.0
"""What a session's engine gives the supervisor to start a zygote, beyond the testcase's own time."""
SESSION_S = 3600.0
"""Longest life of a session, should we be killed without a chance to end it."""

Clock = Literal["wall", "processor"]
Program = str | tuple[str, ...]
"""A path inside, or a path and its first arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What of a toolchain environment is shown inside, as a virtual environment at ``/opt/env``.

    ``prefix`` and ``executable`` are the base interpreter's (``sys.base_prefix``); ``version`` is like "3.11".
    """

    site_packages: Path
    prefix: Path
    executable: Path
    version: str
    extra: tuple[Mount, ...] = ()

    @property
    def guest_prefix(self) -> str:
        """The system's interpreter is where it always is; any other appears at one place, whatever its home."""
        return "/usr" if self.prefix == Path("/usr") else GUEST_PYTHON

    @property
    def guest_python(self) -> str:
        return f"{self.guest_prefix}/bin/{self.executable.name}"

    @property
    def library_path(self) -> str | None:
        """Where a shared libpython lies; builds name its absolute path, which isn't there inside."""
        shared = self.guest_prefix != "/usr" and any((self.prefix / "lib").glob("libpython*.so*"))
        return f"{self.guest_prefix}/lib" if shared else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one run showed. ``steps`` has the steps that were started; ``ended`` is how the last of them ended."""

    steps: tuple[StepResult, ...]
    ended: Ended
    seconds: float
    peak_bytes: int
    engine: str
    probe_file: str | None = None
    """What a hook left in the job's probe file: the guest's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What may differ between two probes of one testcase. The default is a plain process."""

    scripts: bool = False
    """Run ``python FILE`` through ``script.py``, which leaves a record of how it failed."""
    fork: bool = False
    """Fork such steps from a process that has executed their first imports, where a session has one."""
    late: Mapping[str, str] = field(default_factory=dict)
    """Variables that a testcase's libraries read after their import: thread counts."""
    perturb: int | None = None
    """glibc fills new memory with the complement of this byte (1 … 255), freed memory with the byte."""
    seed: int | None = None
    """For random numbers that a Python step draws without a seed of its own; needs ``scripts``."""


PLAIN = Conditions()


def run_probe(
    engine: Engine,
    layout: Layout,
    testcase: Testcase,
    *,
    tools: Mapping[str, Program],
    environment: Mapping[str, str],
    limits: Limits,
    run_id: str,
    probe_file: str | None = None,
    devices: tuple[str, ...] = (),
    conditions: Conditions = PLAIN,
) -> Probe:
    """Run the testcase's steps in order until one fails, in a sandbox of its own.

    ``tools`` maps the first word of each step to what is executed inside; ``environment`` is all the steps get,
    beside PATH and HOME; ``probe_file`` is a path inside whose content is brought back.

    Raises:
        InfraError: the engine or the supervisor could not start; the testcase has not run.
    """
    unable = _unable(engine, testcase, tools)
    if unable is not None:
        return unable
    with uninterrupted(), _view(layout, remapped=engine.remaps_paths, probe_file=probe_file) as place:
        job = _job(place, layout, testcase, tools, environment, limits, probe_file, conditions)
        spec = _spec(place, layout, job, _room(testcase, limits), run_id)
        report = engine.run(replace(spec, devices=devices))
    return _judge(engine.name, testcase, limits, report)


def _unable(engine: Engine, testcase: Testcase, tools: Mapping[str, Program]) -> Probe | None:
    unknown = sorted({step[0] for step in testcase.steps} - tools.keys())
    if not unknown:
        return None
    why = f"this build has no program named {', '.join(unknown)}"
    return Probe(steps=(), ended=NotRun(why=why, cause="unavailable"), seconds=0.0, peak_bytes=0, engine=engine.name)


class Room:
    """A sandbox that stays, for the probes of one issue on one environment: see `open_room`.

    ``over`` is why it takes no further probe; empty as long as it does.
    """

    def __init__(self, engine: Engine, layout: Layout, place: _Place, session: Session) -> None:
        self.engine = engine
        self.layout = layout
        self.over = ""
        self._place = place
        self._session = session

    def probe(
        self,
        testcase: Testcase,
        *,
        tools: Mapping[str, Program],
        environment: Mapping[str, str],
        limits: Limits,
        probe_file: str | None = None,
        conditions: Conditions = PLAIN,
    ) -> Probe:
        """As `run_probe`, in this room. Memory and disk are as it was opened with.

        Raises:
            InfraError: the engine or the supervisor failed; the testcase may not have run. The room is over.
        """
        unable = _unable(self.engine, testcase, tools)
        if unable is not None:
            return unable
        job = _job(self._place, self.layout, testcase, tools, environment, limits, probe_file, conditions)
        job["scratch"] = SCRATCH
        self.over = "its last probe did not come to an end"
        report = self._session.ask(msgspec.json.encode(job) + b"\n", _room(testcase, limits, more_s=PRELOAD_S))
        probe = _judge(self.engine.name, testcase, limits, report)
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
    if not isinstance(engine, Resident):
        raise InfraError(f"{engine.name} keeps no sandbox open: run each probe by itself")
    with _view(layout, remapped=True, probe_file=None) as place:
        lasting = msgspec.structs.replace(limits, wall_s=SESSION_S)
        with engine.session(_spec(place, layout, {}, lasting, run_id)) as session:
            yield Room(engine, layout, place, session)


# ------------------------------------------------------------------------------------------- what is shown


@dataclass(frozen=True, slots=True)
class _Place:
    """Mounts, or for an engine without mounts the host's paths that stand for those inside."""

    mounts: tuple[Mount, ...]
    substitutes: Mapping[str, str]

    def path(self, text: str) -> str:
        """``text`` with each path inside replaced, the longest that fits first."""
        if not self.substitutes:
            return text
        known = "|".join(re.escape(guest) for guest in sorted(self.substitutes, key=len, reverse=True))
        return re.sub(rf"({known})(?![\w.-])", lambda match: self.substitutes[match[1]], text)


@contextlib.contextmanager
def _view(layout: Layout, *, remapped: bool, probe_file: str | None) -> Iterator[_Place]:
    """A virtual environment whose home is the base interpreter as seen from where it will run."""
    with owner.private_directory() as directory:
        view = directory / "env"
        library = view / "lib" / f"python{layout.version}"
        home = layout.guest_python if remapped else str(layout.executable)
        (view / "bin").mkdir(parents=True)
        library.mkdir(parents=True)
        lines = (f"home = {os.path.dirname(home)}", "include-system-site-packages = false", "")
        (view / "pyvenv.cfg").write_text("\n".join(lines))
        for name in ("python", "python3", f"python{layout.version}"):
            (view / "bin" / name).symlink_to(home)
        _open_to_all(view)
        if remapped:
            (library / "site-packages").mkdir(mode=0o755)  # a place to mount on
            yield _Place(_mounts(layout, view), {})
        else:
            (library / "site-packages").symlink_to(layout.site_packages)
            found = {} if probe_file is None else {probe_file: str(directory / "probe-file")}
            yield _Place((), {mount.guest: str(mount.host) for mount in _mounts(layout, view)} | found)


def _open_to_all(view: Path) -> None:
    """Readable by "nobody", whatever our umask."""
    for path in (view, *view.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)


def _mounts(layout: Layout, view: Path) -> tuple[Mount, ...]:
    prefix = () if layout.guest_prefix == "/usr" else (Mount(host=layout.prefix, guest=layout.guest_prefix),)
    return (
        *prefix,
        Mount(host=compiled(GUEST, layout.executable, default_root() / "guest"), guest=GUEST_HOOKS),
        Mount(host=view, guest=GUEST_ENV),
        Mount(host=layout.site_packages, guest=f"{GUEST_ENV}/lib/python{layout.version}/site-packages"),
        *layout.extra,
    )


def _job(
    place: _Place,
    layout: Layout,
    testcase: Testcase,
    tools: Mapping[str, Program],
    environment: Mapping[str, str],
    limits: Limits,
    probe_file: str | None,
    conditions: Conditions,
) -> dict[str, object]:
    """What the supervisor is told: see its own description."""
    libraries = _libraries(place, layout)
    inside = {name: place.path(value) for name, value in environment.items()}
    if "LD_LIBRARY_PATH" in inside and libraries:
        inside["LD_LIBRARY_PATH"] += ":" + libraries["LD_LIBRARY_PATH"]
    path = f"{place.path(GUEST_ENV)}/bin:/usr/bin:/bin"
    return {
        "files": testcase.files,
        "steps": [_step_job(step, testcase, tools, place, limits, conditions) for step in testcase.steps],
        "wall_s": limits.wall_s,
        "cpu_s": meter.allowance(limits),
        "environment": {"LANG": "C.UTF-8", "PATH": path, **libraries, **inside},
        "limits": {
            "output_bytes": min(MAX_STREAM_BYTES, limits.output_bytes),
            "file_bytes": limits.disk_bytes,
        },
        "probe_file": None if probe_file is None else place.path(probe_file),
        "late": dict(conditions.late),
        "perturb": conditions.perturb,
        "seed": conditions.seed,
    }


def _step_job(
    step: tuple[str, ...],
    testcase: Testcase,
    tools: Mapping[str, Program],
    place: _Place,
    limits: Limits,
    conditions: Conditions,
) -> dict[str, object]:
    job: dict[str, object] = {"argv": _argv(step, tools, place), "timeout_s": limits.wall_s}
    script = _script(step, testcase) if conditions.scripts else None
    if script is None:
        return job
    preload = leading_imports(testcase, script) if conditions.fork else ()
    return {**job, "script": True, "preload": list(preload) or None}


def _script(step: tuple[str, ...], testcase: Testcase) -> str | None:
    """The testcase's file that a step is about: ``python FILE``, or one of our hooks with the file in its words."""
    if step[0] != "python" or len(step) < 2:
        return None
    if step[1] in testcase.files:
        return step[1]
    hooked = step[1].startswith(f"{GUEST_HOOKS}/")
    return next((word for word in step[2:] if word in testcase.files), None) if hooked else None


def _libraries(place: _Place, layout: Layout) -> dict[str, str]:
    return {} if layout.library_path is None else {"LD_LIBRARY_PATH": place.path(layout.library_path)}


def _room(testcase: Testcase, limits: Limits, *, more_s: float = 0.0) -> Limits:
    """What the engine allows, so that the supervisor has time and room to report."""
    output = _STEP_RECORD_BYTES * (len(testcase.steps) + 1)
    wall_s = limits.wall_s + GRACE_S + more_s
    return msgspec.structs.replace(limits, wall_s=wall_s, cpu_s=meter.allowance(limits), output_bytes=output)


def _spec(place: _Place, layout: Layout, job: dict[str, object], limits: Limits, run_id: str) -> SandboxSpec:
    return SandboxSpec(
        argv=(place.path(layout.guest_python), "-I", "-S", place.path(GUEST_SUPERVISOR)),
        mounts=place.mounts,
        environment=_libraries(place, layout),
        stdin=msgspec.json.encode(job) + b"\n",
        limits=limits,
        run_id=run_id,
    )


def _argv(step: tuple[str, ...], tools: Mapping[str, Program], place: _Place) -> list[str]:
    """A tool becomes its path inside."""
    program = tools[step[0]]
    words = (program,) if isinstance(program, str) else program
    return [place.path(word) for word in (*words, *step[1:])]


# ------------------------------------------------------------------------------------------- what is believed


def _judge(engine: str, testcase: Testcase, limits: Limits, report: EngineReport) -> Probe:
    records = read_records(report.stdout)
    if records.error is not None:
        raise InfraError(f"the sandbox could not take the testcase: {records.error}")
    clock = report.ended.clock if isinstance(report.ended, TimedOut) else "wall"
    steps = tuple(_step(testcase, limits, number, record, clock) for number, record in enumerate(records.steps))
    ended = _ended(testcase, limits, report, records, steps)
    return Probe(
        steps=_with_truth(testcase, steps, ended, complete=records.end is not None),
        ended=ended,
        seconds=report.seconds,
        peak_bytes=report.peak_bytes,
        engine=engine,
        probe_file=None if records.end is None else records.end.probe_file,
    )


def _ended(
    testcase: Testcase, limits: Limits, report: EngineReport, records: Records, steps: tuple[StepResult, ...]
) -> Ended:
    """How the probe ended: the engine's word on memory and time, then the last step's."""
    if isinstance(report.ended, OutOfMemory):
        return OutOfMemory(limit_bytes=limits.memory_bytes)
    if isinstance(report.ended, TimedOut):
        told = records.end is not None and steps
        last = steps[-1].ended if told else None
        number = len(steps) - 1 if told else len(steps)
        # A step that ended by itself meanwhile has used up the time all the same.
        return last if isinstance(last, TimedOut) else _time_is_up(testcase, number, limits, report.ended.clock, None)
    if not records.started:
        words = report.stderr.decode("utf-8", "replace").strip()[-500:]
        raise InfraError(f"the sandbox started nothing ({report.ended}): {words or 'it said nothing'}")
    if records.end is None or records.broken is not None or not steps:
        # Only the testcase can do this: the supervisor always ends with a record, or with an error.
        why = records.broken or f"it ended with {report.ended}"
        return NotRun(why=f"the testcase brought down its supervisor in step {len(steps) + 1}: {why}"[:2000])
    return steps[-1].ended


def _step(testcase: Testcase, limits: Limits, number: int, step: StepRecord, clock: Clock) -> StepResult:
    argv = testcase.steps[number] if number < len(testcase.steps) else step.argv
    record = read_record(step, script=_script(argv, testcase) or "")
    return StepResult(
        argv=argv,
        ended=_step_ended(testcase, limits, number, step, record, clock),
        stdout=step.stdout,
        stderr=without_our_frames(step.stderr),
        seconds=step.seconds,
        truncated=step.truncated,
        record=record,
    )


def _step_ended(
    testcase: Testcase, limits: Limits, number: int, record: StepRecord, known: Record, clock: Clock
) -> Ended:
    if record.timed_out or record.used_up:
        which: Clock = "processor" if record.used_up else clock
        return _time_is_up(testcase, number, limits, which, known.hang)
    if os.WIFSIGNALED(record.status):
        return Signalled(code=os.WTERMSIG(record.status))
    return Exited(code=os.WEXITSTATUS(record.status))


def _with_truth(
    testcase: Testcase, steps: tuple[StepResult, ...], ended: Ended, *, complete: bool
) -> tuple[StepResult, ...]:
    """The steps, with what the engine knows better about the last one."""
    if not complete and len(steps) < len(testcase.steps):
        return (*steps, StepResult(argv=testcase.steps[len(steps)], ended=ended))
    if steps and isinstance(ended, OutOfMemory | TimedOut):
        return (*steps[:-1], msgspec.structs.replace(steps[-1], ended=ended))
    return steps


_DOING = {
    ("computing", "testcase"): "the testcase's own code computes",
    ("computing", "compiler"): "the compiler computes",
    ("computing", "compiled"): "the compiled program or its runtime computes",
    ("computing", "library"): "a library computes",
    ("waiting", "testcase"): "the testcase waits, no thread computes",
    ("waiting", "compiler"): "the compiler waits, no thread computes: a deadlock, or it waits for something outside",
    ("waiting", "compiled"): "the compiled program or its runtime waits, no thread computes: a deadlock",
    ("waiting", "library"): "a library waits, no thread computes",
}


def _time_is_up(testcase: Testcase, number: int, limits: Limits, clock: Clock, hang: Hang | None) -> TimedOut:
    after = f"{limits.wall_s:g} s" if clock == "wall" else f"{meter.allowance(limits):g} s of processor time"
    return TimedOut(where=_where(testcase, number, after, hang), clock=clock)


def _where(testcase: Testcase, number: int, after: str, hang: Hang | None) -> str:
    """Which step, what it was doing, and its innermost frames, as far as they are known."""
    argv = " ".join(testcase.steps[min(number, len(testcase.steps) - 1)])[:200]
    text = f"step {number + 1} ({argv}), after {after}"
    if hang is None:
        return text
    doing = _DOING.get((hang.doing, hang.place), "")
    text += f"; {doing}" if doing else ""
    frames = [f"{frame.file}:{frame.line} in {frame.function}" for frame in hang.frames[:_MAX_FRAMES]]
    text += f"; at {' < '.join(frames)}" if frames else ""
    return text + (f"; in native code at {' < '.join(hang.native[:_MAX_FRAMES])}" if hang.native else "")
