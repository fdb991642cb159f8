"""A trail and the observations along it → what to run next, and what the answer is. Pure: both sides compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from runners.core.bisection import noisy
from runners.core.bisection.noisy import Conclusion, Event, Finished, Goals, Line, Probe
from runners.core.protocol import (
    Answer,
    Bisection,
    Commit,
    CommitRange,
    Observation,
    Outcome,
    Trail,
    TrailBuild,
    Variant,
)

Prior = Callable[[Sequence[Commit], Literal["introduced", "fixed"]], Mapping[str, float]]
"""Commits, and what is looked for → by sha, how likely each is to be it; what it leaves out has no weight."""

PROBE_S = 5.0
"""What a run takes beside having the build, as far as is known beforehand."""


def line_of(trail: Trail) -> Line:
    return Line(
        weights=noisy.mixed([max(0.0, build.weight) for build in trail.builds[1:]]),
        commits=tuple(build.commits for build in trail.builds),
        introduced=trail.direction == "introduced",
    )


def goals_of(trail: Trail) -> Goals:
    return Goals(stop=trail.confidence, publish=trail.publish, calibration=trail.calibration)


def along(trail: Trail, observations: Iterable[Observation], device: str) -> list[Observation]:
    """The runs that count: the text as posted, on its own device; none that failed through us."""
    names = {build.name for build in trail.builds}
    return [
        seen
        for seen in observations
        if seen.version in names
        and seen.variant is Variant.ORIGINAL
        and seen.device == device
        and seen.outcome is not Outcome.INFRA
    ]


def events_of(trail: Trail, observations: Iterable[Observation], device: str) -> list[Event]:
    place = {build.name: number for number, build in enumerate(trail.builds)}
    return [(place[seen.version], seen.answer) for seen in along(trail, observations, device)]


def given_up(trail: Trail, observations: Iterable[Observation], device: str, most: int) -> list[Event]:
    """Builds on which we failed ourselves so often that they are taken to answer nothing."""
    place = {build.name: number for number, build in enumerate(trail.builds)}
    ours = Counter(seen.version for seen in observations if seen.outcome is Outcome.INFRA and seen.device == device)
    return [
        (place[name], Answer.SKIP) for name, times in ours.items() for _ in range(times - most + 1) if name in place
    ]


def next_builds(
    trail: Trail, events: Sequence[Event], seconds: Mapping[str, float], workers: int
) -> tuple[TrailBuild, ...]:
    """The builds to run now, side by side; none when enough is known. ``seconds``: what having each build takes."""
    step = noisy.advise(line_of(trail), goals_of(trail), events, _seconds(trail, seconds), workers=workers)
    match step:
        case Probe(builds=numbers):
            return tuple(trail.builds[number] for number in numbers)
        case Finished():
            return ()


def soon(
    trail: Trail, events: Sequence[Event], seconds: Mapping[str, float], under_way: Sequence[TrailBuild]
) -> tuple[TrailBuild, ...]:
    """Builds worth having ready while others run."""
    numbers = [trail.builds.index(build) for build in under_way]
    wanted = noisy.lookahead(line_of(trail), goals_of(trail), events, _seconds(trail, seconds), numbers)
    return tuple(trail.builds[number] for number in wanted)


def _seconds(trail: Trail, seconds: Mapping[str, float]) -> list[float]:
    return [PROBE_S + seconds.get(build.name, 0.0) for build in trail.builds]


# ---------------------------------------------------------------------------------------------- the answer


def narrowed(trail: Trail, observations: Iterable[Observation], device: str) -> Bisection | str:
    """Where the behaviour changes along the trail; or, in words, why that cannot be told."""
    events = events_of(trail, observations, device)
    found = noisy.conclude(line_of(trail), goals_of(trail), events)
    if isinstance(found, str):
        return f"{found}; every build has {trail.over}: the change may lie there" if trail.over else found
    older, newer = trail.builds[found.older], trail.builds[found.newer]
    came = trail.direction == "introduced"
    return Bisection(
        direction=trail.direction,
        last_good=older.name if came else None,
        first_bad=newer.name if came else None,
        last_bad=None if came else older.name,
        first_good=None if came else newer.name,
        skipped=_unanswered(trail, found, events),
        confidence=round(found.confidence - (0.0 if found.verified else 0.1), 4),
        probes=len(events),
        commits=_commits(trail, older, newer),
        culprit=newer.commit if found.single and newer.commit else None,
        deep=True,
        notes=(*_words(trail, found, events), *trail.notes),
    )


def _unanswered(trail: Trail, found: Conclusion, events: Sequence[Event]) -> tuple[str, ...]:
    """Builds inside the range that were run and answered nothing; those not run were given up with them."""
    tallies = noisy.tally(events)
    inside = range(found.older + 1, found.newer)
    return tuple(trail.builds[n].name for n in inside if n in tallies and not tallies[n].runs)


def _commits(trail: Trail, older: TrailBuild, newer: TrailBuild) -> CommitRange | None:
    if not older.commit or not newer.commit:
        return None
    place = f"https://github.com/{trail.repository}/compare/{older.commit[:12]}...{newer.commit[:12]}"
    return CommitRange(
        start=older.commit,
        end=newer.commit,
        count=newer.commits - older.commits,
        compare_url=place if trail.repository else "",
    )


def _words(trail: Trail, found: Conclusion, events: Sequence[Event]) -> tuple[str, ...]:
    tallies = noisy.tally(events)
    older, newer = tallies[found.older], tallies[found.newer]
    sides = (
        f"{t.fails} of {t.runs} runs fail on {trail.builds[n].name}"
        for n, t in ((found.older, older), (found.newer, newer))
    )
    words = [" and ".join(sides)]
    if found.unsteady:
        names = ", ".join(trail.builds[number].name for number in found.unsteady[:4])
        words.append(
            f"it changes more than once: {names} behaves as it does after the change; this is the newest one"
        )
    if not found.verified:
        words.append("the runs allowed did not suffice to verify both sides")
    if trail.over:
        words.append(f"every build has {trail.over}; the rest is its commit's")
    return tuple(words)
