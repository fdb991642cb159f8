"""Operators on which the broken builds fail, crash, hang, or leave memory as it should not be."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm.make import INNOCENT, crash, hang, script
from bench.proving.planted.families.tvm.text import IMPORTS, builder, module, ramp, run
from bench.proving.planted.program import Findings, Program


def wrong_memory() -> Iterator[Program]:
    """Operators that overwrite what they were given, or leave out a part of what they return."""
    for n, size in enumerate([16, 20, 33]):
        text = (
            IMPORTS + module([("x", (size,), "float32")], ["gv = R.nn.relu(x)"])
            + f"\ndata = np.linspace(-1, 1, {size}).astype(\"float32\")\nx = tvm.runtime.tensor(data)\n"
            'vm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())\nvm["main"](x)\n'
            "np.testing.assert_array_equal(x.numpy(), data)\n"
        )  # fmt: skip
        yield script(
            f"relu-argument-{n}", "argument-overwritten", f"relu changes its argument (vector of {size})", text,
            shows="AssertionError", claim="wrong-result", ending="assertion", accused=("relu",),
            findings=Findings(may=("input-mutated", "guilty-pass"), never=INNOCENT.never),
        )  # fmt: skip
    for n, size in enumerate([7, 10, 13]):
        text = (
            IMPORTS + module([("x", (size,), "float32")], ["gv = R.nn.silu(x)"])
            + run({"x": f'np.full({size}, 2, "float32")'})
            + "np.testing.assert_allclose(got, x / (1 + np.exp(-x)), rtol=1e-4)\n"
        )  # fmt: skip
        yield script(
            f"silu-tail-{n}", "output-not-written", f"silu of {size} elements: the last ones are garbage", text,
            shows="AssertionError", claim="wrong-result", ending="assertion", accused=("silu",),
            findings=Findings(may=("nondeterministic", "uninitialized-read", "guilty-pass"),
                never=INNOCENT.never[:1]),
        )  # fmt: skip


def errors() -> Iterator[Program]:
    """Operators that a broken build does not compile, for a type, a rank or a length."""
    cases = [
        ("sqrt-half-0", "sqrt", "float16", (4,), "unsupported width 16", "sqrt does not compile for float16"),
        ("sqrt-half-1", "sqrt", "float16", (2, 3), "unsupported width 16", "InternalError for sqrt of a half matrix"),
        ("rsqrt-double-0", "rsqrt", "float64", (5,), "'float64'", "rsqrt raises KeyError for float64"),
        ("rsqrt-double-1", "rsqrt", "float64", (2, 2), "'float64'", "cannot legalize rsqrt in double"),
        ("negative-half-0", "negative", "float16", (6,), "float16", "negative of a float16 vector does not compile"),
        ("negative-half-1", "negative", "float16", (3, 2), "float16", "type mismatch when compiling -x in fp16"),
    ]
    for name, op, dtype, shape, shows, title in cases:
        written = builder if name.endswith("1") else module
        text = (
            IMPORTS + written([("x", shape, dtype)], [f"gv = R.{op}(x)"]) + run({"x": f'np.ones({shape}, "{dtype}")'})
        )
        yield script(name, f"error-{op}", title, text + "print(got)\n", shows=shows, accused=(op,))
    for n, (shape, target) in enumerate(
        [((6, 4), (1, 2, 3, 2, 2)), ((24,), (2, 1, 3, 2, 2)), ((4, 3, 2), (4, 3, 1, 2, 1))]
    ):
        text = IMPORTS + module([("x", shape, "float32")], [f"gv = R.reshape(x, {target})"]) + run({"x": ramp(shape)})
        yield script(
            f"reshape-rank-{n}", "error-reshape", f"reshape of {shape} to {target}: list index out of range",
            text + f"assert got.shape == {target}\n", shows="IndexError: list index out of range",
            accused=("reshape",),
        )  # fmt: skip
    for n, dtype in enumerate(["uint8", "int8", "int16"]):
        text = (
            IMPORTS + builder([("table", (8, 2), "float32"), ("ids", (3,), dtype)],
                ["gv = R.take(table, ids, axis=0)"])
            + run({"table": ramp((8, 2)), "ids": f'np.array([1, 7, 0], dtype="{dtype}")'})
            + "np.testing.assert_array_equal(got, table[ids])\n"
        )  # fmt: skip
        yield script(
            f"take-index-{n}", "error-take", f"take with {dtype} indices fails to compile", text,
            shows=f"index of type {dtype}", accused=("take",),
        )  # fmt: skip
    for n, shape in enumerate([(1, 2, 3, 4), (2, 2, 2, 2)]):
        text = IMPORTS + module([("x", shape, "float32")], ["gv = R.flatten(x)"]) + run({"x": ramp(shape)})
        yield script(
            f"flatten-{n}", "error-flatten", f"RecursionError when flattening a tensor of shape {shape}",
            text + "print(got.shape)\n", shows="maximum recursion depth exceeded", accused=("flatten",),
        )  # fmt: skip
    for n, length in enumerate([9, 12]):
        body = [
            "lv0 = R.exp(x)",
            *(f"lv{i} = R.multiply(lv{i - 1}, x)" for i in range(1, length)),
            f"gv = R.add(lv{length - 1}, x)",
        ]
        text = (
            IMPORTS + module([("x", (4,), "float32")], body)
            + "\nmod = relax.transform.LegalizeOps()(Module)\nmod = relax.transform.AnnotateTIROpPattern()(mod)\n"
            "mod = relax.transform.FuseOps()(mod)\nprint(len(mod.get_global_vars()))\n"
        )  # fmt: skip
        yield script(
            f"fuse-ops-{n}", "error-fuse-ops", f"FuseOps fails on a chain of {length + 1} elementwise operators",
            text,
            shows="group->num_nodes <= max_fused_ops", accused=("FuseOps",),
        )  # fmt: skip


def crashes() -> Iterator[Program]:
    """Operators and passes on which a broken build dies by a signal, or never ends."""
    for n, (shape, target) in enumerate([((3, 1), (2, 1, 2, 3, 4)), ((4,), (1, 2, 1, 2, 4))]):
        text = (
            IMPORTS
            + module([("x", shape, "float32")], [f"gv = R.broadcast_to(x, {target})"])
            + run({"x": ramp(shape)})
        )
        yield crash(
            f"broadcast-{n}", "broadcast", f"broadcast_to {target} segfaults", text + "print(got.shape)\n", 11
        )
    for n, count in enumerate([5, 6]):
        names = [f"t{i}" for i in range(count)]
        text = (
            IMPORTS + module([(name, (2,), "float32") for name in names],
                [f"gv = R.stack(({', '.join(names)}), axis=0)"])
            + run({name: f'np.full(2, {i}, "float32")' for i, name in enumerate(names)}) + "print(got)\n"
        )  # fmt: skip
        yield crash(f"stack-{n}", "stack", f"stacking {count} tensors crashes while compiling", text, 11)
    for n, shape in enumerate([(0,), (3, 0)]):
        text = (
            IMPORTS
            + builder([("x", shape, "float32")], ["gv = R.zeros_like(x)"])
            + run({"x": f'np.zeros({shape}, "float32")'})
        )
        yield crash(
            f"zeros-like-{n}",
            "zeros-like",
            f"zeros_like of an empty tensor {shape} aborts",
            text + "print(got.shape)\n",
            6,
        )
    for n, shape in enumerate([(4,), (2, 3)]):
        text = (
            IMPORTS + module([("a", shape, "int8"), ("b", shape, "int8")], ["gv = R.floor_mod(a, b)"])
            + run({"a": ramp(shape, "int8", "+ 5"), "b": f'np.full({shape}, 3, "int8")'})
            + "np.testing.assert_array_equal(got, a % b)\n"
        )  # fmt: skip
        yield crash(f"floor-mod-{n}", "floor-mod", f"floating point exception in floor_mod of int8 {shape}", text, 8)
    for n, count in enumerate([3, 4]):
        inner = "".join(
            f"""
    @R.function(private=True)
    def part{i}(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        gv = R.add(x, R.const({i}.0, "float32"))
        return gv
"""
            for i in range(count - 1)
        )
        calls = "".join(f"        x{i + 1} = cls.part{i}(x{i})\n" for i in range(count - 1))
        text = f"""{IMPORTS}

@I.ir_module
class Parts:{inner}
    @R.function
    def main(x0: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Parts
{calls}        return x{count - 1}


lifted = relax.transform.LambdaLift()(Parts)
print(len(lifted.get_global_vars()), "functions")
"""
        yield crash(
            f"lambda-lift-{n}", "lambda-lift", f"LambdaLift segfaults on a module of {count} functions", text, 11
        )
    for n, shape in enumerate([(1, 4, 1, 1), (1, 1, 1, 2)]):
        text = (
            IMPORTS
            + module([("x", shape, "float32")], ["gv = R.squeeze(x)"])
            + run({"x": ramp(shape)})
            + "print(got.shape)\n"
        )
        yield hang(f"squeeze-{n}", "squeeze", f"compiling squeeze of {shape} never ends", text)
    body = ["a = R.matmul(x, w)", "b = R.matmul(a, w)", "gv = R.matmul(b, w)"]
    text = IMPORTS + module([("x", (2, 2), "float32"), ("w", (2, 2), "float32")], body)
    yield hang(
        "normalize-0",
        "normalize",
        "Normalize hangs on three matmuls in a row",
        text + "print(relax.transform.Normalize()(Module))\n",
    )
    for n, count in enumerate([4, 5]):
        text = (
            "import time\n\n" + IMPORTS
            + module([("x", (2 * count, 3), "float32")], [f"lv = R.split(x, {count}, axis=0)", "gv = lv[1]"])
            + "\nbegan = time.perf_counter()\nex = tvm.compile(Module, target=\"llvm\")\n"
            "seconds = time.perf_counter() - began\nassert seconds < 5, f\"compiled in {seconds:.0f} s\"\n"
        )  # fmt: skip
        yield script(
            f"split-slow-{n}",
            "slow",
            f"compiling a split into {count} parts takes ten seconds",
            text,
            shows="AssertionError: compiled in",
            ending="assertion",
            accused=("split",),
        )
