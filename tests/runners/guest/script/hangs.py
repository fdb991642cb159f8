"""Programs that never end, or not soon, with their location at the time-out; and slow programs that must not be a
hang.

Labels were written before the first run: the activity of the program's threads, and the owner of the code in its main
thread (``runners.core.protocol.Hang``).
"""

from __future__ import annotations

from collections.abc import Iterator

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Hang, Limits, Testcase, TestcaseKind
from runners.environments.store import Environment, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.probe.task import Conditions, ProbeResult
from runners.sandbox.bubblewrap import Bubblewrap
from tests.runners.guest.iree.faults import make_compilation, make_execution
from tests.runners.guest.tvm.sweep import PROGRAMS, environment

FORKED = Conditions(scripts=True, fork=True)

Label = tuple[str, str]

TVM: dict[str, Label] = {
    "own_loop": ("computing", "testcase"),
    "own_pass_never_ends": ("computing", "testcase"),
    "sleeps": ("waiting", "testcase"),
    "lock_taken_twice": ("waiting", "testcase"),
    "waits_within_a_kernel": ("waiting", "testcase"),
    "child_process_never_ends": ("waiting", "library"),
    "slow_lowering": ("computing", "compiler"),
    "slow_code_generation": ("computing", "compiler"),
    "endless_kernel": ("computing", "compiled"),
    "endless_kernel_in_a_graph": ("computing", "compiled"),
}
"""Files of ``programs/hang``."""

ENDLESS = """\
func.func @f(%x: tensor<i32>) -> tensor<i32> {
  %a = tensor.extract %x[] : tensor<i32>
  %z = arith.constant 0 : i32
  %m = arith.constant 1023 : i32
  %one = arith.constant 1 : i32
  %r = scf.while (%g = %a) : (i32) -> i32 {
    %more = arith.cmpi sge, %g, %z : i32
    scf.condition(%more) %g : i32
  } do {
  ^bb0(%g: i32):
    %s = arith.addi %g, %one : i32
    %n = arith.andi %s, %m : i32
    scf.yield %n : i32
  }
  %t = tensor.from_elements %r : tensor<i32>
  return %t : tensor<i32>
}
"""


def write_additions(length: int) -> str:
    lines = [f"  %{n + 1} = arith.addf %{n}, %x : tensor<4xf32>" for n in range(length)]
    first = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = arith.addf %x, %x : tensor<4xf32>"
    return "\n".join([first, *lines, f"  return %{length} : tensor<4xf32>", "}", ""])


def list_iree_programs() -> Iterator[tuple[str, Testcase, Label]]:
    yield "40,000 additions", make_compilation(write_additions(40_000)), ("computing", "compiler")
    yield "a loop without an end", make_execution(ENDLESS, "i32=0"), ("computing", "compiled")


def list_slow_programs() -> Iterator[tuple[str, Testcase]]:
    """Yield programs that are slow, or wait, and end well before the time limit."""
    start = "import numpy as np\nimport tvm\nimport time\n"
    yield (
        "computes for a while",
        _make_testcase(start + "until = time.monotonic() + 4\nwhile time.monotonic() < until: pass\n"),
    )
    yield "sleeps for a while", _make_testcase(start + "time.sleep(4)\n")


def read_tvm_program(name: str) -> Testcase:
    return _make_testcase((PROGRAMS / f"{name}.repro").read_text())


def _make_testcase(code: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )


def find_environment(testcase: Testcase, version: str) -> Environment:
    if testcase.toolchain == "tvm":
        return environment(version)
    return open_store().get_environment(load_catalogue().find(testcase.toolchain, version))


def run_until_stopped(
    testcase: Testcase, version: str, *, wall_s: float, conditions: Conditions = FORKED
) -> ProbeResult:
    """Run one probe up to its time limit."""
    used = find_environment(testcase, version)
    task = make_task(used, testcase, Limits(wall_s=wall_s), conditions=conditions)
    return run_probe(Bubblewrap(), make_layout(used), task, run_id="hangs")


def find_hang(probe: ProbeResult) -> Hang | None:
    record = probe.steps[-1].record if probe.steps else None
    return record.hang if record is not None else None
