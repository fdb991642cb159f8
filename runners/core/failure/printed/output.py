"""Compare printed output with the actual and the expected output of a report. Pure.

Many testcases exit with 0 with and without the bug. Then only their printed values distinguish the two. Lines are
compared by words, and numbers with a tolerance. White space is ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runners.core.failure.printed.reading import Reading
from runners.core.protocol import Claim, ClaimKind, Exited, StepResult
from runners.core.toolchain.failures import FailureVocabulary

MAX_LINES = 400
MAX_TELLING = 60
MAX_LINE_CHARS = 2_000
RELATIVE = 1e-3
ABSOLUTE = 1e-6

Token = str | float
Line = tuple[Token, ...]
MaskedLine = tuple[str, ...]

MAX_STEPS = 1_000_000
"""Maximum number of token comparisons. Only lines made to be slow need more, and they do not distinguish runs."""

# Possessive, so that digits before a letter are rejected at once, without backtracking.
NUMBER_PATTERN = r"[-+]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|nan|inf)"
_TOKEN = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\w++|[^\w\s]", re.IGNORECASE)
_NUMBER = re.compile(NUMBER_PATTERN, re.IGNORECASE)
_FENCE = "```"
_BAD_WORDS = frozenset(
    {"FAIL", "FAILED", "Fail", "Failed", "fail", "failed", "WRONG", "Wrong", "MISMATCH", "Mismatch"}
)
_GOOD_WORDS = frozenset({"PASS", "PASSED", "Pass", "Passed", "pass", "passed", "OK", "Ok", "ok"})
_TRUTH = {"True", "False", "true", "false", *_BAD_WORDS, *_GOOD_WORDS}
"""Words with which a program judges its own line."""
_NOTHING = {"None", "null", "nullptr"}
"""Words for a missing value."""
_DIFFERENCE = re.compile(
    r"diff|err|mismatch|delta|deviation|discrepan|(?<![a-z])(?:max_? ?abs|abs_? ?max|mae|r?mse)(?![a-z])",
    re.IGNORECASE,
)


def read_output(output: str, vocabulary: FailureVocabulary, *, actual: str, expected: str) -> Reading:
    """Compare ``output`` with a report's ``actual`` and ``expected`` lines. Either may be empty."""
    if not expected and (reading := _read_elided(output, actual)) is not None:
        return reading
    printed = _read_lines(output, vocabulary)[-MAX_LINES:]
    wrong, right = (_read_lines(text, vocabulary)[:MAX_LINES] for text in (actual, expected))
    try:
        reading = _compare_lines(printed, wrong, right)
        if _has_negative_zero(wrong) and _has_negative_zero(right):
            signed = _compare_lines(*(list(map(_keep_signs, lines)) for lines in (printed, wrong, right)))
            same = signed is Reading.UNKNOWN and _compare_lines(printed, wrong, []) is Reading.WRONG
            return Reading.CHANGED if same else signed
        if reading is Reading.UNKNOWN and wrong and right and wrong == right:  # they differ in a zero's sign
            return _compare_lines(*(list(map(_keep_signs, lines)) for lines in (printed, wrong, right)))
    except _TooManySteps:
        return Reading.UNKNOWN
    return reading


NEGATIVE_ZERO = "-0"
"""The token of a negative zero, if the report is about its sign. As numbers, both zeros are equal."""


def names_negative_zero(text: str) -> bool:
    return _has_negative_zero(split_lines(text))


def _has_negative_zero(lines: Sequence[Line]) -> bool:
    """True if a text contains a negative zero. If both texts of a report do, the report is about its sign."""
    return any(NEGATIVE_ZERO in _keep_signs(line) for line in lines)


def _keep_signs(line: Line) -> Line:
    return tuple(NEGATIVE_ZERO if token == 0 and str(token).startswith("-") else token for token in line)


def _read_elided(output: str, actual: str) -> Reading | None:
    """Compare the reported rows with "..." as text. None if the other rows of the report decide.

    All other comparisons leave such rows out. If only such rows contain values, the rows without values prove
    nothing: a program prints them whatever its result.
    """
    rows = [row.strip() for row in actual.splitlines()[:MAX_LINES] if row.strip()]
    elided = {row for row in rows if "..." in row and _NUMBER.search(row)}
    if not elided:
        return None
    if elided & {row.strip() for row in output.splitlines()[-MAX_LINES:]}:
        return Reading.WRONG
    return None if any(_has_value(line) for line in split_lines(actual)) else Reading.UNKNOWN


