"""Sessions: each probe finds the sandbox as the first one did, whatever earlier probes tried."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from runners.core.errors import InfraError
from runners.core.protocol import Exited, Limits, NotRun, Record, Signalled, Testcase, TestcaseKind, TimedOut
from runners.probe import sessions
from runners.probe.layout import Layout
from runners.probe.run import ProbeSession, open_probe_session, run_probe
from runners.probe.sessions import SessionPool, choose_most_idle
from runners.probe.task import PLAIN, Conditions, ProbeResult, Task
from runners.sandbox.contract import Engine, SandboxSession, SandboxSpec, SessionEngine
from runners.sandbox.limits import cgroup
from runners.sandbox.select import remove_leftovers
from tests.runners.sandbox.conftest import TOOLS
from tests.runners.sandbox.kit.attack import LIMITS, QUICK
from tests.runners.sandbox.kit.test_weakened import edit_guest, edit_guest_files, find_usable
from tests.runners.sandbox.test_lifecycle import traces
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sandbox

FORKED = Conditions(scripts=True, fork=True)

INSPECT = """\
import json
import decimal
import os, resource, signal, sys
def seen(path):
    return sorted(os.listdir(path))
def command(pid):
    return "" if int(pid) == os.getpid() else open(f"/proc/{pid}/cmdline").read()
print(json.dumps({
    "argv": sys.argv, "path": sys.path[0], "cwd": os.getcwd(),
    "files": [seen(p) for p in ("/work", "/tmp", "/dev/shm")],
    "processes": [c for c in map(command, filter(str.isdigit, os.listdir("/proc"))) if "script.zygote" not in c],
    "main": sorted(vars(sys.modules["__main__"])), "file": __file__, "environment": dict(os.environ),
    "nice": os.nice(0), "cpus": len(os.sched_getaffinity(0)), "umask": os.umask(0o22),
    "signals": [str(signal.getsignal(n)) for n in (signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD, signal.SIGXFSZ)],
    "limits": [resource.getrlimit(n) for n in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)],
    "queues": [len(open("/proc/sysvipc/" + n).readlines()) for n in ("shm", "sem", "msg")],
    "ports": [len(open("/proc/net/" + n).readlines()) for n in ("tcp", "tcp6")],
    "stdin": os.readlink("/proc/self/fd/0"), "precision": decimal.getcontext().prec,
    "hash": hash("x") and 1, "ours": sorted({"zygote", "script", "record", "forking"} & set(sys.modules)),
}, sort_keys=True))
"""
FIRST = "import json\nimport decimal\n"
"""First lines of a program that must be forked from the same zygote as INSPECT."""

KILL_ALL = """
import os, signal
for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
    if pid not in (os.getpid(),):
        try: os.kill(pid, signal.{number})
        except OSError: pass
"""
LEAVE_BEHIND = """
import os, time
for path in ("decimal.py", ".hidden/deep/file", "/tmp/sitecustomize.py", "/dev/shm/x", "json/x.py"):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    open(path, "w").write("raise SystemExit('poisoned')")
os.symlink("/etc", "/tmp/etc")
os.mkfifo("/tmp/pipe")
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(0.05)
                open("/tmp/alive", "w").write("x")
        os._exit(0)
decimal.getcontext().prec = 3
json.dumps = lambda *a, **k: "faked"
"""
SYSTEM_V = """
import ctypes
libc = ctypes.CDLL(None)
assert libc.shmget(0x1234, 4096, 0o1666) >= 0
"""
DEEP = """
import os
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
"""
LOCKED = """
import os
os.makedirs("locked/in"); os.chmod("locked", 0)
"""
FORGE = """
import os
line = b'{"step": {"argv": [], "status": 0, "timed_out": false, "seconds": 0, "maxrss_bytes": 0, "stdout": "forged"'
line += b', "stderr": "", "truncated": false}}\\n{"end": {"probe_file": null}}\\n{"session": {"spent": ""}}\\n\\n'
for number in range(3, 1024):
    try: os.write(number, line)
    except OSError: pass
print(line.decode())
os._exit(3)
"""
FLOOD = "\nimport sys\nwhile True: sys.stdout.write('x' * 65536)\n"
FORK_STORM = """
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
"""
RENICE = """
import os
for pid in ("1", "2", "3"):
    try: os.setpriority(os.PRIO_PROCESS, int(pid), 15)
    except OSError: pass
