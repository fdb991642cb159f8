"""Make issues from text, and extract from them in one call."""

from __future__ import annotations

from datetime import date
from textwrap import dedent

from bot.extract import NoRepro, Repro, extract
from bot.issue import Comment, Issue


def make_issue(
    body: str, title: str = "[Bug] tvm fails", repository: str = "", comments: tuple[Comment, ...] = ()
) -> Issue:
    return Issue(
        source="test",
        title=title,
        body=dedent(body).strip("\n") + "\n",
        sha256="0" * 64,
        created=date(2026, 9, 1),
        author="reporter",
        repository=repository,
        comments=comments,
    )


def extract_repro(
    body: str, title: str = "[Bug] tvm fails", repository: str = "", comments: tuple[Comment, ...] = ()
) -> Repro:
    found = extract(make_issue(body, title, repository, comments))
    assert isinstance(found, Repro), found
    return found


def extract_no_repro(body: str, title: str = "[Bug] tvm fails", repository: str = "") -> NoRepro:
    found = extract(make_issue(body, title, repository))
    assert isinstance(found, NoRepro), found
    return found


def list_repairs(found: Repro) -> list[str]:
    return [repair.kind for repair in found.repairs]


def list_missing(found: Repro | NoRepro) -> list[tuple[str, str]]:
    return [(entry.kind, entry.name) for entry in found.missing]
