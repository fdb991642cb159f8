"""Estimate from a few runs how often a build fails. Pure."""

from __future__ import annotations

from math import ceil, log, sqrt

Z = 1.959964
"""Standard deviations on either side that contain 95 % of a normal distribution."""


def compute_interval(times: int, runs: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of the rate ``times / runs``; (0, 1) without runs.

    Wilson's interval stays correct for few runs and for rates of 0 and 1. Source: E. B. Wilson, "Probable inference,
    the law of succession, and statistical inference", JASA 22 (1927).
    """
    if runs == 0:
        return 0.0, 1.0
    share, weight = times / runs, Z * Z / runs
    middle = (share + weight / 2) / (1 + weight)
    reach = Z * sqrt(share * (1 - share) / runs + weight / (4 * runs)) / (1 + weight)
    return max(0.0, middle - reach), min(1.0, middle + reach)


MOST_LUCK = 0.01
"""Highest accepted probability that clean runs are luck, given the failure rate of another build."""


def count_clean_runs(times: int, runs: int) -> int:
    """Return the number of clean runs that exclude luck, if another build fails in ``times`` of ``runs`` runs."""
    assert 0 < times < runs
    return ceil(log(MOST_LUCK) / log(1 - times / runs))


MIN_RUNS = 5
"""Fewest runs whose rate gets an interval: that of 1 of 2 runs, 9 to 91 %, only looks like knowledge."""


def format_rate(times: int, runs: int) -> str:
    """Return ``3 of 10 runs (95 % interval 11 to 60 %)``; without an interval for runs that are too few for one."""
    if runs < MIN_RUNS:
        return f"{times} of {runs} runs"
    low, high = compute_interval(times, runs)
    return f"{times} of {runs} runs (95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
