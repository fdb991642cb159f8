"""Compare a result that a report calls wrong with the definitions of the operations. This needs no run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings.kinds import Reference, Vote
from runners.core.findings.record import add_evidence, make_finding
from runners.core.findings.types import ReferenceEvidence
from runners.core.protocol import Exited, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.diagnosis.reference.definitions import (
    FLOATS,
    Number,
    count_bits,
    to_unsigned,
    wrap_value,
)
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from runners.toolchains.iree.diagnosis.reference.tensors import Values

_PRINTED = re.compile(
    r"(?:(?:^ *actual:|^result\[\d{1,2}\]: hal\.buffer_view) *\n|^result\[\d{1,2}\]: )(?P<shape>(?:\d{1,9}x){0,8})"
    r"(?P<element>u?i\d{1,2}|b?f\d\w{1,10})=(?P<values>[^\n]{1,200000})",
    re.M,
)
_DIGITS = {"f32": 2e-5, "f64": 2e-5, "f16": 2e-3, "bf16": 1e-2, "f8E4M3FN": 0.13, "f8E4M3FNUZ": 0.13}
"""Maximum relative difference from the printed digits. Formats that are not listed have two bits: `_COARSE`."""
_COARSE = 0.26


_OTHER_SUMS = 1e-2
"""Minimum difference of rounded sums that differ, relative to the largest."""


def check_definitions(failure: Failure, means: Means) -> Diagnosis:
    """Compute the results of a program by the definitions of its operations, and compare the printed results."""
    seen = failure.seen
    wrong = seen.signature is not None and seen.signature.type == WRONG_OUTPUT
    if not (wrong or seen.ended == Exited(code=0)):
        return NOTHING_FOUND
    runs = [_compare_run(testcase, printed) for testcase, printed in _list_runs(failure.testcase, seen.excerpt)]
    compared = [one for run in runs for one in run or ()]
    differing = next((one for one in compared if isinstance(one, _OtherValue)), None)
    if not compared or (differing is None and None in runs):
        return NOTHING_FOUND  # the report may be about the run without a vote
    vote = ReferenceEvidence(name=Reference.DEFINITION, vote=Vote.DIFFERS, version=seen.version)
    if differing is None:
        exact = all(isinstance(one, _SameValues) and one.is_exact for one in compared)
        vote = msgspec.structs.replace(vote, vote=Vote.AGREES, exact=exact)
        return Diagnosis(findings=(make_finding(vote, f"{_DEFINITIONS} the same value"),))
    placed = make_finding(msgspec.structs.replace(vote, at=differing.at), f"{_DEFINITIONS} another value")
    values = ReferenceEvidence(returned=differing.returned, expected=differing.expected)
    finding = add_evidence(placed, values)  # a reader sees the place first
    return Diagnosis(findings=(finding,))


_DEFINITIONS = "the definitions of the operations give"


def _list_runs(testcase: Testcase, excerpt: str) -> list[tuple[Testcase, str]]:
    """Return each run of a module with the command that compiles it, and the run's output.

    Only the end of long output is kept. Then nothing is known about the first runs.
    """
    runs = [step for step in testcase.steps if step[0] == "iree-run-module"]
    parts = re.split(r"^(?=EXEC @)", excerpt, flags=re.M)[1:]
    if len(runs) < 2:
        return [(testcase, excerpt)]
    listed = []
    for run, printed in zip(runs, [*([""] * (len(runs) - len(parts))), *parts], strict=False):
        modules = {word.partition("=")[2] for word in run if word.startswith("--module=")}
        compiled = tuple(
            step for step in testcase.steps if step[0] == "iree-compile" and modules & set(_list_made(step))
        )
        listed.append((msgspec.structs.replace(testcase, steps=(*compiled, run)), printed))
    return listed


def _list_made(step: tuple[str, ...]) -> list[str]:
    """Return the files that a command of the compiler writes."""
    following = [after for before, after in pairwise(step) if before == "-o"]
    return following + [word.partition("=")[2] for word in step if word.startswith(("-o=", "--o="))]


def _compare_run(testcase: Testcase, printed: str) -> _Compared | None:
    compared = _compare_results(testcase, printed)
    if (narrow := demote_floats(testcase)) is not None:
        return _combine(compared, _compare_results(narrow, printed))
    return compared


def has_other_values(testcase: Testcase, excerpt: str) -> bool:
    """True if the definitions give a value that differs from the output of a run."""
    compared = (_compare_results(*run) for run in _list_runs(testcase, excerpt))
    return any(one is not None and _differs(one) for one in compared)


def demote_floats(testcase: Testcase) -> Testcase | None:
    """Return the program with f32 instead of f64, as the compiler compiles it. None if it keeps the types."""
    texts = [text for name, text in testcase.files.items() if name.endswith(".mlir")]
    words = [word for step in testcase.steps for word in step]
    if not any(map(_WIDE.search, texts)) or any("demote" in word or len(word) > MAX_CHARS for word in words):
        return None
    return msgspec.structs.replace(
        testcase,
        files={name: _WIDE.sub("f32", text[:MAX_CHARS]) for name, text in testcase.files.items()},
        steps=tuple(
            tuple(_WIDE.sub("f32", word) if word.startswith("--input=") else word for word in step)
            for step in testcase.steps
        ),
    )


_WIDE = re.compile(r"(?<![A-Za-wyz_%@#.])f64(?!\w)")
"""The type, also in ``4xf64``."""
MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherValue:
    """The first element of a printed result that differs."""

    at: str
    returned: str
    expected: str


@dataclass(frozen=True, slots=True)
class _SameValues:
    """A printed result that agrees."""

    is_exact: bool
    """True if each printed digit is right."""


_Compared = list[_OtherValue | _SameValues]


def _differs(compared: _Compared) -> bool:
    return any(isinstance(one, _OtherValue) for one in compared)


def _combine(own: _Compared | None, narrow: _Compared | None) -> _Compared | None:
    """Return the comparison on which f64 and f32 agree. None if the type decides.

    The program requests f64, and by default the compiler computes in f32. An f64 result is printed in f32. Then only
    the computation in f32 can be compared.
    """
    if narrow is None:
        return None
    if _differs(narrow):
        return narrow if own is None or _differs(own) else None
    return own if own is not None and not _differs(own) else None


def _compare_results(testcase: Testcase, excerpt: str) -> _Compared | None:
    """Compare each printed result. None without a vote."""
    printed = list(_PRINTED.finditer(excerpt))
    results = compute_program(testcase) if printed else None
    if results is None or len(printed) != len(results) or f"result[{len(results)}]" in excerpt:
        return None
    compared = [_compare_result(one, right) for one, right in zip(printed, results, strict=True)]
    known = [one for one in compared if one is not None]
    return known if len(known) == len(compared) else None


def _compare_result(printed: re.Match[str], right: Values) -> _OtherValue | _SameValues | None:
    """Return where a printed result differs, else whether each printed digit is right. None if it cannot be read."""
    words = [one for one in re.split(r"[\s\[\]]+", printed["values"]) if one]
    is_widened = not right.shape and printed["element"] == "i32" and right.element in _NARROW
    if not (is_widened or right.element == printed["element"]) or len(words) != len(right.numbers):
        return None
    try:
        if is_widened:
            forms = {int(right.numbers[0]), to_unsigned(int(right.numbers[0]), count_bits(right.element))}
            words = [str(right.numbers[0]) if int(word) in forms else word for word in words]
        elif right.element == "i1":  # printed as bytes: 01 00
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
            return None  # additions in another order, or with more digits, may be correct too
    differing = next((at for at, (a, b) in enumerate(pairs) if not _agree(a, b, right.element)), None)
    if differing is not None:
        expected = f"{right.numbers[differing]:g}"
        return _OtherValue(at=f"[{differing}]", returned=words[differing], expected=expected)
    if right.element in FLOATS and any(a == b == 0 and math.copysign(1, a) != math.copysign(1, b) for a, b in pairs):
        return None  # a zero with the other sign: equal, but not the same
    return _SameValues(all(f"{a:g}" == f"{b:g}" or wrap_value(a, right.element) == b for a, b in pairs))


_NARROW = ("i1", "i8", "i16")
"""Types of scalars that IREE's virtual machine keeps in 32 bits, with or without their sign."""


def _agree(a: Number, b: Number, element: str) -> bool:
    if element not in FLOATS:
        return a == b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(
        a, b, rel_tol=_DIGITS.get(element, _COARSE), abs_tol=1e-6
    )
