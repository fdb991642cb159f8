"""Posting after a sweep: a changed verdict edits our comment, and no change writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from bot.forge.github import open_forge
from bot.forge.run_record import RecordedRun, RunState, VoidedVerdict
from bot.forge.sticky_comment import StickyComment, parse_sticky_comment, publish_comment
from bot.settings import Events, Settings, UnaskedAnswers
from bot.tracker.cost import SweepSummary
from bot.tracker.post import PostCount, Posting, post_answers
from bot.tracker.sources import GithubSource
from bot.tracker.sweep import merge_answers
from runners.core.errors import InfraError
from tests.bot.forge.fake import ME, REPOSITORY, FakeGithub, Fault
from tests.bot.tracker.world import NEWEST, NOW, World, write_issue

pytestmark = pytest.mark.thorough  # each test runs whole sweeps


@dataclass
class Tracker:
    """A repository on a fake GitHub, and a sweep's folder for it."""

    github: FakeGithub
    world: World
    texts: Path
    waited: list[float] = field(default_factory=list)
    pause: Callable[[float], None] | None = None

    def open_issue(self, number: int, bad_to: str = "9") -> None:
        path = write_issue(self.texts, str(number), bad_to=bad_to)
        title, _, body = path.read_text().split("---\n")[2].partition("\n")
        self.github.open_issue(number, body, title=title.removeprefix("# "))

    def sweep_and_post(self) -> PostCount:
        forge = open_forge(self.github.environment())
        self.world.source = GithubSource(
            name=REPOSITORY,
            forge=forge,
            pages=self.world.state,
            count_requests=forge.count_requests,
            pause=self.waited.append,
            log=lambda _: None,
        )
        self.world.sweep()
        return self.post()

    def post(self) -> PostCount:
        posting = Posting(
            forge=open_forge(self.github.environment()),
            repository=REPOSITORY,
            settings=self.world.settings,
            state=self.world.state,
            out=self.world.out,
            pause=self.pause or self.waited.append,
            now=lambda: NOW,
            log=self.world.said.append,
        )
        return post_answers(posting, list(self.world.state.list_rows()))

    def list_writes(self) -> list[str]:
        return [call.method for call in self.github.log if call.method != "GET"]

    def list_labels(self, number: int) -> list[str]:
        return [label["name"] for label in self.github.issues[number]["labels"]]


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with FakeGithub() as github:
        world = World(folder=tmp_path / "none", out=tmp_path / "out")
        made = Tracker(github=github, world=world, texts=tmp_path / "texts")
        made.open_issue(1)
        made.open_issue(2, bad_to=NEWEST)
        github.open_issue(3, "I cannot find a number.", title="How fast is it?")
        yield made


def test_a_release_that_changes_a_verdict_edits_the_comment_and_tells_the_change(tracker: Tracker) -> None:
    assert tracker.sweep_and_post() == PostCount(created=2)
    assert tracker.github.ours(3) == []
    (first,) = tracker.github.ours(2)
    assert "**Confirmed.**" in first
    assert "Changed" not in first
    tracker.world.newest = NEWEST
    assert tracker.sweep_and_post() == PostCount(edited=1)
    (edited,) = tracker.github.ours(2)
    assert "**Already fixed**" in edited
    assert "> **Changed** from *Confirmed* to *Already fixed* by a sweep" in edited
    assert "(new release)" in edited
    assert "confirmed → fixed (`new release`)" in edited
    assert edited.index("Changed") < edited.index("Already fixed**:")
    assert tracker.list_labels(2) == ["repro: fixed"]
    assert "Changed" not in tracker.github.ours(1)[0]


def test_no_change_writes_nothing_and_asks_for_no_comment(tracker: Tracker) -> None:
    """The first sweep after a post reads the issues again, because our comment changed them."""
    tracker.sweep_and_post()
    tracker.github.log.clear()
    assert tracker.sweep_and_post() == PostCount()
    assert tracker.list_writes() == []
    tracker.github.log.clear()
    assert tracker.sweep_and_post() == PostCount()
    assert [call.path for call in tracker.github.log] == [f"/repos/{REPOSITORY}/issues"]


def test_a_verdict_that_stays_on_a_new_release_asks_for_nothing(tracker: Tracker) -> None:
    """Its comment is not even read."""
    tracker.sweep_and_post()
    tracker.world.newest = NEWEST
    tracker.world.sweep = real_sweep_then(tracker)  # type: ignore[method-assign]
    tracker.sweep_and_post()
    assert not [call for call in tracker.github.log if "/issues/1/comments" in call.path]


def real_sweep_then(tracker: Tracker) -> Callable[..., SweepSummary]:
    """Return a sweep that clears the log of requests at its end, so that only those of posting are left."""
    real = tracker.world.sweep

    def sweep() -> SweepSummary:
        done = real()
        tracker.github.log.clear()
        return done

    return sweep


def put_comment(tracker: Tracker, number: int, **changes: object) -> None:
    """Change the record of our comment, as another job would."""
    forge = open_forge(tracker.github.environment())
    body = tracker.github.ours(number)[0]
    sticky = parse_sticky_comment(body)
    record = msgspec.structs.replace(sticky.record, **changes)
    made = StickyComment(body=sticky.body, record=record, verdict=sticky.verdict, issue=sticky.issue)
    publish_comment(forge, REPOSITORY, number, made, login=ME)


