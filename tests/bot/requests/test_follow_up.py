"""Edits of an issue and replies of its author that bring code, on a forge in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.issue import Comment
from bot.requests.conversation import HandledRequest
from bot.requests.request import IgnoredEvent
from bot.verdict.verdict import VerdictKind
from tests.bot.requests.fake_forge import MemoryForge, issue_of
from tests.bot.requests.payloads import comment_event, issue_event
from tests.bot.requests.test_handle import CODE, OTHER, answered, ask, case_of, forge_of, opened, says, unanswered

LACKING = CODE.replace("assert tvm.compile is None", "mod = make_module(3)\ntvm.compile(mod)")
DEFINITION = "Sorry, here it is:\n\n```python\ndef make_module(n):\n    return tvm.ir.IRModule({})\n```\n"
PROGRAM = "A shorter one:\n\n```python\nimport tvm\ntvm.compile(tvm.ir.IRModule({}))\n```\n"


def edited(forge: MemoryForge, body: str, *, run: str = "e.1", file: bytes = b"") -> HandledRequest | IgnoredEvent:
    """Edit the issue, as a webhook says it: with the text before."""
    former = forge.issues[7].body
    forge.issues[7] = replace(issue_of(body), comments=forge.issues[7].comments)
    event = issue_event("edited", body=body) | {"changes": {"body": {"from": former}}}
    return ask(forge, "issues", event, run=run, file=file)


def replied(
    forge: MemoryForge, body: str, *, by: str = "ada", run: str = "r.1", file: bytes = b""
) -> HandledRequest | IgnoredEvent:
    comment = forge.say(7, by, body)
    issue = forge.issues[7]
    forge.issues[7] = replace(issue, comments=(*issue.comments, Comment(author=by, body=body)))
    return ask(forge, "issue_comment", comment_event(body, by=by, id=comment.id), run=run, file=file)


def planned(handled: HandledRequest | IgnoredEvent) -> Any:
    assert isinstance(handled, HandledRequest), handled
    assert handled.sealed is not None, handled.messages
    return handled.sealed


def is_silent(forge: MemoryForge, handled: HandledRequest | IgnoredEvent, writes: int) -> bool:
    return forge.writes == writes and (isinstance(handled, IgnoredEvent) or handled.sealed is None)


def test_a_request_for_a_missing_part_is_answered_by_a_reply() -> None:
    """The whole conversation: the request names the part, the author's reply brings it, the verdict is new."""
    forge = forge_of(LACKING)
    ask(forge, "issues", issue_event("opened"))
    (request,) = forge.ours()
    assert "the definition of `make_module`" in request
    assert "a run starts by itself" in request
    sealed = planned(replied(forge, DEFINITION))
    assert "def make_module" in case_of(sealed).plan.testcase.files["repro.py"]
    answered(forge, sealed)
    assert "**Confirmed" in forge.ours()[-1]
    assert "was edited after" not in forge.ours()[-1]
    assert says(forge, "ada", "/repro run", run="9.1").sealed is None  # the same testcase: it has its answer


def test_a_request_for_a_missing_part_is_answered_by_an_edit() -> None:
    forge = forge_of(LACKING)
    ask(forge, "issues", issue_event("opened"))
    sealed = planned(edited(forge, CODE))
    answered(forge, sealed)
    assert "**Confirmed" in forge.ours()[-1]


def test_code_that_an_issue_lacked_is_run_when_its_author_adds_it() -> None:
    """The issue had no code, so it got no comment."""
    forge = forge_of("apache-tvm 0.25.0: it crashes, see below.\n\n```\nFatal Python error: Aborted\n```\n")
    ask(forge, "issues", issue_event("opened"))
    assert forge.writes == 0
    assert planned(replied(forge, PROGRAM))


@pytest.mark.parametrize("body", [f"{CODE}\nThanks!", CODE.replace("```python", "~~~python")])
def test_an_edit_that_leaves_the_testcase_starts_nothing(body: str) -> None:
    """Also while the first run is under way, which has no comment."""
    forge = forge_of()
    opened(forge)
    if "~~~" in body:
        body = body.replace("None\n```", "None\n~~~", 1)
    assert is_silent(forge, edited(forge, body), 0)
    assert planned(edited(forge, OTHER))


def test_an_edit_of_an_answered_testcase_runs_the_new_one() -> None:
    forge = forge_of()
    answered(forge, opened(forge))
    sealed = planned(edited(forge, OTHER))
    assert "is not tvm.compile" in case_of(sealed).plan.testcase.files["repro.py"]


def test_code_after_an_answer_is_a_workaround_until_somebody_asks() -> None:
    """After a verdict that leaves the matter open, a whole program of the author is run in place of the issue's."""
    forge = forge_of()
    answered(forge, opened(forge))
    writes = forge.writes
    assert is_silent(forge, replied(forge, PROGRAM), writes)
    open_question = forge_of()
    asked = says(open_question, "ada", "/repro run").sealed
    assert asked is not None
    unanswered(open_question, asked, VerdictKind.UNTESTABLE)
    sealed = planned(replied(open_question, PROGRAM))
    assert "IRModule({})" in case_of(sealed).plan.testcase.files["repro.py"]


def test_only_the_authors_code_is_read() -> None:
    forge = forge_of(LACKING)
    ask(forge, "issues", issue_event("opened"))
    assert isinstance(replied(forge, DEFINITION, by="eve"), IgnoredEvent)
    writes = forge.writes
    assert is_silent(forge, replied(forge, "Thanks, I will look for it: `make_module`."), writes)


@pytest.mark.parametrize("file", [b"events: {replies: false}", b"events: {edited: false}"])
def test_follow_ups_can_be_switched_off(file: bytes) -> None:
    forge = forge_of(LACKING)
    handled = replied(forge, DEFINITION, file=file) if b"replies" in file else edited(forge, CODE, file=file)
    assert isinstance(handled, IgnoredEvent)


@pytest.mark.parametrize("file", [b"events: {replies: false}", b"events: {edited: false}"])
def test_a_request_promises_no_run_that_the_settings_forbid(file: bytes) -> None:
    forge = forge_of(LACKING)
    ask(forge, "issues", issue_event("opened"), file=file)
    (request,) = forge.ours()
    assert "by itself" not in request
    assert "then `/repro run` starts a run" in request


def test_replies_count_against_the_budgets() -> None:
    """Each new testcase is one run."""
    forge = forge_of(LACKING)
    file = b"budgets: {issue: 2}"
    for number in range(3):
        body = CODE.replace("None", f"'{number}'")
        handled = edited(forge, body, run=f"{number}.1", file=file)
        assert isinstance(handled, HandledRequest)
        if number:
            assert (handled.sealed is not None) is (number < 2)
        if handled.sealed is not None:
            answered(forge, handled.sealed)
    assert not any("runs for today" in body for body in forge.ours())  # nobody asked, so nobody is told
