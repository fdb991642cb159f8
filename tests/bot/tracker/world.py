"""A tracker for tests: issues about a compiler that breaks where a test says, and no sandbox."""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.version import Version

from bench.tracker.in_process import make_runner
from bot.settings import Settings
from bot.tracker.cost import SweepSummary
from bot.tracker.sources import FolderSource, IssueSource, Selection
from bot.tracker.state import TrackerState, open_tracker_state
from bot.tracker.sweep import SweepBudget, TrackerSweep, list_tasks, sweep_tracker
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import Exited, Signalled, StepResult
from runners.core.runs import RunRequest, RunResult
from runners.workbench.run_ledger import open_run_ledger

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD = "0.27.0"
"""The release before `NEWEST` in these tests."""
NEWEST = "0.27.0.post1"


def write_issue(
    folder: Path, name: str, bad_from: str = "0", bad_to: str = "9", *, more: str = "", front: str = ""
) -> Path:
    """Write an issue whose testcase aborts on the releases from ``bad_from`` on, before ``bad_to``."""
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\ncreated: 2025-12-01\n{front}---\n# {name} aborts\n\napache-tvm 0.25.0 aborts:\n\n"
        f"```python\nimport tvm\n# breaks {bad_from} {bad_to}\ntvm.compile(tvm.ir.IRModule({{}}))\n```\n\n"
        f"```\nFatal Python error: Aborted\n```\n{more}"
    )
    return path


def limit_catalogue(newest: str) -> Catalogue:
    """Return the catalogue as it was when ``newest`` was the newest release of TVM."""
    whole = load_catalogue()
    last = whole.find("tvm", newest).order
    listings = {
        name: replace(one, releases=tuple(r for r in one.releases if name != "tvm" or r.order <= last))
        for name, one in whole.listings.items()
    }
    return replace(whole, listings=listings)


@dataclass
class Compiler:
    """Stands for all releases of TVM. Counts its runs."""

    made: Counter[str] = field(default_factory=Counter)
    hook: Callable[[RunRequest], None] = lambda _: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: RunRequest) -> RunResult:
        self.hook(request)
        with self.lock:
            self.made[request.version] += 1
        (text,) = request.testcase.files.values()
        found = re.search(r"# breaks (\S+) (\S+)", text)
        assert found is not None
        whole = load_catalogue()
        order = whole.find("tvm", request.version).order
        is_bad = Version(found[1]) <= order < Version(found[2])
        ended = Signalled(code=6) if is_bad else Exited(code=0)
        said = "Fatal Python error: Aborted\n" if is_bad else ""
        step = StepResult(argv=request.testcase.steps[0], ended=ended, stderr=said, seconds=1.0)
        return RunResult(steps=(step,), ended=ended, seconds=1.0)


@dataclass
class World:
    """A folder of issues and everything of a sweep over it. ``folder`` and ``out`` stay between sweeps."""

    folder: Path
    out: Path
    compiler: Compiler = field(default_factory=Compiler)
    newest: str = OLD
    settings: Settings = field(default_factory=Settings)
    jobs: int = 1
    budget: SweepBudget = field(default_factory=SweepBudget)
    source: IssueSource | None = None
    said: list[str] = field(default_factory=list)
    fails: Callable[[Path], None] = lambda _: None

    @property
    def state(self) -> TrackerState:
        return open_tracker_state(self.out / "tracker.sqlite")

    def sweep(self, selection: Selection | None = None) -> SweepSummary:
        whole = self.open()
        issues, tasks = list_tasks(whole, selection or Selection())
        return sweep_tracker(whole, issues, tasks)

    def open(self) -> TrackerSweep:
        ledger = open_run_ledger(self.out / "runs.sqlite")
        run_plan = make_runner(self.compiler, ledger)

        def run_or_fail(folder: Path, plan: Any, sha256: str) -> None:
            self.fails(folder)
            run_plan(folder, plan, sha256)

        seconds = itertools.count()
        return TrackerSweep(
            source=self.source or FolderSource(folder=self.folder, today=NOW.date()),
            settings=self.settings,
            catalogue=limit_catalogue(self.newest),
            state=self.state,
            out=self.out,
            attach=lambda issue: issue,
            run_plan=run_or_fail,
            now=lambda: NOW,
            clock=lambda: float(next(seconds)),
            read_cpu=lambda: 0.0,
            measure_ledger=lambda: (self.out / "runs.sqlite").stat().st_size,
            log=self.said.append,
            jobs=self.jobs,
            budget=self.budget,
        )

    def verdicts(self) -> dict[str, str]:
        return {id: row.verdict for id, row in sorted(self.state.list_rows().items())}
