"""From a request to replies and a plan, and from results to an answer, on a forge in memory."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from bot.forge.contract import (
    MAX_COMMENTS,
    MAX_RECENT,
    CommentTarget,
    Forge,
    Gone,
    IssueTarget,
    Permission,
    PostedComment,
    Reaction,
)
from bot.forge.run_record import RunState
from bot.forge.sticky_comment import read_records
from bot.issue import GHOST, Comment
from bot.report.comment import MAX_BYTES
from bot.requests.conversation import HandledRequest, RequestContext
from bot.requests.deliver import deliver_failure, deliver_report
from bot.requests.handle import handle_request
from bot.requests.plan_file import Case, SealedPlan, decode_case, judge_results
from bot.requests.request import IgnoredEvent, read_request
from bot.requests.result_files import JobResults, RefusedResult
from bot.settings import load_settings
from bot.verdict.verdict import Report, VerdictKind, make_verdict
from runners.core.errors import InfraError
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Investigation, Outcome, Signalled, Smaller
from tests.bot.requests.fake_forge import ME, REPOSITORY, MemoryForge, issue_of
from tests.bot.requests.payloads import comment_event, dispatch_event, issue_event
from tests.support.observed import observe

CODE = (
    "apache-tvm 0.25.0\n\n```python\nimport tvm\nassert tvm.compile is None\n```\n\n"
    "```\nRuntimeError: the module is broken\n```\n"
)
CHECKED = CODE.replace("RuntimeError: the module is broken", "AssertionError")
OTHER = CODE.replace("is None", "is not tvm.compile")


def forge_of(body: str = CODE, **more: Any) -> MemoryForge:
    people = {"wil": Permission.WRITE, "tim": Permission.TRIAGE}
    return MemoryForge(issues={7: issue_of(body)}, permissions=people, **more)


def ask(
    forge: MemoryForge,
    event: str,
    payload: dict[str, Any],
    *,
    run: str = "1.1",
    file: bytes = b"",
    repeats: bool = False,
) -> HandledRequest | IgnoredEvent:
    settings = load_settings(file)
    keeps: Forge = forge
    data = json.dumps(payload).encode()
    request = read_request(event, data, settings=settings, login=ME, now=forge.now, repository=REPOSITORY)
    if isinstance(request, IgnoredEvent):
        return request
    return handle_request(replace(make_context(keeps, forge, run, file), repeats=repeats), request)


def make_context(keeps: Forge, forge: MemoryForge, run: str, file: bytes) -> RequestContext:
    return RequestContext(
        forge=keeps,
        settings=load_settings(file),
        catalogue=load_catalogue(),
        now=forge.now,
        run_id=run,
        run_url=f"https://github.com/{REPOSITORY}/actions/runs/{run.partition('.')[0]}",
        repeats=False,
        attach=lambda issue: issue,
    )


def opened(forge: MemoryForge, **more: Any) -> SealedPlan:
    handled = ask(forge, "issues", issue_event("opened"), **more)
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is not None, handled.messages
    return handled.sealed


def says(forge: MemoryForge, who: str, text: str, **more: Any) -> HandledRequest:
    comment = forge.say(7, who, text)
    handled = ask(forge, "issue_comment", comment_event(text, by=who, id=comment.id), **more)
    assert isinstance(handled, HandledRequest)
    return handled


def case_of(sealed: SealedPlan) -> Case:
    return decode_case(read_plan(sealed.data, sealed.sha256))


def seen(case: Case, outcome: Outcome, *versions: str) -> JobResults:
    """Return results in which every release ended the same way, except that ``versions`` passed."""
    observations = []
    for version in case.plan.first:
        how = Outcome.PASS if version in versions else outcome
        ended = Exited(code=0) if how is Outcome.PASS else Signalled(code=6)
        observations += [
            observe(version, how, device=case.plan.device, attempt=attempt, ended=ended) for attempt in (1, 2)
        ]
    return JobResults(seen=Investigation(observations=tuple(observations)))


def answered(forge: MemoryForge, sealed: SealedPlan, outcome: Outcome = Outcome.MATCH, *passing: str) -> Report:
    case = case_of(sealed)
    report = judge_results(case, seen(case, outcome, *passing), load_catalogue())
    deliver_report(forge, case, report)
    return report


# ---------------------------------------------------------------------------------------------- from event to answer


EYES_ON_ISSUE = (IssueTarget(number=7), Reaction.EYES)


def test_an_opened_issue_gets_one_comment_the_answer() -> None:
    """While the testcase runs there is only a reaction. The one notification is the verdict."""
    forge = forge_of()
    sealed = opened(forge)
    assert sealed.group_cells() == {"any": ["any"]}
    assert forge.ours() == []
    assert forge.reactions == [EYES_ON_ISSUE]
    report = answered(forge, sealed)
    (comment,) = forge.posted
    assert comment.created == comment.updated
    assert report.verdict.headline.split()[0] in comment.body
    assert forge.reactions == []
    assert forge.on[7] == list(report.verdict.labels)
    assert set(report.verdict.labels) <= set(forge.known_labels)
    assert [run.state for run in read_records(forge.posted, ME)[7].runs] == [RunState.DONE]


def test_a_command_gets_a_progress_note_and_the_answer_as_a_new_comment() -> None:
    """An edit of the progress note would notify nobody. The note is deleted, its runs are kept."""
    forge = forge_of()
    sealed = says(forge, "ada", "/repro run").sealed
    assert sealed is not None
    asked, progress = forge.posted
    assert "**Running** the testcase for `ada`" in progress.body
    assert (CommentTarget(id=asked.id), Reaction.EYES) in forge.reactions
    answered(forge, sealed)
    (answer,) = (one for one in forge.posted if one.author == ME)
    assert answer.id != progress.id
    assert answer.created == answer.updated
    assert "**Running**" not in answer.body
    assert (CommentTarget(id=asked.id), Reaction.EYES) not in forge.reactions
    assert [run.state for run in read_records(forge.posted, ME)[7].runs] == [RunState.DONE]


def test_an_edited_answer_says_so() -> None:
    """With the account that asked for the later run."""
    forge = forge_of()
    answered(forge, opened(forge))
    again = says(forge, "wil", "/repro rerun", run="2.1").sealed
    assert again is not None
    answered(forge, again)
    (body,) = forge.ours()
    assert "**Updated** by a run for `wil` on 2026-11-21" in body
    assert "The verdict is the same." in body


def unanswered(forge: MemoryForge, sealed: SealedPlan, kind: VerdictKind = VerdictKind.INCONCLUSIVE) -> str:
    """Deliver a verdict that says nothing about the failure."""
    case = case_of(sealed)
    report = judge_results(case, seen(case, Outcome.MATCH), load_catalogue())
    return deliver_report(forge, case, replace(report, verdict=make_verdict(kind, (), "No answer"))).message


@pytest.mark.parametrize("kind", [VerdictKind.INCONCLUSIVE, VerdictKind.UNTESTABLE])
def test_a_run_that_nobody_asked_for_posts_an_answer_or_nothing(kind: VerdictKind) -> None:
    """Neither comment nor label. A person who asks gets every verdict, and so does `events.post: all`."""
    forge = forge_of()
    assert "nobody asked" in unanswered(forge, opened(forge), kind)
    assert (forge.writes, forge.on, forge.reactions) == (0, {}, [])
    everything = forge_of()
    unanswered(everything, opened(everything, file=b"events: {post: all}"), kind)
    assert len(everything.ours()) == 1
    asked = says(forge, "ada", "/repro run", run="2.1").sealed
    assert asked is not None
    unanswered(forge, asked, kind)
    assert "No answer" in forge.ours()[0]


def test_a_trial_posts_nothing_unasked() -> None:
    """`events.post: nothing`. The answer is on the page of the job."""
    forge = forge_of()
    sealed = opened(forge, file=b"events: {post: nothing}")
    answered(forge, sealed)
    assert (forge.writes, forge.on) == (0, {})
    missing = forge_of(CODE.replace("assert", "from model_zoo_of_mine import net\nassert"))
    ask(missing, "issues", issue_event("opened"), file=b"events: {post: nothing}")
    assert missing.writes == 0


def test_a_scheduled_run_without_an_answer_keeps_the_one_that_stands() -> None:
    """It is in the history only."""
    forge = forge_of()
    answered(forge, opened(forge))
    forge.now += timedelta(days=2)
    handled = ask(forge, "schedule", {"schedule": "0 3 * * *"}, run="4.1")
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is not None
    unanswered(forge, handled.sealed)
    (body,) = forge.ours()
    assert "**Confirmed.**" in body
    assert "No answer" not in body
    assert "inconclusive for testcase" in body
    assert forge.on[7] == ["repro: confirmed"]


def test_an_unasked_run_that_fails_is_silent() -> None:
    """A failure of ours is no reason to notify the subscribers of an issue."""
    forge = forge_of()
    deliver_failure(forge, case_of(opened(forge)), "the machine is gone")
    assert (forge.writes, forge.reactions) == (0, [])


def test_a_run_without_a_progress_note_can_be_cancelled() -> None:
    """Our reaction says that it is under way."""
    forge = forge_of()
    sealed = opened(forge)
    forge.now += timedelta(minutes=1)
    says(forge, "ada", "/repro cancel", run="2.1")
    assert "cancelled by `ada`" in forge.ours()[0]
    answered(forge, sealed)
    assert "**Confirmed" not in "".join(forge.ours())
    later = says(forge, "ada", "/repro run", run="3.1").sealed
    assert later is not None
    answered(forge, later)
    assert "**Confirmed" in forge.ours()[-1]


def test_the_same_delivery_five_times_is_one_run_and_one_comment() -> None:
    """GitHub delivers at least once."""
    forge = forge_of()
    first_of_five = opened(forge)
    for i in range(2, 6):
        if i == 4:
            answered(forge, first_of_five)
        again = ask(forge, "issues", issue_event("opened"), run=f"{i}.1")
        assert isinstance(again, HandledRequest)
        assert again.sealed is None
    comment = forge.say(7, "wil", "/repro rerun")
    first = ask(forge, "issue_comment", comment_event("/repro rerun", by="wil", id=comment.id), run="9.1")
    again = ask(forge, "issue_comment", comment_event("/repro rerun", by="wil", id=comment.id), run="10.1")
    assert isinstance(first, HandledRequest)
    assert isinstance(again, HandledRequest)
    assert again.sealed is None
    assert len([body for body in forge.ours() if "reprobot:reply" not in body]) == 1


def test_a_killed_process_plans_its_run_again() -> None:
    """The same run, under its own id: no refusal, no second run in the budget, no second comment."""
    forge = forge_of()
    file = b"budgets: {issue: 1}"
    first = opened(forge, file=file)
    again = opened(forge, file=file, repeats=True)
    assert [cell.plan for cell in again.cells] == [cell.plan for cell in first.cells]
    answered(forge, again)
    assert len(forge.ours()) == 1
    assert len(read_records(forge.posted, ME)[7].runs) == 1


def test_only_a_changed_verdict_is_a_new_comment() -> None:
    """The old comment links to the new one, and its labels are removed."""
    forge = forge_of()
    answered(forge, opened(forge))
    again = says(forge, "wil", "/repro rerun", run="2.1").sealed
    assert again is not None
    answered(forge, again)
    assert len(forge.ours()) == 1
    assert "Runs so far" in forge.ours()[0]
    labels = list(forge.on[7])
    third = says(forge, "wil", "/repro rerun", run="3.1").sealed
    assert third is not None
    answered(forge, third, Outcome.PASS)
    old, new = forge.ours()
    assert "another verdict since" in old
    assert "another verdict since" not in new
    assert not set(labels) & set(forge.on[7])


def test_a_late_answer_does_not_replace_a_later_runs() -> None:
    """Two runs are reported in the wrong order: the later request keeps its answer."""
    forge = forge_of()
    first = opened(forge)
    forge.now += timedelta(minutes=1)
    second = says(forge, "wil", "/repro rerun timeout=9", run="2.1").sealed
    assert second is not None
    answered(forge, second)
    before = forge.ours()[0]
    late = case_of(first)
    said = deliver_report(forge, late, judge_results(late, seen(late, Outcome.PASS), load_catalogue()))
    assert "later run" in said.message
    assert forge.ours()[0].partition("<!-- reprobot:history")[0] == before.partition("<!-- reprobot:record")[0]


@pytest.mark.parametrize("body", ["It ends with an error.", "It crashes. Thanks for looking into it!"])
def test_an_issue_without_code_gets_no_comment(body: str) -> None:
    """Unless the settings want one request for code, or a command asks."""
    forge = forge_of(body)
    handled = ask(forge, "issues", issue_event("opened"))
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is None
    assert forge.writes == 0
    ask(forge, "issues", issue_event("opened"), file=b"without-code: ask")
    ask(forge, "issues", issue_event("opened"), file=b"without-code: ask")
    assert len(forge.ours()) == 1
    assert "Could you add" in forge.ours()[0]
    assert forge.writes == 1


@pytest.mark.parametrize("body", ["How do I install it?", f"Would be nice:\n\n{CHECKED}\n\nHow can I do that?"])
def test_a_text_without_a_claim_gets_no_comment_unless_a_command_asks(body: str) -> None:
    """With code and without, whatever the settings say of issues without code."""
    forge = forge_of(body)
    forge.issues[7] = replace(forge.issues[7], title="[Feature request] Print faster")
    for _ in range(2):
        handled = ask(forge, "issues", issue_event("opened"), file=b"without-code: ask")
        assert isinstance(handled, HandledRequest)
        assert handled.sealed is None
    assert forge.writes == 0
    asked = says(forge, "wil", "/repro run")
    assert (asked.sealed is not None) is (CHECKED in body)
    assert forge.ours()


def test_a_missing_file_is_asked_for_once_by_default() -> None:
    """The comment names exactly that file."""
    forge = forge_of(CODE.replace("assert", "from model_zoo_of_mine import net\nopen('weights.bin')\nassert"))
    ask(forge, "issues", issue_event("opened"))
    assert len(forge.ours()) == 1
    assert "which the report does not contain" in forge.ours()[0]


def test_the_code_under_a_command_replaces_the_issues() -> None:
    """The answer says so."""
    forge = forge_of()
    opened(forge)
    handled = says(forge, "wil", "/repro run\n```python\nimport tvm\nassert tvm.nothing is None\n```", run="2.1")
    assert handled.sealed is not None
    case = case_of(handled.sealed)
    assert "tvm.nothing" in next(iter(case.plan.testcase.files.values()))
    assert case.plan.claim.signature == case_of(opened(forge_of())).plan.claim.signature
    report = judge_results(case, seen(case, Outcome.MATCH), load_catalogue())
    assert any("code in the comment" in note for note in report.notes)


def test_options_of_a_command_reach_the_plan() -> None:
    forge = forge_of()
    handled = says(forge, "wil", "/repro bisect good=0.25.0.post1 bad=0.27.0 timeout=33")
    assert handled.sealed is not None
    plan = case_of(handled.sealed).plan
    assert (plan.order[0], plan.order[-1], plan.limits.wall_s) == ("0.25.0.post1", "0.27.0", 33.0)


def test_minimize_is_part_of_the_plan() -> None:
    """Its result is in the answer; a second request while it runs is no second run."""
    forge = forge_of()
    answered(forge, opened(forge))
    sealed = says(forge, "wil", "/repro minimize", run="2.1").sealed
    assert sealed is not None
    assert [cell.minimize for cell in sealed.cells] == [True]
    assert says(forge, "wil", "/repro minimize", run="3.1").sealed is None
    case = case_of(sealed)
    smaller = Smaller(
        testcase=case.plan.testcase, version=case.plan.order[-1], device="llvm", before=40, after=2, probes=20,
        seconds=3.0, confirmed=3, stopped="minimal",
    )  # fmt: skip
    results = seen(case, Outcome.MATCH)
    results = replace(results, seen=msgspec.structs.replace(results.seen, smaller=smaller))
    deliver_report(forge, case, judge_results(case, results, load_catalogue()))
    assert "Smaller testcase: 2 lines instead of 40" in forge.ours()[0]


def test_an_unknown_release_is_answered_with_a_sentence() -> None:
    forge = forge_of()
    handled = says(forge, "wil", "/repro run versions=9.9.9")
    assert handled.sealed is None
    assert "9.9.9" in forge.ours()[0]
    assert forge.reactions[-1] == (CommentTarget(id=forge.posted[0].id), Reaction.CONFUSED)


# ---------------------------------------------------------------------------------------------- who may


def test_strangers_may_run_their_own_issue_only() -> None:
    forge = forge_of()
    assert says(forge, "eve", "/repro run").sealed is None
    assert "is for the issue's author" in forge.ours()[0]
    assert says(forge, "ada", "/repro run").sealed is not None


def test_a_deleted_account_is_no_author() -> None:
    """Its comments hold neither commands nor the testcase of another deleted account."""
    forge = forge_of("apache-tvm 0.25.0: it fails.")
    forge.issues[7] = replace(forge.issues[7], author=GHOST, comments=(Comment(author=GHOST, body=CODE),))
    ignored = ask(forge, "issue_comment", comment_event("/repro run", by=GHOST, author=GHOST))
    assert isinstance(ignored, IgnoredEvent)
    assert not forge.issues[7].is_by(GHOST)
    assert says(forge, "wil", "/repro run").sealed is None
    forge.issues[7] = replace(forge.issues[7], author="ada", comments=(Comment(author="ada", body=CODE),))
    assert says(forge, "wil", "/repro run").sealed is not None


def test_budgets_are_counted_from_our_own_comments() -> None:
    """Deleting the commands does not help; a maintainer has no budget."""
    forge = forge_of()
    file = b"budgets: {issue: 2}"
    for i in range(2):
        assert says(forge, "ada", f"/repro rerun timeout={i + 1}", run=f"{i}.1", file=file).sealed is not None
    forge.posted = [comment for comment in forge.posted if comment.author == ME]
    assert says(forge, "ada", "/repro rerun timeout=3", run="3.1", file=file).sealed is None
    assert "2 runs for today" in forge.ours()[-1]
    assert says(forge, "tim", "/repro rerun timeout=4", run="4.1", file=file).sealed is not None
    forge.now += timedelta(days=2)
    assert says(forge, "ada", "/repro rerun timeout=5", run="5.1", file=file).sealed is not None


@pytest.mark.parametrize(("noise", "where"), [(2_400, 7), (MAX_COMMENTS, 7), (MAX_RECENT, 8)])
def test_a_flood_of_comments_gives_no_further_runs(noise: int, where: int) -> None:
    """Our own comments come after the others, so a list that is cut off does not hold them."""
    forge = forge_of()
    for _ in range(noise):
        forge.say(where, "ada", "noise")
    forge.now = max(comment.created for comment in forge.posted)
    file = b"budgets: {issue: 2}"
    planned = [says(forge, "ada", f"/repro rerun timeout={i + 1}", run=f"{i}.1", file=file).sealed for i in range(4)]
    assert sum(sealed is not None for sealed in planned) == (2 if noise < MAX_COMMENTS else 0)
    assert says(forge, "tim", "/repro rerun timeout=9", run="9.1", file=file).sealed is not None


def test_a_run_that_only_the_repositorys_comments_hold_counts() -> None:
    """The list of an issue's comments may lag behind a write."""
    forge = forge_of()
    opened(forge)
    list_comments = MemoryForge.list_comments

    class Lagging(MemoryForge):
        def list_comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
            return tuple(one for one in list_comments(self, repository, number) if one.author != ME)

    lagging = Lagging(issues=forge.issues, posted=forge.posted, now=forge.now)
    assert says(lagging, "ada", "/repro rerun timeout=9", run="2.1", file=b"budgets: {issue: 1}").sealed is None


