"""Notations of MLIR that releases of IREE no longer read, and the notations that replaced them. Pure.

Each rule writes the same operation in its later form. A rule that would need a value, a type or an attribute that the
old form does not give leaves the text as it is: the release then refuses the text, and no wrong text is run.
Names that moved as whole words are in ``drift.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from packaging.version import Version

from runners.core.toolchain.rewriting import NotationChange

OLDEST = "2.9.0"
"""The first numbered release. Notations of earlier years are refused by every release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """One notation and its successor. ``write`` returns None for an occurrence that it cannot write exactly."""

    old: str
    """The notation in words for the list of changes."""
    new: str
    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], str | None]
    gone_in: str = OLDEST
    """First release that refuses the old notation, found by parsing with every release."""


def port_notations(text: str, version: str) -> tuple[str, tuple[NotationChange, ...]]:
    """Write MLIR in the notations of a release.

    Comments stay. No rule adds or removes a line.
    """
    rows = [_split_comment(row) for row in text.split("\n")]
    code = "\n".join(row for row, _ in rows)
    changes: list[NotationChange] = []
    release = Version(version)
    for rule in NOTATIONS:
        if release >= Version(rule.gone_in):
            code = _apply(rule, code, changes)
    comments = (comment for _, comment in rows)
    return "\n".join(row + comment for row, comment in zip(code.split("\n"), comments, strict=True)), tuple(changes)


def _apply(rule: Notation, code: str, changes: list[NotationChange]) -> str:
    def replace(found: re.Match[str]) -> str:
        new = rule.write(found)
        if new is None or new == found[0]:
            return found[0]
        assert new.count("\n") == found[0].count("\n")
        line = found.string.count("\n", 0, found.start()) + 1
        changes.append(NotationChange(line=line, old=rule.old, new=rule.new))
        return new

    return rule.pattern.sub(replace, code)


_COMMENT = re.compile(r'((?:[^"/\n]|"(?:[^"\\\n]|\\.)*"|/(?!/)|")*)(.*)')


def _split_comment(row: str) -> tuple[str, str]:
    found = _COMMENT.fullmatch(row)
    return (found[1], found[2]) if found else (row, "")


# ------------------------------------------------------------------------------------------ values and types

_VALUE = r"%[\w$.-]+(?:#\d+)?"
_NESTED = r"<(?:[^<>]|<(?:[^<>]|<[^<>]{0,400}>){0,60}>){0,200}>"
_TYPE = rf"!?[a-z][\w.]*(?:{_NESTED})?"
_SHAPED = re.compile(r"(?P<kind>tensor|memref|vector)<(?P<shape>(?:(?:\d+|\?)x)*)(?P<element>.+)>", re.S)


def _read_shape(text: str) -> tuple[str, list[str], str] | None:
    """Return kind, dimensions and element of a shaped type without encoding or layout; None for any other type."""
    found = _SHAPED.fullmatch(text)
    if found is None or "," in found["element"] or "[" in found["shape"]:
        return None
    return found["kind"], found["shape"].split("x")[:-1], found["element"]


def _make_rename(old: str, new: str, pattern: str, template: str, gone_in: str = OLDEST) -> Notation:
    """Return the notation whose successor is ``template``, in the form of ``re.Match.expand``."""
    return Notation(
        old=old,
        new=new,
        pattern=re.compile(pattern, re.M),
        write=lambda found: found.expand(template),
        gone_in=gone_in,
    )


# ------------------------------------------------------------------------------------------ the standard dialect

