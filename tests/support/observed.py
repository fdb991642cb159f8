"""Observations for tests: one run each, told by what matters to the test."""

from __future__ import annotations

import msgspec

from runners.core.failure.outcomes import get_answer
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Observation,
    Outcome,
    Plan,
    Reason,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)

ORDER = ("1.0", "1.1", "1.2", "1.3")
PLAN = Plan(
    testcase=Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": ""}, steps=(("python", "a.py"),)),
    claim=Claim(kind=ClaimKind.ERROR, signature=Signature(type="InternalError", message="no slot for the variable")),
    device="llvm",
    order=ORDER,
    first=ORDER,
)


REASONS = {
    Outcome.MATCH: Reason.AS_QUOTED,
    Outcome.OTHER_FAILURE: Reason.FAILS_DIFFERENTLY,
    Outcome.PASS: Reason.ENDS_WELL,
    Outcome.COMPILED: Reason.COMPILES_ONLY,
    Outcome.TIMEOUT: Reason.TIMED_OUT,
    Outcome.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    Outcome.INCOMPATIBLE: Reason.API_MOVED,
    Outcome.UNAVAILABLE: Reason.NOT_RUN,
    Outcome.INFRA: Reason.NOT_RUN,
}
"""The usual reason for each outcome."""


def observe(version: str, outcome: Outcome, **more: object) -> Observation:
    """The first run of the original on TVM's ``llvm``, answered as the oracle would; ``more``: fields."""
    run = Observation(
        toolchain="tvm", version=version, device="llvm", attempt=1, variant=Variant.ORIGINAL, outcome=outcome,
        answer=get_answer(outcome), ended=Exited(code=0 if outcome is Outcome.PASS else 1), why="seen",
        reason=REASONS[outcome],
    )  # fmt: skip
    return msgspec.structs.replace(run, **more)
