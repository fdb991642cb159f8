"""Attacks with two parties: the host, or another probe at the same time."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.core.protocol import Exited
from runners.probe.layout import Layout
from runners.sandbox.containers import skeleton
from runners.sandbox.contract import MAX_ENVIRONMENT_BYTES, WORK, Engine, SandboxSpec
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.attacks import PRELUDE

pytestmark = pytest.mark.sandbox


def shell(engine: Engine, script: str) -> str:
    """Return the output of a shell that is the sandbox's first process, without our supervisor."""
    report = engine.run(SandboxSpec(argv=("/bin/sh", "-c", script), mounts=(), limits=LIMITS, run_id="sharing"))
    assert report.ended == Exited(code=0), report
    return report.stdout.decode()


def test_no_descriptor_of_the_host_is_inherited(engine: Engine) -> None:
    """Files, pipes and sockets of ours that are marked as inheritable are not open inside."""
    left, right = socket.socketpair()
    with tempfile.TemporaryFile() as file, left, right:
        for descriptor in (file.fileno(), left.fileno(), right.fileno()):
            os.set_inheritable(descriptor, True)
        seen = shell(engine, "for n in /proc/self/fd/*; do echo ${n##*/}; done").split()
    assert set(seen) <= {"0", "1", "2", "3"}  # the last is the shell's own, of the folder that it lists
    assert len(seen) in (3, 4)


def test_no_configuration_of_the_host_is_readable(engine: Engine) -> None:
    """/usr is shared: the folders in it that no program of a testcase needs, and the kernel's settings, are empty."""
    if engine.name not in ("bubblewrap", "podman") or os.environ.get("REPROBOT_IMAGE"):
        pytest.skip("SECURITY.md: docker and gVisor have no option that hides a path, and an image has its own /usr")
    folders = [path for path in skeleton.HIDDEN if os.path.isdir(path)]
    assert folders
    seen = shell(engine, f"for one in {' '.join(folders)}; do ls -A $one; done; cat /proc/cmdline")
    assert seen == ""


def test_hidden_folders_are_hidden_in_each_mount_that_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter in /usr/local is mounted a second time. A folder behind a link cannot be a mount point."""
    (tmp_path / "local" / "etc").mkdir(parents=True)
    (tmp_path / "local" / "src").symlink_to("etc")
    names = [str(tmp_path / "local" / name) for name in ("etc", "src", "absent")]
    monkeypatch.setattr(skeleton, "HIDDEN", names)
    mounts = [(str(tmp_path), "/usr"), (str(tmp_path / "local"), "/opt/python"), ("/elsewhere", "/opt/env")]
    assert skeleton.list_hidden(mounts) == ["/usr/local/etc", "/opt/python/etc"]


def test_descriptors_cannot_be_passed_between_host_and_guest_or_two_probes(engine: Engine, layout: Layout) -> None:
    """No socket on which the host or another probe listens can be reached."""
    listen = """
import socket, time
names = ("\\0reprobot-pass", "/tmp/pass", "/dev/shm/pass", "pass")
servers = [socket.socket(socket.AF_UNIX) for _ in names]
for server, name in zip(servers, names):
    server.bind(name); server.listen(); server.settimeout(1.5)
for server in servers[:1]:
    try:
        print("BREACH", socket.recv_fds(server.accept()[0], 1, 1))
    except TimeoutError:
        contained()
"""
    send = """
import socket, time
GONE = (errno.ECONNREFUSED, errno.ENOENT, errno.EACCES)
def pass_one(name):
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    socket.send_fds(client, [b"x"], [os.open("attack.py", os.O_RDONLY)])
for _ in range(12):
    for name in ("\\0reprobot-pass", "\\0reprobot-pass-host", "/tmp/pass", "/dev/shm/pass", "pass"):
        refused("pass by " + name[1:], lambda: pass_one(name), GONE)
    time.sleep(0.1)
