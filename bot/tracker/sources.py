"""The sources of a tracker's issues: a repository on GitHub, or a folder of Markdown files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from bot.forge.contract import ForgeRefused, IssueBrief, IssuePage, IssueQuery, RateLimited, TrackerReader
from bot.forge.run_record import decode_record
from bot.forge.source import is_open, parse_issue
from bot.issue import Issue
from bot.report.comment import read_marker
from bot.tracker.rows import Fate, TrackedIssue
from runners.core.errors import InfraError, UserError

ATTEMPTS = 4
"""Attempts at a request that the forge does not answer. A rate limit is waited for as often as it is reached."""
FIRST_WAIT_S = 15.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The issues that a sweep is about."""

    state: Literal["open", "closed", "all"] = "open"
    labels: tuple[str, ...] = ()
    since: datetime | None = None
    limit: int | None = None
    shard: tuple[int, int] = (1, 1)
    """Number of this shard, from 1, and the number of shards: each Nth issue of the list."""


class PageCache(Protocol):
    """Keeps pages of a list for conditional requests."""

    def find_page(self, key: str) -> IssuePage | None: ...

    def keep_page(self, key: str, page: IssuePage) -> None: ...


class IssueSource(Protocol):
    """A tracker. ``name`` is for people and for file names."""

    @property
    def name(self) -> str: ...

    def list_issues(self, wanted: Selection) -> Iterator[TrackedIssue]:
        """Yield the issues, newest first, without pull requests.

        Raises:
            UserError: there is no such tracker.
            InfraError: the forge does not answer.
        """

    def has_issues(self) -> bool:
        """True if the tracker has an issue in any state."""

    def list_closed(self, since: datetime | None) -> Iterator[TrackedIssue]:
        """Yield the closed issues that changed since, if the tracker knows times of changes.

        Raises:
            InfraError: the forge does not answer.
        """

    def list_voids(self, since: datetime) -> Iterator[Fate]:
        """Yield the verdicts of ours that a maintainer withdrew, in comments that changed since.

        Raises:
            InfraError: the forge does not answer.
        """

    def fetch_closing_commit(self, issue: TrackedIssue) -> str:
        """Return the commit that closed an issue; empty if none did, or the tracker does not know.

        Raises:
            InfraError: the forge does not answer.
        """

    def fetch_issue(self, issue: TrackedIssue) -> Issue:
        """Return an issue's text.

        Raises:
            UserError: the text cannot be read.
            InfraError: the forge does not answer.
        """

    def count_requests(self) -> int:
        """Return the number of requests to a forge so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubSource:
    """A repository on GitHub. Safe for several threads: requests are sent one after the other."""

    name: str
    forge: TrackerReader
    pages: PageCache
    count_requests: Callable[[], int]
    pause: Callable[[float], None]
    """Waits; raises InfraError if the sweep has no time for it."""
    log: Callable[[str], None]
    url: str = "https://github.com"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def list_issues(self, wanted: Selection) -> Iterator[TrackedIssue]:
        query = IssueQuery(state=wanted.state, labels=wanted.labels, since=wanted.since)
        seen: set[int] = set()
        page = ""
        while True:
            read = self._fetch_page(query, page)
            for brief in read.issues:
                if not brief.is_pull_request and brief.number not in seen:  # a page may shift while it is read
                    seen.add(brief.number)
                    yield self._track(brief)
            if not read.next:
                return
            page = read.next

    def has_issues(self) -> bool:
        return next(self.list_issues(Selection(state="all")), None) is not None

    def list_closed(self, since: datetime | None) -> Iterator[TrackedIssue]:
        return self.list_issues(Selection(state="closed", since=since))

    def list_voids(self, since: datetime) -> Iterator[Fate]:
        login = self.forge.get_login()
        comments = self._ask(lambda: self.forge.list_changed_comments(self.name, since)).comments
        for comment in comments:
            marker = read_marker(comment.body)
            # Without our own account, any app's comment in our format counts: only apps of the repository write.
            is_ours = comment.author == login if login else comment.author.endswith("[bot]")
            if marker is not None and is_ours and (void := decode_record(comment.body).void) is not None:
                yield Fate(id=str(comment.number), voided=marker[0], voided_at=void.at)

    def fetch_closing_commit(self, issue: TrackedIssue) -> str:
        return self._ask(lambda: self.forge.fetch_closing_commit(self.name, int(issue.id)))

    def fetch_issue(self, issue: TrackedIssue) -> Issue:
        return self._ask(lambda: self.forge.fetch_issue(self.name, int(issue.id)))

    def _fetch_page(self, query: IssueQuery, page: str) -> IssuePage:
        key = f"{self.name} {query.state} {','.join(query.labels)} {query.since} {page}"
        kept = self.pages.find_page(key)
        etag = kept.etag if kept is not None else None
        read = self._ask(lambda: self.forge.fetch_issue_page(self.name, query, page, etag))
        if kept is not None and read.unchanged:
            return kept
        self.pages.keep_page(key, read)
        return read

    def _ask(self, request: Callable[[], T]) -> T:
        """Send a request; wait for a rate limit, and for a forge that does not answer."""
        attempt = 1
        while True:
            try:
                with self.lock:
                    return request()
            except RateLimited as limited:
                self.log(str(limited))
                self.pause(limited.wait)
            except ForgeRefused:
                raise
            except InfraError as error:
                if attempt == ATTEMPTS:
                    raise
                wait = FIRST_WAIT_S * 2 ** (attempt - 1)
                self.log(f"{error}; again in {wait:.0f} s")
                self.pause(wait)
                attempt += 1

    def _track(self, brief: IssueBrief) -> TrackedIssue:
        return TrackedIssue(
            id=str(brief.number),
            title=brief.title,
            url=f"{self.url}/{self.name}/issues/{brief.number}",
            labels=brief.labels,
            open=brief.open,
            locked=brief.locked,
            created=brief.created,
            closed=brief.closed,
            closed_as=brief.closed_as,
            revision=brief.updated.isoformat(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSource:
    """A folder of Markdown files, with front matter where a file needs it: ``created``, ``labels``, ``state``."""

    folder: Path
    today: date

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def count_requests(self) -> int:
        return 0

    def list_issues(self, wanted: Selection) -> Iterator[TrackedIssue]:
        everything = sorted(map(self._track, self._list_files()), key=lambda one: (one.created, one.id), reverse=True)
        for issue in everything:
            in_state = wanted.state == "all" or issue.open == (wanted.state == "open")
            is_recent = wanted.since is None or issue.created >= wanted.since
            if in_state and is_recent and set(wanted.labels) <= set(issue.labels):
                yield issue

    def has_issues(self) -> bool:
        return any(True for _ in self._list_files())

    def list_closed(self, since: datetime | None) -> Iterator[TrackedIssue]:
        return self.list_issues(Selection(state="closed"))  # a file has the time of its creation, not of its closing

    def list_voids(self, since: datetime) -> Iterator[Fate]:
        return iter(())

    def fetch_closing_commit(self, issue: TrackedIssue) -> str:
        return ""

    def fetch_issue(self, issue: TrackedIssue) -> Issue:
        path = self.folder / issue.id
        return parse_issue(_read_bytes(path), source=str(path), today=self.today)

    def _list_files(self) -> Iterator[Path]:
        """Yield every Markdown file below the folder, except README files."""
        for path in sorted(self.folder.rglob("*.md")):
            if path.is_file() and path.stem.lower() != "readme":
                yield path

    def _track(self, path: Path) -> TrackedIssue:
        """List a file. A file that is not an issue text is listed too: its row states why."""
        id = path.relative_to(self.folder).as_posix()
        try:
            data = _read_bytes(path)
            issue = parse_issue(data, source=str(path), today=self.today)
            opened = is_open(data, str(path))
        except UserError:
            return TrackedIssue(id=id, title=id, created=_at(self.today), revision="")
        return TrackedIssue(
            id=id,
            title=issue.title or id,
            labels=issue.labels,
            open=opened,
            created=_at(issue.created),
            revision=sha256(data).hexdigest()[:16],
        )


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _at(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
