"""Compare a printed MLIR program with the programs of a report, whatever the notation of the release. Pure.

A pass is deterministic: a build prints the same program for the same input on every run. So an equal program shows
the reported behaviour, and the same operations with other constants show another behaviour. Values of programs that
run may differ for other reasons; `lines` compares them.

Releases print one program in several notations: ``value = dense<1>`` became ``values = dense<1>``, generic operations
have quotes, and values are numbered in their order. An operation is therefore reduced to its name, its values, its
constants and its keywords. Two programs are equal if they differ only in the names of values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from runners.core.failure.printed.reading import Reading
from runners.core.mlir.types import remove_types

MAX_ROWS = 2_000
MAX_ROW_CHARS = 4_000

MAX_PLACES = 20
"""Maximum number of places that are compared with a part. A program that repeats one operation has thousands."""

MOST_DIFFERING = 2
"""Maximum number of differing operations of two similar short programs. Long programs may differ in a fifth."""

Operation = tuple[str, ...]
"""A name, then values, constants and keywords in their order: ``("tosa.const", "%0", "dense", "-1")``."""

MIN_OPERATIONS = 2
"""Minimum number of operations of a program. A single operation in a sentence is not the output of a pass."""


def compare_programs(printed: str, *, actual: str, expected: str) -> Reading | None:
    """Compare a printed program with the program that a report quotes as ``actual``, and with ``expected``.

    ``expected`` may be a program, or the constant that one operation should have. None if the report quotes no
    program, or if the run prints none.
    """
    if _INLINE.search(actual) and not _INLINE.search(_without_aliases(printed)):
        printed, actual, expected = (_MAPS.sub("", _without_aliases(text)) for text in (printed, actual, expected))
    seen, wrong, right = (read_operations(text) for text in (printed, actual, expected))
    if len(seen) < MIN_OPERATIONS or max(len(wrong), len(right)) < MIN_OPERATIONS:
        return None
    if not right and len(constants := read_constants(expected)) == 1:
        right = _replace_only_constant(wrong, constants[0])
    if any(2 * sum(_GAP in operation for operation in part) > len(part) for part in (wrong, right)):
        return Reading.UNKNOWN  # nearly all of the quoted program is left out
    is_wrong, is_right = _occurs(wrong, seen), _occurs(right, seen)
    if is_wrong is not is_right:
        return Reading.WRONG if is_wrong else Reading.RIGHT
    if is_wrong or right or any(_GAP in operation for operation in wrong):
        return Reading.UNKNOWN
    if _count_names(wrong, seen) == 1:
        return Reading.CHANGED
    return Reading.SIMILAR if _has_fewer_or_more(wrong, seen) else Reading.UNKNOWN


_INLINE = re.compile(r"affine_map<\([^()]*\)")
_MAPS = re.compile(
    r"affine_map<\([^()\n]*\)(?:\[[^\[\]\n]*\])?\s*->\s*\([^()\n]*(?:\([^()\n]*\)[^()\n]*){0,8}\)>|#map\w*"
)
"""Affine maps as people write them, and the names that the printer gives them."""


def _without_aliases(text: str) -> str:
    """Return a program without the rows that define its affine maps."""
    return "\n".join(row for row in text.split("\n", MAX_ROWS)[:MAX_ROWS] if not row.lstrip().startswith("#"))


def find_other_operation(printed: str, *, actual: str) -> str:
    """Return the first operation of a printed program that the quoted program lacks, as text. Empty without one.

    Empty as well if the two have the same operations under other names, because a release may have renamed them.
    """
    seen, wrong = (read_operations(text) for text in (printed, actual))
    if min(len(seen), len(wrong)) < MIN_OPERATIONS or _may_be_renamed(wrong, seen):
        return ""
    quoted = {_leave_out_values(one) for one in wrong}
    return next((" ".join(one)[:200] for one in map(_leave_out_values, seen) if one not in quoted), "")


def _may_be_renamed(wrong: Sequence[Operation], seen: Sequence[Operation]) -> bool:
    """True if a one-to-one renaming turns the names of one program into those of the other."""
    before, after = ([name for name, *_ in one if name != "#"] for one in (wrong, seen))
    pairs = set(zip(before, after, strict=False))
    return len(before) == len(after) and len(pairs) == len(set(before)) == len(set(after))


def find_kept_operation(printed: str, *, actual: str, given: str) -> str:
    """Return the name of an operation of the input ``given`` that the printed program keeps and the quoted one lacks.

    Empty without such an operation, or if the quoted text is not a whole function. Empty as well if the printed
    program has a name that neither input nor quotation has, because a release may have renamed an operation.
    """
    before, wrong, seen = (_count_operations(text) for text in (given, actual, printed))
    if not (_FUNCTIONS & set(wrong) and _RETURNS & set(wrong)) or set(seen) - set(before) - set(wrong):
        return ""
    kept = (name for name, count in before.items() if name not in wrong and seen[name] >= count)
    return next((name for name in kept if name not in _FUNCTIONS | _RETURNS), "")


def _count_operations(text: str) -> Counter[str]:
    return Counter(name for name, *_ in read_operations(text) if name not in ("#", "^"))


def _leave_out_values(operation: Operation) -> Operation:
    return tuple(word for word in operation if not word.startswith("%"))


def _has_fewer_or_more(wrong: Sequence[Operation], seen: Sequence[Operation]) -> bool:
    """True if two whole programs differ only in the number of a few operations.

    A name that the report does not quote may come from a release that renamed an operation.
    """
    before, after = (Counter(name for name, *_ in one if name != "#") for one in (wrong, seen))
    differing = (before - after).total() + (after - before).total()
    return set(after) <= set(before) and 0 < differing <= max(MOST_DIFFERING, before.total() // 5)


def _count_names(part: Sequence[Operation], whole: Sequence[Operation]) -> int:
    """Count the places where ``whole`` contains the operations of ``part``, by name. Aliases do not count."""
    return len(_find_names(*([name for name, *_ in one if name != "#"] for one in (part, whole))))


def _occurs(part: Sequence[Operation], whole: Sequence[Operation]) -> bool:
    """True if ``whole`` contains the operations of ``part`` in succession."""
    places = _find_names([name for name, *_ in part], [name for name, *_ in whole])
    return bool(part) and any(_is_same(part, whole[at : at + len(part)]) for at in places)


def _is_same(quoted: Sequence[Operation], printed: Sequence[Operation]) -> bool:
    """True if two programs differ only in the names of values, and in what the quoted one leaves out.

    Results of an operation and arguments of a block are new values, even if another region uses the same names.
    """
    names: dict[str, str] = {}
    back: dict[str, str] = {}
    for mine, other in zip(quoted, printed, strict=True):
        pairs = _pair_words(mine, other)
        if pairs is None:
            return False
        for one, two in pairs:
            name, shown = one.removeprefix(_MADE), two.removeprefix(_MADE)
            if (name != one or mine[0] == "^") and name.startswith("%"):
                names[name], back[shown] = shown, name
            if name.startswith("%") and shown.startswith("%"):
                if names.setdefault(name, shown) != shown or back.setdefault(shown, name) != name:
                    return False
            elif one != two:
                return False
    return True


def _pair_words(quoted: Operation, printed: Operation) -> list[tuple[str, str]] | None:
    """Return the words of two operations in pairs. A gap in the quoted one stands for any words. None if they differ
    in their number."""
    begin = quoted.index(_GAP) if _GAP in quoted else len(quoted)
    end = quoted[::-1].index(_GAP) if _GAP in quoted else 0
    if len(printed) < begin + end or (len(printed) != len(quoted) and _GAP not in quoted):
        return None
    shown = (*printed[:begin], *printed[len(printed) - end :])
    return list(zip((*quoted[:begin], *quoted[len(quoted) - end :]), shown, strict=True))


def _find_names(names: Sequence[str], among: Sequence[str]) -> list[int]:
    """Return the places where ``names`` occur in succession."""
    every = (at for at in range(len(among) - len(names) + 1) if among[at : at + len(names)] == names)
    return list(islice(every, MAX_PLACES))


def number_values(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations with their values numbered in the order in which they occur.

    Results of an operation and arguments of a block are new values, even if another region uses the same names.
    """
    numbers: dict[str, str] = {}
    count, numbered = 0, []
    for operation in operations:
        words = []
        for word in operation:
            name = word.removeprefix(_MADE)
            if name != word or (word.startswith("%") and (operation[0] == "^" or word not in numbers)):
                numbers[name], count = f"%{count}", count + 1
            words.append(numbers.get(name, word) if word.startswith("%") else word)
        numbered.append(tuple(words))
    return numbered


