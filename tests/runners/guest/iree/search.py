"""Run the faulty programs through a whole investigation, and valid programs through single diagnosers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Investigation,
    Outcome,
    Plan,
    Testcase,
    Variant,
)
from runners.core.toolchain.diagnosis import ComparedRun, Failure
from runners.diagnosis.nondeterminism import rerun_varied
from runners.rewrite.testcase import retarget_testcase
from runners.toolchains.iree.diagnosis.dispatch_matching import Divergence, find_divergence
from runners.toolchains.iree.diagnosis.dispatch_traces import Trace
from runners.toolchains.iree.diagnosis.dispatches import trace_run
from runners.toolchains.iree.diagnosis.pass_bisect import bisect_passes
from runners.toolchains.iree.diagnosis.rules.undefined_operands import find_fault
from runners.toolchains.iree.diagnosis.vmvx_bounds import check_bounds
from runners.workbench import Workbench
from runners.workbench.means import make_means, run_under
from tests.runners.guest.iree.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSearch:
    """Result of one investigation. ``shown`` is True if the fault was observed."""

    shown: bool
    findings: tuple[Finding, ...]
    seconds: float

    def find_level(self, level: str) -> Finding | None:
        return next((one for one in self.findings if one.evidence.get("level") == level), None)

    def is_right(self, fault: Fault) -> bool:
        """Return True if the finding has the level and the name of the label."""
        found = self.find_level(fault.level)
        blames_llvm = found is not None and found.evidence["name"] != "none"
        return found is not None and fault.name in found.evidence["name"] and (bool(fault.name) or blames_llvm)


def search_fault(bench: Workbench, fault: Fault) -> FaultSearch:
    """Investigate a program on its release and on the release without the fault."""
    began = time.monotonic()
    seen = bench.run(make_plan(fault))
    found = tuple(one for one in seen.findings if one.kind is FindingKind.GUILTY_PASS)
    return FaultSearch(shown=has_failed(seen), findings=found, seconds=time.monotonic() - began)


def make_plan(fault: Fault) -> Plan:
    order = (fault.version, fault.right) if fault.right else (fault.version,)
    return Plan(
        testcase=fault.testcase,
        claim=fault.claim,
        device=fault.device,
        order=tuple(sorted(order, key=lambda version: int(version.split(".")[1]))),
        first=order,
        reported=fault.version,
        devices=fault.retargeted,
        bisect=False,
    )


def has_failed(seen: Investigation) -> bool:
    return any(one.outcome is Outcome.MATCH for one in seen.observations)


def find_false_alarms(
    bench: Workbench, testcase: Testcase, one: tuple[str, str], other: tuple[str, str]
) -> tuple[Divergence, ...] | None:
    """Return where two runs on (release, device) differ; None if they cannot be compared."""
    return compare_traces(trace_testcase(bench, testcase, *one), trace_testcase(bench, testcase, *other))


def trace_testcase(bench: Workbench, testcase: Testcase, version: str, device: str) -> Trace | None:
    """Return the trace of a run; None if the run fails or exceeds the limit of a trace."""
    plan = _make_plan(testcase, Claim())
    side = _run_side(bench, plan, version, device)
    return (
        trace_run(side, make_means(bench.execute, bench.progress, plan))
        if side.seen.ended == Exited(code=0)
        else None
    )


def compare_traces(one: Trace | None, other: Trace | None) -> tuple[Divergence, ...] | None:
    if one is None or other is None:
        return None
    parting = find_divergence(one.dispatches, other.dispatches)
    return () if parting is None else (parting,)


def _make_plan(testcase: Testcase, claim: Claim) -> Plan:
    return Plan(testcase=testcase, claim=claim, device="llvm-cpu", order=VALID_ON, first=())


def _run_side(bench: Workbench, plan: Plan, version: str, device: str) -> ComparedRun:
    testcase = retarget_testcase(plan.testcase, device) or plan.testcase
    return ComparedRun(
        testcase=testcase,
        seen=make_means(bench.execute, bench.progress, plan).run(version, Variant.CONTROL, testcase, device),
    )


# ---------------------------------------------------------------------------------------------- nothing at fault

VALID_ON = ("2.9.0", "3.5.0", "3.13.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Findings of one diagnoser on a valid program. ``said`` is None if the diagnoser could not run."""

    said: tuple[str, ...] | None
    seconds: float


def ask_diagnosers(bench: Workbench, testcase: Testcase, version: str) -> dict[str, Answer]:
    """Run every diagnoser of IREE on a valid program, as if a report called its output wrong.

    ``guilty-pass`` may then report that LLVM's passes have no influence, which is right.
    """
    plain = make_means(bench.execute, bench.progress, _make_plan(testcase, Claim())).run(
        version, Variant.CONTROL, testcase, "llvm-cpu"
    )
    if plain.ended != Exited(code=0):
        return {"runs": Answer(said=None, seconds=plain.seconds)}
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual=plain.excerpt)
    plan = _make_plan(testcase, claim)
    means = make_means(bench.execute, bench.progress, plan)
    failing = msgspec.structs.replace(plain, outcome=Outcome.MATCH, variant=Variant.ORIGINAL)
    failure = Failure(testcase=testcase, seen=failing)

    def ask_pass_bisection() -> tuple[str, ...] | None:
        found = bisect_passes(failure, means).findings
        return tuple(one.summary for one in found if one.evidence["name"] != "none") if found else None

    on_vmvx = _run_side(bench, plan, version, "vmvx").seen.ended == Exited(code=0)

    def ask_bounds_check() -> tuple[str, ...] | None:
        found = check_bounds(failure, means).findings
        return tuple(one.summary for one in found) if found or on_vmvx else None

    def ask_reruns() -> tuple[str, ...] | None:
        seen = rerun_varied(lambda setup: run_under(bench.execute, plan, version, testcase, setup))
        return (seen.cause,) if seen.cause else () if seen.runs else None

    return {
        "runs": Answer(said=(), seconds=plain.seconds),
        "undefined operand, by the text": _time_answer(lambda: () if find_fault(testcase) is None else ("a fault",)),
        "out of bounds, by vmvx": _time_answer(ask_bounds_check),
        "nondeterministic": _time_answer(ask_reruns),
        "LLVM pass": _time_answer(ask_pass_bisection),
    }


def _time_answer(look: Callable[[], tuple[str, ...] | None]) -> Answer:
    began = time.monotonic()
    said = look()
    return Answer(said=said, seconds=time.monotonic() - began)
