"""Add caveats to a verdict: forks, the reporter's control, and claims that rest on the report alone. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from bot.verdict.evidence import Evidence
from bot.verdict.forks import label_forks, list_forks
from bot.verdict.grounds import Ground
from bot.verdict.references import (
    DEFINITIONS,
    LIBRARY,
    NUMPY,
    ONNX,
    ONNX_SHAPES,
    OWN,
    RUNTIME,
    list_votes,
    name_reference,
    wrote_accused,
)
from bot.verdict.rules.invalid_repro import is_taken_now
from bot.verdict.rules.phrases import join_names, list_versions, name_newest, name_releases, quote_around, quote_span
from bot.verdict.verdict import Verdict, VerdictKind, Vote as ReferenceVote, add_grounds, make_verdict, withhold
from runners.core.failure.api_drift import find_missing_name
from runners.core.failure.compare import is_left_out_assertion
from runners.core.failure.oracle import ASSERTION
from runners.core.failure.parse import NATIVE
from runners.core.failure.printed.lines.tokens import names_negative_zero
from runners.core.failure.printed.programs.changed_since import Change, find_change
from runners.core.failure.printed.programs.told_parts import Part, list_telling
from runners.core.findings.kinds import KINDS, Blame, Reference, Vote
from runners.core.findings.questions import clears_passes, fails_while_read
from runners.core.findings.record import read_evidence
from runners.core.findings.types import DispatchEvidence, PassEvidence, ReferenceEvidence
from runners.core.protocol import (
    SAID_TO_WORK,
    Answer,
    Claim,
    ClaimKind,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Reason,
    Variant,
)
from runners.toolchains import find_toolchain


def name_forks(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Mark each fork in the headline as a fork: its bare number is that of a release. The table names its owner."""
    return replace(verdict, headline=label_forks(verdict.headline, list_forks(evidence.observations)))


