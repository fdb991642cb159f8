"""Attachments, gists and raw files that an issue names: what they are called and where. Nothing is fetched here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.extract.types import Missing

GITHUB = "github.com"
MAX_LINKS = 20


@lru_cache(maxsize=8)
def _pattern(forge: str) -> re.Pattern[str]:
    """Links to files on ``forge``; gists stand on a host or a path of their own."""
    host = re.escape(forge)
    gists = r"gist\.github(?:usercontent)?\.com" if forge == GITHUB else rf"(?:gist\.{host}|{host}/gist)"
    raw = r"raw\.githubusercontent\.com" if forge == GITHUB else rf"(?:raw\.{host}|{host}/raw)"
    return re.compile(
        rf"https://(?:{host}/(?:user-attachments/files/\d{{1,20}}"
        r"|[\w.-]{1,100}/[\w.-]{1,100}/files/\d{1,20})/(?P<name>[\w.+%-]{1,200})"
        rf"|{gists}/(?P<gist>(?:[\w-]{{1,100}}/)?[0-9a-f]{{16,64}})"
        r"(?:/raw(?:/[0-9a-f]{40})?/(?P<part>[\w.+%-]{1,200}))?"
        rf"|{raw}/(?:[\w.+%-]{{1,100}}/){{3,20}}(?P<raw>[\w.+%-]{{1,195}}\.(?:py|mlir|txt|zip|onnx))\b)"
    )


_LOG = re.compile(r"\b(?:logs?|trace|stack ?trace|backtrace|output|dump(?:ed)?|IR after|error)\b[^\n]{0,30}$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A file that the issue offers under one of the forge's own hosts."""

    name: str
    url: str
    shows_output: bool = False
    """The words before it call it a log, a trace or a dump, not an input."""
    gist: bool = False
    """The address is a page: its file, the first one when there are several, is at ``/raw`` below it."""


def find_links(text: str, forge: str = GITHUB) -> tuple[Link, ...]:
    """Attachments, gists and raw files, in order, each once."""
    found: dict[str, Link] = {}
    for link in _links(text, forge):
        found.setdefault(link.url, link)
    return tuple(found.values())[:MAX_LINKS]


def _links(text: str, forge: str) -> Iterator[Link]:
    for found in _pattern(forge).finditer(text):
        before = text[max(0, found.start() - 60) : found.start()].rpartition("\n")[2]
        yield Link(
            name=found["name"] or found["part"] or found["raw"] or found["gist"],
            url=found[0],
            shows_output=bool(_LOG.search(before)),
            gist=bool(found["gist"] and not found["part"]),
        )


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
