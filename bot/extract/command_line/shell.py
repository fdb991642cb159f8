"""Parse command lines into argv lists. No shell is ever started, and only plain shell syntax is understood."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.extract.vocabulary import any_of, list_tools

MAX_COMMAND_CHARS = 32_000
MAX_ROUNDS = 8
"""Rounds of a loop that are unrolled."""

TOOLS = frozenset({"python", *(name for tools in list_tools() for name in tools.programs)})
"""Programs that may become steps. All others are left out, and a repair records this."""
STAND_INS = {name: program for tools in list_tools() for name, program in tools.stand_ins.items()}
"""Program of another project → the compiler's program that replaces it."""
TOOL_PREFIX = any_of(re.escape(tools.prefix) for tools in list_tools())
"""The source of a regular expression for the beginning of the compilers' program names."""
PROMPT = (
    r"(?:\([\w.-]{1,40}\) ?)?"  # a virtual environment
    r"(?:[\w.-]{1,60}@[\w.-]{1,60}:[^$#\n]{0,80}[$#]|\[[\w.-]{1,60}@[\w.-]{1,60} [^\]\n]{1,60}\][$#]"
    r"|(?:[\w.-]{1,60}@[\w.-]{1,60} )?[~/][\w./~+-]{0,80} ?[$%#](?= )"
    rf"|[❯➜][^\n]{{0,60}}? (?=\S*(?:{TOOL_PREFIX}|python))|(?:PS )?[A-Za-z]:\\[^>\n]{{0,200}}>|[$❯➜]|%(?= )) ?"
)
"""The source of a regular expression for a prompt: user and host, a directory, PowerShell's, or a plain ``$``."""
PROMPTED_LINE = re.compile(rf"^\s{{0,8}}{PROMPT}(?<= )")
_PROGRAMS = any_of(
    re.escape(name) for t in list_tools() for name in sorted({*t.programs, *t.other_programs, *t.stand_ins})
)
_PROGRAM_WITH_ARGUMENT = (
    rf"(?:{TOOL_PREFIX})[a-z][a-z0-9-]{{1,40}}(?= +(?:--?[a-z]|[\w./-]{{1,200}}\.[a-z]\w{{1,8}}(?:\s|$)))"
)
"""A program that no release has. Without a flag or a file after it, such a name may begin a sentence."""
_WRAPPERS_WITH_WORDS = (
    "timeout",
    "nice",
    "ionice",
    "taskset",
    "numactl",
    "stdbuf",
    "valgrind",
    "strace",
    "perf",
    "rr",
)
MAX_WRAPPER_WORDS = 6
_WRAPPED = rf"(?:{any_of(_WRAPPERS_WITH_WORDS)}(?: [\w=.:,/+-]{{1,60}}){{0,{MAX_WRAPPER_WORDS}}}? )?"
"""A program that runs the command after its own words: ``timeout -k 5 60``."""
_COMMAND = re.compile(
    rf"^\s{{0,8}}(?:{PROMPT}|> ?|# ?|// ?(?:RUN: ?)?)?(?:time |sudo |gdb --args |[A-Z_]{{2,40}}=\S{{0,200}} )*"
    rf"{_WRAPPED}"
    r"(?:[\w.:~<>{}$\\/-]{0,200}[\\/])?"
    rf"(?:(?:{_PROGRAMS})(?:\.exe)?\b(?![.:])|{_PROGRAM_WITH_ARGUMENT}"
    r"|python[23.]*\s+(?:-\w )?[\w./\\:-]+\.py\b"
    r"|python[23.]* (?:-\w )?-c +['\"]|python[23.]* -m \w|pytest )"
)


def is_command(line: str) -> bool:
    """True if ``line`` calls a program of a compiler, or a Python script. A name with its version is not a call."""
    return _COMMAND.match(line[:2000]) is not None and not names_package(line)


def names_package(line: str) -> bool:
    """True for a row of a list of packages: ``iree-base-compiler  3.6.0``, ``numpy==2.4.6``.

    A version has three parts: ``loss 0.25`` is a printed value.
    """
    return _PACKAGE.fullmatch(line[:2000]) is not None


