"""TVM programs without a mistake, about which a report says what no release does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from bench.proving.planted.families.tvm.make import INNOCENT
from bench.proving.planted.families.tvm.text import IMPORTS, Parameters, builder, module, noise, ramp, run
from bench.proving.planted.program import PYTHON, WRONG_DONE, Ending, Planted, Program, tell_over
from bench.proving.story import Claim

BUILDS = (("0.26.0", "0.27.0.post1"), ("0.25.0", "0.27.0"), ("0.25.0", "0.26.0"), ("0.27.0", "0.27.0.post1"))
SEGFAULT = "!!!!!!! Segfault encountered !!!!!!!\nSegmentation fault (core dumped)"
UNEQUAL = """\
Traceback (most recent call last):
  File "/home/user/issue/repro.py", line {line}, in <module>
    {last}
AssertionError:
Not equal to tolerance rtol=1e-05, atol=0

Mismatched elements: {wrong} / {count} ({share:.3g}%)
Max absolute difference among violations: {most}"""
REFUSED = """\
Traceback (most recent call last):
  File "/home/user/issue/repro.py", line {line}, in <module>
    ex = tvm.compile(Module, target="llvm")
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/user/.venv/lib/python3.11/site-packages/tvm/driver/build_module.py", line 104, in compile
    return tvm.relax.build(
           ^^^^^^^^^^^^^^^^
tvm.error.InternalError: Check failed: {check}"""


def unfounded() -> Iterator[Planted]:
    """Claims of wrong values, failed checks, errors, crashes and endless runs, none of which happens."""
    made = (*_wrong_values(), *_failed_checks(), *_errors(), *_crashes(), *_endless())
    for number, (program, builds) in enumerate(zip(made, cycle(BUILDS), strict=False)):
        yield tell_over(
            program, dict.fromkeys(builds, "pass"), "not-reproduced", reported=builds[number % 2], told_by="",
            never=(*WRONG_DONE, "invalid-repro"),
        )  # fmt: skip


def _claim(
    name: str, family: str, title: str, text: str, *, claim: Claim, ending: Ending, quoted: str = "", right: str = ""
) -> Program:
    return Program(
        name=f"tvm-{name}", family=f"tvm-{family}", toolchain="tvm", title=title, files={"repro.py": text},
        steps=PYTHON, claim=claim, ending=ending, shows="signal 11" if ending == "signal" else "Error",
        findings=INNOCENT, quoted=quoted, right=right,
    )  # fmt: skip


def _wrong_values() -> Iterator[Program]:
    cases: list[tuple[str, str, Parameters, str, dict[str, str], str, str]] = [
        ("flip", "flip along the last axis does nothing", [("x", (2, 3), "int32")], "R.flip(x, axis=1)",
         {"x": ramp((2, 3), "int32")}, "[[2, 1, 0], [5, 4, 3]]", "[[0, 1, 2], [3, 4, 5]]"),
        ("cumsum", "cumsum leaves out the element itself", [("x", (5,), "int32")], "R.cumsum(x, axis=0)",
         {"x": ramp((5,), "int32", "+ 1")}, "[1, 3, 6, 10, 15]", "[0, 1, 3, 6, 10]"),
        ("clip", "clip ignores its upper bound", [("x", (5,), "float32")], "R.clip(x, 1, 3)",
         {"x": ramp((5,))}, "[1.0, 1.0, 2.0, 3.0, 3.0]", "[1.0, 1.0, 2.0, 3.0, 4.0]"),
        ("argmin", "argmin returns the last of equal minima", [("x", (4,), "float32")], "R.argmin(x, axis=0)",
         {"x": 'np.array([2, 1, 1, 3], "float32")'}, "1", "2"),
        ("stack", "stack along axis 1 is the same as along axis 0",
         [("x", (3,), "int32"), ("y", (3,), "int32")], "R.stack((x, y), axis=1)",
         {"x": ramp((3,), "int32"), "y": ramp((3,), "int32", "+ 10")},
         "[[0, 10], [1, 11], [2, 12]]", "[[0, 1, 2], [10, 11, 12]]"),
        ("bitwise-and", "bitwise_and computes or", [("x", (4,), "int32"), ("y", (4,), "int32")],
         "R.bitwise_and(x, y)", {"x": ramp((4,), "int32", "+ 4"), "y": 'np.full(4, 6, "int32")'},
         "[4, 4, 6, 6]", "[6, 7, 6, 7]"),
        ("left-shift", "left_shift shifts one bit too few", [("x", (3,), "int32"), ("n", (3,), "int32")],
         "R.left_shift(x, n)", {"x": ramp((3,), "int32", "+ 1"), "n": 'np.array([1, 2, 3], "int32")'},
         "[2, 8, 24]", "[1, 4, 12]"),
        ("repeat", "repeat works like tile", [("x", (3,), "float32")], "R.repeat(x, 2, axis=0)",
         {"x": ramp((3,))}, "[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]", "[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]"),
        ("astype", "astype to int32 rounds up", [("x", (4,), "float32")], 'R.astype(x, "int32")',
         {"x": 'np.array([0.5, 1.5, -0.5, -1.5], "float32")'}, "[0, 1, 0, -1]", "[1, 2, 0, -1]"),
        ("floor-mod", "floor_mod of a negative number is negative", [("a", (4,), "int32"), ("b", (4,), "int32")],
         "R.floor_mod(a, b)", {"a": 'np.array([-7, 7, -8, 8], "int32")', "b": 'np.full(4, 3, "int32")'},
         "[2, 1, 1, 2]", "[-1, 1, -2, 2]"),
        ("strided-slice", "strided_slice starts one element late", [("x", (6,), "int32")],
         "R.strided_slice(x, axes=[0], begin=[1], end=[4])", {"x": ramp((6,), "int32")}, "[1, 2, 3]", "[2, 3, 4]"),
        ("where", "where with a broadcast condition takes the wrong branch",
         [("c", (3,), "bool"), ("x", (2, 3), "int32"), ("y", (2, 3), "int32")], "R.where(c, x, y)",
         {"c": "np.array([True, False, True])", "x": ramp((2, 3), "int32"), "y": 'np.full((2, 3), -1, "int32")'},
         "[[0, -1, 2], [3, -1, 5]]", "[[-1, 1, -1], [-1, 4, -1]]"),
        ("sort", "sort returns descending order", [("x", (5,), "float32")], "R.sort(x, axis=0)",
         {"x": 'np.array([3, 1, 4, 0, 2], "float32")'}, "[0.0, 1.0, 2.0, 3.0, 4.0]", "[4.0, 3.0, 2.0, 1.0, 0.0]"),
        ("int-matmul", "matmul of int32 truncates to 8 bits", [("a", (2, 2), "int32"), ("b", (2, 2), "int32")],
         "R.matmul(a, b)", {"a": 'np.full((2, 2), 20, "int32")', "b": 'np.full((2, 2), 10, "int32")'},
         "[[400, 400], [400, 400]]", "[[-112, -112], [-112, -112]]"),
    ]  # fmt: skip
    for number, (name, title, parameters, body, values, right, wrong) in enumerate(cases):
        written = module if number % 2 else builder
        text = IMPORTS + written(parameters, [f"gv = {body}"]) + run(values) + 'print("result:", got.tolist())\n'
        yield _claim(
            f"unfounded-{name}", "unfounded-values", title, text, claim="wrong-result", ending="printed",
            quoted=f"result: {wrong}", right=f"result: {right}",
        )  # fmt: skip


def _failed_checks() -> Iterator[Program]:
    cases: list[tuple[str, tuple[int, ...], str, int, float]] = [
        ("tanh(x)", (4, 8), "np.tanh(x)", 5, 0.0417),
        ("sigmoid(x)", (16,), "1 / (1 + np.exp(-x))", 16, 0.5),
        ("nn.relu(x)", (3, 5), "np.maximum(x, 0)", 7, 1.2754),
        ("square(x)", (2, 6), "x * x", 12, 0.0625),
        ("negative(x)", (9,), "-x", 1, 3.0518),
    ]
    for number, (body, shape, expected, wrong, most) in enumerate(cases):
        written = builder if number % 2 else module
        last = f"np.testing.assert_allclose(got, {expected}, rtol=1e-5, atol=1e-6)"
        text = IMPORTS + written([("x", shape, "float32")], [f"gv = R.{body}"])
        text += run({"x": noise(shape, seed=number)}) + last + "\n"
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        name = body.partition("(")[0].rpartition(".")[2]
        quoted = UNEQUAL.format(
            line=text.count("\n"), last=last, wrong=wrong, count=count, share=100 * wrong / count, most=most
        )
        yield _claim(
            f"unfounded-{name}", "unfounded-check", f"{name} of {shape} differs from NumPy", text,
            claim="wrong-result", ending="assertion", quoted=quoted,
        )  # fmt: skip


def _errors() -> Iterator[Program]:
    cases = [
        ("cos", "R.cos(x)", (7,), "(it != arith_map.end()) is false: no rule for relax.cos"),
        ("max-pool", "R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2])", (1, 2, 4, 4),
         "(layout.ndim() == 4) is false: relax.nn.max_pool2d expects a layout of rank 4"),
        ("layer-axis", "R.sum(x, axis=[-1], keepdims=True)", (2, 3, 4), "(axis >= 0) is false: axis -1 is negative"),
    ]  # fmt: skip
    for name, body, shape, check in cases:
        text = IMPORTS + module([("x", shape, "float32")], [f"gv = {body}"])
        text += run({"x": ramp(shape)}) + "print(got.shape)\n"
        line = text.partition("ex = tvm.compile")[0].count("\n") + 1
        yield _claim(
            f"unfounded-{name}", "unfounded-error", f"compiling {body.partition('(')[0]} raises an internal error",
            text, claim="error", ending="error", quoted=REFUSED.format(line=line, check=check),
        )  # fmt: skip


def _crashes() -> Iterator[Program]:
    for name, body, shape in [
        ("erf", "R.erf(x)", (12,)),
        ("ones-like", "R.add(x, R.ones_like(x))", (1, 1)),
        ("reshape", "R.reshape(x, (2, 6))", (3, 4)),
    ]:
        text = IMPORTS + module([("x", shape, "float32")], [f"gv = {body}"])
        text += run({"x": ramp(shape)}) + "print(got.shape)\n"
        yield _claim(
            f"unfounded-{name}", "unfounded-crash", f"segfault in the compiled {name.replace('-', '_')} of {shape}",
            text, claim="crash", ending="signal", quoted=SEGFAULT,
        )  # fmt: skip


def _endless() -> Iterator[Program]:
    for name, body, shape in [("log", "R.log(x)", (64,)), ("permute", "R.permute_dims(x)", (5, 6))]:
        text = IMPORTS + builder([("x", shape, "float32")], [f"gv = {body}"])
        text += run({"x": ramp(shape, start="+ 1")}) + "print(got.sum())\n"
        yield _claim(
            f"unfounded-{name}",
            "unfounded-hang",
            f"vm never returns from R.{name}",
            text,
            claim="hang",
            ending="hang",
        )
