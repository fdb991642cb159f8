"""Settings that all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# No profile has a deadline: a busy machine is not a failure, and no test here asserts how long anything takes.
# `repeatable` derives the examples from the test: the same commit passes or fails on every machine.
settings.register_profile("repeatable", deadline=None, derandomize=True)
# `make fuzz` draws new examples every time. Keep what it finds with `@example`.
settings.register_profile("fuzz", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("repeatable")


ENGINES = Path(__file__).parent / "runners" / "sandbox"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name the tests that one process of `make test` runs in turn: those of a file, and all tests of the engines.

    The tests of the engines count what is left behind and fill memory, processes and disks up to their limits: two of
    them at the same time see each other.
    """
    for item in items:
        name = (
            "engines" if item.path.is_relative_to(ENGINES) and item.get_closest_marker("sandbox") else str(item.path)
        )
        item.add_marker(pytest.mark.xdist_group(name))
