"""Recognize a run in which the build rejected the text: by its parser, its verifier, or its list of passes. Pure."""

from __future__ import annotations

from runners.core.protocol import Observation, Outcome, Signature
from runners.core.toolchain.failures import FailureVocabulary


def is_rejected(seen: Observation, vocabulary: FailureVocabulary) -> bool:
    """True if the build rejected the text. Such a run is not evidence about the reported failure."""
    if seen.outcome is Outcome.INCOMPATIBLE:
        return True
    told = seen.signature
    return seen.outcome is Outcome.OTHER_FAILURE and told is not None and refuses_text(told, vocabulary)


def refuses_text(signature: Signature, vocabulary: FailureVocabulary) -> bool:
    """True if the message rejects a text. A report may be about this rejection."""
    return any(pattern.search(signature.message) for pattern in vocabulary.rejections)
