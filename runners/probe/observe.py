"""Compare a run with the claim of the report, and record the result as an observation. Pure but for `execute`."""

from __future__ import annotations

from runners.core.failure import api_drift
from runners.core.failure.missing_device import find_device_trouble, find_missing_device, find_missing_part
from runners.core.failure.oracle import Classification, Drift, OracleContext, classify_run, get_last_output
from runners.core.failure.printed.filters import count_rows
from runners.core.failure.printed.programs.program_runs import CUT, FILTERED
from runners.core.findings.questions import add_refutation
from runners.core.findings.record import make_finding
from runners.core.findings.types import MovedEvidence
from runners.core.protocol import (
    Cell,
    Exited,
    Finding,
    Observation,
    Outcome,
    Plan,
    Reason,
    StepResult,
    Testcase,
    Variant,
)
from runners.core.runs import Execute, RunRequest, RunResult
from runners.core.toolchain.facts import DriftEntry
from runners.toolchains import find_toolchain

EXCERPT_CHARS = 12_000


def observe_cell(execute: Execute, plan: Plan, cell: Cell, attempt: int, *, fresh: bool = False) -> Observation:
    """Run a cell, the given attempt (1-based), and record the result. The testcase cannot make it raise.

    A ``fresh`` run has its own sandbox.
    """
    return make_observation(plan, cell, attempt, execute(make_request(cell, attempt, fresh=fresh)))


def make_request(cell: Cell, attempt: int, *, fresh: bool = False) -> RunRequest:
    """Return the request of one run of a cell."""
    return RunRequest(
        version=cell.version,
        device=cell.device,
        testcase=cell.testcase,
        limits=cell.limits,
        varied=cell.varied,
        attempt=attempt,
        fresh=fresh,
    )


def make_observation(plan: Plan, cell: Cell, attempt: int, run: RunResult) -> Observation:
    """Return the observation of a run of the cell's testcase: its classification by the claim, and its facts."""
    toolchain = find_toolchain(cell.toolchain)
    text = get_last_output(run.steps)
    needed = api_drift.find_needed_flag(cell.testcase, toolchain, cell.version)
    moved = needed or api_drift.find_drift(text, cell.testcase, toolchain, cell.version, caught=bool(plan.caught))
    ruling = classify_run(
        run.ended,
        run.steps,
        OracleContext(
            claim=plan.claim,
            vocabulary=toolchain.FAILURES,
            drift=moved,
            needed=needed,
            missing_device=find_missing_device(text, toolchain.FAILURES),
            missing_part=find_missing_part(text, toolchain.FAILURES),
            device_trouble=find_device_trouble(text, toolchain.FAILURES),
            checks_itself=plan.checks_itself,
            prints_reference=plan.prints_reference,
            rows=plan.rows,
            caught=plan.caught,
            given=_find_program(cell.testcase),
            compilers=toolchain.GUEST.compilers,
            renames={e.old: e.new for e in toolchain.DRIFT if e.new and _is_renaming(e)},
        ),
    )
    if cell.compile_only and ruling.outcome is Outcome.PASS:
        why = f"compiles for {cell.device}, which the report does not name"
        ruling = Classification(outcome=Outcome.COMPILED, reason=Reason.COMPILES_ONLY, why=why)
    if ruling.reason is Reason.COUNTED and cell.variant is Variant.PORTED and count_rows(run.steps[-1]) == 0:
        why = "prints none of the counted rows; the port may print them under another name"
        ruling = Classification(outcome=Outcome.OTHER_FAILURE, reason=Reason.NOT_COUNTED, why=why)
    explained = ruling.outcome is Outcome.INCOMPATIBLE
    return Observation(
        toolchain=cell.toolchain,
        version=cell.version,
        device=cell.device,
        attempt=attempt,
        variant=cell.variant,
        varied=cell.varied,
        outcome=ruling.outcome,
        answer=ruling.answer,
        ended=run.ended,
        why=ruling.why[:2000],
        reason=ruling.reason,
        detail=ruling.detail[:512],
        signature=ruling.signature,
        seconds=round(run.seconds, 3),
        peak_bytes=run.peak_bytes,
        excerpt=_cut_excerpt(run.steps),
        engine=run.engine,
        changes=cell.changes,
        notation_only=cell.notation_only,
        record=run.steps[-1].record if run.steps else None,
        environment=run.environment,
        fork=run.fork,
        driver=run.driver,
        image=run.image,
        findings=(_make_drift_finding(moved),) if moved is not None and explained else (),
    )


def _find_program(testcase: Testcase) -> str:
    """Return the only MLIR program among the files. Empty if there is none, or more than one."""
    programs = [text for name, text in testcase.files.items() if name.endswith(".mlir")]
    return programs[0] if len(programs) == 1 else ""


def _is_renaming(entry: DriftEntry) -> bool:
    """True if messages change with the name. Registered names are too many, and few messages contain them."""
    return not entry.of and entry.kind != "registered" and (entry.exact or entry.kind == "dialect")


def _make_drift_finding(moved: Drift) -> Finding:
    known = moved.moved if moved.version else None
    evidence = MovedEvidence(
        name=moved.name,
        successor=moved.successor,
        moved=known,
        moved_in=moved.version or None,
        added_in=moved.added_in or None if moved.version else None,
    )
    return add_refutation(make_finding(evidence, moved.why[:400]))


def _cut_excerpt(steps: tuple[StepResult, ...]) -> str:
    """Return the end of the output. A failure is printed last, so this is the output of the last step.

    If all steps end well, any of them may have printed the value that the report is about. If the output is long, and
    the report filters the output of its last command, return what the filters leave.
    """
    ends_well = all(step.ended == Exited(code=0) for step in steps)
    shown = [step.stdout for step in steps[:-1]] if ends_well else []
    parts = [*shown, *(part for step in steps[-1:] for part in (step.stdout, step.stderr))]
    text = "\n".join(part.rstrip() for part in parts if part.strip())
    if len(text) <= EXCERPT_CHARS:
        return text
    left = steps[-1].filtered
    if ends_well and isinstance(left, str) and 0 < len(left) <= EXCERPT_CHARS:
        return f"{FILTERED}\n{left}"
    return f"{CUT}\n{text[-EXCERPT_CHARS:]}"
