"""Download files from the forge's own hosts, within limits of time and size, without a token."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from bot.extract.links import GITHUB
from bot.forge.file_rules import MAX_FILE_BYTES, MAX_TOTAL_BYTES

MAX_REDIRECTS = 4

Download = Callable[[str, int], bytes]
"""URL and limit in bytes → the file. Raises FetchError and no other error."""


class FetchError(Exception):
    """The file could not be fetched. The message is a clause after "it …"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Hosts that files may come from: the names below ``domains``, and the single hosts ``exact``."""

    forge: str
    domains: tuple[str, ...]
    exact: frozenset[str] = frozenset()

    def is_allowed(self, url: str) -> bool:
        """True for plain https on one of the hosts, without characters that two URL parsers may read differently."""
        if not re.fullmatch(r"https://[a-z0-9.-]{1,253}(?::443)?(?:[/?][!-\[\]-~]*)?", url):
            return False
        host = urlsplit(url).hostname or ""
        return host in self.exact or any(host == name or host.endswith(f".{name}") for name in self.domains)


# GitHub's own content security policy names the two buckets that attachments redirect to.
PUBLIC_HOSTS = Hosts(
    forge=GITHUB,
    domains=(GITHUB, "githubusercontent.com"),
    exact=frozenset(
        f"github-production-{name}.s3.amazonaws.com" for name in ("repository-file-5c1aeb", "user-asset-6210df")
    ),
)


def find_hosts(environment: Mapping[str, str]) -> Hosts:
    """Return the hosts of the forge in ``GITHUB_SERVER_URL`` (set by GitHub's runners), else those of github.com."""
    forge = (urlsplit(environment.get("GITHUB_SERVER_URL", "")).hostname or GITHUB).lower()
    return PUBLIC_HOSTS if forge == GITHUB else Hosts(forge=forge, domains=(forge,))


def find_api_host(environment: Mapping[str, str]) -> str:
    """Return the host of the forge whose API ``GITHUB_API_URL`` names; empty for github.com."""
    host = (urlsplit(environment.get("GITHUB_API_URL", "")).hostname or "").lower()
    return "" if host == f"api.{GITHUB}" else host


class _Response(Protocol):
    """The parts of a response that are used."""

    status: int
    headers: Mapping[str, str]

    def read1(self, n: int) -> bytes: ...


def make_downloader(is_allowed: Callable[[str], bool], *, timeout_s: float = 10, total_s: float = 60) -> Download:
    """Return a `Download` over the network. Every URL, redirects included, must be allowed.

    ``timeout_s`` is for one read, ``total_s`` for all calls together.

    Uses urllib's bare handlers, since these send no credentials. ``requests`` would look for some in a ``.netrc``.
    """
    import http.client
    import urllib.request  # TLS takes 0.03 s, which an issue in a file does not need

    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler()):
        opener.add_handler(handler)
    deadline = time.monotonic() + total_s

    def download_file(url: str, limit: int) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            if not is_allowed(url):
                raise FetchError("leads away from the forge's own hosts")
            request = urllib.request.Request(url, headers={"User-Agent": "reprobot", "Accept-Encoding": "identity"})
            try:
                with opener.open(request, timeout=_check_deadline(deadline, timeout_s)) as response:
                    if response.status not in (301, 302, 303, 307, 308):
                        return _read_body(response, limit, deadline)
                    url = urljoin(url, response.headers.get("Location", ""))
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise FetchError(_describe_error(error)) from None
        raise FetchError("is behind too many redirects")

    return download_file


def _describe_error(error: Exception) -> str:
    import urllib.error

    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "took too long to fetch"
    if isinstance(error, urllib.error.URLError):
        return "could not be fetched: its host cannot be reached from here"
    return f"could not be fetched ({type(cause).__name__})"


def _check_deadline(deadline: float, longest: float) -> float:
    """Return the seconds left, at most ``longest``. Raises TimeoutError after the deadline."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, longest)


def _read_body(response: _Response, limit: int, deadline: float) -> bytes:
    """Return the body. More than ``limit`` bytes are an error, whichever length the headers claim."""
    if response.status != 200:
        raise FetchError(f"could not be fetched (status {response.status})")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise FetchError("is a web page now, perhaps one that asks to sign in")
    data = bytearray()
    while chunk := response.read1(64 * 1024):
        data += chunk
        if len(data) > limit:
            file_mib, total_mib = MAX_FILE_BYTES // 1024**2, MAX_TOTAL_BYTES // 1024**2
            raise FetchError(f"is larger than {file_mib} MiB, or more than {total_mib} with the others")
        _check_deadline(deadline, 1)
    claimed = response.headers.get("Content-Length", "")
    if claimed.isdecimal() and len(data) != int(claimed):
        raise FetchError("ended early")
    return bytes(data)
