"""Run a testcase once in a toolchain environment: in its own sandbox, or in a session of several probes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from runners.core import conditions
from runners.core.errors import InfraError
from runners.core.failure.printed.filters import describe_pipe, read_pipe
from runners.core.protocol import Exited, Limits, NotRun
from runners.core.toolchain.guest import LAUNCHER
from runners.probe.guest_records import read_records
from runners.probe.imports import are_fast_after_base, find_leading_imports, hides_stdlib, list_own_modules
from runners.probe.layout import GUEST_ENV, Layout, View, open_view
from runners.probe.result import read_report
from runners.probe.task import ProbeResult, Task, find_script
from runners.sandbox.contract import SCRATCH, Engine, SandboxSession, SandboxSpec, SessionEngine
from runners.sandbox.limits import cpu_time
from runners.sandbox.process import defer_interrupts

SUPERVISOR = "probe.supervisor"
MAX_STREAM_BYTES = 60_000
"""Limit for each stream of a step. With the note on the omitted part, the stream fits ``protocol.Text``."""
GRACE_S = 15.0
"""Additional time for the supervisor: to start, and to kill a step that does not end."""
_STEP_RECORD_BYTES = (3 * MAX_STREAM_BYTES + 3 * 50_000) * 6 + 256 * 1024
"""Longest record of a step. JSON writes a control character as six characters; the rest is for the argv."""
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 3000
"""Limits of Linux: names of 255 bytes and paths of 4095, of which the folder needs a part."""
PRELOAD_S = 45.0
"""Additional time for the supervisor of a session to start a zygote."""
SESSION_S = 3600.0
"""Longest life of a session, in case this process is killed before it can end the session."""


def run_probe(
    engine: Engine, layout: Layout, task: Task, *, run_id: str, devices: tuple[str, ...] = ()
) -> ProbeResult:
    """Run the testcase's steps in order, up to the first that fails, in a new sandbox.

    Raises:
        InfraError: the engine or the supervisor could not start; the testcase has not run.
    """
    refused = _refuse_unfit_task(engine, task)
    if refused is not None:
        return refused
    with defer_interrupts(), open_view(layout, remapped=engine.remaps_paths, probe_file=task.probe_file) as view:
        spec = _make_spec(view, layout, _make_job(view, layout, task), _widen_limits(task), run_id)
        report = engine.run(replace(spec, devices=devices))
    return read_report(engine.name, task, report)


def _refuse_unfit_task(engine: Engine, task: Task) -> ProbeResult | None:
    """Return the result of a task that no sandbox can accept. The testcase is the reason, not a failure of ours."""
    unknown = sorted({step[0] for step in task.testcase.steps} - task.tools.keys())
    why = (
        f"this build has no program named {', '.join(unknown)}" if unknown else find_file_problem(task.testcase.files)
    )
    if not why:
        return None
    return ProbeResult(
        steps=(), ended=NotRun(why=why, cause="unavailable"), seconds=0.0, peak_bytes=0, engine=engine.name
    )


def find_file_problem(names: Iterable[str]) -> str:
    """Return the reason why files with these names cannot be written into one folder. Empty if they can."""
    every = frozenset(names)
    for name in sorted(every):
        shown = ascii(name[:100])
        parts = name.split("/")
        if "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
            return f"the testcase has a file named {shown}, which is no path below its folder"
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
        if max(map(len, encoded)) > MAX_NAME_BYTES or sum(map(len, encoded)) + len(parts) > MAX_PATH_BYTES:
            return f"the testcase has a file with a name that is too long ({shown} …)"
        if any("/".join(parts[:end]) in every for end in range(1, len(parts))):
            return f"the testcase has a file {shown} inside another file"
    return ""


class ProbeSession:
    """A sandbox that stays open for the probes of one issue in one environment. See `open_probe_session`.

    ``spent`` is the reason why the session accepts no further probe. Empty while it does.
    """

    def __init__(
        self, engine: Engine, layout: Layout, view: View, session: SandboxSession, *, is_shared: bool = False
    ) -> None:
        self.engine = engine
        self.layout = layout
        self.is_shared = is_shared
        self.spent = ""
        self._view = view
        self._session = session

    def run(self, task: Task) -> ProbeResult:
        """Run a testcase as `run_probe` does, with the memory and disk limits of the session.

        Raises:
            InfraError: the engine or the supervisor failed; the testcase may not have run. The session is spent.
        """
        refused = _refuse_unfit_task(self.engine, task)
        if refused is not None:
            return refused
        job = _make_job(self._view, self.layout, task, is_shared=self.is_shared)
        job["scratch"] = SCRATCH
        self.spent = "its last probe did not come to an end"
        report = self._session.send_request(msgspec.json.encode(job) + b"\n", _widen_limits(task, more_s=PRELOAD_S))
        probe = read_report(self.engine.name, task, report)
        if report.ended == Exited(code=0):
            self.spent = read_records(report.stdout).spent
        # The group's counter includes all probes, and the zygote.
        peaks = (step.record.peak_bytes for step in probe.steps if step.record is not None)
        return replace(probe, peak_bytes=max(peaks, default=0))


@contextlib.contextmanager
def open_probe_session(
    engine: Engine, layout: Layout, *, limits: Limits, run_id: str, is_shared: bool = False
) -> Iterator[ProbeSession]:
    """Open a sandbox for many probes. Each probe finds it in its initial state. The exit kills everything.

    With ``is_shared``, the probes may belong to several issues. They are forked from one process that has imported
    only the compiler, if their other imports are cheap.

    Raises:
        InfraError: the engine could not start the sandbox, or cannot keep a sandbox open.
    """
    if not isinstance(engine, SessionEngine):
        raise InfraError(f"{engine.name} keeps no sandbox open: run each probe by itself")
    with open_view(layout, remapped=True, probe_file=None) as view:
        lasting = msgspec.structs.replace(limits, wall_s=SESSION_S)
        with engine.open_session(_make_spec(view, layout, {}, lasting, run_id)) as session:
            yield ProbeSession(engine, layout, view, session, is_shared=is_shared)


def _make_job(view: View, layout: Layout, task: Task, *, is_shared: bool = False) -> dict[str, object]:
    """Return the job for the supervisor. ``runners/guest/probe/supervisor.py`` describes the format."""
    libraries = _list_library_variables(view, layout)
    inside = {name: view.translate(value) for name, value in {**task.variables, **task.conditions.early}.items()}
    if "LD_LIBRARY_PATH" in inside and libraries:
        inside["LD_LIBRARY_PATH"] += ":" + libraries["LD_LIBRARY_PATH"]
    path = ":".join((f"{view.translate(GUEST_ENV)}/bin", *_list_tool_folders(task, view), "/usr/bin", "/bin"))
    return {
        "files": task.testcase.files,
        "steps": _make_step_jobs(task, view, is_shared=is_shared),
        "wall_s": task.limits.wall_s,
        "cpu_s": cpu_time.compute_allowance(task.limits),
        "environment": {"LANG": "C.UTF-8", "PATH": path, **libraries, **inside},
        "limits": {
            "output_bytes": min(MAX_STREAM_BYTES, task.limits.output_bytes),
            "file_bytes": task.limits.disk_bytes,
        },
        "probe_file": None if task.probe_file is None else view.translate(task.probe_file),
        "late": conditions.set_threads(task.conditions.threads, task.guest),
        "perturb": task.conditions.perturb,
        "seed": task.conditions.seed,
        "compile_functions": task.guest.compile_functions,
        "reports_at_exit": task.guest.reports_at_exit,
    }


def _list_tool_folders(task: Task, view: View) -> dict[str, None]:
    """Return the folders of the compiler's programs, so that a testcase can start them as on its author's machine."""
    listed = ((name, (tool,) if isinstance(tool, str) else tool) for name, tool in task.tools.items())
    own = (words[0] for name, words in listed if len(words) == 1 and os.path.basename(words[0]) == name != "python")
    return dict.fromkeys(os.path.dirname(view.translate(program)) for program in own)


def _make_step_jobs(task: Task, view: View, *, is_shared: bool) -> list[dict[str, object]]:
    jobs = [_make_step_job(step, task, view, is_shared=is_shared) for step in task.testcase.steps]
    pipe = read_pipe(task.testcase.read_filters())
    return jobs if pipe is None or not jobs else [*jobs[:-1], {**jobs[-1], "pipe": describe_pipe(pipe)}]


def _make_step_job(step: tuple[str, ...], task: Task, view: View, *, is_shared: bool) -> dict[str, object]:
    argv = _translate_argv(step, task, view)
    job: dict[str, object] = {"argv": argv, "timeout_s": task.limits.wall_s}
    job["prints_stack"] = _can_print_stack(argv[0], task)
    script = find_script(step, task.testcase) if task.conditions.scripts and not hides_stdlib(task.testcase) else None
    if script is None:
        return job
    preload = find_leading_imports(task.testcase, script) if task.conditions.fork else ()
    if is_shared and are_fast_after_base(preload, task.guest):
        preload = (task.guest.base_import,)
    return {**job, "script": True, "preload": list(preload) or None, "own": sorted(list_own_modules(task.testcase))}


def _can_print_stack(program: str, task: Task) -> bool:
    """True for a program that prints its stack on a fatal signal. Python does so with its fault handler."""
    name = os.path.basename(program)
    if name.startswith("python"):
        return bool(task.variables.get("PYTHONFAULTHANDLER"))
    return name.startswith(task.guest.programs)


def _translate_argv(step: tuple[str, ...], task: Task, view: View) -> list[str]:
    """Return the command of a step, with the tool's name replaced by its path inside."""
    program = task.tools[step[0]]
    words = (program,) if isinstance(program, str) else program
    return [view.translate(word) for word in (*words, *step[1:])]


def _list_library_variables(view: View, layout: Layout) -> dict[str, str]:
    return {} if layout.library_path is None else {"LD_LIBRARY_PATH": view.translate(layout.library_path)}


def _widen_limits(task: Task, *, more_s: float = 0.0) -> Limits:
    """Return the limits for the engine: the testcase's, plus time and output for the supervisor's own report."""
    output = _STEP_RECORD_BYTES * (len(task.testcase.steps) + 1)
    wall_s = task.limits.wall_s + GRACE_S + more_s
    return msgspec.structs.replace(
        task.limits, wall_s=wall_s, cpu_s=cpu_time.compute_allowance(task.limits), output_bytes=output
    )


def _make_spec(view: View, layout: Layout, job: dict[str, object], limits: Limits, run_id: str) -> SandboxSpec:
    return SandboxSpec(
        argv=(view.translate(layout.guest_python), "-I", "-S", view.translate(LAUNCHER), SUPERVISOR),
        mounts=view.mounts,
        environment=_list_library_variables(view, layout),
        stdin=msgspec.json.encode(job) + b"\n",
        limits=limits,
        run_id=run_id,
    )
