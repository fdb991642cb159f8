"""The reported failure beside the observed failures, and the output of the runs."""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Callable, Sequence
from itertools import product
from typing import assert_never

from bot.report.matrix import describe_run, mark_run, sort_versions
from bot.report.quote import clean_text, cut_around, cut_middle, join_lines, quote_block, quote_code
from bot.report.sections.shape import DETAILS, Detail
from bot.report.stacks import name_frame, shorten_stack
from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.forks import label_forks, list_forks
from bot.verdict.verdict import Report, VerdictKind
from runners.core.conditions import describe_conditions
from runners.core.failure.normalize import name_type
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.printed.programs.program import MIN_OPERATIONS, read_operations
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
    Reason,
    Signalled,
    Signature,
    TimedOut,
    Variant,
)


def render_comparison(report: Report, detail: Detail = DETAILS[0]) -> str:
    """Return the reported failure and each distinct observed failure, as one code block."""
    ran = [seen for seen in report.observations if not isinstance(seen.ended, NotRun)]
    if not ran:
        return ""
    reported = _describe_claim(report.extraction.claim)
    lines = [f"reported: {reported}" if reported else "reported: no message to compare the runs with"]
    lines += _list_failures(ran, detail.entries)
    return quote_block("\n".join(lines))


def render_failure(report: Report) -> str:
    """Return the observed failure in one line, on the newest release that shows it; empty without a failure.

    If no run fails as reported, the reported failure is shown beside it. Empty too if another fact decides: the fault
    of the testcase, or the missing device.
    """
    if report.verdict.kind is VerdictKind.NOT_REPRODUCED:
        return _describe_expected(report)
    if report.verdict.kind is VerdictKind.INCONCLUSIVE and (changed := _describe_changed_row(report)):
        return changed
    ran = [seen for seen in report.observations if seen.variant is not Variant.CONTROL and seen.signature is not None]
    places = {version: i for i, version in enumerate(sort_versions(seen.version for seen in ran))}
    ran.sort(key=lambda seen: places[seen.version])
    bad = [seen for seen in ran if seen.answer is Answer.BAD]
    if report.verdict.kind in (VerdictKind.INVALID_REPRO, VerdictKind.UNTESTABLE) or not ran:
        return ""
    if bad:
        return _describe_observed(bad[-1], report.extraction.claim, _list_clean_lines(report))
    other = [seen for seen in ran if seen.outcome is Outcome.OTHER_FAILURE]
    if not other or report.verdict.kind is not VerdictKind.DIFFERENT_FAILURE:
        return ""
    reported = _describe_claim(report.extraction.claim)
    beside = f"; reported: {quote_code(reported, 84)}" if reported else ""
    return f"{_describe_observed(other[-1], report.extraction.claim)}{beside}"


def _list_clean_lines(report: Report) -> tuple[str, ...]:
    """Return the rows that clean runs print."""
    clean = (seen for seen in report.observations if seen.answer is Answer.GOOD)
    return tuple(line.strip() for seen in clean for line in seen.excerpt.splitlines() if line.strip())


def _describe_observed(seen: Observation, claim: Claim, clean: Sequence[str] = ()) -> str:
    if seen.signature is None:
        return ""
    if seen.reason is Reason.OTHER_REFERENCE:
        return f"On {quote_code(seen.version)}, it prints another result than its own reference"
    if seen.signature.type == OUTPUT:
        printed, expected = _pair_lines(seen.signature.message, claim)
        wanted = f"; the report expects {quote_code(cut_around(expected, printed, 84))}" if expected else ""
        other = expected or max(clean, key=lambda line: _count_common(line, printed), default="")
        shown = cut_around(printed, other, 84 if expected else 168)
        return f"On {quote_code(seen.version)}, it prints {quote_code(shown)}{wanted}"
    return f"Failure on {quote_code(seen.version)}: {quote_code(describe_signature(seen.signature, 160), 340)}"


def _describe_expected(report: Report) -> str:
    """Return the expected line that the reported release prints, or the newest one, beside the reported line."""
    claim, plan = report.extraction.claim, report.plan
    expected = [line for line in map(str.strip, claim.expected.splitlines()) if line]
    clean = [seen for seen in report.observations if seen.answer is Answer.GOOD and seen.variant is Variant.ORIGINAL]
    if not expected or not clean or plan is None:
        return ""
    seen = next((one for one in clean if one.version == plan.reported), clean[-1])
    printed = {line.strip() for line in seen.excerpt.splitlines()}
    actual = [line for line in map(str.strip, claim.actual.splitlines()) if line]
    right = next((line for line in expected if line in printed and line not in actual), None)
    if right is None:
        return ""
    wrong = [line for line in actual if line not in printed]
    reported = max(wrong, key=lambda line: _count_common(line, right)) if wrong else ""
    beside = f"; the report shows {quote_code(reported, 84)}" if reported else ""
    return f"On {quote_code(seen.version)}, it prints {quote_code(right, 84)}, as the report expects{beside}"


