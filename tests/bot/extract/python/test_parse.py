"""Cutting text into Python statements."""

from __future__ import annotations

from bot.extract.python.parse import parse_python, split_statements


def cut(text: str) -> list[tuple[str, bool]]:
    return [(s.text, s.tree is not None) for s in split_statements(text)]


def test_brackets_strings_and_decorators_hold_a_statement_together() -> None:
    """A top-level statement is one piece however many lines it has."""
    text = '@d\n# why\ndef f():\n    """a\n(b\n"""\nx = [\n1,\n]\nif x:\n    y\nelse:\n    z\n'
    assert cut(text) == [
        ('@d\n# why\ndef f():\n    """a\n(b\n"""\n', True),
        ("x = [\n1,\n]\n", True),
        ("if x:\n    y\nelse:\n    z\n", True),
    ]


def test_text_that_is_no_python_does_not_swallow_code_behind_it() -> None:
    """An apostrophe, an open bracket or an open triple quote in prose ends with its line."""
    assert cut("don't (do that\nimport a\n")[-1] == ("import a\n", True)
    assert cut("''' no end\nimport a\n")[-1] == ("import a\n", True)


def test_every_line_belongs_to_exactly_one_statement() -> None:
    """Nothing of the text is lost between the pieces."""
    text = "# c\n\nimport a\n\n  odd\n$ x\n>>> y\n"
    assert "".join(s.text for s in split_statements(text)) == text


def test_parsing_never_raises() -> None:
    """Deep nesting, null bytes and surrogates give None, not an exception."""
    for text in ("(" * 5000, "-" * 100_000 + "1", "\0", "\ud800", "x = " + "9" * 5000):
        parse_python(text)
