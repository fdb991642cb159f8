"""gVisor: what it holds where it starts, and that a testcase there cannot forge its own result."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.core.protocol import Exited, Limits, NotRun, OutOfMemory, TimedOut
from runners.probe.layout import Layout
from runners.sandbox import selftest
from runners.sandbox.containers import command_line, engine as containers
from runners.sandbox.contract import Mount, SandboxSpec
from runners.sandbox.select import sandboxes
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
}
"""Attacks of the kit on what Linux shows and gVisor does not have, or refuses by another error."""
SPENT = {
    "fork-bomb": "too many processes end the whole sandbox",
    "exponential-fork-bomb": "too many processes end the whole sandbox",
    "thread-bomb": "too many threads end the whole sandbox",
    "huge-environment": "it keeps more than one copy",
    "burn-in-a-tree": "its kernel competes with what runs on it: the wall clock may be earlier than the account",
}
"""Contained; but another limit than on Linux can be the one that ends it."""
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
def trial() -> containers.Containers:
    """gVisor as it would be called, whatever the self-test says of it."""
    absent = containers._absent("gvisor")
    if absent is not None:
        pytest.skip(absent)
    return containers._Fixed(name="gvisor", image_name="", way=containers._ways("gvisor", "")[0])


def test_it_is_never_preferred() -> None:
    """Its limits are coarser, and each run takes longer: the others come first."""
    assert [engine.name for engine in sandboxes()][-1] == "gvisor"


def test_it_starts_and_the_essentials_hold(trial: containers.Containers) -> None:
    """No network, not root, no capabilities, no way to gain privileges."""
    assert selftest.failure_of_a_step(trial) is None


TRIED = [attack for attack in ATTACKS if attack.name not in OTHER_KERNEL]


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("attack", TRIED, ids=lambda attack: attack.name)
def test_an_attack_is_contained_and_its_end_is_told_truthfully(
    attack: Attack, trial: containers.Containers, layout: Layout
) -> None:
    """As on every other engine; where the kernel differs it is said how."""
    probe = run_source(trial, layout, PRELUDE + attack.source, limits=attack.limits)
    if attack.name in SPENT and isinstance(probe.ended, OutOfMemory | TimedOut | NotRun):
        return
    assert attack.ended(probe.ended), probe
    assert all(attack.check(step) for step in probe.steps), probe


def test_what_is_said_of_the_kit_is_about_the_kit() -> None:
    """An attack that is renamed is not forgotten."""
    assert {*OTHER_KERNEL, *SPENT} <= {attack.name for attack in ATTACKS}


def test_a_testcase_reaches_nothing_of_the_process_that_reports_on_it(
    trial: containers.Containers, layout: Layout
) -> None:
    """Its descriptors, its memory, and signals to it: gVisor lets processes of one user have all of them.

    The other ends of the testcase's own streams are its own.
    """
    probe = run_source(trial, layout, FORGE, limits=Limits(wall_s=30))
    (step,) = probe.steps
    assert step.stdout.strip() == "reached []", probe
    assert probe.probe_file is None


def test_the_self_test_finds_a_supervisor_of_the_same_user(
    trial: containers.Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started as nobody, as in the other engines, it could be reached, and the engine would not be used."""
    monkeypatch.setattr(command_line, "SUPERVISOR_OF_GVISOR", (f"--user={command_line.NOBODY}",))
    assert "reach the process that reports on it" in (selftest.failure_of_a_step(trial) or "")


def test_what_a_step_makes_and_reads_is_its_own(trial: containers.Containers, layout: Layout) -> None:
    """Its files and its streams belong to the user that it runs as, although another made them."""
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
def test_giving_it_up_leaves_nothing(trial: containers.Containers, seconds: float) -> None:
    """podman asks the killed gVisor to die, hears nothing, and has to be told a second time to forget it."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=20), run_id="giving-up")
    with trial.session(spec):
        time.sleep(seconds)
    assert traces(os.getpid()) == []


def test_it_builds_no_compiler(trial: containers.Containers, tmp_path: Path) -> None:
    """Process 1 is root there, and gVisor would write to the host's folders as root."""
    spec = SandboxSpec(argv=("/bin/true",), mounts=(Mount(host=tmp_path, guest="/out", writable=True),))
    with pytest.raises(InfraError, match="take another engine"):
        trial.run(spec)
