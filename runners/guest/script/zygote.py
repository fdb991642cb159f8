"""Imports what a testcase imports first, then forks for each probe: ``launch.py script.zygote DESCRIPTOR``.

Started by the supervisor (``forking.py``) with the environment's interpreter and the probe's own environment. On the
socket it gets ``(preload, places)`` (``forking.py``), executes the import statements, and answers ``ready``, or why a
fork of it would not be as good as a new process. Then each message is ``(argv, late, perturb, seed, cpu_s)`` with
four descriptors: a child takes them for its output, errors, record and stacks and becomes ``python argv…``; its
process id is the answer. The child is orphaned on purpose: the supervisor adopts it.

What a forked child shares with its sisters, and new processes don't: the layout of the address space, and with it
everything that depends on addresses. Hence what must be seen twice is seen once in a process of its own. The seeds
that new processes draw are drawn anew.

Only modules are used that every interpreter has loaded at its start, or that a testcase can't import by accident:
one that forgets an import must fail here as it does elsewhere.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import sys
from typing import Any

from runners.guest import forget_modules
from runners.guest.script import run as script

MAX_MESSAGE_BYTES = 256 * 1024
M_PERTURB = -6
"""malloc.h: fill new memory with the complement of this byte, and freed memory with the byte."""


def unsound(places: list[str], descriptors: set[str]) -> str:
    """Why a fork would differ from a new process; empty when it would not."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"its imports leave {threads - 1} threads running"
    # One was for reading the directory, then as now.
    opened = set(os.listdir("/proc/self/fd")) - descriptors
    if opened:
        return f"its imports leave {len(opened)} files open"
    with open("/proc/self/maps") as file:
        shared = [line.split()[-1] for line in file if line.split()[1].startswith("rw") and line.split()[1][3] == "s"]
    if shared:
        return f"its imports share memory: {shared[0]}"
    left = [name for place in places for name in os.listdir(place) if place != os.getcwd()]
    if left:
        return f"its imports leave files: {left[0]}"
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return ""
    return "its imports leave a process running"


class Own:
    """Finds none of the testcase's own modules, and remembers that one was looked for.

    A library's import may reach a file of the testcase's that has the same name. What that file does would be in
    every later fork, whatever these are to show: so it must not run here.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = frozenset(names)
        self.met = ""

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> None:
        if path is None and name.partition(".")[0] in self.names:
            self.met = name
            raise ModuleNotFoundError(name)


def fork_orphan() -> int | None:
    """None in the new process; in this one the new one's id. Its parent is whoever collects our orphans.

    The new one goes on only when the one between is gone without a trace: a testcase counts its processes, too.
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


def serve(control: Any) -> tuple[list[str], list[int], dict[str, str], int | None, int | None, int] | None:
    """Fork for each message. Returns in a child, with what it shall be; None here when the supervisor is gone."""
    while True:
        data, ancillary, _, _ = control.recvmsg(MAX_MESSAGE_BYTES, _socket.CMSG_SPACE(4 * 8))
        if not data:
            return None
        packed = b"".join(words for _, kind, words in ancillary if kind == _socket.SCM_RIGHTS)
        descriptors = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
        try:
            pid = fork_orphan()
        except OSError:  # no more processes are allowed
            pid = 0
        if pid is None:
            argv, late, perturb, seed, cpu_s = marshal.loads(data)
            return argv, descriptors, late, perturb, seed, cpu_s
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode() if pid else b"no process")


def become(descriptors: list[int], late: dict[str, str], perturb: int | None, cpu_s: int) -> tuple[int, int]:
    """A session, streams, seeds and processor time of its own; returns the descriptors for the record and the
    stacks."""
    import resource  # not before the testcase's own imports

    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    os.setsid()
    os.dup2(descriptors[0], 1)
    os.dup2(descriptors[1], 2)
    kept = script.out_of_the_way(descriptors[2]), script.out_of_the_way(descriptors[3])
    for descriptor in descriptors[:2]:
        os.close(descriptor)
    os.environ.update(late)
    if perturb is not None:
        import ctypes

        ctypes.CDLL(None).mallopt(M_PERTURB, perturb)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    # `random` seeds itself anew in a child.
    return kept


def main(arguments: list[str]) -> int:
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, int(arguments[0]))
    os.set_inheritable(control.fileno(), False)
    preload, places = marshal.loads(control.recv(MAX_MESSAGE_BYTES))
    before = set(os.listdir("/proc/self/fd"))
    sys.argv = [""]
    sys.path[0] = os.getcwd()
    forget_modules()
    names = {"__name__": "__main__"}
    finder: Any = Own(preload["own"])
    sys.meta_path.insert(0, finder)
    try:
        for statement in preload["statements"]:
            exec(statement, names)  # noqa: S102  # the testcase's own first lines, inside the sandbox
        sys.stdout.flush()  # what a fork would print again
        sys.stderr.flush()
    except BaseException as error:
        control.send(f"{statement} fails: {type(error).__name__}"[:300].encode("utf-8", "replace"))
        return 0
    sys.meta_path.remove(finder)
    if finder.met:
        control.send(f"its imports reach its own {finder.met}"[:300].encode("utf-8", "replace"))
        return 0
    # What the imports made lives as long as the process: collecting it at the end of every child would copy all of
    # its memory, and takes longer than most testcases. What a testcase makes is collected as ever.
    # A package that reports at exit which of its objects live would report the frozen ones, too.
    if not any(name in sys.modules for name in preload["reports_at_exit"]):
        gc.freeze()
    control.send((unsound(places, before) or "ready").encode("utf-8", "replace"))
    become_script(control, preload["compile_functions"])
    return 0


def become_script(control: Any, compile_functions: list[str]) -> None:
    child = serve(control)
    if child is None:
        os._exit(0)
    argv, descriptors, late, perturb, seed, cpu_s = child
    control.close()
    record, stacks = become(descriptors, late, perturb, cpu_s)
    script.run(argv, record, stacks, seed, compile_functions)
