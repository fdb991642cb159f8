"""The daemon: which events it sees, its answers, and that a kill neither loses nor doubles one."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.daemon.feed import find_undone_key, make_event_key, poll_repository
from bot.daemon.ledger import EventState, Ledger, ReadPosition, open_ledger
from bot.daemon.steps import MAX_ATTEMPTS, Services
from bot.daemon.watch import watch_repositories
from bot.forge.run_record import RunState, decode_record
from runners.core.database import Database
from runners.core.errors import InfraError
from runners.core.job_files import write_result
from runners.core.protocol import CellResult, JobPlan
from tests.bot.daemon import process as daemon
from tests.bot.forge.fake import REPOSITORY, FakeGithub, Fault
from tests.bot.forge.objects import stamp

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
def services(github: FakeGithub, tmp_path: Path) -> Services:
    made = daemon.make_services(github.environment(), tmp_path)
    assert poll(made) == 0
    github.now = datetime.now(tz=UTC) + timedelta(seconds=1)
    return made


def poll(services: Services) -> int:
    return poll_repository(services.forge, services.ledger, REPOSITORY, now=services.now())


def run_all(services: Services) -> None:
    """Run until no event is left."""
    watch_repositories(services, threading.Event(), threading.Event(), poll_s=1, jobs=1, drain=True)


def with_parts(services: Services, **more: Any) -> Services:
    names = ("forge", "ledger", "folder", "repositories", "open_catalogue", "attach", "run_plan", "now", "log")
    return Services(**{**{name: getattr(services, name) for name in names}, **more})


def verdicts(github: FakeGithub, number: int = 7) -> list[RunState]:
    return [run.state for run in decode_record(github.ours(number)[-1]).runs]


# ------------------------------------------------------------------------------------------------------ by polling


def test_an_issue_opened_while_watching_is_answered_once(github: FakeGithub, services: Services) -> None:
    """Found by polling, run, answered by one comment; the next poll finds no new event."""
    github.open_issue(7, daemon.CRASH)
    assert poll(services) == 1
    run_all(services)
    assert len(github.ours(7)) == 1
    assert github.ours(7)[0].startswith("**Confirmed.**")
    assert verdicts(github) == [RunState.DONE]
    assert poll(services) == 0
    run_all(services)
    assert len(github.ours(7)) == 1
    assert list((services.folder / "work").iterdir()) == []
    assert {path.suffix for path in (services.folder / "reports").iterdir()} == {".json", ".html"}


def test_code_in_a_reply_of_the_author_is_found_by_polling(github: FakeGithub, services: Services) -> None:
    """The list of comments does not say who opened the issue; the list of issues does."""
    github.open_issue(7, daemon.CRASH.replace("tvm.compile(", "tvm.compile(wrap)("))
    poll(services)
    run_all(services)
    assert "the definition of `wrap`" in github.ours(7)[0]
    github.say(7, "eve", "Me too:\n```python\ndef wrap(x): return x\n```")
    assert poll(services) == 0
    github.say(7, "ada", "```python\ndef wrap(x): return x\n```")
    assert poll(services) == 1
    run_all(services)
    assert "**Confirmed.**" in github.ours(7)[-1]


def test_events_before_the_first_start_are_ignored(github: FakeGithub, tmp_path: Path) -> None:
    """Old issues, old commands, and labels that were on before."""
    github.open_issue(7, daemon.CRASH)
    github.say(7, "ada", "/repro run")
    services = daemon.make_services(github.environment(), tmp_path)
    client = services.forge
    client.ensure_label(REPOSITORY, "repro", colour="ffffff", description="")
    client.add_labels(REPOSITORY, 7, ("repro",))
    github.now = datetime.now(tz=UTC) - timedelta(minutes=1)
    assert [poll(services), poll(services)] == [0, 0]
    github.say(7, "bob", "me too")
    assert poll(services) == 0


def test_a_label_on_an_old_issue_starts_a_run(github: FakeGithub, tmp_path: Path) -> None:
    """And again after it was removed."""
    github.open_issue(7, daemon.CRASH)
    services = daemon.make_services(github.environment(), tmp_path)
    poll(services)
    github.now = datetime.now(tz=UTC)
    services.forge.add_labels(REPOSITORY, 7, ("repro",))
    assert poll(services) == 1
    run_all(services)
    assert verdicts(github) == [RunState.DONE]
    services.forge.remove_label(REPOSITORY, 7, "repro")
    github.say(7, "bob", "hm")
    assert poll(services) == 0
    services.forge.add_labels(REPOSITORY, 7, ("repro",))
    assert poll(services) == 1


def test_a_command_is_acknowledged_and_answered(github: FakeGithub, services: Services) -> None:
    """From an account with permission, on an old issue; our own comment is no command."""
    github.roles["wil"] = "write"
    github.open_issue(7, daemon.CRASH)["created_at"] = "2020-01-01T00:00:00Z"
    asked = github.say(7, "wil", "/repro run versions=0.26.0,0.27.0")
    github.say(7, github.me, "/repro run")
    assert poll(services) == 1
    run_all(services)
    assert ("comment", asked["id"], "rocket") in github.reactions
    assert "`0.26.0`" in github.ours(7)[-1]


def test_polling_is_free_without_a_change(github: FakeGithub, services: Services) -> None:
    """Two requests, both answered 304, which the forge does not count."""
    github.open_issue(7, "no code")
    poll(services)
    poll(services)
    before = len(github.log)
    assert poll(services) == 0
    paths = [call.path for call in github.log[before:]]
    assert paths == [f"/repos/{REPOSITORY}/issues", f"/repos/{REPOSITORY}/issues/comments"]
    position = services.ledger.read_position(f"{REPOSITORY}:issues")
    assert position is not None
    assert services.forge.list_changed_issues(
        REPOSITORY, position.since - timedelta(minutes=2), position.etag
    ).unchanged


@pytest.mark.parametrize("text", ["I will look at this tomorrow.", "/repro status"])
def test_an_edited_comment_gives_no_command(text: str, github: FakeGithub, services: Services) -> None:
    """Found by polling after the edit, or seen before it without a command."""
    github.roles["wil"] = "write"
    github.open_issue(7, "no code")
    comment = github.say(7, "wil", text)
    if not text.startswith("/repro"):
        poll(services)
    run_all(services)
    comment.update(body="/repro rerun", updated_at=stamp(github.tick()))
    github.issues[7]["updated_at"] = stamp(github.tick())
    poll(services)
    keys = [event.key for event in services.ledger.list_due(services.now(), EventState.DONE, *ALL)]
    assert keys == [f"{REPOSITORY}#7:opened"]


def test_a_deleted_account_gives_no_command(github: FakeGithub, services: Services) -> None:
    """GitHub names no deleted account, so a comment of another one would pass for the author's."""
    github.open_issue(7, "no code")["user"] = None
    github.say(7, "eve", "/repro run\n```python\nimport tvm\nassert tvm.compile is None\n```")["user"] = None
    poll(services)
    run_all(services)
    assert github.calls("POST", "/comments$") == []


