"""Judge a failure that the reported release does not have. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_releases
from bot.verdict.rules.reproduced.facts import is_vague, names_change, quotes_failure
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.costs import QUANTITIES
from runners.core.protocol import Answer


def judge_contradicted(evidence: Evidence) -> Verdict | None:
    """Return ``inconclusive`` if the reported release runs cleanly while others fail; None otherwise.

    Then the matched failure is not the reported one. This occurs if a report quotes outputs of two releases, and the
    extraction mistakes the right output for the wrong one. An exception or a crash with its message is not a right
    output: then the report names a clean release, or its author had another build.

    A report may name a clean release for comparison. This is not a contradiction if each clean release is older than
    the failing ones (`names_change`).

    A build that represents the reported one contradicts only a report without message, stack and output, which any
    failure of the same kind matches. A clean build must be between it and the failing ones: a neighbour may have the
    fix that the reporter's own build lacks.
    """
    plan = evidence.plan
    bad = evidence.find_versions(Answer.BAD)
    named = evidence.has_reported_release()
    if plan.reported is None or not bad or not (named or _is_long_gone(evidence, plan.reported, bad)):
        return None
    if evidence.combine_answers().get(plan.reported) is not Answer.GOOD:
        return None
    if plan.claim.kind in QUANTITIES or names_change(evidence):
        return None  # "2 s with A, 25 s with B" names the good release as well
    sides = {plan.order.index(version) < plan.order.index(plan.reported) for version in bad}
    if quotes_failure(plan.claim) and len(sides) == 1:
        return None
    if not named:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: {plan.reported}, the build closest to the report, runs cleanly; a failure of the same"
            f" kind occurs on {name_releases(evidence, bad)}, and the report quotes no message to compare with.",
            ("to decide: the message or the stack of the reported failure",),
            evidence.find_indices(plan.reported, *bad),
        )
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: {plan.reported}, which the report is about, runs cleanly; the described failure occurs on"
        f" {name_releases(evidence, bad)}.",
        ("to decide: which of the quoted outputs is wrong, and on which release",),
        evidence.find_indices(plan.reported, *bad),
    )


def _is_long_gone(evidence: Evidence, reported: str, bad: Sequence[str]) -> bool:
    """True if the report describes only a kind of failure, and a clean build is between it and the failing builds."""
    place = evidence.plan.order.index
    good = evidence.find_versions(Answer.GOOD)
    return is_vague(evidence.plan.claim) and any(max(map(place, bad)) < place(one) < place(reported) for one in good)
