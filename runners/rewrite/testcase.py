"""Rewrite a testcase for another release (port) or another device (retarget). Pure.

Porting replaces names that moved between releases, in both directions, if the replacement is exact. A ported testcase
is a separate text. It is run and shown as such, with every replacement, and never replaces the original. A testcase
that cannot be written exactly in the other release's names is not ported at all.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from runners.core.protocol import Testcase
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.guest import is_launch_step
from runners.core.toolchain.rewriting import Idioms
from runners.rewrite.names import Names, Rename, build_names
from runners.rewrite.python import port_python
from runners.rewrite.text import NameChange, Unportable, place_passes, port_mlir, port_steps
from runners.toolchains import find_toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """A name replaced by another. ``where`` is ``file:line``, or ``step N`` (1-based) of the command lines."""

    old: str
    new: str
    where: str
    notation: bool = False
    """True for a change of notation, as in `NameChange`."""
    prints: bool = True
    """False if the testcase no longer prints what it printed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    """A testcase written for another release, and each replacement."""

    testcase: Testcase
    substitutions: tuple[Substitution, ...]

    @property
    def is_notation_only(self) -> bool:
        """True if the ported testcase is the same program: only its notation changed."""
        return all(one.notation for one in self.substitutions)

    @property
    def prints_all(self) -> bool:
        """True if the ported testcase prints everything that the posted one prints."""
        return all(one.prints for one in self.substitutions)


def port_testcase(testcase: Testcase, version: str, toolchain: Toolchain, said: str = "") -> Ported | None:
    """Write a testcase in the names of a release.

    ``said`` is the output of the release on an earlier port. Names that it reports as missing, and flags that it
    rejects as misspelt, are fixed as well.

    None if no name in the testcase has moved, if a name has no exact replacement, or if the testcase cannot be
    parsed.
    """
    names, idioms = build_names(version, toolchain.DRIFT), _choose_lost(toolchain.REWRITING.idioms(version), said)
    try:
        flags = (*names.flags, *_read_misspelt(toolchain, idioms, said))
        steps, changes = port_steps(testcase.steps, testcase.files, flags, idioms)
        steps, placed = place_passes(steps, testcase.files, idioms, said[-MAX_SAID_CHARS:])
        changes += placed
        done = [_locate_change(change, f"step {change.line}") for change in changes]
        files = dict(testcase.files)
        for name, text in testcase.files.items():
            files[name], changes = _port_file(name, text, names, idioms)
            done += [_locate_change(change, f"{name}:{change.line}") for change in changes]
    except Unportable:
        return None
    if not done:
        return None
    ported = msgspec.structs.replace(testcase, files=files, steps=steps)
    return Ported(testcase=ported, substitutions=tuple(dict.fromkeys(done)))


def _choose_lost(idioms: Idioms, said: str) -> Idioms:
    """Keep only the attributes that the release reported as missing."""
    if idioms.lost_message is None:
        return idioms
    named = {name for found in idioms.lost_message.finditer(said[-MAX_SAID_CHARS:]) for name in found.groups()}
    return replace(idioms, lost={name: code for name, code in idioms.lost.items() if name in named})


_SAME_FLAG = 0.9
"""Similarity of a misspelt flag to the proposed one (`SequenceMatcher.ratio`): one edit in ten letters."""


def _read_misspelt(toolchain: Toolchain, idioms: Idioms, said: str) -> Iterator[Rename]:
    """Return the flags that the release rejects, with the nearly equal flags that it proposes.

    A flag of another release is not a misspelling. Names that differ in a digit are different flags.
    """
    if idioms.proposed_flag is None:
        return
    moved = {name for entry in toolchain.DRIFT if entry.kind == "flag" for name in (entry.old, entry.new)}
    for found in idioms.proposed_flag.finditer(said[-MAX_SAID_CHARS:]):
        old, new = found["old"], found["new"]
        digits = [re.findall(r"\d+", name) for name in (old, new)]
        alike = difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() >= _SAME_FLAG
        if alike and digits[0] == digits[1] and f"--{old}" not in moved:
            yield Rename(old=f"--{old}", new=f"--{new}", hint=None)


MAX_SAID_CHARS = 60_000


def _port_file(name: str, text: str, names: Names, idioms: Idioms) -> tuple[str, list[NameChange]]:
    if name.endswith(".py"):
        return port_python(text, names, idioms)
    if name.endswith(".mlir"):
        return port_mlir(text, names.words, idioms)
    return text, []


def _locate_change(change: NameChange, where: str) -> Substitution:
    return Substitution(old=change.old, new=change.new, where=where, notation=change.notation, prints=change.prints)


def retarget_testcase(testcase: Testcase, device: str) -> Testcase | None:
    """Return the testcase for ``device`` with the same inputs. None if that is impossible or unnecessary."""
    return find_toolchain(testcase.toolchain).REWRITING.retarget(testcase, device)


def describe_retarget(testcase: Testcase) -> tuple[str, ...]:
    """Describe how a retargeted testcase differs: its new command lines, or the effect of the hook."""
    if any(map(is_launch_step, testcase.steps)):
        target = testcase.steps[0][3]
        return (f"while it runs, every target is {target} and every device the one that goes with it",)
    return tuple(shlex.join(step)[:500] for step in testcase.steps)
