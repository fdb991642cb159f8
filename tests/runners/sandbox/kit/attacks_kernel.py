"""Attacks by rarer ways: every refused system call, other ABIs, privileges of sockets and files, kernel memory."""

from __future__ import annotations

from runners.core.protocol import Limits
from runners.sandbox.limits import seccomp
from tests.runners.sandbox.kit.attack import MIB, Attack, exited, out_of_memory, timed_out

HOARDING = Limits(wall_s=8, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
ENDLESS = Limits(wall_s=4, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
"""For attacks that only the time ends: two processors reach the limit on memory in half of this time, or never."""


def _list_refused_calls() -> dict[str, tuple[int, int]]:
    return {} if seccomp.find_problem() else seccomp.list_refused_numbers()


CALLS = (
    Attack(
        # The arguments are wrong for every call: a call that the filter lets through fails otherwise.
        name="every-refused-call",
        source=f"""
for name, (number, error) in {_list_refused_calls()!r}.items():
    if name in {tuple(seccomp.NEW_CALLS)!r}:
        continue  # a container program's library may not know them: see statmount-shows-nothing-new
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    must(name, result == -1 and ctypes.get_errno() == error, (result, ctypes.get_errno()))
contained()
""",
    ),
    Attack(
        name="statmount-shows-nothing-new",
        source="""
import platform, struct
LISTMOUNT, ROOT = 458, 2**64 - 1
known = {int(line.split()[0]) for line in open("/proc/self/mountinfo")}
request, found = ctypes.create_string_buffer(struct.pack("IIQQQ", 32, 0, ROOT, 0, 0)), (ctypes.c_uint64 * 4096)()
count = libc.syscall(ctypes.c_long(LISTMOUNT), request, found, ctypes.c_long(4096), ctypes.c_long(0))
must("no mount beyond the table", count <= len(known), (count, len(known)))
# The mount namespace of another process: the supervisor's is ours, and there are no others.
request = ctypes.create_string_buffer(struct.pack("IIQQQ", 32, 0, ROOT, 0, 1))
refused("another namespace", lambda: int(libc.syscall(ctypes.c_long(LISTMOUNT), request, found, 4096, 0)) >= 0 or
        (_ for _ in ()).throw(OSError(errno.EPERM, "refused")))
contained()
""",
    ),
    Attack(
        name="personality",
        source="""
def change(value):
    result = libc.personality(ctypes.c_ulong(value))
    if result < 0:
        raise OSError(ctypes.get_errno(), "personality")
    return result
must("the question is allowed", change(0xffffffff) == 0)
for name, value in {"no randomisation": 0x40000, "READ_IMPLIES_EXEC": 0x400000, "32 bits": 8, "null pages": 0x100000,
                    "beyond 32 bits": 0x1ffffffff}.items():
    refused(name, lambda: change(value))
contained()
""",
    ),
    Attack(
        name="other-abis",
        source="""
import mmap, platform
if platform.machine() == "x86_64":
    def run(code):
        area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        area.write(code)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(area)))
        child = os.fork()
        if child == 0:
            os._exit(0 if function() > 0 else 7)  # getpid
        return os.waitpid(child, 0)[1]
    must("int 0x80", run(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3") != 0)
    must("x32", run(b"\\xb8\\x27\\0\\0\\x40\\x0f\\x05\\xc3") != 0)
    must("the native call works", run(b"\\xb8\\x27\\0\\0\\0\\x0f\\x05\\xc3") == 0)
contained()
""",
    ),
    Attack(
        name="arguments-beyond-32-bits",
        source="""
HIGH = 2**32
for name, family in {"AF_NETLINK as AF_PACKET": 17, "AF_VSOCK": 40, "AF_ALG": 38}.items():
    number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
    def create():
        result = libc.syscall(*map(ctypes.c_long, (number, HIGH + family, 3, 0)))
        if result < 0:
            raise OSError(ctypes.get_errno(), name)
        return result
    refused(name, create)
contained()
""",
    ),
)

SETTINGS = (
    Attack(
        name="settings-of-the-supervisor",
        source="""
for name, value in {"oom_score_adj": b"1000", "oom_adj": b"15", "coredump_filter": b"0x7f", "timerslack_ns": b"1",
                    "clear_refs": b"1", "comm": b"mine", "autogroup": b"19", "attr/current": b"x",
                    "uid_map": b"0 0 1",
                    "setgroups": b"deny", "gid_map": b"0 0 1", "loginuid": b"0", "mem": b"x", "projid_map": b"0 0 1"
                    }.items():
    def write():
        descriptor = os.open("/proc/1/" + name, os.O_WRONLY)
        return os.write(descriptor, value)
    refused(name, write, (*REFUSALS, errno.ENOENT, errno.EINVAL, errno.ESRCH))
contained()
""",
    ),
    Attack(
        name="own-limits-are-final",
        source="""
import resource
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
    soft, hard = resource.getrlimit(kind)
    def raise_limit():
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
        except ValueError as error:
            raise OSError(errno.EPERM, str(error))
    refused(f"limit {kind}", raise_limit)
def adjust():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")
refused("oom_score_adj", adjust)
refused("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
contained()
""",
    ),
    Attack(
        name="handlers-of-the-kernel",
        source="""
GONE = (*REFUSALS, errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.EISDIR, errno.ENODEV)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
             "/sys/kernel/uevent_helper", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger",
             "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/power/state",
             "/sys/kernel/debug/x", "/sys/kernel/tracing/trace", "/proc/acpi/wakeup", "/proc/kcore", "/proc/mtrr",
             "/sys/kernel/security/x", "/proc/sys/vm/drop_caches", "/sys/fs/bpf/x"):
    refused(path, lambda: os.open(path, os.O_WRONLY), GONE)
contained()
""",
    ),
    Attack(
        name="control-groups",
        source="""
GONE = (*REFUSALS, errno.ENOENT, errno.EISDIR)
for top, folders, files in os.walk("/sys/fs/cgroup"):
    refused("new group in " + top, lambda: os.mkdir(top + "/mine"), GONE)
    for name in files:
        if name.endswith((".max", "limit_in_bytes", "procs", "tasks", "release_agent", "event_control")):
            refused(top + name, lambda: os.open(os.path.join(top, name), os.O_WRONLY), GONE)
    if top.count("/") > 5:
        folders.clear()
contained()
""",
    ),
    Attack(
        name="terminal",
        source="""
import fcntl
NONE = (errno.ENXIO, errno.ENOENT, errno.EACCES, errno.EIO, errno.ENOTTY, errno.EPERM)
refused("the controlling terminal", lambda: os.open("/dev/tty", os.O_RDWR), NONE)
for name in ("tty0", "tty1", "console", "vcs", "ttyS0"):
    refused(name, lambda: os.open("/dev/" + name, os.O_RDWR | os.O_NONBLOCK), NONE)
for stream in range(3):
    refused(f"TIOCSTI {stream}", lambda: fcntl.ioctl(stream, 0x5412, b"x"), NONE)
contained()
""",
    ),
)

SOCKETS = (
    Attack(
        name="changes-of-the-network",
        source="""
import socket, struct
SELF = 0x0001 | 0x0004  # NLM_F_REQUEST, NLM_F_ACK
route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
route.settimeout(5)
def ask(kind, flags, body):
    route.send(struct.pack("IHHII", 16 + len(body), kind, SELF | flags, 1, 0) + body)
    error = -struct.unpack_from("i", route.recv(65536), 16)[0]
    if error:
        raise OSError(error, os.strerror(error))
    return "done"
name = struct.pack("HH8s", 12, 3, b"dummy0\\0\\0")
NO = (*REFUSALS, errno.EOPNOTSUPP)
refused("new link", lambda: ask(16, 0x600, struct.pack("BxHiII", 0, 0, 0, 0, 0) + name), NO)
refused("loopback down", lambda: ask(16, 0, struct.pack("BxHiII", 0, 0, 1, 0, 1)), NO)
address = struct.pack("BBBBi", 2, 8, 0, 0, 1) + struct.pack("HH4s", 8, 2, b"\\x0a\\0\\0\\1")
refused("new address", lambda: ask(20, 0x600, address), NO)
contained()
""",
    ),
    Attack(
        name="privileges-of-sockets",
        source="""
import socket
tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
NO = (*REFUSALS, errno.ENOPROTOOPT, errno.ENODEV, errno.EINVAL)
for name, (one, level, option, value) in {
    "SO_SNDBUFFORCE": (tcp, 1, 32, 2**28), "SO_RCVBUFFORCE": (tcp, 1, 33, 2**28), "SO_MARK": (udp, 1, 36, 7),
    "SO_PRIORITY": (udp, 1, 12, 7), "TCP_REPAIR": (tcp, 6, 19, 1), "IP_TRANSPARENT": (udp, 0, 19, 1),
    "SO_DEBUG": (tcp, 1, 1, 1),
}.items():
    refused(name, lambda: one.setsockopt(level, option, value) or "set", NO)
refused("SO_BINDTODEVICE", lambda: udp.setsockopt(1, 25, b"eth0\\0") or "set", NO)
for forwarded in (25, 53, 80):
    refused(f"port {forwarded}", lambda: socket.socket().bind(("127.0.0.1", forwarded)) or "bound")
contained()
""",
    ),
)

FILES = (
    Attack(
        name="write-by-other-calls",
        source="""
import mmap
target = "/usr/bin/env"
before = open(target, "rb").read()
for what, attempt in {
    "truncate": lambda: os.truncate(target, 0), "link": lambda: os.link(target, "/usr/bin/own"),
    "rename": lambda: os.rename(target, "/usr/bin/own"), "times": lambda: os.utime(target),
    "mode": lambda: os.chmod(target, 0o777), "owner": lambda: os.chown(target, os.getuid(), -1),
    "attribute": lambda: os.setxattr(target, "user.x", b"x"),
    "own descriptor": lambda: os.open(f"/proc/self/fd/{os.open(target, os.O_RDONLY)}", os.O_RDWR),
    "by path": lambda: os.open(f"/proc/self/fd/{os.open(target, os.O_PATH)}", os.O_WRONLY),
    "by root": lambda: os.open("/proc/self/root" + target, os.O_WRONLY),
    "shared map": lambda: mmap.mmap(os.open(target, os.O_RDONLY), 4096, mmap.MAP_SHARED, mmap.PROT_WRITE),
    "unnamed file": lambda: os.open("/usr/bin", os.O_TMPFILE | os.O_WRONLY),
}.items():
    refused(what, attempt, (*REFUSALS, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTSUP))
must("unchanged", open(target, "rb").read() == before)
contained()
""",
    ),
    Attack(
        name="write-through-own-memory",
        source="""
import mmap
target = "/usr/bin/env"
before = open(target, "rb").read(64)
area = mmap.mmap(os.open(target, os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
maps = [line.rstrip() for line in open("/proc/self/maps")]
address = next(int(line.split("-")[0], 16) for line in maps if line.endswith(target) and " r--p " in line)
try:
    memory = os.open("/proc/self/mem", os.O_RDWR)
    os.pwrite(memory, b"x" * 64, address)
except OSError as error:
    print("refused", error)
must("the file is unchanged", open(target, "rb").read(64) == before)
contained()
""",
    ),
    Attack(
        name="write-through-a-pipe",
        source="""
target = "/usr/bin/env"
before = open(target, "rb").read(4096)
reader, writer = os.pipe()
os.write(writer, b"x" * 65536); os.read(reader, 65536)  # every buffer of the pipe was writable once
os.splice(os.open(target, os.O_RDONLY), writer, 1, offset_src=0)
os.write(writer, b"overwritten")
must("the page cache is unchanged", open(target, "rb").read(4096) == before)
contained()
""",
    ),
    Attack(
        name="privileges-of-files",
        source="""
import fcntl
open("mine", "w").close()
CAPABILITY = b"\\1\\0\\0\\2" + b"\\xff" * 16
NO = (*REFUSALS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)
refused("capability", lambda: os.setxattr("mine", "security.capability", CAPABILITY), NO)
refused("trusted", lambda: os.setxattr("mine", "trusted.x", b"x"), NO)
refused("owner", lambda: os.chown("mine", 0, 0), NO)
refused("lease", lambda: fcntl.fcntl(os.open("/usr/bin/env", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK), NO)
flags = bytearray((0x10).to_bytes(8, "little"))  # immutable
refused("immutable", lambda: fcntl.ioctl(os.open("mine", os.O_RDONLY), 0x40086602, flags), NO)
contained()
""",
    ),
    Attack(
        name="devices-of-the-machine",
        source="""
NONE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENXIO)
for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop-control", "loop0", "vda", "sda", "nvme0n1", "dm-0",
             "net/tun", "vhost-net", "vhost-vsock", "vsock", "uinput", "rtc0", "hpet", "cpu/0/msr", "snapshot",
             "rfkill", "mapper/control", "btrfs-control", "userfaultfd", "autofs", "cuse", "ppp", "uhid", "watchdog"):
    refused(name, lambda: os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK), NONE)
contained()
""",
    ),
)


def _hoard(name: str, source: str, *, counts_all: bool = True, limits: Limits = HOARDING) -> Attack:
    """Return an attack that fills kernel memory until it is stopped; `test_host_memory` measures the machine."""
    return Attack(
        name=name,
        source=source + "\ncontained()\n",
        counts_all=counts_all,
        ended=lambda ended: exited()(ended) or out_of_memory(ended) or timed_out(ended),
        check=lambda step: "BREACH" not in step.stdout,
        limits=limits,
    )


_IN_PROCESSES = """
import signal, socket, struct, time
done, tell = os.pipe()
os.set_blocking(done, False)
for _ in range(8):
    if os.fork() == 0:
        held = []
        try:
            fill()
        except OSError as error:
            pass
        os.write(tell, b"x")
        time.sleep(100)
count = 0
while count < 8:  # each is full or killed
    try:
        count += len(os.read(done, 8))
        while os.waitpid(-1, os.WNOHANG)[0]: count += 1
    except BlockingIOError:
        count += os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        break
    time.sleep(0.05)
time.sleep(1)  # `test_host_memory` reads the machine's counters meanwhile
"""
"""Ends soon after the last process is full. Where the memory of the parent runs out too, the wall clock ends it."""

KERNEL_MEMORY = (
    _hoard(
        "kernel-memory-in-tcp-buffers",
        """
def fill():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**23)
    server.bind(("127.0.0.1", 0)); server.listen(1000)
    while True:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**23)
        client.settimeout(1); client.connect(server.getsockname())
        held.append((client, server.accept()[0]))
        client.setblocking(False)
        try:
            while True: client.send(b"x" * 2**18)
        except BlockingIOError:
            pass
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-udp-buffers",
        """
def fill():
    while True:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**23)
        one.bind(("127.0.0.1", 0)); one.setblocking(False)
        held.append(one)
        try:
            for _ in range(64): one.sendto(b"x" * 60000, one.getsockname())
        except BlockingIOError:
            pass
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-unix-sockets",
        """
def fill():
    while True:
        pair = socket.socketpair()
        held.append(pair)
        for one in pair:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**23)
            one.setblocking(False)
            try:
                while True: one.send(b"x" * 2**16)
            except BlockingIOError:
                pass
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-pipes",
        """
def fill():
    while True:
        reader, writer = os.pipe()
        held.append((reader, writer))
        os.set_blocking(writer, False)
        try:
            while True: os.write(writer, b"x" * 2**16)
        except BlockingIOError:
            pass
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-names-of-absent-files",
        """
def fill():
    count = 0
    start = time.time_ns()  # a name that an earlier run has cached takes no memory
    while True:
        count += 1
        os.path.exists("/usr/%d-%d-%d-%s" % (start, os.getpid(), count, "x" * 180))
"""
        + _IN_PROCESSES,
        limits=ENDLESS,
    ),
    _hoard(
        "kernel-memory-in-page-tables",
        """
def fill():
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    start = libc.mmap(None, 2**40, 1, 0x4022, -1, 0)  # private, anonymous, not reserved, only read
    for offset in range(0, 2**40, 2**21):
        ctypes.string_at(start + offset, 1)
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-mappings",
        """
def fill():
    import mmap
    while True:
        try:
            held.append(mmap.mmap(-1, 4096, prot=mmap.PROT_READ if len(held) % 2 else mmap.PROT_WRITE))
        except OSError:
            return
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-timers",
        """
def fill():
    while True:
        timer = ctypes.c_void_p()
        if libc.timer_create(1, None, ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-system-v-queues",
        """
def fill():
    while True:
        queue = libc.msgget(0, 0o1666)
        if queue < 0:
            raise OSError(ctypes.get_errno(), "msgget")
        message = ctypes.create_string_buffer(8192)
        message[0] = 1
        while libc.msgsnd(queue, message, 8000, 0o4000) == 0: pass
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-semaphores",
        """
def fill():
    while libc.semget(0, 32000, 0o1666) >= 0: pass
    raise OSError(ctypes.get_errno(), "semget")
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-epoll",
        """
def fill():
    import select
    pipes = [os.pipe() for _ in range(1500)]
    while True:
        epoll = select.epoll()
        held.append(epoll)
        for reader, _ in pipes: epoll.register(reader, select.EPOLLIN)
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-file-locks",
        """
def fill():
    import fcntl
    file = os.open("/tmp/locked", os.O_RDWR | os.O_CREAT)
    place = os.getpid() * 2**34
    while True:
        place += 2
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
"""
        + _IN_PROCESSES,
        limits=ENDLESS,
    ),
    _hoard(
        "kernel-memory-in-signals",
        """
def fill():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    while libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(1)) == 0: pass
    raise OSError(ctypes.get_errno(), "sigqueue")
"""
        + _IN_PROCESSES,
    ),
    _hoard(
        "kernel-memory-in-inotify",
        """
def fill():
    while True:
        one = libc.inotify_init()
        if one < 0:
            raise OSError(ctypes.get_errno(), "inotify_init")
        for top, folders, files in os.walk("/usr/lib"):
            for name in files:
                if libc.inotify_add_watch(one, os.path.join(top, name).encode(), 2) < 0:
                    raise OSError(ctypes.get_errno(), "inotify_add_watch")
"""
        + _IN_PROCESSES,
    ),
    Attack(
        name="zombies",
        source="""
count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            os._exit(0)
        count += 1
    print("BREACH", count)
except OSError as error:
    must("the dead count", count <= 48 and error.errno == errno.EAGAIN, (count, error))
contained()
""",
    ),
    Attack(
        name="locked-memory",
        source="""
import mmap, resource
soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
area = mmap.mmap(-1, 2**28)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(area)))
result = libc.mlock(address, ctypes.c_size_t(2**28))
must("256 MiB cannot be locked", result != 0, (soft, hard))
contained()
""",
        # Without a limit of its own on locked memory, the limit on memory ends the attack.
        ended=lambda ended: exited()(ended) or out_of_memory(ended),
        check=lambda step: "BREACH" not in step.stdout,
    ),
)

KERNEL: tuple[Attack, ...] = (*CALLS, *SETTINGS, *SOCKETS, *FILES, *KERNEL_MEMORY)
