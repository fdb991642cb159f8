"""Bisect the passes of IREE's compiler: search inside the sandbox, and confirm the result outside.

The search (``guest/iree/pass_bisect.py``) runs in the testcase's sandbox, so its result is a claim. The host itself
runs both sides of the claimed boundary, and judges them by its own oracle:

- Compilation fails in a pass: ``iree-opt`` with that pass alone on the IR before it must fail as reported, and
  ``iree-opt`` without the pass must read that IR cleanly.
- Compilation fails while a pass is set up, which the command line lists, or a flag adds: ``iree-opt`` with that pass
  alone on an empty module must fail as reported, and must read the empty module cleanly without the pass. Without the
  flag, the testcase must not fail as reported.
- Compilation fails before any pass: ``iree-opt`` must fail as reported on the input. Otherwise compilation to the
  phase must fail as reported, and compilation to the phase before it must be clean.
- The program fails at run time: compiled with the passes of the command line, or LLVM's, up to the nth, it must fail
  as reported; with one pass less, it must not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from runners.core.findings.kinds import PassLevel
from runners.core.findings.record import make_finding
from runners.core.findings.types import NO_PASS, PassEvidence
from runners.core.protocol import Exited, Finding, FindingKind, Observation, Outcome, Testcase, TimedOut, Variant
from runners.core.toolchain.claims import read_claim
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step
from runners.guest.iree.pipelines import parse_pipeline, truncate_pipeline

SEARCH_S = 90.0
"""Time limit of the search inside. If a compilation takes a quarter of a second, the search takes 1 to 7 s."""
MAX_PASSES = 10_000_000
BEFORE = "before.mlir"
EMPTY = "module {}\n"
_PROGRAM = "iree.pass_bisect"
_COMPILER = "iree-compile"
_PROGRAMS = (_COMPILER, "iree-opt")

Observe = Callable[[Testcase], Observation]

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_PASSES)]
_PassName = Annotated[str, msgspec.Meta(max_length=120, pattern=r"^[\w.:<>()&;, /*#=-]*$")]
_Symbol = Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[\w.$-]*$")]


_FILE_OPTION = re.compile(r"[\w.-]{1,120}\{[\w.-]{1,120}=(?P<file>[^\s{}()=,'\"]{1,400})\}")


class _Evidence(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """The search's claim. Other fields are ignored."""

    level: Literal["pass", "parsing", "llvm-pass", "unknown", "phase", "written"]
    step: Annotated[int, msgspec.Meta(ge=0, le=100)]
    place: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """Position of the word in the step that contains the pipeline."""
    passed: _PassName = ""
    argument: _Symbol = ""
    application: _Count = 0
    passes_without: _Count = 0
    of: _Count = 0
    operation: _Symbol = ""
    symbol: _Symbol = ""
    phase: _Symbol = ""
    phase_before: _Symbol = ""
    option: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    written: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    pipeline: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    reproducer: Annotated[str, msgspec.Meta(max_length=48 * 1024)] = ""
    difference: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=200)], ...], msgspec.Meta(max_length=80)] = ()


def bisect_passes(failure: Failure, means: Means) -> Diagnosis:
    """Search inside the sandbox, then confirm outside. Return at most one finding."""
    testcase, failing = failure.testcase, failure.seen
    compiles = any(step[0] in _PROGRAMS for step in testcase.steps)
    if not compiles or isinstance(failing.ended, TimedOut) or failing.variant is not Variant.ORIGINAL:
        return NOTHING_FOUND
    asked = msgspec.json.encode({"steps": testcase.steps, "seconds": SEARCH_S}).decode()
    claims = means.run_hook(failing.version, _with_steps(testcase, (make_launch_step(_PROGRAM, asked),)))
    claim = read_claim(claims, FindingKind.GUILTY_PASS, _Evidence)
    if claim is None or claim.step >= len(testcase.steps):
        return NOTHING_FOUND

    def observe(changed: Testcase) -> Observation:
        return means.run_control(failure, changed)

    return Diagnosis(findings=_confirm_claim(testcase, claim, failing, observe))


