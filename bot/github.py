"""GitHub, spoken to through PyGithub: the only module that imports it. Takes and returns our types.

What is written is written once: PyGithub's own retry sends a POST again after a 502 that came too late, so writes
have none, and a comment whose answer was lost is looked for before it is written again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from github import Auth, Github, GithubException, GithubRetry
from github.Issue import Issue as Found
from github.IssueComment import IssueComment
from github.Repository import Repository

from bot.forge import (
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
from bot.issue import Comment, Issue
from bot.settings import PATH as SETTINGS_PATH
from runners.errors import InfraError, UserError

FIRST_COMMENTS = 5
"""A repro left out of the description usually stands in one of the first comments."""
MAX_COMMENTS = 2_000
MAX_RECENT = 5_000
MAX_LABELLED = 100
WORKFLOW_LOGIN = "github-actions[bot]"


def connect(environment: Mapping[str, str] | None = None, *, writes: bool = False) -> Github:
    """A client; reading public issues needs no token, but one (GITHUB_TOKEN) raises the rate limit.

    With ``writes`` nothing is sent twice by the client itself, rate limits (403 with Retry-After) apart.
    """
    variables = os.environ if environment is None else environment
    token = variables.get("GITHUB_TOKEN") or variables.get("GH_TOKEN")
    retry = GithubRetry(total=3, status_forcelist=[], retry_after_max=120, max_rate_limit_wait=120)
    return Github(
        base_url=variables.get("GITHUB_API_URL") or "https://api.github.com",
        auth=Auth.Token(token) if token else None,
        retry=retry if writes else GithubRetry(total=3, retry_after_max=120, max_rate_limit_wait=120),
        timeout=15,
        per_page=100,
    )


def fetch_issue(client: Github, repository: str, number: int) -> Issue:
    """One issue with its first comments.

    Raises:
        UserError: there is no such issue, or it may not be read.
        InfraError: GitHub did not answer.
    """
    try:
        found = client.get_repo(repository, lazy=True).get_issue(number)
        first: list[IssueComment] = list(islice(found.get_comments(), FIRST_COMMENTS))
        comments = tuple(Comment(author=_login(comment), body=comment.body or "") for comment in first)
        return _issue(found, repository, comments)
    except GithubException as error:
        if error.status in (401, 403, 404, 410):
            raise UserError(f"{repository}#{number} cannot be read (GitHub says {error.status}): check it") from None
        raise InfraError(f"GitHub answered {error.status} for {repository}#{number}: try again later") from None
    except OSError as error:  # requests' exceptions are OSErrors
        raise InfraError(f"GitHub cannot be reached for {repository}#{number}: {type(error).__name__}") from None


def _issue(found: Found, repository: str, comments: tuple[Comment, ...]) -> Issue:
    text = f"# {found.title}\n\n{found.body or ''}"
    return Issue(
        source=f"{repository}#{found.number}",
        title=found.title,
        body=(found.body or "").replace("\r\n", "\n"),
        sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(),  # JSON may hold lone surrogates
        created=found.created_at.astimezone(UTC).date(),
        author=_login(found),
        repository=repository,
        number=found.number,
        labels=tuple(label.name for label in found.labels),
        comments=comments,
    )


def _login(written: Found | IssueComment) -> str:
    """Who wrote it; ``ghost`` where the account was deleted, as GitHub shows it."""
    user: Any = written.user
    return user.login if user is not None else "ghost"


def forge(environment: Mapping[str, str]) -> GithubForge:
    """The forge that the environment names (``GITHUB_API_URL``, ``GITHUB_TOKEN``).

    Raises:
        UserError: there is no token.
    """
    if not (environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")):
        raise UserError("there is no GITHUB_TOKEN here: give the job one that may write issues")
    return GithubForge(
        reads=connect(environment),
        writes=connect(environment, writes=True),
        login=environment.get("REPROBOT_LOGIN") or (WORKFLOW_LOGIN if environment.get("GITHUB_ACTIONS") else ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubForge:
    """The contract of ``bot.forge`` over two clients: one that tries again, and one that never does."""

    reads: Github
    writes: Github
    login: str = ""
    """Ours, where the token's owner cannot be asked: a workflow's token has none."""

    def whoami(self) -> str:
        if self.login:
            return self.login
        with _said("the token's account"):
            return self.reads.get_user().login

    def issue(self, repository: str, number: int) -> Issue:
        return fetch_issue(self.reads, repository, number)

    def state(self, repository: str, number: int) -> IssueState | Gone:
        try:
            with _said(f"{repository}#{number}", missing=True):
                found = self._read(repository).get_issue(number)
                comments = tuple(
                    Comment(author=_login(one), body=one.body or "")
                    for one in islice(found.get_comments(), FIRST_COMMENTS)
                )
        except _Missing as missing:
            return Gone(reason="deleted" if missing.status == 410 else "hidden")
        if found.repository.full_name.lower() != repository.lower():
            return Gone(reason="transferred")
        return IssueState(
            issue=_issue(found, repository, comments),
            open=found.state == "open",
            locked=found.locked,
            is_pull_request=found.pull_request is not None,
            updated=found.updated_at,
            etag=found.etag,
        )

    def permission(self, repository: str, login: str) -> Permission:
        try:
            with _said(f"the permission of an account in {repository}", missing=True):
                url = f"/repos/{repository}/collaborators/{login}/permission"
                _, data = self.reads.requester.requestJsonAndCheck("GET", url)
        except _Missing:
            return Permission.NONE
        # A role of an organisation's own has a name of its own; `permission` then says what it amounts to.
        for word in (data.get("role_name"), data.get("permission")):
            if isinstance(word, str) and word.upper() in Permission.__members__:
                return Permission[word.upper()]
        return Permission.NONE

    def comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        with _said(f"the comments of {repository}#{number}"):
            found = self._read(repository).get_issue(number).get_comments()
            return tuple(_posted(one, number) for one in islice(found, MAX_COMMENTS))

    def recent_comments(self, repository: str, since: datetime) -> tuple[PostedComment, ...]:
        with _said(f"the comments in {repository}"):
            found = self._read(repository).get_issues_comments(sort="updated", direction="asc", since=since)
            return tuple(_posted(one, _number(one)) for one in islice(found, MAX_RECENT))

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        def send() -> PostedComment:
            return _posted(self._write(repository).get_issue(number).create_comment(body), number)

        def look() -> PostedComment | None:
            mine = [c for c in self.comments(repository, number) if c.body.strip() == body.strip()]
            return next((c for c in mine if c.author == self.whoami()), None)

        return _once(f"a comment on {repository}#{number}", send, look)

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment:
        with _said(f"our comment {comment} in {repository}"):
            _, data = self.reads.requester.requestJsonAndCheck(  # the same edit twice is one edit
                "PATCH", f"/repos/{repository}/issues/comments/{comment}", input={"body": body}
            )
            return _posted(self.reads.create_from_raw_data(IssueComment, data), _number_of(data["issue_url"]))

    def react(self, repository: str, target: Target, reaction: Reaction) -> None:
        with _said(f"a reaction in {repository}"):
            match target:
                case IssueTarget(number=number):
                    place = f"issues/{number}"
                case CommentTarget(id=comment):
                    place = f"issues/comments/{comment}"
            url = f"/repos/{repository}/{place}/reactions"
            self.reads.requester.requestJsonAndCheck("POST", url, input={"content": str(reaction)})

    def labels(self, repository: str, number: int) -> tuple[str, ...]:
        with _said(f"the labels of {repository}#{number}"):
            return tuple(label.name for label in self._read(repository).get_issue(number).get_labels())

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None:
        with _said(f"the labels of {repository}#{number}"):
            # As an object: PyGithub sends a bare array, which the API's description lacks.
            url = f"/repos/{repository}/issues/{number}/labels"
            self.reads.requester.requestJsonAndCheck("POST", url, input={"labels": list(names)})

    def remove_label(self, repository: str, number: int, name: str) -> None:
        try:
            with _said(f"the labels of {repository}#{number}", missing=True):
                self._read(repository).get_issue(number).remove_from_labels(name)
        except _Missing:
            pass

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        try:
            with _said(f"the label {name!r}", missing=True):
                self._read(repository).get_label(name)
        except _Missing:
            with _said(f"the label {name!r}"):
                self._write(repository).create_label(name, colour, description)

    def config(self, repository: str) -> bytes | None:
        try:
            with _said(f"{SETTINGS_PATH} of {repository}", missing=True):
                found = self._read(repository).get_contents(SETTINGS_PATH)
        except _Missing:
            return None
        if isinstance(found, list) or found.encoding != "base64" or found.size > 64 * 1024:
            raise UserError(f"{SETTINGS_PATH} of {repository} is no small file")
        return found.decoded_content

    def issues_labelled(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        with _said(f"the issues of {repository}"):
            found = self._read(repository).get_issues(state="open", labels=[label], sort="updated", direction="asc")
            return tuple(_brief(one) for one in islice(found, MAX_LABELLED))

    def issues_since(self, repository: str, since: datetime | None, etag: str | None = None) -> Listing:
        with _said(f"the issues of {repository}"):
            more: dict[str, Any] = {} if since is None else {"since": since}
            found = self._read(repository).get_issues(state="all", sort="updated", direction="asc", **more)
            return Listing(issues=tuple(brief for brief in map(_brief, found) if not brief.is_pull_request))

    def _read(self, repository: str) -> Repository:
        return self.reads.get_repo(repository, lazy=True)

    def _write(self, repository: str) -> Repository:
        return self.writes.get_repo(repository, lazy=True)


class _Missing(Exception):
    """There is no such thing; not an error where that is an answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def _said(what: str, *, missing: bool = False) -> Iterator[None]:
    """PyGithub's exceptions as ours; with ``missing`` a 404 is an answer."""
    try:
        yield
    except GithubException as error:
        if missing and error.status in (404, 410):
            raise _Missing(error.status) from None
        if error.status in (401, 403, 404, 410, 422) and not _limited(error):
            raise UserError(
                f"GitHub refuses {what} ({error.status}): look at the token's permissions, and whether it is there"
            ) from None
        raise InfraError(f"GitHub answered {error.status} for {what}: try again later") from None
    except OSError as error:  # requests' exceptions are OSErrors
        raise InfraError(f"GitHub cannot be reached for {what}: {type(error).__name__}") from None


