"""Sweeps over a folder: what is run, what is not run again, and that no issue stops the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bot.issue import Issue
from bot.requests import plan_file
from bot.settings import Settings
from bot.tracker import sweep as sweeping
from bot.tracker.rows import FAILED, Work
from bot.tracker.sources import Selection
from bot.tracker.sweep import SLOW_RUN_S, SweepBudget, list_tasks, merge_answers
from runners.core.errors import InfraError, UserError
from runners.workbench.run_ledger import open_run_ledger
from tests.bot.tracker.world import NEWEST, World, write_issue

pytestmark = pytest.mark.thorough  # each test runs whole sweeps

ROOT = Path(__file__).parents[3]


@pytest.fixture
def world(tmp_path: Path) -> World:
    folder = tmp_path / "issues"
    write_issue(folder, "still")
    write_issue(folder, "mended", bad_to="0.26.0")
    write_issue(folder, "soon", bad_to=NEWEST)
    write_issue(folder, "question")
    (folder / "question.md").write_text("# How fast is it?\n\nI cannot find a number.\n")
    return World(folder=folder, out=tmp_path / "out")


def test_every_issue_gets_its_verdict(world: World) -> None:
    summary = world.sweep()
    assert world.verdicts() == {
        "mended.md": "fixed",
        "question.md": "no-claim",
        "soon.md": "confirmed",
        "still.md": "confirmed",
    }
    assert (summary.listed, summary.answered, summary.failed, summary.left) == (4, 4, 0, 0)
    row = world.state.list_rows()["mended.md"]
    assert row.fixed_in == "0.26.0"
    assert row.cells["0.26.0"] == "good"
    assert {path.suffix for path in (world.out / "issues").iterdir()} == {".html", ".json", ".md"}


def test_a_second_sweep_without_a_change_runs_nothing(world: World) -> None:
    world.sweep()
    made = world.compiler.made.total()
    summary = world.sweep()
    assert world.compiler.made.total() == made
    assert (summary.answered, summary.unchanged, summary.runs_made, summary.runs_reused) == (0, 4, 0, 0)


def test_a_new_release_runs_what_can_change_and_there_alone(world: World) -> None:
    """The open issue that is fixed, and the text without a testcase, are not looked at.

    With one more release, a search may look into another gap between failing ones.
    """
    world.sweep()
    made = world.compiler.made.total()
    world.compiler.made.clear()
    world.newest = NEWEST
    summary = world.sweep()
    assert world.verdicts()["soon.md"] == "fixed"
    assert world.verdicts()["still.md"] == "confirmed"
    assert world.compiler.made[NEWEST] > world.compiler.made.total() / 2
    ledger = open_run_ledger(world.out / "runs.sqlite")
    assert ledger.count_runs() == made + world.compiler.made.total()  # none was made twice
    assert summary.answered == 2
    assert [(change.id, change.before, change.after, change.why) for change in world.state.list_changes(2)] == [
        ("soon.md", "confirmed", "fixed", "new release")
    ]


def test_a_new_release_runs_a_closed_issue_that_was_fixed(world: World) -> None:
    """A failure that was fixed may come back; one that is closed and still there needs no other run."""
    write_issue(world.folder, "closed-mended", bad_to="0.26.0", front="state: closed\n")
    write_issue(world.folder, "closed-still", front="state: closed\n")
    world.sweep(Selection(state="all"))
    world.newest = NEWEST
    world.said.clear()
    world.sweep(Selection(state="all"))
    looked_at = {line.split("] ")[1].split(":")[0] for line in world.said}
    assert looked_at == {"still.md", "soon.md", "closed-mended.md"}


@pytest.mark.parametrize(
    ("budget", "place"), [(SweepBudget(), 0), (SweepBudget(runs=100), -1)], ids=["free", "budget"]
)
def test_an_issue_with_slow_runs_starts_first_unless_a_budget_may_end_the_sweep(
    world: World, budget: SweepBudget, place: int
) -> None:
    """The sweep would wait for a testcase that hangs, with its other jobs idle."""
    world.sweep()
    world.newest, world.budget = NEWEST, budget
    due = [task for task in list_tasks(world.open(), Selection())[1] if task.row is not None]
    last = due[-1].row
    assert last is not None
    world.state.keep_answer(1, msgspec.structs.replace(last, work=Work(made=2, run_s=2 * SLOW_RUN_S)), None)
    world.said.clear()
    world.sweep()
    answered = [line.split("] ")[1].split(":")[0] for line in world.said]
    assert len(answered) > 1
    assert answered[place] == last.issue.id


def test_an_edited_issue_is_run_again_and_no_other(world: World) -> None:
    world.sweep()
    write_issue(world.folder, "still", bad_to="0.25.0.post1")
    summary = world.sweep()
    assert summary.answered == 1
    assert world.verdicts()["still.md"] == "fixed"


def test_a_change_of_the_list_alone_runs_nothing(world: World) -> None:
    """A label, a state: the row shows it, the answer stands."""
    world.sweep()
    before = world.state.list_rows()["still.md"]
    path = world.folder / "still.md"
    touched = path.read_text()
    source = world.open().source

    def list_relabelled(wanted: Selection) -> object:
        for issue in source.list_issues(wanted):
            yield type(issue)(
                **{name: getattr(issue, name) for name in issue.__struct_fields__} | {"labels": ("bug",)}
            )

    class Relabelled:
        name = source.name
        list_issues = staticmethod(list_relabelled)
        fetch_issue = staticmethod(source.fetch_issue)
        has_issues = staticmethod(source.has_issues)
        count_requests = staticmethod(source.count_requests)

    world.source = Relabelled()  # type: ignore[assignment]
    summary = world.sweep()
    after = world.state.list_rows()["still.md"]
    assert (summary.answered, after.issue.labels, after.answered) == (0, ("bug",), before.answered)
    assert path.read_text() == touched


def test_changed_settings_and_code_answer_again_from_the_ledger(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts are judged anew; no run is made twice."""
    world.sweep()
    before = world.verdicts()
    world.compiler.made.clear()
    monkeypatch.setattr(sweeping, "digest_product", lambda: "another")
    summary = world.sweep()
    assert (summary.answered, summary.runs_made) == (4, 0)
    assert summary.runs_reused > 0
    world.settings = Settings(versions="0.25.0..0.27.0")
    world.sweep()
    assert world.verdicts() == before


