"""Programs that fail because of one planted pass. Pass bisection must find the pass and its position."""

from __future__ import annotations

from itertools import product

MODEL = """\
import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

annotation = getattr(relax, "TensorStructInfo", None) or relax.TensorType
block = relax.BlockBuilder()
x = relax.Var("x", annotation((4, 4), "float32"))
with block.function("main", [x]):
    with block.dataflow():
        a = block.emit(relax.op.add(x, x))
        b = block.emit(relax.op.multiply(a, x))
        c = block.emit(relax.op.nn.relu(b))
        out = block.emit_output(relax.op.subtract(c, x))
    block.emit_func_output(out)
module = block.get()
"""

RUN = """\
machine = relax.VirtualMachine(executable, tvm.cpu())
data = np.linspace(-2, 3, 16, dtype="float32").reshape(4, 4)
got = machine["main"](tvm.runtime.tensor(data)).numpy()
np.testing.assert_allclose(got, np.maximum(2 * data * data, 0) - data, rtol=1e-5)
"""

SWAPS = {
    "SubtractInstead": ("relax.add", "relax.op.subtract(call.args[0], call.args[1])"),
    "AddInstead": ("relax.multiply", "relax.op.add(call.args[0], call.args[1])"),
    "NegativeRelu": ("relax.nn.relu", "relax.op.negative(call.args[0])"),
    "OtherWayRound": ("relax.subtract", "relax.op.subtract(call.args[1], call.args[0])"),
}
"""Name of the planted pass → the operator that it replaces, and the replacement."""

PASS = """

@mutator
class Swap(PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") == "{operator}":
            return self.builder_.normalize({instead})
        return call


@tvm.transform.module_pass(opt_level=0, name="{name}")
def planted(module, _context):
    swap = Swap(module)
    for variable, function in module.functions.items():
        if isinstance(function, relax.Function):
            swap.builder_.update_func(variable, swap.visit_expr(function))
    return swap.builder_.get()

"""

COMPILE = "executable = tvm.compile(module, target='llvm')\n"
PLACES = {
    "alone": f"module = planted(module)\n{COMPILE}",
    "between": (
        "module = relax.transform.Normalize()(module)\nmodule = planted(module)\n"
        f"module = relax.transform.DeadCodeElimination()(module)\n{COMPILE}"
    ),
    "sequence": (
        "before = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]\n"
        "passes = [*before, planted, relax.transform.DeadCodeElimination()]\n"
        f"module = tvm.transform.Sequential(passes)(module)\n{COMPILE}"
    ),
    "pipeline": (
        "healthy = relax.get_pipeline('default_build')\n"
        "pipeline = tvm.transform.Sequential([planted, healthy])\n"
        "executable = tvm.compile(module, target='llvm', relax_pipeline=pipeline)\n"
    ),
}


def make_faulty() -> dict[str, tuple[str, str, str]]:
    """Return name → program, planted pass, and scope of the pass."""
    found = {}
    for (name, (operator, instead)), (place, text) in product(SWAPS.items(), PLACES.items()):
        planted = PASS.format(operator=operator, instead=instead, name=name)
        scope = "pipeline" if place == "pipeline" else "own"
        found[f"{name}, {place}"] = (MODEL + planted + text + RUN, name, scope)
    return found
