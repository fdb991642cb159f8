"""What the newest release says instead: the same failure reworded, or a refusal of what others got wrong."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from runners.core.failure.compare import compare_signatures
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.parse import NATIVE
from runners.core.protocol import ClaimKind, Outcome, Signature, Variant
from runners.core.toolchain.failures import FailureVocabulary
from runners.toolchains import find_toolchain


def is_reworded(evidence: Evidence, newest_bad: str, newest: str) -> bool:
    """The newest build's error, as posted or ported, is that of a build that failed as reported, reworded.

    Messages change from release to release; what leads to them stays. Only an error is judged so, and only where
    every run of the newest says the same: its type and all its frames agree, and at least half of its words.
    """
    if evidence.plan.claim.kind is not ClaimKind.ERROR:
        return False
    known = [seen.signature for seen in evidence.list_originals() if seen.version == newest_bad and seen.signature]
    later = [
        seen
        for seen in evidence.observations
        if seen.version == newest and seen.outcome is not Outcome.INCOMPATIBLE and seen.variant in _OWN_TEXT
    ]
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    return bool(known and later) and all(
        seen.outcome is Outcome.OTHER_FAILURE
        and seen.signature is not None
        and _is_reworded_signature(known[-1], seen.signature, vocabulary)
        for seen in later
    )


_OWN_TEXT = {Variant.ORIGINAL, Variant.PORTED}
_FRAMES_THAT_TELL = 3


def _is_reworded_signature(known: Signature, seen: Signature, vocabulary: FailureVocabulary) -> bool:
    if seen.type in NATIVE or seen.type != known.type or seen.frames != known.frames:
        return False
    return len(known.frames) >= _FRAMES_THAT_TELL and compare_signatures(known, seen, vocabulary).score >= 0.5


def find_refusal(evidence: Evidence, version: str) -> str | None:
    """The diagnostic with which a build refuses what others got wrong or died of; None where it fails otherwise."""
    if evidence.plan.claim.kind not in (ClaimKind.WRONG_RESULT, ClaimKind.CRASH):
        return None
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    refused = [seen for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and seen.signature is not None]
    if not runs or len(refused) < len(runs):
        return None
    said = refused[-1].signature
    if said is None or said.type in NATIVE or said.type == OUTPUT or not said.message:
        return None
    return f"{said.type}: {said.message[:120]}"
