"""Compare the output of one program on several devices. Pure; needs no reference.

The tolerance depends on the element type: backends may reassociate sums and contract multiply-adds, so the last bits
of a float are not significant (three backends agree to 1.4e-6 in f32 on correct programs). Integers must be equal. A
difference is a finding, not a verdict. It shows that one device is wrong, but not which one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec

from runners.core.failure.printed.lines.tokens import MAX_LINE_CHARS, NUMBER_PATTERN
from runners.core.findings.kinds import Differ
from runners.core.findings.record import make_finding
from runners.core.findings.types import DeviceEvidence
from runners.core.protocol import Exited, Finding, Observation, Outcome, Variant

RELATIVE = {"f64": 1e-9, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}
"""Tolerance by element type, relative to the tensor's largest value: sums that cancel lose precision."""
EIGHT_BITS = 0.2
"""Tolerance for floats of 8 bits or less, which have 2 or 3 bits of mantissa."""
SMALLEST = {"f64": 2.3e-308, "f32": 1.2e-38, "bf16": 1.2e-38, "f16": 6.2e-5}
"""Smallest normal number by element type. A backend may flush smaller numbers to zero."""
PRINTED = 1e-3
"""Tolerance for numbers of unknown type, which printing has rounded."""
MAX_VALUES = 20_000

