"""Seed the random generators of a script, so that every run draws the same numbers.

A diagnosis uses this to decide whether random numbers make two runs differ. A script that seeds its own generators
runs unchanged. The module covers the generators that testcases use: ``random``, both interfaces of numpy, and torch.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def seed_generators(seed: int) -> None:
    """Seed the existing generators, and those that are created later without a seed."""
    import importlib  # lazy: a run without a seed must import neither module
    import random

    random.seed(seed)
    try:
        numpy_random: Any = importlib.import_module("numpy").random
    except ImportError:
        return
    numpy_random.seed(seed)
    numpy_random.default_rng = _add_default_seed(numpy_random.default_rng, seed)
    # Only if the script's first imports loaded it, because loading torch takes seconds and changes more than seeds.
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _add_default_seed(make: Callable[..., Any], seed: int) -> Callable[..., Any]:
    def default_rng(own_seed: Any = None) -> Any:
        return make(seed if own_seed is None else own_seed)

    return default_rng
