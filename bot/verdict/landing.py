"""Find where a fix landed: the first build and release with it, and later releases without it. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from bot.verdict.verdict import Report, VerdictKind
from runners.core.packages.catalogue import parse_nightly_date
from runners.core.protocol import Answer, Bisection, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class FixLanding:
    """Where a fix arrived. Every release named here was run."""

    change: str = ""
    """Full sha of the fix, or the first build between releases that has it; empty if only releases were run."""
    is_commit: bool = False
    """True if ``change`` is a commit."""
    release: str = ""
    """The first release with the fix; empty if none is known."""
    without: tuple[str, ...] = ()
    """Releases of older lines that were published after the fix and still fail: maintenance branches without it."""


def find_landing(report: Report) -> FixLanding | None:
    """Return where the fix landed; None for another verdict, and if only the fixing release is known."""
    if report.verdict.kind is not VerdictKind.FIXED:
        return None
    fixes = [one for one in report.bisections if one.direction == "fixed" and one.first_good]
    deep = next((one for one in fixes if one.deep), None)
    release = next((one.first_good for one in fixes if not one.deep and one.first_good), "")
    landing = FixLanding(
        change=(deep.culprit or deep.first_good or "") if deep is not None else "",
        is_commit=deep is not None and bool(deep.culprit),
        release=release,
        without=_list_releases_without(report, deep, release) if release else (),
    )
    return landing if landing.change or landing.without else None


def _list_releases_without(report: Report, deep: Bisection | None, release: str) -> tuple[str, ...]:
    """Return the releases of a lower version than ``release`` that came after the fix, ran, and only failed."""
    fixed_on, first = _find_day(report, deep, release), report.find_release(release)
    if fixed_on is None or first is None or report.plan is None:
        return ()
    answers: dict[str, set[Answer]] = defaultdict(set)
    for seen in report.observations:
        if seen.device == report.plan.device and seen.variant is Variant.ORIGINAL:
            answers[seen.version].add(seen.answer)
    return tuple(
        one.version
        for one in report.releases
        if one.is_ordinary
        and one.order < first.order
        and one.released > fixed_on
        and Answer.BAD in answers[one.version]
        and Answer.GOOD not in answers[one.version]
    )


def _find_day(report: Report, deep: Bisection | None, release: str) -> date | None:
    """Return the day of the sources of the first build with the fix."""
    name = (deep.first_good if deep is not None else None) or release
    if (build := report.find_release(name)) is not None:
        return build.built_on if deep is not None else build.released
    return parse_nightly_date(name)
