"""Classify a run: how the run ended × the reporter's claim → outcome, with a reason in words. Pure.

Only ``match`` counts as bad and only ``pass`` as good:

====================  =========================================================================================
run                   outcome
====================  =========================================================================================
not run               ``unavailable`` or ``infra``
out of memory         ``out-of-memory``; ``match`` if the report says so, or is about memory
timed out             ``timeout`` of wall clock or processor time; ``match`` if the report describes a hang or a
                      slow run
failed                ``match`` if the failure is the reported one; else ``unavailable`` (device), ``incompatible``
                      (API moved), ``pass`` (compiled, and the report fails while compiling) or ``other-failure``
ran to its end        ``match`` if the report misses an error, or if the output is the reported wrong output;
                      ``other-failure`` if a wrong result is claimed and neither testcase nor report distinguishes
                      right from wrong; else ``pass``
====================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import assert_never

import msgspec

from runners.core.failure.compare import SAME, compare_signatures, drop_condition
from runners.core.failure.exception_chain import read_chain, read_quoted_failure
from runners.core.failure.normalize import describe_type, make_readable, split_tokens
from runners.core.failure.parse import NATIVE, WRONG_OUTPUT, find_exception_before_crash, is_relay, parse_signature
from runners.core.failure.printed.output import find_other_values, read_output, read_twins
from runners.core.failure.printed.pairs import (
    compare_labelled_rows,
    compare_last_values,
    is_other_array,
    prints_array,
    prints_other_array,
)
from runners.core.failure.printed.program import compare_programs
from runners.core.failure.printed.reading import Reading
from runners.core.failure.printed.rows import judge_rows
from runners.core.findings import Moved
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    Ended,
    Exited,
    NotRun,
    Observation,
    Outcome,
    OutOfMemory,
    PrintedRow,
    Signalled,
    Signature,
    StepResult,
    TimedOut,
)
from runners.core.toolchain.failures import FailureVocabulary
from runners.core.toolchain.products import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A change of a toolchain's API that explains a failure."""

    name: str
    """The missing name."""
    successor: str | None
    """The replacement, if known."""
    why: str
    moved: Moved = Moved.UNKNOWN
    version: str = ""
    """The build that ``moved`` is about; empty for a notation that is no longer accepted."""
    added_in: str = ""
    """For a name that is too new: the build that added the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleContext:
    """Facts about the toolchain and the testcase that classify a run."""

    claim: Claim
    vocabulary: FailureVocabulary
    """The vocabulary of the toolchain that ran."""
    drift: Drift | None = None
    """The moved name that explains the failure, if any."""
    needed: Drift | None = None
    """The flag without which the build cannot read the input, if the testcase lacks one. Then a failure says nothing,
    whatever the build prints."""
    missing_device: str | None = None
    """The sentence of `find_missing_device` for this output."""
    device_trouble: str | None = None
    """The sentence of `find_device_trouble` for this output."""
    checks_itself: bool = False
    """True if the testcase contains an assertion, so that a clean end shows a correct result."""
    prints_reference: bool = False
    """True if the last two printed values are a result and a reference for that result."""
    rows: Sequence[PrintedRow] = ()
    """The printed rows that tell whether a result is right."""
    renames: Mapping[str, str] | None = None
    compilers: Collection[str] = ()
    """Programs of the toolchain that compile and do not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The outcome of a run, the reason in words, and the observed failure."""

    outcome: Outcome
    why: str
    signature: Signature | None = None

    @property
    def answer(self) -> Answer:
        return get_answer(self.outcome)


def get_answer(outcome: Outcome) -> Answer:
    """Return whether an outcome is evidence for the failure, against it, or neither."""
    match outcome:
        case Outcome.MATCH:
            return Answer.BAD
        case Outcome.PASS:
            return Answer.GOOD
        case (
            Outcome.OTHER_FAILURE
            | Outcome.COMPILED
            | Outcome.TIMEOUT
            | Outcome.OUT_OF_MEMORY
            | Outcome.INCOMPATIBLE
            | Outcome.UNAVAILABLE
            | Outcome.INFRA
        ):
            return Answer.SKIP
        case _ as never:
            assert_never(never)


def classify_run(ended: Ended, steps: Sequence[StepResult], context: OracleContext) -> Classification:
    """Classify a run. ``steps`` are the steps that ran; the last one ended the run."""
    claim = context.claim
    match ended:
        case NotRun(why=why, cause=cause):
            return Classification(outcome=Outcome.INFRA if cause == "infra" else Outcome.UNAVAILABLE, why=why)
        case OutOfMemory(limit_bytes=limit):
            claimed = claim.kind is ClaimKind.MEMORY or (
                claim.signature is not None and claim.signature.type in ("out-of-memory", "MemoryError")
            )
            return Classification(
                outcome=Outcome.MATCH if claimed else Outcome.OUT_OF_MEMORY,
                why=f"used more than {limit / 2**30:.1f} GiB of memory" + (", as reported" if claimed else ""),
                signature=Signature(type="out-of-memory"),
            )
        case TimedOut(where=where, clock=clock):
            limit_reached = "reached the time limit" if clock == "wall" else "reached the limit of processor time"
            hang = claim.kind in (ClaimKind.HANG, ClaimKind.SLOW)
            return Classification(
                outcome=Outcome.MATCH if hang else Outcome.TIMEOUT,
                why=f"{limit_reached}{f' ({where})' if where else ''}" + (", as reported" if hang else ""),
                signature=parse_signature(get_last_output(steps), context.vocabulary, ended),
            )
        case Exited(code=0):
            return _classify_completed(steps, context)
        case Exited() | Signalled():
            return _classify_failure(ended, steps, context)
        case _ as never:
            assert_never(never)


def get_last_output(steps: Sequence[StepResult]) -> str:
    """Return the output of the last step, which belongs to the end of the run."""
    return f"{steps[-1].stdout}\n{steps[-1].stderr}" if steps else ""


# ---------------------------------------------------------------------------------------------- it failed


def _classify_failure(ended: Ended, steps: Sequence[StepResult], context: OracleContext) -> Classification:
    text, claim = get_last_output(steps), context.claim
    read = parse_signature(text, context.vocabulary, ended) or Signature(
        type=f"{_STATUS}{ended.code}" if isinstance(ended, Exited) else "?"
    )
    # After a native crash, the record holds only the exception that relays the crash.
    chain = read_chain(ended, steps, context.vocabulary) if read.type not in NATIVE else ()
    seen = _choose_signature(chain, read, context.vocabulary)
    if context.needed is not None:
        return Classification(outcome=Outcome.INCOMPATIBLE, why=context.needed.why, signature=seen)
    if claim.kind is ClaimKind.ACCEPTED:
        difference = "the report does not speak of this error"
    elif claim.signature is not None and claim.signature.type != OUTPUT:
        likeness = compare_signatures(claim.signature, seen, context.vocabulary, context.renames)
        if likeness.score >= SAME:
            return Classification(outcome=Outcome.MATCH, why=f"the reported failure: {likeness.why}", signature=seen)
        if chain and (also := _find_in_record(claim.signature, steps, context)) is not None:
            return Classification(
                outcome=Outcome.MATCH, why=f"the reported failure led to {seen.type}", signature=also
            )
        ended_before = find_exception_before_crash(text, context.vocabulary) if seen.type in NATIVE else None
        if ended_before is not None and _is_same_failure(claim.signature, ended_before, context):
            return Classification(
                outcome=Outcome.MATCH, why=f"the reported failure, and then {seen.type}", signature=ended_before
            )
        if _is_printed(claim.signature, seen, text, context, recorded=bool(chain)):
            return Classification(outcome=Outcome.MATCH, why="the reported message is in the output", signature=seen)
        difference = likeness.why
    elif _is_told(claim.told, seen, text, context):
        return Classification(outcome=Outcome.MATCH, why="the report holds the words of this failure", signature=seen)
    elif context.drift is None and claim.signature is None and _is_described(claim, seen.message):
        return Classification(outcome=Outcome.MATCH, why="the report describes this failure", signature=seen)
    elif claim.kind is ClaimKind.CRASH and seen.type in NATIVE:
        return Classification(outcome=Outcome.MATCH, why=f"crashes ({seen.type}), as reported", signature=seen)
    else:
        difference = "the report quotes no failure to compare with"
    if context.device_trouble:
        return Classification(outcome=Outcome.INFRA, why=context.device_trouble, signature=seen)
    if context.missing_device:
        compiled = "compiles; " if len(steps) > 1 else ""
        if compiled and claim.signature is not None and claim.signature.type == COMPILER_DIAGNOSTIC:
            why = f"compiles, and the report fails while compiling; {context.missing_device}"
            return Classification(outcome=Outcome.PASS, why=why, signature=seen)
        return Classification(outcome=Outcome.UNAVAILABLE, why=compiled + context.missing_device, signature=seen)
    if context.drift is not None:
        return Classification(outcome=Outcome.INCOMPATIBLE, why=context.drift.why, signature=seen)
    if _gets_past_compiling(claim, steps, context.compilers):
        if _is_told(claim.told, seen, text, context):
            why = "compiles, and then ends with another failure that the report quotes"
            return Classification(outcome=Outcome.MATCH, why=why, signature=seen)
        why = f"compiles, and the report fails while compiling; then it ends with {describe_type(seen.type)}"
        return Classification(outcome=Outcome.PASS, why=why, signature=seen)
    own = seen.type in CHECKS and context.checks_itself and claim.kind is not ClaimKind.ACCEPTED
    if own and _is_told(claim.told, seen, text, context):  # a report on a missing error holds the error that it wants
        why = "the testcase's own check fails, and the report holds what it prints"
        return Classification(outcome=Outcome.MATCH, why=why, signature=seen)
    if claim.kind is ClaimKind.WRONG_RESULT and claim.actual:
        stdout = "\n".join(step.stdout for step in steps)
        reading = read_output(stdout, context.vocabulary, actual=claim.actual, expected=claim.expected)
        if reading is Reading.WRONG and _reaches_last_row(claim.actual, stdout):
            why = f"prints what the report calls wrong, and then ends with {describe_type(seen.type)}"
            return Classification(outcome=Outcome.MATCH, why=why, signature=_make_output_signature(claim))
    if claim.kind is ClaimKind.ACCEPTED and _is_refused(claim, seen, text, context):
        return Classification(outcome=Outcome.PASS, why=f"{REFUSED}{describe_type(seen.type)}", signature=seen)
    if _fails_own_check(claim, seen, steps, context):
        return Classification(
            outcome=Outcome.MATCH, why="the testcase's own check of the result fails", signature=seen
        )
    return Classification(outcome=Outcome.OTHER_FAILURE, why=f"fails, but differently: {difference}", signature=seen)


_LABEL = re.compile(r"[A-Za-z]\w+")


def _reaches_last_row(quoted: str, stdout: str) -> bool:
    """True unless the last quoted row has a label, and no printed row has this label: then the run ended before."""
    rows = [row for row in quoted.splitlines() if row.strip()]
    label = set(_LABEL.findall(rows[-1])) if rows else set()
    return any(label <= set(_LABEL.findall(row)) for row in stdout.splitlines())


COMPILER_DIAGNOSTIC = "mlir-error"
"""Signature type of a diagnostic that only a compiler prints. No device is needed to compile past the diagnostic."""
OUTPUT = "output"
"""Signature type of a claim that quotes printed output rather than a failure."""
PRINTS_EXPECTED = "prints what the report expects"
PRINTS_SIMILAR = "prints a similar program, and not the one that the report calls wrong"
"""Why a run is clean whose output has the values that the report expects."""
ASSERTION = "AssertionError"
"""Signature type of the testcase's own checks."""
CHECKS = frozenset({ASSERTION, WRONG_OUTPUT})
"""Signature types of a failed check of the result, by the testcase or by a runner."""