# ------------------------------------------------------------------------------------------------------ by webhook


def test_repeated_and_reordered_deliveries_are_one_event_each(github: FakeGithub, services: Services) -> None:
    """The comment's delivery before the issue's, each five times, and polling besides."""
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
            services.ledger.add_event(key, kind, payload, services.now())
    poll(services)
    run_all(services)
    assert len(services.ledger.list_due(services.now(), EventState.DONE)) == 2
    status = [body for body in github.ours(7) if "reprobot:reply" in body]
    assert len(status) == 1
    assert len(github.ours(7)) == 2


def test_only_watched_repositories_and_known_events_have_a_key(github: FakeGithub) -> None:
    """A key for one repository's webhook gives no access to another; malformed payloads are dropped."""
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


def test_an_outage_of_the_forge_loses_no_event(github: FakeGithub, services: Services) -> None:
    """The step is repeated later; the issue gets one comment."""
    github.open_issue(7, daemon.CRASH)
    poll(services)
    github.faults.append(Fault(status=503, path="/issues/7", times=10))
    said: list[str] = []
    moment = [services.now()]

    def later() -> datetime:
        moment[0] += timedelta(minutes=1)
        return moment[0]

    run_all(with_parts(services, now=later, log=said.append))
    assert any("again in 30 s" in line for line in said)
    assert len(github.ours(7)) == 1
    assert verdicts(github) == [RunState.DONE]


