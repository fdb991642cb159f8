"""Zygotes as the supervisor keeps them: processes that have imported a testcase's modules and fork for each probe.

A zygote runs the environment's interpreter (``zygote.py``), a direct child of the supervisor. What it forks becomes
the supervisor's own child, by way of a parent that ends at once, so that the supervisor learns from the kernel how
it ended and need not believe a zygote's word. A zygote lies within reach of the testcase's signals: one that is lost
costs a start, never a result.

``key`` below is all that two probes must share to be forked from the same zygote.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import select
import signal
import socket
import time

from runners.guest import LAUNCHER
from runners.guest.probe.processes import kill, start

START_S = 30.0
"""What imports may take. TVM needs half a second, ten when nothing is cached."""
FORK_S = 10.0
MAX_ZYGOTES = 2
MAX_REFUSALS = 16
MAX_REPLY_BYTES = 4096


Preload = dict[str, list[str]]
"""By name: import ``statements``; the testcase's ``own`` modules, which these must not reach; ``compile_functions``,
whose calls a fork records; packages with ``reports_at_exit``."""


class Lost(Exception):
    """The zygote died, hangs, or talks nonsense."""


class Zygote:
    """One of them. Raises ``Lost``, with the reason, when it turns out not to be usable."""

    def __init__(
        self, python: str, environment: dict[str, str], limits: dict[str, int], preload: Preload, places: list[str]
    ) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        said, output = os.pipe()
        os.set_blocking(said, False)
        try:
            self.pid = start(
                [python, LAUNCHER, "script.zygote", str(theirs.fileno())],
                environment,
                limits,
                (output, output),
                (theirs.fileno(),),
            )
        finally:
            theirs.close()
            os.close(output)
        try:
            self.socket.send(marshal.dumps((preload, places)))
            answer = self.hear(START_S)
            if answer != b"ready":
                raise Lost(answer.decode("utf-8", "replace") or "it ended while importing")
            if select.select([said], [], [], 0)[0] and os.read(said, 1):
                raise Lost("its imports print")
        except BaseException:
            self.close()
            raise
        finally:
            os.close(said)

    def hear(self, seconds: float) -> bytes:
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(MAX_REPLY_BYTES)
        except OSError as error:
            raise Lost(f"it does not answer: {error}") from error

    def fork(
        self,
        argv: list[str],
        descriptors: tuple[int, ...],
        conditions: tuple[dict[str, str], int | None, int | None, int],
    ) -> int:
        """A child of ours that runs ``argv`` (script and arguments) with late variables, perturb byte, seed, and
        seconds of processor time.

        Returns its process id.
        """
        try:
            self.socket.settimeout(FORK_S)
            socket.send_fds(self.socket, [marshal.dumps((argv, *conditions))], list(descriptors))
        except OSError as error:
            raise Lost(f"it can't be asked: {error}") from error
        answer = self.hear(FORK_S)
        if not answer.isdigit() or parent_of(int(answer)) != os.getpid():
            raise Lost(f"it could not fork: {answer[:200]!r}")
        return int(answer)

    def close(self) -> None:
        self.socket.close()
        kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def parent_of(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


class Zygotes:
    """Those that are alive, the least used first, and why others could not be had."""

    def __init__(self, places: list[str]) -> None:
        self.places = places
        self.alive: dict[str, Zygote] = {}
        self.refused: dict[str, str] = {}
        self.started = 0.0
        """Seconds that the last look-up spent on starting one."""

    @property
    def pids(self) -> set[int]:
        return {zygote.pid for zygote in self.alive.values()}

    def find(
        self, python: str, environment: dict[str, str], limits: dict[str, int], preload: Preload
    ) -> Zygote | str:
        """The zygote for such a probe; or why there is none, and the probe must have a process of its own."""
        key = json.dumps([python, environment, limits, preload], sort_keys=True)
        self.started = 0.0
        if key in self.refused:
            return self.refused[key]
        began = time.monotonic()
        zygote = self.alive.pop(key, None)
        if zygote is None:
            while len(self.alive) >= MAX_ZYGOTES:
                self.alive.pop(next(iter(self.alive))).close()
            try:
                zygote = Zygote(python, environment, limits, preload, self.places)
            except (Lost, OSError) as error:
                if len(self.refused) < MAX_REFUSALS:
                    self.refused[key] = str(error)[:300]
                return str(error)[:300]
            self.started = time.monotonic() - began
        self.alive[key] = zygote
        return zygote

    def fork(
        self,
        zygote: Zygote,
        argv: list[str],
        descriptors: tuple[int, ...],
        conditions: tuple[dict[str, str], int | None, int | None, int],
    ) -> int | str:
        """As ``Zygote.fork``; why it could not be done, where that was the end of the zygote."""
        try:
            return zygote.fork(argv, descriptors, conditions)
        except Lost as error:
            self.drop(zygote)
            return str(error)

    def drop(self, zygote: Zygote) -> None:
        self.alive = {key: one for key, one in self.alive.items() if one is not zygote}
        zygote.close()

    def forget_dead(self) -> None:
        """Those that did not survive what the last probe did."""
        for zygote in list(self.alive.values()):
            if parent_of(zygote.pid) != os.getpid():
                self.drop(zygote)

    def close(self) -> None:
        for zygote in list(self.alive.values()):
            self.drop(zygote)
