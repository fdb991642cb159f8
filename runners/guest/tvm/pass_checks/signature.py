"""Detect calls with old parameters after a pass changed the parameters of the function.

Parameter-lifting passes are the common case. They move part of a function into a new function that must run first.
The types may remain the same, so that the call is accepted and computes another result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import relax

from runners.guest.tvm.trace import to_array

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings

Json = dict[str, Any]

CHANGES_PARAMETERS = re.compile(
    r"LiftTransformParams|TransformParams|BundleModelParams|BindParams|BindSymbolicVars|LazyGetInput|LazySetOutput"
    r"|ExpandTupleArguments|SetupTrainer|AppendLoss"
)
"""Passes that change parameters by contract. A change by another pass, without a new function, may be the fault of
that pass, not of the testcase."""


@dataclass(frozen=True)
class Parameter:
    """A parameter. ``shape`` is None unless the parameter is a tensor of known rank. An extent that is known only at
    run time is None. ``fields`` is the length of a tuple; None for other types."""

    name: str
    type: str
    dtype: str
    shape: tuple[int | None, ...] | None
    fields: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


Signature = tuple[Parameter, ...]


@dataclass(frozen=True)
class SignatureChange:
    applied: str
    function: str
    before: Signature
    after: Signature
    new_functions: tuple[str, ...]
    prepares: int | None
    """Number of values that the preparing function takes as one tuple; None if unknown."""

    @property
    def preparing(self) -> str | None:
        """The new function that must run before the changed function."""
        return find_preparing_function(self.function, self.new_functions)


def find_preparing_function(function: str, new: tuple[str, ...]) -> str | None:
    return next(iter([*(name for name in new if name.startswith(function)), *new]), None)


def read_signatures(module: Any) -> dict[str, Signature]:
    """Return the parameters of the public Relax functions of a module, by function name."""
    found = {}
    for gv, function in module.functions.items():
        if isinstance(function, relax.Function) and function.attrs and "global_symbol" in function.attrs:
            found[str(gv.name_hint)] = tuple(_read_parameter(p) for p in function.params)
    return found


def _read_parameter(variable: Any) -> Parameter:
    annotation = getattr(variable, "ty", None) or getattr(variable, "struct_info", None)
    name = str(getattr(variable, "name_hint", None) or getattr(variable, "name", ""))
    extents = getattr(getattr(annotation, "shape", None), "values", None)
    shape = None if extents is None else tuple(_read_extent(extent) for extent in extents)
    fields = getattr(annotation, "fields", None)
    dtype = str(getattr(annotation, "dtype", ""))
    return Parameter(name, str(annotation), dtype, shape, None if fields is None else len(fields))


def _read_extent(extent: Any) -> int | None:
    value = getattr(extent, "value", None)
    return int(value) if isinstance(value, int) else None


def accepts_arguments(signature: Signature, arguments: tuple[Any, ...]) -> bool:
    """True if the arguments fit in number, rank, known extents and dtype. Unreadable arguments fit."""
    return len(signature) == len(arguments) and all(map(_fits_parameter, signature, arguments))


def _fits_parameter(parameter: Parameter, argument: Any) -> bool:
    array = to_array(argument)
    is_group = array is None and (isinstance(argument, list | tuple) or type(argument).__name__ == "Array")
    if is_group or array is None:
        return is_group == (parameter.shape is None) or not is_group
    if parameter.shape is None:
        return "Tuple" not in parameter.type
    same_shape = len(array.shape) == len(parameter.shape) and all(
        want is None or want == got for want, got in zip(parameter.shape, array.shape, strict=True)
    )
    return same_shape and str(array.dtype) == parameter.dtype


class SignatureDiagnoser:
    """Watches passes for changed parameters, and calls of functions built from the changed module."""

    def __init__(self, findings: Findings, *, repair: bool = False) -> None:
        self._findings = findings
        self._repair = repair
        self._changes: list[SignatureChange] = []
        self._called: set[str] = set()

    def before_pass(self, module: Any, _applied: Any) -> dict[str, Signature]:
        return read_signatures(module)

    def after_pass(self, name: str, snapshot: dict[str, Signature], _given: Any, result: Any, _applied: Any) -> None:
        now = read_signatures(result)
        new = tuple(sorted(set(now) - set(snapshot)))
        for function, before in snapshot.items():
            after = now.get(function)
            if after is None or after == before:
                continue
            first = now.get(find_preparing_function(function, new) or "", ())
            prepares = first[0].fields if len(first) == 1 else None
            change = SignatureChange(name, function, before, after, new, prepares)
            same = [c for c in self._changes if (c.function, c.before, c.after) == (function, before, after)]
            # An enclosing pass makes the same change as its inner pass, but also shows the new function.
            for old in same:
                if len(old.new_functions) < len(new):
                    self._changes.remove(old)
            if all(len(old.new_functions) < len(new) for old in same):
                self._changes.append(change)

    def check_call(
        self, function: str, built: dict[str, Signature] | None, arguments: tuple[Any, ...]
    ) -> SignatureChange | None:
        """Check a call of a function that was built from a module with signatures ``built``.

        Return the change that the call ignores, if such calls are repaired. Otherwise None.
        """
        self._called.add(function)
        old_way = None
        for change in self._changes:
            if function in change.new_functions:
                self._findings.drop(_make_key(change))
            elif built is not None and function == change.function and built.get(function) == change.after:
                old_way = change if self._report_old_call(change, arguments) else old_way
        return old_way if self._repair else None

    def _report_old_call(self, change: SignatureChange, arguments: tuple[Any, ...]) -> bool:
        if not accepts_arguments(change.before, arguments):
            return False
        if not accepts_arguments(change.after, arguments):
            self._add_finding(change, arguments, "the arguments fit only the old parameters")
        elif change.new_functions and not self._called.intersection(change.new_functions):
            self._add_finding(change, arguments, "the arguments fit both, and the new function was never called")
        else:
            return False
        return True

    def _add_finding(self, change: SignatureChange, arguments: tuple[Any, ...], why: str) -> None:
        preparing = change.preparing
        summary = (
            f"{change.applied} changed the parameters of {change.function} from {_list_names(change.before)} to "
        )
        summary += f"{_list_names(change.after)}, and it is then called the old way"
        evidence: Json = {
            "pass": change.applied,
            "function": change.function,
            "parameters_before": [str(p) for p in change.before],
            "parameters_after": [str(p) for p in change.after],
            "new_functions": list(change.new_functions),
            "argument_count": len(arguments),
            "why": why,
        }
        if preparing is not None:
            summary += f"; the new function {preparing} must run first and never does"
            evidence["call_that_works"] = _show_working_call(change, preparing)
        by_contract = bool(change.new_functions) or CHANGES_PARAMETERS.search(change.applied) is not None
        self._findings.add(_make_key(change), "signature-changed" if by_contract else "note", summary, evidence)


def split_parameters(change: SignatureChange) -> tuple[list[int], list[int]]:
    """Return the positions of the remaining old parameters, and of the prepared parameters.

    The prepared parameters are the last ones. Their number is that of the values that the preparing function takes. A
    parameter that this function returns unchanged is also prepared. Without the number, the names decide.
    """
    everything = list(range(len(change.before)))
    if change.prepares is not None and change.prepares <= len(everything):
        at = len(everything) - change.prepares
        return everything[:at], everything[at:]
    after = {p.name for p in change.after}
    kept = [at for at in everything if change.before[at].name in after]
    return kept, [at for at in everything if at not in kept]


def _show_working_call(change: SignatureChange, preparing: str) -> str:
    """Return the correct call of the changed function: the remaining inputs, then the prepared values."""
    kept, moved = ([change.before[at].name for at in part] for part in split_parameters(change))
    call = f'prepared = vm["{preparing}"]([{", ".join(moved)}]); '
    return call + f'vm["{change.function}"]({", ".join([*kept, "*prepared"])})'


def repair_arguments(
    change: SignatureChange, preparing: Callable[[Any], Any], arguments: tuple[Any, ...]
) -> list[Any]:
    """Return the arguments of the correct call: the remaining inputs, then the prepared values."""
    kept, moved = split_parameters(change)
    return [*(arguments[at] for at in kept), *preparing([arguments[at] for at in moved])]


def _list_names(signature: Signature) -> str:
    return "(" + ", ".join(p.name for p in signature) + ")"


def _make_key(change: SignatureChange) -> str:
    return f"signature:{change.function}:{change.applied}"
