"""The documented tables are what the code decides."""

from __future__ import annotations

from tests.bot.verdict.findings_table import insert_table
from tests.bot.verdict.grounds_table import insert_grounds
from tests.bot.verdict.verdict_table import DOCUMENT, with_table


def test_the_documented_table_is_made_from_the_code() -> None:
    """After a change of the judge: ``python -m tests.bot.verdict.verdict_table``, and the diff is reviewed like
    prose."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_table(text)


def test_the_documented_findings_are_made_from_the_code() -> None:
    """After a change of a finding's row: ``python -m tests.bot.verdict.findings_table``."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == insert_table(text)


def test_the_documented_weights_are_those_of_the_model() -> None:
    """After a fit: ``python -m tests.bot.verdict.grounds_table``."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == insert_grounds(text)
