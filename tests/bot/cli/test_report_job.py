"""The job that answers: whatever a result file breaks in it, the issue gets an answer, and the log the traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.cli import jobs
from bot.report.files import WrittenReport
from tests.bot.requests.fake_forge import MemoryForge
from tests.bot.requests.test_handle import forge_of, opened, says

BUG = "secret words of a traceback"


def fail(*_: Any, **__: Any) -> None:
    raise RecursionError(BUG)


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a step's outputs, without a run to prove the results' origin."""
    for name in (*jobs.TOKENS, "GITHUB_RUN_ID", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


def report(forge: MemoryForge, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the job on a plan that a command asked for."""
    sealed = says(forge, "wil", "/repro run").sealed
    assert sealed is not None
    plan = folder / "plan.json"
    plan.write_bytes(sealed.data)
    monkeypatch.setattr(jobs, "open_forge", lambda _: forge)
    jobs.run_report(plan, sealed.sha256, folder / "results", json=None, html=None, comment=None)


@pytest.mark.parametrize("step", ["read_results", "read_ranking", "judge_results", "save_report", "deliver_report"])
def test_a_bug_in_judging_is_answered(
    step: str, outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comment says that there is no answer, and nothing of the exception. The job fails with it."""
    forge = forge_of()
    monkeypatch.setattr(jobs, step, fail)
    if step in ("save_report", "deliver_report"):
        monkeypatch.setattr(jobs, "judge_results", lambda *_, **__: None)
        if step == "deliver_report":
            monkeypatch.setattr(jobs, "save_report", lambda *_: WrittenReport(comment="", problems=()))
    with pytest.raises(RecursionError, match=BUG):
        report(forge, tmp_path, monkeypatch)
    (body,) = forge.ours()
    assert "The run did not come to an end" in body
    assert BUG not in body
    assert "**Running**" not in body
    assert outputs.read_text(encoding="utf-8").splitlines() == ["verdict=", "comment-url="]


def test_an_unasked_run_that_meets_a_bug_posts_nothing(
    outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for its answer. The job fails all the same."""
    forge = forge_of()
    sealed = opened(forge)
    (tmp_path / "plan.json").write_bytes(sealed.data)
    monkeypatch.setattr(jobs, "open_forge", lambda _: forge)
    monkeypatch.setattr(jobs, "judge_results", fail)
    with pytest.raises(RecursionError):
        jobs.run_report(tmp_path / "plan.json", sealed.sha256, tmp_path, json=None, html=None, comment=None)
    assert forge.ours() == []
    assert outputs.exists()
