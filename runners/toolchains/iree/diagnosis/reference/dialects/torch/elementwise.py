"""Run the operations of the torch dialect that compute each element from those at its place. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import NOTHING, Call, Listed, Run, cast, map_each
from runners.toolchains.iree.diagnosis.reference.scalars import compare_pair, compute_pair, compute_single
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values


def _single(name: str) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        given = cast(call[0], call.element)
        return map_each(call, [given], lambda a: compute_single(name, given.element, a))

    return run


def _floats(function: Callable[[float], float]) -> Callable[[Call], Values]:
    """Apply a function of one float."""

    def run(call: Call) -> Values:
        if call.element not in FLOATS:
            raise UndefinedResult("a function of floats")
        return map_each(call, [cast(call[0], call.element)], lambda a: function(float(a)))

    return run


def _pair(name: str, *, has_factor: bool = False, swaps: bool = False) -> Callable[[Call], Values]:
    """Combine two operands, or the second and the first. With ``has_factor``, a third one scales the second."""

    def run(call: Call) -> Values:
        element = call.element
        pair = [cast(call[at], element) for at in ((1, 0) if swaps else (0, 1))]
        if has_factor and len(call.operands) > 2:
            given = call.get_float(2)
            factor = given if element in FLOATS else int(given)
            if factor != 1:
                pair[1] = map_each(call, [pair[1]], lambda a: a * factor)
        return map_each(call, pair, lambda a, b: compute_pair(name, element, a, b))

    return run


def _compare(order: str) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        element = _find_common(call)
        pair = [cast(one, element) for one in call.operands[:2]]
        return map_each(call, pair, lambda a, b: compare_pair(order, a, b), "i1")

    return run


def _find_common(call: Call) -> str:
    """Return the type in which two operands are compared. A number takes the type of a float tensor."""
    first, second = call[0].element, call[1].element
    if first in FLOATS and (second not in FLOATS or call.statement.operation.endswith(".Scalar")):
        return first
    floats = sorted({first, second} & FLOATS, key=lambda one: int(re.sub(r"\D", "", one) or 0))
    return floats[-1] if floats else "i64"


def _logical(name: str) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        pair = [cast(one, "i1") for one in call.operands[:2]]
        return map_each(call, pair, lambda a, b: compute_pair(name, "i1", a, b), "i1")

    return run


def _divide(call: Call) -> Values:
    mode = NOTHING if len(call.operands) < 3 else call[2]
    word = mode.string if isinstance(mode, Listed) else None
    pair = [cast(one, call.element) for one in call.operands[:2]]
    floats = call.element in FLOATS

    def divide(a: Number, b: Number) -> Number:
        if not floats:
            if not b or word is None:
                raise UndefinedResult("a division of integers")
            return a // b if word == "floor" or (a < 0) is (b < 0) else -(abs(a) // abs(b))
        quotient = compute_pair("divide", call.element, a, b)
        if word is None or not math.isfinite(quotient):
            return quotient
        whole = math.floor(quotient) if word == "floor" else math.trunc(quotient)
        return math.copysign(whole, quotient) if not whole else float(whole)

    return map_each(call, pair, divide)


def _divide_floor(call: Call) -> Values:
    floor = Listed("str", (), string="floor")
    return _divide(Call(call.statement, (*call.operands[:2], floor), call.wide))


def _remain(call: Call) -> Values:
    """Run ``remainder``, which has the divisor's sign."""
    pair = [cast(one, call.element) for one in call.operands[:2]]

    def remain(a: Number, b: Number) -> Number:
        if not b or not math.isfinite(a) or not math.isfinite(b):
            raise UndefinedResult("a remainder")
        if call.element not in FLOATS:
            return a % b
        rest = math.fmod(a, b)
        return math.fmod(rest + b, b) if rest * b < 0 else rest

    return map_each(call, pair, remain)


def _compute_gelu(call: Call) -> Values:
    form = call.get_string(1) if len(call.operands) > 1 else "none"
    if form not in ("none", "tanh"):
        raise UndefinedResult(form)

    def by_error_function(x: float) -> float:
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))

    def by_tangent(x: float) -> float:
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    return _floats(by_tangent if form == "tanh" else by_error_function)(call)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _relu(call: Call) -> Values:
    return map_each(call, [call[0]], lambda a: a if a > 0 or a != a else 0)