_STD = {
    **{
        name: f"arith.{name}"
        for name in ("addi", "addf", "subi", "subf", "muli", "mulf", "divf", "negf", "remf", "cmpi", "cmpf", "select")
    },
    **{
        name: f"arith.{name}"
        for name in ("sitofp", "uitofp", "fptosi", "fptoui", "trunci", "index_cast", "bitcast", "constant")
    },
    **{"fpext": "arith.extf", "fptrunc": "arith.truncf", "sexti": "arith.extsi", "zexti": "arith.extui"},
    **{"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori", "shift_left": "arith.shli"},
    **{"shift_right_signed": "arith.shrsi", "shift_right_unsigned": "arith.shrui"},
    **{"divi_signed": "arith.divsi", "divi_unsigned": "arith.divui", "remi_signed": "arith.remsi"},
    **{"remi_unsigned": "arith.remui", "floordivi_signed": "arith.floordivsi", "ceildivi_signed": "arith.ceildivsi"},
    **{"maxsi": "arith.maxsi", "maxui": "arith.maxui", "minsi": "arith.minsi", "minui": "arith.minui"},
    **{"maxf": "arith.maximumf", "minf": "arith.minimumf", "absf": "math.absf", "ceilf": "math.ceil"},
    **{"floorf": "math.floor", "exp": "math.exp", "log": "math.log", "sqrt": "math.sqrt", "tanh": "math.tanh"},
    **{"rsqrt": "math.rsqrt", "sin": "math.sin", "cos": "math.cos"},
    **{"subtensor": "tensor.extract_slice", "subtensor_insert": "tensor.insert_slice"},
    **{"tensor_cast": "tensor.cast", "extract_element": "tensor.extract"},
    **{"alloc": "memref.alloc", "load": "memref.load"},
}
"""Operations of the dialect ``std``, which was split up in 2021 and 2022, and their names since."""
_STD_TERMINATORS = {"br": "cf.br", "cond_br": "cf.cond_br", "assert": "cf.assert"}
_BEFORE_OPERANDS = r'(?=\s+(?:[%"\-\d@]|dense|true\b|false\b|s[lg][te]\b|u[lg][te]\b|o\w\w\b|eq\b|ne\b))'


def _write_std(found: re.Match[str]) -> str | None:
    name = found["op"]
    rest = found.string[found.end() : found.end() + 400]
    if name == "constant" and rest.lstrip().startswith("@"):
        return f"{found['head']}func.constant"
    return found["head"] + _STD[name]


def _write_dimension(found: re.Match[str]) -> str:
    return f"{found['head']}{found['kind']}.dim{found['rest']}"


_STANDARD = (
    _make_rename(
        *("func @f", "func.func @f", r"^([ \t]*)(?:builtin\.)?func(?=[ \t]+(?:(?:public|private|nested)[ \t]+)?@)"),
        r"\1func.func",
    ),
    Notation(
        old="dim",
        new="tensor.dim or memref.dim",
        pattern=re.compile(
            rf"(?P<head>= +)(?:std\.|memref\.|tensor\.)?dim(?P<rest> {_VALUE}, {_VALUE} : (?P<kind>tensor|memref)<)"
        ),
        write=_write_dimension,
    ),
    Notation(
        old="operations of the dialect std",
        new="operations of arith, math, tensor, memref and func",
        pattern=re.compile(
            r"(?P<head>= +)(?:std\.)?(?P<op>"
            + "|".join(sorted(_STD, key=len, reverse=True))
            + r")"
            + _BEFORE_OPERANDS
        ),
        write=_write_std,
    ),
    Notation(
        old="br, cond_br, assert",
        new="cf.br, cf.cond_br, cf.assert",
        pattern=re.compile(r"(?P<head>^[ \t]*)(?:std\.)?(?P<op>br|cond_br|assert)(?=[ \t]+[\^%])", re.M),
        write=lambda found: found["head"] + _STD_TERMINATORS[found["op"]],
    ),
    _make_rename("store", "memref.store", r"^([ \t]*)(?:std\.)?store(?=[ \t]+%)", r"\1memref.store"),
    _make_rename("std.return", "return", r"^([ \t]*)std\.return\b", r"\1return"),
    _make_rename('cmpi "slt"', "cmpi slt", r'\b(arith\.cmp[if])\s+"(\w+)"', r"\1 \2"),
    _make_rename("arith.maxf", "arith.maximumf", r"\barith\.(max|min)f\b", r"arith.\1imumf"),
    _make_rename("math.abs", "math.absf", r"\bmath\.abs\b", "math.absf"),
)


# ------------------------------------------------------------------------------------------ linalg and tensor


