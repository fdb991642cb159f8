"""Observations and findings × claim → Verdict. Pure: the same records always give the same answer.

The order of the questions is the order of trust: is there anything to run; is the repro itself at fault; do runs
agree; what did the newest build that answered say; what did the others say. Each is answered in ``bot/judging/``. A
build that skipped is never counted for or against. Below ``THRESHOLD`` a verdict becomes ``inconclusive`` and says
what would settle it.
"""

from __future__ import annotations

from bot.extract.types import DESCRIPTIONS, Extraction, Intent, NoRepro, Repro
from bot.verdict.evidence import Evidence
from bot.verdict.rules.caveats import (
    mention_argument_check,
    name_forks,
    weigh_cleared_passes,
    weigh_control,
    weigh_undefined_input,
)
from bot.verdict.rules.confidence import NOTHING_TO_RUN, THRESHOLD
from bot.verdict.rules.flaky import judge_build_range, judge_flaky, weigh_repeats
from bot.verdict.rules.invalid_repro import judge_invalid_repro
from bot.verdict.rules.not_reproduced import judge_not_reproduced
from bot.verdict.rules.partial_code import distrust_clean_runs
from bot.verdict.rules.reproduced import judge_contradicted, judge_only_ported, judge_reproduced
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict


def judge_without_running(extraction: Extraction, *, anyway: bool = False) -> Verdict | None:
    """The verdict on an issue that gives nothing to run, or not enough; None when there is something to run."""
    if extraction.intent is not Intent.FAILURE and not anyway:
        headline = f"The text {DESCRIPTIONS[extraction.intent]} and reports no failure of the compiler."
        return make_verdict(VerdictKind.NO_CLAIM, NOTHING_TO_RUN, headline)
    match extraction:
        case NoRepro(missing=missing, reason=reason) if any(item.kind != "code" for item in missing):
            return make_verdict(
                VerdictKind.INCOMPLETE, NOTHING_TO_RUN, "The report does not hold all that its steps need.", (reason,)
            )
        case NoRepro(reason=reason):
            return make_verdict(
                VerdictKind.NO_REPRO, NOTHING_TO_RUN, "There is no testcase in this report.", (reason,)
            )
        case Repro(missing=missing) if missing:
            names = ", ".join(f"{item.kind} {item.name}" for item in missing)
            return make_verdict(
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
        judge_invalid_repro(evidence)
        or judge_build_range(evidence)
        or judge_flaky(evidence)
        or judge_contradicted(evidence)
        or judge_reproduced(evidence)
        or judge_only_ported(evidence)
        or judge_not_reproduced(evidence)
    )
    for proviso in (
        name_forks,
        weigh_control,
        weigh_repeats,
        weigh_cleared_passes,
        weigh_undefined_input,
        mention_argument_check,
        distrust_clean_runs,
    ):
        verdict = proviso(verdict, evidence)
    if verdict.confidence < THRESHOLD and verdict.kind not in _HUMBLE:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            verdict.confidence,
            f"Inconclusive: {_make_clause(verdict.headline)}",
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


def _make_clause(headline: str) -> str:
    """Without the verdict that it would begin with, which is not given."""
    text = headline.removeprefix("Already fixed: ").removeprefix("Not reproduced: ")
    return text[0].lower() + text[1:]
