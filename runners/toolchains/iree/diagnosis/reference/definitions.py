"""Compute the scalar operations of MLIR's ``arith`` and ``math`` dialects by their definitions. Pure.

An integer is stored as its signed value. A float is rounded to its type after each operation. A result is None if the
definition leaves it undefined.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Number = int | float


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A float format that Python cannot pack: the fraction bits, the least exponent, the largest value."""

    fraction_bits: int
    least_exponent: int
    largest: float
    beyond: float = math.inf
    """The result for a larger value: infinity, or NaN in a format without infinities."""


_PACKED = {"f16": "e", "f32": "f", "f64": "d"}
_FORMATS = {
    "bf16": FloatFormat(7, -126, float.fromhex("0x1.fep127")),
    "f8E5M2": FloatFormat(2, -14, 57344.0),
    "f8E4M3": FloatFormat(3, -6, 240.0),
    "f8E4M3FN": FloatFormat(3, -6, 448.0, math.nan),
    "f8E4M3FNUZ": FloatFormat(3, -7, 240.0, math.nan),
    "f8E5M2FNUZ": FloatFormat(2, -15, 57344.0, math.nan),
}
"""Float formats by their MLIR names. Their parameters are those of LLVM's ``APFloat`` semantics."""
FLOATS = frozenset({*_PACKED, *_FORMATS})
_INTEGER = re.compile(r"(?P<unsigned>u)?i(?P<bits>1|4|8|16|32|64)$")


def is_known(element: str) -> bool:
    """True for an element type that this module supports."""
    return element in FLOATS or _INTEGER.match(element) is not None


@lru_cache(maxsize=64)
def count_bits(element: str) -> int:
    """Return the width of an integer type."""
    return int(element.removeprefix("u")[1:])


def wrap_value(value: Number, element: str) -> Number:
    """Return a value as its type represents it: an integer modulo its width, a float rounded."""
    if element in _FORMATS:
        return round_float(float(value), _FORMATS[element])
    try:
        return wrap_values((value,), element)[0]
    except OverflowError:
        if element not in _PACKED:  # an infinite integer
            raise
        return math.copysign(math.inf, value)


def wrap_values(values: Sequence[Number], element: str) -> Sequence[Number]:
    """Return values as their type represents them, all at once, because a loop may have thousands.

    Raises:
        OverflowError: a value is too large for a packed float, or an infinite integer.
    """
    if element in _FORMATS:
        return [wrap_value(one, element) for one in values]
    if element in _PACKED:
        code = f"<{len(values)}{_PACKED[element]}"
        return struct.unpack(code, struct.pack(code, *values))
    bits = count_bits(element)
    mask, half = (1 << bits) - 1, 1 << (bits - (element[0] != "u"))
    return [low - mask - 1 if (low := int(one) & mask) >= half else low for one in values]


def round_float(value: float, kept: FloatFormat) -> float:
    """Round to the nearest value of a format, ties to even."""
    if not value or math.isnan(value):
        return value
    if math.isinf(value):
        return math.copysign(kept.beyond, value)
    exponent = max(math.frexp(value)[1] - 1, kept.least_exponent)
    step = math.ldexp(1.0, exponent - kept.fraction_bits)
    rounded = round(value / step) * step
    return math.copysign(rounded if abs(rounded) <= kept.largest else kept.beyond, value) if rounded else 0.0 * value


_CODES = {
    **{"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"},
    **{"ui8": "B", "ui16": "H", "ui32": "I", "ui64": "Q"},
}


def keep_bits(value: Number, source: str, target: str) -> Number | None:
    """Return the value with the same bits in another type. None for types of different widths, and for NaN."""
    if source in _BYTES or target in _BYTES:
        return _keep_byte(value, source, target)
    one, other = _CODES.get(source), _CODES.get(target)
    if one is None or other is None or struct.calcsize(f"<{one}") != struct.calcsize(f"<{other}"):
        return None
    result: Number = struct.unpack(f"<{other}", struct.pack(f"<{one}", wrap_value(value, source)))[0]
    return None if math.isnan(value) or math.isnan(result) else result


_BYTES = {name: kept for name, kept in _FORMATS.items() if name.startswith("f8")}


