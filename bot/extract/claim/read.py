"""Read the reporter's claim: kind, signature, quoted output, versions, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from bot.extract.blocks.markdown import Document, Prose
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import IssueSection, classify_heading
from bot.extract.claim.accused import list_accused
from bot.extract.claim.counts import read_counts
from bot.extract.claim.drawn_values import drop_drawn_values
from bot.extract.claim.failure import find_signature, list_failure_pieces, list_wished
from bot.extract.claim.quoted_output import find_similar_spans, find_telling_line, read_comments, read_quoted_output
from bot.extract.claim.shown_values import list_shown_values
from bot.extract.claim.value_sentences import SCALAR, VALUES, find_printed_values
from bot.extract.claim.versions import Passage, find_good_versions, find_versions
from bot.extract.vocabulary import any_of, any_word, join_words, list_vocabularies, vocabulary_of
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC
from runners.core.failure.parse import NATIVE, parse_signature
from runners.core.failure.printed.pairs import holds_one_array
from runners.core.protocol import Claim, ClaimKind, Signature
from runners.toolchains import ALL_FAILURES

MAX_TOLD_CHARS = 8_000
OUTPUT_TYPE = "output"
"""Signature type of a claim that rests on printed output alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSource:
    """The parts of an issue that a claim is read from."""

    title: str
    document: Document
    pieces: tuple[Piece, ...]
    code: str
    """The files and commands of the testcase; empty without a testcase."""
    devices: tuple[str, ...]
    toolchain: str | None


def read_claim(source: ClaimSource) -> Claim:
    """Return the claim; its kind is `ClaimKind.UNKNOWN` if the text names no failure."""
    signature = find_signature(source.title, source.document, source.pieces)
    passages = list(_collect_passages(source))
    good = find_good_versions(passages, source.toolchain)
    actual, expected = read_quoted_output(source.document, source.pieces, good, source.code)
    actual = drop_drawn_values(_keep_results(actual), source.code)
    if "__version__" in source.code:  # the version of the build is no result
        actual, expected = (_VERSION_ROW.sub("", text).strip("\n") for text in (actual, expected))
    if signature is not None and actual and _is_beside_the_point(source, signature, bool(expected)):
        signature = None
    intended = _IS_MEANT.search(_join_prose(source)) is not None
    meant = bool(actual and expected) and intended
    if meant:
        signature = None
    kind = _classify_claim(source, signature, printed=bool(actual))
    if meant:
        kind = ClaimKind.WRONG_RESULT  # of what the run prints beside its error
    if kind is ClaimKind.ACCEPTED and _HANDLES_ERRORS.search(source.code):
        kind = ClaimKind.WRONG_RESULT  # the output tells: the program may end well after an error too
    made, wanted_number = _read_counts(source, kind, signature)
    if made or wanted_number:
        kind, actual, expected = ClaimKind.COUNT, made, wanted_number
        signature = Signature(type=OUTPUT_TYPE, message=made) if made else None
    stated = kind is ClaimKind.UNKNOWN and all(read_comments(source.code, expected))
    shown = list_shown_values(source.document, source.pieces)
    if kind is ClaimKind.UNKNOWN and source.code and (actual or expected or stated or shown):
        kind = ClaimKind.WRONG_RESULT  # the report is about the output of a run
    if kind is ClaimKind.UNKNOWN and _has_result_check(source.code):
        kind = ClaimKind.WRONG_RESULT  # the program says what is wrong: its own check fails
    if kind is ClaimKind.HANG and actual and expected:
        # A run that hangs may print its first lines. Without a title that says so, the words mean something else.
        kind, actual = (kind, "") if _HANG.search(source.title) else (ClaimKind.WRONG_RESULT, actual)
    if kind is ClaimKind.CRASH and signature is None and actual and expected and not _CRASH.search(source.title):
        kind = ClaimKind.WRONG_RESULT  # a remark names a crash of another program
    unquoted = kind is ClaimKind.ERROR and signature is None
    if unquoted and actual and expected and not _NAMES_ERROR.search(source.title):
        kind = ClaimKind.WRONG_RESULT  # ``can't read the printed text``
    values = bool(actual) and (bool(expected) or all(map(_VALUES_ALONE.fullmatch, actual.strip().split("\n"))))
    if kind is ClaimKind.ERROR and signature is None and values and not _ERROR.search(source.title):
        kind = ClaimKind.WRONG_RESULT  # output is quoted, and no error is
    if kind is ClaimKind.WRONG_RESULT and not (actual and expected):
        printed, wanted = read_comments(source.code, expected, _list_told_values(source))
        actual, expected = actual or printed, expected or wanted
    if kind is ClaimKind.WRONG_RESULT and actual and not expected:
        expected = find_similar_spans(source.document, actual, source.code)
    if kind is ClaimKind.WRONG_RESULT and not actual and _COMES_OUT_AS_NAN.search(source.title):
        actual = "nan"
    silent = signature is None and not actual
    if kind is ClaimKind.WRONG_RESULT and silent and _TELLS_ERROR.search(_join_prose(source)):
        kind = ClaimKind.ERROR  # a wrong value of the compiler's own, such as a shape, ends in an error
    if kind in (ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.ACCEPTED):
        actual, expected = "", expected if kind is ClaimKind.CRASH and holds_one_array(expected) else ""
    if kind is ClaimKind.CRASH:
        signature = _name_signal(signature, f"{source.title}\n{_join_prose(source)}")
    if kind is ClaimKind.ERROR and signature is None and _OUT_OF_MEMORY.search(source.title):
        signature = Signature(type="out-of-memory")
    if kind is ClaimKind.WRONG_RESULT and signature is None and actual:
        signature = Signature(type=OUTPUT_TYPE, message=find_telling_line(actual, expected)[:500])
    return Claim(
        kind=kind,
        signature=signature,
        versions=tuple(v[:512] for v in find_versions(passages, source.toolchain)),
        good=tuple(v[:512] for v in good),
        devices=tuple(d[:512] for d in source.devices[:8]),
        actual=actual,
        expected=expected,
        told=_collect_told(source) if signature is None or signature.type in _MAY_BE_ONE_OF_TWO else "",
        accused=list_accused(source.title),
        intended=intended and signature is not None and signature.type != OUTPUT_TYPE,
        wished=list_wished(source.title, source.document),
        shown=shown if kind is ClaimKind.WRONG_RESULT else (),
        sometimes=_SOMETIMES.search(f"{source.title}\n{_join_prose(source)}") is not None,
    )


