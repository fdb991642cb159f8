"""gVisor: it holds the kit's attacks, and a testcase cannot forge its own result."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from runners.core.errors import InfraError
from runners.core.protocol import Exited, Limits, NotRun, OutOfMemory, TimedOut
from runners.probe.layout import Layout
from runners.sandbox import selftest
from runners.sandbox.containers import command_line, engine as containers
from runners.sandbox.contract import Mount, SandboxSpec
from runners.sandbox.select import list_sandboxes
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import Attack
from tests.runners.sandbox.kit.attacks import ATTACKS, PRELUDE
from tests.runners.sandbox.test_lifecycle import traces

pytestmark = pytest.mark.sandbox

OTHER_KERNEL = {
    "device-nodes": "nodes can be made: they lead to its own drivers, which has none for a disk or the host's memory",
    "who-am-i": "its status has no line on ambient capabilities; the self-test asks for the others",
    "new-namespaces": "refused in other words, or its own kernel's namespaces (clone3 of 2024)",
    "the-machine-itself": "niceness is its own scheduler's",
    "read-the-supervisor": "names, environment and map of process 1 can be read, which hold no secret; see below",
    "trace-the-supervisor": "no pidfd_open; see below",
    "descriptors-in-flight": "as many as there is memory for",
    "swap-what-is-mounted": "refused in other words",
    "table-of-mounts": "shared memory is the host's, with the limit set there, and not shown here",
    "session-of-its-own": "refused in other words",
    "limits-of-the-supervisor": "not shown",
    "namespaces-of-its-own": "not shown",
    "devices-of-the-machine": "fuse and tun are its own drivers",
    "personality": "it has only the question, and answers in other words",
    "own-limits-are-final": "the scheduler and the out-of-memory scores are its own",
    "privileges-of-sockets": "low ports are its own network's",
    "every-refused-call": "three calls that it does not know are refused in other words",
}
"""Attacks of the kit that gVisor does not show as Linux does, or refuses with another error."""
SPENT = {
    "fork-bomb": "too many processes end the whole sandbox",
    "exponential-fork-bomb": "too many processes end the whole sandbox",
    "thread-bomb": "too many threads end the whole sandbox",
    "kernel-memory-in-inotify": "its kernel ends, and the whole sandbox with it",
    "zombies": "its kernel ends, and the whole sandbox with it",
    "huge-environment": "it keeps more than one copy",
    "burn-in-a-tree": "its kernel competes with what runs on it: the wall clock may be earlier than the account",
}
"""Contained attacks that another limit than on Linux may end."""
FORGE = """
import os, signal
reached = []
own = {os.fstat(number).st_ino for number in range(16) if os.path.exists(f"/proc/self/fd/{number}")}
for path in (*(f"fd/{number}" for number in range(2, 16)), "mem"):
    for flags in (os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY | os.O_NONBLOCK):
        try:
            if os.fstat(os.open("/proc/1/" + path, flags)).st_ino not in own:
                reached.append(path)
        except OSError:
            pass
for number in (0, signal.SIGINT, signal.SIGSTOP):
    try:
        os.kill(1, number)
        reached.append(number)
    except OSError:
        pass
