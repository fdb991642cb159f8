"""What the reporter says happens: kind, signature, quoted output, versions, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from bot.extract.markdown import Document, Prose, code_spans
from bot.extract.pieces import Kind, Piece
from bot.extract.sections import Cue, Section, cue_of, section_of
from bot.extract.versions import Passage, find_versions
from runners.protocol import Claim, ClaimKind, Signature
from runners.signature import NATIVE, parse_signature

OUTPUT_TYPE = "output"
"""Signature type of a claim that rests on printed output alone."""

MAX_QUOTED_CHARS = 8_000


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
        signature = Signature(type=OUTPUT_TYPE, message=_telling_line(actual, expected)[:500])
    return Claim(
        kind=kind,
        signature=signature,
        versions=tuple(v[:512] for v in find_versions(_passages(report), report.toolchain)),
        devices=tuple(d[:512] for d in report.devices[:8]),
        actual=actual,
        expected=expected,
    )


# ---------------------------------------------------------------------------------------------- signature


def find_signature(title: str, document: Document, pieces: Sequence[Piece]) -> Signature | None:
    """The failure quoted in the report, from the most to the least reliable place.

    Tracebacks and output in blocks, then bare lines and code spans of the prose, then the title.
    """
    candidates = [s for s in map(_of_piece, _failure_pieces(pieces)) if s is not None]
    if not candidates:  # a failure shown where what is right should stand
        rest = [p for p in pieces if p.kind in (Kind.TRACEBACK, Kind.OUTPUT) and _tells_what_is_right(p)]
        candidates = [s for s in map(_of_piece, rest) if s is not None]
    if candidates:
        return max(candidates, key=_weight)
    said = "\n".join(p.text for p in document.prose if not p.heading)
    if (block := _mismatch(said)) is not None:
        return block
    bare = parse_signature(said)
    if bare is not None and bare.type not in NATIVE:
        return bare
    for prose in document.prose:
        for span in code_spans(prose.text):
            found = parse_signature(span)
            if found is not None and _is_quoted_failure(span, found):
                return found
    untagged = re.sub(r"^(?:\s*\[[^\]]{1,40}\])+\s*", "", title)
    titled = parse_signature(untagged)
    if titled is not None and titled.message:
        return titled
    running = "\n".join([untagged, *(p.text for p in document.prose if not p.heading)])
    return _in_running_text(running) or titled or bare


_IN_TEXT = re.compile(
    r"(?<![\w.])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error"
    r"|Exception))\b`{0,2}(?:: ?(?P<message>[^\n]{1,400}))?"
)
_RAISED = re.compile(
    r"\b(?:rais\w+|throw\w*|thr[eo]wn?|fails? with|dies? with|stops? with|gets?|got|gives?"
    r"|an?|with|in)\s+(?:an? )?`{0,2}$",
    re.I,
)


def _in_running_text(text: str) -> Signature | None:
    """``… dies with TypeError: no such thing``: amid a sentence; one with a message before a bare one."""
    bare: Signature | None = None
    for found in _IN_TEXT.finditer(text):
        name, message = found["type"].rpartition(".")[2], (found["message"] or "").strip()
        if message:
            return parse_signature(f"{found['type']}: {message}") or Signature(type=name, message=message)
        if bare is None and _RAISED.search(text[max(0, found.start() - 30) : found.start()]):
            bare = Signature(type=name)
    return bare


def _failure_pieces(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.kind in (Kind.TRACEBACK, Kind.OUTPUT, Kind.NATIVE, Kind.SHELL) and not _tells_what_is_right(piece):
            yield piece


def _tells_what_is_right(piece: Piece) -> bool:
    return piece.section is Section.EXPECTED or piece.cue in (Cue.EXPECTED, Cue.WORKS)


def _of_piece(piece: Piece) -> Signature | None:
    text = piece.text
    if "Program arguments:" in text and "Stack dump:" not in text:
        text = f"Stack dump:\n{text}"  # the line above was not copied
    found = parse_signature(text)
    if (block := _mismatch(text) or _sanitizer(text)) is not None:
        return block
    if found is not None and _FRAME_MESSAGE.match(found.message):
        return msgspec.structs.replace(found, message="")
    return found


def _sanitizer(text: str) -> Signature | None:
    """A sanitizer's report: which fault, and the compiler's functions in its stack."""
    found = _SANITIZER.search(text)
    if found is None:
        return None
    stack = parse_signature(f"Stack dump:\n{text}")
    return Signature(type="crash", message=found[0], frames=stack.frames if stack else ())


_SANITIZER = re.compile(r"(?:Address|Memory|Thread|Leak|UndefinedBehavior)Sanitizer: [\w-]{1,60}")


def _mismatch(text: str) -> Signature | None:
    """numpy's report of unequal arrays, with the line of its figures; pasted without the exception's name as well."""
    header = _MISMATCH_HEADER.search(text)
    figures = _MISMATCH_FIGURES.search(text, header.end(), header.end() + 500) if header else _FIGURES.search(text)
    if header is None and figures is None:
        return None
    message = " | ".join(found[0].strip() for found in (header, figures) if found)
    return Signature(type="AssertionError", message=message)


_FIGURES = re.compile(r"Mismatched elements: [^\n]{1,60}")
_MISMATCH_HEADER = re.compile(r"Not equal to tolerance [^\n]{1,80}|Arrays are not (?:almost )?equal[^\n]{0,60}")
_MISMATCH_FIGURES = re.compile(
    r"Mismatched elements: [^\n]{1,60}"
    r"|(?:\([^\n]{1,40} )?[Mm]ismatch(?:ed)? \(?[\d.]+%[^\n]{0,20}"
)
_FRAME_MESSAGE = re.compile(r"\d{1,4}: ")
"""A numbered C++ frame where the message of a TVM error was cut off."""


def _weight(signature: Signature) -> tuple[int, int, int]:
    """More telling first: a failure with frames or a message over a bare name. `max` keeps the first of equals."""
    return (
        int(signature.type in NATIVE or bool(signature.message)),
        int(bool(signature.frames)),
        int(signature.type not in ("flag-error",)),
    )


def _is_quoted_failure(span: str, found: Signature) -> bool:
    """``AssertionError: …`` rather than the name of a class or a flag in running text."""
    return bool(found.message) or found.type in NATIVE or bool(re.fullmatch(r"[\w.]+(?:Error|Exception)", span))


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
    quoted = "\n".join(p.text for p in _failure_pieces(report.pieces))
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


# ---------------------------------------------------------------------------------------------- quoted output

_LABEL = re.compile(
    r"^\W*(?P<label>expected(?: (?:output|result|behaviou?r|value)s?)?|desired(?: output)?|want(?:ed)?"
    r"|should be|actual(?: (?:output|result|behaviou?r|value)s?)?|got|output|result|observed|prints?)"
    r"(?: (?:is|was|are))?\W*[:=]\W*(?P<rest>[^\n]*)$",
    re.I | re.M,
)
_EXPECT_SPAN = re.compile(
    r"(?:expect(?:ed|s)?|should (?:be|print|have|give|return|say)|want(?:ed)?|correct \w+ is)[^`\n.]{0,60}$",
    re.I,
)
_ACTUAL_SPAN = re.compile(
    r"\b(?:got|get|gives?|prints?|printed|returns?|shows?|says?|outputs?|results?|but (?:it )?is|actual(?:ly)?)\b"
    r"(?:(?!\b(?:in|for|on|from|with|using|by|when|of)\b)[^`\n.]){0,30}$",
    re.I,
)


def quoted_output(document: Document, pieces: Sequence[Piece]) -> tuple[str, str]:
    """What is printed and what should have been: output blocks by their section or introduction, else code spans.

    A check test's "lhs: … rhs: …" names both.
    """
    actual: list[str] = []
    expected: list[str] = []
    for piece in pieces:
        if piece.kind is not Kind.OUTPUT or piece.cue is Cue.QUOTED:
            continue
        if sides := _SIDES.search(piece.text):
            actual.append(sides["lhs"])
            expected.append(sides["rhs"])
        else:
            (expected if _tells_what_is_right(piece) else actual).append(piece.text.strip("\n"))
    above = ""
    for prose in document.prose:
        if prose.heading:
            above = ""
            continue
        if _RESULT_LINE.match(prose.text.lstrip("`")):
            right = cue_of(above) in (Cue.EXPECTED, Cue.WORKS) or section_of(prose.section) is Section.EXPECTED
            (expected if right else actual).append(prose.text.strip("`"))
        else:
            _quoted_in_sentence(prose.text, actual, expected)
        above = prose.text
    return _bounded(actual), _bounded(expected)


_SIDES = re.compile(r"^\s{0,8}lhs: (?P<lhs>[^\n]+)\n\s{0,8}rhs: (?P<rhs>[^\n]+)", re.M)
_RESULT_LINE = re.compile(r"(?:EXEC @|result\[\d+\]|(?:\d+x){0,8}[a-z]{1,4}\d{1,2}=)")


def _quoted_in_sentence(text: str, actual: list[str], expected: list[str]) -> None:
    for before, span in _spans_with_lead(text):
        if _EXPECT_SPAN.search(before):
            expected.append(span)
        elif _ACTUAL_SPAN.search(before) and not actual:
            actual.append(span)

    for found in _QUOTED.finditer(text):
        (expected if found["wanted"] else actual).append(found["words"])


_QUOTED = re.compile(
    r"\b(?:(?P<wanted>expect(?:ed)?|should (?:be|print|say|give|return))|prints?|printed|outputs?|says?"
    r"|gives?|gets?"
    r"|got|returns?):? [\"“](?P<words>[^\"”\n]{1,300})[\"”]",
    re.I,
)


def _spans_with_lead(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    for span in code_spans(text):
        found = text.find("`", at)
        where = text.find(span, found) if found >= 0 else -1
        if where < 0:
            continue
        yield text[max(0, where - 120) : where].rstrip("`"), span
        at = where + len(span) + 1


def _bounded(parts: Sequence[str]) -> str:
    return "\n".join(p for p in parts if p)[:MAX_QUOTED_CHARS]


def _telling_line(actual: str, expected: str) -> str:
    """The first printed line that the expected output does not have."""
    right = {line.strip() for line in expected.split("\n")}
    lines = [line.strip() for line in actual.split("\n") if line.strip()]
    wrong = [line for line in lines if line not in right and not line.startswith(("EXEC ", "result[", "$", "#"))]
    return (wrong or lines or [""])[0]


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


_VERSION_ALONE = re.compile(r"^(\d+\.\d+[\w.+]*)$", re.M)
_VERSION_LINE = re.compile(
    r"IREE.{0,40}version|iree-(?:base-)?compiler|apache-tvm|tvm.{0,12}(?:version|==)|__version__"
    r"|LLVM version .{0,20}IREE",
    re.I,
)
