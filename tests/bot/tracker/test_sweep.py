"""A sweep that was stopped goes on with what it has, and uses no result of another text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from bot.cli.daemon import _make_plan_runner
from bot.daemon.ledger import open_ledger
from bot.forge.contract import IssueBrief
from bot.forge.source import parse_issue
from bot.settings import Settings
from bot.tracker.sweep import TrackerSweep, sweep_issues
from runners.core.catalogue import load_catalogue
from runners.core.errors import InfraError
from runners.core.job_files import write_result
from runners.core.protocol import CellResult, Investigation, JobCell, JobPlan, Outcome, Signalled
from tests.bot.daemon.process import CRASH
from tests.support.observed import observe

EDITED = CRASH.replace("tvm.compile(tvm.ir.IRModule({}))", "tvm.compile(None)")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
BRIEF = IssueBrief(
    number=7,
    author="ada",
    title="It aborts",
    labels=(),
    open=True,
    locked=False,
    is_pull_request=False,
    created=NOW,
    updated=NOW,
)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sha256 of every plan that a child ran; the child reports an abort."""
    plans: list[str] = []

    def run(plan: Path, digest: str, cell: JobCell, results: Path, environment: object) -> None:
        plans.append(digest)
        seen = [
            observe(
                version, Outcome.MATCH, toolchain="tvm", device=cell.plan.device, attempt=n, ended=Signalled(code=6)
            )
            for version in cell.plan.first
            for n in (1, 2)
        ]
        result = CellResult(cell=cell.id, plan_sha256=digest, seen=Investigation(observations=tuple(seen)))
        write_result(result, results)

    monkeypatch.setattr("bot.cli.daemon.run_in_child", run)
    return plans


def make_sweep(out: Path, text: str) -> TrackerSweep:
    return TrackerSweep(
        repository="octo/compiler",
        settings=Settings(),
        catalogue=load_catalogue(),
        ledger=open_ledger(out / "ledger.sqlite"),
        out=out,
        fetch_issue=lambda number: parse_issue(
            f"# It aborts\n\n{text}".encode(), source="octo/compiler#7", today=date(2026, 11, 21)
        ),
        run_plan=_make_plan_runner(frozenset()),
        now=lambda: NOW,
        log=lambda _: None,
    )


def stop_after_the_run(sweep: TrackerSweep) -> Callable[[Path, JobPlan, str], None]:
    def run(folder: Path, plan: JobPlan, sha256: str) -> None:
        sweep.run_plan(folder, plan, sha256)
        raise InfraError("stopped here")

    return run


def test_an_edited_issue_is_judged_by_runs_of_its_own_text(tmp_path: Path, ran: list[str]) -> None:
    """The sweep was stopped between the runs of the first text and its report."""
    first = make_sweep(tmp_path, CRASH)
    assert sweep_issues(replace(first, run_plan=stop_after_the_run(first)), [BRIEF]) == {"failed": 1}
    assert sweep_issues(make_sweep(tmp_path, EDITED), [BRIEF]) == {"confirmed": 1}
    assert len(set(ran)) == 2


def test_runs_of_a_stopped_sweep_are_used(tmp_path: Path, ran: list[str]) -> None:
    """The same text is not run twice."""
    first = make_sweep(tmp_path, CRASH)
    sweep_issues(replace(first, run_plan=stop_after_the_run(first)), [BRIEF])
    assert sweep_issues(make_sweep(tmp_path, CRASH), [BRIEF]) == {"confirmed": 1}
    assert len(ran) == 1


def test_a_finished_issue_leaves_its_reports_alone(tmp_path: Path, ran: list[str]) -> None:
    """No plan, result or log is kept."""
    sweep_issues(make_sweep(tmp_path, CRASH), [BRIEF])
    reports = {f"octo-compiler-7.{kind}" for kind in ("json", "html", "md")}
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger")} == {*reports, "index.md"}
    assert len(ran) == 1
