"""Detect modules that differ only in NaN, and passes that replace live values by constants."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy
import tvm
from tvm import relax

from runners.guest.tvm.trace import to_array

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings

Json = dict[str, Any]
Expr = Any

CONSTANTS = ("Constant", "GenericConst")
SCALARS = ("PrimValue", "FloatImm", "IntImm")
VALUELESS = frozenset(
    {"zeros_like", "ones_like", "full_like", "shape_of", "size", "shape_to_tensor", "tensor_to_shape"}
)
"""Operators whose result depends only on the shape of their operand, not on its values."""
MAX_TEXT = 2_000_000


# ---------------------------------------------------------------------------------------------- equality


class EqualityDiagnoser:
    """Wraps the structural comparisons of the compiler, and examines modules that compare unequal."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._comparing = False

    def install(self) -> None:
        for owner, name in (
            (tvm.ir, "assert_structural_equal"),
            (tvm.ir, "structural_equal"),
            (sys.modules.get("tvm_ffi"), "structural_equal"),
        ):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._wrap_comparison(original, name))

    def _wrap_comparison(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def compare_modules(lhs: Any, rhs: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                equal = original(lhs, rhs, *args, **kwargs)
            except ValueError:
                self._examine_modules(lhs, rhs, name)
                raise
            if equal is False:
                self._examine_modules(lhs, rhs, name)
            return equal

        return compare_modules

    def _examine_modules(self, lhs: Any, rhs: Any, name: str) -> None:
        if self._comparing or not (hasattr(lhs, "script") and hasattr(rhs, "script")):
            return
        self._comparing = True
        try:
            evidence = find_nan_difference(lhs, rhs)
        except Exception as error:
            self._findings.note("two unequal modules could not be examined", why=str(error)[-200:])
            evidence = None
        finally:
            self._comparing = False
        if evidence is not None:
            summary = (
                f"{name} calls two modules different whose text is the same and whose constants differ in NaN only"
            )
            self._findings.add("nan-inequality", "nan-inequality", summary, {"comparison": name, **evidence})


def find_nan_difference(lhs: Any, rhs: Any) -> Json | None:
    """Return the NaNs of two modules or functions with otherwise equal text and constants. Otherwise None."""
    texts = [value.script(show_meta=False) for value in (lhs, rhs)]
    # Ignore the names of modules. Constants appear only as numbers in the text and are compared below.
    left, right = (re.sub(r"^class \w+", "class Module", text, flags=re.MULTILINE) for text in texts)
    if left != right or len(left) > MAX_TEXT:
        return None
    ours, theirs = list(iterate_constants(lhs)), list(iterate_constants(rhs))
    if len(ours) != len(theirs):
        return None
    places: list[Json] = []
    for (where, a), (_, b) in zip(ours, theirs, strict=True):
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return None
        if a.dtype.kind == "f" and np.isnan(a).any():
            places.append(
                {
                    "function": where,
                    "bits": [_list_nan_bits(a), _list_nan_bits(b)],
                    "same_bits": a.tobytes() == b.tobytes(),
                }
            )
    in_text = len(re.findall(r"\bnan\b", left))
    if not places and not in_text:
        return None
    return {"nan_constants": places, "nan_in_text": in_text}


def _list_nan_bits(array: Any) -> list[str]:
    """Return the different bit patterns of an array's NaNs."""
    unsigned = array[np.isnan(array)].view(f"u{array.dtype.itemsize}")
    return sorted({hex(int(bits)) for bits in unsigned[:64]})


def iterate_constants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensor constants of a module or Relax function in order, each with its function."""
    functions = value.functions.items() if isinstance(value, tvm.IRModule) else [("", value)]
    for name, function in sorted(functions, key=lambda item: str(item[0])):
        if isinstance(function, relax.Function):
            found: list[Any] = []
            relax.analysis.post_order_visit(function, lambda node, found=found: found.append(_read_constant(node)))
            yield from ((str(name), array) for array in found if array is not None)


def _read_constant(node: Expr) -> Any:
    """Return a tensor constant or number as an array. None for other expressions."""
    kind = type(node).__name__
    if kind in CONSTANTS:
        return to_array(node.value if hasattr(node, "value") else node.data)
    if kind in SCALARS:
        value: Any = node.value
        return np.asarray(float(getattr(value, "value", value)))
    return None


# ---------------------------------------------------------------------------------------------- replaced values


class ValuesDiagnoser:
    """Watches passes for outputs that depended on the function's parameters and became constants."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._found = False
        self._pending: tuple[str, Json] | None = None
        """Summary and evidence of a finding, while the enclosing pass call is running."""

    def before_pass(self, module: Any, _applied: Any) -> dict[str, list[Json]]:
        return {} if self._found else read_outputs(module)

    def after_pass(self, name: str, snapshot: dict[str, list[Json]], _given: Any, result: Any, applied: Any) -> None:
        if self._pending is not None and applied is not None:
            summary, evidence = self._pending
            evidence["called_as"] = name
            self._findings.add("values-replaced", "values-replaced", summary, evidence)
            self._pending = None
        if self._found or not snapshot:
            return
        now = read_outputs(result)
        for function, before in snapshot.items():
            after = now.get(function, [])
            replaced = [
                i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a["live"] and "constant" in b
            ]
            if len(before) == len(after) and replaced:
                # Later passes only keep the constants. Report the first pass.
                self._found = True
                self._add_finding(name, function, before, after, replaced)
                return

    def _add_finding(
        self, name: str, function: str, before: list[Json], after: list[Json], replaced: list[int]
    ) -> None:
        values = sorted({str(after[i]["constant"]) for i in replaced})
        summary = f"the pass {name} replaced {len(replaced)} of {len(before)} outputs of {function}, "
        summary += f"which depended on its parameters, by {', '.join(values)}"
        evidence: Json = {
            "pass": name,
            "called_as": name,
            "function": function,
            "outputs": replaced,
            "constants": values,
        }
        self._findings.add("values-replaced", "values-replaced", summary, evidence)
        self._pending = (summary, evidence)


def read_outputs(module: Any) -> dict[str, list[Json]]:
    """Return the outputs of each public Relax function: ``live`` (depends on parameters), or a ``constant``."""
    found = {}
    for gv, function in module.functions.items():
        if isinstance(function, relax.Function) and function.attrs and "global_symbol" in function.attrs:
            scope = FunctionScope(function)
            found[str(gv.name_hint)] = [scope.describe_output(leaf) for leaf in scope.list_leaves(function.body.body)]
    return found


class FunctionScope:
    """Bindings of a function, and which of them depend on its parameters."""

    def __init__(self, function: Expr) -> None:
        # Hashed by address, because the compiler overloads == of expressions.
        self._values = {}
        self._live = {hash(parameter): True for parameter in function.params}
        for block in function.body.blocks:
            for binding in block.bindings:
                value = getattr(binding, "value", None)
                self._values[hash(binding.var)] = value
                self._live[hash(binding.var)] = self.is_live(value)

    def is_live(self, value: Expr) -> bool:
        kind = type(value).__name__
        if kind in ("Var", "DataflowVar"):
            return self._live.get(hash(value), False)
        if kind == "Tuple":
            return any(self.is_live(item) for item in value.fields)
        if kind == "TupleGetItem":
            return self.is_live(value.tuple_value)
        if kind == "Call":
            operator = str(getattr(value.op, "name", "")).rsplit(".", 1)[-1]
            return operator not in VALUELESS and any(self.is_live(argument) for argument in value.args)
        return kind in ("If", "SeqExpr")

    def list_leaves(self, value: Expr, depth: int = 0) -> list[Expr]:
        resolved = self._resolve_variable(value)
        if type(resolved).__name__ == "Tuple" and depth < 8:
            return [leaf for item in resolved.fields for leaf in self.list_leaves(item, depth + 1)]
        # A call returned the tuple: one output for each element.
        return [resolved] * _count_values(getattr(value, "struct_info", None) or getattr(value, "ty", None))

    def _resolve_variable(self, value: Expr, depth: int = 0) -> Expr:
        """Return the expression to which ``value`` is bound, through variables and elements of known tuples."""
        kind = type(value).__name__
        if kind in ("Var", "DataflowVar") and self._values.get(hash(value)) is not None and depth < 256:
            return self._resolve_variable(self._values[hash(value)], depth + 1)
        if kind == "TupleGetItem" and depth < 256:
            whole = self._resolve_variable(value.tuple_value, depth + 1)
            if type(whole).__name__ == "Tuple":
                return self._resolve_variable(whole.fields[int(value.index)], depth + 1)
        return value

    def describe_output(self, leaf: Expr) -> Json:
        array = _read_constant(leaf)
        if array is None:
            return {"live": self.is_live(leaf)}
        if array.dtype.kind == "f" and np.isnan(array).all():
            return {"live": False, "constant": "NaN"}
        text = str(array.ravel()[0]) if array.size == 1 else f"a constant {array.dtype}{list(array.shape)}"
        return {"live": False, "constant": text}


def _count_values(annotation: Any) -> int:
    """Return the number of values in a type, with nested tuples flattened."""
    fields = getattr(annotation, "fields", None)
    return 1 if fields is None else sum(map(_count_values, fields))
