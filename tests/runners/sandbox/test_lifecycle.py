"""What is left when a probe ends, however it ends: nothing. And what probes know of each other: nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runners.core.protocol import Exited, Limits, NotRun, Signalled, TimedOut
from runners.probe.layout import Layout
from runners.sandbox import owner
from runners.sandbox.containers import engine as containers, podman_store
from runners.sandbox.containers.clients import client_says
from runners.sandbox.contract import WORK, Engine, SandboxSpec
from runners.sandbox.limits import cgroup
from runners.sandbox.process import Stopped, stop_all, stoppable
from runners.sandbox.select import drop_skeleton, sweep
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import QUICK
from tests.runners.sandbox.kit.attacks import PRELUDE

pytestmark = pytest.mark.sandbox

SLEEP = 7919
"""Seconds that a guest sleeps for in these tests: a number to be found by in the process table."""
FOREVER = f"import subprocess, time\nsubprocess.Popen(['sleep', '{SLEEP}'])\ntime.sleep(1000)\n"
HOST = """
import sys
from pathlib import Path
from runners.sandbox.process import stoppable
from runners.sandbox.select import select_engine
from tests.runners.sandbox.conftest import python_layout, run_source
with stoppable():
    run_source(select_engine(sys.argv[1]), python_layout(Path(sys.argv[2])), sys.argv[3])
"""


def guests() -> list[int]:
    """Processes on this machine that sleep for our number."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{SLEEP}\0".encode():
                found.append(int(path.parent.name))
    return found


def traces(maker: int) -> list[str]:
    """Control groups, directories and containers that a process made and that still exist."""
    mine = f"{owner.PREFIX}-{maker}-*"
    places = [*cgroup.ROOT.glob(mine), *cgroup.ROOT.glob(f"*/{mine}"), *Path("/tmp").glob(mine)]
    clients = [client for client in containers.stores() if client[0] == "podman"]
    listings = [client_says(client, "ps", "--all", "--format", "{{.Names}}") for client in clients]
    return [*map(str, places), *(name for text in listings for name in text.split() if f"-{maker}-" in name)]


def wait_until(condition: object, seconds: float = 20.0) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def host(engine: Engine, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process, in the middle of a probe."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, engine.name, str(tmp_path), FOREVER], stderr=subprocess.PIPE
    )
    try:
        assert wait_until(guests), "the probe did not start"
        yield process
    finally:
        process.kill()
        process.communicate()
        sweep()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_host_leaves_nothing(host: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Ctrl-C, or being told to end, in the middle of a probe removes all of it before the host ends."""
    host.send_signal(number)
    host.wait(timeout=20)
    assert guests() == []
    assert traces(host.pid) == []


def test_killing_the_host_ends_the_guest_and_sweeping_removes_the_rest(host: subprocess.Popen[bytes]) -> None:
    """After kill -9 of the host its guests die by themselves; the next run's sweep finds whatever else is left."""
    host.kill()
    host.wait()
    assert wait_until(lambda: not guests(), 10)
    sweep()
    assert traces(host.pid) == []


def test_stopping_works_from_another_thread(engine: Engine, layout: Layout) -> None:
    """``stop_all`` ends every probe in a pool, and the pool doesn't wait for their time to be over."""
    with ThreadPoolExecutor(2) as pool, stoppable():
        runs = [pool.submit(run_source, engine, layout, FOREVER) for _ in range(2)]
        assert wait_until(lambda: len(guests()) == 2)
        stop_all()
        for run in runs:
            with pytest.raises(Stopped):
                run.result(timeout=20)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_a_timeout_leaves_nothing(engine: Engine, layout: Layout) -> None:
    """Daemons in other sessions die with the probe that started them."""
    source = f"import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '{SLEEP}'])\ntime.sleep(1000)\n"
    probe = run_source(engine, layout, source, limits=QUICK)
    assert isinstance(probe.ended, TimedOut)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_steps_share_files_but_not_processes(engine: Engine, layout: Layout) -> None:
    """What a step writes the next one finds; what it leaves running is gone by then."""
    first = "open('made', 'w').write('x'); import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])"
    second = "import os; print(open('made').read(), len([n for n in os.listdir('/proc') if n.isdigit()]))"
    probe = run_source(engine, layout, "", steps=(("python", "-c", first), ("python", "-c", second)))
    assert probe.ended == Exited(code=0)
    assert probe.steps[1].stdout == "x 2\n"


def test_the_first_step_that_fails_is_the_last(engine: Engine, layout: Layout) -> None:
    """Nothing runs after a failure, and the probe ended the way that step did."""
    probe = run_source(engine, layout, "raise SystemExit(4)", steps=(("python", "attack.py"), ("python", "-V")))
    assert probe.ended == Exited(code=4)
    assert len(probe.steps) == 1


def test_a_later_step_has_only_the_time_that_is_left(engine: Engine, layout: Layout) -> None:
    """The wall clock is the probe's, not the step's."""
    nap = ("python", "-c", "import time; time.sleep(0.7)")
    probe = run_source(engine, layout, "", steps=(nap, nap, nap), limits=QUICK)
    assert isinstance(probe.ended, TimedOut)
    assert probe.ended.where.startswith("step 2 ")


def test_probes_in_parallel_do_not_see_each_other(engine: Engine, layout: Layout) -> None:
    """Files, processes, abstract sockets and System V memory of one probe don't exist in another."""
    source = """
import socket, sys, time
open("/tmp/mine", "x"); open("/dev/shm/mine", "x"); open("mine", "x")
server = socket.socket(socket.AF_UNIX); server.bind("\\0reprobot-probe")
tcp = socket.socket(); tcp.bind(("127.0.0.1", 4242))
segment = libc.shmget(0x1234, 4096, 0o1666 | 0o2000)  # IPC_CREAT | IPC_EXCL
must("the key is free", segment >= 0)
time.sleep(1.0)
must("only us", len([n for n in os.listdir("/proc") if n.isdigit()]) == 2)
contained()
"""
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run_source, engine, layout, PRELUDE + source) for _ in range(2)]
        probes = [run.result() for run in runs]
    for probe in probes:
        assert probe.ended == Exited(code=0), probe
        assert "BREACH" not in probe.steps[0].stdout


