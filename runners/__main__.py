"""Run one cell of a plan in a child process of the watcher, with an environment of listed variables only.

The watcher holds a token, so the process that starts sandboxes must be another one and must not inherit the watcher's
environment. The child gets the variables on a list, a plan whose digest it checks, and a folder for its one result
file. It ends when the watcher ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runners.cell import run_cell
from runners.core.errors import InfraError, ReprobotError, UserError, explain_shortage
from runners.core.job_files import write_result
from runners.core.packages.requirements import parse_allowance
from runners.core.progress import Silent
from runners.core.protocol import MAX_PLAN_BYTES, JobCell
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.workbench import Workbench, open_workbench
from runners.workbench.run_ledger import open_run_ledger

PASSES = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}
    | {"XDG_DATA_HOME", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE"}
    | {"PIP_CONFIG_FILE", "UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_OFFLINE", "DOCKER_HOST", "CONTAINER_HOST"}
    | {"CONTAINERS_CONF", "REPROBOT_CACHE", "REPROBOT_CONFIG", "REPROBOT_NIGHTLIES", "REPROBOT_GPU"}
    | {"REPROBOT_IMAGE"}
)
"""The only variables that the child gets, because a list of all secrets cannot be made. Same list:
``tools/bare-env.sh``."""
GRACE_S = 900
"""Time beyond the plan's own budget, for building environments and for diagnoses."""
_LOG_TAIL_BYTES = 2_000
_PR_SET_PDEATHSIG = 1
_ROOT = Path(__file__).parents[1]
_START = (
    "import importlib, sys; sys.path.insert(0, sys.argv.pop(1));"
    " sys.exit(importlib.import_module(sys.argv.pop(1)).main(sys.argv[1:]))"
)
"""Starts the child with the packages of this very process: other projects may install packages of these names."""


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that the child may have."""
    return {name: value for name, value in environment.items() if name in PASSES}


def run_in_child(
    plan: Path,
    digest: str,
    cell: JobCell,
    results: Path,
    environment: Mapping[str, str],
    ledger: Path | None = None,
    *,
    cluster: str = "",
) -> None:
    """Run one cell in a child process and wait for its result file in the folder ``results``.

    Runs that ``ledger`` has are not made again; the others are added to it. With ``cluster``, the child sends the
    cell to a worker of the Dask scheduler at this address.

    Raises:
        InfraError: the child failed, or took longer than the plan's budget and `GRACE_S`.
    """
    module = "runners.cluster" if cluster else "runners.__main__"
    plan, results = plan.absolute(), results.absolute()  # the child has another working folder
    words = [sys.executable, "-I", "-c", _START, str(_ROOT), module, str(plan), digest, cell.id, str(results)]
    more = [cluster] if cluster else [] if ledger is None else [str(ledger.absolute())]
    limit = cell.plan.budget.wall_s + GRACE_S
    log = results.parent / f"{cell.id}.log"
    results.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*words, str(os.getpid()), *more],
            env=filter_environment(environment),
            cwd=results.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            _stop_child(child)
            raise InfraError(f"the cell {cell.id} did not end within {limit / 60:.0f} minutes") from None
        except BaseException:
            _stop_child(child)
            raise
    if code != 0:
        last = log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip().rpartition("\n")[2]
        raise InfraError(f"the cell {cell.id} ended with status {code}: {last or 'it printed no message'}")


def _stop_child(child: subprocess.Popen[bytes]) -> None:
    """Terminate the child; kill it if it has not removed its sandboxes within 20 seconds."""
    child.terminate()
    try:
        child.wait(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


# ---------------------------------------------------------------------------------------------- inside the child


def main(arguments: Sequence[str]) -> int:
    """Run the child and return its exit status, which is 0 if the result file is written."""
    parser = argparse.ArgumentParser(prog="runners.__main__")
    for name in ("plan", "sha256", "cell", "results", "parent"):
        parser.add_argument(name)
    parser.add_argument("ledger", nargs="?")
    given = parser.parse_args(arguments)
    end_with_parent(int(given.parent))
    try:
        with Path(given.plan).open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
        catalogue = open_catalogue(default_root() / "catalogue", ())

        def open_bench(cell: JobCell) -> Workbench:
            also = frozenset(parse_allowance(cell.allow).values())
            ledger = open_run_ledger(Path(given.ledger)) if given.ledger else None
            return open_workbench(
                cell.sandbox,
                catalogue,
                Silent(),
                also_allowed=also,
                download_mib=cell.download_mib,
                ledger=ledger,
            )

        write_result(run_cell(data, digest=given.sha256, cell=given.cell, open_bench=open_bench), Path(given.results))
    except ReprobotError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Exception as error:
        if (shortage := explain_shortage(error)) is None:
            raise
        sys.stderr.write(f"{shortage}\n")
        return shortage.exit_code
    return 0


def end_with_parent(parent: int) -> None:
    """Ask the kernel for SIGTERM when the watcher ends, even by kill -9.

    Otherwise two children would run the same cell after a restart of the watcher.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        raise SystemExit(UserError.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
