"""The attacks on one probe, by target. `attacks_burning` and `attacks_sharing` have further ones."""

from __future__ import annotations

from tests.runners.sandbox.kit.attack import (
    FLOODING,
    QUICK,
    Attack,
    anything,
    exited,
    out_of_memory,
    refusals,
    signalled,
    timed_out,
)
from tests.runners.sandbox.kit.attacks_burning import PROCESSOR_TIME
from tests.runners.sandbox.kit.attacks_kernel import KERNEL
from tests.runners.sandbox.kit.attacks_sharing import SHARING

NETWORK = (
    Attack(
        name="tcp-to-the-internet",
        source="""
import socket
UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EPERM, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
refused("IPv4", lambda: socket.create_connection(("1.1.1.1", 80), 2), UNREACHABLE)
refused("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 2), UNREACHABLE)
refused("private", lambda: socket.create_connection(("10.0.0.1", 80), 2), UNREACHABLE)
refused("IPv6", lambda: socket.create_connection(("2606:4700:4700::1111", 80), 2), UNREACHABLE)
contained()
""",
    ),
    Attack(
        name="udp-and-names",
        source="""
import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
refused("UDP", lambda: udp.sendto(b"x", ("8.8.8.8", 53)), (errno.ENETUNREACH, errno.EPERM, errno.EHOSTUNREACH))
try:
    print("BREACH", socket.getaddrinfo("example.com", 80))
except socket.gaierror as error:
    print("refused name", error)
contained()
""",
    ),
    Attack(
        name="interfaces",
        source="""
lines = open("/proc/net/dev").read().splitlines()[2:]
must("only its own loopback", {line.split(":")[0].strip() for line in lines} <= {"lo"}, lines)
must("no routes", len(open("/proc/net/route").read().splitlines()) <= 1)
contained()
""",
    ),
    refusals(
        "raw-and-odd-sockets",
        "socket",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
        "socket.socket(31, socket.SOCK_RAW, 1)",
    ),
    Attack(
        name="engine-sockets",
        source="""
import glob
found = [path for pattern in ("/run/*", "/var/run/*", "/run/*/*") for path in glob.glob(pattern)]
must("no socket of an engine", not [path for path in found if path.endswith((".sock", ".socket"))], found)
contained()
""",
    ),
)

