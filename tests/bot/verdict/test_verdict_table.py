"""The documented decision table is what the judge decides."""

from __future__ import annotations

from tests.bot.verdict.verdict_table import DOCUMENT, with_table


def test_the_documented_table_is_made_from_the_code() -> None:
    """After a change of the judge: ``python -m tests.bot.verdict.verdict_table``, and the diff is reviewed like
    prose."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_table(text)
