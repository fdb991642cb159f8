"""The same program on several devices: who computes other values than whom. Pure; needs no reference.

What devices printed is compared with a tolerance for the element type: backends may reassociate sums and contract
multiply-adds, so the last bits of a float mean nothing (three backends agree to 1.4e-6 in f32 on healthy programs);
integers have no such excuse. A difference is a finding, not a verdict: it shows that one of them is wrong, not which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from runners.core.failure.printed_output import MAX_LINE_CHARS, NUMBER_PATTERN
from runners.core.protocol import Exited, Finding, FindingKind, Observation, Outcome, Variant

RELATIVE = {"f64": 1e-9, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}
"""By element type; of the largest value in the tensor, because sums that cancel lose what their parts had."""
EIGHT_BITS = 0.2
"""Floats of 8 bits or less have 2 or 3 bits of mantissa."""
SMALLEST = {"f64": 2.3e-308, "f32": 1.2e-38, "bf16": 1.2e-38, "f16": 6.2e-5}
"""Smallest normal number: a backend may take what lies below for zero."""
PRINTED = 1e-3
"""Of numbers whose type is not known: printing has rounded them."""
MAX_VALUES = 20_000

_RESULT = re.compile(r"^(?P<type>(?P<shape>(?:\d{1,9}x)*)(?P<dtype>[a-zA-Z]\w{0,15}))=(?P<values>.*)$", re.M)
_WORD = re.compile(r"[^\s\[\]]+")
_NUMBER = re.compile(rf"(?P<number>{NUMBER_PATTERN})(?!\w)|\d++", re.I)
"""A number, or digits to be passed over at once because a letter ends them."""
_SAME_PROGRAM = (Variant.ORIGINAL, Variant.RETARGETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One printed result: ``shape`` as text (``2x3x``), element type (empty when it isn't known), values in order."""

    shape: str
    dtype: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first tensor in which two outputs differ, how many of its values, and the worst of them."""

    result: int
    index: int
    """Of the worst element, counting through the tensor."""
    count: int
    total: int
    values: tuple[float, float]

    def words(self) -> str:
        a, b = self.values
        return f"result {self.result}: {self.count} of {self.total} values, at worst {a:g} against {b:g}"


def device_findings(observations: Sequence[Observation], order: Sequence[str]) -> tuple[Finding, ...]:
    """At most one finding: the devices that disagree, on which builds, by how much, and where they agree.

    ``order`` has the builds, oldest first.
    """
    seen_on = _by_version(observations)
    told = {version: _told(seen_on[version]) for version in order if version in seen_on}
    split = {version: split for version, seen in told.items() if (split := _split(seen))}
    if not split:
        return ()
    agreed = [version for version, seen in told.items() if len(seen) > 1 and version not in split]
    newest = list(split)[-1]
    odd, others, why = split[newest]
    summary = f"{odd} differs from {_listed(others)} on {_listed(list(split))}: {why}"
    return (
        Finding(
            kind=FindingKind.DEVICE_SPECIFIC,
            summary=(summary + (f"; they agree on {_listed(agreed)}" if agreed else ""))[:400],
            evidence={
                "device": odd,
                "differs_from": list(others),
                "versions": list(split)[:32],
                "agree_on": agreed[:32],
                "how": why,
                "refuted_by": "the same values on both devices, or inputs that are not defined",
            },
        ),
    )


Told = Mapping[str, "Seen"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one device did on one build."""

    outcome: Outcome
    tensors: tuple[Tensor, ...] | None
    """None: it did not run to its end, or its output is not whole."""


