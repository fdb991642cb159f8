"""The programs of ``iree_faults.py`` through a whole investigation, valid ones through the comparison alone."""

from __future__ import annotations

import time
from dataclasses import dataclass

from runners.dispatches import Side, compare_dispatches
from runners.execute import Investigation
from runners.protocol import Claim, Exited, Finding, FindingKind, Outcome, Plan, Testcase, Variant
from runners.retarget import retarget
from runners.workbench import Workbench
from tests.runners.guest.iree_faults import Fault


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
) -> tuple[Finding, ...] | None:
    """What comparing two (release, device) of a valid program says; None where it did not run on both."""
    plan = Plan(testcase=testcase, claim=Claim(), device="llvm-cpu", order=(one[0], other[0]), first=())
    sides = [_side(bench, plan, version, device) for version, device in (one, other)]
    if any(side.seen.ended != Exited(code=0) for side in sides):
        return None
    return compare_dispatches(sides[0], sides[1], bench.means(plan).search)


def _side(bench: Workbench, plan: Plan, version: str, device: str) -> Side:
    testcase = retarget(plan.testcase, device) or plan.testcase
    return Side(testcase=testcase, seen=bench.means(plan).run(version, Variant.CONTROL, testcase, device))
