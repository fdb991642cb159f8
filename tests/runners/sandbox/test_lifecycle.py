"""A probe leaves nothing behind, in whatever way it ends, and probes know nothing of each other."""

from __future__ import annotations

import contextlib
import fcntl
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

import msgspec
import pytest

from runners.core.protocol import Exited, Limits, NotRun, Signalled, TimedOut
from runners.probe.layout import Layout
from runners.sandbox import owner
from runners.sandbox.containers import engine as containers, podman_store
from runners.sandbox.containers.clients import query_client
from runners.sandbox.contract import WORK, Engine, SandboxSpec
from runners.sandbox.limits import cgroup
from runners.sandbox.process import Stopped, handle_stop_signals, stop_all_runs
from runners.sandbox.select import remove_leftovers, remove_skeleton
from tests.runners.sandbox.conftest import name_of, run_source, slowed
from tests.runners.sandbox.kit.attack import QUICK
from tests.runners.sandbox.kit.attacks import PRELUDE
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sandbox

SLEEP = 10**6 + os.getpid()
"""Seconds for which guests sleep in these tests. The number tells this run's guests in the process table."""
FOREVER = f"import subprocess, time\nsubprocess.Popen(['sleep', '{SLEEP}'])\ntime.sleep(1000)\n"
HOST = """
import sys
from pathlib import Path
from runners.sandbox.process import handle_stop_signals
from runners.sandbox.select import select_engine
from tests.runners.sandbox.conftest import python_layout, run_source
with handle_stop_signals():
    run_source(select_engine(sys.argv[1]), python_layout(Path(sys.argv[2])), sys.argv[3])
"""


