"""A hostile clone executes nothing: each test first shows that plain git executes the clone's program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.builds.commit_log import open_log
from runners.builds.foreign_clone import borrow_clone
from runners.builds.history import open_history
from runners.core.errors import InfraError, UserError
from tests.support.repository import Repository, make_repository

pytestmark = pytest.mark.thorough  # each test clones a repository

Arm = Callable[[Repository, str], None]
"""Make a clone hostile: its program is the second argument."""


def _name_filter(kind: str) -> Arm:
    def arm(clone: Repository, trap: str) -> None:
        (clone.path / ".git/info/attributes").write_text("* filter=x diff=x merge=x\n")
        clone.git("config", f"filter.x.{kind}", trap)
        clone.git("config", "filter.x.required", "true")

    return arm


def _name_filter_in_the_tree(clone: Repository, trap: str) -> None:
    clone.git("config", "filter.x.smudge", trap)


def _include(key: str) -> Arm:
    def arm(clone: Repository, trap: str) -> None:
        included = clone.path / ".git" / "more"
        included.write_text(f'[filter "x"]\n\tsmudge = {trap}\n[core]\n\tfsmonitor = {trap}\n')
        clone.git("config", key, str(included))

    return arm


def _set(key: str) -> Arm:
    def arm(clone: Repository, trap: str) -> None:
        clone.git("config", key, trap)
        (clone.path / ".git/info/attributes").write_text("* diff=x filter=x\n")

    return arm


def _install_hooks(clone: Repository, trap: str) -> None:
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        hook = clone.path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{trap}\n")
        hook.chmod(0o755)


def _promise(clone: Repository, trap: str) -> None:
    """Remove a blob that a promisor remote is said to have. The configuration allows every protocol."""
    lost = clone.git("rev-parse", "HEAD:a.txt")
    (clone.path / ".git/objects" / lost[:2] / lost[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(clone.path),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": trap,
        "protocol.file.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        clone.git("config", key, value)


def _add_submodule(clone: Repository, trap: str) -> None:
    clone.git("config", "submodule.sub.update", f"!{trap}")
    clone.git("config", "submodule.recurse", "true")
    (clone.path / ".gitmodules").write_text(f'[submodule "sub"]\n\tpath = sub\n\turl = ext::{trap}\n')
    head = clone.git("rev-parse", "HEAD")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    clone.git("add", ".gitmodules")
    clone.git("commit", "--quiet", "-m", "with a submodule")


ATTACKS: dict[str, Arm] = {
    "smudge filter": _name_filter("smudge"),
    "filter process": _name_filter("process"),
    "smudge filter by the tree's attributes": _name_filter_in_the_tree,
    "include": _include("include.path"),
    "conditional include": _include("includeIf.gitdir:/.path"),
    "file system monitor": _set("core.fsmonitor"),
    "text conversion": _set("diff.x.textconv"),
    "external diff": _set("diff.external"),
    "pager": _set("core.pager"),
    "signature check": _set("gpg.program"),
    "ssh command": _set("core.sshCommand"),
    "credential helper": _set("credential.helper"),
    "alias": _set("alias.log"),
    "hooks": _install_hooks,
    "promisor remote": _promise,
    "submodule": _add_submodule,
}

SEEN_BY_PLAIN_GIT = {
    "smudge filter": ("archive", "HEAD"),
    "filter process": ("archive", "HEAD"),
    "smudge filter by the tree's attributes": ("archive", "HEAD"),
    "include": ("archive", "HEAD"),
    "conditional include": ("archive", "HEAD"),
    "file system monitor": ("status",),
    "text conversion": ("log", "-p"),
    "external diff": ("log", "-p", "--ext-diff"),
    "hooks": ("checkout", "--quiet", "main~1"),
    "promisor remote": ("cat-file", "-p", "main:a.txt"),
}
"""Commands of plain git with which the clone's program starts. The other attacks need a terminal or a network."""


