"""A pass changed the module it was given, in place; or a pass changes its own result once more.

Seen by structural hash of the caller's module around every pass call the testcase makes. The pass is then applied
once more to its result, and twice to copies of its input, in forked children, where a change can't do any harm.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings

# At home in tvm.ir until 0.22 and in a package of its own since.
structural_hash = getattr(tvm.ir, "structural_hash", None) or importlib.import_module("tvm_ffi").structural_hash

MAX_FUNCTIONS_WITH_TEXT = 24
"""Functions up to which a module's text is kept, to show what changed; printing costs more than the pass."""
CHILD_S = 10


@dataclass(frozen=True)
class Before:
    hash: int
    functions: dict[str, int]
    text: str | None


@dataclass(frozen=True)
class Applied:
    """The pass of one call, by name and itself (None inside a call), and the hash of what it returned."""

    name: str
    itself: Any
    returned: int


class MutationDiagnoser:
    def __init__(self, findings: Findings, wrote: Callable[[str], bool]) -> None:
        self._findings = findings
        self._wrote = wrote
        self._culprits: list[str] = []
        """Inner passes whose input changed, in order, within the outer call in progress."""
        self._reported: set[str] = set()
        self._last: Applied | None = None
        """What the testcase applied last."""
        self._inner: Applied | None = None
        """What ran last within the outer call in progress."""
        self._doubled: frozenset[str] = frozenset()
        """Names of the passes that a sequence of the testcase's applies twice running."""

    def before(self, module: Any, applied: Any) -> Before:
        outer = applied is not None
        if outer:
            self._culprits.clear()
            self._inner, self._doubled = None, doubled(applied)
        text = None
        if outer and len(module.functions) <= MAX_FUNCTIONS_WITH_TEXT:
            text = module.script()
        return Before(structural_hash(module), _function_hashes(module) if outer else {}, text)

    def after(self, name: str, snapshot: Before, given: Any, result: Any, applied: Any) -> None:
        mutated = structural_hash(given) != snapshot.hash
        if applied is None:
            if mutated:
                self._culprits.append(name)
            if name in self._doubled:
                self._after_inner(name, snapshot, result)
            return
        returned = structural_hash(result)
        # The first call tells: what a later one is given may have been changed already.
        if mutated and self._culprit(name) not in self._reported:
            again, twice = second_application(applied, result), called_twice(applied, snapshot.text)
            self._report_mutation(name, snapshot, given, result, again, twice)
        follows = self._last is not None and (self._last.name, self._last.returned) == (name, snapshot.hash)
        if follows and returned != snapshot.hash and self._same_pass(applied, given, mutated):
            self._report_second_change(name)
        self._last = Applied(name, applied, returned)

    def _same_pass(self, applied: Any, given: Any, mutated: bool) -> bool:
        """Another pass of that name may do what it likes: other patterns, another sequence, other parameters."""
        last: Any = self._last.itself if self._last is not None else None
        return same_object(last, applied) or (not mutated and second_application(last, given) == "differs")

    def _after_inner(self, name: str, snapshot: Before, result: Any) -> None:
        last, returned = self._inner, structural_hash(result)
        if last is not None and (last.name, last.returned) == (name, snapshot.hash) and returned != snapshot.hash:
            self._report_second_change(name)
        self._inner = Applied(name, None, returned)

    def _culprit(self, name: str) -> str:
        return self._culprits[0] if self._culprits else name

    def _report_mutation(
        self, name: str, snapshot: Before, given: Any, result: Any, again: str, twice: dict[str, str]
    ) -> None:
        culprit = self._culprit(name)
        self._reported.add(culprit)
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
        if twice:
            evidence["called_twice_on_one_module"] = twice
            if set(twice.values()) == {"differs"}:
                summary += (
                    "; a second call on the same module then gives another result, in whichever way either is made"
                )
        if snapshot.text is not None:
            evidence["difference"] = _difference(snapshot.text, given.script())
        self._findings.add(f"mutation:{culprit}", "input-mutated", summary, evidence)

    def _report_second_change(self, name: str) -> None:
        summary = f"the pass {name}, applied by the testcase to its own result, changed the module again"
        self._findings.add(f"twice:{name}", "not-idempotent", summary, {"pass": name})


def doubled(applied: Any) -> frozenset[str]:
    """Names of members of a sequence that follow themselves: the same object, so that its options are the same."""
    members = list(getattr(applied, "passes", None) or [])
    doubles = (at for at in range(1, len(members)) if same_object(members[at - 1], members[at]))
    return frozenset(str(members[at].info.name) for at in doubles)


def same_object(one: Any, other: Any) -> bool:
    return one is other or (hasattr(one, "same_as") and bool(one.same_as(other)))


def _function_hashes(module: Any) -> dict[str, int]:
    return {str(gv.name_hint): structural_hash(function) for gv, function in module.functions.items()}


def _difference(before: str, after: str) -> list[str]:
    """Changed lines of a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=0, lineterm="")
    return [line[:160] for line in lines if not line.startswith(("---", "+++", "@@"))][:12]


def second_application(apply: Callable[[Any], Any], module: Any) -> str:
    """What the pass does to its own result: ``same``, ``differs``, or ``fails`` (which includes taking too long)."""

    def try_it() -> str:
        before = structural_hash(module)
        return "same" if structural_hash(apply(module)) == before else "differs"

    return _in_a_child(try_it) or "fails"


def called_twice(applied: Any, text: str | None) -> dict[str, str]:
    """Whether two calls on one module give the same, for each way of making them, on copies made from its text.

    Tells a result that depends on what was called before from one that depends on how it is called. Empty where the
    text cannot be read back, or a call fails.
    """
    members = list(getattr(applied, "passes", None) or [applied])
    if text is None or len(members) != 1:
        return {}
    ways = {"directly": members[0], "in a Sequential": tvm.transform.Sequential(members)}

    def try_them() -> str:
        # Our instrument holds on to what each pass is given: one that copies where it is not alone would copy.
        tvm.ir.transform.PassContext.current().override_instruments([])
        found = []
        for (first, one), (second, other) in itertools.product(ways.items(), repeat=2):
            module = tvm.script.from_source(text)
            before = one(module)  # stays alive, as the caller's does
            same = structural_hash(before) == structural_hash(other(module))
            found.append(f"{first}, then {second}: {'same' if same else 'differs'}")
        return "\n".join(found)

    return dict(line.split(": ", 1) for line in _in_a_child(try_them).splitlines())


def _in_a_child(action: Callable[[], str]) -> str:
    """What ``action`` returns (up to 1 KiB), in a process of its own where it can do no harm; empty when it fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            signal.alarm(CHILD_S)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            said = action()
        finally:
            os.write(writer, said.encode()[:1024])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read(1024).decode()
    os.waitpid(child, 0)
    return said
