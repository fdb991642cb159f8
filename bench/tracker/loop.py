"""Sweep a sample of a played tracker, beside a shell loop over the same cells.

    python -m bench.tracker.loop FOLDER [--issues N] [--jobs N]

``FOLDER/issues`` is what `bench.tracker.play` writes. The sample is the same in each call, one issue for each story,
and both ways start without a record of any run. The sweep runs the real compilers, judges, diagnoses, and writes its
dashboard. The loop calls ``uv run --with`` (offline, its cache warm) once for each run that the sweep made of a
testcase as posted, ``--jobs`` calls at a time; it neither reads, judges nor diagnoses. Both find the environments at
hand.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.speed.probe import say
from bench.speed.ways import Unavailable, find_environment, prepare_uv, run_with_uv
from bench.tracker.play import open_sweep
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from bot.tracker.dashboard import write_dashboard
from bot.tracker.sources import Selection
from bot.tracker.sweep import list_tasks, sweep_tracker
from runners.cells.messages import read_usage
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Testcase, digest_of
from runners.core.runs import Recording
from runners.workbench.run_ledger import open_run_ledger

SEED = 23
LIMIT = ("timeout", "--kill-after=2", "40")
"""As `bot.plan.HANG_WALL_S`: some testcases hang."""


def choose_issues(folder: Path, count: int) -> list[Path]:
    """Return issues of different stories, the same in each call."""
    paths = sorted(folder.glob("*-0.md"))
    return sorted(random.Random(SEED).sample(paths, min(count, len(paths))))


def list_calls(paths: list[Path], ledger: Path) -> Iterator[tuple[Testcase, str]]:
    """Yield testcase and version of each run that the ledger has of a testcase as posted."""
    catalogue = load_catalogue()
    testcases = {}
    for path in paths:
        found = extract(parse_issue(path.read_bytes(), source=path.name, today=datetime.now(tz=UTC).date()))
        if isinstance(found, Repro):
            testcases[digest_of(found.testcase)] = found.testcase
    runs = open_run_ledger(ledger)
    for one in (msgspec.json.decode(line, type=Recording) for line in runs.export_lines()):
        testcase = testcases.get(one.testcase)
        if testcase is not None and catalogue.find(testcase.toolchain, one.version).fork is None:
            yield testcase, one.version
    runs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--issues", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = choose_issues(chosen.folder / "issues", chosen.issues)
        (folder / "issues").mkdir()
        for path in paths:
            shutil.copy(path, folder / "issues")
        began = time.monotonic()
        with open_sweep(folder / "issues", folder / "out", load_catalogue(), None, chosen.jobs) as sweep:
            issues, tasks = list_tasks(sweep, Selection(state="all"))
            cpu = sweep.read_cpu()
            summary = sweep_tracker(sweep, issues, tasks)
            cpu_swept = sweep.read_cpu() - cpu
        write_dashboard(folder / "out", "sample", sweep.state, summary, sweep.catalogue, now=datetime.now(UTC))
        swept = time.monotonic() - began
        calls = list(list_calls(paths, folder / "out" / "runs.sqlite"))
        needs = {
            (testcase.toolchain, version, testcase.requirements): (testcase, version) for testcase, version in calls
        }
        for call in needs.values():
            _prepare_call(call)  # also uv's own lookup, which is not safe for threads
        began, cpu = time.monotonic(), read_usage(resource.RUSAGE_CHILDREN)
        with ThreadPoolExecutor(chosen.jobs) as executor:
            failed = sum(executor.map(_call_uv, calls))
        looped, cpu_looped = time.monotonic() - began, read_usage(resource.RUSAGE_CHILDREN) - cpu
    answered = summary.answered
    for what, seconds, used in (
        (f"sweep of {len(paths)} issues, {answered} answered, {summary.runs_made} runs", swept, cpu_swept),
        (f"loop of {len(calls)} calls, {failed} without an environment", looped, cpu_looped),
    ):
        rate = answered / seconds / chosen.jobs * 3600
        say(f"{what}: {seconds:.0f} s, {used:.0f} s of processor time, {rate:.0f} issues per core-hour")
    say(f"sweep ÷ loop: {swept / looped:.2f} of the time, {cpu_swept / cpu_looped:.2f} of the processor time")


def _prepare_call(call: tuple[Testcase, str]) -> None:
    testcase, version = call
    try:
        prepare_uv(find_environment(testcase, version), testcase)
    except (ReprobotError, OSError, Unavailable) as reason:
        say(f"the loop lacks {testcase.toolchain} {version}: {reason}")


def _call_uv(call: tuple[Testcase, str]) -> bool:
    """Return True if the call could not be made."""
    testcase, version = call
    with tempfile.TemporaryDirectory() as name:
        for file, text in testcase.files.items():
            (Path(name) / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(name) / file).write_text(text)
        try:
            run_with_uv(find_environment(testcase, version), testcase, Path(name), limit=LIMIT)
        except (ReprobotError, OSError):
            return True
    return False


if __name__ == "__main__":
    main()
