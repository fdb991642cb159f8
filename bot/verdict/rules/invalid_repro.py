"""Is the testcase itself at fault? A diagnosis that traced the failure to it says so."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.rules.confidence import ANOTHER_VALUE, TRACED, TRACED_UNSTEADILY, WORKED_OUT
from bot.verdict.rules.phrases import span
from bot.verdict.verdict import Verdict, VerdictKind, conclude
from runners.core.protocol import Answer, Finding, FindingKind, Outcome, Variant

BLAMES_THE_REPRO = frozenset(
    {
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        FindingKind.UNDEFINED_OPERAND,
        FindingKind.UNINITIALIZED_READ,
        FindingKind.BROKEN_RULE,
        FindingKind.SIGNATURE_CHANGED,
        FindingKind.MISSING,
    }
)
"""With a matching failure, these put the fault in the testcase: undefined input, or an API called wrongly."""
REST_ON_A_CONTROL = frozenset({FindingKind.SIGNATURE_CHANGED, FindingKind.MISSING})
"""Of these, what shows the fault is a run that was clean: where runs disagree, that may have been luck."""


def repro_at_fault(evidence: Evidence) -> Verdict | None:
    """A diagnosis shows that the testcase asks for undefined behaviour or calls an API the wrong way."""
    blames = BLAMES_THE_REPRO - (REST_ON_A_CONTROL if evidence.disagreeing() else frozenset())
    blame = next((f for f in evidence.findings if f.kind in blames and _says_whose_fault(f)), None)
    if blame is None or not any(seen.outcome is Outcome.MATCH for seen in evidence.observations):
        return None  # a diagnosis explains a failure that the host saw; without one it explains nothing
    failing = Variant.ORIGINAL if evidence.versions(Answer.BAD) else Variant.PORTED
    bad = evidence.versions(Answer.BAD, failing)
    said = {
        FindingKind.OUT_OF_BOUNDS_ACCESS: "it reads or writes outside one of its own tensors",
        FindingKind.UNDEFINED_OPERAND: "it gives an operation a value for which that is undefined",
        FindingKind.UNINITIALIZED_READ: "it reads memory of its own that it never wrote, and what that holds decides",
        FindingKind.BROKEN_RULE: "it breaks a rule of an operation that it uses, and the result is undefined",
        FindingKind.SIGNATURE_CHANGED: "it calls a function the old way after a pass changed its parameters",
        FindingKind.MISSING: "it uses a submodule that it never imports; with the import it runs",
    }[blame.kind]
    shown = f" The failure itself shows on {span(bad)}." if bad else ""
    return conclude(
        VerdictKind.INVALID_REPRO,
        round((TRACED_UNSTEADILY if evidence.disagreeing() else TRACED) - _doubt(blame), 2),
        f"The testcase itself is at fault: {said}.{shown}",
        (_how_it_is_known(blame),),
        evidence.indices(*bad, variants=(failing,)),
    )


def _how_it_is_known(blame: Finding) -> str:
    control = str(blame.evidence.get("control", ""))
    match blame.kind:
        case FindingKind.MISSING:
            return "the same testcase with that import added runs cleanly"
        case FindingKind.SIGNATURE_CHANGED if "runs cleanly" in control:
            return "the same testcase with that call made the new way runs cleanly; the finding shows the call"
        case FindingKind.UNINITIALIZED_READ:
            return "with that memory filled the same testcase runs cleanly or fails, by what it is filled with"
        case FindingKind.OUT_OF_BOUNDS_ACCESS | FindingKind.UNDEFINED_OPERAND | FindingKind.BROKEN_RULE if control:
            seen = "prints another value" if _prints_another_value(blame) else "runs cleanly"
            return f"the same testcase with that alone put right {seen}; the finding names the line"
        case _:
            return "a diagnosis re-ran the unmodified testcase under instrumentation; its evidence is in the findings"


def _doubt(finding: Finding) -> float:
    """How much less than usual the diagnosis shows."""
    computed = finding.evidence.get("origin") == "computed-data"
    return (WORKED_OUT if computed else 0.0) + (ANOTHER_VALUE if _prints_another_value(finding) else 0.0)


def _prints_another_value(finding: Finding) -> bool:
    """The repro put right does not run cleanly, for want of a right value to compare with."""
    return "no longer prints" in str(finding.evidence.get("control", ""))


def _says_whose_fault(finding: Finding) -> bool:
    """An access out of bounds may be the compiler's own doing: unless the diagnosis traced it, it blames nobody."""
    return finding.evidence.get("origin") != "unknown"
