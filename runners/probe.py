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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from runners.errors import InfraError
from runners.protocol import (
    Ended,
    Exited,
    Limits,
    NotRun,
    OutOfMemory,
    Signalled,
    StepResult,
    Testcase,
    Text,
    TimedOut,
)
from runners.sandbox import owner
from runners.sandbox.contract import Engine, EngineReport, Mount, SandboxSpec
from runners.sandbox.process import uninterrupted

SUPERVISOR = Path(__file__).parent / "guest" / "supervisor.py"
GUEST_SUPERVISOR = "/opt/reprobot/supervisor.py"
GUEST_PYTHON = "/opt/python"
GUEST_ENV = "/opt/env"

MAX_STREAM_BYTES = 60_000
"""Per step and stream, so that with the note on what was left out it fits ``protocol.Text``."""
GRACE_S = 15.0
"""What the engine gives the supervisor beyond the testcase's own time: to start, and to end a step that won't."""
_STEP_RECORD_BYTES = 2 * MAX_STREAM_BYTES * 6 + 256 * 1024
"""Longest record of a step: JSON writes a control character as six; the rest is for its argv."""
_MAX_FRAMES = 5

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
) -> Probe:
    """Run the testcase's steps in order until one fails.

    ``tools`` maps the first word of each step to what is executed inside; ``environment`` is all the steps get,
    beside PATH and HOME; ``probe_file`` is a path inside whose content is brought back.

    Raises:
        InfraError: the engine or the supervisor could not start; the testcase has not run.
    """
    unknown = sorted({step[0] for step in testcase.steps} - tools.keys())
    if unknown:
        why = f"this build has no program named {', '.join(unknown)}"
        return Probe(
            steps=(), ended=NotRun(why=why, cause="unavailable"), seconds=0.0, peak_bytes=0, engine=engine.name
        )
    with uninterrupted(), _view(layout, remapped=engine.remaps_paths, probe_file=probe_file) as place:
        spec = _spec(place, layout, testcase, tools, environment, limits, run_id, probe_file)
        spec = replace(spec, devices=devices)
        report = engine.run(spec)
    return _judge(engine.name, testcase, limits, report)


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
        Mount(host=SUPERVISOR, guest=GUEST_SUPERVISOR),
        Mount(host=view, guest=GUEST_ENV),
        Mount(host=layout.site_packages, guest=f"{GUEST_ENV}/lib/python{layout.version}/site-packages"),
        *layout.extra,
    )


def _spec(
    place: _Place,
    layout: Layout,
    testcase: Testcase,
    tools: Mapping[str, Program],
    environment: Mapping[str, str],
    limits: Limits,
    run_id: str,
    probe_file: str | None,
) -> SandboxSpec:
    libraries = {} if layout.library_path is None else {"LD_LIBRARY_PATH": place.path(layout.library_path)}
    inside = {name: place.path(value) for name, value in environment.items()}
    if "LD_LIBRARY_PATH" in inside and libraries:
        inside["LD_LIBRARY_PATH"] += ":" + libraries["LD_LIBRARY_PATH"]
    path = f"{place.path(GUEST_ENV)}/bin:/usr/bin:/bin"
    job = {
        "files": testcase.files,
        "steps": [{"argv": _argv(step, tools, place), "timeout_s": limits.wall_s} for step in testcase.steps],
        "wall_s": limits.wall_s,
        "environment": {"LANG": "C.UTF-8", "PATH": path, **libraries, **inside},
        "limits": {
            "output_bytes": min(MAX_STREAM_BYTES, limits.output_bytes),
            "file_bytes": limits.disk_bytes,
        },
        "probe_file": None if probe_file is None else place.path(probe_file),
    }
    room = _STEP_RECORD_BYTES * (len(testcase.steps) + 1)
    return SandboxSpec(
        argv=(place.path(layout.guest_python), "-I", "-S", place.path(GUEST_SUPERVISOR)),
        mounts=place.mounts,
        environment=libraries,
        stdin=msgspec.json.encode(job) + b"\n",
        limits=msgspec.structs.replace(limits, wall_s=limits.wall_s + GRACE_S, output_bytes=room),
        run_id=run_id,
    )


def _argv(step: tuple[str, ...], tools: Mapping[str, Program], place: _Place) -> list[str]:
    """A tool becomes its path inside."""
    program = tools[step[0]]
    words = (program,) if isinstance(program, str) else program
    return [place.path(word) for word in (*words, *step[1:])]