_TELLS_ERROR = re.compile(
    r"\b(?:error|exception)s?(?: message)? (?:says?|reads|tells|complains?|states|claims)\b"
    r"|\b(?:fails|stops|dies|ends|aborts) (?:with an? (?:\w+ ){0,2}(?:error|exception)|since|because)\b"
    r"|\b(?:fails|stops|dies|aborts) (?:in|inside|during) (?:the )?(?:`?[\w:-]{1,80}`? )?"
    r"(?:pass|lowering|legalization|conversion)\b",
    re.I,
)
"""A sentence that tells of an error without quoting it."""


def _keep_results(output: str) -> str:
    """Return the rows of an output without typed remarks, and without the banner of a tool's version."""
    rows = output.split("\n")
    kept = [row for row in rows if not _NO_RESULT_ROW.search(row)]
    return "\n".join(kept).strip("\n") if any(map(str.strip, kept)) else output


_NO_RESULT_ROW = re.compile(r"^[ \t]*#[ \t]+\w|\bversion[: ]+v?\d+\.\d+\.\d", re.I)


def _is_beside_the_point(source: ClaimSource, signature: Signature, has_expected: bool) -> bool:
    """True for a failure that a remark names, in a report that quotes what its program prints."""
    bare = not signature.message and signature.type not in NATIVE  # a name alone, beside printed output
    return _is_in_parentheses(source, signature) or ((has_expected or bare) and _is_aside(source, signature))


def _is_aside(source: ClaimSource, signature: Signature) -> bool:
    """True for a failure that one sentence of the prose names, where a block shows what the program prints.

    ``Wrapping the argument is not a way out, that dies with …``: the report is about the printed values. A signal may
    have any of its names: ``the bigger program also had segfaults``.
    """
    if _ERROR.search(source.title) or _CRASH.search(source.title) or signature.type == OUTPUT_TYPE:
        return False
    blocks = [piece.text for piece in source.pieces if piece.kind not in _CODE]
    words = re.compile(re.escape(signature.message[:60] or signature.type.rpartition(":")[2]))
    if signature.type in NATIVE and not signature.message:
        words = _CRASH
        if _shows_crash(source):
            return False
    told = any(words.search(prose.text) for prose in source.document.prose)
    return told and not any(map(words.search, blocks)) and any(map(str.strip, blocks))


def _is_in_parentheses(source: ClaimSource, signature: Signature) -> bool:
    """True for a signal that the text names in parentheses alone: ``(one process also died with SIGSEGV)``."""
    bare = signature.type in NATIVE and not (signature.message or signature.frames)
    outside = f"{source.title}\n{_ASIDE.sub(' ', _join_prose(source))}"
    return bare and _CRASH.search(outside) is None and not _shows_crash(source)


