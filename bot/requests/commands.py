"""Slash commands in a comment: ``/repro run versions=0.26.0``. One table is parser, help and did-you-mean.

A command is a line of a top-level paragraph. Lines in code, quotes, lists, headings and HTML are none, whatever they
say: people quote each other's commands, paste logs, and mail clients quote whole threads. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from html.parser import HTMLParser
from types import MappingProxyType

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.forge.contract import Permission
from bot.report.quote import code

PREFIX = "/repro"
MAX_BODY = 262_144
"""GitHub stores no longer comment (measured, in bytes); what is longer is not read."""
MAX_COMMANDS = 5
MAX_LINE = 300
MAX_BLOCKS = 4
MAX_BLOCK_BYTES = 64 * 1024


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
class Option:
    """``pattern`` is the whole set of values: nothing else ever leaves the parser."""

    hint: str
    help: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One verb. ``needs`` is the least permission for it on somebody else's issue."""

    help: str
    options: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    words: str = ""
    """What the words after the verb are, if it takes any: ``SHA256``, ``REASON``."""
    takes_code: bool = False
    needs: Permission = Permission.TRIAGE
    own: bool = True
    """Whether the author of an issue may do it there without any permission."""


_VERSION = r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,40}"

OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "versions": Option(
            hint="0.26.0,0.27.0",
            help="releases: a list, a range `A..B`, `latest` or `all`",
            pattern=re.compile(r"(?:[<>=!~]{0,2}[0-9A-Za-z][0-9A-Za-z.+_-]*[,]?){1,40}", re.ASCII),
        ),
        "devices": Option(
            hint="vmvx,cuda",
            help="further devices to run it on",
            pattern=re.compile(r"[a-z0-9_-]{1,30}(?:,[a-z0-9_-]{1,30}){0,7}", re.ASCII),
        ),
        "timeout": Option(
            hint="120",
            help="seconds that one run may take, at most 3600",
            pattern=re.compile(r"(?:[1-9]\d{0,2}|[12]\d{3}|3[0-5]\d{2}|3600)", re.ASCII),
        ),
        "good": Option(hint="0.25.0", help="a release without the failure", pattern=re.compile(_VERSION, re.ASCII)),
        "bad": Option(hint="0.27.0", help="a release with it", pattern=re.compile(_VERSION, re.ASCII)),
    }
)

_SHAPING = ("versions", "devices", "timeout")

