"""Observations and findings × claim → Verdict. Pure: the same records always give the same answer.

The order of the questions is the order of trust: is there anything to run; do runs agree; is the repro itself at
fault; what did the newest build that answered say; what did the others say. A build that skipped is never counted
for or against. Below ``THRESHOLD`` a verdict becomes ``inconclusive`` and says what would settle it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from bot.evidence import Evidence
from bot.extract.types import Extraction, NoRepro, Repro
from bot.rate import in_words
from bot.verdict import Verdict, VerdictKind
from runners import search
from runners.oracle import OUTPUT
from runners.protocol import (
    SAID_TO_WORK,
    Answer,
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Signature,
    Variant,
    Varied,
)
from runners.signature import NATIVE, compare
from runners.toolchains import find_device, find_toolchain

THRESHOLD = 0.6

# How sure: held against the corpus by `bench.accuracy`, whose reliability table is in docs/verdicts.md.
SEEN_TWICE, SEEN_ONCE = 0.97, 0.9
"""The reported failure in two runs of one build or more, and in one."""
VAGUELY = 0.1
"""Less, where the report gives only a kind of failure to match."""
TRACED, TRACED_UNSTEADILY, WORKED_OUT = 0.95, 0.8, 0.2
"""A diagnosis puts the fault in the repro; runs disagree; less, for an index that the program worked out."""
NOTHING_TO_RUN = 0.9
SOMETIMES, SOMETIMES_EXPLAINED = 0.8, 0.9
"""Runs of one build disagree; and a diagnosis found what decides."""
UNSTEADY = 0.85
"""At most: the answers agree, and yet the result follows something that no testcase says."""
UNATTRIBUTED = 0.85
"""At most: a wrong value that every release gives, and that no pass brings in. One of 0.97 was the testcase's own."""
IN_OTHER_WORDS = 0.8
"""Only the calls that lead to the failure agree wholly."""
ONLY_PORTED = 0.8
CANNOT_RUN = 0.85
CLEAN_ON_ITS_RELEASE, CLEAN_NEARBY, CLEAN_ELSEWHERE = 0.85, 0.75, 0.7
"""Clean runs: on the release reported, on others where none is named, and where the one named is not at hand, or the
failure is said to come and go."""
CLEAN_ONLY_PORTED = 0.75
"""Clean on the release reported, and on the newest once its moved names are put right."""
OTHERWISE = 0.7
"""Fails, but not as reported: the weakest verdict. Two of two were wrong at a first look, names that had moved."""

LABELS = {
    VerdictKind.REGRESSION: ("repro: confirmed", "regression"),
    VerdictKind.CONFIRMED: ("repro: confirmed",),
    VerdictKind.FIXED: ("repro: fixed",),
    VerdictKind.NOT_REPRODUCED: ("repro: not reproduced",),
    VerdictKind.DIFFERENT_FAILURE: ("repro: different failure",),
    VerdictKind.INVALID_REPRO: ("repro: invalid",),
    VerdictKind.FLAKY: ("repro: flaky",),
    VerdictKind.INCOMPLETE: ("repro: incomplete",),
    VerdictKind.UNTESTABLE: ("repro: untestable",),
    VerdictKind.INCONCLUSIVE: ("repro: inconclusive",),
    VerdictKind.NO_REPRO: (),
}

BLAMES_THE_REPRO = frozenset(
    {
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        FindingKind.UNDEFINED_OPERAND,
        FindingKind.SIGNATURE_CHANGED,
        FindingKind.MISSING,
    }
)
"""With a matching failure, these put the fault in the testcase: undefined input, or an API called wrongly."""
REST_ON_A_CONTROL = frozenset({FindingKind.SIGNATURE_CHANGED, FindingKind.MISSING})
"""Of these, what shows the fault is a run that was clean: where runs disagree, that may have been luck."""


def judge_without_running(extraction: Extraction) -> Verdict | None:
    """The verdict on an issue that gives nothing to run, or not enough; None when there is something to run."""
    match extraction:
        case NoRepro(missing=missing, reason=reason) if any(item.kind != "code" for item in missing):
            return _verdict(
                VerdictKind.INCOMPLETE, NOTHING_TO_RUN, "The report does not hold all that its steps need.", (reason,)
            )
        case NoRepro(reason=reason):
            return _verdict(VerdictKind.NO_REPRO, NOTHING_TO_RUN, "There is no testcase in this report.", (reason,))
        case Repro(missing=missing) if missing:
            names = ", ".join(f"{item.kind} {item.name}" for item in missing)
            return _verdict(
                VerdictKind.INCOMPLETE,
                NOTHING_TO_RUN,
                "The testcase needs something that the report does not give.",
                (names,),
            )
        case Repro():
            return None


