"""The forge through the real PyGithub, against a fake GitHub on loopback: reading, writing once, and faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from bot.forge.contract import (
    CommentTarget,
    ForgeRefused,
    Gone,
    IssueState,
    IssueTarget,
    Permission,
    RateLimited,
    Reaction,
)
from bot.forge.github import GithubForge, open_forge, open_reader
from bot.forge.github.forge import MAX_WAIT
from bot.settings import PATH as SETTINGS_PATH
from runners.core.errors import InfraError, UserError
from tests.bot.forge.fake import NOW, REPOSITORY, FakeGithub, Fault

COMMENTS = r"/issues/7/comments$"


@pytest.fixture
def issue(github: FakeGithub) -> None:
    github.open_issue(7, "It fails.")


# ------------------------------------------------------------------------------------------------------- reading


@pytest.mark.usefixtures("issue")
def test_a_long_thread_costs_one_request_for_each_hundred_comments(github: FakeGithub, client: GithubForge) -> None:
    """PyGithub's own objects would fetch each comment again."""
    for number in range(250):
        github.say(7, "bob", f"comment {number}")
    assert [one.body for one in client.list_comments(REPOSITORY, 7)] == [f"comment {n}" for n in range(250)]
    assert len(github.log) == 3


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize(
    ("role", "permission"),
    [
        ("read", Permission.READ),
        ("triage", Permission.TRIAGE),
        ("maintain", Permission.MAINTAIN),
        ("admin", Permission.ADMIN),
        ("none", Permission.NONE),
        ("missing", Permission.NONE),
        ("release-crew", Permission.NONE),
    ],
)
def test_a_permission_is_the_role(github: FakeGithub, client: GithubForge, role: str, permission: Permission) -> None:
    """``permission`` in the answer knows only four words; an unknown account has none."""
    github.roles["bob"] = role
    assert client.fetch_permission(REPOSITORY, "bob") is permission


def test_a_login_cannot_change_the_path(github: FakeGithub, client: GithubForge) -> None:
    """An account's name is part of the URL: it cannot lead to another part of the API."""
    github.roles["ada"] = "admin"
    client.fetch_permission(REPOSITORY, "x/../ada")
    assert github.calls("GET")[-1].path.endswith("/collaborators/x/../ada/permission")  # unquoted by the server
    assert client.fetch_permission(REPOSITORY, "x/../ada") is Permission.NONE


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda github: github.delete_issue(7), "deleted"),
        (lambda github: github.hide_issue(7), "hidden"),
        (lambda github: github.transfer_issue(7, "octo/other", 3), "transferred"),
    ],
)
def test_a_missing_issue_says_how_it_went(
    github: FakeGithub, client: GithubForge, how: Callable[[FakeGithub], None], reason: str
) -> None:
    """Deleted, hidden or transferred; a transferred issue is never read in its new repository."""
    how(github)
    assert client.fetch_state(REPOSITORY, 7) == Gone(reason=reason)  # type: ignore[arg-type]  # one of the three words
    with pytest.raises(UserError):
        client.fetch_issue(REPOSITORY, 7)


def test_a_deleted_account_and_an_empty_issue_are_read(github: FakeGithub, client: GithubForge) -> None:
    """GitHub gives null for both."""
    github.open_issue(7, None)["user"] = None
    found = client.fetch_issue(REPOSITORY, 7)
    assert (found.author, found.body) == ("ghost", "")