def _choose_signature(chain: Sequence[Signature], read: Signature, vocabulary: FailureVocabulary) -> Signature:
    """Return the failure that ended the step: from the record if record and output disagree, else from the output.

    The output has more details: native stacks and the lines above the exception. But its last traceback may be cut
    off, or belong to an exception that was caught and printed, quoted in a message, or raised at shutdown.
    """
    if not chain or is_relay(chain[0].type, vocabulary):  # a relay only says that a tool failed
        return read
    longer = read.type == chain[0].type and read.message.startswith(chain[0].message)
    if not longer and compare_signatures(chain[0], read, vocabulary).score < SAME:
        return chain[0]
    return msgspec.structs.replace(read, frames=read.frames or chain[0].frames)


def _find_in_record(reported: Signature, steps: Sequence[StepResult], context: OracleContext) -> Signature | None:
    """Return the reported failure if the record has it as a quoted failure or as a cause; None otherwise."""
    if reported.type in NATIVE:
        return None
    enough = len(split_tokens(reported.message, context.renames)) >= MIN_WORDS
    causes = read_chain(steps[-1].ended, steps, context.vocabulary)[1:] if enough else ()
    others = (
        one for one in (read_quoted_failure(steps, context.vocabulary), *causes) if one is not None and one.message
    )
    return next((one for one in others if _is_same_failure(reported, one, context)), None)


