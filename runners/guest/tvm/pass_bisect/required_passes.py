"""Find the passes that a program requires, in few runs of the program. Pure.

Leaving out each pass alone would take sixty runs for a program of sixty passes. Most of these runs would omit a pass
that is not required. Such runs take longest, because a run without a required pass ends early. So many passes are
left out together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence


def find_required_passes(
    names: Sequence[str], likely: Collection[str], breaks: Callable[[frozenset[str]], bool]
) -> frozenset[str]:
    """Return a minimal set of passes with which the program works.

    ``breaks`` runs the program without the given passes. ``likely`` is the first guess. A good guess saves runs; a
    wrong guess costs some. A pass is kept only if a run without it breaks. If leaving out more passes does not always
    break more, the result still works, but may not be minimal.
    """
    everything = frozenset(names)
    kept = {name for name in names if name in likely}
    harmless = 0
    while breaks(everything - kept):
        harmless = _bisect_next(names, kept, harmless, breaks)
        kept.add(names[harmless - 1])
    for name in names:
        if name in kept and not breaks((everything - kept) | {name}):
            kept.remove(name)
    return frozenset(kept)


def _bisect_next(
    names: Sequence[str], kept: Collection[str], harmless: int, breaks: Callable[[frozenset[str]], bool]
) -> int:
    """Return the least number, above ``harmless``, of leading passes whose omission breaks the program."""
    low, high = harmless, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        if breaks(frozenset(names[:middle]).difference(kept)):
            high = middle
        else:
            low = middle
    return high
