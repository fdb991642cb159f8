"""Filters behind a command, ``… | grep x | head -1``: kept as text for the command that a reader runs by hand. Pure.

No filter runs here. A reader may paste the command, so a filter is kept only if no option of it runs a program or
writes a file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The words that a filter may have."""

    flags: str
    """Pattern of a flag that neither writes nor runs anything."""
    operands: int = 0
    """Most words beside flags and numbers: patterns and sets of characters, no files."""


_NUMBER = re.compile(r"[+-]?\d{1,6}")
_GREP = Filter(flags=r"-[EFPivwxconahHABCme]{1,8}\d{0,4}|--color=never|--no-filename|--only-matching", operands=1)
FILTERS: Mapping[str, Filter] = {
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "head": Filter(flags=r"-[nc]\d{0,6}"),
    "tail": Filter(flags=r"-[nc]\+?\d{0,6}"),
    "wc": Filter(flags=r"-[lwcm]{1,4}"),
    "sort": Filter(flags=r"-[nrufhVb]{1,6}|-k\d{1,3}(?:,\d{1,3})?"),
    "uniq": Filter(flags=r"-[cdui]{1,4}"),
    "cut": Filter(flags=r"-[dfcb].{0,20}|-s", operands=2),
    "tr": Filter(flags=r"-[dsc]{1,3}", operands=2),
}
MAX_FILTERS = 400
"""Characters of the filters of one command."""


def add_filter(before: str, words: Sequence[str]) -> str:
    """Return ``before`` with one filter more; empty if the program or a word of it is not allowed.

    ``words`` are those of one program of a pipe, with ``|`` at the end if another program follows.
    """
    own = [word for word in words if word != "|"]
    known = FILTERS.get(own[0]) if own else None
    if known is None:
        return ""
    others = [word for word in own[1:] if not re.fullmatch(known.flags, word) and not _NUMBER.fullmatch(word)]
    numbers = [word for word in own[1:] if _NUMBER.fullmatch(word)]
    is_plain = all(word.isprintable() and not word.startswith("-") for word in others)
    takes_numbers = known.operands or own[0] in ("head", "tail") or not any(n[0].isdigit() for n in numbers)
    text = f"{before} | {shlex.join(own)}".strip()
    allowed = len(others) <= known.operands and is_plain and takes_numbers and len(text) <= MAX_FILTERS
    return text if allowed else ""
