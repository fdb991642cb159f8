"""A step of GitHub Actions: read its variables and event, write its outputs and summary.

Outputs are single-line JSON or our own words, so that a stranger's text cannot guess a delimiter. The job summary
gets Markdown that was made safe for comments. This module prints no text: the runner reads a step's output for
commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.report.quote import cut_end
from bot.settings import INPUTS
from runners.core.errors import UserError

MAX_SUMMARY = 1024 * 1024 - 4096
"""Size limit. GitHub drops the whole summary of a step if it is larger than 1 MiB."""
_INPUT = "REPROBOT_INPUT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionsStep:
    """Variables of one step. Each is empty outside GitHub Actions."""

    event: str
    event_path: str
    repository: str
    run_id: str
    """Run and attempt: unique also if a failed run is started again."""
    run_url: str
    output: str
    summary: str
    inputs: Mapping[str, str]


def read_step(environment: Mapping[str, str]) -> ActionsStep:
    """Return the step that this process runs in."""
    get = environment.get
    run, repository = get("GITHUB_RUN_ID", ""), get("GITHUB_REPOSITORY", "")
    server = get("GITHUB_SERVER_URL", "https://github.com")
    return ActionsStep(
        event=get("GITHUB_EVENT_NAME", ""),
        event_path=get("GITHUB_EVENT_PATH", ""),
        repository=repository,
        run_id=f"{run}.{get('GITHUB_RUN_ATTEMPT', '1')}" if run else "",
        run_url=f"{server}/{repository}/actions/runs/{run}" if run else "",
        output=get("GITHUB_OUTPUT", ""),
        summary=get("GITHUB_STEP_SUMMARY", ""),
        inputs={name: get(_INPUT + name.upper().replace("-", "_"), "") for name in INPUTS},
    )


def read_event(step: ActionsStep) -> bytes:
    """Return the event's JSON.

    Raises:
        UserError: this process is not a step of GitHub Actions, or the event's file cannot be read.
    """
    if not step.event or not step.event_path:
        raise UserError("there is no event here (GITHUB_EVENT_NAME, GITHUB_EVENT_PATH): name an issue instead")
    try:
        return Path(step.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"the event in {step.event_path} cannot be read: {error.strerror}") from None


def set_outputs(step: ActionsStep, values: Mapping[str, str]) -> None:
    """Write outputs of the step.

    Raises:
        ValueError: a name or value could spill into another line, which is a bug of ours.
    """
    for name, value in values.items():
        if not re.fullmatch(r"[a-z0-9-]+", name) or re.search(r"[\r\n\x00]", value):
            raise ValueError(f"the output {name!r} is more than one line")
    if step.output:
        with Path(step.output).open("a", encoding="utf-8") as file:
            file.write("".join(f"{name}={value}\n" for name, value in values.items()))


def add_summary(step: ActionsStep, markdown: str) -> None:
    """Append to the summary on the job's page."""
    if step.summary:
        data = cut_end(markdown, MAX_SUMMARY // 4) + "\n"
        with Path(step.summary).open("a", encoding="utf-8") as file:
            file.write(data)
