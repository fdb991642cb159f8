"""A report whose only program is text of the compiler's own language → a testcase that takes the text."""

from __future__ import annotations

import re

from bot.extract.claim.failure import list_failure_pieces
from bot.extract.parsed_issue import ParsedIssue, choose_device, make_claim
from bot.extract.python.assemble import MAIN_FILE
from bot.extract.types import ADD_COMPILE, ASSUME_DEVICE, Repair, Repro, Span
from bot.extract.vocabulary import vocabulary_of
from runners.core.protocol import ClaimKind, Testcase, TestcaseKind
from runners.core.toolchain.reports import DeviceText

MAX_TEXT = 100_000
_PARSER = re.compile(r"\bpars(?:e[sdr]?|ing|able)\b", re.I)


def extract_text_program(parsed: ParsedIssue, toolchain: str) -> Repro | None:
    """Return the testcase of the last whole program in the compiler's own language; None without one.

    Only for an error or a crash: a report of wrong values needs its own inputs. If the report names the parser, the
    text is only parsed, since compiling could fail in another way.
    """
    words = vocabulary_of(toolchain).python.text_program
    if words is None:
        return None
    blocks = [one for one in parsed.document.blocks if not one.comment and words.is_whole(one.text[:MAX_TEXT])]
    if not blocks or make_claim(parsed).kind not in (ClaimKind.ERROR, ClaimKind.CRASH):
        return None
    quoted = "\n".join(piece.text for piece in list_failure_pieces(parsed.pieces))
    only_reads = bool(_PARSER.search("\n".join((parsed.issue.title, parsed.prose, quoted))))
    devices = parsed.vocabulary.read_devices(DeviceText(title=parsed.issue.title, prose=parsed.prose))
    block = blocks[-1]
    code = words.read.format(text=block.text.strip("\n"))
    repairs = [Repair(kind=ADD_COMPILE, detail=words.read.strip().rpartition("\n")[2])]
    if not only_reads:
        code += words.compile
        repairs.append(Repair(kind=ADD_COMPILE, detail=words.compile.strip()))
        repairs += [] if devices.named else [Repair(kind=ASSUME_DEVICE, detail="llvm")]
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain=toolchain, files={MAIN_FILE: code}, steps=(("python", MAIN_FILE),)
    )
    return Repro(
        testcase=testcase,
        claim=make_claim(parsed, code, devices.named),
        spans=(Span(file=MAIN_FILE, block=block.index, lines=block.lines),),
        repairs=tuple(repairs),
        device=choose_device(toolchain, devices),
    )
