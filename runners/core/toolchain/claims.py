"""Read the lines that guest programs write: claims, bounded and decoded strictly.

The testcase shares its process with the instrumentation and can write any line. A claim can only explain a failure
that the host has observed itself.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from runners.core.findings.kinds import KINDS
from runners.core.findings.record import HOST_FIELDS, is_shallow
from runners.core.protocol import Finding, FindingKind, Wire

MAX_FINDINGS = 12
MAX_LINES = 200
MAX_CLAIM_BYTES = 64 * 1024

Evidence = TypeVar("Evidence")


class _Line(Wire, frozen=True, kw_only=True):
    kind: str
    summary: str
    evidence: dict[str, object] = msgspec.field(default_factory=dict)


class _Claimed(msgspec.Struct, frozen=True):
    kind: str
    evidence: msgspec.Raw


_LINES, _CLAIMS = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Claimed)
"""Made at import: msgspec 0.22 ends the process if two threads are the first to use a type."""


def read_findings(claims: str) -> tuple[Finding, ...]:
    """Return the findings of the JSON lines that a guest may claim. Other lines are dropped."""
    claimable = {kind.value for kind, facts in KINDS.items() if facts.from_guest}
    findings = []
    for line in claims[:MAX_CLAIM_BYTES].splitlines()[:MAX_LINES]:
        try:
            claimed = _LINES.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if claimed.kind in claimable and is_shallow(claimed.evidence):
            findings.append(
                Finding(
                    kind=FindingKind(claimed.kind),
                    summary=claimed.summary[:400],
                    evidence={name: value for name, value in claimed.evidence.items() if name not in HOST_FIELDS},
                )
            )
    return tuple(findings[:MAX_FINDINGS])


def read_claim(claims: str, kind: FindingKind, shape: type[Evidence]) -> Evidence | None:
    """Return the evidence of the first well-formed line of a kind. None without such a line. Other fields are
    ignored."""
    for line in claims[:MAX_CLAIM_BYTES].splitlines()[:MAX_LINES]:
        try:
            claimed = _CLAIMS.decode(line)
            if claimed.kind == kind:
                return msgspec.json.decode(claimed.evidence, type=shape)
        except (msgspec.MsgspecError, RecursionError):
            continue
    return None