@pytest.mark.usefixtures("issue")
def test_polling_with_an_etag_reports_an_unchanged_list(github: FakeGithub, client: GithubForge) -> None:
    """A 304 has no rows and keeps the ETag; after a change the ETag no longer matches."""
    first = client.list_changed_issues(REPOSITORY, NOW)
    assert [brief.number for brief in first.issues] == [7]
    again = client.list_changed_issues(REPOSITORY, NOW, first.etag)
    assert again.unchanged
    assert (again.etag, again.issues) == (first.etag, ())
    github.say(7, "ada", "more")
    assert not client.list_changed_issues(REPOSITORY, NOW, first.etag).unchanged
    comments = client.list_changed_comments(REPOSITORY, NOW)
    assert [one.body for one in comments.comments] == ["more"]
    assert client.list_changed_comments(REPOSITORY, NOW, comments.etag).unchanged
    assert client.list_changed_comments(REPOSITORY, github.now + timedelta(seconds=1)).comments == ()


def test_pull_requests_are_no_issues(github: FakeGithub, client: GithubForge) -> None:
    """GitHub lists them among the issues."""
    github.open_issue(8, "a change")["pull_request"] = {"url": None}
    assert client.list_changed_issues(REPOSITORY, None).issues == ()
    state = client.fetch_state(REPOSITORY, 8)
    assert isinstance(state, IssueState)
    assert state.is_pull_request


# ------------------------------------------------------------------------------------------------------- writing once


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("status", [500, 502, 503, 504, 0], ids=lambda status: f"status-{status}")
@pytest.mark.parametrize("after", [True, False], ids=["took-effect", "was-lost"])
def test_a_comment_is_written_once_after_any_failure(
    github: FakeGithub, client: GithubForge, status: int, after: bool
) -> None:
    """An error, or a broken connection, before or after the comment was stored."""
    github.faults.append(
        Fault(status=status, method="POST", path=COMMENTS, after=after, headers={"Retry-After": "0"})
    )
    posted = client.create_comment(REPOSITORY, 7, "the answer")
    assert github.ours(7) == ["the answer"]
    assert github.comments[posted.id]["body"] == "the answer"


@pytest.mark.usefixtures("issue")
def test_a_lost_comment_is_found_by_its_author_too(github: FakeGithub, client: GithubForge) -> None:
    """The same text by another account is not ours."""
    github.say(7, "mallory", "the answer")
    github.faults.append(Fault(status=502, method="POST", path=COMMENTS))
    client.create_comment(REPOSITORY, 7, "the answer")
    assert github.ours(7) == ["the answer"]