def _keep_byte(value: Number, source: str, target: str) -> Number | None:
    """Return the value of the same byte in another type of one byte."""
    if source in _BYTES:
        codes = (code for code in range(256) if _is_same(_decode_byte(code, source), value))
        code = next(codes, None)
    else:
        code = to_unsigned(int(value), 8) if source in ("i8", "ui8") else None
    if code is None or target not in (*_BYTES, "i8", "ui8"):
        return None
    return _decode_byte(code, target) if target in _BYTES else wrap_value(code, target)


def _is_same(one: float | None, other: Number) -> bool:
    return one is not None and one == other and math.copysign(1, one) == math.copysign(1, other)


def _decode_byte(code: int, element: str) -> float | None:
    """Return the value of a byte as an 8-bit float. None for NaN.

    A format whose name ends in ``FN`` has no infinity. A format in ``FNUZ`` has no negative zero either: the byte
    0x80 is its only NaN.
    """
    kept = _BYTES[element]
    sign, exponent = -1.0 if code & 0x80 else 1.0, (code & 0x7F) >> kept.fraction_bits
    fraction = (code & ((1 << kept.fraction_bits) - 1)) / (1 << kept.fraction_bits)
    if element.endswith("UZ") and code == 0x80:
        return None
    size = math.ldexp((exponent and 1 + fraction) or fraction, max(exponent - 1, 0) + kept.least_exponent)
    if size <= kept.largest:
        return sign * size
    return sign * math.inf if math.isinf(kept.beyond) and not fraction else None


def to_unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _divide(a: int, b: int, bits: int) -> int | None:
    """Return the quotient rounded towards zero. None for division by zero, and if the quotient does not fit."""
    if not b or (b == -1 and a == -(1 << (bits - 1))):
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remain(a: int, b: int, bits: int) -> int | None:
    quotient = _divide(a, b, bits)
    return None if quotient is None else a - b * quotient


