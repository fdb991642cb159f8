"""Slash commands in a comment: ``/repro run versions=0.26.0``. Pure.

The parser, the help text, the suggestions for misspelled names and the permissions use one table.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from bot.forge.contract import Permission
from bot.report.quote import quote_code
from bot.requests.markdown_lines import CodeBlock, SlashLine, find_command_lines

PREFIX = "/repro"
MAX_BODY = 262_144
"""Bytes of the longest comment that GitHub stores (measured). Text beyond it is not read."""
MAX_COMMANDS = 5
MAX_LINE = 300


class Verb(StrEnum):
    RUN = "run"
    RERUN = "rerun"
    BISECT = "bisect"
    MINIMIZE = "minimize"
    STATUS = "status"
    CANCEL = "cancel"
    APPROVE = "approve"
    VOID = "void"
    HELP = "help"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option. Only values that match ``pattern`` in full leave the parser."""

    hint: str
    help: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbSpec:
    """One verb. ``needs`` is the least permission for the verb on another account's issue."""

    help: str
    options: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    words: str = ""
    """Name of the free text after the verb, such as ``SHA256`` or ``REASON``; empty if the verb takes none."""
    takes_code: bool = False
    needs: Permission = Permission.TRIAGE
    own: bool = True
    """True if the author of an issue may give the command there without any permission."""


_VERSION = r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,40}"
_RELEASES = r"[<>=!~]{0,2}[0-9A-Za-z][0-9A-Za-z.+_-]{0,80}"
"""A release, a bound, or a range ``A..B``. Items of a list have a comma between them: without the comma, a pattern
can divide a word into items in exponentially many ways."""

OPTIONS: Mapping[str, OptionSpec] = MappingProxyType(
    {
        "versions": OptionSpec(
            hint="0.26.0,0.27.0",
            help="releases: a list, a range `A..B`, `latest` or `all`",
            pattern=re.compile(rf"{_RELEASES}(?:,{_RELEASES}){{0,39}},?", re.ASCII),
        ),
        "devices": OptionSpec(
            hint="vmvx,cuda",
            help="further devices to run it on",
            pattern=re.compile(r"[a-z0-9_-]{1,30}(?:,[a-z0-9_-]{1,30}){0,7}", re.ASCII),
        ),
        "timeout": OptionSpec(
            hint="120",
            help="seconds that one run may take, at most 3600",
            pattern=re.compile(r"(?:[1-9]\d{0,2}|[12]\d{3}|3[0-5]\d{2}|3600)", re.ASCII),
        ),
        "good": OptionSpec(
            hint="0.25.0", help="a release without the failure", pattern=re.compile(_VERSION, re.ASCII)
        ),
        "bad": OptionSpec(hint="0.27.0", help="a release with it", pattern=re.compile(_VERSION, re.ASCII)),
    }
)

_SHAPING = ("versions", "devices", "timeout")

VERBS: Mapping[Verb, VerbSpec] = MappingProxyType(
    {
        Verb.RUN: VerbSpec(
            help="runs the testcase, unless this very testcase has an answer already",
            options=_SHAPING,
            takes_code=True,
        ),
        Verb.RERUN: VerbSpec(help="runs it again", options=_SHAPING, takes_code=True),
        Verb.BISECT: VerbSpec(
            help="looks between two releases for the one where it changes",
            options=("good", "bad", "devices", "timeout"),
            required=("good", "bad"),
            takes_code=True,
        ),
        Verb.MINIMIZE: VerbSpec(
            help="runs it again, and cuts the testcase down to what its failure needs",
            options=_SHAPING,
            takes_code=True,
        ),
        Verb.STATUS: VerbSpec(help="says what was run, what is running, and how much is left for today"),
        Verb.CANCEL: VerbSpec(help="drops the run under way: its answer is not posted"),
        Verb.APPROVE: VerbSpec(
            help="lets exactly this testcase run on the machines that need approval",
            words="SHA256",
            needs=Permission.WRITE,
            own=False,
        ),
        Verb.VOID: VerbSpec(
            help="withdraws the verdict; the reason is recorded and shown",
            words="REASON",
            needs=Permission.WRITE,
            own=False,
        ),
        Verb.HELP: VerbSpec(help="shows this table", needs=Permission.READ),
    }
)
"""The table of all commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """One command. ``line`` is its 1-based line in the comment."""

    verb: Verb
    options: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    blocks: tuple[CodeBlock, ...] = ()
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A line with the prefix that is not a valid command.

    ``why`` is Markdown; each of its words that comes from the comment is inside a code span.
    """

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommands:
    """The commands of a comment, and its faulty command lines."""

    commands: tuple[SlashCommand, ...] = ()
    mistakes: tuple[Mistake, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.commands or self.mistakes)


