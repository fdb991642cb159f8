"""Define the notations of TOSA. Pure.

Until 3.2.0, TOSA gave shapes, zero points and shifts as attributes. Since 3.3.0 they are operands: constants. These
are written in the line of their operation, so that later lines keep their numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runners.core.mlir.types import DYNAMIC, match_static
from runners.toolchains.iree.notations.rule import EARLIEST, TYPE, VALUE, Notation, find_dialect, read_shape

_TOSA_WIDTHS = {"multiplier": "i32", "shift": "i8"}
_OPERANDS_SINCE = "3.3.0"


def _write_tosa_array(found: re.Match[str]) -> str | None:
    if find_dialect(found) != "tosa":  # convolutions of StableHLO keep their lists
        return None
    items = [item.partition(":")[0].strip() for item in found["items"].split(",")]
    return f"{found['name']} = array<{_TOSA_WIDTHS.get(found['name'], 'i64')}: {', '.join(items)}>"


# ------------------------------------------------------------------------------------------ operations


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation as written, with one result."""

    name: str
    result: str
    operands: tuple[str, ...]
    attributes: Mapping[str, str]
    types: tuple[str, ...]
    to: str
    text: str
    """The whole module."""

    def write(
        self, made: tuple[tuple[str, str, str], ...], attributes: Mapping[str, str], *, operands: int | None = None
    ) -> str:
        """Write the operation with further operands before it. Each has a name, an operation and a type.

        ``operands`` is the number of its own operands that it keeps. None for all.
        """
        stem = re.sub(r"\W", "_", self.result.lstrip("%"))
        names = [f"%tosa_{stem}_{name}" for name, _, _ in made]
        before = "".join(
            f"{name} = {code} : () -> {kind} " for name, (_, code, kind) in zip(names, made, strict=True)
        )
        kept = slice(operands)
        given = ", ".join((*self.operands[kept], *names))
        types = ", ".join((*self.types[kept], *(kind for _, _, kind in made)))
        written = f" {{{', '.join(f'{key} = {value}' for key, value in attributes.items())}}}" if attributes else ""
        return f'{before}{self.result} = "tosa.{self.name}"({given}){written} : ({types}) -> {self.to}'


_ATTRIBUTE = re.compile(r"(\w+) = ((?:[^,<>\[\]]|<[^<>]{0,2000}>|\[[^\[\]]{0,2000}\]){1,2000})")


def _make_rule(
    name: str, write: Callable[[_Operation], str | None], new: str, gone_in: str = _OPERANDS_SINCE
) -> Notation:
    pattern = re.compile(
        rf"(?P<result>{VALUE}) = (?:\"tosa\.{name}\"\((?P<listed>[^()\n]{{0,400}})\)"
        rf"|tosa\.{name} (?P<plain>{VALUE}(?:, {VALUE}){{0,9}}))"
        rf" ?(?:<?\{{(?P<attributes>[^{{}}\n]{{0,4000}})\}}>?)? : \((?P<types>[^()\n]{{0,2000}})\) -> (?P<to>{TYPE})"
    )

    def write_found(found: re.Match[str]) -> str | None:
        operands = tuple(one.strip() for one in (found["listed"] or found["plain"] or "").split(",") if one.strip())
        types = tuple(one.strip() for one in found["types"].split(", ") if one.strip())
        attributes = {key: value.strip() for key, value in _ATTRIBUTE.findall(found["attributes"] or "")}
        if len(operands) != len(types):
            return None
        return write(_Operation(name, found["result"], operands, attributes, types, found["to"], found.string))

    return Notation(old=f"tosa.{name}", new=new, pattern=pattern, write=write_found, gone_in=gone_in)


def _make_shape(name: str, sizes: list[str]) -> tuple[str, str, str]:
    values = f"dense<[{', '.join(sizes)}]> : tensor<{len(sizes)}xindex>"
    return name, f'"tosa.const_shape"() {{values = {values}}}', f"!tosa.shape<{len(sizes)}>"


def _make_one(name: str, value: str, element: str) -> tuple[str, str, str]:
    """Return a constant of one element."""
    number = value if not element.startswith(("f", "bf")) or "." in value else f"{value}.0"
    kind = f"tensor<1x{element}>"
    return name, f'"tosa.const"() {{values = dense<{number}> : {kind}}}', kind


def _read_array(text: str) -> list[str] | None:
    found = re.fullmatch(r"array<i\d+(?:: (?P<items>[-\d, ]*))?>", text)
    return None if found is None else [one.strip() for one in (found["items"] or "").split(",") if one.strip()]


