"""Same failure or another one, on recorded outputs of real releases: bench/pairs.py made them and holds the truth."""

from __future__ import annotations

import pytest

from bench.pairs import kind, load, score

FAILURES = load()


@pytest.mark.parametrize("rooms", ["tuned on", "kept away"])
def test_the_comparison_is_right_and_rarely_silent(rooms: str) -> None:
    """One wrong match and a verdict is wrong; a missed one only costs an answer."""
    mine = [failure for failure in FAILURES if kind(failure.room) == rooms]
    found = score(mine, "signature")
    assert found.pairs >= 300
    assert found.precision >= 0.99
    assert found.recall >= 0.9


def test_it_is_better_than_what_is_simpler() -> None:
    """The last line alone changes from release to release; that both failed says little."""
    ours, last, both = (score(FAILURES, way) for way in ("signature", "exact last line", "any non-zero exit"))
    assert ours.precision > last.precision > both.precision
    assert ours.recall > last.recall
