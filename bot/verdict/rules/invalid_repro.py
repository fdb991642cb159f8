"""Judge a testcase that is itself at fault, as traced by a diagnosis. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.finding_text import describe_finding
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_all, name_releases
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.findings import KINDS, ORIGIN, Blame, explain_proof, get_blame, prints_another_value
from runners.core.protocol import Answer, Finding, Outcome, Variant


def judge_invalid_repro(evidence: Evidence) -> Verdict | None:
    """Return ``invalid-repro`` if a finding traces the failure to undefined behaviour or misuse in the testcase."""
    flaky = bool(evidence.find_disagreeing())
    blame = next((finding for finding in evidence.findings if _blames_testcase(finding, flaky=flaky)), None)
    if blame is None:
        return None
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


def _judge_other_failure(evidence: Evidence, blame: Finding) -> Verdict | None:
    """Judge a fault of the testcase where it never fails as reported. A finding explains only an observed failure."""
    failing = [seen for seen in evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
    if not failing or evidence.find_versions(Answer.GOOD):
        return None
    versions = tuple(dict.fromkeys(seen.version for seen in failing))
    return make_verdict(
        VerdictKind.INVALID_REPRO,
        (Ground.FAULT_TRACED, Ground.OTHER_FAILURE_TRACED, *_list_doubts(blame)),
        f"The testcase itself is at fault: {_describe_fault(blame)}. It fails on"
        f" {name_releases(evidence, versions)}, but not as reported: such a fault may show differently each time.",
        (explain_proof(blame),),
        evidence.find_indices(*versions),
    )


def _describe_fault(finding: Finding) -> str:
    """Return the sentence on a finding, as the part of a sentence that names the testcase already."""
    sentence = describe_finding(finding)
    return f"it {rest}" if (rest := sentence.removeprefix("the testcase ")) != sentence else sentence


def _blames_testcase(finding: Finding, *, flaky: bool) -> bool:
    """True if a finding blames the testcase. Where runs disagree, a clean control may be luck and does not count."""
    return get_blame(finding) is Blame.TESTCASE and not (flaky and KINDS[finding.kind].needs_control)


def _list_doubts(finding: Finding) -> tuple[Ground, ...]:
    """Return the grounds for doubt where the diagnosis shows less than usual."""
    return (
        *((Ground.COMPUTED_INDEX,) if finding.evidence.get(ORIGIN) == "computed-data" else ()),
        *((Ground.REPAIR_PRINTS_ANOTHER,) if prints_another_value(finding) else ()),
    )
