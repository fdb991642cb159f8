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
_WANTED = re.compile(
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
    """The values of one row or column each, with a space between them. Empty if no heading or several name a side."""

    printed: str = ""
    wanted: str = ""


def read_table_values(document: Document) -> TableValues:
    """Return the values of the first table that names the expected ones."""
    for prose in document.prose:
        rows = [line for line in prose.text.split("\n", MAX_ROWS)[:MAX_ROWS] if line.lstrip().startswith("|")]
        cells = [[cell.strip(" *`") for cell in row.strip().strip("|").split("|")] for row in rows]
        if len(cells) < 3 or any(map(_MEASURES.search, (prose.text, *cells[0]))):
            continue
        head, body = cells[0], cells[2:]  # the rule is between them
        width = min(len(row) for row in (head, *body))
        columns = [[name, *(row[at] for row in body)] for at, name in enumerate(head[:width])]
        for lines in (columns, body):
            wanted, printed = (list(_list_values(lines, role)) for role in (_WANTED, _PRINTED))
            if len(wanted) == 1:
                return TableValues(printed[0] if len(printed) == 1 else "", wanted[0])
    return TableValues()


def _list_values(lines: Sequence[_Row], role: re.Pattern[str]) -> Iterator[str]:
    """Yield the values behind each heading of a role, if there are several and nothing else."""
    for name, *values in lines:
        if role.fullmatch(name) and 1 < len(values) <= MAX_VALUES and all(map(_VALUE.fullmatch, values)):
            yield " ".join(values)
