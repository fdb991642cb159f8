"""Which toolchain a text is about."""

from __future__ import annotations

import re

from bot.extract.vocabulary import any_of
from runners.toolchains import TOOLCHAINS


def recognise_toolchain(repository: str, text: str) -> str | None:
    """The toolchain of the repository, else the one that the text names most; None when it names none.

    Of two that are named as often, the first by name.
    """
    known = {name: toolchain.REPORTS for name, toolchain in sorted(TOOLCHAINS.items())}
    for name, words in known.items():
        if words.repositories is not None and words.repositories.search(repository):
            return name
    counts = {name: sum(1 for _ in words.marks.finditer(text)) for name, words in known.items() if words.marks}
    if not any(counts.values()):
        counts = {name: _count_names(words.called, text) for name, words in known.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _count_names(called: tuple[str, ...], text: str) -> int:
    return len(re.findall(rf"\b{any_of(called)}\b", text, re.I))
