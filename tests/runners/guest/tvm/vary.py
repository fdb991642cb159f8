"""The programs beside this file, run in a room under chosen conditions, as the workbench does it for a testcase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.diagnosis.nondeterminism import AS_IT_IS, Rerun, Reruns, Setup, record_rerun, rerun_varied
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import derive_conditions
from runners.sandbox.bubblewrap import Bubblewrap
from tests.runners.guest.tvm.sweep import PROGRAMS, environment

LIMITS = Limits(wall_s=60)


@contextmanager
def repeating(version: str) -> Iterator[Callable[[str], Reruns]]:
    """A function that repeats a program, named as in ``sweep.programs``, on a release of TVM."""
    used = environment(version)
    with open_probe_session(Bubblewrap(), make_layout(used), limits=LIMITS, run_id="vary") as room:

        def run(program: str, setup: Setup) -> Rerun | None:
            code = (PROGRAMS / f"{program}.repro").read_text()
            how = derive_conditions(setup.varied, 1)
            how = replace(how, seed=setup.seed, fork=how.fork and setup != AS_IT_IS)
            testcase = Testcase(
                kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
            )
            probe = room.run(make_task(used, testcase, LIMITS, conditions=how))
            assert not room.spent, (program, room.spent)
            return record_rerun(setup, probe.ended, probe.steps)

        yield lambda program: rerun_varied(lambda setup: run(program, setup))