def _read_element(kind: str) -> str:
    shape = read_shape(kind)
    return shape.element if shape is not None and re.fullmatch(r"i\d+|b?f\d+", shape.element) else ""


def _drop(attributes: Mapping[str, str], *names: str) -> dict[str, str]:
    return {key: value for key, value in attributes.items() if key not in names}


def _write_shapes(*names: str) -> Callable[[_Operation], str | None]:
    """Return the writer of an operation whose attributes of these names became operands, in this order."""

    def write(one: _Operation) -> str | None:
        sizes = [_read_array(one.attributes.get(name, "")) for name in names]
        made = tuple(_make_shape(name, each) for name, each in zip(names, sizes, strict=True) if each is not None)
        return one.write(made, _drop(one.attributes, *names)) if len(made) == len(names) else None

    return write


def _write_mul(one: _Operation) -> str | None:
    shift = one.attributes.get("shift", "0 : i8").partition(" ")[0]
    if len(one.operands) != 2 or not shift.isdigit():
        return None
    return one.write((_make_one("shift", shift, "i8"),), _drop(one.attributes, "shift"))


def _write_clamp(one: _Operation) -> str | None:
    element = _read_element(one.types[0])
    ends = "fp" if element == "f32" else "int" if re.fullmatch(r"i\d+", element) else ""
    least, most = (one.attributes.get(f"{side}_{ends}", "").partition(" ")[0] for side in ("min", "max"))
    if not (ends and least and most):
        return None
    bounds = {"min_val": f"{least} : {element}", "max_val": f"{most} : {element}"}
    return one.write((), {**_drop(one.attributes, "min_fp", "max_fp", "min_int", "max_int"), **bounds})


_ZERO_POINTS = {
    "matmul": (2, "a_zp", "b_zp"),
    "conv2d": (3, "input_zp", "weight_zp"),
    "conv3d": (3, "input_zp", "weight_zp"),
    "depthwise_conv2d": (3, "input_zp", "weight_zp"),
    "transpose_conv2d": (3, "input_zp", "weight_zp"),
    "avg_pool2d": (1, "input_zp", "output_zp"),
    "negate": (1, "input1_zp", "output_zp"),
}
"""Operation → the number of its operands without zero points, and its zero points."""
_ACCUMULATES = frozenset({"conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d", "avg_pool2d"})
_QUANTIZED = re.compile(r"#tosa\.\w+_quant<(?P<items>[^<>]*)>")


def _write_zero_points(one: _Operation) -> str | None:
    """Add the zero points, which are 0 by default. Pools and negations have those of their input and their result."""
    count, *names = _ZERO_POINTS[one.name]
    types = (one.types[0], one.to) if names[1] == "output_zp" else one.types[:2]
    elements = [_read_element(kind) for kind in types]
    if len(elements) != 2 or "" in elements or len(one.operands) != count:
        return None
    quantized = _QUANTIZED.fullmatch(one.attributes.get("quantization_info", ""))
    points = dict(re.findall(r"(\w+) = (-?\d+)", quantized["items"])) if quantized else {}
    points.update({key: value.partition(" ")[0] for key, value in one.attributes.items() if key in names})
    if "quantization_info" in one.attributes and quantized is None:
        return None
    made = tuple(_make_one(name, points.get(name, "0"), kind) for name, kind in zip(names, elements, strict=True))
    return one.write(made, _add_accumulator(one, _drop(one.attributes, "quantization_info", *names)))


def _add_accumulator(one: _Operation, attributes: dict[str, str]) -> dict[str, str]:
    """Add the type of the accumulator if it was implied: the widest that the input's type allows."""
    if one.name not in _ACCUMULATES or "acc_type" in attributes:
        return attributes
    element = _read_element(one.types[0])
    return {
        **attributes,
        "acc_type": "f32" if element.startswith(("f", "bf")) else "i48" if element == "i16" else "i32",
    }


def _write_accumulator(one: _Operation) -> str | None:
    if not _read_element(one.types[0]) or "acc_type" in one.attributes:
        return None
    return one.write((), _add_accumulator(one, dict(one.attributes)))


_CONSTANT = (
    r"^[ \t]*{name} = (?:\"tosa\.const\"\(\) ?<?\{{values? = |arith\.constant )"
    r"dense<(?P<items>[^<>]{{0,4000}})> ?:"
)


def _read_constant(one: _Operation, place: int) -> list[str] | None:
    """Return the numbers of a constant operand."""
    written = list(re.finditer(_CONSTANT.format(name=re.escape(one.operands[place])), one.text, re.M))
    if len(written) != 1:
        return None
    items = re.findall(r"-?\d+", written[0]["items"])
    kind = match_static(one.text, written[0].end())
    if kind is None or not re.fullmatch(r"i\d+", kind.element):
        return None
    count = math.prod(kind.shape)
    return items * count if len(items) == 1 else items if len(items) == count else None


