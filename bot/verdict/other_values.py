"""Decide whether a run that prints other values than the report quotes counts as clean, or as failing. Pure.

A report may quote wrong output without the right output. A single run with other values is then no evidence: an
uninitialised buffer prints other values each time. The run becomes evidence if another build printed the quoted
output: then this build behaves differently. If the report states that the values differ from run to run, a build must
print the same twice. No more than two other outputs may appear on all builds together; outputs of builds whose runs
disagree do not count.

A reference may agree with the value of the newest release, and disagree with that of a failing release. Then the
newest release is clean.

A report may quote the right output, and a build may print it only in some runs. The program and the build are the
same, so the other output is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from runners.core.failure.oracle import OUTPUT
from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.lines.tokens import are_equal_lines, split_lines
from runners.core.findings.kinds import Vote
from runners.core.findings.questions import get_version, get_vote
from runners.core.protocol import Claim, Exited, Finding, Observation, Outcome, Reason, Variant

MAX_OTHERS = 2
"""Outputs beside the reported one. More of them come from uninitialised memory."""


def accept_other_values(claim: Claim, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs that print another output as clean runs.

    If a build prints the reported output in some runs, its other outputs are garbage too. Exception: another build
    always prints them. A build whose runs never agree is no evidence.
    """
    own = [seen for seen in observations if seen.variant is Variant.ORIGINAL]
    failing = {_get_cell(seen) for seen in own if seen.outcome is Outcome.MATCH and _is_output(seen)}
    printed: dict[tuple[str, str, Variant], list[str]] = {}
    for seen in filter(_is_other, own):
        printed.setdefault(_get_cell(seen), []).append(_get_message(seen))
    if claim.sometimes:  # values that differ from run to run are no evidence
        twice = {cell: [one for one in said if said.count(one) > 1] for cell, said in printed.items()}
        printed = {cell: said for cell, said in twice.items() if said}
    stable = {said[0] for cell, said in printed.items() if cell not in failing and len(set(said)) == 1}
    others = stable or set().union(*printed.values())
    if claim.expected or not claim.actual or not failing or not 1 <= len(others) <= MAX_OTHERS:
        return tuple(observations)
    return tuple(
        _judge_other(seen, failing, others, bool(stable)) if _is_other(seen) else seen for seen in observations
    )


def _judge_other(
    seen: Observation, failing: Collection[tuple[str, str, Variant]], others: Collection[str], stable: bool
) -> Observation:
    """Return a run that prints another output as a clean run, or as a failing run if the output is garbage too."""
    if _get_message(seen) in others:
        why = "prints other values than those that the report calls wrong"
        return judge_again(seen, Outcome.PASS, Reason.OTHER_VALUES, why)
    if stable and _get_cell(seen) in failing:
        why = "prints neither the output that the report calls wrong nor that of other builds"
        return judge_again(seen, Outcome.MATCH, Reason.OTHER_GARBAGE, why)
    return seen


def refuse_other_values(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Mark runs as failing if their output differs from the right output of other runs.

    A build on which no run prints the right output does not change: the report may mean another program.
    """
    right = {_get_cell(seen) for seen in observations if seen.reason is Reason.PRINTS_EXPECTED}
    why = "prints other values than the report expects, which other runs of this build print"
    return tuple(
        judge_again(seen, Outcome.MATCH, Reason.UNEXPECTED, why)
        if _get_cell(seen) in right and seen.outcome is Outcome.OTHER_FAILURE and seen.ended == Exited(code=0)
        else seen
        for seen in observations
    )


def accept_voted_values(
    newest: str, observations: Sequence[Observation], findings: Sequence[Finding]
) -> tuple[Observation, ...]:
    """Return the observations. Mark runs as clean if they print the value of a reference on the newest release.

    The reference must disagree with a build that fails as reported.
    """
    votes = [(get_version(one), vote) for one in findings if (vote := get_vote(one)) is not None]
    failing = {seen.version for seen in observations if seen.outcome is Outcome.MATCH}
    wrong = any(vote is Vote.DIFFERS and version in failing for version, vote in votes)
    right = {vote for version, vote in votes if version == newest} == {Vote.AGREES}
    printed = [split_lines(seen.excerpt) for seen in observations if seen.version == newest and _is_unjudged(seen)]
    if not (wrong and right and printed):
        return tuple(observations)
    why = "prints what a computation without the compiler gives"
    return tuple(
        judge_again(seen, Outcome.PASS, Reason.VOTED_VALUES, why)
        if _is_unjudged(seen) and are_equal_lines(split_lines(seen.excerpt), printed[0])
        else seen
        for seen in observations
    )


def _is_unjudged(seen: Observation) -> bool:
    own = seen.variant is Variant.ORIGINAL and seen.outcome is Outcome.OTHER_FAILURE
    return own and seen.ended == Exited(code=0)


def _get_cell(seen: Observation) -> tuple[str, str, Variant]:
    return seen.version, seen.device, seen.variant


def rests_on_other_values(observations: Sequence[Observation]) -> bool:
    """True if a clean run is one only because its values are not the reported ones."""
    return any(seen.reason in (Reason.OTHER_VALUES, Reason.KEEPS_OPERATION) for seen in observations)


def _get_message(seen: Observation) -> str:
    return seen.signature.message if seen.signature is not None else ""


def _is_output(seen: Observation) -> bool:
    return seen.signature is not None and seen.signature.type == OUTPUT


def _is_other(seen: Observation) -> bool:
    return seen.outcome is Outcome.OTHER_FAILURE and _is_output(seen)
