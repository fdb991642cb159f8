"""NumPy's equivalents compute what the compiler computes, on the oldest and the newest release."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.runners.guest.tvm.sweep import LAUNCHER, environment, read_report, run_forked, variables

pytestmark = pytest.mark.compilers

RELEASES = ("0.25.0", "0.27.0")
PROGRAM = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor((), "float32"):
        with R.dataflow():
            lv = R.{operator}
            gv = R.sum(lv)
            R.output(gv)
        return gv

vm = relax.VirtualMachine(tvm.compile({module}, "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor({x})))
"""


@cache
def compare_operators(version: str) -> dict[str, dict[str, Any]]:
    return read_report(version, "reference/operators")


@pytest.mark.parametrize("version", RELEASES)
def test_every_operator_agrees_with_the_compiler(version: str) -> None:
    """One changed element of the result is a difference."""
    found = compare_operators(version)
    assert len(found["votes"]) > 150
    assert {name: vote for name, vote in found["votes"].items() if vote != "agrees"} == {}
    assert {name: vote for name, vote in found["changed"].items() if vote != "differs"} == {}


@pytest.mark.parametrize("version", RELEASES)
def test_an_undefined_or_ambiguous_operation_has_no_value(version: str) -> None:
    refused = compare_operators(version)["refused"]
    assert refused
    assert all(refused.values()), refused


def vote(tmp_path: Path, program: str) -> list[str]:
    """Return the votes on a program, run on the newest release as the host runs it."""
    (tmp_path / "r.py").write_text(program)
    path = tmp_path / "findings"
    words = (str(LAUNCHER), "tvm.reference.vote", "r.py")
    ended = run_forked(RELEASES[-1], words, tmp_path, REPROBOT_FINDINGS=str(path))
    assert ended.code == 0, ended.stderr
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line["evidence"]["vote"] for line in lines if line["kind"] == "reference"]


def test_the_module_before_the_testcases_own_passes_is_evaluated(tmp_path: Path) -> None:
    """A pass that keeps the meaning agrees. A pass that loses an operator makes the values differ."""
    x = 'np.ones((3, 2), "float32")'
    right = PROGRAM.format(operator="exp(x)", module="relax.transform.LegalizeOps()(Module)", x=x)
    other = PROGRAM.format(operator="exp(x)", module="lose(Module)", x=x).partition("vm = ")
    lost = other[0].partition("@I.ir_module")[2].replace("Module", "Lost").replace("R.exp(x)", "R.negative(x)")
    lose = (
        f"@I.ir_module{lost}\n@tvm.transform.module_pass(opt_level=0)\ndef lose(module, context):\n    return Lost\n"
    )
    assert vote(tmp_path, right) == ["agrees"]
    assert vote(tmp_path, f"{other[0]}{lose}\nvm = {other[2]}") == ["differs"]


def test_a_module_whose_parameters_a_pass_bound_never_agrees(tmp_path: Path) -> None:
    """The pass may have bound wrong values. A difference from the bound module is still a difference."""
    x = 'np.ones((3, 2), "float32")'
    program = PROGRAM.format(operator="add(x, w)", module="bind(Module)", x=x)
    program = program.replace('"float32")) ->', '"float32"), w: R.Tensor((2,), "float32")) ->')
    bind = 'bind = relax.transform.BindParams("main", {"w": np.ones(2, "float32")})\n\nvm = '
    assert vote(tmp_path, program.replace("vm = ", bind, 1)) == []


CONVERTS = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        with R.dataflow():
            q = R.astype(x, "{dtype}")
            o = R.astype({result}, "float32")
            R.output(o)
        return o

vm = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(np.array({x}, "float32"))).numpy())
"""


@pytest.mark.parametrize(
    ("dtype", "result", "x", "votes"),
    [
        ("float8_e4m3fn", "q", [0, 1, 448], ["differs"]),
        ("float8_e4m3fn", "q", [0.5, 1, 448], ["agrees"]),
        ("bfloat16", "q", [0.1, 1.00390625, 1e38], ["agrees"]),
        ("bfloat16", "R.add(q, q)", [0.1, 1, 1e30], ["agrees"]),
    ],
)
def test_values_that_are_only_moved_and_converted_have_no_rounding_to_forgive(
    tmp_path: Path, dtype: str, result: str, x: list[float], votes: list[str]
) -> None:
    """Zero becomes 2^-7 in float8, beside 448: an error of 2e-5 of the largest value."""
    assert vote(tmp_path, CONVERTS.format(dtype=dtype, result=result, x=x)) == votes


def test_a_module_that_layers_export_never_agrees(tmp_path: Path) -> None:
    """The export may have written another operation than the layer stands for."""
    program = """
