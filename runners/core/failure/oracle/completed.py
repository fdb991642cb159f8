"""Classify a run that ended with exit code 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import assert_never

from runners.core.failure.exception_chain import iterate_caught
from runners.core.failure.normalize import split_tokens
from runners.core.failure.oracle.outcome import CHECKS, OUTPUT, Classification, OracleContext, make_output_signature
from runners.core.failure.oracle.told import MIN_WORDS, is_same_failure, split_line
from runners.core.failure.parse import parse_signature
from runners.core.failure.printed.filters import ROWS, count_rows
from runners.core.failure.printed.lines.compare import read_output
from runners.core.failure.printed.lines.other_values import find_other_rows, find_other_values
from runners.core.failure.printed.pairs import (
    compare_labelled_rows,
    compare_last_values,
    is_other_array,
    prints_array,
    prints_other_array,
)
from runners.core.failure.printed.programs.program import compare_programs, find_kept_operation, find_other_operation
from runners.core.failure.printed.quoted_code import prints_code, read_attribute
from runners.core.failure.printed.reading import Reading
from runners.core.failure.printed.rows import judge_rows
from runners.core.failure.printed.twin_runs import read_twins
from runners.core.protocol import Claim, ClaimKind, Outcome, Reason, Signature, StepResult
from runners.core.toolchain.products import Product


@dataclass(frozen=True)
class Completed:
    """A run that ended with exit code 0, and the report to compare it with."""

    steps: Sequence[StepResult]
    context: OracleContext

    @property
    def claim(self) -> Claim:
        return self.context.claim

    @cached_property
    def stdout(self) -> str:
        return "\n".join(step.stdout for step in self.steps)

    @cached_property
    def everything(self) -> str:
        return self.stdout + "\n" + "\n".join(step.stderr for step in self.steps)

    @property
    def quoted(self) -> Signature | None:
        """The failure that the report quotes. None if it quotes output, or nothing."""
        signature = self.claim.signature
        return None if signature is None or signature.type == OUTPUT else signature


def classify_completed(steps: Sequence[StepResult], context: OracleContext) -> Classification:
    run = Completed(steps, context)
    return _prints_reported_failure(run) or _keeps_own_check(run) or _classify_by_kind(run)


def _prints_reported_failure(run: Completed) -> Classification | None:
    """Answer if a driver caught and printed the failure, or a child process failed."""
    if run.quoted is None:
        return None
    swallowed = parse_signature(run.everything, run.context.vocabulary)
    if swallowed is not None and is_same_failure(run.quoted, swallowed, run.context):
        return Classification(
            outcome=Outcome.MATCH,
            reason=Reason.AS_QUOTED,
            why="prints the reported failure, though it exits with 0",
            signature=swallowed,
        )
    return _classify_caught(run.everything, run.context)


def _keeps_own_check(run: Completed) -> Classification | None:
    """Answer if the report quotes a failed check. The quoted output may occur in good and bad runs alike."""
    signature = run.claim.signature
    if not run.context.checks_itself or signature is None or signature.type not in CHECKS:
        return None
    why = "runs to its end, and the check that failed holds"
    return Classification(outcome=Outcome.PASS, reason=Reason.CHECK_HOLDS, why=why)


def _classify_by_kind(run: Completed) -> Classification:
    claim, context = run.claim, run.context
    match claim.kind:
        case ClaimKind.WRONG_RESULT if twins := read_twins(claim, run.steps, context.vocabulary, context.compilers):
            return _classify_twins(claim, twins)
        case ClaimKind.WRONG_RESULT | ClaimKind.UNKNOWN:
            return _classify_result(run)
        case ClaimKind.ACCEPTED:
            why = "runs to its end without an error, as reported"
            return Classification(outcome=Outcome.MATCH, reason=Reason.ACCEPTED, why=why)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG if prints_other_array(run.stdout, claim.expected):
            why = "runs to its end without the reported failure, and prints other values than the report expects"
            return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.PRINTS_UNKNOWN, why=why)
        case ClaimKind.CRASH | ClaimKind.ERROR | ClaimKind.HANG:
            why = "runs to its end without the reported failure"
            return Classification(outcome=Outcome.PASS, reason=Reason.ENDS_WELL, why=why)
        case ClaimKind.COUNT:
            return _classify_count(run.steps, context)
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


# ---------------------------------------------------------------------------------------------- printed results


def _classify_result(run: Completed) -> Classification:
    """Return the answer of the first question about the printed result that has one."""
    answers = (ask(run) for ask in _QUESTIONS)
    answer = next((one for one in answers if one is not None), None)
    return answer or Classification(
        outcome=Outcome.OTHER_FAILURE,
        reason=Reason.PRINTS_UNKNOWN,
        why="runs to its end, but neither testcase nor report shows whether the output is right",
    )


def _calls_own_rows_wrong(run: Completed) -> Classification | None:
    """Answer by the rows that the program itself calls wrong: most rows of a report may be correct."""
    rows = run.context.rows
    return _classify_comparison(judge_rows(run.stdout, run.claim.actual, rows, quoted=True)) if rows else None


def _quotes_reference_too(run: Completed) -> Classification | None:
    """Answer by the printed reference. Quoted output that includes it has lines that occur in good and bad runs."""
    paired = run.context.prints_reference and compare_last_values(run.claim.actual) is Reading.WRONG
    return _classify_comparison(_compare_with_reference(run)) if paired else None


def _compare_with_reference(run: Completed) -> Reading:
    return compare_last_values(run.stdout, each=_is_about_accuracy(run.claim))


def _is_about_accuracy(claim: Claim) -> bool:
    """True for a report on digits that are lost. Then equal large values do not show that small ones are right."""
    return _LOST_DIGITS.search(claim.told) is not None


_LOST_DIGITS = re.compile(
    r"\binaccura\w+|\b(?:accuracy|precision|numerical) (?:loss|failures?|issues?|problems?|drops?|errors?)\b"
    r"|\b(?:los\w+|poor|bad|reduced?|less|insufficient) (?:of )?(?:accuracy|precision)\b"
    r"|\bcancell?ation\b|\bulps?\b",
    re.I,
)


def _prints_attribute(run: Completed) -> Classification | None:
    """Answer by the one attribute that the report quotes."""
    attribute = None if run.claim.expected else read_attribute(run.stdout, actual=run.claim.actual)
    if attribute is None:
        return None
    is_wrong, shown = attribute
    return _call_wrong(run.claim) if is_wrong else _call_other(shown)


def _prints_quoted_result(run: Completed) -> Classification | None:
    """Answer by the quoted program, or by the quoted lines."""
    match _read_result(run):
        case Reading.WRONG:
            return _call_wrong(run.claim)
        case Reading.RIGHT:
            why = "prints what the report expects"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_EXPECTED, why=why)
        case Reading.CHANGED:
            why = "no longer prints what the report calls wrong"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_CHANGED, why=why)
        case Reading.SIMILAR:
            why = "prints a similar program, and not the one that the report calls wrong"
            return Classification(outcome=Outcome.PASS, reason=Reason.PRINTS_SIMILAR, why=why)
        case Reading.UNKNOWN:
            return None
        case _ as never:
            assert_never(never)


def _read_result(run: Completed) -> Reading:
    claim, stdout = run.claim, run.stdout
    programs = compare_programs(stdout, actual=claim.actual, expected=claim.expected)
    if programs is not None:
        return programs
    reading = read_output(run.everything, run.context.vocabulary, actual=claim.actual, expected=claim.expected)
    if reading is Reading.WRONG and not claim.expected and is_other_array(stdout, claim.actual):
        reading = Reading.UNKNOWN
    if reading is not Reading.UNKNOWN:
        return reading
    if prints_array(stdout, claim.expected) and not prints_array(claim.actual, claim.expected):
        return Reading.RIGHT
    code = prints_code(stdout, expected=claim.expected, actual=claim.actual)
    return Reading.RIGHT if code else Reading.UNKNOWN


def _holds_own_checks(run: Completed) -> Classification | None:
    if not run.context.checks_itself or _quotes_last_row(run.claim.actual, run.stdout):
        return None
    why = "runs to its end, and its own checks hold"
    return Classification(outcome=Outcome.PASS, reason=Reason.CHECK_HOLDS, why=why)


def _judges_own_rows(run: Completed) -> Classification | None:
    rows = run.context.rows
    return _classify_comparison(judge_rows(run.stdout, run.claim.actual, rows)) if rows else None


def _prints_reference(run: Completed) -> Classification | None:
    """Answer for a run that prints its result beside a reference."""
    return _classify_comparison(_compare_with_reference(run)) if run.context.prints_reference else None


def _labels_references(run: Completed) -> Classification | None:
    """Answer for a run that labels results and references in its rows."""
    return _classify_comparison(compare_labelled_rows(run.stdout, run.claim.actual))


def _answers_no_claim(run: Completed) -> Classification | None:
    if run.claim.kind is not ClaimKind.UNKNOWN:
        return None
    why = "runs to its end; the report names no failure to look for"
    return Classification(outcome=Outcome.PASS, reason=Reason.NOTHING_NAMED, why=why)


def _keeps_operation(run: Completed) -> Classification | None:
    claim = run.claim
    kept = "" if claim.expected else find_kept_operation(run.stdout, actual=claim.actual, given=run.context.given)
    if not kept:
        return None
    return Classification(
        outcome=Outcome.PASS,
        reason=Reason.KEEPS_OPERATION,
        why=f"keeps an operation of the testcase, which the quoted program lacks: {kept}",
        detail=kept,
    )


def _prints_other_result(run: Completed) -> Classification | None:
    if run.claim.expected:
        return None
    other = find_other_values(run.everything, run.context.vocabulary, actual=run.claim.actual)
    other = other or find_other_operation(run.stdout, actual=run.claim.actual)
    other = other or find_other_rows(run.stdout, run.context.vocabulary, actual=run.claim.actual)
    return _call_other(other) if other else None


_QUESTIONS: tuple[Callable[[Completed], Classification | None], ...] = (
    _calls_own_rows_wrong,
    _quotes_reference_too,
    _prints_attribute,
    _prints_quoted_result,
    _holds_own_checks,
    _judges_own_rows,
    _prints_reference,
    _labels_references,
    _answers_no_claim,
    _keeps_operation,
    _prints_other_result,
)
"""In order: what the report quotes, then what the program says about its own result, then other results."""


def _call_wrong(claim: Claim) -> Classification:
    return Classification(
        outcome=Outcome.MATCH,
        reason=Reason.PRINTS_WRONG,
        why="prints what the report calls wrong",
        signature=make_output_signature(claim),
    )


def _call_other(shown: str) -> Classification:
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


def _classify_comparison(reading: Reading) -> Classification | None:
    """Return the outcome of a result beside its reference. None if the two do not decide."""
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
    product = next((one for one in (*context.vocabulary.products, ROWS) if _reads(one, claim)), None)
    made = None if product is None or not steps else _count_made(product, steps[-1])
    if product is None or made is None:
        why = "compiles; nothing shows how many things the compiler makes"
        return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.NOT_COUNTED, why=why)
    actual, expected = product.read(claim.actual), product.read(claim.expected)
    shown = product.describe(made)
    signature = Signature(type=OUTPUT, message=shown)
    if actual is None:
        wrong = expected is not None and made > expected and product is not ROWS
    elif expected is None:
        wrong = made == actual
    else:
        wrong = made >= actual if actual > expected else made <= actual
    verb = "prints" if product is ROWS else "compiles to"
    if wrong:
        why = f"{verb} {shown}, as reported"
        return Classification(outcome=Outcome.MATCH, reason=Reason.COUNTED, why=why, signature=signature)
    if made == expected or (expected is None and actual == 0):
        why = f"{verb} {shown}, {'as the report expects' if expected is not None else 'and the report counts none'}"
        return Classification(outcome=Outcome.PASS, reason=Reason.COUNTED, why=why)
    why = f"{verb} {shown}, which the report does not speak of"
    return Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.COUNTED, why=why, signature=signature)


def _count_made(product: Product, step: StepResult) -> int | None:
    """Return how many things the last step printed. None if its output does not show that."""
    if product is ROWS:
        return count_rows(step)
    if step.truncated or not step.stdout.strip():
        return None
    return len(product.made.findall(step.stdout) or product.formed.findall(step.stdout))


def _reads(product: Product, claim: Claim) -> bool:
    return product.read(claim.actual) is not None or product.read(claim.expected) is not None
