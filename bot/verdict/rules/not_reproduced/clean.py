"""Judge clean runs of the posted testcase. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.not_reproduced.facts import ends_well, only_compiles, quotes_no_failure
from bot.verdict.rules.not_reproduced.others import describe_other_builds
from bot.verdict.rules.phrases import find_last_reason, join_names, name_all, name_failure, name_releases, quote_span
from bot.verdict.rules.unquoted import find_build_after, list_failing
from bot.verdict.rules.untestable import describe_hardware, describe_moved, is_only_for_forks
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.normalize import STATUS
from runners.core.failure.outcomes import is_rejected
from runners.core.failure.printed.lines.tokens import Number, are_equal_lines, split_lines
from runners.core.protocol import Answer, Claim, ClaimKind, Observation, Outcome, Reason, Variant
from runners.toolchains import find_toolchain


@dataclass(frozen=True)
class CleanRuns:
    """The evidence of a testcase that runs cleanly on the releases ``good``, and fails as reported on none."""

    evidence: Evidence
    good: Sequence[str]

    @cached_property
    def used(self) -> tuple[int, ...]:
        return self.evidence.find_indices(*self.good)

    @property
    def claim(self) -> Claim:
        return self.evidence.plan.claim

    @property
    def newest(self) -> str:
        return self.evidence.plan.order[-1]

    @property
    def reported(self) -> str | None:
        return self.evidence.plan.reported

    @cached_property
    def lacks_part(self) -> bool:
        """True if the reported build lacks a part that every run needs."""
        return _is_absent(self.evidence, self.reported)

    @property
    def where(self) -> str:
        return name_releases(self.evidence, self.good)

    @property
    def everywhere(self) -> str:
        return name_all(self.evidence, self.good)

    def cannot_decide(self, why: str, settled_by: str, *, also: Sequence[int] = ()) -> Verdict:
        grounds, headline = (Ground.NO_ANSWER,), f"Inconclusive: {why}"
        return make_verdict(VerdictKind.INCONCLUSIVE, grounds, headline, (settled_by,), self.used + tuple(also))


def judge_clean(evidence: Evidence, good: Sequence[str]) -> Verdict:
    """Return the verdict of the first question that has one. Without one, the failure is not reproduced."""
    runs = CleanRuns(evidence, good)
    answers = (ask(runs) for ask in _QUESTIONS)
    answer = next((one for one in answers if one is not None), None)
    if answer is not None:
        return answer
    exact = runs.reported is not None and not evidence.is_dated()
    not_named = () if exact else (Ground.BUILD_NOT_NAMED,)
    # A clean run of the reported build contradicts the report: without a quoted failure, the run may have missed it.
    lacks = Ground.UNQUOTED if exact else Ground.UNQUOTED_ELSEWHERE
    unquoted = (lacks,) if _quotes_no_error(evidence) else ()
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, *not_named, *unquoted),
        f"Not reproduced: it runs cleanly on {runs.everywhere}.{describe_other_builds(evidence, good)}",
        (),
        runs.used,
    )


# ---------------------------------------------------------------------------------------------- questions


def _names_no_failure(runs: CleanRuns) -> Verdict | None:
    if runs.claim.kind is not ClaimKind.UNKNOWN:
        return None
    return runs.cannot_decide(
        f"it runs to its end on {runs.everywhere}, and the report names no failure to look for.",
        "to decide: the exact error message, or the wrong output and the expected output",
    )


def _prints_another_program(runs: CleanRuns) -> Verdict | None:
    reasons = {seen.reason for seen in runs.evidence.list_originals() if seen.answer is Answer.GOOD}
    if reasons != {Reason.PRINTS_SIMILAR}:
        return None
    return runs.cannot_decide(
        f"{runs.where} print another program than the report quotes, and no release prints the quoted one.",
        "to decide: the lines that are wrong, and the right ones",
    )


def _prints_the_unexpected(runs: CleanRuns) -> Verdict | None:
    differing = _find_unexpected(runs.evidence)
    if differing is None:
        return None
    return runs.cannot_decide(
        f"{runs.where} print what the report expects; {differing}, the closest build to the report, prints something"
        " else.",
        "to decide: the wrong output as printed",
        also=runs.evidence.find_indices(differing),
    )


def _is_about_a_fork(runs: CleanRuns) -> Verdict | None:
    if not is_only_for_forks(runs.evidence):
        return None
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"{describe_moved(runs.evidence)} It runs cleanly on {runs.where}.",
        (find_last_reason(runs.evidence, runs.newest) or "",),
        runs.used,
    )


def _lacks_library_there(runs: CleanRuns) -> Verdict | None:
    """Answer for a loader's message: the library is missing on the reporter's machine."""
    library = _MISSING_LIBRARY.search(runs.claim.signature.message if runs.claim.signature is not None else "")
    if library is None:
        return None
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"The failure is about {quote_span(library['name'], 60)} on the reporter's machine. Here, it runs cleanly"
        f" on {runs.where}.",
        ("a library that one machine lacks shows nothing about another machine",),
        runs.used,
    )


def _runs_on_stand_in_driver(runs: CleanRuns) -> Verdict | None:
    """Return the verdict on a failure at run time, if software runs cleanly instead of the hardware.

    The compiler is the same; the driver, its limits and the hardware are not. Return None if the compiler itself
    fails according to the report, or if a run was on the hardware.
    """
    evidence, claim = runs.evidence, runs.claim
    drivers = {seen.driver for seen in evidence.list_originals() if seen.answer is Answer.GOOD}
    status = claim.signature is not None and claim.signature.type.startswith(STATUS)
    if "" in drivers or not (status or claim.kind in _AT_RUN_TIME):
        return None
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"{describe_hardware(evidence)} On {join_names(sorted(drivers))}, it runs cleanly on {runs.everywhere}.",
        ("a clean run on software says nothing about the reported hardware and its driver",),
        runs.used,
    )


def _fails_beside_clean_runs(runs: CleanRuns) -> Verdict | None:
    evidence = runs.evidence
    found = _find_failure_at_home(evidence) or _find_failure_after(evidence)
    failing = found or _find_failure_before(evidence, runs.good)
    if failing is None:
        return None
    ends = name_failure(failing.signature.type) if failing.signature is not None else "another failure"
    role = _name_role(evidence, failing.version)
    return runs.cannot_decide(
        f"it runs cleanly on {runs.where}, and {failing.version}, {role}, ends with {ends}.",
        "to decide: the full error message as printed",
        also=evidence.find_indices(failing.version),
    )


def _lacks_deciding_run(runs: CleanRuns) -> Verdict | None:
    """Answer if the reported or the newest release gives no answer. A clean port answers for the newest."""
    evidence, good, newest = runs.evidence, runs.good, runs.newest
    at_home = None if evidence.is_dated() or runs.lacks_part else runs.reported
    silent = [v for v in (at_home, newest) if v is not None and v not in good]
    if not silent:
        return None
    if silent == [newest] and evidence.combine_answers(Variant.PORTED).get(newest) is Answer.GOOD:
        return make_verdict(
            VerdictKind.NOT_REPRODUCED,
            (Ground.CLEAN, Ground.PORTED),
            f"Not reproduced: it runs cleanly on {runs.where} and, ported to the API of {newest}, there too.",
            (f"on {newest}, as posted: {find_last_reason(evidence, newest)}",),
            runs.used + evidence.find_indices(newest, variants=(Variant.PORTED,)),
        )
    why = find_last_reason(evidence, silent[0])
    return runs.cannot_decide(
        f"it runs cleanly on {runs.where}, but {silent[0]} gives no answer.",
        f"on {silent[0]}: {why}" if why else "",
    )


def _lacks_named_build(runs: CleanRuns) -> Verdict | None:
    evidence, reported = runs.evidence, runs.reported
    if not runs.claim.versions or not (reported is None or runs.lacks_part):
        return None
    where = runs.where if reported else runs.everywhere
    lacking = f"{name_releases(evidence, [reported])} cannot run it here" if reported else _NOT_HERE
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, Ground.BUILD_NOT_HERE),
        f"Not reproduced: it runs cleanly on {where}; {lacking}.",
        ("the failure may have been fixed before the oldest of these",),
        runs.used,
    )


def _prints_other_values_now(runs: CleanRuns) -> Verdict | None:
    changed = _find_changed_output(runs.evidence)
    if changed is None:
        return None
    return runs.cannot_decide(
        f"it runs cleanly on {runs.everywhere}, and {changed} prints something else than {runs.newest}.",
        "to decide: the exact error message, or the wrong output and the expected output",
    )


_QUESTIONS = (
    _names_no_failure,
    _prints_another_program,
    _prints_the_unexpected,
    _is_about_a_fork,
    _lacks_library_there,
    _runs_on_stand_in_driver,
    _fails_beside_clean_runs,
    _lacks_deciding_run,
    _lacks_named_build,
    _prints_other_values_now,
)
"""In order: what clean runs can never answer, then builds that fail or give no answer, then other outputs."""


# ---------------------------------------------------------------------------------------------- facts


_NOT_HERE = "the version that the report names is not available"


def _is_absent(evidence: Evidence, version: str | None) -> bool:
    """True for a build that lacks a part that every run needs, such as a code generator."""
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    return bool(runs) and all(seen.outcome is Outcome.UNAVAILABLE for seen in runs)


def _quotes_no_error(evidence: Evidence) -> bool:
    """True if the form of the reported error is unknown: no quoted message, and no check in the testcase."""
    plan = evidence.plan
    return quotes_no_failure(evidence) and plan.claim.kind is ClaimKind.ERROR and not plan.checks_itself


def _find_changed_output(evidence: Evidence) -> str | None:
    """Return the reported release if its output differs from the newest, and the report quotes no failure.

    A report in words such as "does not work" may be about values. All runs of each of the two must print the same.
    """
    reported, newest = evidence.plan.reported, evidence.plan.order[-1]
    if not _quotes_no_error(evidence) or reported is None or only_compiles(evidence):
        return None
    printed = {
        version: {seen.excerpt.strip() for seen in evidence.list_originals() if seen.version == version}
        for version in (reported, newest)
    }
    if any(len(one) != 1 for one in printed.values()):
        return None
    (before,), (now,) = (list(map(split_lines, printed[version])) for version in (reported, newest))
    numbers = any(isinstance(token, Number) for line in before for token in line)
    return reported if numbers and len(before) == len(now) and not are_equal_lines(before, now) else None


_AT_RUN_TIME = frozenset({ClaimKind.WRONG_RESULT, *QUANTITIES})


def _find_failure_at_home(evidence: Evidence) -> Observation | None:
    """Return the failure of the build of the report's time, if each of its runs fails, and not because of the
    text."""
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if seen.version == plan.reported]
    fails = all(seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary) for seen in runs)
    if not runs or not fails or not evidence.has_near_build() or any(map(ends_well, runs)):
        return None
    return runs[0]


def _find_failure_after(evidence: Evidence) -> Observation | None:
    """Return the failure of the first build after a report that quotes no failure and names no build."""
    after = find_build_after(evidence)
    runs = [seen for seen in list_failing(evidence) if seen.version == after and not ends_well(seen)]
    return runs[0] if runs and quotes_no_failure(evidence) else None


def _name_role(evidence: Evidence, version: str) -> str:
    if version == evidence.plan.reported:
        return "the build of the report's time"
    return "the build after the report" if version == find_build_after(evidence) else "the build before these"


def _find_failure_before(evidence: Evidence, good: Sequence[str]) -> Observation | None:
    """Return the failure of the build before all clean ones, if its exception is the reported one.

    Only if no build represents the version that the report names. The report may give the message in its own words,
    and the failure may have been fixed after that build.
    """
    plan, claim = evidence.plan, evidence.plan.claim
    if plan.reported is not None or not claim.versions or claim.signature is None:
        return None
    tried = evidence.list_tested(Variant.ORIGINAL)
    older = tried[: min(map(tried.index, good))]
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if older and seen.version == older[-1]]
    same = all(
        seen.outcome is Outcome.OTHER_FAILURE
        and seen.signature is not None
        and seen.signature.type == claim.signature.type
        and not is_rejected(seen, vocabulary)
        for seen in runs
    )
    return runs[0] if runs and same and not any(map(ends_well, runs)) else None


_MISSING_LIBRARY = re.compile(
    r"(?P<name>\blib[\w.+-]{1,80}\.(?:so|dylib)[\w.]{0,20}|\b[\w-]{1,80}\.dll\b)[^\n]{0,200}?"
    r"(?:cannot open shared object file|image not found|undefined symbol|symbol not found|module could not be found)"
)
"""The loader's message about a shared library that is missing, or has another version."""


def _find_unexpected(evidence: Evidence) -> str | None:
    """Return the reported build, or the closest one, if it does not print the output that the report expects.

    The report does not quote the wrong output, so this run neither matches nor passes.
    """
    claim, reported = evidence.plan.claim, evidence.plan.reported
    if claim.kind is not ClaimKind.WRONG_RESULT or not claim.expected or claim.actual:
        return None
    runs = [seen for seen in evidence.list_originals() if seen.version == reported]
    differs = bool(runs) and all(find_behaviour(seen) is Behaviour.UNJUDGED for seen in runs)
    return reported if differs else None
