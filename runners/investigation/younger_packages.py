"""Run a clean testcase again with the packages of the report's day.

An environment has the packages of the release's day, because newer packages break older releases. The reporter may
have installed the release later. If the wheels leave the version of a package of the compiler's project open, the
failure may need the newer package.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from runners.core.findings.kinds import describe_other_version
from runners.core.findings.record import make_finding
from runners.core.findings.types import PackageEvidence
from runners.core.protocol import Answer, ClaimKind, Finding, Observation, Variant
from runners.investigation.state import InvestigationState, make_cell

_MAY_NEED_IT = frozenset({ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.WRONG_RESULT})


def run_with_younger_packages(state: InvestigationState) -> tuple[Finding, ...]:
    """Run the reported release and the newest one with newer packages, if both are clean without them.

    Return a finding for the first release that then fails as reported.
    """
    plan = state.plan
    answers = state.combine_answers(state.original)
    if not plan.diagnose or state.is_late or plan.claim.kind not in _MAY_NEED_IT or Answer.BAD in answers.values():
        return ()
    newest = plan.order[-1]
    for version in dict.fromkeys((plan.reported or newest, newest)):
        younger = state.tools.find_younger(version) if answers.get(version) is Answer.GOOD else {}
        if not younger:
            continue
        seen = _run_with(state, version, younger)
        state.seen.append(seen)
        if seen.answer is Answer.BAD:
            return tuple(_make_finding(version, name, *versions) for name, versions in younger.items())
    return ()


def _run_with(state: InvestigationState, version: str, younger: Mapping[str, tuple[str, str]]) -> Observation:
    testcase = state.plan.testcase
    pins = tuple(f"{name}=={new}" for name, (_, new) in younger.items())
    cell = make_cell(
        state.plan,
        version,
        variant=Variant.CONTROL,
        testcase=msgspec.structs.replace(testcase, requirements=(*testcase.requirements, *pins)),
        changes=tuple(describe_other_version(name, old, new) for name, (old, new) in younger.items()),
    )
    state.tools.progress.cell(cell, None)
    seen = state.tools.run(cell, 1)
    state.tools.progress.cell(cell, seen)
    return seen


def _make_finding(version: str, name: str, older: str, younger: str) -> Finding:
    return make_finding(
        PackageEvidence(version=version, name=name, older=older, younger=younger),
        f"{version} fails as reported with {name} {younger}, and runs cleanly with {name} {older}",
    )
