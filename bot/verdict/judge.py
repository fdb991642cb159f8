"""Observations and findings × claim → Verdict. Pure: the same records always give the same answer.

The order of the questions is the order of trust: is there anything to run; is the repro itself at fault; do runs
agree; what did the newest build that answered say; what did the others say. Each is answered in ``bot/judging/``. A
build that skipped is never counted for or against. Below ``THRESHOLD`` a verdict becomes ``inconclusive`` and says
what would settle it.
"""

from __future__ import annotations

from bot.extract.types import DESCRIPTIONS, Extraction, Intent, NoRepro, Repro
from bot.verdict.evidence import Evidence
from bot.verdict.rules.caveats import contrasted, naming_forks, refused, unattributed, undefined_input
from bot.verdict.rules.confidence import NOTHING_TO_RUN, THRESHOLD
from bot.verdict.rules.flaky import along_the_trail, flaky, repeated
from bot.verdict.rules.invalid_repro import repro_at_fault
from bot.verdict.rules.not_reproduced import never_seen_failing
from bot.verdict.rules.partial_code import distrust_clean_runs
from bot.verdict.rules.reproduced import contradicted, seen_failing, seen_only_ported
from bot.verdict.verdict import Verdict, VerdictKind, conclude


def judge_without_running(extraction: Extraction, *, anyway: bool = False) -> Verdict | None:
    """The verdict on an issue that gives nothing to run, or not enough; None when there is something to run."""
    if extraction.intent is not Intent.FAILURE and not anyway:
        headline = f"The text {DESCRIPTIONS[extraction.intent]} and reports no failure of the compiler."
        return conclude(VerdictKind.NO_CLAIM, NOTHING_TO_RUN, headline)
    match extraction:
        case NoRepro(missing=missing, reason=reason) if any(item.kind != "code" for item in missing):
            return conclude(
                VerdictKind.INCOMPLETE, NOTHING_TO_RUN, "The report does not hold all that its steps need.", (reason,)
            )
        case NoRepro(reason=reason):
            return conclude(VerdictKind.NO_REPRO, NOTHING_TO_RUN, "There is no testcase in this report.", (reason,))
        case Repro(missing=missing) if missing:
            names = ", ".join(f"{item.kind} {item.name}" for item in missing)
            return conclude(
                VerdictKind.INCOMPLETE,
                NOTHING_TO_RUN,
                "The testcase needs something that the report does not give.",
                (names,),
            )
        case Repro():
            return None


def judge(evidence: Evidence) -> Verdict:
    """The verdict on what was run: of the first question that has an answer, with what is said beside it."""
    verdict = (
        repro_at_fault(evidence)
        or along_the_trail(evidence)
        or flaky(evidence)
        or contradicted(evidence)
        or seen_failing(evidence)
        or seen_only_ported(evidence)
        or never_seen_failing(evidence)
    )
    for proviso in (naming_forks, contrasted, repeated, unattributed, undefined_input, refused, distrust_clean_runs):
        verdict = proviso(verdict, evidence)
    if verdict.confidence < THRESHOLD and verdict.kind not in _HUMBLE:
        return conclude(
            VerdictKind.INCONCLUSIVE,
            verdict.confidence,
            f"Inconclusive: {_as_a_clause(verdict.headline)}",
            verdict.reasons,
            verdict.evidence,
        )
    return verdict


_HUMBLE = {
    VerdictKind.INCONCLUSIVE,
    VerdictKind.UNTESTABLE,
    VerdictKind.INCOMPLETE,
    VerdictKind.NO_REPRO,
    VerdictKind.NO_CLAIM,
}


def _as_a_clause(headline: str) -> str:
    """Without the verdict that it would begin with, which is not given."""
    text = headline.removeprefix("Already fixed: ").removeprefix("Not reproduced: ")
    return text[0].lower() + text[1:]
