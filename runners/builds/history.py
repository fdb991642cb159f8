"""Read a toolchain's history from a clone: commits of the main branch, tags, and the branch point of a build.

Every commit of the main branch (first parents) has an ordinal. A build from its own branch (a release with
cherry-picks) is a *leaf*. It is ordered by the commit where its branch leaves main, and its branch is never searched.
git reads our own repository: the cached clone of an address, or one that borrows the objects of the operator's clone
(`foreign_clone`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from runners.builds.commit_log import CommitLog, list_refs
from runners.builds.foreign_clone import borrow_clone
from runners.builds.git import read_day, read_lines, run_git
from runners.builds.source import Point
from runners.core.errors import InfraError, UserError
from runners.core.protocol import Commit
from runners.environments.files import make_folder

CLONE_S = 1800.0
"""Time limit of a clone. TVM's history without file contents is about 150 MB, which takes minutes on a slow line."""
CLONE_BYTES = 4 * 1024**3
"""Limit for the objects of a clone. LLVM's history without file contents is about 1.5 GiB."""
MOST_FILES = 500_000
MOST_TREE_BYTES = 16 * 1024**3
"""Limits for the files of a commit that is built. LLVM has about 150 000 files with 2 GiB in total."""
_NAME = re.compile(r"[A-Za-z0-9][\w.+/-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneBudget:
    """Limits for the clone of an address."""

    seconds: float = CLONE_S
    file_bytes: int = CLONE_BYTES


_USUAL = CloneBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPoint:
    """A build's commit, the point where its branch leaves main, and the number of later commits on its branch."""

    commit: str
    at: Point
    ahead: int

    @property
    def leaf(self) -> bool:
        return self.ahead > 0


@dataclass(frozen=True)  # no slots, because cached properties need a __dict__
class MainHistory:
    """The main branch of one of our repositories. All shas are full."""

    clone: Path
    branch: str = "main"
    source: str = ""
    """The operator's clone, for messages. Empty for the repository itself."""

    @cached_property
    def line(self) -> tuple[str, ...]:
        """The main branch's commits along first parents, oldest first.

        Raises:
            UserError: the clone has no such branch.
        """
        tip = self.resolve(self.branch)
        return tuple(self._git("rev-list", "--first-parent", "--reverse", tip).split())

    @cached_property
    def _ordinals(self) -> Mapping[str, int]:
        return {sha: number for number, sha in enumerate(self.line)}

    @cached_property
    def tags(self) -> Mapping[str, str]:
        """Tag → commit."""
        form = "%(refname:strip=2) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
        pairs = (
            line.partition(" ") for line in self._git("for-each-ref", f"--format={form}", "refs/tags").splitlines()
        )
        return {name: sha for name, _, sha in pairs}

    def resolve(self, revision: str) -> str:
        """Return the commit of a tag, a branch or a sha. A tag takes precedence over a branch of the same name.

        Raises:
            UserError: the clone has no such revision.
        """
        if _NAME.fullmatch(revision) is None or ".." in revision:
            raise UserError(f"{revision!r} is no revision: give a tag, a branch or a commit")
        for name in list_refs(revision):
            found = self._try_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if found is not None:
                return found
        raise UserError(
            f"there is no revision {revision!r} in {self.source or self.clone}: fetch it, or name another"
        )

    def find_branch_point(self, commit: str) -> BranchPoint:
        """Return the point where the branch of a commit leaves main.

        Raises:
            UserError: the commit shares no history with main.
        """
        if commit in self._ordinals:
            return BranchPoint(commit=commit, at=self._make_point(commit), ahead=0)
        base = self._try_git("merge-base", self.resolve(self.branch), commit)
        if base is None:
            raise UserError(f"{commit[:12]} shares no history with {self.branch}")
        while base not in self._ordinals:  # the base is on a merged side branch: continue at the merge
            base = self._find_merge(base)
        own = self._git("rev-list", "--count", f"{base}..{commit}").strip()
        return BranchPoint(commit=commit, at=self._make_point(base), ahead=int(own))

    def list_points(self, older: Point, newer: Point) -> tuple[Point, ...]:
        """Return the points of main from ``older`` to ``newer``, inclusive."""
        span = self.line[older.ordinal : newer.ordinal + 1]
        return tuple(Point(commit=sha, ordinal=older.ordinal + n) for n, sha in enumerate(span))

    def find_cherry_picks(self, branch: BranchPoint, newer: Point) -> frozenset[str]:
        """Return the commits of main up to ``newer`` that a leaf's branch contains as cherry-picks."""
        if not branch.leaf:
            return frozenset()
        after = {point.commit for point in self.list_points(branch.at, newer)[1:]}
        return frozenset(after - {commit.sha for commit in self.list_commits(branch.commit, newer.commit)})

    def list_commits(self, older: str, newer: str) -> tuple[Commit, ...]:
        """Return the commits between the two, without cherry-picks, with messages and paths, oldest first."""
        return CommitLog(self.clone).between(older, newer)

    def read_days(self, line: Sequence[Point]) -> Mapping[str, date]:
        """Return the day, in UTC, on which each commit was committed."""
        if not line:
            return {}
        form = ("--first-parent", "--no-show-signature", "--format=%H %ct")
        text = self._git("log", *form, f"--max-count={len(line)}", "--end-of-options", line[-1].commit)
        pairs = (row.partition(" ") for row in text.splitlines())
        return {sha: read_day(seconds) for sha, _, seconds in pairs}

    def export_files(self, commit: str, folder: Path) -> None:
        """Write the files of a commit into a new folder. Contents that a cached clone lacks are fetched.

        Filters of ``.gitattributes`` have no effect, because our configuration names no program for them.

        Raises:
            InfraError: the files cannot be fetched or written, or are too many.
        """
        self._check_size(commit)
        folder.mkdir()
        index = {"GIT_INDEX_FILE": str(folder.parent / "index")}
        work = (f"--git-dir={self._git_dir}", f"--work-tree={folder}")
        run_git(folder, *work, "read-tree", "--end-of-options", commit, variables=index)
        run_git(folder, *work, "checkout-index", "--all", "--force", variables=index)

    def _check_size(self, commit: str) -> None:
        """Refuse a commit whose files would fill the disk: a few trees can refer to the same files a million times.

        A cached clone of an address lacks contents, so lengths are known only for the operator's own clone.
        """
        sized = ("-l",) if self.source else ()
        lines = read_lines(self.clone, MOST_FILES, "ls-tree", "-r", *sized, "--end-of-options", commit)
        if len(lines) > MOST_FILES:
            raise InfraError(f"{commit[:12]} has more than {MOST_FILES} files: it is not built")
        sizes = (line.split()[3] for line in lines if sized)  # mode, kind, sha, length or "-", and the path
        if sum(int(size) for size in sizes if size.isdigit()) > MOST_TREE_BYTES:
            raise InfraError(
                f"the files of {commit[:12]} take more than {MOST_TREE_BYTES >> 30} GiB: it is not built"
            )

    @cached_property
    def _git_dir(self) -> str:
        return self._git("rev-parse", "--absolute-git-dir").strip()

    def _make_point(self, commit: str) -> Point:
        return Point(commit=commit, ordinal=self._ordinals[commit])

    def _find_merge(self, commit: str) -> str:
        """Return the commit of main that merged the side branch of ``commit``."""
        tip = self.resolve(self.branch)
        path = self._git("rev-list", "--first-parent", "--ancestry-path", "--reverse", f"{commit}..{tip}").split()
        found = next((sha for sha in path if sha in self._ordinals), None)
        if found is None:
            raise UserError(f"{commit[:12]} was never merged into {self.branch}")
        return found

    def _git(self, *arguments: str) -> str:
        return run_git(self.clone, *arguments)

    def _try_git(self, *arguments: str) -> str | None:
        try:
            return run_git(self.clone, *arguments).strip() or None
        except InfraError:
            return None


def open_history(
    source: str, root: Path, *, branch: str = "main", wanted: Sequence[str] = (), budget: CloneBudget = _USUAL
) -> MainHistory:
    """Return the history at ``source``: a local clone, whose objects are borrowed, or an address, which is cloned.

    A cached clone is fetched if it lacks one of the ``wanted`` revisions. ``budget`` limits the clone.

    Raises:
        UserError: a local folder is not a complete clone.
        InfraError: an address cannot be cloned or fetched.
    """
    local = Path(source.removeprefix("file://")).expanduser()
    if local.is_dir():
        return MainHistory(borrow_clone(local, root), branch, source)
    clone = root / "history" / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.git"
    if not clone.is_dir():
        _clone_repository(source, clone, budget)
    history = MainHistory(clone, branch)
    if any(not _has_revision(history, revision) for revision in wanted):
        run_git(clone, "fetch", "--quiet", "--tags", "--prune", "--force", "origin", "+refs/heads/*:refs/heads/*")
        history = MainHistory(clone, branch)
    return history


def _has_revision(history: MainHistory, revision: str) -> bool:
    try:
        history.resolve(revision)
    except UserError:
        return False
    return True


def _clone_repository(source: str, clone: Path, budget: CloneBudget) -> None:
    """Clone completely or not at all. Only commits and trees are cloned: the order of commits needs no contents."""
    draft = make_folder(clone.parent) / f".{clone.name}.{os.getpid()}"
    words = ("clone", "--quiet", "--bare", "--filter=blob:none", "--", source, str(draft))
    try:
        run_git(clone.parent, *words, seconds=budget.seconds, file_bytes=budget.file_bytes)
    except InfraError:
        shutil.rmtree(draft, ignore_errors=True)  # git removes it, unless git was killed
        raise
    try:
        draft.rename(clone)
    except OSError as error:
        raise InfraError(f"{clone} cannot be written: {error.strerror}") from None