def judge(evidence: Evidence) -> Verdict:
    """The verdict on what was run."""
    verdict = (
        _repro_at_fault(evidence)
        or _along_the_trail(evidence)
        or _flaky(evidence)
        or _contradicted(evidence)
        or _seen_failing(evidence)
        or _seen_only_ported(evidence)
        or _never_seen_failing(evidence)
    )
    verdict = _unattributed(_repeated(_contrasted(_naming_forks(verdict, evidence), evidence), evidence), evidence)
    if verdict.confidence < THRESHOLD and verdict.kind not in _HUMBLE:
        return _verdict(
            VerdictKind.INCONCLUSIVE,
            verdict.confidence,
            f"Inconclusive: {_as_a_clause(verdict.headline)}",
            verdict.reasons,
            verdict.evidence,
        )
    return verdict


def _as_a_clause(headline: str) -> str:
    """Without the verdict that it would begin with, which is not given."""
    text = headline.removeprefix("Already fixed: ").removeprefix("Not reproduced: ")
    return text[0].lower() + text[1:]


def _contrasted(verdict: Verdict, evidence: Evidence) -> Verdict:
    """What the reporter's own control adds: it bears the report out, or takes the contrast away that it rests on."""
    if verdict.kind not in _RESTS_ON_A_FAILURE:
        return verdict
    controls = [
        seen
        for seen in evidence.observations
        if seen.variant is Variant.CONTROL and SAID_TO_WORK in seen.changes and seen.answer is not Answer.SKIP
    ]
    if not controls:
        return verdict
    failing = [seen for seen in controls if seen.answer is not Answer.GOOD]
    where = _span(_versions_of(evidence.plan, failing or controls))
    if not failing:
        said = f"what the report says works does run cleanly on {where}"
        return replace(verdict, reasons=(*verdict.reasons, said))
    said = f"on {where} what the report says works fails in the same way"
    return replace(verdict, reasons=(*verdict.reasons, said), confidence=round(verdict.confidence - 0.15, 2))


def _repeated(verdict: Verdict, evidence: Evidence) -> Verdict:
    """What repeats add: how often it failed, and that a result which nothing in the testcase decides is less sure.

    Random numbers that the testcase draws are its own: a failure that is there for all of them is as sure as any. A
    search along a trail reckons with runs that disagree, and so does a diagnosis of the repro.
    """
    if verdict.kind not in _RESTS_ON_RUNS or evidence.plan.trail is not None:
        return verdict
    bad = evidence.versions(Answer.BAD)
    often = bad and evidence.runs(bad[-1]) > 2
    rate = f"on {bad[-1]} it fails in {in_words(*evidence.rate(bad[-1]))}" if often else ""
    causes = evidence.causes()
    why = [f"on {version}, {_WHY[causes[version]]}" for version in sorted(causes) if causes[version] in _WHY]
    luck = _by_luck(verdict, evidence)
    sure = min(verdict.confidence, UNSTEADY) if why or luck else verdict.confidence
    good = evidence.versions(Answer.GOOD)
    if verdict.kind is VerdictKind.NOT_REPRODUCED and evidence.plan.claim.sometimes and good:
        rate, sure = f"on {good[-1]} it fails in {in_words(*evidence.rate(good[-1]))}", min(sure, CLEAN_ELSEWHERE)
    reasons = (*verdict.reasons, *(reason for reason in (rate, *why, luck) if reason))
    return replace(verdict, reasons=reasons, confidence=sure)


def _by_luck(verdict: Verdict, evidence: Evidence) -> str:
    """What is said to come and go may have been away on one side of a change, or there for all the numbers drawn."""
    drawn = "randomness" in evidence.causes().values()
    if not evidence.plan.claim.sometimes or not (drawn or verdict.kind in _SAYS_IT_CHANGED):
        return ""
    return "the report says that the failure is not always there, so runs that agree may do so by luck"


_SAYS_IT_CHANGED = {VerdictKind.REGRESSION, VerdictKind.FIXED}


