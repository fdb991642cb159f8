"""The vocabularies of the toolchains: joined where a text is read before its toolchain is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from runners.core.toolchain.reports import NO_VOCABULARY, CommandLineTools, ReportVocabulary
from runners.toolchains import TOOLCHAINS

OTHER_IMPLEMENTATIONS = r"numpy|np|scipy|(?:py)?torch|jax|tensorflow|tflite|onnx ?runtime|ort|eager"
"""The names of other implementations, with which reports compare values. A pattern without a group."""


def recognize_toolchain(repository: str, text: str) -> str | None:
    """Return the toolchain of ``repository``, else the toolchain with the most marks in ``text``, else None.

    Without any mark, count the toolchains' names. Of two with the same count, return the first by name.
    """
    known = {name: toolchain.REPORTS for name, toolchain in sorted(TOOLCHAINS.items())}
    for name, words in known.items():
        if words.repositories is not None and words.repositories.search(repository):
            return name
    counts = {name: sum(1 for _ in words.marks.finditer(text)) for name, words in known.items() if words.marks}
    if not any(counts.values()):
        counts = {name: len(re.findall(rf"\b{any_of(w.called)}\b", text, re.I)) for name, w in known.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def vocabulary_of(toolchain: str | None) -> ReportVocabulary:
    """Return the vocabulary of a toolchain; `NO_VOCABULARY` for an unknown toolchain."""
    known = TOOLCHAINS.get(toolchain or "")
    return known.REPORTS if known is not None else NO_VOCABULARY


def list_vocabularies() -> Iterator[ReportVocabulary]:
    return (toolchain.REPORTS for toolchain in TOOLCHAINS.values())


def list_tools() -> tuple[CommandLineTools, ...]:
    return tuple(words.tools for words in list_vocabularies() if words.tools is not None)


def join_words(select: Callable[[ReportVocabulary], Iterable[str]]) -> tuple[str, ...]:
    """Return the words that ``select`` takes from each vocabulary, without duplicates."""
    return tuple(dict.fromkeys(word for words in list_vocabularies() for word in select(words)))


def any_of(patterns: Iterable[str]) -> str:
    """Return the source of a regular expression for any of ``patterns``. Without patterns, it never matches."""
    alternatives = "|".join(patterns)
    return f"(?:{alternatives})" if alternatives else "(?!)"


def any_word(select: Callable[[ReportVocabulary], Iterable[str]]) -> str:
    """Return the source of a regular expression for any pattern that ``select`` takes from each vocabulary."""
    return any_of(join_words(select))
