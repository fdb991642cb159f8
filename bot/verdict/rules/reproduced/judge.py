"""Judge runs of the posted testcase with the reported failure: since when, until when, or everywhere. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import are_all, list_skipped, name_all, name_newest, name_releases
from bot.verdict.rules.reproduced.facts import choose_kind, describe_clean, list_grounds
from bot.verdict.rules.reproduced.without_newest import judge_without_newest
from bot.verdict.rules.reworded import find_refusal
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.bisection import releases as search
from runners.core.protocol import Answer, Outcome, Variant


def judge_reproduced(evidence: Evidence) -> Verdict | None:
    """Return the verdict if the posted testcase fails: since a release, until a release, or on all that ran it."""
    bad = evidence.find_versions(Answer.BAD)
    if not bad:
        return None
    answers, order = evidence.combine_answers(), evidence.plan.order
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    grounds = list_grounds(evidence, bad[-1])
    went, came = search.find_fix(order, answers), search.find_introduction(order, answers)
    if went is not None and went.older is not None and went.newer is not None:
        return _judge_fixed(evidence, went.older, went.newer, grounds)
    if spoken[-1] != order[-1]:
        return judge_without_newest(evidence, spoken[-1], grounds)
    used = evidence.find_indices(*bad, *((came.older,) if came and came.older else ()))
    if came is not None and came.older is not None:
        return make_verdict(
            choose_kind(evidence, evidence.find_versions(Answer.GOOD)),
            grounds,
            _describe_regression(evidence, bad, came.older),
            list_skipped(came),
            used,
        )
    return make_verdict(
        VerdictKind.CONFIRMED,
        grounds,
        _describe_everywhere(evidence, bad),
        (),
        used,
    )


def _describe_regression(evidence: Evidence, bad: Sequence[str], last_good: str) -> str:
    """Return the sentence on the releases since the newest change, and on earlier releases with the failure."""
    order = evidence.plan.order
    later = [version for version in bad if order.index(version) > order.index(last_good)]
    earlier = [version for version in bad if version not in later]
    verb = "fails" if len(later) == 1 else "fail"
    included = f", {name_newest(evidence)}," if len(later) == 1 else f", {name_newest(evidence)} included,"
    before = f" The failure occurs on {name_releases(evidence, earlier)} too." if earlier else ""
    return f"{last_good} runs cleanly; {name_releases(evidence, later)}{included} {verb} as reported.{before}"


def _describe_everywhere(evidence: Evidence, bad: Sequence[str]) -> str:
    """Return the sentence for a failure of every release, including the newest."""
    if len(bad) == 1:
        alone = "" if are_all(evidence, bad) else "; no release runs it cleanly"
        return f"{bad[0]}, {name_newest(evidence)}, fails as reported{alone}."
    rest = "" if are_all(evidence, bad) else " No release runs it cleanly."
    return f"It fails as reported on {name_all(evidence, bad)}, {name_newest(evidence)} included.{rest}"


def _judge_fixed(evidence: Evidence, last_bad: str, first_good: str, grounds: tuple[Ground, ...]) -> Verdict:
    newest = evidence.plan.order[-1]
    answers = evidence.combine_answers()
    ported_there = evidence.find_indices(newest, variants=(Variant.PORTED,))
    reasons = []
    anew = ""
    if answers.get(newest) is not Answer.GOOD:
        ported = evidence.combine_answers(Variant.PORTED).get(newest)
        if ported is Answer.BAD:
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: {first_good} runs it cleanly as posted, but ported to {newest} it fails there.",
                (),
                evidence.find_indices(last_bad, first_good) + ported_there,
            )
        if any(
            seen.version == newest and seen.outcome is Outcome.OTHER_FAILURE for seen in evidence.list_originals()
        ):
            anew = f" {newest}, {name_newest(evidence)}, fails in another way."
            if ported is not Answer.GOOD and (refusal := find_refusal(evidence, newest)):
                return make_verdict(
                    VerdictKind.INCONCLUSIVE,
                    (Ground.NO_ANSWER,),
                    f"Inconclusive: {last_bad} fails as reported, and {describe_clean(evidence, first_good)};"
                    f" {newest}, {name_newest(evidence)}, rejects it instead: {refusal}.",
                    ("to decide: whether this program should be rejected; if so, the failure is fixed",),
                    evidence.find_indices(last_bad, first_good, newest),
                )
        if ported is Answer.GOOD:
            anew = f" {_name_port(evidence, newest)}, it runs cleanly on {newest}, {name_newest(evidence)}, too."
            reasons.append(f"{newest} does not run it as posted")
        elif not anew:
            reasons.append(f"{newest} cannot run it as posted")
        grounds = (*grounds, Ground.PORTED if ported is Answer.GOOD else Ground.NEWEST_SILENT)
    return make_verdict(
        VerdictKind.FIXED,
        grounds,
        f"Already fixed: {last_bad} fails as reported; {describe_clean(evidence, first_good)}.{anew}",
        reasons,
        evidence.find_indices(last_bad, first_good) + (() if answers.get(newest) is Answer.GOOD else ported_there),
    )


def _name_port(evidence: Evidence, version: str) -> str:
    """Return the changes for the ported runs of a build, as the beginning of a sentence."""
    ported = [one for one in evidence.observations if one.variant is Variant.PORTED and one.version == version]
    return "In today's notation" if all(one.notation_only for one in ported) else "Ported to a newer API"
