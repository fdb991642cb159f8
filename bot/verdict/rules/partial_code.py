"""Withhold verdicts that rest on clean runs when the testcase is only a part of the reporter's code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.other_values import rests_on_other_values
from bot.verdict.rules.phrases import join_names, list_versions, name_all, name_failure, quote_span
from bot.verdict.rules.unquoted import list_failing, names_part
from bot.verdict.verdict import Verdict, VerdictKind, add_grounds, make_verdict, withhold
from runners.core.failure.normalize import simplify_name
from runners.core.findings.record import read_evidence
from runners.core.findings.types import ReachEvidence
from runners.core.protocol import Answer, Observation, Outcome, Reason

MAX_DEVICE = 60
"""Largest number of characters of an assumed device in a sentence."""
MAX_OPERATION = 80
"""Largest number of characters of an operation's name in a sentence. The probing ring gives the name."""
_REST_ON_CLEAN_RUNS = {VerdictKind.NOT_REPRODUCED, VerdictKind.FIXED}
_DECIDED_BY_FLAGS = {
    *(VerdictKind.NOT_REPRODUCED, VerdictKind.DIFFERENT_FAILURE, VerdictKind.INCONCLUSIVE),
    *(VerdictKind.INVALID_REPRO, VerdictKind.UNTESTABLE),
}
"""Verdicts that another flag may change. The reported failure needs no further flag."""
_DECIDED_BY_SURROUNDINGS = {
    *(VerdictKind.NOT_REPRODUCED, VerdictKind.DIFFERENT_FAILURE, VerdictKind.INVALID_REPRO),
}
"""Verdicts that the reporter's own function around the operations may change."""
_CHANGES = {VerdictKind.FIXED, VerdictKind.REGRESSION}


