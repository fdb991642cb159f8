"""Decide what a report claims, from its words and the output that it quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import msgspec

from bot.extract.blocks.markdown import find_code_spans
from bot.extract.blocks.pieces import Kind
from bot.extract.claim.counts import read_counts
from bot.extract.claim.kinds import phrases
from bot.extract.claim.kinds.asides import is_beside_the_point
from bot.extract.claim.kinds.classify import classify_claim, has_result_check
from bot.extract.claim.quoted_output import find_similar_spans, find_telling_line, holds_printed_script, read_comments
from bot.extract.claim.source import ClaimSource, join_prose
from bot.extract.claim.values.sentences import SCALAR, VALUES, find_printed_values
from bot.extract.vocabulary import vocabulary_of
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.printed.pairs import holds_one_array
from runners.core.failure.printed.programs.program import MIN_OPERATIONS, read_operations
from runners.core.protocol import ClaimKind, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a claim that depend on each other."""

    kind: ClaimKind = ClaimKind.UNKNOWN
    signature: Signature | None
    actual: str
    expected: str


def settle_claim(source: ClaimSource, quoted: Draft, *, intended: bool, shows_values: bool) -> Draft:
    """Return the claim of a report that quotes a failure, output, or both.

    ``intended``: the text states that the quoted error is correct. ``shows_values``: the text shows values outside
    the code, and does not state whether they are printed or expected.
    """
    meant = intended and bool(quoted.actual and quoted.expected)
    draft = _drop_numbers_of_prose(source, quoted)
    rows = [row.strip() for row in draft.actual.splitlines() if row.strip()]
    if rows and all(map(_TIMED.fullmatch, rows)):
        return replace(draft, kind=ClaimKind.SLOW, signature=None, actual="")
    if meant or _only_mentions_failure(source, quoted):
        draft = replace(draft, signature=None)
    kind = classify_claim(source, draft.signature, printed=bool(draft.actual))
    if meant or (kind is ClaimKind.ACCEPTED and phrases.HANDLES_ERRORS.search(source.code)):
        kind = ClaimKind.WRONG_RESULT  # the output decides: the program prints it beside an error, or after one
    if draft.signature is None and kind in _UNTOLD and phrases.COMES_OUT_UNCHANGED.search(join_prose(source)):
        kind = ClaimKind.WRONG_RESULT  # no error is shown, and a sentence states that a pass does nothing
    if draft.signature is None and kind in _UNTOLD and _is_about_program(source, draft.actual):
        kind = ClaimKind.WRONG_RESULT  # no error is shown, but the program that a pass prints
    if not (draft.signature or draft.actual) and any(_FAILED_PASS.search(piece.text) for piece in source.pieces):
        kind = ClaimKind.ERROR
    if kind in _COSTS and (_shows_cause(source, draft) or _is_cost_of_printed_code(source)):
        kind = ClaimKind.WRONG_RESULT
    draft = replace(draft, kind=kind)
    counted = _count(source, draft)
    if counted is not None:
        return counted
    draft = _prefer_output(source, draft, shows_values=shows_values)
    if draft.kind is ClaimKind.WRONG_RESULT:
        draft = _complete_values(source, draft)
    return _name_failure(source, draft)


def _drop_numbers_of_prose(source: ClaimSource, draft: Draft) -> Draft:
    """Return the claim without a wrong value that is only a number in a sentence, if the commands run single passes.

    Such commands print a program. A number in a sentence about it ("dims 1, 3 and 5") is a place or a count, and it
    occurs in most programs.
    """
    if not _runs_passes(source) or not _NUMBERS.fullmatch(draft.actual):
        return draft
    quoted = (
        *(span for prose in source.document.prose for span in find_code_spans(prose.text)),
        *_list_output(source),
    )
    return draft if any(draft.actual in text for text in quoted) else replace(draft, actual="")


_TIMED = re.compile(r"(?:real|user|sys)\s+\d{1,5}m\d{1,2}[.,]\d{1,3}s")
"""A row of what the shell's ``time`` prints below the output of a command."""
_NUMBERS = re.compile(r"[-+\d.,\s]+")


def _list_output(source: ClaimSource) -> tuple[str, ...]:
    return tuple(piece.text for piece in source.pieces if piece.kind in (Kind.OUTPUT, Kind.SHELL, Kind.FRAGMENT))


def _is_about_program(source: ClaimSource, actual: str) -> bool:
    """True for a text that quotes operations on values as the output of a pass, and does not state that anything
    fails.

    A failing compiler prints such operations too, below its error or in its place.
    """
    said = f"{source.title}\n{join_prose(source)}"
    is_mlir = "%" in actual and len(read_operations(actual)) >= MIN_OPERATIONS
    return (is_mlir or holds_printed_script(actual)) and not _FAILS.search(said)


