"""Classify a run that ended with exit code 0."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import assert_never

from runners.core.failure.exception_chain import iterate_caught
from runners.core.failure.normalize import split_tokens
from runners.core.failure.oracle.outcome import CHECKS, OUTPUT, Classification, OracleContext, make_output_signature
from runners.core.failure.oracle.told import MIN_WORDS, is_same_failure, split_line
from runners.core.failure.parse import parse_signature
from runners.core.failure.printed.lines.compare import read_output
from runners.core.failure.printed.lines.other_values import find_other_values
from runners.core.failure.printed.pairs import (
    compare_labelled_rows,
    compare_last_values,
    is_other_array,
    prints_array,
    prints_other_array,
)
from runners.core.failure.printed.program import compare_programs, find_kept_operation, find_other_operation
from runners.core.failure.printed.quoted_code import prints_code, read_attribute
from runners.core.failure.printed.reading import Reading
from runners.core.failure.printed.rows import judge_rows
from runners.core.failure.printed.twin_runs import read_twins
from runners.core.protocol import Claim, ClaimKind, Outcome, Reason, Signature, StepResult
from runners.core.toolchain.products import Product


def classify_completed(steps: Sequence[StepResult], context: OracleContext) -> Classification:
    claim = context.claim
    stdout = "\n".join(step.stdout for step in steps)
    everything = stdout + "\n" + "\n".join(step.stderr for step in steps)
    if claim.signature is not None and claim.signature.type != OUTPUT:
        # A driver caught and printed the failure, or a child process failed.
        swallowed = parse_signature(everything, context.vocabulary)
        if swallowed is not None and is_same_failure(claim.signature, swallowed, context):
            return Classification(
                outcome=Outcome.MATCH,
                reason=Reason.AS_QUOTED,
                why="prints the reported failure, though it exits with 0",
                signature=swallowed,
            )
        if (caught := _classify_caught(everything, context)) is not None:
            return caught
    if context.checks_itself and claim.signature is not None and claim.signature.type in CHECKS:
        # The quoted output may occur in good and bad runs alike, so the check decides.
        why = "runs to its end, and the check that failed holds"
        return Classification(outcome=Outcome.PASS, reason=Reason.CHECK_HOLDS, why=why)
    match claim.kind:
        case ClaimKind.WRONG_RESULT if twins := read_twins(claim, steps, context.vocabulary, context.compilers):
            return _classify_twins(claim, twins)
        case ClaimKind.WRONG_RESULT | ClaimKind.UNKNOWN:
            return _classify_result(stdout, everything, context)
        case ClaimKind.ACCEPTED:
            why = "runs to its end without an error, as reported"
            return Classification(outcome=Outcome.MATCH, reason=Reason.ACCEPTED, why=why)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG if prints_other_array(stdout, claim.expected):
            why = "runs to its end without the reported failure, and prints other values than the report expects"
            return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.PRINTS_UNKNOWN, why=why)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG:
            why = "runs to its end without the reported failure"
            return Classification(outcome=Outcome.PASS, reason=Reason.ENDS_WELL, why=why)
        case ClaimKind.COUNT:
            return _classify_count(steps, context)
        case ClaimKind.SLOW | ClaimKind.MEMORY:
            why = "runs to its end; what it takes is compared by release"
            return Classification(outcome=Outcome.PASS, reason=Reason.ENDS_WELL, why=why)
        case _ as never:
            assert_never(never)


def _classify_caught(printed: str, context: OracleContext) -> Classification | None:
    """Return the outcome of a run that caught an exception other than the reported one. None if it caught none.

    The report is about an error, and its testcase prints errors and ends with exit code 0. So this exit code does not
    show a clean run.
    """
    if context.drift is not None and context.caught:
        return Classification(outcome=Outcome.INCOMPATIBLE, reason=Reason.API_MOVED, why=context.drift.why)
    told = split_tokens(context.claim.signature.message, context.renames) if context.claim.signature else ()
    rows = printed.splitlines()[:MAX_ROWS] if context.caught and len(told) >= MIN_WORDS else ()
    if any(" ".join(told) in " ".join(split_line(row, context)) for row in rows):
        why = "prints the reported failure, which it caught"
        return Classification(
            outcome=Outcome.MATCH, reason=Reason.AS_QUOTED, why=why, signature=context.claim.signature
        )
    message = next(iterate_caught(printed, context.caught), None)
    if message is None:
        return None
    signature = parse_signature(message, context.vocabulary) or Signature(type=CAUGHT, message=message[:500])
    why = "catches another failure than the reported one, and ends well"
    return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.CATCHES_ANOTHER, why=why, signature=signature)


MAX_ROWS = 400
CAUGHT = "caught exception"
"""Signature type of an exception whose class the testcase does not print."""


def _classify_result(stdout: str, everything: str, context: OracleContext) -> Classification:
    claim = context.claim
    own = judge_rows(stdout, claim.actual, context.rows, quoted=True) if context.rows else Reading.UNKNOWN
    if (told := _classify_comparison(own)) is not None:
        return told  # most rows of a report may be correct, so the rows that the program calls wrong decide
    # Quoted output that includes the reference has lines that occur in good and bad runs.
    paired = context.prints_reference and compare_last_values(claim.actual) is Reading.WRONG
    if paired and (told := _classify_pair(stdout)) is not None:
        return told
    if not claim.expected and (attribute := read_attribute(stdout, actual=claim.actual)) is not None:
        return _classify_attribute(claim, *attribute)
    reading = compare_programs(stdout, actual=claim.actual, expected=claim.expected)
    if reading is None:
        reading = read_output(everything, context.vocabulary, actual=claim.actual, expected=claim.expected)
        if reading is Reading.WRONG and not claim.expected and is_other_array(stdout, claim.actual):
            reading = Reading.UNKNOWN
        if reading is Reading.UNKNOWN and prints_array(stdout, claim.expected):
            reading = Reading.UNKNOWN if prints_array(claim.actual, claim.expected) else Reading.RIGHT
        if reading is Reading.UNKNOWN and prints_code(stdout, expected=claim.expected, actual=claim.actual):
            reading = Reading.RIGHT
    match reading:
        case Reading.WRONG:
            return Classification(
                outcome=Outcome.MATCH,
                reason=Reason.PRINTS_WRONG,
                why="prints what the report calls wrong",
                signature=make_output_signature(claim),
            )
        case Reading.RIGHT:
            why = "prints what the report expects"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_EXPECTED, why=why)
        case Reading.CHANGED:
            why = "no longer prints what the report calls wrong"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_CHANGED, why=why)
        case Reading.SIMILAR:
            why = "prints a similar program, and not the one that the report calls wrong"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_SIMILAR, why=why)
        case Reading.UNKNOWN if context.checks_itself and not _quotes_last_row(claim.actual, stdout):
            why = "runs to its end, and its own checks hold"
            return Classification(outcome=Outcome.PASS, reason=Reason.CHECK_HOLDS, why=why)
        case Reading.UNKNOWN if context.rows and (
            told := _classify_comparison(judge_rows(stdout, claim.actual, context.rows))
        ):
            return told
        case Reading.UNKNOWN if context.prints_reference and (told := _classify_pair(stdout)) is not None:
            return told
        case Reading.UNKNOWN if (told := _classify_rows(stdout, claim.actual)) is not None:
            return told
        case Reading.UNKNOWN if claim.kind is ClaimKind.UNKNOWN:
            why = "runs to its end; the report names no failure to look for"
            return Classification(outcome=Outcome.PASS, reason=Reason.NOTHING_NAMED, why=why)
        case Reading.UNKNOWN if not claim.expected and (
            kept := find_kept_operation(stdout, actual=claim.actual, given=context.given)
        ):
            return Classification(
                outcome=Outcome.PASS,
                reason=Reason.KEEPS_OPERATION,
                why=f"keeps an operation of the testcase, which the quoted program lacks: {kept}",
                detail=kept,
            )
        case Reading.UNKNOWN if not claim.expected and (
            other := find_other_values(everything, context.vocabulary, actual=claim.actual)
            or find_other_operation(stdout, actual=claim.actual)
        ):
            return Classification(
                outcome=Outcome.OTHER_FAILURE,
                reason=Reason.PRINTS_UNKNOWN,
                why="runs to its end and prints other values than the report quotes",
                signature=Signature(type=OUTPUT, message=other),
            )
        case Reading.UNKNOWN:
            return Classification(
                outcome=Outcome.OTHER_FAILURE,
                reason=Reason.PRINTS_UNKNOWN,
                why="runs to its end, but neither testcase nor report shows whether the output is right",
            )
        case _ as never:
            assert_never(never)


def _classify_attribute(claim: Claim, is_wrong: bool, shown: str) -> Classification:
    """Return the outcome of a run by the one attribute that the report quotes."""
    if is_wrong:
        why = "prints what the report calls wrong"
        return Classification(
            outcome=Outcome.MATCH, reason=Reason.PRINTS_WRONG, why=why, signature=make_output_signature(claim)
        )
    return Classification(
        outcome=Outcome.OTHER_FAILURE,
        reason=Reason.PRINTS_UNKNOWN,
        why="runs to its end and prints other values than the report quotes",
        signature=Signature(type=OUTPUT, message=shown),
    )


def _quotes_last_row(actual: str, stdout: str) -> bool:
    """True if the report quotes the last printed row as wrong. The check may pass although it should fail."""
    rows = [row.strip() for row in stdout.splitlines() if row.strip()]
    return bool(rows) and len(rows[-1].split()) >= MIN_WORDS and rows[-1] in map(str.strip, actual.splitlines())


PRINTS_OTHER_REFERENCE = "prints another result than its own reference"
"""Message of the signature of a run that prints its result beside another reference."""


def _classify_pair(stdout: str) -> Classification | None:
    """Return the outcome of a run that prints its result beside a reference. None if the two do not decide."""
    return _classify_comparison(compare_last_values(stdout))


def _classify_rows(stdout: str, actual: str) -> Classification | None:
    """Return the outcome of a run that labels results and references in its rows. None if these do not decide."""
    return _classify_comparison(compare_labelled_rows(stdout, actual))


def _classify_comparison(reading: Reading) -> Classification | None:
    match reading:
        case Reading.WRONG:
            signature = Signature(type=OUTPUT, message=PRINTS_OTHER_REFERENCE)
            return Classification(
                outcome=Outcome.MATCH,
                reason=Reason.OTHER_REFERENCE,
                why=PRINTS_OTHER_REFERENCE,
                signature=signature,
            )
        case Reading.RIGHT:
            why = "prints the same result as its own reference"
            return Classification(outcome=Outcome.PASS, reason=Reason.SAME_REFERENCE, why=why)
        case Reading.CHANGED | Reading.SIMILAR | Reading.UNKNOWN:
            return None


def _classify_twins(claim: Claim, results: Sequence[str]) -> Classification:
    """Return the outcome of runs of one program whose results differ in the report."""
    if len(results) == 1:
        why = "its runs print the same, unlike in the report"
        return Classification(outcome=Outcome.PASS, reason=Reason.TWINS_AGREE, why=why)
    lines = zip_longest(*(one.splitlines() for one in results), fillvalue="")
    differing = next((line for line in lines if len(set(line)) > 1), ())
    signature = Signature(type=OUTPUT, message=" and ".join(differing)[:200])
    return Classification(
        outcome=Outcome.MATCH,
        reason=Reason.TWINS_DIFFER,
        why="its runs print different results, as reported",
        signature=make_output_signature(claim) if claim.actual else signature,
    )


def _classify_count(steps: Sequence[StepResult], context: OracleContext) -> Classification:
    """Compare the number of things in the printed program with the numbers of the report.

    A number further away than the reported one is no better. Any other number gives no answer, because the report may
    count with other flags or in another program.
    """
    claim = context.claim
    product = next((one for one in context.vocabulary.products if _reads(one, claim)), None)
    printed = steps[-1].stdout if steps and not steps[-1].truncated else ""
    if product is None or not printed.strip():
        why = "compiles; nothing shows how many things the compiler makes"
        return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.NOT_COUNTED, why=why)
    made = len(product.made.findall(printed) or product.formed.findall(printed))
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
        why = f"compiles to {shown}, as reported"
        return Classification(outcome=Outcome.MATCH, reason=Reason.COUNTED, why=why, signature=signature)
    if made == expected:
        why = f"compiles to {shown}, as the report expects"
        return Classification(outcome=Outcome.PASS, reason=Reason.COUNTED, why=why)
    why = f"compiles to {shown}, which the report does not speak of"
    return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.COUNTED, why=why, signature=signature)


def _reads(product: Product, claim: Claim) -> bool:
    return product.read(claim.actual) is not None or product.read(claim.expected) is not None