def test_a_budget_of_an_account_counts_its_other_issues() -> None:
    forge = forge_of()
    forge.issues[8] = issue_of(OTHER, number=8)
    file = b"budgets: {user: 1}"
    opened(forge, run="8.1", file=file)
    handled = ask(forge, "issues", issue_event("opened", number=8), run="9.1", file=file)
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is None


GPU = b"machines: {lab: [cuda]}\ndevices: [cuda]"


def test_a_machine_that_needs_approval_waits_for_it() -> None:
    """The comment shows the command, with the testcase's digest."""
    forge = forge_of()
    sealed = opened(forge, file=GPU)
    assert sealed.group_cells() == {"any": ["any"]}
    assert all("cuda" not in cell.plan.devices for cell in sealed.cells)
    digest = sealed.cells[0].testcase_sha256
    assert f"/repro approve {digest}" in forge.ours()[0]
    answered(forge, sealed)
    approved = says(forge, "wil", f"/repro approve {digest}", run="2.1", file=GPU).sealed
    assert approved is not None
    assert approved.group_cells() == {"any": ["any"], "lab": ["on-lab"]}
    assert approved.cells[1].plan.devices == ("cuda",)
    answered(forge, approved)
    # The approval stays good for later runs of the same text, by anybody.
    later = says(forge, "ada", "/repro rerun", run="3.1", file=GPU).sealed
    assert later is not None
    assert "lab" in later.group_cells()


