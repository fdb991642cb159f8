"""Processor time: how much there is by default, when it is looked at, and what holds where nothing counts it."""

from __future__ import annotations

import pytest

from runners.core.protocol import Exited, Limits, TimedOut
from runners.probe.layout import Layout
from runners.probe.run import open_room
from runners.sandbox import bubblewrap
from runners.sandbox.contract import Engine, Resident
from runners.sandbox.limits import cgroup, cpu_time
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.attacks_burning import BURNING
from tests.runners.sandbox.kit.test_weakened import usable
from tests.runners.sandbox.test_sessions import probe

SPIN = "while True: pass\n"


@pytest.mark.parametrize("count", [1, 2, 64])
def test_by_default_no_single_thread_meets_it_and_no_machine_is_kept_busy_throughout(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One processor for the whole wall time is always allowed, all of several never."""
    monkeypatch.setattr(cpu_time, "processors", lambda: count)
    allowed = cpu_time.allowance(Limits(wall_s=120))
    assert allowed >= 120 + cpu_time.START_S
    assert allowed < count * 120 or count == 1
    assert cpu_time.allowance(Limits(wall_s=120, cpu_s=7)) == 7


def test_it_is_looked_at_no_sooner_than_it_can_be_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors can use eight seconds in two, so that a short probe is never looked at."""
    monkeypatch.setattr(cpu_time, "processors", lambda: 4)
    had = [5.0]
    watch = cpu_time.watch(lambda: had[0], 8.0)
    assert watch is not None
    assert watch.pause_s() == 2.0
    had[0] = 12.9
    assert 0 < watch.pause_s() < 0.1
    had[0] = 13.0
    assert watch.pause_s() == 0
    assert cpu_time.watch(None, 8.0) is None
    assert cpu_time.watch(lambda: 0.0, None) is None


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["bubblewrap", "none"])
def test_without_a_control_group_the_kernel_ends_each_process(
    name: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weaker than counting all together, and said so; never nothing, and the reason is still true."""

    def unable(*arguments: object, **named: object) -> cgroup.Cgroup:
        raise PermissionError("taken away")

    engine = usable(name)
    monkeypatch.setattr(cgroup, "create", unable)
    monkeypatch.setattr(bubblewrap, "_no_cgroup", lambda: "taken away")
    found = run_source(engine, layout, SPIN, limits=BURNING)
    assert isinstance(found.ended, TimedOut)
    assert found.ended.clock == "processor"
    assert "processor time" in " ".join(engine.gives_up)


@pytest.mark.sandbox
def test_each_probe_of_a_room_has_its_own(engine: Engine, layout: Layout) -> None:
    """What earlier ones had is not counted; one that uses up its own is told so, like in a sandbox of its own."""
    assert isinstance(engine, Resident)
    limits = Limits(wall_s=20, cpu_s=1.5, memory_bytes=LIMITS.memory_bytes, disk_bytes=LIMITS.disk_bytes)
    busy = "import time\nwhile time.process_time() < 0.5: pass\n"
    with open_room(engine, layout, limits=limits, run_id="conformance") as room:
        ends = [probe(room, code, limits=limits).ended for code in (*[busy] * 5, SPIN)]
    assert ends[:-1] == [Exited(code=0)] * 5
    assert isinstance(ends[-1], TimedOut)
    assert ends[-1].clock == "processor"
