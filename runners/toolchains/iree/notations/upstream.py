"""Define the notations of MLIR's own dialects: the standard dialect, linalg, tensor, vector. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from runners.core.mlir.types import DYNAMIC, TensorType
from runners.toolchains.iree.notations.rule import (
    EARLIEST,
    NESTED,
    TYPE,
    VALUE,
    Notation,
    date_rules,
    make_rename,
    read_shape,
)

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
    **{"tensor_cast": "tensor.cast", "extract_element": "tensor.extract", "rank": "tensor.rank"},
    "tensor_from_elements": "tensor.from_elements",
    **{"alloc": "memref.alloc", "load": "memref.load"},
}
"""Operations of the dialect ``std``, which was split in 2021 and 2022, and their later names."""
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
    make_rename(
        *("func @f", "func.func @f", r"^([ \t]*)(?:builtin\.)?func(?=[ \t]+(?:(?:public|private|nested)[ \t]+)?@)"),
        r"\1func.func",
    ),
    Notation(
        old="dim",
        new="tensor.dim or memref.dim",
        pattern=re.compile(
            rf"(?P<head>= +)(?:std\.|memref\.|tensor\.)?dim(?P<rest> {VALUE}, {VALUE} : (?P<kind>tensor|memref)<)"
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
    make_rename("store", "memref.store", r"^([ \t]*)(?:std\.)?store(?=[ \t]+%)", r"\1memref.store"),
    make_rename("std.call", "func.call", r"(^[ \t]*|= +)std\.call(?= @)", r"\1func.call"),
    make_rename("std.return", "return", r"^([ \t]*)std\.return\b", r"\1return"),
    make_rename('cmpi "slt"', "cmpi slt", r'\b(arith\.cmp[if])\s+"(\w+)"', r"\1 \2"),
    make_rename("arith.maxf", "arith.maximumf", r"\barith\.(max|min)f\b", r"arith.\1imumf", "20231004.665"),
    make_rename("math.abs", "math.absf", r"\bmath\.abs\b", "math.absf"),
)


# ------------------------------------------------------------------------------------------ linalg and tensor


def _write_empty(found: re.Match[str]) -> str:
    dynamic = [size.strip() for size in found["sizes"].split(",") if "%" in size]
    return f"tensor.empty({', '.join(dynamic)}) :"


def _write_fill(found: re.Match[str]) -> str | None:
    """Write ``linalg.fill(%value, %out) : f32, tensor<…>``. Before June 2021 the output came first."""
    (first, second), types = (found["a"], found["b"]), (found["ta"], found["tb"])
    shaped = [read_shape(one) is not None for one in types]
    if sum(shaped) != 1:
        return None
    pairs = [(first, types[0]), (second, types[1])]
    (value, kind), (out, whole) = pairs if shaped[1] else pairs[::-1]
    return f"linalg.fill ins({value} : {kind}) outs({out} : {whole})"


def _write_output_shape(found: re.Match[str]) -> str | None:
    """Add the sizes of the result, which must be static: a dynamic size would need another value."""
    result = read_shape(found["result"])
    if result is None or DYNAMIC in result.shape or "output_shape" in found[0]:
        return None
    return f"{found['head']}output_shape [{', '.join(map(str, result.shape))}] {found['types']}"


def _write_reshape(found: re.Match[str]) -> str | None:
    source, result = read_shape(found["source"]), read_shape(found["result"])
    if source is None or result is None:
        return None
    verb = "collapse" if len(source.shape) > len(result.shape) else "expand"
    return f"{found['kind']}.{verb}_shape {found['rest']}"


_RESHAPE_TYPES = rf":\s*(?P<source>(?:tensor|memref){NESTED})\s+into\s+(?P<result>(?:tensor|memref){NESTED})"
_REASSOCIATION = rf"{VALUE}\s*\[(?:\s*\[[\d, ]*\],?)*\s*\]"

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
            rf"\blinalg\.fill\s*\((?P<a>{VALUE}), *(?P<b>{VALUE})\) *: *(?P<ta>{TYPE}), *(?P<tb>{TYPE})"
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
    make_rename(
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
        gone_in="20240621.931",
    ),
    Notation(
        old="linalg.pad_tensor",
        new="tensor.pad",
        pattern=re.compile(r"\blinalg\.pad_tensor(?P<body>[^{}]{0,1000}\{[^{}]{0,2000}?)\blinalg\.yield\b"),
        write=lambda found: f"tensor.pad{found['body']}tensor.yield",
    ),
    Notation(
        old="dynamic_tensor_from_elements",
        new="tensor.generate",
        pattern=re.compile(
            r"(?P<head>= +)dynamic_tensor_from_elements(?P<body>[^{}]{0,400}\{[^{}]{0,2000}?)\byield\b"
        ),
        write=lambda found: f"{found['head']}tensor.generate{found['body']}tensor.yield",
    ),
    make_rename(
        *("linalg.elemwise_unary {fun = …}", "linalg.elementwise kind=…"),
        r"\blinalg\.elemwise_(?:unary|binary) \{fun = #linalg\.(?:unary|binary)_fn<(\w+)>\}",
        *(r"linalg.elementwise kind=#linalg.elementwise_kind<\1>", "3.6.0"),
    ),
    make_rename(
        *("linalg.elementwise kind=#linalg.elementwise_kind<…>", "linalg.elementwise <…>"),
        *(r"\blinalg\.elementwise kind ?= ?#linalg\.elementwise_kind(<\w+>)", r"linalg.elementwise \1", "3.13.0"),
    ),
    make_rename(
        "linalg.conv_2d_input_nhwc_filter_hwcf",
        "linalg.conv_2d_nhwc_hwcf",
        r"\blinalg\.conv_2d_input_(nhwc|nchw)_filter_(hwcf|fchw)\b",
        r"linalg.conv_2d_\1_\2",
    ),
    make_rename(
        *("linalg.matmul_i8_i8_i32", "linalg.matmul", r"\blinalg\.(batch_)?matmul_i8_i8_i32\b", r"linalg.\1matmul")
    ),
    make_rename(
        *("scf.foreach_thread", "scf.forall", r"\bscf\.foreach_thread(?!\.)\b", "scf.forall", "20230404.479"),
    ),
    make_rename(
        *("scf.foreach_thread.perform_concurrently", "scf.forall.in_parallel"),
        *(r"\bscf\.foreach_thread\.perform_concurrently\b", "scf.forall.in_parallel", "20230404.479"),
    ),
)


def _write_extract(found: re.Match[str]) -> str | None:
    """Add the omitted type of the extracted element or vector."""
    whole = read_shape(found["type"])
    places = [place for place in found["places"].split(",") if place.strip()]
    if whole is None or len(places) > len(whole.shape):
        return None
    rest = whole.shape[len(places) :]
    part = replace(whole, shape=rest) if rest else whole.element
    return f"{found['head']} : {part} from {found['type']}"


_VECTOR = (
    Notation(
        old="vector.extract … : vector<…>",
        new="vector.extract … : element from vector<…>",
        pattern=re.compile(
            rf"(?P<head>\bvector\.extract {VALUE}\[(?P<places>[\d, ]+)\]) *: *(?P<type>vector{NESTED})(?!\s*from)"
        ),
        write=_write_extract,
        gone_in="20231004.665",
    ),
    make_rename(
        *("#vector.kind<add>", "<add>", r"(\bvector\.(?:multi_reduction|scan) )#vector\.kind(<\w+>)", r"\1\2"),
    ),
    make_rename(
        'vector.reduction "add"', "vector.reduction <add>", r'\bvector\.reduction "(\w+)"', r"vector.reduction <\1>"
    ),
)


def _write_element(found: re.Match[str]) -> str | None:
    """Write an access to one element of a vector of rank one, whose index has the type ``index``."""
    whole = read_shape(found["type"])
    if whole is None or len(whole.shape) != 1:
        return None
    if found["op"] == "extract":
        return f"vector.extract {found['vector']}[{found['index']}] : {whole.element} from {found['type']}"
    value = found["value"].rstrip(", ")
    return f"vector.insert {value}, {found['vector']}[{found['index']}] : {whole.element} into {found['type']}"


def _write_splat(found: re.Match[str]) -> str | None:
    shape = read_shape(found["type"])
    if shape is None or DYNAMIC in shape.shape:
        return None
    value = found["value"]
    if isinstance(shape, TensorType):
        return f"{found['head']}tensor.splat {value} : {found['type']}"
    return f"{found['head']}vector.broadcast {value} : {shape.element} to {found['type']}"


_ELEMENTS = (
    Notation(
        old="vector.extractelement, vector.insertelement",
        new="vector.extract, vector.insert",
        pattern=re.compile(
            rf"\bvector\.(?P<op>extract|insert)element (?P<value>{VALUE}, )?(?P<vector>{VALUE})"
            rf"\[(?P<index>{VALUE}) : index\] : (?P<type>vector{NESTED})"
        ),
        write=_write_element,
        gone_in="3.7.0",
    ),
    Notation(
        old="splat",
        new="tensor.splat or vector.broadcast",
        pattern=re.compile(rf"(?P<head>= +)(?:std\.)?splat (?P<value>{VALUE}) : (?P<type>(?:tensor|vector){NESTED})"),
        write=_write_splat,
    ),
    Notation(
        old="vector.splat",
        new="vector.broadcast",
        pattern=re.compile(rf"(?P<head>\b)vector\.splat (?P<value>{VALUE}) : (?P<type>vector{NESTED})"),
        write=_write_splat,
        gone_in="3.9.0",
    ),
    make_rename(
        *("memref<…, offset: o, strides: [s]>", "memref<…, strided<[s], offset: o>>"),
        *(r",\s*offset: ([\d?]+), strides: (\[[\d?, ]+\])>", r", strided<\2, offset: \1>>"),
    ),
)


# ------------------------------------------------------------------------------------------ loops of linalg

_TRAIT = r"#{name}\s*=\s*\{{(?P<fields>[^{{}}]{{0,3000}})\}}"
_ITERATORS = re.compile(r"iterator_types\s*=\s*\[(?P<kinds>[^\]]{0,400})\]")


def _write_indexed(found: re.Match[str]) -> str | None:
    """Write ``linalg.indexed_generic``, whose body took the indices as its first arguments."""
    head = found["head"]
    if trait := re.match(r"\s*#(\w+)", head):
        defined = re.search(_TRAIT.format(name=re.escape(trait[1])), found.string)
        head = defined["fields"] if defined else ""
    iterators = _ITERATORS.search(head)
    if iterators is None:
        return None
    count = len([kind for kind in iterators["kinds"].split(",") if kind.strip()])
    arguments = [one.strip() for one in found["arguments"].split(",")]
    indices = [re.fullmatch(rf"({VALUE})\s*:\s*index", one) for one in arguments[:count]]
    names = [index[1] for index in indices if index is not None]
    if len(names) != count or "\n" in found["arguments"]:
        return None
    body = " ".join(f"{name} = linalg.index {place} : index" for place, name in enumerate(names))
    return f"linalg.generic{found['head']}^{found['block']}({', '.join(arguments[count:])}): {body}"


_TRANSPOSED = {"a": ("(k, m)", "(k, n)"), "b": ("(m, k)", "(n, k)")}


def _write_transposed(found: re.Match[str]) -> str:
    batch, sides = found["batch"] or "", _TRANSPOSED[found["side"]]
    dims = "b, m, n, k" if batch else "m, n, k"
    operands = (*sides, "(m, n)")
    maps = (f"affine_map<({dims}) -> {one.replace('(', '(b, ') if batch else one}>" for one in operands)
    return f"linalg.{batch}matmul indexing_maps = [{', '.join(maps)}]{found['rest']}"


_LOOPS = (
    Notation(
        old="linalg.indexed_generic",
        new="linalg.generic and linalg.index",
        pattern=re.compile(
            r"\blinalg\.indexed_generic(?P<head>[^^]{0,3000})\^(?P<block>\w+)\((?P<arguments>[^()]{0,2000})\):"
        ),
        write=_write_indexed,
    ),
    Notation(
        old="linalg.matmul_transpose_b",
        new="linalg.matmul indexing_maps = […]",
        pattern=re.compile(r"\blinalg\.(?P<batch>batch_)?matmul_transpose_(?P<side>[ab])(?P<rest>\s+ins\()"),
        write=_write_transposed,
        gone_in="3.7.0",
    ),
    make_rename(
        *("linalg.depthwise_conv_2d_input_nhwc_filter_hwc", "linalg.depthwise_conv_2d_nhwc_hwc"),
        *(
            r"\blinalg\.depthwise_conv(?:2D_nhw|_2d_nhw|_2d_input_nhwc_filter_hwc)\b(?!_)",
            "linalg.depthwise_conv_2d_nhwc_hwc",
        ),
    ),
)


def _write_both_types(found: re.Match[str]) -> str | None:
    shape = read_shape(found["memref"])
    if shape is None:
        return None
    tensor = str(TensorType(shape.shape, shape.element))
    types = (tensor, found["memref"]) if found["op"] == "to_memref" else (found["memref"], tensor)
    return f"{found['head']} : {types[0]} to {types[1]}"


_BUFFERS = (
    Notation(
        old="bufferization.to_tensor … : memref<…>",
        new="bufferization.to_tensor … : memref<…> to tensor<…>",
        pattern=re.compile(
            rf"(?P<head>\bbufferization\.(?P<op>to_tensor|to_memref) {VALUE}(?: restrict)?(?: writable)?)"
            rf" : (?P<memref>memref{NESTED})(?! to)"
        ),
        write=_write_both_types,
        gone_in="3.1.0",
    ),
    make_rename(
        *("bufferization.to_memref", "bufferization.to_buffer"),
        *(r"\bbufferization\.to_memref\b", "bufferization.to_buffer", "3.5.0"),
    ),
)

NOTATIONS = date_rules((*_STANDARD, *_LINALG, *_LOOPS, *_VECTOR, *_ELEMENTS, *_BUFFERS), EARLIEST)
