"""Indentation that Markdown adds is removed; the content of strings is not changed."""

from __future__ import annotations

from bot.extract.python.parse import parse_python
from bot.extract.python.repair import dedent_text, measure_margin, repair_text


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
