"""Hangs on a real compiler: the slow or waiting part, and its owner."""

from __future__ import annotations

import pytest

from runners.core.protocol import Hang, Testcase, TestcaseKind, TimedOut
from runners.probe.task import ProbeResult
from runners.sandbox.bubblewrap import Bubblewrap
from tests.runners.guest.script import hangs
from tests.runners.guest.tvm import sweep

pytestmark = [pytest.mark.compilers, pytest.mark.sandbox]

VERSION = "0.27.0"


def stopped(testcase: Testcase, version: str, *, wall_s: float) -> tuple[ProbeResult, Hang]:
    if (why := Bubblewrap().find_problem()) is not None:
        pytest.skip(why)
    probe = hangs.run_until_stopped(testcase, version, wall_s=wall_s)
    assert isinstance(probe.ended, TimedOut), probe
    found = hangs.find_hang(probe)
    assert found is not None
    return probe, found


def test_a_slow_compilation_by_a_program_shows_the_compilers_own_functions() -> None:
    """LLVM's signal handler prints the functions, and they do not become output of the testcase."""
    testcase = next(testcase for title, testcase, _ in hangs.list_iree_programs() if "additions" in title)
    _, found = stopped(testcase, "3.13.0", wall_s=4)
    assert (found.doing, found.place) == ("computing", "compiler")
    assert any("mlir::" in name for name in found.native)
    assert not any("PrintStackTrace" in name for name in found.native)


@pytest.mark.parametrize("name", ["own_loop", "lock_taken_twice", "slow_lowering", "endless_kernel"])
def test_the_kinds_of_hang_are_distinguished(name: str) -> None:
    """The comment names the kind of hang. bench/diagnosis/hangs.py has the whole set."""
    probe, found = stopped(hangs.read_tvm_program(f"hang/{name}"), VERSION, wall_s=6)
    assert (found.doing, found.place) == hangs.TVM[name], found
    assert isinstance(probe.ended, TimedOut)
    assert any(frame.file == "/work/repro.py" for frame in found.frames)
    if found.place == "testcase":
        assert "/work/repro.py" in probe.ended.where
    # What was printed in order to find this out is no output of the testcase.
    assert "Segfault" not in probe.steps[-1].stderr


def test_every_program_that_hangs_has_its_label() -> None:
    """A program without a label would never be checked."""
    assert {name.partition("/")[2] for name in sweep.programs("hang")} == set(hangs.TVM)


@pytest.mark.parametrize("seconds", [2.0, 2.05, 2.1])
def test_a_step_that_ends_while_its_stack_is_read_has_timed_out(seconds: float) -> None:
    """The step is a timeout, and neither the supervisor nor the testcase is blamed for its end."""
    code = (
        f"import tvm\nimport time\nuntil = time.monotonic() + {seconds}\nwhile time.monotonic() < until:\n    pass\n"
    )
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )
    stopped(testcase, VERSION, wall_s=2)
