"""What every name of a toolchain is called in one release: its drift table, read for that release. Pure.

A name that is gone there becomes its successor, one that isn't there yet becomes the old name; several releases'
renames follow one another (``tvm.tir.StringImm`` → ``tvm.tirx.StringImm`` → ``tvm.ir.StringImm``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from runners.core.toolchain.facts import DriftEntry

_LONGEST_CHAIN = 6


@dataclass(frozen=True, slots=True)
class Rename:
    """One rename in the direction that a release asks for; ``new`` is None where no name means the same there."""

    old: str
    new: str | None
    hint: str | None
    """Where a namespace went even if not all of it went there: good enough for its import, not for a use."""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """The renames of one release, by the kind of name."""

    dotted: tuple[Rename, ...]
    members: tuple[Rename, ...]
    keywords: tuple[Rename, ...]
    options: tuple[Rename, ...]
    flags: tuple[Rename, ...]
    words: tuple[Rename, ...]

    def find_successor(self, name: str, *, imported: bool = False) -> str | None:
        """What a dotted name is called, itself where it hasn't moved; None where nothing means the same.

        ``imported``: a namespace that is only imported may follow most of what it held.
        """
        for _ in range(_LONGEST_CHAIN):
            step = self._longest(name)
            if step is None:
                return name
            new = step.new or (step.hint if imported and step.old == name else None)
            if new is None:
                return None
            name = new + name[len(step.old) :]
        return name

    def find_keyword(self, keyword: str, function: str) -> Rename | None:
        """The rename of a keyword in calls of ``function`` (dotted)."""
        return next((s for s in self.keywords if s.old == keyword and _within(function, s.of)), None)

    def _longest(self, name: str) -> Rename | None:
        known = self._by_name()
        return next((known[prefix] for prefix in _prefixes(name) if prefix in known), None)

    def _by_name(self) -> dict[str, Rename]:
        return _index(self.dotted)


@lru_cache(maxsize=64)
def _index(steps: tuple[Rename, ...]) -> dict[str, Rename]:
    """By old name; of two entries for one name the first counts, for it is the commoner spelling."""
    return {step.old: step for step in reversed(steps)}


def build_names(version: str, table: Sequence[DriftEntry]) -> Names:
    """The renames that bring a text of any release to ``version``."""
    found: dict[str, list[Rename]] = {place: [] for place in Names.__slots__}
    for entry in table:
        step = None if entry.listed else _step(entry, version)
        if step is not None:
            found[_place(entry)].append(step)
    return Names(**{place: tuple(steps) for place, steps in found.items()})


def _step(entry: DriftEntry, version: str) -> Rename | None:
    if entry.affects(version):
        if entry.is_too_new(version):
            return None  # between the two nothing means the same, unless the namespace around it went somewhere
        return Rename(old=entry.old, new=entry.new if entry.exact else None, hint=entry.new, of=entry.of)
    if entry.exact and entry.gone_in is not None and entry.new is not None and entry.is_too_new(version):
        return Rename(old=entry.new, new=entry.old, hint=entry.old, of=entry.of)
    if entry.kind == "flag" and entry.old == entry.new and entry.is_too_new(version):
        return Rename(old=entry.old, new=None, hint=None)
    return None


def _place(entry: DriftEntry) -> str:
    match entry.kind:
        case "module" | "attribute":
            return "members" if entry.old.startswith(".") else "dotted"
        case "keyword":
            return "keywords"
        case "option":
            return "options"
        case "flag":
            return "flags"
        case "op" | "dialect":
            return "words"


def _within(name: str, space: str) -> bool:
    return not space or name == space or name.startswith(f"{space}.")


def _prefixes(name: str) -> Iterator[str]:
    """The name, then every namespace around it, innermost first."""
    while name:
        yield name
        name = name.rpartition(".")[0]