def test_a_request_for_approval_shows_the_code() -> None:
    """The extracted code, not the issue's text: a reader may overlook a part of that text."""
    shown = "<summary>The testcase that waits for approval</summary>"
    forge = forge_of()
    sealed = opened(forge, file=GPU)
    _, found, code = forge.ours()[0].partition(shown)
    assert found
    assert "```python\nimport tvm\nassert tvm.compile is None\n```" in code
    assert "Only a part" not in code
    assert read_records(forge.posted, ME)[7].runs
    answered(forge, sealed)
    assert shown not in forge.ours()[0]
    # A second request stands above the answer, and a refused approval shows the code that it would have to name.
    forge.issues[7] = issue_of(OTHER)
    rerun = says(forge, "ada", "/repro rerun", run="2.1", file=GPU).sealed
    assert rerun is not None
    assert forge.ours()[0].index("is not tvm.compile") < forge.ours()[0].index("**Confirmed")
    says(forge, "wil", f"/repro approve {'0' * 64}", run="3.1", file=GPU)
    assert "assert tvm.compile is not tvm.compile\n```" in forge.ours()[-1].partition(shown)[2]


def test_a_request_for_approval_says_what_it_does_not_show() -> None:
    """Also if the code imitates the end of our fold."""
    tail = "".join(f"x{i} = '<!-- reprobot:end-code --> {i} ```'\n" for i in range(1_500))
    forge = forge_of(CODE.replace("```\n\n```\nRun", tail.replace("```", "` ` `") + "```\n\n```\nRun"))
    sealed = opened(forge, file=GPU)
    (body,) = forge.ours()
    assert "**Only a part is shown.**" in body
    assert len(body.encode()) < MAX_BYTES
    answered(forge, sealed)
    assert "**Only a part is shown.**" not in forge.ours()[0]


