"""Same failure or another one, on recorded outputs of real releases: bench/pairs made them and holds the truth."""

from __future__ import annotations

import pytest

from bench.pairs.score import kind, load, score, tells

FAILURES = load()
ENDS_OF_THE_RANGE = ("0.25.0", "0.27.0.post1", "2.9.0", "3.13.0")
"""The mixed rooms have 28,000 pairs, of which the bench looks at all; what drifted most is tried here."""


@pytest.mark.parametrize("rooms", ["tuned on", "kept away"])
def test_the_comparison_is_right_and_rarely_silent(rooms: str) -> None:
    """One wrong match and a verdict is wrong; a missed one only costs an answer."""
    mine = [failure for failure in FAILURES if kind(failure.room) == rooms]
    found = score(mine, "signature")
    assert found.pairs >= 300
    assert found.precision >= 0.99
    assert found.recall >= 0.9


@pytest.mark.parametrize("way", ["signature", pytest.param("ruling", marks=pytest.mark.thorough)])
def test_failures_of_many_kinds_are_distinguished(way: str) -> None:
    """Crashes with stacks, wrong values, wrapped and relayed errors; by the comparison and the product's ruling."""
    mixed = [one for one in FAILURES if kind(one.room) == "mixed" and one.version in ENDS_OF_THE_RANGE]
    mine = [one for one in mixed if tells(one)]
    found = score(mine, way)
    assert found.pairs >= 2_000
    assert found.precision >= 0.99
    assert found.recall >= 0.9


@pytest.mark.thorough
def test_the_comparison_is_better_than_simpler_ones() -> None:
    """The last line alone changes from release to release; that both failed says little."""
    mine = [one for one in FAILURES if kind(one.room) != "mixed" or one.version in ENDS_OF_THE_RANGE]
    ours, last, both = (score(mine, way) for way in ("signature", "exact last line", "any non-zero exit"))
    assert ours.precision > last.precision > both.precision
    assert ours.recall > last.recall
