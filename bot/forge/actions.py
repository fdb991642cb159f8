"""GitHub Actions as seen from a step: its files, its variables, and the machine-readable lines it wants.

Outputs are single-line JSON or plain words of ours, so that no delimiter can be guessed; the job summary gets the
Markdown that was made safe for comments. What a step prints is read by the runner for commands: nothing here prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.report.quote import cut
from bot.settings import INPUTS
from runners.core.errors import UserError

MAX_SUMMARY = 1024 * 1024 - 4096
"""GitHub drops a step's summary of more than 1 MiB, whole."""
_INPUT = "REPROBOT_INPUT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The variables of one step that are used; empty where it runs elsewhere."""

    event: str
    event_path: str
    repository: str
    run_id: str
    """Run and attempt: unique also when a failed run is started again."""
    run_url: str
    output: str
    summary: str
    inputs: Mapping[str, str]


def step_of(environment: Mapping[str, str]) -> Step:
    """The step that this process is."""
    get = environment.get
    run, repository = get("GITHUB_RUN_ID", ""), get("GITHUB_REPOSITORY", "")
    server = get("GITHUB_SERVER_URL", "https://github.com")
    return Step(
        event=get("GITHUB_EVENT_NAME", ""),
        event_path=get("GITHUB_EVENT_PATH", ""),
        repository=repository,
        run_id=f"{run}.{get('GITHUB_RUN_ATTEMPT', '1')}" if run else "",
        run_url=f"{server}/{repository}/actions/runs/{run}" if run else "",
        output=get("GITHUB_OUTPUT", ""),
        summary=get("GITHUB_STEP_SUMMARY", ""),
        inputs={name: get(_INPUT + name.upper().replace("-", "_"), "") for name in INPUTS},
    )


def read_event(step: Step) -> bytes:
    """The event's JSON.

    Raises:
        UserError: this is no step of GitHub Actions.
    """
    if not step.event or not step.event_path:
        raise UserError("there is no event here (GITHUB_EVENT_NAME, GITHUB_EVENT_PATH): name an issue instead")
    try:
        return Path(step.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"the event in {step.event_path} cannot be read: {error.strerror}") from None


def set_outputs(step: Step, values: Mapping[str, str]) -> None:
    """Outputs of the step; a name or a value that could spill into another line is a bug of ours."""
    for name, value in values.items():
        if not re.fullmatch(r"[a-z0-9-]+", name) or re.search(r"[\r\n\x00]", value):
            raise ValueError(f"the output {name!r} is more than one line")
    if step.output:
        with Path(step.output).open("a", encoding="utf-8") as file:
            file.write("".join(f"{name}={value}\n" for name, value in values.items()))


def add_summary(step: Step, markdown: str) -> None:
    """Add to the page of the job."""
    if step.summary:
        data = cut(markdown, MAX_SUMMARY // 4) + "\n"
        with Path(step.summary).open("a", encoding="utf-8") as file:
            file.write(data)
