"""How sure a verdict is. Held against the corpus by ``bench.accuracy``; docs/verdicts.md has its reliability."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Answer, Claim

THRESHOLD = 0.6
"""Below it a verdict is ``inconclusive``."""
SEEN_TWICE, SEEN_ONCE = 0.97, 0.9
"""The reported failure in two runs of one build or more, and in one."""
VAGUELY = 0.1
"""Less, where the report gives only a kind of failure to match, or the run had no more to show."""
TRACED, TRACED_UNSTEADILY, WORKED_OUT, ANOTHER_VALUE = 0.95, 0.8, 0.2, 0.1
"""A diagnosis puts the fault in the repro; runs disagree; less, for an index that the program worked out, and where
the repro put right is not known to be right, only to print something else."""
NOTHING_TO_RUN = 0.9
SOMETIMES, SOMETIMES_EXPLAINED = 0.8, 0.9
"""Runs of one build disagree; and a diagnosis found what decides."""
UNSTEADY = 0.85
"""At most: the answers agree, and yet the result follows something that no testcase says."""
UNATTRIBUTED = 0.85
"""At most: a wrong value that every release gives, and that no pass brings in. One of 0.97 was the testcase's own."""
UNDEFINED_INPUT = 0.55
"""At most: a wrong value of a testcase that also reads what it never wrote, where that is not shown to decide."""
IN_OTHER_WORDS = 0.8
"""Only the calls that lead to the failure agree wholly."""
ONLY_PORTED = 0.8
CANNOT_RUN = 0.85
CLEAN_ON_ITS_RELEASE, CLEAN_NEARBY, CLEAN_ELSEWHERE = 0.85, 0.75, 0.7
"""Clean runs: on the release reported, on others where none is named, and where the one named is not at hand, or the
failure is said to come and go."""
CLEAN_ONLY_PORTED = 0.75
"""Clean on the release reported, and on the newest once its moved names are put right."""
OTHERWISE = 0.7
"""Fails, but not as reported: the weakest verdict. Two of two were wrong at a first look, names that had moved."""


def rate_confidence(evidence: Evidence, version: str) -> float:
    """From how often the failure was seen, and how specifically the report describes it."""
    sure = SEEN_TWICE if evidence.count_runs(version) > 1 else SEEN_ONCE
    if _is_vague(evidence.plan.claim) or _has_only_signal(evidence, version):
        sure -= VAGUELY
    return round(sure, 2)


def _is_vague(claim: Claim) -> bool:
    """The report gives neither a message nor frames nor output: only a kind to match."""
    told = claim.signature is not None and bool(claim.signature.message or claim.signature.frames)
    return not told and not claim.actual


def _has_only_signal(evidence: Evidence, version: str) -> bool:
    """It crashed as reported and left no stack and no words: any other crash would have matched too."""
    bad = [seen for seen in evidence.list_originals() if seen.version == version and seen.answer is Answer.BAD]
    told = [seen.signature for seen in bad if seen.signature is not None]
    crashed = [one for one in told if one.type in NATIVE]
    return bool(bad) and len(crashed) == len(bad) and not any(one.frames or one.message for one in crashed)
