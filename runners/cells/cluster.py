"""Run one cell of a plan on a worker of a Dask cluster. Needs the package ``distributed``.

Dask's messages are pickles, so a compromised worker could run code in the process that reads its answer. So that
process is a server without a token, as for a cell on this machine. The bot reads the server's result file with the
same checks. A worker also has its own servers: when the worker is killed, they remove their sandboxes, and the
scheduler gives the cell to another worker.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import ipaddress
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from runners.cells.processes import GRACE_S, CellProcesses
from runners.core.errors import InfraError, ReprobotError, UserError
from runners.core.job_files import read_plan, write_result
from runners.core.protocol import MAX_PLAN_BYTES, CellResult, JobCell
from runners.core.toolchain.facts import NVIDIA
from runners.environments.store import default_root
from runners.sandbox.owner import open_private_directory
from runners.toolchains import find_device, find_toolchain

CONNECT_S = 30
MAX_RESULT_BYTES = 8 * 1024 * 1024
GPU = "GPU"
"""The resource that a worker with a GPU declares: ``dask worker --resources GPU=1``."""


def check_address(address: str) -> None:
    """Refuse an address that would send testcases over a network without TLS.

    Raises:
        UserError: the address is invalid, or names another machine without TLS.
    """
    parts = urlsplit(address)
    try:
        is_address = parts.scheme in ("tls", "tcp") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        is_address = False
    if not is_address:
        raise UserError(f"--cluster {address!r} is no address: give tls://HOST:PORT, as the scheduler prints it")
    if parts.scheme == "tcp" and not _is_loopback(parts.hostname or ""):
        raise UserError(f"{address} is another machine without TLS: start its scheduler with TLS, and give tls://…")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run_on_cluster(address: str, plan: bytes, digest: str, cell: JobCell) -> CellResult:
    """Run a cell on the next free worker. A worker that dies costs only time.

    Raises:
        UserError: the package is missing.
        InfraError: the scheduler cannot be reached, or no worker finished the cell in time.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UserError("--cluster needs the package distributed: install reprobot[cluster]") from None
    resources = {GPU: 1} if _needs_gpu(cell) else None
    try:
        with distributed.Client(address, timeout=CONNECT_S, set_as_default=False) as client:
            future = client.submit(run_on_worker, plan, digest, cell.id, pure=False, resources=resources)
            data = future.result(timeout=2 * (cell.plan.budget.wall_s + GRACE_S))
    except ReprobotError:
        raise
    except Exception as error:
        raise InfraError(f"the cluster at {address} did not run the cell ({type(error).__name__}: {error})") from None
    if not isinstance(data, bytes) or len(data) > MAX_RESULT_BYTES:
        raise InfraError("the worker's answer is no result")
    try:
        return msgspec.json.decode(data, type=CellResult)
    except msgspec.DecodeError as error:
        raise InfraError(f"the worker's answer is no result ({str(error)[:200]})") from None


def _needs_gpu(cell: JobCell) -> bool:
    toolchain = find_toolchain(cell.plan.testcase.toolchain)
    devices = (find_device(toolchain, name) for name in (cell.plan.device, *cell.plan.devices))
    return any(device is not None and device.hardware is NVIDIA for device in devices)


def run_on_worker(plan: bytes, digest: str, cell: str) -> bytes:
    """Run a cell on this machine, and return the content of its result file. The machine has its own ledger.

    Raises:
        UserError: this is not the plan of that digest.
        InfraError: the cell could not be run.
    """
    found = next(one for one in read_plan(plan, digest).cells if one.id == cell)
    with open_private_directory() as folder:  # its name shows the next run that a killed worker left it
        path, results = folder / "plan.json", folder / "results"
        path.write_bytes(plan)
        _get_processes().run(path, digest, found, results, default_root() / "runs.sqlite")
        with (results / f"{cell}.json").open("rb") as file:
            return file.read(MAX_RESULT_BYTES + 1)


@functools.cache
def _get_processes() -> CellProcesses:
    """Return the servers of this worker. They keep sandboxes between cells, and end with the worker."""
    return CellProcesses(os.environ)


def main(arguments: Sequence[str]) -> int:
    """Send one cell to a cluster and write its result file. Return the exit status."""
    parser = argparse.ArgumentParser(prog="runners.cells.cluster")
    for name in ("plan", "sha256", "cell", "results", "address"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    try:
        with Path(given.plan).open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
        cell = next(one for one in read_plan(data, given.sha256).cells if one.id == given.cell)
        result = run_on_cluster(given.address, data, given.sha256, cell)
        if result.cell != cell.id or result.plan_sha256 != sha256(data).hexdigest():
            raise InfraError("the worker's answer belongs to another cell")
        write_result(result, Path(given.results))
    except ReprobotError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
