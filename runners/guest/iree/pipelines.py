"""Find the passes of a command line. Pure.

A pipeline lists passes: ``builtin.module(func.func(cse),canonicalize{max-iterations=3})``. A flag with a file may add
a pass under another name: ``--iree-preprocessing-pdl-spec-filename=F``.
"""

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
class PipelinePass:
    """One pass. ``text``: the pass with its options. ``pipeline``: the pass inside the surrounding operations."""

    name: str
    text: str
    pipeline: str


def list_written_passes(words: Sequence[str]) -> Iterator[PipelinePass]:
    """Yield each pass of each pipeline, in order, then flags of one word: ``iree-opt`` takes passes as flags."""
    found = 0
    for word in words:
        text = word.partition("=")[2].strip() if word.startswith("-") else word
        if len(text) > MAX_TEXT or not _PIPELINE.match(text):
            continue
        for written in _iterate_passes(text):
            found += 1
            if found > MAX_PASSES:
                return
            yield written
    for word in words:
        flag = _FLAG.match(word)
        if flag is not None and found < MAX_PASSES:
            found += 1
            yield PipelinePass(flag["name"], flag["name"], f"any({flag['name']})")


def parse_pipeline(text: str) -> list[PipelinePass]:
    """Return the passes of a pipeline in order. Empty if the text is not a pipeline."""
    return list(_iterate_passes(text))[:MAX_PASSES] if len(text) <= MAX_TEXT and _PIPELINE.match(text) else []


def truncate_pipeline(text: str, count: int) -> str:
    """Return the pipeline cut to its first ``count`` passes, each inside the surrounding operations."""
    around = text.partition("(")[0]
    inner = [item.pipeline[len(around) + 1 : -1] for item in parse_pipeline(text)[:count]]
    return f"{around}({','.join(inner)})"


_REGISTERED = re.compile(r"^ {6}--(?P<name>[a-z][\w-]*) +- ")
_OPTION = re.compile(r"^ {8}--(?P<name>[a-z][\w-]*)=<string> +- (?P<about>.*)$")
_GIVES_A_FILE = re.compile(r"^--(?P<name>[a-z][\w-]*)=(?P<file>[^\s{}()=,'\"]{1,400})$")
_COMMON = frozenset({"iree", "file", "filename", "path", "pass"})
_WRITES = frozenset({"dump", "export", "generate", "print", "output", "view", "benchmarks"})
"""Words in the names of passes that write their file. Such passes must not be tried."""
SHARED_WORDS = 2
MAX_BY_FLAG = 6


def guess_passes_by_flag(words: Sequence[str], registered: str) -> Iterator[PipelinePass]:
    """Yield the passes that a flag with a file may mean, those with the most common words first.

    Such a pass has an option for a file and shares words with the flag's name. The result is a guess that only a
    failure of the pass confirms. ``registered`` is the output of ``iree-opt --help``, which indents each pass by six
    spaces and its options by eight.
    """
    takes_files = tuple(_list_file_options(registered))
    for word in words:
        flag = _GIVES_A_FILE.match(word)
        if flag is None:
            continue
        flag_words = frozenset(flag["name"].split("-")) - _COMMON
        shared = [
            (len(flag_words.intersection(f"{name}-{option}".split("-"))), name, option)
            for name, option in takes_files
        ]
        likely = [match for match in sorted(shared, reverse=True) if match[0] >= SHARED_WORDS]
        for _, name, option in likely[:MAX_BY_FLAG]:
            text = f"{name}{{{option}={flag['file']}}}"
            yield PipelinePass(name, text, f"builtin.module({text})")


def _list_file_options(registered: str) -> Iterator[tuple[str, str]]:
    """Yield each pass that reads a file, and the option that names the file."""
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


def _iterate_passes(text: str) -> Iterator[PipelinePass]:
    """Yield the passes of a pipeline. Stop at an unbalanced bracket, which the compiler also rejects."""
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
        end = _find_options_end(text, at)
        if end is None:
            return
        itself = text[name.start() : end]
        yield PipelinePass(name[0], itself, "".join(f"{outer}(" for outer in around) + itself + ")" * len(around))
        at = end


def _find_options_end(text: str, at: int) -> int | None:
    """Return the end of options in braces, which may contain braces and parentheses. None if they do not end."""
    if not text.startswith("{", at):
        return at
    depth = 0
    for index in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return None