def find_other_values(output: str, vocabulary: FailureVocabulary, *, actual: str) -> str:
    """Return the printed line that has the words of a reported line and other values. Empty if there is none.

    Prefer a line that the report does not quote, because the report may quote correct lines too. The tokens of the
    result are separated by one space, so that equal outputs give equal text.
    """
    printed = _read_lines(output, vocabulary)[-MAX_LINES:]
    reported: dict[MaskedLine, list[Line]] = {}
    for line in _read_lines(actual, vocabulary)[:MAX_TELLING]:
        reported.setdefault(_mask_values(line), []).append(line)
    quoted = ""
    for line in printed:
        known = reported.get(_mask_values(line), [])
        labelled = any(isinstance(token, str) and token.isalnum() for token in line)
        is_array = "[" in line and sum(map(_is_value, line)) > 1
        same = [all(map(_is_same_token, one, line)) for one in known]
        if not known or not (labelled or is_array) or same[-1]:
            continue
        text = _join_tokens(line)
        if not any(same):
            return text
        quoted = quoted or text
    return quoted or _find_other_form([line for lines in reported.values() for line in lines], printed)


MIN_LABELS, MAX_LABELS = 6, 40
"""Number of words in a row that identify a reported line whose values have other brackets."""
MAX_FORMS = 5
"""Maximum number of reported lines that are searched in this way."""


def _find_other_form(reported: Sequence[Line], printed: Sequence[Line]) -> str:
    """Return the passage with the words of a reported line and other values. Empty if there are several.

    A list may have another depth or length: ``sizes = [8, 16]`` became ``sizes = [8, [8]]``.
    """
    for line in reported[:MAX_FORMS]:
        words = [token for token in line if _is_word(token)]
        if not MIN_LABELS <= len(words) <= MAX_LABELS:
            continue
        passages = {passage for other in printed if (passage := _cut_passage(other, words))}
        if len(passages) == 1:
            passage = passages.pop()
            if _list_values(passage) != _list_values(_cut_passage(line, words)):
                return _join_tokens(passage)
    return ""


def _list_values(line: Line) -> list[Token]:
    """Return the values of a line, including the brackets of lists."""
    return [token for token in line if _is_value(token) or token in ("[", "]")]


MAX_PASSAGE = 400
"""Maximum number of tokens of a printed line that are searched for the words of another line."""


def _cut_passage(line: Line, words: Sequence[Token]) -> Line:
    """Return the part of a line whose only words are ``words``, in order. Empty without such a part."""
    places = [at for at, token in enumerate(line[:MAX_PASSAGE]) if _is_word(token)]
    for first in range(len(places) - len(words) + 1):
        if [line[at] for at in places[first : first + len(words)]] == words:
            end = places[first + len(words)] if first + len(words) < len(places) else len(line)
            return line[places[first] : end]
    return ()


def _is_word(token: Token) -> bool:
    return isinstance(token, str) and token.isidentifier() and not _is_value(token)


def _join_tokens(line: Line) -> str:
    return " ".join(f"{token:g}" if isinstance(token, float) else token for token in line)[:200]


_TEXT = r"\"[^\"\n]{0,4000}\"|\[[\d, ]{1,400}\]"
_ATTRIBUTE = re.compile(rf"(?P<name>[A-Za-z_][\w.]{{2,80}}) ?= ?(?P<text>{_TEXT})[,;]?")


def read_attribute(output: str, *, actual: str) -> tuple[bool, str] | None:
    """Compare the only attribute that a report quotes with the output's: ``cpu_features = ""``, ``sizes = [8, 64]``.

    Return whether the output has the quoted value, and the attribute in the output. None if the report quotes
    anything else. None as well if the output lacks the attribute or has several values of it.
    """
    quoted = _ATTRIBUTE.fullmatch(actual.strip())
    if quoted is None:
        return None
    name = re.escape(quoted["name"])
    found = set(re.findall(rf"(?<![\w.]){name} ?= ?({_TEXT})", output))
    if len(found) != 1:
        return None
    text = found.pop()
    return text == quoted["text"], f"{quoted['name']} = {text}"[:200]


MIN_CODE_WORDS = 4
"""Minimum number of words of a name or an expression that identifies a run, wherever a row contains it."""