def _by_version(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = {}
    for seen in observations:
        if seen.variant in _SAME_PROGRAM:
            found.setdefault(seen.version, []).append(seen)
    return found


def _told(observations: Sequence[Observation]) -> dict[str, Seen]:
    """Per device what it did; a device whose own runs disagree says nothing about devices."""
    runs: dict[str, list[Seen]] = {}
    for one in observations:
        done = isinstance(one.ended, Exited) and one.ended.code == 0
        tensors = read_tensors(one.excerpt) if done else None
        if tensors is not None or one.outcome in (Outcome.MATCH, Outcome.PASS):
            runs.setdefault(one.device, []).append(Seen(one.outcome, tensors))
    return {device: seen[0] for device, seen in runs.items() if all(_same(seen[0], other) for other in seen[1:])}


def _same(a: Seen, b: Seen) -> bool:
    return _difference(a, b) is None


def _split(told: Told) -> tuple[str, tuple[str, ...], str] | None:
    """The device that differs from the others, those, and how; of two that differ the later one is named first."""
    why = {pair: words for pair in combinations(told, 2) if (words := _difference(told[pair[0]], told[pair[1]]))}
    if not why:
        return None
    blamed = {device: sum(device in pair for pair in why) for device in told}
    odd = max(reversed(list(told)), key=lambda device: blamed[device])
    others = tuple(other for other in told if other != odd and ((odd, other) in why or (other, odd) in why))
    pair = next(pair for pair in why if odd in pair)
    return odd, others, why[pair]


def _difference(a: Seen, b: Seen) -> str | None:
    """In words how two devices differ: by outcome, else by value; None where they agree or cannot be compared."""
    if {a.outcome, b.outcome} == {Outcome.MATCH, Outcome.PASS}:
        return "one fails as reported, the other runs cleanly"
    if a.tensors is None or b.tensors is None:
        return None
    found = compare(a.tensors, b.tensors)
    return found.words() if found is not None else None


def _listed(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{names[0]} … {names[-1]} ({len(names)} builds)"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# ---------------------------------------------------------------------------------------------- values


def read_tensors(output: str) -> tuple[Tensor, ...] | None:
    """The results in a run's output; None where it has none or is not whole.

    A typed result reads ``2x2xf32=[1 2][3 4]``. In output without any, the numbers of each line count as a tensor of
    unknown type, and the words around them as its shape.
    """
    if output.startswith("[…]") or "..." in output:
        return None
    typed = tuple(_typed(found) for found in _RESULT.finditer(output))
    tensors = typed or tuple(_untyped(output))
    whole = sum(len(tensor.values) for tensor in tensors)
    return tensors if 0 < whole <= MAX_VALUES else None


def _typed(found: re.Match[str]) -> Tensor:
    words = (_value(word) for word in _WORD.findall(found["values"]))
    return Tensor(shape=found["shape"], dtype=found["dtype"], values=tuple(v for v in words if v is not None))


def _value(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _untyped(output: str) -> Iterator[Tensor]:
    for line in output.splitlines()[-400:]:
        text = line[:MAX_LINE_CHARS]
        numbers = tuple(float(found["number"]) for found in _NUMBER.finditer(text) if found["number"])
        if numbers:
            words = _NUMBER.sub(lambda found: "#" if found["number"] else found[0], text)
            yield Tensor(shape=" ".join(words.split()), dtype="", values=numbers)


def compare(a: Sequence[Tensor], b: Sequence[Tensor]) -> Difference | None:
    """The first difference beyond tolerance; None where there is none, or where the outputs are of other shapes."""
    if [_kind(one) for one in a] != [_kind(one) for one in b]:
        return None
    differences = (_of_tensor(number, one, other) for number, (one, other) in enumerate(zip(a, b, strict=True)))
    return next((found for found in differences if found is not None), None)


def _kind(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.shape, tensor.dtype, len(tensor.values)


def _of_tensor(number: int, a: Tensor, b: Tensor) -> Difference | None:
    off = differing(a, b)
    if not off:
        return None
    index, x, y = max(off, key=lambda one: _gap(one[1], one[2]))
    return Difference(result=number, index=index, count=len(off), total=len(a.values), values=(x, y))


def differing(a: Tensor, b: Tensor, share: float = 1.0) -> list[tuple[int, float, float]]:
    """Index and both values wherever two tensors of one type differ; ``share``: how much of the tolerance counts."""
    finite = [abs(value) for value in (*a.values, *b.values) if math.isfinite(value)]
    room = share * max(tolerance(a.dtype) * max(finite, default=0.0), SMALLEST.get(a.dtype, 0.0))
    pairs = enumerate(zip(a.values, b.values, strict=True))
    return [(index, x, y) for index, (x, y) in pairs if not _close(x, y, room)]


def tolerance(dtype: str) -> float:
    """Relative room for a type; integers and booleans have none."""
    if not dtype:
        return PRINTED
    if dtype.startswith("f8") or dtype in ("f4", "f6"):
        return EIGHT_BITS
    return RELATIVE.get(dtype, 0.0)


def _close(x: float, y: float, room: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or abs(x - y) <= room


def _gap(x: float, y: float) -> float:
    return abs(x - y) if math.isfinite(x) and math.isfinite(y) else math.inf
