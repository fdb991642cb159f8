"""Find the cells of a notebook in the prose: ``In [2]: `f(x)` ``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.extract.blocks.markdown import Document
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.python.parse import parse_python

_CELL = re.compile(r"^[ \t>*_-]{0,12}In ?\[ ?\d{0,4} ?\][:*_ \t]{1,8}`(?P<code>[^`\n]{1,500})`[ \t]*$", re.M)
MAX_CELLS = 40


def find_cells(document: Document) -> Iterator[Piece]:
    """Yield the code of each cell whose label and code span have a row of their own. Cells in fences are blocks."""
    found = 0
    for prose in document.prose:
        for cell in _CELL.finditer(prose.text):
            if parse_python(cell["code"]) is None or found == MAX_CELLS:
                continue
            found += 1
            row = prose.lines[0] + prose.text.count("\n", 0, cell.start())
            text = f"{cell['code']}\n"
            yield Piece(kind=Kind.PYTHON, text=text, lines=(row, row), block=0, comment=prose.comment)
