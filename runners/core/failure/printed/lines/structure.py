"""Say how the structure of a printed text differs from the quoted text, where all values agree. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from runners.core.failure.printed.lines.tokens import Line, are_equal_lines, has_value

_BLOCKS = frozenset({"with", "for", "while", "if", "else"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
MOST = 20
"""Most lists of names, and most definitions of one value, that are compared with each other."""
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
        elif line[-1:] == (":",) and line[0] in _BLOCKS:
            opened[str(line[0])] += 1


def lists_other_names(reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if the output lacks a quoted list of strings, and has a longer or shorter list with these strings."""
    quoted, shown = (dict.fromkeys(_list_names(lines)) for lines in (reported, printed))
    gone = [one for one in quoted if one not in shown][:MOST]
    new = [one for one in shown if one not in quoted][:MOST]
    return any(
        len(one) != len(other) and (set(one) <= set(other) or set(other) <= set(one)) for one in gone for other in new
    )


def _list_names(lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    """Yield the strings of each row that is a list of strings: ``['a', 'b']``."""
    for line in lines:
        if line[:1] == ("[",) and line[-1:] == ("]",) and _QUOTES & set(line) and not has_value(line):
            yield tuple(str(token) for token in line[1:-1] if token != "," and token not in _QUOTES)


def defines_otherwise(reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if a typed value of the quoted program has another definition: ``gv: R.Tensor((4,)) = f(x)``.

    A program may be printed before and after a pass. Then one of its definitions has to be the quoted one.
    """
    results: dict[Line, list[Line]] = {}
    for key, rest in map(split_typed, printed):
        results.setdefault(key, []).append(rest)
    quoted = [(key, rest) for key, rest in map(split_typed, reported) if key and len(results.get(key, ())) <= MOST]
    return any(
        key in results and not any(are_equal_lines([rest], [one]) for one in results[key]) for key, rest in quoted
    )


def drop_type(line: Line) -> Line:
    """Return the row of a printed program without the type of its value: ``gv = f(x)``."""
    typed, result = split_typed(line)
    return (line[0], "=", *result) if typed else line


def split_typed(line: Line) -> tuple[Line, Line]:
    """Return value and type, and the definition, of a row of a printed program: ``gv: R.Tensor((4,)) = f(x)``.

    Both are empty for another row. The type is a call, which distinguishes it from the words of a log.
    """
    depth = 0
    for at, token in enumerate(line if line[1:2] == (":",) else ()):
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == "=" and not depth:
            return (line[:at], line[at + 1 :]) if line[at - 1] == ")" else ((), ())
    return (), ()
