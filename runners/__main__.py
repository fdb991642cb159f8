"""A cell of a plan, run in a process of its own whose environment is built from nothing: the watcher's hands.

The watcher holds a token, so nothing that starts sandboxes may be the watcher, nor inherit from it. The child gets
the variables on a list, a plan whose digest it checks, and a folder for its one result file. It ends when the watcher
does.
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
from runners.core.errors import InfraError, ReprobotError, UserError
from runners.core.job_files import write_result
from runners.core.progress import Silent
from runners.core.protocol import MAX_PLAN_BYTES, JobCell
from runners.core.requirements import parse_allowance
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.workbench import Workbench, open_workbench

PASSES = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}
    | {"XDG_DATA_HOME", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE"}
    | {"PIP_CONFIG_FILE", "UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_OFFLINE", "DOCKER_HOST", "CONTAINER_HOST"}
    | {"CONTAINERS_CONF", "REPROBOT_CACHE", "REPROBOT_CONFIG", "REPROBOT_GPU", "REPROBOT_IMAGE"}
)
"""What may pass, and nothing else: nobody knows the names of all secrets. As in ``tools/bare-env.sh``."""
GRACE_S = 900
"""Beyond a plan's own budget: building environments, and diagnoses."""
_SAID = 2_000
_PR_SET_PDEATHSIG = 1


def bare(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``environment`` that a child may have."""
    return {name: value for name, value in environment.items() if name in PASSES}


def run_apart(plan: Path, digest: str, cell: JobCell, results: Path, environment: Mapping[str, str]) -> None:
    """Run one cell and wait for its result file.

    Raises:
        InfraError: the child ended without one.
    """
    words = [sys.executable, "-I", "-m", "runners.__main__", str(plan), digest, cell.id, str(results)]
    limit = cell.plan.budget.wall_s + GRACE_S
    log = results.parent / f"{cell.id}.log"
    results.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as said:
        child = subprocess.Popen(
            [*words, str(os.getpid())],
            env=bare(environment),
            cwd=results.parent,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            _stop(child)
            raise InfraError(f"the cell {cell.id} did not end within {limit / 60:.0f} minutes") from None
        except BaseException:
            _stop(child)
            raise
    if code != 0:
        last = log.read_bytes()[-_SAID:].decode(errors="replace").strip().rpartition("\n")[2]
        raise InfraError(f"the cell {cell.id} ended with status {code}: {last or 'it said nothing'}")


def _stop(child: subprocess.Popen[bytes]) -> None:
    """With time to take its sandboxes down, then without."""
    child.terminate()
    try:
        child.wait(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


# ---------------------------------------------------------------------------------------------- inside the child


def main(arguments: Sequence[str]) -> int:
    """The child's whole life; its status is 0 when the result file stands."""
    parser = argparse.ArgumentParser(prog="runners.__main__")
    for name in ("plan", "sha256", "cell", "results", "parent"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    _end_with(int(given.parent))
    try:
        with Path(given.plan).open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
        catalogue = open_catalogue(default_root() / "catalogue", ())

        def open_bench(cell: JobCell) -> Workbench:
            also = frozenset(parse_allowance(cell.allow).values())
            return open_workbench(cell.sandbox, catalogue, Silent(), also_allowed=also)

        write_result(run_cell(data, digest=given.sha256, cell=given.cell, open_bench=open_bench), Path(given.results))
    except ReprobotError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _end_with(parent: int) -> None:
    """SIGTERM as soon as the watcher is gone, even by kill -9: two would run the same cell after its restart."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        raise SystemExit(UserError.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
