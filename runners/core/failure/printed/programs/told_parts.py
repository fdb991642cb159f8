"""Decide from the report's sentences which of two printed programs is wrong. Pure.

A report on a pass names parts of the program that the pass prints: "the op keeps `status = "no"`", "I expect a
`memref.subview`". One run that prints such a part proves little: notations change, and the part may occur elsewhere
in the program. A part counts only if some builds print it and others do not. If these parts agree, they divide the
builds into those that behave as reported and those that behave as expected.

Programs are MLIR or TVMScript. Other output, such as a version number, differs between builds for other reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import judge_again
from runners.core.failure.printed.programs.program import read_operations
from runners.core.failure.printed.programs.program_runs import (
    GAP,
    is_unjudged,
    list_posted,
    list_runs,
    print_filtered,
    print_programs,
)
from runners.core.protocol import Claim, ClaimKind, Observation, Outcome, Plan, Reason

MAX_PARTS = 60
MIN_PART_CHARS = 3
MIN_FRAGMENT_WORDS = 6
"""Words of a quoted row, or of its part beside "...", that make it telling."""
MIN_NAMES = 2
"""Names of operations that tell builds apart. A single one may have been renamed."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a printed program that the report mentions."""

    text: str
    is_wanted: bool
    is_row: bool = False
    """True for a row of a quoted program, of which most rows may be right."""
    is_name: bool = False
    """True for the name of an operation of a quoted program with gaps."""