def _write_transpose(one: _Operation) -> str | None:
    order = _read_constant(one, 1) if len(one.operands) == 2 else None
    return None if order is None else one.write((), {"perms": f"array<i32: {', '.join(order)}>"}, operands=1)


def _write_pad(one: _Operation) -> str | None:
    """Write the widths as a shape, and add the value, which is 0 by default."""
    element = _read_element(one.types[0])
    widths = _read_constant(one, 1) if len(one.operands) == 2 and one.types[1].startswith("tensor<") else None
    if widths is None or not element or one.attributes:
        return None
    return one.write((_make_shape("padding", widths), _make_one("value", "0", element)), {}, operands=1)


def _make_list(name: str, items: list[str], element: str) -> tuple[str, str, str]:
    kind = f"tensor<{len(items)}x{element}>"
    return name, f'"tosa.const"() {{values = dense<[{", ".join(items)}]> : {kind}}}', kind


def _write_rescale(one: _Operation) -> str | None:
    """Write factors and zero points as operands, and the name of the rounding. Older forms have signed values."""
    given = {key: value.partition(" ")[0] for key, value in one.attributes.items()}
    factors, shifts = (_read_array(one.attributes.get(name, "")) for name in ("multiplier", "shift"))
    elements = _read_element(one.types[0]), _read_element(one.to)
    if len(one.operands) != 1 or not factors or not shifts or "" in elements or "scale32" not in given:
        return None
    made = (
        _make_list("multiplier", factors, "i32" if given["scale32"] == "true" else "i16"),
        _make_list("shift", shifts, "i8"),
        _make_one("input_zp", given.get("input_zp", "0"), elements[0]),
        _make_one("output_zp", given.get("output_zp", "0"), elements[1]),
    )
    rounding = "DOUBLE_ROUND" if given.get("double_round") == "true" else "SINGLE_ROUND"
    kept = _drop(one.attributes, "multiplier", "shift", "input_zp", "output_zp", "double_round")
    signs = {f"{side}_unsigned": "false" for side in ("input", "output")}
    return one.write(made, {"rounding_mode": f'"{rounding}"', **signs, **kept})


def _write_fully_connected(one: _Operation) -> str | None:
    """Write the convolution with a window of one element, which replaced the operation in TOSA.

    Later rules write its parts in the forms of the release.
    """
    shapes = [read_shape(kind) for kind in (*one.types, one.to)]
    sizes = [shape.shape for shape in shapes if shape is not None]
    if len(one.operands) != 3 or len(sizes) != 4 or any(len(sizes[at]) != 2 for at in (0, 1, 3)):
        return None
    if DYNAMIC in (*sizes[0], sizes[1][0]):
        return None
    rows, depth, units = map(str, (*sizes[0], sizes[1][0]))
    stem = "%tosa_" + re.sub(r"\W", "_", one.result.lstrip("%"))
    given, weight, to = (_widen(kind) for kind in (one.types[0], one.types[1], one.to))
    attributes = {
        **one.attributes,
        **{"pad": "array<i64: 0, 0, 0, 0>", "stride": "array<i64: 1, 1>", "dilation": "array<i64: 1, 1>"},
    }
    written = ", ".join(f"{key} = {value}" for key, value in attributes.items())
    return " ".join(
        (
            _reshape(f"{stem}_given", one.operands[0], one.types[0], given, (rows, "1", "1", depth)),
            _reshape(f"{stem}_weight", one.operands[1], one.types[1], weight, (units, "1", "1", depth)),
            f'{stem}_conv = "tosa.conv2d"({stem}_given, {stem}_weight, {one.operands[2]}) {{{written}}}'
            f" : ({given}, {weight}, {one.types[2]}) -> {to}",
            _reshape(one.result, f"{stem}_conv", to, one.to, (rows, units)),
        )
    )


def _reshape(result: str, value: str, kind: str, to: str, sizes: Sequence[str]) -> str:
    return f'{result} = "tosa.reshape"({value}) {{new_shape = array<i64: {", ".join(sizes)}>}} : ({kind}) -> {to}'


def _widen(kind: str) -> str:
    """Return a matrix type with a window of one element between its dimensions."""
    return re.sub(r"<(\?|\d+)x", r"<\1x1x1x", kind, count=1)


