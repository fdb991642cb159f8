"""Find an operation of Relax on parameters whose declared shapes do not fit.

TVM refuses such a program while it reads the program. The rule is NumPy's, for matrix products and elementwise
operations. Only parameters with constant extents are read: a shape that the compiler infers may itself be wrong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from runners.core.findings.kinds import ControlEnd, Origin, Rule
from runners.core.findings.record import make_finding
from runners.core.findings.types import RuleEvidence
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs

Shape = tuple[int, ...]

_READER = "DiagnosticError"
"""The exception of TVMScript's reader."""
_ELEMENTWISE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "floor_divide", "power", "maximum", "minimum", "mod"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    )
)


def check_shapes(failure: Failure, _means: Means) -> Diagnosis:
    """Compare the declared shapes of each refused operation. No run is needed: the text shows them."""
    signature = failure.seen.signature
    if signature is None or signature.type != _READER:
        return NOTHING_FOUND
    said = signature.message.lower().replace("_", "")
    for file, tree in parse_programs(failure.testcase, "R.Tensor"):
        for call, operands in find_unfit(tree):
            if re.search(rf"\b{get_method(call).replace('_', '')}\b", said) is None:
                continue
            shown = ", ".join(f"{name} {shape}" for name, shape in operands.items())
            evidence = RuleEvidence(
                operation=f"R.{get_method(call)}",
                file=file,
                line=call.lineno,
                version=failure.seen.version,
                rule=Rule.UNFIT_SHAPES,
                rule_of=shown,
                origin=Origin.TESTCASE,
                control="the declared shapes do not fit by NumPy's rule",
                control_end=ControlEnd.REFUSED,
            )
            words = f"R.{get_method(call)} in {file}:{call.lineno} takes {shown}, whose shapes do not fit"
            return Diagnosis(findings=(make_finding(evidence, words),))
    return NOTHING_FOUND


def find_unfit(tree: ast.Module) -> Iterator[tuple[ast.Call, Mapping[str, Shape]]]:
    """Yield each operation on two parameters whose declared shapes do not fit, with the parameters."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if any(one is not function and isinstance(one, ast.FunctionDef) for one in ast.walk(function)):
            continue  # an inner function may have parameters of the same names
        shapes = {one.arg: shape for one in function.args.args if (shape := _read_shape(one.annotation)) is not None}
        names_in = (node for node in ast.walk(function) if isinstance(node, ast.Name))
        made = {name.id for name in names_in if isinstance(name.ctx, ast.Store)}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            names = [one.id for one in call.args if isinstance(one, ast.Name)]
            if len(call.args) != 2 or len(names) != 2 or made & set(names) or not set(names) <= set(shapes):
                continue
            one, two = (shapes[name] for name in names)
            method = get_method(call) if _is_of_relax(call) else ""
            fits = _multiply(one, two) if method == "matmul" else _broadcast(one, two)
            if (method == "matmul" or method in _ELEMENTWISE) and not fits:
                yield call, {name: shapes[name] for name in names}


def _is_of_relax(call: ast.Call) -> bool:
    """True for ``R.add(…)`` and ``relax.op.add(…)``."""
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in ("R", "relax.op")


def _read_shape(annotation: ast.expr | None) -> Shape | None:
    """Return the extents of ``R.Tensor((4, 8), …)``. None if one of them is no number."""
    match annotation:
        case ast.Call(func=ast.Attribute(attr="Tensor"), args=[ast.Tuple(elts=extents), *_]):
            values = [one.value for one in extents if isinstance(one, ast.Constant) and type(one.value) is int]
            return tuple(values) if len(values) == len(extents) else None
        case _:
            return None


def _broadcast(one: Shape, two: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip_longest(reversed(one), reversed(two), fillvalue=1))


def _multiply(one: Shape, two: Shape) -> bool:
    """True if the second last extent of ``two``, or its only one, is the last extent of ``one``."""
    if not one or not two:
        return False
    inner = two[0] if len(two) == 1 else two[-2]
    return one[-1] == inner and _broadcast(one[:-2], two[:-2])
