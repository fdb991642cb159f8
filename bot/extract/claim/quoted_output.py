"""Find the output that a report quotes: the printed output and the expected output."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bot.extract.blocks.kinds import CALLS_OR_IMPORTS
from bot.extract.blocks.markdown import Document, locate_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection, classify_heading, read_cue
from bot.extract.claim.failure import is_expected_output
from bot.extract.claim.values.sentences import (
    SCALAR,
    VALUES,
    find_labelled_reference,
    find_repeated_value,
    find_same_form,
    find_value_pair,
    holds_garbage,
)
from bot.extract.claim.values.tables import read_table_values
from bot.extract.command_line.shell import is_command, names_package
from bot.extract.python.parse import parse_python
from bot.extract.split.session import SESSION
from bot.extract.vocabulary import OTHER_IMPLEMENTATIONS, any_of, any_word, list_tools, list_vocabularies

MAX_QUOTED_CHARS = 8_000


_EXPECT_SPAN = re.compile(
    r"(?:expect(?:ed|s)?|(?<!\bI )(?<!\bwe )(?<!\byou )(?:should|must) (?:be|print|have|give|return|say)"
    r"|want(?:ed)?\b|correct \w+ is|(?:right|correct) (?:would be|is))"
    r"(?:(?!\bnot?\b)(?:[^`\n.]|\.(?=\d))){0,60}$",
    re.I,
)
_OTHERS = rf"(?:{OTHER_IMPLEMENTATIONS})"
_REFERENCE_SPAN = re.compile(
    rf"(?:^|[\s(*]){_OTHERS}[)*]*(?:(?:,| and| or|, and) {_OTHERS}){{0,3}}"
    r"(?:(?: both| all)? (?:says?|gives?|returns?|prints?|has|have|gets?|outputs?|computes?)(?: \w+){0,3})?"
    r"\s?[:=]?\s*$",
    re.I,
)
"""The words before the result of another implementation, in a code span: its name, or ``numpy gives``."""


_ACTUAL_SPAN = re.compile(
    r"\b(?:got|get|gives?|prints?|printed|returns?|shows?|says?|outputs?|results?|but (?:it )?is|actual(?:ly)?"
    r"|(?:comes?|came) out|(?:I|we) (?:see|saw|observed?))\b"
    r"(?:(?!\b(?:in|for|on|from|with|using|by|when|of)\b)(?:[^`\n.]|\.(?=\d))){0,30}$",
    re.I,
)


def read_quoted_output(
    document: Document, pieces: Sequence[Piece], good: Sequence[str] = (), code: str = ""
) -> tuple[str, str]:
    """Return the printed and the expected output: blocks by their section or introduction, else code spans.

    A compiler's own failed test names both. Output introduced by a version in ``good`` is expected output. Comments
    beside ``print`` calls of the testcase ``code`` take precedence over other values of a section.
    """
    actual: list[str] = []
    expected: list[str] = []
    others = _find_other_sessions(pieces)
    for piece in _list_outputs(pieces, others):
        if compared := _find_compared_values(piece.text):
            actual.append(compared["actual"])
            expected.append(compared["expected"])
        else:
            right = is_expected_output(piece) or _is_output_of(piece.intro, good)
            right = right or _is_of_another(piece.intro) or piece.block in others
            for wanted, text in _split_at_labels(piece.text):
                (expected if right or wanted else actual).append(text)
    above = ""
    for prose in document.prose:
        if prose.heading:
            above = ""
            continue
        if results := list(_list_result_lines(prose.text)):
            right = read_cue(above) in (Cue.EXPECTED, Cue.WORKS)
            right = right or classify_heading(prose.section) is IssueSection.EXPECTED
            for wanted, text in results:
                (expected if right or wanted else actual).append(text)
        elif (alone := _SPAN_ALONE.fullmatch(prose.text.strip())) and read_cue(above) is Cue.OUTPUT:
            actual.append(alone["row"])
        else:
            _read_sentence(prose.text, actual, expected, good)
        above = prose.text
    if not (actual and expected):
        _add_value_pair(document, actual, expected)
    if not expected and (table := read_table_values(document)) is not None:
        expected.append(table.expected)
        if table.printed and not actual:
            actual.append(table.printed)
    if expected and not actual:
        actual += filter(None, [read_comments(code, _join_bounded(expected))[0]])
    if not actual:
        _add_observed_values(document, actual, expected)
    if not expected:
        texts = (prose.text for prose in document.prose if not prose.heading)
        expected += [found for text in texts if (found := find_labelled_reference(text)) and found not in actual][:1]
    if len(actual) == 1 and not expected:
        _add_repeated_value(document, actual[0], expected)
    if bool(actual) is not bool(expected):
        _add_same_form(document, actual, expected)
    return _join_bounded(actual), _join_bounded(_drop_parts(expected))


_SPAN_ALONE = re.compile(r"`{1,2}(?P<row>[^`\n]{1,2000})`{1,2}")
"""A paragraph that is a code span. People quote one printed row in this way: ``prints``, and the row below."""


def _is_of_another(intro: str) -> bool:
    """True for a line above an output that names only another implementation: ``PyTorch 2.7:``."""
    last = re.split(r"(?<=[.!?])\s+", intro.strip().rpartition("\n")[2])[-1]
    return _ANOTHER.fullmatch(last.strip()) is not None


_ANOTHER = re.compile(
    rf"(?:(?:in|with|from) )?[*`]{{0,3}}{_OTHERS}[*`]{{0,3}}(?: v?\d[\w.+]{{0,20}})?(?: \((?:eager|CPU)\))?"
    r"(?: (?:says?|gives?|returns?|prints?|shows?|has|gets|outputs?|computes?|results?))?[*`]{0,3}\s?:?[*`]{0,3}",
    re.I,
)


def _find_other_sessions(pieces: Sequence[Piece]) -> frozenset[int]:
    """Return the blocks with a session of another implementation."""
    return frozenset(piece.block for piece in pieces if _asks_another(piece))


def _asks_another(piece: Piece) -> bool:
    """True for a session that calls a framework, and no compiler. NumPy may read what the compiler wrote."""
    typed = piece.kind is Kind.PYTHON and SESSION in {one.kind for one in piece.repairs}
    return typed and bool(_CALLS_ANOTHER.search(piece.text)) and not _CALLS_COMPILER.search(piece.text)


_CALLS_ANOTHER = re.compile(r"\b(?:torch|jax|tensorflow|tf|onnxruntime|ort)\.\w")
_CALLS_COMPILER = re.compile(
    any_of(rf"\b{name}\b" for words in list_vocabularies() for name in words.python.packages)
)


def _drop_parts(shown: Sequence[str]) -> list[str]:
    """Leave out single values that another text shows in a row: "should be -27 … Expected: `4xf32=1024 -27 1`"."""
    rows = [set(_VALUE_WORD.findall(text)) for text in shown]
    return [
        text
        for at, text in enumerate(shown)
        if not (
            _VALUE_WORD.fullmatch(text.strip()) and any(text.strip() in row for row in rows[:at] + rows[at + 1 :])
        )
    ]


_VALUE_WORD = re.compile(r"[^\s\[\](),={}]+")


def _list_outputs(pieces: Sequence[Piece], others: Collection[int]) -> list[Piece]:
    """Return the outputs of a report. The text below a typed command is the command's output.

    If commands have their output, a block without an introduction is not output. It may be a part of a specification,
    or pseudocode.
    """
    outputs = [
        piece
        for piece in pieces
        if piece.kind is Kind.OUTPUT
        and piece.cue is not Cue.QUOTED
        and not _lists_packages(piece.text)
        and "--version" not in piece.intro.rpartition("\n")[2]
    ]
    known = _read_programs(pieces)
    outputs += [
        piece for piece in pieces if _is_printed_module(piece, pieces, known) or _is_printed_row(piece, pieces)
    ]
    typed: dict[int, int] = {}  # a block with a typed command → the row of its first command
    for piece in pieces:
        if piece.kind is Kind.SHELL and piece.block:
            typed.setdefault(piece.block, piece.lines[1])
    counted = [above for above in pieces if above.kind is Kind.SHELL and _COUNTS.search(above.text)]
    outputs = [piece for piece in outputs if not any(_stands_right_below(piece, above) for above in counted)]
    printed = [piece for piece in outputs if piece.lines[0] > typed.get(piece.block, piece.lines[0])]
    if not printed:
        return outputs
    programs = {piece.block for piece in pieces if piece.kind is Kind.PYTHON}
    below = [piece for piece in outputs if piece.block - 1 in programs and not piece.intro.strip()]
    if below:
        return below  # the output of the program, which the commands run again in another way
    kept = (piece in printed or piece.cue is not Cue.NONE or piece.block in others for piece in outputs)
    return [piece for piece, keep in zip(outputs, kept, strict=True) if keep or is_expected_output(piece)]


_COUNTS = re.compile(r"\|\s*(?:grep\s+(?:-\w+\s+)*-\w*c\w*\b|wc\b)[^\n]*\s*$|\becho +\"?\$\?\"?\s*$")
"""A command whose output another program counts, or that shows the exit status. The number is not the compiler's
output."""


def _stands_right_below(piece: Piece, above: Piece) -> bool:
    return piece.block == above.block and piece.lines[0] == above.lines[1] + 1


def _lists_packages(text: str) -> bool:
    """True for a list of packages with their versions, to which other facts of the machine may belong."""
    rows = [row for row in text.split("\n")[:50] if row.strip()]
    return 2 * sum(map(names_package, rows)) > len(rows)


@dataclass(frozen=True, slots=True)
class _Programs:
    """The Python programs of a report, read once: a report may have thousands of blocks."""

    first_end: float
    """The last row of the first program; infinite without one."""
    calling: tuple[Piece, ...]
    """The programs that call or import something."""
    rows: frozenset[str]
    """The rows of these programs."""


def _read_programs(pieces: Sequence[Piece]) -> _Programs:
    programs = [piece for piece in pieces if piece.kind is Kind.PYTHON]
    calling = tuple(piece for piece in programs if CALLS_OR_IMPORTS.search(piece.text))
    return _Programs(
        first_end=min((piece.lines[1] for piece in programs), default=math.inf),
        calling=calling,
        rows=frozenset(row.strip() for piece in calling for row in piece.text.split("\n") if row.strip()),
    )


def _is_printed_module(piece: Piece, pieces: Sequence[Piece], programs: _Programs) -> bool:
    """True for a printed module: definitions that a report introduces as the output of a program.

    Rows in the form of TVMScript's printer need no introduction, if no program has them.
    """
    if piece.kind is Kind.FRAGMENT and piece.cue is Cue.OUTPUT:
        return any(one.kind is Kind.MLIR for one in pieces)  # operations without a function are no input of a command
    if piece.kind in (Kind.MLIR, Kind.FRAGMENT) and piece.cue in (Cue.OUTPUT, Cue.EXPECTED):
        return _stands_below_program(piece, pieces)
    calls = any(one is not piece for one in programs.calling[:2])
    if piece.cue is Cue.NONE and calls and holds_printed_script(piece.text):
        return not any(row.strip() in programs.rows for row in piece.text.split("\n"))
    is_script = piece.kind is Kind.PYTHON and not CALLS_OR_IMPORTS.search(piece.text)
    announced = piece.cue is Cue.OUTPUT or (is_script and piece.cue is Cue.EXPECTED)
    if not (piece.kind is Kind.DEFINITIONS or is_script) or not announced:
        return False
    # the form of an issue may ask for the output before the program
    return programs.first_end < piece.lines[0] or (is_script and calls)


def holds_printed_script(text: str) -> bool:
    """True for rows in the form of TVMScript's printer. It writes the type of each value, which people leave out."""
    rows = [row for row in text.split("\n") if row.strip()]
    return 2 * sum(bool(_TYPED_ROW.match(row)) for row in rows) >= len(rows) > 0


