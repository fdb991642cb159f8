"""The order of reading: blocks, pieces, toolchain, testcase, claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.extract.blocks.classify import read_pieces
from bot.extract.blocks.markdown import Document, parse_markdown
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.claim.failure import fails_at_definition, find_signature
from bot.extract.claim.read import Report, read_claim
from bot.extract.claim.versions import Passage, find_versions
from bot.extract.command_line.assemble import CommandLine, assemble_commands, plain_compile
from bot.extract.command_line.find import find_commands
from bot.extract.command_line.shell import Command
from bot.extract.files.attached import attached_pieces, explain, fill_from, say_attached
from bot.extract.files.links import attached_files, find_links
from bot.extract.python.assemble import MAIN_FILE, About, Ambiguous, Program, assemble, words_of
from bot.extract.toolchain import recognise_toolchain
from bot.extract.types import Extraction, Missing, NoRepro, Repro, Span
from bot.extract.vocabulary import vocabulary_of
from bot.issue import Issue
from runners.core.protocol import Claim, ClaimKind, Testcase, TestcaseKind
from runners.core.toolchain.command_line import CommandLineTools
from runners.core.toolchain.reports import DeviceText, NamedDevices, ReportVocabulary, Written
from runners.toolchains import find_toolchain

MAX_BODY_BYTES = 1_000_000
MAX_COMMENTS = 5
"""Comments by the author that are read when the description holds no code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An issue read into pieces, before anything is decided."""

    issue: Issue
    document: Document
    pieces: tuple[Piece, ...]
    prose: str
    toolchain: str | None

    @property
    def words(self) -> ReportVocabulary:
        return vocabulary_of(self.toolchain)


def extract(issue: Issue, *, toolchain: str | None = None, allowed: Mapping[str, str] | None = None) -> Extraction:
    """The repro of ``issue`` and the reporter's claim, or why there is none. Pure, and linear in the size.

    ``toolchain`` overrides what the text is taken to be about; ``allowed`` extends the allow-list of imports
    (import name → distribution).
    """
    size = len(issue.body.encode(errors="replace"))
    if size > MAX_BODY_BYTES:
        reason = f"The issue has {size:,} bytes of text; at most {MAX_BODY_BYTES:,} are read. Please shorten it."
        return NoRepro(reason=reason, claim=Claim(), toolchain=toolchain)
    reading = _read(issue, toolchain)
    found = _found(reading, allowed)
    return _with_attachments(reading, found, allowed) if issue.attachments or issue.refused else found


def _with_attachments(reading: Reading, found: Extraction, allowed: Mapping[str, str] | None) -> Extraction:
    """``found`` with what it lacks from the linked files: these fill gaps, and never replace what the text gives."""
    attachments = reading.issue.attachments
    filled = fill_from(found, attachments, allowed)
    if not filled.missing:
        return filled
    more = replace(reading, pieces=(*reading.pieces, *attached_pieces(attachments)))
    again = fill_from(say_attached(_found(more, allowed)), attachments, allowed)
    better = isinstance(again, Repro) and (isinstance(filled, NoRepro) or not again.missing)
    return explain(again if better else filled, reading.issue)


def _found(reading: Reading, allowed: Mapping[str, str] | None) -> Extraction:
    if reading.toolchain is None:
        reason = "Nothing in the issue says which compiler it is about; please name it and its version."
        return NoRepro(reason=reason, claim=_claim(reading, "", ()), toolchain=None)
    if reading.words.tools is not None:
        return _with_tools(reading, reading.toolchain, reading.words.tools, allowed)
    return _python(reading, reading.toolchain, allowed) or _nothing(reading)


def _read(issue: Issue, toolchain: str | None) -> Reading:
    document = parse_markdown(issue.body)
    pieces = read_pieces(document)
    if not any(p.kind in _RUNNABLE for p in pieces):
        document, pieces = _with_comments(issue, document, pieces)
    prose = "\n".join(p.text for p in document.prose)
    found = toolchain or recognise_toolchain(issue.repository, f"{issue.title}\n{issue.body}")
    return Reading(issue=issue, document=document, pieces=pieces, prose=prose, toolchain=found)


_RUNNABLE = (Kind.PYTHON, Kind.MLIR)
"""A module without a driver and single operations are not: the author may have added the rest in a comment."""


def _with_comments(issue: Issue, document: Document, pieces: tuple[Piece, ...]) -> tuple[Document, tuple[Piece, ...]]:
    """The description and the author's first comments up to the one that brings the code."""
    own = [c for c in issue.comments if c.author == issue.author and c.author][:MAX_COMMENTS]
    for number, comment in enumerate(own, start=1):
        if len(comment.body) > MAX_BODY_BYTES:
            continue
        more = parse_markdown(comment.body, comment=number, first_index=len(document.blocks) + 1)
        pieces = (*pieces, *read_pieces(more))
        document = replace(document, blocks=(*document.blocks, *more.blocks), prose=(*document.prose, *more.prose))
        if any(p.kind in _RUNNABLE for p in pieces):
            break
    return document, pieces


