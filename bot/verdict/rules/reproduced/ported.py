"""Judge runs that fail as reported only when ported. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_newest, name_releases
from bot.verdict.rules.reproduced.facts import choose_kind, describe_clean, list_grounds
from bot.verdict.rules.reproduced.on_forks import judge_on_forks
from bot.verdict.rules.untestable import is_only_for_forks
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.protocol import Answer, Variant


def judge_only_ported(evidence: Evidence) -> Verdict | None:
    """Return the verdict if no run of the posted testcase fails as reported, but a ported run does; else None."""
    ported = evidence.combine_answers(Variant.PORTED)
    if Answer.BAD not in ported.values():
        return None
    bad = evidence.find_versions(Answer.BAD, Variant.PORTED)
    newest = evidence.plan.order[-1]
    if good := evidence.find_versions(Answer.GOOD):
        return _judge_fixed_since_port(evidence, bad, good) or _judge_failing_port(evidence, bad, good)
    used = evidence.find_indices(*bad, variants=(Variant.PORTED,))
    if ported.get(newest) is Answer.BAD:
        return make_verdict(
            VerdictKind.CONFIRMED,
            (*list_grounds(evidence, newest, Variant.PORTED), Ground.PORTED),
            f"Ported to a newer API, it fails as reported on {name_releases(evidence, bad, Variant.PORTED)};"
            " no release runs it as posted.",
            (),
            used,
        )
    if ported.get(newest) is Answer.GOOD:  # an older build shows that the port keeps the failure
        runs = (seen for seen in evidence.observations if seen.variant is Variant.PORTED)
        how = "with its notation adapted" if all(seen.notation_only for seen in runs) else "ported to a newer API"
        return make_verdict(
            VerdictKind.FIXED,
            (*list_grounds(evidence, bad[-1], Variant.PORTED), Ground.PORTED),
            f"Already fixed: {how}, it fails as reported on"
            f" {name_releases(evidence, bad, Variant.PORTED)}; ported to {newest}, {name_newest(evidence)}, it runs"
            " cleanly. No release runs it as posted.",
            (),
            used + evidence.find_indices(newest, variants=(Variant.PORTED,)),
        )
    if is_only_for_forks(evidence):
        return judge_on_forks(evidence, Variant.PORTED)
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER, Ground.PORTED),
        f"Inconclusive: ported to a newer API, it fails as reported on"
        f" {name_releases(evidence, bad, Variant.PORTED)}, but not on {newest}.",
        (),
        used,
    )


def _judge_fixed_since_port(evidence: Evidence, bad: Sequence[str], good: Sequence[str]) -> Verdict | None:
    """Return the verdict if the text fails in the notation of early builds, and later builds run it as posted.

    None if the build nearest to the report runs it cleanly, or an older one does. The reporter cannot have met the
    failure of an earlier build: that build does not read the posted text, and may lack what the report is about.
    """
    order, reported = evidence.plan.order, evidence.plan.reported
    if reported is not None and order.index(reported) >= order.index(good[0]):
        return None
    ported = [one for one in evidence.observations if one.variant is Variant.PORTED and one.version in bad]
    later = all(order.index(old) < order.index(new) for old in bad for new in good)
    if not later or good[-1] != order[-1] or not all(one.notation_only for one in ported):
        return None
    return make_verdict(
        VerdictKind.FIXED,
        (*list_grounds(evidence, bad[-1], Variant.PORTED), Ground.PORTED),
        f"Already fixed: in the notation of its time, it fails as reported on"
        f" {name_releases(evidence, bad, Variant.PORTED)}; {describe_clean(evidence, good[0])}.",
        (),
        evidence.find_indices(*bad, variants=(Variant.PORTED,)) + evidence.find_indices(good[0], good[-1]),
    )


def _judge_failing_port(evidence: Evidence, bad: Sequence[str], good: Sequence[str]) -> Verdict | None:
    """Return the verdict if early builds run the text as posted, and its port fails as reported on later ones."""
    order, newest = evidence.plan.order, evidence.plan.order[-1]
    if newest not in bad or not all(order.index(old) < order.index(new) for old in good for new in bad):
        return None
    return make_verdict(
        choose_kind(evidence, good),
        (*list_grounds(evidence, newest, Variant.PORTED), Ground.PORTED),
        f"Ported to a newer API, it fails as reported on {name_releases(evidence, bad, Variant.PORTED)}, the newest"
        f" release included; as posted, it runs cleanly on {name_releases(evidence, good)}.",
        (),
        evidence.find_indices(*bad, variants=(Variant.PORTED,)) + evidence.find_indices(good[-1]),
    )
