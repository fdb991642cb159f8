"""The Python pieces of an issue → a testcase with its claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from bot.extract.claim.failure import fails_at_definition
from bot.extract.claim.versions import Passage, find_versions
from bot.extract.links import add_addresses
from bot.extract.parsed_issue import ParsedIssue, choose_device, make_claim, make_span
from bot.extract.python.assemble import (
    MAIN_FILE,
    Ambiguous,
    AssemblyContext,
    Program,
    assemble_program,
    collect_words,
)
from bot.extract.types import Extraction, Missing, NoRepro, Repro
from runners.core.protocol import ClaimKind, Testcase, TestcaseKind
from runners.core.toolchain.reports import DeviceText, ReportAge


def extract_python(parsed: ParsedIssue, toolchain: str, allowed: Mapping[str, str] | None) -> Extraction | None:
    """Return the Python testcase of an issue, or None if the issue holds no Python.

    ``allowed`` extends the allow-list of imports (import name → distribution).
    """
    versions = find_versions([Passage(text=parsed.prose)], parsed.toolchain)
    context = AssemblyContext(
        toolchain=toolchain,
        claim_words=_collect_claim_words(parsed),
        allowed=allowed,
        age=ReportAge(versions=versions, day=parsed.issue.created),
    )
    program, controls = assemble_program(parsed.pieces, context)
    match program:
        case None:
            return None
        case Ambiguous(lines=lines):
            places = " and ".join(f"line {first}" for first, _ in lines)
            reason = (
                f"The issue holds two unrelated programs ({places}) and does not say which one shows the failure."
            )
            return NoRepro(reason=reason, claim=make_claim(parsed), toolchain=toolchain)
        case Program():
            repro = _make_repro(parsed, toolchain, program, controls)
            return _reject_question(parsed, repro) or repro


def _reject_question(parsed: ParsedIssue, repro: Repro) -> NoRepro | None:
    """Refuse the excerpt of a question: names are missing, and the issue names no failure."""
    title = parsed.issue.title.strip()
    asks = title.endswith("?") or re.match(r"\W*(?:how|question|is there|can i)\b", title, re.I)
    incomplete = any(entry.kind == "name" for entry in repro.missing)
    if not (asks and incomplete and repro.claim.kind is ClaimKind.UNKNOWN):
        return None
    reason = "The issue asks a question and names no failure; its code is an excerpt."
    return NoRepro(reason=reason, claim=repro.claim, toolchain=parsed.toolchain)


def _collect_claim_words(parsed: ParsedIssue) -> frozenset[str]:
    signature = parsed.signature
    quoted = f"{signature.message} {' '.join(signature.frames)}" if signature else ""
    return collect_words(f"{parsed.issue.title} {quoted}")


def _make_repro(parsed: ParsedIssue, toolchain: str, program: Program, controls: tuple[Program, ...]) -> Repro:
    text = DeviceText(python=program.code, title=parsed.issue.title, prose=parsed.prose)
    devices = parsed.vocabulary.read_devices(text)
    spans = [make_span(MAIN_FILE, unit.piece) for unit in program.units]
    spans += [make_span(name, unit.piece) for name, unit in program.extra_files.items()]
    missing = (*program.missing, *_find_missing_driver(parsed, program))
    return Repro(
        testcase=_make_testcase(program, toolchain),
        claim=make_claim(parsed, program.code, devices.named),
        spans=tuple(spans),
        repairs=program.repairs,
        missing=add_addresses(missing, parsed.issue.body),
        device=choose_device(toolchain, devices),
        controls=tuple(_make_testcase(control, toolchain) for control in controls),
    )


def _find_missing_driver(parsed: ParsedIssue, program: Program) -> tuple[Missing, ...]:
    """Report the driver as missing if the program only defines names, unless the definition itself fails."""
    called = any(repair.kind == "call-main" for repair in program.repairs)
    defines = any(isinstance(n, ast.ClassDef | ast.FunctionDef) for u in program.units if u.tree for n in u.tree.body)
    if called or not defines or any(unit.acts for unit in program.units):
        return ()
    signature = parsed.signature
    if signature is not None and fails_at_definition(signature):
        return ()
    return (Missing(kind="code", name="the code that uses these definitions"),)


def _make_testcase(program: Program, toolchain: str) -> Testcase:
    others = {name: unit.piece.text for name, unit in program.extra_files.items()}
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={MAIN_FILE: program.code, **others},
        steps=(("python", MAIN_FILE),),
        requirements=program.requirements,
    )