def _is_same_failure(reported: Signature, seen: Signature, context: OracleContext) -> bool:
    return compare_signatures(reported, seen, context.vocabulary, context.renames).score >= SAME


MIN_WORDS = 5
"""Words that a message needs to be recognized by its words alone."""


def _is_printed(reported: Signature, seen: Signature, text: str, context: OracleContext, *, recorded: bool) -> bool:
    """True if the output contains the reported message, although another failure ended the process.

    Observed when a driver wraps the compiler's error in an exception of its own. Short messages are too unspecific,
    and text never explains a signal. ``recorded``: a record has the exception that ended the step and its causes.
    Then the words alone are not enough, because a script may print expected or earlier messages: the line must be a
    failure by itself, such as a compiler's diagnostic or a logged exception. A compiler prints several diagnostics
    for one failure, and a report may quote the last of them alone: there a short message counts too.
    """
    wanted = split_tokens(reported.message, context.renames)
    diagnosed = reported.type == seen.type == COMPILER_DIAGNOSTIC
    if (len(wanted) < MIN_WORDS and not diagnosed) or reported.type in NATIVE or seen.type in NATIVE:
        return False
    joined = " ".join(wanted)
    if joined in " ".join(split_tokens(seen.message, context.renames)):
        return False  # this failure was just found to differ from the reported one
    lines = [line for line in text.splitlines()[-400:] if joined in " ".join(_split_line(line, context))]
    by_itself = recorded or diagnosed
    return any(_is_failure_line(reported, line, context) for line in lines) if by_itself else bool(lines)


