"""Judge an issue of which no run fails as reported, by questions in their order. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.not_reproduced.clean import judge_clean
from bot.verdict.rules.not_reproduced.clean_port import judge_clean_port
from bot.verdict.rules.not_reproduced.facts import ends_well, fails_unquoted, fails_where_reported
from bot.verdict.rules.not_reproduced.other_failures import judge_other_failures
from bot.verdict.rules.phrases import count_tried, find_last_reason, find_newest_run, list_versions, name_releases
from bot.verdict.rules.reworded import OTHER_END, find_ported_end
from bot.verdict.rules.untestable import describe_moved, describe_needs, describe_stand_ins, name_build
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.protocol import Answer, Outcome, Variant


def judge_not_reproduced(evidence: Evidence) -> Verdict:
    """Return the verdict if no run failed as reported."""
    good = evidence.find_versions(Answer.GOOD)
    if good:
        return judge_clean(evidence, good)
    if (clean_port := judge_clean_port(evidence)) is not None:
        return clean_port
    skips = evidence.count_skips()
    if not skips:
        return make_verdict(VerdictKind.INCONCLUSIVE, (Ground.NO_ANSWER,), "Inconclusive: nothing was run.")
    cannot_run = [kind for kind in (Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE) if skips[kind]]
    others = [seen for seen in evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
    runs_there = any(map(ends_well, others))  # it runs there, although nothing shows whether its output is right
    if others and (
        runs_there or fails_where_reported(evidence, others) or not cannot_run or fails_unquoted(evidence)
    ):
        return judge_other_failures(evidence)
    outcome = max(sorted(skips), key=lambda kind: (kind in cannot_run, skips[kind]))
    newest = find_newest_run(evidence)
    why = find_last_reason(evidence, newest)
    used = evidence.find_indices(newest)
    match outcome:
        case Outcome.INCOMPATIBLE if ended := find_ported_end(evidence, evidence.plan.order[-1]):
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER, Ground.PORTED),
                f"Inconclusive: no release here runs the testcase as posted; ported to {evidence.plan.order[-1]},"
                f" it ends with another error than the reported one: {ended}.",
                (OTHER_END, why),
                used,
            )
        case Outcome.INCOMPATIBLE:
            return make_verdict(
                VerdictKind.UNTESTABLE,
                (Ground.CANNOT_RUN,),
                f"{describe_moved(evidence)}{_describe_ports(evidence)}",
                (why, name_build(evidence)),
                used,
            )
        case Outcome.UNAVAILABLE:
            return make_verdict(
                VerdictKind.UNTESTABLE,
                (Ground.CANNOT_RUN,),
                describe_needs(evidence) + describe_stand_ins(evidence),
                (why,),
                evidence.find_indices(*evidence.plan.order, variants=(Variant.ORIGINAL, Variant.RETARGETED)),
            )
        case _:
            named = {Outcome.TIMEOUT: "the time limit was reached", Outcome.OUT_OF_MEMORY: "memory ran out"}
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: on {newest}, {named.get(outcome, 'the run could not be completed')};"
                f" {count_tried(evidence)}, and none gave an answer.",
                (why,),
                used,
            )


def _describe_ports(evidence: Evidence) -> str:
    """Return a sentence on the ported runs, which are not of the posted text; empty if they are no evidence."""
    if clean := evidence.find_versions(Answer.GOOD, Variant.PORTED):
        where = name_releases(evidence, clean, Variant.PORTED)
        return f" Ported to a newer API, it runs cleanly on {where}."
    others = [
        seen
        for seen in evidence.observations
        if seen.variant is Variant.PORTED and seen.outcome is Outcome.OTHER_FAILURE
    ]
    where = name_releases(evidence, list_versions(evidence.plan, others), Variant.PORTED)
    if others and all(map(ends_well, others)):
        return (
            f" Ported to a newer API, it runs to its end on {where}, and nothing shows whether its output is right."
        )
    return f" Ported to a newer API, it fails otherwise than reported on {where}." if others else ""