@pytest.fixture
def clone(tmp_path: Path) -> Repository:
    made = make_repository(tmp_path / "clone")
    (made.path / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    made.commit("first", "a.txt")
    made.commit("second", "a.txt", "b.txt")
    return made


def _set_trap(tmp_path: Path) -> tuple[str, Path]:
    trap, mark = tmp_path / "trap.sh", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\n")
    trap.chmod(0o755)
    return str(trap), mark


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_clone_executes_nothing(clone: Repository, tmp_path: Path, name: str) -> None:
    """Neither when its commits are listed nor when the files of a commit are written, whatever its configuration."""
    trap, mark = _set_trap(tmp_path)
    ATTACKS[name](clone, trap)
    if name in SEEN_BY_PLAIN_GIT:
        plain = ["git", "-C", str(clone.path), *SEEN_BY_PLAIN_GIT[name]]
        subprocess.run(plain, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        assert mark.exists()
        mark.unlink()
    history = open_history(str(clone.path), tmp_path / "store")
    assert len(history.line) >= 2
    assert history.list_commits(history.line[0], history.line[-1])
    assert history.tags == {}
    try:
        history.export_files(history.line[-1], tmp_path / "sources")
    except InfraError:
        assert name == "promisor remote"  # the blob is missing, and nothing is fetched
    else:
        assert (tmp_path / "sources" / "a.txt").read_text() == "first\nsecond\n"
    assert open_log(clone.path, tmp_path / "store").resolve("main") == history.line[-1]
    assert not mark.exists()


def test_address_of_a_repository_on_this_machine_is_read_like_a_clone(clone: Repository, tmp_path: Path) -> None:
    """``git clone`` would execute upload-pack there, which obeys the repository's configuration."""
    trap, mark = _set_trap(tmp_path)
    _promise(clone, trap)
    assert len(open_history(f"file://{clone.path}", tmp_path / "store").line) == 2
    with pytest.raises(InfraError, match="git clone failed"):
        open_history(f"ext::sh -c 'touch% {mark}'", tmp_path / "store")
    assert not mark.exists()


@pytest.mark.parametrize("place", ["objects/info/alternates", "objects/info/http-alternates"])
def test_borrowed_objects_are_refused(clone: Repository, tmp_path: Path, place: str) -> None:
    """The lender may be a private repository of this machine, and a build's output is shown to strangers."""
    private = make_repository(tmp_path / "private")
    private.commit("secret", "s.txt")
    (clone.path / ".git" / place).write_text(f"{private.path}/.git/objects\n")
    with pytest.raises(UserError, match="git repack"):
        borrow_clone(clone.path, tmp_path / "store")


def test_links_among_the_objects_are_refused(clone: Repository, tmp_path: Path) -> None:
    """They lead to another repository as alternates do."""
    private = make_repository(tmp_path / "private")
    private.commit("secret", "s.txt")
    link = clone.path / ".git/objects/linked"
    link.symlink_to(private.path / ".git/objects")
    with pytest.raises(UserError, match="link or a special file"):
        borrow_clone(clone.path, tmp_path / "store")
    link.unlink()
    (clone.path / ".git/objects").rename(tmp_path / "objects")
    (clone.path / ".git/objects").symlink_to(tmp_path / "objects")
    with pytest.raises(UserError, match="link or a special file"):
        borrow_clone(clone.path, tmp_path / "store")


def test_git_file_is_followed_only_to_a_work_tree_that_names_it(clone: Repository, tmp_path: Path) -> None:
    """An ordinary linked work tree is read. A file that names somebody else's repository is refused."""
    clone.git("worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "side")
    assert len(open_history(str(tmp_path / "tree"), tmp_path / "store").line) == 2
    pretender = tmp_path / "pretender"
    pretender.mkdir()
    for target in (clone.path / ".git", clone.path / ".git/worktrees/tree"):
        (pretender / ".git").write_text(f"gitdir: {target}\n")
        with pytest.raises(UserError, match="keeps its history elsewhere"):
            borrow_clone(pretender, tmp_path / "store")
    (pretender / ".git").unlink()
    (pretender / ".git").symlink_to(clone.path / ".git")
    with pytest.raises(UserError, match="keeps its history elsewhere"):
        borrow_clone(pretender, tmp_path / "store")


def test_references_are_read_as_git_reads_them(clone: Repository, tmp_path: Path) -> None:
    """Loose and packed, branches, remote branches and both kinds of tags. A loose reference takes precedence."""
    clone.git("tag", "light")
    clone.git("tag", "-a", "-m", "x", "v1.0", "main~1")
    clone.git("update-ref", "refs/remotes/origin/next", "main")
    clone.git("pack-refs", "--all")
    third = clone.commit("third", "c.txt")
    wanted = clone.git("rev-parse", "main~1", "main~2")
    history = open_history(str(clone.path), tmp_path / "store")
    assert (history.resolve("main"), history.resolve("HEAD")) == (third, third)
    assert "\n".join((history.tags["light"], history.tags["v1.0"])) == wanted
    assert history.resolve("next") == history.tags["light"]


def test_strange_references_are_left_out(clone: Repository, tmp_path: Path) -> None:
    """git would die of some of them. A reference that is a pipe is not opened."""
    head = clone.git("rev-parse", "HEAD")
    packed = "".join(f"{head} {name}\n" for name in ("refs/heads/../../x", "refs/heads/a..b", "evil", "refs/tags/ok"))
    (clone.path / ".git/packed-refs").write_text(packed)
    os.mkfifo(clone.path / ".git/refs/heads/pipe")
    (clone.path / ".git/refs/heads/link").symlink_to("/etc/passwd")
    history = open_history(str(clone.path), tmp_path / "store")
    assert history.tags == {"ok": head}
    assert len(history.line) == 2


def test_shallow_clone_ends_where_it_ends(clone: Repository, tmp_path: Path) -> None:
    """Its oldest commit has a parent that it does not have."""
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{clone.path}", str(tmp_path / "shallow")], check=True
    )
    assert len(open_history(str(tmp_path / "shallow"), tmp_path / "store").line) == 1


def test_repository_of_ours_follows_the_clone(clone: Repository, tmp_path: Path) -> None:
    """The same while the clone does not change, another when a branch moves. Our files alone are written."""
    store = tmp_path / "store"
    before = sorted(path.relative_to(clone.path) for path in clone.path.rglob("*"))
    first = borrow_clone(clone.path, store)
    assert borrow_clone(clone.path, store) == first
    open_history(str(clone.path), store).export_files("HEAD", tmp_path / "sources")
    assert sorted(path.relative_to(clone.path) for path in clone.path.rglob("*")) == before
    clone.commit("third", "c.txt")
    assert borrow_clone(clone.path, store) != first
