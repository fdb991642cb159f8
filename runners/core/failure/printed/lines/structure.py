"""Say how the structure of a printed text differs from the quoted text, where all values agree. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from runners.core.failure.printed.lines.tokens import Line, has_value

_OPENING = frozenset({"with", "for", "while", "if", "else"})
_QUOTES = frozenset({"'", '"'})


def opens_other_blocks(reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if a quoted function has other blocks in the output: one ``with R.dataflow():`` more.

    All rows of the quoted function may be in the output nevertheless. Only functions up to their ``return`` are
    compared, because a quote may be cut. A program may print a function several times, before and after a pass.
    """
    known: dict[Line, list[Counter[str]]] = {}
    for name, blocks in _list_functions(printed):
        known.setdefault(name, []).append(blocks)
    return any(name in known and blocks not in known[name] for name, blocks in _list_functions(reported))


def _list_functions(lines: Sequence[Line]) -> Iterator[tuple[Line, Counter[str]]]:
    """Yield each complete function of a Python text: its name, and how often each keyword opens a block."""
    name: Line = ()
    opened: Counter[str] = Counter()
    for line in lines:
        if line[:1] == ("def",):
            name, opened = line[:2], Counter()
        elif name and line[:1] == ("return",):
            yield name, opened
            name = ()
        elif line[-1:] == (":",) and line[0] in _OPENING:
            opened[str(line[0])] += 1


def lists_other_names(reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if the output lacks a quoted list of strings, and has a longer or shorter list with these strings."""
    quoted, shown = set(_list_names(reported)), set(_list_names(printed))
    return any(
        len(one) != len(other) and (set(one) <= set(other) or set(other) <= set(one))
        for one in quoted - shown
        for other in shown - quoted
    )


def _list_names(lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    """Yield the strings of each row that is a list of strings: ``['a', 'b']``."""
    for line in lines:
        if line[:1] == ("[",) and line[-1:] == ("]",) and _QUOTES & set(line) and not has_value(line):
            yield tuple(str(token) for token in line[1:-1] if token != "," and token not in _QUOTES)
