"""Find the failure that a report quotes: in its blocks, its sentences, its title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from bot.extract.blocks.cut import is_open_at_end
from bot.extract.blocks.markdown import Document, locate_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection, classify_heading
from bot.extract.claim.code_remarks import find_stated_failure
from bot.extract.claim.kinds import phrases
from bot.extract.python.reference.caught import list_caught_labels
from bot.extract.vocabulary import any_of, join_words
from runners.core.failure.api_drift import NAME_MESSAGES
from runners.core.failure.array_mismatch import extract_figures
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC
from runners.core.failure.parse import NATIVE, cut_at_span_end, parse_signature
from runners.core.protocol import ANY_ERROR, Signature
from runners.toolchains import ALL_FAILURES


def find_signature(title: str, document: Document, pieces: Sequence[Piece]) -> Signature | None:
    """Return the failure that the report quotes, from the most reliable source that has one.

    The sources in order: tracebacks and output in blocks, bare lines and code spans of the prose, the title, the
    remarks in the program.
    """
    failing = list_failure_pieces(pieces)
    read = (_read_open_piece(one) if is_open_at_end(document, one) else _read_piece(one) for one in failing)
    candidates = [one for one in read if one is not None]
    if not candidates:  # the section on expected output may contain the failure
        rest = [p for p in pieces if p.kind in (Kind.TRACEBACK, Kind.OUTPUT) and is_expected_output(p)]
        candidates = [s for s in map(_read_piece, rest) if s is not None]
    if candidates:
        return max(candidates, key=_rank_signature)
    said = _drop_emphasis("\n".join(p.text for p in document.prose if not p.heading))
    if (block := _read_mismatch(said)) is not None:
        return block
    shows_output = any(piece.kind is Kind.OUTPUT for piece in pieces)
    bare = _cut_at_span_end(parse_signature(phrases.ONCE.sub("", said) if shows_output else said, ALL_FAILURES))
    relayed = any(relay.exception in said for relay in ALL_FAILURES.relays)
    if bare is not None and (relayed or bare.type not in NATIVE):
        return bare  # a signal in a sentence is weaker than an exception, unless the exception only relays it
    if (told := _find_told_message(title, document)) is not None:
        return told
    met = [p for p in document.prose if classify_heading(p.section) is not IssueSection.EXPECTED]
    for prose in met:
        for at, raw in locate_code_spans(prose.text):
            span = raw.replace("\n", " ").strip()
            found = parse_signature(span, ALL_FAILURES)
            if found is not None and _is_quoted_failure(span, found) and not _is_wished(prose.text, at):
                return found
    untagged = re.sub(r"^(?:\s*\[[^\]]{1,40}\])+\s*", "", title)
    titled = parse_signature(untagged, ALL_FAILURES)
    if titled is not None and titled.message:
        return titled
    if (stated := find_stated_failure(pieces)) is not None:
        return stated
    running = _drop_emphasis("\n".join([untagged, *(p.text for p in met if not p.heading)]))
    return _find_in_sentences(running) or titled or bare or _find_python_message(running)


def _drop_emphasis(text: str) -> str:
    """Return ``text`` without the marks of emphasis around an error: ``_ValueError: no such axis_``."""
    return _EMPHASISED.sub(r"\g<error>", text)


_EMPHASISED = re.compile(
    r"(?<![\w*])(?P<mark>[_*]{1,3})(?P<error>(?:\w{1,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)\b[^\n]{0,400}?)(?P=mark)(?!\w)"
)


def _find_python_message(text: str) -> Signature | None:
    """Return the exception behind a message of Python itself: ``module 'tvm' has no attribute 'relay'``."""
    for row in text.split("\n"):
        for name, pattern in _PYTHON_MESSAGES:
            if (found := pattern.search(row[:400])) is not None:
                return Signature(type=name, message=found[0])
    return None


_PYTHON_MESSAGES = tuple(
    (name, re.compile(words))
    for name, words in (
        *NAME_MESSAGES.items(),
        ("NameError", r"name '\w{1,100}' is not defined"),
        ("TypeError", r"\w[\w.]{0,100}\(\) missing \d+ required positional arguments?: [^\n]{1,200}"),
    )
)
"""The sentences of CPython that people quote without the exception's name."""


