"""Starting a step, and ending it with everything that it started. For the supervisor alone."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Ended = tuple[int, "resource.struct_rusage"]
"""A wait status and what the child used."""

MAX_OPEN_FILES = 4096
EXIT_CANNOT_START = 127
"""What a shell says, too, when the program of a step can't be executed."""
SWEEP_S = 5.0
"""How long the living may resist being killed one by one before the zygotes die with them."""
NOBODY = 65534
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38


APART = "REPROBOT_STEPS_APART"
"""As in ``runners/sandbox/containers/command_line.py``."""


def apart() -> bool:
    """Whether steps get a user of their own: the engine says so in our environment.

    On Linux they share ours, and being undumpable keeps them from our descriptors. gVisor's kernel does not know that
    protection, so that there we are root of the sandbox, with the right to become another, and they are not.
    """
    return os.environ.get(APART) == "1"


@contextlib.contextmanager
def as_the_steps() -> Iterator[None]:
    """With the steps' eyes and hands: what is made here is theirs, what is read here they could read."""
    if not apart():
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def become_nobody() -> None:
    """For good, without capabilities, and without a way to get any."""
    import ctypes  # not at the top: only one engine needs it here, and each import is a part of every probe

    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def lower_limit(kind: int, value: int) -> None:
    """As low as asked, or as low as it is already."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def start(
    argv: list[str],
    environment: dict[str, str],
    limits: dict[str, int],
    outputs: tuple[int, int],
    keep: tuple[int, ...] = (),
    cpu_s: int | None = None,
) -> int:
    """Fork and execute in a new session.

    ``outputs`` are the write ends for descriptors 1 and 2; those in ``keep`` are inherited under their own numbers,
    and no others. Each process may have ``cpu_s`` of processor time; the kernel kills it then.
    """
    apart_from_us = apart()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # Python ignores the first two, and that would be inherited
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        for descriptor in keep:
            os.set_inheritable(descriptor, True)
        lower_limit(resource.RLIMIT_CORE, 0)
        lower_limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
        lower_limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
        if cpu_s is not None:
            lower_limit(resource.RLIMIT_CPU, cpu_s)
        if apart_from_us:
            become_nobody()
        os.execvpe(argv[0], argv, environment)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"cannot start {argv[0]}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(EXIT_CANNOT_START)


def descendants() -> set[int]:
    """Process ids below us, for when we are not process 1 and ``kill(-1)`` would mean the whole machine."""
    parents: dict[int, int] = {}
    for pid in all_processes():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            parents[pid] = int(file.read().rpartition(b")")[2].split()[1])
    below, found = {os.getpid()}, set[int]()
    while True:
        layer = {pid for pid, parent in parents.items() if parent in below} - found
        if not layer:
            return found
        found |= layer
        below |= layer


def all_processes() -> set[int]:
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}


def kill_others() -> None:
    """Everything but this process. Process 1 does it in one system call that no fork can outrun."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    for pid in descendants():
        kill(pid, signal.SIGKILL)


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def reap_all(child: int | None, ended: Ended | None) -> Ended | None:
    """Kill and collect until no child is left; returns ``(status, usage)`` of ``child``."""
    while True:
        kill_others()
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return ended
        if pid == child:
            ended = (status, usage)


def reap_dead(child: int | None) -> Ended | None:
    """Collect what has died so far; ``(status, usage)`` when ``child`` is among it."""
    ended: Ended | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = (status, usage)
    return ended


def reap_but(keep: set[int], child: int | None, ended: Ended | None) -> Ended | None:
    """As ``reap_all``, sparing ``keep``: only process 1 may ask for that, which sees every process there is.

    ``kill(-1)`` can spare nobody, and killing one by one can be outrun by forking. So everything is stopped first,
    in one system call, and those to be spared are woken at the end. What resists for longer takes them with it.
    """
    give_up = time.monotonic() + SWEEP_S
    while time.monotonic() < give_up:
        kill(-1, signal.SIGSTOP)
        ended = reap_dead(child) or ended
        others = all_processes() - keep - {os.getpid()}
        if not others:
            for pid in keep:
                kill(pid, signal.SIGCONT)
            return ended
        for pid in others:
            kill(pid, signal.SIGKILL)
        time.sleep(0.0005)  # dying takes a moment, and there may be no child whose end could be waited for
    return reap_all(child, ended)
