"""Judge a testcase that is itself at fault, as traced by a diagnosis. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.extract.claim.defences import is_defended
from bot.verdict.evidence import Evidence
from bot.verdict.finding_text import describe_finding
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_all, name_releases, quote_span
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.findings.calls import CallDifference, OldNotation
from runners.core.findings.kinds import KINDS, Blame, ControlEnd, Origin, Rule
from runners.core.findings.questions import (
    explain_proof,
    fails_while_read,
    get_blame,
    get_control_end,
    get_origin,
    list_call_names,
)
from runners.core.findings.record import read_evidence
from runners.core.findings.types import CallEvidence, KernelAccess, RuleEvidence
from runners.core.protocol import Answer, ClaimKind, Exited, Finding, FindingKind, Observation, Outcome, Variant
from runners.toolchains import find_toolchain


def judge_invalid_repro(evidence: Evidence) -> Verdict | None:
    """Return ``invalid-repro`` if a finding traces the failure to undefined behaviour or misuse in the testcase."""
    if evidence.plan.claim.intended:
        return None  # the reporter knows the cause of the error; the report is about something else
    flaky = bool(evidence.find_disagreeing())
    blame = next((finding for finding in evidence.findings if _blames_testcase(finding, evidence)), None)
    if blame is not None and is_taken_now(blame, evidence):
        blame = None
    if blame is None:
        return (
            _judge_rejected_text(evidence)
            or _judge_undeclared_argument(evidence)
            or _judge_unknown_attribute(evidence)
        )
    if not any(seen.outcome is Outcome.MATCH for seen in evidence.observations):
        return _judge_other_failure(evidence, blame)
    failing = Variant.ORIGINAL if evidence.find_versions(Answer.BAD) else Variant.PORTED
    bad = evidence.find_versions(Answer.BAD, failing)
    where = name_all(evidence, bad) if failing is Variant.ORIGINAL else name_releases(evidence, bad, failing)
    shown = f" The reported failure occurs on {where}." if bad else ""
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED, *((Ground.RUNS_DISAGREE,) if flaky else ()), *_list_doubts(blame)),
        f"The testcase itself is at fault: {_describe_fault(blame)}.{shown}",
        (explain_proof(blame),),
        evidence.find_indices(*bad, variants=(failing,)),
    )


def _takes_newest(evidence: Evidence) -> bool:
    """True if the newest release runs the posted text cleanly, and an older release does not."""
    return evidence.combine_answers().get(evidence.plan.order[-1]) is Answer.GOOD


def is_taken_now(finding: Finding, evidence: Evidence) -> bool:
    """True if the newest release supplies what the testcase lacks, or accepts its indices or its model."""
    lacks = finding.kind is FindingKind.MISSING
    return _takes_newest(evidence) and (lacks or _counts_back(finding) or _refuses_model(finding))


def _refuses_model(finding: Finding) -> bool:
    """True for a model that breaks a rule of its format. An importer may accept more than the format."""
    found = read_evidence(finding)
    return isinstance(found, RuleEvidence) and found.rule is Rule.INVALID_MODEL


def _counts_back(finding: Finding) -> bool:
    """True for a read with negative indices, if all indices are inside when the negative ones count from the end.

    NumPy, PyTorch and ONNX have such indices. A release that runs the same data cleanly accepts this meaning.
    """
    match read_evidence(finding):
        case KernelAccess(outside_range=(low, high), extent=int(extent)):
            return -extent <= low and high < 0
        case _:
            return False


def _judge_other_failure(evidence: Evidence, blame: Finding) -> Verdict | None:
    """Judge a fault of the testcase if it never fails as reported. A finding explains only an observed failure.

    A wrong call is always rejected in one way: it explains neither another error that the report quotes nor a crash.
    A notation of older releases explains nothing here: the text was right when it was written.
    """
    call = _get_call(blame)
    if isinstance(call, OldNotation):
        return None
    claim = evidence.plan.claim
    quotes_none = claim.signature is None and claim.kind is ClaimKind.ERROR
    if blame.kind is FindingKind.WRONG_CALL and not (quotes_none and not evidence.gaps.shows_elsewhere):
        return None
    failing = [seen for seen in evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
    if not failing or evidence.find_versions(Answer.GOOD):
        return None
    versions = tuple(dict.fromkeys(seen.version for seen in failing))
    shown = f"It fails on {name_releases(evidence, versions)}"
    if all(seen.ended == Exited(code=0) for seen in failing):
        shown = f"It runs to its end on {name_releases(evidence, versions)}, with an output that is undefined."
    else:
        shown += ", and the report quotes no failure." if quotes_none else _NOT_AS_REPORTED
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED, Ground.OTHER_FAILURE_TRACED, *_list_doubts(blame)),
        f"The testcase itself is at fault: {_describe_fault(blame)}. {shown}",
        (explain_proof(blame),),
        evidence.find_indices(*versions),
    )


_NOT_AS_REPORTED = ", but not as reported: such a fault may show differently each time."


def _describe_fault(finding: Finding) -> str:
    """Return the sentence on a finding, as a part of a sentence that already names the testcase."""
    sentence = describe_finding(finding)
    return f"it {rest}" if (rest := sentence.removeprefix("the testcase ")) != sentence else sentence


def _judge_rejected_text(evidence: Evidence) -> Verdict | None:
    """Judge an error of the parser or of a declared operand that every build reports before any pass."""
    claim, originals = evidence.plan.claim, evidence.list_originals()
    rules = find_toolchain(evidence.plan.testcase.toolchain).FAILURES.text_rules
    messages = [seen.signature.message if seen.signature is not None else "" for seen in originals]
    read_only = any(map(fails_while_read, evidence.findings))
    alike = bool(originals) and all(seen.answer is Answer.BAD for seen in originals)
    if claim.kind is not ClaimKind.ERROR or not (read_only and alike):
        return None
    if not all(any(rule.search(message) for rule in rules) for message in messages):
        return None
    named = re.findall(r"'([^']{1,200})'", messages[-1])
    if any(is_defended(name, evidence.defences) for name in named):
        return None
    fault = "its text is rejected when it is read, by a rule of the language or of the operation"
    return _blame_text(
        evidence, f"{fault}: {quote_span(messages[-1], 200)}", "the text is rejected before any pass runs"
    )


def _blame_text(evidence: Evidence, fault: str, proof: str) -> Verdict:
    """Return the verdict on a fault that the text of the testcase and the message of each failing build show."""
    bad = evidence.find_versions(Answer.BAD)
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED,),
        f"The testcase itself is at fault: {fault}. The reported failure occurs on {name_all(evidence, bad)}.",
        (proof,),
        evidence.find_indices(*bad),
    )


def _judge_undeclared_argument(evidence: Evidence) -> Verdict | None:
    """Judge a check of the runtime that fails on every build: the program declares one type, the call passes another.

    The declared type must be in the program, and the passed type must not: a compiler that changes a declared type
    gives the same message.
    """
    failing = [seen for seen in evidence.list_originals() if seen.answer is Answer.BAD]
    if evidence.plan.claim.kind is not ClaimKind.ERROR or not failing or evidence.find_versions(Answer.GOOD):
        return None
    checks = find_toolchain(evidence.plan.testcase.toolchain).FAILURES.argument_checks
    messages = [seen.signature.message if seen.signature is not None else "" for seen in failing]
    told = [next(filter(None, (check.search(message) for check in checks)), None) for message in messages]
    types = {one and (one["declared"], one["given"]) for one in told}
    pair = types.pop()
    if types or pair is None:
        return None
    declared, given = pair
    text = "\n".join(evidence.plan.testcase.files.values())
    parts = {part for kind in _TENSOR.findall(text) for part in (kind, *kind.rpartition("x")[::2])}
    if declared not in parts or given in parts or _names_type(text, declared):
        return None
    fault = f"its function takes {quote_span(declared, 80)}, the call passes {quote_span(given, 80)}"
    return _blame_text(evidence, fault, "the runtime compares the argument with the type that the program declares")


def _names_type(text: str, declared: str) -> bool:
    """True if a testcase in Python uses the declared type's name there: it intends to pass this type."""
    found = re.fullmatch(r"(?P<kind>bf|f|i)(?P<bits>\d{1,3})", declared)
    if found is None:
        return False
    kind = {"bf": "bfloat", "f": "(?<!b)float", "i": "s?int"}[found["kind"]]
    return re.search(rf"(?<![a-z]){kind}_?{found['bits']}(?!\d)", text, re.I) is not None


