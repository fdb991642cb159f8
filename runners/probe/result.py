"""Determine how a probe ended, from the engine's report and the supervisor's records.

The engine is outside the sandbox. It knows the memory, the wall clock, and whether the process started. The
supervisor is inside, out of the testcase's reach. It knows the wait status of each step. If they disagree, the
engine's report counts. The output of the testcase is never used.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from runners.core.errors import InfraError
from runners.core.failure.parse import drop_terminal_codes
from runners.core.protocol import Ended, Exited, Hang, NotRun, OutOfMemory, Record, Signalled, StepResult, TimedOut
from runners.probe.guest_records import Records, StepRecord, build_record, read_records, remove_own_frames
from runners.probe.task import ProbeResult, Task, find_script
from runners.sandbox.contract import EngineReport
from runners.sandbox.limits import cpu_time

Clock = Literal["wall", "processor"]
_MAX_FRAMES = 5


def read_report(engine: str, task: Task, report: EngineReport) -> ProbeResult:
    """Return the result of a task from an engine's report. ``engine`` is the name of the engine.

    Raises:
        InfraError: the supervisor could not start, or could not accept the testcase.
    """
    records = read_records(report.stdout)
    if records.error is not None:
        raise InfraError(f"the sandbox could not take the testcase: {records.error}")
    clock = report.ended.clock if isinstance(report.ended, TimedOut) else "wall"
    steps = tuple(_read_step(task, number, record, clock) for number, record in enumerate(records.steps))
    ended = _judge_end(task, report, records, steps)
    return ProbeResult(
        steps=_correct_last_step(task, steps, ended, complete=records.end is not None),
        ended=ended,
        seconds=report.seconds,
        peak_bytes=report.peak_bytes,
        engine=engine,
        probe_file=None if records.end is None else records.end.probe_file,
    )


def _judge_end(task: Task, report: EngineReport, records: Records, steps: tuple[StepResult, ...]) -> Ended:
    """Return the end of the probe: the engine's report of memory and time first, else the end of the last step."""
    if isinstance(report.ended, OutOfMemory):
        return OutOfMemory(limit_bytes=task.limits.memory_bytes)
    if isinstance(report.ended, TimedOut):
        has_end = records.end is not None and steps
        last = steps[-1].ended if has_end else None
        number = len(steps) - 1 if has_end else len(steps)
        # A last step that ended at the last moment has used up the time too.
        return last if isinstance(last, TimedOut) else _make_timeout(task, number, report.ended.clock, None)
    if not records.started:
        words = report.stderr.decode("utf-8", "replace").strip()[-500:]
        raise InfraError(f"the sandbox started nothing ({report.ended}): {words or 'no error output'}")
    if records.end is None or records.broken is not None or not steps:
        # Only the testcase can cause this, because the supervisor always ends with a record or an error.
        why = records.broken or f"it ended with {report.ended}"
        return NotRun(why=f"the testcase brought down its supervisor in step {len(steps) + 1}: {why}"[:2000])
    return steps[-1].ended


def _read_step(task: Task, number: int, step: StepRecord, clock: Clock) -> StepResult:
    argv = task.testcase.steps[number] if number < len(task.testcase.steps) else step.argv
    record = build_record(step, task.guest, script=find_script(argv, task.testcase) or "")
    return StepResult(
        argv=argv,
        ended=_read_step_end(task, number, step, record, clock),
        # TVM colours the programs that it prints, even into a pipe. A quoted program has no colours.
        stdout=drop_terminal_codes(step.stdout),
        stderr=remove_own_frames(drop_terminal_codes(step.stderr)),
        seconds=step.seconds,
        truncated=step.truncated,
        filtered=msgspec.UNSET if step.filtered is None else drop_terminal_codes(step.filtered),
        record=record,
    )


def _read_step_end(task: Task, number: int, record: StepRecord, known: Record, clock: Clock) -> Ended:
    if record.timed_out or record.used_up:
        which: Clock = "processor" if record.used_up else clock
        return _make_timeout(task, number, which, known.hang)
    if os.WIFSIGNALED(record.status):
        return Signalled(code=os.WTERMSIG(record.status))
    return Exited(code=os.WEXITSTATUS(record.status))


def _correct_last_step(
    task: Task, steps: tuple[StepResult, ...], ended: Ended, *, complete: bool
) -> tuple[StepResult, ...]:
    """Return the steps. The end of the last one is replaced by the engine's report."""
    if not complete and len(steps) < len(task.testcase.steps):
        return (*steps, StepResult(argv=task.testcase.steps[len(steps)], ended=ended))
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


def _make_timeout(task: Task, number: int, clock: Clock, hang: Hang | None) -> TimedOut:
    limits = task.limits
    after = (
        f"{limits.wall_s:g} s" if clock == "wall" else f"{cpu_time.compute_allowance(limits):g} s of processor time"
    )
    return TimedOut(where=_describe_place(task, number, after, hang), clock=clock)


def _describe_place(task: Task, number: int, after: str, hang: Hang | None) -> str:
    """Describe the step, its activity and its innermost frames, as far as they are known."""
    argv = " ".join(task.testcase.steps[min(number, len(task.testcase.steps) - 1)])[:200]
    text = f"step {number + 1} ({argv}), after {after}"
    if hang is None:
        return text
    doing = _DOING.get((hang.doing, hang.place), "")
    text += f"; {doing}" if doing else ""
    frames = [f"{frame.file}:{frame.line} in {frame.function}" for frame in hang.frames[:_MAX_FRAMES]]
    text += f"; at {' < '.join(frames)}" if frames else ""
    return text + (f"; in native code at {' < '.join(hang.native[:_MAX_FRAMES])}" if hang.native else "")
