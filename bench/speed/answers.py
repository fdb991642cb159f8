"""Reprobot's answers to one issue, timed: with a warm store, with an empty one, in a watch, and from a ledger."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.speed.course import COMMENT, FIRST, VERDICT, CallFailed, Course, list_endings, read_bars, run_command
from bot.cli.daemon import make_plan_runner
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from bot.forge.sticky_comment import MAX_BODY_BYTES
from bot.report.comment import render_comment
from bot.requests.plan_file import SealedPlan, judge_results, plan_issue
from bot.requests.result_files import read_results
from bot.settings import Settings
from runners.cells.processes import CellProcesses
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Testcase
from runners.environments.store import default_root

ROOT = Path(__file__).parents[2]
LEDGER, COLD, WATCH = "from the ledger", "cold store", "in a watch"


@dataclass(frozen=True, slots=True)
class Subject:
    """An issue, and the runs that its answer takes: release → number of runs."""

    path: Path
    testcase: Testcase
    runs: Counter[str]
    verdict: str
    endings: dict[str, set[int]]
    """Release → the exit codes of its runs."""


def read_subject(path: Path, sandbox: str, checkouts: Sequence[Path]) -> Subject:
    """Read the issue, and reproduce it once: for the runs of its answer, and to warm every cache."""
    extraction = extract(parse_issue(path.read_bytes(), source=path.name, today=datetime.now(tz=UTC).date()))
    if not isinstance(extraction, Repro):
        raise CallFailed(f"{path} has no testcase")
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "document.json")
        for checkout in checkouts[::-1]:
            reproduce(path, sandbox, checkout, ("--json", str(document)))
        told = json.loads(document.read_text())
    seen = told["observations"]
    posted = [one for one in seen if one["variant"] == "original" and one["device"] == extraction.device]
    runs = Counter(one["version"] for one in posted)
    return Subject(path, extraction.testcase, runs, told["verdict"]["kind"], list_endings(seen, extraction.device))


def reproduce(
    path: Path, sandbox: str, checkout: Path, more: Sequence[str] = (), *, cache: Path | None = None
) -> Course:
    """Run ``reprobot reproduce`` and note when each line of progress arrives. ``cache`` is a store of its own."""
    words = ["reproduce", str(path.absolute()), "--sandbox", sandbox, *more]
    variables = {} if cache is None else {"REPROBOT_CACHE": str(cache)}
    lines, seconds = run_command(checkout, words, more=variables)
    return Course(tuple(read_bars(lines, seconds)), seconds)


class Ledger:
    """A ledger with the runs of one issue."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self._subject = subject
        self._folder = folder
        self._calls = 0
        issues = folder / "issues"
        issues.mkdir(parents=True)
        shutil.copy(subject.path, issues / f"{subject.path.stem}.md")

    def answer(self) -> float:
        """Answer the issue, from the ledger if it has the runs. Return the seconds.

        Raises:
            CallFailed: the verdict is not that of ``reproduce``, or a later call made runs.
        """
        self._calls += 1
        out = self._folder / f"out-{self._calls}"  # a sweep does not answer twice in one folder
        words = [
            "sweep",
            str(self._folder / "issues"),
            "--out",
            str(out),
            "--ledger",
            str(self._folder / "runs.sqlite"),
        ]
        lines, seconds = run_command(ROOT, words)
        verdicts = [one["verdict"] for one in json.loads((out / "issues.json").read_text())["issues"]]
        if verdicts != [self._subject.verdict]:
            raise CallFailed(f"a sweep answers {verdicts}, and reproduce {self._subject.verdict}")
        if self._calls > 1 and not any(line.startswith("0 runs made") for _, line in lines):
            raise CallFailed("the ledger did not have all runs: " + " / ".join(line for _, line in lines[-3:]))
        return seconds


class Watch:
    """What ``reprobot watch`` does for an issue, without a forge. Its server keeps sandboxes between answers."""

    def __init__(self, subject: Subject, folder: Path, processes: CellProcesses) -> None:
        self._subject = subject
        self._folder = folder
        self._run_plan = make_plan_runner(processes, frozenset())
        self._calls = 0

    def answer(self) -> dict[str, float]:
        """Answer the issue. Return event → seconds.

        Raises:
            CallFailed: the verdict is not that of ``reproduce``.
        """
        self._calls += 1
        folder = self._folder / str(self._calls)
        folder.mkdir(parents=True)
        began = time.monotonic()
        catalogue = load_catalogue()
        issue = parse_issue(
            self._subject.path.read_bytes(), source=self._subject.path.name, today=datetime.now(tz=UTC).date()
        )
        planned = plan_issue(issue, Settings(), catalogue)
        assert isinstance(planned, SealedPlan)
        (folder / "plan.json").write_bytes(planned.data)
        plan = read_plan(planned.data, planned.sha256)
        before = time.monotonic() - began
        self._run_plan(folder, plan, planned.sha256)
        results = read_results(folder / "results", planned.cells, planned.sha256)
        report = judge_results(planned.case, results, catalogue)
        render_comment(report, MAX_BODY_BYTES)
        seconds = time.monotonic() - began
        if report.verdict.kind != self._subject.verdict:
            raise CallFailed(f"a watch answers {report.verdict.kind}, and reproduce {self._subject.verdict}")
        times = results.seen.times
        stages = {stage.name: stage.end for stage in times.stages}
        return {
            FIRST: before + min(run.end for run in times.runs),
            VERDICT: before + stages["confirmation"],
            COMMENT: seconds,
        }


def reproduce_cold(path: Path, sandbox: str) -> Course:
    """Answer with an empty store beside a warm cache of uv: environments, canaries and drivers are made again.

    The empty store is on the disk of the warm one, because environments are hard links into uv's cache.
    """
    warm = default_root()
    with tempfile.TemporaryDirectory(dir=warm.parent, prefix="reprobot-cold-") as name:
        cache = Path(name)
        (cache / "uv").symlink_to(warm / "uv")
        return reproduce(path, sandbox, ROOT, cache=cache)
