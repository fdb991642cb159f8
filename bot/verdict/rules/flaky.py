"""Judge runs of one build that disagree, and weigh the results of reruns for the other verdicts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import find_last_reason, join_names, name_newest, name_releases
from bot.verdict.rules.untestable import describe_moved, is_only_for_forks, name_build
from bot.verdict.verdict import Verdict, VerdictKind, add_grounds, make_verdict
from runners.core.bisection.rate import count_clean_runs, format_rate
from runners.core.conditions import describe_conditions
from runners.core.findings.kinds import CAUSES, Cause
from runners.core.protocol import Answer, Varied


def judge_build_range(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a search along builds that the caller named; None without such a search.

    The search is probabilistic, so this rule comes before `judge_flaky`.
    """
    found = evidence.narrow_range()
    if evidence.plan.trail is None or found is None:
        return None
    if isinstance(found, str):
        return make_verdict(VerdictKind.INCONCLUSIVE, (Ground.NO_ANSWER,), f"Inconclusive: {found}.")
    older, newer = (found.last_good or found.last_bad), (found.first_bad or found.first_good)
    ends = [name for name in (older, newer) if name is not None]
    where = f"with commit {found.culprit[:12]}" if found.culprit else f"between {older} and {newer}"
    came = found.direction == "introduced"
    return make_verdict(
        VerdictKind.REGRESSION if came else VerdictKind.FIXED,
        (),
        f"Reproduced on {evidence.plan.order[-1]}; it came in {where}."
        if came
        else f"Already fixed: reproduced on {evidence.plan.order[0]}; it went away {where}.",
        found.notes,
        evidence.find_indices(*ends),
        measured=found.confidence,
    )


def judge_flaky(evidence: Evidence) -> Verdict | None:
    """Return the verdict ``flaky`` if one build has good and bad runs, with the cause if a diagnosis found one."""
    disagreeing = evidence.find_disagreeing()
    if not disagreeing:
        return None
    causes = evidence.find_causes()
    version = ([one for one in disagreeing if one in causes] or disagreeing)[-1]
    cause = causes.get(version)
    if (regression := _judge_by_condition(evidence, disagreeing, version, cause)) is not None:
        return regression
    if (fixed := _judge_gone(evidence, disagreeing, version)) is not None:
        return fixed
    sentence = "Runs of the same release end differently: on {version}, it fails in {rate}."
    if cause is not None:
        sentence = _SOMETIMES.get(cause, sentence)
    if is_only_for_forks(evidence):
        told = sentence.format(version=version, rate=format_rate(*evidence.count_failures(version)))
        return make_verdict(
            VerdictKind.UNTESTABLE,
            (Ground.CANNOT_RUN,),
            f"{describe_moved(evidence)} {told}",
            (find_last_reason(evidence, evidence.plan.order[-1]), name_build(evidence)),
            evidence.find_indices(*disagreeing),
        )
    return make_verdict(
        VerdictKind.FLAKY,
        (Ground.RUNS_DISAGREE, *((Ground.CAUSE_FOUND,) if cause in _SOMETIMES else ())),
        sentence.format(version=version, rate=format_rate(*evidence.count_failures(version))),
        (
            _describe_condition(evidence, version, cause),
            f"runs of {name_releases(evidence, disagreeing)} disagree, so they show no change between releases",
        ),
        evidence.find_indices(*disagreeing),
    )


_SOMETIMES: Mapping[Cause, str] = {
    Cause.MEMORY: "Whether it fails depends on the content of newly allocated memory, so uninitialized memory is"
    " read: on {version} it fails in {rate}.",
    Cause.THREADS: "Whether it fails depends on the number of threads: on {version} it fails in {rate}.",
    Cause.HASHES: "Whether it fails depends on Python's hash seed, which orders sets: on {version} it fails in"
    " {rate}.",
    Cause.RACE: "Runs with one thread agree, and runs with two threads do not: on {version} it fails in {rate}.",
    Cause.RANDOMNESS: "Whether it fails depends on random numbers that the testcase draws without a seed: on"
    " {version} it fails in {rate}.",
}
"""Headline by the cause that a diagnosis found. Only random numbers are known to be the testcase's own."""


def _judge_gone(evidence: Evidence, disagreeing: Sequence[str], version: str) -> Verdict | None:
    """Return ``fixed`` if the newest release runs cleanly too often for luck; None otherwise."""
    newest = evidence.plan.order[-1]
    if newest in disagreeing or evidence.combine_answers().get(newest) is not Answer.GOOD:
        return None
    (bad, runs), (_, clean) = evidence.count_failures(version), evidence.count_failures(newest)
    if clean < count_clean_runs(bad, runs):
        return None
    return make_verdict(
        VerdictKind.FIXED,
        (Ground.FAILS, Ground.RUNS_DISAGREE),
        f"Already fixed: {version} fails in {format_rate(bad, runs)}, and {newest}, {name_newest(evidence)}, in none"
        f" of {clean}.",
        (),
        evidence.find_indices(version, newest),
    )


