"""GitHub, spoken to through PyGithub: the only module that imports it. Takes and returns our types.

PyGithub brings authentication, pacing and waiting for limits. Its objects are not used: each fetches itself again
when an attribute is looked at that a listing left out, one request for each comment. The answers are read as data
instead, every field with its type.

What is written is written once. PyGithub's own retry sends a POST again after a 502, or a broken connection, that
came after the comment was stored, so the client for writes never tries again by itself: `GithubForge._once` looks
first.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from github import Auth, Github, GithubException, GithubIntegration, GithubRetry

from bot.forge.contract import (
    CommentListing,
    CommentTarget,
    Gone,
    IssueBrief,
    IssueState,
    IssueTarget,
    Listing,
    Permission,
    PostedComment,
    Reaction,
    Target,
)
from bot.forge.payloads import (
    CommentData,
    FileData,
    IssueData,
    Label,
    User,
    brief,
    is_elsewhere,
    issue_of,
    login_of,
    posted,
)
from bot.issue import Comment, Issue
from bot.settings import PATH as SETTINGS_PATH
from runners.core.errors import InfraError, UserError

FIRST_COMMENTS = 5
"""A repro left out of the description usually stands in one of the first comments."""
MAX_COMMENTS = 2_000
MAX_RECENT = 5_000
MAX_LABELLED = 100
MAX_CONFIG = 64 * 1024
MAX_WAIT = 120
"""Seconds that a limit may keep us: PyGithub's ``max_rate_limit_wait`` does not cap ``Retry-After``, urllib3's
``retry_after_max`` does. A limit that lasts longer is an error that says so."""
SECONDARY_WAIT = 60
"""GitHub asks for at least a minute where a secondary limit names no time."""
WRITE_ATTEMPTS = 3
WORKFLOW_LOGIN = "github-actions[bot]"
PUBLIC = "https://api.github.com"

T = TypeVar("T")


# ---------------------------------------------------------------------------------------------------- connecting


def connect(environment: Mapping[str, str] | None = None, *, writes: bool = False) -> Github:
    """A client; reading public issues needs no token, but one (GITHUB_TOKEN) raises the rate limit.

    The client for ``writes`` sends everything once.
    """
    variables = os.environ if environment is None else environment
    pace = variables.get("REPROBOT_PACE", "") != "off"  # a test server on loopback needs none
    reads = GithubRetry(
        total=3,
        backoff_factor=1 if pace else 0,
        status_forcelist=[429, *range(500, 600)],
        retry_after_max=MAX_WAIT,
        max_rate_limit_wait=MAX_WAIT,
        secondary_rate_wait=SECONDARY_WAIT,
    )
    return Github(
        base_url=_base_url(variables),
        auth=_auth(variables),
        retry=None if writes else reads,
        timeout=15,
        seconds_between_requests=0.25 if pace else None,
        seconds_between_writes=1.0 if pace else None,
    )


def _base_url(variables: Mapping[str, str]) -> str:
    """``GITHUB_API_URL``; of a GitHub Enterprise Server it ends in ``/api/v3``."""
    return (variables.get("GITHUB_API_URL") or PUBLIC).rstrip("/")


def _auth(variables: Mapping[str, str]) -> Auth.Auth | None:
    if variables.get("REPROBOT_APP_ID"):
        return _app(variables).get_installation_auth(_installation(variables))
    token = _token(variables)
    return Auth.Token(token) if token else None


def _token(variables: Mapping[str, str]) -> str:
    return variables.get("GITHUB_TOKEN") or variables.get("GH_TOKEN") or ""


def _app(variables: Mapping[str, str]) -> Auth.AppAuth:
    """The key of a GitHub App is read from a file: a variable would be inherited, and shows in process lists."""
    path = variables.get("REPROBOT_APP_KEY", "")
    try:
        return Auth.AppAuth(variables["REPROBOT_APP_ID"], Path(path).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        raise UserError(f"the App's key {path!r} cannot be read: name its .pem file in REPROBOT_APP_KEY") from None


def _installation(variables: Mapping[str, str]) -> int:
    text = variables.get("REPROBOT_APP_INSTALLATION", "")
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
        raise UserError(f"REPROBOT_APP_INSTALLATION is {text!r}: give the number at the end of its page's address")
    return int(text)


def forge(environment: Mapping[str, str], *, pause: Callable[[float], None] = time.sleep) -> GithubForge:
    """The forge that the environment names: ``GITHUB_API_URL``, and ``GITHUB_TOKEN`` or ``REPROBOT_APP_*``.

    Raises:
        UserError: there is no token, or it is refused.
        InfraError: GitHub cannot be asked whose it is.
    """
    if not (_token(environment) or environment.get("REPROBOT_APP_ID")):
        raise UserError("there is no GITHUB_TOKEN here: give the job one that may write issues")
    reads = connect(environment)
    login = environment.get("REPROBOT_LOGIN") or (WORKFLOW_LOGIN if environment.get("GITHUB_ACTIONS") else "")
    return GithubForge(
        reads=reads,
        writes=connect(environment, writes=True),
        login=login or _ask_login(environment, reads),
        pause=pause,
    )


def reader(environment: Mapping[str, str]) -> GithubForge:
    """A forge to read public issues from, with a token or without; it is nobody, and may write nothing."""
    nobody = {name: environment[name] for name in ("GITHUB_API_URL", "REPROBOT_PACE") if name in environment}
    return GithubForge(reads=connect(environment), writes=connect(nobody, writes=True), login="")


def _ask_login(environment: Mapping[str, str], reads: Github) -> str:
    with _said("the token's account"):
        if environment.get("REPROBOT_APP_ID"):
            # An App's comments are written by an account that is named after it.
            found = GithubIntegration(auth=_app(environment), base_url=_base_url(environment)).get_app()
            return f"{found.slug}[bot]"
        return _as(reads.requester.requestJsonAndCheck("GET", "/user")[1], User).login


def fetch_issue(client: Github, repository: str, number: int) -> Issue:
    """One issue with its first comments.

    Raises:
        UserError: there is no such issue here, or it may not be read.
        InfraError: GitHub did not answer.
    """
    what = f"{repository}#{number}"
    try:
        with _said(what, missing=True):
            found, _ = _get_issue(client, repository, number)
            if is_elsewhere(found, repository):
                raise UserError(f"{what} was moved to another repository: name it there")
            comments = _first_comments(client, repository, number)
    except _Missing as missing:
        raise UserError(f"{what} cannot be read (GitHub says {missing.status}): check it") from None
    return issue_of(found, repository, comments)


# ---------------------------------------------------------------------------------------------------- the contract


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubForge:
    """The contract of ``bot.forge.contract`` over two clients: one that tries again, and one that never does."""

    reads: Github
    writes: Github
    login: str
    """Whose comments are ours."""
    pause: Callable[[float], None] = time.sleep

    def whoami(self) -> str:
        return self.login

    def issue(self, repository: str, number: int) -> Issue:
        return fetch_issue(self.reads, repository, number)

    def state(self, repository: str, number: int) -> IssueState | Gone:
        try:
            with _said(f"{repository}#{number}", missing=True):
                found, headers = _get_issue(self.reads, repository, number)
                if is_elsewhere(found, repository):
                    return Gone(reason="transferred")
                comments = _first_comments(self.reads, repository, number)
        except _Missing as missing:
            return Gone(reason="deleted" if missing.status == 410 else "hidden")
        return IssueState(
            issue=issue_of(found, repository, comments),
            open=found.state == "open",
            locked=found.locked,
            is_pull_request=found.pull_request is not None,
            updated=found.updated_at,
            etag=headers.get("etag"),
        )

    def permission(self, repository: str, login: str) -> Permission:
        url = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
        try:
            with _said(f"the permission of an account in {repository}", missing=True):
                data = self._get(url)
        except _Missing:
            return Permission.NONE
        # A role of an organisation's own has a name of its own; `permission` then says what it amounts to.
        for word in (data.get("role_name"), data.get("permission")):
            if isinstance(word, str) and word.upper() in Permission.__members__:
                return Permission[word.upper()]
        return Permission.NONE

    def comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        url = f"/repos/{repository}/issues/{number}/comments"
        with _said(f"the comments of {repository}#{number}"):
            return tuple(posted(one) for one in islice(_rows(self.reads, url, CommentData), MAX_COMMENTS))

    def recent_comments(self, repository: str, since: datetime) -> tuple[PostedComment, ...]:
        return self.comments_since(repository, since).comments

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        url = f"/repos/{repository}/issues/{number}/comments"

        def send() -> PostedComment:
            return posted(_as(self._send("POST", url, {"body": body}), CommentData))

        def look() -> PostedComment | None:
            mine = (one for one in reversed(self.comments(repository, number)) if one.author == self.login)
            return next((one for one in mine if one.body.strip() == body.strip()), None)

        return self._once(f"a comment on {repository}#{number}", send, look)

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment:
        url = f"/repos/{repository}/issues/comments/{comment}"

        def send() -> PostedComment:
            return posted(_as(self._send("PATCH", url, {"body": body}), CommentData))

        return self._once(f"our comment {comment} in {repository}", send)

    def react(self, repository: str, target: Target, reaction: Reaction) -> None:
        match target:
            case IssueTarget(number=number):
                place = f"issues/{number}"
            case CommentTarget(id=comment):
                place = f"issues/comments/{comment}"
        url, input = f"/repos/{repository}/{place}/reactions", {"content": str(reaction)}
        self._once(f"a reaction in {repository}", lambda: self._send("POST", url, input))

    def labels(self, repository: str, number: int) -> tuple[str, ...]:
        with _said(f"the labels of {repository}#{number}"):
            url = f"/repos/{repository}/issues/{number}/labels"
            return tuple(label.name for label in _rows(self.reads, url, Label))

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None:
        # As an object: PyGithub sends a bare array, which the API's description lacks.
        url, input = f"/repos/{repository}/issues/{number}/labels", {"labels": list(names)}
        self._once(f"the labels of {repository}#{number}", lambda: self._send("POST", url, input))

    def remove_label(self, repository: str, number: int, name: str) -> None:
        url = f"/repos/{repository}/issues/{number}/labels/{quote(name, safe='')}"

        def send() -> None:
            try:
                self._send("DELETE", url)
            except GithubException as error:
                if error.status != 404:
                    raise

        self._once(f"the labels of {repository}#{number}", send)

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        try:
            with _said(f"the label {name!r}", missing=True):
                self._get(f"/repos/{repository}/labels/{quote(name, safe='')}")
        except _Missing:
            input = {"name": name, "color": colour, "description": description}
            self._once(f"the label {name!r}", lambda: self._create_label(repository, input))

    def _create_label(self, repository: str, input: dict[str, str]) -> None:
        try:
            self._send("POST", f"/repos/{repository}/labels", input)
        except GithubException as error:
            if error.status != 422 or "already_exists" not in str(error.data):
                raise

    def config(self, repository: str) -> bytes | None:
        try:
            with _said(f"{SETTINGS_PATH} of {repository}", missing=True):
                data = self._get(f"/repos/{repository}/contents/{SETTINGS_PATH}")
        except _Missing:
            return None
        refusal = UserError(f"{SETTINGS_PATH} of {repository} is no small file")
        try:
            found = msgspec.convert(data, FileData)
            if found.encoding != "base64" or found.size > MAX_CONFIG:
                raise refusal
            return base64.b64decode(found.content)
        except (msgspec.ValidationError, binascii.Error):
            raise refusal from None

    def issues_labelled(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        query = {"state": "open", "labels": label, "sort": "updated", "direction": "asc"}
        with _said(f"the issues of {repository}"):
            found = _rows(self.reads, f"/repos/{repository}/issues", IssueData, query)
            return tuple(brief(one) for one in islice(found, MAX_LABELLED))

    def issues_since(self, repository: str, since: datetime | None, etag: str | None = None) -> Listing:
        query = {"state": "all", "sort": "updated", "direction": "asc", **_since(since)}
        with _said(f"the issues of {repository}"):
            first = _Page.first(self.reads, f"/repos/{repository}/issues", query, etag)
            if first is None:
                return Listing(issues=(), etag=etag, unchanged=True)
            briefs = (brief(_as(row, IssueData)) for row in islice(first.all(self.reads), MAX_RECENT))
            return Listing(issues=tuple(one for one in briefs if not one.is_pull_request), etag=first.etag)

    def comments_since(self, repository: str, since: datetime | None, etag: str | None = None) -> CommentListing:
        query = {"sort": "updated", "direction": "asc", **_since(since)}
        with _said(f"the comments in {repository}"):
            first = _Page.first(self.reads, f"/repos/{repository}/issues/comments", query, etag)
            if first is None:
                return CommentListing(comments=(), etag=etag, unchanged=True)
            found = (posted(_as(row, CommentData)) for row in islice(first.all(self.reads), MAX_RECENT))
            return CommentListing(comments=tuple(found), etag=first.etag)

    def _get(self, url: str) -> Any:
        return self.reads.requester.requestJsonAndCheck("GET", url)[1]

    def _send(self, method: str, url: str, input: object = None) -> Any:
        return self.writes.requester.requestJsonAndCheck(method, url, input=input)[1]

    def _once(self, what: str, send: Callable[[], T], look: Callable[[], T | None] = lambda: None) -> T:
        """Send; when the answer was lost, ``look`` whether it took effect, and send again only if it did not.

        Without ``look`` it is sent again as it is: right for what is the same twice, an edit or a label.
        """
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                with _said(what):
                    return send()
            except _Limited as limited:
                if attempt == WRITE_ATTEMPTS or limited.wait > MAX_WAIT:
                    raise
                self.pause(limited.wait)  # refused, so surely not written
            except InfraError:
                self.pause(float(attempt))  # a listing may lag behind a write
                if (there := look()) is not None:
                    return there
                if attempt == WRITE_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")


# ---------------------------------------------------------------------------------------------------- reading answers


class _Missing(Exception):
    """There is no such thing; not an error where that is an answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Limited(InfraError):
    """A limit was hit; ``wait`` is what GitHub asks for, in seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


@contextmanager
def _said(what: str, *, missing: bool = False) -> Iterator[None]:
    """PyGithub's exceptions as ours; with ``missing`` a 404 or 410 is an answer."""
    try:
        yield
    except GithubException as error:
        if _limited(error):
            wait = _wait(error.headers or {})
            raise _Limited(f"GitHub's limit is reached for {what}: try again in {wait:.0f} s", wait) from None
        if missing and error.status in (404, 410):
            raise _Missing(error.status) from None
        if error.status in (401, 403, 404, 410, 422):
            raise UserError(
                f"GitHub refuses {what} ({error.status}): look at the token's permissions, and whether it is there"
            ) from None
        raise InfraError(f"GitHub answered {error.status} for {what}: try again later") from None
    except OSError as error:  # requests' exceptions are OSErrors
        raise InfraError(f"GitHub cannot be reached for {what}: {type(error).__name__}") from None
    except (ValueError, RuntimeError, AssertionError) as error:
        # An answer that is no JSON, lacks a field, or leads elsewhere: PyGithub raises these bare.
        raise InfraError(f"GitHub's answer for {what} cannot be read ({type(error).__name__}): try again") from None


