"""Choose the kind of failure that a report claims, by its words."""

from __future__ import annotations

import re

from bot.extract.claim.failure import list_failure_pieces
from bot.extract.claim.kinds import phrases
from bot.extract.claim.source import ClaimSource, join_prose
from bot.extract.vocabulary import any_of, join_words, list_vocabularies, vocabulary_of
from runners.core.failure.oracle import ASSERTION, OUTPUT
from runners.core.failure.parse import NATIVE
from runners.core.protocol import ClaimKind, Signature


def classify_claim(source: ClaimSource, signature: Signature | None, printed: bool) -> ClaimKind:
    """Return the kind of the claim. Quoted output decides before prose, the title before the body.

    ``printed``: the report quotes printed output.
    """
    quoted = "\n".join(p.text for p in list_failure_pieces(source.pieces))
    title = source.title
    if signature is not None and signature.type in NATIVE:
        return ClaimKind.CRASH
    if phrases.HANG.search(title) and (signature is None or signature.type in ("KeyboardInterrupt",)):
        return ClaimKind.HANG
    if phrases.MISMATCH.search(quoted) or (signature and phrases.MISMATCH.search(signature.message)):
        return ClaimKind.WRONG_RESULT
    if signature is not None:
        return _classify_quoted(source, signature, quoted)
    if phrases.SHOULD_END_BADLY.search(join_prose(source)):
        return ClaimKind.ACCEPTED
    if phrases.ACCEPTS.search(title) and not phrases.CRASH.search(
        title
    ):  # it should raise an error instead of crashing
        return ClaimKind.WRONG_RESULT if phrases.STOPS.search(phrases.ACCEPTS.sub("", title)) else ClaimKind.ACCEPTED
    aborts = vocabulary_of(source.toolchain).failures.assertions_abort
    if aborts and re.search(r"\bassertion (?:fail|in\b)", title, re.I):
        return ClaimKind.CRASH
    if phrases.CUT_SHORT.search(quoted) and not has_result_check(source.code):
        return ClaimKind.ERROR  # the words "expected" and "mismatch" around it belong to the message
    if phrases.ERROR.search(title) and phrases.REFUSED.search(join_prose(source)):
        return ClaimKind.ERROR  # the compiler rejects its own program, before any value is computed
    if phrases.STATIC_MISMATCH.search(title) and phrases.RAISED.search(join_prose(source)):
        return ClaimKind.ERROR  # two incompatible types are not computed values
    prose = join_prose(source)
    ends = any(one.search(text) for one in (phrases.CRASH, phrases.HANG) for text in (title, prose))
    told = ends or phrases.STOPS.search(title) or phrases.ERROR.search(title)
    if phrases.SHOULD_REFUSE.search(prose) and not told and not phrases.ENDS_WELL.sub("", quoted).strip():
        return ClaimKind.ACCEPTED
    if phrases.RAISES.search(title):
        return ClaimKind.ERROR
    if printed:
        prose = phrases.NO_FAILURE.sub(" ", phrases.ASIDE.sub(" ", prose))  # the blocks show how the program ends
    for text, kinds in ((title, phrases.TITLE_KINDS), (prose, phrases.KINDS)):
        for kind, pattern in kinds:
            if pattern.search(text):
                return kind
    return ClaimKind.UNKNOWN


def _classify_quoted(source: ClaimSource, signature: Signature, quoted: str) -> ClaimKind:
    """Return `ClaimKind.ERROR`, or `ClaimKind.WRONG_RESULT` if a check in the testcase itself fails."""
    if signature.type == "KeyboardInterrupt":
        return ClaimKind.HANG
    if any(name in frame for name in ("assert_allclose", *_COMPARISONS) for frame in signature.frames):
        return ClaimKind.WRONG_RESULT
    if any(signature.message.startswith(text) and name in source.code for text, name in _COMPARISON_MESSAGES):
        return ClaimKind.WRONG_RESULT
    if signature.type in (ASSERTION, OUTPUT) and has_result_check(source.code) and not signature.frames:
        said = f"{source.title}\n{quoted}"
        if 'File "' in quoted or phrases.WRONG.search(said) or not signature.message:
            return ClaimKind.WRONG_RESULT
    return ClaimKind.ERROR


_COMPARISONS = join_words(lambda words: words.failures.comparisons)
_COMPARISON_MESSAGES = tuple(pair for w in list_vocabularies() for pair in w.failures.comparison_messages.items())
_CHECK = re.compile(
    r"^[ \t]*assert\b|assert_allclose|assert_array|assert_almost|assert_close|allclose\("
    rf"|{any_of(map(re.escape, _COMPARISONS))}",
    re.M,
)


def has_result_check(code: str) -> bool:
    """True for a program that compares its results itself."""
    return bool(_CHECK.search(code))


def calls_it_an_error(title: str) -> bool:
    """True if the title of a report names an error or a crash."""
    return bool(phrases.ERROR.search(title) or phrases.CRASH.search(title))
