"""The watcher: what it sees, what it answers, and that nothing is lost or said twice when it is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.daemon.feed import find_undone_key, make_event_key, make_recheck, poll_repository
from bot.daemon.ledger import EventState, ReadPosition, open_ledger
from bot.daemon.steps import MAX_ATTEMPTS, Services
from bot.daemon.watch import watch_repositories
from bot.forge.run_record import RunState, decode_record
from runners.core.errors import InfraError
from runners.core.job_files import write_result
from runners.core.protocol import CellResult, JobPlan
from tests.bot.daemon import process as daemon
from tests.bot.forge.fake import REPOSITORY, FakeGithub, Fault

pytestmark = pytest.mark.thorough

ALL = (EventState.NEW, EventState.PLANNED, EventState.RAN)


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    with FakeGithub() as server:
        server.now = datetime.now(tz=UTC) - timedelta(minutes=5)
        yield server


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.daemon.watch.TICK_S", 0.01)


@pytest.fixture
def watcher(github: FakeGithub, tmp_path: Path) -> Services:
    made = daemon.watcher_of(github.environment(), tmp_path)
    assert look(made) == 0
    github.now = datetime.now(tz=UTC) + timedelta(seconds=1)
    return made


def look(watcher: Services) -> int:
    return poll_repository(watcher.forge, watcher.ledger, REPOSITORY, now=watcher.now())


def work(watcher: Services) -> None:
    """Until nothing is left to do."""
    watch_repositories(watcher, threading.Event(), threading.Event(), poll_s=1, jobs=1, drain=True)


def with_parts(watcher: Services, **more: Any) -> Services:
    names = ("forge", "ledger", "folder", "repositories", "open_catalogue", "attach", "run_plan", "now", "log")
    return Services(**{**{name: getattr(watcher, name) for name in names}, **more})


def verdicts(github: FakeGithub, number: int = 7) -> list[RunState]:
    return [run.state for run in decode_record(github.ours(number)[-1]).runs]


# ------------------------------------------------------------------------------------------------------ by polling


def test_an_issue_opened_while_watching_is_answered_once(github: FakeGithub, watcher: Services) -> None:
    """Seen by polling, run, answered by editing the one comment; looking again finds nothing new."""
    github.open_issue(7, daemon.CRASH)
    assert look(watcher) == 1
    work(watcher)
    assert len(github.ours(7)) == 1
    assert github.ours(7)[0].startswith("**Confirmed.**")
    assert verdicts(github) == [RunState.DONE]
    assert look(watcher) == 0
    work(watcher)
    assert len(github.ours(7)) == 1
    assert list((watcher.folder / "work").iterdir()) == []
    assert {path.suffix for path in (watcher.folder / "reports").iterdir()} == {".json", ".html"}


def test_what_was_there_before_the_watch_began_is_left_alone(github: FakeGithub, tmp_path: Path) -> None:
    """Neither old issues, nor old commands, nor labels that are on already."""
    github.open_issue(7, daemon.CRASH)
    github.say(7, "ada", "/repro run")
    watcher = daemon.watcher_of(github.environment(), tmp_path)
    client = watcher.forge
    client.ensure_label(REPOSITORY, "repro", colour="ffffff", description="")
    client.add_labels(REPOSITORY, 7, ("repro",))
    github.now = datetime.now(tz=UTC) - timedelta(minutes=1)
    assert [look(watcher), look(watcher)] == [0, 0]
    github.say(7, "bob", "me too")
    assert look(watcher) == 0


def test_a_label_put_on_an_old_issue_starts_a_run_and_again_after_it_was_off(
    github: FakeGithub, tmp_path: Path
) -> None:
    """The label is the button of those who do not write commands."""
    github.open_issue(7, daemon.CRASH)
    watcher = daemon.watcher_of(github.environment(), tmp_path)
    look(watcher)
    github.now = datetime.now(tz=UTC)
    watcher.forge.add_labels(REPOSITORY, 7, ("repro",))
    assert look(watcher) == 1
    work(watcher)
    assert verdicts(github) == [RunState.DONE]
    watcher.forge.remove_label(REPOSITORY, 7, "repro")
    github.say(7, "bob", "hm")
    assert look(watcher) == 0
    watcher.forge.add_labels(REPOSITORY, 7, ("repro",))
    assert look(watcher) == 1


def test_a_command_is_acknowledged_and_answered(github: FakeGithub, watcher: Services) -> None:
    """By somebody with permission, on an old issue; a command in a pull request or by us is none."""
    github.roles["wil"] = "write"
    github.open_issue(7, daemon.CRASH)["created_at"] = "2020-01-01T00:00:00Z"
    asked = github.say(7, "wil", "/repro run versions=0.26.0,0.27.0")
    github.say(7, github.me, "/repro run")
    assert look(watcher) == 1
    work(watcher)
    assert ("comment", asked["id"], "rocket") in github.reactions
    assert "`0.26.0`" in github.ours(7)[-1]


def test_looking_costs_nothing_while_nothing_changes(github: FakeGithub, watcher: Services) -> None:
    """Two requests, both answered 304, which the forge does not count."""
    github.open_issue(7, "no code")
    look(watcher)
    look(watcher)
    before = len(github.log)
    assert look(watcher) == 0
    paths = [call.path for call in github.log[before:]]
    assert paths == [f"/repos/{REPOSITORY}/issues", f"/repos/{REPOSITORY}/issues/comments"]
    cursor = watcher.ledger.read_position(f"{REPOSITORY}:issues")
    assert cursor is not None
    assert watcher.forge.list_changed_issues(REPOSITORY, cursor.since - timedelta(minutes=2), cursor.etag).unchanged


# ------------------------------------------------------------------------------------------------------ by webhook


def test_deliveries_doubled_and_out_of_order_are_one_event_each(github: FakeGithub, watcher: Services) -> None:
    """The comment's delivery first, then the opening's, each five times, and polling besides."""
    github.roles["wil"] = "write"
    github.open_issue(7, daemon.CRASH)
    comment = github.say(7, "wil", "/repro status")
    for _ in range(5):
        for kind, payload in (
            ("issue_comment", github.event("created", 7, comment=comment, by="wil")),
            ("issues", github.event("opened", 7)),
        ):
            key = make_event_key(kind, payload, (REPOSITORY,))
            assert key is not None
            watcher.ledger.add_event(key, kind, payload, watcher.now())
    look(watcher)
    work(watcher)
    assert len(watcher.ledger.list_due(watcher.now(), EventState.DONE)) == 2
    status = [body for body in github.ours(7) if "reprobot:reply" in body]
    assert len(status) == 1
    assert len(github.ours(7)) == 2


def test_only_watched_repositories_and_known_events_have_a_key(github: FakeGithub) -> None:
    """Whoever may sign for one repository cannot make us act in another; junk is dropped at the door."""
    github.open_issue(7, "x")
    opened = github.event("opened", 7)
    assert make_event_key("issues", opened, (REPOSITORY.upper(),)) == f"{REPOSITORY.upper()}#7:opened"
    assert make_event_key("issues", opened, ("octo/other",)) is None
    assert make_event_key("pull_request", opened, (REPOSITORY,)) is None
    for junk in (b"", b"[]", b"{", b"[" * 100_000, b"\xff", b'{"issue": 3}'):
        assert make_event_key("issues", junk, (REPOSITORY,)) is None
    label = json.loads(opened) | {"action": "unlabeled", "label": {"name": "repro"}}
    assert find_undone_key("issues", json.dumps(label).encode(), (REPOSITORY,)) == f"{REPOSITORY}#7:labeled:repro"
    assert find_undone_key("issues", opened, (REPOSITORY,)) is None


# ------------------------------------------------------------------------------------------------------ what fails


def test_a_forge_that_is_down_for_a_while_loses_nothing(github: FakeGithub, watcher: Services) -> None:
    """The step is put off and done later; the issue sees one comment."""
    github.open_issue(7, daemon.CRASH)
    look(watcher)
    github.faults.append(Fault(status=503, path="/issues/7", times=10))
    said: list[str] = []
    moment = [watcher.now()]

    def later() -> datetime:
        moment[0] += timedelta(minutes=1)
        return moment[0]

    work(with_parts(watcher, now=later, log=said.append))
    assert any("again in 30 s" in line for line in said)
    assert len(github.ours(7)) == 1
    assert verdicts(github) == [RunState.DONE]


def test_a_run_that_never_comes_to_an_end_is_said_at_last(github: FakeGithub, watcher: Services) -> None:
    """After some attempts the issue is told that there is no answer, through no fault of the testcase."""
    github.open_issue(7, daemon.CRASH)
    look(watcher)
    tries: list[Path] = []

    def broken(folder: Path, plan: JobPlan, sha256: str) -> None:
        tries.append(folder)
        raise InfraError("the disk is full: free some space")

    moment = [watcher.now()]

    def later() -> datetime:
        moment[0] += timedelta(minutes=5)
        return moment[0]

    work(with_parts(watcher, run_plan=broken, now=later))
    assert len(tries) == MAX_ATTEMPTS
    assert "the disk is full" in github.ours(7)[0]
    assert verdicts(github) == [RunState.FAILED]


def test_a_result_that_names_another_plan_is_no_verdict(github: FakeGithub, watcher: Services) -> None:
    """What the child wrote goes through the same door as an artifact."""
    github.open_issue(7, daemon.CRASH)
    look(watcher)

    def forged(folder: Path, plan: JobPlan, sha256: str) -> None:
        for cell in plan.cells:
            write_result(CellResult(cell=cell.id, plan_sha256="0" * 64), folder / "results")

    work(with_parts(watcher, run_plan=forged))
    assert "belongs to another plan" in github.ours(7)[0]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (daemon.CRASH + "\nThank you!\n", False),
        (daemon.CRASH.replace("tvm.compile", "tvm.build"), True),
        ("Never mind.", True),
    ],
)
def test_an_edit_while_it_runs_is_said_where_it_changes_the_testcase(
    edit: str, said: bool, github: FakeGithub, watcher: Services
) -> None:
    """The answer stays about the text that ran; the forge is asked anew, through the real client."""

    def probe(folder: Path, plan: JobPlan, sha256: str) -> None:
        github.edit_issue(7, edit)
        daemon.canned(folder, plan, sha256)

    github.open_issue(7, daemon.CRASH)
    look(watcher)
    work(with_parts(watcher, run_plan=probe))
    (answer,) = github.ours(7)
    assert ("was edited after this run began" in answer) is said
    assert "**Confirmed.**" in answer
    assert verdicts(github) == [RunState.DONE]


@pytest.mark.parametrize("tag", ['W/"0"', '"gone"', "not a tag", 'W/"' + "f" * 300 + '"', "*, *"])
def test_a_stale_tag_costs_a_reading_and_nothing_is_seen_twice(
    tag: str, github: FakeGithub, watcher: Services
) -> None:
    """A forge that forgot its tags answers in full: what was answered stays so, what is new is found."""
    github.open_issue(7, daemon.CRASH)
    assert look(watcher) == 1
    work(watcher)
    for name in (f"{REPOSITORY}:issues", f"{REPOSITORY}:comments"):
        cursor = watcher.ledger.read_position(name)
        assert cursor is not None
        watcher.ledger.move_position(name, ReadPosition(since=cursor.since, etag=tag))
    before = len(github.log)
    assert look(watcher) == 0
    listed = [call.status for call in github.log[before:] if call.path.endswith(("/issues", "/issues/comments"))]
    assert listed == [200, 200]
    github.open_issue(8, daemon.CRASH)
    assert look(watcher) == 1
    work(watcher)
    assert [len(github.ours(number)) for number in (7, 8)] == [1, 1]


def test_one_issue_that_trips_a_bug_does_not_stop_the_others(github: FakeGithub, watcher: Services) -> None:
    """The trace goes to the log, the event is kept, the next one is answered."""
    github.open_issue(7, daemon.CRASH)
    github.open_issue(8, daemon.CRASH)
    look(watcher)
    traces: list[str] = []

    def attach(issue: Any, settings: Any) -> Any:
        if issue.number == 7:
            raise KeyError("a bug")
        return issue

    stop = threading.Event()
    trapped = with_parts(watcher, attach=attach, log=traces.append)
    threading.Timer(3.0, stop.set).start()
    watch_repositories(trapped, stop, threading.Event(), poll_s=60, jobs=1)
    assert "KeyError" in traces[0]
    assert github.ours(8)[0].startswith("**Confirmed.**")
    assert [event.key for event in watcher.ledger.list_due(watcher.now() + timedelta(hours=1), *ALL)] == [
        f"{REPOSITORY}#7:opened"
    ]


def test_a_sweep_that_posts_asks_each_issue_once(github: FakeGithub, watcher: Services) -> None:
    """Its events go the same way; run again, it goes on where it was."""
    for number in (7, 8):
        github.open_issue(number, daemon.CRASH)
        key, payload = make_recheck(REPOSITORY, number)
        watcher.ledger.add_event(key, "sweep", payload, watcher.now())
    work(watcher)
    assert [len(github.ours(number)) for number in (7, 8)] == [1, 1]
    key, payload = make_recheck(REPOSITORY, 7)
    assert not watcher.ledger.add_event(key, "sweep", payload, watcher.now())


# ------------------------------------------------------------------------------------------------------ kill -9


class Killer:
    """Runs the watcher as a process, to its end or to a point where it is killed."""

    def __init__(self, github: FakeGithub, state: Path) -> None:
        self._github, self._state = github, state
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.bot.daemon.process"])

    def run(self, *, die_at: int = 0, at_call: tuple[int, bool] | None = None, count: str = "") -> int | None:
        process = self._context.Process(
            target=daemon.live, args=(self._github.environment(), str(self._state), die_at, count)
        )
        first, started = len(self._github.log), threading.Event()

        def hook(number: int, after: bool) -> None:
            if at_call == (number - first, after):
                started.wait(20)
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
                while Path(f"/proc/{process.pid}").exists():
                    time.sleep(0.005)  # it must not go on when it is answered

        self._github.hook = hook
        process.start()
        started.set()
        process.join(60)
        assert process.exitcode is not None
        self._github.hook = lambda number, after: None
        return process.exitcode


def asked(github: FakeGithub, state: Path) -> None:
    """An opened issue and a command with an answer in words, in the ledger."""
    github.roles["wil"] = "write"
    github.open_issue(7, daemon.CRASH)
    comment = github.say(7, "wil", "/repro help")
    kept = open_ledger(state / "ledger.sqlite")
    for kind, payload in (
        ("issues", github.event("opened", 7)),
        ("issue_comment", github.event("created", 7, comment=comment, by="wil")),
    ):
        key = make_event_key(kind, payload, (REPOSITORY,))
        assert key is not None
        kept.add_event(key, kind, payload, datetime.now(tz=UTC))
    kept.close()


def outcome(github: FakeGithub) -> tuple[list[str], list[RunState], list[str]]:
    """What an issue's reader sees in the end."""
    mine = github.ours(7)
    kinds = sorted("reply" if "reprobot:reply" in body else body.partition("\n")[0][:14] for body in mine)
    sheet = next(body for body in mine if "reprobot:reply" not in body)
    return (
        kinds,
        [run.state for run in decode_record(sheet).runs],
        [one["name"] for one in github.issues[7]["labels"]],
    )


