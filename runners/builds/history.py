"""The toolchain's history: a cached clone without file contents, its tags, and where a build joins the main branch.

Along the main branch (first parents) every commit has an ordinal. A build from a branch of its own (a release with
cherry-picks) is a *leaf*: it is ordered by the commit where its branch leaves main, and nothing between two builds is
ever sought on it. Git reads; nothing is checked out, no hook, filter or configuration of a repository runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from runners.builds.commit_log import CommitLog
from runners.builds.source import Point
from runners.core.errors import InfraError, UserError
from runners.core.protocol import Commit
from runners.environments.atomic_dirs import make_folder

CLONE_S = 1800.0
"""TVM's history without file contents is about 150 MB; over a slow line that takes minutes."""
GIT_S = 300.0
_NAME = re.compile(r"[A-Za-z0-9][\w.+/-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A build's commit, and the point where its history joins main; ``ahead`` commits of its own branch follow."""

    commit: str
    at: Point
    ahead: int

    @property
    def leaf(self) -> bool:
        return self.ahead > 0


@dataclass(frozen=True)  # no slots: the cached line needs a place
class History:
    """One clone, bare or not. All shas are full."""

    clone: Path
    branch: str = "main"

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
        """The commit that a tag (which wins over a branch of the same name), branch or sha means.

        Raises:
            UserError: it means nothing here.
        """
        if _NAME.fullmatch(revision) is None or ".." in revision:
            raise UserError(f"{revision!r} is no revision: give a tag, a branch or a commit")
        for name in (f"refs/tags/{revision}", f"refs/tags/v{revision}", f"refs/remotes/origin/{revision}", revision):
            found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if found is not None:
                return found
        raise UserError(f"there is no revision {revision!r} in {self.clone}: fetch it, or name another")

    def join(self, commit: str) -> Joined:
        """Where a commit's history joins the main branch.

        Raises:
            UserError: it shares no commit with it.
        """
        if commit in self._ordinals:
            return Joined(commit=commit, at=self._point(commit), ahead=0)
        base = self._ask("merge-base", self.resolve(self.branch), commit)
        if base is None:
            raise UserError(f"{commit[:12]} shares no history with {self.branch}")
        while base not in self._ordinals:  # it was merged from a side branch: the merge is where it joined
            base = self._merged_by(base)
        own = self._git("rev-list", "--count", f"{base}..{commit}").strip()
        return Joined(commit=commit, at=self._point(base), ahead=int(own))

    def between(self, older: Point, newer: Point) -> tuple[Point, ...]:
        """The points of main from ``older`` to ``newer``, both included."""
        span = self.line[older.ordinal : newer.ordinal + 1]
        return tuple(Point(commit=sha, ordinal=older.ordinal + n) for n, sha in enumerate(span))

    def picked(self, branch: Joined, newer: Point) -> frozenset[str]:
        """Commits of main after a leaf's junction, up to ``newer``, that its branch holds too, as cherry-picks."""
        if not branch.leaf:
            return frozenset()
        after = {point.commit for point in self.between(branch.at, newer)[1:]}
        return frozenset(after - {commit.sha for commit in self.commits(branch.commit, newer.commit)})

    def commits(self, older: str, newer: str) -> tuple[Commit, ...]:
        """What lies between two commits, cherry-picks left out, with messages and paths; oldest first."""
        return CommitLog(self.clone).between(older, newer)

    def days(self, line: Sequence[Point]) -> Mapping[str, date]:
        """When each commit was committed, in UTC."""
        if not line:
            return {}
        form = ("--first-parent", "--no-show-signature", "--format=%H %ct")
        text = self._git("log", *form, f"--max-count={len(line)}", "--end-of-options", line[-1].commit)
        pairs = (row.split(" ") for row in text.splitlines())
        return {sha: datetime.fromtimestamp(int(seconds), UTC).date() for sha, seconds in pairs}

    def export(self, commit: str, folder: Path) -> None:
        """The files of a commit, written into a new folder. What a cached clone lacks is fetched.

        Raises:
            InfraError: they cannot be fetched or written.
        """
        folder.mkdir()
        index = {"GIT_INDEX_FILE": str(folder.parent / "index")}
        work = (f"--git-dir={self._git_dir}", f"--work-tree={folder}")
        run_git(folder, *work, "read-tree", "--end-of-options", commit, more=index)
        run_git(folder, *work, "checkout-index", "--all", "--force", more=index)

    @cached_property
    def _git_dir(self) -> str:
        return self._git("rev-parse", "--absolute-git-dir").strip()

    def _point(self, commit: str) -> Point:
        return Point(commit=commit, ordinal=self._ordinals[commit])

    def _merged_by(self, commit: str) -> str:
        tip = self.resolve(self.branch)
        path = self._git("rev-list", "--first-parent", "--ancestry-path", "--reverse", f"{commit}..{tip}").split()
        found = next((sha for sha in path if sha in self._ordinals), None)
        if found is None:
            raise UserError(f"{commit[:12]} was never merged into {self.branch}")
        return found

    def _git(self, *arguments: str) -> str:
        return run_git(self.clone, *arguments)

    def _ask(self, *arguments: str) -> str | None:
        try:
            return run_git(self.clone, *arguments).strip() or None
        except InfraError:
            return None


def open_history(source: str, root: Path, *, branch: str = "main", wanted: Sequence[str] = ()) -> History:
    """The history at ``source``: a local clone as it is, or the cached clone of an address.

    A cached clone is brought up to date when it lacks one of the ``wanted`` revisions.

    Raises:
        UserError: a local folder is no clone.
        InfraError: an address cannot be cloned or fetched.
    """
    local = Path(source).expanduser()
    if local.is_dir():
        run_git(local, "rev-parse", "--git-dir", wrong=f"{local} is no git repository: give a clone")
        return History(local, branch)
    clone = root / "history" / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.git"
    if not clone.is_dir():
        _clone(source, clone)
    history = History(clone, branch)
    if any(not _has(history, revision) for revision in wanted):
        run_git(clone, "fetch", "--quiet", "--tags", "--prune", "--force", "origin", "+refs/heads/*:refs/heads/*")
        history = History(clone, branch)
    return history


def _has(history: History, revision: str) -> bool:
    try:
        history.resolve(revision)
    except UserError:
        return False
    return True


def _clone(source: str, clone: Path) -> None:
    """Whole or not at all. Commits and trees only: the contents of files are not needed to order commits."""
    draft = make_folder(clone.parent) / f".{clone.name}.{os.getpid()}"
    run_git(
        clone.parent, "clone", "--quiet", "--bare", "--filter=blob:none", "--", source, str(draft), seconds=CLONE_S
    )
    try:
        draft.rename(clone)
    except OSError as error:
        raise InfraError(f"{clone} cannot be written: {error.strerror}") from None


_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "safe.directory": "*",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
}
"""Whatever a repository's configuration would have git start is switched off."""


def run_git(
    folder: Path,
    *arguments: str,
    seconds: float = GIT_S,
    wrong: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Standard output of git in ``folder``; ``more`` are variables besides ours.

    Raises:
        UserError: it failed, and ``wrong`` says what the caller did wrong.
        InfraError: it failed, cannot be started or takes too long.
    """
    options = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    environment = {
        **{name: os.environ[name] for name in _PASSED if name in os.environ},
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        **more,
    }
    command = ["git", "--no-pager", *options, "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise InfraError(f"git {arguments[0]} took more than {seconds:.0f} s in {folder}") from None
    except OSError as error:
        raise InfraError(f"git cannot be started ({error.strerror}): install it") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if wrong:
            raise UserError(wrong)
        raise InfraError(f"git {arguments[0]} failed in {folder}: {said[-1][:300] if said else 'no reason given'}")
    return done.stdout.decode(errors="replace")


_PASSED = ("PATH", "HOME", "http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "SSL_CERT_FILE")
