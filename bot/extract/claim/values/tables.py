"""Read the printed and the expected values in tables whose headings say which is which. Pure.

Other tables have no roles here: a run of the reported build decides which of their rows are printed
(`shown.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.extract.blocks.markdown import Document
from bot.extract.claim.values.sentences import SCALAR
from bot.extract.vocabulary import OTHER_IMPLEMENTATIONS, any_word

_VALUE = re.compile(SCALAR, re.I)
_OF_WHAT = r"(?: (?:values?|outputs?|results?))?(?: ?\([^()]{1,40}\))?\W*"
_EXPECTED = re.compile(
    rf"\W*(?:(?:what i )?expect(?:ed|s)?|desired|should be|correct|{OTHER_IMPLEMENTATIONS}){_OF_WHAT}", re.I
)
_PRINTED = re.compile(
    rf"\W*(?:(?:what i )?(?:got|get)|actual|observed|printed|wrong|{any_word(lambda words: words.called)}){_OF_WHAT}",
    re.I,
)
_MEASURES = re.compile(
    r"\b(?:m?s|sec(?:ond)?s?|times?|faster|slow\w*|latency|throughput|speed\w*|memory|[MG]i?B|versions?)\b", re.I
)
"""Words of a report on cost or of a list of versions. Its tables hold other figures than results."""
MAX_ROWS, MAX_VALUES = 200, 64
_Row = list[str]


@dataclass(frozen=True, slots=True)
class TableValues:
    """The values of one row or column each, with a space between them."""

    expected: str
    printed: str
    """Empty if no heading names this side, or several do."""


def read_table_values(document: Document) -> TableValues | None:
    """Return the values of the first table in which one heading names the expected ones."""
    for prose in document.prose:
        head, *body = list_cells(prose.text) or [[]]
        if not body or any(map(_MEASURES.search, (prose.text, *head))):
            continue
        width = min(len(row) for row in (head, *body))
        columns = [[name, *(row[at] for row in body)] for at, name in enumerate(head[:width])]
        for lines in (columns, body):
            expected, printed = (list(_list_values(lines, role)) for role in (_EXPECTED, _PRINTED))
            if len(expected) == 1:
                return TableValues(expected[0], printed[0] if len(printed) == 1 else "")
    return None


def list_cells(text: str) -> list[_Row]:
    """Return the cells of a Markdown table: the row of headings, then the rows below the rule."""
    lines = [line for line in text.split("\n") if line.lstrip().startswith("|")][:MAX_ROWS]
    rows = [[cell.strip(" *`") for cell in line.strip().strip("|").split("|")] for line in lines]
    return [*rows[:1], *rows[2:]]


def _list_values(lines: Sequence[_Row], role: re.Pattern[str]) -> Iterator[str]:
    """Yield the values behind each heading of a role, if there are several and nothing else."""
    for name, *values in lines:
        if role.fullmatch(name) and 1 < len(values) <= MAX_VALUES and all(map(_VALUE.fullmatch, values)):
            yield " ".join(values)
