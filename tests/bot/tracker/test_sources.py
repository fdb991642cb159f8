"""A tracker on GitHub: the right issues in few requests, a rate limit, and a forge that does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.forge.contract import IssuePage, IssueQuery, TrackerReader
from bot.forge.github import GithubForge, open_reader
from bot.tracker.sources import GithubSource, Selection
from bot.tracker.state import open_tracker_state
from runners.core.errors import InfraError, UserError
from tests.bot.forge.fake import NOW, REPOSITORY, FakeGithub, Fault
from tests.bot.forge.objects import stamp
from tests.bot.tracker.world import World, write_issue


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    """350 issues and pull requests: every third is a pull request, every second is closed."""
    with FakeGithub() as server:
        for number in range(1, 351):
            issue = server.open_issue(number, "It is slow.", title=f"Slow {number}")
            issue["created_at"] = stamp(NOW + timedelta(hours=number))
            if number % 3 == 0:
                issue["pull_request"] = {"url": "x"}
            if number % 2 == 0:
                issue["state"] = "closed"
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def source(github: FakeGithub, tmp_path: Path, pauses: list[float]) -> GithubSource:
    forge = open_reader({"GITHUB_API_URL": github.url, "REPROBOT_PACE": "off"})
    return make_source(forge, tmp_path, pauses)


def make_source(forge: GithubForge, tmp_path: Path, pauses: list[float]) -> GithubSource:
    return GithubSource(
        name=REPOSITORY,
        forge=forge,
        pages=open_tracker_state(tmp_path / "tracker.sqlite"),
        count_requests=forge.count_requests,
        pause=pauses.append,
        log=lambda _: None,
    )


def list_numbers(source: GithubSource, **wanted: object) -> list[int]:
    return [int(issue.id) for issue in source.list_issues(Selection(**wanted))]  # type: ignore[arg-type]


def test_open_issues_are_listed_newest_first_without_pull_requests(github: FakeGithub, source: GithubSource) -> None:
    wanted = [number for number in range(350, 0, -1) if number % 2 and number % 3]
    assert list_numbers(source) == wanted
    assert len(github.log) == source.count_requests() == 2


def test_state_labels_and_since_select(github: FakeGithub, source: GithubSource) -> None:
    github.issues[5]["labels"] = [{"name": "bug"}, {"name": "iree"}]
    github.issues[4]["labels"] = [{"name": "bug"}]
    github.issues[7]["updated_at"] = stamp(NOW + timedelta(days=30))
    assert list_numbers(source, labels=("bug", "iree")) == [5]
    assert list_numbers(source, state="closed", labels=("bug",)) == [4]
    assert list_numbers(source, state="all", labels=("bug",)) == [5, 4]
    assert list_numbers(source, since=datetime(2026, 12, 1, tzinfo=UTC)) == [7]
    assert len(list_numbers(source, state="all")) == sum(1 for number in range(1, 351) if number % 3)


class Spy:
    """Notes which pages were sent again."""

    def __init__(self, forge: TrackerReader) -> None:
        self.forge = forge
        self.unchanged: list[bool] = []
        self.fetch_issue = forge.fetch_issue
        self.get_login = forge.get_login
        self.list_changed_comments = forge.list_changed_comments
        self.fetch_closing_commit = forge.fetch_closing_commit

    def fetch_issue_page(
        self, repository: str, query: IssueQuery, page: str = "", etag: str | None = None
    ) -> IssuePage:
        read = self.forge.fetch_issue_page(repository, query, page, etag)
        self.unchanged.append(read.unchanged)
        return read


def test_an_unchanged_page_is_not_sent_again(github: FakeGithub, source: GithubSource) -> None:
    """A change of one issue changes its page alone, because the list is in the order of creation."""
    spy = Spy(source.forge)
    spied = replace(source, forge=spy)
    before = list_numbers(spied, state="all")
    github.issues[8]["title"] = "edited"
    assert list_numbers(spied, state="all") == before
    assert spy.unchanged == [False] * 4 + [True] * 3 + [False]


def test_rate_limit_is_waited_for(github: FakeGithub, source: GithubSource, pauses: list[float]) -> None:
    """In the middle of a list; nothing is lost, nothing comes twice."""
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(datetime.now(UTC).timestamp()) + 1_800)}
    limit = Fault(403, path="/issues$", message="API rate limit exceeded", headers=headers)
    github.hook = lambda number, after: github.faults.append(limit) if number == 2 and not after else None
    numbers = list_numbers(source, state="all")
    assert numbers == [number for number in range(350, 0, -1) if number % 3]
    assert len(pauses) == 1
    assert 1_700 < pauses[0] < 1_810


def test_a_limit_beyond_the_time_of_the_sweep_ends_it(github: FakeGithub, source: GithubSource) -> None:
    def refuse(seconds: float) -> None:
        raise InfraError("no time")

    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(datetime.now(UTC).timestamp()) + 1_800)}
    github.faults.append(Fault(403, message="API rate limit exceeded", headers=headers, times=99))
    with pytest.raises(InfraError, match="no time"):
        list_numbers(replace(source, pause=refuse))


def test_a_forge_that_does_not_answer_is_asked_again(
    github: FakeGithub, source: GithubSource, pauses: list[float]
) -> None:
    github.faults.append(Fault(502, path="/issues$", times=5))  # the client itself tries four times
    assert list_numbers(source)[0] == 349
    assert pauses == [15.0]


def test_a_repository_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with FakeGithub() as github:
        forge = open_reader({"GITHUB_API_URL": github.url, "REPROBOT_PACE": "off"})
        source = replace(make_source(forge, tmp_path, []), name="octo/none")
        with pytest.raises(UserError, match="refuses"):
            list_numbers(source)


def test_requests_are_counted_with_repeated_ones(github: FakeGithub, source: GithubSource) -> None:
    github.faults.append(Fault(502, path="/issues$", times=2))
    list_numbers(source)
    assert source.count_requests() == len(github.log)


def test_a_sweep_without_a_change_fetches_no_issue_and_writes_nothing(tmp_path: Path) -> None:
    with FakeGithub() as github:
        text = write_issue(tmp_path / "texts", "abort").read_text().rpartition("---\n")[2]
        title, _, body = text.partition("\n\n")
        github.open_issue(7, body, title=title[2:])
        github.open_issue(8, "What is new?", title="News")
        forge = open_reader({"GITHUB_API_URL": github.url, "REPROBOT_PACE": "off"})
        (tmp_path / "out").mkdir()
        world = World(folder=tmp_path, out=tmp_path / "out", source=make_source(forge, tmp_path / "out", []))
        world.sweep()
        assert world.verdicts() == {"7": "confirmed", "8": "no-claim"}
        asked = len(github.log)
        assert world.sweep().answered == 0
        assert [call.path for call in github.log[asked:]] == [f"/repos/{REPOSITORY}/issues"]
        github.say(7, "ada", "Is there news?")
        github.issues[7]["updated_at"] = stamp(NOW + timedelta(days=3))
        assert world.sweep().answered == 1  # a comment may hold a testcase
        assert {call.method for call in github.log} == {"GET"}
