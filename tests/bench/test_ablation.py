"""A kind of finding is worth the verdicts that are lost without it."""

from __future__ import annotations

from bench.proving.ablation import tabulate, withhold_each
from bench.proving.trials import PLANTED, list_planted
from runners.core.protocol import FindingKind


def test_a_verdict_that_rests_on_a_finding_is_lost_without_it() -> None:
    """An index out of range is the testcase's fault only while its diagnosis is judged."""
    trial = next(trial for trial in list_planted() if trial.name.startswith("tvm-take-beyond-0@"))
    by_kind = {one.kind: one for one in withhold_each((PLANTED, trial))}
    one = by_kind[FindingKind.OUT_OF_BOUNDS_ACCESS]
    assert one.whole.grade == "right"
    assert one.lost
    assert "| `out-of-bounds-access` | 0 | 0 | 0 | 1 | 1 | 0 |" in tabulate(by_kind.values())
