"""How often something happens, from few runs: the interval in which the rate lies."""

from __future__ import annotations

from math import sqrt

Z = 1.959964
"""Standard deviations on either side that hold 95 % of a normal distribution."""


def compute_interval(times: int, runs: int) -> tuple[float, float]:
    """The 95 % interval of a rate seen ``times`` in ``runs``: Wilson's, which is right for few runs and for 0 and 1.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    ``runs`` of 0 say nothing: (0, 1).
    """
    if runs == 0:
        return 0.0, 1.0
    share, weight = times / runs, Z * Z / runs
    middle = (share + weight / 2) / (1 + weight)
    reach = Z * sqrt(share * (1 - share) / runs + weight / (4 * runs)) / (1 + weight)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def format_rate(times: int, runs: int) -> str:
    """``3 of 10 runs (95 % interval 11 to 60 %)``."""
    low, high = compute_interval(times, runs)
    return f"{times} of {runs} runs (95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
