"""The bound that no search can beat: log2 of the number of builds over the capacity of the channel of its runs."""

from __future__ import annotations

import math

from runners.core.bisection.noisy import Rates


def bound_runs(builds: int, rates: Rates) -> float:
    """The fewest runs, on average and errors aside, that find one of so many builds."""
    return math.log2(builds) / channel_capacity(rates)


def channel_capacity(rates: Rates) -> float:
    """Bits that the most telling run teaches: the mutual information of build and run, at its maximum."""
    low, high = 0.0, 1.0
    for _ in range(60):  # the information is concave in the share of bad builds
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if _information(rates, left) < _information(rates, right) else (low, right)
    return _information(rates, (low + high) / 2)


def _information(rates: Rates, bad: float) -> float:
    fails = bad * rates.bad + (1 - bad) * rates.good
    return _entropy(fails) - bad * _entropy(rates.bad) - (1 - bad) * _entropy(rates.good)


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)
