"""Notations of IREE's own dialects. Pure."""

from __future__ import annotations

import re

from runners.toolchains.iree.notations.rule import NESTED, VALUE, Notation, make_rename

# ------------------------------------------------------------------------------------------ bindings of executables

_LAYOUT_ALIAS = re.compile(r"(#\w+)\s*=\s*#hal\.pipeline\.layout<")
_SUBSPAN = re.compile(r"\bhal\.interface\.binding\.subspan[^\n]{0,200}?\bbinding\((\d+)\)")


def _write_layout(found: re.Match[str]) -> str:
    constants = f"constants = {found['constants']}, " if int(found["constants"] or 0) else ""
    bindings = re.findall(r"<\d+, ([^<>]+)>", found["bindings"])
    items = ", ".join(f"#hal.pipeline.binding<{binding.strip()}>" for binding in bindings)
    return f"#hal.pipeline.layout<{constants}bindings = [{items}]>"


def _write_subspan(found: re.Match[str]) -> str | None:
    """Add the layout that the binding belongs to: the only one of the text, or as many buffers as are bound."""
    layouts = set(_LAYOUT_ALIAS.findall(found.string))
    if len(layouts) > 1:
        return None
    count = 1 + max(map(int, _SUBSPAN.findall(found.string)), default=0)
    inline = f"#hal.pipeline.layout<bindings = [{', '.join(['#hal.pipeline.binding<storage_buffer>'] * count)}]>"
    return f"hal.interface.binding.subspan layout({layouts.pop() if layouts else inline}) {found['binding']}"


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
    make_rename(
        *("!flow.dispatch.tensor<readonly:4xf32>", "!flow.dispatch.tensor<readonly:tensor<4xf32>>"),
        *(
            r"(![\w.]*dispatch\.tensor<(?:readonly|writeonly|readwrite)):((?:(?:\d+|\?)x)*[a-z]\w*)>(?!>)",
            r"\1:tensor<\2>>",
        ),
    ),
    make_rename(
        *("translation_info<Pipeline …>", "translation_info<pipeline = Pipeline …>"),
        *(r"(#iree_codegen\.translation_info<)(?=[A-Z])", r"\1pipeline = ", "3.0.0"),
    ),
)


# ------------------------------------------------------------------------------------------ globals, constants, packs


def _write_global(found: re.Match[str]) -> str:
    value = f" = {found['value'].strip()}" if found["value"].strip() else ""
    return f"{found['head']}util.global private {found['mutable'] or ''}{found['name']}{value} : "


def _write_pack(found: re.Match[str]) -> str:
    return f"linalg.{found['op']} {found['rest']} : {found['source']} -> {found['result']}"


NOTATIONS = (
    make_rename(
        *("iree.unfoldable_constant", "util.unfoldable_constant"),
        *(r"\biree\.unfoldable_constant\b", "util.unfoldable_constant"),
    ),
    make_rename(
        *("util.dynamic_shape_constant", "flow.tensor.dynamic_constant"),
        *(r"\b(?:iree|util)\.dynamic_shape_constant\b", "flow.tensor.dynamic_constant"),
    ),
    make_rename(
        *("util.do_not_optimize(…)", "util.optimization_barrier …"),
        *(rf"\b(?:iree|util)\.do_not_optimize\(({VALUE}(?:, *{VALUE})*)\)", r"util.optimization_barrier \1"),
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
    ),
    make_rename(
        *("flow.variable.load", "util.global.load", r"\b(?:flow|hal)\.variable\.(load|store|address)\b"),
        r"util.global.\1",
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
