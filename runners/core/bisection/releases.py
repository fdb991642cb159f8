"""Three-valued search for where the behaviour changes in an ordered list of builds. Pure.

Nothing is remembered between calls: what to probe next, and where the edges lie, are computed from the answers
known so far. So a search can be resumed, checked by the bot from the recorded observations, and run by any number
of workers. A build that can answer neither good nor bad stays in the range that is reported: the change may lie on
either side of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runners.core.protocol import Answer, Observation, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One change of behaviour between two builds, older first.

    ``untested`` lie between them and could still narrow it; ``skipped`` lie between them and cannot.
    ``older`` is None when no build before ``newer`` answers the other way; ``newer`` when none after ``older`` does.
    """

    older: str | None
    newer: str | None
    untested: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def is_narrowed(self) -> bool:
        return not self.untested


def combine_attempts(answers: Iterable[Answer]) -> Answer:
    """One answer from several attempts on one build: they must agree. Skips say nothing."""
    spoken = {answer for answer in answers if answer is not Answer.SKIP}
    return spoken.pop() if len(spoken) == 1 else Answer.SKIP


def group_answers(observations: Iterable[Observation], variant: Variant, device: str) -> dict[str, list[Answer]]:
    """The answers of each build's runs, for one variant of the testcase on one device."""
    grouped: dict[str, list[Answer]] = {}
    for seen in observations:
        if seen.variant is variant and seen.device == device:
            grouped.setdefault(seen.version, []).append(seen.answer)
    return grouped


def combine_answers(observations: Iterable[Observation], variant: Variant, device: str) -> dict[str, Answer]:
    """One answer for each build that was run."""
    return {
        build: combine_attempts(answers) for build, answers in group_answers(observations, variant, device).items()
    }


def find_disagreeing(
    order: Sequence[str], observations: Iterable[Observation], variant: Variant, device: str
) -> tuple[str, ...]:
    """Builds of which one run was good and another bad, oldest first."""
    grouped = group_answers(observations, variant, device)
    return tuple(build for build in order if {Answer.GOOD, Answer.BAD} <= set(grouped.get(build, ())))


def find_introduction(order: Sequence[str], answers: Mapping[str, Answer]) -> Edge | None:
    """good → bad: the last time the failure came in. None without any bad build.

    Several changes are possible; this is the newest run of bad builds, which is the one a reader of today cares for.
    """
    bad = _answering(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _answering(order, answers, Answer.GOOD) if i < bad[-1]]
    start = good[-1] if good else None
    return _edge(order, answers, start, min(i for i in bad if start is None or i > start))


def find_fix(order: Sequence[str], answers: Mapping[str, Answer]) -> Edge | None:
    """bad → good after the newest bad build. None without any bad build."""
    bad = _answering(order, answers, Answer.BAD)
    if not bad:
        return None
    good = [i for i in _answering(order, answers, Answer.GOOD) if i > bad[-1]]
    return _edge(order, answers, bad[-1], good[0] if good else None)


def _answering(order: Sequence[str], answers: Mapping[str, Answer], wanted: Answer) -> list[int]:
    return [i for i, version in enumerate(order) if answers.get(version) is wanted]


def _edge(order: Sequence[str], answers: Mapping[str, Answer], older: int | None, newer: int | None) -> Edge:
    """With one end open, only the builds up to the nearest one that cannot answer are worth a probe.

    Builds that cannot answer come in blocks (an API that moved): beyond the first of them lie more.
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


def count_changes(order: Sequence[str], answers: Mapping[str, Answer]) -> int:
    """How often good and bad alternate along the builds that answered: more than two means an unsteady history."""
    spoken = [answers[v] for v in order if answers.get(v) in (Answer.GOOD, Answer.BAD)]
    return sum(a is not b for a, b in itertools.pairwise(spoken))


def choose_probes(order: Sequence[str], answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """The builds worth probing next, at most one for each open question; empty when nothing more can be learned.

    With a bad build: the middle of each unsettled edge, open ones too (how far back it goes; whether a build before
    the newest already lacks it). Without: spread over the untested builds, looking for one.
    """
    edges = [edge for edge in (find_introduction(order, answers), find_fix(order, answers)) if edge is not None]
    if not edges:
        probe = _most_remote(order, answers)
        return (probe,) if probe else ()
    return tuple(dict.fromkeys(_middle(edge.untested) for edge in edges if not edge.is_narrowed))


WIDE = 3
"""Builds between two that fail from which on one of them is looked at: with fewer, each is the neighbour of one."""


def choose_between_failures(order: Sequence[str], answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """The middle of each wide gap between builds that fail, where no build was clean: one may hide there.

    A failure may go and come again (IREE 3.1.0 and 3.2.0 have the only right `math.powf` of sixteen releases), and
    what every build shows that was run is soon taken for what every build shows.
    """
    if Answer.GOOD in answers.values():
        return ()
    tested = [i for i, version in enumerate(order) if version in answers]
    gaps = [
        (older, newer)
        for older, newer in itertools.pairwise(tested)
        if answers[order[older]] is answers[order[newer]] is Answer.BAD and newer - older > WIDE
    ]
    return tuple(order[(older + newer) // 2] for older, newer in gaps)


def _middle(versions: Sequence[str]) -> str:
    return versions[len(versions) // 2]


def _most_remote(order: Sequence[str], answers: Mapping[str, Answer]) -> str | None:
    """The untested build farthest from every tested one: what a short-lived failure would hide behind."""
    tested = [i for i, version in enumerate(order) if version in answers]
    untested = [i for i, version in enumerate(order) if version not in answers]
    if not untested:
        return None
    if not tested:
        return order[-1]
    return order[max(untested, key=lambda i: (min(abs(i - t) for t in tested), i))]
