"""What was reported beside what was seen, and the output of the runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import assert_never

from bot.report.matrix import MARK, by_version, said
from bot.report.quote import clean, code, cut_middle, fence, one_line
from bot.report.sections.shape import DETAILS, Detail
from bot.verdict.verdict import Report
from runners.core.conditions import describe_conditions
from runners.core.protocol import (
    Answer,
    Claim,
    Ended,
    Exited,
    NotRun,
    Observation,
    OutOfMemory,
    Signalled,
    Signature,
    TimedOut,
)


def compared(report: Report, detail: Detail = DETAILS[0]) -> str:
    """The reported failure beside each distinct one that was seen, as one fence."""
    ran = [seen for seen in report.observations if not isinstance(seen.ended, NotRun)]
    if not ran:
        return ""
    reported = _said(report.extraction.claim)
    lines = [f"reported: {reported}" if reported else "reported: no message that runs could be compared with"]
    lines += _failures(ran, detail.entries)
    return fence("\n".join(lines))


def _said(claim: Claim) -> str:
    if claim.signature:
        return described(claim.signature)
    pairs = (("prints", claim.actual), ("instead of", claim.expected))
    return ", ".join(f"{word} {_line(text)}" for word, text in pairs if text.strip())


def described(signature: Signature, limit: int = 300) -> str:
    """``Type: message, in frame ← frame`` on one line; strangers' words, unquoted."""
    frames = " ← ".join(signature.frames[:3])
    parts = (_line(signature.type, 120), _line(signature.message, limit))
    return ": ".join(filter(None, parts)) + (f", in {_line(frames, limit)}" if frames else "")


def _line(text: str, limit: int = 300) -> str:
    return one_line(clean(text[: 4 * limit]), limit)


def _failures(ran: Sequence[Observation], limit: int) -> list[str]:
    """One line per distinct failure: the reported one first, passes left out. What may be long, and then scrolls out
    of sight, comes last."""
    groups: dict[tuple[Answer, str], list[str]] = {}
    for seen in sorted((one for one in ran if one.answer is not Answer.GOOD), key=lambda one: one.answer):
        what = described(seen.signature) if seen.signature else said(seen)
        why = f" ({_line(seen.why)})" if seen.why and seen.answer is Answer.SKIP else ""
        groups.setdefault((seen.answer, f"{what}{why}"), []).append(seen.version)
    names = {Answer.BAD: "matches on", Answer.SKIP: "differs on", Answer.GOOD: ""}
    return [f"{names[answer]} {', '.join(by_version(on))}: {what}" for (answer, what), on in groups.items()][:limit]


def outputs(observations: Sequence[Observation], detail: Detail) -> str:
    """The end of each distinct output, the reported failure first; what repeats is named once."""
    groups: dict[str, list[Observation]] = {}
    for seen in sorted(observations, key=lambda one: one.answer):
        if seen.excerpt.strip():
            groups.setdefault(seen.excerpt, []).append(seen)
    if not detail.excerpt:
        return ""
    shown = list(groups.items())[: detail.entries]
    return "\n\n".join(f"{_runs(seen)}\n\n{fence(cut_middle(text, detail.excerpt))}" for text, seen in shown)


def _runs(seen: Sequence[Observation]) -> str:
    first = seen[0]
    also = by_version(one.version for one in seen[1:] if one.version != first.version)
    under = describe_conditions(first.varied)
    where = f"{code(first.version)} on {code(first.device)}, run {first.attempt}" + (
        f" with {under}" if under else ""
    )
    more = f" (the same on {', '.join(map(code, also[:8]))})" if also else ""
    return f"{MARK[first.answer]} {where}: {ended(first.ended)}, {first.seconds:.1f} s{more}"


def ended(how: Ended, quote: Callable[[str], str] = code) -> str:
    """How a run ended, in words; ``quote`` takes the words that are not ours."""
    match how:
        case Exited(code=number):
            return f"exit code {number}"
        case Signalled(code=number):
            return f"signal {number} ({signal_name(number)})"
        case TimedOut(where=where, clock=clock):
            limit = "time limit" if clock == "wall" else "limit of processor time"
            return f"stopped at the {limit}" + (f" in {quote(where)}" if where else "")
        case OutOfMemory(limit_bytes=size):
            return f"out of memory at {size / 1024**3:.1f} GiB" if size else "out of memory"
        case NotRun(why=why):
            return f"not run: {quote(why)}" if why else "not run"
        case _:
            assert_never(how)


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; the number's own word for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
