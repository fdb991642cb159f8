"""A sweep as three jobs: every issue once, and no shard speaks for an issue of another."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from bot.cli import shards as sharding
from bot.cli.shards import choose_shard, make_result_reader, read_index, run_shard, write_plans
from bot.daemon.steps import RunPlan
from bot.tracker.rows import FAILED
from bot.tracker.sources import Selection
from bot.tracker.sweep import list_tasks, plan_tasks, sweep_tracker
from runners.cells.processes import CellProcesses
from runners.core.errors import InfraError, UserError
from runners.core.protocol import JobPlan
from tests.bot.tracker.world import World, write_issue

pytestmark = pytest.mark.thorough  # each test runs whole sweeps

COUNT = 12


@dataclass
class Machines:
    """The folders of the three jobs, and the digest that the first hands on."""

    world: World
    plans: Path
    results: Path
    most: int = 4
    digest: str = ""
    shards: int = 0

    def plan(self) -> list[str]:
        whole = self.world.open()
        _, tasks = list_tasks(whole, Selection())
        index, self.digest = write_plans(plan_tasks(whole, tasks), self.plans, self.most)
        self.shards = index.shards
        return index.list_shards()

    def report(self, **refused: str) -> dict[str, str]:
        run_plan = make_result_reader(self.results, self.shards, {name[1:]: why for name, why in refused.items()})
        whole = replace(self.world.open(), run_plan=run_plan)
        issues, tasks = list_tasks(whole, Selection())
        sweep_tracker(whole, issues, tasks)
        return self.world.verdicts()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    for number in range(COUNT):
        write_issue(tmp_path / "issues", f"issue{number}", bad_to="0.26.0" if number % 3 else "9")
    (tmp_path / "issues/question.md").write_text("# How fast is it?\n\nI cannot find a number.\n")
    world = World(folder=tmp_path / "issues", out=tmp_path / "out")
    run_plan = world.open().run_plan

    def make_runner(processes: CellProcesses, machines: frozenset[str], ledger: Path | None = None) -> RunPlan:
        return run_plan

    monkeypatch.setattr(sharding, "make_plan_runner", make_runner)
    return Machines(world=world, plans=tmp_path / "plans", results=tmp_path / "results")


def test_the_three_jobs_answer_as_one_sweep(machines: Machines, tmp_path: Path) -> None:
    matrix = machines.plan()
    assert machines.shards == 4
    for shard in matrix:
        run_shard(machines.plans, machines.digest, shard, machines.results)
    made = machines.world.compiler.made.total()
    alone = replace(machines.world, out=tmp_path / "alone")
    alone.sweep()
    assert machines.report() == alone.verdicts()
    assert set(machines.world.verdicts().values()) == {"confirmed", "fixed", "no-claim"}
    assert machines.world.compiler.made.total() == 2 * made  # the last job made none
    assert not list(tmp_path.glob("results.work"))


def test_a_second_sweep_plans_nothing(machines: Machines) -> None:
    for shard in machines.plan():
        run_shard(machines.plans, machines.digest, shard, machines.results)
    machines.report()
    assert machines.plan() == []


def test_a_shard_that_was_lost_costs_its_issues_alone(machines: Machines) -> None:
    """They are tried again by the next sweep."""
    for shard in machines.plan()[1:]:
        run_shard(machines.plans, machines.digest, shard, machines.results)
    verdicts = machines.report()
    failed = {id for id, verdict in verdicts.items() if verdict == FAILED}
    assert 0 < len(failed) < COUNT
    assert machines.plan() != []
    whole = machines.world.open()
    assert {task.issue.id for task in list_tasks(whole, Selection())[1]} == failed


def test_a_shard_speaks_for_its_own_issues_alone(machines: Machines) -> None:
    """Results of another shard's issue, which a machine that was taken over uploads, are not read."""
    matrix = machines.plan()
    for shard in matrix:
        run_shard(machines.plans, machines.digest, shard, machines.results)
    liar, victim = (machines.results / f"cell-{shard}" for shard in matrix[:2])
    name = next(victim.iterdir()).name
    shutil.copytree(victim / name, liar / name)
    shutil.rmtree(victim / name)
    failed = [id for id, verdict in machines.report().items() if verdict == FAILED]
    assert [name.endswith(id.removesuffix(".md")) for id in failed] == [True]


def test_a_result_of_another_plan_is_refused(machines: Machines) -> None:
    """The issue was edited after it was planned."""
    for shard in machines.plan():
        run_shard(machines.plans, machines.digest, shard, machines.results)
    write_issue(machines.world.folder, "issue1", bad_to="0.25.0")
    assert [id for id, verdict in machines.report().items() if verdict == FAILED] == ["issue1.md"]
    assert "another plan" in machines.world.state.list_rows()["issue1.md"].why


def test_a_shard_without_a_proven_origin_is_refused(machines: Machines) -> None:
    matrix = machines.plan()
    for shard in matrix:
        run_shard(machines.plans, machines.digest, shard, machines.results)
    verdicts = machines.report(**{f"_{matrix[0]}": "another job made it"})
    assert FAILED in verdicts.values()


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_plain_files_are_results(machines: Machines, tmp_path: Path, kind: str) -> None:
    place = machines.results / f"cell-{choose_shard('name', 1)}" / "name"
    place.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("{}")
    target = place / "any.json"
    match kind:
        case "link":
            target.symlink_to(secret)
        case "folder":
            target.mkdir()
        case _:
            os.mkfifo(target)
    machines.plan()
    (path,) = sorted(machines.plans.glob("*issue1.json"))[:1]
    plan = msgspec.json.decode(path.read_bytes(), type=JobPlan)
    (tmp_path / "name").mkdir()
    with pytest.raises(InfraError, match="not a regular file"):
        make_result_reader(machines.results, 1, {})(tmp_path / "name", plan, "")


def test_an_index_that_was_changed_is_refused(machines: Machines) -> None:
    """A plan says which sandbox runs it, so a shard runs only what the first job planned."""
    (shard, *_) = machines.plan()
    (machines.plans / "index.json").write_text((machines.plans / "index.json").read_text() + " ")
    with pytest.raises(UserError, match="sha256"):
        run_shard(machines.plans, machines.digest, shard, machines.results)


def test_a_plan_that_was_changed_is_not_run(machines: Machines) -> None:
    (shard, *_) = machines.plan()
    for path in machines.plans.glob("*issue*.json"):
        path.write_bytes(path.read_bytes() + b" ")
    run_shard(machines.plans, machines.digest, shard, machines.results)
    assert machines.world.compiler.made.total() == 0
    assert not list(machines.results.rglob("*.json"))


def test_an_unknown_shard_is_refused(machines: Machines) -> None:
    machines.plan()
    with pytest.raises(UserError, match="no shard"):
        run_shard(machines.plans, machines.digest, "99", machines.results)
    assert read_index(machines.plans, machines.digest).shards == 4


def test_shards_share_the_issues(machines: Machines) -> None:
    """At most as many as there are plans; 256 on GitHub."""
    counts = [choose_shard(f"octo-compiler-{number}", 20) for number in range(2000)]
    assert set(counts) == set(range(1, 21))
    assert max(map(counts.count, range(1, 21))) < 150
    machines.most = 256
    machines.plan()
    assert machines.shards == COUNT
