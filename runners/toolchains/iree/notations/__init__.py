"""Replace notations of MLIR that releases of IREE no longer read. Pure.

Each rule writes the same operation in its later form. If the old form lacks a value, a type or an attribute that the
new form needs, the text is unchanged. Then the release rejects the text, and no wrong text is run. Names that moved
as whole words are in ``drift.py``.
"""

from __future__ import annotations

import re

from runners.core.packages.versions import order_version
from runners.core.toolchain.rewriting import NotationChange
from runners.toolchains.iree.notations import iree, properties, stablehlo, tosa, upstream
from runners.toolchains.iree.notations.rule import Notation

NOTATIONS = (
    *upstream.NOTATIONS,
    *stablehlo.NOTATIONS,
    *tosa.NOTATIONS,
    *iree.NOTATIONS,
    *properties.NOTATIONS,
)


def port_notations(text: str, version: str) -> tuple[str, tuple[NotationChange, ...]]:
    """Write MLIR in the notations of a release.

    Comments stay. No rule adds or removes a line.
    """
    rows = [_split_comment(row) for row in text.split("\n")]
    code = "\n".join(row for row, _ in rows)
    changes: list[NotationChange] = []
    release = order_version(version)
    for rule in NOTATIONS:
        if release >= order_version(rule.gone_in):
            code = _apply(rule, code, changes)
    comments = (comment for _, comment in rows)
    return "\n".join(row + comment for row, comment in zip(code.split("\n"), comments, strict=True)), tuple(changes)


def _apply(rule: Notation, code: str, changes: list[NotationChange]) -> str:
    def replace(found: re.Match[str]) -> str:
        new = rule.write(found)
        if new is None or new == found[0]:
            return found[0]
        new += "\n" * (found[0].count("\n") - new.count("\n"))  # later lines keep their numbers
        assert new.count("\n") == found[0].count("\n")
        line = found.string.count("\n", 0, found.start()) + 1
        changes.append(NotationChange(line=line, old=rule.old, new=rule.new))
        return new

    return rule.pattern.sub(replace, code)


_COMMENT = re.compile(r'((?:[^"/\n]|"(?:[^"\\\n]|\\.)*"|/(?!/)|")*)(.*)')


def _split_comment(row: str) -> tuple[str, str]:
    found = _COMMENT.fullmatch(row)
    return (found[1], found[2]) if found else (row, "")