def _describe_changed_row(report: Report) -> str:
    """Return a row that differs between the newest build and an older build, if no run could be judged.

    A reader who knows the compiler can judge this row. Of the rows with names of the report, the row with most names
    is shown. Computed values are left out, because they may differ from run to run.
    """
    own = [seen for seen in report.observations if seen.variant is Variant.ORIGINAL]
    judged = any(find_behaviour(seen) is not Behaviour.UNJUDGED for seen in own)
    if judged or report.extraction.claim.kind is not ClaimKind.WRONG_RESULT or report.plan is None:
        return ""
    printed = {
        seen.version: seen.excerpt.splitlines()
        for seen in own
        if len(read_operations(seen.excerpt)) >= MIN_OPERATIONS
    }
    versions = [version for version in report.plan.order if version in printed]
    newest = printed[versions[-1]] if versions else []
    older = next((version for version in reversed(versions) if printed[version] != newest), None)
    if older is None:
        return ""
    matched = difflib.SequenceMatcher(None, printed[older][:MAX_ROWS], newest[:MAX_ROWS], autojunk=False)
    rows = [
        (printed[older][i].strip(), newest[j].strip())
        for kind, start, end, start_now, end_now in matched.get_opcodes()
        if kind == "replace"
        for i, j in zip(range(start, end), range(start_now, end_now), strict=False)
    ]
    names = set(_NAME.findall(report.extraction.claim.told))
    telling = [pair for pair in rows if names.intersection(_NAME.findall(" ".join(pair)))]
    if not telling:
        return ""
    before, now = max(telling, key=lambda pair: len(names.intersection(_NAME.findall(" ".join(pair)))))
    return (
        f"On {quote_code(older)}, it prints {quote_code(cut_around(before, now, 120))};"
        f" on {quote_code(versions[-1])}, {quote_code(cut_around(now, before, 120))}"
    )


MAX_ROWS = 400
_NAME = re.compile(r"[A-Za-z]\w*(?:[._]\w+)+")
"""A name in code: it has a dot or an underscore."""


def _pair_lines(printed: str, claim: Claim) -> tuple[str, str]:
    """Return a printed line that the report calls wrong, and the line that the report expects instead.

    Both texts may have common lines, and lines without values. So the two lines are those with the longest common
    beginning. Without an expected line, all printed lines are shown from the wrong one on, because any of them may be
    the wrong one.
    """
    actual = [line for line in map(str.strip, claim.actual.splitlines()) if line]
    if printed not in actual:
        return printed, ""
    shown = actual[actual.index(printed) :]
    expected = [line for line in map(str.strip, claim.expected.splitlines()) if line and line not in actual]
    if not expected:
        return " ¦ ".join(shown), ""
    return max(product(shown, expected), key=lambda pair: _count_common(*pair))


