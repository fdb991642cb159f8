"""Judge runs of a pass by the program that it received, where a report complains that the pass does nothing. Pure.

A report on a missed transformation quotes no output: "`--canonicalize` leaves both as they are", "the slice isn't
folded". What the reporter saw is then the posted program itself. A build that prints the posted program behaves as
reported. A build that changes an operation of which the report speaks does not, if the report says that nothing
changed at all.

Programs are MLIR, because a printed TVMScript never has the notation of the posted one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.programs.changed_since import list_mentioned
from runners.core.failure.printed.programs.program import Operation, number_values, read_operations
from runners.core.failure.printed.programs.program_runs import (
    Program,
    is_unjudged,
    list_posted,
    list_runs,
    read_programs,
)
from runners.core.failure.printed.programs.told_parts import list_clauses
from runners.core.mlir.types import ScalarType, find_types
from runners.core.protocol import Claim, ClaimKind, Observation, Outcome, Plan, Reason, Testcase, Variant


def mark_by_input(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs as bad that print the posted program, and as good that change it.

    The extraction puts the posted program in the place of the quoted one if the report says that a transformation is
    missing. Nothing is marked if the report quotes another program, or if other evidence contradicts. A port that may
    have renamed an operation is left out: its input is another text. So is a build that prints the same operations in
    another order, on other values or with other types: that may be the missing transformation.
    """
    claim, given = plan.claim, read_given(plan.testcase)
    runs = list_runs(plan, observations)
    says_nothing_changes = _says_nothing_changes(claim)
    asks = claim.kind is ClaimKind.WRONG_RESULT and not claim.sometimes
    is_given = tuple(read_operations(claim.actual)) == given
    if not asks or not given or not (is_given or (says_nothing_changes and not claim.actual)):
        return tuple(observations)
    ported = {seen.version for seen in runs if seen.variant is Variant.PORTED}
    posted, printed = _get_posted(plan.testcase), {seen.version: seen.excerpt for seen in runs}
    marks: dict[str, bool] = {}
    for version, program in read_programs(runs).items():
        if version in ported and not {name for name, *_ in program} <= {name for name, *_ in given} | _PRINTERS:
            continue
        if has_same_operations(given, program):
            if list_uses(given) == list_uses(program) and has_no_new_type(posted, printed[version]):
                marks[version] = True
        elif says_nothing_changes and any(list_mentioned(claim.told, given, program)):
            marks[version] = False
    bad = {seen.version for seen in runs if seen.outcome is Outcome.MATCH}
    good = {seen.version for seen in runs if seen.outcome is Outcome.PASS}
    if any(marks.get(one) is False for one in bad) or any(marks.get(one) is True for one in good):
        return tuple(observations)

    def mark(seen: Observation) -> Observation:
        if seen not in runs or not is_unjudged(seen) or seen.version not in marks:
            return seen
        if marks[seen.version]:
            why = "prints the posted program, and the report complains that it does not change"
            return judge_again(seen, Outcome.MATCH, Reason.COMPARED_INPUT, why)
        why = "changes the posted program, and the report complains that it does not change"
        return judge_again(seen, Outcome.PASS, Reason.COMPARED_INPUT, why)

    return tuple(map(mark, observations))


def read_given(testcase: Testcase) -> Program:
    """Return the operations of the only MLIR file of a testcase. Empty if it has several files or none."""
    return tuple(read_operations(_get_posted(testcase)))


def _get_posted(testcase: Testcase) -> str:
    texts = list_posted(testcase)
    return texts[0] if len(texts) == 1 else ""


def has_same_operations(given: Sequence[Operation], printed: Sequence[Operation]) -> bool:
    """True if a program has the operations of the given one, and no attribute that the given one lacks.

    The printer gives names to affine maps and drops equal constants, whatever the pass does.
    """
    before, after = (Counter(name for name, *_ in one if name not in _PRINTERS) for one in (given, printed))
    known = {word for operation in given for word in operation}
    added = {word for name, *words in printed if name not in _PRINTERS for word in words if _IS_KEYWORD.match(word)}
    return before == after and added <= known


def list_uses(program: Sequence[Operation]) -> list[Operation]:
    """Return each operation with its values, numbered in their order. A constant stands in the place of its value."""
    constants: dict[str, str] = {}
    uses: list[Operation] = []
    for name, *words in number_values(program):
        if name == "arith.constant" and words:
            constants[words[0]] = " ".join(words[1:])
        elif name not in _PRINTERS:
            uses.append((name, *(constants.get(word, word) for word in words if word.startswith("%"))))
    return number_values(uses)


def has_no_new_type(given: str, printed: str) -> bool:
    """True if a text has no type that the other one lacks, and no shaped type more often. Printers add ``: i64``."""
    before, after = (list(find_types(text)) for text in (given, printed))
    had, has = (Counter(one for one in kinds if not isinstance(one, ScalarType)) for kinds in (before, after))
    return set(after) - _ADDED_TYPES <= set(before) and has <= had


_ADDED_TYPES = {ScalarType("i64")}
_PRINTERS = {"#", "^", "arith.constant"}
_IS_KEYWORD = re.compile(r"\"?[A-Za-z_][\w.]{3,}")


def _says_nothing_changes(claim: Claim) -> bool:
    return any(_UNCHANGED.search(clause) for clause, is_wanted in list_clauses(claim.told) if not is_wanted)


_UNCHANGED = re.compile(
    r"\b(?:unchanged|untouched|unmodified|as (?:(?:it|they) )?(?:is|are|was|were)\b(?! (?:the|an?|it|there)\b)"
    r"|(?:no|without(?: any)?) changes?\b(?! (?:of|in|to)\b)|(?:same|identical) (?:as|to) (?:the |my )?input"
    r"|nothing (?:at all )?(?:happens|changes|is (?:done|changed))|(?:do(?:es)? nothing|no-?op)\b"
    r"|do(?:es)?(?: not|n['’]t) (?:do|change) (?:anything|the (?:program|module|ir|function))\b)",
    re.I,
)
