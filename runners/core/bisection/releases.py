"""Three-valued search for the builds between which a behaviour changes. Pure.

The functions keep no state between calls: the next probes and the edges are computed from the answers so far. So a
search can be resumed, verified by the bot from the recorded observations, and run by any number of workers. A build
that answers neither good nor bad stays in the reported range: the change may lie on either side of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runners.core.protocol import Answer, Observation, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The regression range of one change of behaviour: two builds, older first."""

    older: str | None
    """None if no build before ``newer`` answers the other way."""
    newer: str | None
    """None if no build after ``older`` answers the other way."""
    untested: tuple[str, ...]
    """Builds between the two that could still narrow the range."""
    skipped: tuple[str, ...]
    """Builds between the two that were run and answered neither good nor bad."""

    @property
    def is_narrowed(self) -> bool:
        """True if no run can narrow the range further."""
        return not self.untested


def combine_attempts(answers: Iterable[Answer]) -> Answer:
    """Return the answer on which all attempts on one build agree, skips aside; else skip."""
    decided = {answer for answer in answers if answer is not Answer.SKIP}
    return decided.pop() if len(decided) == 1 else Answer.SKIP


def group_answers(observations: Iterable[Observation], variant: Variant, device: str) -> dict[str, list[Answer]]:
    """Group the answers of all runs by build, for one variant of the testcase on one device."""
    grouped: dict[str, list[Answer]] = {}
    for seen in observations:
        if seen.variant is variant and seen.device == device:
            grouped.setdefault(seen.version, []).append(seen.answer)
    return grouped


def combine_answers(observations: Iterable[Observation], variant: Variant, device: str) -> dict[str, Answer]:
    """Return one answer for each build that was run."""
    return {
        build: combine_attempts(answers) for build, answers in group_answers(observations, variant, device).items()
    }


def find_disagreeing(
    order: Sequence[str], observations: Iterable[Observation], variant: Variant, device: str
) -> tuple[str, ...]:
    """Find the builds with a good run and a bad run, oldest first."""
    grouped = group_answers(observations, variant, device)
    return tuple(build for build in order if {Answer.GOOD, Answer.BAD} <= set(grouped.get(build, ())))


def find_introduction(order: Sequence[str], answers: Mapping[str, Answer]) -> Edge | None:
    """Find the newest change from good to bad. None without any bad build.

    A history may have several changes. The newest concerns the releases in use.
    """
    bad = _list_positions(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _list_positions(order, answers, Answer.GOOD) if i < bad[-1]]
    start = good[-1] if good else None
    return _make_edge(order, answers, start, min(i for i in bad if start is None or i > start))


def find_fix(order: Sequence[str], answers: Mapping[str, Answer]) -> Edge | None:
    """Find the change from bad to good after the newest bad build. None without any bad build."""
    bad = _list_positions(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _list_positions(order, answers, Answer.GOOD) if i > bad[-1]]
    return _make_edge(order, answers, bad[-1], good[0] if good else None)


def _list_positions(order: Sequence[str], answers: Mapping[str, Answer], wanted: Answer) -> list[int]:
    return [i for i, version in enumerate(order) if answers.get(version) is wanted]


def _make_edge(order: Sequence[str], answers: Mapping[str, Answer], older: int | None, newer: int | None) -> Edge:
    """Return the edge between two positions. If one end is open, only the builds up to the nearest skipped build are
    untested.

    Skipped builds come in blocks (an API that moved): beyond the first of them lie more.
    """
    low = -1 if older is None else older
    high = len(order) if newer is None else newer
    tested = [i for i in range(low + 1, high) if order[i] in answers]
    if older is None:
        low = tested[-1] if tested else low
    elif newer is None:
        high = tested[0] if tested else high
    return Edge(
        older=None if older is None else order[older],
        newer=None if newer is None else order[newer],
        untested=tuple(v for v in order[low + 1 : high] if v not in answers),
        skipped=tuple(order[i] for i in tested),
    )


def list_deciding(order: Sequence[str], answers: Mapping[str, Answer], *, certain: bool = False) -> tuple[str, ...]:
    """List the builds on which the result rests: both sides of each change, and the newest build that answered.

    With ``certain``, only those that no further answer of the search can replace. The oldest build that fails decides
    nothing where no older build is clean.
    """
    found = (find_introduction(order, answers), find_fix(order, answers))
    edges = [edge for edge in found if edge is not None and (edge.older is not None or edge.newer == order[-1])]
    ends = [end for edge in edges if edge.is_narrowed or not certain for end in (edge.older, edge.newer)]
    answered = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    newest = [version for version in answered[-1:] if version == order[-1] or not certain]
    return tuple(dict.fromkeys([*(end for end in ends if end is not None), *newest]))