def _claim(reading: Reading, code: str, devices: Sequence[str]) -> Claim:
    return read_claim(
        Report(
            title=reading.issue.title,
            document=reading.document,
            pieces=reading.pieces,
            code=code,
            devices=tuple(devices),
            toolchain=reading.toolchain,
        )
    )


# ---------------------------------------------------------------------------------------------- Python


def _python(reading: Reading, toolchain: str, allowed: Mapping[str, str] | None) -> Extraction | None:
    """The Python repro, or None when the issue has no Python."""
    about = About(toolchain=toolchain, claim_words=_claim_words(reading), allowed=allowed, written=_written(reading))
    program, controls = assemble(reading.pieces, about)
    match program:
        case None:
            return None
        case Ambiguous(lines=lines):
            places = " and ".join(f"line {first}" for first, _ in lines)
            reason = (
                f"The issue holds two unrelated programs ({places}) and does not say which one shows the failure."
            )
            return NoRepro(reason=reason, claim=_claim(reading, "", ()), toolchain=toolchain)
        case Program():
            repro = _python_repro(reading, toolchain, program, controls)
            return _question(reading, repro) or repro


def _question(reading: Reading, repro: Repro) -> NoRepro | None:
    """A line of code in a question, which lacks half its names, is no testcase of anything."""
    title = reading.issue.title.strip()
    asks = title.endswith("?") or re.match(r"\W*(?:how|question|is there|can i)\b", title, re.I)
    lacks = any(entry.kind == "name" for entry in repro.missing)
    if not (asks and lacks and repro.claim.kind is ClaimKind.UNKNOWN):
        return None
    reason = "The issue asks a question and names no failure; its code is an excerpt."
    return NoRepro(reason=reason, claim=repro.claim, toolchain=reading.toolchain)


def _written(reading: Reading) -> Written:
    versions = find_versions([Passage(text=reading.prose)], reading.toolchain)
    return Written(versions=versions, day=reading.issue.created)


def _claim_words(reading: Reading) -> frozenset[str]:
    signature = find_signature(reading.issue.title, reading.document, reading.pieces)
    told = f"{signature.message} {' '.join(signature.frames)}" if signature else ""
    return words_of(f"{reading.issue.title} {told}")


def _python_repro(reading: Reading, toolchain: str, program: Program, controls: tuple[Program, ...]) -> Repro:
    text = DeviceText(python=program.code, title=reading.issue.title, prose=reading.prose)
    devices = reading.words.read_devices(text)
    testcase = _python_testcase(program, toolchain)
    spans = [_span(MAIN_FILE, unit.piece) for unit in program.units]
    spans += [_span(name, unit.piece) for name, unit in program.extra_files.items()]
    return Repro(
        testcase=testcase,
        claim=_claim(reading, program.code, devices.named),
        spans=tuple(spans),
        repairs=program.repairs,
        missing=_not_attached(reading, (*program.missing, *_no_driver(reading, program))),
        device=_testcase_device(toolchain, devices),
        controls=tuple(_python_testcase(c, toolchain) for c in controls),
    )


def _testcase_device(toolchain: str, devices: NamedDevices) -> str:
    return devices.chosen or find_toolchain(toolchain).DEVICES[0].name


