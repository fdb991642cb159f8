"""Recognize a run in which the build refused to read the text: its parser, its verifier, its list of passes. Pure."""

from __future__ import annotations

from runners.core.protocol import Observation, Outcome
from runners.core.toolchain.failures import FailureVocabulary


def is_rejected(seen: Observation, vocabulary: FailureVocabulary) -> bool:
    """True if the build refused to read the text. Such a run is no evidence about the reported failure."""
    if seen.outcome is Outcome.INCOMPATIBLE:
        return True
    message = seen.signature.message if seen.signature is not None else ""
    return seen.outcome is Outcome.OTHER_FAILURE and any(p.search(message) for p in vocabulary.rejections)