def test_nothing_is_left_for_the_next_probe(engine: Engine, layout: Layout) -> None:
    """Scratch directories begin empty."""
    run_source(engine, layout, "for d in ('/tmp', '/work', '/dev/shm'): open(d + '/left', 'w').write('x')")
    probe = run_source(
        engine, layout, "import os; print([os.path.exists(d + '/left') for d in ('/tmp', '/work', '/dev/shm')])"
    )
    assert probe.steps[0].stdout == "[False, False, False]\n"


def test_services_of_the_host_are_out_of_reach(engine: Engine, layout: Layout) -> None:
    """Neither a port on the host's loopback nor an abstract socket of the host can be connected to."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0reprobot-host-{os.getpid()}")
        unix.listen()
        source = f"""
import socket
port = ("127.0.0.1", {tcp.getsockname()[1]})
refused("loopback", lambda: socket.create_connection(port, 2), (errno.ECONNREFUSED, errno.ENETUNREACH))
client = socket.socket(socket.AF_UNIX)
refused("abstract", lambda: client.connect("\\0reprobot-host-{os.getpid()}"), (errno.ECONNREFUSED,))
contained()
"""
        probe = run_source(engine, layout, PRELUDE + source)
    assert probe.ended == Exited(code=0), probe
    assert "BREACH" not in probe.steps[0].stdout, probe.steps[0].stdout


PROBE_FILES = {
    "a regular file": ("open('found', 'w').write('é' * 10)", "é" * 10),
    "a huge file": ("open('found', 'w').write('x' * 10**6)", "x" * 48 * 1024),
    "no file": ("", None),
    "a symbolic link": ("import os; os.symlink('/etc/passwd', 'found')", None),
    "a named pipe": ("import os; os.mkfifo('found')", None),
    "a directory": ("import os; os.mkdir('found')", None),
}


@pytest.mark.parametrize("case", PROBE_FILES)
def test_a_probe_file_is_bounded_and_never_followed(engine: Engine, layout: Layout, case: str) -> None:
    """A hook's findings come back as text of limited length, from a regular file or not at all."""
    source, expected = PROBE_FILES[case]
    probe = run_source(engine, layout, source, probe_file=f"{WORK}/found")
    assert probe.ended == Exited(code=0)
    assert probe.probe_file == expected


def test_a_tool_that_the_build_lacks_is_unavailable(engine: Engine, layout: Layout) -> None:
    """A missing program is neither the testcase's fault nor an infrastructure failure."""
    probe = run_source(engine, layout, "", steps=(("iree-compile", "x.mlir"),))
    assert probe.ended == NotRun(why="this build has no program named iree-compile", cause="unavailable")