MIN_LINE_WORDS = 8
"""Words of a line of output from which on a report that holds the line quotes this output."""


def _is_told(told: str, seen: Signature, text: str, context: OracleContext) -> bool:
    """True if the report holds the message of the failure, or a whole line that was printed with the failure.

    This is the comparison in the other direction: a report may quote a part of the output from which no signature
    can be read, such as a note below the error or the last line of a dump.
    """
    if not told:
        return False
    words = " ".join(" ".join(_split_line(line, context)) for line in told.splitlines()[:MAX_TOLD_LINES])
    message = split_tokens(seen.message, context.renames)
    if len(message) >= MIN_WORDS and " ".join(message) in words:
        return True
    sentence = split_tokens(drop_condition(seen.message), context.renames)
    if len(sentence) >= MIN_WORDS and " ".join(sentence) in words:
        return True  # people quote the sentence, and leave out the condition of the check that failed
    if _is_titled(told.split("\n", 1)[0], message, text, context):
        return True
    if context.drift is not None:
        return False  # the lines around a moved name are the testcase's own
    lines = (line for line in _drop_echoes(text.splitlines()[-400:]) if not _FRAME.match(line))
    printed = (_split_line(_LOCATION.sub("", line), context) for line in lines)
    return any(len(line) >= MIN_LINE_WORDS and " ".join(line) in words for line in printed)


