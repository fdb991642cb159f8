"""Run the unmodified testcase once under the guest's instrumentation, and check its claims in runs of the host.

The guest (``guest/tvm/diagnose.py``) checks accesses, parameters and inputs of passes, and values. The host traces a
claimed read of uninitialized memory, and runs a call that is claimed to work.
"""

from __future__ import annotations

import msgspec

from runners.core.findings.kinds import ControlEnd, Origin
from runners.core.findings.record import add_evidence, read_evidence
from runners.core.findings.types import Confirmation, KernelAccess, SignatureEvidence
from runners.core.protocol import Finding, Observation, Outcome, Testcase
from runners.core.toolchain.claims import read_findings
from runners.core.toolchain.diagnosis import Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step
from runners.toolchains.tvm.diagnosis.uninitialized import trace_uninitialized

MODES = ("bounds", "signature", "mutation", "nan", "unwritten")


def run_instrumented(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase under all checks, then confirm their claims."""
    claims = means.run_hook(failure.seen.version, instrument_testcase(failure.testcase, ",".join(MODES)))

    def run_mode(mode: str) -> Observation:
        return means.run_control(failure, instrument_testcase(failure.testcase, mode))

    claimed = tuple(_clear_made_operator(one, failure.testcase) for one in read_findings(claims))
    controls, findings = trace_uninitialized(claimed, failure, run_mode)
    return Diagnosis(controls=controls, findings=_run_claimed_call(findings, failure, means))


def _clear_made_operator(found: Finding, testcase: Testcase) -> Finding:
    """Blame no party for an access of an operator that only a pass makes: the adjoint of an operator.

    The testcase provides the indices, and the pass decides what they index.
    """
    evidence = read_evidence(found)
    operator = evidence.operator if isinstance(evidence, KernelAccess) else None
    written = any("grad." in text for text in testcase.files.values())
    if operator is None or not operator.startswith("relax.grad.") or written:
        return found
    return add_evidence(found, Confirmation(origin=Origin.UNKNOWN))


def instrument_testcase(testcase: Testcase, modes: str) -> Testcase:
    """Return the testcase with its script under ``guest/tvm/diagnose.py`` in these modes."""
    (_, script, *arguments) = testcase.steps[0]
    return msgspec.structs.replace(testcase, steps=(make_launch_step("tvm.diagnose", modes, script, *arguments),))


def _run_claimed_call(found: tuple[Finding, ...], failure: Failure, means: Means) -> tuple[Finding, ...]:
    """Run the testcase with the old call replaced by the call that a finding claims to work.

    Return the findings. A clean run adds a control to the evidence. A run that fails as reported refutes the finding.
    """
    claimed = [one for one in found if _shows_a_call(one)]
    if not claimed:
        return found
    version = failure.seen.version
    match means.run_control(failure, instrument_testcase(failure.testcase, "repair")).outcome:
        case Outcome.MATCH:
            return tuple(one for one in found if one not in claimed)
        case Outcome.PASS:
            end = ControlEnd.FAILURE_GONE
            ran = f"with this call in the place of the old one the testcase runs cleanly on {version}"
        case _:
            end = ControlEnd.NOT_CLEAN
            ran = f"with this call in its place the testcase does not fail as reported on {version}, nor pass"
    shown = Confirmation(control=ran, control_end=end)
    return tuple(add_evidence(one, shown) if one in claimed else one for one in found)


def _shows_a_call(one: Finding) -> bool:
    evidence = read_evidence(one)
    return isinstance(evidence, SignatureEvidence) and bool(evidence.call_that_works)
