"""The bot's requests and the fake's answers are as GitHub describes its API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.forge.contract import CommentTarget, IssueTarget, Reaction
from bot.forge.github import fetch_workflow_run, open_forge
from bot.forge.workflow_run import refuse_unproven
from tests.bot.forge import contract, objects
from tests.bot.forge.fake import NOW, REPOSITORY, FakeGithub
from tests.bot.forge.npm import Unavailable

pytestmark = pytest.mark.contract


@pytest.fixture(scope="session")
def described() -> contract.Contract:
    try:
        return contract.load()
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture
def checked(described: contract.Contract) -> Iterator[FakeGithub]:
    with FakeGithub(checker=described) as server:
        yield server
        assert server.violations == []


def test_every_call_of_the_contract_is_as_described(checked: FakeGithub) -> None:
    """Calls each method of the forge once; no request and no answer contradicts the description."""
    checked.open_issue(7, "It fails.")
    checked.roles["ada"] = "maintain"
    checked.files[".github/reprobot.yml"] = b"profile: iree\n"
    client = open_forge({**checked.environment(), "GITHUB_ACTIONS": ""})
    client.fetch_issue(REPOSITORY, 7)
    client.fetch_state(REPOSITORY, 7)
    client.fetch_permission(REPOSITORY, "ada")
    posted = client.create_comment(REPOSITORY, 7, "**Confirmed.**")
    client.edit_comment(REPOSITORY, posted.id, "**Already fixed.**")
    client.add_reaction(REPOSITORY, IssueTarget(number=7), Reaction.EYES)
    for reaction in Reaction:
        client.add_reaction(REPOSITORY, CommentTarget(id=posted.id), reaction)
    for target in (IssueTarget(number=7), CommentTarget(id=posted.id)):
        assert client.has_reaction(REPOSITORY, target, Reaction.EYES)
        client.remove_reaction(REPOSITORY, target, Reaction.EYES)
        assert not client.has_reaction(REPOSITORY, target, Reaction.EYES)
    client.ensure_label(REPOSITORY, "repro: confirmed", colour="d73a4a", description="The failure was seen here")
    client.ensure_label(REPOSITORY, "repro: confirmed", colour="d73a4a", description="The failure was seen here")
    client.add_labels(REPOSITORY, 7, ("repro: confirmed",))
    client.list_labels(REPOSITORY, 7)
    client.list_labelled_issues(REPOSITORY, "repro: confirmed")
    client.remove_label(REPOSITORY, 7, "repro: confirmed")
    client.fetch_settings(REPOSITORY)
    client.list_comments(REPOSITORY, 7)
    client.list_changed_issues(REPOSITORY, None)
    client.list_changed_comments(REPOSITORY, NOW)
    step = objects.workflow_step("Upload the result", 1, "success", NOW, NOW)
    checked.run_jobs[5] = [objects.workflow_job(checked.url, REPOSITORY, 5, "probe (any)", NOW, [step])]
    checked.run_artifacts[5] = [objects.artifact(checked.url, REPOSITORY, "cell-any", NOW)]
    assert refuse_unproven(["any"], fetch_workflow_run(client, REPOSITORY, "5")) == {}
    client.delete_comment(REPOSITORY, posted.id)
    client.delete_comment(REPOSITORY, posted.id)
    sent = {(call.method, call.path) for call in checked.log if call.method != "GET"}
    assert len(sent) == 10
    assert {call.status for call in checked.log} <= {200, 201, 204, 404}


def test_the_check_can_fail(described: contract.Contract) -> None:
    """On a body of the wrong type, a missing field, and an unknown parameter or path."""
    repo = "/repos/{owner}/{repo}"
    comments = f"{repo}/issues/{{issue_number}}/comments"
    assert described.request("POST", comments, {}, {"body": "fine"}) == []
    assert described.request("POST", comments, {}, {"body": 1})
    assert described.request("POST", comments, {}, {})
    assert described.request("GET", comments, {"sort_of": "x"}, None)
    assert described.request("DELETE", comments, {}, None)
    assert described.response("POST", comments, 201, {"id": 1})
    assert described.request("POST", f"{repo}/issues/{{issue_number}}/labels", {}, ["a bare array"])
    assert described.request("POST", f"{repo}/issues/{{issue_number}}/reactions", {}, {"content": "shrug"})
