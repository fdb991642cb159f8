"""Read an issue from a Markdown file, standard input or GitHub."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from bot.extract.links import GITHUB
from bot.issue import Comment, Issue, explain_address, parse_issue_address
from runners.core.errors import UserError

MAX_BYTES = 1024 * 1024
"""GitHub stores issue bodies of at most 256 KiB; a file may also contain comments."""
MAX_FRONT_MATTER = 16 * 1024

Fetch = Callable[[str, int], Issue]
"""Repository and number → the issue on GitHub."""


def read_source(source: str, *, today: date, fetch: Fetch, host: str = GITHUB) -> Issue:
    """Read the issue that ``source`` names: a path, ``-``, ``owner/repo#N`` or a URL on the forge's ``host``.

    Raises:
        UserError: the file or issue does not exist, or the file's content is not an issue text.
        InfraError: GitHub does not answer.
    """
    if why := explain_address(source, host):
        raise UserError(why)
    if (address := parse_issue_address(source)) is not None:
        return fetch(*address)
    if source == "-":
        return parse_issue(sys.stdin.buffer.read(MAX_BYTES + 1), source="standard input", today=today)
    return parse_issue(_read_file(Path(source)), source=source, today=today)


def _read_file(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UserError(f"{path} is a directory: name a Markdown file with the issue's text")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if re.fullmatch(r"[\w.-]{1,100}/[\w.-]{1,100}", str(path)) and not path.suffix:
            why = f"there is no file {path}: if this is a repository, add an issue's number, {path}#N"
            raise UserError(why) from None
        raise UserError(
            f"there is no file {path}: give a Markdown file, '-', owner/repo#N or an issue's URL"
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


_DATES = ("created", "created_at", "createdAt")
"""Names of the date in front matter. The last two are those of GitHub's API and of its command line."""


def parse_issue(data: bytes, *, source: str, today: date) -> Issue:
    """Parse front matter (optional), a title line ``# …`` (optional), then the body.

    ``source`` names the text in messages. ``today`` is the date of an issue without one: the date decides how
    dependencies are resolved, so it is never empty.

    Raises:
        UserError: the text is too large, not UTF-8, or empty, or its front matter is not YAML.
    """
    if len(data) > MAX_BYTES:
        raise UserError(
            f"{source} is larger than {MAX_BYTES // 1024} KiB, more than any issue: shorten it to the report"
        )
    if b"\0" in data:
        raise UserError(f"{source} is a binary file: give the issue's text as Markdown")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{source} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    if not text.strip():
        raise UserError(f"{source} is empty: give the issue's text as Markdown")
    front, text = _split_front_matter(text, source)
    title, body = _split_title(text, str(front.get("title", ""))[:300])
    return Issue(
        source=source,
        title=title,
        body=body,
        sha256=hashlib.sha256(data).hexdigest(),
        created=_read_date(next((front[name] for name in _DATES if name in front), None), today),
        author=str(front.get("author", ""))[:100],
        repository=str(front.get("repository", ""))[:200],
        number=_read_number(front.get("number"), source),
        labels=tuple(str(label)[:100] for label in _list_items(front.get("labels"))),
        comments=tuple(
            Comment(author=str(c.get("author", ""))[:100], body=str(c.get("body", "")))
            for c in _list_items(front.get("comments"))
            if isinstance(c, dict)
        ),
    )


def is_open(data: bytes, source: str) -> bool:
    """True unless the front matter of an issue file says ``state: closed``.

    Raises:
        UserError: the front matter is not YAML.
    """
    front, _ = _split_front_matter(data.decode("utf-8-sig", "replace").replace("\r\n", "\n"), source)
    return str(front.get("state", "")).strip().lower() != "closed"


def _split_front_matter(text: str, source: str) -> tuple[dict[str, Any], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, end, rest = text[4:].partition("\n---\n")
    if not end:
        return {}, text  # some people begin a text with a thematic break
    if len(head) > MAX_FRONT_MATTER or head.count("*") > 20:  # aliases multiply: a small file can expand to gigabytes
        raise UserError(f"the front matter of {source} is too large or full of aliases: keep to plain keys")
    try:
        # Every scalar stays text: YAML's own numbers (``1:1:1`` is base 60), dates and tags raise errors of many
        # types, and an integer of 5,000 digits can neither be shown nor written as JSON.
        front = yaml.BaseLoader(head).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise UserError(f"the front matter of {source} cannot be read: {problem}") from None
    return (front, rest) if isinstance(front, dict) else ({}, text)


def _split_title(text: str, given: str) -> tuple[str, str]:
    """Return title and body. The title is ``given``, else the first non-empty line if that is a level-one heading.

    Below a given title, a heading with other words is the first heading of the body.
    """
    stripped = text.lstrip("\n")
    first, _, rest = stripped.partition("\n")
    heading = first[2:].strip() if first.startswith("# ") else ""
    if heading and given in ("", heading):
        return heading, rest.lstrip("\n")
    return given, text


def _list_items(value: object) -> list[Any]:
    return value[:100] if isinstance(value, list) else []


def _read_number(value: object, source: str) -> int | None:
    """Read the issue's number. Refuse a number that no forge uses: the report would name another issue."""
    if value is None or value in ("", "null", "~"):
        return None
    if isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,17}", value, re.ASCII):
        return int(value)
    raise UserError(f"the number in the front matter of {source} is {str(value)[:40]!r}: write digits, such as 12")


def _read_date(value: object, today: date) -> date:
    text = str(value or "")
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).date() if moment.tzinfo else moment.date()
    except (ValueError, OverflowError):
        pass
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return today
