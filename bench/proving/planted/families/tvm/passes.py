"""Passes and other interfaces that the broken builds have changed."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm.make import INNOCENT, Shape, changed, script
from bench.proving.planted.families.tvm.text import IMPORTS, builder, module, ramp
from bench.proving.planted.program import Findings, Program


def passes() -> Iterator[Program]:
    """Passes of Relax that change what a module computes, or the module that they were given."""
    compare = """
def outputs(mod, *values):
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return vm["main"](*[tvm.runtime.tensor(v) for v in values]).numpy()

"""
    for n, size in enumerate([4, 6]):
        text = (
            IMPORTS + module([("a", (size,), "float32"), ("b", (size,), "float32")],
                             ["p = R.subtract(a, b)", "q = R.subtract(b, a)", "gv = R.concat((p, q), axis=0)"])
            + compare + f"a, b = {ramp((size,))}, {ramp((size,), start='* 3')}\n"
            "after = relax.transform.EliminateCommonSubexpr()(Module)\n"
            "np.testing.assert_allclose(outputs(after, a, b), outputs(Module, a, b))\n"
        )  # fmt: skip
        yield changed(
            f"cse-{n}", "cse", "EliminateCommonSubexpr takes a - b for b - a", text, "EliminateCommonSubexpr"
        )
    for n, values in enumerate(
        [[1.5, 2.5, 3.5, 4.5, 5.5], [0.5, 1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0]]
    ):
        size = len(values)
        text = (
            IMPORTS + f"\nweights = np.array({values}, \"float32\")\n"
            + builder([("x", (size,), "float32")],
                ['w = R.const(weights, "float32")', "y = R.multiply(x, w)", "gv = R.add(y, y)"]).replace(
                "        w = bb.emit(relax.const(weights, \"float32\"))\n",
                "        w = relax.const(weights, \"float32\")\n")
            + compare + f"x = np.ones({size}, \"float32\")\nfolded = relax.transform.FoldConstant()(Module)\n"
            "print(\"before\", outputs_before := weights * 2)\n"
            "np.testing.assert_allclose(outputs(folded, x), outputs_before)\n"
        )  # fmt: skip
        yield changed(
            f"fold-{n}", "fold-constant", f"FoldConstant loses the last of {size} constants", text, "FoldConstant"
        )
    for n, op in enumerate(["add", "multiply", "maximum"]):
        text = (
            IMPORTS + module([("x", (3,), "float32"), ("y", (3,), "float32")],
                ["a = x", "b = y", f"gv = R.{op}(a, b)"])
            + "\nbefore = Module.script()\nrelax.transform.CanonicalizeBindings()(Module)\n"
            "assert Module.script() == before, \"the input was modified\"\n"
        )  # fmt: skip
        yield script(
            f"canonicalize-{n}", "input-changed", "CanonicalizeBindings modifies the module it is given", text,
            shows="AssertionError: the input was modified", claim="wrong-result", ending="assertion",
            accused=("CanonicalizeBindings",),
            findings=Findings(must=("input-mutated",), may=INNOCENT.may, never=INNOCENT.never),
        )  # fmt: skip
    for n, helper in enumerate(["encode", "warm_up", "update"]):
        text = f"""{IMPORTS}

