"""The reported failure was seen: on which releases, in which direction, and what of the newest."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.rules.confidence import IN_OTHER_WORDS, ONLY_PORTED, certainty
from bot.verdict.rules.phrases import last_words, skipped_between, span, the_newest
from bot.verdict.rules.reworded import in_other_words, refusal_by
from bot.verdict.verdict import Verdict, VerdictKind, conclude
from runners.core.bisection import releases as search
from runners.core.protocol import Answer, Outcome, Variant


def contradicted(evidence: Evidence) -> Verdict | None:
    """The very release that the report names runs cleanly, and others fail: then what was matched isn't its bug.

    Seen when a report quotes outputs of two releases and it was misread which of them is the wrong one.
    """
    plan = evidence.plan
    bad = evidence.versions(Answer.BAD)
    if plan.reported is None or not bad or not evidence.names_its_release():
        return None
    if evidence.answers().get(plan.reported) is not Answer.GOOD:
        return None
    return conclude(
        VerdictKind.INCONCLUSIVE,
        0.4,
        f"Inconclusive: {plan.reported}, which the report is about, runs cleanly, while {span(bad)} does not.",
        ("which of the quoted outputs is the wrong one, and on which release, would settle it",),
        evidence.indices(plan.reported, *bad),
    )


def seen_failing(evidence: Evidence) -> Verdict | None:
    """It fails as posted: since a release, until a release, or on every one that ran it."""
    bad = evidence.versions(Answer.BAD)
    if not bad:
        return None
    answers, order = evidence.answers(), evidence.plan.order
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    sure = certainty(evidence, bad[-1])
    went, came = search.find_fix(order, answers), search.find_introduction(order, answers)
    if went is not None and went.older is not None and went.newer is not None:
        return _fixed(evidence, went.older, went.newer, sure)
    if spoken[-1] != order[-1]:
        return _unknown_on_newest(evidence, spoken[-1], sure)
    used = evidence.indices(*bad, *((came.older,) if came and came.older else ()))
    if came is not None and came.older is not None:
        return conclude(
            VerdictKind.REGRESSION,
            sure,
            f"Reproduced on {bad[-1]}, {the_newest(evidence)}; it came in between {came.older} and {came.newer}.",
            skipped_between(came),
            used,
        )
    return conclude(
        VerdictKind.CONFIRMED,
        sure,
        f"Reproduced on {span(bad)}, {the_newest(evidence)} included; no release that was run is free of it.",
        (),
        used,
    )


def _fixed(evidence: Evidence, last_bad: str, first_good: str, sure: float) -> Verdict:
    newest = evidence.plan.order[-1]
    answers = evidence.answers()
    ported_there = evidence.indices(newest, variants=(Variant.PORTED,))
    reasons = []
    anew = ""
    if answers.get(newest) is not Answer.GOOD:
        ported = evidence.answers(Variant.PORTED).get(newest)
        if ported is Answer.BAD:
            return conclude(
                VerdictKind.INCONCLUSIVE,
                0.5,
                f"Inconclusive: {first_good} runs it cleanly as posted, but {newest} fails when it is ported.",
                (),
                evidence.indices(last_bad, first_good) + ported_there,
            )
        if any(seen.version == newest and seen.outcome is Outcome.OTHER_FAILURE for seen in evidence.originals()):
            anew = f" {newest}, {the_newest(evidence)}, fails in another way."
        reasons.append(
            f"{newest} {'fails in another way' if anew else 'cannot run it'} as posted"
            + ("; ported to its API it runs cleanly" if ported is Answer.GOOD else "")
        )
        sure -= 0.0 if ported is Answer.GOOD else 0.1
    return conclude(
        VerdictKind.FIXED,
        sure,
        f"Already fixed: {last_bad} fails as reported, {first_good} does not.{anew}",
        reasons,
        evidence.indices(last_bad, first_good) + (ported_there if reasons else ()),
    )


def _unknown_on_newest(evidence: Evidence, newest_bad: str, sure: float) -> Verdict:
    """Bad as far as builds can run it, and the newest cannot: the ported text may know."""
    newest = evidence.plan.order[-1]
    used = evidence.indices(newest_bad, newest) + evidence.indices(newest, variants=(Variant.PORTED,))
    match evidence.answers(Variant.PORTED).get(newest):
        case Answer.BAD:
            return conclude(
                VerdictKind.CONFIRMED,
                sure - 0.05,
                f"Reproduced on {newest_bad} as posted and, ported to its API, on {newest}, {the_newest(evidence)}.",
                (),
                used,
            )
        case Answer.GOOD:
            return conclude(
                VerdictKind.FIXED,
                sure - 0.1,
                f"Already fixed: {newest_bad} fails as reported; {newest}, to whose API it was ported, does not.",
                (),
                used,
            )
        case _ if in_other_words(evidence, newest_bad, newest):
            return conclude(
                VerdictKind.CONFIRMED,
                min(sure, IN_OTHER_WORDS),
                f"Reproduced on {newest_bad}; on {newest}, {the_newest(evidence)}, it fails at the same place"
                " with other words.",
                ("the same kind of error, through the same calls; the wording differs from the report's",),
                used,
            )
        case _ if refusal := refusal_by(evidence, newest):
            return conclude(
                VerdictKind.INCONCLUSIVE,
                0.55,
                f"Inconclusive: {newest_bad} fails as reported; {newest}, {the_newest(evidence)}, refuses it instead,"
                f" with {refusal}.",
                ("a refusal where the result was wrong is neither the failure nor its fix: a maintainer can tell",),
                used,
            )
        case _:
            why = last_words(evidence, newest)
            return conclude(
                VerdictKind.INCONCLUSIVE,
                0.5,
                f"Inconclusive: {newest_bad} fails as reported, but {newest}, {the_newest(evidence)},"
                " gives no answer.",
                (f"on {newest}: {why}" if why else "",),
                used,
            )


def seen_only_ported(evidence: Evidence) -> Verdict | None:
    """No build runs the text as posted, but ported it shows the failure."""
    ported = evidence.answers(Variant.PORTED)
    if evidence.versions(Answer.GOOD) or Answer.BAD not in ported.values():
        return None
    bad = evidence.versions(Answer.BAD, Variant.PORTED)
    newest = evidence.plan.order[-1]
    used = evidence.indices(*bad, variants=(Variant.PORTED,))
    if ported.get(newest) is Answer.BAD:
        return conclude(
            VerdictKind.CONFIRMED,
            ONLY_PORTED,
            f"Reproduced on {span(bad)} after porting it to their API; no release here runs it as posted.",
            ("every substitution that the port made is listed",),
            used,
        )
    return conclude(
        VerdictKind.INCONCLUSIVE,
        0.5,
        f"Inconclusive: ported to their API, it fails on {span(bad)} but not on {newest}.",
        (),
        used,
    )