@pytest.mark.usefixtures("issue")
def test_a_forge_that_stays_down_is_an_error(github: FakeGithub, client: GithubForge) -> None:
    """After three attempts; the message names the next step."""
    github.faults.append(Fault(status=502, method="POST", path=COMMENTS, times=99))
    with pytest.raises(InfraError, match="try again later"):
        client.create_comment(REPOSITORY, 7, "the answer")
    assert len(github.calls("POST")) == 3


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({}, 60.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 1.0),
    ],
    ids=["retry-after", "secondary", "reset-is-past"],
)
def test_a_rate_limit_is_waited_for(github: FakeGithub, status: int, headers: dict[str, str], waited: float) -> None:
    """403 and 429, with and without Retry-After: one wait, then one comment."""
    pauses: list[float] = []
    client = open_forge(github.environment(), pause=pauses.append)
    said = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    github.faults.append(Fault(status=status, method="POST", path=COMMENTS, message=said, headers=headers))
    client.create_comment(REPOSITORY, 7, "the answer")
    assert pauses == [waited]
    assert github.ours(7) == ["the answer"]


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_long_rate_limit_is_an_error(github: FakeGithub, client: GithubForge, method: str) -> None:
    """An hour's wait is an error that says how long, for a read as for a write."""
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4000000000"}
    github.faults.append(
        Fault(status=403, method=method, path=COMMENTS, message="API rate limit exceeded", headers=reset, times=9)
    )
    ask: dict[str, Callable[[], object]] = {
        "POST": lambda: client.create_comment(REPOSITORY, 7, "the answer"),
        "GET": lambda: client.list_comments(REPOSITORY, 7),
    }
    with pytest.raises(InfraError, match="limit is reached"):
        ask[method]()
    assert len(github.calls(method, COMMENTS)) == 1
    assert MAX_WAIT < 3600


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("status", [403, 429, 503])
@pytest.mark.parametrize("after", ["999999", "9" * 400, "-5", "Wed, 21 Oct 2099 07:28:00 GMT", ""])
def test_a_wait_of_days_is_an_error_at_once(
    github: FakeGithub, client: GithubForge, method: str, status: int, after: str
) -> None:
    """For a read as for a write: a process that sleeps answers no other issue."""
    github.faults.append(Fault(status=status, method=method, path=COMMENTS, headers={"Retry-After": after}, times=9))
    ask: dict[str, Callable[[], object]] = {
        "POST": lambda: client.create_comment(REPOSITORY, 7, "the answer"),
        "GET": lambda: client.list_comments(REPOSITORY, 7),
    }
    began = time.monotonic()
    with pytest.raises(InfraError) as raised:
        ask[method]()
    assert time.monotonic() - began < 10
    if isinstance(raised.value, RateLimited):
        assert raised.value.wait in (999999, 60)


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("status", [404, 410])
def test_a_single_answer_that_something_is_gone_is_not_believed(
    github: FakeGithub, client: GithubForge, status: int
) -> None:
    """An issue, a permission and the settings are asked for once more."""
    github.roles["wil"] = "write"
    github.files[SETTINGS_PATH] = b"profile: tvm\n"

    def fail_once() -> None:
        github.faults.append(Fault(status=status, method="GET"))

    fail_once()
    assert isinstance(client.fetch_state(REPOSITORY, 7), IssueState)
    fail_once()
    assert client.fetch_permission(REPOSITORY, "wil") is Permission.WRITE
    fail_once()
    assert client.fetch_settings(REPOSITORY) == b"profile: tvm\n"


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize("status", [401, 403, 404, 410, 422])
def test_a_refusal_is_told_from_a_mistake_of_the_user(github: FakeGithub, client: GithubForge, status: int) -> None:
    """So that the daemon can wait for it to pass."""
    github.faults.append(Fault(status=status, method="GET", times=9, message="no"))
    with pytest.raises(ForgeRefused):
        client.list_comments(REPOSITORY, 7)


@pytest.mark.usefixtures("issue")
def test_a_failed_read_is_tried_again(github: FakeGithub, client: GithubForge) -> None:
    """Reading twice has no effect on the forge."""
    github.faults.append(Fault(status=502, method="GET", path=COMMENTS, times=2))
    assert client.list_comments(REPOSITORY, 7) == ()
    assert len(github.calls("GET", COMMENTS)) == 3


@pytest.mark.usefixtures("issue")
@pytest.mark.parametrize(
    "write",
    [
        lambda client: client.create_comment(REPOSITORY, 7, "x"),
        lambda client: client.add_reaction(REPOSITORY, IssueTarget(number=7), Reaction.EYES),
        lambda client: client.add_labels(REPOSITORY, 7, ("bug",)),
        lambda client: client.ensure_label(REPOSITORY, "new", colour="ff0000", description=""),
    ],
    ids=["comment", "reaction", "labels", "new-label"],
)
def test_a_missing_permission_is_a_user_error(
    github: FakeGithub, client: GithubForge, write: Callable[[GithubForge], object]
) -> None:
    """No second attempt; the message names the permissions."""
    github.may_write = False
    with pytest.raises(UserError, match="permissions"):
        write(client)
    assert len(github.calls("POST")) == 1


@pytest.mark.usefixtures("issue")
def test_a_locked_issue_refuses_a_comment(github: FakeGithub, client: GithubForge) -> None:
    """A user error, without a second attempt."""
    github.lock_issue(7)
    with pytest.raises(UserError):
        client.create_comment(REPOSITORY, 7, "x")
    assert len(github.calls("POST")) == 1


