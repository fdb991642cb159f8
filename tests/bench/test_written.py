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


ROUNDS = sorted(folder.name for folder in (FIRST_LOOKS / "written").iterdir())


def list_labels(folder: str) -> list[tuple[Path, dict[str, Any]]]:
    labels = json.loads((FIRST_LOOKS / f"round-{folder}.json").read_text(encoding="utf-8"))
    texts = FIRST_LOOKS / "written" / folder
    return [(path, one) for one in labels if (path := texts / f"{one['number']}.md").exists()]


def is_about_lost_name(label: dict[str, Any]) -> bool:
    """True for a report on a name that newer releases lack, which the bot may answer or leave."""
    return label["truth"] == "api-drift" or (label["truth"] == "silent" and "invalid-repro" in label["accept"])


LEFT = {
    "203/18791": "a wish for a clearer message: some readers call it a failure, as here, and some a request",
    "227/18026": "a broken installation from a checkout: no failure of a build here, and the reader accepts silence",
    "231/18294": "a C++ error of a downstream project: the answer asks for a testcase, which the reader accepts",
}
"""Round and number → why the text is read in another way than its reader did."""


def is_read_as_labelled(path: Path, label: dict[str, Any]) -> bool:
    issue = read_issue(str(path), None, attach=False)
    assert issue.number == label["number"]
    is_failure = extract(issue).intent is Intent.FAILURE
    return is_about_lost_name(label) or is_failure is (label["truth"] != "silent")


@pytest.mark.parametrize("folder", ROUNDS)
def test_only_a_text_without_a_claim_is_left_unanswered(folder: str) -> None:
    labels = list_labels(folder)
    assert labels
    misread = {f"{folder}/{path.stem}" for path, label in labels if not is_read_as_labelled(path, label)}
    assert misread == {name for name in LEFT if name.startswith(f"{folder}/")}
