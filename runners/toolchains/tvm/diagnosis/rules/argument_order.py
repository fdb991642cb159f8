"""Find weights whose order in a testcase differs from the parameters of an exported module. Pure.

``export_tvm`` returns the parameters by name, in the order in which the compiled function takes them. A list of
weights by sorted names, or in the order of a checkpoint, has the same types but another meaning. The repaired
testcase lists the weights by the names that ``export_tvm`` returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs, replace_expressions

EXPORT = "export_tvm"


def check_argument_order(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with its weights in the order of the parameters."""
    rule = find_other_order(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_other_order(testcase: Testcase) -> BrokenRule | None:
    """Return the first list of weights with its own order of names. None without one."""
    for file, tree in parse_programs(testcase, EXPORT):
        parameters = next(_list_parameters(tree), None)
        names = next(_list_names(tree), None)
        if parameters is not None and names is not None and not _reads(names, parameters):
            return _make_rule(testcase, file, names, parameters)
    return None


def _list_parameters(tree: ast.Module) -> Iterator[str]:
    """Yield ``params`` of ``module, params = model.export_tvm(…)``."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=name), *_])], value=value) if (
                get_method(value) == EXPORT
            ):
                yield name
            case _:
                pass


def _list_names(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield ``sorted(weights)`` of ``[tensor(weights[name]) for name in sorted(weights)]``, in one row."""
    for node in ast.walk(tree):
        match node:
            case ast.ListComp(elt=made, generators=[ast.comprehension(target=ast.Name(id=name), iter=names, ifs=[])]):
                looked_up = any(
                    isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Name) and one.slice.id == name
                    for one in ast.walk(made)
                )
                if looked_up and names.lineno == names.end_lineno:
                    yield names
            case _:
                pass


def _reads(expression: ast.expr, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(expression))


def _make_rule(testcase: Testcase, file: str, names: ast.expr, parameters: str) -> BrokenRule:
    kept = f"[name_ for name_, value_ in {parameters}]"
    return BrokenRule(
        operation="the list of weights",
        file=file,
        line=names.lineno,
        rule=Rule.ARGUMENT_ORDER,
        of=ast.unparse(names),
        words=f"has the order of {ast.unparse(names)}, not that of the exported parameters",
        instead="the order of the parameters that export_tvm returned",
        mended=replace_expressions(testcase, file, [(names, kept)]),
    )
