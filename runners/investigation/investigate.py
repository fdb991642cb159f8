"""Run a plan: the matrix, the bisection, the reruns that confirm its result, and the diagnosis of a failure.

An investigation only chooses the next runs. The bot derives the verdict from the observations alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from runners.core.bisection import releases
from runners.core.failure.tensor_difference import find_device_differences
from runners.core.findings.kinds import Vote
from runners.core.findings.questions import get_subject, get_version, get_vote, settles_cause
from runners.core.protocol import (
    Answer,
    BuildRange,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Investigation,
    Observation,
    Outcome,
    Plan,
    Variant,
)
from runners.core.toolchain.diagnosis import Diagnosis, Failure
from runners.investigation.after_answer import run_matrix, settle_flaky
from runners.investigation.bisect_builds import search_builds
from runners.investigation.rerun import (
    confirm_answer,
    confirm_intermittent,
    confirm_other_failure,
    rerun_flaky,
    run_controls,
)
from runners.investigation.state import InvestigationState, Tools, bisect_releases, make_cell
from runners.investigation.targets import compile_for_targets
from runners.investigation.variants import compare_results, run_on_stand_ins, run_ported, run_retargeted
from runners.investigation.younger_packages import run_with_younger_packages


def investigate_plan(plan: Plan, tools: Tools) -> Investigation:
    """Run a plan to its end, or to the end of its budget."""
    state = InvestigationState(plan, tools)
    if plan.trail is not None:
        return _search_only(state, plan.trail)
    cause = CauseSearch(state)
    with tools.progress.stage("matrix"):
        run_matrix(state)
        settle_flaky(state)
        compile_for_targets(state)
    with tools.progress.stage("bisection"):
        bisect_releases(state, state.original, meanwhile=cause.begin_early)
    with tools.progress.stage("confirmation"):
        confirm_answer(state, state.original, meanwhile=cause.begin_early)
        confirm_intermittent(state, state.original)
        confirm_other_failure(state, state.original)
        run_controls(state)
        run_ported(state)
        compile_for_targets(state, Variant.PORTED)
        run_retargeted(state)
    tools.finish_search()
    if tools.tell is not None and cause.has_failure:
        tools.tell(tuple(state.seen))
    builds = BuildsBetween(state)
    with tools.progress.stage("diagnosis"):
        findings = cause.find() or _ask_references(state)
        findings = (*findings, *_ask_about_newest(state, findings))
        rerun_flaky(state, state.original, findings)
        run_on_stand_ins(state)
        findings = (*findings, *compare_results(state), *_check_reach(state), *run_with_younger_packages(state))
    found = [*findings, *find_device_differences(state.seen, plan.order), *_list_findings_of_runs(state.seen)]
    with tools.progress.stage("between releases"):
        build_range = builds.search()
    return Investigation(observations=tuple(state.seen), findings=_drop_repeated(found), trail=build_range)


def _ask_references(state: InvestigationState) -> tuple[Finding, ...]:
    """Ask the references whether the newest and the reported release print a wrong value, if the output does not
    decide.

    A printed value alone is neither right nor wrong. It is decided if a reference computes another value, or if the
    output of the program is undefined.
    """
    plan = state.plan
    if not plan.diagnose or plan.claim.kind is not ClaimKind.WRONG_RESULT or state.is_late:
        return ()
    if any(seen.answer in (Answer.GOOD, Answer.BAD) for seen in state.seen):
        return ()
    votes: list[Finding] = []
    for version in dict.fromkeys((plan.order[-1], plan.reported or plan.order[0])):
        seen = next((one for one in state.seen if _shows_values(one, plan, version)), None)
        if seen is not None:
            asked = state.tools.ask_references(Failure(testcase=plan.testcase, seen=seen, clean=None))
            state.seen.extend(asked.controls)
            votes += asked.findings
            if any(map(settles_cause, asked.findings)):
                break
    return tuple(votes)


def _ask_about_newest(state: InvestigationState, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Ask the references about the newest release, if its values do not decide and an older release's are wrong."""
    plan, newest = state.plan, state.plan.order[-1]
    votes = {get_version(one): vote for one in findings if (vote := get_vote(one)) is not None}
    seen = next((one for one in state.seen if _shows_values(one, plan, newest)), None)
    if not plan.diagnose or Vote.DIFFERS not in votes.values() or newest in votes or seen is None or state.is_late:
        return ()
    if any(one.version == newest and one.answer is not Answer.SKIP for one in state.seen):
        return ()
    asked = state.tools.ask_references(Failure(testcase=plan.testcase, seen=seen, clean=None))
    state.seen.extend(asked.controls)
    return asked.findings


def _shows_values(seen: Observation, plan: Plan, version: str) -> bool:
    """True for a run of the posted testcase that ends well and whose output does not decide."""
    here = seen.version == version and seen.device == plan.device and seen.variant is Variant.ORIGINAL
    return here and seen.outcome is Outcome.OTHER_FAILURE and seen.ended == Exited(code=0)


def _check_reach(state: InvestigationState) -> tuple[Finding, ...]:
    """Check whether the clean run of the newest release calls what the report suspects, if no run is bad."""
    plan, newest = state.plan, state.plan.order[-1]
    clean = [seen for seen in state.seen if seen.answer is Answer.GOOD and seen.version == newest]
    if not plan.diagnose or not plan.claim.accused or not clean or state.is_late:
        return ()
    if any(seen.answer is Answer.BAD for seen in state.seen):
        return ()
    if any(seen.variant is Variant.ORIGINAL for seen in clean):
        return state.tools.check_reach(newest, plan.testcase)
    ported = state.tools.port(plan.testcase, newest)
    return state.tools.check_reach(newest, ported.testcase) if ported is not None else ()


