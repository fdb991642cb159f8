"""Import a testcase's modules once, then fork for each probe: ``launch.py script.zygote DESCRIPTOR``.

The supervisor starts a zygote (``probe/forking.py``) with the environment's interpreter and the probe's environment
variables. The zygote reads ``(preload, scratch)`` from the socket, executes the import statements and answers
``ready``, or why a fork would differ from a new process. Each further message is ``(argv, late, perturb, seed,
cpu_s)`` with four descriptors. A child uses the descriptors as its output, errors, record and stacks, and becomes
``python argv…``. The answer is its process id. The child is orphaned on purpose, so that the supervisor adopts it.

Forked children share the layout of the address space, and so everything that depends on addresses. New processes do
not. So a result that must be seen twice is seen once in a new process. Seeds that a new process draws are drawn again
in each child.

This module uses only modules that every interpreter has loaded at its start, or that a testcase cannot import by
accident. A testcase that forgets an import must fail here as it does elsewhere.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import sys
from typing import Any

from runners.guest import forget_modules, import_without_collecting
from runners.guest.script.run import move_descriptor, run_script

MAX_MESSAGE_BYTES = 256 * 1024
MAX_REASON = 300
PR_SET_DUMPABLE = 4
M_PERTURB = -6
"""malloc.h: fill new memory with the complement of this byte, and freed memory with the byte."""


def find_fork_problem(scratch: list[str], descriptors: set[str]) -> str:
    """Return why a fork would differ from a new process. Empty if it would not.

    ``descriptors`` were open before the imports, including the one that read the directory, because it is open now.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"the imports leave {threads - 1} threads running"
    opened = set(os.listdir("/proc/self/fd")) - descriptors
    if opened:
        return f"the imports leave {len(opened)} files open"
    with open("/proc/self/maps") as file:
        shared = [line.split()[-1] for line in file if line.split()[1].startswith("rw") and line.split()[1][3] == "s"]
    if shared:
        return f"the imports share memory: {shared[0]}"
    left = [name for folder in scratch for name in os.listdir(folder) if folder != os.getcwd()]
    if left:
        return f"the imports leave files: {left[0]}"
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return ""
    return "the imports leave a process running"


class OwnModuleGuard:
    """A finder that refuses the testcase's own modules and remembers the last one that was requested.

    An import of a library may reach a file of the testcase with the same name. The file must not run here, because
    its effects would be in every later fork.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = frozenset(names)
        self.met = ""

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> None:
        if path is None and name.partition(".")[0] in self.names:
            self.met = name
            raise ModuleNotFoundError(name)


def fork_orphan() -> int | None:
    """Fork a process whose parent is the process that collects orphans.

    Return None in the new process, and its process id in this one. The new process waits until the intermediate
    process is gone completely, because a testcase may count its processes.
    """
    reader, writer = os.pipe()
    wait, go = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = 0
        try:
            pid = os.fork()
            if pid:
                os.write(writer, str(pid).encode())
        finally:
            if pid or sys.exc_info()[0] is not None:
                os._exit(0)
        os.close(go)
        os.read(wait, 1)
        for descriptor in (reader, writer, wait):
            os.close(descriptor)
        return None
    os.close(writer)
    try:
        pid = int(os.read(reader, 32) or 0)
        os.waitpid(middle, 0)
        return pid
    finally:
        for descriptor in (reader, wait, go):
            os.close(descriptor)


def serve_forks(control: Any) -> tuple[list[str], list[int], dict[str, str], int | None, int | None, int] | None:
    """Fork for each message. Return the child's task in a child. Return None here when the supervisor is gone."""
    while True:
        data, ancillary, _, _ = control.recvmsg(MAX_MESSAGE_BYTES, _socket.CMSG_SPACE(4 * 8))
        if not data:
            return None
        packed = b"".join(words for _, kind, words in ancillary if kind == _socket.SCM_RIGHTS)
        descriptors = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
        try:
            pid = fork_orphan()
        except OSError:  # the limit of processes is reached
            pid = 0
        if pid is None:
            argv, late, perturb, seed, cpu_s = marshal.loads(data)
            return argv, descriptors, late, perturb, seed, cpu_s
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode() if pid else b"no process")


