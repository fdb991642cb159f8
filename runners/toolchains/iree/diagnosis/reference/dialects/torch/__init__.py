"""Run the operations of the torch dialect as PyTorch's documentation defines them. Pure.

The types have been rewritten as builtin types (`types`). There is no result if PyTorch does not define it, or if a
form of an operation is unknown here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runners.core.mlir.types import fits_shape
from runners.toolchains.iree.diagnosis.reference.definitions import is_known
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import NOTHING, Call, Listed, Run
from runners.toolchains.iree.diagnosis.reference.dialects.torch.elementwise import ELEMENTS
from runners.toolchains.iree.diagnosis.reference.dialects.torch.networks import NETWORKS
from runners.toolchains.iree.diagnosis.reference.dialects.torch.onnx import run_onnx
from runners.toolchains.iree.diagnosis.reference.dialects.torch.places import PLACES
from runners.toolchains.iree.diagnosis.reference.dialects.torch.reductions import REDUCTIONS
from runners.toolchains.iree.diagnosis.reference.statements import Statement, UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values


def run_torch(statement: Statement, values: Mapping[str, Values], *, wide: bool) -> Sequence[Values]:
    """Return the results of an operation. ``wide`` keeps the floats of arithmetic in float64."""
    name = statement.operation.removeprefix("torch.")
    call = Call(statement, tuple(values[one] for one in statement.operands), wide)
    if name.startswith("constant."):
        return [_make_constant(call, name.rpartition(".")[2])]
    run = _OPERATIONS.get(name) or _OPERATIONS.get(re.sub(r"(?<=\w)\.[A-Z]\w*$", "", name))
    if run is None or not all(is_known(one.element) for one in statement.types):
        raise UndefinedResult(statement.operation)
    found = run(call)
    results = found if isinstance(found, list) else [found]
    for result, to in zip(results, statement.types, strict=True):
        fits = fits_shape(to.shape, result.shape)
        if not isinstance(result, Listed) and not (fits and result.element == to.element):
            raise UndefinedResult(f"{statement.operation}: another type")
    return results


def _make_constant(call: Call, kind: str) -> Values:
    word = call.statement.attributes.strip()
    match kind:
        case "int":
            return Values("i64", (int(word),))
        case "float":
            return Values("f64", (float(word),))
        case "bool":
            return Values("i1", (-int(word == "true"),))
        case "str":
            return Listed("str", (), string=word.strip('"'))
        case "none":
            return NOTHING
        case _:
            raise UndefinedResult(kind)


_OPERATIONS: Mapping[str, Run] = {**ELEMENTS, **REDUCTIONS, **PLACES, **NETWORKS, "operator": run_onnx}
"""Operations by their names below ``torch``. An overload without its own row uses the row of its base."""
