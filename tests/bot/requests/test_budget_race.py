"""Budgets hold for jobs that run at the same time: many issues opened at once by one account."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest

from bot.forge.contract import CommentListing, Forge
from bot.forge.github import open_forge
from bot.requests.conversation import RequestContext
from bot.requests.handle import handle_request
from bot.requests.request import Request, read_request
from bot.settings import load_settings
from runners.core.packages.catalogue import load_catalogue
from tests.bot.daemon.process import CRASH
from tests.bot.forge.fake import FakeGithub

pytestmark = pytest.mark.thorough

JOBS = 24
SETTINGS = load_settings(None, {})


class Together:
    """A forge whose first look at the budgets ends at the same time in all jobs.

    With ``turns``, the jobs record their runs one after the other, the highest number of an issue first.
    """

    def __init__(self, forge: Forge, barrier: threading.Barrier, turns: Turns | None = None) -> None:
        self._forge, self._barrier, self._turns, self._is_first = forge, barrier, turns, True

    def list_changed_comments(self, *words: Any) -> CommentListing:
        listing = self._forge.list_changed_comments(*words)
        if self._is_first:
            self._is_first = False
            self._barrier.wait(60)
            if self._turns is not None:
                self._turns.mine.wait(60)
        elif self._turns is not None:
            self._turns.next.set()
        return listing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)


@dataclass(frozen=True)
class Turns:
    mine: threading.Event
    next: threading.Event


def handle_event(forge: Forge, github: FakeGithub, kind: str, payload: bytes, run: str) -> bool:
    """Return whether a run is planned."""
    now = github.now + timedelta(seconds=30)
    request = read_request(kind, payload, settings=SETTINGS, login=github.me, now=now)
    assert isinstance(request, Request)
    context = RequestContext(
        forge=forge,
        settings=SETTINGS,
        catalogue=load_catalogue(),
        now=now,
        run_id=run,
        run_url="",
        repeats=False,
        attach=lambda issue: issue,
    )
    return handle_request(context, request).sealed is not None


def open_client(github: FakeGithub) -> Forge:
    return open_forge(github.environment(), pause=lambda _: None)


def test_issues_opened_at_once_get_the_budget_and_no_more() -> None:
    """All jobs see the same issues: the first of them run. Only a run leaves our reaction, and none a comment."""
    barrier = threading.Barrier(JOBS)
    with FakeGithub() as github:
        for number in range(1, JOBS + 1):
            github.open_issue(number, CRASH, author="eve")
        events = [github.event("opened", number, by="eve") for number in range(1, JOBS + 1)]

        def plan(number: int) -> bool:
            forge = cast(Forge, Together(open_client(github), barrier))
            return handle_event(forge, github, "issues", events[number - 1], f"{number}.1")

        with ThreadPoolExecutor(JOBS) as pool:
            planned = list(pool.map(plan, range(1, JOBS + 1)))
        assert sum(planned) == SETTINGS.budgets.user
        for number, is_planned in enumerate(planned, 1):
            assert (("issue", number, "eyes") in github.reactions) is is_planned
            assert github.ours(number) == []


def test_commands_count_the_issues_that_were_opened_before() -> None:
    """Their runs have no comment yet. An issue with a comment of ours counts by its record alone."""
    with FakeGithub() as github:
        budget = SETTINGS.budgets.user
        for number in range(1, budget + 1):
            github.open_issue(number, CRASH, author="eve")
            assert handle_event(
                open_client(github), github, "issues", github.event("opened", number, by="eve"), "1.1"
            )
        comment = github.say(1, "eve", "/repro rerun")
        asked = github.event("created", 1, comment=comment, by="eve")
        assert not handle_event(open_client(github), github, "issue_comment", asked, "2.1")
        github.open_issue(budget + 1, CRASH, author="zoe")  # another account has its own budget
        event = github.event("opened", budget + 1, by="zoe")
        assert handle_event(open_client(github), github, "issues", event, "3.1")


@pytest.mark.thorough
def test_a_comment_of_ours_without_a_run_does_not_change_the_order_of_runs() -> None:
    """`/repro run` without code makes us comment, and each such comment may get its first run in any order."""
    jobs = SETTINGS.budgets.user + 4
    barrier = threading.Barrier(jobs)
    turns = [threading.Event() for _ in range(jobs + 1)]
    turns[jobs].set()
    with FakeGithub() as github:

        def ask(number: int, forge: Forge, run: str) -> bool:
            comment = github.say(number, "eve", "/repro run")
            payload = github.event("created", number, comment=comment, by="eve")
            return handle_event(forge, github, "issue_comment", payload, run)

        def ask_in_turn(number: int) -> bool:
            turn = Turns(mine=turns[number], next=turns[number - 1])
            return ask(number, cast(Forge, Together(open_client(github), barrier, turn)), f"{number}.2")

        for number in range(1, jobs + 1):
            github.open_issue(number, "apache-tvm 0.25.0 fails.", author="eve")
            assert not ask(number, open_client(github), f"{number}.1")
            assert len(github.ours(number)) == 1
            github.edit_issue(number, CRASH)
        with ThreadPoolExecutor(jobs) as pool:
            planned = list(pool.map(ask_in_turn, range(1, jobs + 1)))
    assert sum(planned) == SETTINGS.budgets.user
