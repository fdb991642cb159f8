"""GitHub, read through PyGithub: the only module that imports it. Returns our types."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC
from itertools import islice

from github import Auth, Github, GithubException, GithubRetry
from github.IssueComment import IssueComment

from bot.issue import Comment, Issue
from runners.errors import InfraError, UserError

FIRST_COMMENTS = 5
"""A repro left out of the description usually stands in one of the first comments."""


def connect(environment: dict[str, str] | None = None) -> Github:
    """A client; reading public issues needs no token, but one (GITHUB_TOKEN) raises the rate limit."""
    variables = os.environ if environment is None else environment
    token = variables.get("GITHUB_TOKEN") or variables.get("GH_TOKEN")
    return Github(
        base_url=variables.get("GITHUB_API_URL", "https://api.github.com"),
        auth=Auth.Token(token) if token else None,
        retry=GithubRetry(total=3),
        timeout=15,
    )


def fetch_issue(client: Github, repository: str, number: int) -> Issue:
    """One issue with its first comments.

    Raises:
        UserError: there is no such issue, or it may not be read.
        InfraError: GitHub did not answer.
    """
    try:
        found = client.get_repo(repository).get_issue(number)
        first: list[IssueComment] = list(islice(found.get_comments(), FIRST_COMMENTS))
        comments = tuple(Comment(author=comment.user.login, body=comment.body or "") for comment in first)
        text = f"# {found.title}\n\n{found.body or ''}"
        return Issue(
            source=f"{repository}#{number}",
            title=found.title,
            body=(found.body or "").replace("\r\n", "\n"),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            created=found.created_at.astimezone(UTC).date(),
            author=found.user.login,
            repository=repository,
            number=number,
            labels=tuple(label.name for label in found.labels),
            comments=comments,
        )
    except GithubException as error:
        if error.status in (401, 403, 404, 410):
            raise UserError(f"{repository}#{number} cannot be read (GitHub says {error.status}): check it") from None
        raise InfraError(f"GitHub answered {error.status} for {repository}#{number}: try again later") from None
    except OSError as error:  # requests' exceptions are OSErrors
        raise InfraError(f"GitHub cannot be reached for {repository}#{number}: {type(error).__name__}") from None
