"""Porting of command lines and MLIR: flags by name, operations and types as whole words outside comments. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runners.rewrite.names import Rename


@dataclass(frozen=True, slots=True)
class NameChange:
    """One name put for another, in a line (1-based) of a file or in a step (1-based) of the testcase."""

    line: int
    old: str
    new: str


class Unportable(Exception):
    """The text uses a name that is gone and that nothing replaces exactly; the message is the name."""


Steps = tuple[tuple[str, ...], ...]


def port_steps(steps: Steps, flags: Sequence[Rename]) -> tuple[Steps, list[NameChange]]:
    """Flags under the name that the release knows; tools, files and values stay.

    Raises:
        Unportable: a flag is gone and has no exact successor.
    """
    known = {flag.old: flag for flag in reversed(flags)}
    changes: list[NameChange] = []
    ported = tuple((*step[:1], *_words(step[1:], known, number, changes)) for number, step in enumerate(steps, 1))
    return ported, changes


def _words(words: Sequence[str], flags: dict[str, Rename], number: int, changes: list[NameChange]) -> list[str]:
    done: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        two = f"{_dashed(word)}={rest[0]}" if rest and word.startswith("-") and "=" not in word else ""
        if two in flags:  # `--flag value`, where the table speaks of this value of the flag
            rest.pop(0)
            done.append(_renamed(two, flags[two], number, changes))
            continue
        name, equals, value = _dashed(word).partition("=")
        flag = flags.get(_dashed(word)) or flags.get(name)
        if flag is None or not word.startswith("-"):
            done.append(word)
        elif flag.old == name:
            done.append(_renamed(name, flag, number, changes) + equals + value)
        else:
            done.append(_renamed(_dashed(word), flag, number, changes))
    return done


def _dashed(word: str) -> str:
    """LLVM's flags go by one dash or two."""
    return "-" + word if word.startswith("-") and not word.startswith("--") else word


def _renamed(text: str, flag: Rename, number: int, changes: list[NameChange]) -> str:
    if flag.new is None:
        raise Unportable(flag.old)
    changes.append(NameChange(line=number, old=text, new=flag.new))
    return flag.new


def port_mlir(text: str, words: Sequence[Rename]) -> tuple[str, list[NameChange]]:
    """Names of operations and types; a name covers what is inside it (``a.b`` also ``a.b.c``)."""
    patterns = [(re.compile(rf"(?<![\w.]){re.escape(w.old)}(?!\w)"), w) for w in words if w.new is not None]
    changes: list[NameChange] = []
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        code, comment = _split_comment(line)
        for pattern, word in patterns:
            assert word.new is not None
            code, times = pattern.subn(word.new.replace("\\", r"\\"), code)
            changes += [NameChange(line=number, old=word.old, new=word.new)] * bool(times)
        lines.append(code + comment)
    return "\n".join(lines), changes


_CODE = re.compile(r'(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/)|")*')


def _split_comment(line: str) -> tuple[str, str]:
    """A line before and from its ``//``, which begins no comment inside a string."""
    found = _CODE.match(line)
    at = found.end() if found else 0
    return line[:at], line[at:]