def _shows_crash(source: ClaimSource) -> bool:
    """True if a block of the text shows that a program died by a signal."""
    quoted = (parse_signature(piece.text, ALL_FAILURES) for piece in list_failure_pieces(source.pieces))
    return any(found is not None and found.type in NATIVE for found in quoted)


_IS_MEANT = re.compile(
    r"\b(?:error|exception|failure|message)s?(?: itself| themselves)?(?: here)?,? (?:is|are)"
    r" (?:(?:my|our) (?:own )?(?:doing|fault)|intended|intentional|deliberate|provoked|expected|right|correct|fine"
    r"|on purpose)\b"
    r"|\b(?:provok|trigger|caus)\w* (?:it|this|that|an?|the|some|any)\b[^.\n]{0,40}\b(?:on purpose|deliberately)\b",
    re.I,
)
"""A sentence that calls the error of the run right: the report is about something beside the error."""


def _list_told_values(source: ClaimSource) -> frozenset[str]:
    texts = (source.title, *(prose.text for prose in source.document.prose if not prose.heading))
    return frozenset().union(*map(find_printed_values, texts))


_VALUES_ALONE = re.compile(
    rf"\s*(?:(?:[\w .]{{1,40}}(?:[:=]\s*|\s(?=\[)))?(?:{VALUES})|[\w .]{{1,40}}[:=]\s*{SCALAR})\s*", re.I
)
"""A row of printed values, maybe with a label."""
_COMES_OUT_AS_NAN = re.compile(
    r"\b(?:(?:give|return|produce|output|print|yield|become|get|compute)s?|is|are|=)\s+(?:all )?`?-?NaNs?\b"
    r"|(?:^|[:\]])\s*NaNs? (?:from|in|for|out of|after|when|on)\b(?! inputs?)",
    re.I,
)
"""A title that says that a result is NaN."""
_CODE = (Kind.PYTHON, Kind.DEFINITIONS)


_MAY_BE_ONE_OF_TWO = (OUTPUT_TYPE, COMPILER_DIAGNOSTIC)
"""Types of signatures beside which the report may quote another failure: of the run behind a compilation."""


def _collect_told(source: ClaimSource) -> str:
    """Return the words in which the report may describe its failure: all but code, and the environment.

    Code without a fence stands in the prose. A traceback quotes its lines for any failure.
    """
    prose = (p.text for p in source.document.prose if classify_heading(p.section) is not IssueSection.ENVIRONMENT)
    quoted = (p.text for p in source.pieces if p.kind not in _CODE and p.text.strip() not in source.code)
    code = {row.strip() for row in source.code.split("\n")}
    rows = (row for text in (source.title, *prose, *quoted) for row in text.split("\n") if row.strip() not in code)
    return "\n".join(rows)[:MAX_TOLD_CHARS]


def calls_it_an_error(title: str) -> bool:
    """True if the title of a report names an error or a crash."""
    return bool(_ERROR.search(title) or _CRASH.search(title))


# ---------------------------------------------------------------------------------------------- kind

_MISMATCH = re.compile(
    r"Not equal to tolerance|Mismatched elements|Arrays are not (?:almost )?equal|Max absolute difference"
    rf"|Tensor-likes are not close|{any_word(lambda words: words.failures.mismatch_patterns)}"
)


def _any_of(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})", re.I)


