"""Clients for GitHub: authentication, pacing and retries, from environment variables."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec
from github import Auth, Github, GithubException, GithubIntegration, GithubRetry
from github.Requester import Requester

from bot.forge.github.answers import SECONDARY_WAIT, translate_errors
from bot.forge.github.forge import MAX_WAIT, GithubForge
from bot.forge.payloads import User
from runners.core.errors import UserError

WORKFLOW_LOGIN = "github-actions[bot]"
PUBLIC_URL = "https://api.github.com"


def open_forge(environment: Mapping[str, str], *, pause: Callable[[float], None] = time.sleep) -> GithubForge:
    """Return the forge of ``GITHUB_API_URL``, authenticated by ``GITHUB_TOKEN`` or ``REPROBOT_APP_*``.

    Raises:
        UserError: there is no token, or GitHub refuses the token.
        InfraError: GitHub did not answer for the token's account.
    """
    if not (_find_token(environment) or environment.get("REPROBOT_APP_ID")):
        raise UserError("there is no GITHUB_TOKEN here: give the job one that may write issues")
    counter = _Counter()
    reads = _make_client(environment, counter)
    login = environment.get("REPROBOT_LOGIN") or (WORKFLOW_LOGIN if environment.get("GITHUB_ACTIONS") else "")
    return GithubForge(
        reads=reads,
        writes=_make_client(environment, counter, writes=True),
        login=login or _fetch_own_login(environment, reads),
        pause=pause,
        count_requests=counter.get_count,
    )


def open_reader(environment: Mapping[str, str]) -> GithubForge:
    """Return a forge that reads public issues. It has no account of its own and cannot write.

    A token is not needed, but raises the rate limit.
    """
    without_token = {name: environment[name] for name in ("GITHUB_API_URL", "REPROBOT_PACE") if name in environment}
    counter = _Counter()
    return GithubForge(
        reads=_make_client(environment, counter),
        writes=_make_client(without_token, counter, writes=True),
        login="",
        count_requests=counter.get_count,
    )


class _Counter:
    """Counts HTTP requests."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def get_count(self) -> int:
        return self._count

    def add(self) -> None:
        with self._lock:
            self._count += 1


class _CountedClient(Github):
    """A client whose requests are counted: our code takes ``requester`` once for each request."""

    counter: _Counter

    @property
    def requester(self) -> Requester:
        self.counter.add()
        return super().requester


def _make_client(variables: Mapping[str, str], counter: _Counter, *, writes: bool = False) -> Github:
    """Return a client. A client for ``writes`` sends each request once: see `GithubForge`."""
    paced = variables.get("REPROBOT_PACE", "") != "off"  # a test server on loopback needs no pacing

    class CountedRetry(_BoundedRetry):
        def increment(self, *args: Any, **kwargs: Any) -> Self:
            again = super().increment(*args, **kwargs)
            counter.add()
            return again

    retry = CountedRetry(
        total=3,
        backoff_factor=1 if paced else 0,
        status_forcelist=[429, *range(500, 600)],
        retry_after_max=MAX_WAIT,
        max_rate_limit_wait=MAX_WAIT,
        secondary_rate_wait=SECONDARY_WAIT,
    )
    client = _CountedClient(
        base_url=_find_base_url(variables),
        auth=_choose_auth(variables),
        retry=None if writes else retry,
        timeout=15,
        seconds_between_requests=0.25 if paced else None,
        seconds_between_writes=1.0 if paced else None,
    )
    client.counter = counter
    return client


class _BoundedRetry(GithubRetry):
    """Raises for a ``Retry-After`` above ``MAX_WAIT``, where urllib3 would sleep ``retry_after_max`` each time."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        after = response.headers.get("Retry-After") if response is not None else None
        if after is not None and not (re.fullmatch(r"\d{1,12}", after, re.ASCII) and int(after) <= MAX_WAIT):
            response.drain_conn()
            response.release_conn()
            raise GithubException(response.status, {"message": "Retry-After is too long"}, dict(response.headers))
        return cast(Self, super().increment(method, url, response, error, _pool, _stacktrace))


def _find_base_url(variables: Mapping[str, str]) -> str:
    """Return ``GITHUB_API_URL``, which ends in ``/api/v3`` for a GitHub Enterprise Server."""
    return (variables.get("GITHUB_API_URL") or PUBLIC_URL).rstrip("/")


def _choose_auth(variables: Mapping[str, str]) -> Auth.Auth | None:
    if variables.get("REPROBOT_APP_ID"):
        return _read_app_key(variables).get_installation_auth(_read_installation(variables))
    token = _find_token(variables)
    return Auth.Token(token) if token else None


def _find_token(variables: Mapping[str, str]) -> str:
    return variables.get("GITHUB_TOKEN") or variables.get("GH_TOKEN") or ""


def _read_app_key(variables: Mapping[str, str]) -> Auth.AppAuth:
    """Read a GitHub App's key from its file: a variable would be inherited, and shows in process lists."""
    path = variables.get("REPROBOT_APP_KEY", "")
    try:
        return Auth.AppAuth(variables["REPROBOT_APP_ID"], Path(path).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        raise UserError(f"the App's key {path!r} cannot be read: name its .pem file in REPROBOT_APP_KEY") from None


def _read_installation(variables: Mapping[str, str]) -> int:
    text = variables.get("REPROBOT_APP_INSTALLATION", "")
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
        raise UserError(
            f"REPROBOT_APP_INSTALLATION is {text!r}: give the number at the end of the installation's URL"
        )
    return int(text)


def _fetch_own_login(environment: Mapping[str, str], reads: Github) -> str:
    with translate_errors("the token's account"):
        if environment.get("REPROBOT_APP_ID"):
            # The account that writes an App's comments is named after the App.
            integration = GithubIntegration(auth=_read_app_key(environment), base_url=_find_base_url(environment))
            return f"{integration.get_app().slug}[bot]"
        return msgspec.convert(reads.requester.requestJsonAndCheck("GET", "/user")[1], User).login
