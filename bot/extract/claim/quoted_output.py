"""Output that a report quotes: what is printed, and what should have been."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.extract.blocks.markdown import Document, located_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, Section, cue_of, section_of
from bot.extract.claim.failure import tells_what_is_right
from bot.extract.vocabulary import all_tools, any_of, any_word

MAX_QUOTED_CHARS = 8_000


_EXPECT_SPAN = re.compile(
    r"(?:expect(?:ed|s)?|should (?:be|print|have|give|return|say)|want(?:ed)?|correct \w+ is"
    r"|(?:right|correct) (?:would be|is))"
    r"(?:(?!\bnot?\b)[^`\n.]){0,60}$",
    re.I,
)
_REFERENCE_SPAN = re.compile(
    r"(?:^|[\s(*])(?:numpy|np|scipy|(?:py)?torch|jax|tensorflow|tflite|onnx ?runtime|ort|eager)[)*]*"
    r"(?: (?:says?|gives?|returns?|prints?|has|gets|outputs?|computes?)(?: \w+){0,3})?\s?[:=]?\s*$",
    re.I,
)
"""What another implementation gives: a code span after its name, or after ``numpy gives``."""


_ACTUAL_SPAN = re.compile(
    r"\b(?:got|get|gives?|prints?|printed|returns?|shows?|says?|outputs?|results?|but (?:it )?is|actual(?:ly)?"
    r"|(?:I|we) (?:see|saw|observed?))\b"
    r"(?:(?!\b(?:in|for|on|from|with|using|by|when|of)\b)[^`\n.]){0,30}$",
    re.I,
)


def quoted_output(document: Document, pieces: Sequence[Piece], good: Sequence[str] = ()) -> tuple[str, str]:
    """What is printed and what should have been: output blocks by their section or introduction, else code spans.

    A compiler's own failed test names both. Output introduced by a version in ``good`` is what should come out.
    """
    actual: list[str] = []
    expected: list[str] = []
    for piece in pieces:
        if piece.kind is not Kind.OUTPUT or piece.cue is Cue.QUOTED:
            continue
        if compared := _compared_values(piece.text):
            actual.append(compared["actual"])
            expected.append(compared["expected"])
        else:
            right = tells_what_is_right(piece) or _is_of(piece.intro, good)
            (expected if right else actual).append(piece.text.strip("\n"))
    above = ""
    for prose in document.prose:
        if prose.heading:
            above = ""
            continue
        if results := _result_lines(prose.text):
            right = cue_of(above) in (Cue.EXPECTED, Cue.WORKS) or section_of(prose.section) is Section.EXPECTED
            (expected if right else actual).append(results)
        else:
            _quoted_in_sentence(prose.text, actual, expected)
        above = prose.text
    return _bounded(actual), _bounded(expected)


def _is_of(intro: str, versions: Sequence[str]) -> bool:
    """``With 3.10.0:`` announces what 3.10.0 prints."""
    last = intro.rstrip().rpartition("\n")[2][-60:]
    return last.endswith(":") and any(re.search(rf"(?<![\d.]){re.escape(v)}:?$", last.rstrip(":")) for v in versions)


def _compared_values(text: str) -> re.Match[str] | None:
    patterns = (tools.compared_values for tools in all_tools() if tools.compared_values is not None)
    return next(filter(None, (pattern.search(text) for pattern in patterns)), None)


_HEADERS = tuple(pattern for tools in all_tools() for pattern in tools.result_header_patterns)
_VALUES = tuple(pattern for tools in all_tools() for pattern in tools.result_value_patterns)
_RESULT_HEADER = re.compile(any_of(_HEADERS))
_RESULT_LINE = re.compile(any_of((*_HEADERS, *_VALUES)))


def _result_lines(text: str) -> str:
    """A paragraph from its first line of a tool's result on; commands typed outside any fence may stand before it."""
    lines = text.strip("`").split("\n")
    first = next((at for at, line in enumerate(lines) if _RESULT_LINE.match(line)), None)
    typed = first is not None and all(re.match(r"[$>%#] ", line) for line in lines[:first])
    return "\n".join(lines[first:]) if first is not None and typed else ""


def _quoted_in_sentence(text: str, actual: list[str], expected: list[str]) -> None:
    for before, span in _spans_with_lead(text):
        if _EXPECT_SPAN.search(before) or (_is_values(span) and _REFERENCE_SPAN.search(before)):
            expected.append(span)
        elif _ACTUAL_SPAN.search(before) and not actual:
            actual.append(span)

    for found in _QUOTED.finditer(text):
        (expected if found["wanted"] else actual).append(found["words"])
    if not actual:
        actual.extend(found["value"] for found in _PRINTED_VALUE.finditer(text))
    if not expected:
        expected.extend(found["value"] for found in _REFERENCE.finditer(text))


_QUOTED = re.compile(
    r"\b(?:(?P<wanted>expect(?:ed)?|should (?:be|print|say|give|return))|prints?|printed|outputs?|says?"
    r"|gives?|gets?"
    r"|got|returns?):? [\"“](?P<words>[^\"”\n]{1,300})[\"”]",
    re.I,
)


_VALUE = r"(?:[-+]?\d{1,30}(?:\.\d{1,30})?(?:e[-+]?\d{1,3})?|nan|inf|True|False)"
_REFERENCE = re.compile(
    r"\b(?:(?:numpy|np|torch|pytorch|jax|onnxruntime|ort|eager|cpu reference) (?:says|gives|returns|prints|has|gets)"
    r"|should (?:be|have been|print|return)"
    r"|(?:correct|right|expected) (?:value|result|answer|sum|output) (?:is|would be)):?"
    rf" (?P<value>{_VALUE}(?:,? {_VALUE}){{0,15}})(?![\w%])(?!\.\d)",
    re.I,
)
"""What another implementation says, or what should have been, as bare values in a sentence."""

_LIST = re.compile(rf"[\[(\s]*{_VALUE}\.?(?:[\s,;\])\[(]+{_VALUE}\.?){{0,63}}[\])\s]*", re.I)


def _is_values(span: str) -> bool:
    return _LIST.fullmatch(span) is not None


_PRINTED_VALUE = re.compile(
    rf"(?:^|[.!?]\s+|\b(?:it|this|that|which|{any_word(lambda words: words.called)}|and|but|script"
    r"|program|code) )"
    r"(?:prints|outputs|returns|gives) (?P<value>[-+]?\d{1,30}\.\d{2,30}(?:e[-+]?\d{1,3})?)(?=$|[.,;]?\s)",
    re.I | re.M,
)
"""What the testcase prints, as a bare figure with decimals in a sentence: a whole number counts too many things."""


def _spans_with_lead(text: str) -> Iterator[tuple[str, str]]:
    return ((text[max(0, at - 120) : at], raw.strip()) for at, raw in located_spans(text))


def _bounded(parts: Sequence[str]) -> str:
    return "\n".join(p for p in parts if p)[:MAX_QUOTED_CHARS]


def telling_line(actual: str, expected: str) -> str:
    """The first printed line that the expected output does not have."""
    right = {line.strip() for line in expected.split("\n")}
    lines = [line.strip() for line in actual.split("\n") if line.strip()]
    wrong = [line for line in lines if line not in right and not _tells_no_value(line)]
    return (wrong or lines or [""])[0]


def _tells_no_value(line: str) -> bool:
    return line.startswith(("$", "#")) or bool(_RESULT_HEADER.match(line))
