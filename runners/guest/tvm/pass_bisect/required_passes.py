"""Which of many passes a program cannot do without, in few runs of it. Pure.

Tried one after another, each alone, a program of sixty passes is run sixty times, mostly for passes that nobody
misses, which are the runs that take longest: what misses a pass ends early. So they are left out together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence


def must_run(
    names: Sequence[str], likely: Collection[str], breaks: Callable[[frozenset[str]], bool]
) -> frozenset[str]:
    """Names that suffice, and of which none can be spared.

    ``breaks`` runs the program without the names that it is given. ``likely`` is where to begin: a good guess saves
    runs, and one that is wrong costs some, but no name is kept unless a run without it breaks. Where leaving out more
    does not always break more, what is found suffices still; the fewest they may then not be.
    """
    everything = frozenset(names)
    kept = {name for name in names if name in likely}
    harmless = 0
    while breaks(everything - kept):
        harmless = _next(names, kept, harmless, breaks)
        kept.add(names[harmless - 1])
    for name in names:
        if name in kept and not breaks((everything - kept) | {name}):
            kept.remove(name)
    return frozenset(kept)


def _next(
    names: Sequence[str], kept: Collection[str], harmless: int, breaks: Callable[[frozenset[str]], bool]
) -> int:
    """How many of the first names break it, without the last of them they do not; bisected above ``harmless``."""
    low, high = harmless, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        if breaks(frozenset(names[:middle]).difference(kept)):
            high = middle
        else:
            low = middle
    return high