@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        gv = R.add(x, x)
        return gv

    @R.function
    def {helper}(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        gv = R.multiply(x, x)
        return gv


mod = relax.transform.DeadCodeElimination(["main", "{helper}"])(Model)
vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
print(vm["{helper}"](tvm.runtime.tensor(np.ones(3, "float32"))))
"""
        yield script(
            f"dce-{n}", "function-lost", f"DeadCodeElimination removes {helper} although it is an entry function",
            text,
            shows=helper, accused=("DeadCodeElimination",),
        )  # fmt: skip
    for n, shape in enumerate([(3,), (2, 2), (4,)]):
        text = (
            IMPORTS + module([("x", shape, "float32"), ("scale", shape, "float32"), ("shift", shape, "float32")],
                             ["y = R.multiply(x, scale)", "gv = R.add(y, shift)"])
            + compare + f"params = {{\"scale\": np.full({shape}, 2, \"float32\"), "
            f"\"shift\": np.full({shape}, 10, \"float32\")}}\n"
            "bound = relax.transform.BindParams(\"main\", params)(Module)\n"
            f"got = outputs(bound, {ramp(shape)})\nnp.testing.assert_allclose(got, {ramp(shape)} * 2 + 10)\n"
        )  # fmt: skip
        yield changed(
            f"bind-{n}", "bind-params", f"BindParams swaps scale and shift ({len(shape)}-D)", text, "BindParams"
        )
    for n, (op, size) in enumerate([("matmul", 3), ("add", 3)]):
        text = (
            IMPORTS + f"\nweight = np.arange({size * size}, dtype=\"float32\").reshape({size}, {size})\n"
            + builder([("x", (size, size), "float32")],
                [f"y = R.{op}(x, relax.const(weight))", "gv = R.matmul(y, y)"])
            + compare + f"x = np.eye({size}, dtype=\"float32\")\nhalf = relax.transform.ToMixedPrecision()(Module)\n"
            "np.testing.assert_allclose(outputs(half, x), outputs(Module, x), rtol=2e-2)\n"
        )  # fmt: skip
        yield changed(
            f"mixed-{n}",
            "mixed-precision",
            f"ToMixedPrecision changes a constant of an {op}",
            text,
            "ToMixedPrecision",
        )
    for n, shape in enumerate([(4,), (2, 3)]):
        text = f"""{IMPORTS}

@I.ir_module
class Module:
    @R.function(private=True)
    def inner(
        x: R.Tensor({shape}, "float32"), y: R.Tensor({shape}, "float32"), z: R.Tensor({shape}, "float32")
    ) -> R.Tensor({shape}, "float32"):
        s = R.add(x, y)
        gv = R.add(s, z)
        return gv

    @R.function
    def main(x: R.Tensor({shape}, "float32")) -> R.Tensor({shape}, "float32"):
        cls = Module
        gv = cls.inner(x, x, x)
        return gv

{compare}
x = np.ones({shape}, "float32")
after = relax.transform.RemoveUnusedParameters()(Module)
np.testing.assert_allclose(outputs(after, x), 3 * x)
"""
        yield script(
            f"unused-{n}",
            "parameter-lost",
            "RemoveUnusedParameters breaks a call",
            text,
            shows="Error",
            accused=("RemoveUnusedParameters",),
        )


def other_interfaces() -> Iterator[Program]:
    """Schedules, modules of ``relax.frontend.nn``, tensors, saved parameters, the virtual machine, TE."""
    shape: Shape
    for n, (a, b, c) in enumerate([(2, 3, 4), (5, 2, 3), (4, 4, 2)]):
        text = f"""import tvm
from tvm import te

x = te.placeholder(({a}, {b}, {c}), name="x")
y = te.compute(({a}, {b}, {c}), lambda i, j, k: x[i, j, k] * 2, name="y")
sch = tvm.s_tir.Schedule(tvm.IRModule({{"main": te.create_prim_func([x, y])}}))
i, j, k = sch.get_loops(sch.get_sblock("y"))
sch.reorder(k, j, i)
extents = [int(sch.get(loop).extent) for loop in sch.get_loops(sch.get_sblock("y"))]
assert extents == [{c}, {b}, {a}], f"order of the loops: {{extents}}"
"""
        yield script(
            f"reorder-{n}",
            "schedule-reorder",
            f"Schedule.reorder(k, j, i) gives another order ({a}x{b}x{c})",
            text,
            shows="AssertionError: order of the loops",
            claim="wrong-result",
            ending="assertion",
            accused=("reorder",),
        )
    for n, shape in enumerate([(2, 3, 2, 2), (1, 2, 3, 4)]):
        text = f"""import tvm
from tvm import te

x = te.placeholder({shape}, name="x")
y = te.compute({shape}, lambda *i: x(*i) + 1, name="y")
sch = tvm.s_tir.Schedule(tvm.IRModule({{"main": te.create_prim_func([x, y])}}))
fused = sch.fuse(*sch.get_loops(sch.get_sblock("y")))
print(sch.get(fused).extent)
"""
        yield script(
            f"fuse-{n}",
            "schedule-fuse",
            f"ScheduleError when fusing the four loops of {shape}",
            text,
            shows="loop tree of depth 3",
            accused=("fuse",),
        )
    for n, (inputs, outputs) in enumerate([(4, 3), (2, 5), (3, 7)]):
        text = f"""import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Model(nn.Module):
    def __init__(self):
        self.fc = nn.Linear({inputs}, {outputs}, bias=True)

    def forward(self, x):
        return self.fc(x)


mod, params = Model().export_tvm({{"forward": {{"x": nn.spec.Tensor((1, {inputs}), "float32")}}}})
vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
values = {{"fc.weight": np.ones(({outputs}, {inputs}), "float32"), "fc.bias": np.full({outputs}, 5, "float32")}}
arguments = [tvm.runtime.tensor(values[name]) for name, _ in params]
got = vm["forward"](tvm.runtime.tensor(np.ones((1, {inputs}), "float32")), *arguments).numpy()
np.testing.assert_allclose(got, np.full((1, {outputs}), {inputs} + 5, "float32"))
"""
        yield script(
            f"linear-{n}",
            "nn-linear",
            f"nn.Linear with {outputs} outputs ignores its bias",
            text,
            shows="AssertionError",
            claim="wrong-result",
            ending="assertion",
            accused=("Linear",),
        )
    for n, shape in enumerate([(1, 2, 3), (2, 2, 2)]):
        text = f"""import tvm
from tvm.relax.frontend import nn


class Model(nn.Module):
    def __init__(self):
        self.table = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.table(ids)


mod, params = Model().export_tvm({{"forward": {{"ids": nn.spec.Tensor({shape}, "int32")}}}})
print(mod)
"""
        yield script(
            f"embedding-{n}",
            "nn-embedding",
            f"nn.Embedding cannot be exported for ids of shape {shape}",
            text,
            shows="cannot flatten the indices",
            accused=("Embedding",),
        )
    for n, (rows, columns) in enumerate([(2, 3), (4, 2), (3, 5)]):
        text = f"""import numpy as np
import tvm

a = np.arange({rows * columns}, dtype="float32").reshape({rows}, {columns})
view = a.T
copied = tvm.runtime.tensor(view).numpy()
print("numpy:", view.tolist())
print("tvm:", copied.tolist())
np.testing.assert_array_equal(copied, view)
"""
        yield script(
            f"tensor-view-{n}",
            "tensor-of-view",
            f"tvm.runtime.tensor of a transposed {rows}x{columns} array has its elements in the wrong places",
            text,
            shows="AssertionError",
            claim="wrong-result",
            ending="assertion",
        )
    for n, value in enumerate([2**40, -(2**33) - 7, 5_000_000_000]):
        text = f"""import numpy as np
import tvm

steps = np.array([1, {value}], dtype="int64")
data = tvm.runtime.save_param_dict({{"steps": tvm.runtime.tensor(steps)}})
loaded = tvm.runtime.load_param_dict(data)["steps"].numpy()
np.testing.assert_array_equal(loaded, steps)
"""
        yield script(
            f"save-{n}",
            "saved-parameters",
            "save_param_dict truncates int64 values",
            text,
            shows="AssertionError",
            claim="wrong-result",
            ending="assertion",
            accused=("save_param_dict",),
        )
    for n, ops in enumerate([("add", "multiply", "subtract"), ("maximum", "minimum", "add")]):
        body = [f"o{i} = R.{op}(x, y)" for i, op in enumerate(ops)] + ["gv = (o0, o1, o2)"]
        text = (
            IMPORTS + module([("x", (2,), "float32"), ("y", (2,), "float32")], body)
            + '\nvm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())\n'
            'x, y = np.array([5, 7], "float32"), np.array([2, 3], "float32")\n'
            'vm.set_input("main", tvm.runtime.tensor(x), tvm.runtime.tensor(y))\nvm.invoke_stateful("main")\n'
            f'first = vm.get_outputs("main")[0].numpy()\nnp.testing.assert_allclose(first, np.{ops[0]}(x, y))\n'
        )  # fmt: skip
        yield script(
            f"outputs-{n}",
            "outputs-reversed",
            f"get_outputs returns {ops[2]} first and {ops[0]} last",
            text,
            shows="AssertionError",
            claim="wrong-result",
            ending="assertion",
            accused=("get_outputs",),
        )
    for n, size in enumerate([2, 3, 4]):
        text = f"""import numpy as np
import tvm
from tvm import te, topi

x = te.placeholder(({size}, {size}, {size}), name="x")
y = topi.transpose(x, [2, 0, 1])
f = tvm.compile(te.create_prim_func([x, y]), target="llvm")
a = np.arange({size**3}, dtype="float32").reshape({size}, {size}, {size})
out = tvm.runtime.tensor(np.zeros_like(a))
f(tvm.runtime.tensor(a), out)
np.testing.assert_array_equal(out.numpy(), a.transpose(2, 0, 1))
"""
        yield script(
            f"topi-transpose-{n}",
            "topi-transpose",
            f"topi.transpose of a {size}x{size}x{size} cube is wrong",
            text,
            shows="AssertionError",
            claim="wrong-result",
            ending="assertion",
            accused=("transpose",),
        )