def _cut_at_span_end(found: Signature | None) -> Signature | None:
    """Return the signature without the sentence after the code span that contains its message."""
    if found is None or found.message.count("`") % 2 == 0:
        return found
    return msgspec.structs.replace(found, message=cut_at_span_end(found.message).strip())


_IN_TEXT = re.compile(
    r"(?<![\w.])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error"
    r"|Exception))\b`{0,2}(?:: ?(?P<message>[^\n]{1,400}))?"
)


_RAISED = re.compile(
    r"\b(?:rais\w+|throw\w*|thr[eo]wn?|fails? with|dies? with|stops? with|gets?|got|gives?"
    r"|an?|with|in)\s+(?:an? )?`{0,2}$|\(`{0,2}$",
    re.I,
)


def _find_told_message(title: str, document: Document) -> Signature | None:
    """Return the failure whose message a sentence quotes: ``a ValueError occurs with the message "no such axis"``.

    The paragraph names the exception above the message, else the title does. A verifier or a parser raises none. A
    title such as ``ValueError: wrong axis check`` has the reporter's words in place of the exception's message.
    """
    in_title = _EXCEPTION.findall(title)[:1]
    for prose in document.prose:
        if classify_heading(prose.section) is IssueSection.EXPECTED:
            continue
        for found in _TOLD_MESSAGE.finditer(prose.text):
            message = " ".join(found["message"].split())
            before = prose.text[max(0, found.start() - MAX_BEFORE) : found.start()]
            named = [*in_title, *_EXCEPTION.findall(before)[-1:]]
            wished = _WISH.search(before.rpartition(". ")[2])
            is_diagnostic = found["checker"] is not None and not (named or _EXCEPTION.match(message))
            if is_diagnostic and not wished and len(message.split()) >= _FEWEST_WORDS:
                return Signature(type=COMPILER_DIAGNOSTIC, message=message)
            if named and not wished and len(message.split()) >= _FEWEST_WORDS:
                text = f"{named[-1]}: {message}"
                return parse_signature(text, ALL_FAILURES) or Signature(type=named[-1], message=message)
    return None


def _is_wished(text: str, at: int) -> bool:
    """True if the sentence asks for the error that it names: ``it should refuse with a ScheduleError``."""
    return _WISH.search(_cut_sentence(text, at)) is not None


def _cut_sentence(text: str, end: int) -> str:
    """Return the text before a position in its sentence, at most `MAX_BEFORE` characters."""
    return re.split(r"(?<=[.!?])\s|\n\s*\n", text[max(0, end - MAX_BEFORE) : end])[-1]


def list_wished(title: str, document: Document) -> tuple[str, ...]:
    """Return the exceptions that a report asks for: ``it should fail, but with a ValueError``."""
    found: dict[str, None] = {}
    if _RATHER_THAN_RAISING.search(title):
        found.setdefault(ANY_ERROR)
    for prose in document.prose:
        text = prose.text[:MAX_TEXT]
        for match in (*_EXCEPTION.finditer(text), *_STATUS.finditer(text), *_SOME_ERROR.finditer(text)):
            before = _cut_sentence(text, match.start())
            if _BUT_WITH.match(before):
                before = _cut_sentence(text, match.start() - len(before) - 1)
            if _WISH.search(before) and not _NEGATED.search(before) and not _BUT_GOT.search(before):
                named = {_EXCEPTION: match[1], _STATUS: f"status:{match[1]}"}
                found.setdefault(named.get(match.re, ANY_ERROR))
    return tuple(found)[:MAX_WISHED]


MAX_TEXT, MAX_WISHED = 20_000, 8
_NEGATED = re.compile(r"(?:\b(?:not|never|no|without)|n['’]t)\s+(?:(?!but\b)\w+\s+){0,3}`{0,2}$", re.I)
"""Words before an exception that the reporter does not want."""
_BUT_GOT = re.compile(
    r"\b(?:but|and) (?:(?:i|we) (?:get|see)|(?:(?:i|we|it) )?(?:gets|got|saw|gives|raises|throws))\b", re.I
)
"""Words between a request and what happened instead."""
_BUT_WITH = re.compile(r"(?:but|and|just|only|preferably|ideally)\b", re.I)
_SOME_ERROR = re.compile(
    r"\b(?:an?|the|some) (?:[a-z]{3,20} ){0,2}(error|exception|diagnostic)s?\b",
    re.I,
)
_RATHER_THAN_RAISING = re.compile(
    r"\b(?:instead of|rather than) (?:(?:an?|the|giving|returning|printing|failing with)\s){0,2}"
    r"(?:\w+ )?(?:rais\w+|throw\w+|errors?|exceptions?|diagnostics?|report\w+)\b",
    re.I,
)


