"""Classify a run that failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from runners.core.failure.compare import SAME, compare_signatures, is_left_out_assertion
from runners.core.failure.exception_chain import read_chain, read_quoted_failure
from runners.core.failure.normalize import describe_type, split_tokens
from runners.core.failure.oracle.outcome import (
    CHECKS,
    COMPILER_DIAGNOSTIC,
    OUTPUT,
    READ_BACK,
    Classification,
    OracleContext,
    get_last_output,
    make_output_signature,
)
from runners.core.failure.oracle.told import MIN_WORDS, is_described, is_same_failure, is_told, split_line
from runners.core.failure.parse import NATIVE, find_exception_before_crash, is_relay, parse_signature
from runners.core.failure.printed.lines.compare import read_output
from runners.core.failure.printed.reading import Reading
from runners.core.protocol import ANY_ERROR, Claim, ClaimKind, Ended, Exited, Outcome, Reason, Signature, StepResult
from runners.core.toolchain.failures import FailureVocabulary

STATUS = "exit code "
"""Signature type of a program that ends with a nonzero status and without an exception."""
_REFUSED_CALL = f"{STATUS}2"
"""The status with which a program refuses its arguments (``argparse``)."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that failed, and the report to compare it with."""

    steps: Sequence[StepResult]
    context: OracleContext
    chain: Sequence[Signature]
    """The exception that ended the last step, and its causes. Empty after a native crash."""
    seen: Signature

    @property
    def claim(self) -> Claim:
        return self.context.claim

    @property
    def reported(self) -> Signature | None:
        """The failure that the report quotes. None if it quotes none, or is about a missing error."""
        quoted = self.claim.signature
        return None if self.claim.kind is ClaimKind.ACCEPTED or quoted is None or quoted.type == OUTPUT else quoted

    @cached_property
    def text(self) -> str:
        return get_last_output(self.steps)

    @cached_property
    def is_told(self) -> bool:
        """True if the report contains the message of this failure."""
        return is_told(self.claim.told, self.seen, self.text, self.context)

    def conclude(
        self, outcome: Outcome, reason: Reason, why: str, signature: Signature | None = None
    ) -> Classification:
        return Classification(outcome=outcome, reason=reason, why=why, signature=signature or self.seen)


def classify_failed(ended: Ended, steps: Sequence[StepResult], context: OracleContext) -> Classification:
    """Return the answer of the first question that has one. Without an answer, the run fails differently."""
    failure = _read_failure(ended, steps, context)
    answers = (ask(failure) for ask in _QUESTIONS)
    answer = next((one for one in answers if one is not None), None)
    if answer is not None:
        return answer
    why = f"fails, but differently: {_describe_difference(failure)}"
    return failure.conclude(Outcome.OTHER_FAILURE, Reason.FAILS_DIFFERENTLY, why)


def _read_failure(ended: Ended, steps: Sequence[StepResult], context: OracleContext) -> Failure:
    status = f"{STATUS}{ended.code}" if isinstance(ended, Exited) else "?"
    read = parse_signature(get_last_output(steps), context.vocabulary, ended) or Signature(type=status)
    # After a native crash, the record contains only the exception that relays the crash.
    chain = read_chain(ended, steps, context.vocabulary) if read.type not in NATIVE else ()
    seen = _choose_signature(chain, read, context.vocabulary)
    return Failure(steps=steps, context=context, chain=chain, seen=seen)


# ---------------------------------------------------------------------------------------------- questions


def _lacks_needed_flag(failure: Failure) -> Classification | None:
    needed = failure.context.needed
    return None if needed is None else failure.conclude(Outcome.INCOMPATIBLE, Reason.NEEDS_FLAG, needed.why)


