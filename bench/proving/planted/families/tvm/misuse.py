"""TVM programs with a mistake of their own: calls that are refused, and wrong expectations."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm.make import MISUSE, Made, at_fault
from bench.proving.planted.families.tvm.text import IMPORTS, builder, module, noise, run
from bench.proving.planted.program import Findings

WITH_BACKTRACE = f'import os\n\nos.environ["TVM_BACKTRACE"] = "1"\n{IMPORTS}'
"""Without it the parser's message is one line that names this variable."""


def misused() -> Iterator[Made]:
    """Calls against a function's or pass's contract, which are refused."""
    two = [("x", (3,), "float32"), ("y", (3,), "float32")]
    vm = (
        '\nvm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())\n'
        'x = tvm.runtime.tensor(np.ones(3, "float32"))\n'
    )
    for n, op in enumerate(["add", "multiply"]):
        yield at_fault(
            f"too-few-{n}", "argument-missing", f"calling a compiled {op} fails",
            module(two, [f"gv = R.{op}(x, y)"]) + vm + 'print(vm["main"](x))\n', '"main"](x)', '"main"](x, x)',
            shows="argument", claim="error", ending="error",
        )  # fmt: skip
    for n, (declared, passed) in enumerate([((2, 3), (3, 3)), ((4,), (5,)), ((1, 2, 2), (2, 2))]):
        yield at_fault(
            f"wrong-shape-{n}", "argument-shape", f"error for an argument of shape {passed} at run time",
            builder([("x", declared, "float32")], ["gv = R.nn.relu(x)"])
            + run({"x": f'np.ones({passed}, "float32")'}) + "print(got)\n",
            f"np.ones({passed}", f"np.ones({declared}", shows="Error", claim="error", ending="error",
        )  # fmt: skip
    for n, (made, right) in enumerate(
        [
            ("np.ones(4)", 'np.ones(4, "float32")'),
            ("np.arange(4)", 'np.arange(4, dtype="float32")'),
            ("np.full(4, 0.5)", 'np.full(4, 0.5, "float32")'),
        ]
    ):
        yield at_fault(
            f"wrong-dtype-{n}", "argument-dtype", "the virtual machine rejects a NumPy array of the right shape",
            module([("x", (4,), "float32")], ["gv = R.exp(x)"]) + run({"x": made}) + "print(got)\n",
            f"x = {made}", f"x = {right}", shows="Error", claim="error", ending="error",
        )  # fmt: skip
    for n, size in enumerate([3, 4]):
        text = (
            module([("x", (size, size), "float32"), ("w", (size, size), "float32")],
                   ["t = R.permute_dims(w, axes=[1, 0])", "gv = R.matmul(x, t)"]).replace(
                "        with R.dataflow", '        R.func_attr({"num_input": 1})\n        with R.dataflow', 1)
            + "\nmod = relax.transform.LiftTransformParams()(Module)\n"
            'vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())\n'
            f"x, w = {noise((size, size))}, {noise((size, size), seed=1)}\n"
            'got = vm["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w)).numpy()\n'
            "np.testing.assert_allclose(got, x @ w.T, rtol=1e-4, atol=1e-5)\n"
        )  # fmt: skip
        yield at_fault(
            f"lifted-{n}", "calling-convention", "LiftTransformParams loses a transposition", text,
            'vm["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w))',
            'vm["main"](tvm.runtime.tensor(x), *vm["main_transform_params"]((tvm.runtime.tensor(w),)))',
            findings=Findings(must=("signature-changed",), never=MISUSE.never),
        )  # fmt: skip
    for n, value in enumerate([2, 5]):
        text = (
            module(two, ["gv = R.multiply(x, y)"])
            + f'\nmod = relax.transform.BindParams("main", {{"y": np.full(3, {value}, "float32")}})(Module)\n'
            'vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())\n'
            'x = tvm.runtime.tensor(np.ones(3, "float32"))\n'
            'print(vm["main"](x, x))\n'
        )  # fmt: skip
        yield at_fault(
            f"bound-{n}", "calling-convention", "BindParams makes a function that cannot be called any more", text,
            '"main"](x, x)', '"main"](x)', shows="argument", claim="error", ending="error",
            findings=Findings(may=("signature-changed", "broken-rule"), never=MISUSE.never),
        )  # fmt: skip
    for n, name in enumerate(["forward", "Main"]):
        yield at_fault(
            f"no-function-{n}", "function-name", f"vm[\"{name}\"] is not found after compiling",
            module(two, ["gv = R.add(x, y)"]) + vm + f'print(vm["{name}"](x, x))\n', f'"{name}"', '"main"',
            shows=name, claim="error", ending="error",
        )  # fmt: skip
    for n, (op, name) in enumerate([("add", "lv"), ("exp", "tmp")]):
        line = f"{name} = R.{op}({'x, y' if op == 'add' else 'x'})"
        text = (
            module(two, [line, f"gv = R.multiply({name}, y)"]).replace(
                "        return gv", f"        z = R.add(gv, {name})\n        return z"
            )
            + vm
            + 'print(vm["main"](x, x))\n'
        )
        yield at_fault(
            f"not-an-output-{n}", "dataflow-output", "a variable of a dataflow block cannot be used after it", text,
            "R.output(gv)", f"R.output(gv, {name})", imports=WITH_BACKTRACE,
            shows="Error", claim="error", ending="error",
        )  # fmt: skip
    for n, (a, b) in enumerate([(3, 4), (2, 5)]):
        text = (
            module([("x", ("n",), "float32"), ("y", ("n",), "float32")], ["gv = R.add(x, y)"])
            + run({"x": f'np.ones({a}, "float32")', "y": f'np.ones({b}, "float32")'}) + "print(got)\n"
        )  # fmt: skip
        yield at_fault(
            f"symbolic-{n}", "symbolic-shape", "adding two vectors of a dynamic length fails at run time", text,
            f"np.ones({b},", f"np.ones({a},", shows="Error", claim="error", ending="error",
        )  # fmt: skip
    for n, op in enumerate(["sin", "sqrt"]):
        text = (
            module([("x", (3,), "float32")], [f"gv = R.{op}(x)"])
            + '\nvm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())\n'
            'vm.set_input("main", tvm.runtime.tensor(np.ones(3, "float32")))\nprint(vm.get_outputs("main"))\n'
        )  # fmt: skip
        yield at_fault(
            f"not-invoked-{n}", "outputs-too-early", "get_outputs fails after set_input", text,
            'print(vm.get', 'vm.invoke_stateful("main")\nprint(vm.get', shows="Error", claim="error", ending="error",
        )  # fmt: skip


