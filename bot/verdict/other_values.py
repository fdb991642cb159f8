"""Decide whether a run that prints other values than the reported wrong ones counts as clean. Pure.

A report may quote wrong output without the right output. A single run with other values is then no evidence: an
uninitialised buffer prints other values each time. The run becomes evidence once the quoted output was seen on
another build: then this build behaves differently. No more than two other outputs may appear on all builds together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from runners.core.failure.oracle import OUTPUT
from runners.core.protocol import Answer, Claim, Observation, Outcome, Variant

MAX_OTHERS = 2
"""Outputs beside the reported one. More of them come from uninitialised memory."""
PRINTS_OTHER_VALUES = "prints other values than those that the report calls wrong"


def accept_other_values(claim: Claim, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs that print another output as clean runs."""
    own = [seen for seen in observations if seen.variant is Variant.ORIGINAL]
    matched = any(seen.outcome is Outcome.MATCH and _is_output(seen) for seen in own)
    others = {seen.signature.message for seen in own if _is_other(seen) and seen.signature is not None}
    if claim.expected or not claim.actual or not matched or not 1 <= len(others) <= MAX_OTHERS:
        return tuple(observations)
    return tuple(
        msgspec.structs.replace(seen, outcome=Outcome.PASS, answer=Answer.GOOD, why=PRINTS_OTHER_VALUES)
        if _is_other(seen)
        else seen
        for seen in observations
    )


def rests_on_other_values(observations: Sequence[Observation]) -> bool:
    """True if a clean run is one only because its values are not the reported ones."""
    return any(seen.why == PRINTS_OTHER_VALUES for seen in observations)


def _is_output(seen: Observation) -> bool:
    return seen.signature is not None and seen.signature.type == OUTPUT


def _is_other(seen: Observation) -> bool:
    return seen.outcome is Outcome.OTHER_FAILURE and _is_output(seen)
