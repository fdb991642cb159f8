"""Judge a claim about time or memory if no release is worse than another. Pure.

`runners.core.failure.costs` compares the releases. Runs of worse releases count as failing as reported.
"""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_releases
from bot.verdict.verdict import Verdict, VerdictKind, add_grounds, make_verdict
from runners.core.failure.costs import QUANTITIES, Quantity, Spread, join_spreads, measure_releases
from runners.core.protocol import Answer


def judge_measured(evidence: Evidence) -> Verdict | None:
    """Return ``inconclusive`` for clean runs without a clear change of their cost; None for other claims."""
    quantity, measured = QUANTITIES.get(evidence.plan.claim.kind), _measure(evidence)
    if quantity is None or not measured:
        return None
    every = join_spreads(measured)
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: it {quantity.verb} {_show_span(quantity, every)} on {name_releases(evidence, every.versions)}"
        f"{_compare(quantity, every)}.",
        ("to decide: a slow and a fast release, and the values that the report measured on each",),
        evidence.find_indices(*every.versions),
    )


def _compare(quantity: Quantity, every: Spread) -> str:
    """Return how the releases differ, as the end of a sentence. Empty for a single release."""
    if len(every.versions) < 2:
        return ""
    if every.greatest < quantity.factor * every.least:
        return f"; no release {quantity.verb} {quantity.factor:g} times {quantity.more} another"
    return "; the releases that take more are neither the older nor the newer ones"


def name_costs(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Add the sentence with the values on both sides of the change, for a claim about time or memory."""
    quantity = QUANTITIES.get(evidence.plan.claim.kind)
    bad = evidence.find_versions(Answer.BAD)
    sides = [[one for one in _measure(evidence) if (one.versions[0] in bad) is worse] for worse in (False, True)]
    if quantity is None or not all(sides):
        return verdict
    told = (f"{name_releases(evidence, s.versions)}: {_show_span(quantity, s)}" for s in map(join_spreads, sides))
    return add_grounds(verdict, reasons=("; ".join(told),))


def _measure(evidence: Evidence) -> tuple[Spread, ...]:
    return measure_releases(evidence.plan, evidence.observations)


def _show_span(quantity: Quantity, spread: Spread) -> str:
    least, greatest = quantity.show(spread.least), quantity.show(spread.greatest)
    return least if least == greatest else f"{least} to {greatest}"