def test_an_edit_invalidates_an_approval() -> None:
    forge = forge_of()
    digest = opened(forge, file=GPU).cells[0].testcase_sha256
    forge.issues[7] = issue_of(OTHER)
    late = says(forge, "wil", f"/repro approve {digest}", run="2.1", file=GPU)
    assert late.sealed is None
    assert "not the testcase as it stands now" in forge.ours()[-1]
    rerun = says(forge, "ada", "/repro rerun", run="3.1", file=GPU).sealed
    assert rerun is not None
    assert "lab" not in rerun.group_cells()


def test_an_unneeded_approval_is_refused() -> None:
    """It does not run the testcase on ordinary machines again."""
    forge = forge_of()
    digest = opened(forge).cells[0].testcase_sha256
    assert says(forge, "wil", f"/repro approve {digest}", run="2.1").sealed is None
    assert "Nothing here waits for approval" in forge.ours()[-1]


HARMLESS = """\
apache-tvm 0.25.0 aborts:

```python
import tvm
# Fatal abort, smallest program that shows it
tvm.compile(tvm.ir.IRModule({}))
# seed 69738fe7d8a0b60f
```

```
Fatal Python error: Aborted
```
"""
HARMFUL = """\
apache-tvm 0.25.0 aborts:

```python
import tvm
import os; os.system('anything at all, on the laboratory GPU')
tvm.compile(tvm.ir.IRModule({}))
# seed 94380fce5aa8f182
```

```
Fatal Python error: Aborted
```
"""