def test_a_run_that_keeps_failing_is_reported(github: FakeGithub, services: Services) -> None:
    """After some attempts a comment says that there is no answer, through no fault of the testcase."""
    github.open_issue(7, daemon.CRASH)
    github.say(7, "ada", "/repro run")
    poll(services)
    tries: list[Path] = []

    def broken(folder: Path, plan: JobPlan, sha256: str) -> None:
        tries.append(folder)
        raise InfraError("the disk is full: free some space")

    moment = [services.now()]

    def later() -> datetime:
        moment[0] += timedelta(minutes=5)
        return moment[0]

    run_all(with_parts(services, run_plan=broken, now=later))
    assert len(tries) == 2 * MAX_ATTEMPTS  # the opened issue's run, of which no comment speaks, and the command's
    assert "the disk is full" in github.ours(7)[0]
    assert set(verdicts(github)) == {RunState.FAILED}


def test_a_result_that_names_another_plan_is_no_verdict(github: FakeGithub, services: Services) -> None:
    """Results of the child process pass the same checks as an artifact."""
    github.open_issue(7, daemon.CRASH)
    github.say(7, "ada", "/repro run")
    poll(services)

    def forged(folder: Path, plan: JobPlan, sha256: str) -> None:
        for cell in plan.cells:
            write_result(CellResult(cell=cell.id, plan_sha256="0" * 64), folder / "results")

    run_all(with_parts(services, run_plan=forged))
    assert "belongs to another plan" in github.ours(7)[0]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (daemon.CRASH + "\nThank you!\n", False),
        (daemon.CRASH.replace("tvm.compile", "tvm.build"), True),
        ("Never mind.", True),
    ],
)
def test_an_edit_during_the_run_is_noted_if_it_changes_the_testcase(
    edit: str, said: bool, github: FakeGithub, services: Services
) -> None:
    """The answer is about the text that ran; the issue is read again through the real client."""

    def probe(folder: Path, plan: JobPlan, sha256: str) -> None:
        github.edit_issue(7, edit)
        daemon.canned(folder, plan, sha256)

    github.open_issue(7, daemon.CRASH)
    poll(services)
    run_all(with_parts(services, run_plan=probe))
    (answer,) = github.ours(7)
    assert ("was edited after this run began" in answer) is said
    assert "**Confirmed.**" in answer
    assert verdicts(github) == [RunState.DONE]


@pytest.mark.parametrize("tag", ['W/"0"', '"gone"', "not a tag", 'W/"' + "f" * 300 + '"', "*, *"])
def test_a_stale_etag_repeats_no_event(tag: str, github: FakeGithub, services: Services) -> None:
    """A forge without that ETag answers in full: known events stay done, new ones are found."""
    github.open_issue(7, daemon.CRASH)
    assert poll(services) == 1
    run_all(services)
    for name in (f"{REPOSITORY}:issues", f"{REPOSITORY}:comments"):
        position = services.ledger.read_position(name)
        assert position is not None
        services.ledger.move_position(name, ReadPosition(since=position.since, etag=tag))
    before = len(github.log)
    assert poll(services) == 0
    listed = [call.status for call in github.log[before:] if call.path.endswith(("/issues", "/issues/comments"))]
    assert listed == [200, 200]
    github.open_issue(8, daemon.CRASH)
    assert poll(services) == 1
    run_all(services)
    assert [len(github.ours(number)) for number in (7, 8)] == [1, 1]


def test_a_bug_on_one_issue_does_not_stop_the_others(github: FakeGithub, services: Services) -> None:
    """The traceback is logged, the event is kept, the next issue is answered."""
    github.open_issue(7, daemon.CRASH)
    github.open_issue(8, daemon.CRASH)
    poll(services)
    traces: list[str] = []

    def attach(issue: Any, settings: Any) -> Any:
        if issue.number == 7:
            raise KeyError("a bug")
        return issue

    stop = threading.Event()
    trapped = with_parts(services, attach=attach, log_traceback=traces.append)
    threading.Timer(3.0, stop.set).start()
    watch_repositories(trapped, stop, threading.Event(), poll_s=60, jobs=1)
    assert "KeyError" in traces[0]
    assert github.ours(8)[0].startswith("**Confirmed.**")
    assert [event.key for event in services.ledger.list_due(services.now() + timedelta(hours=1), *ALL)] == [
        f"{REPOSITORY}#7:opened"
    ]


