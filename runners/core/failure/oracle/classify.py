"""Classify a run by the way it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from runners.core.failure.oracle.completed import classify_completed
from runners.core.failure.oracle.failed import classify_failed
from runners.core.failure.oracle.outcome import Classification, OracleContext, get_last_output
from runners.core.failure.parse import parse_signature
from runners.core.protocol import (
    ClaimKind,
    Ended,
    Exited,
    NotRun,
    Outcome,
    OutOfMemory,
    Reason,
    Signalled,
    Signature,
    StepResult,
    TimedOut,
)


def classify_run(ended: Ended, steps: Sequence[StepResult], context: OracleContext) -> Classification:
    """Classify a run. ``steps`` are the steps that were started; the last one ended the run."""
    claim = context.claim
    match ended:
        case NotRun(why=why, cause=cause):
            outcome = Outcome.INFRA if cause == "infra" else Outcome.UNAVAILABLE
            return Classification(outcome=outcome, reason=Reason.NOT_RUN, why=why)
        case OutOfMemory(limit_bytes=limit):
            claimed = claim.kind is ClaimKind.MEMORY or (
                claim.signature is not None and claim.signature.type in ("out-of-memory", "MemoryError")
            )
            return Classification(
                outcome=Outcome.MATCH if claimed else Outcome.OUT_OF_MEMORY,
                reason=Reason.OUT_OF_MEMORY,
                why=f"used more than {limit / 2**30:.1f} GiB of memory" + (", as reported" if claimed else ""),
                signature=Signature(type="out-of-memory"),
            )
        case TimedOut(where=where, clock=clock):
            limit_reached = "reached the time limit" if clock == "wall" else "reached the limit of processor time"
            hang = claim.kind in (ClaimKind.HANG, ClaimKind.SLOW)
            return Classification(
                outcome=Outcome.MATCH if hang else Outcome.TIMEOUT,
                reason=Reason.TIMED_OUT,
                why=f"{limit_reached}{f' ({where})' if where else ''}" + (", as reported" if hang else ""),
                signature=parse_signature(get_last_output(steps), context.vocabulary, ended),
            )
        case Exited(code=0):
            return classify_completed(steps, context)
        case Exited() | Signalled():
            return classify_failed(ended, steps, context)
        case _ as never:
            assert_never(never)
