"""Confidence of verdicts. ``bench.accuracy`` measures it on the corpus; docs/verdicts.md shows the result."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Answer, Claim

THRESHOLD = 0.6
"""Below this confidence a verdict is ``inconclusive``."""
SEEN_TWICE, SEEN_ONCE = 0.97, 0.9
"""The reported failure in two or more runs of one build, and in one run."""
VAGUELY = 0.1
"""Subtracted where the report gives only a kind of failure to match, or the run shows no more than that."""
TRACED, TRACED_UNSTEADILY, WORKED_OUT, ANOTHER_VALUE = 0.95, 0.8, 0.2, 0.1
"""A diagnosis traced the failure to the testcase; the same where runs disagree; subtracted for an index that the
program computed; subtracted where the repaired testcase is only known to print another value, not the right one."""
FAULT_OF_ANOTHER_FAILURE = 0.8
"""A diagnosis traced a failure to the testcase, but that failure is not the reported one."""
NOTHING_TO_RUN = 0.9
SOMETIMES, SOMETIMES_EXPLAINED = 0.8, 0.9
"""Runs of one build disagree; the same where a diagnosis found the cause."""
UNSTEADY = 0.85
"""Upper limit where the answers agree, but the result depends on a condition outside the testcase."""
UNATTRIBUTED = 0.55
"""Upper limit for a wrong value of every release that no pass causes: only the report says that the value is wrong.
On planted programs, such a verdict blamed the compiler for the testcase's own fault three times in three."""
UNDEFINED_INPUT = 0.55
"""Upper limit for a wrong value of a testcase that reads memory it never wrote, where the effect is not shown."""
IN_OTHER_WORDS = 0.8
"""Type and frames of the failure agree, the message only in part."""
ONLY_PORTED = 0.8
OTHER_VALUES = 0.8
"""Upper limit where a build counts as clean because its values are not the ones that the report calls wrong."""
UNQUOTED = 0.7
"""The reported build fails, in a way that the report neither quotes nor excludes, and the newest does not."""
CANNOT_RUN = 0.85
CLEAN_ON_ITS_RELEASE, CLEAN_NEARBY, CLEAN_ELSEWHERE = 0.85, 0.75, 0.7
"""Clean runs: on the reported release; on others where the report names none; on others where the named release is
not available, or the report says that the failure is intermittent."""
CLEAN_ONLY_PORTED = 0.75
"""Clean on the reported release, and on the newest release after porting to its API."""
OTHERWISE = 0.7
"""Fails, but not as reported: the weakest verdict. The first two such verdicts were wrong: names had moved."""


def rate_confidence(evidence: Evidence, version: str) -> float:
    """Return the confidence in a reproduced failure.

    It depends on the number of failing runs of ``version``, and on how specifically the report describes the failure.
    """
    sure = SEEN_TWICE if evidence.count_runs(version) > 1 else SEEN_ONCE
    if _is_vague(evidence.plan.claim) or _has_only_signal(evidence, version):
        sure -= VAGUELY
    return round(sure, 2)


def _is_vague(claim: Claim) -> bool:
    """True if the report has no message, frames or output: only a kind of failure to match."""
    specific = claim.signature is not None and bool(claim.signature.message or claim.signature.frames)
    return not specific and not claim.actual


def _has_only_signal(evidence: Evidence, version: str) -> bool:
    """True if every matching run crashed without stack and message, so that any other crash would have matched."""
    bad = [seen for seen in evidence.list_originals() if seen.version == version and seen.answer is Answer.BAD]
    signatures = [seen.signature for seen in bad if seen.signature is not None]
    crashed = [one for one in signatures if one.type in NATIVE]
    return bool(bad) and len(crashed) == len(bad) and not any(one.frames or one.message for one in crashed)