def prints_code(output: str, *, expected: str, actual: str) -> bool:
    """True if a row of the output contains the code that the report expects, and the quoted output does not.

    The code is one row without spaces, such as the name of an instruction: ``mbarrier.arrive.shared::cluster.b64``.
    """
    code = expected.strip()
    if len(re.findall(r"\w+", code)) < MIN_CODE_WORDS or re.search(r"\s", code) or code in actual:
        return False
    return re.search(rf"(?<!\w){re.escape(code)}(?!\w)", output) is not None


def are_equal_lines(one: Sequence[Line], other: Sequence[Line]) -> bool:
    """True if two outputs have the same lines. Numbers are compared with a tolerance."""
    if list(map(len, one)) != list(map(len, other)):
        return False
    return all(all(map(_is_same_token, left, right)) for left, right in zip(one, other, strict=True))


class _TooManySteps(Exception):
    """The lines are too long and too similar to compare."""


def _compare_lines(printed: list[Line], wrong: list[Line], right: list[Line]) -> Reading:
    if (judged := _compare_judgements(printed, wrong, right)) is not None:
        return judged
    if _calls_wrong(wrong) and not _calls_wrong(printed) and _count_right(printed) > _count_right(wrong):
        return Reading.CHANGED  # the program judges its result, and prints the opposite of what the report quotes
    if not right and wrong and all(map(_holds_garbage, wrong)) and any(map(_holds_garbage, printed)):
        return Reading.WRONG  # outputs that differ only in the content of unwritten memory are the same
    search = _Search()
    reported, quoted, aligned = wrong, right, _list_forms(printed) == _list_forms(wrong)
    # A line on both sides distinguishes nothing. It must not be completed into another line.
    counted = [(line, sum(map(_is_value, line))) for line in wrong]
    right = [_complete_line(line, counted) for line in quoted if not search.finds(line, wrong)]
    wrong, right = (
        [line for line in wrong if not search.finds(line, (*quoted, *right))][:MAX_TELLING],
        [line for line in right if not search.finds(line, wrong)][:MAX_TELLING],
    )
    if not right and wrong and all(map(_is_no_number, wrong)) and (reading := _look_for_numbers(printed)):
        return reading
    wrong, right = _select_telling(wrong, alone=not right), _select_telling(right, alone=not wrong)
    if not (wrong or right) or not printed:
        return Reading.UNKNOWN
    as_reported = sum(search.finds(line, printed) for line in wrong)
    as_expected = sum(search.finds(line, printed) for line in right)
    if as_reported and as_expected:
        if as_reported == len(wrong) and any(map(_tells_difference, wrong)):
            return Reading.WRONG  # the output also contains its reference, and the distance of the result from it
        return _weigh_shares(as_reported / len(wrong), as_expected / len(right))
    masked: dict[MaskedLine, list[Line]] = {}
    for line in printed:
        masked.setdefault(_mask_values(line), []).append(line)
    gone = [line for line in wrong if not search.finds(line, printed)] if as_reported else []
    if not right and any(_has_become_right(line, masked) for line in gone):
        return Reading.CHANGED  # the remaining lines were right in the report too
    named = [token for line in quoted for token in line if _is_value(token)]
    if any(_differs_by(named, line, masked) for line in gone):
        return Reading.RIGHT
    if _gives_other_expressions(reported, printed):
        return Reading.CHANGED
    if any(_is_contradicted(line, masked) and not _judges_itself(line) for line in gone):
        return Reading.UNKNOWN  # a line of the report has other values here, so the other lines may be right
    if gone and ((aligned and not any(map(_count_words, gone))) or _has_other_rows(gone, wrong, printed)):
        return Reading.UNKNOWN  # row by row the same output, but some rows have other values
    if as_reported:
        # One common line of many (a header, a shape) is not the reported output.
        return Reading.WRONG if 2 * as_reported >= len(wrong) else Reading.UNKNOWN
    if as_expected and not wrong and any(_has_rival(line, printed) for line in right):
        return Reading.UNKNOWN  # the program also prints a reference, or several results
    if as_expected:
        return Reading.RIGHT if 2 * as_expected >= len(right) else Reading.UNKNOWN
    if any(_is_contradicted(line, masked) for line in right if line in quoted):
        return Reading.WRONG
    more = (search.count(line, printed) > search.count(line, reported) for line in quoted)
    if wrong and quoted and not right and all(more):
        return Reading.RIGHT  # the report contains ``3.0`` and ``0.0``, and expects ``3.0`` twice
    if not right and any(_has_become_right(line, masked) or _is_filled(line, printed) for line in wrong):
        return Reading.CHANGED
    if any(_differs_by(named, line, masked) for line in wrong):
        return Reading.RIGHT
    return Reading.UNKNOWN