import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn

class Model(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2, bias=False)

    def forward(self, x: nn.Tensor):
        return self.layer(x)

module, _ = Model().export_tvm({"forward": {"x": nn.spec.Tensor((3, 2), "float32")}})
vm = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
print(vm["forward"](*[tvm.runtime.tensor(np.ones(shape, "float32")) for shape in ((3, 2), (2, 2))]))
"""
    assert vote(tmp_path, program) == []


DERIVED = """
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            product = R.matmul(x, w)
            bent = R.{bend}(product)
            total = R.sum(bent)
            R.output(total)
        return total

def derive(module):
    made = relax.transform.Gradient("main")(module)
    return made

{change}
made = derive(Module)
vm = relax.VirtualMachine(tvm.compile(relax.transform.LegalizeOps()(made), "llvm"), tvm.cpu())
x, w = np.{values}((2, 3)).astype("float32"), np.random.random((3, 4)).astype("float32")
vm["main_adjoint"](tvm.runtime.tensor(x), tvm.runtime.tensor(w))
"""
WRONG = """
from tvm.relax.expr_functor import PyExprMutator, mutator

@mutator
class Swap(PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") == "relax.multiply":
            return self.builder_.normalize(relax.op.add(*call.args))
        return call

@tvm.transform.module_pass(opt_level=0)
def derive(module, context):
    made = relax.transform.Gradient("main")(module)
    made.update_func(made.get_global_var("main_adjoint"), Swap(made).visit_expr(made["main_adjoint"]))
    return made
"""


@pytest.mark.parametrize(
    ("bend", "values", "change", "votes"),
    [
        ("sigmoid", "random.random", "", ["agrees"]),
        ("sigmoid", "random.random", WRONG, ["differs"]),
        ("nn.relu", "zeros", "", []),  # no derivative at zero
    ],
)
def test_derived_gradients_are_compared_with_difference_quotients(
    tmp_path: Path, bend: str, values: str, change: str, votes: list[str]
) -> None:
    """NumPy alone would only repeat what the pass derived."""
    assert vote(tmp_path, DERIVED.format(bend=bend, values=values, change=change)) == votes


def test_what_cannot_be_evaluated_has_no_vote(tmp_path: Path) -> None:
    """An operator without an equivalent, and ties that libraries round in different ways."""
    x = 'np.full((3, 2), 0.5, "float32")'
    assert vote(tmp_path, PROGRAM.format(operator="round(x)", module="Module", x=x)) == []
    assert vote(tmp_path, PROGRAM.format(operator="median(x)", module="Module", x=x)) == []


MODEL = """
import numpy as np, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 13]>
graph (float[4] x, float[4] y) => (float[4] z) {{ z = Sub (x, y) }}''')
def translate_swapped(model):
    model.graph.node[0].input[:] = ["y", "x"]
    module = from_onnx(model)
    model.graph.node[0].input[:] = ["x", "y"]
    return module

vm = relax.VirtualMachine(tvm.compile({module}, "llvm"), tvm.cpu())
x, y = np.array([1, 2, 3, 4], "float32"), np.array([4, 3, 2, 1], "float32")
print(vm["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y)))
{more}
"""


@pytest.mark.parametrize(
    ("module", "more", "votes"),
    [
        ("from_onnx(model)", "", [("ONNX", "agrees")]),
        ("translate_swapped(model)", "", [("ONNX", "differs")]),
        ("from_onnx(model)", "import onnx.reference; onnx.reference.ReferenceEvaluator", []),
        (
            "translate_swapped(model)",
            "import onnx.reference; onnx.reference.ReferenceEvaluator",
            [("ONNX", "differs")],
        ),
    ],
    ids=["right", "a wrong translation", "the testcase asks too", "the testcase asks too, a wrong translation"],
)
def test_the_evaluator_of_onnx_votes_on_a_translated_model(
    tmp_path: Path, module: str, more: str, votes: list[tuple[str, str]]
) -> None:
    """NumPy would only repeat the translation. An evaluator that the testcase asks itself agrees with nothing."""
    assert ask_onnx(tmp_path, MODEL.format(module=module, more=more)) == votes


POOL = """
import numpy as np, onnx, tvm
from onnx.reference import ReferenceEvaluator
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 17]>
graph (float[1,1,4,4] x) => (float[n,c,h,w] z) {{ z = MaxPool <kernel_shape = [3, 3], pads = {pads}> (x) }}''')
x = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
vm = relax.VirtualMachine(tvm.compile(from_onnx(model), "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(x)), ReferenceEvaluator(model).run(None, {{"x": x}}))
"""


@pytest.mark.parametrize(("pads", "votes"), [("[0, 0, 1, 1]", [("ONNX shapes", "agrees")]), ("[1, 1, 1, 1]", [])])
def test_the_shape_inference_of_onnx_votes_against_its_evaluator(
    tmp_path: Path, pads: str, votes: list[tuple[str, str]]
) -> None:
    """The evaluator of onnx 1.23 pairs the ends of one-sided ``pads`` wrongly."""
    assert ask_onnx(tmp_path, POOL.format(pads=pads)) == votes


SAME_LOWER = """
import numpy as np, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 13]>
graph (float[1,1,{size}] x) => (float[1,1,n] y) {{
    y = MaxPool <auto_pad = "SAME_LOWER", kernel_shape = [2], strides = [2]> (x) }}''')
x = np.arange({size}, dtype="float32").reshape(1, 1, {size})
vm = relax.VirtualMachine(tvm.compile(from_onnx(model), "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(x)))
"""


@pytest.mark.parametrize(("size", "votes"), [(7, [("ONNX shapes", "differs")]), (6, [])])
def test_the_shape_inference_of_onnx_votes_where_the_evaluator_may_not(
    tmp_path: Path, size: int, votes: list[tuple[str, str]]
) -> None:
    """TVM 0.27 returns three elements for seven, where ONNX defines four. The evaluator pads such pools wrongly."""
    assert ask_onnx(tmp_path, SAME_LOWER.format(size=size)) == votes


ONE_HOT = """
import numpy as np, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 13]>
graph (int64[3] at) => ({type}[3,4] y)
<int64 depth = {{4}}, {type}[2] values = {{0, 1}}>
{{ y = OneHot (at, depth, values) }}''')
vm = relax.VirtualMachine(tvm.compile(from_onnx(model), "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(np.array([0, 3, 2]))))
"""


@pytest.mark.parametrize(("type", "votes"), [("float", [("ONNX", "differs")]), ("int64", [("ONNX", "agrees")])])
def test_a_result_of_another_type_than_the_model_declares_differs(
    tmp_path: Path, type: str, votes: list[tuple[str, str]]
) -> None:
    """TVM 0.27 returns float64 for ``OneHot`` with float values. The values are the same."""
    assert ask_onnx(tmp_path, ONE_HOT.format(type=type)) == votes


LRN = """
import numpy as np, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 13]>
graph (float[1,3,1,1] x) => (float[1,3,1,1] z) { z = LRN <size = 3, alpha = 0.1> (x) }''')
x = np.arange(3, dtype="float32").reshape(1, 3, 1, 1)
vm = relax.VirtualMachine(tvm.compile(from_onnx(model), "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(x)))
"""


def test_an_operator_that_the_evaluator_computes_otherwise_has_no_vote(tmp_path: Path) -> None:
    """The evaluator of onnx 1.23 sums ``LRN`` over as many channels as the batch has elements."""
    assert ask_onnx(tmp_path, LRN) == []


SOFTMAX = """
import numpy as np, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model('''
<ir_version: 7, opset_import: ["" : {version}]>
graph (float[2,3,4] x) => (float[2,3,4] z) {{ z = Softmax <axis = 1> (x) }}''')
x = np.arange(24, dtype="float32").reshape(2, 3, 4) / 10
vm = relax.VirtualMachine(tvm.compile(from_onnx(model), "llvm"), tvm.cpu())
print(vm["main"](tvm.runtime.tensor(x)))
"""


@pytest.mark.parametrize("version", [11, 13])
def test_a_model_of_an_older_operator_set_is_translated_first(tmp_path: Path, version: int) -> None:
    """The evaluator computes ``Softmax`` as of version 13. Before, it flattened the axes from ``axis`` on."""
    assert ask_onnx(tmp_path, SOFTMAX.format(version=version)) == [("ONNX", "agrees")]


def test_the_translated_model_votes_against_the_evaluator_that_the_testcase_asks(tmp_path: Path) -> None:
    asked = "from onnx.reference import ReferenceEvaluator\nprint(ReferenceEvaluator(model).run(None, {'x': x}))\n"
    assert ask_onnx(tmp_path, SOFTMAX.format(version=11) + asked) == [("ONNX", "agrees")]
    assert ask_onnx(tmp_path, SOFTMAX.format(version=13) + asked) == []


def ask_onnx(tmp_path: Path, program: str) -> list[tuple[str, str]]:
    """Return the voters and their votes on a program that translates a model."""
    (tmp_path / "r.py").write_text(program)
    path = tmp_path / "findings"
    version = RELEASES[-1]
    settings = {**variables(version, "onnx"), "REPROBOT_FINDINGS": str(path)}
    python = str(environment(version, "onnx").interpreter.executable)
    words = [python, str(LAUNCHER), "tvm.reference.vote", str(tmp_path / "r.py")]
    subprocess.run(words, env=settings, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    told = [line["evidence"] for line in lines if line["kind"] == "reference"]
    return [(one.get("by", "NumPy"), one["vote"]) for one in told]


KERNEL_IN_MODULE = """
import numpy as np, tvm
from tvm import relax
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def cube(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for i in {loop}(8):
            y = a[i]
            b[i] = y * y * y
    @R.function
    def main(x: R.Tensor((8,), "float32")):
        cls = Module
        y = R.call_tir(cls.cube, (x,), R.Tensor((8,), "float32"))
        return R.add(y, x)

machine = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
print(machine["main"](tvm.runtime.tensor(np.arange(8, dtype="float32"))).numpy())
"""


def test_kernels_of_a_relax_module_are_evaluated(tmp_path: Path) -> None:
    """A kernel that the compiler wrote may be wrong itself, so that its module never agrees."""
    assert vote(tmp_path, KERNEL_IN_MODULE.replace("{loop}", "T.serial")) == ["agrees"]
    assert vote(tmp_path, KERNEL_IN_MODULE.replace("{loop}", "T.vectorized")) == ["differs"]
    made = KERNEL_IN_MODULE.replace("{loop}", "T.serial").replace(
        "from tvm import relax", "from tvm import relax, topi"
    )
    assert vote(tmp_path, made) == []


BROADCAST = """
import numpy as np, tvm
from tvm import relax
from tvm.script import relax as R

builder = relax.BlockBuilder()
x, b = relax.Var("x", R.Tensor((3, 4), "float32")), relax.Var("b", R.Tensor((1, 4), "float32"))
with builder.function("main", [x, b]):
    with builder.dataflow():
        total = builder.emit_output(relax.op.sum({call}))
    builder.emit_func_output(total)
made = relax.transform.Gradient("main")(builder.get())
vm = relax.VirtualMachine(tvm.compile(made, "llvm"), tvm.cpu())
vm["main_adjoint"](*(tvm.runtime.tensor(np.ones(shape, "float32")) for shape in ((3, 4), (1, 4))))
"""


@pytest.mark.parametrize(
    ("call", "votes"),
    [
        ("relax.op.multiply(x, b)", ["agrees"]),
        ('relax.op.where(relax.op.greater(x, R.const(0.0, "float32")), x, b)', ["differs"]),
    ],
)
def test_a_gradient_has_the_shape_of_its_parameter(tmp_path: Path, call: str, votes: list[str]) -> None:
    """Of a broadcast operand of ``where``, no release here has."""
    assert vote(tmp_path, BROADCAST.format(call=call)) == votes
