"""Define the notations of IREE's own dialects. Pure."""

from __future__ import annotations

import re

from runners.toolchains.iree.notations.rule import EARLIEST, NESTED, VALUE, Notation, make_rename

# ------------------------------------------------------------------------------------------ bindings of executables

_LAYOUT_ALIAS = re.compile(r"(#\w+)\s*=\s*#hal\.pipeline\.layout<")
_LONG = r"<[^<>]{0,4000}(?:<[^<>]{0,2000}(?:<[^<>]{0,400}>[^<>]{0,400}){0,60}>[^<>]{0,2000}){0,60}>"
"""Nested brackets around a long text."""
_SUBSPAN = re.compile(r"\bhal\.interface\.binding\.subspan[^\n]{0,200}?\bbinding\((\d+)\)")


def _write_layout(found: re.Match[str]) -> str:
    constants = f"constants = {found['constants']}, " if int(found["constants"] or 0) else ""
    bindings = re.findall(r"<\d+, ([^<>]+)>", found["bindings"])
    items = ", ".join(f"#hal.pipeline.binding<{binding.strip()}>" for binding in bindings)
    return f"#hal.pipeline.layout<{constants}bindings = [{items}]>"


_LOADED = re.compile(r"\bhal\.interface\.constant\.load(?:\[(\d+)\]|[^\n]{0,2000}? ordinal\((\d+)\))")


def _find_layout(text: str) -> str | None:
    """Return the only layout of the text. Without one, return a layout of the bound buffers and loaded constants."""
    layouts = set(_LAYOUT_ALIAS.findall(text))
    if layouts:
        return layouts.pop() if len(layouts) == 1 else None
    bound = 1 + max(map(int, _SUBSPAN.findall(text)), default=-1)
    loaded = 1 + max((int(one or other) for one, other in _LOADED.findall(text)), default=-1)
    buffers = ", ".join(["#hal.pipeline.binding<storage_buffer>"] * bound)
    constants = f"constants = {loaded}, " if loaded else ""
    return f"#hal.pipeline.layout<{constants}bindings = [{buffers}]>"


def _write_subspan(found: re.Match[str]) -> str | None:
    layout = _find_layout(found.string)
    return None if layout is None else f"hal.interface.binding.subspan layout({layout}) {found['binding']}"


def _write_loaded(found: re.Match[str]) -> str | None:
    layout = _find_layout(found.string)
    return None if layout is None else f"hal.interface.constant.load layout({layout}) ordinal({found['ordinal']})"


_BINDINGS = (
    Notation(
        old="#hal.pipeline.layout<sets = […]>",
        new="#hal.pipeline.layout<bindings = […]>",
        pattern=re.compile(
            r"#hal\.pipeline\.layout<(?:push_constants = (?P<constants>\d+),\s*)?sets = \[\s*<0,\s*"
            r"bindings = \[(?P<bindings>(?:[^<>\[\]]|<[^<>]{0,200}>){0,4000})\]>\s*\]>"
        ),
        write=_write_layout,
    ),
    make_rename(
        *("subspan layout(…) set(0) binding(…)", "subspan layout(…) binding(…)"),
        *(r"\b(hal\.interface\.binding\.subspan layout\([^()\n]{1,200}\)) set\(0\)", r"\1"),
    ),
    Notation(
        old="subspan set(0) binding(…) type(storage_buffer)",
        new="subspan layout(…) binding(…)",
        pattern=re.compile(
            r"\bhal\.interface\.binding\.subspan set\(0\) (?P<binding>binding\(\d+\)) type\(storage_buffer\)"
        ),
        write=_write_subspan,
    ),
    Notation(
        old="hal.interface.constant.load[0]",
        new="hal.interface.constant.load layout(…) ordinal(0)",
        pattern=re.compile(r"\bhal\.interface\.constant\.load\[(?P<ordinal>\d+)\]"),
        write=_write_loaded,
    ),
    make_rename(
        *("hal.executable.variant …, target = <…>", "hal.executable.variant … target(<…>)"),
        r"(\bhal\.executable\.variant (?:public |private )?@[\w.$-]+), target = "
        rf"((?:#hal\.executable\.target)?{_LONG}|#\w+)",
        r"\1 target(\2)",
    ),
    *(
        make_rename(
            f"flow.dispatch.{name}",
            f"iree_tensor_ext.dispatch.{name}",
            *(rf"\bflow\.dispatch\.{name}\b", f"iree_tensor_ext.dispatch.{name}", "3.4.0"),
        )
        for name in ("workgroup_count_from_slice", "workgroup_count_from_dag_root", r"workload.ordinal")
    ),
    make_rename(
        *("workgroup_count_from_dag_root", "workgroup_count_from_slice"),
        r"\biree_tensor_ext\.dispatch\.workgroup_count_from_dag_root\b",
        *("iree_tensor_ext.dispatch.workgroup_count_from_slice", "3.12.0"),
    ),
    make_rename(
        *("workgroup_count_from_slice %n", "workgroup_count_from_slice(%n)"),
        rf"\b(iree_tensor_ext\.dispatch\.workgroup_count_from_(?:slice|dag_root)) ({VALUE}(?:, *{VALUE})*)",
        *(r"\1(\2)", "3.7.0"),
    ),
    make_rename(
        *("hal.executable.export … { ^bb0(%d: !hal.device, …):", "hal.executable.export … count(%d: !hal.device, …)"),
        r"(\bhal\.executable\.export (?:public |private )?@[\w.$-]+ ordinal\(\d+\) "
        rf"layout\((?:#\w+|#hal\.pipeline\.layout{_LONG})\))"
        r"(?: attributes \{hal\.interface\.bindings = \[[^\[\]{}]{0,2000}\]\})? \{\n[ \t]*\^bb0(\([^()\n]{1,400}\)):",
        *(r"\1 count\2 -> (index, index, index) {", "3.4.0"),
    ),
    make_rename(
        *("!flow.dispatch.tensor<readonly:4xf32>", "!flow.dispatch.tensor<readonly:tensor<4xf32>>"),
        *(
            r"(![\w.]*dispatch\.tensor<(?:readonly|writeonly|readwrite)):((?:(?:\d+|\?)x)*[a-z]\w*)>(?!>)",
            r"\1:tensor<\2>>",
        ),
    ),
    make_rename(
        *("translation_info<Pipeline …>", "translation_info<pipeline = Pipeline …>"),
        *(r"(#iree_codegen\.translation_info<|\btranslation_info\s*=\s*<)(?=[A-Z])", r"\1pipeline = ", "3.0.0"),
    ),
)


