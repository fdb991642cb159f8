"""Compile for other targets, if the report names none. The reported failure may occur only on another target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runners.core.bisection import releases
from runners.core.protocol import Answer, ClaimKind, Outcome, Variant
from runners.investigation.state import Configuration, InvestigationState, list_next

WHILE_COMPILING = frozenset({ClaimKind.CRASH, ClaimKind.ERROR})
"""Failures that the compiler alone can show. A hang is left out, because each run takes the whole time limit."""


def compile_for_targets(state: InvestigationState, variant: Variant = Variant.ORIGINAL) -> None:
    """Compile for the usual targets, if the report names none and the testcase runs cleanly on its own device.

    The first target that fails as reported is searched like the testcase's own. `Outcome.COMPILED` marks targets that
    compile, which is not a clean run.
    """
    plan, claim = state.plan, state.plan.claim
    asked = not claim.devices and not plan.devices and claim.kind in WHILE_COMPILING and plan.bisect
    own = Configuration(variant=variant, testcase=plan.testcase, device=plan.device)
    answers = state.combine_answers(own)
    done = any(seen.outcome is Outcome.COMPILED for seen in state.seen)
    if not asked or done or Answer.GOOD not in answers.values() or Answer.BAD in answers.values():
        return
    telling = [version for version in _list_telling(state) if answers.get(version, Answer.GOOD) is Answer.GOOD]
    for device in state.tools.targets:
        _run_target(state, device, telling, compile_only=True)
        if any(seen.device == device and seen.outcome is Outcome.MATCH for seen in state.seen):
            _search_target(state, device)
            return


def _run_target(state: InvestigationState, device: str, versions: Iterable[str], *, compile_only: bool) -> None:
    configurations = ((_configure_target(state, device, one, compile_only=compile_only), one) for one in versions)
    state.run_each([(configuration, version) for configuration, version in configurations if configuration])


def _search_target(state: InvestigationState, device: str) -> None:
    """Find the introduction and the fix of the failure on a target that shows it. Compiling is a clean run there."""
    order = state.plan.order
    only_compiled = [one for one in state.seen if one.device == device and one.outcome is Outcome.COMPILED]
    state.seen = [one for one in state.seen if one not in only_compiled]  # the same runs follow, as answers
    wanted: Sequence[str] = [one.version for one in only_compiled]
    while wanted and not state.is_exhausted:
        _run_target(state, device, wanted, compile_only=False)
        answers = releases.combine_answers(state.seen, Variant.RETARGETED, device)
        wanted = releases.choose_probes(order, answers, most=state.plan.budget.workers)
    deciding = releases.list_deciding(order, releases.combine_answers(state.seen, Variant.RETARGETED, device))
    _run_target(state, device, deciding, compile_only=False)


def _list_telling(state: InvestigationState) -> tuple[str, ...]:
    """Return the releases that run first, and the one after the build nearest to the report.

    A report may be about a build between the two.
    """
    first = state.plan.first
    return tuple(dict.fromkeys([*first[:1], *list_next(state.plan), *first[1:]]))


def _configure_target(
    state: InvestigationState, device: str, version: str, *, compile_only: bool
) -> Configuration | None:
    """Return the testcase for the device, in the notation of the release. None for the testcase's own device."""
    moved = None if device == state.plan.device else state.tools.compile_for(state.plan.testcase, device)
    if moved is None:
        return None
    from runners.rewrite.testcase import describe_retarget

    port = state.tools.port(moved, version)
    testcase = moved if port is None else port.testcase
    return Configuration(
        variant=Variant.RETARGETED,
        testcase=testcase,
        device=device,
        changes=describe_retarget(testcase),
        compile_only=compile_only,
    )
