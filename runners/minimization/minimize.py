"""A testcase → a smaller one that fails the same way: steps, flags, then the text of each file.

The question asked of every candidate is the oracle's own: is this the failure that the whole testcase showed? A
failure alone can become another one on the way down, above all a wrong result: there a release that gives the right
one must go on giving it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

import msgspec

from runners.core.bench import MOST_PROBES, MOST_SECONDS, Bench
from runners.core.errors import NotReducible
from runners.core.failure.compare import SAME, compare_signatures
from runners.core.protocol import Claim, ClaimKind, Observation, Outcome, Plan, Signature, Smaller, Testcase, Variant
from runners.core.toolchain.failures import FailureVocabulary
from runners.minimization.ddmin import Pieces, remove_pieces
from runners.minimization.mlir import reduce_mlir
from runners.minimization.python import reduce_python

CONFIRMATIONS = 2
"""Runs of the result at the end, all of which must fail the same way."""

Run = Callable[[Testcase, Claim, str], Observation]
"""Runs a testcase on a release and rules on it by a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What must stay: the claim as the whole testcase showed it, where it fails and where it must not."""

    claim: Claim
    version: str
    vocabulary: FailureVocabulary
    control: str = ""
    signature: Signature | None = None


@dataclass(slots=True)
class _Spent:
    """What a reduction may use. A candidate seen before costs nothing."""

    probes: int
    deadline: float
    clock: Callable[[], float]
    used: int = 0
    known: dict[str, bool] = field(default_factory=dict)

    @property
    def out(self) -> Literal["probes", "time"] | None:
        if self.used >= self.probes:
            return "probes"
        return "time" if self.clock() >= self.deadline else None


def minimize_testcase(
    testcase: Testcase,
    claim: Claim,
    version: str,
    run: Run,
    *,
    vocabulary: FailureVocabulary,
    control: str = "",
    passing: str = "",
    probes: int = MOST_PROBES,
    seconds: float = MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Smaller:
    """Cut a testcase down on ``version``, where it fails, within ``probes`` runs and ``seconds``.

    Each step must pass on ``control``, when it is given; ``passing`` is one to use where the failure needs it.

    Raises:
        NotReducible: it does not fail there as reported, or is wrong in a way that only a passing release could tell.
    """
    began = clock()
    spent = _Spent(probes=probes, deadline=began + seconds, clock=clock)
    goal = _goal(testcase, claim, version, vocabulary, control, passing, run, spent)
    small = _Reduction(testcase, goal, run, spent).go()
    stopped = spent.out or "minimal"
    last, confirmed = _confirm(small, goal, run)
    if confirmed < CONFIRMATIONS:
        raise NotReducible("what was left does not fail every time: a flaky failure cannot be cut down this way")
    return Smaller(
        testcase=small,
        version=version,
        device=last.device,
        control=goal.control,
        signature=last.signature,
        before=count_lines(testcase),
        after=count_lines(small),
        probes=spent.used + CONFIRMATIONS,
        seconds=round(clock() - began, 1),
        confirmed=confirmed,
        stopped=stopped,
    )


def count_lines(testcase: Testcase) -> int:
    """Lines that are not blank, in all files, and one for each step."""
    return sum(bool(line.strip()) for text in testcase.files.values() for line in text.splitlines()) + len(
        testcase.steps
    )


def _goal(
    testcase: Testcase,
    claim: Claim,
    version: str,
    vocabulary: FailureVocabulary,
    control: str,
    passing: str,
    run: Run,
    spent: _Spent,
) -> Goal:
    """The whole testcase's own failure, which is more exact than the report's words, is what must stay."""
    spent.used += 1
    seen = run(testcase, claim, version)
    if seen.outcome is not Outcome.MATCH:
        raise NotReducible(
            f"on {version} the testcase does not show the reported failure: {seen.why or seen.outcome}"
        )
    if needs_control(claim, seen):
        control = control or passing
        if not control:
            raise NotReducible(
                "a wrong result can only be cut down beside a release that gives the right one: name it with --good"
            )
    pinned = claim
    if seen.signature is not None and not _is_output(claim):
        pinned = msgspec.structs.replace(claim, signature=seen.signature)
    if control:
        spent.used += 1
        fine = run(testcase, pinned, control)
        if fine.outcome is not Outcome.PASS:
            raise NotReducible(f"on {control}, which should pass, it does not: {fine.why or fine.outcome}")
    return Goal(claim=pinned, version=version, vocabulary=vocabulary, control=control, signature=seen.signature)


def needs_control(claim: Claim, seen: Observation) -> bool:
    """Whether the failure says nothing of its cause: a wrong value, or an assertion about one."""
    return _is_output(claim) or seen.signature is None or seen.signature.type == "AssertionError"


def _is_output(claim: Claim) -> bool:
    return claim.kind in (ClaimKind.WRONG_RESULT, ClaimKind.UNKNOWN) and (
        claim.signature is None or claim.signature.type == "output"
    )


def _shows(goal: Goal, seen: Observation) -> bool:
    if seen.outcome is not Outcome.MATCH:
        return False
    if goal.signature is None or seen.signature is None:
        return goal.signature is seen.signature
    if goal.signature.type != seen.signature.type:
        return False
    return compare_signatures(goal.signature, seen.signature, goal.vocabulary).score >= SAME


def _confirm(testcase: Testcase, goal: Goal, run: Run) -> tuple[Observation, int]:
    seen = [run(testcase, goal.claim, goal.version) for _ in range(CONFIRMATIONS)]
    return seen[-1], sum(_shows(goal, one) for one in seen)


@dataclass(slots=True)
class _Reduction:
    best: Testcase
    goal: Goal
    run: Run
    spent: _Spent

    def go(self) -> Testcase:
        before = None
        while before != self.best and self.spent.out is None:
            before = self.best
            self._steps()
            self._flags()
            self._files()
            for name in sorted(self.best.files, key=lambda name: -len(self.best.files[name])):
                self._text(name)
        return self.best

    def _try(self, candidate: Testcase) -> bool:
        """Whether ``candidate`` still shows the failure; it is the best so far then."""
        key = sha256(msgspec.json.encode(candidate, order="deterministic")).hexdigest()
        if key not in self.spent.known:
            if self.spent.out is not None:
                return False
            self.spent.used += 1
            kept = _shows(self.goal, self.run(candidate, self.goal.claim, self.goal.version))
            if kept and self.goal.control:
                self.spent.used += 1
                kept = self.run(candidate, self.goal.claim, self.goal.control).outcome is Outcome.PASS
            self.spent.known[key] = kept
        if self.spent.known[key]:
            self.best = candidate
        return self.spent.known[key]

    def _steps(self) -> None:
        """Whole commands: those after the one that fails are never reached, some before it are not needed."""
        for number in reversed(range(len(self.best.steps))):
            steps = self.best.steps[:number] + self.best.steps[number + 1 :]
            if steps:
                self._try(msgspec.structs.replace(self.best, steps=steps))

    def _flags(self) -> None:
        for number in range(len(self.best.steps)):
            remove_pieces(self._without_flags(number), self._try)

    def _without_flags(self, number: int) -> Pieces[Testcase]:
        """Options of one command: words that begin with a dash, ``-o`` with the name after it."""
        whole, step = self.best, self.best.steps[number]
        flags = [
            frozenset({place, place + 1} if word == "-o" else {place})
            for place, word in enumerate(step)
            if place and word.startswith("-") and word != "-"
        ]

        def build(gone: frozenset[int]) -> Testcase:
            dropped = {place for i in gone for place in flags[i]}
            words = tuple(word for place, word in enumerate(step) if place not in dropped)
            return msgspec.structs.replace(whole, steps=(*whole.steps[:number], words, *whole.steps[number + 1 :]))

        return Pieces(len(flags), build)

    def _files(self) -> None:
        """Files that no command reads."""
        for name in sorted(self.best.files):
            if len(self.best.files) > 1:
                files = {other: text for other, text in self.best.files.items() if other != name}
                self._try(msgspec.structs.replace(self.best, files=files))

    def _text(self, name: str) -> None:
        reduce = _REDUCERS.get(name.rpartition(".")[2])
        if reduce is not None:
            reduce(self.best.files[name], lambda text: self._try(self._with(name, text)))

    def _with(self, name: str, text: str) -> Testcase:
        files = {**self.best.files, name: text}
        return msgspec.structs.replace(self.best, files=files)


_REDUCERS: Mapping[str, Callable[[str, Callable[[str], bool]], str]] = {"py": reduce_python, "mlir": reduce_mlir}


def try_minimize(
    bench: Bench, plan: Plan, observations: Sequence[Observation]
) -> tuple[Smaller | None, tuple[str, ...]]:
    """The smaller testcase, or why there is none."""
    try:
        version, passing = choose_releases(plan, observations)
        return bench.minimize(plan, version, passing=passing), ()
    except NotReducible as reason:
        return None, (f"no smaller testcase: {reason}",)


def choose_releases(plan: Plan, observations: Sequence[Observation]) -> tuple[str, str]:
    """The newest release that fails as reported, and the nearest to it that passes (empty when none does).

    Raises:
        NotReducible: none fails as reported.
    """
    own = [seen for seen in observations if seen.variant is Variant.ORIGINAL and seen.device == plan.device]
    place = {version: i for i, version in enumerate(plan.order)}
    failing = [place[seen.version] for seen in own if seen.outcome is Outcome.MATCH]
    if not failing:
        raise NotReducible("no release that was run shows the reported failure with the testcase as posted")
    newest = max(failing)
    passing = {place[seen.version] for seen in own if seen.outcome is Outcome.PASS} - set(failing)
    nearest = min(passing, key=lambda number: abs(number - newest), default=None)
    return plan.order[newest], "" if nearest is None else plan.order[nearest]
