"""Run ``torch.operator "onnx.…"``, the operators of an imported ONNX model, as ONNX defines them. Pure.

There is no result if the meaning depends on the model's operator set, which an operator does not name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import (
    NOTHING,
    Call,
    Listed,
    Run,
    join_shapes,
    map_each,
)
from runners.toolchains.iree.diagnosis.reference.dialects.torch.elementwise import ELEMENTS
from runners.toolchains.iree.diagnosis.reference.dialects.torch.networks import NETWORKS
from runners.toolchains.iree.diagnosis.reference.dialects.torch.places import PLACES
from runners.toolchains.iree.diagnosis.reference.dialects.torch.reductions import REDUCTIONS
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values, list_elements

_NAME = re.compile(r"\s*\"onnx\.(?P<name>\w{1,60})\"")
_TORCH: Mapping[str, Run] = {**ELEMENTS, **REDUCTIONS, **PLACES, **NETWORKS}


def run_onnx(call: Call) -> Values | list[Values]:
    found = _NAME.match(call.statement.attributes)
    run = _OPERATORS.get(found["name"]) if found else None
    if run is None:
        raise UndefinedResult("an operator of ONNX")
    return run(call)


# ---------------------------------------------------------------------------------------------- attributes


def _read(call: Call, name: str) -> str | None:
    found = re.search(rf"torch\.onnx\.{name} = (\[[^\]]*\]|\"[^\"]*\"|[^,}}]+)", call.statement.attributes)
    return found[1].strip() if found else None


def _read_integers(call: Call, name: str) -> list[int] | None:
    text = _read(call, name)
    words = (text or "").strip("[]").split(",")
    return None if text is None else [int(word.partition(":")[0]) for word in words if word.strip()]


def _read_integer(call: Call, name: str, default: int) -> int:
    found = _read_integers(call, name)
    return found[0] if found else default


def _read_float(call: Call, name: str, default: float) -> float:
    text = _read(call, name)
    return default if text is None else float(text.partition(":")[0])


def _list_integers(values: Values) -> list[int]:
    return [int(one) for one in list_elements(values)]


def _find_axes(call: Call, rank: int) -> list[int] | None:
    """Return the axes of the attribute or of the second operand. None for all."""
    axes = _read_integers(call, "axes")
    if axes is None and len(call.operands) > 1 and call[1].element != "none":
        axes = _list_integers(call[1])
    if any(not -rank <= axis < rank for axis in axes or ()):
        raise UndefinedResult("an axis")
    return None if not axes else sorted({axis % rank for axis in axes})


def _ask_torch(name: str, call: Call, *operands: Values | int | Sequence[int]) -> Values | list[Values]:
    """Run an operation of the torch dialect with other operands."""
    return _TORCH[f"aten.{name}"](Call(call.statement, tuple(map(_make_operand, operands)), call.wide))


def _ask_one(name: str, call: Call, *operands: Values | int | Sequence[int]) -> Values:
    found = _ask_torch(name, call, *operands)
    return found[0] if isinstance(found, list) else found


def _make_operand(value: Values | int | Sequence[int]) -> Values:
    if isinstance(value, Values):
        return value
    if isinstance(value, int):
        return Values("i64", (value,))
    return Listed("list", (), items=tuple(Values("i64", (one,)) for one in value))


# ---------------------------------------------------------------------------------------------- operators


def _same(name: str, count: int | None = None) -> Run:
    """Return the operation of the torch dialect with the same operands, or with the first ``count``."""
    return lambda call: _ask_torch(name, call, *call.operands[:count])


def _fold(name: str) -> Run:
    def run(call: Call) -> Values:
        result = call[0]
        for one in call.operands[1:]:
            result = _ask_one(name, call, result, one)
        return result

    return run


def _divide(call: Call) -> Values:
    if call.element in FLOATS:
        return _ask_one("div", call, *call.operands)
    return _ask_one("div.Tensor_mode", call, *call.operands, Listed("str", (), string="trunc"))


def _clip(call: Call) -> Values:
    given = list(call.operands)
    if len(given) == 1:
        limits = (_read(call, name) for name in ("min", "max"))
        given += [NOTHING if one is None else Values("f64", (float(one.partition(":")[0]),)) for one in limits]
    return _ask_one("clamp", call, *given)


def _with_factor(compute: Callable[[float, float], float], name: str, default: float) -> Run:
    """Apply a function of one float and of an attribute."""

    def run(call: Call) -> Values:
        factor = _read_float(call, name, default)
        return map_each(call, [call[0]], lambda x: x if x != x else compute(float(x), factor))

    return run


def _compute_gelu(call: Call) -> Values:
    form = (_read(call, "approximate") or '"none"').strip('"')
    return _ask_one("gelu", call, call[0], Listed("str", (), string=form))


def _reduce(
    name: str, prepare: Callable[[Number], Number] | None = None, finish: Callable[[float], float] | None = None
) -> Run:
    """Reduce along axes. They are kept with an extent of 1, unless the attribute states otherwise."""

    def run(call: Call) -> Values:
        given = call[0]
        rank = len(given.shape)
        axes = _find_axes(call, rank)
        if axes is None:
            if _read_integer(call, "noop_with_empty_axes", 0):
                raise UndefinedResult("a reduction of nothing")
            axes = list(range(rank))
        prepared = given if prepare is None else map_each(call, [given], prepare)
        keeps = -_read_integer(call, "keepdims", 1)
        made = _ask_one(name, call, prepared, axes, Values("i1", (keeps,)))
        return made if finish is None else map_each(call, [made], finish)

    return run


def _find_extreme(name: str) -> Run:
    def run(call: Call) -> Values:
        if _read_integer(call, "select_last_index", 0):
            raise UndefinedResult("the last of equal elements")
        keeps = Values("i1", (-_read_integer(call, "keepdims", 1),))
        return _ask_one(name, call, call[0], _read_integer(call, "axis", 0), keeps)

    return run


def _soften(name: str) -> Run:
    """Run a softmax along the last axis. Along other axes, older operator sets flatten the rest."""

    def run(call: Call) -> Values:
        rank = len(call[0].shape)
        if _read_integer(call, "axis", -1) % rank != rank - 1:
            raise UndefinedResult("a softmax along another axis")
        return _ask_one(name, call, call[0], rank - 1)

    return run


def _multiply_general(call: Call) -> Values:
    """Run ``Gemm``."""
    a, b = (
        tensors.transpose(one, (1, 0)) if _read_integer(call, name, 0) else one
        for one, name in zip(call.operands[:2], ("transA", "transB"), strict=True)
    )
    alpha, beta = (_read_float(call, name, 1.0) for name in ("alpha", "beta"))
    made = _ask_one("mm", call, a, b)
    if len(call.operands) < 3:
        return map_each(call, [made], lambda x: alpha * x)
    return map_each(call, [made, call[2]], lambda x, y: alpha * x + beta * y)


def _transpose(call: Call) -> Values:
    rank = len(call[0].shape)
    return tensors.transpose(call[0], _read_integers(call, "perm") or list(range(rank))[::-1])


def _reshape(call: Call) -> Values:
    sizes = _list_integers(call[1])
    if not _read_integer(call, "allowzero", 0):
        sizes = [call[0].shape[at] if not n and at < len(call[0].shape) else n for at, n in enumerate(sizes)]
    return _ask_one("view", call, call[0], sizes)


def _flatten(call: Call) -> Values:
    shape = call[0].shape
    axis = _read_integer(call, "axis", 1)
    at = axis + len(shape) if axis < 0 else axis
    return tensors.reshape(call[0], (math.prod(shape[:at]), math.prod(shape[at:])))


def _concatenate(call: Call) -> Values:
    axis = _read_integer(call, "axis", 0)
    return _ask_one("cat", call, Listed("list", (), items=call.operands), axis)


def _squeeze(call: Call) -> Values:
    axes = _find_axes(call, len(call[0].shape))
    return _ask_one("squeeze.dims", call, call[0], axes or [at for at, n in enumerate(call[0].shape) if n == 1])


def _unsqueeze(call: Call) -> Values:
    axes = _read_integers(call, "axes") or _list_integers(call[1])
    rank = len(call[0].shape) + len(axes)
    places = sorted(axis % rank for axis in axes)
    if len(set(places)) < len(axes) or any(not -rank <= axis < rank for axis in axes):
        raise UndefinedResult("an axis")
    shape = list(call[0].shape)
    for at in places:
        shape.insert(at, 1)
    return tensors.reshape(call[0], shape)


def _count_back(indices: Values, extent: int) -> Values:
    """Return indices in which negative ones count from the end."""
    numbers = tuple(int(one) + (extent if one < 0 else 0) for one in list_elements(indices))
    return Values("i64", numbers, indices.shape)


def _gather(call: Call) -> Values:
    given = call[0]
    axis = _read_integer(call, "axis", 0) % len(given.shape)
    indices = _count_back(call[1], given.shape[axis])
    flat = tensors.reshape(indices, (math.prod(indices.shape),))
    made = _ask_one("index_select", call, given, axis, flat)
    return tensors.reshape(made, (*given.shape[:axis], *indices.shape, *given.shape[axis + 1 :]))


def _gather_elements(call: Call) -> Values:
    given = call[0]
    axis = _read_integer(call, "axis", 0) % len(given.shape)
    return _ask_one("gather", call, given, axis, _count_back(call[1], given.shape[axis]))


def _expand(call: Call) -> Values:
    shape = tuple(_list_integers(call[1]))
    return join_shapes(call[0], Values(call[0].element, (0,), shape))[0]


def _slice(call: Call) -> Values:
    made = call[0]
    starts, ends = _list_integers(call[1]), _list_integers(call[2])
    axes = _list_integers(call[3]) if len(call.operands) > 3 else list(range(len(starts)))
    steps = _list_integers(call[4]) if len(call.operands) > 4 else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        made = _ask_one("slice", call, made, axis, start, end, step)
    return made


def _pool(name: str) -> Run:
    def run(call: Call) -> Values:
        extents = _read_integers(call, "kernel_shape") or []
        rank = len(extents)
        pads = _read_integers(call, "pads") or [0] * (2 * rank)
        padded = (_read(call, "auto_pad") or '"NOTSET"').strip('"') != "NOTSET"
        if padded or pads[:rank] != pads[rank:] or _read_integer(call, "ceil_mode", 0) or rank not in (1, 2):
            raise UndefinedResult("a pool")
        strides = _read_integers(call, "strides") or [1] * rank
        dilations = _read_integers(call, "dilations") or [1] * rank
        if name == "max":
            return _ask_one(f"max_pool{rank}d", call, call[0], extents, strides, pads[:rank], dilations, 0)
        if set(dilations) != {1}:
            raise UndefinedResult("a pool")
        counts = _read_integer(call, "count_include_pad", 0)
        return _ask_one(f"avg_pool{rank}d", call, call[0], extents, strides, pads[:rank], 0, counts)

    return run


def _average_all(call: Call) -> Values:
    """Run ``GlobalAveragePool``."""
    axes = list(range(2, len(call[0].shape)))
    return _ask_one("mean.dim", call, call[0], axes, Values("i1", (-1,)))


def _normalize_batch(call: Call) -> Values:
    """Run ``BatchNormalization`` of a model that is not being trained."""
    if _read_integer(call, "training_mode", 0):
        raise UndefinedResult("training")
    epsilon = _read_float(call, "epsilon", 1e-5)
    rank = len(call[0].shape)
    rows = [tensors.reshape(one, (*one.shape, *[1] * (rank - 2))) for one in call.operands[1:5]]
    return map_each(
        call,
        [call[0], *rows],
        lambda x, scale, bias, mean, variance: (x - mean) / math.sqrt(variance + epsilon) * scale + bias,
    )


def _name_shape(call: Call) -> Values:
    if any(_read(call, name) for name in ("start", "end")):
        raise UndefinedResult("a part of a shape")
    return Values("i64", call[0].shape, (len(call[0].shape),))


_UNARY = {
    **{name: name.lower() for name in ("Abs", "Ceil", "Floor", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Sin")},
    **{name: name.lower() for name in ("Cos", "Erf", "Reciprocal", "Sign", "Neg", "Round", "Relu", "HardSwish")},
    **{"Not": "logical_not", "IsNaN": "isnan", "IsInf": "isinf", "Identity": "clone", "Cast": "to.dtype"},
}
_BINARY = {
    **{"Add": "add", "Sub": "sub", "Mul": "mul", "Pow": "pow", "And": "logical_and", "Or": "logical_or"},
    **{"Xor": "logical_xor", "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt"},
    **{"GreaterOrEqual": "ge", "MatMul": "matmul"},
}
_OPERATORS: Mapping[str, Run] = {
    **{name: _same(other, 1) for name, other in _UNARY.items()},
    **{name: _same(other, 2) for name, other in _BINARY.items()},
    "Max": _fold("maximum"),
    "Min": _fold("minimum"),
    "Sum": _fold("add"),
    "Div": _divide,
    "Where": _same("where"),
    "Clip": _clip,
    "LeakyRelu": _with_factor(lambda x, a: x if x >= 0 else a * x, "alpha", 0.01),
    "Elu": _with_factor(lambda x, a: x if x >= 0 else a * math.expm1(x), "alpha", 1.0),
    "Gelu": _compute_gelu,
    "Softmax": _soften("softmax.int"),
    "LogSoftmax": _soften("log_softmax.int"),
    "ReduceSum": _reduce("sum.dim_IntList"),
    "ReduceMean": _reduce("mean.dim"),
    "ReduceMax": _reduce("amax"),
    "ReduceMin": _reduce("amin"),
    "ReduceLogSumExp": _reduce("logsumexp"),
    "ReduceL1": _reduce("sum.dim_IntList", abs),
    "ReduceSumSquare": _reduce("sum.dim_IntList", lambda x: x * x),
    "ReduceL2": _reduce("sum.dim_IntList", lambda x: x * x, math.sqrt),
    "ArgMax": _find_extreme("argmax"),
    "ArgMin": _find_extreme("argmin"),
    "Gemm": _multiply_general,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Concat": _concatenate,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Expand": _expand,
    "Slice": _slice,
    "Tile": lambda call: _ask_torch("repeat", call, call[0], _list_integers(call[1])),
    "MaxPool": _pool("max"),
    "AveragePool": _pool("mean"),
    "GlobalAveragePool": _average_all,
    "BatchNormalization": _normalize_batch,
    "Constant": _TORCH["vtensor.literal"],
    "Shape": _name_shape,
}
"""The operators of ONNX by name. ``Cast`` of a float to an integer rounds towards zero."""
