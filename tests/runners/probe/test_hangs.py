"""Location of a hang, on real compilers: activity of the threads, and owner of the code."""

from __future__ import annotations

import pytest

from runners.core.protocol import Hang, Testcase, TestcaseKind, TimedOut
from runners.probe.task import ProbeResult
from runners.sandbox.bubblewrap import Bubblewrap
from runners.sandbox.contract import WORK
from tests.runners.guest.script import hangs
from tests.runners.guest.tvm import sweep

pytestmark = [pytest.mark.compilers, pytest.mark.sandbox]

VERSION = "0.27.0"
MAX_WALL_S = 60.0


def run_until_stopped(testcase: Testcase, version: str, *, wall_s: float) -> tuple[ProbeResult, Hang]:
    if (why := Bubblewrap().find_problem()) is not None:
        pytest.skip(why)
    probe = hangs.run_until_stopped(testcase, version, wall_s=wall_s)
    assert isinstance(probe.ended, TimedOut), probe
    found = hangs.find_hang(probe)
    assert found is not None
    return probe, found


def run_until_hung(
    testcase: Testcase, version: str, label: tuple[str, str], *, wall_s: float, native: str = ""
) -> tuple[ProbeResult, Hang]:
    """Run with growing limits: on a busy machine, the first limit may stop the imports instead of the hang.

    ``native``: a part of the name of some native function. A compiler that is stopped while it starts shows none.
    """
    while True:
        probe, found = run_until_stopped(testcase, version, wall_s=wall_s)
        hung = (found.doing, found.place) == label and (not native or any(native in name for name in found.native))
        if hung or wall_s > MAX_WALL_S:
            return probe, found
        wall_s *= 2


def test_slow_command_line_shows_functions_of_the_compiler() -> None:
    """LLVM's handler prints the functions. Its text is not output of the testcase."""
    testcase = next(testcase for title, testcase, _ in hangs.list_iree_programs() if "additions" in title)
    _, found = run_until_hung(testcase, "3.13.0", ("computing", "compiler"), wall_s=4, native="mlir::")
    assert (found.doing, found.place) == ("computing", "compiler")
    assert any("mlir::" in name for name in found.native)
    assert not any("PrintStackTrace" in name for name in found.native)


@pytest.mark.parametrize("name", ["own_loop", "lock_taken_twice", "slow_lowering", "endless_kernel"])
def test_hang_has_the_label_of_its_program(name: str) -> None:
    """Each kind of hang needs another repair. bench/diagnosis/hangs.py runs all programs."""
    probe, found = run_until_hung(hangs.read_tvm_program(f"hang/{name}"), VERSION, hangs.TVM[name], wall_s=6)
    assert (found.doing, found.place) == hangs.TVM[name], found
    assert isinstance(probe.ended, TimedOut)
    assert any(frame.file == f"{WORK}/repro.py" for frame in found.frames)
    if found.place == "testcase":
        assert f"{WORK}/repro.py" in probe.ended.where
    # Text that the supervisor's signals print is not output of the testcase.
    assert "Segfault" not in probe.steps[-1].stderr


def test_every_hanging_program_has_a_label() -> None:
    """A program without a label would never run."""
    assert {name.partition("/")[2] for name in sweep.programs("hang")} == set(hangs.TVM)


@pytest.mark.parametrize("seconds", [2.0, 2.05, 2.1])
def test_step_that_ends_while_its_stack_is_read_timed_out(seconds: float) -> None:
    """This is neither a failure of the supervisor nor of the testcase."""
    code = (
        f"import tvm\nimport time\nuntil = time.monotonic() + {seconds}\nwhile time.monotonic() < until:\n    pass\n"
    )
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )
    run_until_stopped(testcase, VERSION, wall_s=2)
