"""The passes that a command line writes: ``builtin.module(func.func(cse),canonicalize{max-iterations=3})``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_PASSES = 200
MAX_DEPTH = 20
MAX_TEXT = 4_000

_NAME = re.compile(r"[\w.-]+")
_PIPELINE = re.compile(r"^[\w.]+\(.*\)$", re.S)
_FLAG = re.compile(r"^--?(?P<name>[a-z][\w-]+)$")


@dataclass(frozen=True)
class Written:
    """One pass. ``text``: itself with its options, as written; ``pipeline``: it alone, in what is around it."""

    name: str
    text: str
    pipeline: str


def passes_written(words: Sequence[str]) -> Iterator[Written]:
    """Each pass of each pipeline that a flag gives, in order; then flags of one word, which ``iree-opt`` takes so."""
    found = 0
    for word in words:
        text = word.partition("=")[2].strip() if word.startswith("-") else word
        if len(text) > MAX_TEXT or not _PIPELINE.match(text):
            continue
        for written in _passes(text):
            found += 1
            if found > MAX_PASSES:
                return
            yield written
    for word in words:
        flag = _FLAG.match(word)
        if flag is not None and found < MAX_PASSES:
            found += 1
            yield Written(flag["name"], flag["name"], f"any({flag['name']})")


def _passes(text: str) -> Iterator[Written]:
    """Nothing of a text that does not close what it opens: the compiler does not read it either."""
    around: list[str] = []
    at = 0
    while at < len(text):
        name = _NAME.match(text, at)
        if name is None:
            if text[at] == ")" and around:
                around.pop()
            elif text[at] not in ", \n\t":
                return
            at += 1
            continue
        at = name.end()
        if text.startswith("(", at):
            around.append(name[0])
            at += 1
            if len(around) > MAX_DEPTH:
                return
            continue
        end = _options_end(text, at)
        if end is None:
            return
        itself = text[name.start() : end]
        yield Written(name[0], itself, "".join(f"{one}(" for one in around) + itself + ")" * len(around))
        at = end


def _options_end(text: str, at: int) -> int | None:
    """Where options in braces end; they may hold braces and parentheses themselves."""
    if not text.startswith("{", at):
        return at
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return None
