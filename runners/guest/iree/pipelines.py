"""The passes that a command line writes: ``builtin.module(func.func(cse),canonicalize{max-iterations=3})``; and those
that a flag of another name adds, with a file to read: ``--iree-preprocessing-pdl-spec-filename=F``. Pure."""

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


def passes_of(text: str) -> list[Written]:
    """Those of one pipeline, in order; none where the text is no pipeline."""
    return list(_passes(text))[:MAX_PASSES] if len(text) <= MAX_TEXT and _PIPELINE.match(text) else []


def first_passes(text: str, count: int) -> str:
    """The pipeline with the first ``count`` of its passes alone, each in what is around it."""
    around = text.partition("(")[0]
    inner = [one.pipeline[len(around) + 1 : -1] for one in passes_of(text)[:count]]
    return f"{around}({','.join(inner)})"


_REGISTERED = re.compile(r"^ {6}--(?P<name>[a-z][\w-]*) +- ")
_OPTION = re.compile(r"^ {8}--(?P<name>[a-z][\w-]*)=<string> +- (?P<about>.*)$")
_GIVES_A_FILE = re.compile(r"^--(?P<name>[a-z][\w-]*)=(?P<file>[^\s{}()=,'\"]{1,400})$")
_COMMON = frozenset({"iree", "file", "filename", "path", "pass"})
_WRITES = frozenset({"dump", "export", "generate", "print", "output", "view", "benchmarks"})
"""Words of passes that write the file that they are given: none to be tried."""
SHARED_WORDS = 2
MAX_BY_FLAG = 6


def passes_by_flag(words: Sequence[str], registered: str) -> Iterator[Written]:
    """Passes that a flag with a file may stand for: with an option that takes one, and words of the flag's name.

    ``registered`` is what ``iree-opt --help`` prints: each pass with six spaces before it, its options with eight.
    Those of most words in common first. A guess: whether it is such a pass, its failure shows.
    """
    takes_files = tuple(_with_file_options(registered))
    for word in words:
        flag = _GIVES_A_FILE.match(word)
        if flag is None:
            continue
        asked = frozenset(flag["name"].split("-")) - _COMMON
        shared = [
            (len(asked.intersection(f"{name}-{option}".split("-"))), name, option) for name, option in takes_files
        ]
        likely = [one for one in sorted(shared, reverse=True) if one[0] >= SHARED_WORDS]
        for _, name, option in likely[:MAX_BY_FLAG]:
            text = f"{name}{{{option}={flag['file']}}}"
            yield Written(name, text, f"builtin.module({text})")


def _with_file_options(registered: str) -> Iterator[tuple[str, str]]:
    """Each pass that reads a file, and the option that names it."""
    name = ""
    for line in registered.splitlines():
        found = _REGISTERED.match(line)
        if found is not None:
            name = found["name"]
        elif not line.startswith(" " * 8):
            name = ""
        option = _OPTION.match(line)
        if not name or option is None or _WRITES.intersection(f"{name}-{option['name']}".split("-")):
            continue
        if re.search("file|path", option["name"] + option["about"], re.IGNORECASE):
            yield name, option["name"]


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
