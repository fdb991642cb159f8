"""The local commands: reports, reductions, and the command line that repeats a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli.app import app
from bot.cli.verbs import minimize_testcase, reproduce_issue
from bot.issue import Issue
from bot.plan import RunOptions
from bot.report.assemble import format_command
from bot.report.comment import render_comment
from bot.verdict.verdict import VerdictKind
from runners.core.bench import Bench
from runners.core.bisection.commits import Prior
from runners.core.errors import InfraError, NotReducible, UserError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Investigation, Outcome, Plan, Smaller
from runners.core.runs import Tell
from tests.support.observed import observe

CODE = "```python\nimport tvm\nassert tvm.compile is None\n```\nAssertionError\n"


def issue(body: str) -> Issue:
    return Issue(source="my issue.md", title="It fails", body=body, sha256="0" * 64, created=date(2026, 11, 1))


class OneOutcome:
    """A bench on which every run ends the same way."""

    conditions = ("a condition",)

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        seen = tuple(
            observe(version, self.outcome, device=plan.device, ended=Exited(code=1), why="the disk is full")
            for version in plan.first
        )
        if tell is not None:
            tell(seen)
        return Investigation(observations=seen, findings=())

    def minimize(
        self, plan: Plan, version: str, *, control: str = "", passing: str = "", probes: int = 0, seconds: float = 0
    ) -> Smaller:
        return Smaller(
            testcase=plan.testcase, version=version, device=plan.device, control=control or passing,
            before=9, after=3, probes=7, seconds=1.0, confirmed=2, stopped="minimal",
        )  # fmt: skip


def no_bench() -> Bench:
    raise AssertionError("opened a sandbox for nothing")


def test_no_sandbox_is_opened_without_a_testcase() -> None:
    """Reading the issue is enough."""
    report = reproduce_issue(
        issue("nothing here"), toolchain=None, options=RunOptions(), catalogue=load_catalogue(), open_bench=no_bench
    )
    assert report.verdict.kind is VerdictKind.NO_REPRO


def test_the_answer_is_said_before_the_search_for_a_cause() -> None:
    """The same words as in the report, as far as the findings do not change them."""
    said: list[str] = []
    report = reproduce_issue(
        issue(CODE), toolchain=None, options=RunOptions(), catalogue=load_catalogue(),
        open_bench=lambda: OneOutcome(Outcome.MATCH), say=said.append,
    )  # fmt: skip
    assert said == [f"so far: {report.verdict.headline}"]


def test_our_own_failures_are_no_verdict() -> None:
    """A full disk is not "inconclusive"."""
    with pytest.raises(InfraError, match="disk is full"):
        reproduce_issue(
            issue(CODE),
            toolchain=None,
            options=RunOptions(),
            catalogue=load_catalogue(),
            open_bench=lambda: OneOutcome(Outcome.INFRA),
        )


def test_conditions_of_the_sandbox_are_noted() -> None:
    """A reader of the verdict must know them."""
    report = reproduce_issue(
        issue(CODE),
        toolchain=None,
        options=RunOptions(),
        catalogue=load_catalogue(),
        open_bench=lambda: OneOutcome(Outcome.PASS),
    )
    assert "a condition" in report.notes


def test_the_repeat_command_has_every_option_of_the_run() -> None:
    """Copied from the comment, it gives the same run."""
    options = RunOptions(
        versions=">=3.4,<3.8",
        devices=("vmvx",),
        bisect=False,
        timeout_s=30,
        sandbox="podman",
        image="localhost/reprobot-runner",
        allowed=("einx", "cv2=opencv-python"),
    )
    assert format_command(issue(CODE), "iree", options) == (
        "reprobot reproduce 'my issue.md' --toolchain iree --versions '>=3.4,<3.8' --devices vmvx --no-bisect"
        " --sandbox podman --image localhost/reprobot-runner --timeout 30 --allow einx --allow cv2=opencv-python"
    )


def test_every_option_of_the_repeat_command_exists() -> None:
    shown = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    for option in (
        "--toolchain",
        "--versions",
        "--devices",
        "--no-bisect",
        "--sandbox",
        "--image",
        "--timeout",
        "--allow",
    ):
        assert option in shown


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (["reproduce", "{issue}"], "verbs.reproduce_issue"),
        (["bisect", "{issue}", "--good", "0.26.0", "--bad", "0.27.0"], "verbs.bisect_issue"),
        (["minimize", "{issue}"], "verbs.minimize_testcase"),
        (["report", "{script}", "--toolchain", "tvm"], "bug_report.compose_bug_report"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_image_of_a_command_is_that_of_its_runs(
    words: list[str], verb: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the option or by the variable. Both the sandbox and the repeat command get it."""
    opened: list[str] = []
    asked: list[str] = []

    def open_workbench(*_words: object, **_options: object) -> object:
        opened.append(os.environ["REPROBOT_IMAGE"])
        raise UserError("no sandbox is needed here")

    def record(*given: Any, options: Any = None, open_bench: Callable[[], object], **_more: object) -> object:
        options = given[1].run if options is None else options
        asked.append(options.image)
        return open_bench()

    monkeypatch.setattr("runners.workbench.open_workbench", open_workbench)
    monkeypatch.setattr(f"bot.cli.{verb}", record)
    monkeypatch.setattr("bot.cli.context.check_cache", lambda _root: None)
    monkeypatch.setenv("REPROBOT_IMAGE", "runner:test" if way == "variable" else "")
    (tmp_path / "issue.md").write_text(CODE)
    (tmp_path / "script.py").write_text("assert False")
    named = [word.format(issue=tmp_path / "issue.md", script=tmp_path / "script.py") for word in words]
    ended = CliRunner().invoke(app, [*named, *(["--image", "runner:test"] if way == "option" else [])])
    assert (opened, asked) == (["runner:test"], ["runner:test"]), ended


def test_minimize_adds_a_smaller_testcase() -> None:
    """On the newest release that fails as reported; it is in the comment and in the repeat command."""
    report = reproduce_issue(
        issue(CODE),
        toolchain=None,
        options=RunOptions(minimize=True),
        catalogue=load_catalogue(),
        open_bench=lambda: OneOutcome(Outcome.MATCH),
    )
    assert report.smaller is not None
    assert report.smaller.version == load_catalogue().list_releases("tvm")[-1].version
    assert "Smaller testcase: 3 lines instead of 9" in render_comment(report)
    assert "--minimize" in report.command


def test_a_testcase_that_never_fails_is_not_reduced() -> None:
    """The verdict stands, and a note says why. The minimize command ends with a message and exit code 2."""
    report = reproduce_issue(
        issue(CODE),
        toolchain=None,
        options=RunOptions(minimize=True),
        catalogue=load_catalogue(),
        open_bench=lambda: OneOutcome(Outcome.PASS),
    )
    assert report.smaller is None
    assert any("no smaller testcase" in note for note in report.notes)
    with pytest.raises(NotReducible, match="no release"):
        minimize_testcase(
            issue(CODE),
            toolchain=None,
            options=RunOptions(),
            catalogue=load_catalogue(),
            open_bench=lambda: OneOutcome(Outcome.PASS),
        )


def test_an_issue_without_a_testcase_cannot_be_reduced() -> None:
    """And no sandbox is opened."""
    with pytest.raises(UserError):
        minimize_testcase(
            issue("nothing"), toolchain=None, options=RunOptions(), catalogue=load_catalogue(), open_bench=no_bench
        )
