"""Judge builds by a change of the printed program, where no comparison reads the words of the report. Pure.

A report says that the program which a pass prints is wrong. The build that the report is about prints the wrong
program, whatever the words are; so does a build whose program equals the quoted one. If newer builds print another
program, and the difference is in what the report speaks of, the reported behaviour ended there.

Of 18 answers to first looks that named such a change without judging it, the truth was *fixed* in 16.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.program import MIN_OPERATIONS, Operation, read_operations
from runners.core.failure.printed.program_runs import Program, is_unjudged, list_runs, read_programs
from runners.core.protocol import Answer, ClaimKind, Observation, Outcome, Plan, Reason

MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the printed program."""

    wrong: str
    """The newest build that prints ``before``."""
    before: Program
    after: Program
    names: tuple[str, ...]
    """The operations that differ and that the report speaks of, each once. For TVMScript, these are words.

    Operations whose whole name the report has come first.
    """

    @property
    def is_move(self) -> bool:
        """True if both programs have the same operations, in another order or on other values."""
        before, after = (Counter(map(_leave_out_values, one)) for one in (self.before, self.after))
        return before == after


def find_change(plan: Plan, observations: Sequence[Observation]) -> Change | None:
    """Return the only change of the printed program since the wrong one, if the report speaks of the difference.

    The wrong program is that of the newest build which other evidence calls bad, or else that of the reported build.
    A program that the report quotes whole is compared elsewhere, so the reported build then proves nothing.
    """
    claim, newest = plan.claim, plan.order[-1]
    runs = list_runs(plan, observations)
    programs = read_programs(runs)
    if claim.kind is not ClaimKind.WRONG_RESULT or claim.sometimes or newest not in programs:
        return None
    wrong = _find_wrong_build(plan, runs)
    if wrong not in programs:
        return None
    before, after = programs[wrong], programs[newest]
    since = [programs[one] for one in plan.order[plan.order.index(wrong) :] if one in programs]
    at = since.index(after)
    if before == after or set(since[:at]) != {before} or set(since[at:]) != {after}:
        return None
    text = f"{claim.told}\n{claim.actual}\n{claim.expected}"
    names = tuple(sorted(_list_named(text, before, after), key=lambda name: name not in text))
    return Change(wrong, before, after, names) if names else None


def _find_wrong_build(plan: Plan, runs: Sequence[Observation]) -> str:
    """Return the newest build that prints the wrong program; empty if none is known."""
    bad = {seen.version for seen in runs if seen.answer is Answer.BAD and seen.reason is not Reason.CHANGED_SINCE}
    if bad:
        return next(version for version in reversed(plan.order) if version in bad)
    quoted = (plan.claim.actual, plan.claim.expected)
    return "" if plan.reported is None or any(map(_is_whole_program, quoted)) else plan.reported


def mark_by_change(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with unjudged runs as bad that print the wrong program, and as good after the change.

    Runs that print a third program are left as they are. Nothing is marked if other evidence calls a build good.
    """
    change = find_change(plan, observations)
    runs = list_runs(plan, observations)
    if change is None or any(seen.answer is Answer.GOOD for seen in runs):
        return tuple(observations)
    programs = read_programs(runs)

    def mark(seen: Observation) -> Observation:
        program = programs[seen.version] if seen in runs and is_unjudged(seen) else ()
        if program == change.before:
            why = f"prints the program that {change.wrong} prints, which the report calls wrong"
            return judge_again(seen, Outcome.MATCH, Reason.CHANGED_SINCE, why)
        if program == change.after:
            why = f"prints another program than {change.wrong}, whose program the report calls wrong"
            return judge_again(seen, Outcome.PASS, Reason.CHANGED_SINCE, why)
        return seen

    return tuple(map(mark, observations))


def _is_whole_program(quoted: str) -> bool:
    """True for a program without gaps ("..."), which a comparison recognizes."""
    return len(read_operations(quoted)) >= MIN_OPERATIONS and not _GAP.search(quoted)


_GAP = re.compile(r"\.{3}|…")


def _list_named(text: str, before: Program, after: Program) -> Iterator[str]:
    """Yield the names of the operations that differ, if the text has the name or a differing word of it.

    An operation that only moved differs as well. Operations that occur more or less often come first.
    """
    said = {word.lower() for word in re.findall(r"[A-Za-z_]\w+", text)}
    one, other = ([_leave_out_values(operation) for operation in program] for program in (before, after))
    counted = (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))
    names: dict[str, set[str]] = {}
    for operation in (*counted, *_list_between(one, other)):
        names.setdefault(operation[0], set()).update(operation)
    for name, words in names.items():
        parts = {part.lower() for word in words for part in re.findall(r"[A-Za-z_]\w+", word)}
        known = {part for part in parts if len(part) >= MIN_WORD_CHARS}
        if base := _ARITHMETIC.match(name):
            known.add(base[1])
        if any(part in said or f"{part}s" in said for part in known):
            yield name


_ARITHMETIC = re.compile(r"arith\.([a-z]{3,8}?)(?:[us]?i|f)$")
"""An operation on integers or floats, and the word that people use for it: ``div`` for ``arith.divui``."""


def _list_between(one: Sequence[Operation], other: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations between the common beginning and the common end of two programs. Linear in their size."""
    shorter = min(len(one), len(other))
    begin = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    end = next((at for at in range(shorter - begin) if one[-1 - at] != other[-1 - at]), shorter - begin)
    yield from one[begin : len(one) - end]
    yield from other[begin : len(other) - end]


def _leave_out_values(operation: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in operation if not word.startswith("%"))