def _limited(error: GithubException) -> bool:
    said = str(error.data.get("message", "") if isinstance(error.data, dict) else "").lower()
    headers = _lower(error.headers)
    return error.status == 429 or (
        error.status == 403
        and ("rate limit" in said or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")
    )


def _wait(headers: Mapping[str, str]) -> float:
    """Retry-After, then the reset of the primary limit, else a minute."""
    lower = _lower(headers)
    if (after := lower.get("retry-after", "")).isdigit():
        return float(after)
    reset = lower.get("x-ratelimit-reset", "")
    if lower.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(1.0, int(reset) - datetime.now(tz=UTC).timestamp() + 1)
    return SECONDARY_WAIT


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in (headers or {}).items()}


def _as(data: object, kind: type[T]) -> T:
    return msgspec.convert(data, kind)


@dataclass(frozen=True, slots=True)
class _Page:
    rows: list[object]
    next: str
    etag: str | None

    @staticmethod
    def first(client: Github, url: str, query: Mapping[str, str], etag: str | None = None) -> _Page | None:
        """The first page; None when it is the one that ``etag`` was given for."""
        conditional = {"If-None-Match": etag} if etag else {}
        headers, data = client.requester.requestJsonAndCheck(
            "GET", url, parameters={**query, "per_page": "100"}, headers=conditional
        )
        return None if data is None else _Page._of(headers, data)

    @staticmethod
    def _of(headers: Mapping[str, str], data: object) -> _Page:
        link = re.search(r'<([^<>]+)>; rel="next"', _lower(headers).get("link", ""))
        return _Page(msgspec.convert(data, list[object]), link[1] if link else "", _lower(headers).get("etag"))

    def all(self, client: Github) -> Iterator[object]:
        """The rows of this page and of those after it, fetched as they are needed."""
        page = self
        while True:
            yield from page.rows
            if not page.next:
                return
            page = _Page._of(*client.requester.requestJsonAndCheck("GET", page.next))


def _rows(client: Github, url: str, kind: type[T], query: Mapping[str, str] | None = None) -> Iterator[T]:
    first = _Page.first(client, url, query or {})
    return (_as(row, kind) for row in first.all(client)) if first is not None else iter(())


def _since(since: datetime | None) -> dict[str, str]:
    return {} if since is None else {"since": since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


def _get_issue(client: Github, repository: str, number: int) -> tuple[IssueData, Mapping[str, str]]:
    headers, data = client.requester.requestJsonAndCheck("GET", f"/repos/{repository}/issues/{number}")
    return _as(data, IssueData), headers


def _first_comments(client: Github, repository: str, number: int) -> tuple[Comment, ...]:
    url = f"/repos/{repository}/issues/{number}/comments"
    _, data = client.requester.requestJsonAndCheck("GET", url, parameters={"per_page": str(FIRST_COMMENTS)})
    return tuple(Comment(author=login_of(one), body=one.body or "") for one in _as(data, list[CommentData]))
