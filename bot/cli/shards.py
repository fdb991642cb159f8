"""A sweep as the jobs plan, probe and report: write shards of plans, run a shard without a token, read all results.

The last job plans each issue anew, and accepts a result for exactly that plan, from the shard that the issue belongs
to. So a compromised shard can forge only the runs of its own issues.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec

from bot.cli import terminal
from bot.cli.daemon import make_plan_runner
from bot.daemon.steps import RunPlan
from bot.report.files import write_file
from bot.requests.plan_file import SealedPlan
from bot.requests.result_files import read_plain_file
from runners.cells.processes import CellProcesses
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan
from runners.core.protocol import JobPlan

INDEX = "index.json"
MAX_SHARDS = 256
"""Largest number of jobs in a matrix on GitHub."""
SHARD_S = 5 * 3600
"""Time after which a shard starts no further issue: GitHub stops a hosted job after six hours, and its results with
it."""


class ShardedPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One plan of the index. ``name`` is a file name without its suffix."""

    name: str
    sha256: str
    shard: int


class ShardIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plans of a sweep, and the number of shards that they are split into."""

    shards: int
    plans: tuple[ShardedPlan, ...]

    def list_shards(self) -> list[str]:
        """Return the numbers of the shards that have a plan: the matrix."""
        return [str(number) for number in sorted({one.shard for one in self.plans})]


def choose_shard(name: str, shards: int) -> int:
    """Return the number of the shard, from 1, that a plan belongs to: the same in every job."""
    return int.from_bytes(sha256(name.encode()).digest()[:8]) % shards + 1


# ---------------------------------------------------------------------------------------------- the job plan


def write_plans(sealed: Mapping[str, SealedPlan], folder: Path, most: int) -> tuple[ShardIndex, str]:
    """Write a file for each plan, and the index. Return the index and its sha256.

    Raises:
        UserError: a file cannot be written.
    """
    shards = max(1, min(most, len(sealed)))
    index = ShardIndex(
        shards=shards,
        plans=tuple(
            ShardedPlan(name=name, sha256=one.sha256, shard=choose_shard(name, shards))
            for name, one in sealed.items()
        ),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}") from None
    for name, one in sealed.items():
        write_file(folder / f"{name}.json", one.data.decode())
    data = msgspec.json.encode(index)
    write_file(folder / INDEX, data.decode())
    return index, sha256(data).hexdigest()


def read_index(folder: Path, digest: str) -> ShardIndex:
    """Return the index whose sha256 is ``digest``.

    Raises:
        UserError: there is no such index.
    """
    try:
        data = (folder / INDEX).read_bytes()
        if sha256(data).hexdigest() != digest:
            raise UserError(f"{folder / INDEX} is not the index that was planned: its sha256 differs")
        return msgspec.json.decode(data, type=ShardIndex)
    except OSError as error:
        raise UserError(f"{folder / INDEX} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder / INDEX} is no index ({str(error)[:200]})") from None


# ---------------------------------------------------------------------------------------------- the job probe


def run_shard(folder: Path, digest: str, shard: str, results: Path) -> None:
    """Run all plans of a shard, as many at once as there are cores. The issues of a shard share a ledger.

    The result files of a plan go to the folder ``cell-SHARD/NAME``.

    Raises:
        UserError: the index is not the planned one, or has no such shard.
    """
    index = read_index(folder, digest)
    own = [one for one in index.plans if str(one.shard) == shard]
    if not own:
        raise UserError(f"there is no shard {shard[:64]!r}: there are {', '.join(index.list_shards())}")
    work = results.with_name(f"{results.name}.work")
    began = time.monotonic()

    def run(one: ShardedPlan, run_plan: RunPlan) -> str:
        if time.monotonic() - began > SHARD_S:
            return f"{one.name}: not reached"
        try:
            return _run_plan(one, folder, work / one.name, results / f"cell-{shard}" / one.name, run_plan)
        except (InfraError, UserError, OSError) as error:
            return f"{one.name}: {error}"  # a missing result gives the last job the same information

    results.mkdir(parents=True, exist_ok=True)
    with closing(CellProcesses(os.environ)) as processes, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        run_plan = make_plan_runner(processes, frozenset(), work / "runs.sqlite")
        for number, message in enumerate(pool.map(partial(run, run_plan=run_plan), own), 1):
            terminal.print_message(f"[{number}/{len(own)}] {message}")
    shutil.rmtree(work, ignore_errors=True)


def _run_plan(one: ShardedPlan, plans: Path, work: Path, results: Path, run_plan: RunPlan) -> str:
    data = (plans / f"{Path(one.name).name}.json").read_bytes()
    plan = read_plan(data, one.sha256)
    work.mkdir(parents=True, exist_ok=True)
    (work / "plan.json").write_bytes(data)
    run_plan(work, plan, one.sha256)
    shutil.copytree(work / "results", results, dirs_exist_ok=True)
    return f"{one.name}: ran"


# ---------------------------------------------------------------------------------------------- the job report


def make_result_reader(results: Path, shards: int, refused: Mapping[str, str]) -> RunPlan:
    """Return a function that takes a plan's result files from its shard's folder, instead of running the plan.

    ``refused`` maps each shard whose artifact has no proven origin to the reason for the refusal.
    """

    def take_results(folder: Path, plan: JobPlan, digest: str) -> None:
        shard = str(choose_shard(folder.name, shards))
        if (why := refused.get(shard)) is not None:
            raise InfraError(f"the results of shard {shard} are refused: {why}")
        (folder / "results").mkdir()
        for cell in plan.cells:
            data = read_plain_file(results / f"cell-{shard}" / folder.name, f"{cell.id}.json")
            if data is None:
                raise InfraError(f"shard {shard} has no result: it was stopped, or the issue is newer than the plan")
            if isinstance(data, str):
                raise InfraError(f"shard {shard}: {data}")
            (folder / "results" / f"{cell.id}.json").write_bytes(data)

    return take_results
