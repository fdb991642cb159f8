"""A sentence that counts dispatches gives the number that is there and the one that should be; no other does."""

from __future__ import annotations

import pytest

from bot.extract.claim.counts import read_counts
from runners.toolchains.iree.failures import DISPATCHES


@pytest.mark.parametrize(
    ("text", "actual", "expected"),
    [
        ("The program has 2 dispatches when it should only need 1.", "2 dispatches", "1 dispatch"),
        ("We form two dispatches instead of a single dispatch.", "2 dispatches", "1 dispatch"),
        ("Expected one dispatch but got 3.", "3 dispatches", "1 dispatch"),
        ("The reverse is not fused into one dispatch with its consumer.", "", "1 dispatch"),
        ("Both rows end up in two separate dispatches.", "2 dispatches", ""),
        ("All could be in a single dispatch, but there are four dispatches now.", "4 dispatches", "1 dispatch"),
        ("It generates 3 dispatches; 1 is expected.", "3 dispatches", "1 dispatch"),
        ("Two dispatches get created where previously there was one.", "2 dispatches", "1 dispatch"),
        ("It compiles to 12 dispatches.", "12 dispatches", ""),
        ("It has 2 dispatches. After the change it has 5 dispatches.", "", ""),  # they contradict each other
        ("The 2 elementwise ops should fuse.", "", ""),
        ("The dispatch has 3 operands.", "", ""),
        ("It fails in dispatch 12.", "", ""),
        ("One dispatch fails to compile.", "", ""),
        ("The second of the 2 dispatches crashes.", "", ""),
        ("main_dispatch_3 has 2 inputs", "", ""),
    ],
)
def test_numbers_of_dispatches_are_read_with_their_role(text: str, actual: str, expected: str) -> None:
    assert read_counts([text], DISPATCHES) == (actual, expected)
