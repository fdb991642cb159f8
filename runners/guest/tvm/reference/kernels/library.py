"""Record the tensors that a testcase makes with functions of TVM's operator library, and compute them with NumPy.

Interpreting the library's own expressions would only repeat a fault of the library.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.operators.basic import Call, CannotEvaluate, Value, demand
from runners.guest.tvm.reference.operators.library import LIBRARY

Key = tuple[int, int]
"""An operation by its hash, and the number of one of its outputs."""


@dataclass(frozen=True)
class LibraryCall:
    """A call of a function of the library."""

    name: str
    """Below ``tvm.topi``, for example ``nn.softmax``."""
    arguments: Mapping[str, Any]
    """Each parameter with its value, including defaults."""
    results: tuple[Node, ...]
    """The resulting tensors. Keeping them alive keeps the hashes unique."""


@dataclass(frozen=True)
class LibraryCalls:
    """The functions of the library behind some tensors."""

    names: tuple[str, ...]
    is_whole: bool
    """False if another function of the library, without an equivalent, made one of the tensors."""


class Library:
    """Watches the calls of the library's functions."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy
        """True while a function of the compiler runs, which may call the library itself."""
        self._depth = 0
        self._calls: dict[Key, LibraryCall] = {}

    def install(self) -> None:
        home: Any = importlib.import_module("tvm.topi")
        for name in LIBRARY:
            *path, last = name.split(".")
            owner = functools.reduce(getattr, path, home)
            if callable(getattr(owner, last, None)):
                setattr(owner, last, self._watch(name, getattr(owner, last)))

    def _watch(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **words: Any) -> Any:
            self._depth += 1
            try:
                made = original(*args, **words)
            finally:
                self._depth -= 1
            if not self._depth and not self._is_busy():
                bound = signature.bind(*args, **words)
                bound.apply_defaults()
                self._record(LibraryCall(name, bound.arguments, _list_tensors(made)))
            return made

        return call

    def _record(self, call: LibraryCall) -> None:
        for tensor in call.results:
            self._calls[get_key(tensor)] = call

    def find_call(self, key: Key) -> LibraryCall | None:
        return self._calls.get(key)

    def list_calls(self, tensors: Sequence[Node]) -> LibraryCalls:
        """Return the functions that made these tensors and the tensors behind them."""
        waiting: list[Node] = [one for one in tensors if hasattr(one, "op")]
        seen: set[Key] = set()
        names: list[str] = []
        is_whole = True
        while waiting:
            tensor = waiting.pop()
            if (key := get_key(tensor)) in seen:
                continue
            seen.add(key)
            if (call := self._calls.get(key)) is not None:
                names.append(call.name)
                waiting += [one for value in call.arguments.values() for one in _list_tensors(value)]
            else:
                is_whole = is_whole and not str(getattr(tensor.op, "tag", ""))
                waiting += list(getattr(tensor.op, "input_tensors", ()))
        return LibraryCalls(tuple(dict.fromkeys(names)), is_whole)


def get_key(tensor: Node) -> Key:
    return hash(tensor.op), int(tensor.value_index)


def compute_call(
    call: LibraryCall, read: Callable[[Node], Value], results: Sequence[tuple[Any, tuple[int, ...]]]
) -> tuple[Value, ...]:
    """Return the tensors that a call makes.

    ``read`` returns a tensor or a scalar as NumPy value, and ``results`` has the type and shape of each result.

    Raises:
        CannotEvaluate: the function is undefined for its arguments, or has no equivalent for them.
    """
    known = LIBRARY[call.name]
    for name, value in known.expected.items():
        demand(call.arguments.get(name, value) == value, f"{call.name} with another {name}")
    chosen = known.operands or _list_operands(call)
    operands = _match_types(tuple(_read(call.arguments[name], read) for name in chosen))
    attributes = {
        known.renamed.get(name, name): _read(value, read)
        for name, value in call.arguments.items()
        if name not in chosen and name != "span"
    }
    dtype, shape = results[0] if len(results) == 1 else (None, None)
    try:
        made = known.compute(Call(operands, attributes, dtype, shape))
    except (TypeError, ValueError, IndexError, AttributeError, KeyError, OverflowError) as error:
        raise CannotEvaluate(f"{call.name}: {type(error).__name__}: {error}") from error
    values = tuple(made) if isinstance(made, tuple | list) else (made,)
    demand(len(values) == len(results), f"{call.name}: another number of results")
    return tuple(_check_result(value, call.name, *one) for value, one in zip(values, results, strict=True))


def _check_result(value: Value, name: str, dtype: Any, shape: tuple[int, ...]) -> Value:
    array = np.asarray(value)
    kinds = {array.dtype.kind, np.dtype(dtype).kind}
    demand(array.shape == shape and (len(kinds) == 1 or kinds <= {"i", "u"}), f"{name}: another shape or type")
    return array.astype(dtype)


def _list_operands(call: LibraryCall) -> tuple[str, ...]:
    return tuple(name for name, value in call.arguments.items() if _list_tensors(value))


def _match_types(operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands with Python's numbers converted to the tensors' type, as the library requires."""
    types = [one.dtype for one in operands if isinstance(one, np.ndarray)]
    return tuple(
        np.asarray(one, types[0]) if types and isinstance(one, bool | int | float) else one for one in operands
    )


def _read(value: Any, read: Callable[[Node], Value]) -> Any:
    """Return an argument as plain values and NumPy arrays."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) or ir.get_kind(value) == "Array":
        return tuple(_read(one, read) for one in value)
    return read(value)


def _list_tensors(value: Any) -> tuple[Node, ...]:
    if isinstance(value, list | tuple) or ir.get_kind(value) == "Array":
        return tuple(tensor for one in value for tensor in _list_tensors(one))
    return (value,) if hasattr(value, "op") and hasattr(value, "value_index") else ()
