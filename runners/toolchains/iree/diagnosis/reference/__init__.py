"""Compare a result that a report calls wrong with the definitions of the operations. No run is needed."""

from __future__ import annotations

import math
import re

from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings import BY_DEFINITION, EXACT, VOTE, Vote
from runners.core.protocol import Exited, Finding, FindingKind
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from runners.toolchains.iree.diagnosis.reference.tensors import Values

_PRINTED = re.compile(
    r"(?:^ *actual:|^result\[\d{1,2}\]: hal\.buffer_view) *\n(?P<shape>(?:\d{1,9}x){0,8})"
    r"(?P<element>u?i\d{1,2}|b?f\d\w{1,10})=(?P<values>[^\n]{1,20000})",
    re.M,
)
_DIGITS = {"f32": 2e-5, "f64": 2e-5, "f16": 2e-3, "bf16": 1e-2, "f8E4M3FN": 0.13, "f8E4M3FNUZ": 0.13}
"""Greatest difference to the printed digits, relative. Formats that are not listed have two bits: `_COARSE`."""
_COARSE = 0.26


_OTHER_SUMS = 1e-2
"""Difference of rounded sums, relative to the largest, from which on they differ."""


def check_definitions(failure: Failure, means: Means) -> Diagnosis:
    """Compute the results of a program by the definitions of its operations, and compare the printed ones."""
    seen = failure.seen
    printed = list(_PRINTED.finditer(seen.excerpt))
    wrong = seen.signature is not None and seen.signature.type == WRONG_OUTPUT
    if not printed or not (wrong or seen.ended == Exited(code=0)):
        return NOTHING_FOUND
    results = compute_program(failure.testcase)
    if results is None or len(printed) != len(results) or f"result[{len(results)}]" in seen.excerpt:
        return NOTHING_FOUND
    compared = [_compare_result(one, right) for one, right in zip(printed, results, strict=True)]
    if None in compared:
        return NOTHING_FOUND
    known = [one for one in compared if one is not None]
    differing = next((one for one in known if "at" in one), None)
    vote = Vote.AGREES if differing is None else Vote.DIFFERS
    told: dict[str, object] = {EXACT: all(one.get(EXACT) for one in known)} if differing is None else differing
    finding = Finding(
        kind=FindingKind.REFERENCE,
        summary=f"the definitions of the operations give {'another value' if differing else 'the same value'}",
        evidence={"name": BY_DEFINITION, VOTE: vote.value, "version": seen.version, **told},
    )
    return Diagnosis(findings=(finding,))


def _compare_result(printed: re.Match[str], right: Values) -> dict[str, object] | None:
    """Return where a printed result differs, else whether each printed digit is right; None if it cannot be read."""
    words = [one for one in re.split(r"[\s\[\]]+", printed["values"]) if one]
    if right.element != printed["element"] or len(words) != len(right.numbers):
        return None
    try:
        if right.element == "i1":  # printed as bytes: 01 00
            words = [str(-int(word, 16)) for word in words]
        values = [float(word) if right.element in FLOATS else int(word) for word in words]
    except ValueError:  # shortened output
        return None
    pairs = list(zip(values, right.numbers, strict=True))
    if right.is_rounded:
        largest = max((abs(b) for _, b in pairs if math.isfinite(b)), default=1.0)
        distance = max((abs(a - b) / (largest or 1.0) for a, b in pairs if math.isfinite(a - b)), default=0.0)
        near = distance < _OTHER_SUMS and all(math.isnan(a) is math.isnan(b) for a, b in pairs)
        if near or right.element not in ("f32", "f64"):
            return None  # another order of the additions, or wider ones, may be as right
    differing = next((at for at, (a, b) in enumerate(pairs) if not _agree(a, b, right.element)), None)
    if differing is not None:
        expected = f"{right.numbers[differing]:g}"
        return {"at": f"[{differing}]", "returned": words[differing], "expected": expected}
    if right.element in FLOATS and any(a == b == 0 and math.copysign(1, a) != math.copysign(1, b) for a, b in pairs):
        return None  # a zero of the other sign: equal, and not the same
    return {EXACT: all(f"{a:g}" == f"{b:g}" for a, b in pairs)}


def _agree(a: Number, b: Number, element: str) -> bool:
    if element not in FLOATS:
        return a == b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(
        a, b, rel_tol=_DIGITS.get(element, _COARSE), abs_tol=1e-6
    )
