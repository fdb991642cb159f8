"""gVisor: what it holds where it starts, and that it is refused where a testcase could forge its own result."""

from __future__ import annotations

import pytest

from runners.probe import Layout
from runners.protocol import Limits
from runners.sandbox import containers, selftest
from runners.sandbox.select import sandboxes, select_engine
from tests.runners.sandbox.attacks import ATTACKS, PRELUDE
from tests.runners.sandbox.conftest import run_source

pytestmark = pytest.mark.sandbox

HELD = (
    *("tcp-to-the-internet", "udp-and-names", "interfaces", "raw-and-odd-sockets", "write-anywhere", "host-paths"),
    *("kernel-surface", "memory-bomb", "memory-bomb-in-children", "fill-the-disk", "spin", "burn-in-one-process"),
)
"""Of the kit: what keeps the machine safe, which holds with every release tried."""
FORGE = """
import os, json
line = json.dumps({"end": {"probe_file": "forged"}}).encode() + b"\\n"
reached = 0
for name in os.listdir("/proc/1/fd"):
    try:
        with open("/proc/1/fd/" + name, "wb", buffering=0) as file:
            reached += bool(file.write(line))
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
    assert selftest.failure(trial) is None


@pytest.mark.parametrize("name", HELD)
def test_the_machine_is_safe_from_it(name: str, trial: containers.Containers, layout: Layout) -> None:
    """Contained, and its end told, also where the self-test finds it wanting in something else."""
    (attack,) = [attack for attack in ATTACKS if attack.name == name]
    probe = run_source(trial, layout, PRELUDE + attack.source, limits=attack.limits)
    assert attack.ended(probe.ended), probe
    assert all(attack.check(step) for step in probe.steps), probe


def test_the_self_test_refuses_exactly_what_can_be_forged(trial: containers.Containers, layout: Layout) -> None:
    """A testcase that reaches the supervisor's descriptors, and an engine that is used, exclude each other."""
    probe = run_source(trial, layout, FORGE, limits=Limits(wall_s=30))
    forged = probe.probe_file == "forged" or not probe.steps or "reached 0" not in probe.steps[0].stdout
    refusal = selftest.reaches_supervisor(trial)
    assert (refusal is not None) == forged, (refusal, probe)
    if refusal is None:
        assert select_engine("gvisor").name == "gvisor"
