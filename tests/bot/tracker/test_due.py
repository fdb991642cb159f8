"""What a new release, an edit and a new version make due. The sweep's own tests run these cases for real."""

from __future__ import annotations

import msgspec
import pytest

from bot.tracker.due import digest_builds, digest_product, explain_due
from bot.tracker.rows import FAILED, Fingerprint
from runners.core.packages.catalogue import load_catalogue
from tests.bot.tracker.rows import make_row
from tests.bot.tracker.world import OLD, limit_catalogue

THEN = Fingerprint(text="t", settings="s", product="p", builds="b")
RELEASED = msgspec.structs.replace(THEN, builds="c")


@pytest.mark.parametrize(
    ("verdict", "is_open", "due"),
    [
        ("confirmed", True, True),
        ("confirmed", False, False),
        ("regression", True, True),
        ("fixed", True, False),
        ("fixed", False, True),
        ("not-reproduced", True, True),
        ("inconclusive", True, True),
        ("no-repro", True, False),
        ("incomplete", True, False),
        ("no-claim", False, False),
    ],
)
def test_new_release(verdict: str, *, is_open: bool, due: bool) -> None:
    row = make_row("1", verdict=verdict, fingerprint=THEN)
    assert bool(explain_due(row, RELEASED, is_open=is_open)) == due
    assert explain_due(row, THEN, is_open=is_open) == ""


@pytest.mark.parametrize("name", ["text", "settings", "product"])
def test_anything_else_that_decides_makes_every_answer_due(name: str) -> None:
    row = make_row("1", verdict="no-repro", fingerprint=THEN)
    assert explain_due(row, msgspec.structs.replace(THEN, **{name: "x"}), is_open=False)


def test_new_and_failed_issues_are_due() -> None:
    assert explain_due(None, THEN, is_open=True)
    assert explain_due(make_row("1", verdict=FAILED, fingerprint=THEN), THEN, is_open=True)


def test_builds_of_another_compiler_do_not_matter() -> None:
    old, new = limit_catalogue(OLD), load_catalogue()
    assert digest_builds(old, "tvm") != digest_builds(new, "tvm")
    assert digest_builds(old, "iree") == digest_builds(new, "iree")
    assert digest_builds(new, "") == ""


def test_product_is_the_code_that_decides() -> None:
    assert len(digest_product()) == 16
