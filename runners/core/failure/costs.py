"""Decide which runs took too much time or memory, if the report claims that. Pure.

Durations differ between machines. So the releases are compared with each other. The claim is true for successive
releases if each of their runs took several times as much as any run of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import judge_again
from runners.core.protocol import Answer, ClaimKind, Observation, Outcome, Plan, Reason, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A measured quantity of a run, and the difference between releases that counts."""

    read: Callable[[Observation], float]
    show: Callable[[float], str]
    factor: float
    """Minimum ratio of the least value on the worse side to the greatest value on the better side."""
    floor: float
    """Minimum difference, in the unit of `read`."""
    verb: str
    more: str
    """The end of the sentence ``no release takes 3 times … another``."""


QUANTITIES = {
    # Two runs of one build differ by up to 1.8 times on a machine with two processes per core (measured).
    ClaimKind.SLOW: Quantity(
        read=lambda seen: seen.seconds,
        show=lambda value: f"{value:.1f} s",
        factor=3,
        floor=1.0,
        verb="takes",
        more="as long as",
    ),
    # A run in a warm process shares its imports: one program took 86 and 147 MiB (measured).
    ClaimKind.MEMORY: Quantity(
        read=lambda seen: float(seen.peak_bytes),
        show=lambda value: f"{value / 2**20:.0f} MiB",
        factor=2,
        floor=256 * 2**20,
        verb="uses",
        more="as much memory as",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The values of the clean runs of some releases, oldest release first."""

    versions: tuple[str, ...]
    least: float
    greatest: float


def measure_releases(plan: Plan, observations: Sequence[Observation]) -> tuple[Spread, ...]:
    """Return the values of each release that ran the testcase to its end, oldest first. Empty for other claims.

    Runs that `mark_costly_runs` marked are included.
    """
    quantity = QUANTITIES.get(plan.claim.kind)
    if quantity is None:
        return ()
    values: dict[str, list[float]] = {}
    for seen in observations:
        if _is_measured(plan, seen):
            values.setdefault(seen.version, []).append(quantity.read(seen))
    return tuple(
        Spread(versions=(version,), least=min(values[version]), greatest=max(values[version]))
        for version in plan.order
        if version in values
    )


def mark_costly_runs(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Runs of the worse releases are marked as the reported failure.

    Nothing is marked for other claims, or without a clear change between two releases. A run that reached a limit
    counts as the reported failure already. A failure may begin and end between releases: then the reported release is
    among the worse ones, because a single slow release in the middle may be noise.
    """
    quantity = QUANTITIES.get(plan.claim.kind)
    if quantity is None or any(seen.answer is Answer.BAD for seen in observations):
        return tuple(observations)
    measured = measure_releases(plan, observations)
    for begin, end in _list_stretches(len(measured)):
        worse, better = join_spreads(measured[begin:end]), join_spreads((*measured[:begin], *measured[end:]))
        is_open = begin == 0 or end == len(measured)
        difference = worse.least - better.greatest
        is_clear = difference >= quantity.floor and worse.least >= quantity.factor * better.greatest
        if is_clear and (is_open or plan.reported in worse.versions):
            return tuple(_mark(seen, plan, quantity, worse, better) for seen in observations)
    return tuple(observations)


def _list_stretches(count: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of ``count`` releases, except all of them. Those that reach an end come first."""
    stretches = [(a, b) for a in range(count) for b in range(a + 1, count + 1) if b - a < count]
    yield from sorted(stretches, key=lambda one: one[0] > 0 and one[1] < count)


def join_spreads(spreads: Sequence[Spread]) -> Spread:
    """Return one spread over the releases of at least one spread."""
    return Spread(
        versions=tuple(version for one in spreads for version in one.versions),
        least=min(one.least for one in spreads),
        greatest=max(one.greatest for one in spreads),
    )


def _mark(seen: Observation, plan: Plan, quantity: Quantity, worse: Spread, better: Spread) -> Observation:
    if seen.version not in worse.versions or not _is_measured(plan, seen):
        return seen
    limit = f"{quantity.show(better.greatest)} at most on {better.versions[0]}"
    limit += f" to {better.versions[-1]}" if len(better.versions) > 1 else ""
    why = f"{quantity.verb} {quantity.show(quantity.read(seen))}, and {limit}"
    return judge_again(seen, Outcome.MATCH, Reason.COSTLY, why)


def _is_measured(plan: Plan, seen: Observation) -> bool:
    """True for a complete run of the posted testcase on its own device. A port may need additional time."""
    ended_well = seen.outcome is Outcome.PASS or (seen.outcome is Outcome.MATCH and seen.signature is None)
    return ended_well and seen.variant is Variant.ORIGINAL and seen.device == plan.device