def _fails_as_quoted(failure: Failure) -> Classification | None:
    reported, seen, context = failure.reported, failure.seen, failure.context
    if reported is None:
        return None
    likeness = compare_signatures(reported, seen, context.vocabulary, context.renames)
    if likeness.score >= SAME:
        return failure.conclude(Outcome.MATCH, Reason.AS_QUOTED, f"the reported failure: {likeness.why}")
    if failure.chain and (also := _find_in_record(reported, failure.steps, context)) is not None:
        return failure.conclude(Outcome.MATCH, Reason.AS_QUOTED, f"the reported failure led to {seen.type}", also)
    before = find_exception_before_crash(failure.text, context.vocabulary) if seen.type in NATIVE else None
    if before is not None and is_same_failure(reported, before, context):
        return failure.conclude(
            Outcome.MATCH, Reason.AS_QUOTED, f"the reported failure, and then {seen.type}", before
        )
    if _is_printed(reported, seen, failure.text, context, recorded=bool(failure.chain)):
        return failure.conclude(Outcome.MATCH, Reason.AS_QUOTED, "the reported message is in the output")
    return None


def _prints_invalid_program(failure: Failure) -> Classification | None:
    """Answer if the compiler rejects the program that it printed, with an error that the report quotes.

    A build with assertions stops before it prints. Then the error is above the assertion.
    """
    reported, steps, context = failure.reported, failure.steps, failure.context
    asserted = reported is not None and is_left_out_assertion(reported, context.vocabulary)
    if not asserted or READ_BACK not in steps[-1].argv[1:] or failure.seen.type != COMPILER_DIAGNOSTIC:
        return None
    quoted = (row.partition("error: ")[2] for row in failure.claim.told.splitlines())
    if split_tokens(failure.seen.message) not in [split_tokens(one) for one in quoted if one]:
        return None
    why = "prints a program that it refuses, with the error that the report quotes"
    return failure.conclude(Outcome.MATCH, Reason.AS_TOLD, why)


def _fails_as_told(failure: Failure) -> Classification | None:
    """Compare the failure with the sentences of a report that quotes no failure.

    The message about a missing device shares words with most reports on this device.
    """
    claim, seen = failure.claim, failure.seen
    if failure.reported is not None or claim.kind is ClaimKind.ACCEPTED:
        return None
    crashes = claim.kind is ClaimKind.CRASH and seen.type in NATIVE
    if failure.context.missing_device and not crashes:
        return None
    if failure.is_told:
        return failure.conclude(Outcome.MATCH, Reason.AS_TOLD, "the report holds the words of this failure")
    if failure.context.drift is None and claim.signature is None and is_described(claim, seen.message):
        return failure.conclude(Outcome.MATCH, Reason.AS_TOLD, "the report describes this failure")
    if crashes:
        return failure.conclude(Outcome.MATCH, Reason.AS_TOLD, f"crashes ({seen.type}), as reported")
    return None


def _lacks_device(failure: Failure) -> Classification | None:
    context, quoted = failure.context, failure.claim.signature
    if context.device_trouble:
        return failure.conclude(Outcome.INFRA, Reason.DEVICE_FAULT, context.device_trouble)
    if not context.missing_device:
        part = context.missing_part
        return None if part is None else failure.conclude(Outcome.UNAVAILABLE, Reason.LACKS_PART, part)
    compiled = len(failure.steps) > 1
    if compiled and quoted is not None and quoted.type == COMPILER_DIAGNOSTIC:
        why = f"compiles, and the report fails while compiling; {context.missing_device}"
        return failure.conclude(Outcome.PASS, Reason.PAST_COMPILING, why)
    if compiled:
        why = f"compiles; {context.missing_device}"
        return failure.conclude(Outcome.UNAVAILABLE, Reason.COMPILES_WITHOUT_DEVICE, why)
    return failure.conclude(Outcome.UNAVAILABLE, Reason.NO_DEVICE, context.missing_device)


def _meets_moved_name(failure: Failure) -> Classification | None:
    drift = failure.context.drift
    return None if drift is None else failure.conclude(Outcome.INCOMPATIBLE, Reason.API_MOVED, drift.why)


