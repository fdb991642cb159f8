"""Search the builds of a range: run some in parallel, while the next ones are prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from runners.core.bisection import commits as search
from runners.core.protocol import BuildRange, Observation, Outcome, RangeBuild

MOST_HICCUPS = 3
"""Number of infrastructure failures after which a build is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSupply:
    """The effects of providing builds."""

    seconds: Callable[[], Mapping[str, float]]
    """The seconds that it takes to provide each build, by name. Builds that are ready are absent."""
    prepare: Callable[[str], None]
    """Provide a build. Never raises: the run of a build reports that it could not be provided."""
    helper: Executor
    """Prepares builds while others run."""


Attempt = Callable[[str, int], Observation]
"""Run the testcase on a named build, the given attempt (1-based)."""


def search_builds(
    build_range: BuildRange,
    *,
    device: str,
    known: Iterable[Observation],
    attempt: Attempt,
    supply: BuildSupply,
    executor: Executor,
    workers: int,
    expired: Callable[[], bool],
) -> tuple[Observation, ...]:
    """Run the builds that the search chooses, until it ends or the runs or the time are used up.

    ``known`` observations count. Return the new ones, in the order of their runs.
    """
    seen = list(known)
    before = len(seen)
    waiting: dict[str, Future[None]] = {}
    while len(seen) - before < build_range.probes and not expired():
        events = [
            *search.list_events(build_range, seen, device),
            *search.list_given_up(build_range, seen, device, MOST_HICCUPS),
        ]
        seconds = supply.seconds()
        wanted = search.next_builds(build_range, events, seconds, workers)[
            : build_range.probes - (len(seen) - before)
        ]
        if not wanted:
            break
        if any(seconds.values()):
            _prepare_builds(supply, waiting, [*wanted, *search.list_candidates(build_range, events, seconds, wanted)])
        seen += _run_builds(wanted, seen, waiting, attempt, executor)
    for future in waiting.values():
        future.cancel()
    return tuple(seen[before:])


def _prepare_builds(supply: BuildSupply, waiting: dict[str, Future[None]], builds: Sequence[RangeBuild]) -> None:
    for build in builds:
        if build.name not in waiting:
            waiting[build.name] = supply.helper.submit(supply.prepare, build.name)


def _run_builds(
    wanted: Sequence[RangeBuild],
    seen: Sequence[Observation],
    waiting: Mapping[str, Future[None]],
    attempt: Attempt,
    executor: Executor,
) -> list[Observation]:
    runs = {build.name: sum(one.version == build.name for one in seen) for build in wanted}
    pending = []
    for build in wanted:
        runs[build.name] += 1
        pending.append(
            executor.submit(_run_when_ready, build.name, runs[build.name], waiting.get(build.name), attempt)
        )
    return [future.result() for future in pending]


def _run_when_ready(name: str, number: int, ready: Future[None] | None, attempt: Attempt) -> Observation:
    if ready is not None:
        ready.result()
    found = attempt(name, number)
    return attempt(name, number) if found.outcome is Outcome.INFRA else found