INTEGER_PAIRS: Mapping[str, Callable[[int, int, int], int | None]] = {
    "addi": lambda a, b, _: a + b,
    "subi": lambda a, b, _: a - b,
    "muli": lambda a, b, _: a * b,
    "andi": lambda a, b, _: a & b,
    "ori": lambda a, b, _: a | b,
    "xori": lambda a, b, _: a ^ b,
    "divsi": _divide,
    "remsi": _remain,
    "divui": lambda a, b, bits: to_unsigned(a, bits) // to_unsigned(b, bits) if b else None,
    "remui": lambda a, b, bits: to_unsigned(a, bits) % to_unsigned(b, bits) if b else None,
    "maxsi": lambda a, b, _: max(a, b),
    "minsi": lambda a, b, _: min(a, b),
    "maxui": lambda a, b, bits: max(a, b, key=lambda n: to_unsigned(n, bits)),
    "minui": lambda a, b, bits: min(a, b, key=lambda n: to_unsigned(n, bits)),
    "shli": lambda a, b, bits: a << b if 0 <= b < bits else None,
    "shrsi": lambda a, b, bits: a >> b if 0 <= b < bits else None,
    "ceildivsi": lambda a, b, bits: None if _divide(a, b, bits) is None else -(-a // b),
    "floordivsi": lambda a, b, bits: None if _divide(a, b, bits) is None else a // b,
    "ceildivui": lambda a, b, bits: -(-to_unsigned(a, bits) // to_unsigned(b, bits)) if b else None,
    "shrui": lambda a, b, bits: to_unsigned(a, bits) >> b if 0 <= b < bits else None,
}


def _divide_floats(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _choose(pick: Callable[..., float]) -> Callable[[float, float], float]:
    """Return ``maximumf`` or ``minimumf``: NaN for NaN, and zeros ordered by their signs."""
    return lambda a, b: (
        math.nan if math.isnan(a) or math.isnan(b) else pick(a, b, key=lambda n: (n, math.copysign(1.0, n)))
    )


def remain_float(a: float, b: float) -> float:
    """Compute C's ``fmod``, which has the dividend's sign."""
    if math.isinf(a) or not b or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


FLOAT_PAIRS: Mapping[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _divide_floats,
    "maximumf": _choose(max),
    "minimumf": _choose(min),
    "remf": remain_float,
    "maxnumf": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b),
    "minnumf": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else min(a, b),
}


def power(a: float, b: float) -> float:
    """Compute C's ``pow``. Python raises an error where C returns infinity or NaN."""
    if not a and b < 0:
        odd = math.isfinite(b) and b == math.trunc(b) and b % 2 == 1
        return math.copysign(math.inf, a) if odd else math.inf
    if a < 0 and math.isfinite(a) and math.isfinite(b) and b != math.trunc(b):
        return math.nan
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _grow(function: Callable[[float], float], pole: float | None = None) -> Callable[[float], float]:
    """Return a function with the IEEE results for which Python raises an error.

    The results are infinity for an overflow, minus infinity at the pole, and NaN outside the domain.
    """

    def compute_ieee(a: float) -> float:
        try:
            return function(a)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if a == pole else math.nan

    return compute_ieee


def _keep_integral(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function like ``math.floor`` that accepts infinities, returns floats, and keeps the sign of zero."""
    return lambda a: math.copysign(float(function(a)), a) if math.isfinite(a) else a


def _grow_at_one(a: float) -> float:
    """Compute ``atanh``, which has two poles."""
    return math.copysign(math.inf, a) if abs(a) == 1 else _grow(math.atanh)(a)


FLOAT_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "neg": operator.neg,
    "abs": abs,
    "ceil": _keep_integral(math.ceil),
    "floor": _keep_integral(math.floor),
    "roundeven": _keep_integral(round),
    "round": _keep_integral(lambda a: math.copysign(math.floor(abs(a) + 0.5), a)),
    "trunc": _keep_integral(math.trunc),
    "sqrt": _grow(math.sqrt),
    "rsqrt": lambda a: _divide_floats(1.0, _grow(math.sqrt)(a)),
    "cbrt": math.cbrt,
    "exp": _grow(math.exp),
    "exp2": _grow(lambda a: math.pow(2.0, a)),
    "expm1": _grow(math.expm1),
    "log": _grow(math.log, 0.0),
    "log2": _grow(math.log2, 0.0),
    "log10": _grow(math.log10, 0.0),
    "log1p": _grow(math.log1p, -1.0),
    "sin": _grow(math.sin),
    "cos": _grow(math.cos),
    "tan": _grow(math.tan),
    "asin": _grow(math.asin),
    "acos": _grow(math.acos),
    "atan": math.atan,
    "sinh": _grow(lambda a: math.copysign(_grow(math.sinh)(abs(a)), a)),
    "cosh": _grow(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": _grow(math.acosh),
    "atanh": _grow_at_one,
    "lgamma": lambda a: math.inf if a <= 0 and a == math.floor(a) else _grow(math.lgamma)(a),
    "erf": math.erf,
    "erfc": math.erfc,
    "logistic": lambda a: 1.0 / (1.0 + math.exp(-a)) if a > -700 else 0.0,
    "reciprocal": lambda a: _divide_floats(1.0, a),
    "sign": lambda a: a if not a or math.isnan(a) else math.copysign(1.0, a),
}
"""Functions of one float, by their plain names. The results are C's, including infinities and NaN."""
_FLOAT_SINGLES: Mapping[str, Callable[[float], float]] = {
    "arith.negf": FLOAT_FUNCTIONS["neg"],
    "math.absf": FLOAT_FUNCTIONS["abs"],
    **{f"math.{name}": function for name, function in FLOAT_FUNCTIONS.items() if name not in ("neg", "abs", "sign")},
}
_INTEGER_SINGLES: Mapping[str, Callable[[int, int], int]] = {
    "math.absi": lambda a, _: abs(a),
    "math.ctpop": lambda a, bits: to_unsigned(a, bits).bit_count(),
    "math.ctlz": lambda a, bits: bits - to_unsigned(a, bits).bit_length(),
    "math.cttz": lambda a, bits: ((a & -a).bit_length() - 1) if a else bits,
}
_OTHER_PAIRS: Mapping[str, Callable[[float, float], float]] = {
    **{"math.powf": power, "math.atan2": math.atan2, "math.copysign": math.copysign},
}
ORDERS: Mapping[str, Callable[[Number, Number], bool]] = {
    **{"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le},
    **{"gt": operator.gt, "ge": operator.ge},
}


_PLAIN: Mapping[str, Callable[[Number, Number], Number]] = {
    **{"arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul},
    **{"arith.addf": operator.add, "arith.subf": operator.sub, "arith.mulf": operator.mul},
}
"""Operations of two operands that are defined for all values."""


def compute_each(operation: str, element: str, operands: Sequence[Sequence[Number]]) -> Sequence[Number | None]:
    """Return the results of an operation for the operands of many places, each as `compute` returns it."""
    plain = _PLAIN.get(operation)
    if plain is None or not operands or len(operands[0]) != 2 or (operation[-1] == "f") != (element in FLOATS):
        return [compute(operation, element, list(values)) for values in operands]
    results = [plain(a, b) for a, b in operands]
    try:
        return wrap_values(results, element)
    except OverflowError:
        return [wrap_value(one, element) for one in results]


def compute(operation: str, element: str, values: list[Number]) -> Number | None:
    """Return the result of an operation on ``element``. None if it is unknown or undefined."""
    result = _compute(operation, element, values)
    return None if result is None else wrap_value(result, element)


def _compute(operation: str, element: str, values: list[Number]) -> Number | None:
    dialect, _, name = operation.partition(".")
    try:
        if element in FLOATS:
            if len(values) == 2 and dialect == "arith" and name in FLOAT_PAIRS:
                return FLOAT_PAIRS[name](values[0], values[1])
            if len(values) == 2 and operation in _OTHER_PAIRS:
                return _OTHER_PAIRS[operation](values[0], values[1])
            if len(values) == 3 and operation == "math.fma":
                return values[0] * values[1] + values[2]
            return _FLOAT_SINGLES[operation](values[0]) if operation in _FLOAT_SINGLES and len(values) == 1 else None
        bits, whole = count_bits(element), [int(value) for value in values]
        if len(whole) == 2 and dialect == "arith" and name in INTEGER_PAIRS:
            return INTEGER_PAIRS[name](whole[0], whole[1], bits)
        if len(whole) == 2 and operation == "math.ipowi" and 0 <= whole[1] <= 64:
            return int(whole[0] ** whole[1])
        return (
            _INTEGER_SINGLES[operation](whole[0], bits) if operation in _INTEGER_SINGLES and len(whole) == 1 else None
        )
    except (ValueError, OverflowError, TypeError):  # infinite and undefined values, for which Python raises errors
        return None


def compare(kind: str, predicate: str, element: str, a: Number, b: Number) -> Number | None:
    """Return the ``i1`` of ``arith.cmpi`` or ``arith.cmpf``, as -1 or 0. None if the predicate is unknown."""
    if kind == "cmpi":
        unsigned, bits = predicate.startswith("u"), count_bits(element)
        order = ORDERS.get(predicate if predicate in ("eq", "ne") else predicate[1:])
        pair = (to_unsigned(int(a), bits), to_unsigned(int(b), bits)) if unsigned else (a, b)
        return None if order is None else -int(order(*pair))
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return -int(unordered is (predicate == "uno"))
    order = ORDERS.get(predicate[1:])
    if order is None or predicate[0] not in "ou":
        return None
    return -int(predicate[0] == "u" if unordered else order(a, b))


def convert(operation: str, value: Number, source: str, target: str) -> Number | None:
    """Return a value cast from one type to another. None for an unknown cast, or if the value does not fit."""
    match operation:
        case "extsi" | "trunci" | "sitofp" | "extf" | "truncf" | "index_cast":
            return wrap_value(value, target)
        case "extui" | "uitofp":
            return wrap_value(to_unsigned(int(value), count_bits(source)), target)
        case "index_castui":
            return wrap_value(to_unsigned(int(value), count_bits(source)), target)
        case "fptosi":
            fits = math.isfinite(value) and wrap_value(math.trunc(value), target) == math.trunc(value)
            return math.trunc(value) if fits else None
        case "fptoui":
            fits = math.isfinite(value) and 0 <= math.trunc(value) < 1 << count_bits(target)
            return wrap_value(math.trunc(value), target) if fits else None
        case "bitcast":
            return keep_bits(value, source, target)
        case _:
            return None