def _limited(error: GithubException) -> bool:
    return "rate limit" in str(error.data).lower() or "retry-after" in {key.lower() for key in error.headers or {}}


def _once(what: str, send: Callable[[], PostedComment], look: Callable[[], PostedComment | None]) -> PostedComment:
    """Send; when the answer is lost, look whether it arrived, and send once more only if it did not."""
    try:
        with _said(what):
            return send()
    except InfraError:
        if (there := look()) is not None:
            return there
        with _said(what):
            return send()


def _posted(one: IssueComment, number: int) -> PostedComment:
    app = one.raw_data.get("performed_via_github_app") or {}
    return PostedComment(
        id=one.id,
        number=number,
        author=_login(one),
        body=(one.body or "").replace("\r\n", "\n"),
        created=one.created_at,
        updated=one.updated_at,
        app_id=app.get("id"),
        url=one.html_url,
    )


def _number(one: IssueComment) -> int:
    return _number_of(one.issue_url)


def _number_of(issue_url: str) -> int:
    return int(issue_url.rstrip("/").rpartition("/")[2])


def _brief(found: Found) -> IssueBrief:
    return IssueBrief(
        number=found.number,
        author=_login(found),
        title=found.title,
        labels=tuple(label.name for label in found.labels),
        open=found.state == "open",
        locked=found.locked,
        is_pull_request=found.pull_request is not None,
        created=found.created_at,
        updated=found.updated_at,
    )
