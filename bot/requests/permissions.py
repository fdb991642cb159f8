"""Who may: permissions, budgets, approvals. Pure functions of what the forge and our own comments say.

Whoever has triage permission may run testcases; others only on an issue they opened, within budgets, and on machines
without anything precious. A machine that needs approval (a GPU, usually) runs a testcase only after a maintainer
approved exactly this testcase by its sha256: an edit afterwards makes another testcase of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.forge.contract import Permission, PostedComment
from bot.forge.run_record import Record, Run
from bot.requests.commands import VERBS, Command, Verb, read_commands
from bot.settings import Budgets

DAY = timedelta(hours=24)
MIN_DIGEST = 12
"""Hexadecimal digits that an approval names at least: 48 bits, which nobody finds a second testcase for."""
MAX_APPROVERS = 10
"""Accounts whose permission is asked for, for one decision: each costs a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an account is to an issue."""

    login: str
    permission: Permission
    author: bool

    @property
    def trusted(self) -> bool:
        """Triage and above. ``read`` is nothing: GitHub answers it for every stranger on a public repository."""
        return self.permission >= Permission.TRIAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Counted runs of the last 24 hours."""

    issue: int = 0
    user: int = 0
    repository: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """``why`` is a sentence of ours, without foreign words."""

    why: str


def may_say(command: Command, standing: Standing) -> Denied | None:
    """Whether this account may give this command on this issue."""
    spec = VERBS[command.verb]
    if standing.permission >= spec.needs or (spec.own and standing.author):
        return None
    least = f"{spec.needs.name.lower()} permission"
    whose = f"the issue's author or somebody with {least}" if spec.own else f"somebody with {least}"
    return Denied(why=f"`/repro {command.verb}` is for {whose}")


def spent(records: Mapping[int, Record], *, number: int, user: str, now: datetime) -> Spent:
    """What was spent, from the records of all issues that changed within a day."""
    recent = [
        (issue, run) for issue, record in records.items() for run in record.runs if run.counted and _recent(run, now)
    ]
    return Spent(
        issue=sum(issue == number for issue, _ in recent),
        user=sum(run.by == user for _, run in recent),
        repository=len(recent),
    )


def _recent(run: Run, now: datetime) -> bool:
    return now - DAY < run.at <= now + timedelta(minutes=5)  # clocks differ


def within(budgets: Budgets, spent: Spent, standing: Standing) -> Denied | None:
    """Whether one more run is within the budgets; those with permission have none."""
    if standing.trusted:
        return None
    if spent.issue >= budgets.issue:
        return Denied(why=f"this issue has had its {budgets.issue} runs for today; a maintainer may run it again")
    if spent.user >= budgets.user:
        return Denied(why=f"the {budgets.user} runs that one account may cause in a day are used up")
    if spent.repository >= budgets.repository:
        return Denied(why="the runs that this repository allows in a day are used up")
    return None


# ---------------------------------------------------------------------------------------------- approvals


_DIGEST = re.compile(rf"[0-9a-f]{{{MIN_DIGEST},64}}", re.ASCII)


def approves(command: Command, testcase: str) -> Denied | None:
    """Whether an ``approve`` names this testcase (its full sha256)."""
    word = command.words.split(" ", 1)[0].lower()
    if _DIGEST.fullmatch(word) is None:
        return Denied(why=f"an approval names the testcase by the first {MIN_DIGEST} or more digits of its sha256")
    if not testcase.startswith(word):
        return Denied(why="that is not the testcase as it stands now: look at it again, then approve this one")
    return None


def approvers(comments: Iterable[PostedComment], testcase: str) -> tuple[str, ...]:
    """Accounts that approved this testcase in a comment nobody edited since, in order; not yet who may."""
    found: dict[str, None] = {}
    for comment in comments:
        if comment.updated > comment.created:
            continue  # an edited comment may be another's words: GitHub lets maintainers edit what others wrote
        commands = read_commands(comment.body).commands
        if any(c.verb is Verb.APPROVE and approves(c, testcase) is None for c in commands):
            found.setdefault(comment.author)
    return tuple(found)[:MAX_APPROVERS]


def approved(comments: Iterable[PostedComment], testcase: str, permission: Callable[[str], Permission]) -> str | None:
    """The maintainer whose approval of this testcase stands; None without one."""
    needs = VERBS[Verb.APPROVE].needs
    return next((login for login in approvers(comments, testcase) if permission(login) >= needs), None)


def machines_for(machines: Mapping[str, Sequence[str]], devices: Iterable[str]) -> tuple[str, ...]:
    """The machines that have one of these devices, in the order of the settings."""
    wanted = set(devices)
    return tuple(name for name, has in machines.items() if wanted & set(has))