_FAILS = re.compile(r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|crash\w*|abort\w*|diagnostics?)\b", re.I)


def _shows_cause(source: ClaimSource, draft: Draft) -> bool:
    """True for a report on time or memory that shows printed output: the time is a consequence of this output.

    It shows both what is printed and what should be, or its title speaks neither of time nor of memory, and nor does
    the output that it shows.
    """
    costs = (phrases.SLOW, phrases.MEMORY)
    titled = any(one.search(source.title) for one in costs)
    shown = f"{draft.actual}\n{draft.expected}".strip()
    measured = any(one.search(shown) for one in (*costs, _AMOUNT))
    return bool(shown) and (bool(draft.actual and draft.expected) or not (titled or measured))


def _is_cost_of_printed_code(source: ClaimSource) -> bool:
    """True if the testcase only prints the code that passes make, and the report does not speak of their own time.

    The time or memory is that of the code, which no command here runs.
    """
    said = f"{source.title}\n{join_prose(source)}"
    return _runs_passes(source) and not phrases.TIME_OF_COMPILING.search(said)


_AMOUNT = re.compile(r"\d ?(?:ns|[uµm]s|s|sec\w*|min\w*|h|[KMG]i?B|bytes|%)\b|\d+:\d\d\b|\btime\b", re.I)
"""An amount of time or memory, as a measuring program prints it."""
_FAILED_PASS = re.compile(r"^[ \t]*// ?-{3,}// ?IR Dump After \S{1,200} Failed\b", re.M)
"""The title that MLIR prints above the program on which a pass failed."""
_UNTOLD = frozenset({ClaimKind.UNKNOWN, ClaimKind.ERROR})
_COSTS = frozenset({ClaimKind.SLOW, ClaimKind.MEMORY})


def _only_mentions_failure(source: ClaimSource, quoted: Draft) -> bool:
    if quoted.signature is None or not quoted.actual:
        return False
    return is_beside_the_point(source, quoted.signature, quoted.actual)


# ---------------------------------------------------------------------------------------------- numbers of things


def _count(source: ClaimSource, draft: Draft) -> Draft | None:
    """Return the claim about the number of things that the compiler makes; None for a claim about something else.

    A report on wrong values or on an error may name such numbers too. Then the title decides.
    """
    tools = vocabulary_of(source.toolchain).tools
    if tools is None or tools.product is None or draft.signature is not None or draft.kind not in _MAY_COUNT:
        return None
    about = re.search(rf"\b(?:un)?fus\w+|{tools.product.named_pattern}", source.title, re.I)
    if draft.kind is not ClaimKind.UNKNOWN and (about is None or _NAMES_VALUES.search(source.title)):
        return None
    made, wanted = read_counts((source.title, *_list_sentences(source)), tools.product)
    if not (made or wanted):
        return None
    signature = Signature(type=OUTPUT, message=made) if made else None
    return Draft(kind=ClaimKind.COUNT, signature=signature, actual=made, expected=wanted)


_MAY_COUNT = frozenset({ClaimKind.UNKNOWN, ClaimKind.WRONG_RESULT, ClaimKind.ERROR})
_NAMES_VALUES = phrases.any_of(
    r"(?:wrong|incorrect|different|numeric\w*) (?:results?|values?|outputs?|numerics)", "accuracy", "NaNs?"
)


# ---------------------------------------------------------------------------------------------- output and words


def _prefer_output(source: ClaimSource, draft: Draft, *, shows_values: bool) -> Draft:
    """Return the draft as a claim about values, if its output is better evidence than the words of its kind."""
    pair = bool(draft.actual and draft.expected)
    bare = draft.signature is None
    match draft.kind:
        case ClaimKind.UNKNOWN:
            about_values = _is_about_output(source, draft, shows_values) or has_result_check(source.code)
        case ClaimKind.HANG if pair and phrases.HANG.search(source.title):
            return replace(draft, actual="")  # a run that hangs may print its first lines
        case ClaimKind.HANG:
            about_values = pair  # the words mean something else, unless they are in the title
        case ClaimKind.CRASH:
            about_values = bare and pair and not phrases.CRASH.search(source.title)  # a crash of another program
        case ClaimKind.ERROR if bare and pair and not phrases.NAMES_ERROR.search(source.title):
            about_values = True  # ``can't read the printed text``
        case ClaimKind.ERROR:
            about_values = bare and _quotes_values(draft) and not phrases.ERROR.search(source.title)
        case _:
            about_values = False
    return replace(draft, kind=ClaimKind.WRONG_RESULT) if about_values else draft


