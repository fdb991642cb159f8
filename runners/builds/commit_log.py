"""Read the commits between two points of a clone, with messages and paths.

The operator names the clone. git reads its objects as data, from our own repository (`foreign_clone`). No file is
checked out, and no object is fetched.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from runners.builds.foreign_clone import borrow_clone
from runners.builds.git import call_git, read_day, read_reason
from runners.core.errors import InfraError, UserError
from runners.core.protocol import Commit

MOST_COMMITS = 20_000
"""About ten times the commits between two releases of TVM or IREE."""
MOST_BYTES = 256 * 1024**2
SECONDS = 120.0
MOST_PATHS = 400
MOST_BODY = 16_000

_REVISION = re.compile(r"[A-Za-z0-9][\w.+/~^-]{0,199}", re.ASCII)
_NUMBERS = re.compile(r"\s*\(#\d+\)")
_NUMBER = re.compile(r"\(#(\d+)\)")
_RECORD, _FIELD = "\x1e", "\x1f"
_FORMAT = "%x1e%H%x1f%ct%x1f%at%x1f%s%x1f%b%x1f"


@dataclass(frozen=True, slots=True)
class CommitLog:
    """One of our repositories, with or without the contents of files. `open_log` makes it from any clone."""

    repository: Path
    clone: Path | None = None
    """The operator's clone, for messages. None for the repository itself."""

    def between(self, start: str, end: str) -> tuple[Commit, ...]:
        """Return the commits after ``start`` up to and including ``end`` along first parents, oldest first.

        If ``start`` is on its own branch, commits that this branch contains as cherry-picks are left out. A
        cherry-pick has the same pull request, or the same subject and author's time.

        Raises:
            UserError: a revision does not exist, or too many commits are between the two.
            InfraError: git cannot be run, or takes too long.
        """
        older, newer = self.resolve(start), self.resolve(end)
        commits = list(_read_log(self.repository, f"{older}..{newer}"))
        picked = {key for _, keys in _read_log(self.repository, f"{newer}..{older}") for key in keys}
        return tuple(commit for commit, keys in reversed(commits) if not keys & picked)

    def resolve(self, revision: str) -> str:
        """Return the commit of a revision. A tag takes precedence over a branch of the same name.

        Raises:
            UserError: the clone has no such revision.
            InfraError: git cannot be run.
        """
        if _REVISION.fullmatch(revision) is None or ".." in revision:
            raise UserError(f"{revision!r} is no revision: give a tag, a branch or a commit")
        for name in list_refs(revision):
            found = _call_git(
                self.repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
            if found.returncode == 0:
                return found.stdout.decode().strip()
        place = self.clone or self.repository
        raise UserError(f"there is no revision {revision!r} in {place}: fetch it, or name another")

    def day(self, revision: str) -> date:
        """Return the day, in UTC, on which a revision was committed.

        Raises:
            UserError: the revision does not exist.
        """
        done = _call_git(self.repository, "log", "-1", "--no-show-signature", "--format=%ct", self.resolve(revision))
        return read_day(done.stdout.decode())

    def last_before(self, day: date, end: str) -> str | None:
        """Return the last commit before ``end`` that existed when ``day`` began, or None."""
        until = f"--until={day.isoformat()}T00:00:00Z"
        done = _call_git(self.repository, "rev-list", "--first-parent", "-1", until, self.resolve(end), "--")
        return done.stdout.decode().strip() or None

    def list_files(self, revision: str) -> tuple[str, ...]:
        """Return the paths of all files of a revision. Needs no contents of files.

        Raises:
            UserError: the revision does not exist.
            InfraError: git cannot be run, or takes too long.
        """
        done = _call_git(self.repository, "ls-tree", "-r", "-z", "--name-only", "--full-tree", self.resolve(revision))
        if done.returncode != 0:
            raise InfraError(f"git cannot list the files of {revision} in {self.repository}: {read_reason(done)}")
        return tuple(done.stdout.decode(errors="replace").split("\0")[:-1])


def open_log(clone: Path, root: Path) -> CommitLog:
    """Return the log of a clone that the operator names. ``root`` is the root of the store.

    Raises:
        UserError: the clone does not exist, or is not complete.
    """
    return CommitLog(borrow_clone(clone, root), clone)


def list_refs(revision: str) -> tuple[str, ...]:
    """Return the refs that a revision may mean, in order of precedence: tags first."""
    return (f"refs/tags/{revision}", f"refs/tags/v{revision}", f"refs/remotes/origin/{revision}", revision)


def _read_log(clone: Path, span: str) -> Iterator[tuple[Commit, frozenset[str]]]:
    """Return the commits of a span, newest first, each with the keys that identify its cherry-picks."""
    done = _call_git(
        clone,
        *("log", "--first-parent", "--diff-merges=first-parent", "--name-only", "--no-renames", "--no-ext-diff"),
        *("--no-textconv", "--no-show-signature", "--no-notes", "--no-mailmap", "--no-color", "--encoding=UTF-8"),
        *(f"--max-count={MOST_COMMITS + 1}", f"--format={_FORMAT}", "--end-of-options", span, "--"),
    )
    if done.returncode != 0:
        raise InfraError(f"git cannot list {span} in {clone}: {read_reason(done)}")
    if len(done.stdout) > MOST_BYTES:
        raise UserError(f"the commits in {span} take more than {MOST_BYTES >> 20} MiB: give a shorter range")
    records = done.stdout.decode(errors="replace").split(_RECORD)[1:]
    if len(records) > MOST_COMMITS:
        raise UserError(f"more than {MOST_COMMITS} commits lie in {span}: give a shorter range")
    return map(_parse_record, records)


def _parse_record(record: str) -> tuple[Commit, frozenset[str]]:
    fields = record.split(_FIELD)
    sha, committed, authored, subject = fields[:4]
    # A message may contain our separator. File names are quoted, so the last field always contains the names.
    body, names = _FIELD.join(fields[4:-1]), fields[-1]
    commit = Commit(
        sha=sha,
        day=read_day(committed),
        subject=subject[:500],
        body=body[:MOST_BODY],
        paths=tuple(name[:500] for name in names.split("\n") if name)[:MOST_PATHS],
    )
    plain = _NUMBERS.sub("", subject).strip().casefold()
    return commit, frozenset({f"{authored} {plain}", *(f"#{number}" for number in _NUMBER.findall(subject))})


def _call_git(clone: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return call_git(clone, *arguments, network=False, seconds=SECONDS)
