"""Wait for what another process or thread is about to do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], seconds: float = 20.0) -> bool:
    """Return True as soon as a condition holds, or False if it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True
