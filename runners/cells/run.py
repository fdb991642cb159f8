"""Run one cell of a ``plan.json``: the whole job that runs issue code. It has no token.

The plan is used only if its bytes have the sha256 from the planning job. Output of the sandbox is a claim, and
``bot/requests/result_files.py`` checks the result file again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from runners.core.bench import Bench
from runners.core.bisection.commits import Prior
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan
from runners.core.protocol import CellResult, Investigation, JobCell, Plan, TimedStage, Times, digest_of
from runners.core.runs import Tell
from runners.hardware.gpu import EPHEMERAL


def run_plan(
    bench: Bench, plan: Plan, *, smaller: bool = False, prior: Prior | None = None, tell: Tell | None = None
) -> Investigation:
    """Run a plan and, with ``smaller``, reduce its testcase. ``tell`` is as in `Bench.run`.

    Raises:
        InfraError: no run was possible, for a reason that is not the testcase's.
    """
    seen = bench.run(plan, prior=prior, tell=tell)
    if not smaller:
        return msgspec.structs.replace(seen, conditions=bench.conditions)
    from runners.minimization.minimize import try_minimize  # its parser takes 0.15 s, which few runs need

    began = time.monotonic()
    found, why = try_minimize(bench, plan, seen.observations)
    times = _add_minimization(seen.times, time.monotonic() - began)
    return msgspec.structs.replace(seen, smaller=found, conditions=(*bench.conditions, *why), times=times)


def _add_minimization(times: Times, seconds: float) -> Times:
    """Return the times with the reduction of the testcase, which follows the last stage."""
    stage = TimedStage(name="minimization", begin=times.seconds, end=round(times.seconds + seconds, 3))
    return msgspec.structs.replace(times, stages=(*times.stages, stage))


def run_cell(data: bytes, *, digest: str, cell: str, open_bench: Callable[[JobCell], Bench]) -> CellResult:
    """Run the cell named ``cell`` of the plan in ``data``, whose sha256 must be ``digest``.

    A failure of our own gives a result with the reason, so that the report can show it.

    Raises:
        UserError: this is not the plan of that digest, or the plan has no such cell.
    """
    plan = read_plan(data, digest)
    found = next((one for one in plan.cells if one.id == cell), None)
    if found is None:
        raise UserError(f"the plan has no cell {cell[:64]!r}: it has {', '.join(one.id for one in plan.cells)}")
    if digest_of(found.plan.testcase) != found.testcase_sha256:
        raise UserError(f"the testcase of {cell} is not the one that was approved: plan it again")
    try:
        seen = run_plan(open_bench(found), found.plan, smaller=found.minimize)
    except InfraError as error:
        return CellResult(cell=found.id, plan_sha256=digest, problem=str(error)[:2000])
    return CellResult(cell=found.id, plan_sha256=digest, seen=seen)


def check_machine(environment: Mapping[str, str]) -> None:
    """Refuse a self-hosted runner of GitHub that is not ephemeral, because a testcase could leave files behind.

    Raises:
        UserError: the runner is self-hosted, and `EPHEMERAL` is not 1.
    """
    if environment.get("RUNNER_ENVIRONMENT") == "self-hosted" and environment.get(EPHEMERAL) != "1":
        raise UserError(
            "this self-hosted runner is not marked as ephemeral: start it with --ephemeral for one job on a "
            f"clean machine, and set {EPHEMERAL}=1 in its environment"
        )