def _unattributed(verdict: Verdict, evidence: Evidence) -> Verdict:
    """A wrong result that no release is free of and no pass brings in may be the testcase's own: seen, not explained.

    An error or a crash is the compiler's doing whoever provoked it; that a value is wrong, only the report says.
    """
    wrong_value = verdict.kind is VerdictKind.CONFIRMED and evidence.plan.claim.kind is ClaimKind.WRONG_RESULT
    if not wrong_value or not any(_clears_the_passes(finding) for finding in evidence.findings):
        return verdict
    why = "no pass brings the wrong result in, so that it is wrong rests on the report, and on nothing that was run"
    return replace(verdict, reasons=(*verdict.reasons, why), confidence=min(verdict.confidence, UNATTRIBUTED))


def _clears_the_passes(finding: Finding) -> bool:
    """TVM's: one with a ``level`` speaks of LLVM's passes alone. Unchecked from outside: it only takes away."""
    evidence = finding.evidence
    return finding.kind is FindingKind.GUILTY_PASS and evidence.get("name") == "none" and "level" not in evidence


_WHY = {
    "memory": "the result follows what new memory holds, so something is read that nothing wrote",
    "threads": "the result depends on the number of threads",
    "hashes": "the result depends on Python's hash seed",
    "race": "runs with two threads differ among themselves, and runs with one do not",
    "unknown": "runs under the same conditions end differently",
}
"""What a result may follow, by the cause in a finding; random numbers of the testcase's own aside."""
_RESTS_ON_RUNS = {
    VerdictKind.REGRESSION,
    VerdictKind.CONFIRMED,
    VerdictKind.FIXED,
    VerdictKind.NOT_REPRODUCED,
    VerdictKind.DIFFERENT_FAILURE,
}
_RESTS_ON_A_FAILURE = {VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FIXED}


def _naming_forks(verdict: Verdict, evidence: Evidence) -> Verdict:
    """A build that is no release is never named as if it were one."""
    headline = verdict.headline
    for version, fork in {seen.version: seen.fork for seen in evidence.observations if seen.fork}.items():
        headline = headline.replace(version, f"{version} (a fork at {fork.partition(',')[0]}, not a release)", 1)
    return replace(verdict, headline=headline)


_HUMBLE = {VerdictKind.INCONCLUSIVE, VerdictKind.UNTESTABLE, VerdictKind.INCOMPLETE, VerdictKind.NO_REPRO}


def _verdict(
    kind: VerdictKind, confidence: float, headline: str, reasons: Sequence[str] = (), evidence: Sequence[int] = ()
) -> Verdict:
    return Verdict(
        kind=kind,
        confidence=round(confidence, 2),
        headline=headline,
        reasons=tuple(reason for reason in reasons if reason),
        labels=LABELS[kind],
        evidence=tuple(evidence),
    )


# ---------------------------------------------------------------------------------------------- the questions


def _repro_at_fault(evidence: Evidence) -> Verdict | None:
    """A diagnosis shows that the testcase asks for undefined behaviour or calls an API the wrong way."""
    blames = BLAMES_THE_REPRO - (REST_ON_A_CONTROL if evidence.disagreeing() else frozenset())
    blame = next((f for f in evidence.findings if f.kind in blames and _says_whose_fault(f)), None)
    if blame is None or not any(seen.outcome is Outcome.MATCH for seen in evidence.observations):
        return None  # a diagnosis explains a failure that the host saw; without one it explains nothing
    bad = evidence.versions(Answer.BAD) or evidence.versions(Answer.BAD, Variant.PORTED)
    said = {
        FindingKind.OUT_OF_BOUNDS_ACCESS: "it reads or writes outside one of its own tensors",
        FindingKind.UNDEFINED_OPERAND: "it gives an operation a value for which that is undefined",
        FindingKind.SIGNATURE_CHANGED: "it calls a function the old way after a pass changed its parameters",
        FindingKind.MISSING: "it uses a submodule that it never imports; with the import it runs",
    }[blame.kind]
    shown = f" The failure itself shows on {_span(bad)}." if bad else ""
    computed = blame.evidence.get("origin") == "computed-data"  # an index that the program worked out: less certain
    return _verdict(
        VerdictKind.INVALID_REPRO,
        (TRACED_UNSTEADILY if evidence.disagreeing() else TRACED) - (WORKED_OUT if computed else 0.0),
        f"The testcase itself is at fault: {said}.{shown}",
        (_how_it_is_known(blame),),
        evidence.indices(*bad),
    )


