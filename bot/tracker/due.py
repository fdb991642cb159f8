"""Decide which issues a sweep runs again: those with a verdict that may have changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from bot.extract.parsed_issue import MAX_COMMENTS
from bot.issue import Issue
from bot.settings import Settings
from bot.tracker.rows import FAILED, Fingerprint, IssueRow
from bot.verdict.verdict import VerdictKind
from runners.core.packages.catalogue import Catalogue

NEW, FAILED_BEFORE, TEXT, SETTINGS, PRODUCT, RELEASE = (
    *("new issue", "failed before", "text changed", "settings changed", "new version of Reprobot", "new release"),
)
_DECIDING = (("bot", ("extract", "verdict", "plan.py", "requests/testcase.py")), ("runners", ("",)))
"""The code that decides an answer, without the code that only shows it."""
_NEVER_RUN = frozenset({VerdictKind.NO_REPRO, VerdictKind.NO_CLAIM, VerdictKind.INCOMPLETE})


def explain_due(row: IssueRow | None, now: Fingerprint, *, is_open: bool) -> str:
    """Return why the issue is to be answered again; empty if its answer is still valid.

    A new release can change the answer of an open issue that is not fixed, and of a closed one that is: a fix may
    arrive, and a fixed failure may come back.
    """
    if row is None:
        return NEW
    if row.verdict == FAILED:
        return FAILED_BEFORE
    before = row.fingerprint
    for name, reason in (("text", TEXT), ("settings", SETTINGS), ("product", PRODUCT)):
        if getattr(before, name) != getattr(now, name):
            return reason
    if before.builds != now.builds and row.verdict not in _NEVER_RUN:
        return RELEASE if is_open == (row.verdict != VerdictKind.FIXED) else ""
    return ""


def digest_text(issue: Issue) -> str:
    """Return the digest of all parts of an issue that extraction reads, with the author's first comments."""
    own = [comment.body for comment in issue.comments if issue.is_by(comment.author)][:MAX_COMMENTS]
    parts = [issue.sha256, *own, *(one.sha256 for one in issue.attachments)]
    return _digest("\0".join(parts).encode("utf-8", "replace"))


def digest_settings(settings: Settings) -> str:
    return _digest(msgspec.json.encode(settings, order="sorted"))


def digest_builds(catalogue: Catalogue, toolchain: str) -> str:
    """Return the digest of the builds of a toolchain; empty for no toolchain."""
    if not toolchain:
        return ""
    builds = catalogue.list_releases(toolchain, prereleases=True)
    return _digest("\n".join(sorted(build.version for build in builds)).encode())


@cache
def digest_product() -> str:
    """Return the digest of the code that decides an answer."""
    whole = sha256()
    for package, parts in _DECIDING:
        for part in parts:
            for name, file in _list_files(files(package).joinpath(part) if part else files(package), part):
                whole.update(f"{package}/{name}\0".encode() + file.read_bytes())
    return whole.hexdigest()[:16]


def _list_files(place: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    if place.is_file():
        if name.endswith((".py", ".json")):
            yield name, place
    elif not name.endswith("__pycache__"):
        for inner in sorted(place.iterdir(), key=lambda one: one.name):
            yield from _list_files(inner, f"{name}/{inner.name}")


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
