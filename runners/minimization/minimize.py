"""Reduce a testcase to a smaller one that fails the same way: its steps, then flags, then the text of each file.

For every candidate, the oracle compares its failure with that of the whole testcase. This check is not enough for a
wrong result, which may become another wrong result during the reduction. So a release with the right result must keep
giving it (the control).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol

import msgspec

from runners.core.bench import MOST_PROBES, MOST_SECONDS, Bench
from runners.core.errors import NotReducible
from runners.core.failure.compare import SAME, compare_signatures
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Observation,
    Outcome,
    Plan,
    Signature,
    Smaller,
    Testcase,
    Variant,
    count_lines,
)
from runners.core.toolchain.failures import FailureVocabulary
from runners.minimization.ddmin import Pieces, remove_pieces
from runners.minimization.mlir import reduce_mlir
from runners.minimization.python import reduce_python

CONFIRMATIONS = 2
"""Number of final runs. All must fail the same way."""


class Run(Protocol):
    """Run a testcase on a release and compare the result with a claim. A ``fresh`` run has its own sandbox."""

    def __call__(self, testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The failure to keep, the release that shows it, and the release that must pass (``control``)."""

    claim: Claim
    version: str
    vocabulary: FailureVocabulary
    control: str = ""
    signature: Signature | None = None


@dataclass(slots=True)
class _Budget:
    """The runs and the time that a reduction may use. ``known`` caches results, so a repeated candidate is free."""

    probes: int
    deadline: float
    clock: Callable[[], float]
    used: int = 0
    known: dict[str, bool] = field(default_factory=dict)

    @property
    def exhausted(self) -> Literal["probes", "time"] | None:
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
    """Reduce a testcase on ``version``, where it fails, within ``probes`` runs and ``seconds``.

    Every candidate must pass on the release ``control``, if given. ``passing`` is a release to use as control if the
    failure needs one.

    Raises:
        NotReducible: the testcase does not fail as reported, is flaky, or needs a control and has none.
    """
    began = clock()
    budget = _Budget(probes=probes, deadline=began + seconds, clock=clock)
    goal = _set_goal(testcase, claim, version, vocabulary, control, passing, run, budget)
    small = _TestcaseReduction(testcase, goal, run, budget).reduce()
    stopped = budget.exhausted or "minimal"
    last, confirmed = _confirm_failure(small, goal, run)
    if confirmed < CONFIRMATIONS:
        raise NotReducible("what was left does not fail every time: a flaky failure cannot be cut down this way")
    if goal.control and run(small, goal.claim, goal.control, fresh=True).outcome is not Outcome.PASS:
        raise NotReducible(f"what was left does not pass every time on {goal.control}")
    return Smaller(
        testcase=small,
        version=version,
        device=last.device,
        control=goal.control,
        signature=last.signature,
        before=count_lines(testcase),
        after=count_lines(small),
        probes=budget.used + CONFIRMATIONS + bool(goal.control),
        seconds=round(clock() - began, 1),
        confirmed=confirmed,
        stopped=stopped,
    )


def _set_goal(
    testcase: Testcase,
    claim: Claim,
    version: str,
    vocabulary: FailureVocabulary,
    control: str,
    passing: str,
    run: Run,
    budget: _Budget,
) -> Goal:
    """Run the whole testcase. Its own failure becomes the goal, because it is more exact than the report's text."""
    budget.used += 1
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
    if seen.signature is not None and not _compares_output(claim):
        pinned = msgspec.structs.replace(claim, signature=seen.signature)
    if control:
        budget.used += 1
        fine = run(testcase, pinned, control)
        if fine.outcome is not Outcome.PASS:
            raise NotReducible(f"on {control}, which should pass, it does not: {fine.why or fine.outcome}")
    return Goal(claim=pinned, version=version, vocabulary=vocabulary, control=control, signature=seen.signature)


def needs_control(claim: Claim, seen: Observation) -> bool:
    """True for a failure that does not show its cause: a wrong value, or an assertion about a value."""
    return _compares_output(claim) or seen.signature is None or seen.signature.type == "AssertionError"


def _compares_output(claim: Claim) -> bool:
    return claim.kind in (ClaimKind.WRONG_RESULT, ClaimKind.UNKNOWN) and (
        claim.signature is None or claim.signature.type == "output"
    )


def _shows_failure(goal: Goal, seen: Observation) -> bool:
    if seen.outcome is not Outcome.MATCH:
        return False
    if goal.signature is None or seen.signature is None:
        return goal.signature is seen.signature
    if goal.signature.type != seen.signature.type:
        return False
    return compare_signatures(goal.signature, seen.signature, goal.vocabulary).score >= SAME


