"""Settings that all tests share."""

import gc
from pathlib import Path

import pytest
from hypothesis import settings

# No profile has a deadline: a busy machine is not a failure, and no test here asserts how long anything takes.
# `repeatable` derives the examples from the test: the same commit passes or fails on every machine. The same fifty
# examples are drawn each time, so that more of them would find little more.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
# `make fuzz` draws new examples every time, so no test sets its own number of examples. Keep what it finds with
# `@example`.
settings.register_profile("fuzz", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("repeatable")


# Modules and test items are hundreds of thousands of objects that live to the end. A search for garbage among them as
# often as by default costs a seventh of all processor time.
gc.set_threshold(100_000, 20, 100)


def pytest_collection_finish() -> None:
    """Leave out of later searches for garbage what the collection of tests made."""
    gc.freeze()


SLOW = ("sandbox", "compilers", "contract", "thorough")
"""Marks of tests that wait or compute for long, the slowest kind first."""
MEASURING = Path(__file__).parent / "runners" / "sandbox" / "test_host_memory.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first: where a slow file ends last, all other processes of `make test` wait for it."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Tests that read counters of the whole machine run beside compilers, not beside attacks on these counters."""
    if item.path == MEASURING:
        return -1
    return min((place for place, name in enumerate(SLOW) if item.get_closest_marker(name)), default=len(SLOW))
