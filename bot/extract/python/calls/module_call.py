"""A report whose only program is a command of the compiler's own Python driver → a testcase that runs its module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.extract.blocks.markdown import find_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.command_line.shell import PROMPT, parse_commands
from bot.extract.parsed_issue import ParsedIssue, choose_device, make_claim, make_span
from bot.extract.python.assemble import MAIN_FILE
from bot.extract.types import Missing, Repair, Repro
from bot.extract.vocabulary import vocabulary_of
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.reports import DeviceText

LocatedCommand = tuple[tuple[str, ...], Piece | None]
"""The module and its arguments, and the piece with the command; None for a command in a sentence."""
_CODE = """\
import runpy
import sys

import {module}

sys.argv[1:] = {words!r}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
"""The program of ``python -m``. The plain import gives Python's ordinary message for a missing module."""


def extract_module_call(parsed: ParsedIssue, toolchain: str) -> Repro | None:
    """Return the testcase of the last command that calls a driver of ``toolchain``; None without such a command.

    Files that the command reads are missing: no text contains a model.
    """
    found = list(_find_calls(parsed, tuple(vocabulary_of(toolchain).python.drivers.items())))
    if not found:
        return None
    (module, *words), piece = found[-1]
    code = _CODE.format(module=module, words=words)
    shown = " ".join(words)
    text = DeviceText(commands=shown, title=parsed.issue.title, prose=parsed.prose)
    devices = parsed.vocabulary.read_devices(text)
    return Repro(
        testcase=Testcase(
            kind=TestcaseKind.PYTHON, toolchain=toolchain, files={MAIN_FILE: code}, steps=(("python", MAIN_FILE),)
        ),
        claim=make_claim(parsed, code, devices.named),
        spans=() if piece is None else (make_span(MAIN_FILE, piece),),
        repairs=(Repair(kind="run-module", detail=f"python -m {module} {shown}".strip()[:400]),),
        missing=tuple(Missing(kind="file", name=name) for name in dict.fromkeys(_list_inputs(words))),
        device=choose_device(toolchain, devices),
    )


def _find_calls(parsed: ParsedIssue, drivers: Sequence[tuple[str, str]]) -> Iterator[LocatedCommand]:
    """Yield the calls of ``drivers`` (program and module) in sentences, then in blocks."""
    spellings = re.compile(
        rf"^[ \t]{{0,8}}(?:{PROMPT}|[-*] |\d{{1,2}}[.)] )?(?:python[23.]{{0,4}} +-m +)?"
        rf"(?P<name>{'|'.join(re.escape(name) for pair in drivers for name in pair)})(?= |$)"
    )
    modules = {name: module for pair in drivers for name in pair for module in pair[1:]}
    told = (
        span for prose in parsed.document.prose for span in (*find_code_spans(prose.text), *_list_rows(prose.text))
    )
    shown = ((row, piece) for piece in parsed.pieces if piece.kind in _SHOWN for row in _list_rows(piece.text))
    for row, piece in (*((row, None) for row in told), *shown):
        if (begin := spellings.match(row)) is None:
            continue
        # The words after the program are read like those of any command, without its pipes and redirections.
        calls, _ = parse_commands(f"python {row[begin.end() :]}")
        if calls:
            yield (modules[begin["name"]], *calls[0].argv[1:]), piece


_SHOWN = (Kind.SHELL, Kind.OUTPUT)


def _list_rows(text: str) -> list[str]:
    return text.replace("\\\n", " ").split("\n")


def _list_inputs(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that name a file to read: not after a flag, and with a suffix."""
    for at, word in enumerate(words):
        follows_flag = at > 0 and words[at - 1].startswith("-") and "=" not in words[at - 1]
        if not follows_flag and not word.startswith("-") and re.fullmatch(r"[\w./~-]*\w\.[A-Za-z]\w{0,7}", word):
            yield word
