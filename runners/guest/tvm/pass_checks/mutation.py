"""Detect passes that change their input module in place.

The structural hash of the caller's module before and after each pass call shows a change. Then the pass is applied
again to its result, and twice to copies of its input, in forked children, where changes are harmless.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm

from runners.guest.tvm.testcase import run_in_child

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings

# Part of tvm.ir until 0.22, then of the package tvm_ffi.
structural_hash = getattr(tvm.ir, "structural_hash", None) or importlib.import_module("tvm_ffi").structural_hash

MAX_FUNCTIONS_WITH_TEXT = 24
"""Modules with more functions are not printed to show the change, because printing takes longer than the pass."""
CHILD_S = 10
MAX_RESULT = 1024


@dataclass(frozen=True)
class ModuleState:
    hash: int
    functions: dict[str, int]
    text: str | None


class MutationDiagnoser:
    """Watches passes for changed inputs."""

    def __init__(self, findings: Findings, defines_pass: Callable[[str], bool]) -> None:
        self._findings = findings
        self._defines_pass = defines_pass
        self._culprits: list[str] = []
        """Inner passes of the current outer call that changed their input, in order."""
        self._reported: set[str] = set()

    def before_pass(self, module: Any, applied: Any) -> ModuleState:
        outer = applied is not None
        if outer:
            self._culprits.clear()
        text = None
        if outer and len(module.functions) <= MAX_FUNCTIONS_WITH_TEXT:
            text = module.script()
        return ModuleState(structural_hash(module), _hash_functions(module) if outer else {}, text)

    def after_pass(self, name: str, snapshot: ModuleState, given: Any, result: Any, applied: Any) -> None:
        mutated = structural_hash(given) != snapshot.hash
        if applied is None:
            if mutated:
                self._culprits.append(name)
            return
        # Report only the first call, because an earlier call may have changed the input of a later one.
        if mutated and self._find_culprit(name) not in self._reported:
            again, twice = apply_again(applied, result), compare_calls(applied, snapshot.text)
            self._report_mutation(name, snapshot, given, result, again, twice)

    def _find_culprit(self, name: str) -> str:
        return self._culprits[0] if self._culprits else name

    def _report_mutation(
        self, name: str, snapshot: ModuleState, given: Any, result: Any, again: str, twice: dict[str, str]
    ) -> None:
        culprit = self._find_culprit(name)
        self._reported.add(culprit)
        was, now = snapshot.functions, _hash_functions(given)
        own = self._defines_pass(culprit)
        summary = f"the pass {culprit} changed the module it was given in place"
        if own:
            summary = f"the testcase's own pass {culprit} changed the module it was given in place"
        evidence: dict[str, Any] = {
            "pass": culprit,
            "called_as": name,
            "defined_in_testcase": own,
            "functions_changed": sorted(f for f in {*now, *was} if now.get(f) != was.get(f)),
            "second_application": again,
            "returned_its_input": bool(result.same_as(given)),
        }
        if twice:
            evidence["called_twice_on_one_module"] = twice
            if set(twice.values()) == {"differs"}:
                summary += (
                    "; a second call on the same module then gives another result, in whichever way either is made"
                )
        if snapshot.text is not None:
            evidence["difference"] = _list_changed_lines(snapshot.text, given.script())
        self._findings.add(f"mutation:{culprit}", "input-mutated", summary, evidence)


def _hash_functions(module: Any) -> dict[str, int]:
    return {str(gv.name_hint): structural_hash(function) for gv, function in module.functions.items()}


def _list_changed_lines(before: str, after: str) -> list[str]:
    """Return the changed lines of a unified diff, at most twelve."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=0, lineterm="")
    return [line[:160] for line in lines if not line.startswith(("---", "+++", "@@"))][:12]


def apply_again(apply: Callable[[Any], Any], module: Any) -> str:
    """Return the effect of the pass on its own result: ``same``, ``differs`` or ``fails`` (also after a time-out)."""

    def hash_result() -> str:
        before = structural_hash(module)
        return "same" if structural_hash(apply(module)) == before else "differs"

    return _run_in_child(hash_result) or "fails"


def compare_calls(applied: Any, text: str | None) -> dict[str, str]:
    """Return, for each way of calling, whether two calls on copies of one module give the same result.

    This distinguishes a result that depends on earlier calls from one that depends on the way of calling. Empty if
    the text cannot be parsed, or if a call fails.
    """
    members = list(getattr(applied, "passes", None) or [applied])
    if text is None or len(members) != 1:
        return {}
    ways = {"directly": members[0], "in a Sequential": tvm.transform.Sequential(members)}

    def call_both() -> str:
        # The instrument keeps each input alive, so a copy-on-write pass would copy.
        tvm.ir.transform.PassContext.current().override_instruments([])
        lines = []
        for (first, one), (second, other) in itertools.product(ways.items(), repeat=2):
            module = tvm.script.from_source(text)
            before = one(module)  # stays alive, as in the caller
            same = structural_hash(before) == structural_hash(other(module))
            lines.append(f"{first}, then {second}: {'same' if same else 'differs'}")
        return "\n".join(lines)

    return dict(line.split(": ", 1) for line in _run_in_child(call_both).splitlines())


def _run_in_child(action: Callable[[], str]) -> str:
    """Return the result of ``action`` in a forked child, up to 1 KiB. Empty if it fails."""
    data, _ = run_in_child(lambda writer: os.write(writer, action().encode()[:MAX_RESULT]), CHILD_S, MAX_RESULT)
    return data.decode()
