"""Where the behaviour changes, as it is shown: only changes that were seen, the deciding one first."""

from __future__ import annotations

from datetime import date

import pytest

from bot.report.sections.ranges import render_change
from bot.verdict.bisections import find_bisections
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import VerdictKind
from runners.core.packages.catalogue import Catalogue, Listing, Release
from runners.core.protocol import Outcome
from tests.support.observed import ORDER, PLAN, observe

M, P, I = Outcome.MATCH, Outcome.PASS, Outcome.INCOMPATIBLE  # noqa: E741 -- a row reads by letters
CATALOGUE = Catalogue(
    {
        "tvm": Listing(
            toolchain="tvm",
            repository="a/b",
            taken=date(2026, 1, 2),
            releases=tuple(
                Release(
                    toolchain="tvm",
                    version=version,
                    released=date(2026, 1, 1),
                    distributions=(f"x=={version}",),
                    pythons=("3.11",),
                    tag=f"v{version}",
                    ordinal=100 * i,
                )
                for i, version in enumerate(ORDER)
            ),
        )
    }
)


def seen(*outcomes: Outcome | None, twice: bool = True) -> Evidence:
    runs = tuple(
        observe(version, outcome, attempt=attempt)
        for version, outcome in zip(ORDER, outcomes, strict=True)
        if outcome is not None
        for attempt in ((1, 2) if twice else (1,))
    )
    return Evidence(plan=PLAN, observations=runs, findings=())


def test_a_fix_comes_first_and_how_far_back_it_goes_second() -> None:
    """With the commits between the pair."""
    fixed, introduced = find_bisections(seen(P, M, P, P), VerdictKind.FIXED, CATALOGUE)
    assert (fixed.direction, fixed.last_bad, fixed.first_good) == ("fixed", "1.1", "1.2")
    assert (introduced.last_good, introduced.first_bad) == ("1.0", "1.1")
    assert fixed.commits is not None
    assert (fixed.commits.compare_url, fixed.commits.count) == ("https://github.com/a/b/compare/v1.1...v1.2", 100)


def test_a_failure_on_every_release_has_no_change() -> None:
    """Bad on every release: no pair, no range."""
    assert find_bisections(seen(M, M, M, M), VerdictKind.CONFIRMED, CATALOGUE) == ()


def test_a_regression_has_its_pair_and_what_lies_between() -> None:
    """A build that could not answer stays in the range."""
    (found,) = find_bisections(seen(P, I, M, M), VerdictKind.REGRESSION, CATALOGUE)
    assert (found.last_good, found.first_bad, found.skipped) == ("1.0", "1.2", ("1.1",))


def test_a_release_that_did_not_run_is_untested_not_skipped() -> None:
    """Without a bisection there are such between the pair; the comment calls them what they are."""
    (found,) = find_bisections(seen(P, I, None, M), VerdictKind.REGRESSION, CATALOGUE)
    assert (found.skipped, found.untested) == (("1.1",), ("1.2",))
    assert render_change(found, {}).endswith("No answer: `1.1`. Not run: `1.2`.")


def test_disagreeing_runs_show_no_change() -> None:
    """Their change of answers is no change between releases."""
    flaky = Evidence(
        plan=PLAN, observations=(*seen(P, P, M, M).observations, observe("1.3", P, attempt=3)), findings=()
    )
    assert find_bisections(flaky, VerdictKind.FLAKY, CATALOGUE) == ()


@pytest.mark.parametrize(("twice", "confidence"), [(True, 0.98), (False, 0.9)])
def test_both_ends_seen_twice_are_surer(twice: bool, confidence: float) -> None:
    """One run each might be a fluke."""
    (found,) = find_bisections(seen(P, P, M, M, twice=twice), VerdictKind.REGRESSION, CATALOGUE)
    assert found.confidence == confidence