def test_the_witness_of_memory_is_the_kernel(engine: Engine, layout: Layout) -> None:
    """SIGKILL that the testcase sends itself isn't taken for running out of memory."""
    probe = run_source(engine, layout, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert probe.ended == Signalled(code=9)


def test_running_out_of_memory_leaves_no_file_where_the_host_was_started(
    engine: Engine, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """podman's monitor writes a file named "oom" into its working directory."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    limits = Limits(memory_bytes=256 * 2**20, wall_s=30)
    probe = run_source(engine, layout, "data = []\nwhile True:\n    data.append(bytearray(2**24))", limits=limits)
    assert not isinstance(probe.ended, Exited) or probe.ended.code != 0
    assert list(here.iterdir()) == []


WRAPPER = """#!/bin/bash
refused=$(ls "$0".refused-* 2>/dev/null | wc -l)
case " $* " in
*" run "*) words=(); for word; do [ "$word" = --rm ] || words+=("$word"); done; set -- "${words[@]}" ;;
*" rm "*) [ $refused -lt 2 ] && touch "$0.refused-$refused" && echo "device or resource busy" >&2 && exit 125 ;;
esac
exec PODMAN "$@"
"""
"""A podman that forgets to remove, and then refuses twice: the real one may, when two of its clients meet."""


@pytest.fixture
def podman() -> containers.Containers:
    engine = containers.Containers(name="podman", image_name="")
    if (why := engine.unusable()) is not None:
        pytest.skip(why)
    return engine


def test_what_podman_left_or_refuses_to_remove_is_removed(
    podman: containers.Containers, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that came to its end is not believed, and a removal that found something in use is tried again."""
    wrapper = tmp_path / "podman"
    wrapper.write_text(WRAPPER.replace("PODMAN", str(shutil.which("podman"))))
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run_source(podman, layout, "pass").ended == Exited(code=0)
    assert len(list(tmp_path.glob("podman.refused-*"))) == 2
    assert traces(os.getpid()) == []


@pytest.mark.parametrize("seconds", [0, 0.03, 0.06, 0.09, 0.12, 0.2, 0.4])
def test_giving_up_while_podman_starts_leaves_nothing(podman: containers.Containers, seconds: float) -> None:
    """Whether the container is not yet known, is being made, or runs."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=QUICK, run_id="giving-up")
    with podman.session(spec):
        time.sleep(seconds)
    assert traces(os.getpid()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_sweeping_removes_what_podman_forgot_and_nothing_younger(podman: containers.Containers) -> None:
    """A folder of its store with /dev/shm mounted, of a container that no list has; one just made is spared."""
    places = [podman_store.our_store() / "root" / podman_store.CONTAINERS / (letter * 64) for letter in "ef"]
    try:
        for place in places:
            (place / "userdata" / "shm").mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", str(place / "userdata" / "shm")], check=True)
        os.utime(places[0], (1, 1))
        sweep()
        assert not places[0].exists()
        assert (places[1] / "userdata" / "shm").is_mount()
    finally:
        os.utime(places[1], (1, 1))
        sweep()
    assert not places[1].exists()


def test_sweeping_ends_a_bwrap_of_a_dead_maker_and_no_other() -> None:
    """bwrap killed while it starts can leave a child that waits for it for ever, in no control group."""
    names = (f"{owner.PREFIX}-4194305-1-1", owner.new_name())
    wait = ("-c", "import time; time.sleep(600)")
    made = [subprocess.Popen(["bwrap", *wait, f"/tmp/{name}/env"], executable=sys.executable) for name in names]
    try:
        assert wait_until(lambda: made[0].pid in owner.leftover_processes("bwrap"), 5.0)
        sweep()
        assert made[0].wait(5) == -signal.SIGKILL
        assert made[1].poll() is None
    finally:
        for process in made:
            process.kill()
            process.wait()


def test_a_store_that_another_process_dropped_is_made_anew(engine: Engine, layout: Layout) -> None:
    """`reprobot clean` beside a process that goes on: its next probe runs, the store closed again."""
    if engine.name != "podman":
        pytest.skip(f"{engine.name} keeps no store of ours")
    assert run_source(engine, layout, "pass").ended == Exited(code=0)
    words = [sys.executable, "-c", "from runners.sandbox.select import drop_skeleton; drop_skeleton()"]
    subprocess.run(words, check=True)
    assert run_source(engine, layout, "pass").ended == Exited(code=0)
    assert podman_store.our_store().stat().st_mode & 0o077 == 0


def test_a_store_in_use_is_not_dropped(podman: containers.Containers) -> None:
    """`reprobot clean` beside a probe that runs: the probe's end is still known."""
    cat = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=QUICK, run_id="in-use", stdin=b"")
    with podman.session(cat) as session:
        client = ("podman", *podman_store.storage(""))
        assert wait_until(lambda: session.name in client_says(client, "ps", "--format", "{{.Names}}"))
        assert not drop_skeleton()
        assert session.process.stdin is not None
        session.process.stdin.close()
        assert session.process.wait(20) == 0
