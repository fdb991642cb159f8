"""A failing probe → findings: re-runs the testcase under instrumentation, or changed in one known way.

The instrumentation shares its process with the testcase, so what it writes is a claim: bounded, decoded strictly,
and never more than an explanation of a failure that the host saw for itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from runners.core.conditions import COULD_DIFFER
from runners.core.guest_programs import launch
from runners.core.protocol import (
    Exited,
    Finding,
    FindingKind,
    Limits,
    Observation,
    Outcome,
    Plan,
    Testcase,
    TestcaseKind,
    Variant,
    Wire,
)
from runners.core.refutation import REFUTED_BY, refutable
from runners.diagnosis.nondeterminism import HASH_SEEDS, Run, Way, finding, repeat
from runners.diagnosis.uninitialized import read_empty, traced
from runners.rewrite.retarget import retarget
from runners.toolchains.iree.mlir_contract import Breach, find_breach
from runners.toolchains.iree.mlir_faults import find_fault
from runners.toolchains.iree.pass_bisect import find_guilty_iree
from runners.toolchains.tvm.pass_bisect import find_guilty
from runners.toolchains.tvm.relax_contract import find_live_argument

TVM_MODES = ("bounds", "signature", "mutation", "nan", "unwritten")
GUEST_KINDS = frozenset(
    {
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        FindingKind.UNINITIALIZED_READ,
        FindingKind.SIGNATURE_CHANGED,
        FindingKind.INPUT_MUTATED,
        FindingKind.NOT_IDEMPOTENT,
        FindingKind.NAN_INEQUALITY,
        FindingKind.VALUES_REPLACED,
    }
)
"""What the instrumentation can find. The other kinds say what the host did or saw: a guest cannot claim them."""
SETTLED = frozenset({FindingKind.OUT_OF_BOUNDS_ACCESS, FindingKind.SIGNATURE_CHANGED, FindingKind.UNINITIALIZED_READ})
"""With one of these the cause is known, unless it says that it is not: no pass is to blame."""
CONTROL = "control"
"""The part of a finding's evidence that tells of a run of the host's own."""
HOSTS_OWN = frozenset({CONTROL, REFUTED_BY})
"""Parts of the evidence that a guest cannot claim."""
MAX_FINDINGS = 12
MAX_CLAIM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a diagnosis may do."""

    run: Callable[[str, Variant, Testcase, str], Observation]
    """Run a testcase on a release, as a variant of the plan's, on a device."""
    instrumented: Callable[[str, Testcase, tuple[str, ...]], str]
    """Run a testcase on a release under the guest's instrumentation; returns what it wrote: JSON lines, a claim."""
    search: Callable[[str, Testcase], str] = lambda _version, _testcase: ""
    """Run a testcase whose step is one of our hooks; returns what the hook wrote, a claim."""
    vary: Callable[[str, Testcase, Way], Run | None] = lambda _version, _testcase, _way: None
    """Run a testcase on a release under chosen conditions; None when that shows nothing."""