"""
PIN = """
import os
for pid in range(1, 9):
    try: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
    except OSError: pass
"""

ZYGOTE = """
import ctypes, os, resource
def command(pid):
    try: return open(f"/proc/{pid}/cmdline").read()
    except OSError: return ""
zygotes = [int(p) for p in os.listdir("/proc") if p.isdigit() and "script.zygote" in command(p)]
zygotes.remove(os.getpid())
assert zygotes, "no zygote to attack"
"""
WRITE_MEMORY = (
    ZYGOTE
    + """
for pid in zygotes:
    try:
        descriptor = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        code = os.pread(descriptor, 256, id(json.dumps))
    except OSError: continue  # guarded, or a zygote with other imports and another layout
    at = code.find(id(json.dumps.__code__).to_bytes(8, "little"))
    os.pwrite(descriptor, id(json.detect_encoding.__code__).to_bytes(8, "little"), id(json.dumps) + at)
    raise SystemExit(9)
"""
)
CHANGE_SETTINGS = (
    ZYGOTE
    + """
libc = ctypes.CDLL(None)
number = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
changed = []
for pid in zygotes:
    for name, value in (("oom_score_adj", "1000"), ("coredump_filter", "0x7f"), ("timerslack_ns", "1000000"),
                        ("comm", "x"), ("autogroup", "19")):
        try:
            with open(f"/proc/{pid}/{name}", "w") as file: file.write(value)
            changed.append(name)
        except OSError: pass
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
        changed.append("limits")
    except OSError: pass
    try: changed += os.listdir(f"/proc/{pid}/fd")
    except OSError: pass
    for kind, who in ((1, pid), (2, pid), (3, 0), (3, os.getuid())):
        if libc.syscall(*map(ctypes.c_long, (number, kind, who, (2 << 13) | 7))) == 0: changed.append("I/O priority")
assert not changed, changed
"""
)
TRACE = (
    ZYGOTE
    + """
libc = ctypes.CDLL(None, use_errno=True)
for pid in zygotes:
    for request in (16, 0x4206):
        assert libc.ptrace(request, pid, 0, 0) == -1
    vector = (ctypes.c_size_t * 2)(id(json), 8)
    assert libc.process_vm_writev(pid, vector, 1, vector, 1, 0) == -1
"""
)

POSIX_QUEUE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mq_open(b"/left", 0o102, 0o666, None) >= 0
"""
IN_FLIGHT = """
import os, socket
one, other = socket.socketpair()
left = os.open("/tmp/left", os.O_CREAT | os.O_RDWR)
socket.send_fds(one, [b"x"], [left, one.fileno(), other.fileno()])
server = socket.socket(socket.AF_UNIX)
server.bind("\\0left")
server.listen()
if os.fork() == 0:
    os.setsid()
    socket.recv_fds(server.accept()[0], 1, 3)
"""
SWAP = """
import os, time
os.makedirs("/tmp/a/b/c")
os.symlink("/opt/reprobot", "/tmp/link")
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        libc = __import__("ctypes").CDLL(None)
        while True:
            libc.renameat2(-100, b"/tmp/a", -100, b"/tmp/link", 2)
            libc.renameat2(-100, b"/tmp/a/b", -100, b"/tmp/link", 2)
time.sleep(0.2)
"""

