"""From a tag to a verdict: an empty repository commits the README's file with a release's pin, and gets an answer."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.forge.fake import FakeGithub
from tests.flow.workflow import ROOT, Play, copy_project, run_git
from tests.support.repository import make_repository

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
TAG = f"v{VERSION}"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of this project in which the working tree is tagged as its next release."""
    place = tmp_path_factory.mktemp("released") / "reprobot"
    copy_project(place)
    log = place / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("## Unreleased", f"## {VERSION}", 1), encoding="utf-8")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "Release"),
        ("tag", TAG),
    ):
        run_git("-C", str(place), *words)
    return place


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    with FakeGithub() as fake:
        yield fake


def test_the_tag_can_be_released(released: Path) -> None:
    """Tag, version and changelog agree, and the notes are not empty."""
    notes = subprocess.run(
        ["bash", "tools/release.sh", TAG], cwd=released, capture_output=True, text=True, check=True
    ).stdout
    assert notes.strip()


def test_a_tag_answers_an_issue_of_an_empty_repository(released: Path, github: FakeGithub, tmp_path: Path) -> None:
    """With nothing but the README's file, in which owner and pin are filled in.

    The jobs share a folder, as on a machine that keeps it: only the first installs the project.
    """
    commit = run_git("-C", str(released), "rev-parse", TAG)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"```yaml\n(# \.github/workflows/repro\.yml.*?)\n```\n", readme, re.DOTALL)
    chosen = written.replace("1" * 40, commit).replace("OWNER/", "octo/")
    chosen = chosen.replace("profile: tvm", "profile: iree\n      versions: '3.8.0,3.9.0'")
    adopter = make_repository(tmp_path / "adopter").path
    (adopter / ".github/workflows").mkdir(parents=True)
    workflow = adopter / ".github/workflows/repro.yml"
    workflow.write_text(chosen, encoding="utf-8")
    title, _, body = (
        (ROOT / "examples/issues/unused-tensor-argument-crash.md").read_text(encoding="utf-8").partition("\n")
    )
    github.open_issue(7, body, title=title.removeprefix("# "))
    run = Play(
        workflow=workflow,
        folder=tmp_path / "run",
        event="issues",
        payload=github.event("opened", 7),
        variables=github.environment(),
        run_id=201,
        released=released,
    )
    github.run_jobs[201], github.run_artifacts[201] = run.listed_jobs, run.listed_artifacts
    jobs = run.run()
    assert jobs["report"].outputs["verdict"] == "fixed"
    assert [name for name, job in jobs.items() if "installing requirements.run.lock" in job.log] == ["plan"]
    assert len(github.ours(7)) == 1
    assert (run.checkout / "CHANGELOG.md").read_text(encoding="utf-8").find(f"## {VERSION}") > 0
