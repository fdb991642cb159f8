"""Judge a failure that only forks can show. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import find_last_reason, name_releases
from bot.verdict.rules.untestable import describe_moved, name_build
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.protocol import Answer, Variant


def judge_on_forks(evidence: Evidence, variant: Variant) -> Verdict:
    """Return the verdict if the testcase fails as reported on forks, and no release has its API."""
    bad = evidence.find_versions(Answer.BAD, variant)
    good = evidence.find_versions(Answer.GOOD, variant)
    ported = "Ported to their API, it" if variant is Variant.PORTED else "It"
    clean = f", and runs cleanly on {name_releases(evidence, good, variant)}" if good else ""
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"{describe_moved(evidence)} {ported} fails as reported on {name_releases(evidence, bad, variant)}{clean}.",
        (find_last_reason(evidence, evidence.plan.order[-1]), name_build(evidence)),
        evidence.find_indices(*bad, *good, variants=(variant,)) + evidence.find_indices(evidence.plan.order[-1]),
    )