_TYPED_ROW = re.compile(r"[ \t]*\w+: [RT]\.\w+\([^\n]*\) = \S")


def _stands_below_program(piece: Piece, pieces: Sequence[Piece]) -> bool:
    above = (one for one in pieces if one.kind in (Kind.MLIR, Kind.PYTHON) and one.lines[1] < piece.lines[0])
    return any(one.cue not in (Cue.OUTPUT, Cue.EXPECTED, Cue.QUOTED) for one in above)


def _is_printed_row(piece: Piece, pieces: Sequence[Piece]) -> bool:
    """True for rows such as ``after (np.float32(1.5), 3)``: they parse as calls of names that no program has."""
    tree = parse_python(piece.text) if piece.kind is Kind.PYTHON and piece.cue is Cue.OUTPUT else None
    if tree is None or not tree.body:
        return False
    values = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    labels = {one.func.id for one in values if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    if len(values) < len(tree.body) or not labels:
        return False
    code = "\n".join(one.text for one in pieces if one is not piece and one.kind in (Kind.PYTHON, Kind.DEFINITIONS))
    names = "|".join(map(re.escape, sorted(labels)))
    return not re.search(rf"\b(?:def|class|import|as) (?:{names})\b|(?<![\w.\"'])(?:{names})\s*(?:=|\()", code)


def _split_at_labels(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the passages of an output between lines such as ``Output:``, and whether the label is *expected*."""
    labels = list(_LABEL.finditer(text))
    ends = [0, *(label.end() for label in labels)]
    starts = [*(label.start() for label in labels), len(text)]
    for label, begin, end in zip((None, *labels), ends, starts, strict=True):
        if passage := text[begin:end].strip("\n"):
            yield label is not None and label["wanted"] is not None, passage


_LABEL = re.compile(
    r"^[ \t#]*(?:the )?(?:(?:(?P<wanted>expected|desired|correct|right)|actual|observed|current|wrong)"
    r"(?: (?:outputs?|results?|values?))?|outputs?|results?|it prints|printed|got)[ \t]*[:：][ \t]*$",
    re.I | re.M,
)
"""A line that only names what follows."""


def _add_repeated_value(document: Document, actual: str, expected: list[str]) -> None:
    """Fill the expected output with one value in each row, if a sentence gives this value for such rows."""
    rows = actual.strip().split("\n")
    if len(rows) < 2 or not all(re.fullmatch(SCALAR, row.strip(), re.I) for row in rows):
        return
    value = next(filter(None, (find_repeated_value(prose.text) for prose in document.prose if not prose.heading)), "")
    if value:
        expected.append("\n".join([value] * len(rows)))


def _add_value_pair(document: Document, actual: list[str], expected: list[str]) -> None:
    """Fill the empty side from a sentence that names both values, if the other side agrees with it."""
    pairs = (find_value_pair(prose.text) for prose in document.prose if not prose.heading)
    pair = next((found for found in pairs if found is not None), None)
    if pair is None or pair.expected in actual or any(pair.printed not in text for text in actual[:1]):
        return
    if any(pair.expected not in text for text in expected[:1]):
        return
    actual[:] = actual or [pair.printed]
    expected[:] = expected or [pair.expected]


def _add_observed_values(document: Document, actual: list[str], expected: list[str]) -> None:
    """Take the values in a section on the actual behaviour as printed, unless they are the expected ones."""
    for prose in document.prose:
        if prose.heading or classify_heading(prose.section) is not IssueSection.ACTUAL:
            continue
        spans = [span for before, span in _iter_spans(prose.text) if not _EXPECT_SPAN.search(before)]
        values = [span for span in spans if _is_values(span)] or [m["value"] for m in _RESULT_IS.finditer(prose.text)]
        shown = (found["words"] for found in _SHOWN_ALONE.finditer(prose.text))
        values = values or [words for words in shown if not is_command(words)]
        actual.extend(value for value in values if value not in expected)


def _add_same_form(document: Document, actual: list[str], expected: list[str]) -> None:
    """Fill the empty side with a passage of the prose that differs from the other side only in its values."""
    known, unknown = (actual, expected) if actual else (expected, actual)
    text = "\n".join(prose.text for prose in document.prose if not prose.heading)
    lines = "\n".join(known).split("\n")[:50]
    for line in lines:
        if (other := find_same_form(line, text)) and other not in lines and not (actual and holds_garbage(other)):
            unknown.append(other)
            return


def find_similar_spans(document: Document, actual: str, code: str) -> str:
    """Return the code spans of the prose that are expressions like the printed ones, one per line.

    ``My notes have `A[i, j] * B[j]` there``: the text gives the actual or the expected output, in any words. A span
    counts if half of its words are in one printed line, and if neither the output nor the code contains it.
    """
    lines = [frozenset(_WORDS.findall(line)) for line in actual.split("\n")[:MAX_COMPARED]]
    found: dict[str, None] = {}
    for prose in document.prose:
        for before, span in _iter_spans(prose.text):
            words = frozenset(_WORDS.findall(span))
            shown = span in actual or span in code or _ACTUAL_SPAN.search(before) is not None
            if shown or not _IS_EXPRESSION.search(span) or len(words) < FEWEST_WORDS:
                continue
            if any(2 * len(words & line) >= len(words) for line in lines):
                found.setdefault(span)
    return "\n".join(found)


MAX_COMPARED = 50
FEWEST_WORDS = 3
"""Minimum number of words that distinguish an expression from the use of a name, such as ``x[-2:]``."""
_WORDS = re.compile(r"\w+(?:\.\w+)*")
_IS_EXPRESSION = re.compile(r"[A-Za-z]\w*[\[(][^`]*[\])]|[A-Za-z]\w* [*+/%=<>-]{1,2} \S")
"""An access, a call or an operation on a name."""


def _is_output_of(intro: str, versions: Sequence[str]) -> bool:
    """True if the introduction announces the output of one of ``versions``: ``With 3.10.0:``, ``3.1.0 gives``.

    Other words may follow the version, if a colon ends the introduction and it names no other version.
    """
    last = intro.rstrip().rpartition("\n")[2]
    announced = _ANNOUNCES.search(last[-100:])
    before = last[-100:][: announced.start()] if announced else ""
    named = {_PRE_RELEASE.sub("", one).removesuffix(".0") for one in _VERSION.findall(last[-MAX_INTRO:])}
    if last.endswith(":") and named and named <= {version.removesuffix(".0") for version in versions}:
        return True
    return any(re.search(rf"(?<![\d.]){re.escape(version)}(?:\.0)?$", before) for version in versions)


MAX_INTRO = 300
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,4}(?:\.\w{1,12}){1,4})(?![\w.]\w)")
_PRE_RELEASE = re.compile(r"\.?(?:rc|a|b|dev)\d{1,12}$")
"""The end of the version that a nightly prints: ``3.2.0rc20250206``. The text around it names the release."""
_ANNOUNCES = re.compile(
    r"(?: \([^()]{1,40}\))?(?::"
    r"| (?:(?:it|this|which) )?(?:gives?|gave|prints?|printed|returns?|returned|says?|shows?)(?: me)?:?)$"
)
"""The words between a version and its output: ``With 3.9.0 (tail of each):``."""


def _find_compared_values(text: str) -> re.Match[str] | None:
    patterns = (tools.compared_values for tools in list_tools() if tools.compared_values is not None)
    return next(filter(None, (pattern.search(text) for pattern in patterns)), None)


_HEADERS = tuple(pattern for tools in list_tools() for pattern in tools.result_header_patterns)
_VALUES = tuple(pattern for tools in list_tools() for pattern in tools.result_value_patterns)
_RESULT_HEADER = re.compile(any_of(_HEADERS))
_RESULT_LINE = re.compile(any_of((*_HEADERS, *_VALUES)))


def _list_result_lines(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the results of a tool in a paragraph, and whether their label is *expected*.

    A result begins the paragraph, or stands below a typed command or a label (``output:``).
    """
    lines = text.strip("`").split("\n")
    first = next((at for at, line in enumerate(lines) if _RESULT_LINE.match(line)), None)
    if first is None:
        return
    label = next(map(_LABEL.match, lines[:first][-1:]), None)
    if label is None and not all(re.match(r"[$>%#] ", line) for line in lines[:first][-1:]):
        return
    yield from _split_at_labels("\n".join(lines[first - (label is not None) :]))


def _read_sentence(text: str, actual: list[str], expected: list[str], good: Sequence[str]) -> None:
    last = ""
    for before, span in _iter_spans(_NAMED_SPAN.sub("a name", text)):
        if not re.search(r"\w", span) or _EXCEPTION.fullmatch(span):
            continue  # an operator of the generated code, such as `!`, or how another program ends
        listed = re.search(r"`([^`\n]{1,300})`(?:,| and|, and| then) ?$", before)
        whole = _RESULT_LINE.match(span) is not None
        wished = _EXPECT_SPAN.search(before)
        if wished is not None and re.search(r"\d", wished[0]) and not _is_values(span):
            wished = None  # the sentence has its value already: "must be 0, `one` too"
        right = wished or (_is_values(span) and _REFERENCE_SPAN.search(before))
        printed = _ACTUAL_SPAN.search(before)
        if right or (printed and _is_told_of(before, good)):
            expected.append(span)
        elif (printed and (whole or not actual)) or (last and listed is not None and listed[1] == last):
            actual.append(span)
            last = span

    for found in _QUOTED.finditer(text):
        (expected if found["wanted"] else actual).append(found["words"])
    if not actual:
        actual.extend(found["value"] for found in _PRINTED_VALUE.finditer(text))
    if not actual:
        actual.extend(found["value"] for found in _PRINTED_ROW.finditer(text))
    if not expected:
        expected.extend("\n".join(_split_pair(found["value"])) for found in _REFERENCE.finditer(text))
    if not expected:
        expected.extend("\n".join(_split_pair(found["value"])) for found in _EXPECTED_ROW.finditer(text))


_EXCEPTION = re.compile(r"[\w.]{0,100}(?:Error|Exception|Warning)")


def _split_pair(values: str) -> list[str]:
    """Return the two values of ``7 and 6.5``, which two rows print. Other lists of values are one row."""
    pair = values.split(" and ")
    return pair if len(pair) == 2 and not any(set(one.strip()) & set(", ") for one in pair) else [values]


def _is_told_of(before: str, versions: Sequence[str]) -> bool:
    """True if the clause before a value names one of ``versions`` last: ``with 3.1.0 the same commands print``."""
    clause = re.split(r"[;!?]|\.(?=\s)", before)[-1]
    named = _VERSION.findall(clause)
    return bool(named) and named[-1] in versions


_NAMED_SPAN = re.compile(
    r"`[^`\n]{1,200}` (?:argument|parameter|option|flag|attribute|keyword|pass|function|method|class|module|operator"
    r"|op|field|file|variable|dialect)s?\b",
    re.I,
)
"""A code span that is a name, and not printed output."""
_QUOTED = re.compile(
    r"(?<!doc )(?<!docs )(?<!docstring )(?<!documentation )(?<!manual )(?<!spec )(?<!specification )(?<!comment )"
    r"\b(?:(?P<wanted>expect(?:ed)?|should (?:be|print|say|give|return))|prints?|printed|outputs?|says?"
    r"|gives?|gets?"
    r"|got|returns?):? [\"“](?P<words>[^\"”\n]{1,300})[\"”]",
    re.I,
)


_VALUE = r"(?:[-+]?\d{1,30}(?:\.\d{1,30})?(?:e[-+]?\d{1,3})?|nan|inf|True|False)"
_OF = r"(?: of (?:(?!\b(?:is|are|was)\b)[^.\n]){1,60})?"
"""After "result": its origin."""
_REFERENCE = re.compile(
    rf"\b(?:(?:{_OTHERS}|cpu reference) (?:says|gives|returns|prints|has|gets)"
    r"|should (?:be|have been|print|return)"
    rf"|(?:correct|right|expected) (?:value|result|answer|sum|output){_OF} (?:is|would be)):?"
    rf" (?P<value>{_VALUE}(?:(?:,| and|, and)? {_VALUE}){{0,15}})(?![\w%])(?!\.\d)",
    re.I,
)
"""The result of another implementation, or the right result, as bare values in a sentence."""

_PRINTED_ROW = re.compile(
    r"\b(?:(?<!numpy )(?<!torch )(?<!np )gives?|prints?|printed|got|returns?|outputs?|shows?):?"
    rf" (?P<value>{VALUES})",
    re.I,
)
_EXPECTED_ROW = re.compile(
    rf"\b(?:expect(?:ed|s)?|want(?:ed)?):? (?P<value>{VALUES}"
    rf"|{SCALAR} and {SCALAR}(?=[,;:)!]|\.(?!\d)|\s*$|\s+(?:or|but|here|there|instead|respectively)\b))",
    re.I,
)
"""Several expected values: a single figure may count anything."""

_LIST = re.compile(rf"[\[(\s]*{_VALUE}\.?(?:[\s,;\])\[(]+{_VALUE}\.?){{0,63}}[\])\s]*", re.I)


_RESULT_IS = re.compile(
    rf"\b(?:(?:result|output|value|answer)s?{_OF}|(?:it|program|script|run)s?)"
    r" (?:is|are|was|prints?|printed|gives?|gave|returns?|returned)"
    rf":? (?P<value>{_VALUE})(?![\w%]|\.\d)(?=[.,;!]|\s*$|\s+(?:and|but|on|for|with|instead|where|while)\b)",
    re.I,
)
"""A single printed value in a sentence on the actual behaviour. Elsewhere a figure may count anything."""


_SHOWN_ALONE = re.compile(r"(?:^|:)[ \t]*`(?P<words>[^`\n]{0,200}\d[^`\n]{0,200})`[ \t]*\.?[ \t]*$", re.M)
"""A code span with a figure. The span is a line of its own, or follows a colon at the end of a line."""


def _is_values(span: str) -> bool:
    return _LIST.fullmatch(span) is not None


_PRINTED_VALUE = re.compile(
    rf"(?:^|[.!?]\s+|\b(?:it|this|that|which|{any_word(lambda words: words.called)}|and|but|script"
    r"|program|code) )"
    r"(?:prints|outputs|returns|gives) (?P<value>[-+]?\d{1,30}\.\d{2,30}(?:e[-+]?\d{1,3})?)(?=$|[.,;]?\s)",
    re.I | re.M,
)
"""The output of the testcase in a sentence, as a figure with decimals. A whole number may count anything."""


def _iter_spans(text: str) -> Iterator[tuple[str, str]]:
    return ((text[max(0, at - 120) : at], raw.strip()) for at, raw in locate_code_spans(text))


def _join_bounded(parts: Sequence[str]) -> str:
    return "\n".join(p for p in parts if p)[:MAX_QUOTED_CHARS]


def find_telling_line(actual: str, expected: str) -> str:
    """Return the first printed line that the expected output does not have."""
    right = {line.strip() for line in expected.split("\n")}
    lines = [line.strip() for line in actual.split("\n") if line.strip()]
    wrong = [line for line in lines if line not in right and not _is_no_value(line)]
    return (wrong or lines or [""])[0]


def _is_no_value(line: str) -> bool:
    patterns = (_RESULT_HEADER, _OPENS_PROGRAM, _LOG_ROW)
    return line.startswith(("$", "#", "//")) or any(pattern.match(line) for pattern in patterns)


_LOG_ROW = re.compile(r"\[\d{1,2}:\d\d:\d\d\] ")
_OPENS_PROGRAM = re.compile(r"(?:builtin\.)?module\b.*\{$|(?:func|util)\.func .*\{$")
"""The rows of MLIR around the operations."""


def read_comments(code: str, expected: str, told: Collection[str] = ()) -> tuple[str, str]:
    """Return the printed and the expected output that comments beside and below ``print`` calls state.

    A comment that contains only values counts as printed output in two cases: other values are expected, or a
    sentence (``told``) calls this value printed.
    """
    code = code[:MAX_CODE_CHARS]
    wanted, other = [], []
    for found in (*_PRINT_COMMENT.finditer(code), *_list_comments_below(code)):
        value = found["value"].strip()
        named = _WANTED_BEHIND.fullmatch(value)
        if found["wanted"] or named is not None:
            wanted.append(value if named is None else named["value"])
            continue
        printed, instead, right = _split_at_reference(value)
        other.append((printed, bool(found["printed"] or instead)))
        wanted += [right] * bool(right)
    known = "\n".join((expected, *wanted)).strip()
    plain = [value for value, stated in other if not stated and _is_values(value)]
    observed = [] if wanted else [value for value in plain if value in told]
    actual = [
        value
        for value, stated in other
        if stated or (value in plain and (value not in known if known else bool(observed)))
    ]
    return _join_bounded(actual), _join_bounded(wanted)


_WANTED_BEHIND = re.compile(r"(?P<value>[^\n]{0,200}\d[\d\])., ]{0,80}?) (?:is |are |was |were )?(?:wanted|expected)")
"""A comment which states that its value is expected: ``# 3, 6, 9 wanted``."""


def _split_at_reference(value: str) -> tuple[str, str, str]:
    """Split ``3.0, expected nan`` into printed value, words between and right value. The last two may be empty."""
    found = _INSTEAD.search(value)
    if found is None or not found.start():
        return value, "", ""
    return value[: found.start()].strip(), found[0], value[found.end() :].strip(" .)!")


_INSTEAD = re.compile(
    r"[ \t,;:(!]{1,8}(?:but )?(?:should (?:be|print|give)|expect(?:ed|s|ing)?|instead of|want(?:ed)?|correct(?: is)?"
    rf"|{_OTHERS}(?: says?| gives?| prints?| returns?)?|rather than)\b"
    r"[ \t]{0,4}[:=]?[ \t]{0,8}(?=[^\n]{0,200}(?:\d|\bnan\b|\binf\b|True|False))",
    re.I,
)
"""The words between a printed value and the right value, in one comment."""


def _list_comments_below(code: str) -> Iterator[re.Match[str]]:
    """Yield the comments below a ``print`` call that name their content: ``# should print: [4.]``."""
    below = False
    for row in code.split("\n"):
        found = _COMMENT_BELOW.match(row)
        if below and found is not None:
            yield found
        else:
            below = row.lstrip().startswith("print(")


MAX_CODE_CHARS = 100_000
_COMMENT_BELOW = re.compile(
    r"^[ \t]{0,40}#[ \t]{0,8}(?:(?P<printed>(?:it )?(?:gives|prints|printed|got|returns|outputs?|actual))"
    r"|(?P<wanted>(?:i )?expect(?:ed|s)?|should (?:be|print|give|return)|want(?:ed)?|correct(?: is)?))"
    r"(?: (?:something like|about|output|results?|values?|is))?[ \t]{0,8}[:=]?[ \t]{0,8}"
    r"(?P<value>(?=[^\n]{0,200}(?:\d|\bnan\b|\binf\b))[^\n]{1,300})$",
    re.I,
)
_PRINT_COMMENT = re.compile(
    r"^[ \t]*print\([^#\n]{0,300}\)[ \t]*#[ \t]*"
    r"(?:(?P<printed>(?:it )?(?:gives?|gave|prints?|printed|got|gets?|returns?|outputs?|shows?|actual(?:ly)?|here)\b"
    r"|[-=]>)|(?P<wanted>expect(?:ed|s)?|should (?:be|print|give|return)|want(?:ed)?|correct(?: is)?)\b)?"
    r"[:=]?[ \t]*(?P<value>(?=[^\n]{0,200}(?:\d|\bnan\b|\binf\b))[^\n]{1,300})$",
    re.I | re.M,
)