def _no_driver(reading: Reading, program: Program) -> tuple[Missing, ...]:
    """Definitions that nothing uses show nothing when they run, unless defining them is what fails."""
    called = any(repair.kind == "call-main" for repair in program.repairs)
    defines = any(isinstance(n, ast.ClassDef | ast.FunctionDef) for u in program.units if u.tree for n in u.tree.body)
    if called or not defines or any(unit.acts for unit in program.units):
        return ()
    signature = find_signature(reading.issue.title, reading.document, reading.pieces)
    if signature is not None and fails_at_definition(signature):
        return ()
    return (Missing(kind="code", name="the code that uses these definitions"),)


def _python_testcase(program: Program, toolchain: str) -> Testcase:
    others = {name: unit.piece.text for name, unit in program.extra_files.items()}
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={MAIN_FILE: program.code, **others},
        steps=(("python", MAIN_FILE),),
        requirements=program.requirements,
    )


def _span(name: str, piece: Piece) -> Span:
    return Span(file=name, block=piece.block, lines=piece.lines, comment=piece.comment, attachment=piece.attachment)


def _not_attached(reading: Reading, missing: tuple[Missing, ...]) -> tuple[Missing, ...]:
    """``missing`` with the addresses where the issue offers those files."""
    return attached_files(missing, f"{reading.issue.body}")


# ---------------------------------------------------------------------------------------------- command lines


def _with_tools(
    reading: Reading, toolchain: str, tools: CommandLineTools, allowed: Mapping[str, str] | None
) -> Extraction:
    """The repro of an issue about a compiler that has command-line programs: command lines, Python, or both."""
    commands, ignored = find_commands(reading.document, reading.pieces, tools)
    calls = [(command, piece) for command, piece in commands if command.argv[0] != "python"]
    line = _command_line(reading, toolchain, tools, calls, ignored) if calls else None
    has_mlir = any(p.kind is Kind.MLIR for p in reading.pieces)
    python = _python(reading, toolchain, allowed) if not calls or not has_mlir else None
    if isinstance(python, Repro) and line is not None and (both := _generated(python, line)):
        return both
    if isinstance(python, Repro) and (line is None or _is_whole(python)):
        return python
    return line or python or _only_mlir(reading, toolchain, tools) or _nothing(reading)


def _generated(python: Repro, line: Repro) -> Repro | None:
    """A script that writes the input of the command lines, and these, as one testcase."""
    code = python.testcase.files[MAIN_FILE]
    made = [entry for entry in line.missing if re.search(rf"['\"/]{re.escape(entry.name)}['\"]", code)]
    if not made:
        return None
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain=python.testcase.toolchain,
        files={**python.testcase.files, **line.testcase.files},
        steps=(*python.testcase.steps, *line.testcase.steps),
        requirements=python.testcase.requirements,
    )
    return replace(
        line,
        testcase=testcase,
        spans=(*python.spans, *line.spans),
        repairs=(*python.repairs, *line.repairs),
        missing=(*python.missing, *(entry for entry in line.missing if entry not in made)),
    )


def _is_whole(python: Repro) -> bool:
    """The Python does by itself what it is about, rather than prepare an input for the command lines."""
    code = python.testcase.files[MAIN_FILE]
    packages = vocabulary_of(python.testcase.toolchain).python.packages
    return any(package in code for package in packages) and not python.missing


Calls = list[tuple[Command, Piece | None]]


def _command_line(
    reading: Reading, toolchain: str, tools: CommandLineTools, commands: Calls, ignored: Sequence[str]
) -> Repro:
    failing, working = _by_cue(commands)
    given, good = _inputs_by_cue(reading.pieces)
    if good and not working:
        working = failing
    called = "\n".join(" ".join(command.argv) for command, _ in failing)
    devices = reading.words.read_devices(DeviceText(commands=called, prose=reading.prose))
    device = _testcase_device(toolchain, devices)
    quoted = "\n".join(p.text for p in reading.pieces if p.kind in (Kind.OUTPUT, Kind.TRACEBACK, Kind.SHELL))
    line = assemble_commands(failing, ignored, given, quoted, device, tools)
    repro = _command_line_repro(reading, toolchain, line, devices)
    if not working:
        return repro
    control = assemble_commands(working, (), good or given, quoted, device, tools)
    return replace(repro, controls=() if control.missing else (_command_line_testcase(toolchain, control),))


