"""Run the operations of StableHLO that move a window over a tensor, by their specification. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import Number
from runners.toolchains.iree.diagnosis.reference.statements import (
    Statement,
    UndefinedResult,
    read_flags,
    read_integers,
    require_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values, Window, check_steps, find_place, list_elements

_LABELS = re.compile(r"\[([^\[\]]*)\]x\[([^\[\]]*)\]->\[([^\[\]]*)\]")
_RAW = re.compile(r"#(?:stablehlo|mhlo)\.conv<raw\b(?P<raw>[^<>]*)>")


@dataclass(frozen=True, slots=True)
class _Labels:
    """The meaning of each dimension of image, kernel and result: ``b``, ``f``, ``i``, ``o``, or a number."""

    image: tuple[str, ...]
    kernel: tuple[str, ...]
    result: tuple[str, ...]


def _read_labels(attributes: str) -> _Labels:
    """Read ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``, or the form that lists the dimensions by name."""
    if raw := _RAW.search(attributes):
        return _Labels(
            _place_labels(raw["raw"], "input", {"b": "batch", "f": "feature"}),
            _place_labels(raw["raw"], "kernel", {"i": "input_feature", "o": "output_feature"}),
            _place_labels(raw["raw"], "output", {"b": "batch", "f": "feature"}),
        )
    found = _LABELS.search(attributes)
    if found is None:
        raise UndefinedResult("labels of a convolution")
    parts = [tuple(word.strip() for word in part.split(",")) for part in found.groups()]
    labels = _Labels(*parts)
    spatial = sorted(set(labels.result) - {"b", "f"})
    right = [{"b", "f", *spatial}, {"i", "o", *spatial}, {"b", "f", *spatial}]
    if spatial != [str(at) for at in range(len(spatial))] or any(
        set(part) != names or len(part) != len(names) for part, names in zip(parts, right, strict=True)
    ):
        raise UndefinedResult("labels of a convolution")
    return labels


def _place_labels(raw: str, tensor: str, names: dict[str, str]) -> tuple[str, ...]:
    placed = {require_integers(raw, f"{tensor}_{long}_dimension", 1)[0]: short for short, long in names.items()}
    for number, at in enumerate(require_integers(raw, f"{tensor}_spatial_dimensions")):
        placed[at] = str(number)
    return tuple(placed[at] for at in range(len(placed)))


def convolve(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``convolution``. A reversed window reads the image's elements in the other order, but not the groups."""
    image, weights = operands
    labels, text = _read_labels(statement.attributes), statement.attributes
    rank = len(labels.result) - 2
    spatial = [str(at) for at in range(rank)]
    inner_extents = tuple(weights.shape[labels.kernel.index(word)] for word in spatial)
    window = Window(
        extents=inner_extents,
        strides=_read_window(text, "stride", "window_strides", rank, 1),
        low=_read_window(text, "pad", "padding", 2 * rank, 0)[::2],
        dilations=_read_window(text, "rhs_dilate", "rhs_dilation", rank, 1),
        base_dilations=_read_window(text, "lhs_dilate", "lhs_dilation", rank, 1),
        reversed=read_flags(text, "reverse", rank) or read_flags(text, "window_reversal", rank) or (False,) * rank,
    )
    feature_groups = (read_integers(text, "feature_group_count") or (1,))[0]
    batch_groups = (read_integers(text, "batch_group_count") or (1,))[0]
    channels, outputs = (weights.shape[labels.kernel.index(word)] for word in "io")
    batches = to.shape[labels.result.index("b")]
    groups = max(feature_groups, batch_groups)
    if (
        min(feature_groups, batch_groups) != 1
        or outputs % groups
        or image.shape[labels.image.index("f")] != channels * feature_groups
        or image.shape[labels.image.index("b")] != batches * batch_groups
        or to.shape[labels.result.index("f")] != outputs
    ):
        raise UndefinedResult("groups of a convolution")
    check_steps(math.prod(to.shape) * math.prod(inner_extents) * channels)
    left, right = list_elements(image), list_elements(weights)
    extents = tuple(image.shape[labels.image.index(word)] for word in spatial)
    sums: list[list[Number]] = []
    for index in tensors.iterate_indices(to.shape):
        named = dict(zip(labels.result, index, strict=True))
        group = named["f"] // (outputs // groups)
        first = group * channels if feature_groups > 1 else 0
        batch = named["b"] + (group * batches if batch_groups > 1 else 0)
        terms: list[Number] = []
        for inner, place in window.list_places(extents, tuple(named[word] for word in spatial)):
            if place is None:
                continue
            at = {"b": batch, **dict(zip(spatial, place, strict=True))}
            own = {"o": named["f"], **dict(zip(spatial, inner, strict=True))}
            for channel in range(channels):
                at["f"], own["i"] = first + channel, channel
                terms.append(
                    left[find_place(image.shape, [at[word] for word in labels.image])]
                    * right[find_place(weights.shape, [own[word] for word in labels.kernel])]
                )
        sums.append(terms)
    return tensors.add_terms(sums, to, is_rounded=image.is_rounded or weights.is_rounded)


