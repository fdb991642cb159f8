"""A holdout for the comparison as it was after `bench.pairs.mixed_rooms` had been looked at.

Four rooms of the same making, with operators, checks and relays that no other room has. Reasons were committed before
anything was run, the labels by the rule before anything was compared, and the comparison was not changed for them
before the look that is told here.

**First look** (203 outputs, 5,163 pairs, 1,059 of them the same; the reasons hold by the rule): signature .871 /
.864 (precision / recall), the ruling the same. values and tensors 1.000 / 1.000; norms .740 / 1.000: two
requirements of group_norm have one opening and one function; invoked .769 / .455: what iree.runtime raises was not
known to be what iree-run-module prints. This is the figure to trust. It missed the goals, .99 and .9, by two things
nobody had thought of.

**Since then tuned on**, by two rules: 1.000 / .932, with the figures of all other rooms unchanged. Missed are the
values that iree-run-module finds unexpected where the Python testcase's numpy check does.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.pairs.mixed_rooms import AROUND, LOGGED, WRAPPED, Shown, _built, _mlir, _number, _python, _relayed, _script

_FOUR = "(1, 4, 3, 3)"
_VAR = "relax.Var('g', annotation(({n},), 'float32'))"


def _group(groups: int, size: int, shape: str = _FOUR, name: str = "x") -> str:
    var = _VAR.format(n=size)
    return _built(f"op.nn.group_norm({name}, {var}, {var}, {groups}, channel_axis=1, axes=[2, 3])", shape, name)


def _batch(size: int, shape: str = _FOUR, name: str = "x") -> str:
    return _built(f"op.nn.batch_norm({name}, *[{_VAR.format(n=size)} for _ in range(4)], axis=1)", shape, name)


def _rms(size: int, axes: str, shape: str = "(4, 6)", name: str = "x") -> str:
    return _built(f"op.nn.rms_norm({name}, {_VAR.format(n=size)}, axes={axes})", shape, name)


def _within(how: str, text: str) -> str:
    """The statement that fails, within another that wraps or logs it."""
    head, _, last = text.rstrip().rpartition("\nwith ")
    body = f"with {last}".replace("\n", "\n    ")
    return f"{head}\n{how.format(call=body, words='no network')}"


NORMS = (
    _python("group_norm: channels and groups", _group(3, 4)),
    _python("group_norm: channels and groups", _within(WRAPPED, _group(5, 8, "(2, 8, 6, 6)", "h"))),
    _python("group_norm: length of the scale", _group(2, 5)),
    _python("group_norm: length of the scale", _within(LOGGED, _group(4, 3, "(2, 8, 6, 6)", "h"))),
    _python("batch_norm: length of the scale", _batch(7)),
    _python("batch_norm: length of the scale", _within(WRAPPED, _batch(2, "(9, 3, 5, 5)", "image"))),
    _python("rms_norm: length of the weight", _rms(5, "[1]")),
    _python("rms_norm: length of the weight", _within(LOGGED, _rms(9, "[-1]", "(2, 3, 8)", "hidden"))),
    _python("rms_norm: axis out of range", _rms(6, "[4]")),
    _python("rms_norm: axis out of range", _rms(8, "[-5]", "(2, 3, 8)", "hidden")),
    _python("rms_norm: axis out of range", _script("R.nn.rms_norm(a, a, axes=[3])", "(6,)")),
)

_MOD, _LOG, _KEEP, _EXP = (
    "the remainder has the divisor's sign",
    "the logarithm of 0 is infinite",
    "the result loses an axis",
    "exp in half precision",
)
VALUES = (
    _number(
        _MOD, "np.arange(-5, 5, dtype='int32')", "op.floor_mod(x, relax.const(3, 'int32'))", "np.fmod(data, 3)"
    ),
    _number(
        _MOD,
        "np.arange(-90, -10, dtype='int32').reshape(8, 10)",
        "op.floor_mod(x, relax.const(7, 'int32'))",
        "np.fmod(data, 7)",
        "assert_array_equal",
        "",
    ),
    _number(_LOG, "np.array([0, 1, 2], 'float32')", "op.log(x)", "np.log(np.maximum(data, np.float32(1e-6)))"),
    _number(
        _LOG,
        "np.arange(24, dtype='float32').reshape(4, 6) // 5",
        "op.log(x)",
        "np.log(np.maximum(data, np.float32(1e-3)))",
    ),
    _number(_KEEP, "np.ones((4, 6), 'float32')", "op.max(x, axis=1)", "data.max(axis=1, keepdims=True)"),
    _number(_KEEP, "np.ones((2, 9, 5), 'float32')", "op.mean(x, axis=0)", "data.mean(axis=0, keepdims=True)"),
    _number(
        _EXP,
        "np.linspace(0, 9, 16).astype('float32')",
        "op.astype(op.exp(op.astype(x, 'float16')), 'float32')",
        "np.exp(data)",
    ),
    _number(
        _EXP,
        "np.linspace(1, 4, 50).astype('float32').reshape(5, 10)",
        "op.astype(op.exp(op.astype(x, 'float16')), 'float32')",
        "np.exp(data)",
        tolerance=", rtol=1e-6, atol=1e-6",
    ),
)  # fmt: skip

_ONE = "func.func @{name}(%a: {a}) -> {r} {{\n  %0 = {body}\n  return %0 : {r}\n}}\n"


def _one(name: str, a: str, r: str, body: str) -> str:
    return _ONE.format(name=name, a=a, r=r, body=body)


def _concat(name: str, n: int, m: int) -> str:
    a, b, r = f"tensor<{n}x4xf32>", f"tensor<{n}x5xf32>", f"tensor<{m}x4xf32>"
    return (
        f"func.func @{name}(%a: {a}, %b: {b}) -> {r} {{\n  %0 = tensor.concat dim(0) %a, %b : ({a}, {b}) -> {r}\n"
        f"  return %0 : {r}\n}}\n"
    )


def _insert(name: str, n: int, k: int) -> str:
    a, b = f"tensor<{n}xf32>", f"tensor<{n}x{n}xf32>"
    return (
        f"func.func @{name}(%a: {a}, %b: {b}) -> {b} {{\n  %0 = tensor.insert_slice %a into %b[0, 0] [{k}, 1] [1, 1]"
        f" : {a} into {b}\n  return %0 : {b}\n}}\n"
    )


_F, _G = "tensor<12xf32>", "tensor<5x4xf32>"
_CAST = "tensor.cast %a : {a} to {r}"
TENSORS = (
    _mlir("concat: other dimensions differ", _concat("f", 2, 4)),
    _relayed("concat: other dimensions differ", AROUND + _concat("join", 7, 14)),
    _mlir("insert_slice: size of the slice", _insert("f", 4, 3)),
    _relayed("insert_slice: size of the slice", _insert("put", 9, 2)),
    _mlir("cast: shapes that cannot be", _one("f", _F, _G, _CAST.format(a=_F, r=_G))),
    _mlir(
        "cast: shapes that cannot be",
        AROUND + _one("as", "tensor<3xi32>", "tensor<4xi32>", _CAST.format(a="tensor<3xi32>", r="tensor<4xi32>")),
    ),
    _mlir(
        "expand_shape: sizes do not follow",
        _one(
            "f", _F, "tensor<3x5xf32>",
            "tensor.expand_shape %a [[0, 1]] output_shape [3, 5] : tensor<12xf32> into tensor<3x5xf32>",
        ),
    ),
    _relayed(
        "expand_shape: sizes do not follow",
        _one(
            "tile", "tensor<10xi8>", "tensor<2x4xi8>",
            "tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<10xi8> into tensor<2x4xi8>",
        ),
    ),
    _mlir("extract: number of indices", _one("f", _G, "f32", f"tensor.extract %a[] : {_G}")),
    _relayed(
        "extract: number of indices",
        AROUND + _one("at", "tensor<7xf32>", "f32", "tensor.extract %a[] : tensor<7xf32>"),
    ),
)  # fmt: skip

_CALL = """\
import iree.compiler.tools as tools
import iree.runtime as runtime
import numpy as np

