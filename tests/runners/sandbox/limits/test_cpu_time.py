"""Processor time: the default allowance, the times of reading, and the limits without a control group."""

from __future__ import annotations

import pytest

from runners.core.protocol import Exited, Limits, TimedOut
from runners.probe.layout import Layout
from runners.probe.run import open_probe_session
from runners.sandbox import bubblewrap
from runners.sandbox.contract import Engine, SessionEngine
from runners.sandbox.limits import cgroup, cpu_time
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.attacks_burning import BURNING
from tests.runners.sandbox.kit.test_weakened import find_usable
from tests.runners.sandbox.test_sessions import probe

SPIN = "while True: pass\n"


@pytest.mark.parametrize("count", [1, 2, 64])
def test_default_allowance_is_between_one_processor_and_all(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One processor for the whole wall time is always allowed, all of several never."""
    monkeypatch.setattr(cpu_time, "count_processors", lambda: count)
    allowed = cpu_time.compute_allowance(Limits(wall_s=120))
    assert allowed >= 120 + cpu_time.START_S
    assert allowed < count * 120 or count == 1
    assert cpu_time.compute_allowance(Limits(wall_s=120, cpu_s=7)) == 7


def test_processor_time_is_read_only_when_it_can_be_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors can use eight seconds in two, so the processor time of a short probe is never read."""
    monkeypatch.setattr(cpu_time, "count_processors", lambda: 4)
    had = [5.0]
    meter = cpu_time.start_meter(lambda: had[0], 8.0)
    assert meter is not None
    assert meter.compute_pause_s() == 2.0
    had[0] = 12.9
    assert 0 < meter.compute_pause_s() < 0.1
    had[0] = 13.0
    assert meter.compute_pause_s() == 0
    assert cpu_time.start_meter(None, 8.0) is None
    assert cpu_time.start_meter(lambda: 0.0, None) is None


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["bubblewrap", "none"])
def test_without_a_control_group_the_kernel_limits_each_process(
    name: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is weaker than counting all processes together, and the limitations state it. The reason is reported
    truthfully."""

    def unable(*arguments: object, **named: object) -> cgroup.Cgroup:
        raise PermissionError("taken away")

    engine = find_usable(name)
    monkeypatch.setattr(cgroup, "create_group", unable)
    monkeypatch.setattr(bubblewrap, "_find_cgroup_problem", lambda: "taken away")
    found = run_source(engine, layout, SPIN, limits=BURNING)
    assert isinstance(found.ended, TimedOut)
    assert found.ended.clock == "processor"
    assert "processor time" in " ".join(engine.limitations)


@pytest.mark.sandbox
@pytest.mark.parametrize("lasting", [False, True])
def test_time_of_killed_processes_is_counted(engine: Engine, layout: Layout, *, lasting: bool) -> None:
    """Also of those whose parents never wait for them: getrusage(2) does not count these."""
    if engine.name == "bubblewrap" and (why := cgroup.find_problem()) is not None:
        pytest.skip(why)
    code = (
        "import os, time\nread, write = os.pipe()\nif os.fork() == 0:\n    while time.process_time() < 1: pass\n"
        "    os.write(write, b'x')\n    time.sleep(60)\nos.read(read, 1)\n"
    )
    before = cpu_time.SANDBOXES.read()
    if lasting:
        with open_probe_session(engine, layout, limits=LIMITS, run_id="conformance") as room:
            probe(room, code, limits=LIMITS)
            assert 1 <= cpu_time.SANDBOXES.read() - before < 6
    else:
        run_source(engine, layout, code, limits=LIMITS)
        assert 1 <= cpu_time.SANDBOXES.read() - before < 6


@pytest.mark.sandbox
def test_each_probe_of_a_session_has_its_own_processor_time(engine: Engine, layout: Layout) -> None:
    """Time of earlier probes is not counted. A probe that uses up its own is reported as such."""
    assert isinstance(engine, SessionEngine)
    limits = Limits(wall_s=20, cpu_s=1.5, memory_bytes=LIMITS.memory_bytes, disk_bytes=LIMITS.disk_bytes)
    busy = "import time\nwhile time.process_time() < 0.5: pass\n"
    with open_probe_session(engine, layout, limits=limits, run_id="conformance") as room:
        ends = [probe(room, code, limits=limits).ended for code in (*[busy] * 5, SPIN)]
    assert ends[:-1] == [Exited(code=0)] * 5
    assert isinstance(ends[-1], TimedOut)
    assert ends[-1].clock == "processor"
