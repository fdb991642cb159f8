"""Which events get past the condition in an adopter's file, before any machine is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bot.requests.payloads import comment_event, issue_event
from tests.flow.expressions import evaluate

ROOT = Path(__file__).parents[2]
CONDITIONS = {
    path.stem: next(iter(workflow["jobs"].values()))["if"]
    for path in sorted((ROOT / "examples/workflows").glob("*.yml"))
    if "issues" in (workflow := yaml.safe_load(path.read_text(encoding="utf-8")))[True]  # YAML 1.1 reads `on` as true
}


def on_pull_request(body: str) -> dict[str, Any]:
    event = comment_event(body)
    return event | {"issue": event["issue"] | {"pull_request": {"url": "x"}}}


@pytest.mark.parametrize("file", CONDITIONS)
@pytest.mark.parametrize(
    ("name", "event", "passes"),
    [
        ("issues", issue_event("opened"), True),
        ("issue_comment", comment_event("/repro run"), True),
        ("issue_comment", comment_event("Thanks!\n\n/repro run"), True),
        ("issue_comment", comment_event("Thanks!"), False),
        ("issue_comment", comment_event(""), False),
        ("issue_comment", on_pull_request("/repro run"), False),
    ],
)
def test_only_what_may_hold_a_command_starts_a_machine(
    file: str, name: str, event: dict[str, Any], passes: bool
) -> None:
    """Comments are many: those without a command cost nothing."""
    assert bool(evaluate(CONDITIONS[file], {"github": {"event_name": name, "event": event}})) is passes


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a.b == 'x' && !c", True),
        ("a.b != 'x' || c", False),
        ("(a.b == 'y' || a.b == 'x') && a.nothing == ''", True),
        ("fromJSON(d).any", ["one"]),
        ("fromJSON(d).lab", ""),
        ("always() && contains(a.b, 'X')", True),
    ],
)
def test_expressions_mean_what_they_mean_on_github(expression: str, value: object) -> None:
    """So that a test of a workflow is one."""
    assert evaluate(expression, {"a": {"b": "x"}, "c": False, "d": '{"any": ["one"]}'}) == value