# ------------------------------------------------------------------------------------------------------ faults


class Clock:
    """A clock that moves with each look, so that no test waits."""

    def __init__(self, minutes: float = 2) -> None:
        self._step = timedelta(minutes=minutes)
        self._now = datetime.now(tz=UTC)
        self.last = datetime.max.replace(tzinfo=UTC)
        self.at_last: Callable[[], None] = lambda: None

    def __call__(self) -> datetime:
        self._now += self._step
        if self._now >= self.last:
            self.at_last()
        return self._now


SOON = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4000000000"}
FAULTS = {
    "401": {"status": 401, "message": "Bad credentials", "times": 3},
    "403": {"status": 403, "message": "Forbidden", "times": 3},
    "404": {"status": 404, "message": "Not Found"},
    "410": {"status": 410, "message": "Gone"},
    "422": {"status": 422, "message": "Validation Failed", "times": 3},
    "500": {"status": 500, "times": 9},
    "502-after": {"status": 502, "times": 4, "after": True},
    "cut": {"status": 0, "times": 9},
    "rate-limit": {"status": 403, "message": "API rate limit exceeded", "headers": SOON, "times": 3},
    "days": {"status": 429, "headers": {"Retry-After": "999999"}, "times": 3},
    "no-json": {"status": 200, "message": "not what was asked for", "times": 3},
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_any_request_loses_and_doubles_nothing(kind: str, tmp_path: Path) -> None:
    """In the end the issue looks as without the fault: one answer, one reply, one run, the same labels.

    Each kind of fault comes at every fourth request, and all kinds together at each.
    """

    def play(folder: Path, at: int) -> tuple[object, int]:
        with FakeGithub() as github:
            folder.mkdir()
            asked(github, folder)
            first = len(github.log)

            def add_fault(number: int, after: bool) -> None:
                if after and number - first == at:
                    github.faults.append(Fault(**FAULTS[kind]))  # type: ignore[arg-type]  # values by name

            github.hook = add_fault
            services = daemon.make_services(github.environment(), folder, now=Clock())
            add_fault(first, True)
            run_all(services)
            assert services.ledger.list_unfinished() == ()
            services.ledger.close()
            return outcome(github), len(github.log) - first

    wanted, count = play(tmp_path / "calm", -1)
    assert count > 15
    for at in range(list(FAULTS).index(kind) % 4, count, 4):
        assert play(tmp_path / str(at), at)[0] == wanted, f"{kind} at request {at + 1}"


@pytest.mark.parametrize("status", [401, 403, 404, 422])
def test_a_refusal_for_a_day_loses_no_event_and_no_result(
    status: int, github: FakeGithub, services: Services
) -> None:
    """It begins when one issue's testcase has run, and another issue's has not been planned."""
    clock, ran = Clock(minutes=15), list[str]()

    def refuse_after_run(folder: Path, plan: JobPlan, sha256: str) -> None:
        daemon.canned(folder, plan, sha256)
        if not ran:
            github.open_issue(8, daemon.CRASH)
            key, opened = f"{REPOSITORY}#8:opened", github.event("opened", 8)
            queue = open_ledger(services.folder / "ledger.sqlite")
            queue.add_event(key, "issues", opened, clock())
            queue.close()
            github.faults.append(Fault(status=status, times=10**6, message="no"))
            clock.at_last = lambda: github.faults.clear()
            clock.last = clock() + timedelta(days=1)
        ran.append(sha256)

    github.open_issue(7, daemon.CRASH)
    poll(services)
    stop, answers = threading.Event(), list[str]()

    def stop_after_two(line: str) -> None:
        answers.extend([line] if "answered: " in line else [])
        if len(answers) == 2:
            stop.set()

    limit = threading.Timer(120, stop.set)
    limit.start()
    watched = with_parts(services, run_plan=refuse_after_run, now=clock, log=stop_after_two)
    watch_repositories(watched, stop, threading.Event(), poll_s=10**6, jobs=1)
    limit.cancel()
    assert clock() > clock.last
    assert len(ran) == 2
    assert [len(github.ours(number)) for number in (7, 8)] == [1, 1]
    assert [verdicts(github, number) for number in (7, 8)] == [[RunState.DONE]] * 2


class FullDisk(sqlite3.Connection):
    """A connection on which some changes fail, as on a full disk."""

    fails: Iterator[bool] = iter(())

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if not sql.startswith(("SELECT", "PRAGMA", "ROLLBACK")) and next(self.fails, False):
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *values)