_WITHOUT_OBJECT = r"\b(?=\s*(?:$|[^\w\s]|(?:and|or|but|when|if|for|on|in|at|from|to|with|after|until)\b))"
"""After ``return``: a call that never returns hangs, and a call that never returns a negative number does not."""
_HANG = _any_of(
    *(r"hang(?:s|ing)?\b", r"dead-?lock", r"(?:gets?|is|be) stuck", r"endless(?:ly)?\b", r"takes? forever"),
    *(r"not terminating", r"never (?:terminates|finishes|ends|comes back)", rf"never returns{_WITHOUT_OBJECT}"),
    *(r"infinite(?:ly)? (?:loop|recurs)", r"(?:loops?|runs?) forever"),
    *(r"does(?: no|n[o'’])t (?:terminate|finish)", rf"does(?: no|n[o'’])t return{_WITHOUT_OBJECT}", r"not finish"),
    r"(?:compile|build|compilation) time explodes",
)
_CRASH = _any_of(
    *(r"seg(?:mentation)? ?fault", r"segv\b", r"sig(?:segv|abrt|fpe|ill|bus)\b", r"core ?dump"),
    *(r"crash(?:es|ed|ing)?\b", r"abort(?:s|ed)?\b(?! if)", r"heap corruption", r"double free", r"use.after.free"),
    *(r"stack overflow", r"bus error", r"illegal instruction", r"floating[ -]point exception", r"killed by sig"),
)
_HARD_CRASH = _any_of(
    *(r"seg(?:mentation)? ?fault", r"segv\b", r"sig(?:segv|abrt|fpe|ill|bus)\b", r"core ?dump", r"heap corruption"),
    *(r"double free", r"use.after.free", r"illegal instruction", r"floating[ -]point exception"),
)
_SIGNALS = (
    ("SIGSEGV", _any_of(r"seg(?:mentation)? ?fault", r"segv\b", r"sigsegv\b")),
    ("SIGTRAP", _any_of("breakpoint trap", r"sigtrap\b")),
    ("SIGFPE", _any_of(r"floating[ -]point exception", r"sigfpe\b")),
    ("SIGILL", _any_of("illegal instruction", r"sigill\b")),
    ("SIGBUS", _any_of("bus error", r"sigbus\b")),
    ("SIGABRT", _any_of(r"aborted\b", r"sigabrt\b")),
)
"""The names that shells and people give to the signal that ended a program."""
_OCCASION = r"(?:run|time|try|trie|compilation|execution|invocation|attempt|launche?)s?\b"
"""What happens again and again, in phrases that say how often it goes wrong."""
_SOMETIMES = _any_of(
    *(r"sometimes\b", r"occasional(?:ly)?\b", r"intermittent(?:ly)?\b", r"sporadic(?:ally)?\b", r"flak(?:y|iness)\b"),
    *(r"non-?determinis\w+", r"now and (?:then|again)\b", r"once in a while\b", r"from time to time\b"),
    *(
        r"not (?:always|every time)\b",
        rf"every (?:second|third|other|few|\d+(?:st|nd|rd|th)?) (?:or \w+ )?(?:{_OCCASION}|calls?\b)",
    ),
    rf"(?:half|most|some|one|two|\d+ ?%) (?:of|in|out of) (?:the |all |my |\w+ )?{_OCCASION}",
    rf"(?:once|twice|one|two|three|\d+) (?:times? )?(?:in|of|out of) (?:\d+|two|three|four|five|ten) {_OCCASION}",
    *(
        r"times out of (?:\d+|two|three|four|five|ten)\b",
        rf"from (?:one )?{_OCCASION} to (?:the )?(?:next|{_OCCASION})",
    ),
    rf"(?:differ|var(?:y|ies)|change|inconsistent|unstable)\w* (?:\w+ ){{0,3}}between (?:\w+ )?{_OCCASION}",
    rf"(?:differs?|chang(?:es|ing)|var(?:y|ies)|unstable|inconsistent) (?:\w+ )?(?:with|on|in) each {_OCCASION}",
    rf"each {_OCCASION} (?:prints|gives|returns|computes|shows) (?:another|an?other|a different|different|other)\b",
    *(r"rarely\b", r"unpredictabl\w+", r"(?:race condition|data race)\b", r"not (?:reliably )?reproducible\b"),
    r"random(?:ly)? (?:fail|crash|hang|segfault|pass)\w*",
    *(r"(?:different|other) (?:result|output|value|number)s? (?:each|every) (?:time|run)\b", r"some runs\b"),
    *(r"at random\b", r"comes and goes\b", r"unstable (?:result|output)s?\b"),
)
"""Phrases for a failure that does not occur in every run."""
_WRONG = _any_of(
    *("wrong", r"in ?correct", "inaccura", r"mis-?match", "garbage", "trash", "inconsisten", r"mis-?compil"),
    *(r"numeric(?:al)?\b", r"(?:different|other) (?:result|output|value|answer|number|element)s?\b"),
    *(r"(?:results?|outputs?|values?) (?:differ|chang)", r"differs?\b", r"(?:is|are|was|were) different\b"),
    r"(?:not|\w{2,5}n['’]t) (?:(?:be|being|get|getting|all|always|fully|properly) )?(?:equal|match|the same|correct"
    r"|simplified|optimi[sz]ed|folded|eliminated|removed|idempotent|fused|hoisted|vectori[sz]ed|inlined|merged|canonicali[sz]ed)",
    *(r"un-?necessary", "redundant", "superfluous", r"sub-?optimal", "inefficient"),
    r"missed (?:\w+ )?(?:optimi[sz]ation|fusion|opportunit)",
    r"(?:cannot|can ?not|can['’]t|does ?n[o'’]t|fails? to) (?:generate|produce|print|emit|create|output|return)"
    r" (?:an? |the )?(?:valid|correct|right|proper|well-formed)\b",
    r"(?:generates?|produces?|prints?|emits?|outputs?) (?:an? )?(?:\w+ )?(?:invalid|ill-formed|malformed)\b",
    *("silently", r"does ?n[o'’]t match", r"NaNs?\b", r"all zero(?:e?s)?\b", r"far too (?:small|large|big)"),
    r"(?:is|are|was|were) not what (?:numpy|np|torch|pytorch|onnx ?runtime|i|we)\b",
    *(r"unexpected (?!error|exception|crash)", r"expected .{1,60} but (?:got|get)", "corrupt", "truncat"),
    *("transposed", "swapped", r"shifted\b", "reversed", "duplicated", r"off by (?:one|\d)", r"drop(?:s|ped)\b"),
    *(r"los(?:es|t|s)\b", "replaced by", "saturates?", "instead of", "correctness"),
    r"returns? (?:only )?(?:0|zeros?|zeroes)\b",
    r"should (?:be|have been|print|return|give|still|remain|keep|preserve)\b",
    *(r"(?:not|n[o'’]t|cannot) (?:be )?(?:\w+ ){0,2}correctly", "accuracy", "precision", r"ignor(?:es|ed|ing)?\b"),
    r"(?:cannot|can['’]?t|can not|could(?: not|n['’]t)|unable to|fail(?:s|ed)? to|does(?: not|n['’]t)|not able to)"
    r" (?:be )?(?:\w+ ){0,2}(?:fuse|simplif|eliminat|fold|inline|vectori[sz]|optimi[sz]|unroll|merge|hoist|prove\b)",
    *(r"mutat", r"modif(?:ies|ied) (?:its|the) input", "in.place", r"non-?determin", "from run to run", r"flaky"),
    r"overwrit",
)
_PASSES = (
    r"(?:work|compile|support|build|lower|legali[sz]e|translate|convert|import|parse|verify|load|link|bufferi[sz]e)\b"
)
"""What a compiler does with a program, in a title that says that this does not happen."""
_ERROR = _any_of(
    *(
        r"(?<!\bno )(?<!without )(?<!\bany )errors?\b",
        r"\w+Error\b",
        r"exceptions?\b",
        r"fail(?:s|ed|ure|ing)?\b",
        r"rais(?:es|ed)\b",
        r"throws?\b",
    ),
    *("assert", rf"does ?n[o'’]t {_PASSES}", "cannot", "can't", r"can ?not", "unable"),
    *("unsupported", "unimplemented", r"not (?:supported|implemented)", "invalid", r"refuse[sd]?\b", "reject"),
    *("out of memory", r"OOM\b", "recursion depth"),
)
_NAMES_ERROR = _any_of(
    *(r"errors?\b", r"\w+Error\b", r"exceptions?\b", r"fail(?:s|ed|ure|ing)?\b", r"rais(?:es|ed)\b", r"throws?\b"),
    *(
        "assert",
        rf"does ?n[o'’]t (?!support|work){_PASSES}",
        "unsupported",
        "unimplemented",
        r"refuse[sd]?\b",
        "reject",
    ),
)
"""A title that names an error. ``can't`` may say anything."""
_RAISES = re.compile(
    r"\b(?i:raises?|throws?|fails? with|crash(?:es)? with|gives?|returns?|ends? with) (?:an? )?[`'\"]?"
    r"(?:\w+\.)?(?:[A-Z]\w+(?:Error|Exception)|[A-Z]{2,20}(?:_[A-Z]{2,20})+)\b"
)
"""A title that names the exception or the status with which a run ends."""
_SHOULD_WORK = _any_of(
    r"should (?:work|compile|lower|legali[sz]e|run|be (?:supported|legal|handled|accepted|lowered|legali[sz]ed))\b"
)
"""A title that says what should be possible: it is not. In a sentence, the words are often a remark."""
_SLOW = _any_of(
    *(r"slow(?:er|ness|down|s down|ed down)?\b(?! path)", r"(?:performance|perf|latency|speed|compile.time) regress"),
    *(r"(?:compil\w*|build|run|execution|inference) times? (?:grow|grew|increase|double|went|go(?:es)? up)",),
    r"tak(?:es?|ing) (?:too long|(?:\w+ ){0,2}\d+(?:\.\d+)? ?(?:x|times) (?:as long|longer))",
    r"\d+(?:\.\d+)? ?(?:x|times) slower",
)
_MEMORY = _any_of(
    *(r"memory leak", r"leaks? (?:\w+ )?memory", r"(?:peak|resident) (?:memory|RSS)", r"RSS\b"),
    *(r"memory (?:usage|use|consumption|footprint)", r"(?:uses|using|consumes|needs|takes|allocates) \S+ ?[MG]i?B\b"),
    r"too much memory",
)
_ACCEPTS = _any_of(
    r"(?:do(?:es)?(?: not|n['’]t)|did(?: not|n['’]t)|fail(?:s|ed)? to|never|without) (?:\w+ ){0,2}"
    r"(?:reject|refus|rais(?:e|ing)\b|throw|complain|diagnos|validat|error out"
    r"|(?:report|emit|giv|print)\w* (?:an? |any )?(?:error|exception))",
    r"no (?:error|exception|diagnostic)s?\b",
    r"(?:missing|no) (?:\w+ ){0,2}(?:errors?|validations?|checks?|checking|diagnostics?)\b",
    r"accept(?:s|ed|ing)? (?:an? )?(?:\w+ )?(?:invalid|illegal|ill-formed|malformed|wrong)",
    r"(?:invalid|illegal|ill-formed|malformed)\b[^.\n]{0,60}\b(?:is|are|was|were|gets?) (?:silently )?accepted",
    r"should (?:have )?(?:raised?|throw|reject(?:ed)?|refused?|be (?:rejected|refused|an error))\b",
)
"""A title that misses an error: what the compiler accepts runs to its end, and so shows the failure."""
_SHOULD_REFUSE = _any_of(
    r"(?:should|must|ought to|expected \w+ to) (?:\w+ ){0,2}(?:raise\b|throw\b|reject\b|refuse\b|diagnose\b"
    r"|be (?:rejected|refused|an? (?:\w+ )?error)|have (?:raised|thrown|rejected|refused|been (?:rejected|refused))"
    r"|(?:report|emit|give|produce|print) (?:an? )?(?:\w+ ){0,2}(?:error|diagnostic|exception)\b)",
    r"expect(?:ed|ing|s)?:? (?:to (?:get|see) )?(?:an? )?(?:\w+ ){0,2}(?:error|exception|diagnostic)s?\b(?! message)",
)
"""A sentence that says which end would be right: an error."""
_SHOULD_END_BADLY = re.compile(
    r"\b(?:expect(?:ed|ing|s)?|should(?: have)?|want(?:ed)?|must)\b(?:(?!\bnot?\b|n['’]t\b)[^.\n]){0,60}?"
    r"(?:\bFAILED\b|\b(?:exit(?:s|ed)?(?: with)?(?: an?)?(?: code| status)?|return (?:code|status))(?: of)?"
    r" (?:[1-9]\d{0,2}\b|non-?zero))"
)
"""A sentence that wants a tool to report a failure, or to end with another code than 0."""
_STOPS = _any_of(r"fail(?:s|ed|ure|ing)?\b", r"exit(?:s|ed)?\b", r"stops?\b", r"abort", r"killed\b")
_HANDLES_ERRORS = re.compile(r"^[ \t]*except\b|\b(?:pytest\.)?raises\(|\bassertRaises|\bcontextlib\.suppress\(", re.M)
"""Code that ends well whether an error occurs or not."""
_OUT_OF_MEMORY = _any_of("out of memory", r"OOM\b", "bad_alloc", "runs out of memory")


