"""Three-valued search for the builds between which a behaviour changes. Pure.

The functions keep no state between calls: the next probes and the edges are computed from the answers so far. So any
number of workers can run a search, a search can be resumed, and the bot can verify it. A build that answers neither
good nor bad stays in the reported range: the change may lie on either side of it.
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
    """Return the answer of all attempts on one build, skips aside. Return skip if they disagree."""
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
    """Find the newest change from good to bad. None without a bad build.

    A history may have several changes. Only the newest affects the releases in use.
    """
    bad = _list_positions(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _list_positions(order, answers, Answer.GOOD) if i < bad[-1]]
    start = good[-1] if good else None
    return _make_edge(order, answers, start, min(i for i in bad if start is None or i > start))


def find_fix(order: Sequence[str], answers: Mapping[str, Answer]) -> Edge | None:
    """Find the change from bad to good after the newest bad build. None without a bad build."""
    bad = _list_positions(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _list_positions(order, answers, Answer.GOOD) if i > bad[-1]]
    return _make_edge(order, answers, bad[-1], good[0] if good else None)


def _list_positions(order: Sequence[str], answers: Mapping[str, Answer], wanted: Answer) -> list[int]:
    return [i for i, version in enumerate(order) if answers.get(version) is wanted]


def _make_edge(order: Sequence[str], answers: Mapping[str, Answer], older: int | None, newer: int | None) -> Edge:
    """Return the edge between two positions.

    If one end is open, only the builds up to the nearest skipped build are untested. Skips come in blocks (a changed
    API), so the builds behind that one would be skipped too.
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

    With ``certain``, list only those that no further answer can replace. The oldest failing build does not count if
    no older build is clean.
    """
    found = (find_introduction(order, answers), find_fix(order, answers))
    edges = [edge for edge in found if edge is not None and (edge.older is not None or edge.newer == order[-1])]
    ends = [end for edge in edges if edge.is_narrowed or not certain for end in (edge.older, edge.newer)]
    answered = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    newest = [version for version in answered[-1:] if version == order[-1] or not certain]
    return tuple(dict.fromkeys([*(end for end in ends if end is not None), *newest]))


def count_changes(order: Sequence[str], answers: Mapping[str, Answer]) -> int:
    """Count the changes between good and bad along the builds that answered. Above two, the history is unsteady."""
    decided = [answers[v] for v in order if answers.get(v) in (Answer.GOOD, Answer.BAD)]
    return sum(a is not b for a, b in itertools.pairwise(decided))


def choose_probes(
    order: Sequence[str], answers: Mapping[str, Answer], *, most: int = 1, gone: Collection[str] = ()
) -> tuple[str, ...]:
    """Choose the builds to probe next. Empty if no run can add information.

    With a bad build: the middle of each edge that can be narrowed. An edge may have an open end, such as the oldest
    failing build. Of two middles of a fix, the older comes first, because most reported failures are fixed soon.
    Without a bad build: up to ``most`` untested builds, each the farthest from the others. All of them are probed as
    long as none is bad. Builds between two that lack the testcase's API (``gone``) are left out: they lack it too.
    """
    introduction, fix = find_introduction(order, answers), find_fix(order, answers)
    if introduction is None or fix is None:
        return _list_most_remote(_drop_enclosed(order, answers, gone), answers, most)
    return tuple(dict.fromkeys((*_pick_middle(introduction.untested), *_pick_middle(fix.untested[::-1]))))


def list_certain_probes(
    order: Sequence[str], answers: Mapping[str, Answer], pending: Collection[str]
) -> tuple[str, ...]:
    """List the builds that `choose_probes` will choose, whatever the ``pending`` builds answer.

    These are the middles of edges with two ends, if every pending build is older than both ends.
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
"""Minimum number of builds between two failing ones for a run of one. With fewer, each has a failing neighbour."""


def choose_between_failures(order: Sequence[str], answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Choose the middle of each wide gap between failing builds, if no build was good. A good build may be there.

    A failure may disappear and return: of sixteen IREE releases, only 3.1.0 and 3.2.0 compute `math.powf` correctly.
    Without these runs, a report would claim that all builds fail.
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
    """Return the middle, the later of two. Empty without versions."""
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
    """Return the untested build farthest from all tested builds. A short-lived failure is most likely there."""
    tested = [i for i, version in enumerate(order) if version in answers]
    untested = [i for i, version in enumerate(order) if version not in answers]
    if not untested:
        return None
    if not tested:
        return order[-1]
    return order[max(untested, key=lambda i: (min(abs(i - t) for t in tested), i))]
