"""What the reporter says happens: kind, signature, quoted output, versions, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.extract.failure import failure_pieces, find_signature
from bot.extract.markdown import Document, Prose
from bot.extract.pieces import Kind, Piece
from bot.extract.printed import quoted_output, telling_line
from bot.extract.sections import Section, section_of
from bot.extract.versions import Passage, find_versions
from runners.protocol import Claim, ClaimKind, Signature
from runners.signature import NATIVE

OUTPUT_TYPE = "output"
"""Signature type of a claim that rests on printed output alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The parts of an issue that a claim is read from."""

    title: str
    document: Document
    pieces: tuple[Piece, ...]
    code: str
    """The testcase's text, files and commands, as far as it was found."""
    devices: tuple[str, ...]
    toolchain: str | None


def read_claim(report: Report) -> Claim:
    """The claim; `ClaimKind.UNKNOWN` when the text names no failure."""
    signature = find_signature(report.title, report.document, report.pieces)
    actual, expected = quoted_output(report.document, report.pieces)
    kind = _kind(report, signature)
    if kind is ClaimKind.UNKNOWN and actual and report.code:
        kind = ClaimKind.WRONG_RESULT  # it ran, and what it printed is what the report is about
    if kind in (ClaimKind.CRASH, ClaimKind.ERROR):
        actual = expected = ""
    if kind is ClaimKind.CRASH and signature is None and _SEGFAULT.search(f"{report.title}\n{_said(report)}"):
        signature = Signature(type="SIGSEGV")
    if kind is ClaimKind.WRONG_RESULT and signature is None and actual:
        signature = Signature(type=OUTPUT_TYPE, message=telling_line(actual, expected)[:500])
    return Claim(
        kind=kind,
        signature=signature,
        versions=tuple(v[:512] for v in find_versions(_passages(report), report.toolchain)),
        devices=tuple(d[:512] for d in report.devices[:8]),
        actual=actual,
        expected=expected,
    )


# ---------------------------------------------------------------------------------------------- kind

_NUMPY_MISMATCH = re.compile(
    r"Expected (?:near )?equality of these values|"
    r"Not equal to tolerance|Mismatched elements|Arrays are not (?:almost )?equal|Max absolute difference"
    r"|Tensor-likes are not close"
    r"|\[FAILED\]|element at index \d+ \(.{1,40}?\) does not match",
)


_HANG = re.compile(
    r"\b(?:hang(?:s|ing)?\b|never (?:returns|terminates|finishes|ends|comes back)|infinite(?:ly)? (?:loop"
    r"|recurs\w+)|dead-?lock\w*|(?:gets?|is|be) stuck"
    r"|does(?: no|n[o'’])t (?:terminate|finish|return)|endless(?:ly)? loop\w*|endlessly|takes forever"
    r"|loops? forever|runs? forever|not (?:terminating|finish\w*))",
    re.I,
)


_CRASH = re.compile(
    r"\b(?:seg(?:mentation)? ?faults?|segv|sigsegv|sigabrt|core dump(?:ed)?|crash(?:es|ed|ing)?|abort(?:s"
    r"|ed)?\b(?! if))",
    re.I,
)


_HARD_CRASH = re.compile(
    r"\b(?:seg(?:mentation)? ?faults?|segfault\w*|segv|sigsegv|sigabrt|sigfpe|core ?dump(?:ed|s)?)\b", re.I
)


_SEGFAULT = re.compile(r"\bseg(?:mentation)? ?faults?\b|\bsegfault|\bsegv\b", re.I)


_WRONG = re.compile(
    r"\b(?:wrong|incorrect\w*|inaccura\w+|mis-?match\w*|garbage|trash|inconsisten\w+|different (?:result"
    r"|output|value|answer)s?|mis-?compil\w+|numerical(?:ly)?"
    r"|results? differ\w*|outputs? differ\w*|not (?:equal|match\w*|the same|simplified|correct|optimi[sz]ed"
    r"|folded|eliminated|removed)|does ?n[o'’]t match|silently|NaNs?|all zeros?"
    r"|far too (?:small|large|big)|expected .{1,60} but (?:got|get)|unexpected (?:result|output|value)s?"
    r"|corrupt\w*|truncat\w*|transposed|swapped|shifted|reversed|duplicated|off by (?:one|\d)|differs?"
    r"|drop(?:s|ped)|los(?:es|t)|replaced by|saturates?|returns? (?:only )?(?:0|zeros?"
    r"|zeroes)|instead of|should (?:be|have been|print|return|give|still|remain|keep|preserve)"
    r"|correctness|(?:not|n[o'’]t|cannot) (?:be )?(?:\w+ ){0,2}correctly|in ?correct|accuracy)",
    re.I,
)