def _is_about_output(source: ClaimSource, draft: Draft, shows_values: bool) -> bool:
    """True if the report shows what its program prints or should print, in a block or in a remark of the code."""
    if not source.code:
        return False
    return bool(draft.actual or draft.expected or shows_values) or all(read_comments(source.code, draft.expected))


def _quotes_values(draft: Draft) -> bool:
    if not draft.actual:
        return False
    return bool(draft.expected) or all(map(_VALUES_ALONE.fullmatch, draft.actual.strip().split("\n")))


_VALUES_ALONE = re.compile(
    rf"\s*(?:(?:[\w .]{{1,40}}(?:[:=]\s*|\s(?=\[)))?(?:{VALUES})|[\w .]{{1,40}}[:=]\s*{SCALAR})\s*", re.I
)
"""A row of printed values, maybe with a label."""


# ---------------------------------------------------------------------------------------------- missing parts


def _complete_values(source: ClaimSource, draft: Draft) -> Draft:
    """Return a claim about values with the values that code or prose gives, or as an error if there are none."""
    actual, expected = draft.actual, draft.expected
    if not (actual and expected):
        printed, wanted = read_comments(source.code, expected, _list_told_values(source))
        actual, expected = actual or printed, expected or wanted
    if actual and not expected:
        expected = find_similar_spans(source.document, actual, source.code)
    if actual and not expected and phrases.STAYS_AS_IT_IS.search(join_prose(source)):
        expected = _find_input_program(source)
    if not actual and _misses_transformation(source):
        actual, expected = _find_input_program(source), ""
    if not actual and phrases.COMES_OUT_AS_NAN.search(source.title):
        actual = "nan"
    kind = draft.kind
    if draft.signature is None and not actual and phrases.TELLS_ERROR.search(join_prose(source)):
        kind = ClaimKind.ERROR  # a wrong value of the compiler's own, such as a shape, ends in an error
    return replace(draft, kind=kind, actual=actual, expected=expected)


def _misses_transformation(source: ClaimSource) -> bool:
    """True if the report says that a pass does nothing, and its command runs single passes."""
    said = f"{source.title}\n{join_prose(source)}"
    words = (phrases.MISSES_TRANSFORMATION, phrases.COMES_OUT_UNCHANGED)
    return _runs_passes(source) and any(one.search(said) for one in words)


def _runs_passes(source: ClaimSource) -> bool:
    """True if a command of the testcase runs single passes, which print a program."""
    tools = vocabulary_of(source.toolchain).tools
    if tools is None or not tools.optimizer:
        return False
    return re.search(rf"^{re.escape(tools.optimizer)}\b", source.code, re.M) is not None


def _find_input_program(source: ClaimSource) -> str:
    """Return the only MLIR of the testcase; empty for a testcase with none or several."""
    programs = [
        piece.text for piece in source.pieces if piece.kind is Kind.MLIR and piece.text.strip() in source.code
    ]
    return programs[0] if len(programs) == 1 else ""


def _list_told_values(source: ClaimSource) -> frozenset[str]:
    return frozenset().union(*map(find_printed_values, (source.title, *_list_sentences(source))))


def _list_sentences(source: ClaimSource) -> tuple[str, ...]:
    return tuple(prose.text for prose in source.document.prose if not prose.heading)


def _name_failure(source: ClaimSource, draft: Draft) -> Draft:
    """Return the draft with a signature that its kind implies, and without output that its kind does not compare."""
    signature, actual = draft.signature, draft.actual
    match draft.kind:
        case ClaimKind.CRASH:
            named = _name_signal(signature, f"{source.title}\n{join_prose(source)}")
            expected = draft.expected if holds_one_array(draft.expected) else ""
            return replace(draft, signature=named, actual="", expected=expected)
        case ClaimKind.ERROR:
            if signature is None and phrases.OUT_OF_MEMORY.search(source.title):
                signature = Signature(type="out-of-memory")
            return replace(draft, signature=signature, actual="", expected="")
        case ClaimKind.ACCEPTED:
            return replace(draft, actual="", expected="")
        case ClaimKind.WRONG_RESULT if signature is None and actual:
            printed = find_telling_line(actual, draft.expected)[:500]
            return replace(draft, signature=Signature(type=OUTPUT, message=printed))
        case _:
            return draft


def _name_signal(signature: Signature | None, said: str) -> Signature | None:
    """Replace a signature that only means "crash" by the signal that the prose names."""
    if signature is not None and signature.type != "crash":
        return signature
    name = next((name for name, pattern in phrases.SIGNALS if pattern.search(said)), None)
    if name is None:
        return signature
    return msgspec.structs.replace(signature, type=name) if signature else Signature(type=name)