def _search_only(state: InvestigationState, build_range: BuildRange) -> Investigation:
    """Search the builds of a range, and diagnose the failure."""
    with state.tools.progress.stage("bisection"):
        _search_builds(state, build_range)
    state.tools.finish_search()
    with state.tools.progress.stage("diagnosis"):
        findings = CauseSearch(state).find()
    found = _drop_repeated([*findings, *_list_findings_of_runs(state.seen)])
    return Investigation(observations=tuple(state.seen), findings=found, trail=build_range)


FEW_BUILDS = 4
"""Minimum number of builds worth a search. One or two release candidates are not; `reprobot bisect` searches them."""


class BuildsBetween:
    """The builds between the releases of the newest change. They are listed during the diagnosis, and searched after
    it.

    A diagnosis may show that the failure is flaky. Then another pair of releases is the newest change.
    """

    def __init__(self, state: InvestigationState) -> None:
        self._state = state
        self._ends = self._find_ends()
        background = state.tools.background
        self._listed: Future[BuildRange | str] | None = None
        if background is not None and self._ends is not None:
            self._listed = background.submit(self._list, self._ends)

    def _find_ends(self) -> tuple[str, str] | None:
        """Return a good and a bad release around the newest change. None if no search between them is requested."""
        plan, state = self._state.plan, self._state
        answers = state.combine_answers(state.original)
        edges = (releases.find_fix(plan.order, answers), releases.find_introduction(plan.order, answers))
        edge = next((e for e in edges if e is not None and e.older is not None and e.newer is not None), None)
        if not plan.deepen or state.tools.between_releases is None or edge is None:
            return None
        assert edge.older is not None
        assert edge.newer is not None
        return (edge.older, edge.newer) if answers[edge.newer] is Answer.BAD else (edge.newer, edge.older)

    def _list(self, ends: tuple[str, str]) -> BuildRange | str:
        between = self._state.tools.between_releases
        assert between is not None
        return between.list_builds(*ends)

    def search(self) -> BuildRange | None:
        """Search the builds, and return them. None if there are none."""
        ends = self._find_ends()
        if ends is None:
            return None
        listed = self._listed.result() if self._listed is not None and ends == self._ends else self._list(ends)
        if isinstance(listed, str):
            self._state.tools.progress.say(listed)
            return None
        if len(listed.builds) - 2 <= FEW_BUILDS:
            return None
        _search_builds(self._state, listed)
        return listed


def _search_builds(state: InvestigationState, build_range: BuildRange) -> None:
    tools, plan = state.tools, state.plan
    assert tools.between_releases is not None

    def attempt(name: str, number: int) -> Observation:
        cell = make_cell(plan, name)
        tools.progress.cell(cell, None)
        seen = tools.run(cell, number)
        tools.progress.cell(cell, seen)
        return seen

    state.seen += search_builds(
        build_range,
        device=plan.device,
        known=state.seen,
        attempt=attempt,
        supply=tools.between_releases.supply,
        executor=tools.executor,
        workers=plan.budget.workers,
        expired=lambda: state.is_late,
    )


class CauseSearch:
    """The diagnosis of an investigation. It may begin early, as soon as its failure is known."""

    def __init__(self, state: InvestigationState) -> None:
        self._state = state
        self._early: tuple[Failure, Future[Diagnosis]] | None = None

    @property
    def has_failure(self) -> bool:
        """True if there is a failure to diagnose."""
        return _choose_failure(self._state) is not None

    def begin_early(self) -> None:
        """Begin the diagnosis if no further answer of the search can change the failure to diagnose."""
        state, background = self._state, self._state.tools.background
        failure = _choose_failure(state)
        if (
            background is None
            or self._early is not None
            or failure is None
            or state.plan.claim.kind is ClaimKind.HANG
        ):
            return
        fix = releases.find_fix(state.plan.order, state.combine_answers(state.original))
        newest = failure.seen.version == state.plan.order[-1] or failure.seen == state.find_unchanged()
        if newest or (fix is not None and fix.is_narrowed):
            self._early = failure, background.submit(state.tools.diagnose, failure)

    def find(self) -> tuple[Finding, ...]:
        """Look for the cause on the newest release with the failure. Without one, diagnose another failure."""
        failure = _choose_failure(self._state)
        if failure is None or self._state.is_late:
            return ()
        early = self._early
        # A confirming run may have shown that the failure is flaky. Then the diagnosis starts again.
        done = early[1].result() if early is not None and early[0] == failure else self._state.tools.diagnose(failure)
        self._state.seen.extend(done.controls)
        return done.findings


def _choose_failure(state: InvestigationState) -> Failure | None:
    failing = state.find_failing() or state.find_otherwise_failing()
    if failing is None or not state.plan.diagnose or state.plan.claim.kind is ClaimKind.ACCEPTED:
        return None  # no run shows the cause of a missing error
    same = [one for one in state.seen if _get_configuration(one) == _get_configuration(failing)]
    clean = next((one for one in same if one.answer is Answer.GOOD), None)
    return Failure(testcase=state.plan.testcase, seen=failing, clean=clean)


def _get_configuration(seen: Observation) -> tuple[str, Variant, str]:
    return seen.version, seen.variant, seen.device


def _list_findings_of_runs(seen: Iterable[Observation]) -> Iterable[Finding]:
    """Return the findings of single runs, such as moved names."""
    return (finding for observation in seen for finding in observation.findings)


def _drop_repeated(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep one finding of each kind about each name, and one vote of each reference about each release."""
    return tuple({_make_key(finding): finding for finding in findings}.values())


def _make_key(finding: Finding) -> tuple[FindingKind, str, str]:
    is_vote = finding.kind is FindingKind.REFERENCE
    return finding.kind, get_subject(finding), get_version(finding) if is_vote else ""
