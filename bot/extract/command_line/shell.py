"""Command lines of a report → argv lists. A shell is never started, and its syntax only read where it is plain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bot.extract.vocabulary import all_tools, any_of

MAX_COMMAND_CHARS = 32_000

TOOLS = frozenset({"python", *(name for tools in all_tools() for name in tools.programs)})
"""Programs that may become steps. Everything else in a report's command lines is left out, and said so."""

TOOL_PREFIX = any_of(re.escape(tools.prefix) for tools in all_tools())
"""How the names of the compilers' programs begin, as the source of a regular expression."""
PROMPT = (
    r"(?:\([\w.-]{1,40}\) ?)?"  # a virtual environment
    r"(?:[\w.-]{1,60}@[\w.-]{1,60}:[^$#\n]{0,80}[$#]|\[[\w.-]{1,60}@[\w.-]{1,60} [^\]\n]{1,60}\][$#]"
    rf"|[❯➜][^\n]{{0,60}}? (?=\S*(?:{TOOL_PREFIX}|python))|(?:PS )?[A-Za-z]:\\[^>\n]{{0,200}}>|[$❯➜]|%(?= )) ?"
)
"""What stands before a command in a terminal: user and host, a directory, PowerShell's, or a plain ``$``."""
_LEAD = re.compile(rf"^\s*(?:{PROMPT}|> |# ?|//+ ?(?:RUN: ?)?|[-*] |\d{{1,2}}[.)] )?")
_WINDOWS_PATH = re.compile(r"(?:^|[\s=@'\"])(?:[A-Za-z]:|\.{1,2})\\\w")
_WRAPPERS = {"time", "sudo", "catchsegv", "env", "nohup", "strace", "valgrind", "numactl", "rlwrap"}
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w{0,60}=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program call. ``argv[0]`` is the bare tool name; ``written`` is how the report spells the program."""

    argv: tuple[str, ...]
    written: str
    stdin: str = ""
    """File redirected in; ``-`` when the program before it in a pipe feeds it."""
    stdout: str = ""
    """File redirected to; ``|`` when it feeds the next program."""
    heredoc: str | None = None
    ignored: tuple[str, ...] = field(default=())
    """Words around it that were not taken over: environment variables, wrappers."""


def logical_lines(text: str) -> Iterator[str]:
    """Lines with backslash continuations (and rows of flags whose backslash was forgotten) joined."""
    held = ""
    for row in text.split("\n"):
        bare = row.strip() if held else row
        if held and bare.startswith("//"):
            bare = bare[2:].strip()
        if held and not held.endswith("\\") and not _FLAG_ROW.match(bare):
            yield held
            held, bare = "", row
        held = f"{held.removesuffix(chr(92)).rstrip()} {bare.strip()}".strip() if held else bare.strip()
        held = held.rstrip()
        if not held:
            continue
        if len(held) > MAX_COMMAND_CHARS:
            yield held[:MAX_COMMAND_CHARS]
            held = ""
    if held:
        yield held.removesuffix("\\")


_FLAG_ROW = re.compile(r"--?[A-Za-z][\w-]*(?:[= ]|$)|(?:-o|\||>) ?\S")


def parse_commands(text: str) -> tuple[list[Command], list[str]]:
    """The calls of known tools in ``text``, in order, and the first words of commands that were left out."""
    found: list[Command] = []
    ignored: list[str] = []
    for line in (one for whole in logical_lines(text) for one in _unrolled(whole)):
        stripped = _LEAD.sub("", line, count=1)
        fed = False
        if _WINDOWS_PATH.search(stripped):
            stripped = stripped.replace("\\", "/")
        for words in _simple_commands(stripped):
            command = _command(words, fed)
            if command is None:
                ignored += words[:1]
                if fed:  # piped into a program that is left out (FileCheck): its output is not needed
                    found[-1] = replace(found[-1], stdout="")
                fed = False
                continue
            found.append(command)
            fed = command.stdout == "|"
    return found, ignored


_LOOP = re.compile(
    r"^\s*(?:\$ )?for (?P<name>\w{1,40}) in (?P<values>[\w.,:/ -]{1,400}); ?do (?P<body>.{1,4000}?); ?done\s*$"
)
MAX_ROUNDS = 8


def _unrolled(line: str) -> list[str]:
    """``for d in hip vulkan; do run --device=$d; done`` as its rounds: plain substitution, nothing else."""
    loop = _LOOP.match(line)
    if loop is None:
        return [line]
    name = re.compile(rf"\$(?:{loop['name']}\b|\{{{loop['name']}\}})")
    return [name.sub(value, loop["body"]) for value in loop["values"].split()[:MAX_ROUNDS]]


_WORD = re.compile(
    r"\s+|(\|\||&&|\||;(?=\s|$)|(?<=\s)&(?=\s|$)|2>&1|&>|2>>?|>>?|<<-?|<(?![\w ./-]{1,60}>))"
    r"|#(?=\s)"
)


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each simple command; redirections and pipes stay in as the words ``>``, ``<`` and ``|``."""
    words: list[str] = []
    for word, operator in _words(line):
        if operator in ("|", "||", "&&", ";", "&"):
            if operator == "|":
                words.append("|")
            if words:
                yield words
            words = []
        else:
            words.append(f"\0{word}" if operator else word)
    if words:
        yield words