_GAP = "…"
"""A part of an operation that a report leaves out: ``layout(...)``."""
_MADE = "%="
"""Prefix of the name of a result: ``%=%0``."""


def _replace_only_constant(operations: Sequence[Operation], value: str) -> list[Operation]:
    """Return the program with ``value`` in place of its only constant. Empty if it has several or none."""
    places = [
        (at, number)
        for at, operation in enumerate(operations)
        for number, word in enumerate(operation)
        if number and _CONSTANT.fullmatch(word)
    ]
    if len(places) != 1:
        return []
    (at, number), changed = places[0], list(operations)
    changed[at] = (*changed[at][:number], value, *changed[at][number + 1 :])
    return changed


def read_constants(text: str) -> list[str]:
    """Return the constants of a text that contains only constants. Empty for any other text."""
    words = re.split(r"[\s,`]+", text.strip()[:MAX_ROW_CHARS].strip("`"))
    return [_normalize(word) for word in words] if all(map(_CONSTANT.fullmatch, words)) else []


_FUNCTIONS = {"func.func", "util.func", "func"}
_RETURNS = {"func.return", "util.return"}
_AROUND = {"builtin.module", "module"}
_BLOCK = re.compile(r"\s*\^\w+(?:\([^\n]*\))?:")
_OPERATION = re.compile(
    r"\s*(?P<results>%[\w$.:-]+(?:\s*,\s*%[\w$.:-]+)*\s*=\s*)?"
    r"(?:\"(?P<quoted>[a-z]\w*(?:\.[\w$-]+)+)\"\s*\(|(?P<plain>[a-z]\w*(?:\.[\w$-]+)+|return|call|func)(?=[\s<{(]|$)(?!\s*=))"
)
_ALIAS = re.compile(r"\s*#[\w$.-]+\s*=\s*(?P<of>.*)")
_VALUE = re.compile(r"%[\w$.-]+")
_ATTRIBUTE = re.compile(r"(?<![%@#\w.$-])[A-Za-z_][\w.]*(?:\s*=(?!=)|(?=\())")
"""The name of an attribute, ``values = dense<1>`` or ``values(dense<1>)``, or of a group of operands, ``ins(…)``."""
_WORD = re.compile(
    r'"[^"\n]*"|\.{3}|…|%[\w$.-]+|[@#^][\w$.-]+|0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[A-Za-z_][\w.$-]*'
)  # fmt: skip
_CONSTANT = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|0x[0-9A-Fa-f]+|true|false|True|False|[-+]?(?:nan|inf)")
_SHORT = {"return": "func.return", "call": "func.call"}