FILES = (
    Attack(
        name="write-anywhere",
        source="""
SCRATCH = ("/work", "/tmp", "/dev/shm", "/dev/mqueue", "/proc")
for top, directories, files in os.walk("/"):
    if top.startswith(SCRATCH):
        directories.clear()
        continue
    if top.count("/") > 6:
        directories.clear()
    try:
        with open(os.path.join(top, "reprobot-was-here"), "w"):
            print("BREACH writable:", top)
    except OSError as error:
        if error.errno not in (*REFUSALS, errno.ENOENT):  # the last is how files of the kernel say no
            print("BREACH", top, error)
contained()
""",
    ),
    Attack(
        name="change-the-environment-under-test",
        source="""
import json, sys
ours = ["/opt/reprobot/runners/guest/probe/supervisor.py", "/opt/env/pyvenv.cfg"]
targets = [json.__file__, sys.executable, os.path.realpath(sys.executable), *ours]
for path in targets:
    refused("overwrite " + path, lambda: open(path, "r+b"))
    refused("remove " + path, lambda: os.unlink(path))
    refused("chmod " + path, lambda: os.chmod(path, 0o777))
contained()
""",
    ),
    Attack(
        name="device-nodes",
        source="""
import stat
for name, device in (("disk", os.makedev(254, 0)), ("memory", os.makedev(1, 1))):
    refused("mknod " + name, lambda: os.mknod(name, stat.S_IFBLK | 0o666, device))
for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/kvm", "/dev/fuse", "/proc/kcore"):
    refused("open " + path, lambda: open(path, "rb"), (errno.ENOENT, errno.EACCES, errno.EPERM))
contained()
""",
    ),
    Attack(
        name="host-paths",
        source="""
HOST = ("/root", "/home", "/var/lib/containers", "/etc/shadow", "/etc/ssh", "/boot", "/mnt", "/srv")
for path in HOST:
    refused("list " + path, lambda: os.listdir(path), (errno.ENOENT, errno.EACCES, errno.ENOTDIR))
mine = set(os.listdir("/work")) - {"__pycache__"}
must("nothing but ours below /work", mine == {"attack.py", "kit.py"}, mine)
must("nothing in /tmp", os.listdir("/tmp") == [], os.listdir("/tmp"))
contained()
""",
    ),
    Attack(
        name="proc-and-sys",
        source="""
for path in ("/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
             "/proc/sys/vm/drop_caches", "/sys/power/state", "/sys/kernel/uevent_helper", "/proc/1/oom_score_adj",
             "/proc/irq/default_smp_affinity"):
    refused("write " + path, lambda: open(path, "w").write("x"), (*REFUSALS, errno.ENOENT, errno.EIO))
contained()
""",
    ),
    Attack(
        name="setuid-files",
        source="""
import shutil, subprocess
shutil.copy("/usr/bin/id", "id")
os.chmod("id", 0o6755)
must("a setuid copy gives nothing", subprocess.run(["./id", "-u"], capture_output=True).stdout.strip() != b"0")
for program in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd"):
    if os.path.exists(program):
        done = subprocess.run([program, "-c", "id -u"], stdin=subprocess.DEVNULL, capture_output=True)
        must(program + " gives nothing", done.stdout.strip() != b"0" and done.returncode != 0)
contained()
""",
    ),
    Attack(
        name="links-out-of-the-sandbox",
        source="""
refused("hard link to the system", lambda: os.link("/usr/bin/id", "linked"), (errno.EXDEV, *REFUSALS))
os.symlink("/etc/passwd", "link")
refused("write through a symbolic link", lambda: open("link", "w"))
refused("leave by ..", lambda: open("../../../etc/shadow"), (errno.ENOENT, errno.EACCES))
refused("leave by its root", lambda: os.listdir(os.path.join("/proc/1", "root")), (errno.EACCES, errno.EPERM))
refused("leave by /proc/1/cwd", lambda: os.listdir("/proc/1/cwd/"), (errno.EACCES, errno.EPERM))
contained()
""",
    ),
    Attack(
        name="fill-the-disk",
        source="""
for place in ("/work", "/tmp", "/dev/shm"):
    written, names = 0, [f"{place}/full{number}" for number in range(8)]
    try:
        for name in names:  # several, because one alone meets the limit on file sizes first
            with open(name, "wb", buffering=0) as file:
                for _ in range(8):
                    written += file.write(b"x" * 2**20)
        print("BREACH", place, written)
    except OSError as error:
        full = error.errno == errno.ENOSPC
        must(place + " is capped", full and written <= 24 * 2**20, (written, error))
    for name in names:
        if os.path.exists(name):
            os.unlink(name)
try:
    with open("large", "wb", buffering=0) as file:
        file.truncate(2**30)
    print("BREACH a sparse file of any size")
except OSError as error:
    must("file size is capped", error.errno in (errno.EFBIG, errno.ENOSPC), error)
contained()
""",
    ),
    Attack(
        name="fill-the-inodes",
        counts_all=True,
        source="""
count = 0
try:
    while count < 3_000_000:
        open("/tmp/%d" % count, "w").close()
        count += 1
except OSError as error:
    print("stopped after", count, error)
else:
    print("BREACH", count)
contained()
""",
        # A slow machine reaches its time limit first: that is contained, too.
        ended=lambda ended: exited()(ended) or out_of_memory(ended) or timed_out(ended),
        check=lambda step: "BREACH" not in step.stdout,
    ),
)