def _judge_unknown_attribute(evidence: Evidence) -> Verdict | None:
    """Judge an attribute that a row of the testcase asks for, and that no release has."""
    originals = evidence.list_originals()
    if evidence.plan.claim.kind is not ClaimKind.ERROR or any(seen.answer is not Answer.BAD for seen in originals):
        return None
    asked = {_find_unknown_attribute(seen, evidence.plan.testcase.files) for seen in originals}
    found = asked.pop() if len(asked) == 1 else None
    if found is None or is_defended(found[1], evidence.defences) or not evidence.has_near_build():
        return None
    kind, name = found
    bad = evidence.find_versions(Answer.BAD)
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED, Ground.NAME_UNKNOWN),
        f"The testcase itself is at fault: it uses {quote_span(name, 80)} of {quote_span(kind, 80)}, which no release"
        f" that ran has. The reported failure occurs on {name_all(evidence, bad)}.",
        ("the last call before the error is in the testcase, not in the compiler",),
        evidence.find_indices(*bad),
    )


def _find_unknown_attribute(seen: Observation, files: Mapping[str, str]) -> tuple[str, str] | None:
    """Return type and attribute of an ``AttributeError`` that a row of the testcase raises; None for other errors."""
    told = _NO_ATTRIBUTE.search(seen.signature.message) if seen.signature is not None else None
    frames = _FRAME.findall(seen.excerpt)
    if told is None or not frames or seen.signature is None or seen.signature.type != "AttributeError":
        return None
    text = files.get(frames[-1].rpartition("/")[2], "")
    return (told["kind"], told["name"]) if re.search(rf"\.{re.escape(told['name'])}\b", text) else None


