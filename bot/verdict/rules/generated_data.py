"""Judge runs with generated data instead of data that the report leaves out. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import join_names, name_releases, quote_span
from bot.verdict.rules.reproduced import list_grounds
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.protocol import GENERATED, Answer, Variant


def judge_generated_data(evidence: Evidence) -> Verdict | None:
    """Return the verdict if only runs with generated data reached the reported failure; None otherwise.

    A failure as reported does not depend on the missing data. A clean run may depend on the generated data.
    """
    gaps = _list_gaps(evidence)
    if not gaps or evidence.find_versions(Answer.GOOD) or evidence.find_versions(Answer.BAD):
        return None
    bad = evidence.find_versions(Answer.BAD, Variant.PORTED)
    good = evidence.find_versions(Answer.GOOD, Variant.PORTED)
    newest = evidence.plan.order[-1]
    names = join_names([quote_span(gap, 60) for gap in gaps[:3]]) + (" and others" if len(gaps) > 3 else "")
    lacks = f"the report does not give the data of {names}"
    fails = f"with generated data, it fails as reported on {name_releases(evidence, bad, Variant.PORTED)}"
    clean = f"with generated data, it runs cleanly on {name_releases(evidence, good, Variant.PORTED)}"
    used = evidence.find_indices(*bad, *good, variants=(Variant.PORTED,))
    if newest in bad:
        headline = f"It fails as reported on {newest}, the newest, with generated data: {lacks}."
        grounds = (*list_grounds(evidence, newest, Variant.PORTED), Ground.PORTED)
        return make_verdict(VerdictKind.CONFIRMED, grounds, headline, (fails,), used)
    if bad and newest in good:
        headline = f"Already fixed: {fails}, and runs cleanly on {newest}; {lacks}."
        grounds = (*list_grounds(evidence, bad[-1], Variant.PORTED), Ground.PORTED)
        return make_verdict(VerdictKind.FIXED, grounds, headline, (), used)
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: {lacks}.",
        (fails if bad else "", clean if good else "", f"to decide: the data of {names}"),
        used,
    )


def _list_gaps(evidence: Evidence) -> tuple[str, ...]:
    """Return the constants, as written, whose data was generated in some run."""
    ported = (seen for seen in evidence.observations if seen.variant is Variant.PORTED)
    changes = (change for seen in ported for change in seen.changes)
    return tuple(dict.fromkeys(c.removesuffix(GENERATED) for c in changes if c.endswith(GENERATED)))
