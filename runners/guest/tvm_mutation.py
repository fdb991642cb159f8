"""A pass changed the module it was given, in place.

Seen by structural hash of the caller's module around every pass call the testcase makes. The pass is then applied
once more to its result in a forked child, where a second change can't do any harm.
"""

from __future__ import annotations

import difflib
import importlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm

if TYPE_CHECKING:
    from runners.guest.tvm_findings import Findings

# At home in tvm.ir until 0.22 and in a package of its own since.
structural_hash = getattr(tvm.ir, "structural_hash", None) or importlib.import_module("tvm_ffi").structural_hash

MAX_FUNCTIONS_WITH_TEXT = 24
"""Functions up to which a module's text is kept, to show what changed; printing costs more than the pass."""
SECOND_APPLICATION_S = 10


@dataclass(frozen=True)
class Before:
    hash: int
    functions: dict[str, int]
    text: str | None


class MutationDiagnoser:
    def __init__(self, findings: Findings, wrote: Callable[[str], bool]) -> None:
        self._findings = findings
        self._wrote = wrote
        self._culprits: list[str] = []
        """Inner passes whose input changed, in order, within the outer call in progress."""
        self._last: tuple[str, int] | None = None
        """Name of the pass the testcase applied last, and the hash of what it returned."""

    def before(self, module: Any, applied: Any) -> Before:
        outer = applied is not None
        if outer:
            self._culprits.clear()
        text = None
        if outer and len(module.functions) <= MAX_FUNCTIONS_WITH_TEXT:
            text = module.script()
        return Before(structural_hash(module), _function_hashes(module) if outer else {}, text)

    def after(self, name: str, snapshot: Before, given: Any, result: Any, applied: Any) -> None:
        mutated = structural_hash(given) != snapshot.hash
        if applied is None:
            if mutated:
                self._culprits.append(name)
            return
        returned = structural_hash(result)
        if mutated:
            self._report_mutation(name, snapshot, given, result, second_application(applied, result))
        if self._last == (name, snapshot.hash) and returned != snapshot.hash:
            self._report_second_change(name)
        self._last = (name, returned)

    def _report_mutation(self, name: str, snapshot: Before, given: Any, result: Any, again: str) -> None:
        culprit = self._culprits[0] if self._culprits else name
        was, now = snapshot.functions, _function_hashes(given)
        own = self._wrote(culprit)
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
        if snapshot.text is not None:
            evidence["difference"] = _difference(snapshot.text, given.script())
        self._findings.add(f"mutation:{culprit}", "input-mutated", summary, evidence)

    def _report_second_change(self, name: str) -> None:
        summary = f"the pass {name}, applied by the testcase to its own result, changed the module again"
        self._findings.add(f"twice:{name}", "not-idempotent", summary, {"pass": name})


def _function_hashes(module: Any) -> dict[str, int]:
    return {str(gv.name_hint): structural_hash(function) for gv, function in module.functions.items()}


def _difference(before: str, after: str) -> list[str]:
    """Changed lines of a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=0, lineterm="")
    return [line[:160] for line in lines if not line.startswith(("---", "+++", "@@"))][:12]


def second_application(apply: Callable[[Any], Any], module: Any) -> str:
    """What the pass does to its own result, tried in a child process: ``same``, ``differs``, or ``fails`` (which
    includes taking longer than SECOND_APPLICATION_S)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        verdict = b"fails"
        try:
            signal.alarm(SECOND_APPLICATION_S)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            before = structural_hash(module)
            verdict = b"same" if structural_hash(apply(module)) == before else b"differs"
        finally:
            os.write(writer, verdict)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        verdict = answer.read(16)
    os.waitpid(child, 0)
    return verdict.decode() or "fails"
