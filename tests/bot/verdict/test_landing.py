"""Where a fix landed: only what runs and dates say."""

from __future__ import annotations

from dataclasses import replace

from bot.report.document import make_document
from bot.report.sections.ranges import render_landing
from bot.verdict.landing import FixLanding, find_landing
from bot.verdict.verdict import Report, VerdictKind
from runners.core.protocol import Bisection, Outcome
from tests.bot.report.reports import fixed_crash, released, seen

SHA = "1234567890ab" + "c" * 28
NIGHTLY = "3.7.0rc20250710"
DEEP = Bisection(
    direction="fixed",
    last_bad="3.7.0rc20250709",
    first_good=NIGHTLY,
    culprit=SHA,
    deep=True,
    confidence=0.99,
    probes=9,
)


def report(*extra: Bisection, maintained: Outcome | None = Outcome.MATCH, on: str = "2025-08-01") -> Report:
    """Return a report whose fix is in 3.6.0; a maintenance release 3.5.1 came out on a day, and may have run."""
    plain = fixed_crash()
    runs = plain.observations
    if maintained is not None:
        runs += (seen("3.5.1", maintained, toolchain="iree", device="llvm-cpu"),)
    more = released("iree", v3_5_1=on)
    releases = tuple(sorted((*plain.releases, *more), key=lambda one: one.order))
    return replace(plain, observations=runs, releases=releases, bisections=(*extra, *plain.bisections))


def test_a_fix_between_releases_names_its_commit_and_its_first_release() -> None:
    assert find_landing(report(DEEP, maintained=None)) == FixLanding(change=SHA, is_commit=True, release="3.6.0")
    assert render_landing(report(DEEP, maintained=None)) == (
        "Fixed in commit `1234567890ab`, first released in `3.6.0`."
    )
    assert render_landing(report(maintained=None)) == ""


def test_a_nightly_stands_for_a_commit_that_was_not_found() -> None:
    deep = replace_culprit(DEEP)
    assert render_landing(report(deep, maintained=None)) == f"Fixed in `{NIGHTLY}`, first released in `3.6.0`."


def replace_culprit(one: Bisection) -> Bisection:
    return Bisection(direction="fixed", last_bad=one.last_bad, first_good=one.first_good, deep=True)


def test_a_maintenance_release_after_the_fix_that_fails_is_named() -> None:
    assert render_landing(report(DEEP)) == (
        "Fixed in commit `1234567890ab`, first released in `3.6.0`, not in `3.5.1`, released after the fix."
    )
    assert render_landing(report()) == "Fixed in `3.6.0`, not in `3.5.1`, released after the fix."
    assert make_document(report(), "")["landing"] == {
        "change": None,
        "commit": False,
        "release": "3.6.0",
        "without": ["3.5.1"],
    }


def test_a_release_before_the_fix_is_not_worth_a_word() -> None:
    """3.5.1 in June, the fix in July: everybody expects the failure there."""
    assert find_landing(report(on="2025-06-20")) is None


def test_nothing_is_said_of_a_release_that_was_not_run_or_did_not_fail() -> None:
    assert find_landing(report(maintained=None)) is None
    assert find_landing(report(maintained=Outcome.PASS)) is None
    assert find_landing(report(maintained=Outcome.INCOMPATIBLE)) is None


def test_only_a_fixed_failure_has_landed() -> None:
    plain = report(DEEP)
    other = replace(plain, verdict=replace(plain.verdict, kind=VerdictKind.REGRESSION))
    assert find_landing(other) is None
