"""One cell of a ``plan.json`` → its result file: the whole of a job that runs strangers' code. Holds no token.

The plan is believed only when its bytes have the sha256 that the planning job gave; what comes out of the sandbox is
in the result as the claim it is, and the door (``bot/requests/result_files.py``) checks it all again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from runners.core.errors import InfraError, UserError
from runners.core.protocol import MAX_PLAN_BYTES, SCHEMA, CellResult, JobCell, JobPlan, Plan, Smaller, digest_of
from runners.hardware.gpu import EPHEMERAL
from runners.investigation.investigate import Investigation
from runners.minimization.minimize import cut_down


class Bench(Protocol):
    @property
    def conditions(self) -> tuple[str, ...]: ...

    def run(self, plan: Plan) -> Investigation: ...

    def minimize(self, plan: Plan, version: str, *, passing: str = "") -> Smaller: ...


def run_cell(data: bytes, *, digest: str, cell: str, open_bench: Callable[[JobCell], Bench]) -> CellResult:
    """Run the cell named ``cell`` of the plan in ``data``, whose sha256 must be ``digest``.

    A failure of our own is a result too: it says what happened, so that the report can.

    Raises:
        UserError: this is not the plan that was made, or has no such cell.
    """
    plan = read_plan(data, digest)
    found = next((one for one in plan.cells if one.id == cell), None)
    if found is None:
        raise UserError(f"the plan has no cell {cell[:64]!r}: it has {', '.join(one.id for one in plan.cells)}")
    if digest_of(found.plan.testcase) != found.testcase_sha256:
        raise UserError(f"the testcase of {cell} is not the one that was approved: plan it again")
    try:
        bench = open_bench(found)
        seen = bench.run(found.plan)
        smaller, why = cut_down(bench, found.plan, seen.observations) if found.minimize else (None, ())
    except InfraError as error:
        return CellResult(cell=found.id, plan_sha256=digest, problem=str(error)[:2000])
    return CellResult(
        cell=found.id,
        plan_sha256=digest,
        observations=seen.observations,
        findings=seen.findings,
        smaller=smaller,
        conditions=(*bench.conditions, *why),
    )


def read_plan(data: bytes, digest: str) -> JobPlan:
    """The plan in ``data``.

    Raises:
        UserError: it is not the one with this sha256, or none at all.
    """
    if len(data) > MAX_PLAN_BYTES:
        raise UserError(f"the plan has more than {MAX_PLAN_BYTES // 1024} KiB: it is none of ours")
    if (found := sha256(data).hexdigest()) != digest:
        raise UserError(
            f"the plan's sha256 is {found}, not {digest[:64]!r}: it was changed on its way, or is another"
        )
    try:
        plan = msgspec.json.decode(data, type=JobPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the plan cannot be read ({str(error)[:200]}): was it made by another version?") from None
    if plan.schema != SCHEMA:
        raise UserError(f"the plan has schema {plan.schema}, this is {SCHEMA}: use one version for all jobs")
    return plan


def write_result(result: CellResult, folder: Path) -> Path:
    """``folder/<cell>.json``, whole or not at all.

    Raises:
        InfraError: the disk refuses.
    """
    path = folder / f"{result.cell}.json"
    part = folder / f".{result.cell}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(result))
        part.replace(path)
    except OSError as error:
        raise InfraError(f"{path} cannot be written: {error.strerror}") from None
    return path


def check_machine(environment: Mapping[str, str]) -> None:
    """Refuse a self-hosted runner of GitHub's that may keep what a testcase leaves behind.

    Raises:
        UserError: nothing says that the machine is thrown away after this job.
    """
    if environment.get("RUNNER_ENVIRONMENT") == "self-hosted" and environment.get(EPHEMERAL) != "1":
        raise UserError(
            "this is a self-hosted runner that nobody calls ephemeral: start it with --ephemeral for one job on a "
            f"clean machine, and set {EPHEMERAL}=1 in its environment"
        )
