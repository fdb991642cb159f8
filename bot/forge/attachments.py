"""Add the files that an issue links to, fetched from the forge's own hosts. On any error the file is merely missing.

Files are never unpacked to disk: a file becomes text in the issue, or a refusal with its reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from bot.extract import extract
from bot.extract.blocks.hidden import drop_hidden
from bot.extract.blocks.markdown import parse_markdown
from bot.extract.links import GITHUB, Link, find_links as find_links_in
from bot.forge.archives import NamedBytes, unpack_zip
from bot.forge.download import Download, FetchError
from bot.forge.file_rules import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, check_file_name, is_zip
from bot.forge.source_files import list_source_links
from bot.issue import Attachment, Issue, RefusedFile

MAX_COMMENTS = 5


def add_attachments(issue: Issue, *, toolchain: str | None, forge: str, download: Download) -> Issue:
    """Return ``issue`` with the files it links to, if its text alone is not a complete testcase. Raises no error."""
    found = extract(issue, toolchain=toolchain)
    if not found.missing:
        return issue
    links = (*find_links(issue, forge), *list_source_links(issue, found, forge))
    files = fetch_attachments(links, download)
    return replace(
        issue,
        attachments=tuple(file for file in files if isinstance(file, Attachment)),
        refused=tuple(file for file in files if isinstance(file, RefusedFile)),
    )


def find_links(issue: Issue, forge: str = GITHUB) -> tuple[Link, ...]:
    """Return links to inputs in the prose of the description and the author's first comments. Logs are left out."""
    issue = drop_hidden(issue)
    own = [comment.body for comment in issue.comments if issue.is_by(comment.author)]
    documents = (parse_markdown(body) for body in (issue.body, *own[:MAX_COMMENTS]))
    prose = "\n".join(part.text for document in documents for part in document.prose)
    return tuple(link for link in find_links_in(prose, forge) if not link.shows_output)


def fetch_attachments(links: Sequence[Link], download: Download) -> tuple[Attachment | RefusedFile, ...]:
    """Return every text file behind ``links``, also inside zips, and a refusal for every other file.

    Raises no error.
    """
    taken: list[Attachment | RefusedFile] = []
    left = MAX_TOTAL_BYTES
    for number, link in enumerate(links):
        if number < MAX_FILES:
            files, cost = _fetch_link(link, download, left)
            left -= cost
        else:
            files = [_refuse_link(link, f"is behind more than {MAX_FILES} links")]
        taken += (file if isinstance(file, RefusedFile) else _decode_text(*file, link) for file in files)
    return tuple(taken)


def _fetch_link(link: Link, download: Download, left: int) -> tuple[list[NamedBytes | RefusedFile], int]:
    """Return the files behind one link, and the bytes that fetching and unpacking took, at most ``left``."""
    name = _get_file_name(link)
    if why := check_file_name(name):
        return [_refuse_link(link, why)], 0
    try:
        data = download(f"{link.url}/raw" if link.gist else link.url, min(MAX_FILE_BYTES, left))
    except FetchError as error:
        return [_refuse_link(link, str(error))], 0
    if not is_zip(name):
        return [(name, data)], len(data)
    files = unpack_zip(name, data, url=link.url, budget=left - len(data))
    return files, len(data) + sum(len(file[1]) for file in files if not isinstance(file, RefusedFile))


def _refuse_link(link: Link, why: str) -> RefusedFile:
    return RefusedFile(name=_get_file_name(link), url=link.url, why=why)


def _get_file_name(link: Link) -> str:
    """Return the link's bare file name; empty for a gist, whose file has a name only on its page."""
    return "" if link.gist else PurePosixPath(unquote(link.name, errors="replace")).name


def _decode_text(name: str, data: bytes, link: Link) -> Attachment | RefusedFile:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return RefusedFile(name=name, url=link.url, why=f"is not UTF-8 text (byte {error.start})")
    if "\0" in text:
        return RefusedFile(name=name, url=link.url, why="is a binary file by its content")
    link_name = _get_file_name(link)
    return Attachment(
        name=name,
        text=text.replace("\r\n", "\n"),
        url=link.url,
        sha256=hashlib.sha256(data).hexdigest(),
        archive=link_name if is_zip(link_name) else "",
    )
