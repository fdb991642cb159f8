"""Search a range of builds by its observations: choose the next runs, and compute the answer. Pure.

The runner computes the answer, and the bot computes it again from the recorded observations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from runners.core.bisection import noisy
from runners.core.bisection.noisy import Conclusion, Event, Finished, Goals, Line, RunNext
from runners.core.protocol import (
    Answer,
    Bisection,
    BuildRange,
    Commit,
    CommitRange,
    Observation,
    Outcome,
    RangeBuild,
    Variant,
)

Prior = Callable[[Sequence[Commit], Literal["introduced", "fixed"]], Mapping[str, float]]
"""Commits and the direction of the change → weight by sha. A commit without an entry has the weight 0."""

PROBE_SECONDS = 5.0
"""Assumed time of a run, without the time to get the build."""


def make_line(build_range: BuildRange) -> Line:
    return Line(
        weights=noisy.mix_prior([max(0.0, build.weight) for build in build_range.builds[1:]]),
        commits=tuple(build.commits for build in build_range.builds),
        introduced=build_range.direction == "introduced",
    )


def make_goals(build_range: BuildRange) -> Goals:
    return Goals(stop=build_range.confidence, publish=build_range.publish, calibration=build_range.calibration)


def select_runs(build_range: BuildRange, observations: Iterable[Observation], device: str) -> list[Observation]:
    """Select the runs that count: the posted text on its own device, without infrastructure failures."""
    names = {build.name for build in build_range.builds}
    return [
        seen
        for seen in observations
        if seen.version in names
        and seen.variant is Variant.ORIGINAL
        and seen.device == device
        and seen.outcome is not Outcome.INFRA
    ]


def list_events(build_range: BuildRange, observations: Iterable[Observation], device: str) -> list[Event]:
    positions = {build.name: number for number, build in enumerate(build_range.builds)}
    return [(positions[seen.version], seen.answer) for seen in select_runs(build_range, observations, device)]


def list_given_up(
    build_range: BuildRange, observations: Iterable[Observation], device: str, most: int
) -> list[Event]:
    """List a skip for each build with ``most`` or more infrastructure failures: such a build is given up."""
    positions = {build.name: number for number, build in enumerate(build_range.builds)}
    ours = Counter(seen.version for seen in observations if seen.outcome is Outcome.INFRA and seen.device == device)
    return [
        (positions[name], Answer.SKIP)
        for name, times in ours.items()
        for _ in range(times - most + 1)
        if name in positions
    ]


def next_builds(
    build_range: BuildRange, events: Sequence[Event], seconds: Mapping[str, float], workers: int
) -> tuple[RangeBuild, ...]:
    """Return the builds to run now, in parallel. Empty if the search is over. ``seconds``: time to get each build."""
    step = noisy.choose_next(
        make_line(build_range),
        make_goals(build_range),
        events,
        _estimate_seconds(build_range, seconds),
        workers=workers,
    )
    match step:
        case RunNext(builds=numbers):
            return tuple(build_range.builds[number] for number in numbers)
        case Finished():
            return ()


def list_candidates(
    build_range: BuildRange, events: Sequence[Event], seconds: Mapping[str, float], under_way: Sequence[RangeBuild]
) -> tuple[RangeBuild, ...]:
    """List the builds to prepare while others run: those that the search needs next for either answer."""
    numbers = [build_range.builds.index(build) for build in under_way]
    wanted = noisy.predict_next(
        make_line(build_range), make_goals(build_range), events, _estimate_seconds(build_range, seconds), numbers
    )
    return tuple(build_range.builds[number] for number in wanted)


def _estimate_seconds(build_range: BuildRange, seconds: Mapping[str, float]) -> list[float]:
    return [PROBE_SECONDS + seconds.get(build.name, 0.0) for build in build_range.builds]


# ---------------------------------------------------------------------------------------------- the answer


def narrow_range(build_range: BuildRange, observations: Iterable[Observation], device: str) -> Bisection | str:
    """Return the regression range inside the range of builds, or the reason for its absence."""
    events = list_events(build_range, observations, device)
    found = noisy.conclude_search(make_line(build_range), make_goals(build_range), events)
    if isinstance(found, str):
        return f"{found}; every build has {build_range.over}: the change may lie there" if build_range.over else found
    older, newer = build_range.builds[found.older], build_range.builds[found.newer]
    came = build_range.direction == "introduced"
    return Bisection(
        direction=build_range.direction,
        last_good=older.name if came else None,
        first_bad=newer.name if came else None,
        last_bad=None if came else older.name,
        first_good=None if came else newer.name,
        skipped=_list_unanswered(build_range, found, events),
        confidence=round(found.confidence - (0.0 if found.verified else 0.1), 4),
        probes=len(events),
        commits=_count_commits(build_range, older, newer),
        culprit=newer.commit if found.single and newer.commit else None,
        deep=True,
        notes=(*_describe_evidence(build_range, found, events), *build_range.notes),
    )


def _list_unanswered(build_range: BuildRange, found: Conclusion, events: Sequence[Event]) -> tuple[str, ...]:
    """List the builds inside the range that were run and only skipped. Builds not run were given up with them."""
    tallies = noisy.count_runs(events)
    inside = range(found.older + 1, found.newer)
    return tuple(build_range.builds[n].name for n in inside if n in tallies and not tallies[n].runs)


def _count_commits(build_range: BuildRange, older: RangeBuild, newer: RangeBuild) -> CommitRange | None:
    if not older.commit or not newer.commit:
        return None
    link = f"https://github.com/{build_range.repository}/compare/{older.commit[:12]}...{newer.commit[:12]}"
    return CommitRange(
        start=older.commit,
        end=newer.commit,
        count=newer.commits - older.commits,
        compare_url=link if build_range.repository else "",
    )


def _describe_evidence(build_range: BuildRange, found: Conclusion, events: Sequence[Event]) -> tuple[str, ...]:
    tallies = noisy.count_runs(events)
    older, newer = tallies[found.older], tallies[found.newer]
    sides = (
        f"{t.fails} of {t.runs} runs fail on {build_range.builds[n].name}"
        for n, t in ((found.older, older), (found.newer, newer))
    )
    notes = [" and ".join(sides)]
    if found.unsteady:
        names = ", ".join(build_range.builds[number].name for number in found.unsteady[:4])
        notes.append(
            f"it changes more than once: {names} behaves as it does after the change; this is the newest one"
        )
    if not found.verified:
        notes.append("the runs allowed did not suffice to verify both sides")
    if build_range.over:
        notes.append(f"every build has {build_range.over}; the rest is its commit's")
    return tuple(notes)