def read_commands(body: str) -> ParsedCommands:
    """Return the commands of a comment in their order, at most ``MAX_COMMANDS``, and its faulty command lines."""
    body = body[:MAX_BODY].replace("\r\n", "\n").replace("\r", "\n")
    if PREFIX not in body:
        return ParsedCommands()
    commands: list[SlashCommand] = []
    mistakes: list[Mistake] = []
    for line in find_command_lines(body, PREFIX):
        if len(commands) + len(mistakes) == MAX_COMMANDS:
            mistakes.append(Mistake(line=line.number, why=f"a comment holds at most {MAX_COMMANDS} commands"))
            break
        match _parse_line(line):
            case SlashCommand() as command:
                commands.append(command)
            case Mistake() as mistake:
                mistakes.append(mistake)
    return ParsedCommands(commands=tuple(commands), mistakes=tuple(mistakes))


def make_command(verb: Verb, options: Mapping[str, str]) -> SlashCommand | Mistake:
    """Return a command with options that come from a workflow's inputs. An empty input counts as absent."""
    given = {name: value for name, value in options.items() if value}
    return _check_command(verb, given, "", SlashLine(number=1, text=""))


def render_help() -> str:
    """Return the table of verbs and the list of options as Markdown."""
    rows = [
        f"| `{_format_usage(verb, spec)}` | {spec.help} | {_describe_permission(spec)} |"
        for verb, spec in VERBS.items()
    ]
    options = [f"- `{name}={option.hint}`: {option.help}" for name, option in OPTIONS.items()]
    return "\n".join(
        [
            "| command | does | who |",
            "| --- | --- | --- |",
            *rows,
            "",
            *options,
            "",
            "A fenced code block right under a command that runs takes the place of the issue's testcase. "
            "Commands stand at the start of a line, outside code, quotes and lists.",
        ]
    )


def _format_usage(verb: Verb, spec: VerbSpec) -> str:
    needed = [f"{name}=…" for name in spec.required]
    optional = [f"[{name}=…]" for name in spec.options if name not in spec.required]
    return " ".join([PREFIX, verb, *([spec.words] if spec.words else []), *needed, *optional])


def _describe_permission(spec: VerbSpec) -> str:
    if spec.needs <= Permission.READ:
        return "everybody"
    least = f"{spec.needs.name.lower()} permission"
    return f"the issue's author; {least}" if spec.own else least


# ---------------------------------------------------------------------------------------------- one line


def _parse_line(line: SlashLine) -> SlashCommand | Mistake:
    if len(line.text) > MAX_LINE:
        return Mistake(line=line.number, why=f"a command has at most {MAX_LINE} characters")
    verb_text, _, rest = line.text[len(PREFIX) :].strip().partition(" ")
    try:
        verb = Verb(verb_text.lower() or Verb.HELP)
    except ValueError:
        return Mistake(
            line=line.number, why=f"there is no command {quote_code(verb_text, 40)}{_suggest_name(verb_text, Verb)}"
        )
    if VERBS[verb].words:
        return _check_command(verb, {}, rest.strip(), line)
    try:
        arguments = shlex.split(rest)
    except ValueError:
        return Mistake(line=line.number, why="a quotation mark is left open")
    options: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not equals:
            return Mistake(line=line.number, why=f"{quote_code(argument, 40)} has no value: options are `name=value`")
        if name in options:
            return Mistake(line=line.number, why=f"{quote_code(name, 40)} is given twice")
        options[name] = value
    return _check_command(verb, options, "", line)


def _check_command(verb: Verb, options: Mapping[str, str], words: str, line: SlashLine) -> SlashCommand | Mistake:
    spec = VERBS[verb]
    for name, value in options.items():
        if name not in spec.options:
            why = f"`{verb}` has no option {quote_code(name, 40)}{_suggest_name(name, spec.options)}"
            return Mistake(line=line.number, why=why)
        if OPTIONS[name].pattern.fullmatch(value) is None:
            why = f"{quote_code(value, 60)} is no value for `{name}`; `{name}={OPTIONS[name].hint}` is one"
            return Mistake(line=line.number, why=why)
    if lacking := [name for name in spec.required if name not in options]:
        return Mistake(line=line.number, why=f"`{verb}` needs `{lacking[0]}=…`: {OPTIONS[lacking[0]].help}")
    if spec.words and not words:
        return Mistake(line=line.number, why=f"`{verb}` needs its {spec.words}: `{_format_usage(verb, spec)}`")
    return SlashCommand(
        verb=verb,
        options=MappingProxyType(dict(options)),
        words=words,
        blocks=line.blocks if spec.takes_code else (),
        line=line.number,
    )


def _suggest_name(word: str, known: Sequence[str] | type[Verb]) -> str:
    """Return ``; did you mean …?`` with the nearest name, or the list of all names."""
    names = [str(name) for name in known]
    close = get_close_matches(word.lower()[:40], names, n=1, cutoff=0.55)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; there are {', '.join(f'`{name}`' for name in names)}" if names else "; it takes none"