_ERROR = re.compile(
    r"\b(?:errors?\b|exceptions?\b|fail(?:s|ed|ure|ing)?\b|raises?\b|throws?\b|assert\w*"
    r"|does ?n[o'’]t (?:work|compile|support|build)|cannot|can't|can ?not|unable|unsupported"
    r"|not (?:supported|implemented)|unimplemented|invalid|refuse[sd]?|reject\w*|InternalError|\w+Error)\b",
    re.I,
)


def _kind(report: Report, signature: Signature | None) -> ClaimKind:
    """Evidence before prose, the title before the body."""
    quoted = "\n".join(p.text for p in failure_pieces(report.pieces))
    title = report.title
    if signature is not None and signature.type in NATIVE:
        return ClaimKind.CRASH
    if _HANG.search(title) and (signature is None or signature.type in ("KeyboardInterrupt",)):
        return ClaimKind.HANG
    if _NUMPY_MISMATCH.search(quoted) or (signature and _NUMPY_MISMATCH.search(signature.message)):
        return ClaimKind.WRONG_RESULT
    if signature is not None:
        return _kind_of_failure(report, signature, quoted)
    for text in (title, _said(report)):
        for kind, pattern in _KINDS:
            if pattern.search(text):
                return kind
    return ClaimKind.UNKNOWN


def _said(report: Report) -> str:
    return "\n".join(p.text for p in report.document.prose)


_KINDS = (
    (ClaimKind.CRASH, _HARD_CRASH),
    (ClaimKind.HANG, _HANG),
    (ClaimKind.WRONG_RESULT, _WRONG),
    (ClaimKind.CRASH, _CRASH),
    (ClaimKind.ERROR, _ERROR),
)


def _kind_of_failure(report: Report, signature: Signature, quoted: str) -> ClaimKind:
    """An error, unless it is the testcase's own check of a result that fails."""
    if signature.type == "KeyboardInterrupt":
        return ClaimKind.HANG
    if any("assert_structural_equal" in frame or "assert_allclose" in frame for frame in signature.frames):
        return ClaimKind.WRONG_RESULT
    if signature.type in ("AssertionError", "output") and _checks_result(report.code) and not signature.frames:
        said = f"{report.title}\n{quoted}"
        if 'File "' in quoted or _WRONG.search(said) or not signature.message:
            return ClaimKind.WRONG_RESULT
    return ClaimKind.ERROR


_CHECK = re.compile(
    r"^[ \t]*assert\b|assert_allclose|assert_array|assert_almost|assert_close|allclose\(|assert_structural_equal",
    re.M,
)


def _checks_result(code: str) -> bool:
    return bool(_CHECK.search(code))


# ---------------------------------------------------------------------------------------------- passages


def _passages(report: Report) -> Iterator[Passage]:
    """Version statements first where forms put them, then the prose, then printed output and the title."""
    prose: list[Prose] = [p for p in report.document.prose if not p.heading]
    headed = [p for p in prose if section_of(p.section) is Section.ENVIRONMENT]
    rest = [p for p in prose if section_of(p.section) is not Section.ENVIRONMENT]
    yield from (Passage(text=p.text, heading=p.section) for p in headed)
    blocks = [p for p in report.pieces if p.kind in (Kind.OUTPUT, Kind.SHELL, Kind.CONFIG)]
    traces = [p for p in report.pieces if p.kind is Kind.TRACEBACK]
    yield from (Passage(text=b.text, heading=b.heading) for b in blocks if b.section is Section.ENVIRONMENT)
    yield from (Passage(text=p.text) for p in rest)
    yield Passage(text=report.title)
    if "__version__" in report.code:  # the program prints the version it runs on
        alone = [line for printed in (*blocks, *traces) for line in _VERSION_ALONE.findall(printed.text)[:3]]
        yield from (Passage(text=line, heading="version") for line in alone)
    for block in blocks:
        if block.section is not Section.ENVIRONMENT:
            yield from (Passage(text=line) for line in block.text.split("\n")[:400] if _VERSION_LINE.search(line))
    for trace in traces:
        found = re.findall(r"(?:site|dist)-packages/\S{1,200}", trace.text[:100_000])
        yield Passage(text="\n".join(found[:50]))


_VERSION_ALONE = re.compile(r"^['\"]?(\d+\.\d+[\w.+]*)['\"]?$", re.M)


_VERSION_LINE = re.compile(
    r"IREE.{0,40}version|iree-(?:base-)?compiler|apache-tvm|tvm.{0,12}(?:version|==)|__version__"
    r"|LLVM version .{0,20}IREE",
    re.I,
)
