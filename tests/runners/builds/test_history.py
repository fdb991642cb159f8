"""A toolchain's history: ordinals on main, leaves, cherry-picks, tags, and the cached clone of an address."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.builds import history as module
from runners.builds.history import CloneBudget, open_history
from runners.core.errors import InfraError, UserError
from tests.flow.planted import GOOD, Planted, plant
from tests.support.repository import make_repository, serve_repository

COUNT = 40


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    """The branch of v1.1 leaves main after commit 10, and has a cherry-pick of commit 20 and one commit of its
    own."""
    return plant(tmp_path, COUNT, body=lambda number: GOOD, backport=(10, 20, "v1.1"))


def test_commits_of_main_have_ordinals(planted: Planted, tmp_path: Path) -> None:
    """Oldest first. A tag takes precedence over a branch of the same name."""
    subprocess.run(["git", "-C", str(planted.path), "branch", "v2.0", "main~3"], check=True)
    history = open_history(str(planted.path), tmp_path)
    assert history.line == planted.main
    assert history.resolve("v2.0") == planted.main[-1]
    assert history.find_branch_point(planted.main[7]).at.ordinal == 7
    assert not history.find_branch_point(planted.main[7]).leaf


def test_leaf_stands_for_its_branch_point(planted: Planted, tmp_path: Path) -> None:
    """It is two commits ahead of commit 10. Its cherry-pick is known by the pull request."""
    history = open_history(str(planted.path), tmp_path)
    leaf = history.find_branch_point(history.resolve("1.1"))
    assert (leaf.at.ordinal, leaf.ahead, leaf.leaf) == (10, 2, True)
    assert history.find_cherry_picks(leaf, history.find_branch_point(planted.main[-1]).at) == {planted.main[20]}
    assert history.find_cherry_picks(history.find_branch_point(planted.main[3]), leaf.at) == frozenset()


def test_listed_points_include_both_ends(planted: Planted, tmp_path: Path) -> None:
    """In order, with ordinals."""
    history = open_history(str(planted.path), tmp_path)
    points = history.list_points(
        history.find_branch_point(planted.main[3]).at, history.find_branch_point(planted.main[6]).at
    )
    assert [(point.commit, point.ordinal) for point in points] == [(planted.main[n], n) for n in (3, 4, 5, 6)]
    assert len(history.read_days(points)) == 4


def test_branch_point_of_a_merged_side_branch_is_the_merge(tmp_path: Path) -> None:
    """The side branch's commits are not on the line of first parents; the merge is."""
    folder = tmp_path / "merged"
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    for words in (
        ("commit", "--quiet", "--allow-empty", "-m", "one"),
        ("checkout", "--quiet", "-b", "side"),
        ("commit", "--quiet", "--allow-empty", "-m", "aside"),
        ("checkout", "--quiet", "main"),
        ("commit", "--quiet", "--allow-empty", "-m", "two"),
        ("merge", "--quiet", "--no-ff", "-m", "merge", "side"),
        ("checkout", "--quiet", "-b", "release", "side"),
        ("commit", "--quiet", "--allow-empty", "-m", "released"),
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
    history = open_history(str(folder), tmp_path)
    joined = history.find_branch_point(history.resolve("release"))
    assert (joined.at.ordinal, joined.ahead) == (2, 1)


@pytest.fixture
def address(planted: Planted) -> Iterator[str]:
    with serve_repository(planted.path) as served:
        yield served


def test_address_is_cloned_once_and_fetched_when_a_revision_is_missing(
    planted: Planted, address: str, tmp_path: Path
) -> None:
    """The clone is bare and has no file contents. Only a missing wanted revision causes a fetch."""
    root = tmp_path / "store"
    subprocess.run(["git", "-C", str(planted.path), "config", "uploadpack.allowFilter", "true"], check=True)
    first = open_history(address, root)
    assert first.line == planted.main
    missing = ["git", "-C", str(first.clone), "rev-list", "--objects", "--all", "--missing=print"]
    assert b"?" in subprocess.run(missing, capture_output=True, check=True).stdout
    subprocess.run(["git", "-C", str(planted.path), "tag", "v3.0", "main~1"], check=True)
    with pytest.raises(UserError, match=r"no revision 'v3\.0'"):
        open_history(address, root).resolve("v3.0")
    assert open_history(address, root, wanted=("v3.0",)).resolve("v3.0") == planted.main[-2]


@pytest.mark.parametrize("budget", [CloneBudget(file_bytes=512), CloneBudget(seconds=0.001)])
def test_clone_over_its_budget_is_refused(address: str, tmp_path: Path, budget: CloneBudget) -> None:
    """In time and in size. Nothing of it stays, and the next clone with another budget succeeds."""
    with pytest.raises(InfraError, match="git clone"):
        open_history(address, tmp_path / "store", budget=budget)
    assert list((tmp_path / "store" / "history").iterdir()) == []
    assert open_history(address, tmp_path / "store").line


def test_export_runs_no_hook_or_filter(planted: Planted, tmp_path: Path) -> None:
    """The files are written as they are in the commit."""
    trap = tmp_path / "sprung"
    hook = planted.path / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    history = open_history(str(planted.path), tmp_path)
    history.export_files(planted.main[5], tmp_path / "sources")
    assert (tmp_path / "sources" / "VERSION").read_text() == "1.0.5\n"
    assert not trap.exists()


@pytest.mark.parametrize("name", ["--all", "a..b", "nothing", "v9", ""])
def test_text_that_is_no_revision_is_refused(planted: Planted, tmp_path: Path, name: str) -> None:
    """git never gets such a text as an option."""
    with pytest.raises(UserError, match="revision"):
        open_history(str(planted.path), tmp_path).resolve(name)


def test_failed_clone_is_reported(tmp_path: Path) -> None:
    """The message is one sentence. A folder that is no clone is the caller's mistake."""
    with pytest.raises(InfraError, match="git clone failed"):
        open_history("git://127.0.0.1:9/none", tmp_path / "store")
    with pytest.raises(UserError, match="is no git repository"):
        open_history(str(tmp_path), tmp_path / "store")
    assert not list((tmp_path / "store" / "history").glob("*.git"))


def test_commit_with_too_many_files_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that holds one tree many times: the files are counted before any is written."""
    clone = make_repository(tmp_path / "clone")
    clone.commit("first", *(f"d{number}/f.txt" for number in range(12)))
    made = open_history(str(clone.path), tmp_path / "store")
    monkeypatch.setattr(module, "MOST_FILES", 12)
    made.export_files(made.line[0], tmp_path / "enough")
    monkeypatch.setattr(module, "MOST_FILES", 11)
    with pytest.raises(InfraError, match="more than 11 files"):
        made.export_files(made.line[0], tmp_path / "many")
    monkeypatch.setattr(module, "MOST_FILES", 12)
    monkeypatch.setattr(module, "MOST_TREE_BYTES", 12 * len("first\n") - 1)
    with pytest.raises(InfraError, match="GiB"):
        made.export_files(made.line[0], tmp_path / "large")
    assert not (tmp_path / "many").exists()