def _classify_claim(source: ClaimSource, signature: Signature | None, printed: bool) -> ClaimKind:
    """Return the kind of the claim. Quoted output decides before prose, the title before the body.

    ``printed`` says that the report quotes what its program prints.
    """
    quoted = "\n".join(p.text for p in list_failure_pieces(source.pieces))
    title = source.title
    if signature is not None and signature.type in NATIVE:
        return ClaimKind.CRASH
    if _HANG.search(title) and (signature is None or signature.type in ("KeyboardInterrupt",)):
        return ClaimKind.HANG
    if _MISMATCH.search(quoted) or (signature and _MISMATCH.search(signature.message)):
        return ClaimKind.WRONG_RESULT
    if signature is not None:
        return _classify_failure(source, signature, quoted)
    if _SHOULD_END_BADLY.search(_join_prose(source)):
        return ClaimKind.ACCEPTED
    if _ACCEPTS.search(title) and not _CRASH.search(title):  # it should raise an error instead of crashing
        return ClaimKind.WRONG_RESULT if _STOPS.search(_ACCEPTS.sub("", title)) else ClaimKind.ACCEPTED
    aborts = vocabulary_of(source.toolchain).failures.assertions_abort
    if aborts and re.search(r"\bassertion (?:fail|in\b)", title, re.I):
        return ClaimKind.CRASH
    if _CUT_SHORT.search(quoted) and not _has_result_check(source.code):
        return ClaimKind.ERROR  # the words "expected" and "mismatch" around it belong to the message
    if _ERROR.search(title) and _REFUSED.search(_join_prose(source)):
        return ClaimKind.ERROR  # the compiler itself calls its program wrong, before any value is computed
    if _STATIC_MISMATCH.search(title) and _RAISED.search(_join_prose(source)):
        return ClaimKind.ERROR  # two types that do not fit together are no computed values
    prose = _join_prose(source)
    stops = any(one.search(text) for one in (_CRASH, _HANG) for text in (title, prose)) or _STOPS.search(title)
    if _SHOULD_REFUSE.search(prose) and not (stops or _ERROR.search(title) or quoted.strip()):
        return ClaimKind.ACCEPTED
    if _RAISES.search(title):
        return ClaimKind.ERROR
    if printed:
        prose = _NO_FAILURE.sub(" ", _ASIDE.sub(" ", prose))  # the blocks show how the program ends
    for text, kinds in ((title, _TITLE_KINDS), (prose, _KINDS)):
        for kind, pattern in kinds:
            if pattern.search(text):
                return kind
    return ClaimKind.UNKNOWN


