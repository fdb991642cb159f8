"""Distinguish right output from wrong output by two builds that a report names. Pure.

A report states that values are wrong on one release and were right on an older one, and quotes neither. If the two
releases print different outputs, the first output is wrong and the second is right. Any other release can then be
compared with both.
"""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.lines.tokens import Line, are_equal_lines, split_lines
from runners.core.protocol import ClaimKind, Exited, Observation, Outcome, Plan, Reason, Variant


def mark_by_named_builds(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Runs that print the output of the reported build are bad, those of the good build are
    good.

    Nothing is marked if the report quotes values, or if runs of one of the two builds differ.
    """
    claim, reported = plan.claim, plan.reported
    good = next((one for one in plan.good if one != reported), None)
    asks = claim.kind is ClaimKind.WRONG_RESULT and not (claim.actual or claim.expected)
    if not asks or reported is None or good is None:
        return tuple(observations)
    wrong, right = (_find_output(plan, observations, one) for one in (reported, good))
    if wrong is None or right is None or are_equal_lines(wrong, right):
        return tuple(observations)

    def mark(seen: Observation) -> Observation:
        printed = _read_run(plan, seen)
        if printed is not None and are_equal_lines(printed, wrong):
            why = f"prints what {reported} prints, which the report is about"
            why += f", and not what {good} prints, which it calls good"
            return judge_again(seen, Outcome.MATCH, Reason.NAMED_BUILD, why)
        if printed is not None and are_equal_lines(printed, right):
            why = f"prints what {good} prints, which the report calls good"
            return judge_again(seen, Outcome.PASS, Reason.NAMED_BUILD, why)
        return seen

    return tuple(map(mark, observations))


def _find_output(plan: Plan, observations: Sequence[Observation], version: str) -> list[Line] | None:
    """Return the output of a build. None if no run reached its end, or if its runs differ."""
    runs = [_read_run(plan, seen) for seen in observations if seen.version == version]
    printed = [one for one in runs if one is not None]
    return printed[0] if printed and all(are_equal_lines(printed[0], one) for one in printed[1:]) else None


def _read_run(plan: Plan, seen: Observation) -> list[Line] | None:
    """Return the output of a complete run of the posted testcase that no other rule has judged."""
    own = seen.variant is Variant.ORIGINAL and seen.device == plan.device
    if not own or seen.outcome is not Outcome.OTHER_FAILURE or seen.ended != Exited(code=0):
        return None
    return split_lines(seen.excerpt) or None
