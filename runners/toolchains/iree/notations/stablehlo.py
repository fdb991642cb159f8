"""Define the notations of MHLO and of early StableHLO. Pure."""

from __future__ import annotations

import re

from runners.toolchains.iree.notations.rule import (
    EARLIEST,
    NESTED,
    VALUE,
    Notation,
    date_rules,
    find_dialect,
    make_rename,
)

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
"""Operations that StableHLO adopted from MHLO with their meaning. MHLO's own operations are unchanged."""
_NAMES = sorted(_HLO.split(), key=len, reverse=True)

_ARRAYS = """
    base_dilations broadcast_dimensions broadcast_sizes dimensions edge_padding_high edge_padding_low fft_length
    interior_padding lhs_dilation limit_indices permutation rhs_dilation slice_sizes start_indices strides
    window_dilations window_dimensions window_strides window_reversal known_expanding_dimensions
    known_nonexpanding_dimensions
"""
"""Attributes that were tensors (``dense<…>``) until 2023 and are arrays since then."""
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
    if find_dialect(found) not in ("", "stablehlo", "chlo"):  # linalg keeps its tensors
        return None
    count = int(found["count"])
    kind = "i1" if found["type"] == "i1" else "i64"
    items = [item.strip() for item in found["items"].strip().strip("[]").split(",") if item.strip()]
    if not count:
        return f"{found['name']} = array<{kind}>"
    if len(items) == 1:
        items *= count
    return f"{found['name']} = array<{kind}: {', '.join(items)}>" if len(items) == count else None


_DENSE = re.compile(r"dense<(?P<items>[^<>]{0,400})>\s*:\s*tensor<(?P<count>\d+)xi64>")


def _read_dimensions(fields: str) -> dict[str, str] | None:
    """Read the dictionary that contained dimension numbers until 2021. None unless all values are numbers or dense
    arrays."""
    read: dict[str, str] = {}
    for part in re.split(r",\s*(?=\w+ = )", fields.strip()):
        name, _, value = part.partition(" = ")
        if number := re.fullmatch(r"(\d+) : i64", value.strip()):
            read[name.strip()] = number[1]
        elif array := _DENSE.fullmatch(value.strip()):
            items = [item.strip() for item in array["items"].strip("[] ").split(",") if item.strip()]
            count = int(array["count"])
            read[name.strip()] = f"[{', '.join(items * count if len(items) == 1 else items)}]"
        else:
            return None
    return read


_EMPTY_LISTS = {
    "dot": ("lhs_batching_dimensions", "rhs_batching_dimensions"),
    "gather": ("offset_dims", "collapsed_slice_dims"),
    "scatter": ("update_window_dims", "inserted_window_dims"),
}
_OF_CONVOLUTION = (
    ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "b"),
    ("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions", "i"),
    ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", "b"),
)


def _write_dimensions(found: re.Match[str]) -> str | None:
    """Write a dictionary of dimension numbers as the attribute of its operation."""
    fields = _read_dimensions(found["fields"])
    if fields is None:
        return None
    if "input_batch_dimension" in fields:
        layouts = [_write_layout(fields, *names) for names in _OF_CONVOLUTION]
        if None in layouts:
            return None
        return f"{found['name']} = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>"
    kind = "dot" if "dot" in found["name"] else "scatter" if "scatter" in found["name"] else "gather"
    kept = {name: value for name, value in fields.items() if value != "[]" or name not in _EMPTY_LISTS[kind]}
    body = ", ".join(f"{name} = {value}" for name, value in kept.items())
    return f"{found['name']} = #stablehlo.{kind}<{body}>"


def _write_layout(fields: dict[str, str], first: str, second: str, spatial: str, letter: str) -> str | None:
    """Write ``[b, 0, 1, f]`` from the positions of its letters and of its spatial dimensions."""
    places = [place.strip() for place in fields.get(spatial, "").strip("[]").split(",") if place.strip()]
    if first not in fields or second not in fields:
        return None
    named = {fields[first]: letter, fields[second]: "o" if letter == "i" else "f"}
    named.update({place: str(number) for number, place in enumerate(places)})
    order = [named.get(str(place)) for place in range(len(named))]
    return None if None in order or len(named) != len(places) + 2 else f"[{', '.join(map(str, order))}]"


def _write_enum(found: re.Match[str]) -> str:
    dialect = "chlo" if find_dialect(found) == "chlo" else "stablehlo"
    return f"{found['name']} = #{dialect}<{_ENUMS[found['name']]} {found['value']}>"