def count_changes(order: Sequence[str], answers: Mapping[str, Answer]) -> int:
    """Count the changes between good and bad along the builds that answered. More than two: an unsteady history."""
    decided = [answers[v] for v in order if answers.get(v) in (Answer.GOOD, Answer.BAD)]
    return sum(a is not b for a, b in itertools.pairwise(decided))


def choose_probes(
    order: Sequence[str], answers: Mapping[str, Answer], *, most: int = 1, gone: Collection[str] = ()
) -> tuple[str, ...]:
    """Choose the builds to probe next; empty if no run can add information.

    With a bad build: the middle of each edge that can be narrowed, edges with an open end too (the oldest build with
    the failure; a build before the newest that already lacks the failure). Of two middles of a fix, the older comes
    first: reported failures are mostly fixed soon. Without a bad build: up to ``most`` untested builds, each the
    farthest from the others, because all of them are probed as long as none is bad. Those between two builds that
    lack the testcase's API (``gone``) are left out: after enough of such runs, the build between answers no more.
    """
    introduction, fix = find_introduction(order, answers), find_fix(order, answers)
    if introduction is None or fix is None:
        return _list_most_remote(_drop_enclosed(order, answers, gone), answers, most)
    return tuple(dict.fromkeys((*_pick_middle(introduction.untested), *_pick_middle(fix.untested[::-1]))))


def list_certain_probes(
    order: Sequence[str], answers: Mapping[str, Answer], pending: Collection[str]
) -> tuple[str, ...]:
    """List the builds that `choose_probes` will choose, whatever the ``pending`` builds answer.

    These are the middles of changes with two ends, if every pending build is older than both ends.
    """
    edges = (find_introduction(order, answers), find_fix(order, answers))
    middles: list[str] = []
    for edge, untested in ((one, one.untested[::step]) for one, step in zip(edges, (1, -1), strict=True) if one):
        if edge.older is None or edge.newer is None:
            continue
        if all(order.index(one) < order.index(edge.older) for one in pending):
            middles += _pick_middle(untested)
    return tuple(dict.fromkeys(middles))


MIN_BETWEEN = 3
"""Builds between two failing builds from which on one of them is run. With fewer, each is next to a failing build."""


def choose_between_failures(order: Sequence[str], answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Choose the middle of each wide gap between failing builds, if no build was good: a good build may lie there.

    A failure may go and come again: IREE 3.1.0 and 3.2.0 have the only right `math.powf` of sixteen releases. Without
    these runs, a report would claim for all builds a failure that only the tested builds show.
    """
    if Answer.GOOD in answers.values():
        return ()
    tested = [i for i, version in enumerate(order) if version in answers]
    gaps = [
        (older, newer)
        for older, newer in itertools.pairwise(tested)
        if answers[order[older]] is answers[order[newer]] is Answer.BAD and newer - older > MIN_BETWEEN
    ]
    return tuple(order[(older + newer) // 2] for older, newer in gaps)


def _pick_middle(versions: Sequence[str]) -> tuple[str, ...]:
    """The middle; the later of two. Empty without versions."""
    return tuple(versions[len(versions) // 2 :][:1])


def _drop_enclosed(order: Sequence[str], answers: Mapping[str, Answer], gone: Collection[str]) -> list[str]:
    """Drop the untested builds whose nearest tested builds on both sides are ``gone``."""
    tested = [i for i, build in enumerate(order) if build in answers]
    gaps = [pair for pair in itertools.pairwise(tested) if all(order[end] in gone for end in pair)]
    enclosed = {i for older, newer in gaps for i in range(older + 1, newer)}
    return [build for i, build in enumerate(order) if i not in enclosed]


def _list_most_remote(order: Sequence[str], answers: Mapping[str, Answer], most: int) -> tuple[str, ...]:
    chosen: dict[str, Answer] = {}
    while len(chosen) < most and (build := _find_most_remote(order, {**answers, **chosen})) is not None:
        chosen[build] = Answer.SKIP
    return tuple(chosen)


def _find_most_remote(order: Sequence[str], answers: Mapping[str, Answer]) -> str | None:
    """Return the untested build farthest from every tested build: a short-lived failure most likely lies there."""
    tested = [i for i, version in enumerate(order) if version in answers]
    untested = [i for i, version in enumerate(order) if version not in answers]
    if not untested:
        return None
    if not tested:
        return order[-1]
    return order[max(untested, key=lambda i: (min(abs(i - t) for t in tested), i))]