def _words(line: str) -> Iterator[tuple[str, str]]:
    """(word, operator): one of the two is the text. Quotes and backslashes as in a shell; nothing is expanded."""
    at, word, quoted = 0, "", False
    while at < len(line):
        found = _WORD.match(line, at)
        if found is not None:
            if found[0].startswith("#"):
                if not word:
                    break
                word, at = word + "#", at + 1
                continue
            if word or quoted:
                yield word, ""
            word, quoted = "", False
            if found[1]:
                yield found[1], found[1]
            at = found.end()
            continue
        char = line[at]
        if char == "<" and (place := _PLACE.match(line, at)):
            word, at = word + place[0], place.end()
        elif char in "'\"":
            end = line.find(char, at + 1)
            if end < 0:
                word, at = word + line[at + 1 :], len(line)
                continue
            inner = line[at + 1 : end]
            word, at, quoted = word + inner, end + 1, True
        elif char == "\\" and at + 1 < len(line):
            word, at = word + line[at + 1], at + 2
        else:
            plain = _PLAIN.match(line, at)
            end = plain.end() if plain else at + 1
            word, at = word + line[at:end], end
    if word or quoted:
        yield word, ""


_PLACE = re.compile(r"<[\w ./-]{1,60}>")
_PLAIN = re.compile(r"[^\s|;&<>'\"\\#]+")


def _command(words: list[str], fed: bool) -> Command | None:
    ignored: list[str] = []
    rest = list(words)
    while rest and (
        _ASSIGNMENT.match(rest[0]) or rest[0] in _WRAPPERS or rest[0] in ("gdb", "lldb", "rocgdb", "--args", "--")
    ):
        ignored.append(rest.pop(0))
    if not rest:
        return None
    tool = _tool(rest[0])
    if tool is None:
        return None
    argv, stdin, stdout = [tool], "-" if fed else "", ""
    at = 1
    while at < len(rest):
        word = rest[at]
        if word == "|":
            stdout = "|"
        elif word.startswith("\0"):
            operator, target = word[1:], rest[at + 1] if at + 1 < len(rest) else ""
            if operator in (">", ">>", "&>"):
                stdout = target
            elif operator == "<":
                stdin = target
            at += 0 if operator == "2>&1" else 1
        else:
            argv.append(word)
        at += 1
    return Command(argv=tuple(argv), written=rest[0], stdin=stdin, stdout=stdout, ignored=tuple(ignored))


def _tool(word: str) -> str | None:
    """The bare name of a known program: build-tree paths, ``.exe`` and Python's version number cut off."""
    name = re.split(r"[\\/]", word)[-1].removesuffix(".exe")
    if re.fullmatch(r"python(?:3(?:\.\d{1,2})?)?", name):
        return "python"
    return name if name in TOOLS else None