def misjudged() -> Iterator[Made]:
    """Expectations that are wrong, while what is computed is right."""
    for n, (size, shape) in enumerate([("(8,)", (8,)), ("(3, 4)", (3, 4))]):
        text = (
            module([("x", shape, "float32")], ["gv = R.abs(x)"])
            + run({"x": f'np.random.rand(*{size}).astype("float32")'})
            + (f"np.testing.assert_allclose(got, np.abs(np.random.rand(*{size})), rtol=1e-3)\n")
        )
        yield at_fault(
            f"unseeded-{n}", "random-twice", "abs returns other numbers than it was given", text,
            f"np.abs(np.random.rand(*{size}))", "np.abs(x)", accepted=("flaky",),
            findings=Findings(may=("nondeterministic", *MISUSE.may), never=MISUSE.never),
        )  # fmt: skip
    for n, (count, dtype, tolerance) in enumerate(
        [(5000, "float32", "1e-12"), (300, "float16", "1e-7"), (20000, "float32", "1e-10")]
    ):
        text = (
            builder([("x", (count,), dtype)], ["gv = R.sum(x, axis=[0])"])
            + run({"x": f'(np.random.default_rng(0).random({count}) + 0.1).astype("{dtype}")'})
            + (f'np.testing.assert_allclose(got, x.astype("float64").sum(), rtol={tolerance})\n')
        )
        yield at_fault(
            f"tolerance-{n}",
            "tolerance",
            f"the sum of {count} numbers is not exact",
            text,
            f"rtol={tolerance}",
            "rtol=0.05",
        )
    for n, (op, shape, wrong, right) in enumerate([
        ("std(x, axis=[1])", (2, 4), "x.std(axis=1, ddof=1)", "x.std(axis=1)"),
        ("variance(x, axis=[0])", (5, 2), "x.var(axis=0, ddof=1)", "x.var(axis=0)"),
        ("nn.softmax(x, axis=-1)", (3, 3), "np.exp(x) / np.exp(x).sum(axis=0)",
            "np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)"),
        ("argmax(x, axis=0)", (3, 3), "x.argmax(axis=1)", "x.argmax(axis=0)"),
        ("permute_dims(x, axes=[2, 0, 1])", (2, 2, 2), "x.transpose(1, 2, 0)", "x.transpose(2, 0, 1)"),
        ("cumsum(x, axis=1)", (2, 3), "np.cumsum(x).reshape(2, 3)", "np.cumsum(x, axis=1)"),
        ("tile(x, [2])", (3,), "np.repeat(x, 2)", "np.tile(x, 2)"),
        ("round(x)", (4,), "np.floor(x + 0.5)", "np.round(x)"),
        ("tril(x, 0)", (3, 3), "np.triu(x)", "np.tril(x)"),
    ]):  # fmt: skip
        values = "np.array([0.5, 1.5, 2.5, 3.5], 'float32')" if op.startswith("round") else noise(shape, seed=n)
        name = op.partition("(")[0].rpartition(".")[2]
        written = module if n % 2 else builder
        text = (
            written([("x", shape, "float32")], [f"gv = R.{op}"])
            + run({"x": values})
            + f"np.testing.assert_allclose(got, {wrong}, rtol=1e-4, atol=1e-6)\n"
        )
        yield at_fault(
            f"expects-{name}-{n}", "wrong-expectation", f"{name} does not agree with NumPy", text, wrong, right
        )
    for n, (op, dtype, a, b, most) in enumerate([
        ("add", "int8", 100, 100, 127), ("multiply", "uint8", 20, 20, 255), ("subtract", "uint8", 3, 5, 0),
    ]):  # fmt: skip
        text = (
            builder([("a", (2,), dtype), ("b", (2,), dtype)], [f"gv = R.{op}(a, b)"])
            + run({"a": f'np.full(2, {a}, "{dtype}")', "b": f'np.full(2, {b}, "{dtype}")'})
            + (f'np.testing.assert_array_equal(got, np.full(2, {most}, "{dtype}"))\n')
        )
        wraps = {"add": a + b - 256, "multiply": a * b % 256, "subtract": (a - b) % 256}[op]
        yield at_fault(
            f"overflow-{n}",
            "overflow",
            f"{op} of {dtype} does not saturate",
            text,
            f"np.full(2, {most},",
            f"np.full(2, {wraps},",
        )
    for n, op in enumerate(["log", "sqrt"]):
        text = (
            module([("x", (3,), "float32")], [f"gv = R.{op}(x)"])
            + run({"x": 'np.array([-1, 1, 4], "float32")'})
            + (f"assert (got == np.{op}(x)).all(), (got, np.{op}(x))\n")
        )
        yield at_fault(
            f"nan-{n}",
            "nan-compared",
            f"{op} of a negative number does not equal NumPy's",
            text,
            f"(got == np.{op}(x)).all()",
            f"np.allclose(got, np.{op}(x), equal_nan=True)",
        )
    for n, op in enumerate(["negative", "exp"]):
        text = (
            module([("x", (4,), "float32")], [f"gv = R.{op}(x)"])
            + f"""
x = np.linspace(0, 1, 4, dtype="float32")
vm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
reference = x
got = vm["main"](tvm.runtime.tensor(x)).numpy()
x += 1
np.testing.assert_allclose(got, np.{op}(reference), rtol=1e-4)
"""
        )
        yield at_fault(
            f"reference-changed-{n}",
            "reference-changed",
            f"R.{op} works on changed values",
            text,
            "reference = x\n",
            "reference = x.copy()\n",
        )
