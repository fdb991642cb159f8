"""Find the environment variables that a report sets: before a command, with ``export``, or in a sentence.

Only variables of the toolchain's list reach the testcase. A repair names the others: they may open files and
libraries, or choose among unavailable devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.command_line.shell import parse_commands
from bot.extract.parsed_issue import ParsedIssue
from bot.extract.types import Repair, Repro
from runners.core.toolchain.reports import PLAIN_VARIABLES
from runners.toolchains import find_toolchain

MAX_VARIABLES = 8


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def add_variables(parsed: ParsedIssue, repro: Repro) -> Repro:
    """Return the testcase with the variables that the report sets for it, and a repair for each variable."""
    allowed = {**PLAIN_VARIABLES, **parsed.vocabulary.variables}
    commands = _read_commands(parsed.pieces)
    named = {setting.name for setting in commands}
    code = "\n".join(repro.testcase.files.values())
    told = [one for one in _read_sentences(parsed.prose, allowed) if one.name not in named and one.name not in code]
    usual = find_toolchain(repro.testcase.toolchain).VARIABLES
    found = (one for one in dict.fromkeys([*commands, *told]) if usual.get(one.name) != one.value)
    settings = [one for one in found if not _UNRELATED.search(one.name)][:MAX_VARIABLES]
    taken = [one for one in settings if _is_taken(one, settings, allowed)]
    repairs = [
        Repair(kind="set-variable", detail=str(one))
        if one in taken
        else Repair(kind="drop-variable", detail=f"left out {one}")
        for one in settings
    ]
    words = {f"left out {one}" for one in commands}
    kept = [repair for repair in repro.repairs if repair.kind != "drop-word" or repair.detail not in words]
    testcase = repro.testcase
    if taken:
        testcase = msgspec.structs.replace(testcase, variables={one.name: one.value for one in taken})
    return replace(repro, testcase=testcase, repairs=(*kept, *repairs))


_UNRELATED = re.compile(r"PATH$|VISIBLE_DEVICES$|_(?:HOME|ROOT|DIR)$|^(?:CC|CXX|LD_\w+|USER|SHELL|TERM)$")
"""Variables of the reporter's own installation."""


def _is_taken(setting: _Setting, settings: Sequence[_Setting], allowed: Mapping[str, str]) -> bool:
    """True for a value that the list allows. A report with several values compares them."""
    pattern = allowed.get(setting.name)
    others = [one for one in settings if one.name == setting.name and one != setting]
    return pattern is not None and bool(re.fullmatch(pattern, setting.value)) and not others


_NAME = r"(?P<name>[A-Za-z_]\w{1,60})"
_WORD = re.compile(rf"{_NAME}=(?P<value>[^\n]{{0,200}})")
_EXPORT = re.compile(rf"^[ \t]{{0,8}}(?:[$#>] ?)?export[ \t]+{_NAME}=(?P<value>[^;&#\n]{{0,200}})", re.M)


def _read_commands(pieces: Iterable[Piece]) -> list[_Setting]:
    """Return the variables of shell blocks, except for blocks that work according to the report.

    A variable before only some calls of a program does not belong to the testcase: the report compares the calls.
    """
    texts = [piece.text for piece in pieces if piece.kind is Kind.SHELL and piece.cue is not Cue.WORKS]
    found = [_read_setting(one) for text in texts for one in _EXPORT.finditer(text)]
    calls = [call for text in texts for call in parse_commands(text)[0]]
    settings = [frozenset(_read_setting(m) for w in call.ignored if (m := _WORD.fullmatch(w))) for call in calls]
    shared: dict[str, frozenset[str]] = {}  # the names that each call of a program sets
    for call, own in zip(calls, settings, strict=True):
        names = frozenset(one.name for one in own)
        shared[call.argv[0]] = shared.get(call.argv[0], names) & names
    for call, own in zip(calls, settings, strict=True):
        found += sorted((one for one in own if one.name in shared[call.argv[0]]), key=str)
    return list(dict.fromkeys(found))


def _read_setting(found: re.Match[str]) -> _Setting:
    return _Setting(found["name"], found["value"].strip().strip("'\""))


_SENTENCE = re.compile(r"[^\n.!?]{1,600}(?:[.!?](?!\s)[^\n.!?]{0,600}){0,20}")
_NEGATED = re.compile(
    r"\b(?:without|not|n't|no longer|un(?:set|setting)|works?|working|passes|fine|goes away|disappears?|avoids?"
    r"|workaround|instead|fix(?:es|ed)?|try|tried|if|right|correct(?:ly)?|good|ok(?:ay)?|too|as well|likewise)\b"
    r"|n['’]t\b",
    re.I,
)
"""Words about a variable that is not set where the failure occurs. "With X=1 too." alone is not a claim."""


def _read_sentences(prose: str, allowed: Mapping[str, str]) -> Iterator[_Setting]:
    """Yield the variables of the list that a sentence sets."""
    if not allowed or "=" not in prose:
        return
    names = "|".join(map(re.escape, allowed))
    assigned = re.compile(rf"(?<![\w-])(?P<name>{names})=(?P<value>[^\s`'\"]{{1,200}})")
    for sentence in _SENTENCE.finditer(prose):
        if not _NEGATED.search(sentence[0]):
            yield from (_Setting(one["name"], one["value"].rstrip(".,;:)")) for one in assigned.finditer(sentence[0]))
