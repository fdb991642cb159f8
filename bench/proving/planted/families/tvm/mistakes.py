"""TVM programs with a mistake of their own, on releases as they are: indices and memory."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm.make import OUT_OF_BOUNDS, TENSOR_IR, UNWRITTEN, Made, at_fault
from bench.proving.planted.families.tvm.text import IMPORTS, TIRX, builder, module, noise, ramp, run


def out_of_bounds() -> Iterator[Made]:
    for n, (rows, ids, inside) in enumerate(
        [(10, "[0, 9, 10]", "[0, 9, 9]"), (6, "[7, 1]", "[5, 1]"), (4, "[1, 2, 3, 4]", "[1, 2, 3, 3]")]
    ):
        yield at_fault(
            f"take-beyond-{n}", "take-beyond", "take does not clip the last index",
            builder([("table", (rows, 3), "float32"), ("ids", (ids.count(",") + 1,), "int64")],
                ["gv = R.take(table, ids, axis=0)"])
            + run({"table": noise((rows, 3), seed=n), "ids": f"np.array({ids})"})
            + f"np.testing.assert_allclose(got, table[np.clip(ids, 0, {rows - 1})])\n",
            ids, inside, findings=OUT_OF_BOUNDS,
        )  # fmt: skip
    for n, (shape, ids, inside) in enumerate(
        [((3, 4), "[[0, 3, 1, 2]]", "[[0, 2, 1, 2]]"), ((2, 3), "[[2, 0, 1]]", "[[1, 0, 1]]")]
    ):
        yield at_fault(
            f"gather-elements-{n}", "gather-elements-beyond",
            "gather_elements returns numbers that are not in the input",
            module([("x", shape, "float32"), ("i", (1, shape[1]), "int64")], ["gv = R.gather_elements(x, i, axis=0)"])
            + run({"x": ramp(shape, start="+ 1"), "i": f"np.array({ids})"})
            + "assert np.isin(got, x).all(), got\n",
            ids, inside, findings=OUT_OF_BOUNDS,
        )  # fmt: skip
    for n, (shape, ids, inside) in enumerate(
        [((3, 3), "[[3, 1]]", "[[2, 1]]"), ((2, 4), "[[0, 1], [2, 3]]", "[[0, 1], [1, 3]]")]
    ):
        count = ids.count("],") + 1
        yield at_fault(
            f"gather-nd-{n}", "gather-nd-beyond", "gather_nd reads garbage instead of raising an error",
            builder([("x", shape, "float32"), ("i", (count, 2), "int64")], ["gv = R.gather_nd(x, i)"])
            + run({"x": ramp(shape, start="+ 1"), "i": f"np.array({ids})"})
            + "assert np.isin(got, x).all(), got\n",
            ids, inside, findings=OUT_OF_BOUNDS,
        )  # fmt: skip
    for n, (size, ids, inside) in enumerate(
        [(8, "[1, 8, 3]", "[1, 7, 3]"), (5, "[5, 0]", "[4, 0]"), (16, "[15, 17]", "[15, 14]")]
    ):
        count = ids.count(",") + 1
        yield at_fault(
            f"te-lookup-{n}", "te-lookup-beyond", "a TE lookup of a table returns a number that is not in it",
            f"""
table = te.placeholder(({size},), name="table")
ids = te.placeholder(({count},), dtype="int32", name="ids")
found = te.compute(({count},), lambda i: table[ids[i]], name="found")
f = tvm.compile(te.create_prim_func([table, ids, found]), target="llvm")
values = np.arange({size}, dtype="float32") + 0.5
out = tvm.runtime.tensor(np.zeros({count}, "float32"))
f(tvm.runtime.tensor(values), tvm.runtime.tensor(np.array({ids}, "int32")), out)
assert np.isin(out.numpy(), values).all(), out.numpy()
""",
            ids, inside, findings=OUT_OF_BOUNDS, imports="import numpy as np\nimport tvm\nfrom tvm import te\n",
        )  # fmt: skip
    for n, (rows, columns) in enumerate([(3, 4), (2, 6), (4, 3)]):
        yield at_fault(
            f"tir-neighbour-{n}", "tir-neighbour", "the last column of a difference of neighbours is wrong",
            f"""