# ------------------------------------------------------------------------------------------ globals, constants, packs


def _write_global(found: re.Match[str]) -> str:
    value = f" = {found['value'].strip()}" if found["value"].strip() else ""
    return f"{found['head']}util.global private {found['mutable'] or ''}{found['name']}{value} : "


def _write_pack(found: re.Match[str]) -> str:
    return f"linalg.{found['op']} {found['rest']} : {found['source']} -> {found['result']}"


_TENSOR = rf"tensor{NESTED}"

NOTATIONS = (
    make_rename(
        *("util.initializer.return", "util.return", r"\butil\.initializer\.return\b", "util.return"),
    ),
    make_rename(
        *("hal.tensor.cast … -> tensor<…>", "hal.tensor.import … -> tensor<…>"),
        rf"\bhal\.tensor\.cast ({VALUE} : !hal\.buffer_view -> {_TENSOR})",
        r"hal.tensor.import \1",
    ),
    make_rename(
        *("hal.tensor.cast … -> !hal.buffer_view", "hal.tensor.export … -> !hal.buffer_view"),
        rf"\bhal\.tensor\.cast ({VALUE} : {_TENSOR} -> !hal\.buffer_view)",
        r"hal.tensor.export \1",
    ),
    make_rename("iree_input.global", "util.global", r"\biree_input\.global\b", "util.global", "3.3.0"),
    make_rename(
        *("iree_input.tensor.import", "hal.tensor.import"),
        *(r"\biree_input\.(?:tensor\.import|cast\.buffer_view_to_tensor)\b", "hal.tensor.import", "3.3.0"),
    ),
    make_rename(
        *("iree_input.tensor.export", "hal.tensor.export"),
        *(r"\biree_input\.(?:tensor\.export|cast\.tensor_to_buffer_view)\b", "hal.tensor.export", "3.3.0"),
    ),
    make_rename(
        "!iree_input.buffer_view", "!hal.buffer_view", r"!iree_input\.buffer_view\b", "!hal.buffer_view", "3.3.0"
    ),
    make_rename(
        *("iree.unfoldable_constant", "util.unfoldable_constant"),
        *(r"\biree\.unfoldable_constant\b", "util.unfoldable_constant", EARLIEST),
    ),
    make_rename(
        *("util.dynamic_shape_constant", "flow.tensor.dynamic_constant"),
        *(r"\b(?:iree|util)\.dynamic_shape_constant\b", "flow.tensor.dynamic_constant"),
    ),
    make_rename(
        *("util.do_not_optimize(…)", "util.optimization_barrier …"),
        *(
            rf"\b(?:iree|util)\.do_not_optimize\(({VALUE}(?:, *{VALUE})*)\)",
            r"util.optimization_barrier \1",
            EARLIEST,
        ),
    ),
    make_rename(
        *("attributes {iree.module.export}", "no attribute: public functions are exported"),
        *(r"(?<![ \t])[ \t]*\battributes[ \t]*\{[ \t]*iree\.module\.export[ \t]*\}", ""),
    ),
    Notation(
        old="flow.variable @v",
        new="util.global private @v",
        pattern=re.compile(
            r"^(?P<head>[ \t]*)(?:flow|hal)\.variable (?P<name>@[\w$.-]+ ?)(?P<mutable>mutable )?"
            r"(?P<value>(?:dense<[^<>\n]{0,2000}>|-?[\d.][\w.+-]*)?) ?: (?=[^\n(]{1,400}$)",
            re.M,
        ),
        write=lambda found: _write_global(found).replace("  ", " "),
        gone_in=EARLIEST,
    ),
    make_rename(
        *("flow.variable.load", "util.global.load", r"\b(?:flow|hal)\.variable\.(load|store|address)\b"),
        *(r"util.global.\1", EARLIEST),
    ),
    make_rename(
        *("iree_linalg_ext.softmax", "linalg.softmax", r"\biree_linalg_ext\.softmax\b", "linalg.softmax"),
    ),
    Notation(
        old="iree_linalg_ext.pack … : (A B) -> B",
        new="linalg.pack … : A -> B",
        pattern=re.compile(
            rf"\biree_linalg_ext\.(?P<op>pack|unpack) (?P<rest>[^:\n]{{1,600}}?)\s*:\s*"
            rf"\((?P<source>tensor{NESTED}),? tensor{NESTED}\) -> (?P<result>tensor{NESTED})"
        ),
        write=_write_pack,
        gone_in="3.11.0",
    ),
    *_BINDINGS,
)