def _confirm_claim(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    """Run both sides of the claimed boundary."""
    match claim.level:
        case "pass" if claim.pipeline:
            return _confirm_setup(testcase, claim, failing, observe)
        case "pass":
            return _confirm_pass(testcase, claim, failing, observe)
        case "parsing":
            return _confirm_parsing(testcase, claim, failing, observe) or _confirm_phase(
                testcase, claim, failing, observe
            )
        case "written":
            return _confirm_written_pass(testcase, claim, failing, observe)
        case "llvm-pass":
            return _confirm_llvm_pass(testcase, claim, failing, observe)
        case "unknown" | "phase":
            return _confirm_phase(testcase, claim, failing, observe)


def _with_steps(testcase: Testcase, steps: tuple[tuple[str, ...], ...]) -> Testcase:
    return msgspec.structs.replace(testcase, steps=steps)


def _is_clean(seen: Observation) -> bool:
    return isinstance(seen.ended, Exited) and seen.ended.code == 0


# ---------------------------------------------------------------------------------------------- a compilation


def _confirm_pass(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    if not claim.passed:
        return ()
    confirmed = _run_pass_alone(testcase, claim, observe) or _confirm_by_phase(testcase, claim, observe)
    if not confirmed:
        return ()
    where = f" on {claim.operation}" + (f" @{claim.symbol}" if claim.symbol else "") if claim.operation else ""
    phase = f", in phase {claim.phase}" if claim.phase else ""
    name = f"{claim.passed} ({claim.argument})" if claim.argument else claim.passed
    return (
        _make_finding(
            claim,
            failing,
            f"on {failing.version} compiling fails as reported in {name}{where}, application {claim.application} of"
            f" that pass{phase}: {confirmed}",
            "the pass alone on that IR without this failure",
        ),
    )


def _confirm_setup(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    """Confirm that a pass fails on every input. The command line must list the pass, or a flag must add it.

    A flag may add a pass with the flag's file as its option. Then the failure must be gone without the flag.
    """
    step = testcase.steps[claim.step]
    if not claim.passed or claim.written not in claim.pipeline or BEFORE in testcase.files:
        return ()
    flag = "" if any(claim.written in word for word in step[1:]) else _find_file_flag(claim, step)
    if flag is None:
        return ()
    files = {**testcase.files, BEFORE: EMPTY}  # the pass may read the testcase's other files
    empty = msgspec.structs.replace(testcase, files=files)
    alone = ("iree-opt", f"--pass-pipeline={claim.pipeline}", BEFORE)
    if observe(_with_steps(empty, (alone,))).outcome is not Outcome.MATCH:
        return ()
    if not _is_clean(observe(_with_steps(empty, (("iree-opt", BEFORE),)))):
        return ()
    if flag:
        rest = tuple(word for word in step if word != flag)
        if observe(_with_steps(testcase, (*testcase.steps[: claim.step], rest))).outcome is Outcome.MATCH:
            return ()
    added = f", which {flag} adds," if flag else ""
    without = "; without that flag it does not fail so" if flag else ""
    return (
        _make_finding(
            msgspec.structs.replace(claim, option=flag),
            failing,
            f"on {failing.version} compiling fails as reported before any pass begins, while {claim.passed}{added} is"
            " set up: iree-opt fails the same way with that pass alone on an empty module, and reads that module"
            f" cleanly{without}",
            "a clean run of that pass alone on an empty module",
        ),
    )


def _find_file_flag(claim: _Evidence, step: tuple[str, ...]) -> str | None:
    """Return the flag of ``step`` whose file is the only option of the claimed pass."""
    written = _FILE_OPTION.fullmatch(claim.written)
    if written is None:
        return None
    return next((word for word in step[1:] if word.startswith("--") and word.endswith(f"={written['file']}")), None)


def _run_pass_alone(testcase: Testcase, claim: _Evidence, observe: Observe) -> str:
    """Run the pass alone on its input IR, and read that IR without the pass. Return the confirmation, or ""."""
    if not claim.reproducer or BEFORE in testcase.files:
        return ""
    only = msgspec.structs.replace(testcase, files={BEFORE: claim.reproducer})
    if observe(_with_steps(only, (("iree-opt", "--run-reproducer", BEFORE),))).outcome is not Outcome.MATCH:
        return ""
    if not _is_clean(observe(_with_steps(only, (("iree-opt", BEFORE),)))):
        return ""
    return "iree-opt fails the same way with that pass alone, and reads the IR before it cleanly"


def _confirm_by_phase(testcase: Testcase, claim: _Evidence, observe: Observe) -> str:
    """Compile to the phase of the pass, and to the previous phase, for a pass that cannot run alone.

    Return the confirmation, or "".
    """
    if not claim.phase:
        return ""
    step = testcase.steps[claim.step]
    if _compile_until(claim.phase, step, testcase, claim, observe).outcome is not Outcome.MATCH:
        return ""
    if claim.phase_before and not _is_clean(_compile_until(claim.phase_before, step, testcase, claim, observe)):
        return ""
    before = f", and compiles to {claim.phase_before} cleanly" if claim.phase_before else ""
    return f"it fails the same way when it compiles to {claim.phase} only{before}"


def _compile_until(
    phase: str, step: tuple[str, ...], testcase: Testcase, claim: _Evidence, observe: Observe
) -> Observation:
    """Run the steps before the failing step, then ``step`` instead of it, which stops after a phase."""
    return observe(_with_steps(testcase, (*testcase.steps[: claim.step], (*step, f"--compile-to={phase}"))))


def _find_deciding_option(testcase: Testcase, claim: _Evidence, observe: Observe) -> str:
    """Return the claimed flag of the failing step if the compilation is clean without it, else ""."""
    step = testcase.steps[claim.step]
    if not claim.option.startswith("--") or claim.option not in step[1:]:
        return ""
    rest = tuple(word for word in step if word != claim.option)
    return claim.option if _is_clean(_compile_until(claim.phase, rest, testcase, claim, observe)) else ""


def _confirm_parsing(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    """Confirm that ``iree-opt`` without passes fails as reported on the first file that the step names."""
    step = testcase.steps[claim.step]
    name = next((word for word in step[1:] if word in testcase.files), None)
    if name is None or observe(_with_steps(testcase, (("iree-opt", name),))).outcome is not Outcome.MATCH:
        return ()
    return (
        _make_finding(
            claim,
            failing,
            f"on {failing.version} it fails as reported while the input is read and verified, before any pass:"
            " iree-opt without passes fails the same way",
            "the same failure after a pass has begun",
        ),
    )


def _confirm_phase(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    """Confirm a failing phase in which no pass began: a pass cannot be set up, or an option of the phase decides."""
    confirmed = _confirm_by_phase(testcase, claim, observe)
    if not confirmed:
        return ()
    summary = f"on {failing.version} compiling fails as reported in phase {claim.phase}, in no pass that says so:"
    option = _find_deciding_option(testcase, claim, observe)
    confirmed += f"; without {option} it compiles to {claim.phase} cleanly" if option else ""
    known = msgspec.structs.replace(claim, level="phase", option=option)
    refuted_by = "a clean compilation to that phase"
    return (_make_finding(known, failing, f"{summary} {confirmed}", refuted_by, name=claim.phase),)


# ---------------------------------------------------------------------------------------------- LLVM's passes


def _confirm_llvm_pass(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    def run_limited(count: int) -> Observation:
        # Thousands of lines about skipped passes would hide the output of the program from the oracle.
        flags = ("--mlir-disable-threading", f"--opt-bisect-limit={count}", "--opt-bisect-verbose=false")
        steps = tuple((*step, *flags) if step[0] == _COMPILER else step for step in testcase.steps)
        return observe(_with_steps(testcase, steps))

    if claim.application == 0:
        return _blame_before_llvm(claim, failing) if run_limited(0).outcome is Outcome.MATCH else ()
    without = run_limited(claim.passes_without)
    if run_limited(claim.application).outcome is not Outcome.MATCH or without.outcome is Outcome.MATCH:
        return ()
    if not _is_clean(without):
        return ()
    then = "runs cleanly" if without.outcome is Outcome.PASS else "ends with another result"
    exact = claim.application - claim.passes_without == 1 and claim.passed
    which = f"LLVM pass {claim.application} of {claim.of}"
    if exact:
        which += f", {claim.passed}" + (f" on {claim.symbol}" if claim.symbol else "")
    else:
        which = f"LLVM passes {claim.passes_without + 1} to {claim.application} of {claim.of}"
    return (
        _make_finding(
            claim,
            failing,
            f"on {failing.version} it fails as reported with {which}, and {then} without it and those after it",
            "the same failure with that pass left out, or a program whose result LLVM may choose",
            name="" if exact else which,
        ),
    )


def _confirm_written_pass(
    testcase: Testcase, claim: _Evidence, failing: Observation, observe: Observe
) -> tuple[Finding, ...]:
    """Confirm a culprit pass of the command line's own pipeline, which the host shortens to the claimed counts."""
    step = testcase.steps[claim.step]
    flag, _, text = step[claim.place].partition("=") if claim.place < len(step) else ("", "", "")
    passes = parse_pipeline(text) if flag.startswith("--") else []
    if not 0 <= claim.passes_without < claim.application <= len(passes):
        return ()

    def run_limited(count: int) -> Observation:
        words = (*step[: claim.place], f"{flag}={truncate_pipeline(text, count)}", *step[claim.place + 1 :])
        return observe(
            _with_steps(testcase, (*testcase.steps[: claim.step], words, *testcase.steps[claim.step + 1 :]))
        )

    without = run_limited(claim.passes_without)
    if run_limited(claim.application).outcome is not Outcome.MATCH or without.outcome is Outcome.MATCH:
        return ()
    if not _is_clean(without):
        return ()
    then = "runs cleanly" if without.outcome is Outcome.PASS else "ends with another result"
    exact = claim.application - claim.passes_without == 1
    which = f"pass {claim.application}" if exact else f"passes {claim.passes_without + 1} to {claim.application}"
    name = passes[claim.application - 1].name if exact else which
    named = f", {name}" if exact else ""
    known = msgspec.structs.replace(claim, option=flag, of=len(passes), passed=name if exact else "")
    return (
        _make_finding(
            known,
            failing,
            f"on {failing.version} it fails as reported with {which} of the {len(passes)} that {flag} writes{named},"
            f" and {then} without it and those after it",
            "the same failure with that pass taken out of the command line",
            name=name,
        ),
    )


def _blame_before_llvm(claim: _Evidence, failing: Observation) -> tuple[Finding, ...]:
    summary = (
        f"on {failing.version} it fails the same way with all {claim.of} LLVM passes left out: the fault lies before"
        " them, in the testcase, in IREE's or MLIR's passes, or in the runtime"
    )
    return (_make_finding(claim, failing, summary, "a clean run without LLVM's passes", name=NO_PASS),)


def _make_finding(claim: _Evidence, failing: Observation, summary: str, refuted_by: str, name: str = "") -> Finding:
    evidence = PassEvidence(
        name=name or claim.argument or claim.passed or claim.level,
        level=PassLevel(claim.level),
        version=failing.version,
        pass_name=claim.passed or None,
        operation=claim.operation or None,
        symbol=claim.symbol or None,
        phase=claim.phase or None,
        option=claim.option or None,
        written=claim.written or None,
        application=claim.application,
        of=claim.of or None,
        difference=claim.difference or None,
        refuted_by=refuted_by,
    )
    return make_finding(evidence, summary)
