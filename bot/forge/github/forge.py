"""The ``Forge`` contract on GitHub's REST API."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from github import Github, GithubException

from bot.forge.contract import (
    MAX_COMMENTS,
    MAX_RECENT,
    CommentListing,
    CommentTarget,
    ForgeRefused,
    Gone,
    IssueBrief,
    IssueListing,
    IssuePage,
    IssueQuery,
    IssueState,
    IssueTarget,
    Permission,
    PostedComment,
    RateLimited,
    Reaction,
    ReactionTarget,
)
from bot.forge.github.answers import NotFound, Page, fetch_rows, translate_errors
from bot.forge.payloads import (
    CommentData,
    FileData,
    IssueData,
    IssueEvent,
    Label,
    ReactionData,
    find_closing_commit,
    to_brief,
    to_issue,
    to_posted_comment,
    was_transferred,
)
from bot.issue import Comment, Issue
from bot.settings import PATH as SETTINGS_PATH
from runners.core.errors import InfraError, UserError

FIRST_COMMENTS = 30
"""A testcase that is not in the description is usually in one of the first comments of its author."""
MAX_LABELLED = 100
MAX_EVENTS = 1_000
MAX_REACTIONS = 300
MAX_SETTINGS = 64 * 1024
MAX_WAIT = 120
"""Seconds to wait for a rate limit. PyGithub's ``max_rate_limit_wait`` does not cap ``Retry-After``; urllib3's
``retry_after_max`` does. A longer limit is an error, whose message states this."""
WRITE_ATTEMPTS = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubForge:
    """The contract over two clients: ``reads`` tries again by itself, ``writes`` never does.

    Every comment is written once. PyGithub's own retry sends a POST again after a 502 or a broken connection that
    came after the comment was stored. `_write_once` looks for the comment first.
    """

    reads: Github
    writes: Github
    login: str
    """The account that writes our comments."""
    pause: Callable[[float], None] = time.sleep
    count_requests: Callable[[], int] = lambda: 0
    """The number of HTTP requests so far, repeated ones included."""

    def get_login(self) -> str:
        return self.login

    # ------------------------------------------------------------------------------------------ reading

    def fetch_issue(self, repository: str, number: int) -> Issue:
        address = f"{repository}#{number}"
        try:
            with translate_errors(address, may_be_missing=True):
                data, _ = self._fetch_issue_data(repository, number)
                if was_transferred(data, repository):
                    raise ForgeRefused(f"{address} was moved to another repository: name it there")
                if data.pull_request is not None:
                    raise ForgeRefused(f"{address} is a pull request: name an issue")
                comments = self._fetch_first_comments(repository, number)
        except NotFound as missing:
            raise ForgeRefused(
                f"{address} cannot be read (GitHub answers {missing.status}): check repository and number"
            ) from None
        return to_issue(data, repository, comments)

    def fetch_state(self, repository: str, number: int) -> IssueState | Gone:
        first = self._read_state(repository, number)
        return self._read_state(repository, number) if isinstance(first, Gone) else first

    def _read_state(self, repository: str, number: int) -> IssueState | Gone:
        try:
            with translate_errors(f"{repository}#{number}", may_be_missing=True):
                data, headers = self._fetch_issue_data(repository, number)
                if was_transferred(data, repository):
                    return Gone(reason="transferred")
                comments = self._fetch_first_comments(repository, number)
        except NotFound as missing:
            return Gone(reason="deleted" if missing.status == 410 else "hidden")
        return IssueState(
            issue=to_issue(data, repository, comments),
            open=data.state == "open",
            locked=data.locked,
            is_pull_request=data.pull_request is not None,
            updated=data.updated_at,
            etag=headers.get("etag"),
        )

    def _fetch_issue_data(self, repository: str, number: int) -> tuple[IssueData, Mapping[str, str]]:
        headers, data = self.reads.requester.requestJsonAndCheck("GET", f"/repos/{repository}/issues/{number}")
        return msgspec.convert(data, IssueData), headers

    def _fetch_first_comments(self, repository: str, number: int) -> tuple[Comment, ...]:
        url = f"/repos/{repository}/issues/{number}/comments"
        _, data = self.reads.requester.requestJsonAndCheck("GET", url, parameters={"per_page": str(FIRST_COMMENTS)})
        rows = msgspec.convert(data, list[CommentData])
        return tuple(Comment(author=row.author, body=row.body or "") for row in rows)

    def fetch_permission(self, repository: str, login: str) -> Permission:
        url = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
        data = self._fetch_if_present(url, f"the permission of an account in {repository}")
        if data is None:
            return Permission.NONE
        # An organisation's custom role has its own name; `permission` then has the built-in equivalent.
        for word in (data.get("role_name"), data.get("permission")):
            if isinstance(word, str) and word.upper() in Permission.__members__:
                return Permission[word.upper()]
        return Permission.NONE

    def fetch_settings(self, repository: str) -> bytes | None:
        url = f"/repos/{repository}/contents/{SETTINGS_PATH}"
        data = self._fetch_if_present(url, f"{SETTINGS_PATH} of {repository}")
        if data is None:
            return None
        refusal = UserError(f"{SETTINGS_PATH} of {repository} is no file of at most {MAX_SETTINGS // 1024} KiB")
        try:
            file = msgspec.convert(data, FileData)
            if file.encoding != "base64" or file.size > MAX_SETTINGS:
                raise refusal
            return base64.b64decode(file.content)
        except (msgspec.ValidationError, binascii.Error):
            raise refusal from None

    def list_comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        url = f"/repos/{repository}/issues/{number}/comments"
        with translate_errors(f"the comments of {repository}#{number}"):
            rows = islice(fetch_rows(self.reads, url, CommentData), MAX_COMMENTS)
            return tuple(to_posted_comment(row) for row in rows)

    def list_labelled_issues(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        query = {"state": "open", "labels": label, "sort": "updated", "direction": "asc"}
        with translate_errors(f"the issues of {repository}"):
            rows = fetch_rows(self.reads, f"/repos/{repository}/issues", IssueData, query)
            return tuple(to_brief(row) for row in islice(rows, MAX_LABELLED))

    def list_changed_issues(self, repository: str, since: datetime | None, etag: str | None = None) -> IssueListing:
        query = {"state": "all", "sort": "updated", "direction": "asc", **_format_since(since)}
        with translate_errors(f"the issues of {repository}"):
            first = Page.fetch_first(self.reads, f"/repos/{repository}/issues", query, etag)
            if first is None:
                return IssueListing(issues=(), etag=etag, unchanged=True)
            rows = islice(first.iterate_rows(self.reads), MAX_RECENT)
            briefs = (to_brief(msgspec.convert(row, IssueData)) for row in rows)
            return IssueListing(issues=tuple(one for one in briefs if not one.is_pull_request), etag=first.etag)

    def fetch_issue_page(
        self, repository: str, query: IssueQuery, page: str = "", etag: str | None = None
    ) -> IssuePage:
        # By date of creation: a change of one issue then changes one page, and the other pages answer 304.
        parameters = {"state": query.state, "sort": "created", "direction": "desc", **_format_since(query.since)}
        if query.labels:
            parameters["labels"] = ",".join(query.labels)
        with translate_errors(f"the issues of {repository}"):
            if page:
                read = Page.fetch_next(self.reads, page, etag)
            else:
                read = Page.fetch_first(self.reads, f"/repos/{repository}/issues", parameters, etag)
            if read is None:
                return IssuePage(etag=etag, unchanged=True)
            rows = tuple(to_brief(msgspec.convert(row, IssueData)) for row in read.rows)
            return IssuePage(issues=rows, next=read.next, etag=read.etag)

    def list_changed_comments(
        self, repository: str, since: datetime | None, etag: str | None = None
    ) -> CommentListing:
        query = {"sort": "updated", "direction": "asc", **_format_since(since)}
        with translate_errors(f"the comments in {repository}"):
            first = Page.fetch_first(self.reads, f"/repos/{repository}/issues/comments", query, etag)
            if first is None:
                return CommentListing(comments=(), etag=etag, unchanged=True)
            rows = islice(first.iterate_rows(self.reads), MAX_RECENT)
            comments = (to_posted_comment(msgspec.convert(row, CommentData)) for row in rows)
            return CommentListing(comments=tuple(comments), etag=first.etag)

    def fetch_closing_commit(self, repository: str, number: int) -> str:
        url = f"/repos/{repository}/issues/{number}/events"
        with translate_errors(f"the events of {repository}#{number}"):
            rows = islice(fetch_rows(self.reads, url, IssueEvent), MAX_EVENTS)
            return find_closing_commit(tuple(rows))

    def list_labels(self, repository: str, number: int) -> tuple[str, ...]:
        with translate_errors(f"the labels of {repository}#{number}"):
            url = f"/repos/{repository}/issues/{number}/labels"
            return tuple(label.name for label in fetch_rows(self.reads, url, Label))

    def _fetch_if_present(self, url: str, subject: str) -> Any:
        """Return the data, or None if two requests were answered 404 or 410: one such answer may be a fault."""
        for _ in range(2):
            with suppress(NotFound), translate_errors(subject, may_be_missing=True):
                return self._fetch_json(url)
        return None

    def _fetch_json(self, url: str) -> Any:
        return self.reads.requester.requestJsonAndCheck("GET", url)[1]

    # ------------------------------------------------------------------------------------------ writing

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        url = f"/repos/{repository}/issues/{number}/comments"

        def send_comment() -> PostedComment:
            return to_posted_comment(msgspec.convert(self._send_json("POST", url, {"body": body}), CommentData))

        def find_comment() -> PostedComment | None:
            own = (one for one in reversed(self.list_comments(repository, number)) if one.author == self.login)
            return next((one for one in own if one.body.strip() == body.strip()), None)

        return self._write_once(f"a comment on {repository}#{number}", send_comment, find_comment)

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment:
        url = f"/repos/{repository}/issues/comments/{comment}"

        def send_edit() -> PostedComment:
            return to_posted_comment(msgspec.convert(self._send_json("PATCH", url, {"body": body}), CommentData))

        return self._write_once(f"our comment {comment} in {repository}", send_edit)

    def delete_comment(self, repository: str, comment: int) -> None:
        url = f"/repos/{repository}/issues/comments/{comment}"
        self._write_once(f"our comment {comment} in {repository}", lambda: self._send_removal(url))

    def has_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> bool:
        return bool(self._list_own_reactions(repository, target, reaction))

    def remove_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        for id in self._list_own_reactions(repository, target, reaction):
            url = f"{_format_reactions_url(repository, target)}/{id}"
            self._write_once(f"a reaction in {repository}", partial(self._send_removal, url))

    def _list_own_reactions(self, repository: str, target: ReactionTarget, reaction: Reaction) -> tuple[int, ...]:
        url, query = _format_reactions_url(repository, target), {"content": str(reaction)}
        with translate_errors(f"the reactions in {repository}"):
            rows = islice(fetch_rows(self.reads, url, ReactionData, query), MAX_REACTIONS)
            return tuple(row.id for row in rows if row.user is not None and row.user.login == self.login)

    def add_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        url, data = _format_reactions_url(repository, target), {"content": str(reaction)}
        self._write_once(
            f"a reaction in {repository}",
            lambda: msgspec.convert(self._send_json("POST", url, data), ReactionData),
        )

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None:
        # As an object: PyGithub sends a bare array, which the API's description lacks.
        url, data = f"/repos/{repository}/issues/{number}/labels", {"labels": list(names)}
        self._write_once(
            f"the labels of {repository}#{number}",
            lambda: msgspec.convert(self._send_json("POST", url, data), list[Label]),
        )

    def remove_label(self, repository: str, number: int, name: str) -> None:
        url = f"/repos/{repository}/issues/{number}/labels/{quote(name, safe='')}"

        self._write_once(f"the labels of {repository}#{number}", lambda: self._send_removal(url))

    def _send_removal(self, url: str) -> None:
        try:
            self._send_json("DELETE", url)
        except GithubException as error:
            if error.status != 404:
                raise

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        try:
            with translate_errors(f"the label {name!r}", may_be_missing=True):
                msgspec.convert(self._fetch_json(f"/repos/{repository}/labels/{quote(name, safe='')}"), Label)
        except NotFound:
            data = {"name": name, "color": colour, "description": description}
            self._write_once(f"the label {name!r}", lambda: self._create_label(repository, data))

    def _create_label(self, repository: str, data: dict[str, str]) -> None:
        try:
            self._send_json("POST", f"/repos/{repository}/labels", data)
        except GithubException as error:
            if error.status != 422 or "already_exists" not in str(error.data):
                raise

    def _send_json(self, method: str, url: str, data: object = None) -> Any:
        return self.writes.requester.requestJsonAndCheck(method, url, input=data)[1]

    def _write_once(
        self, subject: str, send: Callable[[], T], find_written: Callable[[], T | None] = lambda: None
    ) -> T:
        """Send a write. If the answer is lost, send again only if ``find_written`` finds no effect of the first.

        The default finds none, and the write is sent again unchanged. This is correct for idempotent writes: an edit
        or a label.
        """
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                with translate_errors(subject):
                    return send()
            except RateLimited as limited:
                if attempt == WRITE_ATTEMPTS or limited.wait > MAX_WAIT:
                    raise
                self.pause(limited.wait)  # a refused request had no effect
            except InfraError:
                self.pause(float(attempt))  # a list may lag behind a write
                if (written := find_written()) is not None:
                    return written
                if attempt == WRITE_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")


def _format_reactions_url(repository: str, target: ReactionTarget) -> str:
    match target:
        case IssueTarget(number=number):
            path = f"issues/{number}"
        case CommentTarget(id=comment):
            path = f"issues/comments/{comment}"
    return f"/repos/{repository}/{path}/reactions"


def _format_since(since: datetime | None) -> dict[str, str]:
    return {} if since is None else {"since": since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
