"""Commits are read from a clone as data: the right ones, once each, without running any program of the clone."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from runners.builds.commit_log import open_log
from runners.builds.git import read_day
from runners.builds.history import open_history
from runners.core.errors import UserError
from tests.support.repository import Repository, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "clone")


def test_commits_come_oldest_first_with_messages_and_paths(repository: Repository) -> None:
    """``start`` is excluded, ``end`` is included."""
    repository.commit("first", "a.txt")
    repository.git("tag", "v1.0")
    repository.commit(
        "Fix the parser (#12)\n\nIt read too far.\n\nSigned-off-by: A", "src/parse.cc", day="2026-02-03"
    )
    last = repository.commit("third", "src/parse.cc", "tests/ä.py")
    second, third = open_log(repository.path, repository.path.parent / "store").between("v1.0", "main")
    assert (second.subject, second.day, second.paths) == (
        "Fix the parser (#12)",
        date(2026, 2, 3),
        ("src/parse.cc",),
    )
    assert "It read too far." in second.body
    assert third.sha == last
    assert third.paths[0] == "src/parse.cc"


def test_files_of_a_revision_are_listed(repository: Repository) -> None:
    """With names that git would quote, and without the files of later commits."""
    repository.commit("first", "a.txt", "src/ä b.cc")
    repository.git("tag", "v1.0")
    repository.commit("second", "c.txt")
    assert set(open_log(repository.path, repository.path.parent / "store").list_files("v1.0")) == {
        "a.txt",
        "src/ä b.cc",
    }


def test_merge_is_one_commit(repository: Repository) -> None:
    """It has the files that it brought in. The side branch's commits are not on the line of first parents."""
    repository.commit("first", "a.txt")
    repository.git("switch", "--quiet", "-c", "side")
    repository.commit("on the side", "b.txt")
    repository.git("switch", "--quiet", "main")
    repository.commit("second", "c.txt")
    repository.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    found = open_log(repository.path, repository.path.parent / "store").between("main~2", "main")
    assert [(one.subject, one.paths) for one in found] == [("second", ("c.txt",)), ("Merge side", ("b.txt",))]


def test_cherry_picks_of_the_release_branch_are_left_out(repository: Repository) -> None:
    """A cherry-pick keeps its author's time and subject, or names the same pull request."""
    repository.commit("first", "a.txt")
    repository.git("branch", "release")
    kept = repository.commit("Fix overflow in pad", "pad.cc", day="2026-03-01")
    numbered = repository.commit("Fix layout (#77)", "layout.cc", day="2026-03-02")
    repository.commit("Add softmax (#78)", "softmax.cc", day="2026-03-03")
    repository.git("switch", "--quiet", "release")
    repository.git("cherry-pick", kept, day="2026-04-01")
    repository.git("cherry-pick", numbered)
    repository.git("commit", "--quiet", "--amend", "--reset-author", "-m", "[release] layout (#77) (#90)")
    repository.git("tag", "v1.0")
    found = open_log(repository.path, repository.path.parent / "store").between("v1.0", "main")
    assert [one.subject for one in found] == ["Add softmax (#78)"]


def test_tag_takes_precedence_over_a_branch_of_the_same_name(repository: Repository) -> None:
    """Releases are tags, and some projects give the release branch the same name. ``1.0`` finds ``v1.0``."""
    tagged = repository.commit("first", "a.txt")
    repository.git("tag", "v1.0")
    repository.commit("second", "a.txt")
    repository.git("branch", "v1.0")
    log = open_log(repository.path, repository.path.parent / "store")
    assert log.resolve("v1.0") == log.resolve("1.0") == tagged


@pytest.mark.parametrize(
    "revision", ["--upload-pack=touch x", "-x", "", "a..b", "a b", "@{-1}", "no-such-tag", "x" * 400]
)
def test_text_that_is_no_revision_is_refused(repository: Repository, revision: str) -> None:
    """git does not get such a text."""
    repository.commit("first", "a.txt")
    with pytest.raises(UserError):
        open_log(repository.path, repository.path.parent / "store").resolve(revision)


def test_folder_that_is_no_clone_is_refused(tmp_path: Path) -> None:
    """The message is one sentence for a missing folder and for another folder."""
    with pytest.raises(UserError, match="no git repository"):
        open_log(tmp_path, tmp_path / "store")
    with pytest.raises(UserError, match="no directory"):
        open_log(tmp_path / "none", tmp_path / "store")


def test_no_program_of_the_clones_configuration_starts(repository: Repository, tmp_path: Path) -> None:
    """Not a pager, a monitor, a signature check, a diff or text filter, or a hook."""
    repository.commit("first", "a.txt")
    repository.commit("second", "a.txt")
    trap, mark = tmp_path / "trap.sh", tmp_path / "ran"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\n")
    trap.chmod(0o755)
    for name in ("core.pager", "core.fsmonitor", "gpg.program", "diff.external", "diff.x.textconv", "core.editor"):
        repository.git("config", name, str(trap))
    repository.git("config", "log.showSignature", "true")
    (repository.path / ".git/info/attributes").write_text("* diff=x\n")
    assert len(open_log(repository.path, repository.path.parent / "store").between("main~1", "main")) == 1
    assert not mark.exists()


def test_last_commit_before_a_day(repository: Repository) -> None:
    """The newest commit at the start of the day; None before the first commit."""
    repository.commit("first", "a.txt", day="2026-01-10")
    second = repository.commit("second", "a.txt", day="2026-01-20")
    repository.commit("third", "a.txt", day="2026-01-30")
    log = open_log(repository.path, repository.path.parent / "store")
    assert log.last_before(date(2026, 1, 25), "main") == second
    assert log.last_before(date(2026, 1, 10), "main") is None
    assert log.day(second) == date(2026, 1, 20)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("99999999999999 +0000", date(9999, 12, 31)),
        (f"{2**62} +0000", date(9999, 12, 31)),
        ("-5 +0000", date(1970, 1, 1)),
        ("", date(1970, 1, 1)),
        ("soon", date(1970, 1, 1)),
    ],
)
def test_any_date_of_a_commit_gives_a_day(repository: Repository, tmp_path: Path, written: str, day: date) -> None:
    """A committer can write any date into a commit."""
    first = repository.commit("first", "a.txt")
    tree = repository.git("rev-parse", "HEAD^{tree}")
    (tmp_path / "raw").write_text(
        f"tree {tree}\nparent {first}\nauthor A <a> 1700000000 +0000\ncommitter A <a> {written}\n\nsecond\n"
    )
    made = repository.git("hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "raw"))
    repository.git("update-ref", "refs/heads/main", made)
    log, history = open_log(repository.path, tmp_path / "s"), open_history(str(repository.path), tmp_path / "s")
    days = {log.day("main"), log.between(first, "main")[0].day}
    days.add(history.read_days([history.find_branch_point(made).at])[made])
    assert days <= {day, date(1970, 1, 1), date(1969, 12, 31)}


@pytest.mark.parametrize("text", ["99999999999999999", "-99999999999999999", "", "x", "1e5", "12"])
def test_any_time_gives_a_day(text: str) -> None:
    assert date.min <= read_day(text) <= date.max
