"""Give runs that fail in the same way the same answer. Pure.

A report may quote no failure with a signature. Then words of the output decide, and words that name a place or a time
differ between builds. If the failure of one build was recognized by such words, the same failure on another build is
the reported one too.
"""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.outcomes import judge_again
from runners.core.failure.parse import NATIVE
from runners.core.findings.kinds import Moved
from runners.core.findings.record import read_evidence
from runners.core.findings.types import MovedEvidence
from runners.core.protocol import Finding, Observation, Outcome, Plan, Reason, Signature, Variant
from runners.toolchains import find_toolchain


def match_same_failures(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Recognize each failure that equals a recognized one.

    A report that quotes its failure decides by itself, and a crash without a message equals any other crash.
    """
    if plan.claim.signature is not None:
        return tuple(observations)
    matched = (seen.signature for seen in observations if seen.outcome is Outcome.MATCH)
    known = [one for one in matched if one is not None and _is_telling(one)]
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES

    def is_known(seen: Observation) -> bool:
        return seen.outcome is Outcome.OTHER_FAILURE and any(
            one.type == seen.signature.type and compare_signatures(one, seen.signature, vocabulary).score >= SAME
            for one in known
            if seen.signature is not None
        )

    why = "fails in the same way as a build on which the reported failure was recognized"
    return tuple(
        judge_again(seen, Outcome.MATCH, Reason.FAILS_ALIKE, why) if is_known(seen) else seen for seen in observations
    )


def match_posted_calls(plan: Plan, observations: Sequence[Observation], *, assumed: bool) -> tuple[Observation, ...]:
    """Return the observations. Recognize each refusal that the report quotes: its own call lacks the flag.

    A build that reads the input only with a flag is no evidence, unless the posted call lacks the flag and the report
    quotes the refusal. With an ``assumed`` call, we caused the refusal.
    """
    claim, vocabulary = plan.claim.signature, find_toolchain(plan.testcase.toolchain).FAILURES
    if assumed or claim is None:
        return tuple(observations)
    refuses_all = any(one.search(claim.message) for one in vocabulary.refusals_of_all)

    def is_quoted(seen: Observation) -> bool:
        return (
            seen.variant is Variant.ORIGINAL
            and seen.outcome is Outcome.INCOMPATIBLE
            and seen.signature is not None
            and any(map(_lacks_flag, seen.findings))
            and (refuses_all or compare_signatures(claim, seen.signature, vocabulary).score >= SAME)
        )

    why = "the reported failure: the posted call lacks a flag that this build needs"
    return tuple(
        judge_again(seen, Outcome.MATCH, Reason.AS_POSTED, why) if is_quoted(seen) else seen for seen in observations
    )


def _is_telling(signature: Signature) -> bool:
    return bool(signature.message) and signature.type not in {*NATIVE, OUTPUT}


def _lacks_flag(finding: Finding) -> bool:
    evidence = read_evidence(finding)
    return isinstance(evidence, MovedEvidence) and evidence.moved is Moved.NEEDED
