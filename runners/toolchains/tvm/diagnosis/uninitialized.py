"""Trace a failure to memory that the testcase's own TIR reads but never wrote.

The guest follows the parsed TIR before any pass (``guest/tvm/uninitialized/definedness.py``), and claims that certain
reads are undefined. A claim alone explains no failure: the elements may not matter, and the compiler may be wrong
too. So the unmodified testcase runs again with these buffers filled at their allocation
(`runners.core.toolchain.memory_fills`).

A store that the compiler loses causes no finding: the parsed TIR contains the store, so no undefined read is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from runners.core.findings.kinds import Origin
from runners.core.findings.record import add_evidence, read_evidence
from runners.core.findings.types import Confirmation, UnwrittenEvidence
from runners.core.protocol import Finding, FindingKind, Observation
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.memory_fills import decide_origin

_NAME = re.compile(r"[A-Za-z_][\w.]{0,79}/[A-Za-z_][\w.]{0,79}", re.ASCII)
MAX_NAMES = 8
_NOT_FILLED = Confirmation(
    origin=Origin.UNKNOWN, control="it could not be filled, so nothing tells whether it decides"
)


def trace_uninitialized(
    found: Sequence[Finding], failure: Failure, run_mode: Callable[[str], Observation]
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """Run the testcase with the claimed buffers filled: at most six runs, and none without such a claim.

    ``run_mode`` runs the testcase under the guest's instrumentation in a mode. Return the runs, and the findings with
    their origin: ``testcase`` if the buffers decide. The guest's statements about origin and control are replaced.
    """
    if len(failure.testcase.steps) != 1 or not any(map(_is_uninitialized, found)):
        return (), tuple(one for one in found if not _is_uninitialized(one))
    names = "+".join(_list_claimed_names(found))
    controls, decided = decide_origin(lambda fill: run_mode(f"{fill}={names}")) if names else ((), _NOT_FILLED)
    confirmed = msgspec.structs.replace(decided, version=failure.seen.version)
    return controls, tuple(add_evidence(one, confirmed) if _is_uninitialized(one) else one for one in found)


def _is_uninitialized(one: Finding) -> bool:
    return one.kind is FindingKind.UNINITIALIZED_READ


def _list_claimed_names(found: Sequence[Finding]) -> tuple[str, ...]:
    """Return the buffers that the guest names, as ``function/buffer``. Other words are dropped, because names become
    arguments."""
    claimed = [evidence for one in found if isinstance(evidence := read_evidence(one), UnwrittenEvidence)]
    names = [name for claim in claimed for name in claim.fill or ()]
    return tuple(dict.fromkeys(name for name in names if _NAME.fullmatch(name)))[:MAX_NAMES]