contained()
"""
    with socket.socket(socket.AF_UNIX) as host, ThreadPoolExecutor(2) as pool:
        host.bind("\0reprobot-pass-host")
        host.listen()
        probes = list(pool.map(lambda source: run_source(engine, layout, PRELUDE + source), (listen, send)))
    for probe in probes:
        assert probe.ended == Exited(code=0), probe
        assert "BREACH" not in probe.steps[0].stdout, probe.steps[0].stdout


def test_files_of_another_probe_cannot_be_found(engine: Engine, layout: Layout) -> None:
    """Neither a walk of the file system nor any /proc entry leads to the files of another probe."""
    hold = "import time\nfor d in ('/work', '/tmp', '/dev/shm'): open(d + '/telling-name', 'x')\ntime.sleep(2)"
    look = """
import time
time.sleep(0.5)
for top, folders, files in os.walk("/"):
    if top.startswith(("/usr", "/opt/python", "/proc", "/sys")):
        folders.clear()
    must("not here", "telling-name" not in files, top) if "telling-name" in files else None
for pid in filter(str.isdigit, os.listdir("/proc")):
    for place in ("work", "tmp", "dev/shm"):
        try:
            must("not there", "telling-name" not in os.listdir(os.path.join("/proc", pid, "root", place)), pid)
        except OSError:
            continue
contained()
"""
    with ThreadPoolExecutor(2) as pool:
        probes = list(pool.map(lambda source: run_source(engine, layout, source), (hold, PRELUDE + look)))
    assert [probe.ended for probe in probes] == [Exited(code=0)] * 2, probes
    assert "BREACH" not in probes[1].steps[0].stdout, probes[1].steps[0].stdout


def test_mount_table_shows_only_paths_of_our_mounts(engine: Engine, layout: Layout) -> None:
    """The kernel shows the origin of each mount (docs/sandbox-kit.md). No other host path may appear."""
    found = run_source(engine, layout, "print(open('/proc/self/mountinfo').read())")
    assert found.ended == Exited(code=0)
    rows = [line.split() for line in found.steps[0].stdout.splitlines() if line]
    files = [row for row in rows if row[row.index("-") + 1] not in ("proc", "sysfs", "tmpfs", "devtmpfs", "mqueue")]
    disks = [row[3] for row in files if "/" in row[row.index("-") + 2]]
    ours = (str(layout.prefix), str(layout.site_packages), *skeleton.list_host_mounts())
    allowed = re.compile(
        r"/runners/guest$|/reprobot-\d+-[\w.-]+/env$|/reprobot/|/containers/|^/(null|zero|full|u?random|tty)$"
    )
    strangers = [path for path in disks if not allowed.search(path) and not any(own.endswith(path) for own in ours)]
    assert strangers == []


SWAPPER = """
import os, time
SWAPS = ("regular", "link", "pipe", "folder")
def put(kind):
    new = "new"
    if kind == "regular": open(new, "w").write("mine")
    if kind == "link": os.symlink("/proc/1/environ", new)
    if kind == "pipe": os.mkfifo(new)
    if kind == "folder": os.mkdir(new)
    try:
        os.rename(new, "found")
    except OSError:
        try: os.rename("found", "old%d" % time.monotonic_ns())
        except OSError: pass
        try: os.rename(new, "found")
        except OSError: pass
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        while True:
            for kind in SWAPS:
                try: put(kind)
                except OSError: pass
time.sleep({seconds})
"""


def test_file_swapped_while_it_is_read_never_leads_elsewhere(engine: Engine, layout: Layout) -> None:
    """Links, pipes and folders replace the result file all the time: only the guest's own text or no text comes
    back."""
    for seconds in ("0.2", "0.23", "0.27"):
        probe = run_source(engine, layout, SWAPPER.replace("{seconds}", seconds), probe_file=f"{WORK}/found")
        assert probe.ended == Exited(code=0), probe
        assert probe.probe_file in (None, "", "mine"), probe.probe_file


def test_oversized_environment_is_refused_before_the_start(engine: Engine) -> None:
    """It is our own mistake and reported as such, never as the testcase's."""
    huge = {f"V{number}": "x" * 1000 for number in range(MAX_ENVIRONMENT_BYTES // 1000 + 1)}
    with pytest.raises(InfraError, match="environment"):
        engine.run(SandboxSpec(argv=("/bin/true",), mounts=(), environment=huge))