def _how_it_is_known(blame: Finding) -> str:
    control = str(blame.evidence.get("control", ""))
    match blame.kind:
        case FindingKind.MISSING:
            return "the same testcase with that import added runs cleanly"
        case FindingKind.SIGNATURE_CHANGED if "runs cleanly" in control:
            return "the same testcase with that call made the new way runs cleanly; the call is shown below"
        case FindingKind.OUT_OF_BOUNDS_ACCESS | FindingKind.UNDEFINED_OPERAND if control:
            return "the same testcase with that one operand put right runs cleanly; the line is named below"
        case _:
            return "a diagnosis re-ran the unmodified testcase under instrumentation; its evidence is below"


def _says_whose_fault(finding: Finding) -> bool:
    """An access out of bounds may be the compiler's own doing: unless the diagnosis traced it, it blames nobody."""
    return finding.evidence.get("origin") != "unknown"


def _along_the_trail(evidence: Evidence) -> Verdict | None:
    """What a search along builds that the caller named shows: it was made for runs that disagree."""
    found = evidence.narrowed()
    if evidence.plan.trail is None or found is None:
        return None
    if isinstance(found, str):
        return _verdict(VerdictKind.INCONCLUSIVE, 0.5, f"Inconclusive: {found}.")
    older, newer = (found.last_good or found.last_bad), (found.first_bad or found.first_good)
    ends = [name for name in (older, newer) if name is not None]
    where = f"with commit {found.culprit[:12]}" if found.culprit else f"between {older} and {newer}"
    came = found.direction == "introduced"
    return _verdict(
        VerdictKind.REGRESSION if came else VerdictKind.FIXED,
        found.confidence,
        f"Reproduced on {evidence.plan.order[-1]}; it came in {where}."
        if came
        else f"Already fixed: reproduced on {evidence.plan.order[0]}; it went away {where}.",
        found.notes,
        evidence.indices(*ends),
    )


def _flaky(evidence: Evidence) -> Verdict | None:
    disagreeing = evidence.disagreeing()
    if not disagreeing:
        return None
    causes = evidence.causes()
    version = ([one for one in disagreeing if one in causes] or disagreeing)[-1]
    cause = causes.get(version, "")
    said = _SOMETIMES.get(cause, "The same build gives different results: on {version} it fails in {rate}.")
    return _verdict(
        VerdictKind.FLAKY,
        SOMETIMES_EXPLAINED if cause in _SOMETIMES else SOMETIMES,
        said.format(version=version, rate=in_words(*evidence.rate(version))),
        (
            _decided_by(evidence, version, cause),
            f"runs of one build disagree on {_span(disagreeing)}, so they tell of no change between releases",
        ),
        evidence.indices(*disagreeing, variant=Variant.ORIGINAL),
    )


_SOMETIMES = {
    "memory": "Whether it fails depends on what new memory holds, so something is read that nothing wrote: on"
    " {version} it fails in {rate}.",
    "threads": "Whether it fails depends on the number of threads: on {version} it fails in {rate}.",
    "hashes": "Whether it fails depends on Python's hash seed, which orders sets: on {version} it fails in {rate}.",
    "race": "With one thread all runs agree, with two they do not: on {version} it fails in {rate}.",
    "randomness": "Whether it fails depends on random numbers that the testcase draws without a seed: on {version} it"
    " fails in {rate}.",
}
"""By the cause that a diagnosis found. Only of random numbers is it known that they are the testcase's own."""


def _decided_by(evidence: Evidence, version: str, cause: str) -> str:
    """With which values of what decides it failed, and with which not; empty where they overlap."""
    if cause not in _VALUES:
        return ""
    what, value = _VALUES[cause]
    seen = [one for one in evidence.originals() if one.version == version]
    bad, good = (
        list(dict.fromkeys(value(one.varied) for one in seen if one.answer is answer))
        for answer in (Answer.BAD, Answer.GOOD)
    )
    return "" if set(bad) & set(good) else f"{what} {_listed(bad)}: it fails; {_listed(good)}: it runs cleanly"


_VALUES: Mapping[str, tuple[str, Callable[[Varied], str]]] = {
    "memory": (
        "new memory",
        lambda under: "as it comes" if under.fill is None else f"full of 0x{255 - under.fill:02x}",
    ),
    "threads": ("threads", lambda under: "as usual" if under.threads is None else str(under.threads)),
    "hashes": ("hash seed", lambda under: str(under.hash_seed)),
}