def _write_empty(found: re.Match[str]) -> str:
    dynamic = [size.strip() for size in found["sizes"].split(",") if "%" in size]
    return f"tensor.empty({', '.join(dynamic)}) :"


def _write_fill(found: re.Match[str]) -> str | None:
    """Write ``linalg.fill(%value, %out) : f32, tensor<…>``. Before June 2021 the output came first."""
    (first, second), types = (found["a"], found["b"]), (found["ta"], found["tb"])
    shaped = [_read_shape(one) is not None for one in types]
    if sum(shaped) != 1:
        return None
    pairs = [(first, types[0]), (second, types[1])]
    (value, kind), (out, whole) = pairs if shaped[1] else pairs[::-1]
    return f"linalg.fill ins({value} : {kind}) outs({out} : {whole})"


def _write_output_shape(found: re.Match[str]) -> str | None:
    """Add the sizes of the result, which have to be static: a dynamic size would need a value of its own."""
    result = _read_shape(found["result"])
    if result is None or "?" in result[1] or "output_shape" in found[0]:
        return None
    return f"{found['head']}output_shape [{', '.join(result[1])}] {found['types']}"


def _write_reshape(found: re.Match[str]) -> str | None:
    source, result = _read_shape(found["source"]), _read_shape(found["result"])
    if source is None or result is None:
        return None
    verb = "collapse" if len(source[1]) > len(result[1]) else "expand"
    return f"{found['kind']}.{verb}_shape {found['rest']}"


_RESHAPE_TYPES = rf":\s*(?P<source>(?:tensor|memref){_NESTED})\s+into\s+(?P<result>(?:tensor|memref){_NESTED})"
_REASSOCIATION = rf"{_VALUE}\s*\[(?:\s*\[[\d, ]*\],?)*\s*\]"

_LINALG = (
    Notation(
        old="linalg.init_tensor",
        new="tensor.empty",
        pattern=re.compile(r"\blinalg\.init_tensor\s*\[(?P<sizes>[^\]\n]{0,400})\]\s*:"),
        write=_write_empty,
    ),
    Notation(
        old="linalg.fill(value, output)",
        new="linalg.fill ins(value) outs(output)",
        pattern=re.compile(
            rf"\blinalg\.fill\s*\((?P<a>{_VALUE}), *(?P<b>{_VALUE})\) *: *(?P<ta>{_TYPE}), *(?P<tb>{_TYPE})"
        ),
        write=_write_fill,
    ),
    Notation(
        old="linalg.tensor_reshape",
        new="tensor.collapse_shape or tensor.expand_shape",
        pattern=re.compile(
            rf"\blinalg\.(?:(?P<kind>tensor)_)reshape (?P<rest>{_REASSOCIATION}\s*{_RESHAPE_TYPES})",
        ),
        write=_write_reshape,
    ),
    _make_rename(
        *("linalg.tensor_collapse_shape", "tensor.collapse_shape", r"\blinalg\.tensor_(collapse|expand)_shape\b"),
        r"tensor.\1_shape",
    ),
    Notation(
        old="expand_shape",
        new="expand_shape … output_shape […]",
        pattern=re.compile(
            rf"(?P<head>\b(?:tensor|memref)\.expand_shape\s+{_REASSOCIATION}\s*)(?P<types>{_RESHAPE_TYPES})"
        ),
        write=_write_output_shape,
    ),
    Notation(
        old="linalg.pad_tensor",
        new="tensor.pad",
        pattern=re.compile(r"\blinalg\.pad_tensor(?P<body>[^{}]{0,1000}\{[^{}]{0,2000}?)\blinalg\.yield\b"),
        write=lambda found: f"tensor.pad{found['body']}tensor.yield",
    ),
    _make_rename(
        "linalg.conv_2d_input_nhwc_filter_hwcf",
        "linalg.conv_2d_nhwc_hwcf",
        r"\blinalg\.conv_2d_input_(nhwc|nchw)_filter_(hwcf|fchw)\b",
        r"linalg.conv_2d_\1_\2",
    ),
    _make_rename(
        *("linalg.matmul_i8_i8_i32", "linalg.matmul", r"\blinalg\.(batch_)?matmul_i8_i8_i32\b", r"linalg.\1matmul")
    ),
    _make_rename(
        *("scf.foreach_thread", "scf.forall", r"\bscf\.foreach_thread(?!\.)\b", "scf.forall"),
    ),
    _make_rename(
        *("scf.foreach_thread.perform_concurrently", "scf.forall.in_parallel"),
        *(r"\bscf\.foreach_thread\.perform_concurrently\b", "scf.forall.in_parallel"),
    ),
)


