"""The files of a GitHub Actions step, its outputs and its summary: no trick has an effect, or leaves its line.

The outputs are read back as the runner reads them, the summary as GitHub renders it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from markdown_it import MarkdownIt

from bot.cli import jobs
from bot.forge.actions import ActionsStep, add_summary, read_step, set_outputs
from bot.requests.commands import render_help
from bot.requests.conversation import HandledRequest
from bot.requests.request import IgnoredEvent
from runners.core.errors import UserError
from tests.bot.forge.fake import FakeGithub
from tests.bot.requests.payloads import comment_event, issue_event
from tests.bot.requests.test_handle import CODE, ask, forge_of
from tests.hostile.payloads import CLASSES, for_each_text

pytestmark = pytest.mark.thorough

MIB = 1024 * 1024
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
EVENTS = ("issues", "issue_comment")


@contextmanager
def make_step() -> Iterator[tuple[ActionsStep, Path]]:
    """Yield a step and the folder of its files, ``output`` and ``summary``."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        yield (
            read_step({"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}),
            folder,
        )


def as_the_runner_reads(data: str) -> dict[str, str]:
    """``name=value`` lines, and blocks from ``name<<word`` to a line that is ``word``, whichever sign comes first."""
    outputs, lines = {}, iter(re.split(r"\r\n|\n|\r", data))
    for line in filter(None, lines):
        sign = re.search("=|<<", line)
        assert sign, f"the runner fails the step: {line[:80]!r}"
        value = line[sign.end() :]
        if sign[0] == "<<":
            value = "\n".join(takewhile(value.__ne__, lines))
        outputs[line[: sign.start()]] = value
    return outputs


def test_the_reader_of_outputs_can_be_fooled() -> None:
    """What a careless writer would let through does have an effect here."""
    assert as_the_runner_reads("a=x\nact=true\n") == {"a": "x", "act": "true"}
    assert as_the_runner_reads("a<<E\nx\nE\nact=true\n") == {"a": "x", "act": "true"}


@for_each_text
def test_an_output_is_one_value_or_nothing_at_all(text: str) -> None:
    """Either every output is read back as it was given, or the step stops before it has written any of them."""
    given = {"act": "false", "verdict": text, "sha256": "0" * 64}
    with make_step() as (step, folder):
        try:
            set_outputs(step, given)
        except ValueError:
            assert not (folder / "output").exists() or (folder / "output").read_bytes() == b""
        else:
            assert as_the_runner_reads((folder / "output").read_bytes().decode()) == given


@for_each_text
def test_what_is_said_of_a_request_is_plain_words(text: str) -> None:
    """Of a command, an option or a reason that is a trick, in the summary of the planning job."""
    with make_step() as (step, folder):
        for words in (f"/repro {text}", f"/repro run versions={text}", f"/repro run {text}=1", f"/repro void {text}"):
            made = asked("issue_comment", comment_event(words, by="wil"))
            add_summary(
                step, "\n\n".join((jobs.report_ignored(made) if isinstance(made, IgnoredEvent) else made).messages)
            )
        summary = (folder / "summary").read_bytes()
    assert len(summary) < MIB
    check_plain(summary.decode())


@for_each_text
def test_an_event_that_is_not_for_us_is_named_plainly(text: str) -> None:
    """An action's name too is only a claim of the event."""
    made = asked("issues", issue_event(text))
    assert isinstance(made, IgnoredEvent)
    with make_step() as (step, folder):
        add_summary(step, "\n\n".join(jobs.report_ignored(made).messages))
        check_plain((folder / "summary").read_bytes().decode())


def asked(event: str, payload: dict[str, Any]) -> HandledRequest | IgnoredEvent:
    """What becomes of it; an event that is no JSON of GitHub's (half a surrogate pair) is refused in words."""
    try:
        return ask(forge_of(), event, payload)
    except UserError as error:
        return IgnoredEvent(why=str(error))


def check_plain(summary: str) -> None:
    """Words and code spans; but for the help, which is ours from end to end."""
    tokens = MARKDOWN.parse(summary.replace(render_help(), ""))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    inner = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inner} <= {"text", "code_inline", "softbreak", "text_special"}
    assert not re.search(r"@\w", summary)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("kind", CLASSES)
def test_the_planning_step_itself(
    kind: str,
    event: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Run as in the action on an issue full of tricks: its outputs are its own, its log has no command."""
    with FakeGithub() as github:
        tricks = "\n\n".join(text.encode(errors="replace").decode() for text in CLASSES[kind] if len(text) < 10_000)
        github.open_issue(7, f"{CODE}\n\n{tricks}", title=tricks[:200])
        comment = github.say(7, "ada", f"/repro run\n/repro {tricks}"[:60_000])
        payload = issue_event("opened") if event == "issues" else comment_event(comment["body"], id=comment["id"])
        (tmp_path / "event.json").write_text(json.dumps(payload))
        step = {"GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_RUN_ID": "5"}
        files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
        for name, value in {**github.environment(), "GITHUB_REPOSITORY": github.repository, **step, **files}.items():
            monkeypatch.setenv(name, value)
        jobs.run_plan(None, tmp_path / "plan.json", None)
    outputs = as_the_runner_reads((tmp_path / "output").read_text(encoding="utf-8"))
    assert outputs.keys() == {"act", "issue", "sha256", "cells", "commits"}
    planned = (tmp_path / "plan.json").exists()
    assert planned or event == "issue_comment"  # a trick may hold commands, and speak for whoever wrote it
    assert (outputs["act"], outputs["issue"]) == ("true" if planned else "false", "7")
    assert outputs["sha256"] == (hashlib.sha256((tmp_path / "plan.json").read_bytes()).hexdigest() if planned else "")
    assert bool(json.loads(outputs["cells"])) is planned
    check_plain((tmp_path / "summary").read_text(encoding="utf-8"))
    printed = capfd.readouterr()
    for line in (printed.out + printed.err).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
