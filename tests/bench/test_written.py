"""The texts of written first looks that are kept in this repository, as a tuning set: no run is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.cli.context import read_issue
from bot.extract import extract
from bot.extract.types import Intent

pytestmark = pytest.mark.thorough

FIRST_LOOKS = Path(__file__).parents[2] / "bench" / "first_looks"


def list_labels() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for folder in sorted((FIRST_LOOKS / "written").iterdir()):
        labels = json.loads((FIRST_LOOKS / f"round-{folder.name}.json").read_text(encoding="utf-8"))
        found += [(path, one) for one in labels if (path := folder / f"{one['number']}.md").exists()]
    return found


def is_about_lost_name(label: dict[str, Any]) -> bool:
    """True for a report on a name that newer releases lack, which the bot may answer or leave."""
    return label["truth"] == "api-drift" or (label["truth"] == "silent" and "invalid-repro" in label["accept"])


LEFT = {
    "203/18791": "a wish for a clearer message: some readers call it a failure, as here, and some a request",
}
"""Round and number → why the text is read in another way than its reader did."""


def make_case(path: Path, label: dict[str, Any]) -> Any:  # the type of pytest.param has no public name
    reason = LEFT.get(f"{path.parent.name}/{path.stem}")
    marks = () if reason is None else (pytest.mark.xfail(reason=reason),)
    return pytest.param(path, label, id=path.stem, marks=marks)


@pytest.mark.parametrize(("path", "label"), [make_case(*one) for one in list_labels()])
def test_only_a_text_without_a_claim_is_left_unanswered(path: Path, label: dict[str, Any]) -> None:
    issue = read_issue(str(path), None, attach=False)
    intent = extract(issue).intent
    assert is_about_lost_name(label) or (intent is Intent.FAILURE) is (label["truth"] != "silent")
    assert issue.number == label["number"]