binary = tools.compile_file("a.mlir", target_backends=["llvm-cpu"])
config = runtime.Config("local-sync")
context = runtime.SystemContext(config=config)
context.add_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary))
{call}
"""
_NEGATE = (
    "func.func @{name}(%a: tensor<{n}xf32>) -> tensor<{n}xf32> {{\n  %0 = arith.negf %a : tensor<{n}xf32>\n"
    "  return %0 : tensor<{n}xf32>\n}}\n"
)
_NEXT = (
    "func.func @{name}(%i: i32) -> i32 {{\n  %c = arith.constant 3 : i32\n  %0 = arith.cmpi slt, %i, %c : i32\n"
    '  cf.assert %0, "{words}"\n  return %i : i32\n}}\n'
)


def _ran(reason: str, text: str, *arguments: str) -> Shown:
    return _mlir(reason, text, ("iree-run-module", "--device=local-sync", "--module=a.vmfb", *arguments))


def _called(reason: str, text: str, call: str) -> Shown:
    return Shown(reason, {"a.mlir": text, "a.py": _CALL.format(call=call)}, (("python", "a.py"),))


INVOKED = (
    _ran("a dimension of the input", _NEGATE.format(name="f", n=4), "--function=f", "--input=5xf32=1"),
    _called(
        "a dimension of the input",
        _NEGATE.format(name="flip", n=6),
        "context.modules.module.flip(np.zeros(9, np.float32))",
    ),
    _ran("the type of the input", _NEGATE.format(name="f", n=4), "--function=f", "--input=4xi32=1"),
    _called(
        "the type of the input",
        _NEGATE.format(name="flip", n=6),
        "context.modules.module.flip(np.zeros(6, np.int32))",
    ),
    _ran("the program's assertion", _NEXT.format(name="f", words="no room left"), "--function=f", "--input=7"),
    _called(
        "the program's assertion",
        _NEXT.format(name="next", words="no room left"),
        "context.modules.module.next(44)",
    ),
    _ran(
        "a value other than expected", _NEGATE.format(name="f", n=4), "--function=f", "--input=4xf32=1",
        "--expected_output=4xf32=1",
    ),
    _called(
        "a value other than expected",
        _NEGATE.format(name="flip", n=6),
        "np.testing.assert_allclose(context.modules.module.flip(np.ones(6, np.float32)).to_host(), np.ones(6))",
    ),
)  # fmt: skip

TVM: Mapping[str, tuple[Shown, ...]] = {"norms": NORMS, "values": VALUES}
IREE: Mapping[str, tuple[Shown, ...]] = {"tensors": TENSORS, "invoked": INVOKED}
CHECKS: Mapping[tuple[str, str], str] = {}
