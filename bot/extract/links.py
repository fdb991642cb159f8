"""Find the attachments, gists and files of repositories that an issue links to. Nothing is fetched here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.extract.types import Missing

GITHUB = "github.com"
MAX_LINKS = 20


@lru_cache(maxsize=8)
def _compile_pattern(forge: str) -> re.Pattern[str]:
    """Return the pattern of links to files on ``forge``. Gists have a host or a path of their own."""
    host = re.escape(forge)
    gists = r"gist\.github(?:usercontent)?\.com" if forge == GITHUB else rf"(?:gist\.{host}|{host}/gist)"
    raw = r"raw\.githubusercontent\.com" if forge == GITHUB else rf"(?:raw\.{host}|{host}/raw)"
    return re.compile(
        rf"https://(?:{host}/(?:user-attachments/files/\d{{1,20}}"
        r"|[\w.-]{1,100}/[\w.-]{1,100}/files/\d{1,20})/(?P<name>[\w.+%-]{1,200})"
        rf"|{gists}/(?P<gist>(?:[\w-]{{1,100}}/)?[0-9a-f]{{16,64}})"
        r"(?:/raw(?:/[0-9a-f]{40})?/(?P<part>[\w.+%-]{1,200}))?"
        rf"|{raw}/(?:[\w.+%-]{{1,100}}/){{3,20}}(?P<raw>[\w.+%-]{{1,195}}\.(?:py|mlir|txt|zip|onnx))\b"
        rf"|{host}/(?P<home>[\w.-]{{1,100}}/[\w.-]{{1,100}})/blob/(?P<path>(?:[\w.+%-]{{1,100}}/){{1,20}}"
        r"(?P<blob>[\w.+%-]{1,195}\.(?:py|mlir)))(?![\w#?]))"
    )


_LOG = re.compile(r"\b(?:logs?|trace|stack ?trace|backtrace|output|dump(?:ed)?|IR after|error)\b[^\n]{0,30}$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A file that the issue offers on one of the forge's own hosts."""

    name: str
    url: str
    shows_output: bool = False
    """True if the words before the link describe a log, a trace or a dump, not an input."""
    gist: bool = False
    """True if the address is a page. ``/raw`` below it is the gist's first file."""


def find_links(text: str, forge: str = GITHUB) -> tuple[Link, ...]:
    """Return the links to attachments, gists and raw files in order, each address once, at most `MAX_LINKS`."""
    links: dict[str, Link] = {}
    for link in _iter_links(text, forge):
        links.setdefault(link.url, link)
    return tuple(links.values())[:MAX_LINKS]


def _iter_links(text: str, forge: str) -> Iterator[Link]:
    for found in _compile_pattern(forge).finditer(text):
        if found["blob"] and not _INPUTS.search(found["path"]):
            continue
        before = text[max(0, found.start() - 60) : found.start()].rpartition("\n")[2]
        yield Link(
            name=found["name"] or found["part"] or found["raw"] or found["blob"] or found["gist"],
            url=_make_raw_address(found, forge) if found["blob"] else found[0],
            shows_output=bool(_LOG.search(before)),
            gist=bool(found["gist"] and not found["part"]),
        )


_INPUTS = re.compile(r"/(?:\w{0,20}tests?|samples?|examples?|models|benchmarks?|tutorials?|gallery|repros?)/", re.I)
"""Folders of a repository with programs for its compiler. Other files are its source, which reports discuss."""


def _make_raw_address(found: re.Match[str], forge: str) -> str:
    """Return the address of a file that a link shows on a page of its repository."""
    host = "raw.githubusercontent.com" if forge == GITHUB else f"{forge}/raw"
    return f"https://{host}/{found['home']}/{found['path']}"


_NAME = re.compile(r"(?<![\w./-])[\w+-]{1,100}\.mlir\b")


