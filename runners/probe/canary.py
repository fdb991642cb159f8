"""Cache the canary's result for each environment, beside the store, as long as environment and machine are unchanged.

Only a pass is cached on disk. A failed environment may be repaired, so the next process runs the canary again.
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
from runners.environments.store import CANARIES, Environment
from runners.sandbox.contract import Engine


class Canaries:
    """The canary results of this process, and the passes cached in the store below ``root``."""

    def __init__(self, root: Path) -> None:
        self._folder = root / CANARIES
        self._answers: dict[str, NotRun | None] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def check_once(self, name: str, run: Callable[[], NotRun | None]) -> NotRun | None:
        """Run the canary unless its result is known. Return None if it passed, else the reason why not.

        ``name`` comes from `make_canary_key`. A failure of our own infrastructure is not cached.
        """
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name in self._answers:
                return self._answers[name]
            answer = None if self._has_passed(name) else run()
            if answer is None or answer.cause != "infra":
                self._answers[name] = answer
            if answer is None:
                self._store_pass(name)
            return answer

    def _has_passed(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def _store_pass(self, name: str) -> None:
        if not self._has_passed(name):
            with contextlib.suppress(OSError):  # on a full or read-only disk, each process runs the canary
                write_text(self._folder / name, "")


def make_canary_key(
    environment: Environment, engine: Engine, testcase: Testcase, variables: Mapping[str, str]
) -> str:
    """Hash the facts that affect the result: the copy of the environment, the engine, the kernel, the program."""
    depends_on = (
        *(str(environment.interpreter.executable), identify_copy(environment)),
        *(engine.name, engine.image, *engine.guarantees, *engine.limitations),
        *(platform.release(), platform.machine()),
        msgspec.json.encode([testcase, dict(variables)]).decode(),
    )
    key = hashlib.sha256("\n".join(depends_on).encode()).hexdigest()[:16]
    return f"{environment.digest.partition(':')[2]}~{key}"


def identify_copy(environment: Environment) -> str:
    """Identify the copy on disk. The digest identifies only the content, and a damaged copy is built again."""
    try:
        record = (environment.folder / RECORD).stat()
    except OSError:
        return ""
    return f"{record.st_ino} {record.st_mtime_ns}"


def explain_failed_canary(build: str, ended: Ended, last_line: str) -> NotRun:
    """Return the reason why a build whose canary failed is not used. ``last_line`` is the canary's last output.

    A timeout counts as our own failure: on an overloaded machine, a canary timed out after it had printed all of its
    output.
    """
    end = "ran out of time" if isinstance(ended, TimedOut) else _describe_end(ended)
    why = f"{build} fails its canary here: it {end}{f', having printed: {last_line[:300]}' if last_line else ''}"
    return NotRun(why=why, cause="infra" if isinstance(ended, TimedOut) else "unavailable")


def _describe_end(ended: Ended) -> str:
    match ended:
        case Exited(code=code):
            return f"exits with {code}"
        case Signalled(code=code):
            return f"is killed by signal {code}"
        case _:
            return f"does not end well ({type(ended).__name__})"