def test_an_approval_does_not_hold_for_a_testcase_with_the_same_first_digits() -> None:
    """The two testcases share the first 16 digits of their sha256. Finding them took one core 53 minutes."""
    forge = forge_of(HARMLESS)
    sealed = opened(forge, file=GPU)
    digest = sealed.cells[0].testcase_sha256
    answered(forge, sealed)
    short = says(forge, "wil", f"/repro approve {digest[:16]}", run="2.1", file=GPU)
    assert short.sealed is None
    assert "all 64 digits" in forge.ours()[-1]
    assert digest in forge.ours()[-1]
    approved = says(forge, "wil", f"/repro approve {digest}", run="3.1", file=GPU).sealed
    assert approved is not None
    answered(forge, approved)
    forge.issues[7] = issue_of(HARMFUL)
    rerun = says(forge, "ada", "/repro rerun", run="4.1", file=GPU).sealed
    assert rerun is not None
    other = rerun.cells[0].testcase_sha256
    assert other[:16] == digest[:16]
    assert other != digest
    assert "lab" not in rerun.group_cells()
    assert f"/repro approve {other}" in forge.ours()[0]


@pytest.mark.parametrize("count", [10, 50])
def test_approvals_by_strangers_do_not_displace_a_maintainers(count: int) -> None:
    """Written before and after the maintainer's, by as many accounts."""
    forge = forge_of()
    sealed = opened(forge, file=GPU)
    digest = sealed.cells[0].testcase_sha256
    answered(forge, sealed)
    for number in range(count):
        says(forge, f"sock{number}", f"/repro approve {digest}", run=f"{100 + number}.1", file=GPU)
    approved = says(forge, "wil", f"/repro approve {digest}", run="2.1", file=GPU).sealed
    assert approved is not None
    answered(forge, approved)
    for number in range(count):
        says(forge, f"sock{number}", f"/repro approve {digest}", run=f"{200 + number}.1", file=GPU)
    later = says(forge, "ada", "/repro rerun", run="3.1", file=GPU).sealed
    assert later is not None
    assert "lab" in later.group_cells()


