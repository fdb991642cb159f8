"""The table of docs/sandbox-kit.md and the kit list the same attacks."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.runners.sandbox import test_claims, test_host_memory, test_lifecycle, test_sessions, test_sharing
from tests.runners.sandbox.kit.attacks import ATTACKS
from tests.runners.sandbox.kit.table import read_table, render_table

PAPER = Path(__file__).parents[4] / "docs" / "sandbox-kit.md"
ON_EACH_ENGINE = {"engine", "room", "host"}
"""A test with one of these fixtures runs once on every engine."""


def rows() -> dict[str, list[str]]:
    """Read the table: topic → names of attacks and tests."""
    found = re.findall(r"^\| ([^|]+) \| ([a-z0-9_:, -]+) \|$", PAPER.read_text(), re.MULTILINE)
    return {what: names.split(", ") for what, names in found if names != "programs" and set(names) != {"-"}}


def pairs() -> dict[str, object]:
    """Tests of attacks with two parties, by name."""
    modules = (test_claims, test_host_memory, test_lifecycle, test_sessions, test_sharing)
    return {name: item for module in modules for name, item in vars(module).items() if name.startswith("test_")}


def test_table_and_kit_have_the_same_attacks() -> None:
    """Every attack has a row in the table, and every row names existing attacks."""
    cited = {name for names in rows().values() for name in names}
    kit = {attack.name for attack in ATTACKS} | {f"sessions:{name}" for name in test_sessions.ATTACKS}
    assert {name for name in cited if not name.startswith("test_")} == kit
    assert {name for name in cited if name.startswith("test_")} <= pairs().keys()


def test_attacks_in_the_table_run_on_each_engine() -> None:
    """A test without the fixture would run on one engine at most."""
    cited = {name for names in rows().values() for name in names if name.startswith("test_")}
    assert cited
    for name in cited:
        test = pairs()[name]
        assert callable(test)
        assert ON_EACH_ENGINE & inspect.signature(test).parameters.keys(), name


def test_every_row_has_an_attack() -> None:
    """There are at least 30 rows, each with a program."""
    assert len(rows()) >= 30
    assert all(rows().values())


def test_table_of_engines_is_the_one_that_the_tests_require() -> None:
    """`tests.runners.sandbox.kit.table` writes it, with at least 100 attacks."""
    assert read_table() == render_table()
    assert len(ATTACKS) >= 100
