"""Read how many things the compiler makes, and how many it should make: "two dispatches instead of one".

The rows that a counting filter counts (``| grep -c x``) are such things, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from bot.extract.blocks.markdown import Document, locate_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.command_line.shell import parse_commands
from runners.core.failure.printed.filters import ROWS
from runners.core.toolchain.products import Product

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER = rf"(?P<number>(?<![\w.-])(?<!dispatch )(?:[1-9]\d{{0,3}}|(?:a )?single|{'|'.join(_WORDS)})(?!\.?\w|-))"
_KIND = r"(?:separate|different|distinct|individual|extra|additional|more|total|big|large|small|\w+[-_]\w+|\w+wise)"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n")
_EXPECTED = re.compile(
    r"\b(?:should|expect\w*|ideally|instead of|rather than|(?:was|were) (?:previously|before)|previously|used to"
    r"|(?:only|just) (?:need|require)\w*|needs? to be|must|could|can be|would be|want\w*|before|opposed to"
    r"|hop(?:e|ed|ing) for|supposed to)\b"
    r"|(?:\bnot\b|n[o'’]t\b|\bcannot\b|\bfail\w*|\bunable\b|\bnever\b)[^.]{0,60}\b(?:in|into|to|as|form)\b",
    re.I,
)
_ACTUAL = re.compile(
    r"\b(?:but|get|gets|got|getting|having|has|have|there (?:are|is)|creat\w+|form(?:s|ed|ing)?|produc\w+|generat\w+"
    r"|result\w*|end(?:s|ed|ing)? up|see|seeing|now|currently|after|split\w*|becomes?|giv(?:es|ing)|leads?"
    r"|compiles? (?:in)?to)\b",
    re.I,
)
_ACTUAL_AFTER = re.compile(
    r"[\s,]*(?:now\b|(?:get|gets|are|is|were|was) (?:\w+ )?(?:created|formed|generated|produced|made|emitted)\b)",
    re.I,
)
_EXPECTED_AFTER = re.compile(
    r"[\s,]*(?:(?:is|are|was|were|would be) (?:\w+ )?(?:expected|enough|sufficient|needed|required|wanted)"
    r"|(?:should|would) (?:be enough|suffice|do)\b|expected\b)",
    re.I,
)

_ALONE = re.compile(r"\s*(?:$|[.,;:)]|(?:is|are|was|were|here|there|now|instead|and|but|with|for|in|on)\b)", re.I)
"""The text after a number without a noun. An earlier number of the sentence has the noun."""


def read_counts(texts: Iterable[str], product: Product) -> tuple[str, str]:
    """Return the number that the report complains of and the number that it wants, as `Product.describe` writes them.

    Either is empty if no sentence gives it. Both are empty if sentences contradict each other.
    """
    found: dict[bool, set[int]] = {False: set(), True: set()}
    for text in texts:
        for sentence in _SENTENCE_END.split(text[:20_000]):
            for wanted, number in _read_sentence(sentence, product):
                found[wanted].add(number)
    actual, expected = found[False], found[True]
    if len(actual) > 1 or len(expected) > 1 or actual == expected:
        return "", ""
    told = [product.describe(*numbers) if numbers else "" for numbers in (actual, expected)]
    return told[0], told[1]


def _read_sentence(sentence: str, product: Product) -> Iterator[tuple[bool, int]]:
    """Yield each number of things in a sentence, and whether it is the wanted one.

    The sentence names the thing at least once. Another number in it counts if the words before it compare: "2
    dispatches instead of 1".
    """
    named = re.compile(rf"{_NUMBER}(?P<noun> (?:{_KIND} ){{0,2}}{product.named_pattern})?", re.I)
    numbers = list(named.finditer(sentence))
    if not any(one["noun"] for one in numbers):
        return
    begin = 0
    for one in numbers:
        after = sentence[one.end() :]
        wanted = _is_wanted(sentence[begin : one.start()], after)
        if wanted is not None and (one["noun"] or (begin and _ALONE.match(after))):
            yield wanted, _to_number(one["number"])
        begin = one.end()


def _is_wanted(before: str, after: str) -> bool | None:
    """True for a number that the sentence wants, False for one that it complains of, None without a cue."""
    if _EXPECTED_AFTER.match(after):
        return True
    cues = [(found.end(), wanted) for wanted in (True, False) for found in _find_cues(before, wanted=wanted)]
    if cues:
        return max(cues)[1]
    return False if _ACTUAL_AFTER.match(after) else None


def _find_cues(text: str, *, wanted: bool) -> Iterator[re.Match[str]]:
    return (_EXPECTED if wanted else _ACTUAL).finditer(text)


def _to_number(word: str) -> int:
    lower = word.lower()
    if lower.isdigit():
        return int(lower)
    return _WORDS.index(lower) + 1 if lower in _WORDS else 1


# ---------------------------------------------------------------------------------------------- counted rows


def read_row_counts(
    document: Document, pieces: Sequence[Piece], filters: str, *, only_below: bool = False
) -> tuple[str, str]:
    """Return the number that counting filters printed, and the wanted number, as `Product.describe` writes them.

    The printed number stands right below the command with these filters, or behind a word such as "prints" in the
    paragraph after it. The wanted number stands in the same paragraph, or in a sentence on a count beside a printed
    number. Either is empty if the report does not give it, or gives several. With ``only_below``, the printed number
    must stand right below the command.
    """
    counting = [piece for piece in pieces if piece.kind is Kind.SHELL and _ends_with(piece.text, filters)]
    below = [_NUMBER_ROW.match(piece.text) for piece in _list_below(pieces, counting)]
    after = list(_list_after(document, counting, filters))
    actual = {int(found[1]) for found in below if found}
    if only_below and not actual:
        return "", ""
    actual = actual or {int(found[1]) for text in after for found in _PRINTED_COUNT.finditer(text)}
    paragraphs = [prose.text[:20_000] for prose in document.prose if not prose.heading] if actual else []
    sentences = (one for text in paragraphs for one in _SENTENCE_END.split(text) if _NAMES_COUNT.search(one))
    expected = {int(found[1]) for text in (*after, *sentences) for found in _WANTED_COUNT.finditer(text)}
    if len(actual) > 1 or len(expected) > 1 or actual == expected:
        return "", ""
    told = [ROWS.describe(*numbers) if numbers else "" for numbers in (actual, expected)]
    return told[0], told[1]


def _ends_with(command: str, filters: str) -> bool:
    """True for a command whose output goes through these filters."""
    calls, _ = parse_commands(command)
    return bool(calls) and calls[-1].filters == filters


def _list_after(document: Document, counting: Sequence[Piece], filters: str) -> Iterator[str]:
    """Yield the text behind each command that counts: the next paragraph, or the rest of the paragraph with it."""
    paragraphs = [prose for prose in document.prose if not prose.heading]
    for piece in counting:
        yield next((prose.text for prose in paragraphs if prose.lines[0] > piece.lines[1]), "")[:2_000]
    for prose in paragraphs:
        for at, span in locate_code_spans(prose.text[:20_000]):
            if _ends_with(span.strip("`"), filters):
                yield prose.text[at + len(span) : at + len(span) + 2_000]


def _list_below(pieces: Sequence[Piece], counting: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the output right below a command that counts, in its block or the next one."""
    for above, piece in itertools.pairwise(pieces):
        if above in counting and piece.kind is Kind.OUTPUT and piece.block - above.block <= 1:
            yield piece


