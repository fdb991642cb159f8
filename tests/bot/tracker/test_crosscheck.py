"""Issues that behave alike are compared by runs of their minimised testcases, before anybody says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bench.tracker.duplicates import FIRST, Fault, StandIn, make_sweep, write_issue
from bot.issue import Issue
from bot.tracker.crosscheck import CrossChecker, confirm_duplicates
from bot.tracker.duplicates import list_candidates, mark_alike
from bot.tracker.rows import IssueRow
from bot.tracker.sources import Selection
from bot.tracker.sweep import list_tasks, sweep_tracker
from runners.core.errors import InfraError
from runners.core.packages.catalogue import load_catalogue
from runners.core.runs import RunRequest, RunResult
from tests.bot.tracker.rows import make_row

pytestmark = pytest.mark.thorough

CATALOGUE = load_catalogue()
RELEASES = [one.version for one in CATALOGUE.list_releases("tvm") if one.order >= CATALOGUE.find("tvm", FIRST).order]
ALWAYS = Fault(operator="roll", argument="m1", since=FIRST, before="", message="layout of roll is not supported here")
LATER = replace(ALWAYS, argument="m2", since="0.26.0")


@dataclass
class Tracker:
    """Issues about planted faults, and everything of a sweep with comparisons."""

    place: Path
    faults: tuple[Fault, ...]
    runs: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.place / "issues").mkdir()
        live = StandIn(self.faults, RELEASES)

        def count(request: RunRequest) -> RunResult:
            self.runs.append(request.version)
            return live(request)

        self.sweep = replace(
            make_sweep(self.place / "issues", self.place / "out", CATALOGUE, live, 1), log=self.said.append
        )
        counted = make_sweep(self.place / "issues", self.place / "out", CATALOGUE, count, 1)
        self.checker = CrossChecker(
            settings=self.sweep.settings,
            catalogue=CATALOGUE,
            run_plan=counted.run_plan,
            folder=self.place / "out/work",
        )

    def write(self, number: int, text: str) -> None:
        (self.place / f"issues/{number}.md").write_text(
            "---\ncreated: 2026-10-10\n---\n# roll fails\n\nWith apache-tvm 0.27.0 this fails:\n\n```python\n"
            f"import tvm\nfrom tvm import relax\n{text}\n```\n\nOutput:\n\n```\n"
            "tvm.error.InternalError: Check failed: (ok) is false: layout of roll is not supported here\n```\n"
        )

    def run(self) -> dict[str, IssueRow]:
        issues, tasks = list_tasks(self.sweep, Selection())
        sweep_tracker(self.sweep, issues, tasks)
        return self.sweep.state.list_rows()

    def confirm(self, fetch: Callable[..., Issue] | None = None) -> dict[str, tuple[str, ...]]:
        confirm_duplicates(self.checker, self.sweep.state, fetch or self.sweep.source.fetch_issue, self.said.append)
        return {id: row.same for id, row in self.sweep.state.list_rows().items()}


@pytest.fixture
def tracker(tmp_path: Path) -> Tracker:
    return Tracker(tmp_path, (ALWAYS, LATER))


PLAIN = 'y = relax.const(1)\nrelax.op.roll(y, mode="m1")'
OTHER_WORDS = 'size = 3\nvalue = relax.const(size)\nrelax.op.exp(value)\nrelax.op.roll(value, mode="m1")'
NEEDS_LATER = 'y = relax.const(2)\nrelax.op.fold_all(y)\nrelax.op.roll(y, mode="m1")'
OTHER_FAULT = 'y = relax.const(2)\nrelax.op.fold_all(y)\nrelax.op.roll(y, mode="m2")'


def test_two_testcases_of_one_fault_are_confirmed(tracker: Tracker) -> None:
    tracker.write(1, PLAIN)
    tracker.write(2, OTHER_WORDS)
    tracker.run()
    assert tracker.confirm() == {"1.md": ("2.md",), "2.md": ("1.md",)}


def test_a_part_that_cannot_run_hides_no_twin(tracker: Tracker) -> None:
    """The testcase as posted runs on the newest releases alone; what its failure needs runs on all of them."""
    tracker.write(1, PLAIN)
    tracker.write(2, NEEDS_LATER)
    rows = tracker.run()
    assert rows["2.md"].cells[FIRST] == "incompatible"
    assert {row.issue.id: row.like for row in mark_alike(list(rows.values()))} == {"1.md": (), "2.md": ()}
    assert tracker.confirm()["1.md"] == ("2.md",)


def test_runs_on_the_builds_of_the_other_refute_a_likeness(tracker: Tracker) -> None:
    """On the releases where both testcases run, nothing tells the two faults apart."""
    tracker.write(1, PLAIN)
    tracker.write(2, OTHER_FAULT)
    rows = tracker.run()
    assert len(list_candidates(list(rows.values()))) == 1
    assert tracker.confirm() == {"1.md": (), "2.md": ()}
    (check,) = tracker.sweep.state.list_pair_checks().values()
    assert check.why == f"on {FIRST} the minimised testcase of 2.md passes, and the other fails"


def test_a_build_that_runs_neither_testcase_as_posted_may_run_both_minimised(tracker: Tracker) -> None:
    """Both posted testcases use an API that came later, so nothing tells the faults apart before."""
    tracker.write(1, NEEDS_LATER)
    tracker.write(2, OTHER_FAULT)
    rows = tracker.run()
    assert rows["1.md"].cells[FIRST] == rows["2.md"].cells[FIRST] == "incompatible"
    assert tracker.confirm() == {"1.md": (), "2.md": ()}


def test_a_comparison_is_made_once(tracker: Tracker) -> None:
    """Until a text or a release changes one of the two."""
    tracker.write(1, PLAIN)
    tracker.write(2, OTHER_WORDS)
    tracker.run()
    before = tracker.confirm()
    tracker.runs.clear()
    assert tracker.confirm() == before
    assert tracker.runs == []
    tracker.write(2, OTHER_FAULT)
    tracker.run()
    assert tracker.confirm() == {"1.md": (), "2.md": ()}


def test_identical_testcases_need_no_run(tracker: Tracker) -> None:
    tracker.write(1, PLAIN)
    tracker.write(2, PLAIN)
    tracker.run()
    assert tracker.confirm()["2.md"] == ("1.md",)
    assert tracker.runs == []


def test_an_issue_that_cannot_be_fetched_is_not_confirmed(tracker: Tracker) -> None:
    """And is compared by the next sweep."""
    tracker.write(1, PLAIN)
    tracker.write(2, OTHER_WORDS)
    tracker.run()

    def fail(_: object) -> Issue:
        raise InfraError("the forge does not answer")

    assert tracker.confirm(fail) == {"1.md": (), "2.md": ()}
    assert "not compared" in tracker.said[-1]
    assert tracker.confirm()["1.md"] == ("2.md",)


def test_an_issue_that_was_edited_meanwhile_is_not_compared(tracker: Tracker) -> None:
    tracker.write(1, PLAIN)
    tracker.write(2, OTHER_WORDS)
    tracker.run()
    tracker.write(2, OTHER_FAULT)
    assert tracker.confirm() == {"1.md": (), "2.md": ()}
    assert "edited meanwhile" in tracker.said[-1]


def test_no_issue_gets_more_than_three(tracker: Tracker) -> None:
    for number in range(6):
        tracker.write(number, PLAIN)
    tracker.run()
    assert max(map(len, tracker.confirm().values())) == 3


def test_a_candidate_needs_equal_answers_where_both_have_one() -> None:
    one = make_row("1", cells={"0.25.0": "bad", "0.26.0": "bad"}, regressed_in="")
    agrees = make_row("2", cells={"0.25.0": "incompatible", "0.26.0": "bad"}, regressed_in="0.26.0")
    parts = make_row("3", cells={"0.25.0": "good", "0.26.0": "bad"})
    no_common = make_row("4", cells={"0.25.0": "incompatible", "0.26.0": "timeout"})
    pairs = [(a.issue.id, b.issue.id) for a, b in list_candidates([one, agrees, parts, no_common])]
    assert pairs == [("1", "2"), ("2", "3")]


def test_a_confirmed_pair_comes_first() -> None:
    rows = [make_row("1", same=("9",)), *(make_row(str(number)) for number in range(2, 7))]
    like = mark_alike(rows)[0].like
    assert like[0] == "9"
    assert len(like) == 3


def test_planted_issues_are_readable(tmp_path: Path) -> None:
    """The measurement plants texts that the product takes for bug reports."""
    rng = random.Random(7)
    write_issue(tmp_path, 1, ALWAYS, rng, RELEASES)
    assert "relax.op.roll(" in (tmp_path / "0001.md").read_text()