def test_identical_testcases_cost_one(world: World) -> None:
    world.sweep()
    made = world.compiler.made.total()
    (world.folder / "copy.md").write_text((world.folder / "still.md").read_text() + "\nSame here.\n")
    summary = world.sweep()
    assert (world.compiler.made.total(), summary.runs_made) == (made, 0)
    assert world.verdicts()["copy.md"] == "confirmed"


@pytest.mark.parametrize(
    "error", [InfraError("no disk"), UserError("no"), ValueError("x"), RecursionError(), KeyError()]
)
def test_one_failing_issue_is_one_row(world: World, error: Exception) -> None:
    def fail(folder: Path) -> None:
        if "still" in folder.name:
            raise error

    world.fails = fail
    summary = world.sweep()
    assert (summary.failed, summary.answered) == (1, 3)
    row = world.state.list_rows()["still.md"]
    assert row.verdict == FAILED
    assert row.why
    world.fails = lambda _: None
    assert world.sweep().answered == 1
    assert world.verdicts()["still.md"] == "confirmed"


def test_a_file_that_is_no_text_is_one_row(world: World) -> None:
    (world.folder / "binary.md").write_bytes(b"\0\xff")
    (world.folder / "empty.md").write_bytes(b"")
    (world.folder / "front.md").write_text("---\n: [\n---\n# x\n")
    summary = world.sweep()
    assert (summary.failed, summary.answered) == (3, 4)


def test_a_bug_in_reading_a_text_is_one_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever our own code raises about one text."""
    real = plan_file.plan_issue

    def plan_or_crash(issue: Issue, *rest: object, **more: object) -> object:
        if "mended" in issue.title:
            raise AssertionError("never")
        return real(issue, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sweeping, "plan_issue", plan_or_crash)
    summary = world.sweep()
    assert (summary.failed, summary.answered) == (1, 3)
    assert "AssertionError" in (world.out / "errors.log").read_text()


@pytest.mark.parametrize("budget", [SweepBudget(runs=1), SweepBudget(seconds=6)], ids=["runs", "time"])
def test_a_spent_budget_stops_and_the_next_sweep_goes_on(world: World, budget: SweepBudget) -> None:
    world.budget = budget
    first = world.sweep()
    assert first.stopped
    assert 0 < first.left < 4
    assert first.answered + first.left == 4
    world.budget = SweepBudget()
    second = world.sweep()
    assert (second.sweep, second.answered, second.left) == (first.sweep, first.left, 0)
    assert len(world.verdicts()) == 4


def test_issues_run_at_once(world: World) -> None:
    """As many as there are jobs: each of the three waits for the other two."""
    together = threading.Barrier(3, timeout=30)
    world.jobs = 3
    waited = set[str]()

    def wait(folder: Path) -> None:
        if folder.name not in waited:
            waited.add(folder.name)
            together.wait()

    world.fails = wait
    assert world.sweep().failed == 0


def test_only_runs_go_side_by_side(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that read one type of msgspec for the first time end the process with SIGSEGV."""
    inside = threading.Lock()

    def alone(real: Callable[..., object]) -> Callable[..., object]:
        def call(*values: object, **named: object) -> object:
            assert inside.acquire(blocking=False)
            try:
                time.sleep(0.01)
                return real(*values, **named)
            finally:
                inside.release()

        return call

    for name in ("replace_surrogates", "plan_issue", "read_plan", "read_results", "judge_results", "write_report"):
        monkeypatch.setattr(sweeping, name, alone(getattr(sweeping, name)))
    world.jobs = 3
    assert world.sweep().failed == 0