def _contradicted(evidence: Evidence) -> Verdict | None:
    """The very release that the report names runs cleanly, and others fail: then what was matched isn't its bug.

    Seen when a report quotes outputs of two releases and it was misread which of them is the wrong one.
    """
    plan = evidence.plan
    bad = evidence.versions(Answer.BAD)
    if plan.reported is None or not bad or not _names_exactly(plan.claim, plan.reported):
        return None
    if evidence.answers().get(plan.reported) is not Answer.GOOD:
        return None
    return _verdict(
        VerdictKind.INCONCLUSIVE,
        0.4,
        f"Inconclusive: {plan.reported}, which the report is about, runs cleanly, while {_span(bad)} does not.",
        ("which of the quoted outputs is the wrong one, and on which release, would settle it",),
        evidence.indices(plan.reported, *bad),
    )


def _names_exactly(claim: Claim, version: str) -> bool:
    """Whether the first version that the report names is this release, not one near it."""
    try:
        return bool(claim.versions) and Version(claim.versions[0].lstrip("vV")) == Version(version)
    except InvalidVersion:
        return False


def _seen_failing(evidence: Evidence) -> Verdict | None:
    bad = evidence.versions(Answer.BAD)
    if not bad:
        return None
    answers, order = evidence.answers(), evidence.plan.order
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    sure = _certainty(evidence, bad[-1])
    went, came = search.fixed(order, answers), search.introduced(order, answers)
    if went is not None and went.older is not None and went.newer is not None:
        return _fixed(evidence, went.older, went.newer, sure)
    if spoken[-1] != order[-1]:
        return _unknown_on_newest(evidence, spoken[-1], sure)
    used = evidence.indices(*bad, *((came.older,) if came and came.older else ()))
    if came is not None and came.older is not None:
        return _verdict(
            VerdictKind.REGRESSION,
            sure,
            f"Reproduced on {bad[-1]}, {_newest(evidence)}; it came in between {came.older} and {came.newer}.",
            _skipped_between(came),
            used,
        )
    return _verdict(
        VerdictKind.CONFIRMED,
        sure,
        f"Reproduced on {_span(bad)}, {_newest(evidence)} included; no release that was run is free of it.",
        (),
        used,
    )


def _fixed(evidence: Evidence, last_bad: str, first_good: str, sure: float) -> Verdict:
    newest = evidence.plan.order[-1]
    answers = evidence.answers()
    reasons = []
    if answers.get(newest) is not Answer.GOOD:
        ported = evidence.answers(Variant.PORTED).get(newest)
        if ported is Answer.BAD:
            return _verdict(
                VerdictKind.INCONCLUSIVE,
                0.5,
                f"Inconclusive: {first_good} runs it cleanly as posted, but {newest} fails when it is ported.",
                (),
                evidence.indices(last_bad, first_good, newest),
            )
        reasons.append(
            f"{newest} cannot run it as posted"
            + ("; ported to its API it runs cleanly" if ported is Answer.GOOD else "")
        )
        sure -= 0.0 if ported is Answer.GOOD else 0.1
    return _verdict(
        VerdictKind.FIXED,
        sure,
        f"Already fixed: {last_bad} fails as reported, {first_good} does not.",
        reasons,
        evidence.indices(last_bad, first_good),
    )


def _unknown_on_newest(evidence: Evidence, newest_bad: str, sure: float) -> Verdict:
    """Bad as far as builds can run it, and the newest cannot: the ported text may know."""
    newest = evidence.plan.order[-1]
    used = evidence.indices(newest_bad, newest)
    match evidence.answers(Variant.PORTED).get(newest):
        case Answer.BAD:
            return _verdict(
                VerdictKind.CONFIRMED,
                sure - 0.05,
                f"Reproduced on {newest_bad} as posted and, ported to its API, on {newest}, {_newest(evidence)}.",
                (),
                used,
            )
        case Answer.GOOD:
            return _verdict(
                VerdictKind.FIXED,
                sure - 0.1,
                f"Already fixed: {newest_bad} fails as reported; {newest}, to whose API it was ported, does not.",
                (),
                used,
            )
        case _ if _in_other_words(evidence, newest_bad, newest):
            return _verdict(
                VerdictKind.CONFIRMED,
                min(sure, IN_OTHER_WORDS),
                f"Reproduced on {newest_bad}; on {newest}, {_newest(evidence)}, it fails at the same place"
                " with other words.",
                ("the same kind of error, through the same calls; the wording differs from the report's",),
                used,
            )
        case _ if refusal := _refusal(evidence, newest):
            return _verdict(
                VerdictKind.INCONCLUSIVE,
                0.55,
                f"Inconclusive: {newest_bad} fails as reported; {newest}, {_newest(evidence)}, refuses it instead,"
                f" with {refusal}.",
                ("a refusal where the result was wrong is neither the failure nor its fix: a maintainer can tell",),
                used,
            )
        case _:
            why = _last_words(evidence, newest)
            return _verdict(
                VerdictKind.INCONCLUSIVE,
                0.5,
                f"Inconclusive: {newest_bad} fails as reported, but {newest}, {_newest(evidence)}, gives no answer.",
                (f"on {newest}: {why}" if why else "",),
                used,
            )


