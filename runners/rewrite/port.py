"""Mechanical porting: names that moved between releases, put right where the rename is exact. Pure, both directions.

A ported testcase is a text of its own: it is run as such, shown as such, with every substitution, and never takes the
original's place. What cannot be said exactly in the other release's names is not ported at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from runners.core.protocol import Testcase
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.rewriting import Idioms
from runners.rewrite.names import Names, names_in
from runners.rewrite.python import port_python
from runners.rewrite.text import Change, Unportable, port_mlir, port_steps

__all__ = ["Ported", "Substitution", "port"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """One name put for another. ``where`` is ``file:line``, or ``step N`` (1-based) of the command lines."""

    old: str
    new: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    testcase: Testcase
    substitutions: tuple[Substitution, ...]


def port(testcase: Testcase, version: str, toolchain: Toolchain) -> Ported | None:
    """The testcase as ``version`` of the toolchain reads it.

    None when nothing in it has moved, when it uses a name that nothing replaces exactly, or when it can't be read.
    """
    names, idioms = names_in(version, toolchain.DRIFT), toolchain.REWRITING.idioms(version)
    try:
        steps, changes = port_steps(testcase.steps, names.flags)
        done = [_substitution(change, f"step {change.line}") for change in changes]
        files = dict(testcase.files)
        for name, text in testcase.files.items():
            files[name], changes = _port_file(name, text, names, idioms)
            done += [_substitution(change, f"{name}:{change.line}") for change in changes]
    except Unportable:
        return None
    if not done:
        return None
    ported = msgspec.structs.replace(testcase, files=files, steps=steps)
    return Ported(testcase=ported, substitutions=tuple(dict.fromkeys(done)))


def _port_file(name: str, text: str, names: Names, idioms: Idioms) -> tuple[str, list[Change]]:
    if name.endswith(".py"):
        return port_python(text, names, idioms)
    if name.endswith(".mlir"):
        return port_mlir(text, names.words)
    return text, []


def _substitution(change: Change, where: str) -> Substitution:
    return Substitution(old=change.old, new=change.new, where=where)
