"""Give runs that fail in the same way the same answer. Pure.

A report may quote no failure from which a signature can be read: words of the output then decide, and words that name
a place or a time differ between builds. If the failure of one build was recognized by such words, the same failure on
another build is the reported one as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Answer, Observation, Outcome, Plan, Signature
from runners.toolchains import find_toolchain

FAILS_ALIKE = "fails in the same way as a build on which the reported failure was recognized"


def match_same_failures(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with each failure that equals a recognized one recognized as well.

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

    return tuple(
        msgspec.structs.replace(seen, outcome=Outcome.MATCH, answer=Answer.BAD, why=FAILS_ALIKE)
        if is_known(seen)
        else seen
        for seen in observations
    )


def _is_telling(signature: Signature) -> bool:
    return bool(signature.message) and signature.type not in {*NATIVE, OUTPUT}