def read_operations(text: str) -> list[Operation]:
    """Return the operations of an MLIR text in their order. A function and a block have only their arguments.

    Rows inside the parentheses of an operation belong to it.
    """
    found: list[Operation] = []
    depth = 0
    for raw in text.split("\n", MAX_ROWS)[:MAX_ROWS]:
        row = raw[:MAX_ROW_CHARS].partition("//")[0]
        inside, depth = depth > 0 and bool(found), max(0, depth + row.count("(") - row.count(")"))
        if inside:
            found[-1] = (*found[-1], *_list_words(row))
        elif alias := _ALIAS.match(row):
            found.append(("#", *_list_words(alias["of"])))
        elif _BLOCK.match(row):
            found.append(("^", *_VALUE.findall(row)))
        elif (operation := _OPERATION.match(row)) and (
            name := operation["quoted"] or operation["plain"]
        ) not in _AROUND:
            values = [f"{_MADE}{one}" for one in _VALUE.findall(operation["results"] or "")]
            words = _VALUE.findall(row) if name in _FUNCTIONS else (*values, *_list_words(row[operation.end() :]))
            found.append((_SHORT.get(name, name), *words))
    return found


def _list_words(row: str) -> Iterator[str]:
    """Yield the values, constants and keywords of a row, without types, names of attributes and locations."""
    bare = remove_types(row.partition(" loc(")[0])
    for word in _WORD.findall(_ATTRIBUTE.sub(" ", bare)):
        yield _normalize(word)


def _normalize(word: str) -> str:
    """Return one text for all notations of a constant: ``1.000000e+00`` is ``1``, and truth values are lower case."""
    if word == "...":
        return _GAP
    if word in ("True", "False"):
        return word.lower()
    try:
        return f"{float(word):g}" if _CONSTANT.fullmatch(word) and not word.startswith("0x") else word
    except ValueError:
        return word