def _gives_other_expressions(wrong: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if each missing wrong row has other code on its right side now: ``x % x -> 0``, ``a[i] = b``.

    A compiler that prints code prints the same code each time. Rows of numbers may differ for other reasons. Rows
    with "..." cannot be compared.
    """
    results: dict[Line, set[Line]] = {}
    for key, rest in map(_split_result, printed):
        results.setdefault(key, set()).add(rest)
    rows = [_split_result(line) for line in wrong if not _is_elided(line)]
    gone = [(key, rest) for key, rest in rows if key and rest not in results.get(key, ())]
    coded = [
        (key, rest) for key, rest in gone if any(isinstance(token, str) and token.isidentifier() for token in rest)
    ]
    return bool(coded) and len(coded) == len(gone) and all(key in results for key, _ in gone)


def _is_elided(line: Line) -> bool:
    return any(line[at : at + 3] == (".", ".", ".") for at in range(len(line) - 2)) or "…" in line


def _split_result(line: Line) -> tuple[Line, Line]:
    """Return the parts of a row before and after the first ``=`` or ``->``. Empty without one."""
    for at in range(1, len(line) - 1):
        pair = line[at : at + 2]
        if pair == ("-", ">"):
            return line[:at], line[at + 2 :]
        if pair[0] == "=" and pair[1] != "=" and line[at - 1] not in ("=", "<", ">", "!"):
            return line[:at], line[at + 1 :]
    return (), ()


def _compare_judgements(printed: Sequence[Line], wrong: Sequence[Line], right: Sequence[Line]) -> Reading | None:
    """Compare a bare ``False`` and ``True`` with the only such word of each printed row. None for other values.

    A program may print its own judgement between a label and values: ``llvm True [6 0 15]``.
    """
    bare = [line[0] for line in (*wrong, *right) if len(line) == 1 and line[0] in _TRUTH]
    if not wrong or len(bare) != len(wrong) + len(right) or len({line[0] for line in wrong}) > 1:
        return None
    rows = [[token for token in line if token in _TRUTH] for line in printed]
    judged = [words[0] for words in rows if len(words) == 1]
    if not judged or not any(len(line) > 1 and set(line) & _TRUTH for line in printed):
        return None  # whole rows are compared like others
    if wrong[0][0] in judged:
        return Reading.WRONG
    if right and any(word != right[0][0] for word in judged):
        return Reading.UNKNOWN
    return Reading.RIGHT if right else Reading.CHANGED


def _calls_wrong(lines: Sequence[Line]) -> bool:
    return any(_BAD_WORDS.intersection(line) for line in lines)


def _count_right(lines: Sequence[Line]) -> int:
    return sum(bool(_GOOD_WORDS.intersection(line)) for line in lines)


def _list_forms(lines: Sequence[Line]) -> list[MaskedLine]:
    """Return the forms of the rows that contain values and no words, in order."""
    return [_mask_values(line) for line in lines if _has_value(line) and not _count_words(line)]


def _has_other_rows(gone: Sequence[Line], reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if a row of a printed table has other values: ``11 1.3`` in the report, and ``11 3e-07`` in the output.

    The first numbers of a table's rows are all different.
    """
    keys = [line[0] for line in reported if len(line) > 1]
    if len(keys) < FEWEST_ROWS or len(set(keys)) < len(reported) or not all(isinstance(key, float) for key in keys):
        return False
    rows = {line[0]: line for line in printed if len(line) > 1}
    found = (rows.get(line[0]) for line in gone)
    return any(row is not None and len(row) == len(line) for row, line in zip(found, gone, strict=True))


FEWEST_ROWS = 3
"""Minimum number of rows of a table."""


def _has_rival(expected: Line, printed: Sequence[Line]) -> bool:
    """True if another printed row has as many values as the bare expected values, but different ones."""
    values = [token for token in expected if isinstance(token, float)]
    if len(values) < 2 or any(token not in _BETWEEN and not isinstance(token, float) for token in expected):
        return False
    rows = ([token for token in line if isinstance(token, float)] for line in printed)
    return any(len(row) == len(values) and not all(map(_is_same_token, row, values)) for row in rows)


def _judges_itself(line: Line) -> bool:
    """True for a line that states how wrong a result is, whatever its value: ``b diff 3.18 FAIL``."""
    label = " ".join(token for token in line if isinstance(token, str))
    return bool(_BAD_WORDS.intersection(line)) or _DIFFERENCE.search(label) is not None


def _is_no_number(line: Line) -> bool:
    """True for a line that contains only NaN and infinities. The report only states that they occur."""
    values = [token for token in line if token not in _BETWEEN]
    return bool(values) and all(isinstance(token, float) and not math.isfinite(token) for token in values)


def _look_for_numbers(printed: Sequence[Line]) -> Reading | None:
    """Return whether the output contains NaN or infinities. None for an output without numbers."""
    numbers = [token for line in printed for token in line if isinstance(token, float)]
    if not numbers:
        return None
    return Reading.CHANGED if all(map(math.isfinite, numbers)) else Reading.WRONG


MAX_NAMED = 4
"""Maximum number of single values that a report names beside a wrong line."""


def _differs_by(named: Sequence[Token], wrong: Line, masked: Mapping[MaskedLine, list[Line]]) -> bool:
    """True if a printed line has the named values in places where the wrong line has other values.

    A report quotes a wrong line of many values, and names one value that the line should contain. Further values may
    differ if they differ like a named one: by the same factor or by the same amount.
    """
    if not 1 <= len(named) <= MAX_NAMED or sum(map(_is_value, wrong)) <= len(named):
        return False
    for line in masked.get(_mask_values(wrong), ()):
        changed = [(old, new) for old, new in zip(wrong, line, strict=True) if not _is_same_token(old, new)]
        wished = [pair for pair in changed if any(_is_same_token(one, pair[1]) for one in named)]
        if wished and all(pair in wished or any(_changes_alike(pair, one) for one in wished) for pair in changed):
            return all(any(_is_same_token(one, new) for _, new in wished) for one in named)
    return False


def _changes_alike(one: tuple[Token, Token], other: tuple[Token, Token]) -> bool:
    """True if two numbers change by the same factor (for example their sign) or by the same amount."""
    if not all(isinstance(token, float) and math.isfinite(token) for token in (*one, *other)):
        return False
    old, new, old_other, new_other = map(float, (*one, *other))
    scaled = old != 0 != old_other and math.isclose(new / old, new_other / old_other, rel_tol=RELATIVE)
    return scaled or math.isclose(new - old, new_other - old_other, rel_tol=RELATIVE)


def _tells_difference(line: Line) -> bool:
    """True for a line that states a difference, and contains at most one value: ``max error = 4.0``."""
    values = [token for token in line if isinstance(token, float)]
    label = " ".join(token for token in line if isinstance(token, str))
    return len(values) == 1 and abs(values[0]) > ABSOLUTE and _DIFFERENCE.search(label) is not None


def _weigh_shares(reported: float, expected: float) -> Reading:
    """Decide between outputs with lines of both sides. Only a complete side counts."""
    if reported == 1.0 and expected < 1.0:
        return Reading.WRONG
    if expected == 1.0 and reported < 1.0:
        return Reading.RIGHT
    return Reading.UNKNOWN


def _select_telling(lines: list[Line], *, alone: bool) -> list[Line]:
    """Return the lines with a value, else all lines. Empty if lines without a value are ``alone`` and too short."""
    valued = [line for line in lines if _has_value(line)]
    return valued or ([line for line in lines if len(line) >= MIN_ALONE] if alone else lines)


MIN_ALONE = 6
"""Minimum number of tokens with which a line without a value counts: ``R.Tensor((), dtype="bool")``."""


def _read_lines(text: str, vocabulary: FailureVocabulary) -> list[Line]:
    """Split text into lines of tokens. Drop empty lines, a tool's own lines, and lines truncated by "..."."""
    return split_lines("\n".join(line for line in text.splitlines() if not _is_harness(line.strip(), vocabulary)))


def split_lines(text: str) -> list[Line]:
    """Split text into lines of tokens. Drop empty lines, lines truncated by "...", and the time before a message."""
    kept = (_TIME_OF_DAY.sub("", line.strip()[:MAX_LINE_CHARS]) for line in text.splitlines())
    return [_split_tokens(line) for line in kept if line and "..." not in line and "…" not in line]


_TIME_OF_DAY = re.compile(r"^\[\d{1,2}:\d\d:\d\d(?:\.\d{1,9})?\] ")
"""The prefix that a logger writes before a message. The time differs in each run."""


def _is_harness(line: str, vocabulary: FailureVocabulary) -> bool:
    return line.startswith(_FENCE) or any(harness.match(line) for harness in vocabulary.harness_lines)


def _split_tokens(line: str) -> Line:
    """Split a line into words and numbers."""
    tokens = _TOKEN.findall(line)
    exact = len(tokens) > 2 and tokens[1] == "=" and _INTEGER_TYPE.fullmatch(tokens[0]) is not None
    number = _Exact if exact else float
    return tuple(number(t) if _NUMBER.fullmatch(t) else t for t in tokens)


class _Exact(float):
    """A printed value of an integer type. Such values differ if their last digits differ."""


_INTEGER_TYPE = re.compile(r"(?:\d{1,9}x){0,8}(?:[su]?i\d{1,3}|index)")
"""The type before the values of a printed result: ``2xi64=3 16777217``."""


def _complete_line(expected: Line, actual: Sequence[tuple[Line, int]]) -> Line:
    """Insert bare expected values ("numpy says 0.0") into the only actual line that has places for them.

    ``actual`` contains each line with its number of values. Values from running text can identify a right output, but
    not a wrong one.
    """
    values = [token for token in expected if _is_value(token)]
    bare = bool(values) and all(_is_value(token) or token in _BETWEEN for token in expected)
    places = [line for line, count in actual if count == len(values) < len(line)] if bare else []
    if len(places) != 1:
        return expected
    given = iter(values)
    return tuple(next(given) if _is_value(token) else token for token in places[0])


_BETWEEN = {",", "[", "]", "(", ")"}


def _is_value(token: Token) -> bool:
    return isinstance(token, float) or token in _TRUTH or token in _NOTHING or token == NEGATIVE_ZERO


def _has_value(line: Line) -> bool:
    return any(map(_is_value, line))


@dataclass(slots=True)
class _Search:
    """Search for lines in other lines, with at most `MAX_STEPS` comparisons of two tokens."""

    steps: int = 0

    def finds(self, line: Line, among: Sequence[Line]) -> bool:
        return any(self._is_within(line, other) for other in among)

    def count(self, line: Line, among: Sequence[Line]) -> int:
        """Count the places in other lines where a line occurs."""
        places = ((other, at) for other in among for at in range(len(other) - len(line) + 1))
        return sum(self._is_at(line, other, at) for other, at in places)

    def _is_within(self, part: Line, whole: Line) -> bool:
        """True if ``whole`` contains ``part``, token by token.

        A single token (``3``) must be the whole line. The same applies to words without a value (an expression or
        prose).
        """
        self.steps += 1
        if len(part) > len(whole):
            return False
        if len(part) < 2 or not _has_value(part):
            return len(part) == len(whole) and self._is_at(part, whole, 0)
        return any(self._is_at(part, whole, start) for start in range(len(whole) - len(part) + 1))

    def _is_at(self, part: Line, whole: Line, start: int) -> bool:
        for at, token in enumerate(part, start):
            self.steps += 1
            if not _is_same_token(token, whole[at]):
                break
        else:
            return True
        if self.steps > MAX_STEPS:
            raise _TooManySteps
        return False


def _is_same_token(a: Token, b: Token) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if isinstance(a, _Exact) or isinstance(b, _Exact):
            return a == b
        if is_tiny(a) or is_tiny(b):
            return is_tiny(a) and is_tiny(b)
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == b


TINY = 2.0**-126
"""Limit of float32's subnormal numbers. They come from memory with other data, such as integers or addresses."""


def is_tiny(number: float) -> bool:
    """True for a number that memory contains by chance."""
    return 0 < abs(number) < TINY


def _holds_garbage(line: Line) -> bool:
    """True for a row of numbers of which at least one comes from unwritten memory."""
    return not _count_words(line) and any(isinstance(token, float) and is_tiny(token) for token in line)


def _mask_values(line: Line) -> MaskedLine:
    """Replace the values of a line: ``max diff = 0.5`` → ``max diff = #``."""
    return tuple("#" if _is_value(token) else str(token) for token in line)


def _count_words(line: Line) -> int:
    return sum(isinstance(t, str) and not _is_value(t) and any(map(str.isalpha, t)) for t in line)


def _is_contradicted(expected: Line, printed: Mapping[MaskedLine, Sequence[Line]]) -> bool:
    """True if a printed line has the words of the expected line, but another value."""
    return _count_words(expected) > 0 and any(
        not all(map(_is_same_token, expected, line)) for line in printed.get(_mask_values(expected), ())
    )


def _has_become_right(reported: Line, printed: Mapping[MaskedLine, Sequence[Line]]) -> bool:
    """True if the reported line now has a right value: True for False, a tiny difference, or a number for NaN."""
    if not _count_words(reported):
        return False
    label = " ".join(t for t in reported if isinstance(t, str))
    for line in printed.get(_mask_values(reported), ()):
        pairs = [(old, new) for old, new in zip(reported, line, strict=True) if not _is_same_token(old, new)]
        if pairs and all(_has_improved(old, new, bool(_DIFFERENCE.search(label))) for old, new in pairs):
            return True
    return False


def _is_filled(reported: Line, printed: Sequence[Line]) -> bool:
    """True if a line that ended in ``None`` has a value now: ``span None`` became ``span Span(a.py, 8)``."""
    label, last = reported[:-1], reported[-1]
    if last not in _NOTHING or not _count_words(label):
        return False
    return any(line[: len(label)] == label and line[len(label) :] not in ((), (last,)) for line in printed)


def _has_improved(old: Token, new: Token, is_difference: bool) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        if not math.isfinite(old):
            return math.isfinite(new)
        return is_difference and abs(new) <= max(1e-4, abs(old) * 1e-3)
    judged = old in _BAD_WORDS and new in _GOOD_WORDS
    return judged or (old, new) in {("False", "True"), ("false", "true")}


# ------------------------------------------------------------------------------------ several runs

_OF_BUILD = re.compile(r"--?(?:module(?:_file)?|device|driver)\b")
"""Flags that select the program and the device. The other words select the inputs."""


def read_twins(
    claim: Claim, steps: Sequence[StepResult], vocabulary: FailureVocabulary, compilers: Collection[str]
) -> tuple[str, ...]:
    """Return the different results of all runs of one program, each once. Empty if the report is not about them.

    A report on two backends, or two sets of flags, that differ quotes both results, or none, and does not say which
    is right. The claim is answered by whether the results are equal on a build, not by their distance from the quoted
    numbers.
    """
    runs = [step for step in steps if step.argv and step.argv[0] not in {*compilers, "python"}]
    inputs = {(run.argv[0], *(word for word in run.argv[1:] if not _OF_BUILD.match(word))) for run in runs}
    if claim.kind is not ClaimKind.WRONG_RESULT or claim.expected or len(runs) < 2 or len(inputs) != 1:
        return ()
    reported = _split_results(claim.actual, vocabulary)
    if claim.actual and (len(reported) != len(runs) or len(set(reported)) == 1):
        return ()
    if not claim.actual and len({_find_module(run) for run in runs}) != len(runs):
        return ()
    printed = [_drop_harness(run.stdout, vocabulary) for run in runs]
    if not all(printed) or any(run.ended != Exited(code=0) or run.truncated for run in runs):
        return ()
    return tuple(dict.fromkeys(printed))


def _find_module(run: StepResult) -> str:
    """Return what a run loads and where it runs it: the words that distinguish twins."""
    return " ".join(word for word in run.argv[1:] if _OF_BUILD.match(word))


def _split_results(text: str, vocabulary: FailureVocabulary) -> list[str]:
    """Return the results in a quoted output: one for each block below lines of the harness."""
    blocks: list[list[str]] = []
    below = True
    for line in filter(str.strip, text.split("\n")):
        if any(pattern.match(line.strip()) for pattern in vocabulary.harness_lines):
            below = True
            continue
        if below:
            blocks.append([])
        blocks[-1].append(" ".join(line.split()))
        below = False
    return ["\n".join(block) for block in blocks]


def _drop_harness(text: str, vocabulary: FailureVocabulary) -> str:
    return "\n".join(_split_results(text, vocabulary))
