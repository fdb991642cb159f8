"""Sweep a whole tracker with recorded runs: ``python -m bench.tracker.play FOLDER [--issues N] [--jobs N]``.

The issues are the corpus and retellings of it, written as Markdown files. Recorded runs stand for the compilers, so
the figures tell the cost of everything but the compilers: reading, planning, judging, the ledger and the dashboard.
Three sweeps: without the newest release of each compiler, with it, and again without any change. Issues that retell
one story are duplicates of each other by construction, which measures the search for duplicates. ``--shards N`` plays
the three jobs of a sweep on GitHub with N shards, and compares their verdicts with those of one sweep.

``--real`` sweeps with the real compilers instead.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import msgspec

from bench.proving import recordings as recorded
from bench.proving.corpus import list_cases
from bench.proving.recordings import NOT_RECORDED, Recordings
from bench.proving.trials import CORPUS, list_corpus, load_recordings, retell
from bench.tracker.in_process import make_runner
from bot.cli.daemon import make_plan_runner
from bot.cli.shards import make_result_reader, read_index, write_plans
from bot.cli.terminal import print_message
from bot.daemon.steps import RunPlan
from bot.issue import Issue
from bot.settings import Settings
from bot.tracker.cost import describe_summary
from bot.tracker.dashboard import write_dashboard
from bot.tracker.duplicates import SHOWN, mark_alike
from bot.tracker.rows import IssueRow
from bot.tracker.sources import FolderSource, Selection
from bot.tracker.state import open_tracker_state
from bot.tracker.sweep import TrackerSweep, list_tasks, plan_tasks, sweep_tracker
from runners.cells.processes import CellProcesses
from runners.cells.server import measure_cpu
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import NotRun
from runners.core.runs import Execute, RunRequest, RunResult, report_not_run
from runners.workbench.run_ledger import open_run_ledger

TODAY = datetime(2026, 11, 22, tzinfo=UTC)
TELLINGS = 12
_REMARK = re.compile(r"\s*# (needs nothing beyond|gives ).*")


def write_issues(folder: Path, count: int) -> dict[str, str]:
    """Write the corpus and its retellings, at most ``count`` files; return file → story."""
    folder.mkdir(parents=True, exist_ok=True)
    catalogue = load_catalogue()
    stories: dict[str, str] = {}
    cases = list(list_cases())
    for case in cases:
        _write(folder, stories, case.truth.name, 0, case.issue)
    tellings = [iter(retell(trial, load_recordings(trial), catalogue, TELLINGS)) for trial in list_corpus()]
    names = [trial.name for trial in list_corpus()]
    for turn in range(1, TELLINGS + 1):
        for name, told in zip(names, tellings, strict=True):
            if len(stories) < count and (trial := next(told, None)) is not None:
                _write(folder, stories, name, turn, trial.issue)
    return stories


def _write(folder: Path, stories: dict[str, str], story: str, turn: int, issue: Issue) -> None:
    id = f"{story.replace('/', '-')}-{turn}.md"
    (folder / id).write_text(f"---\ncreated: {issue.created}\n---\n# {issue.title}\n\n{issue.body}", encoding="utf-8")
    stories[id] = story


def replay(recordings: Recordings) -> Execute:
    """Return the recorded run of a request. Comments that a retelling adds to a testcase do not matter."""
    originals: dict[str, str] = {}
    for case in list_cases():
        for text in _list_texts(case.issue.body):
            originals[_strip(text)] = text

    def find(request: RunRequest) -> RunResult:
        files = {name: originals.get(_strip(text), text) for name, text in request.testcase.files.items()}
        plain = msgspec.structs.replace(request, testcase=msgspec.structs.replace(request.testcase, files=files))
        found = recordings.find(request.key, 0) or recordings.find(plain.key, 0)
        if found is None:
            return report_not_run(NotRun(why=f"{NOT_RECORDED}: {request.version}", cause="infra"))
        return msgspec.structs.replace(found, environment="", engine="", image="", driver="")  # as `NOWHERE`

    return find


def _list_texts(body: str) -> list[str]:
    return re.findall(r"```\w*\n(.*?)```", body, re.DOTALL)


def _strip(text: str) -> str:
    lines = (_REMARK.sub("", line).rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def drop_newest(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue as it was before the newest release of each compiler."""
    listings = {}
    for name, listing in catalogue.listings.items():
        ordinary = catalogue.list_releases(name)
        last = ordinary[-1].order if len(ordinary) > 1 else None
        listings[name] = replace(
            listing, releases=tuple(one for one in listing.releases if last is None or one.order < last)
        )
    return replace(catalogue, listings=listings)


def sweep_once(sweep: TrackerSweep) -> list[IssueRow]:
    """Sweep, print what it cost, and return the rows."""
    began = time.monotonic()
    issues, tasks = list_tasks(sweep, Selection(state="all"))
    summary = sweep_tracker(sweep, issues, tasks)
    write_dashboard(sweep.out, "retold", sweep.state, summary, sweep.catalogue, now=datetime.now(UTC))
    sys.stdout.write("\n".join(describe_summary(summary)[-1:]) + "\n")
    sys.stdout.write(
        f"{summary.answered} answered, {summary.failed} failed, {summary.unchanged} unchanged, "
        f"{summary.changed} changed; {time.monotonic() - began:.1f} s with the dashboard\n\n"
    )
    sys.stdout.flush()
    return list(sweep.state.list_rows().values())


