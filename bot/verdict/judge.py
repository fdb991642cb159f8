"""Observations and findings × claim → Verdict. Pure: the same records always give the same verdict.

The questions are in the order of trust: Is there a testcase to run? Is the testcase itself at fault? Do the runs of
one build agree? Is the newest release good or bad? Are the others? Each question is a module of `bot.verdict.rules`.
A skipped build never counts for or against. Below ``THRESHOLD`` a verdict becomes ``inconclusive`` and states which
evidence is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.extract.types import DESCRIPTIONS, OUT_OF_REACH, REST, Extraction, Intent, Missing, NoRepro, Repro
from bot.verdict.evidence import Evidence
from bot.verdict.grounds import BASES, IN_FAVOUR, MEANINGS, Ground, get_weight
from bot.verdict.rules.accepted import judge_accepted
from bot.verdict.rules.caveats import (
    name_forks,
    name_older_report,
    weigh_assertion,
    weigh_call_check,
    weigh_change_since,
    weigh_control,
    weigh_ill_formed,
    weigh_intended_error,
    weigh_missing_name,
    weigh_missing_quote,
    weigh_references,
    weigh_refused_text,
    weigh_search,
    weigh_system,
    weigh_told_parts,
    weigh_undefined_input,
)
from bot.verdict.rules.flaky import judge_build_range, judge_flaky, weigh_repeats
from bot.verdict.rules.generated_data import judge_generated_data
from bot.verdict.rules.invalid_repro import judge_invalid_repro
from bot.verdict.rules.measured import judge_measured, name_costs
from bot.verdict.rules.not_reproduced import judge_not_reproduced
from bot.verdict.rules.partial_code import distrust_clean_runs, distrust_other_values, name_target
from bot.verdict.rules.phrases import join_names, quote_span
from bot.verdict.rules.reproduced import (
    judge_contradicted,
    judge_only_ported,
    judge_reproduced,
    judge_younger_package,
)
from bot.verdict.rules.unquoted import judge_unquoted, judge_unquoted_value
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict, withhold
from runners.core.protocol import ClaimKind
from runners.toolchains import find_toolchain


def judge_without_running(extraction: Extraction, *, anyway: bool = False) -> Verdict | None:
    """Return the verdict on an issue without a claim or a complete testcase; None if there is a testcase to run.

    ``anyway`` ignores that the issue makes no claim.
    """
    if extraction.intent is not Intent.FAILURE and not anyway:
        return make_verdict(VerdictKind.NO_CLAIM, (Ground.NOTHING_TO_RUN,), _describe_intent(extraction))
    match extraction:
        case Repro(missing=missing) | NoRepro(missing=missing) if rest := _list_rest(missing):
            return make_verdict(
                VerdictKind.INCOMPLETE,
                (Ground.NOTHING_TO_RUN,),
                "The description breaks off before the end of the testcase.",
                rest,
            )
        case NoRepro(missing=missing, reason=reason) if any(item.kind in OUT_OF_REACH for item in missing):
            return make_verdict(VerdictKind.UNTESTABLE, (Ground.CANNOT_RUN,), reason)
        case NoRepro(missing=missing, reason=reason):
            asks = any(item.kind != "code" for item in missing)
            kind = VerdictKind.INCOMPLETE if asks else VerdictKind.NO_REPRO
            return make_verdict(kind, (Ground.NOTHING_TO_RUN,), reason)
        case Repro(missing=missing) if missing:
            names = ", ".join(f"{item.kind} {item.name}" for item in missing)
            return make_verdict(
                VerdictKind.INCOMPLETE,
                (Ground.NOTHING_TO_RUN,),
                f"The testcase needs {_name_parts(missing)}, which the report does not contain.",
                (names,),
            )
        case Repro():
            return None


def _describe_intent(extraction: Extraction) -> str:
    """Return why a text without a claim is not run. A build that fails is a failure, and no testcase."""
    if extraction.intent is not Intent.BUILD:
        return f"The text {DESCRIPTIONS[extraction.intent]} and reports no failure of the compiler."
    name = extraction.testcase.toolchain if isinstance(extraction, Repro) else extraction.toolchain
    product = find_toolchain(name).TITLE.split()[-1] if name else "the compiler"
    fails = extraction.claim.kind in (ClaimKind.ERROR, ClaimKind.CRASH)
    about = f"a build failure of {product}" if fails else f"about building or installing {product}"
    return f"This is {about} itself; only testcases are run."


def _list_rest(missing: Sequence[Missing]) -> tuple[str, ...]:
    return tuple(f"missing: the rest of {item.name}" for item in missing if item.kind == REST)


def _name_parts(missing: Sequence[Missing]) -> str:
    """Return the missing parts as code spans, at most three."""
    shown = [quote_span(item.name, 80) or "its code" for item in missing[:3]]
    return join_names([*shown, f"{len(missing) - 3} more parts"] if len(missing) > 3 else shown)


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict of the first rule that applies, with its caveats."""
    evidence = evidence.follow_target()
    verdict = (
        judge_invalid_repro(evidence)
        or judge_build_range(evidence)
        or judge_flaky(evidence)
        or judge_accepted(evidence)
        or judge_contradicted(evidence)
        or judge_reproduced(evidence)
        or judge_generated_data(evidence)
        or judge_only_ported(evidence)
        or judge_unquoted(evidence)
        or judge_unquoted_value(evidence)
        or judge_measured(evidence)
        or judge_younger_package(evidence)
        or judge_not_reproduced(evidence)
    )
    for add_caveat in (
        name_older_report,
        name_forks,
        name_costs,
        weigh_control,
        weigh_repeats,
        weigh_search,
        weigh_intended_error,
        weigh_references,
        weigh_undefined_input,
        weigh_call_check,
        weigh_refused_text,
        weigh_ill_formed,
        weigh_missing_quote,
        weigh_missing_name,
        weigh_assertion,
        weigh_system,
        weigh_told_parts,
        weigh_change_since,
        distrust_clean_runs,
        name_target,
        distrust_other_values,
    ):
        verdict = add_caveat(verdict, evidence)
    if verdict.confidence < THRESHOLD and verdict.kind not in _KEPT:
        doubt, settled_by = _name_doubt(verdict)
        return withhold(verdict, doubt=doubt, settled_by=settled_by)
    return verdict