_NUMBER_ROW = re.compile(r"\s*(\d{1,6})\s*(?:\n|$)")
_NAMES_COUNT = re.compile(r"\b(?:counts?|rows?|lines?|match(?:es)?|occurrences?|times)\b", re.I)
_COUNT = (
    r"[*`]{0,3}(\d{1,6})[*`]{0,3}(?!\.?\w)"
    r"(?! {1,2}(?!(?:rows?|lines?|match(?:es)?|occurrences?|times|in|for|here|instead|rather|but|and|with|on|when"
    r"|where|although|while|now|though)\b)[A-Za-z])"
)
"""A number, alone or of rows. Behind another noun, it counts something else."""
_WANTED_COUNT = re.compile(
    r"\b(?:should (?:be|print|give|say|show)|expect(?:ed|s|ing)?|instead of|rather than|want(?:ed)?|must be)"
    rf"(?: (?:it )?(?:to be|be|is))?(?: ?:)? {{1,2}}{_COUNT}",
    re.I,
)
_PRINTED_COUNT = re.compile(
    r"\b(?:gives?|prints?|printed|shows?|says?|I get|I see|got|outputs?|counts)(?: me| here)?(?: ?:)?"
    rf" {{1,2}}{_COUNT}",
    re.I,
)
"""A word before a printed number. What a command *returns* may be its status."""
