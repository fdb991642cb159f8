"""Find the names that the title of a report accuses: passes, operators, functions. Pure.

A title contains other names too, such as those of another framework. The guest finds which of them are the compiler's
(`runners.guest.script.exercise`), because the compiler is installed there.
"""

from __future__ import annotations

import re

MAX_TITLE, MAX_NAMES = 400, 8
_SPAN = re.compile(r"`([^`\n]{1,120})`")
_CALL = re.compile(r"\([^()]{0,100}\)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_CODE = re.compile(r"[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w*[A-Za-z0-9]|\w+\.\w[\w.]*[A-Za-z]\w*")
"""Camel case, underscores, or dots, which a word of a natural language does not have."""
_FAILURE = re.compile(r"(?:Error|Exception|Warning|Fault)$")


def list_accused(title: str) -> tuple[str, ...]:
    """Return the names in a title: a name alone between backticks, or in the form of code.

    Each part of a dotted name counts: the operator of ``fmod.Tensor`` is its first part.
    """
    text = title[:MAX_TITLE]
    spans = (_CALL.sub("", span.strip()) for span in _SPAN.findall(text))
    quoted = [span for span in spans if _NAME.fullmatch(span)]
    plain = [name for name in _NAME.findall(_SPAN.sub(" ", text)) if _CODE.fullmatch(name)]
    parts = (part for name in (*quoted, *plain) if not _FAILURE.search(name) for part in name.split("."))
    return tuple(dict.fromkeys(part for part in parts if len(part) > 2))[:MAX_NAMES]