def _in_other_words(evidence: Evidence, newest_bad: str, newest: str) -> bool:
    """The newest build's error, as posted or ported, is that of a build that failed as reported, reworded.

    Messages change from release to release; what leads to them stays. Only an error is judged so, and only where
    every run of the newest says the same: its type and all its frames agree, and at least half of its words.
    """
    if evidence.plan.claim.kind is not ClaimKind.ERROR:
        return False
    known = [seen.signature for seen in evidence.originals() if seen.version == newest_bad and seen.signature]
    later = [
        seen
        for seen in evidence.observations
        if seen.version == newest and seen.outcome is not Outcome.INCOMPATIBLE and seen.variant in _OWN_TEXT
    ]
    return bool(known and later) and all(
        seen.outcome is Outcome.OTHER_FAILURE and seen.signature is not None and _reworded(known[-1], seen.signature)
        for seen in later
    )


_OWN_TEXT = {Variant.ORIGINAL, Variant.PORTED}
_FRAMES_THAT_TELL = 3


def _reworded(known: Signature, seen: Signature) -> bool:
    if seen.type in NATIVE or seen.type != known.type or seen.frames != known.frames:
        return False
    return len(known.frames) >= _FRAMES_THAT_TELL and compare(known, seen).score >= 0.5


def _refusal(evidence: Evidence, version: str) -> str | None:
    """The diagnostic with which a build refuses what others got wrong or died of; None where it fails otherwise."""
    if evidence.plan.claim.kind not in (ClaimKind.WRONG_RESULT, ClaimKind.CRASH):
        return None
    runs = [seen for seen in evidence.originals() if seen.version == version]
    refused = [seen for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and seen.signature is not None]
    if not runs or len(refused) < len(runs):
        return None
    said = refused[-1].signature
    if said is None or said.type in NATIVE or said.type == OUTPUT or not said.message:
        return None
    return f"{said.type}: {said.message[:120]}"


def _seen_only_ported(evidence: Evidence) -> Verdict | None:
    """No build runs the text as posted, but ported it shows the failure."""
    ported = evidence.answers(Variant.PORTED)
    if evidence.versions(Answer.GOOD) or Answer.BAD not in ported.values():
        return None
    bad = evidence.versions(Answer.BAD, Variant.PORTED)
    newest = evidence.plan.order[-1]
    used = evidence.indices(*bad, variant=Variant.PORTED)
    if ported.get(newest) is Answer.BAD:
        return _verdict(
            VerdictKind.CONFIRMED,
            ONLY_PORTED,
            f"Reproduced on {_span(bad)} after porting it to their API; no release here runs it as posted.",
            ("every substitution that the port made is listed below",),
            used,
        )
    return _verdict(
        VerdictKind.INCONCLUSIVE,
        0.5,
        f"Inconclusive: ported to their API, it fails on {_span(bad)} but not on {newest}.",
        (),
        used,
    )


def _never_seen_failing(evidence: Evidence) -> Verdict:
    good = evidence.versions(Answer.GOOD)
    if good:
        return _not_reproduced(evidence, good)
    skips = evidence.skips()
    if not skips:
        return _verdict(VerdictKind.INCONCLUSIVE, 0.3, "Inconclusive: nothing was run.")
    cannot_run = [kind for kind in (Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE) if skips[kind]]
    if skips[Outcome.OTHER_FAILURE] and (_failing_at_home(evidence) or not cannot_run):
        return _only_other_failures(evidence)
    outcome = max(sorted(skips), key=lambda kind: (kind in cannot_run, skips[kind]))
    newest = _newest_run(evidence)
    why = _last_words(evidence, newest)
    used = evidence.indices(newest)
    match outcome:
        case Outcome.INCOMPATIBLE:
            return _verdict(
                VerdictKind.UNTESTABLE,
                CANNOT_RUN,
                f"No release here can run the testcase as posted: its API has moved (tried {_looked_at(evidence)}).",
                (why,),
                used,
            )
        case Outcome.UNAVAILABLE:
            return _verdict(
                VerdictKind.UNTESTABLE,
                CANNOT_RUN,
                _needs_a_device(evidence) + _on_stand_ins(evidence),
                (why,),
                evidence.indices(*evidence.plan.order),
            )
        case _:
            named = {Outcome.TIMEOUT: "the time was up", Outcome.OUT_OF_MEMORY: "the memory was used up"}
            return _verdict(
                VerdictKind.INCONCLUSIVE,
                0.4,
                f"Inconclusive: on every release looked at, {named.get(outcome, 'the run could not be completed')}.",
                (why,),
                used,
            )