QUEUE_OF_ANY_BYTES = """
import ctypes, os
assert ctypes.CDLL(None).mq_open(b"/\\xff\\xfe", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0
"""
TIME_WAIT = """
import socket
server = socket.create_server(("127.0.0.1", 8000))
client = socket.create_connection(server.getsockname())
server.accept()[0].close()
client.recv(1)
"""
ATTACKS: dict[str, tuple[str, object, bool]] = {
    # name: the program, the end of its probe (a type or a value), whether the session survives
    "leave-behind": (LEAVE_BEHIND, Exited(code=0), True),
    "kill-the-zygote": (KILL_ALL.format(number="SIGKILL"), Exited(code=0), True),
    "stop-the-zygote": (KILL_ALL.format(number="SIGSTOP"), Exited(code=0), True),
    "interrupt-the-zygote": (KILL_ALL.format(number="SIGINT"), Exited(code=0), True),
    "crash": ("\nimport os\nos.abort()\n", Signalled(code=6), True),
    "hang": ("\nwhile True: pass\n", TimedOut, True),
    "flood": (FLOOD, TimedOut, True),
    "fork-storm": (FORK_STORM, TimedOut, True),
    "forge-a-record": (FORGE, Exited(code=3), True),
    "descriptors-in-flight": (IN_FLIGHT, Exited(code=0), True),
    "swap-while-cleaning": (SWAP, Exited(code=0), True),
    "system-v-memory": (SYSTEM_V, Exited(code=0), False),
    "posix-queue": (POSIX_QUEUE, Exited(code=0), False),
    "queue-of-any-bytes": (QUEUE_OF_ANY_BYTES, Exited(code=0), False),
    "ports-in-time-wait": (TIME_WAIT, Exited(code=0), False),
    "bottomless-folder": (DEEP, Exited(code=0), False),
    "locked-folder": (LOCKED, Exited(code=0), False),
    "pin-the-zygote": (PIN, Exited(code=0), False),
    "slow-the-zygote": (RENICE, Exited(code=0), False),
    "write-into-the-zygote": (WRITE_MEMORY, Exited(code=0), True),
    "change-settings-of-the-zygote": (CHANGE_SETTINGS, Exited(code=0), True),
    "trace-the-zygote": (TRACE, Exited(code=0), True),
}


def program(code: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="none", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )


def probe(room: ProbeSession, code: str, conditions: Conditions = FORKED, limits: Limits = LIMITS) -> ProbeResult:
    return room.run(task(code, limits, conditions))


def task(code: str, limits: Limits, conditions: Conditions = PLAIN) -> Task:
    return Task(
        testcase=program(code), tools=TOOLS, variables={"PYTHONHASHSEED": "0"}, limits=limits, conditions=conditions
    )


@pytest.fixture
def room(engine: Engine, layout: Layout) -> Iterator[ProbeSession]:
    with open_probe_session(engine, layout, limits=LIMITS, run_id="rooms") as room:
        yield room


def test_fork_finds_the_same_state_as_a_new_process(engine: Engine, layout: Layout, room: ProbeSession) -> None:
    """Arguments, directories, environment, limits, signals, ``__main__``: no difference shows."""
    alone = run_probe(engine, layout, task(INSPECT, LIMITS), run_id="rooms")
    forked = probe(room, INSPECT)
    (record,) = [step.record for step in forked.steps]
    assert record is not None
    assert record.forked, record.not_forked
    assert forked.steps[0].stdout == alone.steps[0].stdout
    assert probe(room, INSPECT).steps[0].stdout == alone.steps[0].stdout


@pytest.mark.parametrize("name", ATTACKS)
def test_probe_does_not_affect_the_next_one(name: str, room: ProbeSession, engine: Engine, layout: Layout) -> None:
    """Each attack's end is reported truthfully. The next probe finds the initial state, or the session is over."""
    code, ended, survives = ATTACKS[name]
    before = probe(room, INSPECT).steps[0].stdout
    # A second is too short for the others on a busy machine.
    attack = probe(room, FIRST + code, limits=QUICK if ended is TimedOut else LIMITS)
    assert attack.ended == ended or (isinstance(ended, type) and isinstance(attack.ended, ended)), attack
    assert bool(room.spent) is not survives, room.spent
    if survives:
        after = probe(room, INSPECT, limits=LIMITS)
        assert after.ended == Exited(code=0), after
        assert after.steps[0].stdout == before


def test_number_of_idle_sessions_follows_the_memory() -> None:
    """A plan over ten releases finds each sandbox open again on a machine with memory for them."""
    gib = 1024**3
    assert choose_most_idle(0) == sessions.FEWEST
    assert choose_most_idle(20 * gib) == 10
    assert choose_most_idle(10_000 * gib) == sessions.MOST
    for available in (2 * gib, 7 * gib, 64 * gib):
        assert choose_most_idle(available) * sessions.SESSION_BYTES <= max(available / 4, 2 * sessions.SESSION_BYTES)


@pytest.mark.parametrize("kept", [False, True])
def test_sessions_stay_truthful_through_all_attacks_in_a_row(kept: bool, engine: Engine, layout: Layout) -> None:
    """The probes always give the same answer, and no trace is left at the end."""
    rooms = SessionPool(kept=kept)

    def ask(code: str, limits: Limits = LIMITS) -> ProbeResult:
        return rooms.run(engine, layout, task(code, limits, FORKED), run_id="rooms")

    shown = set()
    try:
        for attack, _, _ in ATTACKS.values():
            ask(FIRST + attack, QUICK)
            shown.add(ask(INSPECT).steps[0].stdout)
    finally:
        rooms.close()
    assert len(shown) == 1
    assert traces(os.getpid()) == []