VERBS: Mapping[Verb, Spec] = MappingProxyType(
    {
        Verb.RUN: Spec(
            help="runs the testcase, unless this very testcase has an answer already",
            options=_SHAPING,
            takes_code=True,
        ),
        Verb.RERUN: Spec(help="runs it again", options=_SHAPING, takes_code=True),
        Verb.BISECT: Spec(
            help="looks between two releases for the one where it changes",
            options=("good", "bad", "devices", "timeout"),
            required=("good", "bad"),
            takes_code=True,
        ),
        Verb.MINIMIZE: Spec(
            help="runs it again, and cuts the testcase down to what its failure needs",
            options=_SHAPING,
            takes_code=True,
        ),
        Verb.STATUS: Spec(help="says what was run, what is running, and how much is left for today"),
        Verb.CANCEL: Spec(help="drops the run under way: its answer is not posted"),
        Verb.APPROVE: Spec(
            help="lets exactly this testcase run on the machines that need approval",
            words="SHA256",
            needs=Permission.WRITE,
            own=False,
        ),
        Verb.VOID: Spec(
            help="withdraws the verdict; the reason is recorded and shown",
            words="REASON",
            needs=Permission.WRITE,
            own=False,
        ),
        Verb.HELP: Spec(help="shows this table", needs=Permission.READ),
    }
)
"""The one table: what is parsed, what help shows, what a slip of the pen is compared with, and who may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block that stands in for the issue's testcase. Untrusted text."""

    info: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What one line asks for; ``line`` is its place in the comment, 1-based."""

    verb: Verb
    options: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    blocks: tuple[Block, ...] = ()
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A line that was meant as a command. ``why`` is Markdown, every foreign word in it inside a code span."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    commands: tuple[Command, ...] = ()
    mistakes: tuple[Mistake, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.commands or self.mistakes)


def read_commands(body: str) -> Reading:
    """The commands of a comment in their order, at most ``MAX_COMMANDS``, and what is wrong with the others."""
    body = body[:MAX_BODY].replace("\r\n", "\n").replace("\r", "\n")
    if PREFIX not in body:
        return Reading()
    commands: list[Command] = []
    mistakes: list[Mistake] = []
    for line in _lines(body):
        if len(commands) + len(mistakes) == MAX_COMMANDS:
            mistakes.append(Mistake(line=line.number, why=f"a comment holds at most {MAX_COMMANDS} commands"))
            break
        match _read_line(line):
            case Command() as command:
                commands.append(command)
            case Mistake() as mistake:
                mistakes.append(mistake)
    return Reading(commands=tuple(commands), mistakes=tuple(mistakes))


def command_of(verb: Verb, options: Mapping[str, str]) -> Command | Mistake:
    """A command from options given otherwise (the inputs of a workflow): empty ones count as absent."""
    given = {name: value for name, value in options.items() if value}
    return _checked(verb, given, "", _Line(number=1, text=""))


def help_text() -> str:
    """The table of verbs and the list of options, as Markdown."""
    rows = [f"| `{_usage(verb, spec)}` | {spec.help} | {_who(spec)} |" for verb, spec in VERBS.items()]
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


def _usage(verb: Verb, spec: Spec) -> str:
    needed = [f"{name}=…" for name in spec.required]
    optional = [f"[{name}=…]" for name in spec.options if name not in spec.required]
    return " ".join([PREFIX, verb, *([spec.words] if spec.words else []), *needed, *optional])


def _who(spec: Spec) -> str:
    if spec.needs <= Permission.READ:
        return "everybody"
    least = f"{spec.needs.name.lower()} permission"
    return f"the issue's author; {least}" if spec.own else least


# ---------------------------------------------------------------------------------------------- one line


def _read_line(line: _Line) -> Command | Mistake:
    if len(line.text) > MAX_LINE:
        return Mistake(line=line.number, why=f"a command has at most {MAX_LINE} characters")
    verb_text, _, rest = line.text[len(PREFIX) :].strip().partition(" ")
    try:
        verb = Verb(verb_text.lower() or Verb.HELP)
    except ValueError:
        return Mistake(line=line.number, why=f"there is no command {code(verb_text, 40)}{_meant(verb_text, Verb)}")
    if VERBS[verb].words:
        return _checked(verb, {}, rest.strip(), line)
    try:
        arguments = shlex.split(rest)
    except ValueError:
        return Mistake(line=line.number, why="a quotation mark is left open")
    options: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not equals:
            return Mistake(line=line.number, why=f"{code(argument, 40)} has no value: options are `name=value`")
        if name in options:
            return Mistake(line=line.number, why=f"{code(name, 40)} is given twice")
        options[name] = value
    return _checked(verb, options, "", line)


def _checked(verb: Verb, options: Mapping[str, str], words: str, line: _Line) -> Command | Mistake:
    spec = VERBS[verb]
    for name, value in options.items():
        if name not in spec.options:
            why = f"`{verb}` has no option {code(name, 40)}{_meant(name, spec.options)}"
            return Mistake(line=line.number, why=why)
        if OPTIONS[name].pattern.fullmatch(value) is None:
            why = f"{code(value, 60)} is no value for `{name}`; `{name}={OPTIONS[name].hint}` is one"
            return Mistake(line=line.number, why=why)
    if lacking := [name for name in spec.required if name not in options]:
        return Mistake(line=line.number, why=f"`{verb}` needs `{lacking[0]}=…`: {OPTIONS[lacking[0]].help}")
    if spec.words and not words:
        return Mistake(line=line.number, why=f"`{verb}` needs its {spec.words}: `{_usage(verb, spec)}`")
    return Command(
        verb=verb,
        options=MappingProxyType(dict(options)),
        words=words,
        blocks=line.blocks if spec.takes_code else (),
        line=line.number,
    )


def _meant(word: str, known: Sequence[str] | type[Verb]) -> str:
    """``; did you mean …?``, or what there is to choose from."""
    names = [str(name) for name in known]
    close = get_close_matches(word.lower()[:40], names, n=1, cutoff=0.55)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; there are {', '.join(f'`{name}`' for name in names)}" if names else "; it takes none"


# ---------------------------------------------------------------------------------------------- finding the lines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    text: str
    blocks: tuple[Block, ...] = ()


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").disable("reference")
    # Just enough of the inline pass to tell code spans and inline HTML from text; the rest stays as written.
    parser.inline.ruler.enableOnly(["text", "newline", "backticks", "html_inline"])
    parser.inline.ruler2.enableOnly([])
    return parser


_PARSER = _parser()
_COMMAND = re.compile(rf"{re.escape(PREFIX)}(?:\s|$)")


def _lines(body: str) -> Iterator[_Line]:
    """Every line that counts as a command, with the fenced blocks right under it."""
    html = _OpenTags()
    tokens = _PARSER.parse(body)
    for i, token in enumerate(tokens):
        if token.type == "html_block":
            html.feed(token.content)
        elif token.type == "inline" and tokens[i - 1].type == "paragraph_open" and token.level == 1 and not html.open:
            rows = list(_rows(token))
            for offset, text in enumerate(rows):
                if text is not None and _COMMAND.match(text):
                    last = offset == len(rows) - 1
                    yield _Line(
                        number=(token.map or [0])[0] + offset + 1,
                        text=" ".join(text.split()),
                        blocks=tuple(_fences(tokens[i + 2 :])) if last else (),
                    )


def _rows(paragraph: Token) -> Iterator[str | None]:
    """The paragraph's lines; None for one that begins inside a code span or inside HTML."""
    row: str | None = ""
    for child in paragraph.children or ():
        match child.type:
            case "softbreak" | "hardbreak":
                yield row
                row = ""
            case "text":
                row = None if row is None else row + child.content
            case _:
                # A code span or a tag: it may hold line ends, and then the next lines begin inside it.
                written = f"`{child.content}`" if child.type == "code_inline" else child.content
                for _ in range(written.count("\n")):
                    yield row
                    row = None
                row = None if row is None else row + written
    yield row


def _fences(tokens: Sequence[Token]) -> Iterator[Block]:
    """The fenced blocks that stand first, one right after the other."""
    for token in tokens[:MAX_BLOCKS]:
        if token.type != "fence" or len(token.content.encode(errors="replace")) > MAX_BLOCK_BYTES:
            return
        yield Block(info=token.info.strip()[:40], text=token.content)


class _OpenTags(HTMLParser):
    """Counts the HTML elements that are open: what stands between ``<details>`` and its end is HTML's."""

    VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    @property
    def open(self) -> bool:
        return bool(self._open)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID and len(self._open) < 100:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
