"""On real compilers, a forked probe, the script runner and ``python FILE`` have equal results."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Limits, Record, Testcase, TestcaseKind
from runners.environments.store import Environment, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import ProbeSession, open_probe_session, run_probe
from runners.probe.task import PLAIN, Conditions, ProbeResult
from runners.sandbox.bubblewrap import Bubblewrap

pytestmark = [pytest.mark.compilers, pytest.mark.sandbox]

LIMITS = Limits(wall_s=60)
FORKED = Conditions(scripts=True, fork=True)
NATIVE_FRAMES = 3

TVM = """\
import sys
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R
"""
ADD = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y
vm = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
out = vm["main"](tvm.runtime.tensor(np.arange(4, dtype="float32"))).numpy()
"""
TVM_ENDS = {
    "result": ADD + "print(out, Module)",
    "wrong-result": ADD + "np.testing.assert_allclose(out, np.array([0, 2, np.nan, 7]))",
    "assert-on-names": ADD + "ref = out + 1\nassert np.allclose(out, ref)",
    "error-of-the-compiler": ADD + "vm['main'](tvm.runtime.tensor(np.zeros(5, 'float32')))",
    "script-error": "@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    y = R.no_such_op(x)\n    return y\n",
    "undefined-name": ADD.replace("R.add(x, x)", "R.add(x, z)"),
    "null-pointer": "import ctypes\nprint('before')\nctypes.string_at(8)\n",
    "abort": ADD + "import os\nprint('before')\nos.abort()\n",
    "missing-attribute": "tvm.relax.frontend.onnx_of_no_such_name\n",
    "own-hook": "sys.excepthook = lambda kind, *_: print('hooked', kind.__name__)\n1 / 0\n",
}

IREE = "import sys\nimport numpy as np\nimport iree.compiler as compiler\nimport iree.runtime as runtime\n"
MLIR = '''
TEXT = """
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
binary = compiler.compile_str(TEXT, target_backends=["vmvx"])
'''
RUN = """
module = runtime.load_vm_flatbuffer(binary, driver="local-sync")
out = module.double(np.arange(4, dtype=np.float32)).to_host()
"""
IREE_ENDS = {
    "compiles": MLIR + "print(len(binary) > 100)",
    "runs": MLIR + RUN + "print(out)",
    "wrong-result": MLIR + RUN + "np.testing.assert_array_equal(out, np.array([0, 2, 4, 7.0]))",
    "error-of-the-compiler": MLIR.replace("arith.addf", "arith.addi"),
    "wrong-shape": MLIR + RUN + "module.double(np.zeros((2, 2), np.float32))",
    "exception": MLIR + "raise RuntimeError(binary is None)",
}
PYTHON_ENDS = {
    "chain": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "context": "def f():\n    try:\n        1 / 0\n    finally:\n        [][3]\nf()\n",
    "exit-text": "sys.exit('that is all')",
    "exit-code": "print('x')\nsys.exit(3)",
    "at-exit": "import atexit\natexit.register(print, 'bye')\nprint(__name__, __file__, sys.argv, sys.path[0])\n",
    "exit-none": "print('x', end='')\nraise SystemExit\n",
    "interrupt": "raise KeyboardInterrupt('now')",
    "syntax-error": "print('x'\n",
    "indentation-error": "if 1:\n    x = 1\n  y = 2\n",
    "quick-exit": "import os\nsys.stdout.write('lost?')\nos._exit(4)\n",
    "warnings": "import warnings\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)\nprint('ok')\n",
    "failing-at-exit": "import atexit\natexit.register(lambda: 1 / 0)\n",
    "thread": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()\n",
    "pickle": "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__)\n",
    "inspect": "import inspect\ndef f(): pass\nprint(inspect.getsource(f), inspect.stack()[0][1:])",
    "processes": "import multiprocessing\ndef f(x): return x * x\nif __name__ == '__main__':\n"
    "    with multiprocessing.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))\n",
    "own-module": "import helper\nprint(helper.__file__, helper.VALUE)\n",
    "recursion": "def f(): f()\ntry:\n    f()\nexcept RecursionError as e:\n    print(e)\n",
    "hash-order": "print({'a', 'b', 'c', 'd'})\nprint(hash('tvm'))\n",
}
"""Ends that no compiler takes part in. They run beside IREE, whose import takes a fifth of the time of TVM's."""