_TOLD_MESSAGE = re.compile(
    r"\b(?:messages?\b(?:[ \n]+(?:is|was|says|reads|saying|stating|like|of|as follows))?"
    r"|(?P<checker>verifier|parser)[ \n]+(?:says|said|complains|reports|fails with|rejects (?:it|this) with))"
    r"[ \n]*[:,]?[ \n]*"
    r"(?:`{1,2}|[\"“])(?P<message>[^`\"“”]{1,600})[`\"”]"
)
_EXCEPTION = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w{0,60}\.){0,6}([A-Z]\w{0,60}(?:Error|Exception))\b")
_STATUS = re.compile(rf"(?<![\w.])({any_of(ALL_FAILURES.status_codes)})\b")
_WISH = re.compile(
    r"\b(?:expect\w*|should|would|better|instead|wish|rather|prefer\w*|ideally|acceptable|either"
    r"|(?:i|we) (?:thought|assumed|believed?)|supposed to"
    r"|could (?:\w+ )?(?:live|accept|raise|throw|give|be)|(?:happy|fine|ok(?:ay)?) with)\b|\bno `{0,2}$",
    re.I,
)
"""Words before an exception that did not occur: the report asks for the exception, or states that there was none."""
MAX_BEFORE = 400
"""Characters above a message in which its exception may be named. A paragraph may have thousands of messages."""
_FEWEST_WORDS = 3
"""Minimum number of words in quotation marks: fewer words may be a name."""


def _find_in_sentences(text: str) -> Signature | None:
    """Return the failure named in a sentence: ``… dies with TypeError: no such thing``.

    A failure with a message comes before a bare name.
    """
    bare: Signature | None = None
    for found in _IN_TEXT.finditer(text):
        name, message = found["type"].rpartition(".")[2], (found["message"] or "").strip()
        if message.count('"') % 2:  # the sentence continues after the closing quotation mark
            message = message.rpartition('"')[0]
        if message:
            return parse_signature(f"{found['type']}: {message}", ALL_FAILURES) or Signature(
                type=name, message=message
            )
        raised = _RAISED.search(text[max(0, found.start() - 30) : found.start()])
        if bare is None and raised and not _WISH.search(_cut_sentence(text, found.start())):
            bare = Signature(type=name)
    return bare


def fails_at_definition(signature: Signature) -> bool:
    """True if a parser or a decorator refuses a definition. Such a failure occurs without a use of the definition."""
    if signature.type in _DEFINITION_ERRORS:
        return True
    return any(part in frame for part in _DEFINITION_FRAMES for frame in signature.frames)


_DEFINITION_ERRORS = {"mlir-error", "SyntaxError", *join_words(lambda words: words.failures.definition_errors)}
_DEFINITION_FRAMES = join_words(lambda words: words.failures.definition_frames)


