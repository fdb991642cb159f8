"""Decide by the run of the reported build which of the shown values are wrong. Pure.

A report shows rows of values and calls the result wrong, but its sentences do not identify the printed row. The
report is about the row that the reported build prints. If only one other row has as many values, it is the expected
row. A row that is shown alone may be the right one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.lines.tokens import NUMBER_PATTERN
from runners.core.failure.printed.programs.program_runs import list_runs, print_programs
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    Exited,
    Observation,
    Outcome,
    Plan,
    Reason,
    Testcase,
    Variant,
)

_NUMBER = re.compile(rf"(?<![\w.])(?:{NUMBER_PATTERN}|True|False)(?!\w)", re.I)
MAX_ROW = 64
MAX_PRINTED = 5_000
MAX_INPUT_CHARS = 20_000
MAX_STEPS = 20_000
"""Maximum number of value comparisons for one row."""
MIN_DISTINCT = 3
MIN_DIGITS = 3
"""Minimum number of digits of each of only two values. An output may contain two short numbers by chance."""


def mark_by_shown_values(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Runs that print the shown values of the reported build are bad, those with others are
    good.

    Nothing is marked if any run has an answer, if runs of the reported build differ, or if runs print programs: their
    numbers are sizes and places. A report that names no build may be about any: then all builds must print the same.
    """
    claim, newest = plan.claim, plan.order[-1]
    asks = claim.kind is ClaimKind.WRONG_RESULT and claim.shown and not print_programs(list_runs(plan, observations))
    if not asks or any(seen.answer is not Answer.SKIP for seen in observations):
        return tuple(observations)
    reported = plan.reported or newest
    own = [_read_run(plan, seen) for seen in observations if plan.reported in (None, seen.version)]
    printed = [one for one in own if one is not None]
    if not printed or any(one != printed[0] for one in printed[1:]):
        return tuple(observations)
    rows = _list_rows(claim)
    wrong = [row for row in rows if is_telling(row) and contains_row(printed[0], row)]
    if not any(len(one) == len(row) and one != row for one in wrong for row in rows):  # one row alone may be right
        return tuple(observations)
    given, lengths = _read_inputs(plan.testcase), set(map(len, wrong))
    others = [row for row in rows if len(row) in lengths and not contains_row(printed[0], row)]
    right = [row for row in others if not _is_given(row, given)]
    expected = right[0] if len(right) == 1 else None

    def mark(seen: Observation) -> Observation:
        values = _read_run(plan, seen)
        if values is None:
            return seen
        as_reported = all(contains_row(values, row) for row in wrong)
        as_expected = expected is not None and contains_row(values, expected)
        if as_reported and not as_expected:
            why = f"prints the values that the report shows, as {reported} does, which the report is about"
            return judge_again(seen, Outcome.MATCH, Reason.SHOWN_VALUES, why)
        if as_expected and not as_reported:
            why = f"prints other values that the report shows, and not those that {reported} prints"
            return judge_again(seen, Outcome.PASS, Reason.SHOWN_VALUES, why)
        return seen

    return tuple(map(mark, observations))


def is_telling(row: Sequence[str]) -> bool:
    """True for values that no output contains by chance: three different ones, or two of three digits each."""
    different = set(row)
    digits = min((sum(map(str.isdigit, value)) for value in different), default=0)
    return len(different) >= MIN_DISTINCT or (len(different) > 1 and digits >= MIN_DIGITS)


def contains_row(printed: Sequence[str], row: Sequence[str]) -> bool:
    """True if ``printed`` contains the values of ``row`` in succession, to the digits that ``row`` shows."""
    steps = 0
    for start in range(len(printed) - len(row) + 1):
        for place, shown in enumerate(row, start):
            steps += 1
            if not is_shown(shown, printed[place]):
                break
        else:
            return True
        if steps > MAX_STEPS:
            break  # only values made to be slow need more
    return False


def is_shown(shown: str, printed: str) -> bool:
    """True if a shown value is the printed one, possibly with fewer digits. Integers must be equal."""
    if shown.lower() == printed.lower():
        return True
    try:
        one, other = float(shown), float(printed)
    except ValueError:
        return False  # True, False
    digits, _, exponent = shown.lower().partition("e")
    if not re.search(r"[.e]", shown, re.I):
        return one == other
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(one - other) <= 0.51 * unit or one == other


def _read_inputs(testcase: Testcase) -> tuple[str, ...]:
    texts = (*testcase.files.values(), *(word for step in testcase.steps for word in step))
    return tuple(_NUMBER.findall("\n".join(texts)[:MAX_INPUT_CHARS]))


def _is_given(row: Sequence[str], given: Sequence[str]) -> bool:
    """True for values of the testcase itself, and for the row numbers of a table."""
    counted = any(list(row) == [str(first + at) for at in range(len(row))] for first in (0, 1))
    return counted or contains_row(given, row)


def _list_rows(claim: Claim) -> list[tuple[str, ...]]:
    """Return the rows of at least two values that the report shows, each once."""
    rows = (tuple(_NUMBER.findall(row)) for row in (*claim.shown, claim.expected))
    return list(dict.fromkeys(row for row in rows if 1 < len(row) <= MAX_ROW))


def _read_run(plan: Plan, seen: Observation) -> tuple[str, ...] | None:
    """Return the printed values of a complete run of the posted testcase that no other rule has judged."""
    own = seen.variant is Variant.ORIGINAL and seen.device == plan.device
    if not own or seen.outcome is not Outcome.OTHER_FAILURE or seen.ended != Exited(code=0):
        return None
    return tuple(_NUMBER.findall(seen.excerpt)[:MAX_PRINTED]) or None
