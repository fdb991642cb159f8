"""Hand-made reports that the rendering tests share: one per shape that a reader meets."""

from __future__ import annotations

from datetime import date

from bot.extract.types import Extraction, Missing, NoRepro, Repair, Repro, Span
from bot.issue import Issue
from bot.verdict.verdict import Report, Verdict, VerdictKind
from runners.core.packages.catalogue import Release
from runners.core.protocol import (
    Bisection,
    Claim,
    ClaimKind,
    CommitRange,
    Ended,
    Exited,
    Finding,
    FindingKind,
    NotRun,
    Observation,
    Outcome,
    Plan,
    Reason,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from tests.support.observed import REASONS, observe

SCRIPT = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R


@I.ir_module
class Pool:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2,), "float32"):
        return R.mean(x, axis=1)


vm = relax.VirtualMachine(tvm.compile(Pool, target="llvm"), tvm.cpu())
np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(np.ones((2, 3), "float32"))).numpy(), 1.0)
"""

MISMATCH = Signature(
    type="AssertionError", message="Not equal to tolerance rtol=1e-07, atol=0", frames=("assert_allclose",)
)


def issue(
    source: str = "issue.md", title: str = "[Bug] mean over an axis is wrong", number: int | None = None
) -> Issue:
    return Issue(
        source=source,
        title=title,
        body="as posted",
        sha256="ab" * 32,
        created=date(2026, 8, 20),
        author="reporter",
        repository="apache/tvm" if number else "",
        number=number,
    )


def seen(
    version: str,
    outcome: Outcome,
    *,
    signature: Signature | None = None,
    ended: Ended | None = None,
    device: str = "llvm",
    attempt: int = 1,
    variant: Variant = Variant.ORIGINAL,
    excerpt: str = "",
    why: str = "",
    reason: Reason | None = None,
    toolchain: str = "tvm",
) -> Observation:
    return observe(
        version,
        outcome,
        toolchain=toolchain,
        device=device,
        attempt=attempt,
        variant=variant,
        ended=ended or Exited(code=0 if outcome is Outcome.PASS else 1),
        why=why,
        reason=reason or REASONS[outcome],
        signature=signature,
        seconds=1.94,
        peak_bytes=310_000_000,
        excerpt=excerpt,
        environment="sha256:" + "5e" * 32,
        engine="bubblewrap",
    )


def repro(*, missing: tuple[Missing, ...] = ()) -> Repro:
    return Repro(
        testcase=Testcase(
            kind=TestcaseKind.PYTHON,
            toolchain="tvm",
            files={"repro.py": SCRIPT},
            steps=(("python", "repro.py"),),
        ),
        claim=Claim(kind=ClaimKind.WRONG_RESULT, signature=MISMATCH, versions=("0.26.0",), devices=("llvm",)),
        spans=(Span(file="repro.py", block=1, lines=(9, 9)), Span(file="repro.py", block=3, lines=(30, 42))),
        repairs=(
            Repair(kind="add-import", detail="import numpy as np"),
            Repair(kind="join-blocks", detail="1 and 3"),
        ),
        missing=missing,
        device="llvm",
    )


def released(toolchain: str, **days: str) -> tuple[Release, ...]:
    """Releases with their days: ``v0_25_0="2026-06-19"``."""
    return tuple(
        Release(
            toolchain=toolchain,
            version=(version := name.removeprefix("v").replace("_", ".")),
            released=date.fromisoformat(day),
            distributions=(f"apache-tvm=={version}",) if toolchain == "tvm" else (f"iree-base-compiler=={version}",),
            pythons=("3.11", "3.12"),
            tag=f"v{version}",
        )
        for name, day in days.items()
    )


def planned(extraction: Repro, *, device: str, reported: str, order: tuple[str, ...]) -> Plan:
    return Plan(
        testcase=extraction.testcase,
        claim=extraction.claim,
        device=device,
        order=order,
        first=order,
        reported=reported,
    )


def regression() -> Report:
    excerpt = "Traceback (most recent call last):\n  …\nAssertionError: Not equal to tolerance rtol=1e-07, atol=0\n"
    return Report(
        issue=issue("apache/tvm#4711", number=4711),
        extraction=repro(),
        observations=(
            seen(
                "0.25.0",
                Outcome.OTHER_FAILURE,
                signature=Signature(type="TypeError", message="unexpected keyword argument 'keepdims'"),
                why="not the reported failure",
            ),
            seen("0.25.0", Outcome.PASS, variant=Variant.PORTED),
            seen("0.26.0", Outcome.MATCH, signature=MISMATCH, excerpt=excerpt),
            seen("0.27.0", Outcome.MATCH, signature=MISMATCH, excerpt=excerpt),
            seen("0.27.0", Outcome.MATCH, signature=MISMATCH, excerpt=excerpt, attempt=2),
            seen(
                "0.27.0", Outcome.UNAVAILABLE, device="cuda", ended=NotRun(why="no such device", cause="unavailable")
            ),
        ),
        findings=(),
        bisections=(
            Bisection(
                direction="introduced",
                last_good="0.25.0",
                first_bad="0.26.0",
                confidence=0.97,
                probes=4,
                commits=CommitRange(
                    start="v0.25.0",
                    end="v0.26.0",
                    count=137,
                    compare_url="https://github.com/apache/tvm/compare/v0.25.0...v0.26.0",
                ),
            ),
        ),
        verdict=Verdict(
            kind=VerdictKind.REGRESSION,
            confidence=0.97,
            headline="0.25.0 runs cleanly after porting; 0.26.0 and 0.27.0, the newest release, fail as reported.",
            reasons=("The ported testcase passed on 0.25.0, once.", "The reported failure came back 2 of 2 times."),
            labels=("repro: confirmed",),
            evidence=(1, 2),
        ),
        command="reprobot reproduce apache/tvm#4711",
        notes=("0.25.0 was resolved as of 2026-06-19.",),
        plan=planned(repro(), device="llvm", reported="0.26.0", order=("0.25.0", "0.26.0", "0.27.0")),
        releases=released("tvm", v0_25_0="2026-06-19", v0_26_0="2026-08-11", v0_27_0="2026-09-25"),
        repository="apache/tvm",
    )


def fixed_crash() -> Report:
    """A command-line testcase that crashed in two releases, and could not be built in the oldest."""
    claim = Claim(
        kind=ClaimKind.CRASH, signature=Signature(type="SIGSEGV"), versions=("3.5.0",), devices=("local-task",)
    )
    crash = Signature(type="SIGSEGV", frames=("mlir::Operation::erase",))
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"input.mlir": "func.func @main() {\n  call @inner() : () -> ()\n  return\n}\n"},
        steps=(("iree-compile", "--iree-hal-target-backends=llvm-cpu", "input.mlir", "-o", "out.vmfb"),),
    )
    found = Repro(testcase=testcase, claim=claim, spans=(Span(file="input.mlir", block=1, lines=(8, 12)),))
    order = ("3.3.0", "3.4.0", "3.5.0", "3.6.0", "3.13.0")
    days = {"v3_3_0": "2025-03-24", "v3_4_0": "2025-05-05", "v3_5_0": "2025-06-11", "v3_6_0": "2025-07-21"}
    return Report(
        issue=issue("erase.md", title="Compiler crashes on an empty call"),
        extraction=found,
        observations=(
            seen("3.3.0", Outcome.INCOMPATIBLE, toolchain="iree", device="llvm-cpu", why="no such flag"),
            *(
                seen(
                    version,
                    Outcome.MATCH,
                    toolchain="iree",
                    device="llvm-cpu",
                    signature=crash,
                    ended=Signalled(code=11),
                    excerpt="Stack dump:\n0. Program arguments: iree-compile …\n```\n@someone please look",
                )
                for version in ("3.4.0", "3.5.0")
            ),
            seen("3.6.0", Outcome.PASS, toolchain="iree", device="llvm-cpu"),
            seen("3.13.0", Outcome.PASS, toolchain="iree", device="llvm-cpu"),
        ),
        findings=(),
        bisections=(
            Bisection(direction="fixed", last_bad="3.5.0", first_good="3.6.0", confidence=0.99, probes=5),
            Bisection(direction="introduced", first_bad="3.4.0", skipped=("3.3.0",), confidence=0.5, probes=5),
        ),
        verdict=Verdict(
            kind=VerdictKind.FIXED,
            confidence=0.99,
            headline="Already fixed: 3.5.0 fails as reported; 3.6.0 and 3.13.0, the newest release, run cleanly.",
        ),
        command="reprobot reproduce erase.md",
        plan=planned(found, device="llvm-cpu", reported="3.5.0", order=order),
        releases=released("iree", **days, v3_13_0="2026-10-19"),
        repository="iree-org/iree",
    )


def at_fault() -> Report:
    return Report(
        issue=issue(),
        extraction=repro(),
        observations=(
            seen("0.26.0", Outcome.MATCH, signature=MISMATCH, excerpt="nan nan"),
            seen("0.27.0", Outcome.MATCH, signature=MISMATCH, excerpt="1e+37 nan"),
        ),
        findings=(
            Finding(
                kind=FindingKind.OUT_OF_BOUNDS_ACCESS,
                summary="take reads row 17 of 12",
                evidence={
                    "kernel": "take",
                    "operator": "relax.take",
                    "access": "load",
                    "buffer": "table",
                    "axis": 0,
                    "outside_range": [12, 17],
                    "extent": 12,
                    "origin": "testcase-data",
                },
            ),
        ),
        bisections=(),
        verdict=Verdict(
            kind=VerdictKind.INVALID_REPRO,
            confidence=0.93,
            headline="The testcase itself is at fault: `relax.take` reads index 12…17 of axis 0 of `table`, which has"
            " 12 elements. The reported failure occurs on 0.26.0 and 0.27.0.",
        ),
        command="reprobot reproduce issue.md",
    )


def incomplete() -> Report:
    missing = (Missing(kind="file", name="export/model.onnx"), Missing(kind="name", name="build"))
    return Report(
        issue=issue(),
        extraction=repro(missing=missing),
        observations=(),
        findings=tuple(Finding(kind=FindingKind.MISSING, summary=f"it needs the {one.name}") for one in missing),
        bisections=(),
        verdict=Verdict(
            kind=VerdictKind.INCOMPLETE,
            confidence=1.0,
            headline="The testcase needs a file and a function that the issue does not give.",
        ),
        command="reprobot reproduce issue.md",
    )


def no_repro() -> Report:
    nothing: Extraction = NoRepro(
        reason="There is no code and no command line in the issue.", claim=Claim(), toolchain=None
    )
    return Report(
        issue=issue(title="it does not work"),
        extraction=nothing,
        observations=(),
        findings=(),
        bisections=(),
        verdict=Verdict(kind=VerdictKind.NO_REPRO, confidence=1.0, headline="Nothing in the issue can be run."),
        command="reprobot reproduce issue.md",
    )


ALL = {
    "regression": regression,
    "fixed_crash": fixed_crash,
    "at_fault": at_fault,
    "incomplete": incomplete,
    "no_repro": no_repro,
}
