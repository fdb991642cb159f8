"""Decide on permissions, budgets and approvals, from the forge's answers and our own comments. Pure.

An account with triage permission may run testcases. Other accounts may do so only on issues that they opened, within
budgets, and on ordinary machines. A machine that needs approval (usually one with a GPU) runs a testcase only after a
maintainer approved exactly this testcase by its sha256. An edit makes another testcase, which needs a new approval.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.forge.contract import Permission, PostedComment
from bot.forge.run_record import IssueRecord, RecordedRun
from bot.requests.commands import VERBS, SlashCommand, Verb, read_commands
from bot.settings import Budgets

DAY = timedelta(hours=24)
MIN_DIGEST = 12
"""Least hexadecimal digits in an approval: 48 bits, about 2^48 attempts for a second testcase with these digits."""
MAX_APPROVERS = 10
"""Accounts whose permission is looked up for one decision: each costs a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The account behind a request, and its rights on the issue."""

    login: str
    permission: Permission
    is_author: bool
    """True if the account opened the issue."""

    @property
    def is_trusted(self) -> bool:
        """True from triage permission on. Every stranger on a public repository has ``read``."""
        return self.permission >= Permission.TRIAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """Counted runs of the last 24 hours."""

    issue: int = 0
    user: int = 0
    repository: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A refusal. ``why`` is our own sentence, without words of strangers."""

    why: str


def check_permission(command: SlashCommand, requester: Requester) -> Denied | None:
    """Return a refusal if this account may not give this command on this issue."""
    spec = VERBS[command.verb]
    if requester.permission >= spec.needs or (spec.own and requester.is_author):
        return None
    least = f"{spec.needs.name.lower()} permission"
    whose = f"the issue's author or somebody with {least}" if spec.own else f"somebody with {least}"
    return Denied(why=f"`/repro {command.verb}` is for {whose}")


def count_use(records: Mapping[int, IssueRecord], *, number: int, user: str, now: datetime) -> BudgetUse:
    """Count the runs of the last day, from the records of all issues that changed within that day."""
    recent = [
        (issue, run)
        for issue, record in records.items()
        for run in record.runs
        if run.counted and _is_recent(run, now)
    ]
    return BudgetUse(
        issue=sum(issue == number for issue, _ in recent),
        user=sum(run.by == user for _, run in recent),
        repository=len(recent),
    )


def _is_recent(run: RecordedRun, now: datetime) -> bool:
    return now - DAY < run.at <= now + timedelta(minutes=5)  # clocks differ


def check_budgets(budgets: Budgets, used: BudgetUse, requester: Requester) -> Denied | None:
    """Return a refusal if one more run exceeds a budget. A trusted account has no budget."""
    if requester.is_trusted:
        return None
    if used.issue >= budgets.issue:
        return Denied(why=f"this issue has had its {budgets.issue} runs for today; a maintainer may run it again")
    if used.user >= budgets.user:
        return Denied(why=f"the {budgets.user} runs that one account may cause in a day are used up")
    if used.repository >= budgets.repository:
        return Denied(why="the runs that this repository allows in a day are used up")
    return None


# ---------------------------------------------------------------------------------------------- approvals


_DIGEST = re.compile(rf"[0-9a-f]{{{MIN_DIGEST},64}}", re.ASCII)


def check_approval(command: SlashCommand, testcase: str) -> Denied | None:
    """Return a refusal if an ``approve`` does not name this testcase. ``testcase`` is its full sha256."""
    word = command.words.split(" ", 1)[0].lower()
    if _DIGEST.fullmatch(word) is None:
        return Denied(why=f"an approval names the testcase by the first {MIN_DIGEST} or more digits of its sha256")
    if not testcase.startswith(word):
        return Denied(why="that is not the testcase as it stands now: look at it again, then approve this one")
    return None


def find_approvers(comments: Iterable[PostedComment], testcase: str) -> tuple[str, ...]:
    """Return the accounts whose unedited comments approve this testcase, in order, with or without permission."""
    found: dict[str, None] = {}
    for comment in comments:
        if comment.updated > comment.created:
            continue  # maintainers can edit comments of other accounts, so the words may not be the author's
        commands = read_commands(comment.body).commands
        if any(c.verb is Verb.APPROVE and check_approval(c, testcase) is None for c in commands):
            found.setdefault(comment.author)
    return tuple(found)[:MAX_APPROVERS]


def find_approval(
    comments: Iterable[PostedComment], testcase: str, fetch_permission: Callable[[str], Permission]
) -> str | None:
    """Return the first maintainer whose approval of this testcase stands; None without one."""
    needs = VERBS[Verb.APPROVE].needs
    return next((login for login in find_approvers(comments, testcase) if fetch_permission(login) >= needs), None)


def select_machines(machines: Mapping[str, Sequence[str]], devices: Iterable[str]) -> tuple[str, ...]:
    """Return the machines that have one of these devices, in the order of the settings."""
    needed = set(devices)
    return tuple(name for name, available in machines.items() if needed & set(available))