def test_an_approval_ends_when_its_comment_is_edited_or_its_account_loses_permission() -> None:
    forge = forge_of()
    sealed = opened(forge, file=GPU)
    answered(forge, sealed)
    approved = says(forge, "wil", f"/repro approve {sealed.cells[0].testcase_sha256}", run="2.1", file=GPU).sealed
    assert approved is not None
    answered(forge, approved)
    place, word = next((place, one) for place, one in enumerate(forge.posted) if one.author == "wil")
    forge.posted[place] = replace(word, updated=word.updated + timedelta(seconds=1))
    edited = says(forge, "ada", "/repro rerun", run="3.1", file=GPU).sealed
    assert edited is not None
    assert "lab" not in edited.group_cells()
    answered(forge, edited)
    forge.posted[place] = word
    forge.permissions["wil"] = Permission.TRIAGE
    demoted = says(forge, "ada", "/repro rerun", run="4.1", file=GPU).sealed
    assert demoted is not None
    assert "lab" not in demoted.group_cells()


@pytest.mark.parametrize("who", ["ada", "tim", "eve"])
def test_an_approval_needs_write_permission(who: str) -> None:
    forge = forge_of()
    digest = opened(forge, file=GPU).cells[0].testcase_sha256
    assert says(forge, who, f"/repro approve {digest}", run="2.1", file=GPU).sealed is None


def test_a_testcase_swapped_in_the_plan_is_not_run() -> None:
    """The machine compares the digest again."""
    forge = forge_of()
    sealed = opened(forge)
    swapped = sealed.data.replace(b"tvm.compile is None", b"tvm.compile is True")
    with pytest.raises(Exception, match="sha256"):
        read_plan(swapped, sealed.sha256)
    from runners.cells.run import run_cell

    def no_bench(cell: object) -> Any:
        raise AssertionError("started")

    with pytest.raises(Exception, match="not the one that was approved"):
        run_cell(swapped, digest=sha256(swapped).hexdigest(), cell="any", open_bench=no_bench)


# ---------------------------------------------------------------------------------------------- words


def test_mistakes_get_one_reply_with_suggestions() -> None:
    forge = forge_of()
    says(forge, "ada", "/repro rnu\n/repro run versoins=1")
    (reply,) = forge.ours()
    assert "did you mean `run`" in reply
    assert "did you mean `versions`" in reply
    assert forge.reactions[-1][1] is Reaction.CONFUSED


def test_replies_have_a_budget_too() -> None:
    """A hundred commands get a few answers."""
    forge = forge_of()
    for _ in range(30):
        says(forge, "eve", "/repro help")
    assert len(forge.ours()) == 12


def test_replies_to_strangers_take_none_from_a_maintainer() -> None:
    """A refused approval is always said, and replies to maintainers are not counted."""
    forge = forge_of()
    for number in range(14):
        says(forge, "wil", f"/repro approve {number:064x}", run=f"w{number}.1")
    assert len(forge.ours()) == 14
    for _ in range(30):
        says(forge, "eve", "/repro help")
    assert len(forge.ours()) == 26
    says(forge, "wil", f"/repro approve {'0' * 64}", run="m.1")
    assert "not the testcase as it stands now" in forge.ours()[-1]


def test_status_shows_runs_and_the_remaining_budget() -> None:
    forge = forge_of()
    opened(forge)
    says(forge, "ada", "/repro status")
    assert "The testcase is running" in forge.ours()[-1]
    assert "3 of 4 runs are left" in forge.ours()[-1]
    says(forge, "ada", "/repro run", run="2.1")
    says(forge, "ada", "/repro status", run="3.1")
    assert "Running since" in forge.ours()[-1]


def test_a_cancelled_run_is_not_answered() -> None:
    """Its jobs may go on; their results are dropped."""
    forge = forge_of()
    sealed = opened(forge)
    says(forge, "ada", "/repro cancel", run="2.1")
    before = list(forge.posted)
    case = case_of(sealed)
    said = deliver_report(forge, case, judge_results(case, seen(case, Outcome.MATCH), load_catalogue()))
    assert "cancelled" in said.message
    assert forge.posted == before
    assert "cancelled by `ada`" in forge.ours()[0]


