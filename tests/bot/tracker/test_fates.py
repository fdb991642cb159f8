"""What became of the issues: read from the forge in few requests, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from bot.forge.github import open_forge, open_reader
from bot.forge.run_record import IssueRecord, VoidedVerdict
from bot.forge.sticky_comment import StickyComment, render_sticky_comment
from bot.tracker.fates import FateReader, refresh_fates
from bot.tracker.rows import Answer
from bot.tracker.sources import FolderSource, GithubSource, Selection
from bot.tracker.state import TrackerState, open_tracker_state
from runners.core.errors import InfraError
from tests.bot.forge.fake import ME, NOW, REPOSITORY, FakeGithub, Fault
from tests.bot.tracker.rows import make_row
from tests.bot.tracker.world import World, write_issue

SHA = "d" * 40


@pytest.fixture
def state(tmp_path: Path) -> TrackerState:
    return open_tracker_state(tmp_path / "tracker.sqlite")


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    with FakeGithub() as server:
        for number in (1, 2, 3):
            server.open_issue(number, "It fails.")
        yield server


def make_source(github: FakeGithub, state: TrackerState, *, reader: bool = False) -> GithubSource:
    forge = open_reader({"GITHUB_API_URL": github.url}) if reader else open_forge(github.environment())
    pause = refuse_to_wait
    return GithubSource(
        name=REPOSITORY, forge=forge, pages=state, count_requests=lambda: 0, pause=pause, log=lambda _: None
    )


def refuse_to_wait(_: float) -> None:
    raise InfraError("no time")


def answer_all(github: FakeGithub, state: TrackerState, verdict: str = "confirmed") -> None:
    """Keep an answer for every open issue, as a sweep does."""
    number = state.begin_sweep(NOW)
    for issue in make_source(github, state).list_issues(Selection()):
        row = make_row(issue.id, verdict=verdict, answered=NOW.isoformat())
        state.keep_answer(number, msgspec.structs.replace(row, issue=issue), None)


def refresh(github: FakeGithub, state: TrackerState, *, reader: bool = False) -> list[str]:
    """Refresh as after a sweep over the open issues. Return the messages."""
    said: list[str] = []
    source = make_source(github, state, reader=reader)
    listed = list(source.list_issues(Selection()))
    refresh_fates(FateReader(source=source, state=state, now=lambda: github.now, log=said.append), listed)
    return said


def test_a_closed_issue_that_left_the_list_is_found_with_its_commit(github: FakeGithub, state: TrackerState) -> None:
    answer_all(github, state)
    github.close_issue(1, commit=SHA)
    github.close_issue(2, "not_planned")
    assert refresh(github, state) == []
    rows, fates = state.list_rows(), state.list_fates()
    assert {id: (row.issue.open, row.issue.closed_as) for id, row in rows.items()} == {
        "1": (False, "completed"),
        "2": (False, "not_planned"),
        "3": (True, ""),
    }
    assert {id: fate.commit for id, fate in fates.items()} == {"1": SHA, "2": ""}
    assert fates["1"].closed == rows["1"].issue.closed == datetime.fromisoformat(github.issues[1]["closed_at"])


def test_a_closing_is_looked_up_once(github: FakeGithub, state: TrackerState) -> None:
    """Until the issue is closed anew. An unanswered issue, or one without a testcase, is not looked up."""
    answer_all(github, state)
    github.close_issue(1)
    refresh(github, state)
    github.log.clear()
    refresh(github, state)
    assert github.calls("GET", "/events") == []
    github.tick(600)
    github.close_issue(1, commit=SHA)
    github.issues[2]["state"] = "open"
    rows = state.list_rows()
    state.keep_rows([msgspec.structs.replace(rows["1"], issue=make_row("1").issue)])
    refresh(github, state)
    assert state.list_fates()["1"].commit == SHA


def test_an_issue_without_a_verdict_costs_no_request(github: FakeGithub, state: TrackerState) -> None:
    answer_all(github, state, verdict="no-repro")
    github.close_issue(1, commit=SHA)
    refresh(github, state)
    assert github.calls("GET", "/events") == []


@pytest.mark.parametrize(
    ("events", "commit"),
    [
        ([("referenced", 0, SHA), ("closed", 20, None)], SHA),
        ([("referenced", 0, SHA), ("closed", 4000, None)], ""),
        ([("closed", 0, SHA), ("reopened", 10, None), ("closed", 10, None)], ""),
        ([("closed", 0, SHA), ("reopened", 10, None)], ""),
        ([("labeled", 0, None), ("closed", 10, SHA), ("referenced", 10, "e" * 40)], SHA),
    ],
    ids=["merge", "mention", "closed-again", "reopened", "by-commit"],
)
def test_the_closing_commit_of_a_history(
    events: list[tuple[str, float, str | None]], commit: str, github: FakeGithub, state: TrackerState
) -> None:
    for name, seconds, sha in events:
        github.tick(seconds)
        github.add_event(1, name, sha)
    source = make_source(github, state)
    issue = next(one for one in source.list_issues(Selection()) if one.id == "1")
    assert source.fetch_closing_commit(issue) == commit


def void_comment() -> str:
    void = VoidedVerdict(by="wil", at=NOW, why="this is by design")
    return render_sticky_comment(StickyComment(body="x", record=IssueRecord(void=void), verdict="confirmed"))


def test_a_void_is_kept_also_after_a_later_answer(github: FakeGithub, state: TrackerState) -> None:
    answer_all(github, state)
    made = github.say(3, ME, void_comment())
    refresh(github, state)
    assert state.list_fates()["3"].voided == "confirmed"
    github.comments[made["id"]]["body"] = "another answer"
    refresh(github, state)
    assert state.list_fates()["3"].voided == "confirmed"


@pytest.mark.parametrize("reader", [True, False], ids=["without-account", "with-account"])
def test_a_stranger_voids_nothing(github: FakeGithub, state: TrackerState, reader: bool) -> None:
    answer_all(github, state)
    github.say(1, "eve", void_comment())
    github.say(2, ME, void_comment())
    refresh(github, state, reader=reader)
    assert set(state.list_fates()) == {"2"}


def test_a_forge_that_fails_is_read_from_the_same_time_again(github: FakeGithub, state: TrackerState) -> None:
    answer_all(github, state)
    github.say(3, ME, void_comment())
    github.faults.append(Fault(403, path="/issues/comments", message="Forbidden"))
    assert "not complete" in refresh(github, state)[0]
    github.tick(90 * 60)
    assert refresh(github, state) == []
    assert "3" in state.list_fates()


def test_a_file_that_was_closed_is_found(tmp_path: Path) -> None:
    write_issue(tmp_path / "issues", "one")
    world = World(folder=tmp_path / "issues", out=tmp_path / "out")
    world.sweep()
    write_issue(tmp_path / "issues", "one", front="state: closed\n")
    source = FolderSource(folder=world.folder, today=NOW.date())
    refresh_fates(FateReader(source=source, state=world.state, now=lambda: NOW, log=lambda _: None), [])
    assert not world.state.list_rows()["one.md"].issue.open


def test_answers_are_kept_beside_each_other(tmp_path: Path) -> None:
    """The truth ledger needs the verdict of the time before the issue was closed."""
    state = open_tracker_state(tmp_path / "tracker.sqlite")
    for at, verdict in (("2026-01-01T00:00:00+00:00", "confirmed"), ("2026-02-01T00:00:00+00:00", "fixed")):
        state.keep_answer(1, make_row("7", verdict=verdict, answered=at), None)
    state.keep_answer(1, make_row("7", verdict="failed", answered="2026-03-01T00:00:00+00:00"), None)
    assert state.list_answers() == [
        Answer(id="7", verdict="confirmed", confidence=0.9, answered="2026-01-01T00:00:00+00:00"),
        Answer(id="7", verdict="fixed", confidence=0.9, answered="2026-02-01T00:00:00+00:00"),
    ]
