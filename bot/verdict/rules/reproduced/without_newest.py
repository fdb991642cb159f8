"""Judge a failure on which the newest release gives no answer as posted. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import find_last_reason, name_newest
from bot.verdict.rules.reproduced.on_forks import judge_on_forks
from bot.verdict.rules.reworded import (
    OTHER_END,
    find_diagnostic,
    find_other_signal,
    find_ported_end,
    find_refusal,
    find_wished_error,
    is_reworded,
)
from bot.verdict.rules.untestable import is_only_for_forks
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.protocol import Answer, ClaimKind, Outcome, Variant


def judge_without_newest(evidence: Evidence, newest_bad: str, grounds: tuple[Ground, ...]) -> Verdict:
    """Return the verdict of the first question that has one, if the newest release is neither good nor bad."""
    silent = Silent(evidence, newest_bad, grounds)
    answers = (ask(silent) for ask in _QUESTIONS)
    answer = next((one for one in answers if one is not None), None)
    if answer is not None:
        return answer
    why = find_last_reason(evidence, silent.newest)
    return silent.conclude(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: {newest_bad} fails as reported, but {silent.named} gives no answer.",
        f"on {silent.newest}: {why}" if why else "",
    )


@dataclass(frozen=True)
class Silent:
    """The evidence of a failure whose newest release is neither good nor bad."""

    evidence: Evidence
    bad: str
    """The newest release that fails as reported."""
    grounds: tuple[Ground, ...]

    @property
    def newest(self) -> str:
        return self.evidence.plan.order[-1]

    @property
    def named(self) -> str:
        return f"{self.newest}, {name_newest(self.evidence)},"

    @property
    def ported(self) -> Answer | None:
        return self.evidence.combine_answers(Variant.PORTED).get(self.newest)

    def conclude(self, kind: VerdictKind, grounds: tuple[Ground, ...], headline: str, *reasons: str) -> Verdict:
        used = self.evidence.find_indices(self.bad, self.newest)
        ported = self.evidence.find_indices(self.newest, variants=(Variant.PORTED,))
        return make_verdict(kind, grounds, headline, reasons, used + ported)


# ---------------------------------------------------------------------------------------------- questions


def _fails_ported(silent: Silent) -> Verdict | None:
    if silent.ported is not Answer.BAD:
        return None
    return silent.conclude(
        VerdictKind.CONFIRMED,
        (*silent.grounds, Ground.PORTED),
        f"It fails as reported on {silent.bad} as posted and, ported to its API, on {silent.newest},"
        f" {name_newest(silent.evidence)}.",
    )


def _runs_ported(silent: Silent) -> Verdict | None:
    if silent.ported is not Answer.GOOD:
        return None
    return silent.conclude(
        VerdictKind.FIXED,
        (*silent.grounds, Ground.PORTED),
        f"Already fixed: {silent.bad} fails as reported; ported to {silent.newest}, it does not fail there.",
    )


def _fails_in_other_words(silent: Silent) -> Verdict | None:
    if not is_reworded(silent.evidence, silent.bad, silent.newest):
        return None
    return silent.conclude(
        VerdictKind.CONFIRMED,
        (*silent.grounds, Ground.REWORDED),
        f"{silent.bad} fails as reported; {silent.named} fails at the same place with another message.",
        "the type of the error and its place are the same, and only the message differs from the report",
    )


def _crashes_by_another_signal(silent: Silent) -> Verdict | None:
    signal = find_other_signal(silent.evidence, silent.newest)
    if not signal:
        return None
    return silent.conclude(
        VerdictKind.CONFIRMED,
        (*silent.grounds, Ground.REWORDED),
        f"{silent.bad} crashes as reported; the testcase {_name_text(silent.evidence, silent.newest)} crashes in the"
        f" same statement on {silent.named} with {signal}.",
        "a broken access to memory ends by one signal or another, as the compiler of the build chose",
    )


def _diagnoses_crash(silent: Silent) -> Verdict | None:
    crashed = silent.evidence.plan.claim.kind is ClaimKind.CRASH
    said = find_diagnostic(silent.evidence, silent.newest) if crashed else None
    if not said:
        return None
    return silent.conclude(
        VerdictKind.FIXED,
        (*silent.grounds, Ground.REJECTED),
        f"Already fixed: {silent.bad} crashes as reported; {silent.named} rejects the program with a diagnostic"
        f" instead: {said}.",
    )


def _rejects_as_asked(silent: Silent) -> Verdict | None:
    error = find_wished_error(silent.evidence, silent.newest)
    if not error:
        return None
    return silent.conclude(
        VerdictKind.FIXED,
        (*silent.grounds, Ground.REJECTED),
        f"Already fixed: {silent.bad} fails as reported; {silent.named} rejects the program instead, as the report"
        f" asks: {error}.",
    )


def _rejects(silent: Silent) -> Verdict | None:
    refusal = find_refusal(silent.evidence, silent.newest)
    if not refusal:
        return None
    return silent.conclude(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: {silent.bad} fails as reported; {silent.named} rejects it instead: {refusal}.",
        "to decide: whether this program should be rejected; if so, the failure is fixed",
    )


def _ends_otherwise_ported(silent: Silent) -> Verdict | None:
    ended = find_ported_end(silent.evidence, silent.newest)
    if not ended:
        return None
    return silent.conclude(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER, Ground.PORTED),
        f"Inconclusive: {silent.bad} fails as reported; ported to {silent.named} it ends with another error:"
        f" {ended}.",
        OTHER_END,
    )


def _is_about_a_fork(silent: Silent) -> Verdict | None:
    return judge_on_forks(silent.evidence, Variant.ORIGINAL) if is_only_for_forks(silent.evidence) else None


_QUESTIONS = (
    _fails_ported,
    _runs_ported,
    _fails_in_other_words,
    _crashes_by_another_signal,
    _diagnoses_crash,
    _rejects_as_asked,
    _rejects,
    _ends_otherwise_ported,
    _is_about_a_fork,
)
"""In order: ported runs, then failures that are the reported one in another form, then refusals."""


def _name_text(evidence: Evidence, version: str) -> str:
    posted = (s for s in evidence.list_originals() if s.version == version and s.outcome is not Outcome.INCOMPATIBLE)
    return "as posted" if any(posted) else "ported to its API"
