"""Our one comment: taken apart, put together, found again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.forge.run_record import MAX_RUNS, Record, Run, RunState, Void
from bot.forge.sticky_comment import ROOM, Sheet, ours, publish, put_together, standing, take_apart
from bot.report.comment import MAX_BYTES, read_marker
from tests.bot.requests.fake_forge import ME, NOW, REPOSITORY, MemoryForge, issue_of

RUN = Run(id="1.1", at=NOW, by="ada", testcase="0" * 16, counted=True)


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
    void = Void(by="wil", at=NOW, why=f"{note}\n<!-- reprobot:end-void -->") if voided else None
    sheet = Sheet(note=note, body=body, record=Record(runs=(RUN,), void=void), verdict="fixed", issue="ab" * 32)
    again = take_apart(put_together(sheet))
    assert again == sheet
    assert put_together(again) == put_together(sheet)


def test_the_largest_comment_is_below_what_github_takes() -> None:
    """Body, note, a reason, two dozen runs with long options."""
    run = replace_run(asked="9" * 100, url="https://github.com/" + "x" * 180, verdict="confirmed")
    runs = tuple(replace_run(id=f"{i}.1", base=run) for i in range(MAX_RUNS))
    record = Record(runs=runs, void=Void(by="w" * 39, at=NOW, why="<" * 400))
    text = put_together(Sheet(note="n" * 9_000, body="b" * ROOM, record=record, verdict="fixed"))
    assert len(text.encode()) <= MAX_BYTES
    assert read_marker(text) is not None


def replace_run(*, base: Run = RUN, **changes: str) -> Run:
    return msgspec.structs.replace(base, **changes)


def test_a_comment_is_ours_by_author_and_marker() -> None:
    """A forged marker is nothing, and neither is a reply of ours."""
    made = forge()
    text = put_together(Sheet(body="x"))
    made.say(7, "eve", text)
    made.create_comment(REPOSITORY, 7, "a reply")
    made.create_comment(REPOSITORY, 7, f"{text}\nmore")  # the marker counts in the last line only
    assert ours(made.posted, ME) == ()
    mine = made.create_comment(REPOSITORY, 7, text)
    assert standing(made.posted, ME) == mine


def test_publishing_the_same_twice_writes_once() -> None:
    made = forge()
    sheet = Sheet(body="x", verdict="fixed")
    publish(made, REPOSITORY, 7, sheet, me=ME)
    publish(made, REPOSITORY, 7, sheet, me=ME)
    assert made.writes == 1


@pytest.mark.parametrize(
    ("before", "after", "comments"),
    [("running", "fixed", 1), ("fixed", "fixed", 1), ("fixed", "confirmed", 2), ("fixed", "running", 1)],
)
def test_only_another_verdict_gets_a_comment_of_its_own(before: str, after: str, comments: int) -> None:
    made = forge()
    publish(made, REPOSITORY, 7, Sheet(body="x", verdict=before), me=ME)
    publish(made, REPOSITORY, 7, Sheet(body="y", verdict=after), me=ME)
    assert len(made.ours()) == comments
    assert standing(made.posted, ME) == made.posted[-1]


def test_the_history_is_folded_and_newest_first() -> None:
    """One run needs no history."""
    first, second = replace_run(verdict="confirmed"), replace_run(id="2.1", verdict="fixed")
    later = second.at + timedelta(days=1)
    text = put_together(Sheet(body="x", record=Record(runs=(first, msgspec.structs.replace(second, at=later)))))
    assert text.index("2026-11-22") < text.index("2026-11-21")
    assert "<details><summary>Runs so far</summary>" in text
    assert "Runs so far" not in put_together(Sheet(body="x", record=Record(runs=(first,))))


def test_what_somebody_edited_out_of_shape_is_read_all_the_same() -> None:
    """A maintainer may edit our comment: what is left of it is kept."""
    text = put_together(Sheet(note="n", body="b", record=Record(runs=(RUN,)), verdict="fixed"))
    broken = text.replace("<!-- reprobot:end-note -->", "")
    assert "b" in take_apart(broken).body
    assert take_apart("nothing of ours").verdict == "running"
    assert replace(take_apart(text), record=Record()).body == "b"
    assert RUN.state is RunState.RUNNING