_NO_ATTRIBUTE = re.compile(r"^'(?P<kind>[\w.]{1,80})' object has no attribute '(?P<name>\w{1,80})'")
_FRAME = re.compile(r"^  File \"([^\"\n]{1,400})\", line \d+", re.M)
_TENSOR = re.compile(r"tensor<([\w?]{1,200})")


def _blames_testcase(finding: Finding, evidence: Evidence) -> bool:
    """True if a finding blames the testcase. If runs disagree, a clean control may be luck and does not count.

    A wrong call is not blamed if a release accepts it, or if the report states that the tool promises to accept it.
    Nor is one whose record does not show the difference.
    An older notation is blamed although the older releases accept it.
    """
    if get_blame(finding) is not Blame.TESTCASE:
        return False
    if evidence.find_disagreeing() and KINDS[finding.kind].needs_control:
        return False
    if finding.kind is not FindingKind.WRONG_CALL:
        return True
    call = _get_call(finding)
    if call is None:
        return False
    defended = any(is_defended(name, evidence.defences) for name in list_call_names(call))
    taken = evidence.find_versions(Answer.GOOD) and not isinstance(call, OldNotation)
    return not defended and not taken


def _get_call(finding: Finding) -> CallDifference | None:
    evidence = read_evidence(finding)
    return evidence.call if isinstance(evidence, CallEvidence) else None


def _list_doubts(finding: Finding) -> tuple[Ground, ...]:
    """Return the grounds for doubt where the diagnosis shows less than usual."""
    end = get_control_end(read_evidence(finding))
    return (
        *((Ground.COMPUTED_INDEX,) if get_origin(finding) is Origin.COMPUTED_DATA else ()),
        *((Ground.REPAIR_PRINTS_ANOTHER,) if end is ControlEnd.OTHER_VALUE else ()),
    )
