"""Find the sentences of a report which state that a rejected input is documented or should be accepted. Pure."""

from __future__ import annotations

import re

MAX_TEXT, MAX_SENTENCES, MAX_LENGTH = 20_000, 20, 400
"""Limits of the text that is read, of the sentences, and of each of them."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_DEFENCE = re.compile(
    r"\bdocument(?:ed|ation|s)\b|\bdocs?\b|\bmanual\b|\btutorial\b|--help\b|\bhelp text\b"
    r"|\brelease notes\b|\bchangelog\b|\bshould (?:\w+ )?(?:accept|take|know|support|allow)"
    r"|\bshould (?:\w+ )?be (?:accepted|known|supported|allowed|recogni[sz]ed|legal)"
    r"|\bused to\b|\b(?:was|were) (?:accepted|supported|listed|known|allowed)\b|\bno longer\b|\bany ?more\b",
    re.IGNORECASE,
)
"""Words for what a tool promises, or did before. "The program is valid" adds nothing to "it fails"."""


def list_defences(title: str, prose: str) -> tuple[str, ...]:
    """Return the sentences of title and prose that appeal to a promise of the tool."""
    sentences = _SENTENCE.split(f"{title}\n{prose}"[:MAX_TEXT])
    return tuple(one.strip()[:MAX_LENGTH] for one in sentences if _DEFENCE.search(one))[:MAX_SENTENCES]


def is_defended(name: str, defences: tuple[str, ...]) -> bool:
    """True if one of these sentences names ``name``, with or without the dashes of a flag."""
    bare = name.lstrip("-")
    word = re.compile(rf"(?<![\w-])-{{0,2}}{re.escape(bare)}(?![\w-])")
    return bool(bare) and any(map(word.search, defences))
