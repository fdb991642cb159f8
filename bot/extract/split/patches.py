"""Read the test that a patch adds: reporters attach a failing test as a diff against the compiler's repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bot.extract.blocks.kinds import classify_text
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.python.repair import dedent_text
from bot.extract.split.statements import is_python_program
from bot.extract.types import Repair

_TARGET = re.compile(r"\+\+\+ (?:b/)?(?P<path>[^\s]{1,300})")
_TEST = re.compile(r"(?:^|/)tests?(?:ing)?/|(?:^|/)test_[^/]*$|_test\.\w+$")
_KINDS = {".py": Kind.PYTHON, ".mlir": Kind.MLIR}


@dataclass(slots=True)
class _File:
    """One file of a patch: its path, and its added rows with their numbers in the patch (0-based)."""

    path: str
    added: list[tuple[int, str]] = field(default_factory=list)


def read_added_tests(piece: Piece) -> list[Piece]:
    """Return the tests that the patch in ``piece`` adds, as code; none if the patch changes anything but tests.

    A patch that changes the compiler proposes a fix, and its test fails without the fix as it should.
    """
    files = list(_read_files(piece.text))
    if not files or not all(_TEST.search(file.path) for file in files):
        return []
    return [found for file in files if (found := _make_piece(piece, file)) is not None]


def _read_files(patch: str) -> Iterator[_File]:
    file: _File | None = None
    for number, row in enumerate(patch.split("\n")):
        if (found := _TARGET.match(row)) is not None:
            if file is not None:
                yield file
            file = _File(found["path"])
        elif file is not None and row.startswith("+"):
            file.added.append((number, row[1:]))
    if file is not None:
        yield file


def _make_piece(piece: Piece, file: _File) -> Piece | None:
    kind = next((kind for ending, kind in _KINDS.items() if file.path.endswith(ending)), None)
    written = [number for number, row in file.added if row.strip()]
    if kind is None or not written:
        return None
    text = "".join(f"{row}\n" for number, row in file.added if written[0] <= number <= written[-1])
    is_whole = is_python_program(text, True) and dedent_text(text) == text
    if not (is_whole if kind is Kind.PYTHON else classify_text(text) is kind):
        return None  # such as a changed row inside a function that the patch does not show
    lines = (piece.lines[0] + written[0], piece.lines[0] + written[-1])
    repair = Repair(kind="strip-patch", detail=f"took the test that a patch adds to {file.path.rpartition('/')[2]}")
    return replace(piece, kind=kind, text=text, lines=lines, repairs=(*piece.repairs, repair))