@pytest.mark.thorough
def test_killed_anywhere_it_says_everything_once(tmp_path: Path) -> None:
    """kill -9 before each change of the ledger, around each write on the forge, and between reads.

    After a restart the issue looks as it does when nobody kills: one answer, one reply, one run, the same labels.
    """
    with FakeGithub() as calm:
        (tmp_path / "calm").mkdir()
        asked(calm, tmp_path / "calm")
        assert Killer(calm, tmp_path / "calm").run(count=str(tmp_path / "count")) == 0
        wanted = outcome(calm)
        calls = [call.method for call in calm.log]
    assert wanted[0] == ["**Confirmed.**"[:14], "reply"]
    statements = int((tmp_path / "count").read_text())
    points: list[dict[str, Any]] = [{"die_at": number} for number in range(1, statements + 1)]
    writes = [number for number, method in enumerate(calls, 1) if method != "GET"]
    before = sorted({*writes, *range(1, len(calls) + 1, 4)})  # between two reads nothing changes anywhere
    points += [{"at_call": (number, False)} for number in before]
    points += [{"at_call": (number, True)} for number in writes]
    assert len(writes) >= 5
    assert len(points) >= 20
    for number, point in enumerate(points):
        with FakeGithub() as github:
            state = tmp_path / str(number)
            state.mkdir()
            asked(github, state)
            killer = Killer(github, state)
            assert killer.run(**point) == -signal.SIGKILL, point
            assert killer.run() == 0, point
            assert outcome(github) == wanted, point