def _count_common(one: str, other: str) -> int:
    """Return the length of the common beginning of two lines."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _describe_claim(claim: Claim) -> str:
    if claim.signature:
        return describe_signature(claim.signature)
    pairs = (("prints", claim.actual), ("instead of", claim.expected))
    return ", ".join(f"{word} {_clean_line(text)}" for word, text in pairs if text.strip())


def describe_signature(signature: Signature, limit: int = 300) -> str:
    """Return ``Type: message, in frame ← frame`` on one line, with foreign words unquoted."""
    frames = _join_frames(signature.frames[:3], limit)
    message = _clean_line(signature.message, limit).rstrip(":, ")  # a message often announces lines that follow it
    parts = (_clean_line(name_type(signature.type), 120), message)
    return ": ".join(filter(None, parts)) + (f", in {_clean_line(frames, limit)}" if frames else "")


def _join_frames(frames: Sequence[str], limit: int) -> str:
    """Return the top frames that fit: a frame that is cut names nothing."""
    names = [name_frame(frame) for frame in frames]
    fitting = [" ← ".join(names[:n]) for n in range(len(names), 0, -1)]
    return next((text for text in fitting if len(text) <= limit), names[0] if names else "")


def _clean_line(text: str, limit: int = 300) -> str:
    return join_lines(clean_text(text[: 4 * limit]), limit)


def _list_failures(ran: Sequence[Observation], limit: int) -> list[str]:
    """Return one line per distinct failure, the reported one first. The part that may be long ends the line."""
    groups: dict[tuple[Answer, str], list[str]] = {}
    for seen in sorted((one for one in ran if one.answer is not Answer.GOOD), key=lambda one: one.answer):
        failure = describe_signature(seen.signature) if seen.signature else describe_run(seen)
        why = f" ({_clean_line(seen.why)})" if seen.why and seen.answer is Answer.SKIP else ""
        groups.setdefault((seen.answer, f"{failure}{why}"), []).append(seen.version)
    forks = list_forks(ran)
    names = {Answer.BAD: "matches on", Answer.SKIP: "differs on", Answer.GOOD: ""}
    return [
        f"{names[answer]} {label_forks(', '.join(sort_versions(on)), forks)}: {failure}"
        for (answer, failure), on in groups.items()
    ][:limit]


def render_outputs(observations: Sequence[Observation], detail: Detail) -> str:
    """Return the end of each distinct output, the reported failure first. Equal outputs are shown once."""
    groups: dict[tuple[str, ...], list[Observation]] = {}
    for seen in sorted(observations, key=lambda one: one.answer):
        if seen.excerpt.strip():
            known = next((groups[key] for key in _list_output_keys(seen) if key in groups), [])
            known.append(seen)
            groups |= dict.fromkeys(_list_output_keys(seen), known)
    if not detail.excerpt:
        return ""
    shown = list({id(runs): runs for runs in groups.values()}.values())[: detail.entries]
    limits = [detail.excerpt if i < MAX_WHOLE else detail.excerpt // 4 for i in range(len(shown))]
    return "\n\n".join(
        f"{_describe_runs(seen)}\n\n{quote_block(cut_middle(shorten_stack(seen[0].excerpt), limit))}"
        for seen, limit in zip(shown, limits, strict=True)
    )


MAX_WHOLE = 4
"""Outputs that are shown at length: a failure and a clean run are among them, and further ones mostly repeat them."""


_VARYING = re.compile(r"0x[0-9a-fA-F]{6,16}|\[\d\d:\d\d:\d\d\]")
"""Addresses and times, which differ between two runs that print the same."""


def _list_output_keys(seen: Observation) -> list[tuple[str, ...]]:
    """Return what two runs with the same output share: the text but for addresses and times, or a stack."""
    keys: list[tuple[str, ...]] = [(_VARYING.sub("", seen.excerpt),)]
    found = seen.signature
    if found is not None and len(found.frames) > 1:
        keys.append((found.type, found.message, *found.frames[:MAX_EQUAL]))
    return keys


MAX_EQUAL = 2
"""Top frames by which two stacks are the same: below, the calls of one compiler differ from build to build."""


def _describe_runs(seen: Sequence[Observation]) -> str:
    first = seen[0]
    also = sort_versions(one.version for one in seen[1:] if one.version != first.version)
    forks = list_forks(seen)
    under = describe_conditions(first.varied)
    where = f"{quote_code(first.version)} on {quote_code(first.device)}, run {first.attempt}" + (
        f" with {under}" if under else ""
    )
    what = "stack " if first.signature is not None and len(first.signature.frames) > 1 else ""
    more = f" (the same {what}on {', '.join(map(quote_code, also[:8]))})" if also else ""
    return label_forks(
        f"{mark_run(first)} {where}: {describe_ending(first.ended)}, {first.seconds:.1f} s{more}", forks
    )


def describe_ending(how: Ended, quote: Callable[[str], str] = quote_code) -> str:
    """Return how a run ended, in words. ``quote`` escapes a stranger's words."""
    match how:
        case Exited(code=number):
            return f"exit code {number}"
        case Signalled(code=number):
            return f"signal {number} ({get_signal_name(number)})"
        case TimedOut(where=where, clock=clock):
            limit = "time limit" if clock == "wall" else "limit of processor time"
            return f"stopped at the {limit}" + (f" in {quote(where)}" if where else "")
        case OutOfMemory(limit_bytes=size):
            return f"out of memory at {size / 1024**3:.1f} GiB" if size else "out of memory"
        case NotRun(why=why):
            return f"not run: {quote(why)}" if why else "not run"
        case _:
            assert_never(how)


def get_signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11, and ``unnamed`` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