def _needs_a_device(evidence: Evidence) -> str:
    """What was found out without the device, and what it would take to find out more."""
    without = [
        seen
        for seen in evidence.originals()
        if seen.outcome is Outcome.UNAVAILABLE and seen.why.endswith("device or runtime here")
    ]
    device = find_device(find_toolchain(evidence.plan.testcase.toolchain), evidence.plan.device)
    if not without or device is None or device.needs is None:
        return f"Nothing here can run the testcase as posted (tried {_looked_at(evidence)})."
    words = (word for step in evidence.plan.testcase.steps for word in step)
    chips = list(dict.fromkeys(chip for word in words for chip in _CHIP.findall(word)))[:3]
    needs = f"{device.needs} ({', '.join(chips)})" if chips else device.needs
    compiled = [seen for seen in without if seen.why.startswith("compiles; ")]
    if not compiled:
        return f"Running the testcase needs {needs}, which is not here (tried {_looked_at(evidence)})."
    span = _span(_versions_of(evidence.plan, compiled))
    return f"The testcase compiles on {span}; running it needs {needs}, which is not here."


_CHIP = re.compile(r"\b(?:gfx[0-9a-f]{3,4}|sm_\d{2,3}a?)\b")
"""An accelerator as target flags name it."""


def _on_stand_ins(evidence: Evidence) -> str:
    """What the same program did on devices that are here: evidence, but not of the reported device."""
    alike: dict[str, list[str]] = {}
    for device in sorted({s.device for s in evidence.observations if s.variant is Variant.RETARGETED}):
        if said := _on_stand_in(evidence, device):
            alike.setdefault(said, []).append(device)
    return "".join(f" Retargeted to {_listed(devices)} it {said}." for said, devices in alike.items())


def _on_stand_in(evidence: Evidence, device: str) -> str:
    answers = evidence.answers(Variant.RETARGETED, device)
    bad = [version for version in evidence.plan.order if answers.get(version) is Answer.BAD]
    good = [version for version in evidence.plan.order if answers.get(version) is Answer.GOOD]
    fails = f"fails as reported on {_span(bad)}" if bad else ""
    runs = f"runs cleanly on {_span(good)}" if good else ""
    return " and ".join(part for part in (fails, runs) if part)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _not_reproduced(evidence: Evidence, good: Sequence[str]) -> Verdict:
    plan = evidence.plan
    used = evidence.indices(*good)
    if plan.claim.kind is ClaimKind.UNKNOWN:
        return _verdict(
            VerdictKind.INCONCLUSIVE,
            0.4,
            f"Inconclusive: it runs to its end on {_span(good)}, and the report names no failure to look for.",
            ("the exact error, or the output that is wrong and the one expected, would settle it",),
            used,
        )
    newest = plan.order[-1]
    silent = [v for v in (plan.reported, newest) if v is not None and v not in good]
    if silent == [newest] and evidence.answers(Variant.PORTED).get(newest) is Answer.GOOD:
        return _verdict(
            VerdictKind.NOT_REPRODUCED,
            CLEAN_ONLY_PORTED,
            f"Not reproduced: it runs cleanly on {_span(good)} and, ported to the API of {newest}, there too.",
            (f"on {newest}, as posted: {_last_words(evidence, newest)}",),
            used,
        )
    if silent:
        why = _last_words(evidence, silent[0])
        return _verdict(
            VerdictKind.INCONCLUSIVE,
            0.5,
            f"Inconclusive: it runs cleanly on {_span(good)}, but {silent[0]} gives no answer.",
            (f"on {silent[0]}: {why}" if why else "",),
            used,
        )
    named = bool(plan.claim.versions)
    exact = plan.reported is not None
    if named and not exact:
        return _verdict(
            VerdictKind.NOT_REPRODUCED,
            CLEAN_ELSEWHERE,
            f"Not reproduced: it runs cleanly on {_span(good)}; the version that the report names is not at hand.",
            ("the failure may have been fixed before the oldest of these",),
            used,
        )
    return _verdict(
        VerdictKind.NOT_REPRODUCED,
        CLEAN_ON_ITS_RELEASE if exact else CLEAN_NEARBY,
        f"Not reproduced: it runs cleanly on {_span(good)}.",
        (),
        used,
    )


