"""Facts about a claim and its runs that the rules of this folder share. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from runners.core.failure.outcomes import is_rejected
from runners.core.protocol import ClaimKind, Exited, Observation, Outcome
from runners.toolchains import find_toolchain


def fails_where_reported(evidence: Evidence, failing: Sequence[Observation]) -> bool:
    """True if one of the other failures occurs on the reported release itself or on the newest release.

    Another failure on an older release, or on a build that represents the reported one, is weak evidence.
    """
    plan = evidence.plan
    relevant = {plan.order[-1]}
    if plan.reported is not None and evidence.has_reported_release():
        relevant.add(plan.reported)
    return any(seen.version in relevant for seen in failing)


def fails_unquoted(evidence: Evidence) -> bool:
    """True if the build that is closest to the report reads the text and fails, and the report quotes no failure.

    A report that gives neither a build nor a date may be about any build that fails.
    """
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    own = (seen for seen in evidence.list_originals() if plan.reported in (None, seen.version))
    return quotes_no_failure(evidence) and any(
        seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary) for seen in own
    )


def quotes_no_failure(evidence: Evidence) -> bool:
    claim = evidence.plan.claim
    return claim.signature is None and claim.kind in (ClaimKind.CRASH, ClaimKind.ERROR)


def only_compiles(evidence: Evidence) -> bool:
    """True if no command runs the compiler's result. A compiler prints remarks, and no values."""
    testcase = evidence.plan.testcase
    return all(step[0] in find_toolchain(testcase.toolchain).GUEST.compilers for step in testcase.steps)


def ends_well(seen: Observation) -> bool:
    return isinstance(seen.ended, Exited) and seen.ended.code == 0