def test_progress_tells_what_is_left(world: World) -> None:
    world.sweep()
    assert world.said[0].startswith("[1/4] ")
    assert world.said[0].endswith(" left")
    assert "left" not in world.said[-1]


def test_no_selected_issue_is_an_error_where_the_tracker_has_some(world: World) -> None:
    with pytest.raises(UserError, match="--state all"):
        world.sweep(Selection(state="closed"))
    with pytest.raises(UserError, match="is selected"):
        world.sweep(Selection(labels=("none",)))


def test_an_empty_tracker_is_none(tmp_path: Path) -> None:
    (tmp_path / "issues").mkdir()
    (tmp_path / "issues/README.md").write_text("# no issue\n")
    assert World(folder=tmp_path / "issues", out=tmp_path / "out").sweep().listed == 0


def test_selection(world: World) -> None:
    write_issue(world.folder, "labelled", front="labels: [bug, iree]\n")
    write_issue(world.folder, "deep/er", front="state: closed\nlabels: [bug]\n")
    source = world.open().source

    def names(wanted: Selection) -> set[str]:
        return {issue.id for issue in source.list_issues(wanted)}

    assert names(Selection(labels=("bug",))) == {"labelled.md"}
    assert names(Selection(labels=("bug",), state="all")) == {"labelled.md", "deep/er.md"}
    assert names(Selection(labels=("bug", "iree"), state="all")) == {"labelled.md"}
    assert names(Selection(state="closed")) == {"deep/er.md"}


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from runners.workbench.run_ledger import open_run_ledger
from tests.bot.tracker.world import World
world = World(folder=Path(sys.argv[1]), out=Path(sys.argv[2]), jobs=2)
world.out.mkdir(exist_ok=True)
left = int(sys.argv[3])
def count(request):
    global left
    with (world.out / "made").open("a") as file:
        file.write(f"{request.key}\\n")
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
world.compiler.hook = count
print(world.sweep().answered)
"""


def test_a_killed_sweep_goes_on_and_records_each_run_once(world: World) -> None:
    """Killed after 1, 2, 3 … runs, until it goes through: a run is begun again only if the kill cut it off."""
    kills = 0
    for number in range(1, 60):
        words = [sys.executable, "-c", KILLED, str(world.folder), str(world.out), str(4 + 3 * (number % 5))]
        done = subprocess.run(
            words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
    assert kills >= 2
    assert world.verdicts()["mended.md"] == "fixed"
    assert len(world.verdicts()) == 4
    alone = World(folder=world.folder, out=world.out.with_name("alone"))
    alone.sweep()
    recorded, expected = (open_run_ledger(one.out / "runs.sqlite") for one in (world, alone))
    assert [_name_run(line) for line in recorded.export_lines()] == [
        _name_run(line) for line in expected.export_lines()
    ]
    # Each kill cuts off at most one run in each of the two threads.
    begun = len((world.out / "made").read_text().split())
    assert begun <= alone.compiler.made.total() + 2 * kills


def _name_run(line: bytes) -> tuple[object, ...]:
    run = json.loads(line)
    return run["key"], run["ordinal"], run["fresh"]


def test_shards_split_the_list_and_merge_to_the_whole(world: World) -> None:
    """Each issue is in one shard; the merged folder has every answer and report, and runs nothing."""
    parts = [replace(world, out=world.out.with_name(f"part-{number}")) for number in (1, 2, 3)]
    counts = [part.sweep(Selection(shard=(number, 3))).answered for number, part in enumerate(parts, 1)]
    assert counts == [2, 1, 1]
    taken = merge_answers(world.state, world.out, [(part.state, part.out) for part in parts])
    assert taken == 4
    alone = replace(world, out=world.out.with_name("alone"))
    alone.sweep()
    assert world.verdicts() == alone.verdicts()
    assert all((world.out / row.page).is_file() for row in world.state.list_rows().values())
    assert world.sweep().answered == 0


def test_a_merged_row_names_no_file_elsewhere(world: World, tmp_path: Path) -> None:
    part = replace(world, out=world.out.with_name("part"))
    part.sweep()
    (part.out / "secret.html").write_text("x")
    row = part.state.list_rows()["still.md"]
    for page in ("../part/secret.html", "issues/../secret.html", "secret.html"):
        part.state.keep_rows([msgspec.structs.replace(row, page=page, answered="9")])
        merge_answers(world.state, tmp_path / "merged", [(part.state, part.out)])
    assert not list((tmp_path / "merged").rglob("*secret*"))
