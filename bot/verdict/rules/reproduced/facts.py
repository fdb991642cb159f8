"""Say what runs with the reported failure show, and what the report says about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_newest, name_releases
from bot.verdict.verdict import VerdictKind
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.oracle import CHECKS, OUTPUT
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Answer, Claim, Variant


def names_change(evidence: Evidence) -> bool:
    """True if each clean release is older than all failing ones, and the report may name a clean one for comparison.

    It may if it also names a failing release, or if the newest release fails in the reported words: "with 3.2.0: 8,
    with a newer one: nan" names only the clean release.
    """
    plan = evidence.plan
    place = plan.order.index
    good, bad = evidence.find_versions(Answer.GOOD), evidence.find_versions(Answer.BAD)
    named = any(version in plan.claim.versions for version in bad)
    lasts = bad[-1] == plan.order[-1] and not is_vague(plan.claim)
    return (named or lasts) and max(map(place, good)) < min(map(place, bad))


def list_grounds(evidence: Evidence, version: str, variant: Variant = Variant.ORIGINAL) -> tuple[Ground, ...]:
    """Return the grounds of a reproduced failure: its runs on ``version``, and how much the report describes."""
    runs = evidence.count_runs(version, variant)
    grounds = [Ground.FAILS] if runs > 1 else [Ground.FAILS, Ground.SEEN_ONCE]
    if is_vague(evidence.plan.claim):
        grounds.append(Ground.KIND_ONLY)
    elif _has_only_signal(evidence, version):
        grounds.append(Ground.SIGNAL_ONLY)
    if _is_clean_at_home(evidence) and not names_change(evidence):
        grounds.append(Ground.OWN_BUILD_CLEAN)
    return tuple(grounds)


def _is_clean_at_home(evidence: Evidence) -> bool:
    reported = evidence.plan.reported
    clean = reported is not None and evidence.combine_answers().get(reported) is Answer.GOOD
    return clean and evidence.has_reported_release() and evidence.plan.claim.kind not in QUANTITIES


def quotes_failure(claim: Claim) -> bool:
    """True if the report quotes the failure of its program: an exception or a crash with its message or stack."""
    quoted = claim.signature
    return quoted is not None and quoted.type not in (OUTPUT, *CHECKS) and bool(quoted.message or quoted.frames)


def is_vague(claim: Claim) -> bool:
    """True if the report has no message, frames or output: only a kind of failure to match."""
    if claim.kind in QUANTITIES:
        return False  # the runs of the releases are compared with each other
    specific = claim.signature is not None and bool(claim.signature.message or claim.signature.frames)
    return not specific and not claim.actual


def _has_only_signal(evidence: Evidence, version: str) -> bool:
    """True if every matching run crashed without stack and message, so that any other crash would have matched."""
    bad = [seen for seen in evidence.list_originals() if seen.version == version and seen.answer is Answer.BAD]
    signatures = [seen.signature for seen in bad if seen.signature is not None]
    crashed = [one for one in signatures if one.type in NATIVE]
    return bool(bad) and len(crashed) == len(bad) and not any(one.frames or one.message for one in crashed)


def choose_kind(evidence: Evidence, good: Sequence[str]) -> VerdictKind:
    """Return the kind of verdict on a failure of the newest release beside clean older builds.

    A fork is weak evidence about a change between releases: if all clean builds are forks, the failure is only
    confirmed.
    """
    forks = {seen.version for seen in evidence.observations if seen.fork}
    return VerdictKind.CONFIRMED if forks.issuperset(good) else VerdictKind.REGRESSION


def describe_clean(evidence: Evidence, first_good: str) -> str:
    order, good = evidence.plan.order, evidence.find_versions(Answer.GOOD)
    since = [version for version in good if order.index(version) >= order.index(first_good)]
    if len(since) == 1:
        newest = f", {name_newest(evidence)}," if since[0] == order[-1] else ""
        return f"{since[0]}{newest} runs cleanly"
    newest = f", {name_newest(evidence)} included" if since[-1] == order[-1] else ""
    return f"{name_releases(evidence, since)} run cleanly{newest}"
