"""The daemon as a process that a test can kill: real steps, ledger and client; the runs need no compiler.

The process can also kill itself, at a numbered statement of its ledger.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from bot.daemon import watch
from bot.daemon.ledger import Ledger, open_ledger
from bot.daemon.steps import Services
from bot.forge.github import open_forge
from runners.core.database import Database
from runners.core.job_files import write_result
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import CellResult, Investigation, JobPlan, Outcome, Signalled
from tests.bot.forge.fake import REPOSITORY
from tests.support.observed import observe

CRASH = """\
apache-tvm 0.25.0 aborts:

```python
import tvm
tvm.compile(tvm.ir.IRModule({}))
```

```
Fatal Python error: Aborted
```
"""


def canned(folder: Path, plan: JobPlan, sha256: str) -> None:
    """Run a plan: every planned release aborts, twice."""
    for cell in plan.cells:
        seen = [
            observe(
                version,
                Outcome.MATCH,
                toolchain=cell.plan.testcase.toolchain,
                device=cell.plan.device,
                attempt=attempt,
                ended=Signalled(code=6),
            )
            for version in cell.plan.first
            for attempt in (1, 2)
        ]
        write_result(
            CellResult(cell=cell.id, plan_sha256=sha256, seen=Investigation(observations=tuple(seen))),
            folder / "results",
        )


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def make_services(environment: dict[str, str], state: Path, **more: Any) -> Services:
    """Return services on the fake; ``more`` replaces parts."""
    parts: dict[str, Any] = {
        "forge": open_forge(environment, pause=lambda _: None),
        "ledger": open_ledger(state / "ledger.sqlite"),
        "folder": state,
        "repositories": (REPOSITORY,),
        "open_catalogue": catalogue,
        "attach": lambda issue, settings: issue,
        "run_plan": canned,
        "now": lambda: datetime.now(tz=UTC),
        "log": lambda _: None,
    }
    return Services(**{**parts, **more})


def run_until_killed(environment: dict[str, str], state: str, die_at: int, count: str) -> None:
    """Run until no event is left, or until change ``die_at`` of the ledger; write the number of changes to a file."""
    place = Path(state)
    sql = sqlite3.connect(place / "ledger.sqlite", isolation_level=None)
    seen = 0

    def statement(text: str) -> None:
        nonlocal seen
        seen += not text.startswith("SELECT")  # how often it looks depends on the clock
        if seen == die_at and not text.startswith("SELECT"):
            os.kill(os.getpid(), signal.SIGKILL)

    sql.set_trace_callback(statement)
    watch.TICK_S = 0.01
    watch.watch_repositories(
        make_services(environment, place, ledger=Ledger(Database(sql, place / "ledger.sqlite"))),
        threading.Event(),
        threading.Event(),
        poll_s=1,
        jobs=1,
        drain=True,
    )
    if count:
        Path(count).write_text(str(seen), encoding="ascii")