MIN_SHARED = 3
"""Words and numbers that a sentence about an error shares with the message which the sentence describes."""
MIN_SHARED_WORDS = 2
_TELLS = re.compile(r"\b(?:errors?|exceptions?|fail(?:s|ed|ure)?|complain\w*|messages?)\b", re.I)
_CONTENT = re.compile(r"[A-Za-z_]{5,}|\d+")
_STEM = 5
_COMMON = frozenset({"error", "excep", "faile", "fails", "value", "inter", "check"})
"""Stems of words that many messages have: ``ValueError``, ``InternalError: Check failed``."""


def _is_described(claim: Claim, message: str) -> bool:
    """True if a sentence of a report on an error tells of it in its own words, and shares words and values with it.

    "the error says that the shapes (2, 4) and (6,) can't be broadcast": the message has "not broadcastable".
    """
    if claim.kind is not ClaimKind.ERROR:
        return False
    said = _list_stems(message[:MAX_ERROR_CHARS])
    sentences = re.split(r"[.!?](?=\s)|\n\s*\n", claim.told[:MAX_ERROR_CHARS])
    shared = (said & _list_stems(one) for one in sentences if _TELLS.search(one))
    return any(len(one) >= MIN_SHARED and sum(map(str.isalpha, one)) >= MIN_SHARED_WORDS for one in shared)


def _list_stems(text: str) -> set[str]:
    return {word[:_STEM].lower() for word in _CONTENT.findall(text)} - _COMMON


MIN_TITLE_WORDS = 3
"""Words of a whole error message in a title: "undefined symbol: f"."""


def _is_titled(title: str, message: Sequence[str], text: str, context: OracleContext) -> bool:
    """True if the title quotes the beginning of the message, or the whole of an error that was printed."""
    if context.claim.kind is ClaimKind.WRONG_RESULT:
        return False  # it speaks of values, and a name in it may stand in any message
    quotes = [part for part in re.split(r":\s|`", title) if len(part.split()) >= MIN_TITLE_WORDS]
    parts = [split_tokens(part, context.renames) for part in quotes]
    if any(len(part) >= MIN_WORDS and " ".join(part) in " ".join(message) for part in parts):
        return True
    named = f" {' '.join(split_tokens(title, context.renames))} "
    printed = [_split_line(found["error"], context) for found in _ERROR_LINE.finditer(text[-MAX_ERROR_CHARS:])]
    return any(len(one) >= MIN_TITLE_WORDS and f" {' '.join(one)} " in named for one in (*printed, list(message)))


_ERROR_LINE = re.compile(r"\berror: (?P<error>[^\n]{1,300})$", re.M | re.I)
MAX_ERROR_CHARS = 100_000


def _drop_echoes(lines: Sequence[str]) -> list[str]:
    """Return the lines of an output without those of the input that a diagnostic repeats above its caret."""
    return [line for line, below in zip(lines, (*lines[1:], ""), strict=True) if not _CARET.fullmatch(below)]


_CARET = re.compile(r"\s*[~^][~^\s]*")
"""The row below the line that a diagnostic is about. The line is the testcase's own, whatever is wrong with it."""
MAX_TOLD_LINES = 200
_LOCATION = re.compile(r"^\S{1,300}:\d+:\d+: ")
"""The place of a diagnostic: the reporter's file may have another name."""
_FRAME = re.compile(r"\s*File \"|\s*\d+: |\s*#\d+ ")
"""A line of a stack, which other failures share."""


def _split_line(line: str, context: OracleContext) -> list[str]:
    return split_tokens(make_readable(line, context.vocabulary), context.renames)


def _is_failure_line(reported: Signature, line: str, context: OracleContext) -> bool:
    alone = parse_signature(line, context.vocabulary)
    return alone is not None and _is_same_failure(reported, alone, context)