def guests() -> list[int]:
    """Return processes on this machine that sleep for this run's number of seconds."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{SLEEP}\0".encode():
                found.append(int(path.parent.name))
    return found


def traces(maker: int) -> list[str]:
    """Return existing control groups, directories and containers of a maker."""
    mine = f"{owner.PREFIX}-{maker}-*"
    places = [*cgroup.ROOT.glob(mine), *cgroup.ROOT.glob(f"*/{mine}"), *Path("/tmp").glob(mine)]
    clients = [client for client in containers.list_stores() if client[0] == "podman"]
    listings = [query_client(client, "ps", "--all", "--format", "{{.Names}}") for client in clients]
    return [*map(str, places), *(name for text in listings for name in text.split() if f"-{maker}-" in name)]


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
        remove_leftovers()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_host_leaves_nothing_behind(host: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """SIGINT, SIGTERM or SIGHUP in the middle of a probe: the host removes everything before it ends."""
    host.send_signal(number)
    host.wait(timeout=60)
    assert guests() == []
    assert traces(host.pid) == []


def test_killed_host_ends_the_guest_and_leftovers_are_removed(host: subprocess.Popen[bytes]) -> None:
    """After kill -9 of the host its guests end by themselves; `remove_leftovers` removes the rest."""
    host.kill()
    host.wait()
    assert wait_until(lambda: not guests(), 10)
    remove_leftovers()
    assert traces(host.pid) == []


def in_another_namespace(*words: str) -> list[str]:
    """Return the command that runs Python in a PID namespace of its own, as in a container."""
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *words]


def test_living_sandbox_of_another_pid_namespace_is_no_leftover(engine: Engine, tmp_path: Path) -> None:
    """Two containers share this machine's engine, and neither can see the other's processes.

    Leftovers of other runs on this machine may be removed meanwhile: only names from the living namespace count.
    """
    if os.geteuid() != 0:
        pytest.skip("needs a PID namespace of its own: run as root")
    look = "from runners.sandbox.select import remove_leftovers; print(remove_leftovers())"
    words = in_another_namespace("-c", HOST, engine.name, str(tmp_path), FOREVER)
    with subprocess.Popen(words, stderr=subprocess.PIPE) as living:
        try:
            assert wait_until(guests), "the probe did not start"
            (alive,) = guests()
            space = f".{os.stat(f'/proc/{living.pid}/ns/pid_for_children').st_ino}-"
            groups = [*cgroup.ROOT.glob("reprobot-*"), *cgroup.ROOT.glob("*/reprobot-*")]
            assert [group for group in groups if space in group.name], "no name is from the living namespace"
            for command in (in_another_namespace("-c", look), [sys.executable, "-c", look]):
                removed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
                assert space not in removed
                assert guests() == [alive]
        finally:
            living.kill()
    assert wait_until(lambda: not guests(), 10)


def test_stop_all_runs_works_from_another_thread(engine: Engine, layout: Layout) -> None:
    """Every probe of a pool ends at once, before its time is over."""
    with ThreadPoolExecutor(2) as pool, handle_stop_signals():
        runs = [pool.submit(run_source, engine, layout, FOREVER) for _ in range(2)]
        assert wait_until(lambda: len(guests()) == 2)
        stop_all_runs()
        for run in runs:
            with pytest.raises(Stopped):
                run.result(timeout=60)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_timeout_leaves_nothing_behind(engine: Engine, layout: Layout) -> None:
    """Daemons in other sessions die with the probe that started them."""
    source = f"import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '{SLEEP}'])\ntime.sleep(1000)\n"
    probe = run_source(engine, layout, source, limits=QUICK)
    assert isinstance(probe.ended, TimedOut)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_steps_share_files_but_not_processes(engine: Engine, layout: Layout) -> None:
    """A step finds the files of the step before. Processes that the step before left running are gone."""
    first = "open('made', 'w').write('x'); import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])"
    second = "import os; print(open('made').read(), len([n for n in os.listdir('/proc') if n.isdigit()]))"
    probe = run_source(engine, layout, "", steps=(("python", "-c", first), ("python", "-c", second)))
    assert probe.ended == Exited(code=0)
    assert probe.steps[1].stdout == "x 2\n"


def test_first_failing_step_is_the_last(engine: Engine, layout: Layout) -> None:
    """No step runs after a failure, and the probe ends as that step did."""
    probe = run_source(engine, layout, "raise SystemExit(4)", steps=(("python", "attack.py"), ("python", "-V")))
    assert probe.ended == Exited(code=4)
    assert len(probe.steps) == 1


def test_later_step_has_only_the_remaining_time(engine: Engine, layout: Layout) -> None:
    """The wall time is the probe's, not the step's."""
    # Wide margins: on a busy machine, a step may take seconds to start and to stop.
    limits = msgspec.structs.replace(QUICK, wall_s=8.0)
    allowed = slowed(limits).wall_s
    nap, forever = (("python", "-c", f"import time; time.sleep({seconds})") for seconds in (allowed / 2, 1000))
    probe = run_source(engine, layout, "", steps=(nap, forever), limits=limits)
    assert isinstance(probe.ended, TimedOut)
    assert probe.ended.where.startswith("step 2 ")
    assert probe.steps[1].seconds < allowed


def test_parallel_probes_do_not_see_each_other(engine: Engine, layout: Layout) -> None:
    """Files, processes, abstract sockets and System V memory of one probe do not exist in another."""
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


def test_scratch_is_empty_for_the_next_probe(engine: Engine, layout: Layout) -> None:
    """All scratch directories start empty."""
    run_source(engine, layout, "for d in ('/tmp', '/work', '/dev/shm'): open(d + '/left', 'w').write('x')")
    probe = run_source(
        engine, layout, "import os; print([os.path.exists(d + '/left') for d in ('/tmp', '/work', '/dev/shm')])"
    )
    assert probe.steps[0].stdout == "[False, False, False]\n"


def test_services_of_the_host_are_unreachable(engine: Engine, layout: Layout) -> None:
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
    "a huge file": ("open('found', 'w').write('x' * 10**6)", "x" * 160 * 1024),
    "no file": ("", None),
    "a symbolic link": ("import os; os.symlink('/etc/passwd', 'found')", None),
    "a named pipe": ("import os; os.mkfifo('found')", None),
    "a directory": ("import os; os.mkdir('found')", None),
}


@pytest.mark.parametrize("case", PROBE_FILES)
def test_probe_file_is_bounded_and_links_are_not_followed(engine: Engine, layout: Layout, case: str) -> None:
    """A hook's findings come back as text of limited length, from a regular file or not at all."""
    source, expected = PROBE_FILES[case]
    probe = run_source(engine, layout, source, probe_file=f"{WORK}/found")
    assert probe.ended == Exited(code=0)
    assert probe.probe_file == expected


def test_missing_tool_is_unavailable(engine: Engine, layout: Layout) -> None:
    """A missing program is neither the testcase's fault nor an infrastructure failure."""
    probe = run_source(engine, layout, "", steps=(("iree-compile", "x.mlir"),))
    assert probe.ended == NotRun(why="this build has no program named iree-compile", cause="unavailable")


