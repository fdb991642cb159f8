"""Port command lines (flags by name) and MLIR (operations and types, as whole words outside comments). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.core.toolchain.rewriting import Idioms
from runners.rewrite.names import Rename


@dataclass(frozen=True, slots=True)
class NameChange:
    """A name replaced by another, in a line (1-based) of a file or in a step (1-based) of the testcase."""

    line: int
    old: str
    new: str
    notation: bool = False
    """True for a change of notation only: the program remains the same, and no other function is called."""
    prints: bool = True
    """False if the program no longer prints what it printed here."""


class Unportable(Exception):
    """The text uses a removed name without an exact replacement. The message is the name."""


Steps = tuple[tuple[str, ...], ...]


def port_steps(
    steps: Steps, files: Mapping[str, str], flags: Sequence[Rename], idioms: Idioms
) -> tuple[Steps, list[NameChange]]:
    """Replace programs and flags by the release's names, and add the flags that it needs.

    Files and values are kept.

    Raises:
        Unportable: a removed flag has no exact successor.
    """
    changes: list[NameChange] = []
    ported = tuple(
        _add_needed_flags(_port_step(step, flags, idioms, number, changes), files, idioms, number, changes)
        for number, step in enumerate(steps, 1)
    )
    return ported, changes


def place_passes(steps: Steps, files: Mapping[str, str], idioms: Idioms, said: str) -> tuple[Steps, list[NameChange]]:
    """Write the passes of each step where the release runs them, as its messages ``said`` require."""
    changes: list[NameChange] = []
    placed = list(steps)
    for number, step in enumerate(steps, 1):
        new = idioms.place_passes(step, files, said) if idioms.place_passes is not None and said else None
        if new is not None:
            changes.append(NameChange(line=number, old=" ".join(step), new=" ".join(new), notation=True))
            placed[number - 1] = new
    return tuple(placed), changes


def _add_needed_flags(
    step: tuple[str, ...], files: Mapping[str, str], idioms: Idioms, number: int, changes: list[NameChange]
) -> tuple[str, ...]:
    needed = idioms.list_needed_flags(step, files) if idioms.list_needed_flags is not None else ()
    if needed:
        program = step[0]
        changes.append(NameChange(line=number, old=program, new=" ".join((program, *needed)), notation=True))
    return (*step[:1], *needed, *step[1:])


def _port_step(
    step: Sequence[str], flags: Sequence[Rename], idioms: Idioms, number: int, changes: list[NameChange]
) -> tuple[str, ...]:
    program = tuple(step[:1])
    renamed = idioms.rename_program(step) if program and idioms.rename_program is not None else None
    if renamed is not None:
        changes.append(NameChange(line=number, old=step[0], new=renamed, notation=True))
        program = (renamed,)
    words = [_port_pipeline(word, idioms, number, changes) for word in _join_pipeline(step[1:])]
    return (*program, *_port_words(words, select_flags(flags, program), number, changes))


def _join_pipeline(words: Sequence[str]) -> list[str]:
    """Write a pipeline and its flag as one word."""
    joined: list[str] = []
    for word in words:
        if joined and _use_two_dashes(joined[-1]) == _PIPELINE:
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined


def _port_pipeline(word: str, idioms: Idioms, number: int, changes: list[NameChange]) -> str:
    name, equals, value = word.partition("=")
    if idioms.port_pipeline is None or not equals or _use_two_dashes(name) != _PIPELINE:
        return word
    new = idioms.port_pipeline(value)
    if new == value:
        return word
    changes.append(NameChange(line=number, old=value, new=new))
    return f"{name}={new}"


def select_flags(flags: Sequence[Rename], program: Sequence[str]) -> dict[str, Rename]:
    """Return the flags of a program by name. A flag of all programs has an empty ``of``."""
    return {flag.old: flag for flag in reversed(flags) if not flag.of or flag.of in program}


_LONGEST_CHAIN = 4
"""Releases may rename a flag more than once."""


def _port_words(words: Sequence[str], flags: dict[str, Rename], number: int, changes: list[NameChange]) -> list[str]:
    done: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        two = f"{_use_two_dashes(word)}={rest[0]}" if rest and word.startswith("-") and "=" not in word else ""
        if two in flags:  # `--flag value`, if the table has an entry for this value of the flag
            rest.pop(0)
            word = two
        word = port_flag(word, flags, number, changes)
        done += [word] if word else []
    return done


def port_flag(word: str, flags: dict[str, Rename], number: int, changes: list[NameChange]) -> str:
    """Return a word of a command line after all renames. Empty for a flag that the release does not need.

    Raises:
        Unportable: a removed flag has no exact successor.
    """
    for _ in range(_LONGEST_CHAIN):
        following = _port_word(word, flags, number, changes)
        if following == word:
            break
        word = following
    return word


def _port_word(word: str, flags: dict[str, Rename], number: int, changes: list[NameChange]) -> str:
    """Return the word after one rename. Empty for a flag that the release does not need."""
    if not word.startswith("-"):
        return word
    whole = _use_two_dashes(word)
    name, equals, value = whole.partition("=")
    if name == _PIPELINE:
        return name + equals + _PASS.sub(lambda found: _port_pass(found[0], flags, number, changes), value)
    if (flag := flags.get(whole)) is not None and whole != name:
        return _apply_rename(whole, flag, number, changes)
    if (flag := flags.get(name)) is None:
        return word
    new = _apply_rename(name, flag, number, changes)
    return new + equals + value if new else ""


_PIPELINE = "--pass-pipeline"
"""The flag whose value names passes. Each pass is also a flag that runs it alone."""
_PASS = re.compile(r"(?<![\w.=-])[a-z][\w-]*(?![\w=.])")


def _port_pass(name: str, flags: dict[str, Rename], number: int, changes: list[NameChange]) -> str:
    flag = flags.get(f"--{name}")
    return name if flag is None else _apply_rename(name, flag, number, changes).removeprefix("--")


def _use_two_dashes(word: str) -> str:
    """Write a flag with two dashes. LLVM accepts one or two."""
    return "-" + word if word.startswith("-") and not word.startswith("--") else word


def _apply_rename(text: str, flag: Rename, number: int, changes: list[NameChange]) -> str:
    if flag.new is None:
        raise Unportable(flag.old)
    changes.append(NameChange(line=number, old=text, new=flag.new, notation=True))
    return flag.new


def port_mlir(text: str, words: Sequence[Rename], idioms: Idioms) -> tuple[str, list[NameChange]]:
    """Write MLIR in the notations and names of a release."""
    if idioms.port_mlir is None:
        return port_words(text, words)
    written, notations = idioms.port_mlir(text)
    ported, changes = port_words(written, words)
    spelled = (NameChange(line=one.line, old=one.old, new=one.new, notation=True) for one in notations)
    return ported, [*spelled, *changes]


def port_words(text: str, words: Sequence[Rename]) -> tuple[str, list[NameChange]]:
    """Replace names of operations and types. A name includes the names inside it (``a.b`` also ``a.b.c``)."""
    patterns = [(re.compile(rf"(?<![\w.]){re.escape(w.old)}(?!\w)"), w) for w in words if w.new is not None]
    changes: list[NameChange] = []
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        code, comment = _split_comment(line)
        for pattern, word in patterns:
            assert word.new is not None
            code, times = pattern.subn(word.new.replace("\\", r"\\"), code)
            changes += [NameChange(line=number, old=word.old, new=word.new, notation=True)] * bool(times)
        lines.append(code + comment)
    return "\n".join(lines), changes


_CODE = re.compile(r'(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/)|")*')


def _split_comment(line: str) -> tuple[str, str]:
    """Split a line before its ``//``. Inside a string, ``//`` does not begin a comment."""
    found = _CODE.match(line)
    at = found.end() if found else 0
    return line[:at], line[at:]