def _read_window(attributes: str, short: str, long: str, count: int, usual: int) -> tuple[int, ...]:
    name = short if read_integers(attributes, short) else long
    numbers = require_integers(attributes, name, count) if read_integers(attributes, name) else (usual,) * count
    if usual and min(numbers, default=1) < 1:
        raise UndefinedResult(f"{name} of a window")
    return numbers


def reduce_window(statement: Statement, operands: Sequence[Values], combine: tensors.Combination) -> Sequence[Values]:
    """Combine the elements of each window, from the first to the last, beginning with the initial values."""
    half = len(operands) // 2
    given, starts = operands[:half], operands[half:]
    shape = given[0].shape
    if len(operands) != 2 * half or any(one.shape != shape for one in given) or len(statement.types) != half:
        raise UndefinedResult("a window over tensors of several shapes")
    to = statement.types[0].shape
    window = _read_whole_window(statement.attributes, len(shape))
    check_steps(math.prod(to) * math.prod(window.extents) * half)
    places = [[place for _, place in window.list_places(shape, index)] for index in tensors.iterate_indices(to)]
    listed = [list_elements(one) for one in given]
    partial = [replace(one, numbers=one.numbers * len(places), shape=()) for one in starts]
    for step in range(math.prod(window.extents) if places else 0):
        elements = [
            Values(
                start.element,
                tuple(
                    start.numbers[0] if each[step] is None else numbers[find_place(shape, each[step] or ())]
                    for each in places
                ),
            )
            for start, numbers in zip(starts, listed, strict=True)
        ]
        partial = [*combine([*partial, *elements])]
    rounded = any(one.is_rounded for one in operands)
    return [replace(one, shape=to, is_rounded=rounded or one.is_rounded) for one in partial]


def _read_whole_window(attributes: str, rank: int) -> Window:
    return Window(
        extents=require_integers(attributes, "window_dimensions", rank),
        strides=_read_window(attributes, "window_strides", "window_strides", rank, 1),
        low=_read_window(attributes, "padding", "padding", 2 * rank, 0)[::2],
        dilations=_read_window(attributes, "window_dilations", "window_dilations", rank, 1),
        base_dilations=_read_window(attributes, "base_dilations", "base_dilations", rank, 1),
        reversed=(False,) * rank,
    )


def select_and_scatter(
    statement: Statement,
    operands: Sequence[Values],
    select: Callable[[list[Values]], Sequence[Values]],
    combine: tensors.Combination,
) -> Sequence[Values]:
    """Add each element of the source to the element that its window selects. Padding is never selected."""
    given, source, start = operands
    window = _read_whole_window(statement.attributes, len(given.shape))
    count = check_steps(math.prod(source.shape) * math.prod(window.extents))
    elements = list_elements(given)
    windows = [
        [
            None if place is None else find_place(given.shape, place)
            for _, place in window.list_places(given.shape, at)
        ]
        for at in tensors.iterate_indices(source.shape)
    ]
    chosen: list[int | None] = [None] * len(windows)
    for step in range(math.prod(window.extents) if count else 0):
        pairs = [
            (at, held, each[step])
            for at, (held, each) in enumerate(zip(chosen, windows, strict=True))
            if held is not None and each[step] is not None
        ]
        sides = [Values(given.element, tuple(elements[pair[side] or 0] for pair in pairs)) for side in (1, 2)]
        kept = select(sides)[0] if pairs else None
        for number, (at, _, new) in enumerate(pairs):
            if kept is not None and not kept.pick(number):
                chosen[at] = new
        for at, each in enumerate(windows):
            chosen[at] = each[step] if chosen[at] is None else chosen[at]
    numbers = [start.numbers[0]] * math.prod(given.shape)
    rounded = any(one.is_rounded for one in operands)
    for place, added in zip(chosen, list_elements(source), strict=True):
        if place is None:
            raise UndefinedResult("a window of padding")
        (result,) = combine([Values(start.element, (numbers[place],)), Values(source.element, (added,))])
        numbers[place], rounded = result.numbers[0], rounded or result.is_rounded
    return [Values(start.element, tuple(numbers), given.shape, rounded)]
