"""Check whether the testcase uses a submodule that exists but was never imported. With the import, it runs."""

from __future__ import annotations

import re

import msgspec

from runners.core.findings.kinds import ControlEnd
from runners.core.findings.record import make_finding
from runners.core.findings.types import MissingEvidence
from runners.core.protocol import Outcome, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

_NO_SUBMODULE = re.compile(
    r"module '(?P<owner>[A-Za-z_][\w.]{0,200})' has no attribute '(?P<name>[A-Za-z_]\w{0,100})'"
)
_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)


def check_forgotten_import(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with the import added. A finding needs a clean run."""
    signature = failure.seen.signature
    if signature is None or signature.type != "AttributeError":
        return NOTHING_FOUND
    found = _NO_SUBMODULE.search(signature.message)
    if found is None:
        return NOTHING_FOUND
    module = f"{found['owner']}.{found['name']}"
    control = means.run_control(failure, insert_first(failure.testcase, f"import {module}"))
    if control.outcome is not Outcome.PASS:
        return Diagnosis(controls=(control,))
    evidence = MissingEvidence(
        module=module,
        version=failure.seen.version,
        control=f"import {module}",
        control_end=ControlEnd.FAILURE_GONE,
    )
    finding = make_finding(
        evidence, f"the submodule {module} exists but is not imported by its package; with `import {module}` it runs"
    )
    return Diagnosis(controls=(control,), findings=(finding,))


def insert_first(testcase: Testcase, line: str) -> Testcase:
    """Return the testcase with one more line before its first file's code, after its ``__future__`` imports."""
    name = testcase.steps[0][1]
    code = testcase.files[name]
    futures = list(_FUTURE.finditer(code))
    at = futures[-1].end() if futures else 0
    return msgspec.structs.replace(testcase, files={**testcase.files, name: f"{code[:at]}{line}\n{code[at:]}"})