def _leak(call: Call) -> Values:
    slope = call.get_float(1)
    return map_each(call, [call[0]], lambda a: a if a >= 0 or a != a else a * slope)


def _clamp(call: Call) -> Values:
    low, high = (
        None if at >= len(call.operands) or call[at].element == "none" else call.get_float(at) for at in (1, 2)
    )

    def limit(a: Number) -> Number:
        if a != a:
            return a
        raised = a if low is None else max(a, low)
        return raised if high is None else min(raised, high)

    return map_each(call, [cast(call[0], call.element)], limit)


def _clamp_from(call: Call) -> Values:
    return _clamp(Call(call.statement, call.operands[:2], call.wide))


def _clamp_to(call: Call) -> Values:
    return _clamp(Call(call.statement, (call[0], NOTHING, call[1]), call.wide))


def _select(call: Call) -> Values:
    chosen = [cast(one, call.element) for one in call.operands[1:3]]
    return map_each(call, [call[0], *chosen], lambda condition, a, b: a if condition else b)


def _fill_masked(call: Call) -> Values:
    fill = cast(call[2], call.element)
    return map_each(call, [call[1], fill, call[0]], lambda condition, a, b: a if condition else b)


def _test(check: Callable[[float], bool]) -> Callable[[Call], Values]:
    return lambda call: map_each(call, [call[0]], lambda a: -int(check(a)), "i1")


def _convert(call: Call) -> Values:
    return cast(call[0], call.element)


_CONVERSIONS = (
    *("aten.clone", "aten.contiguous", "aten.detach", "aten.to.dtype", "aten.copy", "aten._to_copy"),
    *("aten.lift_fresh_copy", "prims.convert_element_type", "tensor_static_info_cast"),
)
ELEMENTS: Mapping[str, Run] = {
    **{
        f"aten.{name}": _single(name)
        for name in (
            *("abs", "ceil", "floor", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "cos", "tan", "asin"),
            *("acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "reciprocal", "expm1", "log1p"),
            *("log2", "log10", "trunc", "sign", "bitwise_not"),
        )
    },
    "aten.neg": _single("negate"),
    "aten.round": _single("round_nearest_even"),
    "aten.logical_not": lambda call: map_each(call, [cast(call[0], "i1")], lambda a: ~int(a), "i1"),
    "aten.relu": _relu,
    "aten.relu6": _floats(lambda x: x if x != x else min(max(x, 0.0), 6.0)),
    "aten.gelu": _compute_gelu,
    "aten.silu": _floats(lambda x: x * _sigmoid(x)),
    "aten.hardsigmoid": _floats(lambda x: x if x != x else min(max(x + 3, 0.0), 6.0) / 6),
    "aten.hardswish": _floats(lambda x: x if x != x else x * min(max(x + 3, 0.0), 6.0) / 6),
    "aten.square": lambda call: map_each(call, [call[0]], lambda a: a * a),
    "aten.leaky_relu": _leak,
    "aten.clamp": _clamp,
    "aten.clamp_min": _clamp_from,
    "aten.clamp_max": _clamp_to,
    "aten.isnan": _test(math.isnan),
    "aten.isinf": _test(math.isinf),
    "aten.isfinite": _test(math.isfinite),
    "aten.add": _pair("add", has_factor=True),
    "aten.sub": _pair("subtract", has_factor=True),
    "aten.rsub": _pair("subtract", has_factor=True, swaps=True),
    "aten.mul": _pair("multiply"),
    "aten.maximum": _pair("maximum"),
    "aten.minimum": _pair("minimum"),
    "aten.pow": _pair("power"),
    "aten.atan2": _pair("atan2"),
    "aten.bitwise_and": _pair("and"),
    "aten.bitwise_or": _pair("or"),
    "aten.bitwise_xor": _pair("xor"),
    "aten.div": _divide,
    "aten.div.Tensor_mode": _divide,
    "aten.div.Scalar_mode": _divide,
    "aten.floor_divide": _divide_floor,
    "aten.remainder": _remain,
    **{f"aten.{name}": _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"aten.logical_{name}": _logical(name) for name in ("and", "or", "xor")},
    "aten.where.self": _select,
    "aten.where": _select,
    "aten.masked_fill": _fill_masked,
    **dict.fromkeys(_CONVERSIONS, _convert),
}
