"""From an event to the answer: the workflow's own file, a real sandbox, a real compiler, and a fake GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.suspects.commits_file import Unranked
from tests.bot.forge.fake import TOKEN, FakeGithub
from tests.flow.workflow import LEAK, Play

ROOT = Path(__file__).parents[2]
CPU = ROOT / "examples/workflows/cpu.yml"
GPU = ROOT / "examples/workflows/gpu.yml"
pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the machines of all jobs are: they share one checkout, as they would share a commit."""
    return tmp_path_factory.mktemp("machines")


@pytest.fixture(autouse=True)
def _no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks GitHub for a compiler's history."""
    file = tmp_path / "config.toml"
    file.write_text('[[builds]]\ntoolchain = "iree"\nrepository = "git://127.0.0.1:9/none"\n', encoding="utf-8")
    monkeypatch.setenv("REPROBOT_CONFIG", str(file))


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    with FakeGithub() as fake:
        yield fake


def report_of(name: str) -> tuple[str, str]:
    title, _, body = (ROOT / f"examples/issues/{name}.md").read_text(encoding="utf-8").partition("\n")
    return title.removeprefix("# "), body


def play(
    machines: Path,
    github: FakeGithub,
    event: str,
    payload: bytes,
    run_id: int,
    *,
    workflow: Path = CPU,
    **inputs: str,
) -> Play:
    made = Play(
        workflow=workflow,
        folder=machines / f"run-{run_id}",
        event=event,
        payload=payload,
        variables=github.environment(),
        inputs=inputs,
        run_id=run_id,
    )
    github.run_jobs[run_id], github.run_artifacts[run_id] = made.listed_jobs, made.listed_artifacts
    made.run()
    return made


def test_an_opened_issue_is_answered(machines: Path, github: FakeGithub) -> None:
    """The adopter's fifteen lines: four jobs, four machines; comment, labels, page, summary; no token leaks.

    The compiler's history is out of reach, and the comment says so.
    """
    title, body = report_of("unused-tensor-argument-crash")
    github.open_issue(7, body, title=title)
    run = play(machines, github, "issues", github.event("opened", 7), 101, profile="iree", versions="3.8.0,3.9.0")
    assert {name: job.result for name, job in run.jobs.items()} == dict.fromkeys(
        ["plan", "probe", "commits", "report"], "success"
    )
    assert run.jobs["report"].outputs["verdict"] == "fixed"
    (comment,) = github.ours(7)
    assert "**Already fixed**" in comment
    assert f"The commits are not listed: {Unranked.FETCH};" in comment
    assert "| `3.9.0` (2025\N{NON-BREAKING HYPHEN}11\N{NON-BREAKING HYPHEN}25) | ✅ runs cleanly" in comment
    assert [label["name"] for label in github.issues[7]["labels"]] == ["repro: fixed"]
    assert "Already fixed" in run.jobs["report"].summary
    assert "<title>" in (run.artifacts / "report" / "report.html").read_text(encoding="utf-8")
    for file in [*run.artifacts.rglob("*"), *run.folder.glob("probe-any/results/*")]:
        if file.is_file():
            assert TOKEN not in file.read_text(encoding="utf-8")
            assert LEAK not in file.read_text(encoding="utf-8")
    assert github.violations == []

    # Asked about one release only, the answer is another one, and so gets a comment of its own.
    said = github.say(7, "ada", "/repro rerun versions=3.9.0\n\n> /repro void\n")
    again = play(machines, github, "issue_comment", github.event("created", 7, comment=said), 102, profile="iree")
    assert again.jobs["report"].outputs["verdict"] == "not-reproduced"
    old, new = github.ours(7)
    assert "another verdict since" in old
    assert "Not reproduced" in new
    assert [label["name"] for label in github.issues[7]["labels"]] == ["repro: not reproduced"]