ACCEPTED = "runs to its end without an error, as reported"
"""Why a run shows the failure of a report that misses an error."""
REFUSED = "refuses it, as the report expects: "
"""The beginning of the reason for a run that ends with the error that a report misses."""
MIN_SHARED = 2
"""Words of an error that a report which misses an error must have too. Other errors of old builds share fewer."""


def _is_refused(claim: Claim, seen: Signature, text: str, context: OracleContext) -> bool:
    """True if a run ends with the error that the report misses: a diagnosis in words that the report has too."""
    if seen.type in NATIVE or not seen.message:
        return False
    if _is_told(claim.told, seen, text, context):
        return True
    told = {word.lower() for word in _WORD.findall(claim.told)}
    return len({word.lower() for word in _WORD.findall(seen.message)} & told - _COMMON_WORDS) >= MIN_SHARED


_WORD = re.compile(r"[A-Za-z]{4,40}")
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "check does error errors expect expected failed fails from have input inputs invalid must output should"
        " tensor that this type value values with",
    )
)
"""Words of errors of any kind."""


def _gets_past_compiling(claim: Claim, steps: Sequence[StepResult], compilers: Collection[str]) -> bool:
    """True if the report quotes a diagnostic, and all calls of the compiler ended well: a later program failed."""
    if claim.signature is None or claim.signature.type != COMPILER_DIAGNOSTIC:
        return False
    compiled = any(step.argv and step.argv[0] in compilers for step in steps[:-1])
    return compiled and bool(steps[-1].argv) and steps[-1].argv[0] not in compilers


def _fails_own_check(claim: Claim, seen: Signature, steps: Sequence[StepResult], context: OracleContext) -> bool:
    """True if a report of wrong values quotes no failed check, and the testcase's own check fails.

    The check asserts, compares with a file, or ends a script by its result: ``sys.exit(0 if close else 1)``. A tool
    that only ends with a status failed otherwise.
    """
    if claim.kind is not ClaimKind.WRONG_RESULT:
        return False
    script = context.checks_itself and bool(steps) and steps[-1].argv[:1] == ("python",)
    told = script and seen.type.startswith(_STATUS) and seen.type != _REFUSED_CALL
    return (told or seen.type in CHECKS) and (claim.signature is None or claim.signature.type == OUTPUT)


_STATUS = "exit code "
"""Signature type of a program that ends by itself with a status and without an exception."""
_REFUSED_CALL = f"{_STATUS}2"
"""The status of a program that refuses its arguments (``argparse``)."""


# ---------------------------------------------------------------------------------------------- it ended well


def _classify_completed(steps: Sequence[StepResult], context: OracleContext) -> Classification:
    claim = context.claim
    stdout = "\n".join(step.stdout for step in steps)
    everything = stdout + "\n" + "\n".join(step.stderr for step in steps)
    if claim.signature is not None and claim.signature.type != OUTPUT:
        # A driver caught and printed the failure, or a child process failed.
        swallowed = parse_signature(everything, context.vocabulary)
        if swallowed is not None and _is_same_failure(claim.signature, swallowed, context):
            return Classification(
                outcome=Outcome.MATCH, why="prints the reported failure, though it exits with 0", signature=swallowed
            )
    if context.checks_itself and claim.signature is not None and claim.signature.type in CHECKS:
        # The quoted output may occur in good and bad runs alike, so the check decides.
        return Classification(outcome=Outcome.PASS, why="runs to its end, and the check that failed holds")
    match claim.kind:
        case ClaimKind.WRONG_RESULT if twins := read_twins(claim, steps, context.vocabulary, context.compilers):
            return _classify_twins(claim, twins)
        case ClaimKind.WRONG_RESULT | ClaimKind.UNKNOWN:
            return _classify_result(stdout, everything, context)
        case ClaimKind.ACCEPTED:
            return Classification(outcome=Outcome.MATCH, why=ACCEPTED)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG if prints_other_array(stdout, claim.expected):
            why = "runs to its end without the reported failure, and prints other values than the report expects"
            return Classification(outcome=Outcome.OTHER_FAILURE, why=why)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG:
            return Classification(outcome=Outcome.PASS, why="runs to its end without the reported failure")
        case ClaimKind.COUNT:
            return _classify_count(steps, context)
        case ClaimKind.SLOW | ClaimKind.MEMORY:
            return Classification(outcome=Outcome.PASS, why="runs to its end; what it takes is compared by release")
        case _ as never:
            assert_never(never)


