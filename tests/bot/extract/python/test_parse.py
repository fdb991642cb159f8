"""Cut text into Python statements."""

from __future__ import annotations

from bot.extract.python.parse import parse_python, split_statements


def split_text(text: str) -> list[tuple[str, bool]]:
    return [(s.text, s.tree is not None) for s in split_statements(text)]


def test_brackets_strings_and_decorators_hold_a_statement_together() -> None:
    """A top-level statement is one piece, over any number of lines."""
    text = '@d\n# why\ndef f():\n    """a\n(b\n"""\nx = [\n1,\n]\nif x:\n    y\nelse:\n    z\n'
    assert split_text(text) == [
        ('@d\n# why\ndef f():\n    """a\n(b\n"""\n', True),
        ("x = [\n1,\n]\n", True),
        ("if x:\n    y\nelse:\n    z\n", True),
    ]


def test_text_that_is_not_python_does_not_hide_the_code_below() -> None:
    """An apostrophe, an open bracket or an open triple quote in prose ends with its line."""
    assert split_text("don't (do that\nimport a\n")[-1] == ("import a\n", True)
    assert split_text("''' no end\nimport a\n")[-1] == ("import a\n", True)


def test_every_line_belongs_to_exactly_one_statement() -> None:
    """The statements together are the whole text."""
    text = "# c\n\nimport a\n\n  odd\n$ x\n>>> y\n"
    assert "".join(s.text for s in split_statements(text)) == text


def test_parsing_never_raises() -> None:
    """Deep nesting, null bytes and surrogates give None, not an exception."""
    for text in ("(" * 5000, "-" * 100_000 + "1", "\0", "\ud800", "x = " + "9" * 5000):
        parse_python(text)
