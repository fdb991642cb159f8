"""``reprobot sweep`` and ``ledger`` as they are called, over issues that need no compiler."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli.app import app
from bot.cli.commands import tracker
from runners.core.errors import UserError
from runners.workbench.run_ledger import open_run_ledger
from tests.bot.forge.fake import REPOSITORY, FakeGithub
from tests.runners.workbench.test_run_ledger import ASKED, Machine, investigate


@pytest.fixture
def issues(tmp_path: Path) -> Path:
    folder = tmp_path / "issues"
    folder.mkdir()
    (folder / "slow.md").write_text("# How fast is it?\n\nI cannot find a number.\n")
    (folder / "old.md").write_text("---\nstate: closed\n---\n# Is there a release?\n\nI found none.\n")
    return folder


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_folder_becomes_a_dashboard(issues: Path, tmp_path: Path) -> None:
    done = call("sweep", issues, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 no-claim" in done.stderr
    assert "slow.md" in (tmp_path / "out/index.html").read_text()
    assert json.loads((tmp_path / "out/sweep.json").read_text())["answered"] == 1
    again = call("sweep", issues, "--out", tmp_path / "out", "--state", "all")
    assert "2 issues: 1 answered, 0 failed, 1 unchanged" in again.stderr


def test_estimate_writes_no_report(issues: Path, tmp_path: Path) -> None:
    done = call("sweep", issues, "--out", tmp_path / "out", "--estimate")
    assert "1 issues to answer (1 new issue)" in done.stderr
    assert not (tmp_path / "out/index.html").exists()


def test_nothing_selected_is_an_error(issues: Path, tmp_path: Path) -> None:
    done = call("sweep", issues, "--out", tmp_path / "out", "--label", "none")
    assert isinstance(done.exception, UserError)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/999", "a/b"])
def test_a_faulty_shard_is_refused(issues: Path, tmp_path: Path, shard: str) -> None:
    assert isinstance(call("sweep", issues, "--out", tmp_path / "out", "--shard", shard).exception, UserError)


def test_shards_are_merged(issues: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        call("sweep", issues, "--state", "all", "--shard", f"{number}/2", "--out", tmp_path / str(number))
    done = call("sweep", issues, "--merge", tmp_path / "1", "--merge", tmp_path / "2", "--out", tmp_path / "all")
    assert "2 answers merged" in done.stderr
    assert len(json.loads((tmp_path / "all/issues.json").read_text())["issues"]) == 2
    assert isinstance(call("sweep", issues, "--merge", issues, "--out", tmp_path / "all").exception, UserError)


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (["--plans", "p", "--post"], "--post has no effect with --plans"),
        (["--estimate", "--post"], "--post has no effect with --estimate"),
        (["--merge", "m", "--post"], "--post has no effect with --merge"),
        (["--merge", "m", "--label", "bug"], "--label has no effect with --merge"),
        (["--plans", "p", "--results", "r"], "--results has no effect with --plans"),
        (["--plans", "p", "--duplicates"], "--duplicates has no effect with --plans"),
        (["--results", "r", "--duplicates"], "--duplicates has no effect with --results"),
        (["--shards", "4"], "--shards has no effect with a sweep"),
    ],
)
def test_an_option_without_an_effect_is_refused(issues: Path, tmp_path: Path, words: list[str], ignored: str) -> None:
    done = call("sweep", issues, "--out", tmp_path / "out", *words)
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith(ignored)
    assert not (tmp_path / "out").exists()


def test_every_name_of_an_ignored_option_is_one() -> None:
    """A misspelt name would refuse nothing."""
    known = set(inspect.signature(tracker.run_sweep).parameters)
    assert set(tracker._IGNORED) | set().union(*tracker._IGNORED.values()) <= known


def test_a_tracker_that_only_has_closed_issues_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty tracker is none."""
    with FakeGithub() as github:
        for name, value in github.environment().items():
            monkeypatch.setenv(name, value)
        assert call("sweep", REPOSITORY, "--out", tmp_path / "empty").exit_code == 0
        github.open_issue(1, "What is new?")["state"] = "closed"
        assert isinstance(call("sweep", REPOSITORY, "--out", tmp_path / "out").exception, UserError)
        github.open_issue(2, "What is next?")
        done = call("sweep", REPOSITORY, "--out", tmp_path / "out")
        assert "1 answered" in done.stderr
        assert {request.method for request in github.log} == {"GET"}


def test_a_ledger_is_copied(tmp_path: Path) -> None:
    investigate(open_run_ledger(tmp_path / "a.sqlite"), Machine())(ASKED)
    assert "1 runs" in call("ledger", "export", tmp_path / "a.sqlite", "--out", tmp_path / "lines").stderr
    assert "1 runs added" in call("ledger", "import", tmp_path / "b.sqlite", tmp_path / "lines").stderr
    assert call("ledger", "export", tmp_path / "b.sqlite").stdout == (tmp_path / "lines").read_text()
    assert isinstance(call("ledger", "export", tmp_path / "none.sqlite").exception, UserError)
