"""Define notations that IREE 3.12.0 and 3.13.0 changed: the place of an operation's own attributes, and pipelines.
Pure.

In the autumn of 2026, MLIR's printer and parser began to distinguish an operation's own attributes from those that
anyone may add. IREE 3.12.0 has the words of ``memref`` and ``vector``. 3.13.0 reads no own attribute in ``{…}`` at
all. The operations were found by parsing IREE's own tests of August 2026 with both releases.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from runners.core.mlir.brackets import split_list
from runners.toolchains.iree.notations.rule import Notation, date_rules, make_rename

_BODY = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,2000}\}){0,2000}\}){0,8000}"
"""The text of a dictionary, with two more levels of braces inside."""
_HEAD = r"(?:[^{}\n]|\n(?=\s*(?:\{|(?:ins|outs|layout|into|attributes)\b))){0,1000}?"
"""The rows of an operation above its dictionary."""

_OWN = {
    "iree_codegen.inner_tiled": {"indexing_maps", "iterator_types", "kind", "semantics", "permutations"},
    "iree_linalg_ext.attention": {"indexing_maps", "decomposition_config"},
    "iree_linalg_ext.online_attention": {"indexing_maps", "decomposition_config"},
    "iree_vector_ext.transfer_gather": {"indexing_maps"},
    "iree_vector_ext.transfer_scatter": {"indexing_maps"},
    "iree_vector_ext.to_layout": {"shared_memory_conversion"},
    "hal.executable.export": {"workgroup_size", "subgroup_size", "workgroup_local_memory", "source_locs"},
    "hal.executable.binary": {"data", "format", "mime_type"},
    "hal.executable.source": {"objects"},
    "util.global": {"inlining_policy"},
    "util.buffer.alloc": {"alignment"},
    "util.buffer.constant": {"alignment", "mime_type"},
    "util.buffer.slice": {"alignment"},
    "vm.rodata": {"alignment", "mime_type"},
    "vm.rodata.inline": {"alignment", "mime_type"},
    "bufferization.alloc_tensor": {"memory_space"},
    "transform.iree.vector.to_warp_execute_on_lane_0": {"warp_size"},
    "transform.print": {"name"},
    "transform.iree.vector.vector_to_mma_conversion": {"use_mma_sync", "use_wmma"},
}
"""Operation → its own attributes that 3.13.0 no longer reads in ``{…}``."""


def _write_own(found: re.Match[str]) -> str | None:
    """Return the operation with its own attributes in ``<{…}>``, and the others in their old place."""
    own, others = _divide(found["body"], _OWN[found["op"]])
    if not own:
        return None
    rest = f" {found['word'] or ''}{{{', '.join(others)}}}" if others else ""
    return f"{found['op']}{found['head']}<{{{', '.join(own)}}}>{rest}"


def _write_behind_region(found: re.Match[str]) -> str | None:
    own, others = _divide(found["body"], _OWN["hal.executable.export"])
    if not own:
        return None
    return f"}} <{{{', '.join(own)}}}>" + (f" attributes {{{', '.join(others)}}}" if others else "")


def _divide(body: str, names: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the entries of a dictionary with one of these names, and the other entries."""
    entries = split_list(body)
    own = [one for one in entries if re.split(r"[\s=]", one, maxsplit=1)[0] in names]
    return own, [one for one in entries if one not in own]


_NAMES = "|".join(re.escape(name) for name in sorted(_OWN, key=len, reverse=True))
_PROPERTIES = (
    Notation(
        old="own attributes in {…}",
        new="own attributes in <{…}>",
        pattern=re.compile(
            rf"(?<![\w.\"])(?P<op>{_NAMES})(?![\w.])(?P<head>{_HEAD})(?P<word>\battributes\s{{0,20}})?"
            rf"(?<!<)\{{(?P<body>{_BODY})\}}"
        ),
        write=_write_own,
    ),
    Notation(
        old="attributes {…} of an export behind its region",
        new="<{…}>",
        pattern=re.compile(
            rf"\}}\s{{0,20}}attributes\s{{0,20}}\{{(?P<body>(?=[^{{}}]{{0,2000}}\b(?:workgroup|subgroup)_){_BODY})\}}"
        ),
        write=_write_behind_region,
    ),
    make_rename(
        *("tosa.apply_scale … {rounding_mode = X}", "tosa.apply_scale … rounding_mode<X>"),
        r"(\btosa\.apply_scale\b[^{}\n]{1,400})\{rounding_mode = (\w+)\}",
        r"\1rounding_mode<\2>",
    ),
)

# ------------------------------------------------------------------------------------------ words of their own

_LENGTHS = ("offsets", "sizes", "strides")