def distrust_clean_runs(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a verdict on clean runs that do not cover the code that may fail. The first rule that applies counts.

    A program that only defines names can still be fixed: a definition that failed as reported is accepted later.
    """
    return next((found for rule in _RULES if (found := rule(verdict, evidence)) is not None), verdict)


def _distrust_left_out(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if not evidence.gaps.left_out or verdict.kind not in _REST_ON_CLEAN_RUNS:
        return None
    why = "the testcase leaves out text that may be code, so a clean run does not show that the failure is gone"
    return withhold(verdict, doubt=why, settled_by="the whole program in one code block")


def _distrust_open_command(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    unnamed = _rests_on_an_unnamed_error(verdict, evidence)
    if not evidence.gaps.has_open_command or not (verdict.kind in _DECIDED_BY_FLAGS or unnamed):
        return None
    return make_verdict(
        VerdictKind.INCOMPLETE,
        (Ground.NOTHING_TO_RUN,),
        "The command breaks off, so flags may be missing. Without them, no run shows the reported failure.",
        ("to decide: the rest of the command",),
        verdict.evidence,
    )


def _distrust_added_function(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    unnamed = _rests_on_an_unnamed_error(verdict, evidence)
    if not evidence.gaps.is_wrapped or not (verdict.kind in _DECIDED_BY_SURROUNDINGS or unnamed):
        return None
    why = "the report gives the operations alone, and the part around them was added"
    return withhold(verdict, doubt=why, settled_by="the whole function, and the command that compiles it")


def _distrust_open_end(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if not evidence.gaps.has_open_end or not _rests_on_a_clean_end(verdict, evidence):
        return None
    return make_verdict(
        VerdictKind.INCOMPLETE,
        (Ground.NOTHING_TO_RUN,),
        "The description ends inside its code block, so the rest of the testcase may be missing. What is there"
        f" runs to its end on {name_all(evidence, list_versions(evidence.plan, _list_clean(evidence)))}.",
        ("to decide: the rest of the program, or the closing fence if this is all of it",),
        verdict.evidence,
    )


def _distrust_generated_inputs(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if not evidence.gaps.generates_inputs or verdict.kind is not VerdictKind.NOT_REPRODUCED:
        return None
    why = "the inputs are generated from the types of the arguments, so the failure may need other inputs"
    return withhold(verdict, doubt=why, settled_by="the inputs of the call")


def _distrust_assumed_device(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if not evidence.gaps.assumed_device or verdict.kind is not VerdictKind.NOT_REPRODUCED:
        return None
    return _weigh_assumed_device(verdict, evidence)


def _distrust_unreached_names(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if verdict.kind is not VerdictKind.NOT_REPRODUCED or not (names := _find_unreached(evidence)):
        return None
    shown = join_names([quote_span(name, MAX_DEVICE) for name in names])
    why = f"the title is about {shown}, which the run never calls"
    return withhold(verdict, doubt=why, settled_by=f"a testcase that calls {names[0]}")


def _distrust_mere_definitions(verdict: Verdict, evidence: Evidence) -> Verdict | None:
    if not evidence.gaps.only_defines or verdict.kind is not VerdictKind.NOT_REPRODUCED:
        return None
    why = "the testcase only defines functions, so a clean run does not show that their use is clean"
    return withhold(verdict, doubt=why, settled_by="the code that compiles or calls these functions")


_RULES: tuple[Callable[[Verdict, Evidence], Verdict | None], ...] = (
    _distrust_left_out,
    _distrust_open_command,
    _distrust_added_function,
    _distrust_open_end,
    _distrust_generated_inputs,
    _distrust_assumed_device,
    _distrust_unreached_names,
    _distrust_mere_definitions,
)


def _rests_on_an_unnamed_error(verdict: Verdict, evidence: Evidence) -> bool:
    """True for a verdict on a failure that the report does not quote, if its message has no name of the report.

    With the missing flags or the missing function, another failure may be the reported one.
    """
    if Ground.UNQUOTED not in verdict.grounds:
        return False
    deciding = [evidence.observations[at] for at in verdict.evidence]
    failing = [seen for seen in list_failing(evidence) if seen in deciding]
    messages = [seen.signature.message if seen.signature is not None else "" for seen in failing]
    return not all(names_part(evidence.plan.claim.told, message) for message in messages)


def _find_unreached(evidence: Evidence) -> list[str]:
    """Return names of the title that no clean run called or printed; empty if one was, or if it is not known."""
    found = next((one for one in map(read_evidence, evidence.findings) if isinstance(one, ReachEvidence)), None)
    names = found.names if found is not None else None
    accused = [name for name in evidence.plan.claim.accused if name in (names or ())]
    printed = {simplify_name(word) for seen in evidence.observations for word in _WORD.findall(seen.excerpt)}
    return [] if any(simplify_name(name) in printed for name in accused) else accused


_WORD = re.compile(r"[A-Za-z_]\w*")


def _rests_on_a_clean_end(verdict: Verdict, evidence: Evidence) -> bool:
    """True for a verdict on programs that only ran to their end: nothing failed in any run of the posted text."""
    ran = evidence.list_originals()
    ends = verdict.kind in (VerdictKind.NOT_REPRODUCED, VerdictKind.INCONCLUSIVE)
    return ends and bool(_list_clean(evidence)) and not any(seen.answer is Answer.BAD for seen in ran)


def _list_clean(evidence: Evidence) -> list[Observation]:
    good = (Behaviour.CLEAN, Behaviour.UNJUDGED)
    return [seen for seen in evidence.list_originals() if find_behaviour(seen) in good]


_SAY_NOTHING = {Outcome.COMPILED, Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE}
"""Outcomes for another target that are not failures: an early build may lack the target, or its flag."""


def _weigh_assumed_device(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a verdict for a device that was assumed, unless the program compiles for the other targets too."""
    others = evidence.list_other_targets()
    compiled = tuple(dict.fromkeys(seen.device for seen in others if seen.outcome is Outcome.COMPILED))
    failing = next((seen for seen in reversed(others) if seen.outcome not in _SAY_NOTHING), None)
    why = f"the report names no device, and each run assumed {quote_span(evidence.gaps.assumed_device, MAX_DEVICE)}"
    missing = "the command or the target that fails"
    if failing is not None:
        ends = name_failure(failing.signature.type) if failing.signature is not None else "another failure"
        where = f"compiled for {quote_span(failing.device)}, {failing.version} ends with {ends}"
        return withhold(verdict, doubt=f"{why}; {where}", settled_by=missing)
    if not compiled:
        return withhold(verdict, doubt=why, settled_by=missing)
    too = f"The report names no device; compiled for {join_names([quote_span(one) for one in compiled])}, it compiles"
    weighed = add_grounds(verdict, Ground.DEVICE_NOT_NAMED)
    where = join_names(list_versions(evidence.plan, others))
    return replace(
        weighed,
        headline=f"{verdict.headline} {too} as well.",
        reasons=(*weighed.reasons, f"compiled for the other targets on {where}"),
    )


def name_target(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Name the target of the failure, if the report names none and the usual target does not show the failure."""
    if not evidence.followed:
        return verdict
    own, usual = quote_span(evidence.plan.device), quote_span(evidence.followed)
    told = f"{verdict.headline} This is for {own}: the report names no device, and {usual} does not show the failure."
    return add_grounds(replace(verdict, headline=told), Ground.DEVICE_NOT_NAMED)


def distrust_other_values(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a verdict for which runs that print other values than the reported ones count as clean."""
    runs = evidence.list_originals()
    kept = next((seen.detail for seen in runs if seen.reason is Reason.KEEPS_OPERATION), None)
    if kept is not None and verdict.kind is VerdictKind.NOT_REPRODUCED:
        name = quote_span(kept, MAX_OPERATION)
        told = f"{verdict.headline} Its output keeps {name}, which the quoted program lacks."
        return add_grounds(replace(verdict, headline=told), Ground.OTHER_VALUES)
    if verdict.kind not in _CHANGES or not rests_on_other_values(evidence.observations):
        return verdict
    why = "the report does not say what is right: other values than the reported ones count as the right ones"
    return add_grounds(verdict, Ground.OTHER_VALUES, reasons=(why,))
