"""Compare the gradients that a pass derived with difference quotients of the original function.

``relax.transform.Gradient`` adds ``f_adjoint`` to a module with ``f``. It returns the results of ``f``, and the
gradients of its target with respect to some parameters. NumPy's evaluation of ``f_adjoint`` would only repeat a wrong
derivation. So ``f`` itself is evaluated, in float64, near some elements of its arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value, demand

SUFFIX = "_adjoint"
MAX_PLACES = 24
"""Maximum number of compared elements of one gradient, evenly spread."""
MAX_SECONDS = 8.0
MAX_PARAMETERS = 16
"""Maximum number of parameters among which those of the gradients are searched. Each choice is tried."""
_STEP = 1e-5
"""Distance of the arguments, relative to the element. The quotient's own error is then about 1e-10."""
_KINK = 1e-3
"""Minimum difference between the quotients on both sides where the function has no derivative."""

Evaluate = Callable[[Sequence[Value]], Value]


def compare_gradients(
    compare: Callable[..., Any], evaluate: Evaluate, arguments: Sequence[Value], returned: Value
) -> tuple[str, Any]:
    """Return the vote on the gradients that a call of ``f_adjoint`` returned, as `compare_values` does.

    Raises:
        CannotEvaluate: the target or its parameters are not known, or the target has a kink at an argument.
    """
    demand(isinstance(returned, tuple) and len(returned) == 2, "a result without gradients")
    gradients = returned[1] if isinstance(returned[1], tuple) else (returned[1],)
    positions = _find_parameters(arguments, gradients)
    for at, (position, gradient) in enumerate(zip(positions, gradients, strict=True)):
        parameter = arguments[position]
        if np.shape(parameter) != np.shape(gradient):
            vote, where = compare(gradient, parameter, parameter, f"gradients[{at}]")
            return vote, where
    deadline = time.monotonic() + MAX_SECONDS
    seen, expected = [], []
    for position, gradient in zip(positions, gradients, strict=True):
        places = _list_places(gradient.size)
        seen.append(np.asarray(gradient).reshape(-1)[places])
        expected.append(np.array([*_differentiate(evaluate, arguments, position, places, deadline)]))
    vote, where = compare(tuple(seen), tuple(expected), tuple(expected), "gradients")
    return vote, where


def _find_parameters(arguments: Sequence[Value], gradients: Sequence[Any]) -> tuple[int, ...]:
    """Return the places of the parameters of the gradients, by shape and in order.

    If each parameter has a gradient, the shapes are not used, because one may be wrong.
    """
    demand(len(arguments) <= MAX_PARAMETERS, "parameters of the gradients")
    floats = [at for at, one in enumerate(arguments) if isinstance(one, np.ndarray) and one.dtype.kind == "f"]
    if len(floats) == len(gradients):
        return tuple(floats)
    shapes = [np.shape(one) for one in gradients]
    found = [
        chosen
        for chosen in combinations(floats, len(gradients))
        if [np.shape(arguments[at]) for at in chosen] == shapes
    ]
    demand(len(found) == 1, "parameters of the gradients")
    return found[0]


def _list_places(size: int) -> list[int]:
    return sorted({at * size // MAX_PLACES for at in range(MAX_PLACES)}) if size > MAX_PLACES else list(range(size))


def _differentiate(
    evaluate: Evaluate, arguments: Sequence[Value], position: int, places: Sequence[int], deadline: float
) -> Iterator[float]:
    """Yield the derivative of the target with respect to each place of an argument."""
    wide = [
        np.asarray(one, "float64") if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one
        for one in arguments
    ]
    here = _read_target(evaluate(wide))
    for place in places:
        demand(time.monotonic() < deadline, "gradients that take long")
        step = _STEP * max(1.0, abs(float(wide[position].reshape(-1)[place])))
        below, above = (_read_target(evaluate(_move(wide, position, place, distance))) for distance in (-step, step))
        left, right = (here - below) / step, (above - here) / step
        demand(abs(left - right) <= _KINK * max(1.0, abs(left), abs(right)), "a kink of the function")
        yield (above - below) / (2 * step)


def _move(arguments: Sequence[Value], position: int, place: int, distance: float) -> list[Value]:
    moved = arguments[position].copy()
    moved.reshape(-1)[place] += distance
    return [*arguments[:position], moved, *arguments[position + 1 :]]


def _read_target(results: Value) -> float:
    """Return the only float scalar among the results, because a gradient belongs to a scalar."""
    listed = results if isinstance(results, tuple) else (results,)
    scalars = [one for one in map(np.asarray, listed) if one.shape == () and one.dtype.kind == "f"]
    if len(scalars) != 1 or not np.isfinite(scalars[0]):
        raise CannotEvaluate("the target of the gradients")
    return float(scalars[0])
