"""Rerun the programs in this folder in a session under varied conditions, as the workbench does for a testcase.

Two runs come first, as in a search. The reruns follow if the two and one more do not agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from runners.core.conditions import choose_conditions
from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.diagnosis.nondeterminism import EarlierRun, Rerun, Reruns, Setup, is_steady, record_rerun, rerun_varied
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import Conditions, ProbeResult, derive_conditions
from runners.sandbox.bubblewrap import Bubblewrap
from tests.runners.guest.tvm.sweep import PROGRAMS, environment

LIMITS = Limits(wall_s=60)


@contextmanager
def open_reruns(version: str) -> Iterator[Callable[[str], Reruns]]:
    """Yield a function that reruns a program, named as in ``sweep.programs``, on a release of TVM."""
    used = environment(version)
    with open_probe_session(Bubblewrap(), make_layout(used), limits=LIMITS, run_id="vary") as session:

        def probe(program: str, conditions: Conditions) -> ProbeResult:
            # All runs share one sandbox here. A fresh setup gets a process of its own.
            code = (PROGRAMS / f"{program}.repro").read_text()
            testcase = Testcase(
                kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
            )
            result = session.run(make_task(used, testcase, LIMITS, conditions=conditions))
            assert not session.spent, (program, session.spent)
            return result

        def run_setup(program: str, setup: Setup) -> Rerun | None:
            conditions = derive_conditions(setup.varied, 1)
            conditions = replace(conditions, seed=setup.seed, fork=conditions.fork and not setup.fresh)
            result = probe(program, conditions)
            return record_rerun(setup, result.ended, result.steps)

        def run_attempt(program: str, attempt: int) -> EarlierRun:
            under = choose_conditions(attempt, memory=True)
            result = probe(program, derive_conditions(under, attempt))
            return EarlierRun(varied=under, ended=result.ended, steps=result.steps)

        def rerun(program: str) -> Reruns:
            earlier = [run_attempt(program, attempt) for attempt in (1, 2)]
            screened: list[Rerun] = []

            def run(setup: Setup) -> Rerun | None:
                made = run_setup(program, setup)
                screened.extend([made] if made is not None else ())
                return made

            if is_steady(earlier, run):
                return Reruns(runs=tuple(screened))
            return rerun_varied(lambda setup: run_setup(program, setup))

        yield rerun