def _write_random(found: re.Match[str]) -> str:
    distribution = f"#stablehlo<rng_distribution {found['kind'].upper()}>"
    return f'"stablehlo.rng"{found["operands"]} {{rng_distribution = {distribution}}}'


_ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")


def _write_precisions(found: re.Match[str]) -> str:
    names = re.findall(r'"(?:precision )?(\w+)"', found["items"])
    return f"precision_config = [{', '.join(f'#stablehlo<precision {name}>' for name in names)}]"


def _write_erf(found: re.Match[str]) -> str:
    kind = found["type"] or found["to"]
    return f"chlo.erf {found['value'] or found['operand']} : {kind} -> {kind}"


_RULES = (
    Notation(
        old="mhlo.erf",
        new="chlo.erf",
        pattern=re.compile(
            rf"(?:\bmhlo\.erf (?P<value>{VALUE}) : (?P<type>tensor{NESTED})"
            rf"|\"mhlo\.erf\"\((?P<operand>{VALUE})\) : \(tensor{NESTED}\) -> (?P<to>tensor{NESTED}))"
        ),
        write=_write_erf,
    ),
    make_rename(
        *("mhlo.topk", "chlo.top_k"),
        *(rf"\bmhlo\.topk\(({VALUE}, k = \d+)(?:, largest = true)?\)", r"chlo.top_k(\1)"),
    ),
    Notation(
        old="mhlo.dynamic-slice",
        new="mhlo.dynamic_slice",
        pattern=re.compile(r"\b(?:mhlo|xla_hlo)\.(?:dynamic-slice|dynamic-update-slice)\b"),
        write=lambda found: found[0].replace("-", "_"),
    ),
    Notation(
        old="mhlo.rng_uniform",
        new="stablehlo.rng with rng_distribution",
        pattern=re.compile(
            r"\"(?:mhlo|xla_hlo)\.rng_(?P<kind>uniform|normal)\"(?P<operands>\([^()\n]{0,400}\))(?=\s*:)"
        ),
        write=_write_random,
    ),
    make_rename(
        *(
            "mhlo.",
            "stablehlo.",
            rf"(?<![\w.#!@%])(\"?)(?:mhlo|xla_hlo)\.({'|'.join(_NAMES)})\b(?!\s*=)",
        ),
        r"\1stablehlo.\2",
    ),
    make_rename("!mhlo.token", "!stablehlo.token", r"!mhlo\.token\b", "!stablehlo.token"),
    make_rename(
        *('#mhlo<"…">', "#stablehlo<…>", r'#mhlo<"?([a-z_]+) (\w+)"?>', r"#stablehlo<\1 \2>"),
    ),
    make_rename(
        *("#mhlo.rng_distribution<…>", "#stablehlo<rng_distribution …>"),
        *(
            r"#mhlo\.(rng_distribution|comparison_direction|comparison_type|precision|fft_type)<(\w+)>",
            r"#stablehlo<\1 \2>",
        ),
    ),
    make_rename(
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
        write=_write_enum,
    ),
    Notation(
        old="rng_algorithm = 2 : i32",
        new="rng_algorithm = #stablehlo<rng_algorithm PHILOX>",
        pattern=re.compile(r"\brng_algorithm = (?P<number>[012]) : i32\b"),
        write=lambda found: f"rng_algorithm = #stablehlo<rng_algorithm {_ALGORITHMS[int(found['number'])]}>",
    ),
    Notation(
        old="dimension_numbers = {…}",
        new="dimension_numbers = #stablehlo.…<…>",
        pattern=re.compile(
            r"\b(?P<name>dimension_numbers|dot_dimension_numbers|scatter_dimension_numbers) ="
            r" \{(?P<fields>[^{}]{0,2000})\}"
        ),
        write=_write_dimensions,
    ),
    Notation(
        old="dimensions = dense<…>",
        new="dimensions = array<i64: …>",
        pattern=re.compile(
            rf"\b(?P<name>{'|'.join(_ARRAYS.split())}) = dense<(?P<items>[\w, \[\]-]{{0,400}})> *:"
            r" *tensor<(?P<count>\d+)x(?P<type>i64|i1)>"
        ),
        write=_write_array,
        gone_in="20240410.859",
    ),
)

NOTATIONS = date_rules(_RULES, EARLIEST)
