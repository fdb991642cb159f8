"""The reported failure was never seen: clean runs, other failures, or no answer at all."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.rules.confidence import (
    CANNOT_RUN,
    CLEAN_ELSEWHERE,
    CLEAN_NEARBY,
    CLEAN_ON_ITS_RELEASE,
    CLEAN_ONLY_PORTED,
    OTHERWISE,
)
from bot.verdict.rules.phrases import last_words, looked_at, newest_run, span, versions_of
from bot.verdict.rules.untestable import needs_a_device, on_stand_ins
from bot.verdict.verdict import Verdict, VerdictKind, conclude
from runners.core.protocol import Answer, ClaimKind, Exited, Observation, Outcome, Variant


def never_seen_failing(evidence: Evidence) -> Verdict:
    """No run of any text failed as reported, and that is said with what was seen instead."""
    good = evidence.versions(Answer.GOOD)
    if good:
        return _not_reproduced(evidence, good)
    skips = evidence.skips()
    if not skips:
        return conclude(VerdictKind.INCONCLUSIVE, 0.3, "Inconclusive: nothing was run.")
    cannot_run = [kind for kind in (Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE) if skips[kind]]
    if skips[Outcome.OTHER_FAILURE] and (_failing_at_home(evidence) or not cannot_run):
        return _only_other_failures(evidence)
    outcome = max(sorted(skips), key=lambda kind: (kind in cannot_run, skips[kind]))
    newest = newest_run(evidence)
    why = last_words(evidence, newest)
    used = evidence.indices(newest)
    match outcome:
        case Outcome.INCOMPATIBLE:
            ported = evidence.versions(Answer.GOOD, Variant.PORTED)
            clean = f" In the names of today it runs cleanly on {span(ported)}." if ported else ""
            return conclude(
                VerdictKind.UNTESTABLE,
                CANNOT_RUN,
                "No release here can run the testcase as posted: its API has moved "
                f"(tried {looked_at(evidence)}).{clean}",
                (why,),
                used,
            )
        case Outcome.UNAVAILABLE:
            return conclude(
                VerdictKind.UNTESTABLE,
                CANNOT_RUN,
                needs_a_device(evidence) + on_stand_ins(evidence),
                (why,),
                evidence.indices(*evidence.plan.order, variants=(Variant.ORIGINAL, Variant.RETARGETED)),
            )
        case _:
            named = {Outcome.TIMEOUT: "the time was up", Outcome.OUT_OF_MEMORY: "the memory was used up"}
            return conclude(
                VerdictKind.INCONCLUSIVE,
                0.4,
                f"Inconclusive: on every release looked at, {named.get(outcome, 'the run could not be completed')}.",
                (why,),
                used,
            )


def _not_reproduced(evidence: Evidence, good: Sequence[str]) -> Verdict:
    plan = evidence.plan
    used = evidence.indices(*good)
    if plan.claim.kind is ClaimKind.UNKNOWN:
        return conclude(
            VerdictKind.INCONCLUSIVE,
            0.4,
            f"Inconclusive: it runs to its end on {span(good)}, and the report names no failure to look for.",
            ("the exact error, or the output that is wrong and the one expected, would settle it",),
            used,
        )
    newest = plan.order[-1]
    silent = [v for v in (plan.reported, newest) if v is not None and v not in good]
    if silent == [newest] and evidence.answers(Variant.PORTED).get(newest) is Answer.GOOD:
        return conclude(
            VerdictKind.NOT_REPRODUCED,
            CLEAN_ONLY_PORTED,
            f"Not reproduced: it runs cleanly on {span(good)} and, ported to the API of {newest}, there too.",
            (f"on {newest}, as posted: {last_words(evidence, newest)}",),
            used + evidence.indices(newest, variants=(Variant.PORTED,)),
        )
    if silent:
        why = last_words(evidence, silent[0])
        return conclude(
            VerdictKind.INCONCLUSIVE,
            0.5,
            f"Inconclusive: it runs cleanly on {span(good)}, but {silent[0]} gives no answer.",
            (f"on {silent[0]}: {why}" if why else "",),
            used,
        )
    named = bool(plan.claim.versions)
    exact = plan.reported is not None
    if named and not exact:
        return conclude(
            VerdictKind.NOT_REPRODUCED,
            CLEAN_ELSEWHERE,
            f"Not reproduced: it runs cleanly on {span(good)}; the version that the report names is not at hand.",
            ("the failure may have been fixed before the oldest of these",),
            used,
        )
    return conclude(
        VerdictKind.NOT_REPRODUCED,
        CLEAN_ON_ITS_RELEASE if exact else CLEAN_NEARBY,
        f"Not reproduced: it runs cleanly on {span(good)}.",
        (),
        used,
    )


def _failing_at_home(evidence: Evidence) -> bool:
    """It fails, somehow, where the report is at home: on the very release that it names, or on the newest.

    A failure elsewhere (on an older release, or on a build that stands in for the reported one) is no news.
    """
    plan = evidence.plan
    home = {plan.order[-1]}
    if plan.reported is not None and evidence.names_its_release():
        home.add(plan.reported)
    return any(s.version in home and s.outcome is Outcome.OTHER_FAILURE for s in evidence.originals())


def _only_other_failures(evidence: Evidence) -> Verdict:
    """It fails, but never as reported: worth a verdict only on the reporter's own release, or on all."""
    plan = evidence.plan
    failing = [seen for seen in evidence.originals() if seen.outcome is Outcome.OTHER_FAILURE]
    latest = failing[-1]
    named = latest.signature.type if latest.signature is not None else "a failure"
    used = tuple(i for i, s in enumerate(evidence.observations) if s.outcome is Outcome.OTHER_FAILURE)
    if all(_ended_clean(s) for s in failing):
        return conclude(
            VerdictKind.INCONCLUSIVE,
            0.4,
            "Inconclusive: it runs to its end, and nothing tells whether what it prints is right.",
            ("an assertion, or the expected output next to the actual one, would settle it",),
            used,
        )
    claim_is_known = plan.claim.signature is not None and plan.claim.kind is not ClaimKind.UNKNOWN
    if claim_is_known and _failing_at_home(evidence):
        return conclude(
            VerdictKind.DIFFERENT_FAILURE,
            OTHERWISE,
            f"It fails on {span(versions_of(plan, failing))}, but with {named} and not as reported.",
            (latest.why, "nothing is said here about the reported failure"),
            used,
        )
    return conclude(
        VerdictKind.INCONCLUSIVE,
        0.45,
        f"Inconclusive: it ends with {named} on {latest.version}, and that is not what the report describes.",
        ("the full error as printed would settle it",),
        used,
    )


def _ended_clean(seen: Observation) -> bool:
    return isinstance(seen.ended, Exited) and seen.ended.code == 0
