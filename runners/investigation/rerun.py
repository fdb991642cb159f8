"""Rerun the releases that decide the answer, failures reported as intermittent, and flaky releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runners.core.bisection import releases
from runners.core.bisection.rate import count_clean_runs
from runners.core.findings.kinds import Cause
from runners.core.findings.questions import get_cause, get_version
from runners.core.protocol import SAID_TO_WORK, Answer, Exited, Finding, FindingKind, Outcome, Variant
from runners.investigation.after_answer import REPEATS
from runners.investigation.state import Configuration, InvestigationState

AGREEING = 5
"""Runs of a build whose answers agree although its output differs, or although the report calls the failure
intermittent. Two runs may agree by luck."""

ORDERLY = 3
"""Runs of the newest release that must end with an error before the crash counts as gone."""


def confirm_answer(
    state: InvestigationState, configuration: Configuration, *, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Rerun both sides of each change, and the newest release that answered. ``meanwhile`` is as in `run`."""
    deciding = releases.list_deciding(state.plan.order, state.combine_answers(configuration))
    state.run(configuration, _skip_unchanged(state, deciding), meanwhile=meanwhile)


def _skip_unchanged(state: InvestigationState, versions: Iterable[str]) -> tuple[str, ...]:
    """Replace the newest release by that of the earlier answer, if both behave the same."""
    same, newest = state.find_unchanged(), state.plan.order[-1]
    chosen = (same.version if same is not None and version == newest else version for version in versions)
    return tuple(dict.fromkeys(chosen))


def confirm_intermittent(state: InvestigationState, configuration: Configuration) -> None:
    """Rerun the reported and the newest release, if the report calls the failure intermittent.

    Two agreeing runs are too few then. Five clean runs are too few as well: the failure rate may still be two in
    five.
    """
    if not state.plan.claim.sometimes:
        return
    answers = state.combine_answers(configuration)
    answered = state.list_answered(configuration)
    wanted = [v for v in (state.plan.reported, *answered[-1:]) if v in answered]
    for version in _skip_unchanged(state, wanted):
        times = REPEATS if answers[version] is Answer.GOOD else AGREEING
        for _ in range(times - state.count_runs(configuration, version)):
            if version not in state.find_disagreeing(configuration):
                state.run(configuration, [version])


def confirm_other_failure(state: InvestigationState, configuration: Configuration) -> None:
    """Rerun the newest release if it ends with an ordinary error where another release crashes as reported.

    A read of uninitialized memory may crash in one run and end with an error in the next.
    """
    newest = state.plan.order[-1]
    own = [one for one in state.seen if one.variant is configuration.variant and one.device == configuration.device]
    crashes = [one for one in own if one.outcome is Outcome.MATCH and not isinstance(one.ended, Exited)]
    there = [one for one in own if one.version == newest]
    if not crashes or not there or any(one.outcome is not Outcome.OTHER_FAILURE for one in there):
        return
    for _ in range(ORDERLY - len(there)):
        if state.combine_answers(configuration).get(newest) is Answer.SKIP:
            state.run(configuration, [newest])


def rerun_flaky(state: InvestigationState, configuration: Configuration, findings: Iterable[Finding]) -> None:
    """Rerun the newest flaky release up to REPEATS times. Prefer a release whose cause is known.

    A clean newest release is rerun until luck is excluded, given the flaky release's failure rate. A release whose
    answers agree while its output differs is rerun up to AGREEING times. Random numbers of the testcase change in
    every run. Then no other condition is varied.
    """
    causes = {get_version(one): get_cause(one) for one in findings if one.kind is FindingKind.NONDETERMINISTIC}
    for version, cause in causes.items():
        _rerun_release(state, configuration, version, AGREEING, vary=cause is not Cause.RANDOMNESS)
    flaky = _skip_unchanged(state, state.find_disagreeing(configuration))
    for version in ([v for v in flaky if v in causes] or flaky)[-1:]:
        vary = causes.get(version) is not Cause.RANDOMNESS
        _rerun_release(state, configuration, version, REPEATS, vary=vary)
        _rerun_clean(state, configuration, version, vary=vary)


def _rerun_clean(state: InvestigationState, configuration: Configuration, flaky: str, *, vary: bool) -> None:
    """Run the newest release as often as needed to distinguish a fix from luck, if REPEATS runs are enough."""
    newest = state.plan.order[-1]
    bad, runs = state.count_failures(configuration, flaky)
    if newest == flaky or state.combine_answers(configuration).get(newest) is not Answer.GOOD or not 0 < bad < runs:
        return
    if (wanted := count_clean_runs(bad, runs)) <= REPEATS:
        _rerun_release(state, configuration, newest, wanted, vary=vary)


def _rerun_release(
    state: InvestigationState, configuration: Configuration, version: str, times: int, *, vary: bool
) -> None:
    """Run a release until it has the given number of runs."""
    missing = times - state.count_runs(configuration, version)
    state.run_each([(configuration, version)] * missing, vary=vary)


def run_controls(state: InvestigationState) -> None:
    """Run the code that the report calls working, on the newest failing release. A failure weakens the report."""
    failing = state.find_failing()
    if failing is None or failing.variant is not Variant.ORIGINAL:
        return
    for testcase in state.plan.controls:
        control = Configuration(
            variant=Variant.CONTROL, testcase=testcase, device=state.plan.device, changes=(SAID_TO_WORK,)
        )
        state.run(control, [failing.version])