IDENTITY = (
    Attack(
        name="who-am-i",
        source="""
import grp
must("not root", 0 not in os.getresuid() + os.getresgid(), (os.getresuid(), os.getresgid()))
must("no other groups", set(os.getgroups()) <= {65534}, os.getgroups())
now = status()
for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    must(kind + " is empty", int(now[kind], 16) == 0, now[kind])
must("no new privileges", now["NoNewPrivs"] == "1")
must("filtered", now["Seccomp"] == "2")
must("has a name", __import__("getpass").getuser() == "nobody")
for number in (0, 1, 1000):
    refused("setuid", lambda: os.setuid(number), (*REFUSALS, errno.EINVAL))
    refused("setgid", lambda: os.setgid(number), (*REFUSALS, errno.EINVAL))
refused("setgroups", lambda: os.setgroups([0]))
contained()
""",
    ),
    Attack(
        name="new-namespaces",
        source="""
FLAGS = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
         "pid": 0x20000000, "network": 0x40000000}
for name, flag in FLAGS.items():
    refused("unshare " + name, lambda: syscall("unshare", flag))
    refused("clone " + name, lambda: syscall("clone", flag | 17, 0, 0, 0, 0) or os._exit(99))
refused("user and network", lambda: syscall("unshare", 0x50000000))
refused("clone3", lambda: syscall("clone3", ctypes.create_string_buffer(88), 88), (errno.ENOSYS,))
refused("setns", lambda: syscall("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0))
contained()
""",
    ),
    Attack(
        name="mounts",
        source="""
refused("remount /usr", lambda: syscall("mount", b"none", b"/usr", 0, 32 | 4096, 0))
refused("bind", lambda: syscall("mount", b"/tmp", b"/work", 0, 4096, 0))
refused("tmpfs", lambda: syscall("mount", b"t", b"/tmp", b"tmpfs", 0, 0))
refused("pivot_root", lambda: syscall("pivot_root", b"/work", b"/work"))
refused("fsopen", lambda: syscall("fsopen", b"tmpfs", 0))
refused("open_tree", lambda: syscall("open_tree", -100, b"/usr", 1))
refused("mount_setattr", lambda: syscall("mount_setattr", -100, b"/usr", 0, ctypes.create_string_buffer(32), 32))
refused("chroot", lambda: os.chroot("/work"))
contained()
""",
    ),
    Attack(
        name="kernel-surface",
        source="""
buffer = ctypes.create_string_buffer(256)
for name, arguments in {
    "keyctl": (0, -3, 0, 0, 0), "add_key": (b"user", b"a", b"b", 1, -3), "bpf": (5, buffer, 120),
    "perf_event_open": (buffer, 0, -1, -1, 0), "userfaultfd": (0,), "userfaultfd ": (1,),
    "io_uring_setup": (8, buffer),
    "kcmp": (os.getpid(), 1, 0, 0, 0), "fanotify_init": (0, 0), "open_by_handle_at": (-100, buffer, 0),
}.items():
    refused(name, lambda: syscall(name.strip(), *arguments))
contained()
""",
    ),
    Attack(
        name="the-machine-itself",
        source="""
import socket, time
buffer = ctypes.create_string_buffer(64)
for name, arguments in {
    "syslog": (3, buffer, 64), "kexec_load": (0, 0, 0, 0),
    "init_module": (buffer, 64, b""), "finit_module": (0, b"", 0),
    "reboot": (0xfee1dead, 672274793, 0x1234567, 0), "swapon": (b"swap", 0), "acct": (b"acct",),
}.items():
    refused(name, lambda: syscall(name, *arguments))
refused("set the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
refused("set the host name", lambda: socket.sethostname("mine"))
refused("lower niceness", lambda: os.nice(-5))
contained()
""",
    ),
)

PROCESSES = (
    Attack(
        name="read-the-supervisor",
        source="""
must("it is process 1", os.getppid() == 1, os.getppid())
for part in ("mem", "environ", "maps", "fd/0", "fd/1", "root", "cwd", "exe", "task/1/mem"):
    refused("/proc/1/" + part, lambda: os.open("/proc/1/" + part, os.O_RDONLY), (errno.EACCES, errno.EPERM))
refused("list its descriptors", lambda: os.listdir("/proc/1/fd"), (errno.EACCES, errno.EPERM))
contained()
""",
    ),
    Attack(
        name="trace-the-supervisor",
        source="""
import resource
pidfd = os.pidfd_open(1)
refused("PTRACE_ATTACH", lambda: syscall("ptrace", 16, 1, 0, 0))
refused("PTRACE_SEIZE", lambda: syscall("ptrace", 0x4206, 1, 0, 0))
child = os.fork() or __import__("time").sleep(60)
refused("PTRACE_ATTACH to a sibling", lambda: syscall("ptrace", 16, child, 0, 0))
vector = (ctypes.c_long * 2)(0, 8)
refused("process_vm_readv", lambda: syscall("process_vm_readv", 1, vector, 1, vector, 1, 0))
refused("pidfd_getfd", lambda: syscall("pidfd_getfd", pidfd, 1, 0))
refused("prlimit", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
contained()
""",
    ),
    Attack(
        name="signal-the-supervisor",
        source="""
import signal, time
for number in (*range(1, 32), 34, 64):
    try:
        os.kill(1, number)
    except OSError as error:
        print("refused", number, error)
time.sleep(0.3)
contained()
""",
    ),
    Attack(
        name="kill-everything",
        source="""
import signal
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
    refused("kill -1", lambda: os.kill(-1, number), (errno.ESRCH,))  # nobody but process 1 and us
refused("stop -1", lambda: os.kill(-1, signal.SIGSTOP), (errno.ESRCH,))
contained()
""",
    ),
    Attack(
        name="descriptors",
        source="""
mine = sorted(int(name) for name in os.listdir("/proc/self/fd"))
must("only the standard ones", mine[:3] == [0, 1, 2] and len(mine) == 4, mine)
for number in range(3, 256):
    try:
        os.write(number, b'{"end": {"probe_file": null}}\\n')
        print("BREACH", number)
    except OSError:
        pass
must("no input", os.read(0, 10) == b"")
contained()
""",
    ),
    Attack(
        name="environment",
        source="""
mine = dict(os.environ)
mine.pop("LC_CTYPE", None)  # Python sets it for itself
mine.pop("LD_LIBRARY_PATH", None)  # for interpreters that need it
must("exactly the allow-list", set(mine) == {"HOME", "PATH", "LANG", "PYTHONFAULTHANDLER"}, mine)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        continue
    must("nothing of the host's in " + pid, b"CONFORMANCE_SECRET" not in text and b"s3cr3t" not in text)
contained()
""",
    ),
    Attack(
        name="other-processes",
        source="""
numbers = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
must("only the supervisor and us", numbers[0] == 1 and len(numbers) == 2, numbers)
must("its own host name", os.uname().nodename == "sandbox")
contained()
""",
    ),
)

