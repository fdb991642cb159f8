"""Find the commands of a report: in blocks, in sentences, in comments of the MLIR, in a stack dump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from bot.extract.blocks.cut import is_open_at_end
from bot.extract.blocks.markdown import Document, find_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.command_line.open_end import finish_call
from bot.extract.command_line.shell import TOOL_PREFIX, ToolCall, is_command, is_stand_in, parse_commands
from bot.extract.command_line.workspace import take_last_name
from runners.core.toolchain.reports import CommandLineTools

MAX_COMMANDS = 24
LocatedCall = tuple[ToolCall, Piece | None]
"""A call, and the piece that contains it; None for a call in a sentence."""


def find_commands(
    document: Document, pieces: Sequence[Piece], tools: CommandLineTools
) -> tuple[list[LocatedCall], list[str]]:
    """Return the report's calls of known tools, and the first words of the commands that were left out.

    A sentence counts only for tools that no block calls. If a block has calls, passes in a sentence without a file
    are a remark: ``and `iree-opt --cse` keeps it``. Comments and stack dumps count only if there is no compile call.
    """
    calls: list[LocatedCall] = []
    ignored: list[str] = []
    for piece in pieces:
        if piece.kind is Kind.SHELL:
            commands, left_out = parse_commands(piece.text)
            if commands and is_open_at_end(document, piece):
                commands[-1] = finish_call(commands[-1], piece.text, tools)
            calls += [(call, piece) for call in commands]
            ignored += left_out
    calls, others = _split_stand_ins(_keep_useful(calls))
    shown = {call.argv[0] for call, _ in calls}
    told = (call for text in _find_in_prose(document) for call in parse_commands(text)[0])
    in_prose, others_told = _split_stand_ins(_keep_useful([(call, None) for call in told if not _is_sentence(call)]))
    more = [located for located in in_prose if located[0].argv[0] not in shown]
    calls += [one for one in more if not shown or one[0].argv[0] != tools.optimizer or _names_file(one[0])]
    if not any(call.argv[0] in tools.compilers for call, _ in calls):
        texts = [(text, piece) for piece in pieces for text in _find_hidden(piece, tools)]
        found = [(call, piece, text) for text, piece in texts for call in parse_commands(text)[0]]
        hidden = _keep_useful([(_finish_hidden(document, *one, tools), one[1]) for one in found])
        calls = [*hidden, *calls]
    if all(call.argv[0] == "python" for call, _ in calls):
        calls += others or others_told
    return calls, [word for word in dict.fromkeys(ignored) if word]


def find_absent_program(
    title: str, pieces: Sequence[Piece], calls: Sequence[LocatedCall], ignored: Sequence[str], tools: CommandLineTools
) -> str:
    """Return the failing program if it has the prefix of the compiler's programs, and no release contains it; or "".

    ``ignored`` contains the first words of the commands that are not steps. Such a program is the failing one if the
    title or the crash names it, or if the report calls no program of a release. A known name with more letters
    (``iree-compiler``) is a misspelling.
    """
    texts = [piece.text for piece in pieces if piece.kind in (Kind.OUTPUT, Kind.TRACEBACK, Kind.SHELL)]
    dumped = [word for text in texts for line in _PROGRAM_ARGUMENTS.findall(text) for word in line.split(" ")[:1]]
    crashed = [take_last_name(word) for word in (*dumped, *(w for text in texts for w in _ASSERTED.findall(text)))]
    known = (*tools.programs, *tools.other_programs, *tools.stand_ins)
    for name in (*crashed, *(take_last_name(word) for word in ignored)):
        absent = _PROGRAM.fullmatch(name) and name.startswith(tools.prefix) and not name.startswith(known)
        if absent and (name in crashed or name in title or not calls):
            return name
    return ""


_PROGRAM = re.compile(r"[a-z][a-z0-9-]{2,60}")
_ASSERTED = re.compile(r"^(\S{1,200}): [^\n]{0,400}\bAssertion `", re.M)


def _names_file(call: ToolCall) -> bool:
    return any("." in word and not word.startswith("-") for word in call.argv[1:])


def _finish_hidden(document: Document, call: ToolCall, piece: Piece, text: str, tools: CommandLineTools) -> ToolCall:
    """Return a call of a stack dump or a log, without its last word if the description breaks off in that word."""
    ends = piece.text.rstrip().endswith(text.rstrip()) and is_open_at_end(document, piece)
    return finish_call(call, text, tools) if ends else call


def _split_stand_ins(calls: Iterable[LocatedCall]) -> tuple[list[LocatedCall], list[LocatedCall]]:
    """Return the calls of the compiler's programs, and of programs that a program of the compiler replaces."""
    found = list(calls)
    others = [located for located in found if is_stand_in(located[0])]
    return [located for located in found if located not in others], others


def _keep_useful(calls: Iterable[LocatedCall]) -> list[LocatedCall]:
    """Return the calls that do something, unlike ``--version``. Drop repeated calls."""
    kept: dict[tuple[str, ...], LocatedCall] = {}
    for call, piece in calls:
        tool, *words = call.argv
        if call.cut:
            kept.setdefault(call.argv, (call, piece))
            continue
        asks = any(word.rstrip(":,.;") in ("--version", "--help") for word in words)
        if not words or words[0] in ("-h", "-V", "-c") or asks:
            continue
        if tool == "python" and (words[0] == "-m" or not words[0].endswith(".py")):
            continue
        if tool != "python" and not any(_is_argument(word) for word in words):
            continue
        kept.setdefault(call.argv, (call, piece))
    return list(kept.values())[:MAX_COMMANDS]