print("reached", reached)
"""


@pytest.fixture(scope="module")
def trial() -> containers.ContainerEngine:
    """gVisor with its usual invocation, also if the self-test fails."""
    absent = containers._find_missing_part("gvisor")
    if absent is not None:
        pytest.skip(absent)
    return containers._TrialEngine(
        name="gvisor", image_name="", invocation=containers._list_invocations("gvisor", "")[0]
    )


def test_gvisor_is_the_last_choice() -> None:
    """Its limits are coarser, and each run takes longer."""
    assert [engine.name for engine in list_sandboxes()][-1] == "gvisor"


def test_gvisor_starts_and_holds_the_essentials(trial: containers.ContainerEngine) -> None:
    """No network, not root, no capabilities, no way to gain privileges."""
    assert selftest.find_step_problem(trial) is None


TRIED = [attack for attack in ATTACKS if attack.name not in OTHER_KERNEL]


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("attack", TRIED, ids=lambda attack: attack.name)
def test_attack_is_contained_and_its_end_is_reported_truthfully(
    attack: Attack, trial: containers.ContainerEngine, layout: Layout
) -> None:
    """As on every other engine, with the exceptions in `OTHER_KERNEL` and `SPENT`."""
    limits = attack.limits
    if attack.name in SPENT:
        # Any limit may end these attacks: the deadline should come early.
        limits = msgspec.structs.replace(limits, wall_s=min(limits.wall_s, 10))
    probe = run_source(trial, layout, PRELUDE + attack.source, limits=limits)
    if attack.name in SPENT and isinstance(probe.ended, OutOfMemory | TimedOut | NotRun):
        return
    assert attack.ended(probe.ended), probe
    assert all(attack.check(step) for step in probe.steps), probe


def test_allowed_processes_fit_beside_gvisors_own_threads(trial: containers.ContainerEngine, layout: Layout) -> None:
    """Half of the allowed processes run at the same time, on many threads of gVisor's kernel."""
    source = """
import subprocess
children = [subprocess.Popen(["sh", "-c", "for i in 1 2 3; do sleep 0.1; done"]) for _ in range(12)]
print([child.wait() for child in children] == [0] * 12)
"""
    limits = Limits(wall_s=30, memory_bytes=192 * 1024**2, processes=48)
    probe = run_source(trial, layout, source, limits=limits)
    assert probe.ended == Exited(code=0), probe
    assert probe.steps[0].stdout == "True\n"


def test_named_attacks_exist_in_the_kit() -> None:
    """A renamed attack must be renamed here too."""
    assert {*OTHER_KERNEL, *SPENT} <= {attack.name for attack in ATTACKS}


def test_testcase_cannot_reach_the_supervisor(trial: containers.ContainerEngine, layout: Layout) -> None:
    """Not its descriptors, not its memory, not by signals: gVisor gives processes of one user all of these.

    The other ends of the testcase's own streams are its own.
    """
    probe = run_source(trial, layout, FORGE, limits=Limits(wall_s=30))
    (step,) = probe.steps
    assert step.stdout.strip() == "reached []", probe
    assert probe.probe_file is None


def test_self_test_finds_a_supervisor_of_the_same_user(
    trial: containers.ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that runs as nobody, as in other engines, could be reached. The engine is then unusable."""
    monkeypatch.setattr(command_line, "SUPERVISOR_OF_GVISOR", ("--user=65534:65534",))
    assert "reach the process that reports on it" in (selftest.find_step_problem(trial) or "")


def test_step_owns_its_files_and_streams(trial: containers.ContainerEngine, layout: Layout) -> None:
    """They belong to the user of the step, although the supervisor made them as another user."""
    source = """
import os
assert os.stat("attack.py").st_uid == os.stat("/proc/self/fd/1").st_uid == os.getuid()
with open("attack.py", "a") as file:
    file.write("# changed")
with open("/dev/stdout", "w") as file:
    print("heard", file=file)
"""
    probe = run_source(trial, layout, source, limits=Limits(wall_s=30))
    assert probe.ended == Exited(code=0), probe
    assert probe.steps[0].stdout == "heard\n"


@pytest.mark.parametrize("seconds", [0.1, 0.6])
def test_giving_up_gvisor_leaves_nothing_behind(trial: containers.ContainerEngine, seconds: float) -> None:
    """podman's message to a killed gVisor gets no answer, so podman has to be told twice to forget it."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=20), run_id="giving-up")
    with trial.open_session(spec):
        time.sleep(seconds)
    assert traces(os.getpid()) == []


def test_gvisor_refuses_writable_mounts(trial: containers.ContainerEngine, tmp_path: Path) -> None:
    """Process 1 is root there, and gVisor would write to the host's folders as root."""
    spec = SandboxSpec(argv=("/bin/true",), mounts=(Mount(host=tmp_path, guest="/out", writable=True),))
    with pytest.raises(InfraError, match="take another engine"):
        trial.run(spec)
