"""List a tracker of 20,000 issues and pull requests: ``python -m bench.tracker.big_forge``.

The forge is a server on loopback, the client is the real one. A rate limit strikes in the middle of the list. The
listed issues are compared with the ones that the server holds, and the requests with those that the server counted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.forge.github import open_reader
from bot.tracker.sources import GithubSource, Selection
from bot.tracker.state import open_tracker_state
from tests.bot.forge.fake import NOW, REPOSITORY, FakeGithub, Fault
from tests.bot.forge.objects import stamp

COUNT = 20_000
LIMITED_AT = 7
"""Number of the request that meets the rate limit."""


def fill_tracker(github: FakeGithub) -> None:
    """Open the issues: six of ten are pull requests, one of ten issues is open, one of fifty has a label."""
    for number in range(1, COUNT + 1):
        issue = github.open_issue(number, f"It fails, number {number}.", title=f"Failure {number}")
        issue["created_at"] = issue["updated_at"] = stamp(NOW - timedelta(hours=COUNT - number))
        issue["state"] = "open" if number % 10 == 3 else "closed"
        issue["labels"] = [{"name": "wrong result"}] if number % 50 == 3 else []
        if number % 5 in (0, 1, 2) and number % 10 != 3:
            issue["pull_request"] = {"url": "x"}


def list_numbers(source: GithubSource, wanted: Selection) -> list[int]:
    return [int(issue.id) for issue in source.list_issues(wanted)]


def find_expected(github: FakeGithub, wanted: Selection) -> list[int]:
    return [
        number
        for number in range(COUNT, 0, -1)
        for issue in (github.issues[number],)
        if "pull_request" not in issue or issue["pull_request"] is None
        if wanted.state in ("all", issue["state"])
        if set(wanted.labels) <= {label["name"] for label in issue["labels"]}
        if wanted.since is None or issue["updated_at"] >= stamp(wanted.since)
    ]


def main() -> int:
    reset = int(datetime.now(UTC).timestamp()) + 1_800
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
    waited: list[float] = []
    with FakeGithub() as github, tempfile.TemporaryDirectory() as folder:
        fill_tracker(github)
        forge = open_reader({"GITHUB_API_URL": github.url, "REPROBOT_PACE": "off"})
        source = GithubSource(
            name=REPOSITORY,
            forge=forge,
            pages=open_tracker_state(Path(folder) / "tracker.sqlite"),
            count_requests=forge.count_requests,
            pause=waited.append,
            log=lambda _: None,
        )
        limit = Fault(403, path="/issues$", message="API rate limit exceeded", headers=headers)
        github.hook = lambda number, after: (
            github.faults.append(limit) if number == LIMITED_AT and not after else None
        )
        selections = {
            "open": Selection(),
            "open, again": Selection(),
            "open, with a label": Selection(labels=("wrong result",)),
            "changed in the last 100 days": Selection(state="all", since=NOW - timedelta(days=100)),
            "all": Selection(state="all"),
        }
        wrong = 0
        for title, wanted in selections.items():
            before, began, pauses = len(github.log), time.monotonic(), len(waited)
            found = list_numbers(source, wanted)
            right = found == find_expected(github, wanted)
            wrong += not right
            sys.stdout.write(
                f"{title}: {len(found)} issues, {'as on the server' if right else 'WRONG'}, "
                f"{len(github.log) - before} requests, {len(waited) - pauses} rate limits waited for, "
                f"{time.monotonic() - began:.1f} s\n"
            )
        counted, served = forge.count_requests(), len(github.log)
        sys.stdout.write(f"requests: {counted} counted, {served} served\n")
        offline = replace(source, name=f"{REPOSITORY}-none")
        try:
            list_numbers(offline, Selection())
        except Exception as error:
            sys.stdout.write(f"no such repository: {type(error).__name__}: {error}\n")
        return int(bool(wrong) or counted != served or len(waited) != 1)


if __name__ == "__main__":
    raise SystemExit(main())