def _write_extract(found: re.Match[str]) -> str | None:
    """Add the type of the extracted element or vector, which was left out."""
    whole = _read_shape(found["type"])
    places = [place for place in found["places"].split(",") if place.strip()]
    if whole is None or len(places) > len(whole[1]):
        return None
    rest = whole[1][len(places) :]
    part = f"vector<{'x'.join([*rest, whole[2]])}>" if rest else whole[2]
    return f"{found['head']} : {part} from {found['type']}"


_VECTOR = (
    Notation(
        old="vector.extract … : vector<…>",
        new="vector.extract … : element from vector<…>",
        pattern=re.compile(
            rf"(?P<head>\bvector\.extract {_VALUE}\[(?P<places>[\d, ]+)\]) *: *(?P<type>vector{_NESTED})(?!\s*from)"
        ),
        write=_write_extract,
    ),
    _make_rename(
        *("#vector.kind<add>", "<add>", r"(\bvector\.(?:multi_reduction|scan) )#vector\.kind(<\w+>)", r"\1\2"),
    ),
    _make_rename(
        'vector.reduction "add"', "vector.reduction <add>", r'\bvector\.reduction "(\w+)"', r"vector.reduction <\1>"
    ),
)


# ------------------------------------------------------------------------------------------ MHLO → StableHLO

_HLO = """
    abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference
    batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp
    collective_permute compare complex concatenate constant convert convolution cosine count_leading_zeros
    create_token cross-replica-sum custom_call divide dot dot_general dynamic_broadcast_in_dim dynamic_conv
    dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum
    exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed iota
    is_finite log log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or outfeed
    pad partition_id popcnt power real real_dynamic_slice recv reduce reduce_precision reduce_scatter
    reduce_window remainder replica_id reshape return reverse rng rng_bit_generator round_nearest_afz
    round_nearest_even rsqrt scatter select select_and_scatter send set_dimension_size shift_left
    shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tanh torch_index_select
    transpose triangular_solve tuple unary_einsum uniform_dequantize uniform_quantize while xor
"""
"""Operations that StableHLO took over from MHLO with their meaning. MHLO's own operations are left as they are."""

_ARRAYS = """
    base_dilations broadcast_dimensions broadcast_sizes dimensions edge_padding_high edge_padding_low fft_length
    interior_padding lhs_dilation limit_indices permutation rhs_dilation slice_sizes start_indices strides
    window_dilations window_dimensions window_strides window_reversal known_expanding_dimensions
    known_nonexpanding_dimensions
"""
"""Attributes that were tensors (``dense<…>``) until 2023, and are arrays since."""
_ENUMS = {
    "comparison_direction": "comparison_direction",
    "compare_type": "comparison_type",
    "fft_type": "fft_type",
    "rng_distribution": "rng_distribution",
    "rng_algorithm": "rng_algorithm",
    "transpose_a": "transpose",
}
"""Attributes that were strings until 2022, and the names of their enumerations."""


def _write_array(found: re.Match[str]) -> str | None:
    count = int(found["count"])
    kind = "i1" if found["type"] == "i1" else "i64"
    items = [item.strip() for item in found["items"].strip().strip("[]").split(",") if item.strip()]
    if not count:
        return f"{found['name']} = array<{kind}>"
    if len(items) == 1:
        items *= count
    return f"{found['name']} = array<{kind}: {', '.join(items)}>" if len(items) == count else None


def _write_precisions(found: re.Match[str]) -> str:
    names = re.findall(r'"(?:precision )?(\w+)"', found["items"])
    return f"precision_config = [{', '.join(f'#stablehlo<precision {name}>' for name in names)}]"


