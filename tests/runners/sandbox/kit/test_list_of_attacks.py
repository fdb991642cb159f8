"""The table of docs/sandbox-kit.md and the kit say the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.runners.sandbox import test_claims, test_lifecycle, test_sessions, test_sharing
from tests.runners.sandbox.kit.attacks import ATTACKS

PAPER = Path(__file__).parents[4] / "docs" / "sandbox-kit.md"
ON_EACH_ENGINE = {"engine", "room", "host"}
"""Fixtures by which a test runs once on every engine."""


def rows() -> dict[str, list[str]]:
    """What is tried → the names of what tries it."""
    found = re.findall(r"^\| ([^|]+) \| ([a-z0-9_:, -]+) \|$", PAPER.read_text(), re.MULTILINE)
    return {what: names.split(", ") for what, names in found if names != "by" and set(names) != {"-"}}


def pairs() -> dict[str, object]:
    """Tests of two parties, by name."""
    modules = (test_claims, test_lifecycle, test_sessions, test_sharing)
    return {name: item for module in modules for name, item in vars(module).items() if name.startswith("test_")}


def test_every_attack_of_the_kit_is_in_the_table_and_the_other_way_round() -> None:
    """A reader of the table has read what is tried; nothing in it is made up."""
    cited = {name for names in rows().values() for name in names}
    kit = {attack.name for attack in ATTACKS} | {f"rooms:{name}" for name in test_sessions.ATTACKS}
    assert {name for name in cited if not name.startswith("test_")} == kit
    assert {name for name in cited if name.startswith("test_")} <= pairs().keys()


def test_what_the_table_names_runs_on_each_engine() -> None:
    """A test without the fixture would show one engine at most."""
    cited = {name for names in rows().values() for name in names if name.startswith("test_")}
    assert cited
    for name in cited:
        test = pairs()[name]
        assert callable(test)
        assert ON_EACH_ENGINE & inspect.signature(test).parameters.keys(), name


def test_no_row_is_without_an_attack() -> None:
    """At least the 30 things that were asked for, each with a program."""
    assert len(rows()) >= 30
    assert all(rows().values())