# ------------------------------------------------------------------------------------------- what is believed


class _StepRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argv: tuple[str, ...]
    status: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    timed_out: bool
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    maxrss_bytes: int
    stdout: Text
    stderr: Text
    truncated: bool


class _Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pid: int
    python: str


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    probe_file: Text | None


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One record: exactly one of these."""

    started: _Started | None = None
    step: _StepRecord | None = None
    end: _End | None = None
    error: Text | None = None


@dataclass(frozen=True, slots=True)
class _Records:
    """What the supervisor said. ``broken`` is why we stopped reading."""

    started: bool
    steps: tuple[_StepRecord, ...]
    end: _End | None
    error: str | None
    broken: str | None


def _read_records(data: bytes) -> _Records:
    started, steps, end, error, broken = False, [], None, None, None
    for line in data.splitlines():
        try:
            record = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError) as reason:
            broken = str(reason)
            break
        started = started or record.started is not None
        if record.step is not None:
            steps.append(record.step)
        end, error = record.end or end, record.error or error
    return _Records(started, tuple(steps), end, error, broken)


def _judge(engine: str, testcase: Testcase, limits: Limits, report: EngineReport) -> Probe:
    records = _read_records(report.stdout)
    if records.error is not None:
        raise InfraError(f"the sandbox could not take the testcase: {records.error}")
    steps = tuple(_step(testcase, limits, number, record) for number, record in enumerate(records.steps))
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
    testcase: Testcase, limits: Limits, report: EngineReport, records: _Records, steps: tuple[StepResult, ...]
) -> Ended:
    """How the probe ended: the engine's word on memory and time, then the last step's."""
    if isinstance(report.ended, OutOfMemory):
        return OutOfMemory(limit_bytes=limits.memory_bytes)
    if isinstance(report.ended, TimedOut):
        return TimedOut(where=_where(testcase, len(steps), limits.wall_s, ""))
    if not records.started:
        words = report.stderr.decode("utf-8", "replace").strip()[-500:]
        raise InfraError(f"the sandbox started nothing ({report.ended}): {words or 'it said nothing'}")
    if records.end is None or records.broken is not None or not steps:
        # Only the testcase can do this: the supervisor always ends with a record, or with an error.
        why = records.broken or f"it ended with {report.ended}"
        return NotRun(why=f"the testcase brought down its supervisor in step {len(steps) + 1}: {why}"[:2000])
    return steps[-1].ended


def _step(testcase: Testcase, limits: Limits, number: int, record: _StepRecord) -> StepResult:
    return StepResult(
        argv=testcase.steps[number] if number < len(testcase.steps) else record.argv,
        ended=_step_ended(testcase, limits, number, record),
        stdout=record.stdout,
        stderr=record.stderr,
        seconds=record.seconds,
        truncated=record.truncated,
    )


def _step_ended(testcase: Testcase, limits: Limits, number: int, record: _StepRecord) -> Ended:
    if record.timed_out:
        return TimedOut(where=_where(testcase, number, limits.wall_s, record.stderr))
    if os.WIFSIGNALED(record.status):
        return Signalled(code=os.WTERMSIG(record.status))
    return Exited(code=os.WEXITSTATUS(record.status))


def _with_truth(
    testcase: Testcase, steps: tuple[StepResult, ...], ended: Ended, *, complete: bool
) -> tuple[StepResult, ...]:
    """The steps, with what the engine knows better about the last one."""
    if not complete and len(steps) < len(testcase.steps):
        return (*steps, StepResult(argv=testcase.steps[len(steps)], ended=ended))
    if steps and isinstance(ended, OutOfMemory):
        return (*steps[:-1], msgspec.structs.replace(steps[-1], ended=ended))
    return steps


_FRAME = re.compile(r'^ +File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,9}) in (?P<name>[^\n]{1,200})$', re.M)


def _where(testcase: Testcase, number: int, wall_s: float, stderr: str) -> str:
    """Which step, and the innermost frames that Python's fault handler printed when it was told to stop."""
    argv = " ".join(testcase.steps[min(number, len(testcase.steps) - 1)])[:200]
    text = f"step {number + 1} ({argv}), after {wall_s:g} s"
    _, found, dump = stderr.rpartition("(most recent call first):")
    frames = [f"{m['file']}:{m['line']} in {m['name']}" for m in _FRAME.finditer(dump)] if found else []
    return f"{text}; at {' < '.join(frames[:_MAX_FRAMES])}" if frames else text
