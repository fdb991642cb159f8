"""Start zygotes and fork probes from them. Only the supervisor imports this module.

A zygote is a process that has imported a testcase's modules and forks for each probe. A zygote runs the interpreter
of the environment (``script/zygote.py``) and is a direct child of the supervisor. A forked probe becomes the
supervisor's own child, because its parent ends at once. So the supervisor learns from the kernel how the probe ended,
and need not trust the zygote. Signals of the testcase can reach a zygote. A lost zygote costs a start, but never a
result.

The ``key`` in ``Zygotes.get_zygote`` contains everything that two probes must share to use the same zygote.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import marshal
import os
import resource
import select
import signal
import socket

from runners.guest import LAUNCHER
from runners.guest.probe.processes import read_parent, send_signal, start_process

START_S = 30.0
"""Time limit of the imports. TVM takes half a second, or ten seconds if its files are not in the disk cache."""
FORK_S = 10.0
MAX_ZYGOTES = 2
MAX_REFUSALS = 16
MAX_REPLY_BYTES = 4096
MAX_REASON = 300

Preload = dict[str, list[str]]
"""Import ``statements``; the testcase's ``own`` modules, which the imports must not reach; ``compile_functions``,
whose calls a fork records; packages with ``reports_at_exit`` of live objects."""
Conditions = tuple[dict[str, str], int | None, int | None, int]
"""Late environment variables, perturb byte, seed, and seconds of processor time of a fork."""


GUARDED_FILES = (
    *("mem", "oom_score_adj", "oom_adj", "coredump_filter", "clear_refs", "comm", "autogroup", "sched"),
    *("uid_map", "gid_map", "projid_map", "setgroups", "timerslack_ns"),
)
"""Files of ``/proc/PID`` through which a process can be changed."""
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
IOPRIO_WHO_PROCESS = 1
IOPRIO_LOWEST = (2 << 13) | 7


class ZygoteLost(Exception):
    """The zygote died, hangs, or sent an invalid answer."""


class Zygote:
    """One zygote process. All methods raise ``ZygoteLost``, with the reason, if the zygote is unusable."""

    def __init__(
        self, python: str, environment: dict[str, str], limits: dict[str, int], preload: Preload, scratch: list[str]
    ) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        printed, output = os.pipe()
        os.set_blocking(printed, False)
        try:
            self.pid = start_process(
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
            self.socket.send(marshal.dumps((preload, scratch)))
            answer = self.receive_reply(START_S)
            if answer != b"ready":
                raise ZygoteLost(answer.decode("utf-8", "replace") or "the zygote ended during its imports")
            if select.select([printed], [], [], 0)[0] and os.read(printed, 1):
                raise ZygoteLost("the imports print output")
            exposed = find_exposure(self.pid)
            if exposed:
                raise ZygoteLost(f"a testcase could change the zygote's {exposed}")
        except BaseException:
            self.close()
            raise
        finally:
            os.close(printed)

    def receive_reply(self, seconds: float) -> bytes:
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(MAX_REPLY_BYTES)
        except OSError as error:
            raise ZygoteLost(f"the zygote does not answer: {error}") from error

    def fork_script(self, argv: list[str], descriptors: tuple[int, ...], conditions: Conditions) -> int:
        """Fork a child of the supervisor that runs ``argv`` (script and arguments). Return its process id."""
        try:
            self.socket.settimeout(FORK_S)
            socket.send_fds(self.socket, [marshal.dumps((argv, *conditions))], list(descriptors))
        except OSError as error:
            raise ZygoteLost(f"the zygote takes no request: {error}") from error
        answer = self.receive_reply(FORK_S)
        if not answer.isdigit() or read_parent(int(answer)) != os.getpid():
            raise ZygoteLost(f"the zygote could not fork: {answer[:200]!r}")
        return int(answer)

    def close(self) -> None:
        self.socket.close()
        send_signal(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def find_exposure(pid: int) -> str:
    """Return a property of a process that a testcase could change. Empty if there is none.

    The supervisor itself tries the changes. It has the testcase's user, no capabilities and the same filter of system
    calls. As the parent, it may do more than a testcase. Priority, processors and scheduling are left out, because
    `cleaning.read_state` detects their changes.
    """
    for name in GUARDED_FILES:
        with contextlib.suppress(OSError):
            descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
            try:
                if name == "timerslack_ns":  # everyone may open this file
                    os.write(descriptor, b"0")
            finally:
                os.close(descriptor)
            return name
    with contextlib.suppress(OSError):
        os.listdir(f"/proc/{pid}/fd")
        return "descriptors"
    with contextlib.suppress(OSError):
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        return "limits"
    number = IOPRIO_SET.get(os.uname().machine)
    arguments = (IOPRIO_WHO_PROCESS, pid, IOPRIO_LOWEST)
    if number is None or ctypes.CDLL(None).syscall(*map(ctypes.c_long, (number, *arguments))) == 0:
        return "I/O priority"
    return ""


class Zygotes:
    """The living zygotes of a session, least recently used first, and the reasons why others did not start."""

    def __init__(self, scratch: list[str]) -> None:
        self.scratch = scratch
        self.alive: dict[str, Zygote] = {}
        self.refused: dict[str, str] = {}

    @property
    def pids(self) -> set[int]:
        return {zygote.pid for zygote in self.alive.values()}

    def get_zygote(
        self, python: str, environment: dict[str, str], limits: dict[str, int], preload: Preload
    ) -> Zygote | str:
        """Return the zygote for such a probe, started if necessary, or the reason why it cannot be forked."""
        key = json.dumps([python, environment, limits, preload], sort_keys=True)
        if key in self.refused:
            return self.refused[key]
        zygote = self.alive.pop(key, None)
        if zygote is None:
            while len(self.alive) >= MAX_ZYGOTES:
                self.alive.pop(next(iter(self.alive))).close()
            try:
                zygote = Zygote(python, environment, limits, preload, self.scratch)
            except (ZygoteLost, OSError) as error:
                reason = str(error)[:MAX_REASON]
                if len(self.refused) < MAX_REFUSALS:
                    self.refused[key] = reason
                return reason
        self.alive[key] = zygote
        return zygote

    def fork_script(
        self, zygote: Zygote, argv: list[str], descriptors: tuple[int, ...], conditions: Conditions
    ) -> int | str:
        """Return the process id like ``Zygote.fork_script``. Close a zygote that cannot fork; return the reason."""
        try:
            return zygote.fork_script(argv, descriptors, conditions)
        except ZygoteLost as error:
            self.close_zygote(zygote)
            return str(error)

    def close_zygote(self, zygote: Zygote) -> None:
        self.alive = {key: other for key, other in self.alive.items() if other is not zygote}
        zygote.close()

    def close_dead(self) -> None:
        """Close the zygotes that the last probe killed."""
        for zygote in list(self.alive.values()):
            if read_parent(zygote.pid) != os.getpid():
                self.close_zygote(zygote)

    def close(self) -> None:
        for zygote in list(self.alive.values()):
            self.close_zygote(zygote)
