"""The means of a diagnoser for tests: scripted runs in the place of sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runners.core.protocol import Observation, Testcase, Variant
from runners.core.toolchain.diagnosis import Diagnoser, Diagnosis, Failure, Means
from runners.diagnosis.diagnose import diagnose_failure
from runners.rewrite.testcase import retarget_testcase

Run = Callable[[str, Variant, Testcase, str], Observation]


def _run_nothing(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
    raise AssertionError(f"nothing should run, and {variant} did on {version}")


def make_means(run: Run = _run_nothing, *, hook: Callable[[str, Testcase], str] = lambda _v, _t: "") -> Means:
    """Means that retarget as the workbench does; ``hook`` returns the lines of a guest program."""
    return Means(run=run, run_hook=hook, retarget=retarget_testcase)


def diagnose_once(diagnosers: Sequence[Diagnoser], failure: Failure, means: Means) -> Diagnosis:
    """A diagnosis by these diagnosers, without reruns."""
    return diagnose_failure(failure, diagnosers, means, lambda _version, _testcase, _setup: None)