EXHAUSTION = (
    Attack(
        name="fork-bomb",
        source="""
import time
count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
    print("BREACH", count)
except OSError as error:
    must("stopped by the limit", count <= 48 and error.errno == errno.EAGAIN, (count, error))
contained()
""",
    ),
    Attack(
        name="exponential-fork-bomb",
        source="""
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        ended=timed_out,
        check=anything,
        limits=QUICK,
    ),
    Attack(
        name="thread-bomb",
        source="""
import threading, time
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
    print("BREACH", count)
except RuntimeError as error:
    must("stopped by the limit", count <= 48, (count, error))
contained()
os._exit(0)
""",
    ),
    Attack(
        name="memory-bomb",
        counts_all=True,
        source="hoard = []\nwhile True:\n    hoard.append(b'x' * 2**22)\n",
        ended=out_of_memory,
        check=anything,
    ),
    Attack(
        name="memory-bomb-caught",
        counts_all=True,
        source="""
hoard = []
try:
    while True:
        hoard.append(b"x" * 2**22)
except MemoryError:
    print("BREACH: told instead of killed")
""",
        ended=out_of_memory,
        check=anything,
    ),
    Attack(
        name="memory-bomb-mmap",
        counts_all=True,
        source="""
import mmap
area = mmap.mmap(-1, 2**30)
for offset in range(0, 2**30, 4096):
    area[offset] = 1
""",
        ended=out_of_memory,
        check=anything,
    ),
    Attack(
        name="memory-bomb-in-children",
        counts_all=True,
        source="""
import time
for _ in range(20):
    if os.fork() == 0:
        hoard = b"x" * (20 * 2**20)
        time.sleep(60)
time.sleep(5)
""",
        ended=out_of_memory,
        check=anything,
    ),
    Attack(
        name="memory-bomb-in-a-memfd",
        counts_all=True,
        source="""
file = os.memfd_create("hoard")
while True:
    os.write(file, b"x" * 2**20)
""",
        # RLIMIT_FSIZE holds for it too: the file may not grow beyond the disk limit.
        ended=lambda ended: exited(1)(ended) or out_of_memory(ended) or signalled(25)(ended),
        check=anything,
    ),
    Attack(
        name="descriptor-bomb",
        source="""
held = []
try:
    while len(held) < 100_000:
        held.append(os.open("/dev/null", os.O_RDONLY))
    print("BREACH", len(held))
except OSError as error:
    must("stopped by the limit", error.errno == errno.EMFILE, error)
contained()
""",
    ),
    Attack(
        name="flood-stdout",
        source="import sys\nwhile True:\n    sys.stdout.write('x' * 65536)\n",
        ended=timed_out,
        check=lambda step: step.truncated and len(step.stdout) <= 64 * 1024,
        limits=FLOODING,
    ),
    Attack(
        name="flood-stderr-in-lines",
        source="import sys\nwhile True:\n    sys.stderr.write('line after line\\n' * 4096)\n",
        ended=timed_out,
        check=lambda step: step.truncated and len(step.stderr) <= 64 * 1024,
        limits=FLOODING,
    ),
    Attack(
        name="flood-both-and-end",
        source="""
import sys
print("the first line")
for _ in range(300):
    sys.stdout.write("o" * 65536)
    sys.stderr.write("e" * 65536)
print("\\nthe last line")
""",
        check=lambda step: (
            step.truncated
            and step.stdout.startswith("the first line\n")
            and step.stdout.endswith("\nthe last line\n")
            and "bytes left out" in step.stdout
        ),
    ),
    Attack(
        name="binary-output",
        source="""
import sys
sys.stdout.buffer.write(bytes(range(256)) * 64 + b"\\x1b[2J\\x1b]0;title\\x07\\xff\\xfe\\x00 end")
""",
        check=lambda step: (
            not {"\x1b[", "\x1b]"} & {step.stdout[at : at + 2] for at in range(len(step.stdout))}
            and "\x1b\x1c" in step.stdout  # all other control characters arrive
            and "\ufffd" in step.stdout
            and step.stdout.endswith("\x00 end")
        ),
    ),
    Attack(
        name="output-of-control-characters",
        source="import sys\nsys.stdout.write('\\x00' * 10**6)\n",  # six bytes each, once in JSON
        check=lambda step: step.truncated and len(step.stdout) <= 64 * 1024,
    ),
    Attack(
        name="leave-a-core",
        source="""
import resource, signal, time
must("no core files", resource.getrlimit(resource.RLIMIT_CORE) == (0, 0))
child = os.fork()
if child == 0:
    os.abort()
must("aborted without a core", os.waitpid(child, 0)[1] == signal.SIGABRT)
contained()
""",
    ),
)

TIME = (
    Attack(name="sleep", source="import time\ntime.sleep(1000)\n", ended=timed_out, check=anything, limits=QUICK),
    Attack(name="spin", source="while True: pass\n", ended=timed_out, check=anything, limits=QUICK),
    Attack(
        name="ignore-every-signal",
        source="""
import faulthandler, signal, time
faulthandler.disable()
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True: time.sleep(1)
""",
        ended=timed_out,
        check=anything,
        limits=QUICK,
    ),
    Attack(
        name="stop-itself",
        source="import signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
        ended=timed_out,
        check=anything,
        limits=QUICK,
    ),
    Attack(
        name="daemons-that-hold-the-pipes",
        source="""
import subprocess
for _ in range(5):
    subprocess.Popen(["setsid", "sleep", "1000"])
contained()
""",
    ),
    Attack(
        name="double-fork",
        source="""
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()
contained()
""",
    ),
    Attack(
        name="daemons-past-the-deadline",
        source="""
import subprocess, time
for _ in range(5):
    subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done"])
time.sleep(1000)
""",
        ended=timed_out,
        check=anything,
        limits=QUICK,
    ),
)

TRUTH = (
    Attack(name="exit-3", source="raise SystemExit(3)\n", ended=exited(3), check=anything),
    Attack(name="exit-137", source="print('Killed')\nraise SystemExit(137)\n", ended=exited(137), check=anything),
    Attack(
        name="says-out-of-memory",
        source="import sys\nprint('Out of memory: Killed process 1 (python)')\nsys.exit('MemoryError')\n",
        ended=exited(1),
        check=anything,
    ),
    *(
        Attack(
            name=f"signal-{number}",
            source=f"os.kill(os.getpid(), {number})\nimport time\ntime.sleep(5)\n",
            ended=signalled(number),
            check=anything,
        )
        for number in (4, 6, 7, 8, 9, 11, 15)
    ),
    Attack(
        name="segmentation-fault",
        source="ctypes.string_at(0)\n",
        ended=signalled(11),
        check=lambda step: "Segmentation fault" in step.stderr,
    ),
    Attack(
        name="forged-records",
        source="""
import json, sys
record = {"argv": ["python", "attack.py"], "status": 0, "timed_out": False, "seconds": 0.1, "maxrss_bytes": 1,
          "stdout": "", "stderr": "", "truncated": False}
for stream in (sys.stdout, sys.stderr):
    print(json.dumps({"step": record}), file=stream)
    print(json.dumps({"end": {"probe_file": "forged"}}), file=stream, flush=True)
sys.exit(7)
""",
        ended=exited(7),
        check=lambda step: '"status": 0' in step.stdout,
    ),
    Attack(
        name="non-ascii-source",
        source="print('naïve → 你好 🙂', len('🙂'))\ncontained()\n",
        check=lambda step: step.stdout == "naïve → 你好 🙂 1\ncontained\n",
    ),
)

ATTACKS: tuple[Attack, ...] = (
    *NETWORK,
    *FILES,
    *IDENTITY,
    *PROCESSES,
    *EXHAUSTION,
    *TIME,
    *PROCESSOR_TIME,
    *TRUTH,
    *SHARING,
    *KERNEL,
)
PRELUDE = "from kit import *\nimport errno, os, ctypes\n"