def find_linked_names(text: str) -> frozenset[str]:
    """Return the names of MLIR files that the text offers behind a link: ``run `model.mlir` from [here](…)``.

    The name is before the link, in the same line.
    """
    found = (
        name
        for link in find_links(text)
        if not link.shows_output
        for name in _NAME.findall(text[: text.find(link.url)].rpartition("\n")[2][-200:])
    )
    return frozenset(found)


_PICTURE = re.compile(
    r"!\[[^\]\n]{0,200}\]\(\S{1,500}\)|<img\b|https://\S{1,300}\.(?:png|jpe?g|gif)\b"
    r"|https://github\.com/user-attachments/assets/",
    re.I,
)


def shows_output_elsewhere(text: str) -> bool:
    """True if the text has a picture, or a link that it describes as a log, a trace or an error."""
    stored = (text[max(0, one.start() - 60) : one.start()].rpartition("\n")[2] for one in _STORE.finditer(text))
    logs = any(link.shows_output for link in find_links(text)) or any(map(_LOG.search, stored))
    return logs or _PICTURE.search(text) is not None


_STORE = re.compile(
    r"https://(?:(?:www\.)?pastebin\.com|paste\.ee|hastebin\.com|dpaste\.(?:org|com)|pastes\.dev|drive\.google\.com"
    r"|(?:www\.)?dropbox\.com|1drv\.ms|storage\.googleapis\.com)/[\w./?=&%#-]{4,200}"
)
"""Addresses of pastes and of stored files on other hosts. Nothing is read there."""


def find_stored_files(text: str) -> tuple[str, ...]:
    """Return the addresses of pastes and stored files that may be an input, each once."""
    found = (
        one[0].rstrip(".,")
        for one in _STORE.finditer(text)
        if not _LOG.search(text[max(0, one.start() - 60) : one.start()].rpartition("\n")[2])
    )
    return tuple(dict.fromkeys(found))[:MAX_LINKS]


_SCRIPT_CALL = re.compile(
    r"(?:^|[\s`$(;])(?:python[\d.]{0,5}|pytest|py\.test)(?:\s+-[\w=-]{1,60}){0,4}(?:\s+pytest)?\s+"
    r"(?P<path>[\w./~-]{1,300}\.py)\b",
    re.MULTILINE,
)


_SCRIPT_NAMED = re.compile(
    r"\b(?:run(?:s|ning)?|execut(?:e|es|ing)|reproduc\w{1,5})\b[^.!?;]{0,60}?(?:^|[\s`(])"
    r"(?P<path>[\w/~][\w./~-]{0,200}\.py)\b",
    re.MULTILINE,
)
"""A script that a sentence asks to run: ``just run tests/python/relay/test_op.py``."""


def find_source_script(text: str, folders: Sequence[str]) -> str:
    """Return the first script below one of ``folders`` that the text calls or asks to run, from that folder on.

    Empty without.
    """
    for call in (*_SCRIPT_CALL.finditer(text), *_SCRIPT_NAMED.finditer(text)):
        if path := cut_at_folder(call["path"], folders):
            return path
    return ""


def cut_at_folder(path: str, folders: Sequence[str]) -> str:
    """Return the part of a path from the first of ``folders`` on: the path below a checkout's root; empty without."""
    rooted = f"/{path}"
    starts = [at for folder in folders if (at := rooted.find(f"/{folder}/")) >= 0]
    return rooted[min(starts) + 1 :] if starts else ""


def add_addresses(missing: Sequence[Missing], text: str) -> tuple[Missing, ...]:
    """Add to each missing part the address of the attachment that most likely contains it.

    The stem of the name decides (``pool.mlir`` in ``pool.zip``). A single attachment fits a single missing part.
    """
    links = tuple(link for link in find_links(text) if not link.shows_output)
    addressed = []
    for entry in missing:
        stem = re.split(r"[\\/]", entry.name)[-1].partition(".")[0]
        fit = [link for link in links if stem and link.name.partition(".")[0] == stem]
        if not fit and len(links) == 1 and len(missing) == 1 and entry.kind in ("file", "code"):
            fit = list(links)
        addressed.append(replace(entry, url=fit[0].url) if fit else entry)
    return tuple(addressed)
