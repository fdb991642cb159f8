"""Judge runs by all runs together, if no comparison with the claim has judged them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.failure.printed.named_builds import mark_by_named_builds
from runners.core.failure.printed.programs.changed_since import mark_by_change
from runners.core.failure.printed.programs.told_parts import mark_by_told_parts
from runners.core.failure.printed.programs.unchanged import mark_by_input
from runners.core.failure.printed.shown_values import mark_by_shown_values
from runners.core.protocol import Observation, Plan


def mark_printed(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs as bad or good by their output. The strongest evidence comes first."""
    marked: Sequence[Observation] = observations
    for mark in (mark_by_named_builds, mark_by_shown_values, mark_by_told_parts, mark_by_input, mark_by_change):
        marked = mark(plan, marked)
    return tuple(marked)
