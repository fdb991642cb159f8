"""The commits between two points of a clone, read with git and nothing of the repository's own: no hook, no filter.

A clone is data that its operator named. Git reads its messages and tree names; it checks nothing out, and whatever
the clone's configuration would have it start (a pager, a signature check, an external diff, a lazy fetch) is off.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from runners.core.errors import InfraError, UserError
from runners.core.protocol import Commit

MOST_COMMITS = 20_000
"""Some ten times what lies between two releases of TVM or IREE."""
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
    """One clone, bare or not, with or without the contents of files."""

    clone: Path

    def between(self, start: str, end: str) -> tuple[Commit, ...]:
        """The commits after ``start`` up to and including ``end`` along first parents, oldest first.

        Where ``start`` is on a branch of its own, what that branch already holds (a cherry-pick: the same pull
        request, or the same subject written at the same second) is left out.

        Raises:
            UserError: there is no such clone or revision, or too many commits lie between the two.
            InfraError: git cannot be run, or takes too long.
        """
        older, newer = self.resolve(start), self.resolve(end)
        commits = list(_log(self.clone, f"{older}..{newer}"))
        picked = {key for _, keys in _log(self.clone, f"{newer}..{older}") for key in keys}
        return tuple(commit for commit, keys in reversed(commits) if not keys & picked)

    def resolve(self, revision: str) -> str:
        """The commit that ``revision`` means: a tag before a branch of the same name, then what git makes of it.

        Raises:
            UserError: it means nothing in this clone.
            InfraError: git cannot be run.
        """
        if _REVISION.fullmatch(revision) is None or ".." in revision:
            raise UserError(f"{revision!r} is no revision: give a tag, a branch or a commit")
        if not self.clone.is_dir():
            raise UserError(f"{self.clone} is no directory: give a clone of the toolchain's repository")
        for name in (f"refs/tags/{revision}", f"refs/tags/v{revision}", f"refs/remotes/origin/{revision}", revision):
            found = _git(self.clone, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if found.returncode == 0:
                return found.stdout.decode().strip()
            if b"not a git repository" in found.stderr:
                raise UserError(f"{self.clone} is no git repository: give a clone of the toolchain's repository")
        raise UserError(f"there is no revision {revision!r} in {self.clone}: fetch it, or name another")

    def day(self, revision: str) -> date:
        """The day, in UTC, on which a revision was committed.

        Raises:
            UserError: there is no such revision.
        """
        done = _git(self.clone, "log", "-1", "--no-show-signature", "--format=%ct", self.resolve(revision))
        return datetime.fromtimestamp(int(done.stdout.decode().strip() or 0), tz=UTC).date()

    def last_before(self, day: date, end: str) -> str | None:
        """The last commit on the way to ``end`` that was there when ``day`` began; None when there is none."""
        until = f"--until={day.isoformat()}T00:00:00Z"
        done = _git(self.clone, "rev-list", "--first-parent", "-1", until, self.resolve(end), "--")
        return done.stdout.decode().strip() or None


def _log(clone: Path, span: str) -> Iterator[tuple[Commit, frozenset[str]]]:
    """Newest first, each with the keys under which a cherry-pick of it would be known."""
    done = _git(
        clone,
        *("log", "--first-parent", "--diff-merges=first-parent", "--name-only", "--no-renames", "--no-ext-diff"),
        *("--no-textconv", "--no-show-signature", "--no-notes", "--no-mailmap", "--no-color", "--encoding=UTF-8"),
        *(f"--max-count={MOST_COMMITS + 1}", f"--format={_FORMAT}", "--end-of-options", span, "--"),
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InfraError(f"git cannot list {span} in {clone}: {said[-1] if said else 'no reason given'}")
    if len(done.stdout) > MOST_BYTES:
        raise UserError(f"the commits in {span} take more than {MOST_BYTES >> 20} MiB: give a shorter range")
    records = done.stdout.decode(errors="replace").split(_RECORD)[1:]
    if len(records) > MOST_COMMITS:
        raise UserError(f"more than {MOST_COMMITS} commits lie in {span}: give a shorter range")
    return map(_parse, records)


def _parse(record: str) -> tuple[Commit, frozenset[str]]:
    fields = record.split(_FIELD)
    sha, committed, authored, subject = fields[:4]
    body, names = _FIELD.join(fields[4:-1]), fields[-1]  # a message may hold our separator; names come quoted
    commit = Commit(
        sha=sha,
        day=datetime.fromtimestamp(int(committed), tz=UTC).date(),
        subject=subject[:500],
        body=body[:MOST_BODY],
        paths=tuple(name[:500] for name in names.split("\n") if name)[:MOST_PATHS],
    )
    plain = _NUMBERS.sub("", subject).strip().casefold()
    return commit, frozenset({f"{authored} {plain}", *(f"#{number}" for number in _NUMBER.findall(subject))})


def _git(clone: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    settings = {
        "core.hooksPath": os.devnull,
        "core.fsmonitor": "false",
        "core.quotePath": "true",
        "safe.directory": "*",
        "protocol.allow": "never",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command: Sequence[str] = ("git", "--no-pager", "--no-replace-objects", *options, "-C", str(clone), *arguments)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InfraError(f"git took more than {SECONDS:.0f} s in {clone}") from None
    except OSError as error:
        raise InfraError(f"git cannot be started: {error.strerror}") from None
