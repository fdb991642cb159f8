"""The words of the toolchains, joined where a text is read before its toolchain is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from runners.core.toolchain.command_line import CommandLineTools
from runners.core.toolchain.reports import NO_VOCABULARY, ReportVocabulary
from runners.toolchains import TOOLCHAINS


def vocabulary_of(toolchain: str | None) -> ReportVocabulary:
    """The words of one toolchain; those of none for a toolchain that is unknown."""
    known = TOOLCHAINS.get(toolchain or "")
    return known.REPORTS if known is not None else NO_VOCABULARY


def vocabularies() -> Iterator[ReportVocabulary]:
    return (toolchain.REPORTS for toolchain in TOOLCHAINS.values())


def all_tools() -> tuple[CommandLineTools, ...]:
    return tuple(words.tools for words in vocabularies() if words.tools is not None)


def join_words(select: Callable[[ReportVocabulary], Iterable[str]]) -> tuple[str, ...]:
    """The words that ``select`` takes from each vocabulary, each once."""
    return tuple(dict.fromkeys(word for words in vocabularies() for word in select(words)))


def any_of(patterns: Iterable[str]) -> str:
    """The source of a regular expression for any of ``patterns``; it matches nothing when there are none."""
    alternatives = "|".join(patterns)
    return f"(?:{alternatives})" if alternatives else "(?!)"


def any_word(select: Callable[[ReportVocabulary], Iterable[str]]) -> str:
    """The source of a regular expression for any of the patterns that ``select`` takes from each vocabulary."""
    return any_of(join_words(select))
