"""What GitHub, or a Markdown file on disk, gives us: an issue as data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    author: str
    body: str


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
