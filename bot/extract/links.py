"""Attachments and gists that an issue names: what they are called and where they are. Nothing is fetched here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.extract.types import Missing

_LINK = re.compile(
    r"https://(?:github\.com/(?:user-attachments/files/\d{1,20}"
    r"|[\w.-]{1,100}/[\w.-]{1,100}/files/\d{1,20})/(?P<name>[\w.+%-]{1,200})"
    r"|gist\.github(?:usercontent)?\.com/(?P<gist>(?:[\w-]{1,100}/)?[0-9a-f]{16,64}))"
)
_LOG = re.compile(r"\b(?:logs?|trace|stack ?trace|backtrace|output|dump(?:ed)?|IR after|error)\b[^\n]{0,30}$", re.I)
MAX_LINKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A file that the issue offers under one of the forge's own hosts."""

    name: str
    url: str
    shows_output: bool = False
    """The words before it call it a log, a trace or a dump, not an input."""


def find_links(text: str) -> tuple[Link, ...]:
    """Attachments and gists, in order, each once."""
    found: dict[str, Link] = {}
    for link in _links(text):
        found.setdefault(link.url, link)
    return tuple(found.values())[:MAX_LINKS]


def _links(text: str) -> Iterator[Link]:
    for found in _LINK.finditer(text):
        before = text[max(0, found.start() - 60) : found.start()].rpartition("\n")[2]
        yield Link(name=found["name"] or found["gist"], url=found[0], shows_output=bool(_LOG.search(before)))


def attached_files(missing: Sequence[Missing], text: str) -> tuple[Missing, ...]:
    """``missing`` with the address of the attachment that most likely holds each file.

    A name's stem decides (``pool.mlir`` in ``pool.zip``); a single attachment serves a single missing thing.
    """
    links = tuple(link for link in find_links(text) if not link.shows_output)
    told = []
    for entry in missing:
        stem = re.split(r"[\\/]", entry.name)[-1].partition(".")[0]
        fit = [link for link in links if stem and link.name.partition(".")[0] == stem]
        if not fit and len(links) == 1 and len(missing) == 1 and entry.kind in ("file", "code"):
            fit = list(links)
        told.append(replace(entry, url=fit[0].url) if fit else entry)
    return tuple(told)
