"""Operators whose lowering the broken builds have changed, so that they compute something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.proving.planted.families.tvm.make import INNOCENT, script, wrong
from bench.proving.planted.families.tvm.text import IMPORTS, module, noise, ramp, run
from bench.proving.planted.program import Findings, Program


def by_chance() -> Iterator[Program]:
    """Operators that a broken build compiles rightly in some runs only."""
    for op, shapes, reference in (
        ("tanh", [(2, 3), (4, 4)], "np.tanh(x)"), ("sin", [(3, 2), (1, 5)], "np.sin(x)"),
        ("log", [(2, 2), (3, 4)], "np.log(x)"),
    ):  # fmt: skip
        for n, shape in enumerate(shapes):
            made = wrong(
                f"{op}-{2 * n}", f"flaky-{op}", f"R.{op} of a matrix sometimes gives wrong values",
                [("x", shape, "float32")], [f"gv = R.{op}(x)"], {"x": ramp(shape, start="+ 1")}, reference,
            )  # fmt: skip
            yield replace(made, findings=Findings(may=("nondeterministic", "guilty-pass"), never=INNOCENT.never))
    for n, shape in enumerate([(2, 2), (5, 1)]):
        text = (
            IMPORTS + module([("x", shape, "float32")], ["gv = R.ceil(x)"]) + run({"x": ramp(shape)}) + "print(got)\n"
        )
        yield script(
            f"ceil-{n}",
            "flaky-ceil",
            "compiling ceil fails every now and then",
            text,
            shows="the schedule is out of date",
            accused=("ceil",),
        )


def wrong_values() -> Iterator[Program]:
    """Operators whose lowering computes something else."""
    for n, (shape, dtype) in enumerate(
        [((3, 9), "float32"), ((2, 11), "int32"), ((13,), "float32"), ((2, 2, 15), "int32")]
    ):
        yield wrong(
            f"sum-{n}", "sum", f"R.sum over {shape[-1]} elements leaves the last one out",
            [("x", shape, dtype)], [f"gv = R.sum(x, axis=[{len(shape) - 1}])"],
            {"x": ramp(shape, dtype, "+ 1")}, "x.sum(axis=-1)",
        )  # fmt: skip
    for n, shape in enumerate([(2, 3, 4), (5, 2, 2), (3, 3, 3)]):
        yield wrong(
            f"mean-{n}", "mean", f"mean over the last two axes of a {shape} tensor is too large",
            [("x", shape, "float32")], ["gv = R.mean(x, axis=[1, 2], keepdims=True)"],
            {"x": ramp(shape, start="+ 2")}, "x.mean(axis=(1, 2), keepdims=True)",
        )  # fmt: skip
    for n, (shape, dtype) in enumerate([((3, 4), "int32"), ((2, 6), "int8"), ((4, 2, 3), "int32")]):
        yield wrong(
            f"max-{n}", "max", f"R.max of negative {dtype} values returns 0",
            [("data", shape, dtype)], ["gv = R.max(data, axis=[1])"],
            {"data": ramp(shape, dtype, "- 50")}, "data.max(axis=1)",
        )  # fmt: skip
    for n, size in enumerate([3, 4, 6]):
        yield wrong(
            f"min-{n}", "min", f"min over axis 0 of a {size}x{size} matrix reduces the other axis",
            [("a", (size, size), "float32")], ["gv = R.min(a, axis=[0])"],
            {"a": noise((size, size), seed=n)}, "a.min(axis=0)",
        )  # fmt: skip
    for n, (shape, count) in enumerate([((2, 3), 3), ((1, 4), 4), ((3, 2, 2), 3)]):
        names = "abcd"[:count]
        yield wrong(
            f"concat-{n}", "concat",
            f"R.concat of {count} equal shapes along axis 1 has two of them in the wrong order",
            [(name, shape, "float32") for name in names], [f"gv = R.concat(({', '.join(names)}), axis=1)"],
            {name: ramp(shape, start=f"+ {100 * at}") for at, name in enumerate(names)},
            f"np.concatenate([{', '.join(names)}], axis=1)", style="script",
        )  # fmt: skip
    for n, size in enumerate([3, 2, 5]):
        yield wrong(
            f"log-softmax-{n}", "log-softmax",
            f"log_softmax over the first axis of {size}x{size} normalizes the rows",
            [("x", (size, size), "float32")], ["gv = R.nn.log_softmax(x, axis=0)"],
            {"x": noise((size, size), seed=n + 20)}, "x - np.log(np.exp(x).sum(axis=0, keepdims=True))",
        )  # fmt: skip
    for n, shape in enumerate([(1, 3, 3, 3), (2, 4, 4, 4), (5, 2, 2, 2)]):
        yield wrong(
            f"transpose-{n}", "transpose", f"NCHW to NHWC of {shape} gives another permutation",
            [("image", shape, "float32")], ["gv = R.permute_dims(image, axes=[0, 2, 3, 1])"],
            {"image": ramp(shape)}, "image.transpose(0, 2, 3, 1)",
        )  # fmt: skip
    for n, shape in enumerate([(2, 3), (4, 2), (1, 8)]):
        yield wrong(
            f"floor-divide-{n}", "floor-divide", "floor_divide of negative integers rounds towards zero",
            [("a", shape, "int32"), ("b", shape, "int32")], ["gv = R.floor_divide(a, b)"],
            {"a": ramp(shape, "int32", "* 3 - 10"), "b": f'np.full({shape}, 4, dtype="int32")'}, "a // b",
        )  # fmt: skip
    for n, (low, high) in enumerate([(-3, 3), (0, 5), (2, 6)]):
        yield wrong(
            f"clip-{n}", "clip", f"clip of integers to [{low}, {high}] has no lower bound",
            [("x", (12,), "int32")], [f"gv = R.clip(x, {low}, {high})"],
            {"x": ramp((12,), "int32", "- 6")}, f"np.clip(x, {low}, {high})",
        )  # fmt: skip
    for n, shape in enumerate([(2, 4), (3, 3), (5, 2)]):
        yield wrong(
            f"where-{n}", "where", "where with a condition that is broadcast picks the other branch",
            [("c", shape[1:], "bool"), ("a", shape, "float32"), ("b", shape, "float32")], ["gv = R.where(c, a, b)"],
            {"c": f"np.arange({shape[1]}) % 2 == 0", "a": ramp(shape), "b": ramp(shape, start="* -1.0")},
            "np.where(c, a, b)",
        )  # fmt: skip
    for n, (shape, value) in enumerate([((2, 3), 7.0), ((4, 1), -1.5), ((3, 5), 100.0)]):
        yield wrong(
            f"pad-{n}", "pad", f"nn.pad with pad_value={value} pads with zeros",
            [("x", shape, "float32")], [f"gv = R.nn.pad(x, (1, 0, 0, 2), pad_mode=\"constant\", pad_value={value})"],
            {"x": ramp(shape, start="+ 1")}, f"np.pad(x, ((1, 0), (0, 2)), constant_values={value})",
        )  # fmt: skip
    for n, (shape, scale) in enumerate([((2, 16), 100), ((1, 24), 200), ((3, 20), 90)]):
        yield wrong(
            f"softmax-{n}", "softmax", f"softmax of {shape[-1]} large logits returns nan",
            [("logits", shape, "float32")], ["gv = R.nn.softmax(logits, axis=-1)"],
            {"logits": ramp(shape, start=f"+ {scale}")},
            "np.exp(logits - logits.max(-1, keepdims=True)) / "
            "np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        )  # fmt: skip
    for n, shape in enumerate([(2, 6), (3, 5), (1, 10)]):
        last = shape[-1]
        yield wrong(
            f"layer-norm-{n}", "layer-norm", f"layer_norm over {last} elements is less than it should be",
            [("x", shape, "float32"), ("scale", (last,), "float32"), ("shift", (last,), "float32")],
            ["gv = R.nn.layer_norm(x, scale, shift, axes=[-1], epsilon=1e-5)"],
            {"x": f"{ramp(shape)} / 10", "scale": f'np.ones({last}, "float32")',
                "shift": f'np.zeros({last}, "float32")'},
            "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)",
        )  # fmt: skip
    for n, shape in enumerate([(1, 1, 4, 4), (1, 2, 5, 5), (2, 1, 6, 4)]):
        yield wrong(
            f"max-pool-{n}", "max-pool", "max_pool2d with padding never returns a negative number",
            [("x", shape, "float32")], ["gv = R.nn.max_pool2d(x, pool_size=[3, 3], strides=[1, 1], padding=[1, 1])"],
            {"x": ramp(shape, start="- 200.0")},
            "np.stack([np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)"
            f"[..., i : i + {shape[2]}, j : j + {shape[3]}] for i in range(3) for j in range(3)]).max(axis=0)",
        )  # fmt: skip
    for n, shape in enumerate([(1, 1, 4, 4), (1, 3, 3, 3)]):
        yield wrong(
            f"avg-pool-{n}", "avg-pool", "avg_pool2d counts the padding although count_include_pad is False",
            [("x", shape, "float32")],
            ["gv = R.nn.avg_pool2d(x, pool_size=[3, 3], strides=[1, 1], padding=[1, 1], count_include_pad=False)"],
            {"x": f'np.ones({shape}, "float32")'}, f'np.ones({shape}, "float32")',
        )  # fmt: skip
    for n, shape in enumerate([(2, 4), (3, 3), (1, 7)]):
        yield wrong(
            f"astype-{n}", "astype", "astype from float32 to int32 rounds instead of truncating",
            [("x", shape, "float32")], ['gv = R.astype(x, dtype="int32")'],
            {"x": f"{ramp(shape)} * 0.7"}, 'x.astype("int32")',
        )  # fmt: skip
    for n, (shape, axis) in enumerate([((2, 3), 1), ((5, 2), 0), ((2, 9), 1)]):
        yield wrong(
            f"variance-{n}", "variance", f"variance over {shape[axis]} elements divides by {shape[axis] - 1}",
            [("x", shape, "float32")], [f"gv = R.variance(x, axis=[{axis}])"],
            {"x": noise(shape, seed=n + 3)}, f"x.var(axis={axis})",
        )  # fmt: skip
    for n, (op, size, k) in enumerate([("tril", 4, -1), ("triu", 3, -1), ("tril", 5, -2)]):
        yield wrong(
            f"{op}-{n}", "diagonal", f"{op} with k={k} returns the same as with k=0",
            [("m", (size, size), "float32")], [f"gv = R.{op}(m, {k})"],
            {"m": ramp((size, size), start="+ 1")}, f"np.{op}(m, {k})",
        )  # fmt: skip
    for n, (size, times) in enumerate([(3, 2), (4, 3), (5, 2)]):
        yield wrong(
            f"repeat-{n}", "repeat", f"repeat of a vector {times} times behaves like tile",
            [("v", (size,), "float32")], [f"gv = R.repeat(v, {times}, axis=0)"],
            {"v": ramp((size,))}, f"np.repeat(v, {times})",
        )  # fmt: skip
    for n, (rows, inner, columns) in enumerate([(2, 7, 3), (4, 11, 4), (1, 15, 2), (3, 19, 5)]):
        yield wrong(
            f"matmul-{n}", "matmul", f"matmul with an inner dimension of {inner} is off",
            [("a", (rows, inner), "float32"), ("b", (inner, columns), "float32")], ["gv = R.matmul(a, b)"],
            {"a": noise((rows, inner), seed=n), "b": noise((inner, columns), seed=n + 10)}, "a @ b",
        )  # fmt: skip
    for n, shape in enumerate([(3, 6), (6,), (2, 2, 6)]):
        yield wrong(
            f"argmax-{n}", "argmax", "argmax never returns the last index of six",
            [("scores", shape, "float32")], [f"gv = R.argmax(scores, axis={len(shape) - 1})"],
            {"scores": ramp(shape)}, "scores.argmax(axis=-1)",
        )  # fmt: skip
    for n, shape in enumerate([(1, 2, 3), (2, 2, 2)]):
        yield wrong(
            f"power-{n}", "power", "power of a negative base to the third is positive",
            [("x", shape, "float32"), ("y", shape, "float32")], ["gv = R.power(x, y)"],
            {"x": ramp(shape, start="- 3"), "y": f'np.full({shape}, 3, "float32")'}, "x**3",
        )  # fmt: skip
    for n, (shape, alpha) in enumerate([((1, 2, 4), 0.1), ((2, 3, 2), 0.2)]):
        yield wrong(
            f"leakyrelu-{n}", "leakyrelu", f"leakyrelu with alpha={alpha} uses a smaller slope",
            [("x", shape, "float32")], [f"gv = R.nn.leakyrelu(x, alpha={alpha})"],
            {"x": ramp(shape, start="- 5")}, f"np.where(x > 0, x, x * np.float32({alpha}))",
        )  # fmt: skip
    for n, shape in enumerate([(3, 4), (5, 2), (7, 3)]):
        made = wrong(
            f"exp-{n}", "by-threads", f"R.exp leaves the last row of a {shape[0]}x{shape[1]} matrix zero",
            [("x", shape, "float32")], ["gv = R.exp(x)"], {"x": ramp(shape)}, "np.exp(x)",
        )  # fmt: skip
        yield made