@dataclass
class Counted:
    """An engine that counts its sessions."""

    engine: SessionEngine
    opened: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def open_session(self, spec: SandboxSpec) -> AbstractContextManager[SandboxSession]:
        self.opened += 1
        return self.engine.open_session(spec)


def run_in_thread(rooms: SessionPool, engine: Counted, layout: Layout) -> Record:
    """Run a plan of one probe in a thread that ends with the plan."""
    with rooms.serve_plan(), ThreadPoolExecutor(1) as thread:
        asked = thread.submit(
            rooms.run, cast("Engine", engine), layout, task(INSPECT, LIMITS, FORKED), run_id="rooms"
        )
    (step,) = asked.result().steps
    assert step.record is not None
    return step.record


def test_a_kept_session_serves_the_next_plan(
    room: ProbeSession, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It outlives the thread that asked for it. A later copy of the environment, or an old age, ends it."""
    engine = Counted(cast("SessionEngine", room.engine))
    site = tmp_path / "site"
    site.mkdir()
    layout = replace(layout, site_packages=site)
    with closing(SessionPool(kept=True)) as rooms:
        assert all(run_in_thread(rooms, engine, layout).forked for _ in range(3))
        assert engine.opened == 1
        site.rename(tmp_path / "old")
        site.mkdir()
        assert run_in_thread(rooms, engine, layout).forked
        assert engine.opened == 2
        monkeypatch.setattr(sessions, "LIFE_S", 0.0)
        assert run_in_thread(rooms, engine, layout).forked
        assert engine.opened == 3
    with closing(SessionPool()) as rooms:
        for _ in range(2):
            run_in_thread(rooms, engine, layout)
    assert engine.opened == 5


def test_out_of_memory_ends_the_session_and_is_reported(engine: Engine, room: ProbeSession) -> None:
    """As without a session, the engine reports it. Other processes that the kernel may have killed do not matter."""
    if engine.name == "bubblewrap" and (why := cgroup.find_problem()) is not None:
        pytest.skip(why)
    found = probe(room, FIRST + "\nx = []\nwhile True: x.append(b'x' * 2**20)\n", limits=LIMITS)
    assert not isinstance(found.ended, Exited | NotRun), found.ended
    assert room.spent or isinstance(found.ended, Signalled)


def test_testcase_that_cannot_be_forked_gets_its_own_process_with_a_reason(room: ProbeSession) -> None:
    """Threads of an import would be missing in a fork. A failing import fails in its own process."""
    for code, why in (
        ("import ctypes\nimport nothing_of_that_name\n", "ModuleNotFoundError"),
        ("import this\n", "print"),
        ("import antigravity_is_no_module as a\n", "ModuleNotFoundError"),
    ):
        found = probe(room, code, limits=LIMITS)
        assert found.steps[0].record is not None
        assert not found.steps[0].record.forked
        assert why in found.steps[0].record.not_forked
        assert bool(found.steps[0].stderr) == ("import this" not in code)


def test_memory_fills_and_late_variables_reach_a_fork(room: ProbeSession) -> None:
    """New memory has the pattern, and the variable has its value."""
    code = FIRST + (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
        "print(ctypes.string_at(libc.malloc(100000), 4).hex(), os.environ.get('OMP_NUM_THREADS'))\n"
    )
    for perturb, threads, shown in ((0x55, 1, "aaaaaaaa 1\n"), (0x80, 3, "7f7f7f7f 3\n")):
        for fork in (True, False):
            conditions = Conditions(scripts=True, fork=fork, perturb=perturb, threads=threads)
            found = probe(room, code, conditions, limits=LIMITS)
            assert found.steps[0].stdout == shown, found


WEAKENED = {
    "files stay": ("leave-behind", edit_guest("probe/session.py", "cleaning.empty_folders(self.scratch)", "pass")),
    "queues stay": ("system-v-memory", edit_guest("probe/cleaning.py", "found += file.read()", "file.read()")),
    "ports stay": (
        "ports-in-time-wait",
        edit_guest("probe/session.py", "cleaning.list_queues() + cleaning.list_ports()", "cleaning.list_queues()"),
    ),
    "pinned": (
        "pin-the-zygote",
        edit_guest("probe/session.py", "if zygotes | {state} != {self.state}:", "if False:"),
    ),
    "slowed": (
        "slow-the-zygote",
        edit_guest("probe/session.py", "if zygotes | {state} != {self.state}:", "if False:"),
    ),
}


UNGUARDED = edit_guest("script/zygote.py", "set_dumpable(prctl, dumpable=False)", "pass")


def test_no_zygote_without_its_guard(room: ProbeSession, engine: Engine, layout: Layout, tmp_path: Path) -> None:
    """The session's own test finds a zygote that a testcase could change; each probe gets a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        UNGUARDED(patch, tmp_path)
        with open_probe_session(engine, layout, limits=LIMITS, run_id="rooms") as weak:
            found = probe(weak, FIRST, limits=LIMITS)
    assert found.steps[0].record is not None
    assert not found.steps[0].record.forked
    assert "could change the zygote's mem" in found.steps[0].record.not_forked
    whole = probe(room, FIRST, limits=LIMITS)
    assert whole.steps[0].record is not None
    assert whole.steps[0].record.forked, whole.steps[0].record.not_forked


def test_guard_and_test_of_the_zygote_are_both_needed(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without both, a testcase writes into the zygote and the next probe gets what it wrote."""
    engine = find_usable("bubblewrap")
    edit_guest_files(
        {
            "script/zygote.py": ("set_dumpable(prctl, dumpable=False)", "pass"),
            "probe/forking.py": ("exposed = find_exposure(self.pid)", 'exposed = ""'),
        }
    )(monkeypatch, tmp_path)
    with open_probe_session(engine, layout, limits=LIMITS, run_id="rooms") as room:
        probe(room, FIRST)
        written = probe(room, FIRST + WRITE_MEMORY)
        assert written.ended == Exited(code=9), written.steps[0].stderr


def test_child_of_a_zygote_may_look_at_itself(room: ProbeSession) -> None:
    """A compiler may read its own memory map, descriptors and stack, as in a new process."""
    code = FIRST + "import os\nos.listdir('/proc/self/fd')\nopen('/proc/self/mem', 'rb').close()\n"
    found = probe(room, code + "print(os.stat('/proc/self').st_uid == os.getuid())\n", limits=LIMITS)
    assert found.steps[0].stdout == "True\n", found


@pytest.mark.parametrize("name", WEAKENED)
def test_attack_leaves_traces_when_its_check_is_removed(
    name: str, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that leaves no trace without the check would prove nothing."""
    engine = find_usable("bubblewrap")
    attack, weaken = WEAKENED[name]
    weaken(monkeypatch, tmp_path)
    with open_probe_session(engine, layout, limits=LIMITS, run_id="rooms") as room:
        before = probe(room, INSPECT).steps[0].stdout
        try:
            probe(room, FIRST + ATTACKS[attack][0])
            assert not room.spent
            after = probe(room, INSPECT).steps[0].stdout
        except InfraError as error:  # the files of the next probe are there already
            after = str(error)
        assert after != before


HOST = """
import sys, time
from pathlib import Path
from runners.probe.run import open_probe_session
from runners.sandbox.select import select_engine
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.conftest import python_layout
from tests.runners.sandbox.test_sessions import INSPECT, probe
engine, layout = select_engine(sys.argv[1]), python_layout(Path(sys.argv[2]))
with open_probe_session(engine, layout, limits=LIMITS, run_id="rooms") as room:
    probe(room, INSPECT)
    print("open", flush=True)
    time.sleep(600)
"""


def members(maker: int) -> list[str]:
    """Return processes in the control groups of a maker."""
    return [
        pid
        for path in traces(maker)
        if path.startswith(str(cgroup.ROOT))
        for file in Path(path).rglob("cgroup.procs")
        for pid in file.read_text().split()
    ]


def test_session_does_not_outlive_its_host(engine: Engine, tmp_path: Path) -> None:
    """The host is killed and cannot close the session: the end of its input ends everything inside."""
    if (why := cgroup.find_problem()) is not None:
        pytest.skip(why)
    words = [sys.executable, "-c", HOST, engine.name, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"open\n"
        assert members(host.pid)
        host.kill()
        host.wait()
        assert wait_until(lambda: not members(host.pid))
    remove_leftovers()
    assert traces(host.pid) == []
