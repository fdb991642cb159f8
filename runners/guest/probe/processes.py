"""Start a step, and end it with all processes that it started. Only the supervisor imports this module."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WaitResult = tuple[int, "resource.struct_rusage"]
"""Wait status and resource usage of a child."""

MAX_OPEN_FILES = 4096
EXIT_CANNOT_START = 127
"""Exit status of a step whose program cannot be executed, as a shell reports it."""
SWEEP_S = 5.0
"""Time limit for killing processes one by one. After it, the zygotes are killed too."""
NOBODY = 65534
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38


STEPS_APART = "REPROBOT_STEPS_APART"
"""Environment variable that ``runners/sandbox/containers/command_line.py`` sets."""


def has_step_user() -> bool:
    """True if the engine asks for a separate user for steps.

    On Linux, the steps share the supervisor's user, and cannot open its descriptors because it is undumpable.
    gVisor's kernel lacks this protection. There the supervisor is root of the sandbox, and steps run as another user.
    """
    return os.environ.get(STEPS_APART) == "1"


@contextlib.contextmanager
def act_as_step_user() -> Iterator[None]:
    """Create and read files with the rights of the steps. They own the new files, and could read the others."""
    if not has_step_user():
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def drop_privileges() -> None:
    """Become the steps' user permanently, without capabilities and without a way to get them."""
    import ctypes  # lazy: only one engine needs the module here, and every probe pays for each import

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
    """Set a resource limit to ``value``, unless it is lower already."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def start_process(
    argv: list[str],
    environment: dict[str, str],
    limits: dict[str, int],
    outputs: tuple[int, int],
    keep: tuple[int, ...] = (),
    cpu_s: int | None = None,
) -> int:
    """Fork and execute ``argv`` in a new session. Return the process id.

    ``outputs`` are the write ends for descriptors 1 and 2. The child inherits the descriptors in ``keep`` under their
    own numbers, and no others. The kernel kills each process that uses more than ``cpu_s`` of processor time.
    """
    has_own_user = has_step_user()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # a child would inherit that Python ignores the first two
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        for descriptor in keep:
            os.set_inheritable(descriptor, True)
        lower_limit(resource.RLIMIT_CORE, 0)
        lower_limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
        lower_limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
        if cpu_s is not None:
            lower_limit(resource.RLIMIT_CPU, cpu_s)
        if has_own_user:
            drop_privileges()
        os.execvpe(argv[0], argv, environment)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"cannot start {argv[0]}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(EXIT_CANNOT_START)


def read_parent(pid: int) -> int | None:
    """Return the parent of a process. None if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def list_descendants() -> set[int]:
    """Return the processes below this one. ``kill(-1)`` reaches the whole machine unless this is process 1."""
    parents = {pid: read_parent(pid) for pid in list_processes()}
    below, found = {os.getpid()}, set[int]()
    while True:
        layer = {pid for pid, parent in parents.items() if parent in below} - found
        if not layer:
            return found
        found |= layer
        below |= layer


def list_processes() -> set[int]:
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}


def kill_others() -> None:
    """Kill every process except this one. Process 1 uses one system call that no fork can outrun."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    for pid in list_descendants():
        send_signal(pid, signal.SIGKILL)


def send_signal(pid: int, number: int) -> None:
    """Send a signal. A missing process is not an error."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def reap_all(child: int | None, ended: WaitResult | None) -> WaitResult | None:
    """Kill and collect until no child remains. Return how ``child`` ended."""
    while True:
        kill_others()
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return ended
        if pid == child:
            ended = (status, usage)


def reap_dead(child: int | None) -> WaitResult | None:
    """Collect the children that have died so far. Return how ``child`` ended if it is among them."""
    ended: WaitResult | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = (status, usage)
    return ended


def reap_except(keep: set[int], child: int | None, ended: WaitResult | None) -> WaitResult | None:
    """Kill and collect like ``reap_all``, except ``keep``. Only process 1 may call this, because it sees every
    process.

    ``kill(-1)`` spares no process, and forks can outrun kills one by one. So one system call stops all processes
    first, and those in ``keep`` continue at the end. If others remain after ``SWEEP_S``, all are killed.
    """
    give_up = time.monotonic() + SWEEP_S
    while time.monotonic() < give_up:
        send_signal(-1, signal.SIGSTOP)
        ended = reap_dead(child) or ended
        others = list_processes() - keep - {os.getpid()}
        if not others:
            for pid in keep:
                send_signal(pid, signal.SIGCONT)
            return ended
        for pid in others:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.0005)  # death takes a moment, and there may be no child to wait for
    return reap_all(child, ended)