THRESHOLD = 0.55
"""Below this confidence a verdict is ``inconclusive``. docs/proving-ground.md measures the answers below."""


def _name_doubt(verdict: Verdict) -> tuple[str, str]:
    """Return what weakens a verdict most, and what would settle the case, as clauses. Each may be empty."""
    against = [ground for ground in verdict.grounds if ground not in BASES | IN_FAVOUR]
    if not against:
        return "", ""
    doubt = next((ground for ground in _SETTLED_BY if ground in against), None) or min(against, key=get_weight)
    shown = "" if doubt is Ground.NOT_AS_REPORTED else MEANINGS[doubt]  # the headline states it
    return shown, _SETTLED_BY.get(doubt, "")


_SETTLED_BY = {
    Ground.ONLY_CLAIMED: "a second source for the right value, such as the documentation or a reference",
    Ground.ARGUMENT_CHECK: "whether the arguments fit the function that is called",
    Ground.NOT_AS_REPORTED: "the whole output of the reported failure",
}
"""Grounds of doubt, the strongest first, and the evidence that would settle each."""


_KEPT = {
    VerdictKind.INCONCLUSIVE,
    VerdictKind.UNTESTABLE,
    VerdictKind.INCOMPLETE,
    VerdictKind.NO_REPRO,
    VerdictKind.NO_CLAIM,
}
"""Kinds that a low confidence does not turn into ``inconclusive``: they make no claim about the failure."""