def test_a_full_disk_at_any_change_of_the_ledger_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on when there is space again. Each change fails five times in turn."""
    monkeypatch.setattr("bot.daemon.watch.LEDGER_WAIT_S", 0.01)

    def play(folder: Path, at: int) -> tuple[object, int]:
        with FakeGithub() as github:
            folder.mkdir()
            asked(github, folder)
            sql = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None, factory=FullDisk)
            changes = 0

            def fail_five_times() -> Iterator[bool]:
                nonlocal changes
                for changes in itertools.count(1):
                    yield at < changes <= at + 5

            sql.fails = fail_five_times()
            ledger = Ledger(Database(sql, folder / "ledger.sqlite"))
            run_all(daemon.make_services(github.environment(), folder, ledger=ledger, now=Clock()))
            sql.close()
            return outcome(github), changes

    wanted, count = play(tmp_path / "calm", 10**6)
    assert count > 4
    for at in range(count):
        assert play(tmp_path / str(at), at)[0] == wanted, f"change {at + 1}"


def test_a_full_database_is_an_infrastructure_error(tmp_path: Path) -> None:
    """SQLite's own error, also inside a transaction; afterwards the ledger can be used again."""
    sql = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    open_ledger(tmp_path / "ledger.sqlite").close()
    ledger, now = Ledger(Database(sql, tmp_path / "ledger.sqlite")), datetime.now(tz=UTC)
    sql.execute("PRAGMA max_page_count = 8")
    with pytest.raises(InfraError, match="full"):
        ledger.add_event("a#1:opened", "issues", b"x" * 100_000, now)
    with pytest.raises(InfraError, match="full"), ledger.begin_transaction():
        ledger.add_event("a#1:opened", "issues", b"x" * 100_000, now)
    sql.execute("PRAGMA max_page_count = 10000")
    with ledger.begin_transaction():
        assert ledger.add_event("a#1:opened", "issues", b"x" * 100_000, now)
    ledger.close()


def test_a_damaged_ledger_is_said_and_does_not_end_the_daemon(tmp_path: Path) -> None:
    """Its operator can put a copy in place. The pages after the first are overwritten, as a faulty disk may do."""
    path = tmp_path / "ledger.sqlite"
    ledger = open_ledger(path)
    for number in range(100):
        ledger.add_event(f"a#{number}:opened", "issues", b"x" * 1000, datetime.now(tz=UTC))
    ledger.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    stop, said = threading.Event(), list[str]()

    def log(line: str) -> None:
        said.append(line)
        stop.set()

    with FakeGithub() as github:
        services = daemon.make_services(github.environment(), tmp_path, log=log)
        watch_repositories(services, stop, threading.Event(), poll_s=10**6, jobs=1)
    assert re.search(rf"{re.escape(str(path))} cannot be (?:read|changed)", said[0])
    assert "restore it from a copy" in said[0]


# ------------------------------------------------------------------------------------------------------ kill -9


class Killer:
    """Runs the daemon as a process, to its end or to a point where it is killed."""

    def __init__(self, github: FakeGithub, state: Path) -> None:
        self._github, self._state = github, state
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.bot.daemon.process"])

    def run(self, *, die_at: int = 0, at_call: tuple[int, bool] | None = None, count: str = "") -> int | None:
        process = self._context.Process(
            target=daemon.run_until_killed, args=(self._github.environment(), str(self._state), die_at, count)
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
    """Add an opened issue and a command with a reply to the ledger."""
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
    """Return the issue's comments, runs and labels in the end."""
    mine = github.ours(7)
    kinds = sorted("reply" if "reprobot:reply" in body else body.partition("\n")[0][:14] for body in mine)
    sticky = next(body for body in mine if "reprobot:reply" not in body)
    return (
        kinds,
        [run.state for run in decode_record(sticky).runs],
        [one["name"] for one in github.issues[7]["labels"]],
    )


@pytest.mark.thorough
def test_killed_anywhere_it_writes_everything_once(tmp_path: Path) -> None:
    """kill -9 before each change of the ledger, around each write on the forge, and between reads.

    After a restart the issue looks as without a kill: one answer, one reply, one run, the same labels.
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