def _is_argument(word: str) -> bool:
    """True for a flag, a file name or a placeholder; False for a word of a sentence, and for a version."""
    if _VERSION.fullmatch(word):
        return False
    return word.startswith(("-", "<", "$")) or "." in word.rstrip(".") or word == "%s"


_VERSION = re.compile(r"v?\d{1,8}(?:\.\d{1,8}){1,3}(?:\.?(?:rc|dev|post|a|b)\d{0,10})?(?:[+-][\w.]{1,40})?[,.;:]?")
"""A tool is named with its version: "iree-compile 3.11.0"."""


def _is_sentence(call: ToolCall) -> bool:
    """True if the words after the program's name are a sentence: "iree-compile crashes on this input"."""
    return sum(bool(_PLAIN_WORD.match(word)) for word in call.argv[1:]) > MAX_PLAIN_WORDS


MAX_PLAIN_WORDS = 2
"""Largest number of bare words in a command: a file without an extension, the value of a flag."""
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z'’]*[.,:;!?]*$")


_STEP = re.compile(
    r"^(?:[-*>] |\d{1,2}[.)] )?(?:(?:(?:then |and )?(?:run|execute|call|try):?"
    r"|(?:to (?:run|reproduce|repro)|commands?(?: line)?|cmd|repro(?:duce)?(?: with)?|invocation|(?:i )?ran|run with)"
    rf"(?: it| this| that)?:) (?=\S*{TOOL_PREFIX}))?",
    re.I,
)
"""The words before a command in a list of steps, or its label: ``To run:``."""


_IN_PARENTHESES = re.compile(
    rf"(?<![\w)`])\((?P<command>\S{{0,60}}{TOOL_PREFIX}[\w-]{{1,40}} -(?:[^()\n`]|\([^()\n`]{{0,300}}\)){{1,600}})\)"
)
"""A command with a flag in parentheses: "(iree-opt --cse)"."""


def _find_in_prose(document: Document) -> Iterator[str]:
    for prose in document.prose:
        yield from (span for span in find_code_spans(prose.text) if is_command(span))
        found = (one["command"] for one in _IN_PARENTHESES.finditer(prose.text))
        yield from (command for command in found if is_command(command))
        rows = [_STEP.sub("", row) for row in prose.text.split("\n")]
        begin = next((i for i, row in enumerate(rows) if is_command(row) and "`" not in row[:40]), None)
        if begin is not None:
            yield "\n".join(rows[begin:])


_PROGRAM_ARGUMENTS = re.compile(r"Program arguments: ([^\n]{1,32000})")
_RUN_LINE = re.compile(r"\bRUN: +([^\n]{1,4000})")
"""The command of a test of LLVM's lit, as in its log. ``%s`` is the test's file."""


def _drop_groups(command: str) -> str:
    """Return a shell command without the parentheses around its parts. Keep those inside a word, as in a pipeline."""
    words = [word.lstrip("(") for word in command.split(" ")]
    return " ".join(word[:-1] if word.endswith(")") and word.count(")") > word.count("(") else word for word in words)


_COMMENTED = re.compile(r"^[ \t]*//+[^\n]*$", re.M)


def _find_hidden(piece: Piece, tools: CommandLineTools) -> Iterator[str]:
    """Yield the commands of a stack dump, of a test's log, and in comments of the MLIR."""
    if piece.kind in (Kind.TRACEBACK, Kind.OUTPUT, Kind.SHELL):
        yield from _PROGRAM_ARGUMENTS.findall(piece.text)
        yield from map(_drop_groups, _RUN_LINE.findall(piece.text))
    if piece.kind is Kind.MLIR:
        comments = "\n".join(_COMMENTED.findall(piece.text))
        if tools.prefix in comments:
            yield comments


_PLACEHOLDER = re.compile(
    r"(?P<flag>--?[\w-]*(?:target|backend|device)[\w-]*)="
    r"(?P<value><[\w -]{1,30}>|\$\{?\w{1,30}\}?|\{\w{1,30}\}|[A-Z][A-Z_]{0,20})"
)
"""A flag whose device is a placeholder for several devices."""
_ASSIGNED = (
    r"(?<![\w-])[<${]{0,2}%s[>}]?\s{0,3}(?:=|:|is|in|∈)\s{0,3}[`\"'(\[{]{0,3}(?P<device>[\w-]{1,30})"  # %s: the word
)
"""A passage that assigns a device to the placeholder: ``X=vmvx``, ``where backend is `llvm-cpu```."""


def fill_placeholders(
    calls: Sequence[LocatedCall], body: str, title_device: str | None, find_device: Callable[[str], str | None]
) -> list[LocatedCall]:
    """Return the calls with a device instead of a placeholder for several devices.

    ``--target=X`` with ``X=llvm-cpu`` and ``X=vmvx`` above the columns of a table becomes a call for the device of
    the title, else for the first one.
    """

    def fill(word: str) -> str:
        found = _PLACEHOLDER.fullmatch(word)
        if found is None:
            return word
        name = re.escape(found["value"].strip("<>${}"))
        assigned = [one["device"] for one in re.finditer(_ASSIGNED % name, body)]
        known = [one for one in assigned if find_device(one) is not None]
        same = [one for one in known if find_device(one) == title_device]
        return f"{found['flag']}={(same or known)[0]}" if known else word

    return [(replace(call, argv=tuple(map(fill, call.argv))), piece) for call, piece in calls]
