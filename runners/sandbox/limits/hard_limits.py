"""Cap resource limits at our own hard limits. Raising a hard limit needs a capability that not every root has."""

from __future__ import annotations

import resource


def cap_limit(kind: int, wanted: int) -> int:
    """Return ``wanted``, or our own hard limit of this kind (``resource.RLIMIT_…``) if it is lower."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