_NO_FAILURE = re.compile(
    r"\b(?:no|without(?: any)?|never|nor|(?:does|did|do|is|are|was)(?: not|n[o'’]t))\b"
    r"(?:[ ,/]+[\w`-]{1,40}){0,3}?[ ,/]+"
    r"(?:errors?|exceptions?|warnings?|complain\w*|crash\w*|fail\w*|throws?|rais(?:es?|ed)|thrown)\b"
    r"(?:[ ,/]+(?:or|and|nor)[ ,/]+(?:errors?|exceptions?|warnings?|crash\w*))?"
    r"(?:[ ,/]+(?:is|was|are|were|gets?)[ ,/]+(?:raised|thrown|reported|printed|given|shown))?",
    re.I,
)
"""Words that say that nothing fails: ``no warning or error is raised``."""
_ASIDE = re.compile(r"\([^()]{1,400}\)")
"""A remark in parentheses: ``(one process also died with SIGSEGV)``."""

_REFUSED = _any_of(
    r"verif(?:ier|ication)s?\b(?: then)? (?:rejects?|refuses?|fails?|complains?|errors?)\b",
    r"(?:rejected|refused) by the (?:\S+ )?(?:verifier|parser)\b",
)
_STATIC_MISMATCH = _any_of(
    r"(?:size|shape|type|dtype|rank|dimension|layout|operand|argument|attribute)s? mis-?match",
    r"mis-?match(?:ed|ing)? (?:\w+ )?(?:size|shape|type|dtype|rank|dimension|layout|operand|argument|attribute)s?\b",
)
_RAISED = _any_of(
    r"(?:rejects?|rejected|refused|refuses|fails?|failed|ends?|stops?|exits?)"
    r" with an? (?:\w+ )?(?:errors?|exceptions?)\b",
    r"(?:errors?|exceptions?) (?:is|are|was|were|gets?) (?:raised|thrown|reported|emitted)\b",
    r"(?:raises?|raised|throws?|threw|reports?|gives?|get|got) (?:an?|the following|this)"
    r" (?:\w+ )?(?:errors?|exceptions?)\b",
    r"fail(?:s|ed)? to (?:compile|build|lower|parse|verify)\b",
)
_CUT_SHORT = re.compile(
    rf"^Traceback \(most recent call last\)|{any_word(lambda words: words.failures.unnamed_patterns)}", re.M
)
"""A failure quoted without the line that names the exception."""


