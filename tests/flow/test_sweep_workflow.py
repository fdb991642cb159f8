"""A sweep on GitHub: the example workflow's three jobs, real sandboxes, a real compiler, and a fake GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.tracker.state import open_tracker_state
from tests.bot.forge.fake import TOKEN, FakeGithub
from tests.flow.workflow import LEAK, Play

ROOT = Path(__file__).parents[2]
SWEEP = ROOT / "examples/workflows/sweep.yml"
pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    """Two issues about IREE, which two releases tell apart, and a question."""
    title, _, body = (ROOT / "examples/issues/unused-tensor-argument-crash.md").read_text().partition("\n")
    with FakeGithub() as fake:
        fake.files[".github/reprobot.yml"] = b"toolchain: iree\nversions: 3.8.0,3.9.0\n"
        fake.open_issue(7, body, title=title.removeprefix("# "))
        fake.open_issue(8, f"{body}\n\nThanks!\n", title=title.removeprefix("# "))
        fake.open_issue(9, "How do I build it with CUDA?", title="A question")
        yield fake


def play(place: Path, github: FakeGithub, run_id: int, *, last: int = 0, workflow: Path = SWEEP) -> Play:
    made = Play(
        workflow=workflow,
        folder=place / f"run-{run_id}",
        event="schedule",
        payload=b"{}",
        variables=github.environment(),
        run_id=run_id,
        said={"last": {"run": str(last)}} if last else {},
        earlier={str(last): place / f"run-{last}/artifacts"},
    )
    github.run_jobs[run_id], github.run_artifacts[run_id] = made.listed_jobs, made.listed_artifacts
    made.run()
    return made


def test_a_sweep_is_planned_run_in_shards_and_merged(github: FakeGithub, tmp_path: Path) -> None:
    """Then again without a change, and again with a token that posts."""
    first = play(tmp_path, github, 301)
    assert {name: job.result for name, job in first.jobs.items()} == dict.fromkeys(
        ["plan", "probe", "report"], "success"
    ), "\n".join(job.log[-2000:] for job in first.jobs.values())
    assert len(json.loads(first.jobs["plan"].outputs["cells"])["any"]) == 2
    tracker = first.artifacts / "tracker"
    rows = open_tracker_state(tracker / "tracker.sqlite").list_rows()
    assert {id: row.verdict for id, row in rows.items()} == {"7": "fixed", "8": "fixed", "9": "no-claim"}
    assert "Issues × releases" in (tracker / "index.html").read_text(encoding="utf-8")
    assert [call for kind in ("POST", "PATCH", "PUT", "DELETE") for call in github.calls(kind)] == []
    for file in [path for path in first.folder.rglob("*") if path.is_file() and path.name != "event.json"]:
        assert LEAK.encode() not in file.read_bytes()
        assert TOKEN.encode() not in file.read_bytes()

    second = play(tmp_path, github, 302, last=301)
    assert {name: job.result for name, job in second.jobs.items()} == {
        "plan": "success",
        "probe": "skipped",
        "report": "success",
    }
    assert "3 unchanged" in second.jobs["report"].log

    posting = tmp_path / "posting.yml"
    posting.write_text(SWEEP.read_text(encoding="utf-8").replace('post: "false"', 'post: "true"'), encoding="utf-8")
    third = play(tmp_path, github, 303, last=302, workflow=posting)
    assert third.jobs["report"].result == "success", third.jobs["report"].log[-2000:]
    assert [len(github.ours(number)) for number in (7, 8, 9)] == [1, 1, 0]
    assert "**Already fixed**" in github.ours(7)[0]
    assert [label["name"] for label in github.issues[7]["labels"]] == ["repro: fixed"]
    assert github.violations == []
