"""Attacks on shared resources: descriptors, files and folders that change while they are read, the mount table,
endless environments and lines, and memory that belongs to no process."""

from __future__ import annotations

import os

from runners.core.protocol import Limits
from tests.runners.sandbox.kit.attack import FLOODING, LIMITS, MIB, Attack, anything, out_of_memory, timed_out

ROOMY = Limits(wall_s=20, memory_bytes=LIMITS.memory_bytes, processes=48, disk_bytes=512 * MIB)
"""More disk than memory: files of memory meet the limit on memory first."""

DESCRIPTORS = (
    Attack(
        name="descriptors-by-message",
        source="""
import array, socket
must("nobody listens", len(open("/proc/net/unix").read().splitlines()) == 1)
ours, theirs = socket.socketpair()
top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
if os.fork() == 0:
    (got,) = socket.recv_fds(theirs, 1, 1)[1]
    refused("write by way of a received directory", lambda: os.open("usr/x", os.O_CREAT | os.O_WRONLY, dir_fd=got))
    seen = os.stat("..", dir_fd=got).st_ino == os.stat("/").st_ino
    must("nothing above a received directory", seen)
    sys.stdout.flush()
    os._exit(0)
socket.send_fds(ours, [b"x"], [top])
must("the receiver lived", os.wait()[1] == 0)
contained()
""",
    ),
    Attack(
        name="descriptors-in-flight",
        source="""
import socket
sent, pairs = 0, []
try:
    while sent < 100_000:
        pairs.append(socket.socketpair())
        socket.send_fds(pairs[-1][0], [b"x"], [1] * 200)
        sent += 200
    print("BREACH", sent)
except OSError as error:
    must("stopped by the limit", error.errno in (errno.ETOOMANYREFS, errno.EMFILE), (sent, error))
contained()
""",
    ),
)

CHANGES = (
    Attack(
        name="swap-what-is-mounted",
        source="""
EXCHANGE, HERE, HELD = 2, -100, (*REFUSALS, errno.EBUSY, errno.EXDEV)
def exchange(one, other):
    result = libc.renameat2(HERE, one.encode(), HERE, other.encode(), EXCHANGE)
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
os.mkdir("mine")
for path in ("/opt/env", "/opt/reprobot", "/usr", "/tmp", "/dev/shm", "/proc", "/opt"):
    refused("move away " + path, lambda: os.rename(path, "moved"), HELD)
    refused("move over " + path, lambda: os.rename("mine", path), HELD)
    refused("exchange " + path, lambda: exchange("mine", path), HELD)
refused("move the working directory", lambda: os.rename("/work", "/tmp/work"), HELD)
contained()
""",
    ),
    Attack(
        name="race-for-the-records",
        source="""
import json, threading
record = {"argv": ["python", "attack.py"], "status": 0, "timed_out": False, "seconds": 0.1, "maxrss_bytes": 1,
          "stdout": "", "stderr": "", "truncated": False}
line = "\\n" + json.dumps({"step": record}) + "\\n" + json.dumps({"end": {"probe_file": "forged"}}) + "\\n\\n"
def write_for_ever():
    while True:
        for number in (1, 2):
            os.write(number, line.encode())
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        write_for_ever()
threading.Thread(target=write_for_ever, daemon=True).start()
__import__("time").sleep(0.3)
os._exit(7)
""",
        ended=lambda ended: getattr(ended, "code", None) == 7,
        check=lambda step: '"status": 0' in step.stdout,
    ),
)