@cache
def environment(toolchain: str) -> Environment:
    version = {"tvm": "0.27.0", "iree": "3.13.0"}[toolchain]
    return open_store().get_environment(load_catalogue().find(toolchain, version))


def list_programs() -> dict[tuple[str, str], str]:
    found = {("tvm", name): TVM + code for name, code in TVM_ENDS.items()}
    return found | {("iree", name): IREE + code for name, code in {**IREE_ENDS, **PYTHON_ENDS}.items()}


def make_testcase(toolchain: str, code: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={"repro.py": code, "helper.py": "VALUE = 3\n"},
        steps=(("python", "repro.py", "--flag"),),
    )


@pytest.fixture(scope="module", params=["tvm", "iree"])
def room(request: pytest.FixtureRequest) -> Iterator[tuple[str, ProbeSession]]:
    if (why := Bubblewrap().find_problem()) is not None:
        pytest.skip(why)
    layout = make_layout(environment(request.param))
    with open_probe_session(Bubblewrap(), layout, limits=LIMITS, run_id="same") as room:
        yield request.param, room


def run_forked(room: ProbeSession, toolchain: str, code: str) -> ProbeResult:
    return room.run(make_task(environment(toolchain), make_testcase(toolchain, code), LIMITS, conditions=FORKED))


def run_alone(toolchain: str, code: str, conditions: Conditions) -> ProbeResult:
    used = environment(toolchain)
    task = make_task(used, make_testcase(toolchain, code), LIMITS, conditions=conditions)
    return run_probe(Bubblewrap(), make_layout(used), task, run_id="same")


def read_result(probe: ProbeResult) -> tuple[object, str, str]:
    """Return the end and the output of a probe, without addresses and times.

    Of a native stack, only the innermost frames remain. The outer frames show how the interpreter runs the script,
    and may differ.
    """
    (step,) = probe.steps
    text = re.sub(r"0x[0-9a-f]+|\[\d\d:\d\d:\d\d\]", "…", step.stderr)
    head, native, stack = text.partition("!!!!!!! Segfault encountered !!!!!!!\n")
    return probe.ended, step.stdout, head + native + "".join(stack.splitlines(keepends=True)[:NATIVE_FRAMES])


def read_stable_record(probe: ProbeResult) -> Record:
    """Return the record of a probe without times and facts about forking."""
    record = probe.steps[0].record
    assert record is not None
    phases = tuple(msgspec.structs.replace(phase, at=0.0) for phase in record.phases)
    return msgspec.structs.replace(record, seconds=None, peak_bytes=0, forked=False, not_forked="", phases=phases)


def test_forked_and_plain_probes_have_equal_results(room: tuple[str, ProbeSession]) -> None:
    """Status, output and errors are equal. A fork and a process of the script runner also have equal records."""
    toolchain, open_one = room
    different = []
    for (of, name), code in list_programs().items():
        if of != toolchain:
            continue
        one = run_forked(open_one, of, code)
        assert not open_one.spent, (name, open_one.spent)
        assert one.steps[0].record is not None
        assert one.steps[0].record.forked or "error" in name, (name, one.steps[0].record.not_forked)
        different += diff_results(name, read_result(one), read_result(run_alone(of, code, PLAIN)))
        if name in BY_SCRIPT_RUNNER:
            by_runner = run_alone(of, code, Conditions(scripts=True))
            different += diff_results(f"{name}, by the script runner", read_result(by_runner), read_result(one))
            different += diff_results(f"{name}, record", read_stable_record(by_runner), read_stable_record(one))
    assert not different, "\n".join(different)


BY_SCRIPT_RUNNER = ("wrong-result", "chain", "script-error", "warnings", "exit-code", "abort", "runs")


def split_lines(what: object) -> list[str]:
    return json.dumps(msgspec.to_builtins(what), indent=1).replace("\\n", "\n").splitlines()


def diff_results(name: str, one: object, other: object) -> list[str]:
    lines = list(difflib.unified_diff(split_lines(one), split_lines(other), lineterm="", n=1))
    return [f"== {name}", *lines] if lines else []