_STABLEHLO = (
    _make_rename(
        *(
            "mhlo.",
            "stablehlo.",
            rf"(?<![\w.#!@%])(\"?)mhlo\.({'|'.join(sorted(_HLO.split(), key=len, reverse=True))})\b(?!\s*=)",
        ),
        r"\1stablehlo.\2",
    ),
    _make_rename("!mhlo.token", "!stablehlo.token", r"!mhlo\.token\b", "!stablehlo.token"),
    _make_rename(
        *('#mhlo<"…">', "#stablehlo<…>", r'#mhlo<"?([a-z_]+) (\w+)"?>', r"#stablehlo<\1 \2>"),
    ),
    _make_rename(
        *("#mhlo.rng_distribution<…>", "#stablehlo<rng_distribution …>"),
        *(
            r"#mhlo\.(rng_distribution|comparison_direction|comparison_type|precision|fft_type)<(\w+)>",
            r"#stablehlo<\1 \2>",
        ),
    ),
    _make_rename(
        "#mhlo.dot<…>", "#stablehlo.dot<…>", r"#mhlo\.(dot|conv|gather|scatter|channel_handle)<", r"#stablehlo.\1<"
    ),
    Notation(
        old='precision_config = ["DEFAULT"]',
        new="precision_config = [#stablehlo<precision DEFAULT>]",
        pattern=re.compile(r'\bprecision_config = \[(?P<items>\s*"[\w ]+"(?:,\s*"[\w ]+")*\s*)\]'),
        write=_write_precisions,
    ),
    Notation(
        old='comparison_direction = "LT"',
        new="comparison_direction = #stablehlo<comparison_direction LT>",
        pattern=re.compile(rf"\b(?P<name>{'|'.join(_ENUMS)}) = \"(?P<value>\w+)\""),
        write=lambda found: f"{found['name']} = #stablehlo<{_ENUMS[found['name']]} {found['value']}>",
    ),
    Notation(
        old="dimensions = dense<…>",
        new="dimensions = array<i64: …>",
        pattern=re.compile(
            rf"\b(?P<name>{'|'.join(_ARRAYS.split())}) = dense<(?P<items>[\w, \[\]-]{{0,400}})> *:"
            r" *tensor<(?P<count>\d+)x(?P<type>i64|i1)>"
        ),
        write=_write_array,
    ),
)


# ------------------------------------------------------------------------------------------ TOSA and IREE


_TOSA_WIDTHS = {"multiplier": "i32", "shift": "i8"}


def _write_tosa_array(found: re.Match[str]) -> str | None:
    items = [item.partition(":")[0].strip() for item in found["items"].split(",")]
    return f"{found['name']} = array<{_TOSA_WIDTHS.get(found['name'], 'i64')}: {', '.join(items)}>"


_TOSA = (
    Notation(
        old="multiplier = [1 : i32]",
        new="multiplier = array<i32: 1>",
        pattern=re.compile(
            r"\b(?P<name>multiplier|shift|kernel|stride|pad|dilation|out_pad|out_shape|new_shape|multiples|start|size)"
            r" = \[(?P<items>\s*-?\d+(?: *: *i\d+)?(?:,\s*-?\d+(?: *: *i\d+)?)*)\s*\]"
        ),
        write=_write_tosa_array,
    ),
)

_IREE = (
    _make_rename(
        *("iree.unfoldable_constant", "util.unfoldable_constant"),
        *(r"\biree\.unfoldable_constant\b", "util.unfoldable_constant"),
    ),
    _make_rename(
        *("util.do_not_optimize(…)", "util.optimization_barrier …"),
        *(rf"\b(?:iree|util)\.do_not_optimize\(({_VALUE}(?:, *{_VALUE})*)\)", r"util.optimization_barrier \1"),
    ),
    _make_rename(
        *("attributes {iree.module.export}", "no attribute: public functions are exported"),
        *(r"(?<![ \t])[ \t]*\battributes[ \t]*\{[ \t]*iree\.module\.export[ \t]*\}", ""),
    ),
)

NOTATIONS = (*_STANDARD, *_LINALG, *_VECTOR, *_STABLEHLO, *_TOSA, *_IREE)