def _confirm_failure(testcase: Testcase, goal: Goal, run: Run) -> tuple[Observation, int]:
    """Run the smaller testcase in fresh sandboxes. Candidates share one, which a candidate could have changed."""
    seen = [run(testcase, goal.claim, goal.version, fresh=True) for _ in range(CONFIRMATIONS)]
    return seen[-1], sum(_shows_failure(goal, one) for one in seen)


@dataclass(slots=True)
class _TestcaseReduction:
    best: Testcase
    goal: Goal
    run: Run
    budget: _Budget

    def reduce(self) -> Testcase:
        before = None
        while before != self.best and self.budget.exhausted is None:
            before = self.best
            self._remove_steps()
            self._remove_flags()
            self._remove_files()
            for name in sorted(self.best.files, key=lambda name: -len(self.best.files[name])):
                self._reduce_file(name)
        return self.best

    def _try_candidate(self, candidate: Testcase) -> bool:
        """Return whether ``candidate`` still shows the failure. Store such a candidate as the best."""
        key = sha256(msgspec.json.encode(candidate, order="deterministic")).hexdigest()
        if key not in self.budget.known:
            if self.budget.exhausted is not None:
                return False
            self.budget.used += 1
            kept = _shows_failure(self.goal, self.run(candidate, self.goal.claim, self.goal.version))
            if kept and self.goal.control:
                self.budget.used += 1
                kept = self.run(candidate, self.goal.claim, self.goal.control).outcome is Outcome.PASS
            self.budget.known[key] = kept
        if self.budget.known[key]:
            self.best = candidate
        return self.budget.known[key]

    def _remove_steps(self) -> None:
        """Remove commands. Those after the failing one are never reached, and some before it are unnecessary."""
        for number in reversed(range(len(self.best.steps))):
            steps = self.best.steps[:number] + self.best.steps[number + 1 :]
            if steps:
                self._try_candidate(msgspec.structs.replace(self.best, steps=steps))

    def _remove_flags(self) -> None:
        for number in range(len(self.best.steps)):
            remove_pieces(self._without_flags(number), self._try_candidate)

    def _without_flags(self, number: int) -> Pieces[Testcase]:
        """Return the options of one command: words that begin with a dash, and ``-o`` together with the next word."""
        whole, step = self.best, self.best.steps[number]
        flags = [
            frozenset({place, place + 1} if word == "-o" else {place})
            for place, word in enumerate(step)
            if place and word.startswith("-") and word != "-"
        ]

        def build_without(gone: frozenset[int]) -> Testcase:
            dropped = {place for i in gone for place in flags[i]}
            words = tuple(word for place, word in enumerate(step) if place not in dropped)
            return msgspec.structs.replace(whole, steps=(*whole.steps[:number], words, *whole.steps[number + 1 :]))

        return Pieces(len(flags), build_without)

    def _remove_files(self) -> None:
        """Remove files that no command reads."""
        for name in sorted(self.best.files):
            if len(self.best.files) > 1:
                files = {other: text for other, text in self.best.files.items() if other != name}
                self._try_candidate(msgspec.structs.replace(self.best, files=files))

    def _reduce_file(self, name: str) -> None:
        reduce = _REDUCERS.get(name.rpartition(".")[2])
        if reduce is not None:
            reduce(self.best.files[name], lambda text: self._try_candidate(self._replace_file(name, text)))

    def _replace_file(self, name: str, text: str) -> Testcase:
        files = {**self.best.files, name: text}
        return msgspec.structs.replace(self.best, files=files)


_REDUCERS: Mapping[str, Callable[[str, Callable[[str], bool]], str]] = {"py": reduce_python, "mlir": reduce_mlir}


def try_minimize(
    bench: Bench, plan: Plan, observations: Sequence[Observation]
) -> tuple[Smaller | None, tuple[str, ...]]:
    """Return the smaller testcase, or None and the reason."""
    try:
        version, passing = choose_releases(plan, observations)
        return bench.minimize(plan, version, passing=passing), ()
    except NotReducible as reason:
        return None, (f"no smaller testcase: {reason}",)


def choose_releases(plan: Plan, observations: Sequence[Observation]) -> tuple[str, str]:
    """Return the newest release that fails as reported, and the nearest one that passes (empty if none does).

    Raises:
        NotReducible: no release fails as reported.
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
