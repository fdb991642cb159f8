"""Rerun the programs in this folder in a session under varied conditions, as the workbench does for a testcase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.diagnosis.nondeterminism import Rerun, Reruns, Setup, record_rerun, rerun_varied
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import derive_conditions
from runners.sandbox.bubblewrap import Bubblewrap
from tests.runners.guest.tvm.sweep import PROGRAMS, environment

LIMITS = Limits(wall_s=60)


@contextmanager
def open_reruns(version: str) -> Iterator[Callable[[str], Reruns]]:
    """Yield a function that reruns a program, named as in ``sweep.programs``, on a release of TVM."""
    used = environment(version)
    with open_probe_session(Bubblewrap(), make_layout(used), limits=LIMITS, run_id="vary") as session:

        def run_program(program: str, setup: Setup) -> Rerun | None:
            # All runs share one sandbox here. A fresh setup gets a process of its own.
            code = (PROGRAMS / f"{program}.repro").read_text()
            conditions = derive_conditions(setup.varied, 1)
            conditions = replace(conditions, seed=setup.seed, fork=conditions.fork and not setup.fresh)
            testcase = Testcase(
                kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
            )
            probe = session.run(make_task(used, testcase, LIMITS, conditions=conditions))
            assert not session.spent, (program, session.spent)
            return record_rerun(setup, probe.ended, probe.steps)

        yield lambda program: rerun_varied(lambda setup: run_program(program, setup))