def test_sigkill_of_its_own_is_not_out_of_memory(engine: Engine, layout: Layout) -> None:
    """Only the kernel's counter says that the memory ran out."""
    probe = run_source(engine, layout, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert probe.ended == Signalled(code=9)


def test_out_of_memory_leaves_no_file_in_the_working_directory(
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
"""A podman that forgets to remove and then refuses twice, as the real one may when two clients meet."""


@pytest.fixture
def podman() -> containers.ContainerEngine:
    engine = containers.ContainerEngine(name="podman", image_name="")
    if (why := engine.find_problem()) is not None:
        pytest.skip(why)
    return engine


def test_container_that_podman_leaves_or_refuses_to_remove_is_removed(
    podman: containers.ContainerEngine, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the client is checked, and a refused removal is tried again."""
    wrapper = tmp_path / "podman"
    wrapper.write_text(WRAPPER.replace("PODMAN", str(shutil.which("podman"))))
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run_source(podman, layout, "pass").ended == Exited(code=0)
    assert len(list(tmp_path.glob("podman.refused-*"))) == 2
    assert traces(os.getpid()) == []


@pytest.mark.parametrize("seconds", [0, 0.03, 0.06, 0.09, 0.12, 0.2, 0.4])
def test_giving_up_while_podman_starts_leaves_nothing_behind(
    podman: containers.ContainerEngine, seconds: float
) -> None:
    """The container may be unknown yet, half made, or running."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=QUICK, run_id="giving-up")
    with podman.open_session(spec):
        time.sleep(seconds)
    assert traces(os.getpid()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_forgotten_containers_are_removed_and_younger_ones_stay(podman: containers.ContainerEngine) -> None:
    """A forgotten container is a folder of the store with /dev/shm mounted that podman does not list."""
    places = [podman_store.find_store() / "root" / podman_store.CONTAINERS / (letter * 64) for letter in "ef"]

    def is_removed(place: Path) -> bool:
        remove_leftovers()
        return not place.exists()

    try:
        for place in places:
            (place / "userdata" / "shm").mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", str(place / "userdata" / "shm")], check=True)
        os.utime(places[0], (1, 1))
        # Another process may remove the same folder at this moment: it is then ours no longer, and there for a while.
        assert wait_until(lambda: is_removed(places[0]))
        assert (places[1] / "userdata" / "shm").is_mount()
    finally:
        os.utime(places[1], (1, 1))
        assert wait_until(lambda: is_removed(places[1]))


def test_remove_leftovers_ends_only_bwraps_of_dead_makers() -> None:
    """bwrap killed while it starts can leave a child that waits for ever, in no control group."""
    names = (name_of(pid=4194305), owner.make_name())
    wait = ("-c", "import time; time.sleep(600)")
    made = [subprocess.Popen(["bwrap", *wait, f"/tmp/{name}/env"], executable=sys.executable) for name in names]
    try:
        assert wait_until(lambda: made[0].pid in owner.find_leftover_processes("bwrap"), 5.0)
        remove_leftovers()
        assert made[0].wait(5) == -signal.SIGKILL
        assert made[1].poll() is None
    finally:
        for process in made:
            process.kill()
            process.wait()


def test_removed_store_is_made_again(engine: Engine, layout: Layout) -> None:
    """After `reprobot clean` the next probe of another process runs, and the new store is closed to others."""
    if engine.name != "podman":
        pytest.skip(f"{engine.name} keeps no store of ours")
    assert run_source(engine, layout, "pass").ended == Exited(code=0)
    words = [sys.executable, "-c", "from runners.sandbox.select import remove_skeleton; remove_skeleton()"]
    subprocess.run(words, check=True)
    assert run_source(engine, layout, "pass").ended == Exited(code=0)
    assert podman_store.find_store().stat().st_mode & 0o077 == 0


def test_a_store_is_kept_while_a_container_may_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """podman lists no container that only starts. A start that waits for a removal takes the new store."""
    store = tmp_path / "store"
    monkeypatch.setattr(podman_store, "find_store", lambda: store)
    with podman_store.hold_store(), podman_store.hold_store():
        assert not podman_store.remove_skeleton()
    removing = podman_store._lock_store(fcntl.LOCK_EX)

    def start() -> bool:
        with podman_store.hold_store():
            return store.exists() and not podman_store.remove_skeleton()

    with ThreadPoolExecutor() as threads:
        started = threads.submit(start)
        time.sleep(0.1)
        assert not started.done()
        shutil.rmtree(store)
        os.close(removing)
        assert started.result(20)


def test_store_in_use_is_not_removed(podman: containers.ContainerEngine) -> None:
    """`reprobot clean` during a probe: the end of the probe is still known."""
    cat = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=QUICK, run_id="in-use", stdin=b"")
    with podman.open_session(cat) as session:
        client = ("podman", *podman_store.build_storage_options(""))
        assert wait_until(lambda: session.name in query_client(client, "ps", "--format", "{{.Names}}"))
        assert not remove_skeleton()
        assert session.process.stdin is not None
        session.process.stdin.close()
        assert session.process.wait(20) == 0
