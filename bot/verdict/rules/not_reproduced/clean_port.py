"""Judge clean runs of a ported testcase. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_releases
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.outcomes import is_rejected
from runners.core.protocol import Answer, ClaimKind, Outcome, Reason, Variant
from runners.toolchains import find_toolchain


def judge_clean_port(evidence: Evidence) -> Verdict | None:
    """Return the verdict if no release reads the posted text, and the newest runs the same program cleanly.

    A change of notation counts, and so does a run that prints the expected output. A port to another API may do
    something else: a clean port of a schedule once lost the operation that failed. So a clean port answers a quoted
    error or crash only if a second build runs a port cleanly, and no build fails.
    """
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    originals = [seen for seen in evidence.list_originals() if seen.outcome is not Outcome.UNAVAILABLE]
    refused = bool(originals) and all(is_rejected(seen, vocabulary) for seen in originals)
    ported = [seen for seen in evidence.observations if seen.variant is Variant.PORTED]
    answers = evidence.combine_answers(Variant.PORTED)
    deciding = {plan.order[-1], plan.reported} if evidence.has_reported_release() else {plan.order[-1]}
    clean = all(version is not None and answers.get(version) is Answer.GOOD for version in deciding)
    good = evidence.find_versions(Answer.GOOD, Variant.PORTED)
    quoted = plan.claim.kind in (ClaimKind.ERROR, ClaimKind.CRASH) and plan.claim.signature is not None
    agree = quoted and len(good) > 1 and set(answers.values()) <= {Answer.GOOD, Answer.SKIP}
    same = agree or all(seen.notation_only or seen.reason is Reason.PRINTS_EXPECTED for seen in ported)
    answered = plan.claim.kind is not ClaimKind.UNKNOWN and plan.claim.kind not in QUANTITIES  # no run answers those
    if not (answered and refused and clean and same):
        return None
    where = name_releases(evidence, good, Variant.PORTED)
    once: tuple[Ground, ...] = ()
    if all(seen.notation_only for seen in ported):
        how = "with its notation adapted, it runs cleanly"
    elif all(seen.reason is Reason.PRINTS_EXPECTED for seen in ported if seen.answer is Answer.GOOD):
        how = "ported, it prints what the report expects"
    else:
        how, once = "ported to a newer API, it runs cleanly", (Ground.SEEN_ONCE,)
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, Ground.PORTED, Ground.BUILD_NOT_HERE, *once),
        f"Not reproduced: {how} on {where}; no release here reads it as posted.",
        ("the failure may have been fixed before the oldest of these releases",),
        evidence.find_indices(*good, variants=(Variant.PORTED,)),
    )
