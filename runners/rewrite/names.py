"""Find the name that a toolchain's names have in one release, from its drift table. Pure.

A name that the release lacks becomes its successor, or the old name if it does not exist yet. Renames of several
releases form a chain (``tvm.tir.StringImm`` → ``tvm.tirx.StringImm`` → ``tvm.ir.StringImm``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from runners.core.toolchain.facts import DriftEntry

_LONGEST_CHAIN = 6


@dataclass(frozen=True, slots=True)
class Rename:
    """A rename in the direction of a release. ``new`` is None if the release has no name of the same meaning."""

    old: str
    new: str | None
    hint: str | None
    """New place of most of a namespace. It is exact enough for an import of the namespace, not for its names."""
    of: str = ""
    """The function that takes a keyword, or the program that takes a flag. Empty for all."""


@dataclass(frozen=True, slots=True)
class Names:
    """The renames of one release, by kind of name."""

    dotted: tuple[Rename, ...]
    members: tuple[Rename, ...]
    keywords: tuple[Rename, ...]
    options: tuple[Rename, ...]
    registered: tuple[Rename, ...]
    flags: tuple[Rename, ...]
    words: tuple[Rename, ...]

    def find_successor(self, name: str, *, imported: bool = False) -> str | None:
        """Return the name in the release: the same name if it has not moved, None if there is none.

        With ``imported``, the new place of most of a namespace is accepted.
        """
        for _ in range(_LONGEST_CHAIN):
            step = self._find_longest(name)
            if step is None:
                return name
            new = step.new or (step.hint if imported and step.old == name else None)
            if new is None:
                return None
            name = new + name[len(step.old) :]
        return name

    def find_keyword(self, keyword: str, function: str) -> Rename | None:
        """Return the rename of a keyword in calls of ``function``, a dotted name."""
        return next((s for s in self.keywords if s.old == keyword and _is_within(function, s.of)), None)

    def find_registered(self, name: str) -> str:
        """Return a registered name in the release: the same name if it has not moved."""
        known = _index_renames(self.registered)
        for _ in range(_LONGEST_CHAIN):
            if (step := known.get(name)) is None or step.new is None:
                break
            name = step.new
        return name

    def _find_longest(self, name: str) -> Rename | None:
        known = self._index_dotted()
        return next((known[prefix] for prefix in _list_namespaces(name) if prefix in known), None)

    def _index_dotted(self) -> dict[str, Rename]:
        return _index_renames(self.dotted)


@lru_cache(maxsize=64)
def _index_renames(steps: tuple[Rename, ...]) -> dict[str, Rename]:
    """Index by the old name. Of two entries for one name, the first counts, because its spelling is more frequent."""
    return {step.old: step for step in reversed(steps)}


def build_names(version: str, table: Sequence[DriftEntry]) -> Names:
    """Return the renames that port a text of any release to ``version``."""
    found: dict[str, list[Rename]] = {place: [] for place in Names.__slots__}
    for entry in table:
        step = None if entry.listed else _find_rename(entry, version)
        if step is not None:
            found[_choose_field(entry)].append(step)
    return Names(**{place: tuple(steps) for place, steps in found.items()})


def _find_rename(entry: DriftEntry, version: str) -> Rename | None:
    if entry.affects(version):
        if entry.is_too_new(version):
            return None  # the release has neither name, unless the surrounding namespace has moved
        return Rename(old=entry.old, new=entry.new if entry.exact else None, hint=entry.new, of=entry.of)
    if entry.exact and entry.gone_in is not None and entry.new is not None and entry.is_too_new(version):
        return Rename(old=entry.new, new=entry.old, hint=entry.old, of=entry.of)
    if entry.kind == "flag" and entry.old == entry.new and entry.is_too_new(version):
        return Rename(old=entry.old, new=None, hint=None, of=entry.of)
    return None


def _choose_field(entry: DriftEntry) -> str:
    match entry.kind:
        case "module" | "attribute":
            return "members" if entry.old.startswith(".") else "dotted"
        case "keyword":
            return "keywords"
        case "option":
            return "options"
        case "registered":
            return "registered"
        case "flag":
            return "flags"
        case "op" | "dialect":
            return "words"


def _is_within(name: str, space: str) -> bool:
    return not space or name == space or name.startswith(f"{space}.")


def _list_namespaces(name: str) -> Iterator[str]:
    """Yield the name, then every surrounding namespace, innermost first."""
    while name:
        yield name
        name = name.rpartition(".")[0]