@contextmanager
def open_sweep(
    folder: Path, out: Path, catalogue: Catalogue, live: Execute | None, jobs: int
) -> Iterator[TrackerSweep]:
    """Open a sweep of a folder. Without ``live``, the compilers run, each cell in a child process."""
    runs = out / "runs.sqlite"
    if live is not None:
        yield make_sweep(folder, out, catalogue, make_runner(live, open_run_ledger(runs)), jobs)
        return
    with closing(CellProcesses(os.environ)) as processes:
        run_plan = make_plan_runner(processes, frozenset(), runs)
        sweep = make_sweep(folder, out, catalogue, run_plan, jobs)
        yield replace(sweep, read_cpu=processes.measure_cpu, log=print_message)


def make_sweep(folder: Path, out: Path, catalogue: Catalogue, run_plan: RunPlan, jobs: int) -> TrackerSweep:
    return TrackerSweep(
        source=FolderSource(folder=folder, today=TODAY.date()),
        settings=Settings(),
        catalogue=catalogue,
        state=open_tracker_state(out / "tracker.sqlite"),
        out=out,
        attach=lambda issue: issue,
        run_plan=run_plan,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        read_cpu=measure_cpu,
        measure_ledger=lambda: (out / "runs.sqlite").stat().st_size,
        log=lambda _: None,
        jobs=jobs,
    )


def play_shards(folder: Path, out: Path, catalogue: Catalogue, live: Execute, shards: int) -> dict[str, str]:
    """Sweep in three jobs, as on GitHub: plan, run each shard with a ledger of its own, read the results.

    Return file → verdict. The jobs exchange files only.
    """
    sweep = make_sweep(folder, out, catalogue, make_runner(live, open_run_ledger(out / "runs.sqlite")), 1)
    _, tasks = list_tasks(sweep, Selection(state="all"))
    index, digest = write_plans(plan_tasks(sweep, tasks), out / "plans", shards)
    sizes = Counter(one.shard for one in index.plans)
    made = 0
    for one in read_index(out / "plans", digest).plans:
        data = (out / "plans" / f"{one.name}.json").read_bytes()
        work = out / "results" / f"cell-{one.shard}" / one.name
        ledger = open_run_ledger(out / f"shard-{one.shard}.sqlite")
        make_runner(live, ledger)(work, read_plan(data, one.sha256), one.sha256)
        for path in (work / "results").iterdir():
            path.rename(work / path.name)
        made += 1
        ledger.close()
    reading = replace(sweep, run_plan=make_result_reader(out / "results", index.shards, {}), is_elsewhere=True)
    issues, tasks = list_tasks(reading, Selection(state="all"))
    summary = sweep_tracker(reading, issues, tasks)
    sys.stdout.write(
        f"{made} plans in {len(sizes)} shards of {min(sizes.values())} to {max(sizes.values())}: {summary.answered} "
        f"answered, {summary.failed} failed; {summary.runs_made} runs in the shards\n"
    )
    return {id: row.verdict for id, row in sweep.state.list_rows().items()}


def measure_duplicates(rows: list[IssueRow], stories: Mapping[str, str]) -> str:
    """Return precision and recall of the suggestions, with and without the digest of the testcase."""
    lines = []
    seen = [row for row in rows if row.failure is not None and row.verdict in SHOWN]
    for title, tested in (("as swept", seen), ("by behaviour alone", [_forget_testcase(row) for row in seen])):
        marked = mark_alike(tested)
        suggested = {frozenset({row.issue.id, other}) for row in marked for other in row.like}
        right = sum(len({stories[id] for id in pair}) == 1 for pair in suggested)
        groups = defaultdict(list)
        for row in seen:
            groups[stories[row.issue.id]].append(row.issue.id)
        with_twin = [id for group in groups.values() if len(group) > 1 for id in group]
        liked = {row.issue.id: row.like for row in marked}
        found = sum(any(stories[other] == stories[id] for other in liked[id]) for id in with_twin)
        pairs = sum(len(list(combinations(group, 2))) for group in groups.values())
        wrong = Counter(
            tuple(sorted(stories[id] for id in pair)) for pair in suggested if len({stories[id] for id in pair}) > 1
        )
        lines.append(
            f"duplicates {title}: {right} of {len(suggested)} suggestions right, {found} of {len(with_twin)} issues "
            f"with a twin have a right one ({pairs} pairs); wrong most often: {wrong.most_common(4)}"
        )
    return "\n".join(lines)


def _forget_testcase(row: IssueRow) -> IssueRow:
    return msgspec.structs.replace(row, testcase="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--issues", type=int, default=320)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shards", type=int, default=0, help="also sweep in three jobs, with so many shards")
    parser.add_argument("--real", action="store_true", help="sweep with the real compilers")
    chosen = parser.parse_args()
    stories = write_issues(chosen.folder / "issues", chosen.issues)
    sys.stdout.write(f"{len(stories)} issues of {len(set(stories.values()))} stories\n\n")
    sys.stdout.flush()
    catalogue, live = load_catalogue(), None if chosen.real else replay(recorded.load(CORPUS))
    folder, out = chosen.folder / "issues", chosen.folder / ("real" if chosen.real else "out")
    for known in (drop_newest(catalogue), catalogue, catalogue):
        with open_sweep(folder, out, known, live, chosen.jobs) as sweep:
            rows = sweep_once(sweep)
    sys.stdout.write(measure_duplicates(rows, stories) + "\n")
    if chosen.shards and live is not None:
        sharded = play_shards(chosen.folder / "issues", chosen.folder / "sharded", catalogue, live, chosen.shards)
        other = sorted(row.issue.id for row in rows if sharded.get(row.issue.id) != row.verdict)
        sys.stdout.write(f"verdicts that differ from those of one sweep: {len(other)} {other[:5]}\n")


if __name__ == "__main__":
    main()