_ENUMS = {"rounding_mode": "rounding_mode", "mode": "resize_mode", "nan_mode": "nan_mode"}
"""Attribute → its enumeration, which was a string until 3.6.0."""


def _write_enum(found: re.Match[str]) -> str | None:
    written = f"{found['key']} = #tosa.{_ENUMS[found['key']]}<{found['value']}>"
    return written if find_dialect(found) == "tosa" else None


def _write_generic(found: re.Match[str]) -> str:
    """Write an operation in the form that every release reads. In 3.13.0, its attributes are before the colon."""
    attributes = re.sub(
        r"\b(rounding_mode|nan_mode|mode) = ([A-Z_]+)\b",
        lambda one: f"{one[1]} = #tosa.{_ENUMS[one[1]]}<{one[2]}>",
        found["attributes"],
    )
    return f'{found["result"]} = "tosa.{found["name"]}"({found["operands"]}) {{{attributes}}} : ('


NOTATIONS = (
    Notation(
        old="multiplier = [1 : i32]",
        new="multiplier = array<i32: 1>",
        pattern=re.compile(
            r"\b(?P<name>multiplier|shift|kernel|stride|pad|dilation|out_pad|out_shape|new_shape|multiples|start|size)"
            r" = \[(?P<items>\s*-?\d+(?: *: *i\d+)?(?:,\s*-?\d+(?: *: *i\d+)?)*)\s*\]"
        ),
        write=_write_tosa_array,
        gone_in=EARLIEST,
    ),
    Notation(
        old="axis = 0 : i64",
        new="axis = 0 : i32",
        pattern=re.compile(r"\baxis = (?P<axis>\d+)(?: : i64)(?=\s*[,}])"),
        write=lambda found: f"axis = {found['axis']} : i32" if find_dialect(found) == "tosa" else None,
    ),
    Notation(
        old="shift = 0 : i32",
        new="shift = 0 : i8",
        pattern=re.compile(r"(?P<head>\btosa\.mul\b[^\n{]{0,400}\{[^{}\n]{0,200}?\bshift = \d+) : i32"),
        write=lambda found: f"{found['head']} : i8",
    ),
    _make_rule("fully_connected", _write_fully_connected, "tosa.conv2d"),
    *(
        _make_rule(name, _write_accumulator, "acc_type = …", "2.9.0" if name == "avg_pool2d" else "3.0.0")
        for name in sorted(_ACCUMULATES)
    ),
    _make_rule("pad", _write_pad, "tosa.pad with a shape", "3.2.0"),
    _make_rule("transpose", _write_transpose, "tosa.transpose {perms = …}"),
    Notation(
        old='"tosa.const" {value = …}',
        new='"tosa.const" {values = …}',
        pattern=re.compile(r"(?P<head>\"tosa\.const\"\(\) ?<?\{)value(?= = )"),
        write=lambda found: f"{found['head']}values",
        gone_in=_OPERANDS_SINCE,
    ),
    _make_rule("reshape", _write_shapes("new_shape"), "tosa.reshape with a shape"),
    _make_rule("slice", _write_shapes("start", "size"), "tosa.slice with shapes"),
    _make_rule("tile", _write_shapes("multiples"), "tosa.tile with a shape"),
    _make_rule("mul", _write_mul, "tosa.mul with a shift"),
    _make_rule("clamp", _write_clamp, "tosa.clamp {min_val = …, max_val = …}"),
    *(_make_rule(name, _write_zero_points, f"tosa.{name} with zero points") for name in _ZERO_POINTS),
    _make_rule("rescale", _write_rescale, "tosa.rescale with its factors as operands"),
    _make_rule("resize", _write_shapes("scale", "offset", "border"), "tosa.resize with shapes"),
    Notation(
        old='mode = "NEAREST_NEIGHBOR"',
        new="mode = #tosa.resize_mode<NEAREST_NEIGHBOR>",
        pattern=re.compile(rf'\b(?P<key>{"|".join(_ENUMS)}) = "(?P<value>[A-Z_]{{1,40}})"'),
        write=_write_enum,
        gone_in="3.7.0",
    ),
    Notation(
        old="tosa.concat %a {axis = 0 : i32}",
        new='"tosa.concat"(%a) {axis = 0 : i32}',
        pattern=re.compile(
            rf"(?P<result>{VALUE}) = tosa\.(?P<name>(?!const\b|const_shape\b|variable)[a-z][\w]{{1,40}})"
            rf" (?P<operands>{VALUE}(?:, {VALUE}){{0,40}}) <?\{{(?P<attributes>[^{{}}\n]{{1,4000}})\}}>? : \("
        ),
        write=_write_generic,
        gone_in="3.13.0",
    ),
)
