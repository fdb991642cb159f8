"""What the canary of each environment said, remembered beside the store for as long as both ends stay what they were.

Only a canary that lived is remembered on disk: an environment that failed may be mended, and is asked again by the
next process.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from runners.core.protocol import Ended, Exited, NotRun, Signalled, Testcase, TimedOut
from runners.environments.atomic_dirs import RECORD
from runners.environments.files import write_text
from runners.environments.store import Environment
from runners.sandbox.contract import Engine

FOLDER = "canaries"


class Canaries:
    """Answers of this process, and those kept in the folder ``canaries`` of a store (nowhere without one)."""

    def __init__(self, root: Path | None = None) -> None:
        self._folder = None if root is None else root / FOLDER
        self._answers: dict[str, NotRun | None] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def ask(self, name: str, run: Callable[[], NotRun | None]) -> NotRun | None:
        """The answer, asked once; one that is our own failure is given but not remembered.

        ``name`` is of `canary_name`. None: the canary lives.
        """
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name in self._answers:
                return self._answers[name]
            answer = None if self._lived(name) else run()
            if answer is None or answer.cause != "infra":
                self._answers[name] = answer
            if answer is None:
                self._remember(name)
            return answer

    def _lived(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name).is_file()

    def _remember(self, name: str) -> None:
        if self._folder is not None and not self._lived(name):
            with contextlib.suppress(OSError):  # a full or read-only disk costs a second next time, no more
                write_text(self._folder / name, "")


def canary_name(environment: Environment, engine: Engine, testcase: Testcase, variables: Mapping[str, str]) -> str:
    """Names an answer by all it rests on: this build of the environment, the engine, the kernel, the program."""
    rests_on = (
        *(str(environment.interpreter.executable), _copy(environment)),
        *(engine.name, engine.image, *engine.guarantees, *engine.limitations),
        *(platform.release(), platform.machine()),
        msgspec.json.encode([testcase, dict(variables)]).decode(),
    )
    key = hashlib.sha256("\n".join(rests_on).encode()).hexdigest()[:16]
    return f"{environment.digest.partition(':')[2]}~{key}"


def _copy(environment: Environment) -> str:
    """Content names an environment; this says which copy of it, for a damaged one is built again."""
    try:
        record = (environment.folder / RECORD).stat()
    except OSError:
        return ""
    return f"{record.st_ino} {record.st_mtime_ns}"


def why_not(build: str, ended: Ended, said: str) -> NotRun:
    """What a canary that did not live says of its build; ``said`` is the last line it printed.

    One that was too slow says nothing of the build: seen on a machine with more to do than it has processors, after
    the canary had printed all it had to.
    """
    how = "ran out of time" if isinstance(ended, TimedOut) else _how(ended)
    why = f"{build} fails its canary here: it {how}{f', having printed: {said[:300]}' if said else ''}"
    return NotRun(why=why, cause="infra" if isinstance(ended, TimedOut) else "unavailable")


def _how(ended: Ended) -> str:
    match ended:
        case Exited(code=code):
            return f"exits with {code}"
        case Signalled(code=code):
            return f"is killed by signal {code}"
        case _:
            return f"does not end well ({type(ended).__name__})"