def _inputs_by_cue(pieces: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """The pieces without the MLIR said to work, and those with it alone; the latter empty when none is said to."""
    works = [p for p in pieces if p.kind is Kind.MLIR and p.cue is Cue.WORKS]
    others = [p for p in pieces if p.kind is Kind.MLIR and p.cue is not Cue.WORKS]
    if not works or not others:
        return pieces, ()
    return [p for p in pieces if p not in works], [p for p in pieces if p not in others]


def _by_cue(commands: Calls) -> tuple[Calls, Calls]:
    """The calls said to fail (or said nothing of), and those said to work, each with the calls both need."""
    works = [(c, p) for c, p in commands if p is not None and p.cue is Cue.WORKS]
    fails = [(c, p) for c, p in commands if (c, p) not in works]
    if not works or not {c.argv[0] for c, _ in works} & {c.argv[0] for c, _ in fails}:
        return commands, []
    tools = {c.argv[0] for c, _ in works}
    return fails, [pair for pair in commands if pair in works or pair[0].argv[0] not in tools]


def _command_line_testcase(toolchain: str, line: CommandLine) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain=toolchain,
        files=line.files,
        steps=line.steps,
        requirements=line.requirements,
    )


def _command_line_repro(reading: Reading, toolchain: str, line: CommandLine, devices: NamedDevices) -> Repro:
    testcase = _command_line_testcase(toolchain, line)
    code = "\n".join([*line.files.values(), *(" ".join(step) for step in line.steps)])
    return Repro(
        testcase=testcase,
        claim=_claim(reading, code, devices.named),
        spans=tuple(_span(name, piece) for name, piece in line.sources.items()),
        repairs=line.repairs,
        missing=_not_attached(reading, line.missing),
        device=_testcase_device(toolchain, devices),
    )


def _only_mlir(reading: Reading, toolchain: str, tools: CommandLineTools) -> Repro | None:
    """MLIR without any command: compiled in the most ordinary way when compiling it is what the issue is about."""
    mlir = "\n".join(piece.text for piece in reading.pieces if piece.kind is Kind.MLIR)
    devices = reading.words.read_devices(DeviceText(commands=mlir, prose=reading.prose))
    claim = _claim(reading, "", devices.named)
    if claim.kind not in (ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.HANG):
        return None
    line = plain_compile(reading.pieces, _testcase_device(toolchain, devices), tools)
    return _command_line_repro(reading, toolchain, line, devices) if line else None


def _nothing(reading: Reading) -> NoRepro:
    """No testcase: the reason names what was found instead."""
    kinds = {p.kind for p in reading.pieces}
    missing: tuple[Missing, ...] = ()
    if Kind.FRAGMENT in kinds:
        reason = (
            "The issue shows single MLIR operations; a whole function and the command that compiles it are needed."
        )
        missing = (Missing(kind="code", name="the function around the MLIR operations shown"),)
    elif Kind.MLIR in kinds:
        reason = "The issue gives MLIR, but neither the command nor what goes wrong with it."
        missing = (Missing(kind="code", name="the command that was run"),)
    elif kinds & {Kind.OUTPUT, Kind.TRACEBACK}:
        reason = "The issue shows output, but no program or command that leads to it."
        missing = (Missing(kind="code", name="the program that prints this"),)
    else:
        reason = "The issue holds no code that could be run."
        missing = (Missing(kind="code", name="a program or command that shows the failure"),)
    if links := [link for link in find_links(reading.issue.body) if not link.shows_output]:
        missing = tuple(Missing(kind="file", name=link.url, url=link.url) for link in links)
        reason = "The program is behind a link only; please put it into the issue, or attach it as a file."
    devices = reading.words.read_devices(DeviceText(prose=reading.prose))
    return NoRepro(
        reason=reason, claim=_claim(reading, "", devices.named), toolchain=reading.toolchain, missing=missing
    )
