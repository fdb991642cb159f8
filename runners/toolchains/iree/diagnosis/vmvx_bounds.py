"""Find accesses out of bounds with IREE's ``vmvx`` backend, which checks every access of a program."""

from __future__ import annotations

import re

from runners.core.findings.kinds import Origin
from runners.core.findings.record import make_finding
from runners.core.findings.types import ByteAccess
from runners.core.protocol import Variant
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.diagnosis.reference.program import compute_program

DEVICE = "vmvx"
_OUT_OF_RANGE = re.compile(
    r"OUT_OF_RANGE; [^\n]{0,120}\(offset=(?P<offset>\d{1,20}), length=(?P<length>\d{1,20})"
    r"[^\n]{0,60}?buffer (?:byte_)?length=(?P<extent>\d{1,20})\)"
)
"""The message of 3.13.0. Older releases print a part of it."""


def check_bounds(failure: Failure, means: Means) -> Diagnosis:
    """Run the same program and inputs on ``vmvx``.

    The run does not show whether the program or the compiler makes the access, so the finding blames neither. If the
    interpreter computes the program to its end, the program makes no such access, and no run is made.
    """
    failing = failure.seen
    if compute_program(failure.testcase) is not None:
        return NOTHING_FOUND
    checked = means.retarget(failure.testcase, DEVICE)
    if len(failure.testcase.steps) < 2 or (checked is None and failing.device != DEVICE):
        return NOTHING_FOUND
    seen = failing if checked is None else means.run(failing.version, Variant.RETARGETED, checked, DEVICE)
    found = _OUT_OF_RANGE.search(seen.excerpt)
    if found is None:
        return NOTHING_FOUND
    offset, length, extent = int(found["offset"]), int(found["length"]), int(found["extent"])
    finding = make_finding(
        ByteAccess(offset=offset, length=length, extent=extent, version=failing.version, origin=Origin.UNKNOWN),
        f"on vmvx, which checks accesses: {length} bytes at offset {offset} of a buffer of {extent} bytes",
    )
    return Diagnosis(controls=() if checked is None else (seen,), findings=(finding,))