def _gets_past_compiling(failure: Failure) -> Classification | None:
    """Answer if the report quotes a diagnostic, but all compiler calls succeeded. Then a later program failed."""
    quoted, steps, compilers = failure.claim.signature, failure.steps, failure.context.compilers
    if quoted is None or quoted.type != COMPILER_DIAGNOSTIC:
        return None
    compiled = any(step.argv and step.argv[0] in compilers for step in steps[:-1])
    if not compiled or not steps[-1].argv or steps[-1].argv[0] in compilers:
        return None
    if failure.is_told:
        why = "compiles, and then ends with another failure that the report quotes"
        return failure.conclude(Outcome.MATCH, Reason.AS_TOLD, why)
    why = f"compiles, and the report fails while compiling; then it ends with {describe_type(failure.seen.type)}"
    return failure.conclude(Outcome.PASS, Reason.PAST_COMPILING, why)


def _prints_told_check(failure: Failure) -> Classification | None:
    """Answer for a failed check of the testcase. A report on a missing error contains the error that it expects."""
    own = failure.seen.type in CHECKS and failure.context.checks_itself
    if not own or failure.claim.kind is ClaimKind.ACCEPTED or not failure.is_told:
        return None
    why = "the testcase's own check fails, and the report holds what it prints"
    return failure.conclude(Outcome.MATCH, Reason.CHECK_FAILS, why)


def _prints_quoted_values(failure: Failure) -> Classification | None:
    claim = failure.claim
    if claim.kind is not ClaimKind.WRONG_RESULT or not claim.actual:
        return None
    stdout = "\n".join(step.stdout for step in failure.steps)
    reading = read_output(stdout, failure.context.vocabulary, actual=claim.actual, expected=claim.expected)
    if reading is not Reading.WRONG or not _reaches_last_row(claim.actual, stdout):
        return None
    why = f"prints what the report calls wrong, and then ends with {describe_type(failure.seen.type)}"
    return failure.conclude(Outcome.MATCH, Reason.PRINTS_WRONG, why, make_output_signature(claim))


def _ends_as_wished(failure: Failure) -> Classification | None:
    """Answer if the run ends with an error that the report asks for, in place of no error or of a crash."""
    claim = failure.claim
    asks = claim.kind is ClaimKind.ACCEPTED or (claim.kind is ClaimKind.CRASH and ANY_ERROR in claim.wished)
    if not asks or not _is_missed_error(failure):
        return None
    why = f"refuses it, as the report expects: {describe_type(failure.seen.type)}"
    return failure.conclude(Outcome.PASS, Reason.REFUSED, why)


def _fails_own_check(failure: Failure) -> Classification | None:
    """Answer if a report on wrong values quotes no failed check, and the testcase's own check fails.

    The check asserts, compares with a file, or ends a script by its result: ``sys.exit(0 if close else 1)``. A tool
    that only returns a status failed for another reason.
    """
    if failure.claim.kind is not ClaimKind.WRONG_RESULT or failure.reported is not None:
        return None
    steps, kind = failure.steps, failure.seen.type
    script = failure.context.checks_itself and bool(steps) and steps[-1].argv[:1] == ("python",)
    by_status = script and kind.startswith(STATUS) and kind != _REFUSED_CALL
    if not by_status and kind not in CHECKS:
        return None
    return failure.conclude(Outcome.MATCH, Reason.CHECK_FAILS, "the testcase's own check of the result fails")


_QUESTIONS = (
    _lacks_needed_flag,
    _fails_as_quoted,
    _prints_invalid_program,
    _fails_as_told,
    _lacks_device,
    _meets_moved_name,
    _gets_past_compiling,
    _prints_told_check,
    _prints_quoted_values,
    _ends_as_wished,
    _fails_own_check,
)
"""In order: the reported failure is a better explanation than a missing device or a moved name."""


def _describe_difference(failure: Failure) -> str:
    if failure.claim.kind is ClaimKind.ACCEPTED:
        return "the report does not speak of this error"
    if failure.reported is None:
        return "the report quotes no failure to compare with"
    context = failure.context
    return compare_signatures(failure.reported, failure.seen, context.vocabulary, context.renames).why


# ---------------------------------------------------------------------------------------------- comparisons


_LABEL = re.compile(r"[A-Za-z]\w+")


