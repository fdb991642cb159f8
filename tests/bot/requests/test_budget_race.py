"""Budgets hold for jobs that run at the same time: many issues opened at once by one account."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

from bot.forge.contract import CommentListing, Forge
from bot.forge.github import open_forge
from bot.forge.sticky_comment import parse_sticky_comment
from bot.requests.conversation import RequestContext
from bot.requests.handle import handle_request
from bot.requests.request import Request, read_request
from bot.settings import load_settings
from runners.core.catalogue import load_catalogue
from tests.bot.daemon.process import CRASH
from tests.bot.forge.fake import FakeGithub

JOBS = 24


class Together:
    """A forge whose first look at the budgets ends at the same time in all jobs."""

    def __init__(self, forge: Forge, barrier: threading.Barrier) -> None:
        self._forge, self._barrier, self._is_first = forge, barrier, True

    def list_changed_comments(self, *words: Any) -> CommentListing:
        listing = self._forge.list_changed_comments(*words)
        if self._is_first:
            self._is_first = False
            self._barrier.wait(60)
        return listing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)


def test_issues_opened_at_once_get_the_budget_and_no_more() -> None:
    """All jobs see an unused budget at first. A withdrawn run leaves no "Running"."""
    settings, catalogue = load_settings(None, {}), load_catalogue()
    barrier = threading.Barrier(JOBS)
    with FakeGithub() as github:
        for number in range(1, JOBS + 1):
            github.open_issue(number, CRASH, author="eve")
        events = [json.loads(github.event("opened", number, by="eve")) for number in range(1, JOBS + 1)]
        now = github.now + timedelta(seconds=30)

        def plan(number: int) -> bool:
            forge = cast(Forge, Together(open_forge(github.environment(), pause=lambda _: None), barrier))
            payload = json.dumps(events[number - 1]).encode()
            request = read_request("issues", payload, settings=settings, login=github.me, now=now)
            assert isinstance(request, Request)
            context = RequestContext(
                forge=forge,
                settings=settings,
                catalogue=catalogue,
                now=now,
                run_id=f"{number}.1",
                run_url="",
                attach=lambda issue: issue,
            )
            return handle_request(context, request).sealed is not None

        with ThreadPoolExecutor(JOBS) as pool:
            planned = list(pool.map(plan, range(1, JOBS + 1)))
        assert sum(planned) == settings.budgets.user
        for number, is_planned in enumerate(planned, 1):
            notes = [parse_sticky_comment(body) for body in github.ours(number)]
            assert any("**Running**" in one.note for one in notes) is is_planned
            assert sum(len(one.record.runs) for one in notes) == is_planned
