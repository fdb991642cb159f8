"""The programs of ``iree_faults.py`` through a whole investigation, valid ones through the comparison alone."""

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
from runners.toolchains.iree.diagnosis.dispatch_matching import Parting, first_parting
from runners.toolchains.iree.diagnosis.dispatch_traces import Trace
from runners.toolchains.iree.diagnosis.dispatches import trace_run
from runners.toolchains.iree.diagnosis.pass_bisect import bisect_passes
from runners.toolchains.iree.diagnosis.undefined_operands import find_fault
from runners.toolchains.iree.diagnosis.vmvx_bounds import check_bounds
from runners.workbench import Workbench
from runners.workbench.means import make_means, run_under
from tests.runners.guest.iree.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What one investigation found. ``shown``: the fault was seen at all; ``seconds`` of the whole of it."""

    shown: bool
    findings: tuple[Finding, ...]
    seconds: float

    def at(self, level: str) -> Finding | None:
        return next((one for one in self.findings if one.evidence.get("level") == level), None)

    def right(self, fault: Fault) -> bool:
        """Whether the finding is of the level and the name that the label says."""
        found = self.at(fault.level)
        blames_llvm = found is not None and found.evidence["name"] != "none"
        return found is not None and fault.name in found.evidence["name"] and (bool(fault.name) or blames_llvm)


def seek(bench: Workbench, fault: Fault) -> Sought:
    """Investigate one program on its release, and on the one that is right."""
    began = time.monotonic()
    seen = bench.run(plan(fault))
    found = tuple(one for one in seen.findings if one.kind is FindingKind.GUILTY_PASS)
    return Sought(shown=fails(seen), findings=found, seconds=time.monotonic() - began)


def plan(fault: Fault) -> Plan:
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


def fails(seen: Investigation) -> bool:
    return any(one.outcome is Outcome.MATCH for one in seen.observations)


def alarms(
    bench: Workbench, testcase: Testcase, one: tuple[str, str], other: tuple[str, str]
) -> tuple[Parting, ...] | None:
    """Where two (release, device) of a valid program part; None where they could not be compared."""
    return parted(trace(bench, testcase, *one), trace(bench, testcase, *other))


def trace(bench: Workbench, testcase: Testcase, version: str, device: str) -> Trace | None:
    """None where it fails, or prints more than a trace holds: that raises no alarm, and proves no silence either."""
    plan = _plan(testcase, Claim())
    side = _side(bench, plan, version, device)
    return (
        trace_run(side, make_means(bench.execute, bench.progress, plan))
        if side.seen.ended == Exited(code=0)
        else None
    )


def parted(one: Trace | None, other: Trace | None) -> tuple[Parting, ...] | None:
    if one is None or other is None:
        return None
    parting = first_parting(one.dispatches, other.dispatches)
    return () if parting is None else (parting,)


def _plan(testcase: Testcase, claim: Claim) -> Plan:
    return Plan(testcase=testcase, claim=claim, device="llvm-cpu", order=VALID_ON, first=())


def _side(bench: Workbench, plan: Plan, version: str, device: str) -> ComparedRun:
    testcase = retarget_testcase(plan.testcase, device) or plan.testcase
    return ComparedRun(
        testcase=testcase,
        seen=make_means(bench.execute, bench.progress, plan).run(version, Variant.CONTROL, testcase, device),
    )


# ---------------------------------------------------------------------------------------------- nothing at fault

VALID_ON = ("2.9.0", "3.5.0", "3.13.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one diagnoser said of a valid program. ``said``: None where it could not look at all."""

    said: tuple[str, ...] | None
    seconds: float


def ask(bench: Workbench, testcase: Testcase, version: str) -> dict[str, Asked]:
    """Every diagnoser of IREE's on a valid program, as if a report said that what it prints is wrong.

    ``guilty-pass`` may say then that LLVM's passes have no part in it: so it is.
    """
    plain = make_means(bench.execute, bench.progress, _plan(testcase, Claim())).run(
        version, Variant.CONTROL, testcase, "llvm-cpu"
    )
    if plain.ended != Exited(code=0):
        return {"runs": Asked(said=None, seconds=plain.seconds)}
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual=plain.excerpt)
    plan = _plan(testcase, claim)
    means = make_means(bench.execute, bench.progress, plan)
    failing = msgspec.structs.replace(plain, outcome=Outcome.MATCH, variant=Variant.ORIGINAL)
    failure = Failure(testcase=testcase, seen=failing)

    def accused() -> tuple[str, ...] | None:
        found = bisect_passes(failure, means).findings
        return tuple(one.summary for one in found if one.evidence["name"] != "none") if found else None

    on_vmvx = _side(bench, plan, version, "vmvx").seen.ended == Exited(code=0)

    def checked() -> tuple[str, ...] | None:
        found = check_bounds(failure, means).findings
        return tuple(one.summary for one in found) if found or on_vmvx else None

    def repeated() -> tuple[str, ...] | None:
        seen = rerun_varied(lambda setup: run_under(bench.execute, plan, version, testcase, setup))
        return (seen.cause,) if seen.cause else () if seen.runs else None

    return {
        "runs": Asked(said=(), seconds=plain.seconds),
        "undefined operand, by the text": _timed(lambda: () if find_fault(testcase) is None else ("a fault",)),
        "out of bounds, by vmvx": _timed(checked),
        "nondeterministic": _timed(repeated),
        "LLVM pass": _timed(accused),
    }


def _timed(look: Callable[[], tuple[str, ...] | None]) -> Asked:
    began = time.monotonic()
    said = look()
    return Asked(said=said, seconds=time.monotonic() - began)