def _read_counts(source: ClaimSource, kind: ClaimKind, signature: Signature | None) -> tuple[str, str]:
    """Return the number of things that the report complains of, and the number that it wants; both may be empty.

    A report on wrong values or on an error may name such numbers too. There, the title decides.
    """
    tools = vocabulary_of(source.toolchain).tools
    if tools is None or tools.product is None or signature is not None or kind not in _MAY_COUNT:
        return "", ""
    about = re.search(rf"\b(?:un)?fus\w+|{tools.product.named_pattern}", source.title, re.I)
    if kind is not ClaimKind.UNKNOWN and (about is None or _VALUES.search(source.title)):
        return "", ""
    return read_counts((source.title, *(p.text for p in source.document.prose if not p.heading)), tools.product)


_MAY_COUNT = frozenset({ClaimKind.UNKNOWN, ClaimKind.WRONG_RESULT, ClaimKind.ERROR})
_VALUES = _any_of(
    r"(?:wrong|incorrect|different|numeric\w*) (?:results?|values?|outputs?|numerics)", "accuracy", "NaNs?"
)


def _name_signal(signature: Signature | None, said: str) -> Signature | None:
    """Replace a signature that only says "crash" by the signal that the prose names."""
    if signature is not None and signature.type != "crash":
        return signature
    name = next((name for name, pattern in _SIGNALS if pattern.search(said)), None)
    if name is None:
        return signature
    return msgspec.structs.replace(signature, type=name) if signature else Signature(type=name)