def _reaches_last_row(quoted: str, stdout: str) -> bool:
    """True unless the last quoted row has a label that no printed row has. Then the run ended before that row."""
    rows = [row for row in quoted.splitlines() if row.strip()]
    label = set(_LABEL.findall(rows[-1])) if rows else set()
    return any(label <= set(_LABEL.findall(row)) for row in stdout.splitlines())


def _choose_signature(chain: Sequence[Signature], read: Signature, vocabulary: FailureVocabulary) -> Signature:
    """Return the failure that ended the step: from the record if record and output disagree, else from the output.

    The output contains more details: native stacks and the lines above the exception. But its last traceback may be
    truncated. It may also belong to an exception that was caught, quoted, or raised at shutdown.
    """
    if not chain or is_relay(chain[0].type, vocabulary):  # a relay only states that a tool failed
        return read
    longer = read.type == chain[0].type and read.message.startswith(chain[0].message)
    if not longer and compare_signatures(chain[0], read, vocabulary).score < SAME:
        return chain[0]
    return msgspec.structs.replace(read, frames=read.frames or chain[0].frames)


def _find_in_record(reported: Signature, steps: Sequence[StepResult], context: OracleContext) -> Signature | None:
    """Return the reported failure if the record contains it as a quoted failure or as a cause. None otherwise."""
    if reported.type in NATIVE:
        return None
    enough = len(split_tokens(reported.message, context.renames)) >= MIN_WORDS
    causes = read_chain(steps[-1].ended, steps, context.vocabulary)[1:] if enough else ()
    others = (
        one for one in (read_quoted_failure(steps, context.vocabulary), *causes) if one is not None and one.message
    )
    return next((one for one in others if is_same_failure(reported, one, context)), None)


def _is_printed(reported: Signature, seen: Signature, text: str, context: OracleContext, *, recorded: bool) -> bool:
    """True if the output contains the reported message, although another failure ended the process.

    A driver may wrap the compiler's error in its own exception. Short messages are too unspecific, and text never
    explains a signal. ``recorded``: a record contains the exception that ended the step, and its causes. Then the
    message must be in a line that is a failure by itself, such as a diagnostic or a logged exception, because a
    script may print expected or earlier messages. A compiler prints several diagnostics for one failure, and a report
    may quote only the last of them. So a short diagnostic counts too.
    """
    wanted = split_tokens(reported.message, context.renames)
    diagnosed = reported.type == seen.type == COMPILER_DIAGNOSTIC
    if (len(wanted) < MIN_WORDS and not diagnosed) or reported.type in NATIVE or seen.type in NATIVE:
        return False
    joined = " ".join(wanted)
    if joined in " ".join(split_tokens(seen.message, context.renames)):
        return False  # this failure differs from the reported one, as compared above
    lines = [line for line in text.splitlines()[-400:] if joined in " ".join(split_line(line, context))]
    by_itself = recorded or diagnosed
    return any(_is_failure_line(reported, line, context) for line in lines) if by_itself else bool(lines)


def _is_failure_line(reported: Signature, line: str, context: OracleContext) -> bool:
    alone = parse_signature(line, context.vocabulary)
    return alone is not None and is_same_failure(reported, alone, context)


MIN_SHARED = 2
"""Minimum number of words shared by an error and the report of its absence. Other errors share fewer."""


def _is_missed_error(failure: Failure) -> bool:
    """True if a run ends with the error whose absence is reported. It must share words with the report."""
    if failure.seen.type in NATIVE or not failure.seen.message:
        return False
    if failure.is_told:
        return True
    told = {word.lower() for word in _WORD.findall(failure.claim.told)}
    seen = {word.lower() for word in _WORD.findall(failure.seen.message)}
    return len(seen & told - _COMMON_WORDS) >= MIN_SHARED


_WORD = re.compile(r"[A-Za-z]{4,40}")
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "check does error errors expect expected failed fails from have input inputs invalid must output should"
        " tensor that this type value values with",
    )
)
"""Words that occur in errors of any kind."""