def test_an_issue_without_code_starts_no_machine(machines: Path, github: FakeGithub) -> None:
    """And gets no word."""
    github.open_issue(7, "How do I build it with CUDA?", title="$(id) `id` ${{ github.token }} ::error::x\n")
    run = play(machines, github, "issues", github.event("opened", 7), 103)
    assert [job.result for job in run.jobs.values()] == ["success", "skipped", "skipped", "skipped"]
    assert github.ours(7) == []


def test_what_is_no_command_costs_no_machine(machines: Path, github: FakeGithub) -> None:
    """The adopter's own condition stops it: not even a planning job."""
    github.open_issue(7, "x")
    said = github.say(7, "eve", "It fails here too.")
    run = play(machines, github, "issue_comment", github.event("created", 7, comment=said), 105)
    assert {name: job.result for name, job in run.jobs.items()} == {"repro": "skipped"}


def test_a_machine_of_ones_own_runs_what_was_approved(machines: Path, github: FakeGithub) -> None:
    """The template: first without it, then, with a maintainer's word for this very text, on it as well.

    The machine here has Vulkan in software, which needs no card and no approval elsewhere.
    """
    title, body = report_of("unused-tensor-argument-crash")
    github.open_issue(7, body, title=title)
    github.roles["wil"] = "write"
    github.files[".github/reprobot.yml"] = (
        b"toolchain: iree\nversions: 3.9.0\ndevices: [vulkan]\nmachines: {lab: [vulkan]}\n"
    )
    first = play(machines, github, "issues", github.event("opened", 7), 106, workflow=GPU)
    assert {name: job.result for name, job in first.jobs.items()} == {
        "plan": "success",
        "probe": "success",
        "probe-lab": "skipped",
        "commits": "success",
        "report": "success",
    }
    (comment,) = github.ours(7)
    assert "`vulkan`" not in comment
    asked = re.search(r"/repro approve ([0-9a-f]{64})", comment)
    assert asked is not None
    stranger = github.say(7, "ada", f"/repro approve {asked[1]}")
    refused = play(machines, github, "issue_comment", github.event("created", 7, comment=stranger), 107, workflow=GPU)
    assert refused.jobs["probe-lab"].result == "skipped"
    word = github.say(7, "wil", f"/repro approve {asked[1]}")
    payload = github.event("created", 7, comment=word, by="wil")
    second = play(machines, github, "issue_comment", payload, 108, workflow=GPU)
    assert {job.result for job in second.jobs.values()} == {"success"}
    assert any("`vulkan`" in body for body in github.ours(7))


def test_results_that_were_tampered_with_are_no_verdict(machines: Path, github: FakeGithub) -> None:
    """A guest that escaped wrote a result of its own: the job is red and says why; an unasked run posts nothing."""
    title, body = report_of("unused-tensor-argument-crash")
    github.open_issue(7, body, title=title)
    made = Play(
        workflow=CPU,
        folder=machines / "run-104",
        event="issues",
        payload=github.event("opened", 7),
        variables=github.environment(),
        inputs={"versions": "3.9.0", "profile": "iree"},
        run_id=104,
    )
    github.run_jobs[104], github.run_artifacts[104] = made.listed_jobs, made.listed_artifacts
    upload = made._upload

    def tampered(given: dict[str, str], work: Path) -> int:
        if given["name"] == "cell-any":
            path = work / given["path"]
            result = json.loads(path.read_text(encoding="utf-8"))
            result["seen"]["observations"][0] |= {"version": "3.13.0"}
            path.write_text(json.dumps(result), encoding="utf-8")
        return upload(given, work)

    made._upload = tampered  # type: ignore[method-assign,assignment]  # the one place where the outside reaches in
    jobs = made.run()
    assert jobs["report"].result == "failure"
    assert "through no fault of the testcase" in jobs["report"].summary
    assert "release that was not planned" in jobs["report"].summary
    assert github.ours(7) == []
    assert github.issues[7]["labels"] == []