def _join_prose(source: ClaimSource) -> str:
    return "\n".join(p.text for p in source.document.prose)


_KINDS = (
    (ClaimKind.CRASH, _HARD_CRASH),
    (ClaimKind.HANG, _HANG),
    (ClaimKind.WRONG_RESULT, _WRONG),
    (ClaimKind.CRASH, _CRASH),
    (ClaimKind.ERROR, _ERROR),
    (ClaimKind.SLOW, _SLOW),
    (ClaimKind.MEMORY, _MEMORY),
)
"""In prose, time and memory come last: reports of all kinds mention them."""
_TITLE_KINDS = (
    *(*_KINDS[:2], (ClaimKind.SLOW, _SLOW), (ClaimKind.MEMORY, _MEMORY), *_KINDS[2:]),
    (ClaimKind.ERROR, _SHOULD_WORK),
)


def _classify_failure(source: ClaimSource, signature: Signature, quoted: str) -> ClaimKind:
    """Return `ClaimKind.ERROR`, or `ClaimKind.WRONG_RESULT` if a check in the testcase itself fails."""
    if signature.type == "KeyboardInterrupt":
        return ClaimKind.HANG
    if any(name in frame for name in ("assert_allclose", *_COMPARISONS) for frame in signature.frames):
        return ClaimKind.WRONG_RESULT
    if any(signature.message.startswith(text) and name in source.code for text, name in _COMPARISON_MESSAGES):
        return ClaimKind.WRONG_RESULT
    if signature.type in ("AssertionError", "output") and _has_result_check(source.code) and not signature.frames:
        said = f"{source.title}\n{quoted}"
        if 'File "' in quoted or _WRONG.search(said) or not signature.message:
            return ClaimKind.WRONG_RESULT
    return ClaimKind.ERROR


_COMPARISONS = join_words(lambda words: words.failures.comparisons)
_COMPARISON_MESSAGES = tuple(pair for w in list_vocabularies() for pair in w.failures.comparison_messages.items())
_CHECK = re.compile(
    r"^[ \t]*assert\b|assert_allclose|assert_array|assert_almost|assert_close|allclose\("
    rf"|{any_of(map(re.escape, _COMPARISONS))}",
    re.M,
)


def _has_result_check(code: str) -> bool:
    return bool(_CHECK.search(code))


# ---------------------------------------------------------------------------------------------- passages


def _collect_passages(source: ClaimSource) -> Iterator[Passage]:
    """Yield the passages that may name versions: the form's fields, the prose, the title, printed output."""
    prose: list[Prose] = [p for p in source.document.prose if not p.heading]
    headed = [p for p in prose if classify_heading(p.section) is IssueSection.ENVIRONMENT]
    rest = [p for p in prose if classify_heading(p.section) is not IssueSection.ENVIRONMENT]
    yield from (Passage(text=p.text, heading=p.section) for p in headed)
    blocks = [p for p in source.pieces if p.kind in (Kind.OUTPUT, Kind.SHELL, Kind.CONFIG)]
    traces = [p for p in source.pieces if p.kind is Kind.TRACEBACK]
    yield from (Passage(text=b.text, heading=b.heading) for b in blocks if b.section is IssueSection.ENVIRONMENT)
    yield from (Passage(text=p.text) for p in rest)
    yield Passage(text=source.title)
    yield from (Passage(text=p.text) for p in source.document.prose if p.heading)
    codes = (source.code, *(piece.text for piece in source.pieces if piece.kind in _CODE))
    if any("__version__" in code for code in codes):  # the program prints the version it runs on
        alone = [line for printed in (*blocks, *traces) for line in _VERSION_ALONE.findall(printed.text)[:3]]
        yield from (Passage(text=line, heading="version") for line in alone)
    for block in blocks:
        if block.section is not IssueSection.ENVIRONMENT:
            yield from (Passage(text=line) for line in block.text.split("\n")[:400] if _VERSION_LINE.search(line))
    for trace in traces:
        found = re.findall(r"(?:site|dist)-packages/\S{1,200}", trace.text[:100_000])
        yield Passage(text="\n".join(found[:50]))


_VERSION_ALONE = re.compile(r"^['\"]?(\d+\.\d+[\w.+]*)['\"]?$", re.M)
_VERSION_ROW = re.compile(r"^['\"]?(?:[A-Za-z][\w-]{0,30}[ :=]{1,3}){0,2}v?\d+\.\d+\.\d[\w.+]*['\"]?$\n?", re.M)
"""A row with the version of the build, maybe behind the name of the compiler."""


_VERSION_LINE = re.compile(any_of(("__version__", *join_words(lambda words: words.versions.line_patterns))), re.I)