def test_a_voided_verdict_stays_voided(tracker: Tracker) -> None:
    """A maintainer said no: only a command asks for another answer."""
    tracker.sweep_and_post()
    put_comment(tracker, 2, void=VoidedVerdict(by="wil", at=NOW, why="by design"))
    tracker.world.newest = NEWEST
    assert tracker.sweep_and_post() == PostCount()
    assert "Voided" in tracker.github.ours(2)[0]


def run(**changes: object) -> RecordedRun:
    made = RecordedRun(id="77.1", at=NOW, by="ada", testcase="0" * 64, counted=True)
    return msgspec.structs.replace(made, **changes)


def test_a_run_under_way_is_waited_for(tracker: Tracker) -> None:
    tracker.sweep_and_post()
    put_comment(tracker, 2, runs=(run(),))
    tracker.world.newest = NEWEST
    assert tracker.sweep_and_post() == PostCount(postponed=1)
    put_comment(tracker, 2, runs=(run(state=RunState.FAILED),))
    assert tracker.post() == PostCount(edited=1)


def test_a_later_run_is_not_overwritten(tracker: Tracker) -> None:
    tracker.sweep_and_post()
    later = run(at=NOW.replace(year=NOW.year + 1), state=RunState.DONE, verdict="flaky")
    put_comment(tracker, 2, runs=(later,))
    tracker.world.newest = NEWEST
    assert tracker.sweep_and_post() == PostCount()


def test_an_edited_or_locked_issue_is_left_alone(tracker: Tracker) -> None:
    """The answer is about the text before; the next sweep answers the new text."""
    tracker.sweep_and_post()
    tracker.world.newest = NEWEST
    real = tracker.post

    def edit_meanwhile() -> PostCount:
        tracker.github.edit_issue(2, "Another text.")
        return real()

    tracker.post = edit_meanwhile  # type: ignore[method-assign]
    assert tracker.sweep_and_post() == PostCount(postponed=1)
    assert "Changed" not in tracker.github.ours(2)[0]


def test_a_post_that_fails_is_tried_again(tracker: Tracker) -> None:
    tracker.github.faults.append(Fault(403, method="POST", path="/issues/2/comments", message="Forbidden"))
    assert tracker.sweep_and_post() == PostCount(created=1, postponed=1)
    assert tracker.sweep_and_post() == PostCount(created=1)
    assert [len(tracker.github.ours(number)) for number in (1, 2)] == [1, 1]


def test_a_kill_between_the_comment_and_its_record_writes_it_once(tracker: Tracker) -> None:
    tracker.sweep_and_post()
    rows = tracker.world.state.list_rows()
    tracker.world.state.keep_rows([msgspec.structs.replace(rows["1"], posted="")])
    assert tracker.sweep_and_post() == PostCount()
    assert len(tracker.github.ours(1)) == 1


def test_settings_that_want_no_answer_get_none(tracker: Tracker) -> None:
    tracker.world.settings = Settings(events=Events(post=UnaskedAnswers.NOTHING))
    assert tracker.sweep_and_post() == PostCount()
    assert tracker.list_writes() == []


def test_an_answer_of_another_machine_is_never_posted(tracker: Tracker, tmp_path: Path) -> None:
    """Its text came from a machine that ran strangers' code."""
    other = World(folder=tmp_path / "none", out=tmp_path / "merged")
    tracker.sweep_and_post()
    tracker.github.comments.clear()
    assert merge_answers(other.state, other.out, [(tracker.world.state, tracker.world.out)]) == 3
    rows = [msgspec.structs.replace(row, posted="") for row in other.state.list_rows().values()]
    other.state.keep_rows(rows)
    tracker.world = other
    assert tracker.post() == PostCount()
    assert tracker.github.ours(1) == []


def test_a_rate_limit_is_waited_for(tracker: Tracker) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}
    tracker.github.faults.append(
        Fault(403, method="GET", path="/issues/2/comments$", message="API rate limit exceeded", headers=headers)
    )
    assert tracker.sweep_and_post() == PostCount(created=2)
    assert len(tracker.waited) == 1


def test_a_limit_beyond_the_budget_postpones(tracker: Tracker) -> None:
    """No exception ends the sweep after its work is done."""

    def refuse(_: float) -> None:
        raise InfraError("no time")

    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}
    tracker.sweep_and_post()
    tracker.world.newest = NEWEST
    tracker.pause = refuse
    real = tracker.post

    def post_limited() -> PostCount:
        limited = Fault(403, method="GET", path="/issues/2$", message="API rate limit exceeded", headers=headers)
        tracker.github.faults.append(limited)
        return real()

    tracker.post = post_limited  # type: ignore[method-assign]
    assert tracker.sweep_and_post() == PostCount(postponed=1)


def test_a_confirmed_duplicate_is_named_and_withdrawn_again(tracker: Tracker) -> None:
    """As an edit of one line: the verdict and its history stay. Nothing is closed."""
    tracker.sweep_and_post()
    row = tracker.world.state.list_rows()["1"]
    tracker.world.state.keep_rows([msgspec.structs.replace(row, same=("2",))])
    assert tracker.post() == PostCount(edited=1)
    (named,) = tracker.github.ours(1)
    assert "**Same failure as #2.**" in named
    assert "**Confirmed.**" in named
    assert tracker.post() == PostCount()
    assert tracker.github.issues[1]["state"] == "open"
    row = tracker.world.state.list_rows()["1"]
    tracker.world.state.keep_rows([msgspec.structs.replace(row, same=())])
    assert tracker.post() == PostCount(edited=1)
    assert "Same failure" not in tracker.github.ours(1)[0]
