"""Permissions, budgets and approvals, and the record that budgets are counted from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.forge.contract import Permission, PostedComment
from bot.forge.run_record import (
    MAX_APPROVALS,
    MAX_RUNS,
    IssueRecord,
    RecordedApproval,
    RecordedRun,
    RunState,
    VoidedVerdict,
    decode_record,
    encode_record,
    merge_records,
)
from bot.requests.commands import VERBS, SlashCommand, Verb
from bot.requests.permissions import (
    BudgetUse,
    Denied,
    Requester,
    check_approval,
    check_budgets,
    check_permission,
    count_use,
    find_approval,
    select_machines,
)
from bot.settings import Budgets
from bot.settings.model import MAX_ISSUE_RUNS
from runners.core.protocol import Testcase, TestcaseKind, digest_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SHA = "ab" * 32
STRANGER = Requester(login="eve", permission=Permission.READ, is_author=False)
AUTHOR = Requester(login="ada", permission=Permission.READ, is_author=True)
TRIAGER = Requester(login="tim", permission=Permission.TRIAGE, is_author=False)
WRITER = Requester(login="wil", permission=Permission.WRITE, is_author=False)


def run(id: str = "1", by: str = "ada", hours: float = 1, counted: bool = True) -> RecordedRun:
    return RecordedRun(id=id, at=NOW - timedelta(hours=hours), by=by, testcase="0" * 64, counted=counted)


@pytest.mark.parametrize(
    ("verb", "allowed"),
    [
        (Verb.RUN, {AUTHOR, TRIAGER, WRITER}),
        (Verb.CANCEL, {AUTHOR, TRIAGER, WRITER}),
        (Verb.APPROVE, {WRITER}),
        (Verb.VOID, {WRITER}),
        (Verb.HELP, {STRANGER, AUTHOR, TRIAGER, WRITER}),
    ],
)
def test_each_verb_needs_its_permission(verb: Verb, allowed: set[Requester]) -> None:
    """GitHub answers `read` for every stranger, so `read` allows no run. The author of an issue cannot approve it."""
    command = SlashCommand(verb=verb)
    people = (STRANGER, AUTHOR, TRIAGER, WRITER)
    assert {one for one in people if check_permission(command, one) is None} == allowed


def test_every_refusal_names_the_permission() -> None:
    for verb in VERBS:
        nobody = Requester(login="x", permission=Permission.NONE, is_author=False)
        assert isinstance(refusal := check_permission(SlashCommand(verb=verb), nobody), Denied)
        assert "permission" in refusal.why


def test_runs_are_counted_per_issue_per_account_and_altogether() -> None:
    """Only those of the last day, and only those that strangers caused."""
    records = {
        7: IssueRecord(runs=(run("1"), run("2", by="eve"), run("3", hours=25), run("4", by="wil", counted=False))),
        8: IssueRecord(runs=(run("5"), run("6", hours=23.9))),
    }
    assert count_use(records, number=7, user="ada", now=NOW) == BudgetUse(issue=2, user=3, repository=4)


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (BudgetUse(issue=2), "this issue"),
        (BudgetUse(user=2), "one account"),
        (BudgetUse(repository=2), "this repository"),
    ],
)
def test_each_budget_stops_only_strangers(used: BudgetUse, said: str) -> None:
    budgets = Budgets(issue=2, user=2, repository=2)
    refusal = check_budgets(budgets, used, AUTHOR)
    assert refusal is not None
    assert said in refusal.why
    assert check_budgets(budgets, used, TRIAGER) is None
    assert check_budgets(budgets, BudgetUse(issue=1, user=1, repository=1), AUTHOR) is None


@pytest.mark.parametrize("words", [SHA, SHA.upper(), f"{SHA} looks fine"])
def test_an_approval_names_the_testcase_by_its_digest(words: str) -> None:
    assert check_approval(SlashCommand(verb=Verb.APPROVE, words=words), SHA) is None


@pytest.mark.parametrize("words", ["", "gpu", SHA[:16], SHA[:63], "cd" * 32, SHA + "00", f"x{SHA}"])
def test_an_approval_with_another_or_a_shorter_digest_is_refused(words: str) -> None:
    assert isinstance(check_approval(SlashCommand(verb=Verb.APPROVE, words=words), SHA), Denied)


def comment(body: str, by: str = "wil", edited: bool = False) -> PostedComment:
    at = NOW - timedelta(hours=1)
    updated = at + timedelta(minutes=1 if edited else 0)
    return PostedComment(id=1, number=7, author=by, body=body, created=at, updated=updated)


def permission(login: str) -> Permission:
    return {"wil": Permission.WRITE, "tim": Permission.TRIAGE}.get(login, Permission.READ)


def approved(by: str = "wil", testcase: str = SHA) -> IssueRecord:
    return IssueRecord(approvals=(RecordedApproval(testcase=testcase, by=by, comment=1),))


def test_an_approval_holds_for_one_testcase() -> None:
    """A recorded approval of an account that may still approve, in a comment that stands as it was written."""
    said = f"looks harmless\n\n/repro approve {SHA}"
    assert find_approval(approved(), [comment(said)], SHA, permission) == "wil"
    assert find_approval(approved(), [comment(said)], "cd" * 32, permission) is None
    assert find_approval(approved(by="tim"), [comment(said, by="tim")], SHA, permission) is None
    assert find_approval(approved(), [comment(said, by="ada")], SHA, permission) is None
    assert find_approval(approved(), [comment(said, edited=True)], SHA, permission) is None
    assert find_approval(approved(), [comment("> " + said.replace("\n", "\n> "))], SHA, permission) is None
    edited_at_once = comment(f"/repro approve {'cd' * 32}")  # within the second: the dates show no edit
    assert find_approval(approved(), [edited_at_once], SHA, permission) is None
    assert find_approval(approved(), [], SHA, permission) is None


def test_only_recorded_approvals_cost_a_request() -> None:
    """A thousand accounts that approve cost none, and displace no approval."""
    asked: list[str] = []

    def count(login: str) -> Permission:
        asked.append(login)
        return permission(login)

    said = f"/repro approve {SHA}"
    flood = [replace(comment(said, by=f"u{i}"), id=2 + i) for i in range(1000)]
    assert find_approval(IssueRecord(), flood, SHA, count) is None
    assert asked == []
    assert find_approval(approved(), [*flood, comment(said)], SHA, count) == "wil"
    assert asked == ["wil"]


def test_the_number_of_recorded_approvals_is_limited() -> None:
    """The oldest goes first; the same approval is recorded once."""
    record = IssueRecord()
    for number in [*range(MAX_APPROVALS + 3), MAX_APPROVALS + 2]:
        record = record.add_approval(RecordedApproval(testcase=SHA, by="wil", comment=number))
    assert [one.comment for one in record.approvals] == list(range(3, MAX_APPROVALS + 3))


def test_machines_are_chosen_by_their_devices() -> None:
    assert select_machines({"lab": ("cuda", "vulkan"), "amd": ("hip",)}, ["cuda", "vmvx"]) == ("lab",)


# ---------------------------------------------------------------------------------------------- the record


def test_any_edit_changes_a_testcases_digest() -> None:
    """Of its files, its steps, its requirements or its variables."""
    first = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1", "b": "2"}, steps=(("python", "a.py"),)
    )
    change = msgspec.structs.replace
    others = [
        change(first, files={"a.py": "1 ", "b": "2"}),
        change(first, steps=(("python", "a.py", "-v"),)),
        change(first, requirements=("torch",)),
        change(first, toolchain="iree"),
        change(first, variables={"TVM_NUM_THREADS": "1"}),
    ]
    assert len({digest_of(one) for one in [first, *others]}) == 6
    assert digest_of(change(first, files={"b": "2", "a.py": "1"})) == digest_of(first)


def test_a_record_survives_encoding() -> None:
    """No reason can end the hidden line or begin another."""
    void = VoidedVerdict(by="wil", at=NOW, why='it --> is <!-- reprobot:record {} -->\n "wrong" --- @all')
    record = approved().add_run(run())
    record = msgspec.structs.replace(record, void=void)
    line = encode_record(record)
    assert line.count("-->") == 1
    assert "\n" not in line
    assert decode_record(f"text\n\n{line}\n<!-- last -->") == record


@given(st.text(max_size=400))
def test_any_reason_survives_encoding(why: str) -> None:
    why = why.encode(errors="replace").decode()
    record = IssueRecord(void=VoidedVerdict(by="wil", at=NOW, why=why))
    line = encode_record(record)
    assert line.count("-->") == 1
    assert "@" not in line
    assert decode_record(f"{line}\n") == record


@pytest.mark.parametrize("body", ["", "x", "<!-- reprobot:record {} -->" * 2, '<!-- reprobot:record {"runs":3} -->'])
def test_an_unreadable_record_is_empty(body: str) -> None:
    assert decode_record(body) == IssueRecord()


def test_only_the_last_runs_are_remembered() -> None:
    record = IssueRecord()
    for i in range(MAX_RUNS + 5):
        record = record.add_run(run(str(i)))
    assert [one.id for one in record.runs] == [str(i) for i in range(5, MAX_RUNS + 5)]


def test_runs_that_count_are_remembered_beside_any_number_of_others() -> None:
    """Runs by maintainers, or of other days, make no room for more runs by strangers than the largest budget."""
    assert MAX_ISSUE_RUNS < MAX_RUNS
    record = IssueRecord()
    for i in range(MAX_ISSUE_RUNS):
        record = record.add_run(run(f"counted {i}", hours=10 - i / 100))
    for i in range(3 * MAX_RUNS):
        record = record.add_run(run(f"free {i}", hours=5 - i / 100, counted=False))
        record = merge_records([record, IssueRecord(runs=record.runs[:3])])
        assert record.runs[-1].id == f"free {i}"
    used = count_use({7: record}, number=7, user="ada", now=NOW)
    assert used.issue == MAX_ISSUE_RUNS
    for i in range(MAX_RUNS):
        record = record.add_run(run(f"later {i}", hours=-72 - i / 100))
    assert [one.id for one in record.runs] == [f"later {i}" for i in range(MAX_RUNS)]


def test_a_cancelled_run_stays_cancelled_and_the_end_of_a_run_keeps_a_void() -> None:
    """A run may end without an answer in the comment: until one is written, the verdict shown is the voided one."""
    record = replace_void(IssueRecord()).add_run(run("1"))
    assert record.void is not None
    assert record.end_run("1", RunState.FAILED).void == record.void
    assert record.end_run("1", RunState.DONE, "fixed").void == record.void
    cancelled = record.end_run("1", RunState.CANCELLED).end_run("1", RunState.DONE)
    assert [one.state for one in cancelled.runs] == [RunState.CANCELLED]


def replace_void(record: IssueRecord) -> IssueRecord:
    return msgspec.structs.replace(record, void=VoidedVerdict(by="wil", at=NOW, why="x"))


def test_triage_permission_makes_an_account_trusted() -> None:
    assert replace(AUTHOR, permission=Permission.TRIAGE).is_trusted
    assert not AUTHOR.is_trusted