def _classify_result(stdout: str, everything: str, context: OracleContext) -> Classification:
    claim = context.claim
    own = judge_rows(stdout, claim.actual, context.rows, quoted=True) if context.rows else Reading.UNKNOWN
    if (told := _classify_comparison(own)) is not None:
        return told  # most rows of a report may be right: the rows that the program calls wrong decide
    # Quoted output that holds the reference too has lines that occur in good and bad runs.
    paired = context.prints_reference and compare_last_values(claim.actual) is Reading.WRONG
    if paired and (told := _classify_pair(stdout)) is not None:
        return told
    reading = compare_programs(stdout, actual=claim.actual, expected=claim.expected)
    if reading is None:
        reading = read_output(everything, context.vocabulary, actual=claim.actual, expected=claim.expected)
        if reading is Reading.WRONG and not claim.expected and is_other_array(stdout, claim.actual):
            reading = Reading.UNKNOWN
        if reading is Reading.UNKNOWN and prints_array(stdout, claim.expected):
            reading = Reading.UNKNOWN if prints_array(claim.actual, claim.expected) else Reading.RIGHT
    match reading:
        case Reading.WRONG:
            return Classification(
                outcome=Outcome.MATCH,
                why="prints what the report calls wrong",
                signature=_make_output_signature(claim),
            )
        case Reading.RIGHT:
            return Classification(outcome=Outcome.PASS, why=PRINTS_EXPECTED)
        case Reading.CHANGED:
            return Classification(outcome=Outcome.PASS, why="no longer prints what the report calls wrong")
        case Reading.SIMILAR:
            return Classification(outcome=Outcome.PASS, why=PRINTS_SIMILAR)
        case Reading.UNKNOWN if context.checks_itself and not _quotes_last_row(claim.actual, stdout):
            return Classification(outcome=Outcome.PASS, why="runs to its end, and its own checks hold")
        case Reading.UNKNOWN if context.rows and (
            told := _classify_comparison(judge_rows(stdout, claim.actual, context.rows))
        ):
            return told
        case Reading.UNKNOWN if context.prints_reference and (told := _classify_pair(stdout)) is not None:
            return told
        case Reading.UNKNOWN if (told := _classify_rows(stdout, claim.actual)) is not None:
            return told
        case Reading.UNKNOWN if claim.kind is ClaimKind.UNKNOWN:
            return Classification(
                outcome=Outcome.PASS, why="runs to its end; the report names no failure to look for"
            )
        case Reading.UNKNOWN if not claim.expected and (
            other := find_other_values(everything, context.vocabulary, actual=claim.actual)
        ):
            return Classification(
                outcome=Outcome.OTHER_FAILURE,
                why="runs to its end and prints other values than the report quotes",
                signature=Signature(type=OUTPUT, message=other),
            )
        case Reading.UNKNOWN:
            return Classification(
                outcome=Outcome.OTHER_FAILURE,
                why="runs to its end, but neither testcase nor report shows whether the output is right",
            )
        case _ as never:
            assert_never(never)


def _quotes_last_row(actual: str, stdout: str) -> bool:
    """True if the last printed row is quoted as wrong: the report may be about a check that holds and should not."""
    rows = [row.strip() for row in stdout.splitlines() if row.strip()]
    return bool(rows) and len(rows[-1].split()) >= MIN_WORDS and rows[-1] in map(str.strip, actual.splitlines())