def _judge_by_condition(
    evidence: Evidence, disagreeing: Sequence[str], version: str, cause: Cause | None
) -> Verdict | None:
    """Return ``regression`` if the newest release always fails where an older one never does; None otherwise.

    Return None otherwise.

    If a condition decides each run, runs under the same condition agree. So the releases are compared under it. It
    must be the usual condition, which a user has.
    """
    order, sometimes = evidence.plan.order, evidence.plan.claim.sometimes
    if sometimes or cause is None or cause not in _VALUES or version != order[-1] or list(disagreeing) != [version]:
        return None
    answers = evidence.combine_answers()
    older = next((one for one in reversed(order[:-1]) if answers.get(one) in (Answer.GOOD, Answer.BAD)), "")
    (bad, good), (failing, clean) = (_list_values(evidence, one, cause) for one in (version, older))
    usual = _VALUES[cause][1](Varied())
    if usual not in bad or set(bad) & set(good) or failing or not {usual, *good} <= set(clean):
        return None
    return make_verdict(
        VerdictKind.REGRESSION,
        (Ground.FAILS,),
        f"{older} runs cleanly under the same conditions; {version}, {name_newest(evidence)}, fails as reported under"
        " the usual ones.",
        (_describe_condition(evidence, version, cause),),
        evidence.find_indices(older, version),
    )


def _list_values(evidence: Evidence, version: str, cause: Cause | None) -> tuple[list[str], list[str]]:
    """Return the values of the deciding condition with bad and with good runs of a release."""
    if cause is None or cause not in _VALUES:
        return [], []
    _, value = _VALUES[cause]
    seen = [one for one in evidence.list_originals() if one.version == version]
    bad, good = (
        list(dict.fromkeys(value(one.varied) for one in seen if one.answer is answer))
        for answer in (Answer.BAD, Answer.GOOD)
    )
    return bad, good


def _describe_condition(evidence: Evidence, version: str, cause: Cause | None) -> str:
    """Return the values of the deciding condition with good and with bad runs; empty where these overlap."""
    bad, good = _list_values(evidence, version, cause)
    if cause is None or cause not in _VALUES or set(bad) & set(good):
        return ""
    condition, _ = _VALUES[cause]
    return f"with {condition}{join_names(bad)}, it fails; with {condition}{join_names(good)}, it runs cleanly"


_VALUES: Mapping[Cause, tuple[str, Callable[[Varied], str]]] = {
    Cause.MEMORY: (
        "new memory ",
        lambda under: "as usual" if under.fill is None else f"filled with 0x{255 - under.fill:02x}",
    ),
    Cause.THREADS: ("", lambda under: describe_conditions(Varied(threads=under.threads)) or "the usual threads"),
    Cause.HASHES: ("hash seed ", lambda under: str(under.hash_seed)),
}


def weigh_repeats(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Add the failure rate, and weaken the verdict on a result that depends on a condition outside the testcase.

    The testcase's own random numbers do not count: a failure with all of them is as certain as any. A search along
    named builds and a diagnosis of the testcase already take disagreeing runs into account.
    """
    if verdict.kind not in _RESTS_ON_RUNS or evidence.plan.trail is not None:
        return verdict
    bad = evidence.find_versions(Answer.BAD)
    often = bad and evidence.count_runs(bad[-1]) > 2
    rate = f"on {bad[-1]} it fails in {format_rate(*evidence.count_failures(bad[-1]))}" if often else ""
    causes = evidence.find_causes()
    outside = [version for version in sorted(causes) if causes[version] is not Cause.RANDOMNESS]
    why = [f"on {version}, {CAUSES[causes[version]].sentence}" for version in outside]
    luck = _mention_luck(verdict, evidence)
    good = evidence.find_versions(Answer.GOOD)
    absent = verdict.kind is VerdictKind.NOT_REPRODUCED and evidence.plan.claim.sometimes and bool(good)
    if absent:
        rate = f"on {good[-1]} it fails in {format_rate(*evidence.count_failures(good[-1]))}"
    doubts = (Ground.DEPENDS_ON_CONDITION,) if why or luck or absent else ()
    return add_grounds(verdict, *doubts, reasons=(rate, *why, luck))


def _mention_luck(verdict: Verdict, evidence: Evidence) -> str:
    """Return the caveat for a failure reported as intermittent; empty if agreeing runs cannot be luck.

    Such a failure may be absent by luck on one side of a change, or present for all drawn random numbers.
    """
    drawn = Cause.RANDOMNESS in evidence.find_causes().values()
    if not evidence.plan.claim.sometimes or not (drawn or verdict.kind in _SAYS_IT_CHANGED):
        return ""
    return "the report says that the failure is intermittent, so runs may agree by luck"


_SAYS_IT_CHANGED = {VerdictKind.REGRESSION, VerdictKind.FIXED}
_RESTS_ON_RUNS = {
    VerdictKind.REGRESSION,
    VerdictKind.CONFIRMED,
    VerdictKind.FIXED,
    VerdictKind.NOT_REPRODUCED,
    VerdictKind.DIFFERENT_FAILURE,
}
