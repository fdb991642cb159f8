"""Read GitHub's answers: pages of rows, and PyGithub's exceptions as ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from github import Github, GithubException

from bot.forge.contract import ForgeRefused, RateLimited
from runners.core.errors import InfraError

SECONDARY_WAIT = 60
"""Seconds. GitHub asks for at least a minute if an answer on a secondary limit names no time."""

_SECONDS = re.compile(r"\d{1,12}", re.ASCII)

T = TypeVar("T")


class NotFound(Exception):
    """GitHub answered 404 or 410, and the caller treats that as an answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def translate_errors(subject: str, *, may_be_missing: bool = False) -> Iterator[None]:
    """Raise PyGithub's exceptions as ours; ``subject`` names the failed request in the message.

    Raises:
        NotFound: status 404 or 410, if ``may_be_missing``.
        ForgeRefused: GitHub refuses the request.
        InfraError: GitHub does not answer, or its answer cannot be read.
    """
    try:
        yield
    except GithubException as error:
        if _is_rate_limited(error):
            wait = _read_wait(error.headers or {})
            raise RateLimited(f"GitHub's limit is reached for {subject}: try again in {wait:.0f} s", wait) from None
        if may_be_missing and error.status in (404, 410):
            raise NotFound(error.status) from None
        if error.status in (401, 403, 404, 410, 422):
            raise ForgeRefused(
                f"GitHub refuses {subject} ({error.status}): check the token's permissions, and that it exists"
            ) from None
        raise InfraError(f"GitHub answered {error.status} for {subject}: try again later") from None
    except OSError as error:  # requests' exceptions are OSErrors
        why = f"GitHub cannot be reached for {subject} ({type(error).__name__})"
        raise InfraError(f"{why}: check the network, and try again") from None
    except (ValueError, RuntimeError, AssertionError) as error:
        # PyGithub raises these for an answer that is not JSON, lacks a field, or redirects elsewhere.
        raise InfraError(
            f"GitHub's answer for {subject} cannot be read ({type(error).__name__}): try again"
        ) from None


def _is_rate_limited(error: GithubException) -> bool:
    message = str(error.data.get("message", "") if isinstance(error.data, dict) else "").lower()
    headers = _lower_names(error.headers)
    return error.status == 429 or (
        error.status == 403
        and ("rate limit" in message or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")
    )


def _read_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds to wait: from Retry-After, else from the primary limit's reset, else a minute."""
    lower = _lower_names(headers)
    if _SECONDS.fullmatch(after := lower.get("retry-after", "")):
        return float(after)
    reset = lower.get("x-ratelimit-reset", "")
    if lower.get("x-ratelimit-remaining") == "0" and _SECONDS.fullmatch(reset):
        return max(1.0, int(reset) - datetime.now(tz=UTC).timestamp() + 1)
    return SECONDARY_WAIT


def _lower_names(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in (headers or {}).items()}


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. ``next`` is the address of the page after it; empty for the last."""

    rows: list[object]
    next: str
    etag: str | None

    @staticmethod
    def fetch_first(client: Github, url: str, query: Mapping[str, str], etag: str | None = None) -> Page | None:
        """Return the first page of a list; None if it is still the page that ``etag`` was given for."""
        conditional = {"If-None-Match": etag} if etag else {}
        headers, data = client.requester.requestJsonAndCheck(
            "GET", url, parameters={**query, "per_page": "100"}, headers=conditional
        )
        return None if data is None else Page._parse_page(headers, data)

    @staticmethod
    def fetch_next(client: Github, url: str, etag: str | None = None) -> Page | None:
        """Return the page at the address ``url``; None if it is still the page that ``etag`` was given for."""
        conditional = {"If-None-Match": etag} if etag else {}
        headers, data = client.requester.requestJsonAndCheck("GET", url, headers=conditional)
        return None if data is None else Page._parse_page(headers, data)

    @staticmethod
    def _parse_page(headers: Mapping[str, str], data: object) -> Page:
        lower = _lower_names(headers)
        link = re.search(r'<([^<>]+)>; rel="next"', lower.get("link", ""))
        return Page(msgspec.convert(data, list[object]), link[1] if link else "", lower.get("etag"))

    def iterate_rows(self, client: Github) -> Iterator[object]:
        """Yield the rows of this page and of the later pages, which are fetched as they are needed."""
        page = self
        while True:
            yield from page.rows
            if not page.next:
                return
            page = Page._parse_page(*client.requester.requestJsonAndCheck("GET", page.next))


def fetch_rows(client: Github, url: str, kind: type[T], query: Mapping[str, str] | None = None) -> Iterator[T]:
    """Yield all rows of a list."""
    first = Page.fetch_first(client, url, query or {})
    return (msgspec.convert(row, kind) for row in first.iterate_rows(client)) if first is not None else iter(())