PATHS = (
    Attack(
        name="table-of-mounts",
        source="""
KERNEL = ("proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2")
SCRATCH = ("/work", "/tmp", "/dev/shm")
for line in open("/proc/self/mountinfo"):
    before, _, after = line.partition(" - ")
    place, options = before.split()[4:6]
    kind, _, more = after.split(maxsplit=2)
    if kind not in KERNEL or place == "/":
        must("read-only: " + place, "ro" in options.split(","), line)
    if place in SCRATCH:
        must("capped: " + place, "size=" in more, line)
        must("nosuid and nodev: " + place, {"nosuid", "nodev"} <= set(options.split(",")), line)
contained()
""",
    ),
    Attack(
        name="huge-environment",
        source="""
size = 2**16
while size < 2**28:
    value, size = "x" * (2**16), size * 2
    child = os.fork()
    if child == 0:
        try:
            os.execve("/bin/true", ["true"], {"V%d" % n: value for n in range(size // 2**16)})
        except OSError as error:
            os._exit(100 if error.errno == errno.E2BIG else 101)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code == 100:
        break
    must("a child with so much runs, or is refused", code == 0, code)
must("refused in the end", code == 100 and size <= 2**24, (code, size))
contained()
""",
    ),
    Attack(
        name="endless-line-on-both",
        source="""
while True:
    for number in (1, 2):
        os.write(number, b"x" * 2**16)
""",
        ended=timed_out,
        check=lambda step: (
            step.truncated
            and len(step.stdout) <= 64 * 1024
            and len(step.stderr) <= 64 * 1024
            and "bytes left out" in step.stdout
        ),
        limits=FLOODING,
    ),
)

HOST_NAMESPACES = {
    name: os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "net", "pid", "ipc", "uts", "cgroup")
}

BEGINNINGS = (
    Attack(
        name="namespaces-of-its-own",
        source=f"""
for name, host in {HOST_NAMESPACES!r}.items():
    must("its own " + name, os.readlink("/proc/self/ns/" + name) != host, host)
for name in ("shm", "sem", "msg"):
    must("no queues of others", len(open("/proc/sysvipc/" + name).readlines()) == 1, name)
contained()
""",
    ),
    Attack(
        name="session-of-its-own",
        source="""
group, session = open("/proc/1/stat").read().rpartition(")")[2].split()[2:4]
must("process 1 leads its session", session == "1", (group, session))
refused("no terminal", lambda: os.open("/dev/tty", os.O_RDWR), (errno.ENXIO, errno.ENOENT))
contained()
""",
    ),
    Attack(
        name="limits-of-the-supervisor",
        source="""
rows = open("/proc/1/limits").read().splitlines()[1:]
hard = {row[:26].strip(): row[26:].split()[1] for row in rows}
MOST = {"Max core file size": 0, "Max file size": 24 * 2**20, "Max open files": 4096, "Max processes": 16384}
for name, most in MOST.items():
    must(name, hard[name] != "unlimited" and int(hard[name]) <= most, hard[name])
contained()
""",
    ),
    Attack(
        name="names-of-the-host",
        source="""
lines = [line.split() for line in open("/etc/hosts") if line.strip() and not line.startswith("#")]
must("localhost alone has a name", {name for _, *names in lines for name in names} == {"localhost"}, lines)
must("no resolver", not os.path.exists("/etc/resolv.conf") or not open("/etc/resolv.conf").read().strip())
contained()
""",
    ),
)

SHARED_MEMORY = (
    *(
        Attack(
            name=f"memory-bomb-in-{where.strip('/').replace('/', '-')}",
            counts_all=True,
            source=f"with open('{where}/hoard', 'wb', 0) as file:\n    while True: file.write(b'x' * 2**20)\n",
            ended=out_of_memory,
            check=anything,
            limits=ROOMY,
        )
        for where in ("/work", "/tmp", "/dev/shm")
    ),
    Attack(
        name="memory-bomb-in-system-v-memory",
        counts_all=True,
        source="""
libc.shmat.restype = ctypes.c_void_p
while True:
    segment = libc.shmget(0, 2**25, 0o1666)
    must("a segment", segment >= 0)
    ctypes.memset(libc.shmat(segment, None, 0), 1, 2**25)
""",
        ended=out_of_memory,
        check=anything,
    ),
)

SHARING: tuple[Attack, ...] = (*DESCRIPTORS, *CHANGES, *PATHS, *BEGINNINGS, *SHARED_MEMORY)
