"""Random numbers that a script draws without a seed of its own, made the same in every run.

Only for the question whether they are what makes two runs differ: a script that seeds its generators itself is not
changed by it. Covers what testcases use: ``random``, numpy's two interfaces, torch.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def seed_all(seed: int) -> None:
    """Seed every generator there is, and those that will be made without a seed."""
    import importlib  # here, so that a run without a seed has imported neither
    import random

    random.seed(seed)
    try:
        of_numpy: Any = importlib.import_module("numpy").random
    except ImportError:
        return
    of_numpy.seed(seed)
    of_numpy.default_rng = _with_default(of_numpy.default_rng, seed)
    torch = _imported("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _with_default(make: Callable[..., Any], seed: int) -> Callable[..., Any]:
    def default_rng(given: Any = None) -> Any:
        return make(seed if given is None else given)

    return default_rng


def _imported(name: str) -> Any:
    """Only if the script's first imports brought it: loading it would cost seconds, and change more than seeds."""
    return sys.modules.get(name)