def load_prctl() -> Any:
    """Return prctl(2). Then ctypes is unloaded: a testcase that forgets to import it must fail here as elsewhere."""
    known = set(sys.modules)
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    for name in set(sys.modules) - known:
        del sys.modules[name]
    return prctl


def set_dumpable(prctl: Any, *, dumpable: bool) -> None:
    """Permit or forbid processes of the same user to open this process's memory, descriptors and settings."""
    if prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")


def set_up_child(descriptors: list[int], late: dict[str, str], perturb: int | None, cpu_s: int) -> tuple[int, int]:
    """Give the child its own session, streams, seeds and limit of processor time.

    Return the descriptors of the record and of the stacks.
    """
    import resource  # only now, because the testcase's imports must not find it loaded

    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    os.setsid()
    os.dup2(descriptors[0], 1)
    os.dup2(descriptors[1], 2)
    moved = move_descriptor(descriptors[2]), move_descriptor(descriptors[3])
    for descriptor in descriptors[:2]:
        os.close(descriptor)
    os.environ.update(late)
    if perturb is not None:
        import ctypes

        ctypes.CDLL(None).mallopt(M_PERTURB, perturb)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    # `random` reseeds itself in a forked child.
    return moved


def import_modules(preload: dict[str, list[str]]) -> str:
    """Execute the import statements. Return why they cannot be shared between forks. Empty if they can."""
    names = {"__name__": "__main__"}
    guard: Any = OwnModuleGuard(preload["own"])
    sys.meta_path.insert(0, guard)
    try:
        for statement in preload["statements"]:
            exec(statement, names)  # noqa: S102  # the testcase's own first lines, inside the sandbox
        sys.stdout.flush()  # a fork would print buffered output again
        sys.stderr.flush()
    except BaseException as error:
        return f"{statement} fails: {type(error).__name__}"
    sys.meta_path.remove(guard)
    return f"the imports reach the testcase's own {guard.met}" if guard.met else ""


def main(arguments: list[str]) -> int:
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, int(arguments[0]))
    os.set_inheritable(control.fileno(), False)
    preload, scratch = marshal.loads(control.recv(MAX_MESSAGE_BYTES))
    before = set(os.listdir("/proc/self/fd"))
    prctl = load_prctl()
    set_dumpable(prctl, dumpable=False)
    sys.argv = [""]
    sys.path[0] = os.getcwd()
    forget_modules()
    problem = import_without_collecting(lambda: import_modules(preload))
    if problem:
        control.send(problem[:MAX_REASON].encode("utf-8", "replace"))
        return 0
    # Objects of the imports live as long as the process. Collecting them at the end of every child would copy all of
    # its memory, and take longer than most testcases. Objects of the testcase are collected as usual. A package that
    # reports its live objects at exit would also report frozen ones.
    if any(name in sys.modules for name in preload["reports_at_exit"]):
        gc.collect()  # due by now: otherwise each child would collect at its first allocation
    else:
        gc.freeze()
    control.send((find_fork_problem(scratch, before) or "ready").encode("utf-8", "replace"))
    run_child(control, preload["compile_functions"], prctl)
    return 0


def run_child(control: Any, compile_functions: list[str], prctl: Any) -> None:
    """Serve forks, and in each child run its script."""
    task = serve_forks(control)
    if task is None:
        os._exit(0)
    argv, descriptors, late, perturb, seed, cpu_s = task
    set_dumpable(prctl, dumpable=True)
    control.close()
    record, stacks = set_up_child(descriptors, late, perturb, cpu_s)
    run_script(argv, record, stacks, seed, compile_functions)
