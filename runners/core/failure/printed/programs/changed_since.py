"""Judge builds by a change of the printed program, where no comparison reads the words of the report. Pure.

A report calls the program that a pass prints wrong. Then the build of the report prints the wrong program, and so
does a build whose program equals the quoted program. If newer builds print another program, and the report mentions
the operations that differ, the reported behaviour ended there.

Of 18 answers to first looks that named such a change without judging it, the truth was *fixed* in 16.

Programs are MLIR. The printer of TVMScript changes with each release, so that any two releases print other rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.programs.program import MIN_OPERATIONS, Operation, read_operations
from runners.core.failure.printed.programs.program_runs import GAP, Program, is_unjudged, list_runs, read_programs
from runners.core.protocol import Answer, ClaimKind, Observation, Outcome, Plan, Reason

MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the printed program."""

    before: Program
    after: Program
    wrong: tuple[str, ...]
    """The builds that print ``before``, oldest first."""
    right: tuple[str, ...]
    """The builds that print ``after``, oldest first."""
    names: tuple[str, ...]
    """The operations that differ and that the report mentions, each once. Operations named in full come first."""

    @property
    def is_move(self) -> bool:
        """True if both programs have the same operations, in another order or on other values."""
        before, after = (Counter(map(_leave_out_values, one)) for one in (self.before, self.after))
        return before == after


def find_change(plan: Plan, observations: Sequence[Observation]) -> Change | None:
    """Return the only change of the printed program since the wrong program, if the report mentions the difference.

    The wrong program is that of the newest build which other evidence calls bad, or else that of the reported build.
    A program that the report quotes in full is compared elsewhere, so the reported build is then no evidence.
    """
    claim, newest = plan.claim, plan.order[-1]
    runs = list_runs(plan, observations)
    programs = read_programs(runs)
    wrong = _find_wrong_build(plan, runs)
    asks = claim.kind is ClaimKind.WRONG_RESULT and not claim.sometimes
    if not asks or newest not in programs or wrong not in programs:
        return None
    before, after = programs[wrong], programs[newest]
    since = [programs[one] for one in plan.order[plan.order.index(wrong) :] if one in programs]
    at = since.index(after)
    if before == after or set(since[:at]) != {before} or set(since[at:]) != {after}:
        return None
    text = f"{claim.told}\n{claim.actual}\n{claim.expected}"
    names = tuple(sorted(list_mentioned(text, before, after), key=lambda name: name not in text))
    if not names:
        return None
    bad, good = (tuple(one for one in plan.order if programs.get(one) == program) for program in (before, after))
    return Change(before=before, after=after, wrong=bad, right=good, names=names)


def _find_wrong_build(plan: Plan, runs: Sequence[Observation]) -> str:
    """Return the newest build that prints the wrong program; empty if none is known."""
    bad = {seen.version for seen in runs if seen.answer is Answer.BAD and seen.reason is not Reason.CHANGED_SINCE}
    if bad:
        return next(version for version in reversed(plan.order) if version in bad)
    quoted = (plan.claim.actual, plan.claim.expected)
    return "" if plan.reported is None or any(map(_is_whole_program, quoted)) else plan.reported


def _is_whole_program(quoted: str) -> bool:
    """True for a program without gaps ("..."), which a comparison recognizes."""
    return len(read_operations(quoted)) >= MIN_OPERATIONS and not GAP.search(quoted)


def mark_by_change(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations. Unjudged runs are bad if they print the wrong program, and good after the change.

    Runs that print a third program do not change. Nothing is marked if other evidence calls a build good.
    """
    change = find_change(plan, observations)
    runs = list_runs(plan, observations)
    if change is None or any(seen.answer is Answer.GOOD for seen in runs):
        return tuple(observations)
    newest_wrong = change.wrong[-1]

    def mark(seen: Observation) -> Observation:
        if seen not in runs or not is_unjudged(seen):
            return seen
        if seen.version in change.wrong:
            why = f"prints the program of {newest_wrong}, which the report calls wrong"
            return judge_again(seen, Outcome.MATCH, Reason.CHANGED_SINCE, why)
        if seen.version in change.right:
            why = f"prints another program than {newest_wrong}, whose program the report calls wrong"
            return judge_again(seen, Outcome.PASS, Reason.CHANGED_SINCE, why)
        return seen

    return tuple(map(mark, observations))


def list_mentioned(text: str, before: Program, after: Program) -> Iterator[str]:
    """Yield the names of the operations that differ, if the text has the name or a differing word of the operation.

    An operation that only moved differs too. Operations that occur more or less often come first.
    """
    said = {word.lower() for word in re.findall(r"[A-Za-z_]\w+", text)}
    one, other = ([_leave_out_values(operation) for operation in program] for program in (before, after))
    counted = (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))
    words: dict[str, set[str]] = {}
    for name, *rest in (*counted, *_list_between(one, other)):
        words.setdefault(name, set()).update(rest)
    for name, others in words.items():
        if name in text or any(part in said or f"{part}s" in said for part in _list_parts(name, others)):
            yield name


def _list_parts(name: str, words: set[str]) -> Iterator[str]:
    """Yield the words by which people mention an operation: not its dialect, which most of a program shares."""
    if base := _ARITHMETIC.fullmatch(name):
        yield base[1]
    found = (part for word in (name.partition(".")[2], *words) for part in re.findall(r"[A-Za-z_]\w+", word))
    yield from (part.lower() for part in found if len(part) >= MIN_WORD_CHARS)


_ARITHMETIC = re.compile(r"arith\.([a-z]{3,8}?)(?:[us]?i|f)")
"""An operation on integers or floats, and the word that people use for it: ``div`` for ``arith.divui``."""


def _list_between(one: Sequence[Operation], other: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations between the common beginning and the common end of two programs. Linear in their size."""
    shorter = min(len(one), len(other))
    begin = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    end = next((at for at in range(shorter - begin) if one[-1 - at] != other[-1 - at]), shorter - begin)
    yield from one[begin : len(one) - end]
    yield from other[begin : len(other) - end]


def _leave_out_values(operation: Operation) -> Operation:
    return tuple(word for word in operation if not word.startswith("%"))
