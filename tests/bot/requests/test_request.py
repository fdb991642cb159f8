"""Events: which of them are requests."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bot.requests.commands import Verb
from bot.requests.request import IgnoredEvent, Request, Trigger, read_request
from bot.settings import Settings, load_settings
from runners.core.errors import UserError
from tests.bot.requests.payloads import ME, comment_event, dispatch_event, issue_event

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def read(event: str, payload: dict[str, Any], settings: Settings | None = None) -> Request | IgnoredEvent:
    data = json.dumps(payload).encode()
    return read_request(event, data, settings=settings or Settings(), login=ME, now=NOW, repository="octo/compiler")


def changed(payload: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(payload)
    *outer, last = path.split(".")
    place = made
    for part in outer:
        place = place[part]
    place[last] = value
    return made


def test_an_opened_issue_is_a_run_for_its_author() -> None:
    """No person asked, so an issue without a testcase gets no answer."""
    request = read("issues", issue_event("opened"))
    assert isinstance(request, Request)
    assert (request.trigger, request.number, request.actor) == (Trigger.OPENED, 7, "ada")
    assert [command.verb for command in request.commands] == [Verb.RUN]
    assert not request.asked


def test_a_comment_is_a_request_with_its_commands() -> None:
    request = read("issue_comment", comment_event("Hello\n\n/repro rerun timeout=9\n/repro rnu"))
    assert isinstance(request, Request)
    assert (request.trigger, request.comment, request.actor) == (Trigger.COMMENT, 4242, "ada")
    assert [command.verb for command in request.commands] == [Verb.RERUN]
    assert len(request.mistakes) == 1


def test_only_the_configured_label_is_a_request() -> None:
    labelled = issue_event("labeled") | {"label": {"name": "repro"}}
    request = read("issues", labelled)
    assert isinstance(request, Request)
    assert request.trigger is Trigger.LABELED
    assert request.asked
    other = load_settings(b"events: {label: again}")
    assert isinstance(read("issues", labelled, other), IgnoredEvent)


def test_a_workflow_dispatch_is_a_rerun_of_the_named_issue() -> None:
    request = read("workflow_dispatch", dispatch_event({"issue": "#12", "versions": "latest", "devices": ""}))
    assert isinstance(request, Request)
    assert (request.trigger, request.number) == (Trigger.DISPATCH, 12)
    assert dict(request.commands[0].options) == {"versions": "latest"}


def test_a_scheduled_event_names_no_issue() -> None:
    """GitHub sends only the schedule with it."""
    request = read("schedule", {"schedule": "17 3 * * *"})
    assert isinstance(request, Request)
    assert (request.trigger, request.number, request.repository) == (Trigger.SCHEDULE, None, "octo/compiler")


@pytest.mark.parametrize(
    ("event", "payload", "settings", "why"),
    [
        ("issues", changed(issue_event("opened"), "sender", {"login": ME, "type": "Bot"}), b"", "ourselves"),
        ("issues", changed(issue_event("opened"), "sender.type", "Bot"), b"", "bot account"),
        ("issues", changed(issue_event("opened"), "sender.type", "Mannequin"), b"", "mannequin account"),
        ("issues", changed(issue_event("opened"), "issue.locked", True), b"", "locked"),
        ("issues", changed(issue_event("opened"), "issue.pull_request", {"url": "…"}), b"", "pull request"),
        ("issues", issue_event("opened"), b"events: {opened: false}", "events.opened"),
        ("issues", issue_event("opened"), b"events: {only: ['type: crash']}", "events.only"),
        ("issues", issue_event("opened"), b"events: {skip: [question, bug]}", "events.skip"),
        ("issues", issue_event("edited"), b"events: {edited: false}", "events.edited"),
        ("issues", issue_event("edited"), b"events: {skip: [bug]}", "events.skip"),
        ("issues", changed(issue_event("edited"), "issue.state", "closed"), b"", "closed"),
        ("issue_comment", comment_event("```\nx\n```"), b"events: {replies: false}", "events.replies"),
        ("issue_comment", comment_event("```\nx\n```"), b"events: {only: [crash]}", "events.only"),
        ("issue_comment", comment_event("```\nx\n```", by="eve"), b"", "no command"),
        ("issue_comment", changed(comment_event("```\nx\n```"), "issue.state", "closed"), b"", "closed"),
        ("issues", issue_event("edited") | {"changes": {"title": {"from": "x"}}}, b"", "left"),
        ("issues", issue_event("closed"), b"", "closed"),
        ("issue_comment", comment_event("no command"), b"", "no command"),
        ("issue_comment", comment_event("/repro run") | {"action": "edited"}, b"", "edited"),
        ("issue_comment", comment_event("/repro run") | {"action": "deleted"}, b"", "deleted"),
        ("issue_comment", changed(comment_event("/repro run"), "comment.user.type", "Bot"), b"", "bot account"),
        ("issue_comment", changed(comment_event("/repro run"), "issue.pull_request", {}), b"", "pull request"),
        ("push", issue_event("opened"), b"", "not for us"),
    ],
)
def test_other_events_are_ignored_with_a_reason(
    event: str, payload: dict[str, Any], settings: bytes, why: str
) -> None:
    """Without a request there is no comment, no run and no reaction."""
    ignored = read(event, payload, load_settings(settings))
    assert isinstance(ignored, IgnoredEvent)
    assert why in ignored.why


def test_an_edit_of_the_text_and_code_of_the_author_are_requests_that_nobody_made() -> None:
    """The edit carries the text before."""
    edit = read("issues", issue_event("edited") | {"changes": {"body": {"from": "x"}}})
    assert isinstance(edit, Request)
    assert (edit.trigger, edit.former, edit.asked) == (Trigger.EDITED, "x", False)
    reply = read("issue_comment", comment_event("Here:\n```\nx\n```"))
    assert isinstance(reply, Request)
    assert (reply.trigger, reply.comment, reply.asked) == (Trigger.REPLY, 4242, False)


@pytest.mark.parametrize("issue", ["", "x", "0", "-1", "1; id", "9" * 12])
def test_a_workflow_dispatch_without_an_issue_is_refused(issue: str) -> None:
    with pytest.raises(UserError, match="number of an issue"):
        read("workflow_dispatch", dispatch_event({"issue": issue}))


@given(st.binary(max_size=400))
def test_any_bytes_are_an_event_or_a_user_error(payload: bytes) -> None:
    with suppress(UserError):
        read_request("issues", payload, settings=Settings(), login=ME, now=NOW, repository="octo/compiler")


def test_deep_nesting_is_refused() -> None:
    """The decoder's own limit is a user error too."""
    with pytest.raises(UserError):
        read_request("issues", b'{"issue":' * 100_000, settings=Settings(), login=ME, now=NOW)
