"""Read pairs of values from sentences: "got 3, expected 4", "prints nan where NumPy gives 0.5".

A sentence is split into values and the words between them. Each value gets its role from the words before it, else
from the words after it. Of two values, a value without a role gets the opposite role of the other. A pair counts only
if both roles are filled: a lone figure may be a size, a count or a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from bot.extract.vocabulary import OTHER_IMPLEMENTATIONS
from runners.core.failure.printed.lines.tokens import is_tiny

MAX_SENTENCE_CHARS = 600
MAX_SENTENCES = 200


class Role(Enum):
    PRINTED = auto()
    EXPECTED = auto()

    @property
    def opposite(self) -> Role:
        return Role.EXPECTED if self is Role.PRINTED else Role.PRINTED


@dataclass(frozen=True, slots=True)
class ValuePair:
    printed: str
    expected: str


_NUMBER = r"[-+]?(?:\d{1,30}\.\d{1,30}|\.\d{1,30}|\d{1,30})(?:e[-+]?\d{1,3})?"
SCALAR = rf"(?:{_NUMBER}|[-+]?(?:nan|inf)|True|False)"
_LIST = rf"[\[(][\[(\s]{{0,8}}{SCALAR}\.?(?:[\s,;\])\[(]{{1,8}}{SCALAR}\.?){{0,63}}[\])\s]{{0,8}}[\])]"
VALUE_ROW = (
    rf"(?:(?:\d{{1,9}}x){{0,8}}[a-z]{{1,4}}\d{{1,3}}=)?{SCALAR}(?:(?:, ?| ){SCALAR}(?![\w%/]|\.\d|-\w)){{1,63}}"
)
"""Several values without brackets, maybe after the type of a tensor: ``3 7``, ``4xf32=8 1 9``."""
VALUES = rf"(?:{_LIST}|{VALUE_ROW})"
"""Several values, in brackets or without: a single figure may count anything."""
_VALUE = re.compile(
    rf"`(?P<span>[^`\n]{{1,300}})`|[\"“](?P<quoted>[^\"”\n]{{1,300}})[\"”]"
    rf"|(?P<bare>{_LIST}|(?<![\w.%/-]){VALUE_ROW}|(?<![\w.%/-]){SCALAR}(?![\w%/]|\.\d|-\w))",
    re.I,
)
_HAS_VALUE = re.compile(rf"(?<![\w.]){SCALAR}(?![\w.]*\()", re.I)

_REFERENCES = rf"{OTHER_IMPLEMENTATIONS}|the reference|a reference"
_EXPECTED_BEFORE = re.compile(
    r"\b(?:expect(?:ed|ing|s)?|should(?:n't| not)? (?:be|have been|print|give|return|say|yield|produce)|want(?:ed)?"
    r"|instead of|rather than|correct|right|true|proper|must be|ought to be|supposed to be"
    rf"|(?:{_REFERENCES})(?: (?:says?|gives?|returns?|prints?|has|gets?|outputs?|computes?))?)\b[^`]{{0,40}}$",
    re.I,
)
_PRINTED_BEFORE = re.compile(
    r"\b(?:got|gets?|gives?|gave|returns?|returned|prints?|printed|outputs?|yields?|produces?|produced|shows?|sees?|saw"
    r"|observed?|computes?|computed|actual(?:ly)?|result(?:s|ed)? (?:is|was|in)|output (?:is|was)|value (?:is|was)"
    r"|it is|it was|becomes?|wrong|incorrect)\b[^`]{0,40}$",
    re.I,
)
_EXPECTED_AFTER = re.compile(
    r"^[\s,]{0,3}(?:(?:is|was|would be|were|being) )?(?:what (?:is|was|I) )?"
    r"(?:expected|right|correct|wanted|the (?:right|correct))\b",
    re.I,
)
_PRINTED_AFTER = re.compile(
    r"^[\s,]{0,3}(?:(?:is|was|are|were|gets?) (?:printed|returned|wrong|incorrect|produced|what (?:I|we) (?:see|get))"
    r"|comes? out|came out|came back)\b",
    re.I,
)
_LABEL = re.compile(
    r"^[-*\s]{0,4}\**(?:(?P<printed>actual|got|observed|output|result|printed)|(?P<expected>expected|want(?:ed)?|correct"
    rf"|reference|{_REFERENCES}))\b[^:=\n`]{{0,30}}\**\s?[:=]\**\s{{0,3}}(?P<rest>\S[^\n]{{0,300}})$",
    re.I | re.M,
)


def find_same_form(known: str, text: str) -> str:
    """Return the first passage of ``text`` that equals a known output line in all but its values; else empty.

    ``2xf32=1 -3`` has the form of ``2xf32=1 9``. If one of them is known to be wrong or right, the other is the
    opposite. A line with fewer than two values, or with values without brackets or a label, has no form. A passage
    after "still" or "also" is on the same side.
    """
    line = known.strip()
    parts = _FORM_VALUE.split(line[:300])
    if "\n" in line or len(parts) < 3 or not re.search(r"[A-Za-z\[=:]", "".join(parts)):
        return ""
    words = (r"\s*".join(map(re.escape, part.split())) if part.strip() else "" for part in parts)
    form = rf"\s{{0,4}}{_FORM_VALUE.pattern}\s{{0,4}}".join(words)
    pattern = re.compile(rf"(?<![\w.]){form}".rstrip(), re.I)
    text = text[:20_000]
    opposite = (
        one for one in pattern.finditer(text) if not _SAME_SIDE.search(text[max(0, one.start() - 60) : one.start()])
    )
    found = (" ".join(match[0].split()) for match in opposite)
    if not line.endswith("."):
        found = (other.removesuffix(".") for other in found)  # the end of the sentence
    return next((other for other in found if other != " ".join(line.split())), "")


_SAME_SIDE = re.compile(r"\b(?:still|also|again|even|too)\b[^.]*$", re.I)


def holds_garbage(line: str) -> bool:
    """True for a line with numbers from unwritten memory, which is never right."""
    return any(is_tiny(float(value)) for value in _FORM_VALUE.findall(line))


_FORM_VALUE = re.compile(r"(?<![\w.])[-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:e[-+]?\d{1,3})?|nan|inf)(?![\w=])", re.I)


def find_repeated_value(text: str) -> str:
    """Return the value that each printed row should have: ``should be 3.0 twice``; empty if no sentence gives it."""
    found = _REPEATED.search(text[:20_000])
    return found["value"].strip("`") if found else ""


_REPEATED = re.compile(
    rf"\b(?:should(?: all| both| have)? (?:be|print|give|return|been)|expect(?:ed|s)?(?: is| was)?:?|want(?:ed)?)"
    rf"\s+(?P<value>`?{SCALAR}`?)\s+"
    r"(?:twice|thrice|everywhere|throughout|(?:two|three|four|both|all|every|each) times?"
    r"|(?:in|for|on) (?:both|all|every|each)\b|each\b)",
    re.I,
)


def find_value_pair(text: str) -> ValuePair | None:
    """Return the first pair of a printed and an expected value in a paragraph; None if there is none."""
    if (pair := _read_labels(text)) is not None:
        return pair
    for sentence in _split_sentences(text):
        if (pair := _read_sentence(sentence)) is not None:
            return pair
    return None


def _read_labels(text: str) -> ValuePair | None:
    """Read lines such as ``Actual: 3`` and ``Expected: 4``."""
    found: dict[str, str] = {}
    for match in _LABEL.finditer(text[:20_000]):
        values = [_get_text(value) for value in _VALUE.finditer(match["rest"])]
        if len(values) == 1 and len(match["rest"].strip('`"“” .')) <= len(values[0]) + 2:
            found.setdefault("printed" if match["printed"] else "expected", values[0])
    return _make_pair(found.get("printed", ""), found.get("expected", ""))


def _split_sentences(text: str) -> Iterator[str]:
    rows = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"“])|\n{2,}|\n(?=[-*] )", text)
    return (row.replace("\n", " ")[:MAX_SENTENCE_CHARS] for row in rows[:MAX_SENTENCES])


def _read_sentence(sentence: str) -> ValuePair | None:
    if _VERSIONS.search(sentence):
        return None
    values = [found for found in _VALUE.finditer(sentence) if _may_be_result(sentence, found)]
    if any(re.fullmatch(_LIST, _get_text(value), re.I) for value in values):  # "5 rows `[[0, 1], …]`" counts the list
        values = [value for value in values if not (value["bare"] and _COUNTED.match(sentence, value.start()))]
    if not 2 <= len(values) <= 4:
        return None
    roles = [_find_role(sentence, values, at) for at in range(len(values))]
    joined = len(values) == 2 and _JOINED.search(sentence[values[0].end() : values[1].start()])
    if len(values) == 2 and roles.count(None) == 1 and not joined:
        known = next(role for role in roles if role is not None)
        roles = [role or known.opposite for role in roles]
    by_role = {role: _get_text(value) for role, value in reversed(list(zip(roles, values, strict=True)))}
    return _make_pair(by_role.get(Role.PRINTED, ""), by_role.get(Role.EXPECTED, ""))


def find_printed_values(text: str) -> frozenset[str]:
    """Return the values that sentences of a paragraph call printed: ``the function sees 0.0``."""
    found = set()
    for sentence in _split_sentences(text):
        values = [] if _VERSIONS.search(sentence) else list(_VALUE.finditer(sentence))[:MAX_VALUES]
        for at, value in enumerate(values):
            if _may_be_result(sentence, value) and _find_role(sentence, values, at) is Role.PRINTED:
                found.add(_get_text(value))
    return frozenset(found)


_COUNTED = re.compile(r"\d{1,9} [a-z]{3,20}s\b", re.I)


def find_labelled_reference(text: str) -> str:
    """Return the values after the name of another implementation at the start of a row: ``- torch: `[1. 2.]` ``.

    Empty without such a row, and if a row has several lists.
    """
    for row in _REFERENCE_ROW.finditer(text[:20_000]):
        lists = [_get_text(value) for value in _VALUE.finditer(row["rest"])]
        lists = [one for one in lists if re.fullmatch(_LIST, one, re.I)]
        if len(lists) == 1:
            return lists[0]
    return ""


_REFERENCE_ROW = re.compile(
    rf"^[-*\s]{{0,4}}\**(?:{_REFERENCES})\b[^:\n`]{{0,30}}:\**(?P<rest>[^\n]{{0,600}})$", re.I | re.M
)
MAX_VALUES = 20
"""Largest number of values that are read in one sentence."""
_VERSIONS = re.compile(
    r"\b[A-Za-z][\w-]{0,30}[ =]{1,3}v?\d+\.\d+\.\d+[\w.]{0,20}(?:,| and) [A-Za-z][\w-]{0,30}[ =]{1,3}v?\d+\.\d"
    r"|\b[A-Za-z][\w-]{0,30}[ =]{1,3}v?\d+\.\d+[\w.]{0,20}(?:,| and) [A-Za-z][\w-]{0,30}[ =]{1,3}v?\d+\.\d+\.\d"
)
"""A list of packages with their versions: ``tvm 0.26.0, numpy 2.4``."""
_JOINED = re.compile(r"(?:(?:^|[\s(])(?:and|or|and also|as well as|&)|^\s*,)\s*$", re.I)
"""The words between two values of the same role: it yields ``1`` for the first rows and ``0.5`` for the others."""


def _may_be_result(sentence: str, value: re.Match[str]) -> bool:
    """True for a value that a program may print.

    A bare figure after "on", "axis" or "size" is something else, and so are the arguments of a call.
    """
    if value["bare"] and _ARGUMENTS.search(sentence[max(0, value.start() - 30) : value.start() + 1]):
        return False
    before = sentence[max(0, value.start() - 40) : value.start()]
    if value["bare"] and _NO_RESULT_BEFORE.search(before) and not _SIZE_OF_RESULT.search(before):
        return False
    return bool(_HAS_VALUE.search(_get_text(value)))


_SIZE_OF_RESULT = re.compile(
    r"\b(?:expect(?:ed|s|ing)?|want(?:ed)?|correct|right|output|result(?:ing)?|got|gets?|gives?|returns?|prints?)"
    r"(?: (?:an?|the|output|result))? (?:shape|size|length)(?: (?:is|was|of))?\s{0,2}$",
    re.I,
)
"""Words before the size of a result, which is itself the reported value."""
_ARGUMENTS = re.compile(r"(?<!array)(?<!tensor)(?<=\w)\([-+\d]?$", re.I)
"""Up to the first character of a value: ``(`` of ``f(1, 2)``, or ``f(1``. ``array([1, 2])`` is printed."""
_NO_RESULT_BEFORE = re.compile(
    r"(?<!instead )\b(?:on|in|since|until|from|with|of|at|by|to|version|release|axis|shape|size|length|index|rows?"
    r"|columns?|line|element|position|step|tolerance|opset|rank|constant|literal|splat|exponent|scale|factor|strides?"
    r"|padding|dilations?|epsilon|seed|batch|ubuntu|debian|fedora|rhel|centos|macos|windows|wsl"
    r"|python|cuda|rocm|driver|llvm|clang|gcc)\s{0,2}$",
    re.I,
)


def _find_role(sentence: str, values: list[re.Match[str]], at: int) -> Role | None:
    """Return the role of a value: by the last cue before it, else by a cue directly after it."""
    before = sentence[values[at - 1].end() if at else 0 : values[at].start()]
    after = sentence[values[at].end() : values[at + 1].start() if at + 1 < len(values) else len(sentence)]
    if _EXPECTED_AFTER.search(after):
        return Role.EXPECTED
    if _PRINTED_AFTER.search(after):
        return Role.PRINTED
    if at and re.search(r"^[\s,;(]{0,4}(?:but |and )?not (?:\w+ ){0,2}$", before, re.I):
        return Role.EXPECTED
    expected, printed = _EXPECTED_BEFORE.search(before), _PRINTED_BEFORE.search(before)
    if expected and printed:
        # "numpy gives", "should return": the word for a reference or a duty comes first and governs the verb.
        governs = expected.start() <= printed.start() or "instead" in expected[0].lower()
        return Role.EXPECTED if governs else Role.PRINTED
    return Role.EXPECTED if expected else Role.PRINTED if printed else None


def _get_text(value: re.Match[str]) -> str:
    return (value["span"] or value["quoted"] or value["bare"]).strip()


def _make_pair(printed: str, expected: str) -> ValuePair | None:
    return ValuePair(printed, expected) if printed and expected and printed != expected else None
