"""Tests of sentences that appeal to a promise of the tool."""

from __future__ import annotations

import pytest

from bot.extract.claim.defences import is_defended, list_defences


@pytest.mark.parametrize(
    "sentence",
    [
        "The guide documents `--fast-path`.",
        "--fast-path is listed in the docs but rejected",
        "iree-compile should accept --fast-path",
        "It used to work with --fast-path.",
        "fast-path should really be supported",
    ],
)
def test_a_name_is_defended_by_a_promise_about_it(sentence: str) -> None:
    assert is_defended("--fast-path", list_defences("A title", f"It fails. {sentence} Thanks!"))
    assert is_defended("--fast-path", list_defences(sentence, ""))


@pytest.mark.parametrize(
    "text",
    [
        "--fast-path is rejected",
        "iree-compile does not know --fast-path",
        "The program is valid, so I expect no failure.",
        "I follow the docs.\nIt says: --fast-path is unknown",
        "The docs mention --fast-path-length",
    ],
)
def test_a_complaint_or_a_promise_about_something_else_defends_nothing(text: str) -> None:
    assert not is_defended("--fast-path", list_defences(text, text))
