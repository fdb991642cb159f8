"""Rewrite the named operations of ``linalg`` as ``linalg.generic``, by their definitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.core.mlir.affine_maps import AffineMap, list_maps
from runners.core.mlir.brackets import split_list
from runners.core.mlir.operations import VALUE
from runners.core.mlir.types import TensorType, parse_type
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult

_W = "w * SW + x * DW"
_HW = f"h * SH + y * DH, {_W}"
_DHW = f"d * SD + z * DD, {_HW}"
"""Places under a window, by the strides and the dilations."""
_POOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "nwc": ("n w c | x", (f"n, {_W}, c", "x", "n, w, c")),
    "ncw": ("n c w | x", (f"n, c, {_W}", "x", "n, c, w")),
    "nhwc": ("n h w c | y x", (f"n, {_HW}, c", "y, x", "n, h, w, c")),
    "nchw": ("n c h w | y x", (f"n, c, {_HW}", "y, x", "n, c, h, w")),
    "ndhwc": ("n d h w c | z y x", (f"n, {_DHW}, c", "z, y, x", "n, d, h, w, c")),
}
_PRODUCTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "matmul": ("i j | k", ("i, k", "k, j", "i, j")),
    "matmul_transpose_a": ("i j | k", ("k, i", "k, j", "i, j")),
    "matmul_transpose_b": ("i j | k", ("i, k", "j, k", "i, j")),
    "batch_matmul": ("b i j | k", ("b, i, k", "b, k, j", "b, i, j")),
    "batch_matmul_transpose_a": ("b i j | k", ("b, k, i", "b, k, j", "b, i, j")),
    "batch_matmul_transpose_b": ("b i j | k", ("b, i, k", "b, j, k", "b, i, j")),
    "batch_reduce_matmul": ("i j | b k", ("b, i, k", "b, k, j", "i, j")),
    "matvec": ("i | k", ("i, k", "k", "i")),
    "vecmat": ("j | k", ("k", "k, j", "j")),
    "batch_matvec": ("b i | k", ("b, i, k", "b, k", "b, i")),
    "batch_vecmat": ("b j | k", ("b, k", "b, k, j", "b, j")),
    "dot": ("| k", ("k", "k", "")),
    "mmt4d": ("i j m n | k l", ("i, k, m, l", "j, k, n, l", "i, j, m, n")),
    "batch_mmt4d": ("b i j m n | k l", ("b, i, k, m, l", "b, j, k, n, l", "b, i, j, m, n")),
    "conv_1d": ("w | x", ("w + x", "x", "w")),
    "conv_2d": ("h w | y x", ("h + y, w + x", "y, x", "h, w")),
    "conv_3d": ("d h w | z y x", ("d + z, h + y, w + x", "z, y, x", "d, h, w")),
    "conv_1d_nwc_wcf": ("n w f | x c", (f"n, {_W}, c", "x, c, f", "n, w, f")),
    "conv_1d_ncw_fcw": ("n f w | c x", (f"n, c, {_W}", "f, c, x", "n, f, w")),
    "conv_2d_nhwc_hwcf": ("n h w f | y x c", (f"n, {_HW}, c", "y, x, c, f", "n, h, w, f")),
    "conv_2d_nhwc_fhwc": ("n h w f | y x c", (f"n, {_HW}, c", "f, y, x, c", "n, h, w, f")),
    "conv_2d_nchw_fchw": ("n f h w | c y x", (f"n, c, {_HW}", "f, c, y, x", "n, f, h, w")),
    "conv_2d_ngchw_fgchw": ("n g f h w | c y x", (f"n, g, c, {_HW}", "f, g, c, y, x", "n, g, f, h, w")),
    "conv_2d_ngchw_gfchw": ("n g f h w | c y x", (f"n, g, c, {_HW}", "g, f, c, y, x", "n, g, f, h, w")),
    "conv_2d_nhwgc_gfhwc": ("n h w g f | y x c", (f"n, {_HW}, g, c", "g, f, y, x, c", "n, h, w, g, f")),
    "conv_3d_ndhwc_dhwcf": ("n d h w f | z y x c", (f"n, {_DHW}, c", "z, y, x, c, f", "n, d, h, w, f")),
    "conv_3d_ncdhw_fcdhw": ("n f d h w | c z y x", (f"n, c, {_DHW}", "f, c, z, y, x", "n, f, d, h, w")),
    "depthwise_conv_1d_nwc_wc": ("n w c | x", (f"n, {_W}, c", "x, c", "n, w, c")),
    "depthwise_conv_1d_ncw_cw": ("n c w | x", (f"n, c, {_W}", "c, x", "n, c, w")),
    "depthwise_conv_1d_nwc_wcm": ("n w c m | x", (f"n, {_W}, c", "x, c, m", "n, w, c, m")),
    "depthwise_conv_2d_nhwc_hwc": ("n h w c | y x", (f"n, {_HW}, c", "y, x, c", "n, h, w, c")),
    "depthwise_conv_2d_nchw_chw": ("n c h w | y x", (f"n, c, {_HW}", "c, y, x", "n, c, h, w")),
    "depthwise_conv_2d_nhwc_hwcm": ("n h w c m | y x", (f"n, {_HW}, c", "y, x, c, m", "n, h, w, c, m")),
    "depthwise_conv_3d_ndhwc_dhwc": ("n d h w c | z y x", (f"n, {_DHW}, c", "z, y, x, c", "n, d, h, w, c")),
    "depthwise_conv_3d_ncdhw_cdhw": ("n c d h w | z y x", (f"n, c, {_DHW}", "c, z, y, x", "n, c, d, h, w")),
    "depthwise_conv_3d_ndhwc_dhwcm": (
        "n d h w c m | z y x",
        (f"n, {_DHW}, c", "z, y, x, c, m", "n, d, h, w, c, m"),
    ),
}
"""Operation → its parallel and reduction loops, and the maps of its operands."""
_QUANTIZED = {
    "quantized_matmul": "matmul",
    "quantized_batch_matmul": "batch_matmul",
    **{f"{name}_q": name for name in _PRODUCTS if "conv_" in name},
}
"""Operations whose inputs have a zero point each → the operation without zero points."""
_COMBINED: Mapping[str, tuple[str, str]] = {
    "sum": ("addf", "addi"),
    "max": ("maximumf", "maxsi"),
    "min": ("minimumf", "minsi"),
    "max_unsigned": ("", "maxui"),
    "min_unsigned": ("", "minui"),
}
_FUNCTIONS = (
    "exp log log10 log1p log2 ceil floor sqrt rsqrt tanh erf round sin cos tan asin asinh acos acosh atan atanh"
)
_SINGLES: Mapping[str, tuple[str, str]] = {
    **{name: (f"math.{name}", "") for name in _FUNCTIONS.split()},
    **{"abs": ("math.absf", "math.absi"), "negf": ("arith.negf", "")},
    "square": ("arith.mulf %a,", "arith.muli %a,"),
}
_PAIRS: Mapping[str, tuple[str, str]] = {
    **{"add": ("arith.addf", "arith.addi"), "sub": ("arith.subf", "arith.subi")},
    **{"mul": ("arith.mulf", "arith.muli"), "div": ("arith.divf", "arith.divsi")},
    **dict.fromkeys(("max", "max_signed"), ("arith.maximumf", "arith.maxsi")),
    **dict.fromkeys(("min", "min_signed"), ("arith.minimumf", "arith.minsi")),
    **{"max_unsigned": ("", "arith.maxui"), "min_unsigned": ("", "arith.minui")},
    **{"div_unsigned": ("", "arith.divui"), "powf": ("math.powf", "")},
}
"""Elementwise operations → the scalar operation on floats and on integers."""


@dataclass(frozen=True, slots=True)
class Named:
    """A named operation as a loop nest. The maps are texts; the elements are the names in the lines."""

    parallel: tuple[str, ...]
    reduced: tuple[str, ...]
    maps: tuple[str, ...]
    elements: tuple[str, ...]
    lines: tuple[str, ...]


def find_named(name: str, attributes: str, element: str) -> Named | None:
    """Return the loop nest of a contraction, a convolution or a pooling. None for another operation."""
    suffix = "f" if element in FLOATS else "i"
    if "cast" in attributes:
        return None  # unsigned inputs
    quantized = name in _QUANTIZED and suffix == "i"
    inputs: tuple[str, ...] = ("%a", "%b")
    steps: tuple[str, ...]
    found = _PRODUCTS.get(_QUANTIZED[name] if quantized else name)
    if found is not None:
        steps = (f"%m = arith.mul{suffix} %a, %b : {element}", f"%r = arith.add{suffix} %o, %m : {element}")
        if quantized:
            inputs = ("%a", "%b", "%p", "%q")
            found = (found[0], (*found[1][:2], "", "", found[1][2]))
            steps = (
                f"%s = arith.subi %a, %p : {element}",
                f"%t = arith.subi %b, %q : {element}",
                f"%m = arith.muli %s, %t : {element}",
                steps[1],
            )
    elif pool := re.fullmatch(r"pooling_(\w+?)_(\w+)", name):
        found, combined = _POOLS.get(pool[1]), _COMBINED.get(pool[2], ("", ""))[suffix == "i"]
        if found is None or not combined:
            return None
        steps = (f"%r = arith.{combined} %o, %a : {element}",)
    else:
        return None
    maps = found[1]
    for letter, attribute in (("S", "strides"), ("D", "dilations")):
        numbers = _read_steps(attributes, attribute)
        if numbers is None:
            return None
        for axis, number in zip("DHW", numbers, strict=True):
            maps = tuple(one.replace(letter + axis, str(number)) for one in maps)
    parallel, reduced = (tuple(re.findall(r"\w", part)) for part in found[0].split("|"))
    return Named(parallel, reduced, maps, (*inputs, "%o"), (*steps, f"linalg.yield %r : {element}"))


def _read_steps(attributes: str, name: str) -> tuple[int, ...] | None:
    """Return ``strides = dense<2>`` or ``dense<[2, 1]>`` for three dimensions. Ones if the attribute is absent."""
    found = re.search(rf"\b{name}\s*=\s*dense<\[?([\d, ]+)\]?>", attributes)
    if found is None:
        return None if re.search(rf"\b{name}\b", attributes) else (1, 1, 1)
    numbers = [int(one) for one in re.findall(r"\d+", found[1])]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        return None
    return tuple(numbers * 3 if len(numbers) == 1 else [1] * (3 - len(numbers)) + numbers)


# ---------------------------------------------------------------------------------------------- other notations

_STRUCTURED = re.compile(
    rf"\s*+(?P<to>{VALUE})\s*+=\s*+linalg\.(?P<name>\w+)\s*+(?:\{{\s*+(?P<short>[a-z]+\.\w+)\s*+\}}\s*+)?"
    r"(?:(?:kind\s*+=\s*+#linalg\.elementwise_kind)?<(?P<kind>\w+)>\s*+)?"
    r"(?:indexing_maps\s*+=\s*+\[(?P<maps>[^\[\]]*)\]\s*+)?"
    rf"ins\((?P<ins>[^:()]*):(?P<types>[^()]*)\)\s*+outs\((?P<outs>{VALUE})\s*+:(?P<type>[^()]*)\)\s*+"
    r"(?:(?:dimensions|permutation)\s*+=\s*+\[(?P<listed>[\d,\s]*)\])?\s*+"
    r"(?:\((?P<elements>[^()]*)\)\s*+\{(?P<body>[^{}]*)\})?\s*+(?:->[^(){}]*)?$"
)


def write_generic(text: str) -> str:
    """Return the equivalent ``linalg.generic``. Other operations, and unknown forms, are unchanged."""
    found = _STRUCTURED.match(text)
    to = parse_type(found["type"]) if found else None
    if found is None or not isinstance(to, TensorType):
        return text
    element = to.element
    listed = [int(one) for one in re.findall(r"\d+", found["listed"] or "")]
    inputs = split_list(found["ins"])
    rank, name = len(to.shape), found["kind"] or found["name"]
    if found["maps"] is not None:
        return _write_contraction(found, element)
    match name:
        case "transpose" if sorted(listed) == list(range(rank)):
            order = [listed.index(at) for at in range(rank)]
            return _write(found, rank, [order], range(rank), ("%a", "%o"), ("linalg.yield %a : X",))
        case "broadcast" if max(listed, default=-1) < rank:
            kept = [at for at in range(rank) if at not in listed]
            return _write(found, rank, [kept], range(rank), ("%a", "%o"), ("linalg.yield %a : X",))
        case "reduce" if len(inputs) == 1:
            whole = rank + len(listed)
            kept = [at for at in range(whole) if at not in listed]
            lines = _list_lines(found, element, "%o, %a")
            return _write(found, whole, [list(range(whole))], kept, _list_elements(found, 1), lines)
        case "map":
            names = ", ".join(f"%a{at}" for at in range(len(inputs)))
            own = [list(range(rank))] * len(inputs)
            lines = _list_lines(found, element, names)
            return _write(found, rank, own, range(rank), _list_elements(found, len(inputs)), lines)
        case _:
            steps = _find_elementwise(name, element)
            count = 2 if name in _PAIRS else 1
            if steps is None or len(inputs) != count:
                return text
            elements = (*("%a", "%b")[:count], "%o")
            return _write(found, rank, [list(range(rank))] * count, range(rank), elements, steps)


def _find_elementwise(name: str, element: str) -> tuple[str, ...] | None:
    which = element not in FLOATS
    if single := _SINGLES.get(name, ("", ""))[which]:
        return (f"%r = {single} %a : {element}", f"linalg.yield %r : {element}")
    if pair := _PAIRS.get(name, ("", ""))[which]:
        return (f"%r = {pair} %a, %b : {element}", f"linalg.yield %r : {element}")
    if name == "reciprocal" and not which:
        one = f"%l = arith.constant 1.0 : {element}"
        return (one, f"%r = arith.divf %l, %a : {element}", f"linalg.yield %r : {element}")
    return (f"linalg.yield %a : {element}",) if name == "copy" else None


def _list_lines(found: re.Match[str], element: str, operands: str) -> tuple[str, ...]:
    if found["body"] is not None:
        return (found["body"],)
    if found["short"] is None:
        raise UndefinedResult("a structured operation without a body")
    return (f"%r = {found['short']} {operands} : {element}", f"linalg.yield %r : {element}")


def _list_elements(found: re.Match[str], inputs: int) -> tuple[str, ...]:
    """Return the names of the elements. A map in older notation has no name for the result."""
    names = re.findall(rf"({VALUE})\s*:", found["elements"] or "")
    if found["body"] is None:
        names = ["%a"] if found["name"] == "reduce" else [f"%a{at}" for at in range(inputs)]
    if len(names) == inputs:
        names = [*names, "%o"]
    return tuple(names)


def _write(
    found: re.Match[str],
    rank: int,
    inputs: Sequence[Sequence[int]],
    result: Sequence[int],
    elements: Sequence[str],
    lines: Sequence[str],
) -> str:
    loops = tuple(f"d{at}" for at in range(rank))
    maps = [AffineMap(loops, tuple(loops[at] for at in one)) for one in (*inputs, result)]
    kinds = ['"parallel"' if at in result else '"reduction"' for at in range(rank)]
    return _join(found, maps, kinds, elements, lines)


def _join(
    found: re.Match[str],
    maps: Sequence[AffineMap],
    kinds: Sequence[str],
    elements: Sequence[str],
    lines: Sequence[str],
) -> str:
    body = "\n".join(lines)
    arguments = ", ".join(f"{name}: X" for name in elements)
    return (
        f"{found['to']} = linalg.generic "
        f"{{indexing_maps = [{', '.join(map(str, maps))}], iterator_types = [{', '.join(kinds)}]}} "
        f"ins({found['ins']} : {found['types']}) outs({found['outs']} : {found['type']}) "
        f"{{\n^bb0({arguments}):\n{body}\n}} -> {found['type'].strip()}"
    )


def _write_contraction(found: re.Match[str], element: str) -> str:
    """Write a contraction with its own maps. Loops without a dimension in the result are summed."""
    listed = list_maps(found["maps"], {})
    maps = [one for one in listed if one and {*one.results} <= {*one.dimensions}]
    if not len(maps) == len(listed) == 3 or "cast" in found[0]:
        raise UndefinedResult("maps of a contraction")
    kinds = ['"parallel"' if one in maps[-1].results else '"reduction"' for one in maps[-1].dimensions]
    if not re.search(r"matmul$|contract$|vecmat$|matvec$", found["name"]):
        raise UndefinedResult(found["name"])
    suffix = "f" if element in FLOATS else "i"
    lines = (
        f"%m = arith.mul{suffix} %a, %b : {element}",
        f"%r = arith.add{suffix} %o, %m : {element}",
        f"linalg.yield %r : {element}",
    )
    return _join(found, maps, kinds, ("%a", "%b", "%o"), lines)