def _failing_at_home(evidence: Evidence) -> bool:
    """It fails, somehow, where the report is at home: on the very release that it names, or on the newest.

    A failure elsewhere (on an older release, or on a build that stands in for the reported one) is no news.
    """
    plan = evidence.plan
    home = {plan.order[-1]}
    if plan.reported is not None and _names_exactly(plan.claim, plan.reported):
        home.add(plan.reported)
    return any(s.version in home and s.outcome is Outcome.OTHER_FAILURE for s in evidence.originals())


def _only_other_failures(evidence: Evidence) -> Verdict:
    """It fails, but never as reported: worth a verdict only on the reporter's own release, or on all."""
    plan = evidence.plan
    failing = [seen for seen in evidence.originals() if seen.outcome is Outcome.OTHER_FAILURE]
    latest = failing[-1]
    named = latest.signature.type if latest.signature is not None else "a failure"
    used = tuple(i for i, s in enumerate(evidence.observations) if s.outcome is Outcome.OTHER_FAILURE)
    if all(_ended_clean(s) for s in failing):
        return _verdict(
            VerdictKind.INCONCLUSIVE,
            0.4,
            "Inconclusive: it runs to its end, and nothing tells whether what it prints is right.",
            ("an assertion, or the expected output next to the actual one, would settle it",),
            used,
        )
    claim_is_known = plan.claim.signature is not None and plan.claim.kind is not ClaimKind.UNKNOWN
    if claim_is_known and _failing_at_home(evidence):
        return _verdict(
            VerdictKind.DIFFERENT_FAILURE,
            OTHERWISE,
            f"It fails on {_span(_versions_of(plan, failing))}, but with {named} and not as reported.",
            (latest.why, "nothing is said here about the reported failure"),
            used,
        )
    return _verdict(
        VerdictKind.INCONCLUSIVE,
        0.45,
        f"Inconclusive: it ends with {named} on {latest.version}, and that is not what the report describes.",
        ("the full error as printed would settle it",),
        used,
    )


# ---------------------------------------------------------------------------------------------- how sure, in words


def _newest(evidence: Evidence) -> str:
    return "the newest of the releases asked for" if evidence.plan.chosen else "the newest release"


def _certainty(evidence: Evidence, version: str) -> float:
    """From how often the failure was seen, and how specifically the report describes it."""
    sure = SEEN_TWICE if evidence.runs(version) > 1 else SEEN_ONCE
    if _vague(evidence.plan.claim):
        sure -= VAGUELY
    return sure


def _vague(claim: Claim) -> bool:
    """The report gives neither a message nor frames nor output: only a kind to match."""
    told = claim.signature is not None and bool(claim.signature.message or claim.signature.frames)
    return not told and not claim.actual


def _ended_clean(seen: Observation) -> bool:
    return isinstance(seen.ended, Exited) and seen.ended.code == 0


def _skipped_between(edge: search.Edge) -> tuple[str, ...]:
    return (f"between them could not answer: {', '.join(edge.skipped)}",) if edge.skipped else ()


def _versions_of(plan: Plan, observations: Sequence[Observation]) -> tuple[str, ...]:
    present = {seen.version for seen in observations}
    return tuple(version for version in plan.order if version in present)


def _looked_at(evidence: Evidence) -> str:
    return _span(_versions_of(evidence.plan, evidence.observations))


def _newest_run(evidence: Evidence) -> str:
    return _versions_of(evidence.plan, evidence.observations)[-1]


def _last_words(evidence: Evidence, version: str) -> str:
    return next((seen.why for seen in reversed(evidence.originals()) if seen.version == version), "")


def _span(versions: Sequence[str]) -> str:
    """``3.4.0, 3.5.0`` or, of many, ``3.4.0 … 3.11.0 (9 releases)``."""
    if len(versions) <= 3:
        return ", ".join(versions)
    return f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"