def test_a_voided_verdict_shows_the_maintainer_and_the_reason() -> None:
    """Until the next answer. Its labels are removed; strangers cannot void."""
    forge = forge_of()
    answered(forge, opened(forge))
    says(forge, "ada", "/repro void I do not like it", run="2.1")
    assert "**Voided**" not in forge.ours()[0]
    says(forge, "wil", "/repro void the testcase was @all <b>wrong</b> ``` --> x", run="3.1")
    body = forge.ours()[0]
    assert "**Voided** by `wil`" in body
    fences = re.findall(r"^> `{3,}text\n(.*?)^> `{3,}$", body, re.M | re.S)
    assert body.count("@all") == "".join(fences).count("@all") == 1  # GitHub mentions nobody from a code block
    assert forge.on[7] == []
    record = read_records(forge.posted, ME)[7]
    assert record.void is not None
    assert record.void.by == "wil"
    again = says(forge, "wil", "/repro run", run="4.1").sealed
    assert again is not None
    assert "**Running**" in forge.ours()[0]
    assert "**Voided**" in forge.ours()[0]
    answered(forge, again)
    assert "**Voided**" not in forge.ours()[0]


def test_a_late_run_leaves_a_voided_verdict_voided() -> None:
    """A later run has answered, and a maintainer withdrew that answer: it still stands in the comment."""
    forge = forge_of()
    late = opened(forge)
    forge.now += timedelta(minutes=1)
    later = says(forge, "wil", "/repro rerun timeout=9", run="2.1").sealed
    assert later is not None
    answered(forge, later)
    says(forge, "wil", "/repro void by design", run="3.1")
    answered(forge, late)
    assert_voided(forge)


def test_a_silent_run_leaves_a_voided_verdict_voided() -> None:
    """It posts no answer of its own: the comment keeps the withdrawn one."""
    forge = forge_of()
    answered(forge, opened(forge))
    forge.now += timedelta(days=2)
    handled = ask(forge, "schedule", {"schedule": "0 3 * * *"}, run="4.1")
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is not None
    says(forge, "wil", "/repro void by design", run="5.1")
    unanswered(forge, handled.sealed)
    assert_voided(forge)


def test_a_repeated_delivery_leaves_a_verdict_voided() -> None:
    """The first one wrote the comment, and a fault of the forge kept it from the labels."""
    forge = forge_of()
    sealed = opened(forge)
    answered(forge, sealed)
    says(forge, "wil", "/repro void by design", run="2.1")
    answered(forge, sealed)
    assert_voided(forge)


def assert_voided(forge: MemoryForge) -> None:
    """The withdrawn verdict is shown below its note, and without its labels."""
    (body,) = forge.ours()
    assert "**Confirmed.**" in body
    assert "**Voided** by `wil`" in body
    assert forge.on[7] == []


# ---------------------------------------------------------------------------------------------- meanwhile


@pytest.mark.parametrize("reason", ["deleted", "transferred"])
def test_a_missing_issue_gets_no_comment(reason: Any) -> None:
    forge = forge_of()
    sealed = opened(forge)
    forge.gone[7] = Gone(reason=reason)
    case = case_of(sealed)
    before = forge.writes
    assert (
        reason
        in deliver_report(forge, case, judge_results(case, seen(case, Outcome.MATCH), load_catalogue())).message
    )
    assert forge.writes == before


def test_a_hidden_issue_is_delivered_to_later() -> None:
    """A 404 may pass, unlike a 410."""
    forge = forge_of()
    sealed = opened(forge)
    forge.gone[7] = Gone(reason="hidden")
    with pytest.raises(InfraError, match="404"):
        answered(forge, sealed)
    del forge.gone[7]
    answered(forge, sealed)
    assert "**Confirmed.**" in forge.ours()[0]


def test_a_locked_issue_gets_no_answer() -> None:
    """Our comment there no longer says that the testcase runs."""
    forge = forge_of()
    sealed = says(forge, "ada", "/repro run").sealed
    assert sealed is not None
    forge.locked.add(7)
    case = case_of(sealed)
    report = judge_results(case, seen(case, Outcome.MATCH), load_catalogue())
    assert "locked" in deliver_report(forge, case, report).message
    (ours,) = forge.ours()
    assert "**Running**" not in ours
    assert "**Confirmed.**" not in ours
    writes = forge.writes
    assert says(forge, "ada", "/repro run", run="2.1").sealed is None
    assert forge.writes == writes


def test_a_failure_does_not_replace_an_answer() -> None:
    """It may be posted after an answer whose labels could not be written."""
    forge = forge_of()
    sealed = opened(forge)
    answered(forge, sealed)
    before = forge.ours()
    deliver_failure(forge, case_of(sealed), "the labels cannot be written")
    assert forge.ours() == before


