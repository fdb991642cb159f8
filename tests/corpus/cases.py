"""The corpus as values: one directory per case, ``issue.md`` beside ``expected.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bot.forge.source import parse_issue
from bot.issue import Issue

ROOT = Path(__file__).parent
TODAY = date(2026, 11, 21)
"""The day on which undated issues count as written: the corpus must not change its meaning with the calendar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    issue: Issue
    expected: dict[str, Any]

    @property
    def bullets(self) -> tuple[str, ...]:
        return tuple(self.expected["bullets"])


def load(directory: Path) -> Case:
    name = directory.relative_to(ROOT).as_posix()
    issue = parse_issue((directory / "issue.md").read_bytes(), source=name, today=TODAY)
    return Case(name=name, issue=issue, expected=json.loads((directory / "expected.json").read_text()))


def cases(*, heldout: bool = False) -> Iterator[Case]:
    """All cases in order of name; the ones kept aside only when asked for, and then alone."""
    for file in sorted(ROOT.rglob("expected.json")):
        if ("heldout" in file.relative_to(ROOT).parts) is heldout:
            yield load(file.parent)
