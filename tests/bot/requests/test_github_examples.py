"""GitHub's own examples of events, as published by Octokit, are read as requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.requests.conversation import HandledRequest, RequestContext
from bot.requests.handle import handle_request
from bot.requests.request import IgnoredEvent, Request, read_request
from bot.settings import load_settings
from runners.core.packages.catalogue import load_catalogue
from tests.bot.forge.npm import Package, Unavailable, cached
from tests.bot.requests.fake_forge import ME, NOW, MemoryForge, issue_of

pytestmark = pytest.mark.contract

PACKAGE = Package(
    name="@octokit/webhooks-examples@7.6.1",
    sha256="89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280",
    member="package/api.github.com/index.json",
)
CODE = "apache-tvm 0.25.0\n\n```python\nimport tvm\nassert tvm.compile is None\n```\n\n```\nAssertionError\n```\n"
ANSWERED = (("issues", "opened"), ("issues", "labeled"), ("issue_comment", "created"))

Example = tuple[str, dict[str, Any]]


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """Return every example of every event, with the event's name."""
    try:
        kinds = cached(PACKAGE, lambda kinds: kinds, "all")
    except Unavailable as why:
        pytest.skip(str(why))
    return [(kind["name"], example) for kind in kinds for example in kind["examples"]]


def request_of(event: str, payload: dict[str, Any], file: bytes = b"") -> Request | IgnoredEvent:
    data, settings = json.dumps(payload).encode(), load_settings(file)
    return read_request(event, data, settings=settings, login=ME, now=NOW, repository="octo/compiler")


def test_every_issue_or_comment_example_is_a_request_or_ignored(
    examples: list[Example],
) -> None:
    """None raises; a request has the issue, repository and account of the payload."""
    read = [(name, one, request_of(name, one)) for name, one in examples if name in ("issues", "issue_comment")]
    assert len(read) >= 20
    assert {(name, one["action"]) for name, one, _ in read} >= set(ANSWERED)
    for _, payload, request in read:
        if isinstance(request, IgnoredEvent):
            assert request.why
            continue
        assert request.repository == payload["repository"]["full_name"]
        assert request.number == payload["issue"]["number"]
        assert request.actor == payload["sender"]["login"]
    assert {str(request.trigger) for *_, request in read if isinstance(request, Request)} == {"opened"}


def test_every_other_event_is_ignored(examples: list[Example]) -> None:
    """A repository that sends all its events gets no other answers."""
    others = [
        (name, one) for name, one in examples if name not in ("issues", "issue_comment") and "repository" in one
    ]
    assert len(others) >= 100
    for name, payload in others:
        if name != "workflow_dispatch":  # a person who presses the button without an issue is told so
            assert isinstance(request_of(name, payload), IgnoredEvent), name


@pytest.mark.parametrize(("event", "action"), ANSWERED)
def test_the_answered_examples_are_planned(event: str, action: str, examples: list[Example]) -> None:
    """With a program in the issue, the label of the settings, and a command in the comment."""
    payloads = [one for name, one in examples if (name, one.get("action", "")) == (event, action)]
    assert payloads
    for payload in payloads:
        file = f"events: {{label: {json.dumps(payload.get('label', {}).get('name', 'repro'))}}}".encode()
        if "comment" in payload:
            payload = {**payload, "comment": {**payload["comment"], "body": "/repro run"}}
        request = request_of(event, payload, file)
        assert isinstance(request, Request), request
        assert request.number is not None
        assert handled(request, payload["issue"]["user"]["login"], file).sealed is not None


def handled(request: Request, author: str, file: bytes) -> HandledRequest:
    assert request.number is not None
    issue = issue_of(CODE, number=request.number, author=author)
    context = RequestContext(
        forge=MemoryForge(issues={request.number: issue}),
        settings=load_settings(file),
        catalogue=load_catalogue(),
        now=request.at,
        run_id="1.1",
        run_url="https://github.com/octo/compiler/actions/runs/1",
        repeats=False,
        attach=lambda issue: issue,
    )
    return handle_request(context, request)
