"""Our one comment: parsed, rendered, found again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.forge.run_record import MAX_RUNS, IssueRecord, RecordedRun, RunState, VoidedVerdict
from bot.forge.sticky_comment import (
    MAX_BODY_BYTES,
    StickyComment,
    filter_own_comments,
    find_current_comment,
    parse_sticky_comment,
    publish_comment,
    render_sticky_comment,
)
from bot.report.comment import MAX_BYTES, read_marker
from tests.bot.requests.fake_forge import ME, NOW, REPOSITORY, MemoryForge, issue_of

RUN = RecordedRun(id="1.1", at=NOW, by="ada", testcase="0" * 64, counted=True)


def forge() -> MemoryForge:
    return MemoryForge(issues={7: issue_of("x")})


@given(
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.booleans(),
)
def test_parts_survive_rendering_and_parsing(note: str, body: str, voided: bool) -> None:
    """With any text as a reason. A body comes from our own renderer, which escapes our markers."""
    note, body = note.strip().replace("<!--", ""), body.strip().replace("<!--", "")
    void = VoidedVerdict(by="wil", at=NOW, why=f"{note}\n<!-- reprobot:end-void -->") if voided else None
    sticky = StickyComment(
        note=note,
        code=note[::-1].strip(),
        body=body,
        record=IssueRecord(runs=(RUN,), void=void),
        verdict="fixed",
        issue="ab" * 32,
    )
    again = parse_sticky_comment(render_sticky_comment(sticky))
    assert again == sticky
    assert render_sticky_comment(again) == render_sticky_comment(sticky)


def test_the_largest_comment_is_below_githubs_limit() -> None:
    """With body, note, a reason, and the most runs with long options."""
    run = replace_run(asked="9" * 100, url="https://github.com/" + "x" * 180, verdict="confirmed")
    runs = tuple(replace_run(id=f"{i}.1", base=run) for i in range(MAX_RUNS))
    record = IssueRecord(runs=runs, void=VoidedVerdict(by="w" * 39, at=NOW, why="<" * 400))
    text = render_sticky_comment(
        StickyComment(note="n" * 9_000, code="c" * 9_000, body="b" * MAX_BODY_BYTES, record=record, verdict="fixed")
    )
    assert len(text.encode()) <= MAX_BYTES
    assert read_marker(text) is not None


def replace_run(*, base: RecordedRun = RUN, **changes: str) -> RecordedRun:
    return msgspec.structs.replace(base, **changes)


def test_a_comment_is_ours_by_author_and_marker() -> None:
    """Neither a forged marker nor our own reply counts."""
    made = forge()
    text = render_sticky_comment(StickyComment(body="x"))
    made.say(7, "eve", text)
    made.create_comment(REPOSITORY, 7, "a reply")
    made.create_comment(REPOSITORY, 7, f"{text}\nmore")  # the marker counts in the last line only
    assert filter_own_comments(made.posted, ME) == ()
    mine = made.create_comment(REPOSITORY, 7, text)
    assert find_current_comment(made.posted, ME) == mine


def test_publishing_the_same_twice_writes_once() -> None:
    made = forge()
    sticky = StickyComment(body="x", verdict="fixed")
    publish_comment(made, REPOSITORY, 7, sticky, login=ME)
    publish_comment(made, REPOSITORY, 7, sticky, login=ME)
    assert made.writes == 1


@pytest.mark.parametrize(
    ("before", "after", "comments"),
    [("running", "fixed", 1), ("fixed", "fixed", 1), ("fixed", "confirmed", 2), ("fixed", "running", 1)],
)
def test_only_a_changed_verdict_gets_a_new_comment(before: str, after: str, comments: int) -> None:
    made = forge()
    publish_comment(made, REPOSITORY, 7, StickyComment(body="x", verdict=before), login=ME)
    publish_comment(made, REPOSITORY, 7, StickyComment(body="y", verdict=after), login=ME)
    assert len(made.ours()) == comments
    assert find_current_comment(made.posted, ME) == made.posted[-1]


def test_the_history_is_folded_and_newest_first() -> None:
    """A single run has no history."""
    first, second = replace_run(verdict="confirmed"), replace_run(id="2.1", verdict="fixed")
    later = second.at + timedelta(days=1)
    text = render_sticky_comment(
        StickyComment(body="x", record=IssueRecord(runs=(first, msgspec.structs.replace(second, at=later))))
    )
    assert text.index("2026-11-22") < text.index("2026-11-21")
    assert "<details><summary>Runs so far</summary>" in text
    assert "Runs so far" not in render_sticky_comment(StickyComment(body="x", record=IssueRecord(runs=(first,))))


def test_a_damaged_comment_is_still_read() -> None:
    """A maintainer may edit our comment: the remaining parts are kept."""
    text = render_sticky_comment(StickyComment(note="n", body="b", record=IssueRecord(runs=(RUN,)), verdict="fixed"))
    broken = text.replace("<!-- reprobot:end-note -->", "")
    assert "b" in parse_sticky_comment(broken).body
    assert parse_sticky_comment("nothing of ours").verdict == "running"
    assert replace(parse_sticky_comment(text), record=IssueRecord()).body == "b"
    assert RUN.state is RunState.RUNNING