_PACKAGE = re.compile(r"\s{0,8}[A-Za-z][\w.-]{0,60}(?:\s{1,40}|\s?(?:==?|:|@)\s?)v?\d{1,4}(?:\.\w{1,20}){2,4}\s{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One program call. ``argv[0]`` is the bare tool name; ``written`` is the program as the report spells it."""

    argv: tuple[str, ...]
    written: str
    stdin: str = ""
    """The file of the redirected input; ``-`` for the output of the previous program in a pipe."""
    stdout: str = ""
    """The file redirected to; ``|`` for the next program in a pipe."""
    filters: str = ""
    """The filters behind the program, as shell text: ``2>&1 | grep x | head -1``. They never run as
    programs. The comment shows them with the command, so that a reader gets the output that the report quotes."""
    ignored: tuple[str, ...] = ()
    """Words before the program that are left out: environment variables, wrappers."""
    cut: str = ""
    """How the call breaks off at the end of the description: a clause about "it". Empty for a complete call."""

    @property
    def names_input(self) -> bool:
        """True if a word of the call is not a flag."""
        return any(not word.startswith("-") for word in self.argv[1:])


def parse_commands(text: str) -> tuple[list[ToolCall], list[str]]:
    """Return the calls of known tools in ``text``, in order, and the first words of all other commands."""
    calls: list[ToolCall] = []
    ignored: list[str] = []
    text = _LOOP_OF_ROWS.sub(_unroll_rows, _INNER_CONTINUATION.sub("", text))
    for line in (single for joined in _join_lines(text) for single in _unroll_loop(joined)):
        stripped = _LEAD.sub("", line, count=1)
        piped = filtered = False
        if _WINDOWS_PATH.search(stripped):
            stripped = stripped.replace("\\", "/")
        for words in _split_commands(stripped):
            call = _read_call(words, piped)
            if call is None:
                ignored += words[:1]
                if piped:  # into a program that is left out (FileCheck): the output is not needed
                    calls[-1] = replace(calls[-1], stdout="")
                if piped or filtered:
                    calls[-1] = replace(calls[-1], filters=_add_filter(calls[-1].filters, words))
                filtered = bool((piped or filtered) and calls[-1].filters and words[-1] == "|")
                piped = False
                continue
            calls.append(call)
            piped, filtered = call.stdout == "|", False
    return calls, ignored


_INNER_CONTINUATION = re.compile(r"(?<=[ \t])\\[ \t]+(?=\S)")
"""The former end of a row: Markdown joins the rows of a code span."""
_LEAD = re.compile(rf"^\s*(?:{PROMPT}|> |# ?|//+ ?(?:RUN: ?)?|[-*] |\d{{1,2}}[.)] )?")
_WINDOWS_PATH = re.compile(r"(?:^|[\s=@'\"])(?:[A-Za-z]:|\.{1,2})\\\w")
_FLAG_ROW = re.compile(r"--?[A-Za-z][\w-]*(?:[= ]|$)|(?:-o|\||>) ?\S")


def _join_lines(text: str) -> Iterator[str]:
    """Yield lines with their continuations joined: after a backslash, and rows of flags without a backslash above."""
    held = ""
    for row in text.split("\n"):
        bare = row.strip() if held else row
        if held and breaks_in_path(held, bare):
            held = f"{held}{bare}".rstrip()[:MAX_COMMAND_CHARS]
            continue
        if held and bare.startswith("//"):
            bare = bare[2:].strip()
        if held and not held.endswith("\\") and not _FLAG_ROW.match(bare):
            yield held
            held, bare = "", row
        held = f"{held.removesuffix(chr(92)).rstrip()} {bare.strip()}".strip() if held else bare.strip()
        held = held.rstrip()
        if len(held) > MAX_COMMAND_CHARS:
            yield held[:MAX_COMMAND_CHARS]
            held = ""
    if held:
        yield held.removesuffix("\\")


def breaks_in_path(row: str, below: str) -> bool:
    """True if a terminal broke a long row inside a path: its end is a slash, and a name begins the row below."""
    return len(row) >= TERMINAL_COLUMNS and bool(_OPEN_PATH.search(row[-200:])) and bool(_REST_OF_PATH.match(below))


TERMINAL_COLUMNS = 79
_OPEN_PATH = re.compile(r"[\w.-]/$")
_REST_OF_PATH = re.compile(r"[\w+-][\w.+-]{0,100}(?:/|\.\w{1,8}(?:\s|$))")


_LOOP = re.compile(
    r"^\s*(?:\$ )?for (?P<name>\w{1,40}) in (?P<values>[\w.,:/ -]{1,400}); ?(?:do )?(?P<body>.{1,4000}?)"
    r"; ?(?:done|end)\s*$"
)


def _unroll_loop(line: str) -> list[str]:
    """Return the rounds of ``for d in hip vulkan; do run --device=$d; done``. Only the loop variable is replaced.

    The shell fish writes no ``do``, and ``end`` for ``done``.
    """
    loop = _LOOP.match(line)
    if loop is None:
        return [line]
    name = re.compile(rf"\$(?:{loop['name']}\b|\{{{loop['name']}\}})")
    return [name.sub(value, loop["body"]) for value in loop["values"].split()[:MAX_ROUNDS]]


_LOOP_OF_ROWS = re.compile(
    r"^[ \t]{0,8}(?:\$ )?for (?P<name>\w{1,40}) in (?P<values>[\w.,:/ \t-]{1,400})(?:;[ \t]*|\n[ \t]*)do[ \t]*\n"
    r"(?P<body>(?:(?![ \t]*(?:done\b|for\b))[^\n]{0,2000}\n){1,60})[ \t]*done\b[^\n]{0,200}$",
    re.M,
)


def _unroll_rows(loop: re.Match[str]) -> str:
    """Return the rounds of a loop in several rows, one below the other."""
    name = re.compile(rf"\$(?:{loop['name']}\b|\{{{loop['name']}\}})")
    rounds = [name.sub(value, loop["body"].rstrip("\n")) for value in loop["values"].split()[:MAX_ROUNDS]]
    return "\n".join(one[:MAX_COMMAND_CHARS] for one in rounds)


def _split_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command. A pipe stays as the last word ``|``; redirections begin with NUL."""
    words: list[str] = []
    for word in _split_words(line):
        if word in ("\0|", "\0||", "\0&&", "\0;", "\0&"):
            if word == "\0|":
                words.append("|")
            if words:
                yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


_WORD = re.compile(
    r"\s+|(\|\||&&|\||;(?=\s|$)|(?<=\s)&(?=\s|$)|2>&1|&>|2>>?|>>?|<<-?|<(?![\w ./-]{1,60}>))"
    r"|#(?=\s)"
)
_PLACEHOLDER = re.compile(r"<[\w ./-]{1,60}>")
_PLAIN = re.compile(r"[^\s|;&<>'\"\\#]+")


def _split_words(line: str) -> Iterator[str]:
    """Yield words, and operators with NUL before them.

    Quotes and backslashes work as in a shell. No word is expanded.
    """
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
                yield word
            word, quoted = "", False
            if found[1]:
                yield f"\0{found[1]}"
            at = found.end()
            continue
        char = line[at]
        if char == "<" and (placeholder := _PLACEHOLDER.match(line, at)):
            word, at = word + placeholder[0], placeholder.end()
        elif char in "'\"":
            end = line.find(char, at + 1)
            if end < 0:
                word, at = word + line[at + 1 :], len(line)
            else:
                word, at, quoted = word + line[at + 1 : end], end + 1, True
        elif char == "\\" and at + 1 < len(line):
            word, at = word + line[at + 1], at + 2
        else:
            plain = _PLAIN.match(line, at)
            end = plain.end() if plain else at + 1
            word, at = word + line[at:end], end
    if word or quoted:
        yield word


_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w{0,60}=")
_WRAPPERS = {
    *("time", "sudo", "catchsegv", "env", "nohup", "rlwrap", "gdb", "lldb"),
    *("rocgdb", "--args", "--"),
    *_WRAPPERS_WITH_WORDS,
}


def _read_call(words: list[str], piped: bool) -> ToolCall | None:
    """Return the call of a known tool; None for another program. ``piped``: the command reads from a pipe."""
    at = next((i for i, word in enumerate(words) if not (_ASSIGNMENT.match(word) or word in _WRAPPERS)), len(words))
    if any(word in _WRAPPERS_WITH_WORDS for word in words[:at]):
        wrapped = (i for i, word in enumerate(words[at : at + MAX_WRAPPER_WORDS + 1], at) if _read_tool(word))
        at = next(wrapped, at)
    ignored, rest = words[:at], words[at:]
    tool = _read_tool(rest[0]) if rest else None
    if tool is None:
        return None
    argv, stdin, stdout = [tool], "-" if piped else "", ""
    again = len(rest) > 1 and rest[1] != rest[0] and _read_tool(rest[1]) == tool and "/" in rest[1]
    following = iter(rest[2:] if again else rest[1:])  # a driver prints the program's name, then its path
    for word in following:
        if word == "|":
            stdout = stdout or "|"  # the output in a file does not reach the next program
        elif not word.startswith("\0"):
            argv.append(word)
        elif (operator := word[1:]) != "2>&1":
            target = next(following, "")
            if operator in (">", ">>", "&>"):
                stdout = target
            elif operator == "<":
                stdin = target
    merged = "2>&1" if stdout == "|" and "\0002>&1" in words else ""
    return ToolCall(
        argv=tuple(argv), written=rest[0], stdin=stdin, stdout=stdout, ignored=tuple(ignored), filters=merged
    )


def _read_tool(word: str) -> str | None:
    """Return the bare name of a known program, without its directory, ``.exe`` and Python's version number."""
    name = re.split(r"[\\/]", word)[-1].removesuffix(".exe")
    if re.fullmatch(r"python(?:3(?:\.\d{1,2})?)?", name):
        return "python"
    return name if name in TOOLS else STAND_INS.get(name)


def is_stand_in(call: ToolCall) -> bool:
    """True for a call of another project's program that a program of the compiler replaces."""
    return re.split(r"[\\/]", call.written)[-1].removesuffix(".exe") in STAND_INS


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The words that a filter behind a command may have.

    No filter runs here. A reader may paste the command, so a filter is kept only if no option of it runs a program or
    writes a file.
    """

    flags: str
    """Pattern of a flag that neither writes nor runs anything."""
    operands: int = 0
    """Most words beside flags and numbers: patterns and sets of characters, no files."""


_NUMBER = re.compile(r"[+-]?\d{1,6}")
_GREP = Filter(flags=r"-[EFPivwxconahHABCme]{1,8}\d{0,4}|--color=never|--no-filename|--only-matching", operands=1)
FILTERS: Mapping[str, Filter] = {
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "head": Filter(flags=r"-[nc]\d{0,6}"),
    "tail": Filter(flags=r"-[nc]\+?\d{0,6}"),
    "wc": Filter(flags=r"-[lwcm]{1,4}"),
    "sort": Filter(flags=r"-[nrufhVb]{1,6}|-k\d{1,3}(?:,\d{1,3})?"),
    "uniq": Filter(flags=r"-[cdui]{1,4}"),
    "cut": Filter(flags=r"-[dfcb].{0,20}|-s", operands=2),
    "tr": Filter(flags=r"-[dsc]{1,3}", operands=2),
}
MAX_FILTERS = 400
"""Characters of the filters of one command."""


def _add_filter(before: str, words: Sequence[str]) -> str:
    """Return ``before`` with one filter more; empty if the program or a word of it is not allowed.

    ``words`` are those of one program of a pipe, with ``|`` at the end if another program follows.
    """
    own = [word for word in words if word != "|"]
    known = FILTERS.get(own[0]) if own else None
    if known is None:
        return ""
    others = [word for word in own[1:] if not re.fullmatch(known.flags, word) and not _NUMBER.fullmatch(word)]
    numbers = [word for word in own[1:] if _NUMBER.fullmatch(word)]
    is_plain = all(word.isprintable() and not word.startswith("-") for word in others)
    takes_numbers = known.operands or own[0] in ("head", "tail") or not any(n[0].isdigit() for n in numbers)
    text = f"{before} | {shlex.join(own)}".strip()
    allowed = len(others) <= known.operands and is_plain and takes_numbers and len(text) <= MAX_FILTERS
    return text if allowed else ""