def diagnose(
    plan: Plan, failing: Observation, means: Means, *, clean: Observation | None = None
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """Control runs and findings for one failure, cheapest first; stops when the cause is settled.

    ``clean`` is a run of the same build without the failure: then the reason is looked for whatever the failure is.
    """
    differing = _nondeterministic(plan.testcase, failing, means, clean)
    # Where runs disagree, leaving passes out one after another would find accidents.
    controls, found = _causes(plan, failing, means, passes=clean is None)
    return controls, tuple(map(refutable, (*found, *differing)))


def _nondeterministic(
    testcase: Testcase, failing: Observation, means: Means, clean: Observation | None
) -> tuple[Finding, ...]:
    """Seven runs when nothing changes, a second or two in all: forks of one process, mostly."""
    could_differ = failing.signature is not None and failing.signature.type in COULD_DIFFER
    if not could_differ and clean is None:
        return ()

    def run(way: Way) -> Run | None:
        return means.vary(failing.version, testcase, way)

    seen = () if clean is None else (failing.varied.hash_seed, clean.varied.hash_seed)
    repeats = repeat(run, unsteady=clean is not None, hash_seeds=tuple(dict.fromkeys((*seen, *HASH_SEEDS)))[:3])
    found = finding(repeats, failing.version)
    return () if found is None else (found,)


def _causes(
    plan: Plan, failing: Observation, means: Means, *, passes: bool
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    testcase = plan.testcase
    if testcase.kind is not TestcaseKind.PYTHON:
        controls, found = _own_fault(testcase, failing, means)
        if found:
            return controls, found
        controls, unwritten = _and(controls, read_empty(testcase, failing, means.run))
        if any(_settles(one) for one in unwritten):
            return controls, unwritten
        controls, found = _and(controls, _checked_bounds(testcase, failing, means))
        guilty = find_guilty_iree(testcase, failing, means.search, means.run) if passes and not found else ()
        return controls, (*unwritten, *(found or guilty))
    observation, finding = _forgotten_import(testcase, failing, means)
    controls = (observation,) if observation is not None else ()
    if finding is not None:
        return controls, (finding,)
    if testcase.toolchain != "tvm":
        return controls, ()
    live = find_live_argument(testcase)
    if live is not None:
        controls, found = _and(controls, _without(live, testcase, failing, means))
        if found:
            return controls, found
    claimed = read_findings(means.instrumented(failing.version, testcase, TVM_MODES))
    controls, found = _and(controls, traced(claimed, testcase, failing, means.run))
    found = _repaired(found, testcase, failing, means)
    if not passes or len(testcase.steps) > 1 or any(_settles(one) for one in found):
        return controls, found
    return controls, (*found, *find_guilty(testcase, failing, means.search, means.run))


def _settles(one: Finding) -> bool:
    undecided = one.kind is FindingKind.UNINITIALIZED_READ and one.evidence.get("origin") != "testcase"
    return one.kind in SETTLED and not undecided


# ---------------------------------------------------------------------------------------------- forgotten import

_NO_SUBMODULE = re.compile(
    r"module '(?P<owner>[A-Za-z_][\w.]{0,200})' has no attribute '(?P<name>[A-Za-z_]\w{0,100})'"
)


def _forgotten_import(
    testcase: Testcase, failing: Observation, means: Means
) -> tuple[Observation | None, Finding | None]:
    """Attribute access to a submodule that exists and was never imported: with the import it runs."""
    seen = failing.signature
    found = _NO_SUBMODULE.search(seen.message) if seen is not None and seen.type == "AttributeError" else None
    if found is None:
        return None, None
    module = f"{found['owner']}.{found['name']}"
    mended = with_line_first(testcase, f"import {module}")
    control = means.run(failing.version, Variant.CONTROL, mended, failing.device)
    if control.outcome is not Outcome.PASS:
        return control, None
    finding = Finding(
        kind=FindingKind.MISSING,
        summary=f"the submodule {module} exists but is not imported by its package; with `import {module}` it runs",
        evidence={"module": module, "version": failing.version, "control": f"import {module}"},
    )
    return control, finding


_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)


def with_line_first(testcase: Testcase, line: str) -> Testcase:
    """The testcase with one more line before its first file's code (after its ``__future__`` imports)."""
    name = testcase.steps[0][1]
    code = testcase.files[name]
    futures = list(_FUTURE.finditer(code))
    at = futures[-1].end() if futures else 0
    return msgspec.structs.replace(testcase, files={**testcase.files, name: f"{code[:at]}{line}\n{code[at:]}"})


# ---------------------------------------------------------------------------------------------- MLIR, by its text

_Found = tuple[tuple[Observation, ...], tuple[Finding, ...]]


def _and(controls: tuple[Observation, ...], more: _Found) -> _Found:
    return (*controls, *more[0]), more[1]


def _own_fault(testcase: Testcase, failing: Observation, means: Means) -> _Found:
    """An operand that the text itself shows to be outside its tensor, or a step that is not positive.

    It is the cause only if the failure goes when this operand alone is put right. What is undefined is undefined
    when it runs: a compiler may refuse it, but one that crashes or hangs on it is at fault itself.
    """
    fault = find_fault(testcase)
    if fault is None:
        return _broken_rule(testcase, failing, means)
    if not _compiles(testcase, failing, means):
        return (), ()
    control = means.run(failing.version, Variant.CONTROL, fault.mended, failing.device)
    gone = _gone(control)
    if gone is None:
        return (control,), ()
    stepping = fault.extent is None
    evidence: dict[str, object] = {
        "operation": fault.operation,
        "file": fault.file,
        "line": fault.line,
        "value": fault.value,
        "version": failing.version,
        "origin": "testcase",
        CONTROL: f"{fault.operation} with {1 if stepping else 0} instead: {gone}",
    }
    finding = Finding(
        kind=FindingKind.UNDEFINED_OPERAND if stepping else FindingKind.OUT_OF_BOUNDS_ACCESS,
        summary=f"{fault}; with {1 if stepping else 0} for that operand {gone}",
        evidence=evidence if stepping else {**evidence, "extent": fault.extent, "axis": fault.axis},
    )
    return (control,), (finding,)


def _broken_rule(testcase: Testcase, failing: Observation, means: Means) -> _Found:
    """A rule of an operation that MLIR breaks: the cause, if the failure goes when this alone is put right."""
    breach = find_breach(testcase)
    if breach is None or not _compiles(testcase, failing, means):
        return (), ()
    return _without(breach, testcase, failing, means)


def _without(breach: Breach, testcase: Testcase, failing: Observation, means: Means) -> _Found:
    """The testcase with that alone put right, and what it shows.

    Undefined values explain a wrong result; a crash, a hang or a refusal that goes with them is the compiler's.
    """
    if not (breach.traps or _gives_a_result(failing)):
        return (), ()
    control = means.run(failing.version, Variant.CONTROL, breach.mended, failing.device)
    gone = _gone(control)
    if gone is None:
        return (control,), ()
    finding = Finding(
        kind=FindingKind.BROKEN_RULE,
        summary=f"{breach}; with {breach.instead} {gone}",
        evidence={
            "operation": breach.operation,
            "file": breach.file,
            "line": breach.line,
            "version": failing.version,
            "origin": "testcase",
            CONTROL: f"{breach.instead}: {gone}",
            "difference": breach.difference(testcase),
        },
    )
    return (control,), (finding,)


CHECKS = frozenset({"AssertionError", "unexpected-output"})
"""Signature types of a check of the result: the testcase's own, or the one that iree-run-module makes."""


def _gives_a_result(failing: Observation) -> bool:
    """Whether the run came to a result, right or wrong: it ran to its end, or its own check of the result failed."""
    checked = failing.signature is not None and failing.signature.type in CHECKS
    return failing.ended == Exited(code=0) or (isinstance(failing.ended, Exited) and checked)


def _gone(control: Observation) -> str | None:
    """What became of the failure, in words; None where it stays, or another takes its place.

    The text is at fault whatever the control shows; it shows that this is what the report sees. Where a report quotes
    a wrong value and not the right one, another value is enough for that.
    """
    if control.outcome is Outcome.PASS:
        return "the failure is gone"
    if control.outcome is Outcome.OTHER_FAILURE and control.ended == Exited(code=0):
        return "it no longer prints what the report calls wrong"
    return None


def _compiles(testcase: Testcase, failing: Observation, means: Means) -> bool:
    """Whether the steps up to the last compilation, run alone, end by themselves: cleanly, or with a refusal."""
    last = max((at for at, step in enumerate(testcase.steps) if step[0] == "iree-compile"), default=-1)
    if last < 0:
        return False
    compiling = msgspec.structs.replace(testcase, steps=testcase.steps[: last + 1])
    seen = means.run(failing.version, Variant.CONTROL, compiling, failing.device)
    return isinstance(seen.ended, Exited)


# ---------------------------------------------------------------------------------------------- the call that works


def _repaired(
    found: tuple[Finding, ...], testcase: Testcase, failing: Observation, means: Means
) -> tuple[Finding, ...]:
    """The findings, after the call that one of them says works was made in the place of the old one.

    A run that then passes says so in the finding's evidence; one that still fails as reported refutes the finding.
    """
    claimed = [one for one in found if _shows_a_call(one)]
    if not claimed:
        return found
    (_, script, *arguments) = testcase.steps[0]
    step = launch("tvm.diagnose", "repair", script, *arguments)
    changed = msgspec.structs.replace(testcase, steps=(step,))
    seen = means.run(failing.version, Variant.CONTROL, changed, failing.device)
    match seen.outcome:
        case Outcome.MATCH:
            return tuple(one for one in found if one not in claimed)
        case Outcome.PASS:
            ran = f"with this call in the place of the old one the testcase runs cleanly on {failing.version}"
        case _:
            ran = f"with this call in its place the testcase does not fail as reported on {failing.version}, nor pass"
    return tuple(
        msgspec.structs.replace(one, evidence={**one.evidence, CONTROL: ran}) if one in claimed else one
        for one in found
    )


def _shows_a_call(one: Finding) -> bool:
    return one.kind is FindingKind.SIGNATURE_CHANGED and bool(one.evidence.get("call_that_works"))


# ---------------------------------------------------------------------------------------------- bounds, by vmvx

_OUT_OF_RANGE = re.compile(
    r"OUT_OF_RANGE; [^\n]{0,120}\(offset=(?P<offset>\d{1,20}), length=(?P<length>\d{1,20})"
    r"[^\n]{0,60}?buffer (?:byte_)?length=(?P<extent>\d{1,20})\)"
)


def _checked_bounds(
    testcase: Testcase, failing: Observation, means: Means
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """IREE's vmvx backend checks every access: the same program and inputs on it (3.13.0 says it exactly).

    Whose fault the access is, the program's or the compiler's, it does not tell: so the finding blames nobody.
    """
    checked = retarget(testcase, "vmvx")
    if len(testcase.steps) < 2 or (checked is None and failing.device != "vmvx"):
        return (), ()
    seen = failing if checked is None else means.run(failing.version, Variant.RETARGETED, checked, "vmvx")
    found = _OUT_OF_RANGE.search(seen.excerpt)
    if found is None:
        return (), ()
    offset, length, extent = int(found["offset"]), int(found["length"]), int(found["extent"])
    finding = Finding(
        kind=FindingKind.OUT_OF_BOUNDS_ACCESS,
        summary=f"on vmvx, which checks accesses: {length} bytes at offset {offset} of a buffer of {extent} bytes",
        evidence={
            "offset": offset,
            "length": length,
            "extent": extent,
            "version": failing.version,
            "origin": "unknown",
        },
    )
    return () if checked is None else (seen,), (finding,)


# ---------------------------------------------------------------------------------------------- instrumentation


class _Claimed(Wire, frozen=True, kw_only=True):
    kind: str
    summary: str
    evidence: dict[str, object] = msgspec.field(default_factory=dict)


def read_findings(claims: str) -> tuple[Finding, ...]:
    """JSON lines written in the guest → findings. What isn't one is dropped: it explains nothing."""
    findings = []
    known = {kind.value for kind in GUEST_KINDS}
    for line in claims[:MAX_CLAIM_BYTES].splitlines()[:200]:
        try:
            claimed = msgspec.json.decode(line, type=_Claimed)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if claimed.kind in known:
            findings.append(
                Finding(
                    kind=FindingKind(claimed.kind),
                    summary=claimed.summary[:400],
                    evidence={name: value for name, value in claimed.evidence.items() if name not in HOSTS_OWN},
                )
            )
    return tuple(findings[:MAX_FINDINGS])


def instrumented_limits(limits: Limits) -> Limits:
    """An instrumented run may take twice as long."""
    cpu_s = None if limits.cpu_s is None else 2 * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=2 * limits.wall_s, cpu_s=cpu_s)
