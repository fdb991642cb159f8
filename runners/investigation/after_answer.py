"""Make the first runs after an earlier answer: enough to decide whether the newest release is unchanged.

The runs of the earlier answer are recorded, so requesting them again is free.
"""

from __future__ import annotations

import re
from dataclasses import replace

from runners.core.protocol import ClaimKind, Observation, TimedOut
from runners.investigation.state import InvestigationState, shorten_limits

REPEATS = 10
"""Runs of a build whose runs disagree. One failure in two runs fits a rate of one in three or nine in ten."""


def run_matrix(state: InvestigationState) -> None:
    """Run the first releases of the plan.

    A hang costs the whole time limit on every release. After an earlier answer, the newest release gets a quarter of
    the time limit. The time-out counts only if the previous release hangs in the same place.
    """
    plan = state.plan
    newest = plan.order[-1]
    if plan.answered is None or plan.claim.kind is not ClaimKind.HANG or newest not in plan.first:
        state.run(state.original, plan.first)
        return
    state.run(state.original, [version for version in plan.first if version not in (plan.answered, newest)])
    seen = len(state.seen)
    state.run(replace(state.original, limits=shorten_limits(plan.limits)), [plan.answered, newest])
    before, now = (_find_last(state, version) for version in (plan.answered, newest))
    if now is not None and isinstance(now.ended, TimedOut) and not _hang_alike(before, now):
        del state.seen[seen:]  # a shortened run that no other run explains proves nothing
        state.run(state.original, [plan.answered, newest])


def settle_flaky(state: InvestigationState) -> None:
    """Rerun the newest release until it fails as before, if the previous release is flaky.

    A clean run alone may mean a fix. A single failing run shows that nothing has changed, and ends the reruns.
    """
    plan = state.plan
    newest = plan.order[-1]
    if plan.answered is None or not state.count_runs(state.original, newest) or state.find_unchanged() is not None:
        return
    state.run(state.original, [plan.answered])
    if plan.answered not in state.find_disagreeing(state.original):
        return
    while (
        state.find_unchanged() is None
        and state.count_runs(state.original, newest) < REPEATS - 1  # the confirmation adds one
        and newest not in state.find_disagreeing(state.original)
        and not state.is_exhausted
    ):
        state.run(state.original, [newest])


def _find_last(state: InvestigationState, version: str) -> Observation | None:
    return next((one for one in reversed(state.seen) if one.version == version), None)


def _hang_alike(before: Observation | None, now: Observation) -> bool:
    """True if two runs stopped in the same place: the same step, and the same function or the same activity."""
    if before is None or not isinstance(before.ended, TimedOut) or not isinstance(now.ended, TimedOut):
        return False
    frames = [set(one.signature.frames) if one.signature is not None else set() for one in (before, now)]
    if all(frames):
        return bool(frames[0] & frames[1])
    return _drop_times(before.ended.where) == _drop_times(now.ended.where)


def _drop_times(where: str) -> str:
    return re.sub(r"\bafter [\d.]+ s(?: of processor time)?", "", where)