_RESULT = re.compile(r"^(?P<type>(?P<shape>(?:\d{1,9}x)*)(?P<dtype>[a-zA-Z]\w{0,15}))=(?P<values>.*)$", re.M)
_WORD = re.compile(r"[^\s\[\]]+")
_NUMBER = re.compile(rf"(?P<number>{NUMBER_PATTERN})(?!\w)|\d++", re.I)
"""A number, or digits that are skipped at once because a letter follows."""
_SAME_PROGRAM = (Variant.ORIGINAL, Variant.RETARGETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One printed result: ``shape`` as text (``2x3x``), element type (empty if unknown), values in order."""

    shape: str
    dtype: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """The first tensor in which two outputs differ, the number of differing values, and the worst pair."""

    result: int
    index: int
    """Flat index of the worst element."""
    count: int
    total: int
    values: tuple[float, float]

    def describe(self) -> str:
        a, b = self.values
        return f"result {self.result}: {self.count} of {self.total} values differ, at worst {a:g} and {b:g}"

    def state(self, evidence: DeviceEvidence) -> DeviceEvidence:
        """Return the evidence with this difference."""
        a, b = self.values
        return msgspec.structs.replace(
            evidence,
            differ=Differ.VALUES,
            result=self.result,
            count=self.count,
            total=self.total,
            worst=(f"{a:g}", f"{b:g}"),
        )


@dataclass(frozen=True, slots=True)
class OutcomeDifference:
    """One device fails as reported, the other runs cleanly."""

    def describe(self) -> str:
        return "one fails as reported, the other runs cleanly"

    def state(self, evidence: DeviceEvidence) -> DeviceEvidence:
        return msgspec.structs.replace(evidence, differ=Differ.OUTCOMES)


Difference = TensorDifference | OutcomeDifference


def find_device_differences(observations: Sequence[Observation], order: Sequence[str]) -> tuple[Finding, ...]:
    """Return at most one finding: the device that differs, on which builds, by how much, and where devices agree.

    ``order`` lists the builds, oldest first.
    """
    seen_on = _group_by_version(observations)
    results = {version: _read_devices(seen_on[version]) for version in order if version in seen_on}
    odd_ones = {version: found for version, seen in results.items() if (found := _find_odd_device(seen))}
    if not odd_ones:
        return ()
    agreed = [version for version, seen in results.items() if len(seen) > 1 and version not in odd_ones]
    newest = list(odd_ones)[-1]
    odd, others, difference = odd_ones[newest]
    summary = f"{odd} differs from {_join_names(others)} on {_join_names(list(odd_ones))}: {difference.describe()}"
    evidence = DeviceEvidence(
        device=odd,
        differs_from=tuple(others),
        versions=tuple(odd_ones)[:32],
        agree_on=tuple(agreed[:32]),
        how=difference.describe(),
        refuted_by="the same values on both devices, or inputs that are not defined",
    )
    summary += f"; they agree on {_join_names(agreed)}" if agreed else ""
    return (make_finding(difference.state(evidence), summary[:400]),)


DeviceResults = Mapping[str, "DeviceResult"]


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """The outcome and output of one device on one build."""

    outcome: Outcome
    tensors: tuple[Tensor, ...] | None
    """None if the run did not exit with 0, or the output is incomplete."""


def _group_by_version(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = {}
    for seen in observations:
        if seen.variant in _SAME_PROGRAM:
            found.setdefault(seen.version, []).append(seen)
    return found


def _read_devices(observations: Sequence[Observation]) -> dict[str, DeviceResult]:
    """Return the result of each device. Leave out a device whose own runs disagree."""
    runs: dict[str, list[DeviceResult]] = {}
    for one in observations:
        done = isinstance(one.ended, Exited) and one.ended.code == 0
        tensors = read_tensors(one.excerpt) if done else None
        if tensors is not None or one.outcome in (Outcome.MATCH, Outcome.PASS):
            runs.setdefault(one.device, []).append(DeviceResult(one.outcome, tensors))
    return {
        device: seen[0] for device, seen in runs.items() if all(_is_same_result(seen[0], other) for other in seen[1:])
    }


def _is_same_result(a: DeviceResult, b: DeviceResult) -> bool:
    return _find_difference(a, b) is None


def _find_odd_device(told: DeviceResults) -> tuple[str, tuple[str, ...], Difference] | None:
    """Return the device that differs from most others, those others, and the difference. None if all agree.

    Of two devices the later one counts as the odd one.
    """
    why = {pair: found for pair in combinations(told, 2) if (found := _find_difference(told[pair[0]], told[pair[1]]))}
    if not why:
        return None
    blamed = {device: sum(device in pair for pair in why) for device in told}
    odd = max(reversed(list(told)), key=lambda device: blamed[device])
    others = tuple(other for other in told if other != odd and ((odd, other) in why or (other, odd) in why))
    pair = next(pair for pair in why if odd in pair)
    return odd, others, why[pair]


def _find_difference(a: DeviceResult, b: DeviceResult) -> Difference | None:
    """Return how two results differ, by outcome, else by value. None if they agree or cannot be compared."""
    if {a.outcome, b.outcome} == {Outcome.MATCH, Outcome.PASS}:
        return OutcomeDifference()
    if a.tensors is None or b.tensors is None:
        return None
    return compare_tensors(a.tensors, b.tensors)


def _join_names(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{names[0]} … {names[-1]} ({len(names)} builds)"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# ---------------------------------------------------------------------------------------------- values


def read_tensors(output: str) -> tuple[Tensor, ...] | None:
    """Return the results in a run's output. None if there are none, or if the output is incomplete.

    A typed result reads ``2x2xf32=[1 2][3 4]``. In output without typed results, the numbers of each line count as a
    tensor of unknown type, and the words around them as its shape.
    """
    if output.startswith("[…]") or "..." in output:
        return None
    typed = tuple(_parse_typed(found) for found in _RESULT.finditer(output))
    tensors = typed or tuple(_parse_untyped(output))
    whole = sum(len(tensor.values) for tensor in tensors)
    return tensors if 0 < whole <= MAX_VALUES else None


def _parse_typed(found: re.Match[str]) -> Tensor:
    words = (_parse_value(word) for word in _WORD.findall(found["values"]))
    return Tensor(shape=found["shape"], dtype=found["dtype"], values=tuple(v for v in words if v is not None))


def _parse_value(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _parse_untyped(output: str) -> Iterator[Tensor]:
    for line in output.splitlines()[-400:]:
        text = line[:MAX_LINE_CHARS]
        numbers = tuple(float(found["number"]) for found in _NUMBER.finditer(text) if found["number"])
        if numbers:
            words = _NUMBER.sub(lambda found: "#" if found["number"] else found[0], text)
            yield Tensor(shape=" ".join(words.split()), dtype="", values=numbers)


def compare_tensors(a: Sequence[Tensor], b: Sequence[Tensor]) -> TensorDifference | None:
    """Return the first difference beyond the tolerance. None without one, or if shapes or types differ."""
    if [_get_kind(one) for one in a] != [_get_kind(one) for one in b]:
        return None
    differences = (_compare_pair(number, one, other) for number, (one, other) in enumerate(zip(a, b, strict=True)))
    return next((found for found in differences if found is not None), None)


def _get_kind(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.shape, tensor.dtype, len(tensor.values)


def _compare_pair(number: int, a: Tensor, b: Tensor) -> TensorDifference | None:
    off = find_differing_values(a, b)
    if not off:
        return None
    index, x, y = max(off, key=lambda one: _measure_gap(one[1], one[2]))
    return TensorDifference(result=number, index=index, count=len(off), total=len(a.values), values=(x, y))


def find_differing_values(a: Tensor, b: Tensor, share: float = 1.0) -> list[tuple[int, float, float]]:
    """Return index and both values of each differing element of two tensors.

    ``share`` scales the tolerance.
    """
    finite = [abs(value) for value in (*a.values, *b.values) if math.isfinite(value)]
    limit = share * max(get_tolerance(a.dtype) * max(finite, default=0.0), SMALLEST.get(a.dtype, 0.0))
    pairs = enumerate(zip(a.values, b.values, strict=True))
    return [(index, x, y) for index, (x, y) in pairs if not _is_close(x, y, limit)]


def get_tolerance(dtype: str) -> float:
    """Return the relative tolerance of an element type; 0 for integers and booleans."""
    if not dtype:
        return PRINTED
    if dtype.startswith("f8") or dtype in ("f4", "f6"):
        return EIGHT_BITS
    return RELATIVE.get(dtype, 0.0)


def _is_close(x: float, y: float, limit: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or abs(x - y) <= limit


def _measure_gap(x: float, y: float) -> float:
    return abs(x - y) if math.isfinite(x) and math.isfinite(y) else math.inf
