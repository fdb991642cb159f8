"""How growth is measured: longer testcases, steps in turns, and the table."""

from __future__ import annotations

import ast
import re

import pytest

from bench.speed.growth import (
    TVM,
    Measured,
    Step,
    add_statements,
    count_statements,
    format_rows,
    measure_in_turns,
    read_runs_made,
)
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from tests.corpus.cases import TODAY


@pytest.mark.parametrize("count", [0, 1, 1188])
def test_added_statements_are_part_of_the_testcase(count: int) -> None:
    """The testcase is read as before, and is valid Python."""
    text = TVM.read_text()
    padded = add_statements(text, count, first=5)
    assert count_statements(padded) == count_statements(text) + count
    found = extract(parse_issue(padded.encode(), source="a.md", today=TODAY))
    assert isinstance(found, Repro)
    (code,) = found.testcase.files.values()
    assert len(re.findall(r"^padding_", code, re.MULTILINE)) == count
    ast.parse(code)


def test_steps_take_turns_and_the_first_is_their_measure() -> None:
    calls: list[str] = []

    def make(label: str, seconds: float) -> Step:
        def measure() -> Measured:
            calls.append(label)
            return Measured(seconds, 3)

        return Step(label, measure)

    steps = [make("1", 2.0), make("2", 3.0)]
    measured = measure_in_turns(steps, 2)
    assert calls == ["1", "1", "2", "2", "1"]
    assert list(format_rows("releases", ["1", "2"], measured)) == [
        "| releases | 1 | 2.00 (2.00 … 2.00) | 1.00 (1.00 … 1.00) | 3 |",
        "| releases | 2 | 3.00 (3.00 … 3.00) | 1.50 (1.50 … 1.50) | 3 |",
    ]


def test_the_runs_of_a_sweep_are_read_from_its_summary() -> None:
    assert read_runs_made(["1 issues: 1 answered", "10 runs made, 0 from the ledger; 7 s"]) == 10
