"""Notations of TOSA. Pure."""

from __future__ import annotations

import re

from runners.toolchains.iree.notations.rule import Notation, find_dialect

_TOSA_WIDTHS = {"multiplier": "i32", "shift": "i8"}


def _write_tosa_array(found: re.Match[str]) -> str | None:
    if find_dialect(found) != "tosa":  # convolutions of StableHLO keep their lists
        return None
    items = [item.partition(":")[0].strip() for item in found["items"].split(",")]
    return f"{found['name']} = array<{_TOSA_WIDTHS.get(found['name'], 'i64')}: {', '.join(items)}>"


NOTATIONS = (
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