@pytest.mark.usefixtures("issue")
def test_a_comment_that_is_too_long_is_refused(github: FakeGithub, client: GithubForge) -> None:
    """Our comments are cut long before; no other text is written instead."""
    with pytest.raises(UserError, match="422"):
        client.create_comment(REPOSITORY, 7, "x" * 262_145)
    assert github.ours(7) == []


@pytest.mark.usefixtures("issue")
def test_reactions_and_labels_can_be_repeated(github: FakeGithub, client: GithubForge) -> None:
    """201 for the first and 200 for the second; removing a label that is not there is no error."""
    for _ in range(2):
        client.add_reaction(REPOSITORY, IssueTarget(number=7), Reaction.PLUS_ONE)
        client.ensure_label(REPOSITORY, "repro: confirmed", colour="d73a4a", description="seen here")
        client.add_labels(REPOSITORY, 7, ("repro: confirmed",))
    assert len(github.reactions) == 1
    assert client.list_labels(REPOSITORY, 7) == ("repro: confirmed",)
    for _ in range(2):
        client.remove_label(REPOSITORY, 7, "repro: confirmed")
    assert client.list_labels(REPOSITORY, 7) == ()


def test_a_label_created_by_another_job_is_no_error(github: FakeGithub, client: GithubForge) -> None:
    """Another job may create it between the check and the write."""
    client.ensure_label(REPOSITORY, "repro", colour="d73a4a", description="")
    github.faults.append(Fault(status=404, method="GET", path="/labels/", message="Not Found"))
    client.ensure_label(REPOSITORY, "repro", colour="000000", description="")
    assert github.labels["repro"]["color"] == "d73a4a"


# ------------------------------------------------------------------------------------------------------- the rest


@pytest.mark.usefixtures("issue")
def test_an_incomplete_answer_is_an_infrastructure_error(github: FakeGithub, client: GithubForge) -> None:
    """For example, one with a missing field."""
    del github.issues[7]["title"]
    with pytest.raises(InfraError, match="cannot be read"):
        client.fetch_issue(REPOSITORY, 7)


def test_settings_are_read_as_bytes_up_to_a_limit(github: FakeGithub, client: GithubForge) -> None:
    """None if there is no file."""
    assert client.fetch_settings(REPOSITORY) is None
    github.files[".github/reprobot.yml"] = b"profile: tvm\n"
    assert client.fetch_settings(REPOSITORY) == b"profile: tvm\n"
    github.files[".github/reprobot.yml"] = b"#" * 70_000
    with pytest.raises(UserError, match="no file of at most 64 KiB"):
        client.fetch_settings(REPOSITORY)


def test_writing_needs_a_valid_token(github: FakeGithub) -> None:
    """A wrong token is an error before any other request."""
    with pytest.raises(UserError, match="GITHUB_TOKEN"):
        open_forge({"GITHUB_API_URL": github.url})
    wrong = {**github.environment(), "GITHUB_TOKEN": "expired", "GITHUB_ACTIONS": ""}
    with pytest.raises(UserError, match="401"):
        open_forge(wrong)
    assert open_forge({**github.environment(), "GITHUB_ACTIONS": ""}).get_login() == github.me


@pytest.mark.usefixtures("issue")
def test_an_issue_is_read_without_a_token(github: FakeGithub) -> None:
    """`reprobot reproduce owner/repo#7` needs no account."""
    reader = open_reader({"GITHUB_API_URL": github.url, "REPROBOT_PACE": "off"})
    found = reader.fetch_issue(REPOSITORY, 7)
    assert found.source == f"{REPOSITORY}#7"


@pytest.mark.usefixtures("issue")
def test_reactions_go_to_comments_too(github: FakeGithub, client: GithubForge) -> None:
    """The acknowledgement is on the comment with the command."""
    id = github.say(7, "ada", "/repro run")["id"]
    client.add_reaction(REPOSITORY, CommentTarget(id=id), Reaction.EYES)
    assert list(github.reactions) == [("comment", id, "eyes")]
