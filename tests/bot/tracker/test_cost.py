"""What a sweep costs: told after it, and estimated before it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bot.tracker.cost import USUAL_RUNS, describe_estimate, describe_summary, estimate_cost
from bot.tracker.dashboard import write_dashboard
from bot.tracker.rows import Work
from tests.bot.tracker.rows import SUMMARY, make_row
from tests.bot.tracker.world import World, write_issue


def test_idle_cores_and_other_machines_count() -> None:
    whole = msgspec.structs.replace(SUMMARY, answered=30, wall_s=900.0, jobs=2, elsewhere_s=1800.0)
    assert whole.core_hours == 1.0
    assert whole.issues_per_core_hour == 30
    assert "1 core-hours, 30 issues per core-hour" in describe_summary(whole)[-1]


def test_a_sweep_without_an_answer_has_no_rate() -> None:
    nothing = msgspec.structs.replace(SUMMARY, answered=0)
    assert nothing.issues_per_core_hour is None
    assert "core-hour" not in describe_summary(nothing)[-1]


def test_an_estimate_takes_the_tracker_s_own_figures() -> None:
    rows = [make_row(str(n), work=Work(made=10 * n, run_s=1.0, seconds=20.0 * n)) for n in (1, 2, 3)]
    one = estimate_cost(["new issue"] * 9, [*rows, make_row("9")], jobs=2, remote=True)
    assert (one.runs, one.seconds, one.core_hours, one.requests, one.measured) == (180, 180.0, 0.1, 18, 3)
    assert describe_estimate(one)[1].startswith("about 180 runs, 3 min, 0.1 core-hours, 18 requests, 0.3 MiB")


def test_an_estimate_without_a_sweep_before_says_so() -> None:
    one = estimate_cost(["new issue"], [], jobs=1, remote=False)
    assert (one.runs, one.requests) == (USUAL_RUNS, 0)
    assert "usual figures" in describe_estimate(one)[1]
    assert describe_estimate(estimate_cost([], [], jobs=1, remote=False)) == (
        "nothing to run: no answer can have changed",
    )


def test_every_report_has_the_cost(tmp_path: Path) -> None:
    write_issue(tmp_path / "issues", "one")
    world = World(folder=tmp_path / "issues", out=tmp_path / "out")
    summary = world.sweep()
    now = datetime(2026, 11, 22, tzinfo=UTC)
    write_dashboard(world.out, "t", world.state, summary, world.open().catalogue, now=now)
    written = json.loads((world.out / "sweep.json").read_text())
    assert written["issues_per_core_hour"] == pytest.approx(summary.issues_per_core_hour)
    assert written["runs_made"] == world.compiler.made.total() > 0
    assert written["ledger_bytes"] > 0
    assert "issues per core-hour" in (world.out / "index.html").read_text()
