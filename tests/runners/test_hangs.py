"""Where a testcase hangs, on a real compiler: what is slow, what waits, and whose it is."""

from __future__ import annotations

import pytest

from runners.catalogue import load_catalogue
from runners.environments import Environment, open_store
from runners.probe import Probe, run_probe
from runners.protocol import Hang, Limits, Testcase, TestcaseKind, TimedOut
from runners.rooms import FORKED
from runners.sandbox.bubblewrap import Bubblewrap
from runners.workbench import _layout, _tools, _variables
from tests.runners.guest.sweep import environment

pytestmark = [pytest.mark.compilers, pytest.mark.sandbox]

VERSION = "0.27.0"
START = "import numpy as np\nimport tvm\nfrom tvm import relax\n"
OWN_LOOP = START + "def spin():\n    while True:\n        pass\nspin()\n"
DEADLOCK = START + "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"
SLOW_COMPILATION = (
    START
    + """
builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((4,), "float32"))
with builder.function("main", [x]):
    with builder.dataflow():
        y = x
        for _ in range(60000):
            y = builder.emit(relax.op.add(y, x))
        out = builder.emit_output(y)
    builder.emit_func_output(out)
tvm.compile(builder.get(), target="llvm")
"""
)
ENDLESS_KERNEL = """\
import numpy as np
import tvm
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module(s_tir=True)
class Program:
    @T.prim_func(s_tir=True)
    def spin(a: T.Buffer((1,), "int32")):
        while a[0] >= 0:
            a[0] = T.bitwise_and(a[0] + 1, 1023)

built = tvm.compile(Program, target="llvm")
built["spin"](tvm.runtime.tensor(np.zeros(1, "int32")))
"""


def chain_of_additions(length: int) -> str:
    lines = [f"  %{n + 1} = arith.addf %{n}, %x : tensor<4xf32>" for n in range(length)]
    first = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = arith.addf %x, %x : tensor<4xf32>"
    return "\n".join([first, *lines, f"  return %{length} : tensor<4xf32>", "}", ""])


def test_a_slow_compilation_by_a_program_shows_the_compilers_own_functions() -> None:
    """LLVM's handler prints them, and none of it is taken for output."""
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"a.mlir": chain_of_additions(40_000)},
        steps=(("iree-compile", "--iree-hal-target-backends=llvm-cpu", "a.mlir", "-o", "a.vmfb"),),
    )
    _, found = stopped(testcase, of_iree(), wall_s=4)
    assert (found.doing, found.place) == ("computing", "compiler")
    assert any("mlir::" in name for name in found.native)
    assert not any("PrintStackTrace" in name for name in found.native)


def of_iree() -> Environment:
    return open_store().environment(load_catalogue().find("iree", "3.13.0"))


def hang(code: str) -> tuple[Probe, Hang]:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )
    return stopped(testcase, environment(VERSION), wall_s=6)


def stopped(testcase: Testcase, used: Environment, *, wall_s: float) -> tuple[Probe, Hang]:
    if (why := Bubblewrap().unusable()) is not None:
        pytest.skip(why)
    probe = run_probe(
        Bubblewrap(),
        _layout(used, driver=None),
        testcase,
        tools=_tools(used),
        environment=_variables(used, instrumented=False, driver=None),
        limits=Limits(wall_s=wall_s),
        run_id="hangs",
        conditions=FORKED,
    )
    assert isinstance(probe.ended, TimedOut), probe
    record = probe.steps[-1].record
    assert record is not None
    assert record.hang is not None
    return probe, record.hang


@pytest.mark.parametrize(
    ("code", "doing", "place"),
    [
        (OWN_LOOP, "computing", "testcase"),
        (DEADLOCK, "waiting", "testcase"),
        (SLOW_COMPILATION, "computing", "compiler"),
        (ENDLESS_KERNEL, "computing", "compiled"),
    ],
    ids=["own-loop", "deadlock", "slow-compilation", "endless-kernel"],
)
def test_the_ways_to_hang_are_told_apart(code: str, doing: str, place: str) -> None:
    """Each needs another mend, and the comment says which it is."""
    probe, found = hang(code)
    assert (found.doing, found.place) == (doing, place), found
    assert isinstance(probe.ended, TimedOut)
    assert any(frame.file == "/work/repro.py" for frame in found.frames)
    if place == "testcase":
        assert "/work/repro.py" in probe.ended.where
    # What was printed in order to find this out is no output of the testcase.
    assert "Segfault" not in probe.steps[-1].stderr


@pytest.mark.parametrize("seconds", [2.0, 2.05, 2.1])
def test_a_step_that_ends_while_it_is_asked_where_it_is_has_used_up_its_time(seconds: float) -> None:
    """It is no failure of the supervisor's, and none that the testcase is blamed for."""
    code = START + f"import time\nuntil = time.monotonic() + {seconds}\nwhile time.monotonic() < until:\n    pass\n"
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )
    stopped(testcase, environment(VERSION), wall_s=2)
