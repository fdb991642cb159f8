"""Find a model that ONNX itself refuses.

An importer may refuse a model that breaks ONNX's rules. ONNX's own checker decides: it is called on the model right
before the import. Its refusal explains the error only if both name the same operator. A crash, a hang or a wrong
value stays a fault of the compiler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from runners.core.findings.kinds import ControlEnd, Origin, Rule
from runners.core.findings.record import make_finding
from runners.core.findings.types import RuleEvidence
from runners.core.protocol import Exited, Observation, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs, replace_expressions

_IMPORTER = "from_onnx"
_CHECKED = '(__import__("onnx.checker").checker.check_model({}, full_check=True) or {})'
"""The model, after a call of the checker, which returns None."""
_REFUSED = re.compile(r"\(op_type: ?(?P<operator>\w{1,80})[^)\n]{0,200}\):? ?(?:\[\w{1,40}\] )?(?P<why>[^\n]{1,300})")
"""A refusal of the checker: ``(op_type:Transpose): [TypeInferenceError] Invalid attribute perm {0, 2, 1}, …``."""
_FRAME = re.compile(r"\bin from_onnx\b|frontend[/\\]onnx")
"""A row of a Python stack inside an importer of ONNX."""
_CHECKER = ("InferenceError", "ValidationError")
MAX_WHY = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """The call that imports a model, and the testcase that checks the model before."""

    file: str
    line: int
    """1-based."""
    checked: Testcase


def check_model(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with a check of each model before its import."""
    seen = failure.seen
    found = find_import(failure.testcase)
    ends_in_error = isinstance(seen.ended, Exited) and seen.ended.code != 0 and seen.signature is not None
    if found is None or not ends_in_error:
        return NOTHING_FOUND
    if _FRAME.search(seen.excerpt) is None:
        return NOTHING_FOUND  # it fails after the import
    control = means.run_control(failure, found.checked)
    refusal = _read_refusal(control)
    if refusal is None or not _names_operator(seen, refusal["operator"]):
        return Diagnosis(controls=(control,))
    why = refusal["why"].strip()[:MAX_WHY]
    rows = re.findall(rf'{re.escape(found.file)}", line (\d{{1,6}})', control.excerpt)
    line = int(rows[-1]) if rows else found.line
    evidence = RuleEvidence(
        operation=refusal["operator"],
        file=found.file,
        line=line,
        version=seen.version,
        rule=Rule.INVALID_MODEL,
        rule_of=why,
        origin=Origin.TESTCASE,
        control="ONNX's own checker, called on the model before the import, refuses it",
        control_end=ControlEnd.REFUSED,
    )
    words = f"{refusal['operator']} in the model of {found.file}:{line} breaks a rule of ONNX: {why}"
    return Diagnosis(controls=(control,), findings=(make_finding(evidence, words),))


def find_import(testcase: Testcase) -> Import | None:
    """Return the first call that imports an ONNX model. The checked testcase checks the model of each such call."""
    for name, tree in parse_programs(testcase, _IMPORTER):
        calls = sorted(_list_imports(tree), key=lambda call: (call.lineno, call.col_offset))
        if calls:
            checked = replace_expressions(testcase, name, [(call.args[0], _CHECKED) for call in calls])
            return Import(file=name, line=calls[0].lineno, checked=checked)
    return None


def _list_imports(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield each call of the importer whose model is a name, an attribute or a loaded file: it is read twice."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else get_method(call)
        if name != _IMPORTER or not call.args:
            continue
        if isinstance(call.args[0], ast.Name | ast.Attribute) or get_method(call.args[0]) == "load":
            yield call


def _read_refusal(control: Observation) -> re.Match[str] | None:
    """Return the refusal of the checker. A declared extent that inference contradicts stops no importer."""
    signature = control.signature
    if signature is None or signature.type.rpartition(".")[2] not in _CHECKER:
        return None
    refusal = _REFUSED.search(f"{signature.message}\n{control.excerpt}")
    return None if refusal is None or "existing shape differ" in refusal["why"] else refusal


def _names_operator(seen: Observation, operator: str) -> bool:
    """True if the error names the operator, or the importer's log does so above it."""
    message = seen.signature.message if seen.signature is not None else ""
    logged = re.search(rf"\b[Oo]perator:? {re.escape(operator)}\b", seen.excerpt)
    return logged is not None or re.search(rf"\b{re.escape(operator)}\b", message) is not None
