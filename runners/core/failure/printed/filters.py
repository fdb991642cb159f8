"""Read the filters that a report puts behind its command (``| grep -c x``). Pure.

No filter runs as a program: the supervisor applies it while it reads the output. Only filters with an exact
equivalent are read. A pattern of a stranger may make a search with repetitions exponential. So a pattern is split
into pieces without repetition, which are searched one after another. The time is linear in the output.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import assert_never

from runners.core.protocol import StepResult
from runners.core.toolchain.products import Product

MAX_PATTERN = 200
"""Characters of one pattern."""
_NOTHING = re.compile(r"(?!)")
ROWS = Product(
    noun="counted row", plural="counted rows", named_pattern="rows?", made=_NOTHING, formed=_NOTHING, flags=()
)
"""What a counting filter counts."""
_MERGED = "2>&1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grep:
    """Keep the rows with the pattern, or count them."""

    sides: tuple[tuple[str, ...], ...]
    """The alternatives of the pattern. A row has an alternative if it has all of its pieces, one after another. A
    piece is a regular expression without repetition."""
    ignores_case: bool = False
    inverts: bool = False
    counts: bool = False
    numbers: bool = False
    """True if each row begins with its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Keep the first or the last rows."""

    number: int
    last: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Count the rows."""


Filter = Grep | Take | Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """Filters in order, for the output of a step."""

    filters: tuple[Filter, ...]
    merges: bool
    """True if the filters read the standard error, too (``2>&1``)."""

    @property
    def counts(self) -> bool:
        """True if the output is one number."""
        last = self.filters[-1]
        return isinstance(last, Count) or (isinstance(last, Grep) and last.counts)


def read_pipe(text: str) -> Pipe | None:
    """Return the filters of a shell text such as ``2>&1 | grep x | wc -l``. None if one is not known exactly."""
    merges = text.strip().startswith(_MERGED)
    filters = [_read_filter(words) for words in _split_filters(text.strip().removeprefix(_MERGED))]
    known = tuple(one for one in filters if one is not None)
    return Pipe(filters=known, merges=merges) if known and len(known) == len(filters) else None


def describe_pipe(pipe: Pipe) -> dict[str, object]:
    """Return the filters as the supervisor reads them (``runners/guest/probe/filters.py``)."""
    return {"merges": pipe.merges, "filters": [_describe(one) for one in pipe.filters]}


def _describe(one: Filter) -> dict[str, object]:
    match one:
        case Grep():
            return {"kind": "grep", **asdict(one)}
        case Take():
            return {"kind": "take", **asdict(one)}
        case Count():
            return {"kind": "count"}
        case _ as never:
            assert_never(never)


def is_counting(text: str) -> bool:
    """True if the filters print one number."""
    pipe = read_pipe(text)
    return pipe is not None and pipe.counts


def count_rows(step: StepResult) -> int | None:
    """Return the number that counting filters print of a step. None if no filter was applied exactly."""
    left = step.filtered if isinstance(step.filtered, str) else ""
    return int(left) if re.fullmatch(r"\d{1,12}", left) else None


def _split_filters(text: str) -> list[list[str]]:
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    found: list[list[str]] = []
    for word in words:
        if word == "|":
            found.append([])
        elif found:
            found[-1].append(word)
    return found


def _read_filter(words: Sequence[str]) -> Filter | None:
    match words:
        case ["grep" | "egrep" | "fgrep" as name, *rest]:
            return _read_grep(name, rest)
        case ["head" | "tail" as name, *rest]:
            found = re.fullmatch(r"(?:-n? ?(\d{1,6}))?", " ".join(rest))
            return None if found is None else Take(number=int(found[1] or 10), last=name == "tail")
        case ["wc", "-l"]:
            return Count()
        case _:
            return None


# ---------------------------------------------------------------------------------------------- grep


def _read_grep(name: str, words: Sequence[str]) -> Grep | None:
    flags, patterns = {"egrep": {"E"}, "fgrep": {"F"}}.get(name, set()), []
    for word in words:
        if re.fullmatch(r"-[EFPivchan]{1,6}", word):
            flags = flags | set(word[1:])
        elif word in ("--color=never", "--no-filename"):
            continue
        elif word.startswith("-"):
            return None
        else:
            patterns.append(word)
    is_plain = len(patterns) == 1 and len(patterns[0]) <= MAX_PATTERN and "\n" not in patterns[0]
    if not is_plain or len(flags & set("EFP")) > 1:
        return None
    sides = _read_pattern(patterns[0], flags)
    if sides is None:
        return None
    return Grep(
        sides=sides, ignores_case="i" in flags, inverts="v" in flags, counts="c" in flags, numbers="n" in flags
    )


def _read_pattern(pattern: str, flags: set[str]) -> tuple[tuple[str, ...], ...] | None:
    """Return the pieces of each alternative. None for a pattern with a group, or a repetition other than ``.*``."""
    if "F" in flags:
        return ((re.escape(pattern),),)
    extended = bool(flags & {"E", "P"})
    bar = r"(?<!\\)\|" if extended else r"\\\|"
    sides = [_read_side(side, extended=extended) for side in re.split(bar, pattern)]
    known = tuple(side for side in sides if side is not None)
    return known if len(known) == len(sides) and all(_compiles(piece) for side in known for piece in side) else None


def _compiles(piece: str) -> bool:
    """True for a pattern that Python reads, and reads without a warning about another meaning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(piece)
    except (re.error, Warning):
        return False
    return True


_ITEM = re.compile(r"\\(?P<escaped>[^\w\s])|(?P<set>\[\^?\]?[^\]\[\\]*\])|(?P<any>\.\*)|(?P<plain>.)", re.S)
_SPECIAL = {False: "*", True: "*+?{}()|"}
"""Characters that repeat or group, in the basic and in the extended form of a pattern."""
_OPERATORS = "+?{}()|"
"""Characters that are operators behind a backslash in the basic form."""
_ANCHORS = "<>`'"
"""Characters that are anchors behind a backslash: the beginning and the end of words and of the row."""


def _read_side(pattern: str, *, extended: bool) -> tuple[str, ...] | None:
    pieces = [""]
    for item in _ITEM.finditer(pattern):
        if item["any"]:
            pieces.append("")
            continue
        piece = _read_item(item, extended=extended)
        # The earliest place of a piece may not be the end of the row.
        if piece is None or (piece == "$" and len(pieces) > 1):
            return None
        pieces[-1] += piece
    return tuple(pieces)


def _read_item(item: re.Match[str], *, extended: bool) -> str | None:
    """Return one item of a pattern as a regular expression of Python. None if it has another meaning, or repeats."""
    plain = item["plain"]
    if item["escaped"]:
        has_meaning = item["escaped"] in _ANCHORS or (not extended and item["escaped"] in _OPERATORS)
        return None if has_meaning else re.escape(item["escaped"])
    if item["set"]:
        return None if re.search(r"\[[:.=]", item["set"]) else item["set"]
    if plain in ("^", "$"):
        at_place = item.start() == 0 if plain == "^" else item.end() == len(item.string) and item.start() > 0
        return plain if at_place else None
    if plain in _SPECIAL[extended] or plain in "\\[":
        return None
    return "." if plain == "." else re.escape(plain)
