"""Indentation that Markdown adds is removed; the content of strings is not changed."""

from __future__ import annotations

import pytest

from bot.extract.python.parse import parse_python
from bot.extract.python.repair import dedent_text, drop_line_numbers, measure_margin, repair_text


def test_a_string_at_the_margin_does_not_hide_the_indentation() -> None:
    """The code is indented, and the text inside its string is not."""
    text = '    import a\n    X = """\nfoo\n  bar\n    """\n    a.b(X)'
    repaired, repairs = repair_text(text)
    assert repaired == 'import a\nX = """\nfoo\n  bar\n    """\na.b(X)'
    assert parse_python(repaired) is not None
    assert [one.kind for one in repairs] == ["dedent"]


def test_a_string_indented_with_the_code_moves_with_it() -> None:
    text = '    X = """\n    foo\n      bar\n    """'
    assert dedent_text(text) == 'X = """\nfoo\n  bar\n"""'


def test_a_quote_that_never_ends_is_no_string() -> None:
    """Prose has such quotes. Every row counts then."""
    assert measure_margin('  a = """\nb') == 0


def test_quotes_in_a_comment_begin_no_string() -> None:
    assert dedent_text("  # it's ''' here\n  a") == "# it's ''' here\na"


@pytest.mark.parametrize("mark", ["{n:3d} {row}", "{n}: {row}", "{n}. {row}", "{n:>4} | {row}", "{n}\t{row}"])
def test_line_numbers_before_a_program_are_dropped(mark: str) -> None:
    rows = ["import tvm", "def f(x):", "    return x", "", *(f"f({n})" for n in range(8))]
    shown = "\n".join(mark.format(n=n, row=row) for n, row in enumerate(rows, start=1))
    assert drop_line_numbers(f"{shown}\n") == "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    "text", ["1 2.5\n2 3.5\n3 4.5\n", "1 import a\n3 b = 2\n4 c\n", "1 import a\n2 b = (\n3 c\n"]
)
def test_other_numbers_stay(text: str) -> None:
    """A table, rows that do not follow each other, and a part of a program."""
    assert drop_line_numbers(text) == text