def list_failure_pieces(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.kind in (Kind.TRACEBACK, Kind.OUTPUT, Kind.NATIVE, Kind.SHELL) and not is_expected_output(piece):
            yield piece


def find_caught(pieces: Sequence[Piece]) -> Signature | None:
    """Return the first exception in printed output, for a program that catches exceptions and prints them.

    A value may precede the exception, and its class may lack the colon: ``unsigned ValueError no such type``.
    """
    if not any(piece.kind is Kind.PYTHON and list_caught_labels(piece.text) for piece in pieces):
        return None
    printed = (p for p in pieces if p.kind is Kind.OUTPUT and not is_expected_output(p))
    rows = (row for piece in printed for row in piece.text.split("\n")[:MAX_OUTPUT_ROWS])
    found = next(filter(None, map(_CAUGHT.search, rows)), None)
    return Signature(type=found["type"], message=found["message"].strip()[:500]) if found is not None else None


MAX_OUTPUT_ROWS = 200
_CAUGHT = re.compile(
    r"(?<![\w.])(?P<type>(?:[A-Za-z_]\w{0,40}\.){0,4}[A-Z]\w{0,60}(?:Error|Exception))\b['\")]?"
    r"[: ]{1,3}(?P<message>\S.{4,})"
)


def is_expected_output(piece: Piece) -> bool:
    if piece.kind is Kind.TRACEBACK:
        return False
    if piece.section is IssueSection.ACTUAL and piece.cue is Cue.WORKS:
        return False  # "there is no error, but": the section describes the output
    return piece.section is IssueSection.EXPECTED or piece.cue in (Cue.EXPECTED, Cue.WORKS)


def _read_piece(piece: Piece) -> Signature | None:
    text = piece.text
    if "Program arguments:" in text and "Stack dump:" not in text:
        text = f"Stack dump:\n{text}"  # the line above was not copied
    found = parse_signature(text, ALL_FAILURES)
    if (block := _read_mismatch(text) or _read_sanitizer(text)) is not None:
        return block
    if found is not None and _FRAME_MESSAGE.match(found.message):
        return msgspec.structs.replace(found, message="")
    return found


def _read_open_piece(piece: Piece) -> Signature | None:
    """Return the failure in output at the end of a description that breaks off.

    The last word may be incomplete. A diagnostic with too few words before it could be any diagnostic. An exception
    has its name.
    """
    above, _, row = piece.text.rstrip().rpartition("\n")
    found = _read_piece(replace(piece, text=f"{above}\n{row.rpartition(' ')[0]}"))
    if found is not None and len(found.message.split()) >= _FEWEST_WORDS_OF_OPEN_END:
        return found
    posted = _read_piece(piece)
    short = posted is not None and posted.type == COMPILER_DIAGNOSTIC
    return _read_piece(replace(piece, text=above)) if short else posted


_FEWEST_WORDS_OF_OPEN_END = 4
"""Minimum number of words that identify a diagnostic."""


def _read_sanitizer(text: str) -> Signature | None:
    """Return the fault in a sanitizer's report, with the compiler's functions in the stack."""
    found = _SANITIZER.search(text)
    if found is None:
        return None
    stack = parse_signature(f"Stack dump:\n{text}", ALL_FAILURES)
    return Signature(type="crash", message=found[0], frames=stack.frames if stack else ())


_SANITIZER = re.compile(r"(?:Address|Memory|Thread|Leak|UndefinedBehavior)Sanitizer: [\w-]{1,60}")


def _read_mismatch(text: str) -> Signature | None:
    """Return NumPy's report of unequal arrays with its line of figures. The exception's name may be missing."""
    header = _MISMATCH_HEADER.search(text)
    if header is not None and (found := extract_figures(text[header.end() : header.end() + 2_000].splitlines())):
        return Signature(type="AssertionError", message=f"{header[0].strip()} | {found}")
    older = _MISMATCH_FIGURES.search(text, header.end(), header.end() + 500) if header else _FIGURES.search(text)
    if header is None and older is None:
        return None
    message = " | ".join(found[0].strip() for found in (header, older) if found)
    return Signature(type="AssertionError", message=message)


_FIGURES = re.compile(r"Mismatched elements: [^\n]{1,60}")


_MISMATCH_HEADER = re.compile(r"Not equal to tolerance [^\n]{1,80}|Arrays are not (?:almost )?equal[^\n]{0,60}")


_MISMATCH_FIGURES = re.compile(
    r"Mismatched elements: [^\n]{1,60}"
    r"|(?:\([^\n]{1,40} )?[Mm]ismatch(?:ed)? \(?[\d.]+%[^\n]{0,20}"
)


_FRAME_MESSAGE = re.compile(r"\d{1,4}: ")
"""A numbered C++ frame after the cut message of an error."""


def _rank_signature(signature: Signature) -> tuple[int, int, int]:
    """Rank a failure with frames or a message above a bare name. `max` keeps the first of equals."""
    return (
        int(signature.type in NATIVE or bool(signature.message)),
        int(bool(signature.frames)),
        int(signature.type not in ("flag-error",)),
    )


def _is_quoted_failure(span: str, found: Signature) -> bool:
    """True for ``AssertionError: …``; False for the name of a class or a flag in a sentence."""
    return bool(found.message) or found.type in NATIVE or bool(re.fullmatch(r"[\w.]+(?:Error|Exception)", span))
