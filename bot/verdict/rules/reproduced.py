"""Judge runs with the reported failure: on which releases, and whether it was introduced or fixed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import (
    are_all,
    find_last_reason,
    list_skipped,
    name_all,
    name_newest,
    name_releases,
    quote_span,
)
from bot.verdict.rules.reworded import (
    OTHER_END,
    find_diagnostic,
    find_other_signal,
    find_ported_end,
    find_refusal,
    find_wished_error,
    is_reworded,
)
from bot.verdict.rules.untestable import describe_moved, is_only_for_forks, name_build
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.bisection import releases as search
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.oracle import CHECKS, OUTPUT
from runners.core.failure.parse import NATIVE
from runners.core.findings.kinds import describe_other_version
from runners.core.findings.record import read_evidence
from runners.core.findings.types import PackageEvidence
from runners.core.protocol import Answer, Claim, ClaimKind, Outcome, Variant


def judge_contradicted(evidence: Evidence) -> Verdict | None:
    """Return ``inconclusive`` if the reported release runs cleanly while others fail; None otherwise.

    Then the matched failure is not the reported one. This occurs if a report quotes outputs of two releases, and the
    extraction mistakes the right output for the wrong one. An exception or a crash with its message is not a right
    output: then the report names a clean release, or its author had another build.

    A report may name a clean release for comparison. This is not a contradiction if each clean release is older than
    the failing ones (`_names_change`).

    A build that represents the reported one contradicts only a report without message, stack and output, which any
    failure of the same kind matches. A clean build must be between it and the failing ones: a neighbour may have the
    fix that the reporter's own build lacks.
    """
    plan = evidence.plan
    bad = evidence.find_versions(Answer.BAD)
    named = evidence.has_reported_release()
    if plan.reported is None or not bad or not (named or _is_long_gone(evidence, plan.reported, bad)):
        return None
    if evidence.combine_answers().get(plan.reported) is not Answer.GOOD:
        return None
    if plan.claim.kind in QUANTITIES or _names_change(evidence):
        return None  # "2 s with A, 25 s with B" names the good release as well
    sides = {plan.order.index(version) < plan.order.index(plan.reported) for version in bad}
    if _quotes_failure(plan.claim) and len(sides) == 1:
        return None
    if not named:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: {plan.reported}, the build closest to the report, runs cleanly; a failure of the same"
            f" kind occurs on {name_releases(evidence, bad)}, and the report quotes no message to compare with.",
            ("to decide: the message or the stack of the reported failure",),
            evidence.find_indices(plan.reported, *bad),
        )
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: {plan.reported}, which the report is about, runs cleanly; the described failure occurs on"
        f" {name_releases(evidence, bad)}.",
        ("to decide: which of the quoted outputs is wrong, and on which release",),
        evidence.find_indices(plan.reported, *bad),
    )


def _names_change(evidence: Evidence) -> bool:
    """True if each clean release is older than all failing ones, and the report may name a clean one for comparison.

    It may if it also names a failing release, or if the newest release fails in the reported words: "with 3.2.0: 8,
    with a newer one: nan" names only the clean release.
    """
    plan = evidence.plan
    place = plan.order.index
    good, bad = evidence.find_versions(Answer.GOOD), evidence.find_versions(Answer.BAD)
    named = any(version in plan.claim.versions for version in bad)
    lasts = bad[-1] == plan.order[-1] and not _is_vague(plan.claim)
    return (named or lasts) and max(map(place, good)) < min(map(place, bad))


def _is_long_gone(evidence: Evidence, reported: str, bad: Sequence[str]) -> bool:
    """True if the report describes only a kind of failure, and a clean build is between it and the failing builds."""
    place = evidence.plan.order.index
    good = evidence.find_versions(Answer.GOOD)
    return _is_vague(evidence.plan.claim) and any(max(map(place, bad)) < place(one) < place(reported) for one in good)


def judge_reproduced(evidence: Evidence) -> Verdict | None:
    """Return the verdict if the posted testcase fails: since a release, until a release, or on all that ran it."""
    bad = evidence.find_versions(Answer.BAD)
    if not bad:
        return None
    answers, order = evidence.combine_answers(), evidence.plan.order
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    grounds = list_grounds(evidence, bad[-1])
    went, came = search.find_fix(order, answers), search.find_introduction(order, answers)
    if went is not None and went.older is not None and went.newer is not None:
        return _judge_fixed(evidence, went.older, went.newer, grounds)
    if spoken[-1] != order[-1]:
        return _judge_without_newest(evidence, spoken[-1], grounds)
    used = evidence.find_indices(*bad, *((came.older,) if came and came.older else ()))
    if came is not None and came.older is not None:
        return make_verdict(
            _choose_kind(evidence, evidence.find_versions(Answer.GOOD)),
            grounds,
            _describe_regression(evidence, bad, came.older),
            list_skipped(came),
            used,
        )
    return make_verdict(
        VerdictKind.CONFIRMED,
        grounds,
        _describe_everywhere(evidence, bad),
        (),
        used,
    )


def _describe_regression(evidence: Evidence, bad: Sequence[str], last_good: str) -> str:
    """Return the sentence on the releases since the newest change, and on earlier releases with the failure."""
    order = evidence.plan.order
    later = [version for version in bad if order.index(version) > order.index(last_good)]
    earlier = [version for version in bad if version not in later]
    verb = "fails" if len(later) == 1 else "fail"
    included = f", {name_newest(evidence)}," if len(later) == 1 else f", {name_newest(evidence)} included,"
    before = f" The failure occurs on {name_releases(evidence, earlier)} too." if earlier else ""
    return f"{last_good} runs cleanly; {name_releases(evidence, later)}{included} {verb} as reported.{before}"


def _describe_everywhere(evidence: Evidence, bad: Sequence[str]) -> str:
    """Return the sentence for a failure of every release, including the newest."""
    if len(bad) == 1:
        alone = "" if are_all(evidence, bad) else "; no release runs it cleanly"
        return f"{bad[0]}, {name_newest(evidence)}, fails as reported{alone}."
    rest = "" if are_all(evidence, bad) else " No release runs it cleanly."
    return f"It fails as reported on {name_all(evidence, bad)}, {name_newest(evidence)} included.{rest}"


def _judge_fixed(evidence: Evidence, last_bad: str, first_good: str, grounds: tuple[Ground, ...]) -> Verdict:
    newest = evidence.plan.order[-1]
    answers = evidence.combine_answers()
    ported_there = evidence.find_indices(newest, variants=(Variant.PORTED,))
    reasons = []
    anew = ""
    if answers.get(newest) is not Answer.GOOD:
        ported = evidence.combine_answers(Variant.PORTED).get(newest)
        if ported is Answer.BAD:
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: {first_good} runs it cleanly as posted, but ported to {newest} it fails there.",
                (),
                evidence.find_indices(last_bad, first_good) + ported_there,
            )
        if any(
            seen.version == newest and seen.outcome is Outcome.OTHER_FAILURE for seen in evidence.list_originals()
        ):
            anew = f" {newest}, {name_newest(evidence)}, fails in another way."
            if ported is not Answer.GOOD and (refusal := find_refusal(evidence, newest)):
                return make_verdict(
                    VerdictKind.INCONCLUSIVE,
                    (Ground.NO_ANSWER,),
                    f"Inconclusive: {last_bad} fails as reported, and {_describe_clean(evidence, first_good)};"
                    f" {newest}, {name_newest(evidence)}, rejects it instead: {refusal}.",
                    ("to decide: whether this program should be rejected; if so, the failure is fixed",),
                    evidence.find_indices(last_bad, first_good, newest),
                )
        if ported is Answer.GOOD:
            anew = f" {_name_port(evidence, newest)}, it runs cleanly on {newest}, {name_newest(evidence)}, too."
            reasons.append(f"{newest} does not run it as posted")
        elif not anew:
            reasons.append(f"{newest} cannot run it as posted")
        grounds = (*grounds, Ground.PORTED if ported is Answer.GOOD else Ground.NEWEST_SILENT)
    return make_verdict(
        VerdictKind.FIXED,
        grounds,
        f"Already fixed: {last_bad} fails as reported; {_describe_clean(evidence, first_good)}.{anew}",
        reasons,
        evidence.find_indices(last_bad, first_good) + (() if answers.get(newest) is Answer.GOOD else ported_there),
    )


def _name_port(evidence: Evidence, version: str) -> str:
    """Return the changes for the ported runs of a build, as the beginning of a sentence."""
    ported = [one for one in evidence.observations if one.variant is Variant.PORTED and one.version == version]
    return "In today's notation" if all(one.notation_only for one in ported) else "Ported to a newer API"


def _describe_clean(evidence: Evidence, first_good: str) -> str:
    order, good = evidence.plan.order, evidence.find_versions(Answer.GOOD)
    since = [version for version in good if order.index(version) >= order.index(first_good)]
    if len(since) == 1:
        newest = f", {name_newest(evidence)}," if since[0] == order[-1] else ""
        return f"{since[0]}{newest} runs cleanly"
    newest = f", {name_newest(evidence)} included" if since[-1] == order[-1] else ""
    return f"{name_releases(evidence, since)} run cleanly{newest}"


def _judge_without_newest(evidence: Evidence, newest_bad: str, grounds: tuple[Ground, ...]) -> Verdict:
    """Return the verdict if the newest release is neither good nor bad: a ported run may decide."""
    newest = evidence.plan.order[-1]
    used = evidence.find_indices(newest_bad, newest) + evidence.find_indices(newest, variants=(Variant.PORTED,))
    match evidence.combine_answers(Variant.PORTED).get(newest):
        case Answer.BAD:
            return make_verdict(
                VerdictKind.CONFIRMED,
                (*grounds, Ground.PORTED),
                f"It fails as reported on {newest_bad} as posted and, ported to its API, on {newest},"
                f" {name_newest(evidence)}.",
                (),
                used,
            )
        case Answer.GOOD:
            return make_verdict(
                VerdictKind.FIXED,
                (*grounds, Ground.PORTED),
                f"Already fixed: {newest_bad} fails as reported; ported to {newest}, it does not fail there.",
                (),
                used,
            )
        case _ if is_reworded(evidence, newest_bad, newest):
            return make_verdict(
                VerdictKind.CONFIRMED,
                (*grounds, Ground.REWORDED),
                f"{newest_bad} fails as reported; {newest}, {name_newest(evidence)}, fails at the same place"
                " with another message.",
                ("the type of the error and its place are the same, and only the message differs from the report",),
                used,
            )
        case _ if signal := find_other_signal(evidence, newest):
            return make_verdict(
                VerdictKind.CONFIRMED,
                (*grounds, Ground.REWORDED),
                f"{newest_bad} crashes as reported; the testcase {_name_text(evidence, newest)} crashes in the same"
                f" statement on {newest}, {name_newest(evidence)}, with {signal}.",
                ("a broken access to memory ends by one signal or another, as the compiler of the build chose",),
                used,
            )
        case _ if evidence.plan.claim.kind is ClaimKind.CRASH and (said := find_diagnostic(evidence, newest)):
            return make_verdict(
                VerdictKind.FIXED,
                (*grounds, Ground.REJECTED),
                f"Already fixed: {newest_bad} crashes as reported; {newest}, {name_newest(evidence)},"
                f" rejects the program with a diagnostic instead: {said}.",
                (),
                used,
            )
        case _ if wished := find_wished_error(evidence, newest):
            return make_verdict(
                VerdictKind.FIXED,
                (*grounds, Ground.REJECTED),
                f"Already fixed: {newest_bad} fails as reported; {newest}, {name_newest(evidence)},"
                f" rejects the program instead, as the report asks: {wished}.",
                (),
                used,
            )
        case _ if refusal := find_refusal(evidence, newest):
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: {newest_bad} fails as reported; {newest}, {name_newest(evidence)},"
                f" rejects it instead: {refusal}.",
                ("to decide: whether this program should be rejected; if so, the failure is fixed",),
                used,
            )
        case _ if ended := find_ported_end(evidence, newest):
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER, Ground.PORTED),
                f"Inconclusive: {newest_bad} fails as reported; ported to {newest}, {name_newest(evidence)},"
                f" it ends with another error: {ended}.",
                (OTHER_END,),
                used,
            )
        case _ if is_only_for_forks(evidence):
            return _judge_on_forks(evidence, Variant.ORIGINAL)
        case _:
            why = find_last_reason(evidence, newest)
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: {newest_bad} fails as reported, but {newest}, {name_newest(evidence)},"
                " gives no answer.",
                (f"on {newest}: {why}" if why else "",),
                used,
            )


def _name_text(evidence: Evidence, version: str) -> str:
    posted = (s for s in evidence.list_originals() if s.version == version and s.outcome is not Outcome.INCOMPATIBLE)
    return "as posted" if any(posted) else "ported to its API"


def judge_only_ported(evidence: Evidence) -> Verdict | None:
    """Return the verdict if no run of the posted testcase fails as reported, but a ported run does; else None."""
    ported = evidence.combine_answers(Variant.PORTED)
    if Answer.BAD not in ported.values():
        return None
    bad = evidence.find_versions(Answer.BAD, Variant.PORTED)
    newest = evidence.plan.order[-1]
    if good := evidence.find_versions(Answer.GOOD):
        return _judge_fixed_since_port(evidence, bad, good) or _judge_failing_port(evidence, bad, good)
    used = evidence.find_indices(*bad, variants=(Variant.PORTED,))
    if ported.get(newest) is Answer.BAD:
        return make_verdict(
            VerdictKind.CONFIRMED,
            (*list_grounds(evidence, newest, Variant.PORTED), Ground.PORTED),
            f"Ported to a newer API, it fails as reported on {name_releases(evidence, bad, Variant.PORTED)};"
            " no release runs it as posted.",
            (),
            used,
        )
    if ported.get(newest) is Answer.GOOD:  # an older build shows that the port keeps the failure
        runs = (seen for seen in evidence.observations if seen.variant is Variant.PORTED)
        how = "with its notation adapted" if all(seen.notation_only for seen in runs) else "ported to a newer API"
        return make_verdict(
            VerdictKind.FIXED,
            (*list_grounds(evidence, bad[-1], Variant.PORTED), Ground.PORTED),
            f"Already fixed: {how}, it fails as reported on"
            f" {name_releases(evidence, bad, Variant.PORTED)}; ported to {newest}, {name_newest(evidence)}, it runs"
            " cleanly. No release runs it as posted.",
            (),
            used + evidence.find_indices(newest, variants=(Variant.PORTED,)),
        )
    if is_only_for_forks(evidence):
        return _judge_on_forks(evidence, Variant.PORTED)
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER, Ground.PORTED),
        f"Inconclusive: ported to a newer API, it fails as reported on"
        f" {name_releases(evidence, bad, Variant.PORTED)}, but not on {newest}.",
        (),
        used,
    )


def _judge_fixed_since_port(evidence: Evidence, bad: Sequence[str], good: Sequence[str]) -> Verdict | None:
    """Return the verdict if the text fails in the notation of early builds, and later builds run it as posted."""
    order = evidence.plan.order
    ported = [one for one in evidence.observations if one.variant is Variant.PORTED and one.version in bad]
    later = all(order.index(old) < order.index(new) for old in bad for new in good)
    if not later or good[-1] != order[-1] or not all(one.notation_only for one in ported):
        return None
    return make_verdict(
        VerdictKind.FIXED,
        (*list_grounds(evidence, bad[-1], Variant.PORTED), Ground.PORTED),
        f"Already fixed: in the notation of its time, it fails as reported on"
        f" {name_releases(evidence, bad, Variant.PORTED)}; {_describe_clean(evidence, good[0])}.",
        (),
        evidence.find_indices(*bad, variants=(Variant.PORTED,)) + evidence.find_indices(good[0], good[-1]),
    )


def _judge_failing_port(evidence: Evidence, bad: Sequence[str], good: Sequence[str]) -> Verdict | None:
    """Return the verdict if early builds run the text as posted, and its port fails as reported on later ones."""
    order, newest = evidence.plan.order, evidence.plan.order[-1]
    if newest not in bad or not all(order.index(old) < order.index(new) for old in good for new in bad):
        return None
    return make_verdict(
        _choose_kind(evidence, good),
        (*list_grounds(evidence, newest, Variant.PORTED), Ground.PORTED),
        f"Ported to a newer API, it fails as reported on {name_releases(evidence, bad, Variant.PORTED)}, the newest"
        f" release included; as posted, it runs cleanly on {name_releases(evidence, good)}.",
        (),
        evidence.find_indices(*bad, variants=(Variant.PORTED,)) + evidence.find_indices(good[-1]),
    )


def _choose_kind(evidence: Evidence, good: Sequence[str]) -> VerdictKind:
    """Return the kind of verdict on a failure of the newest release beside clean older builds.

    A fork is weak evidence about a change between releases: if all clean builds are forks, the failure is only
    confirmed.
    """
    forks = {seen.version for seen in evidence.observations if seen.fork}
    return VerdictKind.CONFIRMED if forks.issuperset(good) else VerdictKind.REGRESSION


def _judge_on_forks(evidence: Evidence, variant: Variant) -> Verdict:
    """Return the verdict if the testcase fails as reported on forks, and no release has its API."""
    bad = evidence.find_versions(Answer.BAD, variant)
    good = evidence.find_versions(Answer.GOOD, variant)
    ported = "Ported to their API, it" if variant is Variant.PORTED else "It"
    clean = f", and runs cleanly on {name_releases(evidence, good, variant)}" if good else ""
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"{describe_moved(evidence)} {ported} fails as reported on {name_releases(evidence, bad, variant)}{clean}.",
        (find_last_reason(evidence, evidence.plan.order[-1]), name_build(evidence)),
        evidence.find_indices(*bad, *good, variants=(variant,)) + evidence.find_indices(evidence.plan.order[-1]),
    )


def list_grounds(evidence: Evidence, version: str, variant: Variant = Variant.ORIGINAL) -> tuple[Ground, ...]:
    """Return the grounds of a reproduced failure: its runs on ``version``, and how much the report describes."""
    runs = evidence.count_runs(version, variant)
    grounds = [Ground.FAILS] if runs > 1 else [Ground.FAILS, Ground.SEEN_ONCE]
    if _is_vague(evidence.plan.claim):
        grounds.append(Ground.KIND_ONLY)
    elif _has_only_signal(evidence, version):
        grounds.append(Ground.SIGNAL_ONLY)
    if _is_clean_at_home(evidence) and not _names_change(evidence):
        grounds.append(Ground.OWN_BUILD_CLEAN)
    return tuple(grounds)


def _is_clean_at_home(evidence: Evidence) -> bool:
    reported = evidence.plan.reported
    clean = reported is not None and evidence.combine_answers().get(reported) is Answer.GOOD
    return clean and evidence.has_reported_release() and evidence.plan.claim.kind not in QUANTITIES


def _quotes_failure(claim: Claim) -> bool:
    """True if the report quotes the failure of its program: an exception or a crash with its message or stack."""
    quoted = claim.signature
    return quoted is not None and quoted.type not in (OUTPUT, *CHECKS) and bool(quoted.message or quoted.frames)


def _is_vague(claim: Claim) -> bool:
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


def judge_younger_package(evidence: Evidence) -> Verdict | None:
    """Return the verdict if a clean release fails as reported with the packages of the report's day.

    The finding names the package; the recorded run with that package decides.
    """
    known = next((one for one in map(read_evidence, evidence.findings) if isinstance(one, PackageEvidence)), None)
    if known is None:
        return None
    version, name, older, younger = (one or "" for one in (known.version, known.name, known.older, known.younger))
    failing = [
        at
        for at, seen in enumerate(evidence.observations)
        if seen.variant is Variant.CONTROL
        and seen.version == version
        and seen.answer is Answer.BAD
        and describe_other_version(name, older, younger) in seen.changes
    ]
    if not failing or version not in evidence.find_versions(Answer.GOOD):
        return None
    package = quote_span(name, 60)
    return make_verdict(
        VerdictKind.CONFIRMED,
        (Ground.FAILS, Ground.YOUNGER_PACKAGE),
        f"It fails as reported on {version} with {package} {younger}, which is younger than the release; with"
        f" {package} {older} it runs cleanly.",
        (f"until this is mended: install {quote_span(f'{name}=={older}', 80)} beside {version}",),
        (*evidence.find_indices(version), *failing),
    )
