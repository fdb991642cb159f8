"""Extract the testcase and the claim, in this order: pieces, toolchain, testcase, claim, linked files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.extract.attachments import explain_gaps, fill_gaps, read_attached_pieces, record_attachments
from bot.extract.blocks.cut import Cut, find_cut, find_open_end
from bot.extract.blocks.hidden import drop_hidden
from bot.extract.blocks.pieces import Kind
from bot.extract.claim.defences import list_defences
from bot.extract.command_line.find import LocatedCall, find_absent_program, find_commands
from bot.extract.command_line.shell import parse_commands
from bot.extract.command_line.testcase import extract_commands, extract_dumped_pass, extract_plain_compile
from bot.extract.command_line.wrap import wrap_only_fragment
from bot.extract.command_line.written_inputs import add_writers
from bot.extract.environment import add_variables
from bot.extract.intent import read_intent
from bot.extract.links import find_links, find_source_script, find_stored_files, shows_output_elsewhere
from bot.extract.parsed_issue import (
    MAX_BODY_BYTES,
    ParsedIssue,
    add_replies,
    describe_unread,
    has_code,
    make_claim,
    read_pieces,
)
from bot.extract.python.assemble import MAIN_FILE
from bot.extract.python.calls.module_call import extract_module_call
from bot.extract.python.parse import forget_trees
from bot.extract.python.reference.printed_rows import prints_results
from bot.extract.python.testcase import extract_python
from bot.extract.python.text_program import extract_text_program
from bot.extract.types import (
    ABSENT_PROGRAM,
    CALL,
    NATIVE_PROGRAM,
    OPEN_END,
    REST,
    SOURCE_SCRIPT,
    Extraction,
    Missing,
    NoRepro,
    Repair,
    Repro,
)
from bot.extract.vocabulary import vocabulary_of
from bot.issue import Issue
from runners.core.protocol import Claim, ClaimKind, Testcase, TestcaseKind
from runners.core.toolchain.reports import CommandLineTools, DeviceText


def extract(issue: Issue, *, toolchain: str | None = None, allowed: Mapping[str, str] | None = None) -> Extraction:
    """Return the testcase of ``issue`` and the reporter's claim, or the reason why there is no testcase.

    Pure, and linear in the size of the issue and its replies, of which `MAX_READ_CHARS` are read.

    ``toolchain`` overrides the toolchain that the text is about.
    ``allowed`` extends the allow-list of imports (import name → distribution).
    """
    size = len(issue.body.encode(errors="replace"))
    if size > MAX_BODY_BYTES:
        reason = f"The issue has {size:,} bytes of text; at most {MAX_BODY_BYTES:,} are read. Please shorten it."
        return NoRepro(reason=reason, claim=Claim(), toolchain=toolchain)
    try:
        return _extract_issue(drop_hidden(issue), toolchain, allowed)
    finally:
        forget_trees()


def _extract_issue(issue: Issue, toolchain: str | None, allowed: Mapping[str, str] | None) -> Extraction:
    parsed = read_pieces(issue, toolchain)
    found = _extract_text(parsed, allowed)
    if issue.attachments or issue.refused:
        found = _add_attachments(parsed, found, allowed)
    found = _report_cut(parsed, found)
    if isinstance(found, Repro) and found.missing:
        found = _add_replies(parsed, found, allowed)
    lacks = found.missing if isinstance(found, Repro) else not has_code(parsed.pieces)  # else no reply was asked for
    if lacks and (unread := describe_unread(parsed)):
        found = replace(found, missing=(*found.missing, Missing(kind=REST, name=unread)))
    intent = read_intent(parsed, found.claim)
    if isinstance(found, Repro):
        defences = list_defences(issue.title, parsed.prose)
        elsewhere = shows_output_elsewhere(issue.body)
        found = replace(add_variables(parsed, found), intent=intent, defences=defences, shows_elsewhere=elsewhere)
        return replace(found, day=issue.created)
    return replace(found, intent=intent)


def _add_attachments(parsed: ParsedIssue, found: Extraction, allowed: Mapping[str, str] | None) -> Extraction:
    """Fill the gaps of ``found`` from the linked files. A linked file never replaces text of the issue."""
    attachments = parsed.issue.attachments
    filled = fill_gaps(found, attachments, allowed)
    if not filled.missing:
        return filled
    more = replace(parsed, pieces=(*parsed.pieces, *read_attached_pieces(attachments)))
    again = fill_gaps(record_attachments(_extract_text(more, allowed)), attachments, allowed)
    better = isinstance(again, Repro) and (isinstance(filled, NoRepro) or not again.missing)
    return explain_gaps(again if better else filled, parsed.issue)


def _add_replies(parsed: ParsedIssue, found: Repro, allowed: Mapping[str, str] | None) -> Repro:
    """Return the testcase that the author's replies complete; ``found`` if they do not complete it.

    Replies to a complete testcase are not read: they contain workarounds and variants.
    """
    for more in add_replies(parsed):
        again = _report_cut(more, fill_gaps(_extract_text(more, allowed), parsed.issue.attachments, allowed))
        if isinstance(again, Repro) and not again.missing:
            return again
    return found


def _report_cut(parsed: ParsedIssue, found: Extraction) -> Extraction:
    """Report the rest of the description as missing if the testcase needs the part that breaks off."""
    cut = find_cut(parsed.document, parsed.pieces)
    if cut is None or not _needs_rest(found, cut):
        return _note_open_end(parsed, found)
    if isinstance(found, Repro) and _lacks_only_flags(found, cut):
        return found
    if cut.inside in ("output", "sentence"):
        rest = Missing(kind=REST, name=f"the report, with its testcase: line {cut.line} breaks off, {cut.why}")
    else:
        rest = Missing(kind=REST, name=f"the {cut.inside} that breaks off in line {cut.line}: {cut.why}")
    missing = (*(one for one in found.missing if one.kind not in ("code", CALL) and one.name != cut.word), rest)
    if isinstance(found, NoRepro):
        reason = f"The description breaks off inside its {cut.inside}, in line {cut.line}."
        return replace(found, reason=reason, missing=missing)
    return replace(found, missing=missing)


def _lacks_only_flags(found: Repro, cut: Cut) -> bool:
    """True if the command runs without the part that breaks off, and the report is about a crash or an error.

    Then the failure decides: a run that shows it needs no further flag. Any other end decides nothing.
    """
    fails = found.claim.kind in (ClaimKind.CRASH, ClaimKind.ERROR)
    return cut.inside == "command" and found.has_open_command and fails and not found.missing


def _note_open_end(parsed: ParsedIssue, found: Extraction) -> Extraction:
    """Note that the description ends inside the code block of the testcase, if it does."""
    piece = find_open_end(parsed.document, parsed.pieces) if isinstance(found, Repro) else None
    if piece is None or not isinstance(found, Repro) or all(span.block != piece.block for span in found.spans):
        return found
    note = Repair(kind=OPEN_END, detail=f"the description ends inside the code block of line {piece.lines[0]}")
    return replace(found, repairs=(*found.repairs, note))


def _needs_rest(found: Extraction, cut: Cut) -> bool:
    """True if the part that breaks off is in the testcase, or if there is no testcase."""
    if isinstance(found, NoRepro):
        return True
    if cut.piece is None:
        return False  # the end of a sentence or of output: the testcase is above it
    if cut.inside == "command":
        calls, _ = parse_commands(cut.piece.text)
        return bool(calls) and calls[-1].argv[0] in {step[0] for step in found.testcase.steps if step}
    own = (span for span in found.spans if not span.comment and not span.attachment)
    return any(span.lines[1] >= cut.piece.lines[0] for span in own)


def _extract_text(parsed: ParsedIssue, allowed: Mapping[str, str] | None) -> Extraction:
    if parsed.toolchain is None:
        reason = "Nothing in the issue says which compiler it is about; please name it and its version."
        return NoRepro(reason=reason, claim=make_claim(parsed), toolchain=None)
    if (tools := parsed.vocabulary.tools) is not None:
        return _choose_testcase(parsed, parsed.toolchain, tools, allowed)
    python = extract_python(parsed, parsed.toolchain, allowed)
    calls = python or extract_module_call(parsed, parsed.toolchain)
    return calls or extract_text_program(parsed, parsed.toolchain) or _explain_no_testcase(parsed)


def _choose_testcase(
    parsed: ParsedIssue, toolchain: str, tools: CommandLineTools, allowed: Mapping[str, str] | None
) -> Extraction:
    """Return the testcase of an issue about a compiler with command-line programs.

    Operations without a function are run in a function of ours, if the report is about a crash or an error.
    """
    pieces = wrap_only_fragment(parsed.pieces)
    if pieces != parsed.pieces:
        found = _choose_among(replace(parsed, pieces=pieces), toolchain, tools, allowed)
        if isinstance(found, Repro) and found.is_wrapped and found.claim.kind in (ClaimKind.CRASH, ClaimKind.ERROR):
            return found
    return _choose_among(parsed, toolchain, tools, allowed)


def _choose_among(
    parsed: ParsedIssue, toolchain: str, tools: CommandLineTools, allowed: Mapping[str, str] | None
) -> Extraction:
    """Return the testcase of the commands, of the Python, or of both."""
    calls, ignored = find_commands(parsed.document, parsed.pieces, tools)
    calls = _keep_scripts_between(
        calls, {piece.name for piece in parsed.pieces if piece.kind is Kind.PYTHON and piece.name}
    )
    if program := find_absent_program(parsed.issue.title, parsed.pieces, calls, ignored, tools):
        reason = f"The report is about `{program}`, a program that no release here contains."
        missing = (Missing(kind=ABSENT_PROGRAM, name=program),)
        return NoRepro(reason=reason, claim=make_claim(parsed), toolchain=toolchain, missing=missing)
    commands = extract_commands(parsed, toolchain, tools, calls, ignored) if calls else None
    if commands is not None and (whole := add_writers(parsed, commands, allowed)) is not commands:
        called = extract_python(parsed, toolchain, allowed)
        if isinstance(called, Repro) and not called.missing and prints_results(called.testcase):
            return called  # the commands repeat what the program compiles and calls itself
        return whole
    has_mlir = any(piece.kind is Kind.MLIR for piece in parsed.pieces)
    python = extract_python(parsed, toolchain, allowed)
    if isinstance(python, Repro) and commands is not None and (read := _join_reader(commands, python, tools)):
        return read
    if calls and has_mlir:
        python = None
    if isinstance(python, Repro):
        if commands is None:
            return python
        if both := _join_generator(python, commands):
            return both
        if _is_self_contained(python):
            return python
    given = commands or python or extract_plain_compile(parsed, toolchain, tools)
    return given or extract_dumped_pass(parsed, toolchain, tools) or _explain_no_testcase(parsed)


def _keep_scripts_between(calls: Sequence[LocatedCall], scripts: set[str]) -> list[LocatedCall]:
    """Return the calls of tools, and between two of them the calls of scripts that the report gives by name.

    The first script may write the inputs, and the last one may read the module: these are joined with the commands.
    """
    tools = [at for at, (call, _) in enumerate(calls) if call.argv[0] != "python"]
    return [
        located
        for at, located in enumerate(calls)
        if at in tools or (scripts.intersection(located[0].argv[1:2]) and tools and tools[0] < at < tools[-1])
    ]


def _join_generator(python: Repro, commands: Repro) -> Repro | None:
    """Join the commands with a script that writes their input. Return None if it writes no input."""
    code = python.testcase.files[MAIN_FILE]
    generated = [entry for entry in commands.missing if re.search(rf"['\"/]{re.escape(entry.name)}['\"]", code)]
    if not generated:
        return None
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain=python.testcase.toolchain,
        files={**python.testcase.files, **commands.testcase.files},
        steps=(*python.testcase.steps, *commands.testcase.steps),
        requirements=python.testcase.requirements,
    )
    return replace(
        commands,
        testcase=testcase,
        spans=(*python.spans, *commands.spans),
        repairs=(*python.repairs, *commands.repairs),
        missing=(*python.missing, *(entry for entry in commands.missing if entry not in generated)),
    )


def _join_reader(commands: Repro, python: Repro, tools: CommandLineTools) -> Repro | None:
    """Join the commands that compile a module with the script that runs it. Return None if it reads none of them."""
    code = python.testcase.files[MAIN_FILE]
    made = [word for step in commands.testcase.steps for word in step if word.endswith(f".{tools.module_suffix}")]
    read = [name for name in made if re.search(rf"['\"/]{re.escape(name)}['\"]", code)]
    runs = any(step[0] in tools.runners for step in commands.testcase.steps)
    missing = tuple(entry for entry in python.missing if entry.name not in made)
    if not read or runs or missing:
        return None
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain=python.testcase.toolchain,
        files={**commands.testcase.files, **python.testcase.files},
        steps=(*commands.testcase.steps, *python.testcase.steps),
        requirements=python.testcase.requirements,
    )
    return replace(
        python,
        testcase=testcase,
        spans=(*commands.spans, *python.spans),
        repairs=(*commands.repairs, *python.repairs),
        missing=commands.missing,
        device=commands.device,
    )


def _is_self_contained(python: Repro) -> bool:
    """True if the script itself calls the compiler. Other scripts only prepare an input for the commands."""
    code = python.testcase.files[MAIN_FILE]
    packages = vocabulary_of(python.testcase.toolchain).python.packages
    return any(package in code for package in packages) and not python.missing


def _explain_no_testcase(parsed: ParsedIssue) -> NoRepro:
    """Return the reason why there is no testcase. The reason names the kinds of text that were found instead."""
    kinds = {piece.kind for piece in parsed.pieces}
    devices = parsed.vocabulary.read_devices(DeviceText(title=parsed.issue.title, prose=parsed.prose))
    claim = make_claim(parsed, "", devices.named)
    links = [link.url for link in find_links(parsed.issue.body) if not link.shows_output]
    if links := [*links, *find_stored_files(parsed.issue.body)]:
        reason = "The program is behind a link only; please put it into the issue, or attach it as a file."
        missing = tuple(Missing(kind="file", name=link, url=link) for link in links)
    elif script := find_source_script(parsed.issue.body, parsed.vocabulary.source_folders):
        reason = f"It runs `{script[:120]}`, a script of the source tree, which no release here contains."
        missing = (Missing(kind=SOURCE_SCRIPT, name=script),)
    elif _NATIVE_PROGRAM.search("\n".join(piece.text for piece in parsed.pieces if piece.kind is Kind.NATIVE)):
        reason = "The program is in C or C++ and needs the compiler's libraries; no such program is built here."
        missing = (Missing(kind=NATIVE_PROGRAM, name="the program"),)
    else:
        if kinds & {Kind.FRAGMENT, Kind.MLIR} and parsed.vocabulary.tools is None:
            reason = "The issue gives the text of a program, but not the code that compiles and runs this text."
            name = "the Python code that compiles and runs the program shown"
        elif Kind.FRAGMENT in kinds:
            reason = (
                "The issue shows single MLIR operations; "
                "a whole function and the command that compiles it are needed."
            )
            name = "the function around the MLIR operations shown"
        elif Kind.MLIR in kinds:
            reason = "The issue gives MLIR, but not the command that shows the failure."
            name = "the command that shows the failure"
        elif kinds & {Kind.OUTPUT, Kind.TRACEBACK}:
            reason = "The issue shows output, but no program or command that leads to it."
            name = "the program that prints this"
        else:
            reason = "The issue holds no code that could be run."
            name = "a program or command that shows the failure"
        gives_program = bool(kinds & {Kind.MLIR, Kind.FRAGMENT}) and claim.kind is not ClaimKind.UNKNOWN
        missing = (Missing(kind=CALL if gives_program else "code", name=name),)
    return NoRepro(reason=reason, claim=claim, toolchain=parsed.toolchain, missing=missing)


_NATIVE_PROGRAM = re.compile(r"^\s{0,8}(?:int|void|auto)\s{1,8}main\s?\(|^TEST(?:_F|_P)?\s?\(", re.M)
"""The entry of a C or C++ program, or a test of GoogleTest."""
