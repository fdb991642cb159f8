"""What would show that a finding is wrong: said with each of them, so that a reader can try it."""

from __future__ import annotations

import msgspec

from runners.core.protocol import Finding, FindingKind

REFUTED_BY = "refuted_by"
"""The part of a finding's evidence that says it: the host's words, which a guest cannot write."""

_GENERAL = {
    FindingKind.OUT_OF_BOUNDS_ACCESS: "the same failure with every index inside its axis",
    FindingKind.UNDEFINED_OPERAND: "the same failure with a value for which the operation is defined",
    FindingKind.UNINITIALIZED_READ: "the same failure with that memory written before it is read",
    FindingKind.BROKEN_RULE: "the same failure with that alone put right",
    FindingKind.SIGNATURE_CHANGED: "the same failure when the function is called the new way",
    FindingKind.INPUT_MUTATED: "the same failure when the pass is given a copy; or an input that prints as before it",
    FindingKind.NOT_IDEMPOTENT: "a second application of that pass alone that leaves the module as it is",
    FindingKind.NAN_INEQUALITY: "the same inequality with numbers in the place of each NaN",
    FindingKind.VALUES_REPLACED: "outputs after that pass that still depend on the parameters",
    FindingKind.MISSING: "the same failure with it added",
    FindingKind.API_MOVED: "a run on that release that finds the name",
}
"""Kinds that are refuted in one way; findings of the others say it themselves, as it depends on what was run."""


def refutable(finding: Finding) -> Finding:
    """The finding, with what would refute it."""
    said = _GENERAL.get(finding.kind)
    if said is None or REFUTED_BY in finding.evidence:
        return finding
    return msgspec.structs.replace(finding, evidence={**finding.evidence, REFUTED_BY: said})
