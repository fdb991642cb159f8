"""What GitHub, or a Markdown file on disk, gives us: an issue as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    author: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A text file that the issue links to, fetched within limits. As untrusted as the issue itself."""

    name: str
    """A bare file name; empty where the link has none (a gist)."""
    text: str
    url: str
    sha256: str
    """Of the file's bytes as fetched: what a link leads to may change."""
    archive: str = ""
    """The zip that held it; empty when it was linked by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A linked file that was not taken, and why: a clause after "it …", such as ``is larger than 8 MiB``."""

    name: str
    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue as its author wrote it. Every text field is untrusted."""

    source: str
    """Where it came from, for people: a path, ``-`` or ``owner/repo#N``."""
    title: str
    body: str
    sha256: str
    """Of the exact text read, so that a verdict can be tied to it."""
    created: date
    author: str = ""
    repository: str = ""
    number: int | None = None
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    refused: tuple[Refused, ...] = ()


_NUMBER = re.compile(r"(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})#(?P<number>\d{1,9})")
_ADDRESS = re.compile(
    r"https://[\w.-]+/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/issues/(?P<number>\d{1,9})(?:[#?].*)?"
)


def remote_issue(source: str) -> tuple[str, int] | None:
    """Repository and number if ``source`` names an issue on GitHub; None if it names a file."""
    found = _NUMBER.fullmatch(source) or _ADDRESS.fullmatch(source)
    return (found["repository"], int(found["number"])) if found else None


def is_remote(source: str) -> bool:
    """True if ``source`` names an issue on GitHub."""
    return remote_issue(source) is not None
