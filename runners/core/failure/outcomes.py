"""What the outcome of a run means: its answer, its reasons, and whether the build read the text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from runners.core.protocol import Answer, Observation, Outcome, Reason, Signature
from runners.core.toolchain.failures import FailureVocabulary


def get_answer(outcome: Outcome) -> Answer:
    """Return whether an outcome is evidence for the failure, against it, or neither."""
    match outcome:
        case Outcome.MATCH:
            return Answer.BAD
        case Outcome.PASS:
            return Answer.GOOD
        case (
            Outcome.OTHER_FAILURE
            | Outcome.COMPILED
            | Outcome.TIMEOUT
            | Outcome.OUT_OF_MEMORY
            | Outcome.INCOMPATIBLE
            | Outcome.UNAVAILABLE
            | Outcome.INFRA
        ):
            return Answer.SKIP
        case _ as never:
            assert_never(never)


_OUTCOMES: Mapping[Reason, tuple[Outcome, ...]] = {
    Reason.NOT_RUN: (Outcome.INFRA, Outcome.UNAVAILABLE),
    Reason.OUT_OF_MEMORY: (Outcome.OUT_OF_MEMORY, Outcome.MATCH),
    Reason.TIMED_OUT: (Outcome.TIMEOUT, Outcome.MATCH),
    Reason.AS_QUOTED: (Outcome.MATCH,),
    Reason.AS_TOLD: (Outcome.MATCH,),
    Reason.CHECK_FAILS: (Outcome.MATCH,),
    Reason.REFUSED: (Outcome.PASS,),
    Reason.PAST_COMPILING: (Outcome.PASS,),
    Reason.NO_DEVICE: (Outcome.UNAVAILABLE,),
    Reason.COMPILES_WITHOUT_DEVICE: (Outcome.UNAVAILABLE,),
    Reason.LACKS_PART: (Outcome.UNAVAILABLE,),
    Reason.DEVICE_FAULT: (Outcome.INFRA,),
    Reason.API_MOVED: (Outcome.INCOMPATIBLE,),
    Reason.NEEDS_FLAG: (Outcome.INCOMPATIBLE,),
    Reason.FAILS_DIFFERENTLY: (Outcome.OTHER_FAILURE,),
    Reason.ENDS_WELL: (Outcome.PASS,),
    Reason.ACCEPTED: (Outcome.MATCH,),
    Reason.CHECK_HOLDS: (Outcome.PASS,),
    Reason.CATCHES_ANOTHER: (Outcome.OTHER_FAILURE,),
    Reason.NOTHING_NAMED: (Outcome.PASS,),
    Reason.COMPILES_ONLY: (Outcome.COMPILED,),
    Reason.COUNTED: (Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE),
    Reason.NOT_COUNTED: (Outcome.OTHER_FAILURE,),
    Reason.PRINTS_WRONG: (Outcome.MATCH,),
    Reason.PRINTS_EXPECTED: (Outcome.PASS,),
    Reason.PRINTS_SIMILAR: (Outcome.PASS,),
    Reason.PRINTS_CHANGED: (Outcome.PASS,),
    Reason.KEEPS_OPERATION: (Outcome.PASS,),
    Reason.PRINTS_UNKNOWN: (Outcome.OTHER_FAILURE,),
    Reason.OTHER_REFERENCE: (Outcome.MATCH,),
    Reason.SAME_REFERENCE: (Outcome.PASS,),
    Reason.TWINS_DIFFER: (Outcome.MATCH,),
    Reason.TWINS_AGREE: (Outcome.PASS,),
}
"""The outcomes that a single run may have for a reason. All runs together decide for the other reasons."""


def explains_outcome(reason: Reason | None, outcome: Outcome) -> bool:
    """Return whether a single run may have this outcome for this reason."""
    return reason is not None and outcome in _OUTCOMES.get(reason, ())


def judge_again(seen: Observation, outcome: Outcome, reason: Reason, why: str) -> Observation:
    """Return a run with the outcome that all runs together give it."""
    return msgspec.structs.replace(
        seen, outcome=outcome, answer=get_answer(outcome), reason=reason, why=why, detail=""
    )


def is_rejected(seen: Observation, vocabulary: FailureVocabulary) -> bool:
    """True if the build refused to read the text. Such a run is no evidence about the reported failure."""
    if seen.outcome is Outcome.INCOMPATIBLE:
        return True
    told = seen.signature
    return seen.outcome is Outcome.OTHER_FAILURE and told is not None and refuses_text(told, vocabulary)


def refuses_text(signature: Signature, vocabulary: FailureVocabulary) -> bool:
    """True if the message is one by which a build refuses a text, also where the report is about this refusal."""
    return any(pattern.search(signature.message) for pattern in vocabulary.rejections)
