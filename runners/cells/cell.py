"""Run one cell of a plan file, and write its one result file. The server runs it (``server.py``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from runners.cells.run import run_cell
from runners.core.errors import ReprobotError, explain_shortage
from runners.core.job_files import write_result
from runners.core.packages.requirements import parse_allowance
from runners.core.progress import Silent
from runners.core.protocol import MAX_PLAN_BYTES, JobCell
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.workbench import SessionPool, Workbench, open_workbench
from runners.workbench.run_ledger import RunLedger, open_run_ledger


def main(arguments: Sequence[str], *, sessions: SessionPool, clean: bool = True) -> int:
    """Run the cell and return its exit status: 0 if the result file was written.

    ``sessions`` keeps sandboxes for later cells. ``clean`` removes the leftovers of killed runs first.
    """
    parser = argparse.ArgumentParser(prog="runners.cells.cell")
    for name in ("plan", "sha256", "cell", "results"):
        parser.add_argument(name)
    parser.add_argument("ledger", nargs="?")
    given = parser.parse_args(arguments)
    try:
        with open_ledger(given.ledger) as ledger, Path(given.plan).open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
            catalogue = open_catalogue(default_root() / "catalogue", ())

            def open_bench(cell: JobCell) -> Workbench:
                return open_workbench(
                    cell.sandbox,
                    catalogue,
                    Silent(),
                    also_allowed=frozenset(parse_allowance(cell.allow).values()),
                    download_mib=cell.download_mib,
                    ledger=ledger,
                    sessions=sessions,
                    clean=clean,
                )

            result = run_cell(data, digest=given.sha256, cell=given.cell, open_bench=open_bench)
        write_result(result, Path(given.results))
    except ReprobotError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Exception as error:
        if (shortage := explain_shortage(error)) is None:
            raise
        sys.stderr.write(f"{shortage}\n")
        return shortage.exit_code
    return 0


@contextmanager
def open_ledger(path: str | None) -> Iterator[RunLedger | None]:
    """Open the ledger of runs for one cell, if there is one."""
    if path is None:
        yield None
        return
    with closing(open_run_ledger(Path(path))) as ledger:
        yield ledger