def _write_words(found: re.Match[str]) -> str | None:
    """Write ``alignment`` and ``nontemporal`` as words: ``alignment = 64``, in loads and stores ``alignment(8)``."""
    own, others = _divide(found["body"], ("alignment", "nontemporal"))
    if not own:
        return None
    form = "{0}({1})" if found["op"] in ("memref.load", "memref.store") else "{0} = {1}"
    pairs = sorted(one.partition("=")[::2] for one in own)  # the parser requires this order
    words = " ".join(form.format(name.strip(), value.partition(":")[0].strip()) for name, value in pairs)
    return f"{found['op']}{found['head']}{words}" + (f" {{{', '.join(others)}}}" if others else "")


def _write_strided(found: re.Match[str]) -> str | None:
    """Write the lists of a strided slice after its operands, in the parser's order."""
    own, others = _divide(found["body"], _LENGTHS)
    if others or not own:
        return None
    ordered = sorted(own, key=lambda entry: _LENGTHS.index(re.split(r"[\s=]", entry, maxsplit=1)[0]))
    return f"{found['op']}{found['head']}{', '.join(ordered)}"


_ACCESSES = r"memref\.(?:alloca|alloc|global|load|store)|vector\.(?:load|store|maskedload|maskedstore)"
_WORDS = (
    Notation(
        old="{alignment = N : i64}, {nontemporal = true}",
        new="alignment = N, nontemporal = true",
        pattern=re.compile(
            rf"(?<![\w.\"])(?P<op>{_ACCESSES})(?![\w.])(?P<head>[^{{}}\n]{{1,4000}}?)(?<!<)\{{(?P<body>{_BODY})\}}"
        ),
        write=_write_words,
        gone_in="3.12.0",
    ),
    Notation(
        old="strided_slice {offsets = […]}",
        new="strided_slice offsets = […]",
        pattern=re.compile(
            r"(?<![\w.\"])(?P<op>vector\.(?:extract|insert)_strided_slice)(?P<head>[^{}\n]{1,400}?)(?<!<)"
            r"\{(?P<body>[^{}]{0,2000})\}"
        ),
        write=_write_strided,
        gone_in="3.12.0",
    ),
)

# ------------------------------------------------------------------------------------------ elementwise operations

_KINDS = {"max": "max_signed", "min": "min_signed"}
_ELEMENTWISE = (
    *("add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf", "exp", "log", "abs", "ceil", "floor", "negf"),
    *("reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf", "select"),
)
"""Operations of linalg that had their own names until 3.12.0."""
_NAMED = (
    Notation(
        old="linalg.add, linalg.exp, …",
        new="linalg.elementwise <add>, …",
        pattern=re.compile(rf"(?<![\w.\"])linalg\.(?P<kind>{'|'.join(_ELEMENTWISE)})(?=\s+ins\()"),
        write=lambda found: f"linalg.elementwise <{_KINDS.get(found['kind'], found['kind'])}>",
    ),
    make_rename(
        *("linalg.elementwise kind=#linalg.elementwise_kind<add>", "linalg.elementwise <add>"),
        r"\blinalg\.elementwise\s+kind\s*=\s*#linalg\.elementwise_kind<(\w+)>",
        r"linalg.elementwise <\1>",
    ),
)

# ------------------------------------------------------------------------------------------ pipelines

_PIPELINES = (
    ("LLVMGPU", "#iree_gpu.pipeline<{}>"),
    ("SPIRV", "#iree_gpu.spirv_pipeline<{}>"),
    ("CPU", "#iree_cpu.pipeline<{}>"),
)
"""Beginning of a keyword → the attribute with the rest of the keyword."""
_PIPELINE_WORDS = {
    "Mmt4dTilingExpert": "#iree_cpu.pipeline<Mmt4dTilingExpert>",
    "None": "#iree_codegen.no_pipeline",
    "TransformDialectCodegen": "#iree_codegen.transform_dialect_codegen",
    "VMVXDefault": "#iree_codegen.vmvx_pipeline",
}


def _write_pipeline(found: re.Match[str]) -> str | None:
    """Return the attribute that replaces a keyword: ``CPUDefault`` → ``#iree_cpu.pipeline<Default>``."""
    word = found["word"]
    if word in _PIPELINE_WORDS:
        return f"{found['head']}{_PIPELINE_WORDS[word]}"
    for prefix, form in _PIPELINES:
        if word.startswith(prefix):
            return found["head"] + form.format(word.removeprefix(prefix))
    return None


_CODEGEN = (
    Notation(
        old="translation_info<pipeline = CPUDefault>",
        new="translation_info<pipeline = #iree_cpu.pipeline<Default>>",
        pattern=re.compile(r"(?P<head>\btranslation_info\s*(?:=\s*)?<\s*pipeline\s*=\s*)(?P<word>[A-Z]\w{1,80})"),
        write=_write_pipeline,
        gone_in="3.12.0",
    ),
)

NOTATIONS = (*_WORDS, *_CODEGEN, *date_rules((*_PROPERTIES, *_NAMED), "3.13.0"))