def name_older_report(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Add to a verdict on clean runs that all of them are of later builds than the reported one, if they are.

    Then the failure may have existed, and may be fixed: "not reproduced" alone reads as if the report were wrong.
    """
    if verdict.kind is not VerdictKind.NOT_REPRODUCED or evidence.has_near_build():
        return verdict
    clean, reported = evidence.find_versions(Answer.GOOD), evidence.plan.reported
    order = evidence.plan.order
    if not clean or reported is None or order.index(clean[0]) < order.index(reported):
        return verdict
    since = f" The reported build was not run: the failure may have been fixed before {clean[0]}."
    return replace(verdict, headline=verdict.headline + since)


def weigh_control(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Add the result of the reporter's own control. A failing control weakens the verdict."""
    if verdict.kind not in _RESTS_ON_A_FAILURE:
        return verdict
    controls = [
        seen
        for seen in evidence.observations
        if seen.variant is Variant.CONTROL and SAID_TO_WORK in seen.changes and seen.answer is not Answer.SKIP
    ]
    if not controls:
        return verdict
    failing = [seen for seen in controls if seen.answer is not Answer.GOOD]
    where = name_releases(evidence, list_versions(evidence.plan, failing or controls), Variant.CONTROL)
    if not failing:
        reason = f"the variant that the report calls working runs cleanly on {where}"
        return replace(verdict, reasons=(*verdict.reasons, reason))
    reason = f"the variant that the report calls working fails in the same way on {where}"
    return add_grounds(verdict, Ground.CONTROL_FAILS, reasons=(reason,))


_RESTS_ON_A_FAILURE = {VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FIXED}


def weigh_missing_quote(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a verdict on clean runs if only words such as "fails" or "cannot" show that an error is reported.

    A failure without an error message may be a result that no run shows.
    """
    claim = evidence.plan.claim
    words_only = claim.kind is ClaimKind.ERROR and claim.signature is None
    if not words_only or verdict.kind is not VerdictKind.NOT_REPRODUCED:
        return verdict
    return add_grounds(verdict, Ground.KIND_ONLY)


def weigh_assertion(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a verdict on clean runs if an assertion is reported, and the releases are built without assertions.

    Then no run may show the fault behind the assertion.
    """
    signature = evidence.plan.claim.signature
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    asserted = signature is not None and is_left_out_assertion(signature, vocabulary)
    if verdict.kind is not VerdictKind.NOT_REPRODUCED or not asserted:
        return verdict
    why = "the reported assertion cannot fail here: the releases are built without assertions"
    return add_grounds(verdict, Ground.KIND_ONLY, reasons=(why,))


def weigh_system(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a verdict on clean runs if the report is about another system than that of the runs."""
    if verdict.kind is not VerdictKind.NOT_REPRODUCED or not evidence.plan.claim.system:
        return verdict
    why = f"the report is about {quote_span(evidence.plan.claim.system)}, which no run here used"
    return withhold(
        verdict, doubt=why, settled_by="a failure on another system too, or a run of the testcase on that one"
    )


def weigh_told_parts(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a verdict on runs that count by parts of the printed program which the report names."""
    reasons = {seen.reason for seen in evidence.list_originals()}
    told = not reasons.isdisjoint({Reason.TOLD_PARTS, Reason.COMPARED_INPUT})
    if not told or verdict.kind not in {*_RESTS_ON_A_FAILURE, VerdictKind.NOT_REPRODUCED}:
        return verdict
    if Reason.TOLD_PARTS not in reasons:
        why = "the report says that the program does not change: each run is compared with the posted program"
        return add_grounds(verdict, Ground.TOLD_PARTS, reasons=(why,))
    parts, divide = list_telling(evidence.plan, evidence.observations)
    roles = (
        ("complains of", [one for one in parts if not one.is_wanted]),
        ("asks for", [one for one in parts if one.is_wanted]),
    )
    rows = list(dict.fromkeys(row for seen in evidence.list_originals() for row in _list_rows(seen)))
    named = (f"{role} {join_names([_quote_part(one, rows) for one in some[:3]])}" for role, some in roles if some)
    which = "only some releases print" if divide else "each release prints"
    why = f"{which} what the report names: it {', and '.join(named)}"
    return add_grounds(verdict, Ground.TOLD_PARTS, reasons=(why,))


def _list_rows(seen: Observation) -> list[str]:
    return [" ".join(row.replace("`", "'").split()) for row in seen.excerpt.splitlines()]


def _quote_part(part: Part, rows: Sequence[str]) -> str:
    """Return a part that the report names, cut to where the rows without it differ from it."""
    text = " ".join(part.text.replace("`", "'").split())
    return quote_around(text, (row for row in rows if text not in row), 80)


def weigh_change_since(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a verdict on runs that count by a change of the printed program, and name the change.

    Withhold the verdict if no run prints what the report quotes, and no build stands for the reported one: an older
    build may print yet another program.
    """
    marked = [seen for seen in evidence.observations if seen.reason is Reason.CHANGED_SINCE]
    change = find_change(evidence.plan, evidence.observations) if marked else None
    if change is None or verdict.kind is not VerdictKind.FIXED:
        return verdict
    order, good = evidence.plan.order, evidence.find_versions(Answer.GOOD)
    since = [one for one in change.right if one in good and order.index(one) > order.index(change.wrong[-1])]
    if not since:  # only runs in another notation print the other program
        return add_grounds(verdict, Ground.CHANGED_SINCE)
    headline = (
        f"Already fixed: {name_releases(evidence, since)}, {name_newest(evidence)} included,"
        f" print{'s' if len(since) == 1 else ''} another program than {change.wrong[-1]}: {_describe_change(change)}."
    )
    weighed = replace(add_grounds(verdict, Ground.CHANGED_SINCE), headline=headline)
    is_quoted = any(seen.answer is Answer.BAD and seen not in marked for seen in evidence.list_originals())
    if is_quoted or evidence.has_near_build():
        return weighed
    return withhold(weighed, settled_by="the printed lines that are wrong")


def _describe_change(change: Change) -> str:
    """Return the operations of the report that occur more or less often in the newer program."""
    before, after = (Counter(name for name, *_ in program) for program in (change.before, change.after))
    counted = [name for name in change.names if before[name] != after[name]]
    if not counted:
        names = [quote_span(name, 80) for name in change.names[:2]]
        verb = "moved" if change.is_move else f"differ{'s' if len(names) == 1 else ''}"
        return f"{join_names(names)} {verb}"
    told = (
        f"{quote_span(name, 80)} occurs {_say_times(after[name])} ({before[name]} before)" for name in counted[:2]
    )
    return " and ".join(told)


def _say_times(count: int) -> str:
    return {0: "no more", 1: "once", 2: "twice"}.get(count, f"{count} times")


def weigh_intended_error(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a verdict on an error that the report provokes: the report is about something else."""
    if not evidence.plan.claim.intended or verdict.kind not in _RESTS_ON_A_FAILURE:
        return verdict
    why = "the report calls this error its own doing, so it is about something else that the run shows"
    return withhold(verdict, doubt=why, settled_by="the line that is wrong, and the line that is expected")


def weigh_references(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weigh the references for a wrong value: the testcase's own, NumPy, passes left out, releases.

    An error or a crash is always the compiler's, but a wrong value is only the report's claim. So the verdict is
    withheld if NumPy computes the value of the failing build. The report is wrong if every release computes the value
    and the definitions of the operations give it, to each printed digit. For a value of every release that no pass
    causes, the verdict is also withheld if no reference differs. LLVM's passes do not count.

    A value that is the same on every release, and that only the report or its testcase calls wrong, is weak evidence.
    In written first looks, half of such answers were wrong (15 of 30): only the author expected another value. If a
    pass, another device or a reference changed the value, 24 of 25 were right.
    """
    claimed = evidence.plan.claim.kind is ClaimKind.WRONG_RESULT or _fails_own_assertion(evidence)
    if verdict.kind not in _RESTS_ON_A_FAILURE or not claimed:
        return verdict
    if verdict.votes:  # the references alone decided
        return verdict
    weighed = _weigh_votes(verdict, evidence)
    supported = any(one.wrong and one.reference != OWN for one in weighed.votes) or any(
        map(_supports, evidence.findings)
    )
    if weighed.kind is VerdictKind.CONFIRMED and not supported:
        return add_grounds(weighed, Ground.ONLY_CLAIMED)
    return weighed


def _fails_own_assertion(evidence: Evidence) -> bool:
    """True if each failing run ends at an assertion of the testcase, which states its author's expectation."""
    failing = [seen for seen in evidence.list_originals() if seen.answer is Answer.BAD]
    return bool(failing) and all(_ends_at_own_assertion(seen, evidence.plan.testcase.files) for seen in failing)


def _ends_at_own_assertion(seen: Observation, files: Collection[str]) -> bool:
    """True if the last frame of the stack is an assertion in one of ``files``, and not in an installed package."""
    frames = list(_FRAME.finditer(seen.excerpt))
    asserts = seen.signature is not None and seen.signature.type == ASSERTION
    if not asserts or not frames or frames[-1]["file"].rpartition("/")[2] not in files:
        return False
    return frames[-1]["row"].lstrip().startswith("assert ")


_FRAME = re.compile(r"^  File \"(?P<file>[^\"\n]{1,400})\", line \d{1,7}[^\n]*\n(?P<row>    [^\n]{0,400})$", re.M)


def _supports(finding: Finding) -> bool:
    """True if a second computation of the value, or the cause of the failure, is evidence against the compiler.

    Devices that differ are two computations, of which at most one is right. A value that depends on the content of
    new memory is wrong, whatever the right value is. A search that found no pass supports no claim.
    """
    if finding.kind is FindingKind.GUILTY_PASS:
        return _names_pass(finding)
    differs = finding.kind in (FindingKind.NONDETERMINISTIC, FindingKind.DEVICE_SPECIFIC)
    return differs or KINDS[finding.kind].blames is Blame.COMPILER


def _names_pass(finding: Finding) -> bool:
    """True for a search that found a pass or a phase. LLVM's passes count like any others."""
    match read_evidence(finding):
        case PassEvidence() as known:
            return not known.names_none
        case DispatchEvidence():
            return True
        case _:
            return False


def _weigh_votes(verdict: Verdict, evidence: Evidence) -> Verdict:
    votes = list_votes(evidence)
    verdict = replace(verdict, votes=votes)
    # Runs are compared as numbers, so a run with 0 may match the reported -0.
    signed = names_negative_zero(evidence.plan.claim.actual)
    defined = any(_is_right_by_definition(one) and not wrote_accused(one, evidence) for one in evidence.findings)
    if verdict.kind is VerdictKind.CONFIRMED and not signed and defined and not _prints_an_input(evidence.plan.claim):
        return replace(_judge_expectation(verdict), votes=votes)
    if verdict.kind is VerdictKind.CONFIRMED and (rounded := _find_rounding(votes, evidence)) is not None:
        return replace(_judge_rounding(verdict, *rounded), votes=votes)
    if verdict.kind is VerdictKind.CONFIRMED and (right := _find_refutation(votes, evidence)) is not None:
        return replace(_judge_own_reference(verdict, right), votes=votes)
    clean = evidence.find_versions(Answer.GOOD)
    if dissenting := next((one for one in votes if not one.wrong and one.version not in clean), None):
        why = f"{dissenting.reference}, {_describe_agreement(dissenting)}, so the value may be right"
        return withhold(add_grounds(verdict, Ground.REFERENCE_AGREES), doubt=why, settled_by="which value is right")
    independent = {
        NUMPY: Ground.REFERENCE_DIFFERS,
        ONNX: Ground.REFERENCE_DIFFERS,
        ONNX_SHAPES: Ground.REFERENCE_DIFFERS,
        DEFINITIONS: Ground.REFERENCE_DIFFERS,
        LIBRARY: Ground.REFERENCE_DIFFERS,
        RUNTIME: Ground.REFERENCE_DIFFERS,
        OWN: Ground.OWN_REFERENCE,
    }
    differing = [one.reference for one in votes if one.reference in independent]
    if verdict.kind is not VerdictKind.CONFIRMED or not any(map(clears_passes, evidence.findings)):
        return add_grounds(verdict, *[Ground.REFERENCE_DIFFERS for one in differing if one != OWN])
    if differing:
        verb = "disagrees" if len(differing) == 1 else "disagree"
        named = join_names([name_reference(one) for one in dict.fromkeys(differing)])
        why = f"no pass causes the result; {named} {verb} with it"
        alone = () if set(differing) - {OWN} else (Ground.NO_PASS_CAUSES,)
        return add_grounds(verdict, *alone, *[independent[one] for one in differing], reasons=(why,))
    why = "only the report says that the result is wrong: no run confirms it, and no pass changes it"
    settle = "a reference for the right value, such as an assertion against NumPy's result"
    return withhold(add_grounds(verdict, Ground.NO_PASS_CAUSES), doubt=why, settled_by=settle)


def _describe_agreement(vote: ReferenceVote) -> str:
    if vote.reference == ONNX_SHAPES:
        return f"gives the shape that {vote.version} returns, and ONNX's evaluator gives another"
    return f"computes what {vote.version} returns"


def _is_right_by_definition(finding: Finding) -> bool:
    """True if the definitions of the operations give each printed digit of the value that the report calls wrong."""
    match read_evidence(finding):
        case ReferenceEvidence(vote=Vote.AGREES, name=Reference.DEFINITION, exact=True):
            return True
        case _:
            return False


def _prints_an_input(claim: Claim) -> bool:
    """True if the quoted output has a row for an input: the input may be wrong, and not the result."""
    return any(map(_INPUT_ROW.match, claim.actual.splitlines()))


_INPUT_ROW = re.compile(r"\W{0,4}(?:the )?(?:inputs?|arguments?|args?|original|before)\b[^\n\[]{0,30}\[", re.I)


def _judge_expectation(verdict: Verdict) -> Verdict:
    """Return ``invalid-repro`` for a value that every release computes, and that is right by definition."""
    return _blame_testcase(
        verdict,
        "what it calls wrong is what the definitions of its operations give",
        "an interpreter, by these definitions, gives each printed digit",
    )


def _blame_testcase(verdict: Verdict, fault: str, reason: str) -> Verdict:
    """Return ``invalid-repro`` instead of a verdict on the same runs."""
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED,),
        f"The testcase itself is at fault: {fault}. {verdict.headline}",
        (*verdict.reasons, reason),
        verdict.evidence,
    )


def _find_refutation(votes: Sequence[ReferenceVote], evidence: Evidence) -> ReferenceVote | None:
    """Return the library that agrees with the compiler, if only the author expects another value.

    ONNX's evaluator shares nothing with the compiler. NumPy or an interpreter may compute from the compiler's own
    module. Then the run itself must have compared its result: quoted output may be of another build.
    """
    if any(one.wrong and one.reference != OWN for one in votes) or evidence.find_disagreeing():
        return None
    right = next(
        (one for one in votes if not one.wrong and one.reference in (NUMPY, ONNX, DEFINITIONS, LIBRARY)), None
    )
    if right is None or right.reference == ONNX:
        return right
    failing = [seen for seen in evidence.list_originals() if seen.version == right.version]
    own = any(one.reference == OWN for one in votes)
    return right if failing and all(_compares_itself(one, own) for one in failing) else None


def _compares_itself(seen: Observation, own: bool) -> bool:
    """True if a run failed at a comparison of values.

    An assertion may be about a module, unless the testcase computes a reference (``own``) or two arrays differ.
    """
    failed = seen.signature is not None and seen.signature.type == ASSERTION
    compared = failed and (own or _ARRAYS_DIFFER.search(seen.signature.message if seen.signature else "") is not None)
    return seen.answer is Answer.BAD and (compared or seen.reason is Reason.OTHER_REFERENCE)


_ARRAYS_DIFFER = re.compile(r"Mismatched elements|Not equal to tolerance|Arrays are not (?:almost )?equal")


def _judge_own_reference(verdict: Verdict, right: ReferenceVote) -> Verdict:
    """Return ``invalid-repro`` for a value that contradicts only the author's formula, not any release or a
    library."""
    short = name_reference(right.reference)
    return _blame_testcase(
        verdict,
        f"{short} computes what {right.version} returns, and only the report expects another value",
        f"{short} computes the value a second time, without the compiler",
    )


MOST_ROUNDING = 4 * 2**-23
"""Relative difference of two results of float32 that rounding alone explains: four units in the last place."""


def _find_rounding(votes: Sequence[ReferenceVote], evidence: Evidence) -> tuple[ReferenceVote, str] | None:
    """Return the library that agrees, and the difference, if each failing run compares arrays that differ by
    rounding.

    A pass that changes the last digits is not at fault, so the builds without the pass do not count here.
    """
    right = next((one for one in votes if not one.wrong and one.reference in (NUMPY, DEFINITIONS, LIBRARY)), None)
    failing = [seen for seen in evidence.list_originals() if seen.answer is Answer.BAD]
    messages = [seen.signature.message if seen.signature is not None else "" for seen in failing]
    told = [_RELATIVE_DIFFERENCE.search(message) for message in messages]
    if right is None or not told or any(one is None or not float(one["by"]) <= MOST_ROUNDING for one in told):
        return None
    return right, max((one["by"] for one in told if one is not None), key=float)


_RELATIVE_DIFFERENCE = re.compile(
    r"[Mm]ax relative difference[\w ]{0,40}: (?P<by>\d{1,4}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?)"
)


def _judge_rounding(verdict: Verdict, right: ReferenceVote, by: str) -> Verdict:
    """Return ``invalid-repro`` for two results that differ in their last digits, and are right to these digits."""
    return _blame_testcase(
        verdict,
        f"it demands equal digits where results differ by rounding alone ({by}, relative)",
        f"{name_reference(right.reference)} computes what {right.version} returns, up to rounding",
    )


def weigh_search(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Strengthen a verdict on a failure if the runs show its origin: a pass, a crash, a clean release."""
    if verdict.kind not in _RESTS_ON_A_FAILURE:
        return verdict
    failing = [seen for seen in evidence.observations if seen.answer is Answer.BAD]
    grounds = [Ground.RELEASES_DIFFER] if verdict.kind is not VerdictKind.CONFIRMED else []
    if any(map(_names_pass, evidence.findings)):
        grounds.append(Ground.PASS_NAMED)
    if failing and all(seen.signature is not None and seen.signature.type in NATIVE for seen in failing):
        grounds.append(Ground.CRASHES)
    return add_grounds(verdict, *grounds)


def weigh_undefined_input(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold the verdict on a wrong value if the program reads memory that it never wrote, or out of bounds."""
    wrong_value = verdict.kind in _RESTS_ON_A_FAILURE and evidence.plan.claim.kind is ClaimKind.WRONG_RESULT
    kinds = {one.kind for one in evidence.findings if not is_taken_now(one, evidence)}
    if wrong_value and FindingKind.UNINITIALIZED_READ in kinds:
        why = "the testcase reads memory that it never wrote, so its result may be undefined"
        settle = "whether the failure stays with that memory initialized"
        return withhold(add_grounds(verdict, Ground.UNDEFINED_INPUT), doubt=why, settled_by=settle)
    if wrong_value and FindingKind.OUT_OF_BOUNDS_ACCESS in kinds:
        why = "a run that checks accesses finds one out of bounds: if the testcase makes it, the result is undefined"
        settle = "whether the testcase itself computes that index"
        return withhold(add_grounds(verdict, Ground.UNDEFINED_INPUT), doubt=why, settled_by=settle)
    return verdict


HOW_TO_CALL = re.compile(
    r"\b(?:must|should|needs? to|has to) (?:be|have been) (?:\w+ )?(?:run|called|applied|invoked) (?:\w+ )?before"
    r"|\b(?:run|call|apply|invoke) [`'\"]?[\w.-]{3,80}[`'\"]?(?: pass)? (?:first|before)\b"
    r"|\bdid you (?:forget|intend) to\b|"
    r"(?:expects?|takes?|requires?|needs?) (?:exactly |at least )?\d+ (?:\w+ ){0,2}"
    r"(?:arguments?|inputs?|parameters?)"
    r"|wrong number of (?:arguments?|inputs?)|\b(?:call|invoke|set|use) (?:it|.{1,40}?) first\b"
    r"|before (?:calling|using) ",
    re.I,
)
"""Messages of any program about its correct call: number of arguments, order of calls and of passes."""


def weigh_refused_text(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weaken a confirmed error with which every build refuses a text or a request: the rule may be right.

    A new rule, with which newer releases refuse a text that older ones accepted, may be right too. A build that does
    not know the notation of the text says nothing about the rule. A report that states a promise of the tool asks
    about the rule itself.
    """
    reads = any(map(fails_while_read, evidence.findings))
    is_error = evidence.plan.claim.kind is ClaimKind.ERROR
    if verdict.kind is VerdictKind.REGRESSION and is_error and reads and not evidence.defences:
        caveat = "The text is refused when it is read: if the new rule in the message is right, the text is at fault."
        return replace(add_grounds(verdict, Ground.TEXT_REFUSED), headline=f"{verdict.headline} {caveat}")
    if verdict.kind is not VerdictKind.CONFIRMED or not is_error:
        return verdict
    refusing = [seen for seen in evidence.list_originals() if seen.outcome is not Outcome.INCOMPATIBLE]
    if evidence.defences or any(seen.answer is not Answer.BAD for seen in refusing):
        return verdict
    if reads:
        caveat = "The text is refused when it is read: if the rule in the message is right, the text is at fault."
        return replace(add_grounds(verdict, Ground.TEXT_REFUSED), headline=f"{verdict.headline} {caveat}")
    refusals = find_toolchain(evidence.plan.testcase.toolchain).FAILURES.refusals
    everywhere = len(refusing) == len(evidence.list_originals())
    if not everywhere or not all(seen.signature and seen.signature.type in refusals for seen in refusing):
        return verdict
    caveat = "The message states a rule: if the rule is right, the request of the testcase is at fault."
    return replace(add_grounds(verdict, Ground.REQUEST_REFUSED), headline=f"{verdict.headline} {caveat}")


def weigh_missing_name(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a regression if newer releases fail because they do not know a name of the testcase.

    An operation or a flag that was intentionally renamed or removed fails in the same way.
    """
    if verdict.kind is not VerdictKind.REGRESSION:
        return verdict
    testcase, order = evidence.plan.testcase, evidence.plan.order
    vocabulary = find_toolchain(testcase.toolchain).FAILURES
    failing = [seen for seen in evidence.list_originals() if seen.answer is Answer.BAD]
    names = {
        None if seen.signature is None else find_missing_name(seen.signature, testcase, vocabulary)
        for seen in failing
    }
    if len(names) != 1 or (name := names.pop()) is None:
        return verdict
    why = f"{order[-1]} does not know {quote_span(name, 80)}, and no run shows whether that is on purpose"
    settle = "whether the name was renamed or removed on purpose"
    return withhold(add_grounds(verdict, Ground.NO_ANSWER), doubt=why, settled_by=settle)


def weigh_ill_formed(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Withhold a confirmed error if a check of the testcase's own program reports it before any pass.

    The check names the rule that the program breaks. Only a pass before the check could have broken it instead of the
    testcase.
    """
    if verdict.kind is not VerdictKind.CONFIRMED or evidence.plan.claim.kind is not ClaimKind.ERROR:
        return verdict
    failing = [seen for seen in evidence.observations if seen.answer is Answer.BAD]
    frames = [seen.signature.frames for seen in failing if seen.signature is not None]
    checks = find_toolchain(evidence.plan.testcase.toolchain).FAILURES.program_checks
    checked = bool(frames) and all(one and one[0].rpartition(".")[2] in checks for one in frames)
    code = "\n".join(evidence.plan.testcase.files.values())
    if not checked or _APPLIES_PASS.search(code):
        return verdict
    why = "the error comes from a check of the program that the testcase builds itself, and no pass ran before"
    settle = "whether the program keeps the rule in the message"
    return withhold(add_grounds(verdict, Ground.SAYS_HOW_TO_CALL), doubt=why, settled_by=settle)


_APPLIES_PASS = re.compile(r"\btransform\.\w|\bSequential\(|\bpipeline\b")


def weigh_call_check(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Weigh a reported error that comes from a check of the call: the error is correct if the call is wrong.

    A check of the runtime names the argument, and weakens the verdict. Any other such error withholds the verdict if
    no pass causes the error.
    """
    if verdict.kind is not VerdictKind.CONFIRMED or evidence.plan.claim.kind is not ClaimKind.ERROR:
        return verdict
    failing = [seen for seen in evidence.observations if seen.answer is Answer.BAD]
    messages = [seen.signature.message for seen in failing if seen.signature is not None]
    if not messages or len(messages) < len(failing):
        return verdict
    checks = find_toolchain(evidence.plan.testcase.toolchain).FAILURES.call_checks
    if all(any(pattern.search(message) for pattern in checks) for message in messages):
        caveat = (
            "The error comes from a check of the arguments: if the testcase passes wrong ones, the error is correct."
        )
        return replace(add_grounds(verdict, Ground.ARGUMENT_CHECK), headline=f"{verdict.headline} {caveat}")
    if name := _find_taken_name(messages, "\n".join(evidence.plan.testcase.files.values())):
        why = f"the testcase gives the name {quote_span(name, 80)} twice, and the error says that the name is taken"
        settle = "whether a second use of the name is allowed"
        return withhold(add_grounds(verdict, Ground.SAYS_HOW_TO_CALL), doubt=why, settled_by=settle)
    if not all(map(HOW_TO_CALL.search, messages)) or not any(map(clears_passes, evidence.findings)):
        return verdict
    why = "the error says how a function has to be called: if the testcase calls it wrongly, the error is correct"
    settle = "whether the testcase calls the function as the message demands"
    return withhold(add_grounds(verdict, Ground.SAYS_HOW_TO_CALL), doubt=why, settled_by=settle)


def _find_taken_name(messages: Sequence[str], code: str) -> str:
    """Return the name that all messages call taken, if the testcase has the name twice. Empty otherwise."""
    places = [_TAKEN.search(message) for message in messages]
    names = {(found["name"] or found["other"]) if found else "" for found in places}
    name = names.pop() if len(names) == 1 else ""
    return name if name and code.count(name) > 1 else ""


_TAKEN = re.compile(
    r"[`'\"]{1,2}@?(?P<name>[\w.$-]{2,100})[`'\"]{1,2}[^\n]{0,40}\b(?:already|re)[ -]?(?:been )?"
    r"(?:registered|defined|declared|exists?|in use|taken)\b|\bredefinition of (?:symbol )?"
    r"[`'\"]{0,2}@?(?P<other>[\w.$-]{2,100})",
    re.I,
)
"""Messages about a name that is defined a second time."""
