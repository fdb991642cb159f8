"""The times of an investigation: its stages and the runs that were made, from its start."""

from __future__ import annotations

from collections.abc import Iterator

from runners.core.progress import Silent
from runners.core.protocol import Exited, NotRun, Testcase, TestcaseKind, TimedRun, TimedStage, Times
from runners.core.runs import RunRequest, RunResult
from runners.workbench.stopwatch import MOST, Stopwatch

CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
ASKED = RunRequest(version="0.27.0", device="llvm", testcase=CASE)


def count_seconds() -> Iterator[float]:
    yield from map(float, range(100, 10_000))


def test_a_run_and_its_stage_are_noted_from_the_start() -> None:
    watch = Stopwatch(count_seconds().__next__)
    execute = watch.time_runs(lambda _: RunResult(ended=Exited(code=1), seconds=0.4))
    with watch.time_stages(Silent()).stage("matrix"):
        execute(ASKED)
    assert watch.times == Times(
        stages=(TimedStage(name="matrix", begin=1, end=4),),
        runs=(TimedRun(version="0.27.0", device="llvm", begin=2, end=3, seconds=0.4),),
    )


def test_a_run_that_was_not_made_has_no_time() -> None:
    watch = Stopwatch()
    watch.time_runs(lambda _: RunResult(ended=NotRun(why="no such build")))(ASKED)
    assert watch.times.runs == ()


def test_stages_inside_of_stages_are_left_out() -> None:
    """Their names may hold words of ours that the wire format does not list."""
    watch = Stopwatch()
    sink = watch.time_stages(Silent())
    with sink.stage("between releases"), sink.stage("looking for builds between the two"):
        pass
    assert [stage.name for stage in watch.times.stages] == ["between releases"]


def test_the_number_of_noted_runs_is_limited() -> None:
    """More would make the result file one that the bot refuses."""
    watch = Stopwatch()
    execute = watch.time_runs(lambda _: RunResult(ended=Exited(code=0)))
    for _ in range(MOST + 5):
        execute(ASKED)
    assert len(watch.times.runs) == MOST