def mark_by_told_parts(plan: Plan, observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return the observations, with runs as bad or good by the program parts that the report names.

    Nothing is marked if runs of one build differ, if the parts disagree, or if a release that the report names would
    be good. Truncated output is not judged, because the part may be in the missing text.
    """
    runs = list_runs(plan, observations)
    is_readable = print_programs(runs) or print_filtered(plan, runs)
    if plan.claim.kind is not ClaimKind.WRONG_RESULT or not any(map(is_unjudged, runs)) or not is_readable:
        return tuple(observations)
    printed = {seen.version: _flatten(seen.excerpt) for seen in runs}
    parts = read_parts(plan.claim)
    marks = _divide(_list_telling(parts, printed), printed, parts)
    marks = marks or _judge_alike(parts, printed) or _judge_by_input(parts, printed, list_posted(plan.testcase))
    bad = {seen.version for seen in runs if seen.outcome is Outcome.MATCH}
    good = {seen.version for seen in runs if seen.outcome is Outcome.PASS}
    contradicted = any(marks.get(one) is False for one in bad) or any(marks.get(one) is True for one in good)
    if not marks or contradicted:
        return tuple(observations)
    if any(marks.get(one) is False for one in plan.claim.versions):
        return tuple(observations)

    def mark(seen: Observation) -> Observation:
        if seen not in runs or not is_unjudged(seen) or seen.version not in marks:
            return seen
        if marks[seen.version]:
            why = "prints a program with what the report complains of, or without what it asks for"
            return judge_again(seen, Outcome.MATCH, Reason.TOLD_PARTS, why)
        why = "prints a program with what the report asks for, or without what it complains of"
        return judge_again(seen, Outcome.PASS, Reason.TOLD_PARTS, why)

    return tuple(map(mark, observations))


def list_telling(plan: Plan, observations: Sequence[Observation]) -> tuple[tuple[Part, ...], bool]:
    """Return the parts that divide the builds, and True. Without any, return the parts of all builds, and False."""
    printed = {seen.version: _flatten(seen.excerpt) for seen in list_runs(plan, observations)}
    parts = read_parts(plan.claim)
    if telling := _list_telling(parts, printed):
        return telling, True
    shown = (one for one in parts if all(_has(text, one) for text in printed.values()))
    return tuple(shown), False


def _list_telling(parts: Sequence[Part], printed: Mapping[str, str]) -> tuple[Part, ...]:
    """Return the dividing parts from sentences. Without any, return the dividing rows of quoted programs."""
    telling = [one for one in parts if len({_has(text, one) for text in printed.values()}) == 2]
    if sum(one.is_name for one in telling) < MIN_NAMES:
        telling = [one for one in telling if not one.is_name]
    return tuple([one for one in telling if not one.is_row] or telling)


def _divide(telling: Sequence[Part], printed: Mapping[str, str], parts: Sequence[Part]) -> dict[str, bool]:
    """Return whether each build behaves as reported, by the dividing parts. Builds without an answer are left out.

    Empty if a build has a wanted and an unwanted part, or if all builds are on one side. A build that has only some
    of the unwanted rows of a quoted program is left out: it prints another program, which shares rows with that one.
    So is a build without the attribute of which the report gives a wrong and a right value: the attribute may have
    had another name there.
    """
    wanted = [one for one in telling if one.is_wanted]
    unwanted = [one for one in telling if not one.is_wanted]
    marks = {}
    for version, text in printed.items() if telling else ():
        has_wanted, has_unwanted = (any(_has(text, one) for one in some) for some in (wanted, unwanted))
        rows = [_has(text, one) for one in unwanted if one.is_row]
        if any(rows) and not all(rows):
            continue
        if not (has_wanted or has_unwanted) and any(key not in text for key in _list_keys(parts)):
            continue
        if has_wanted and has_unwanted:
            return {}
        if has_unwanted or (not unwanted and not has_wanted):
            marks[version] = True
        elif has_wanted or not wanted:
            marks[version] = False
    return marks if len(set(marks.values())) == 2 else {}


def _list_keys(parts: Sequence[Part]) -> set[str]:
    """Return the attributes of which the report gives a wrong and a right value."""
    keys: dict[bool, set[str]] = {True: set(), False: set()}
    for one in parts:
        keys[one.is_wanted] |= set(_KEY.findall(one.text))
    return keys[True] & keys[False]


_KEY = re.compile(r"([A-Za-z_]\w{3,80}) = ")


def _judge_alike(parts: Sequence[Part], printed: Mapping[str, str]) -> dict[str, bool]:
    """Return whether all builds behave as reported, or all as expected, if no part divides them.

    All builds print a long part of one side, and no part of the other side, which has at least one.
    """
    sides = {wanted: [one for one in parts if one.is_wanted is wanted] for wanted in (True, False)}
    for wanted, fewest in ((True, 2), (False, MIN_FRAGMENT_WORDS)):
        long = [one for one in sides[wanted] if len(re.findall(r"\w+", one.text)) >= fewest]
        shown = any(all(_has(text, one) for text in printed.values()) for one in long)
        other = any(_has(text, one) for one in sides[not wanted] for text in printed.values())
        if shown and sides[not wanted] and not other:
            return dict.fromkeys(printed, not wanted)
    return {}


def _judge_by_input(parts: Sequence[Part], printed: Mapping[str, str], posted: Sequence[str]) -> dict[str, bool]:
    """Return whether all builds behave as expected, by the parts that the pass makes of the posted program.

    Each build prints all wanted parts and no unwanted one, and has made or removed at least one of them. A wanted
    part of the posted program shows nothing, and neither does an unwanted part that it lacks.
    """
    given = _flatten("\n".join(posted))
    told = [one for one in parts if not one.is_row]
    made = [one for one in told if one.is_wanted is not _has(given, one) and len(re.findall(r"\w+", one.text)) > 1]
    as_asked = all(_has(text, one) is one.is_wanted for text in printed.values() for one in parts)
    return dict.fromkeys(printed, False) if posted and made and as_asked else {}


# ---------------------------------------------------------------------------------------------- reading


def read_parts(claim: Claim) -> tuple[Part, ...]:
    """Return the parts of a printed program that a report mentions, each as wanted or as unwanted.

    A part that is both is left out.
    """
    found = [*_read_sentences(claim.told), *_read_rows(claim.actual, is_wanted=False)]
    found += _read_rows(claim.expected, is_wanted=True)
    found += _read_pair(claim.actual, claim.expected)
    found += _read_names(claim.actual, is_wanted=False)
    found += _read_names(claim.expected, is_wanted=True)
    both = {one.text for one in found if one.is_wanted} & {one.text for one in found if not one.is_wanted}
    return tuple(dict.fromkeys(one for one in found if one.text not in both))[:MAX_PARTS]


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d`(\"])|\n+")
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_WISHES = re.compile(
    r"\b(?:expect\w*|should|ought|want\w*|would (?:be|have|like|get|see)|['’]d (?:like|expect)|ideally|supposed"
    r"|must be|(?:right|correct) (?:one|output|result|program|ir)|instead(?! of))\b",
    re.I,
)
_SHOWS = re.compile(
    r"\b(?:still|keeps?|kept|surviv\w+|remain\w*|stays?|left|leaves|output (?:has|is|contains|shows)|prints?"
    r"|produces?|emits?|gets?|got|ends? up|becomes?|turn(?:s|ed) into|folded (?:in)?to|there (?:is|are)|uses?"
    r"|has the same)\b",
    re.I,
)
_OF_ANOTHER = re.compile(r"\W*(?:without|if|when(?:ever)?|by contrast|in contrast)\b", re.I)
"""The beginning of a sentence about another program or another call."""
_NEGATED = re.compile(
    r"(?:\b(?:no|not|without|never|lacks?|lacking|missing|loses?|lost|drops?|dropped|gone|forgets?|instead of"
    r"|rather than|nor|neither|any)\b|n['’]t\b)[\s\w/-]{0,30}$",
    re.I,
)


_CLAUSE = re.compile(r"[,;:]\s|\s(?:but|although|though|while|whereas|yet|and)\s", re.I)


def _read_sentences(told: str) -> Iterator[Part]:
    """Yield the code spans of clauses about what is printed, or about what should be printed."""
    for clause, is_wanted in list_clauses(told):
        if is_wanted is not None:
            yield from _read_spans(clause, is_wanted=is_wanted)


def list_clauses(told: str) -> Iterator[tuple[str, bool | None]]:
    """Yield the clauses of a text: True for what should be printed, False for what is printed, None for others.

    A clause without words of either side continues the clause before it.
    """
    for sentence in _SENTENCE.split(told[:20_000]):
        plain = _SPAN.sub(lambda span: "`" * len(span[0]), sentence)  # no clause begins inside a code span
        ends = [*(found.start() for found in _CLAUSE.finditer(plain)), len(sentence)]
        is_wanted: bool | None = None
        for begin, end in zip([0, *ends], ends, strict=False):
            words, clause = plain[begin:end], sentence[begin:end]
            if _WISHES.search(words):
                is_wanted = True
            elif _SHOWS.search(words):
                is_wanted = None if _OF_ANOTHER.match(plain) else False
            yield clause, is_wanted


def _read_spans(clause: str, *, is_wanted: bool) -> Iterator[Part]:
    begin = 0
    for span in _SPAN.finditer(clause):
        negated = _NEGATED.search(clause[begin : span.start()]) is not None
        begin = span.end()
        for piece in GAP.split(span[1]):
            text = _normalize(piece).rstrip(" ,(")
            if len(text) >= MIN_PART_CHARS:
                yield Part(text, is_wanted=is_wanted is not negated)


def _read_rows(quoted: str, *, is_wanted: bool) -> Iterator[Part]:
    """Yield the rows of quoted output. For a row with "...", yield its parts."""
    for row in quoted.splitlines()[:MAX_PARTS]:
        for piece in GAP.split(row):
            text = _normalize(piece).strip(" ,:")
            if len(re.findall(r"\w+", text)) >= MIN_FRAGMENT_WORDS or (is_wanted and len(text) >= MIN_PART_CHARS):
                yield Part(text, is_wanted=is_wanted, is_row=True)


def _read_pair(actual: str, expected: str) -> Iterator[Part]:
    """Yield a short wrong value if the right one has the same form: ``[1, 1]`` beside ``[16, 16]``.

    Alone, a short value stands in many programs.
    """
    wrong, right = (_normalize(text) for text in (actual, expected))
    is_row = "\n" not in actual.strip() and len(wrong) >= MIN_PART_CHARS
    if is_row and wrong != right and _mask(wrong) == _mask(right):
        yield Part(wrong, is_wanted=False, is_row=True)


def _mask(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _read_names(quoted: str, *, is_wanted: bool) -> Iterator[Part]:
    """Yield the names of the operations of a quoted program with gaps: the output contains no such row."""
    if not GAP.search(quoted):
        return
    for name in dict.fromkeys(name for name, *_ in read_operations(quoted) if "." in name):
        yield Part(name, is_wanted=is_wanted, is_row=True, is_name=True)


_NAMES = re.compile(r"%[\w$.#-]+")
_ALIASES = re.compile(r"(#[a-z_]+?)\d+\b")
_NOTATION = re.compile(r"[\"']|\bdtype=|\bcls\.")
"""Characters that people leave out. TVMScript also puts quotes around a symbolic extent of an argument."""


def _normalize(text: str) -> str:
    """Return a text with one name for all values and aliases, because each build numbers them differently."""
    return " ".join(_ALIASES.sub(r"\1", _NAMES.sub("%", text)).split())


_BRACKETS = re.compile(r"[<>{}\s]+")
"""The brackets of attributes: ``{…}``, ``<…>`` or ``<{…}>``, depending on the release."""


def _flatten(text: str) -> str:
    """Return a printed program, or a part, in the form in which the two are compared."""
    return _BRACKETS.sub(" ", _NOTATION.sub("", _normalize(text)))


def _has(printed: str, part: Part) -> bool:
    """True if the program contains the part, as whole words. ``vector.*`` is any name with that beginning."""
    named = _flatten(part.text).strip()
    text = named.removesuffix("*")
    begin = r"(?<![\w.])" if text[:1].isalnum() else ""
    end = r"(?!\w)" if text == named and text[-1:].isalnum() else ""
    return re.search(f"{begin}{re.escape(text)}{end}", printed) is not None
