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
from types import MappingProxyType

from bot.forge.contract import Permission, PostedComment
from bot.forge.run_record import IssueRecord, RecordedRun
from bot.requests.commands import VERBS, SlashCommand, Verb, read_commands
from bot.settings import Budgets

DAY = timedelta(hours=24)


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


def count_use(
    records: Mapping[int, IssueRecord],
    *,
    number: int,
    user: str,
    now: datetime,
    unrecorded: Mapping[int, str] = MappingProxyType({}),
) -> BudgetUse:
    """Count the runs of the last day, from the records of all issues that changed within that day.

    ``unrecorded`` has the issues with one more run, which no comment records, and their authors.
    """
    recent = [
        (issue, run)
        for issue, record in records.items()
        for run in record.runs
        if run.counted and _is_recent(run, now)
    ]
    return BudgetUse(
        issue=sum(issue == number for issue, _ in recent) + (number in unrecorded),
        user=sum(run.by == user for _, run in recent) + sum(author == user for author in unrecorded.values()),
        repository=len(recent) + len(unrecorded),
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


_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def check_approval(command: SlashCommand, testcase: str) -> Denied | None:
    """Return a refusal if an ``approve`` does not name this testcase by its whole sha256, ``testcase``.

    A prefix is refused: a stranger can make a harmless and a harmful testcase that share 16 digits in an hour.
    """
    word = command.words.split(" ", 1)[0].lower()
    if _DIGEST.fullmatch(word) is None:
        return Denied(why="an approval names the testcase by all 64 digits of its sha256; fewer are not accepted")
    if word != testcase:
        return Denied(why="that is not the testcase as it stands now: look at it again, then approve this one")
    return None


def is_approved(commands: Iterable[SlashCommand], testcase: str) -> bool:
    """True if one of the commands approves this testcase. The account's permission is checked elsewhere."""
    return any(one.verb is Verb.APPROVE and check_approval(one, testcase) is None for one in commands)


def find_approval(
    record: IssueRecord,
    comments: Iterable[PostedComment],
    testcase: str,
    fetch_permission: Callable[[str], Permission],
) -> str | None:
    """Return a maintainer whose recorded approval of this testcase is valid; None without one.

    The comments alone are not enough. Each account that approves costs a request for its permission, so their number
    needs a limit, and strangers could use up this limit. The record contains only accounts that may approve.
    """
    standing = {one.id: one for one in comments if one.updated <= one.created}  # a maintainer can edit any comment
    candidates: dict[str, None] = {}
    for approval in record.approvals:
        comment = standing.get(approval.comment)
        if approval.testcase != testcase or comment is None or comment.author != approval.by:
            continue
        if is_approved(read_commands(comment.body).commands, testcase):
            candidates.setdefault(approval.by)
    needs = VERBS[Verb.APPROVE].needs
    return next((login for login in candidates if fetch_permission(login) >= needs), None)


def select_machines(machines: Mapping[str, Sequence[str]], devices: Iterable[str]) -> tuple[str, ...]:
    """Return the machines that have one of these devices, in the order of the settings."""
    needed = set(devices)
    return tuple(name for name, available in machines.items() if needed & set(available))
