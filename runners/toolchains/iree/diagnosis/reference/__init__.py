"""Compare a result that a report calls wrong with the definitions of the operations. No run is needed."""

from __future__ import annotations

import math
import re

from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings import BY_DEFINITION, EXACT, VOTE, Vote
from runners.core.protocol import Exited, Finding, FindingKind
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number
from runners.toolchains.iree.diagnosis.reference.elementwise import compute_result

_PRINTED = re.compile(
    r"(?:^ *actual:|^result\[0\]: hal\.buffer_view) *\n(?P<shape>(?:\d{1,9}x){0,8})(?P<element>i\d{1,2}|f\d{2})="
    r"(?P<values>[^\n]{1,20000})",
    re.M,
)
_DIGITS = {"f16": 2e-3, "f32": 2e-5, "f64": 2e-5}
"""Greatest difference to the printed digits, relative."""


def check_definitions(failure: Failure, means: Means) -> Diagnosis:
    """Compute the result of an elementwise program, and compare it with the one that was printed."""
    seen = failure.seen
    printed = list(_PRINTED.finditer(seen.excerpt))
    wrong = seen.signature is not None and seen.signature.type == WRONG_OUTPUT
    if len(printed) != 1 or "result[1]" in seen.excerpt or not (wrong or seen.ended == Exited(code=0)):
        return NOTHING_FOUND
    right = compute_result(failure.testcase)
    words = [one for one in re.split(r"[\s\[\]]+", printed[0]["values"]) if one]
    if right is None or right.element != printed[0]["element"] or len(words) != len(right.numbers):
        return NOTHING_FOUND
    try:
        values = [float(word) if right.element in FLOATS else int(word) for word in words]
    except ValueError:  # shortened output
        return NOTHING_FOUND
    differing = [
        at for at, (a, b) in enumerate(zip(values, right.numbers, strict=True)) if not _agree(a, b, right.element)
    ]
    exact = all(f"{a:g}" == f"{b:g}" for a, b in zip(values, right.numbers, strict=True))
    vote = Vote.AGREES
    told: dict[str, object] = {EXACT: exact}
    if differing:
        at = differing[0]
        vote, told = Vote.DIFFERS, {"at": f"[{at}]", "returned": words[at], "expected": f"{right.numbers[at]:g}"}
    finding = Finding(
        kind=FindingKind.REFERENCE,
        summary=f"the definitions of the operations give {'another value' if differing else 'the same value'}",
        evidence={"name": BY_DEFINITION, VOTE: vote.value, "version": seen.version, **told},
    )
    return Diagnosis(findings=(finding,))


def _agree(a: Number, b: Number, element: str) -> bool:
    if element not in FLOATS:
        return a == b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_DIGITS[element], abs_tol=1e-6)