def is_about_values(seen: Observation) -> bool:
    """True for a run in which a value may be wrong: it prints or compares values. Other failures have none."""
    if seen.signature is None:
        return seen.ended == Exited(code=0)
    return seen.signature.type in (ASSERTION, OUTPUT)


PRINTS_OTHER_REFERENCE = "prints another result than its own reference"
"""Why a run fails that prints its result beside a reference."""


def _classify_pair(stdout: str) -> Classification | None:
    """Return the outcome of a run that prints its result beside a reference; None if the two do not decide."""
    return _classify_comparison(compare_last_values(stdout))


def _classify_rows(stdout: str, actual: str) -> Classification | None:
    """Return the outcome of a run that labels results and references in its rows; None if these do not decide."""
    return _classify_comparison(compare_labelled_rows(stdout, actual))


def _classify_comparison(reading: Reading) -> Classification | None:
    match reading:
        case Reading.WRONG:
            signature = Signature(type=OUTPUT, message=PRINTS_OTHER_REFERENCE)
            return Classification(outcome=Outcome.MATCH, why=PRINTS_OTHER_REFERENCE, signature=signature)
        case Reading.RIGHT:
            return Classification(outcome=Outcome.PASS, why="prints the same result as its own reference")
        case Reading.CHANGED | Reading.SIMILAR | Reading.UNKNOWN:
            return None


TWINS_DIFFER = "its runs print different results, as reported"
"""Why a testcase fails that runs one program in several ways."""


def _classify_twins(claim: Claim, results: Sequence[str]) -> Classification:
    """Return the outcome of runs of one program that differ in the report, by their different results."""
    if len(results) == 1:
        return Classification(outcome=Outcome.PASS, why="its runs print the same, unlike in the report")
    lines = zip_longest(*(one.splitlines() for one in results), fillvalue="")
    differing = next((line for line in lines if len(set(line)) > 1), ())
    signature = Signature(type=OUTPUT, message=" and ".join(differing)[:200])
    return Classification(
        outcome=Outcome.MATCH,
        why=TWINS_DIFFER,
        signature=_make_output_signature(claim) if claim.actual else signature,
    )


COUNTED = "compiles to "
"""The beginning of the reason for a run in which things were counted."""


def _classify_count(steps: Sequence[StepResult], context: OracleContext) -> Classification:
    """Compare the number of things in the printed program with the numbers of the report.

    A number further away than the reported one is no better. Any other number is no answer: the report may count
    with other flags, or another program.
    """
    claim = context.claim
    product = next((one for one in context.vocabulary.products if _reads(one, claim)), None)
    printed = steps[-1].stdout if steps and not steps[-1].truncated else ""
    if product is None or not printed.strip():
        why = "compiles; nothing shows how many things the compiler makes"
        return Classification(outcome=Outcome.OTHER_FAILURE, why=why)
    made = len(product.made.findall(printed))
    actual, expected = product.read(claim.actual), product.read(claim.expected)
    shown = product.describe(made)
    signature = Signature(type=OUTPUT, message=shown)
    if actual is None:
        wrong = expected is not None and made > expected
    elif expected is None:
        wrong = made == actual
    else:
        wrong = made >= actual if actual > expected else made <= actual
    if wrong:
        return Classification(outcome=Outcome.MATCH, why=f"{COUNTED}{shown}, as reported", signature=signature)
    if made == expected:
        return Classification(outcome=Outcome.PASS, why=f"{COUNTED}{shown}, as the report expects")
    why = f"{COUNTED}{shown}, which the report does not speak of"
    return Classification(outcome=Outcome.OTHER_FAILURE, why=why, signature=signature)


def _reads(product: Product, claim: Claim) -> bool:
    return product.read(claim.actual) is not None or product.read(claim.expected) is not None


def _make_output_signature(claim: Claim) -> Signature:
    """Return the observed output as a signature: the claimed line, else the first line of the claimed output."""
    if claim.signature is not None and claim.signature.type == OUTPUT and claim.signature.message:
        return claim.signature
    return Signature(type=OUTPUT, message=next((s for s in map(str.strip, claim.actual.splitlines()) if s), "")[:200])
