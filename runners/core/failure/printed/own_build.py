"""Let the build that a report is about tell which of two printed programs is the wrong one. Pure.

A report says that the program which a pass prints is wrong, in words that no comparison reads. The build that the
report is about then prints the wrong program, whatever the words are. If newer builds print another program, and the
difference is in what the report speaks of, the reported behaviour ended there.

Of 18 answers to first looks that named such a change without judging it, the truth was *fixed* in 16.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.program import MIN_OPERATIONS, read_operations
from runners.core.failure.printed.program_runs import Program, is_unjudged, list_runs, read_programs
from runners.core.protocol import Claim, ClaimKind, Observation, Outcome, Plan, Reason

MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the printed program after the reported build."""

    before: Program
    after: Program
    names: tuple[str, ...]
    """The operations that differ and that the report speaks of, each once, in their order; for TVMScript, words."""


def find_change(plan: Plan, observations: Sequence[Observation]) -> Change | None:
    """Return the only change of the printed program from the reported build on, if the report speaks of it.

    None as well if the report quotes a program: then another comparison has its say.
    """
    claim, reported, newest = plan.claim, plan.reported, plan.order[-1]
    asks = claim.kind is ClaimKind.WRONG_RESULT and not claim.sometimes
    if not asks or reported is None or _is_program(claim.actual) or _is_program(claim.expected):
        return None
    programs = read_programs(list_runs(plan, observations))
    if reported not in programs or newest not in programs:
        return None
    before, after = programs[reported], programs[newest]
    since = [programs[one] for one in plan.order[plan.order.index(reported) :] if one in programs]
    at = since.index(after)
    if before == after or set(since[:at]) != {before} or set(since[at:]) != {after}:
        return None
    names = tuple(_list_named(claim, before, after))
    return Change(before, after, names) if names else None


def mark_by_own_build(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs as bad that print the program of the reported build, and as good after it.

    Runs that print a third program are left as they are. Nothing is marked beside runs that are judged.
    """
    change = find_change(plan, observations)
    runs = list_runs(plan, observations)
    if change is None or plan.reported is None or not all(map(is_unjudged, runs)):
        return tuple(observations)
    programs = read_programs(runs)

    def mark(seen: Observation) -> Observation:
        program = programs[seen.version] if seen in runs else ()
        if program == change.before:
            why = f"prints the program that {plan.reported} prints, the build that the report is about"
            return judge_again(seen, Outcome.MATCH, Reason.OWN_BUILD, why)
        if program == change.after:
            why = f"prints another program than {plan.reported}, the build that the report is about"
            return judge_again(seen, Outcome.PASS, Reason.OWN_BUILD, why)
        return seen

    return tuple(map(mark, observations))


def _is_program(quoted: str) -> bool:
    return len(read_operations(quoted)) >= MIN_OPERATIONS


def _list_named(claim: Claim, before: Program, after: Program) -> Iterator[str]:
    """Yield the names of the operations that differ, if the report has the name or a differing word of it."""
    said = {word.lower() for word in re.findall(r"[A-Za-z_]\w+", f"{claim.told}\n{claim.actual}\n{claim.expected}")}
    one, other = (Counter(map(_leave_out_values, program)) for program in (before, after))
    names: dict[str, set[str]] = {}
    for operation in (*(one - other), *(other - one)):
        names.setdefault(operation[0], set()).update(operation)
    for name, words in names.items():
        parts = {part.lower() for word in words for part in re.findall(r"[A-Za-z_]\w+", word)}
        if any(len(part) >= MIN_WORD_CHARS and _occurs(part, said) for part in parts):
            yield name


def _occurs(part: str, said: set[str]) -> bool:
    return part in said or f"{part}s" in said


def _leave_out_values(operation: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in operation if not word.startswith("%"))