@T.prim_func(s_tir=True)
def difference(a: T.Buffer(({rows}, {columns}), "float32"), b: T.Buffer(({rows}, {columns}), "float32")):
    for i, j in T.grid({rows}, {columns}):
        with T.sblock("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj + 1] - a[vi, vj]


f = tvm.compile(difference, target="llvm")
x = np.arange({rows * columns}, dtype="float32").reshape({rows}, {columns}) ** 2
out = tvm.runtime.tensor(np.zeros_like(x))
f(tvm.runtime.tensor(x), out)
np.testing.assert_allclose(out.numpy()[:-1], np.diff(x, axis=1, append=x[:, -1:])[:-1])
""",
            "a[vi, vj + 1] -", f"a[vi, T.min(vj + 1, {columns - 1})] -", findings=OUT_OF_BOUNDS, imports=TENSOR_IR,
        )  # fmt: skip
    for n, (rows, ids, inside) in enumerate([(4, "[4, 0]", "[3, 0]"), (7, "[6, 7, 1]", "[6, 5, 1]")]):
        count = ids.count(",") + 1
        yield at_fault(
            f"embedding-beyond-{n}", "embedding-beyond", "nn.Embedding returns something else for the last token",
            f"""

class Model(nn.Module):
    def __init__(self):
        self.table = nn.Embedding({rows}, 2)

    def forward(self, ids):
        return self.table(ids)


mod, params = Model().export_tvm({{"forward": {{"ids": nn.spec.Tensor(({count},), "int32")}}}})
weight = np.arange({2 * rows}, dtype="float32").reshape({rows}, 2) + 1
vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
got = vm["forward"](tvm.runtime.tensor(np.array({ids}, "int32")), tvm.runtime.tensor(weight)).numpy()
assert np.isin(got, weight).all(), got
""",
            ids, inside, findings=OUT_OF_BOUNDS,
            imports="import numpy as np\nimport tvm\nfrom tvm import relax\nfrom tvm.relax.frontend import nn\n",
        )  # fmt: skip
    for n, size in enumerate([6, 9]):
        yield at_fault(
            f"scatter-spills-{n}", "scatter-spills", "scatter_elements writes into another row",
            module([("x", (3, size), "float32"), ("i", (1, 1), "int64"), ("u", (1, 1), "float32")],
                ["gv = R.scatter_elements(x, i, u, axis=1)"])
            + run({"x": f'np.zeros((3, {size}), "float32")', "i": f"np.array([[{size}]])",
                   "u": 'np.array([[7]], "float32")'})
            + "assert got[0].sum() == 7, got\n",
            f"[[{size}]]", f"[[{size - 1}]]", findings=OUT_OF_BOUNDS,
        )  # fmt: skip


def never_written() -> Iterator[Made]:
    for n, (rows, columns) in enumerate([(2, 3), (4, 2), (3, 5)]):
        yield at_fault(
            f"sum-twice-{n}", "no-start", "a kernel gives another result when it is called a second time",
            f"""

@T.prim_func(s_tir=True)
def row_sum(a: T.Buffer(({rows}, {columns}), "float32"), b: T.Buffer(({rows},), "float32")):
    for i, k in T.grid({rows}, {columns}):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            b[vi] = b[vi] + a[vi, vk]


f = tvm.compile(row_sum, target="llvm")
a = tvm.runtime.tensor(np.ones(({rows}, {columns}), "float32"))
out = tvm.runtime.tensor(np.zeros({rows}, "float32"))
f(a, out)
f(a, out)
np.testing.assert_allclose(out.numpy(), np.full({rows}, {columns}))
""",
            "            b[vi] =",
            "            with T.init():\n                b[vi] = T.float32(0)\n            b[vi] =",
            findings=UNWRITTEN, imports=TENSOR_IR,
        )  # fmt: skip
    for n, size in enumerate([6, 9, 12]):
        yield at_fault(
            f"border-{n}", "border-not-written", "the first element of a smoothed vector is garbage",
            f"""

@T.prim_func(s_tir=True)
def smooth(a: T.Buffer(({size},), "float32"), b: T.Buffer(({size},), "float32")):
    t = T.sblock_alloc_buffer(({size},), "float32")
    for i in range({size - 1}):
        with T.sblock("t"):
            v = T.axis.spatial({size}, i + 1)
            t[v] = a[v] * T.float32(2)
    for i in range({size}):
        with T.sblock("b"):
            v = T.axis.spatial({size}, i)
            b[v] = t[v] + a[v]


f = tvm.compile(smooth, target="llvm")
out = tvm.runtime.tensor(np.zeros({size}, "float32"))
f(tvm.runtime.tensor(np.full({size}, 3, "float32")), out)
np.testing.assert_allclose(out.numpy(), np.full({size}, 9, "float32"))
""",
            f"range({size - 1}):\n        with T.sblock(\"t\"):\n            v = T.axis.spatial({size}, i + 1)",
            f"range({size}):\n        with T.sblock(\"t\"):\n            v = T.axis.spatial({size}, i)",
            findings=UNWRITTEN, imports=TENSOR_IR,
        )  # fmt: skip
    for n, (rows, columns) in enumerate([(2, 4), (3, 3)]):
        yield at_fault(
            f"max-start-{n}", "no-start", "the maximum of negative rows is 0",
            f"""

@T.prim_func(s_tir=True)
def row_max(a: T.Buffer(({rows}, {columns}), "float32"), b: T.Buffer(({rows},), "float32")):
    for i, k in T.grid({rows}, {columns}):
        with T.sblock("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            b[vi] = T.max(b[vi], a[vi, vk])


f = tvm.compile(row_max, target="llvm")
x = -1 - np.arange({rows * columns}, dtype="float32").reshape({rows}, {columns})
out = tvm.runtime.tensor(np.zeros({rows}, "float32"))
f(tvm.runtime.tensor(x), out)
np.testing.assert_allclose(out.numpy(), x.max(axis=1))
""",
            "            b[vi] =",
            '            with T.init():\n                b[vi] = T.min_value("float32")\n            b[vi] =',
            findings=UNWRITTEN, imports=TENSOR_IR,
        )  # fmt: skip
    for n, size in enumerate([5, 8]):
        yield at_fault(
            f"call-tir-tail-{n}", "output-not-written", "the last element of a call_tir output is never right",
            f"""

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def double(a: T.Buffer(({size},), "float32"), b: T.Buffer(({size},), "float32")):
        for i in range({size} - 1):
            with T.sblock("b"):
                v = T.axis.spatial({size}, i)
                b[v] = a[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor(({size},), "float32")):
        cls = Module
        gv = R.call_tir(cls.double, (x,), R.Tensor(({size},), "float32"))
        return gv


vm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
x = np.full({size}, 21, "float32")
np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(x)).numpy(), 2 * x)
""",
            f"range({size} - 1)", f"range({size})", findings=UNWRITTEN, imports=IMPORTS + TIRX,
        )  # fmt: skip
