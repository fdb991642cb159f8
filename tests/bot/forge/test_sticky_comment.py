"""Our one comment: taken apart, put together, found again."""

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

RUN = RecordedRun(id="1.1", at=NOW, by="ada", testcase="0" * 16, counted=True)


def forge() -> MemoryForge:
    return MemoryForge(issues={7: issue_of("x")})


@given(
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.booleans(),
)
def test_parts_survive_being_put_together(note: str, body: str, voided: bool) -> None:
    """Whatever a reason says; a body comes from our own renderer, which spells no marker of ours."""
    note, body = note.strip().replace("<!--", ""), body.strip().replace("<!--", "")
    void = VoidedVerdict(by="wil", at=NOW, why=f"{note}\n<!-- reprobot:end-void -->") if voided else None
    sheet = StickyComment(
        note=note, body=body, record=IssueRecord(runs=(RUN,), void=void), verdict="fixed", issue="ab" * 32
    )
    again = parse_sticky_comment(render_sticky_comment(sheet))
    assert again == sheet
    assert render_sticky_comment(again) == render_sticky_comment(sheet)


def test_the_largest_comment_is_below_what_github_takes() -> None:
    """Body, note, a reason, two dozen runs with long options."""
    run = replace_run(asked="9" * 100, url="https://github.com/" + "x" * 180, verdict="confirmed")
    runs = tuple(replace_run(id=f"{i}.1", base=run) for i in range(MAX_RUNS))
    record = IssueRecord(runs=runs, void=VoidedVerdict(by="w" * 39, at=NOW, why="<" * 400))
    text = render_sticky_comment(
        StickyComment(note="n" * 9_000, body="b" * MAX_BODY_BYTES, record=record, verdict="fixed")
    )
    assert len(text.encode()) <= MAX_BYTES
    assert read_marker(text) is not None


def replace_run(*, base: RecordedRun = RUN, **changes: str) -> RecordedRun:
    return msgspec.structs.replace(base, **changes)


def test_a_comment_is_ours_by_author_and_marker() -> None:
    """A forged marker is nothing, and neither is a reply of ours."""
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
    sheet = StickyComment(body="x", verdict="fixed")
    publish_comment(made, REPOSITORY, 7, sheet, login=ME)
    publish_comment(made, REPOSITORY, 7, sheet, login=ME)
    assert made.writes == 1


@pytest.mark.parametrize(
    ("before", "after", "comments"),
    [("running", "fixed", 1), ("fixed", "fixed", 1), ("fixed", "confirmed", 2), ("fixed", "running", 1)],
)
def test_only_another_verdict_gets_a_comment_of_its_own(before: str, after: str, comments: int) -> None:
    made = forge()
    publish_comment(made, REPOSITORY, 7, StickyComment(body="x", verdict=before), login=ME)
    publish_comment(made, REPOSITORY, 7, StickyComment(body="y", verdict=after), login=ME)
    assert len(made.ours()) == comments
    assert find_current_comment(made.posted, ME) == made.posted[-1]


def test_the_history_is_folded_and_newest_first() -> None:
    """One run needs no history."""
    first, second = replace_run(verdict="confirmed"), replace_run(id="2.1", verdict="fixed")
    later = second.at + timedelta(days=1)
    text = render_sticky_comment(
        StickyComment(body="x", record=IssueRecord(runs=(first, msgspec.structs.replace(second, at=later))))
    )
    assert text.index("2026-11-22") < text.index("2026-11-21")
    assert "<details><summary>Runs so far</summary>" in text
    assert "Runs so far" not in render_sticky_comment(StickyComment(body="x", record=IssueRecord(runs=(first,))))


def test_what_somebody_edited_out_of_shape_is_read_all_the_same() -> None:
    """A maintainer may edit our comment: what is left of it is kept."""
    text = render_sticky_comment(StickyComment(note="n", body="b", record=IssueRecord(runs=(RUN,)), verdict="fixed"))
    broken = text.replace("<!-- reprobot:end-note -->", "")
    assert "b" in parse_sticky_comment(broken).body
    assert parse_sticky_comment("nothing of ours").verdict == "running"
    assert replace(parse_sticky_comment(text), record=IssueRecord()).body == "b"
    assert RUN.state is RunState.RUNNING
