"""What an engine reports → how a probe ended.

Two witnesses are put together. The engine stands outside (memory, wall clock, did it start at all); the supervisor
stands inside, next to the testcase but out of its reach, and knows each step's wait status. Where they differ, the
engine is believed. Output is never asked.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from runners.core.errors import InfraError
from runners.core.protocol import Ended, Exited, Hang, NotRun, OutOfMemory, Record, Signalled, StepResult, TimedOut
from runners.probe.guest_records import Records, StepRecord, read_record, read_records, without_our_frames
from runners.probe.task import Probe, Task, script_of
from runners.sandbox.contract import EngineReport
from runners.sandbox.limits import cpu_time

Clock = Literal["wall", "processor"]
_MAX_FRAMES = 5


def read_report(engine: str, task: Task, report: EngineReport) -> Probe:
    """What an engine of this name reports of a task.

    Raises:
        InfraError: the supervisor could not start, or could not take the testcase.
    """
    records = read_records(report.stdout)
    if records.error is not None:
        raise InfraError(f"the sandbox could not take the testcase: {records.error}")
    clock = report.ended.clock if isinstance(report.ended, TimedOut) else "wall"
    steps = tuple(_step(task, number, record, clock) for number, record in enumerate(records.steps))
    ended = _ended(task, report, records, steps)
    return Probe(
        steps=_with_truth(task, steps, ended, complete=records.end is not None),
        ended=ended,
        seconds=report.seconds,
        peak_bytes=report.peak_bytes,
        engine=engine,
        probe_file=None if records.end is None else records.end.probe_file,
    )


def _ended(task: Task, report: EngineReport, records: Records, steps: tuple[StepResult, ...]) -> Ended:
    """How the probe ended: the engine's word on memory and time, then the last step's."""
    if isinstance(report.ended, OutOfMemory):
        return OutOfMemory(limit_bytes=task.limits.memory_bytes)
    if isinstance(report.ended, TimedOut):
        told = records.end is not None and steps
        last = steps[-1].ended if told else None
        number = len(steps) - 1 if told else len(steps)
        # A step that ended by itself meanwhile has used up the time all the same.
        return last if isinstance(last, TimedOut) else _time_is_up(task, number, report.ended.clock, None)
    if not records.started:
        words = report.stderr.decode("utf-8", "replace").strip()[-500:]
        raise InfraError(f"the sandbox started nothing ({report.ended}): {words or 'it said nothing'}")
    if records.end is None or records.broken is not None or not steps:
        # Only the testcase can do this: the supervisor always ends with a record, or with an error.
        why = records.broken or f"it ended with {report.ended}"
        return NotRun(why=f"the testcase brought down its supervisor in step {len(steps) + 1}: {why}"[:2000])
    return steps[-1].ended


def _step(task: Task, number: int, step: StepRecord, clock: Clock) -> StepResult:
    argv = task.testcase.steps[number] if number < len(task.testcase.steps) else step.argv
    record = read_record(step, task.guest, script=script_of(argv, task.testcase) or "")
    return StepResult(
        argv=argv,
        ended=_step_ended(task, number, step, record, clock),
        stdout=step.stdout,
        stderr=without_our_frames(step.stderr),
        seconds=step.seconds,
        truncated=step.truncated,
        record=record,
    )


def _step_ended(task: Task, number: int, record: StepRecord, known: Record, clock: Clock) -> Ended:
    if record.timed_out or record.used_up:
        which: Clock = "processor" if record.used_up else clock
        return _time_is_up(task, number, which, known.hang)
    if os.WIFSIGNALED(record.status):
        return Signalled(code=os.WTERMSIG(record.status))
    return Exited(code=os.WEXITSTATUS(record.status))


def _with_truth(task: Task, steps: tuple[StepResult, ...], ended: Ended, *, complete: bool) -> tuple[StepResult, ...]:
    """The steps, with what the engine knows better about the last one."""
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


def _time_is_up(task: Task, number: int, clock: Clock, hang: Hang | None) -> TimedOut:
    limits = task.limits
    after = (
        f"{limits.wall_s:g} s" if clock == "wall" else f"{cpu_time.compute_allowance(limits):g} s of processor time"
    )
    return TimedOut(where=_where(task, number, after, hang), clock=clock)


def _where(task: Task, number: int, after: str, hang: Hang | None) -> str:
    """Which step, what it was doing, and its innermost frames, as far as they are known."""
    argv = " ".join(task.testcase.steps[min(number, len(task.testcase.steps) - 1)])[:200]
    text = f"step {number + 1} ({argv}), after {after}"
    if hang is None:
        return text
    doing = _DOING.get((hang.doing, hang.place), "")
    text += f"; {doing}" if doing else ""
    frames = [f"{frame.file}:{frame.line} in {frame.function}" for frame in hang.frames[:_MAX_FRAMES]]
    text += f"; at {' < '.join(frames)}" if frames else ""
    return text + (f"; in native code at {' < '.join(hang.native[:_MAX_FRAMES])}" if hang.native else "")