def test_a_progress_note_ends_if_the_repeated_step_finds_no_testcase() -> None:
    """The first attempt was stopped after it had written the note; then the issue was edited."""
    forge = forge_of()
    comment = forge.say(7, "ada", "/repro run")
    event = comment_event("/repro run", id=comment.id)
    ask(forge, "issue_comment", event)
    assert "**Running**" in forge.ours()[0]
    forge.issues[7] = issue_of("Never mind.")
    again = ask(forge, "issue_comment", event, repeats=True)
    assert isinstance(again, HandledRequest)
    assert again.sealed is None
    assert "**Running**" not in forge.ours()[0]
    assert "did not come to an end" in forge.ours()[0]


def test_an_edit_during_the_run_is_noted() -> None:
    """Only if it changed the testcase, not the prose."""
    forge = forge_of()
    sealed = opened(forge)
    forge.issues[7] = issue_of(CODE + "\nThank you!")
    answered(forge, sealed)
    assert "was edited after" not in forge.ours()[0]
    forge.issues[7] = issue_of(OTHER)
    answered(forge, sealed)
    assert "was edited after this run began" in forge.ours()[0]


def test_our_own_failure_keeps_the_old_verdict() -> None:
    forge = forge_of()
    answered(forge, opened(forge))
    sealed = says(forge, "wil", "/repro rerun", run="2.1").sealed
    assert sealed is not None
    case = case_of(sealed)
    none = JobResults(seen=Investigation(), problems=(RefusedResult(cell="any", why="it was lost"),))
    with pytest.raises(Exception, match="it was lost"):
        judge_results(case, none, load_catalogue())
    deliver_failure(forge, case, "any: it was lost")
    (body,) = forge.ours()
    assert "through no fault of the testcase" in body
    assert "fails as reported" in body


def test_a_strangers_comment_with_our_marker_is_not_ours() -> None:
    """It is not edited, and neither its runs nor its void count."""
    forge = forge_of()
    says(forge, "ada", "/repro run")
    copy = forge.ours()[0]
    other = forge_of()
    other.say(7, "eve", copy)
    sealed = opened(other)
    assert other.posted[0].body == copy
    answered(other, sealed)
    assert other.posted[0].body == copy
    assert len(other.ours()) == 1


def test_a_lone_surrogate_in_an_issue_is_replaced() -> None:
    """JSON may hold one; no file can."""
    forge = forge_of()
    forge.issues[7] = replace(issue_of(CODE), title="\ud800 fails")
    answered(forge, opened(forge))
    assert forge.ours()[0].encode()


def test_the_schedule_takes_the_issue_with_the_oldest_answer() -> None:
    """One for each tick, and none that ran within a day."""
    forge = forge_of()
    forge.issues[8] = issue_of(OTHER, number=8)
    answered(forge, opened(forge))
    forge.now += timedelta(hours=1)
    other = ask(forge, "issues", issue_event("opened", number=8), run="8.1")
    assert isinstance(other, HandledRequest)
    assert other.sealed is not None
    answered(forge, other.sealed)
    tick = {"schedule": "0 3 * * *"}
    none = ask(forge, "schedule", tick, run="3.1")
    assert isinstance(none, HandledRequest)
    assert none.sealed is None
    forge.now += timedelta(days=2)
    handled = ask(forge, "schedule", tick, run="4.1")
    assert isinstance(handled, HandledRequest)
    assert handled.number == 7
    assert handled.sealed is not None


@pytest.mark.parametrize(
    ("body", "file"), [("Never mind, I removed the code.", b""), (CODE, b"versions: '99.0'")], ids=["code", "release"]
)
def test_an_issue_that_cannot_run_again_waits_for_its_next_turn(body: str, file: bytes) -> None:
    """Else one author could stop all other rechecks with an edit."""
    forge = forge_of()
    answered(forge, opened(forge))
    forge.issues[8] = issue_of(OTHER, number=8)
    other = ask(forge, "issues", issue_event("opened", number=8), run="8.1")
    assert isinstance(other, HandledRequest)
    assert other.sealed is not None
    answered(forge, other.sealed)
    forge.issues[7] = issue_of(body)
    before = len(forge.posted)
    taken = []
    for tick in range(4):
        forge.now += timedelta(days=2)
        handled = ask(forge, "schedule", {"schedule": "0 3 * * *"}, run=f"s{tick}.1", file=file)
        assert isinstance(handled, HandledRequest)
        if handled.sealed is not None:
            answered(forge, handled.sealed)
        taken.append(handled.number)
    assert taken == [7, 8, 7, 8]
    assert len(forge.posted) == before


def test_a_workflow_dispatch_is_a_run() -> None:
    forge = forge_of()
    forge.permissions["ada"] = Permission.WRITE
    handled = ask(forge, "workflow_dispatch", dispatch_event({"issue": "7", "versions": "0.27.0"}))
    assert isinstance(handled, HandledRequest)
    assert handled.sealed is not None
    assert case_of(handled.sealed).plan.order == ("0.27.0",)


def test_a_case_is_read_back_as_it_was() -> None:
    """With its issue, options and settings."""
    forge = forge_of()
    sealed = opened(forge, file=GPU)
    case = case_of(sealed)
    assert case.issue == forge.issues[7]
    assert msgspec.json.decode(msgspec.json.encode(case), type=Case) == case
