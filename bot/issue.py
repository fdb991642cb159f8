"""An issue as data: its text, comments, labels and linked files. Pure.

Every text field is untrusted: a stranger wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

GHOST = "ghost"
"""GitHub's login for every deleted account. Two texts of `GHOST` may come from two persons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    author: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A text file that the issue links to, fetched within limits. As untrusted as the issue itself."""

    name: str
    """A bare file name; empty if the link has none (a gist)."""
    text: str
    url: str
    sha256: str
    """Digest of the file's bytes as fetched: the content behind a link may change."""
    archive: str = ""
    """The zip that contained the file; empty if the file itself was linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    """A linked file that was refused. ``why`` is a clause after "it …", such as ``is larger than 8 MiB``."""

    name: str
    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue as its author wrote it. Every text field is untrusted."""

    source: str
    """Where the issue was read from, for people: a path, ``-`` or ``owner/repo#N``."""
    title: str
    body: str
    sha256: str
    """Digest of the exact text read, so that a verdict can be tied to that text."""
    created: date
    author: str = ""
    repository: str = ""
    number: int | None = None
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    refused: tuple[RefusedFile, ...] = ()

    def is_by(self, login: str) -> bool:
        """True if this account opened the issue. The author of an issue of a deleted account is unknown."""
        return login == self.author and login not in ("", GHOST)


_NUMBER = re.compile(r"(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})#(?P<number>[1-9]\d{0,8})")
_URL = re.compile(
    r"https://[\w.-]+/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/issues/(?P<number>[1-9]\d{0,8})(?:[#?].*)?"
)


def parse_issue_address(source: str) -> tuple[str, int] | None:
    """Return repository and number if ``source`` is ``owner/repo#N`` or an issue's URL; None if it is a file."""
    found = _NUMBER.fullmatch(source) or _URL.fullmatch(source)
    return (found["repository"], int(found["number"])) if found else None


_ADDRESS = re.compile(r"(?:https?://)?(?P<host>[\w.-]+\.[\w-]+)(?::\d+)?/(?P<path>\S+)")
_PULL_REQUEST = re.compile(r"(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/pull/(?P<number>\d{1,9})(?:[/#?].*)?")


def explain_address(source: str, host: str) -> str:
    """Return why a web address names no issue on ``host``; empty if it names one, or is not a web address.

    A text without a scheme is an address only if it names ``host``: it may be a path.
    """
    found = _ADDRESS.fullmatch(source)
    if found is None or (":" not in source.partition("/")[0] and found["host"].lower() != host):
        return ""
    if found["host"].lower() not in (host, f"www.{host}"):
        return f"{source} is not on {host}: save the issue's text to a file, and name the file"
    if pull := _PULL_REQUEST.fullmatch(found["path"]):
        return f"{source} is a pull request: name an issue, as {pull['repository']}#N"
    if parse_issue_address(source) is None:
        return f"{source} is no issue's address: give https://{host}/OWNER/REPO/issues/N, or OWNER/REPO#N"
    return ""


def is_remote(source: str) -> bool:
    """True if ``source`` is the address of an issue on GitHub."""
    return parse_issue_address(source) is not None
