"""Counters of an engine's control group, on trees of ordinary files with the layouts of systemd and docker."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from runners.core.protocol import Limits, TimedOut
from runners.sandbox.containers import command_line as run_command, engine_cgroup, session as running
from runners.sandbox.containers.engine_cgroup import EngineCgroup
from runners.sandbox.contract import SandboxSpec
from runners.sandbox.limits import cpu_time
from tests.support.waiting import wait_until

ID = "0123456789abcdef" * 4
PLACES = (
    f"system.slice/docker-{ID}.scope",
    f"docker/{ID}",
    f"machine.slice/libpod-{ID}.scope",
    f"user.slice/user-1001.slice/user@1001.service/user.slice/libpod-{ID}.scope",
)


def write(place: Path, *, cpu_us: int = 2_500_000, oom_kill: int = 0, peak: int = 4096) -> None:
    (place / "cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 1\n")
    (place / "memory.events").write_text(f"oom 7\noom_kill {oom_kill}\noom_group_kill 0\n")
    (place / "memory.peak").write_text(f"{peak}\n")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "cgroup/system.slice/ssh.service").mkdir(parents=True)
    made = tmp_path / "cgroup" / str(request.param)
    (made / "container").mkdir(parents=True)  # crun's, whose counters are a part of its parent's
    (made.parent / f"libpod-conmon-{ID}.scope").mkdir()  # the monitor's
    write(made)
    return made


@pytest.fixture
def group(place: Path, tmp_path: Path) -> EngineCgroup:
    (tmp_path / "id").write_text(ID)
    return EngineCgroup(tmp_path / "id", root=tmp_path / "cgroup")


def test_counters_of_the_container_are_found(group: EngineCgroup, place: Path) -> None:
    """In each folder in which an engine or systemd may have put the group."""
    assert group.is_found()
    assert group.path == place
    assert (group.read_cpu_s(), group.read_peak_bytes(), group.ran_out_of_memory()) == (2.5, 4096, False)


@pytest.mark.thorough
def test_counters_are_followed_between_two_readings(place: Path, group: EngineCgroup, tmp_path: Path) -> None:
    """The group may appear late and vanish before the next question."""
    shutil.move(tmp_path / "id", tmp_path / "later")
    with group.follow_counters():
        shutil.move(tmp_path / "later", tmp_path / "id")
        assert wait_until(lambda: group._peak_bytes == 4096)
        write(place, oom_kill=1, peak=8192)
        assert wait_until(lambda: group._peak_bytes == 8192)
        shutil.rmtree(place)
    assert group.ran_out_of_memory()


def test_counters_are_zero_before_the_container_starts(tmp_path: Path) -> None:
    """The engine writes the id first and makes the group later."""
    group = EngineCgroup(tmp_path / "id", root=tmp_path)
    assert (group.is_found(), group.read_cpu_s(), group.read_peak_bytes(), group.ran_out_of_memory()) == (
        False,
        0,
        0,
        False,
    )
    (tmp_path / "id").write_text(ID)
    assert not group.is_found()


def test_incomplete_id_finds_no_group(place: Path, tmp_path: Path) -> None:
    """Half an id, or an empty one, would be a part of other names."""
    for text in ("", ID[:12], f"{ID}{ID}"):
        (tmp_path / "id").write_text(text)
        assert not EngineCgroup(tmp_path / "id", root=tmp_path / "cgroup").is_found()


def test_last_readings_stay_when_the_group_is_gone(group: EngineCgroup, place: Path) -> None:
    """Engines remove the group at once. Earlier readings are still true."""
    write(place, oom_kill=1, cpu_us=9_000_000)
    assert group.ran_out_of_memory()
    shutil.rmtree(place)
    assert (group.read_cpu_s(), group.read_peak_bytes(), group.ran_out_of_memory()) == (9.0, 4096, True)


def test_kernel_without_a_peak_still_gives_the_other_counters(group: EngineCgroup, place: Path) -> None:
    """Kernels before 5.19 have no peak."""
    (place / "memory.peak").unlink()
    assert (group.read_cpu_s(), group.read_peak_bytes()) == (2.5, 0)


def test_reaching_the_limit_without_a_kill_is_not_out_of_memory(group: EngineCgroup) -> None:
    """The kernel's file counts both events."""
    assert not group.ran_out_of_memory()


def test_version_1_groups_are_not_read(tmp_path: Path) -> None:
    """On version 1 an ordinary user's containers have no group, and root makes one of our own."""
    assert not engine_cgroup.can_read_groups(tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    assert engine_cgroup.can_read_groups(tmp_path)


# ------------------------------------------------------------------------------- as docker is called with it

WAY = run_command.Invocation(client=("docker",), grouped=False)
SPEC = SandboxSpec(argv=("/bin/true",), mounts=(), limits=Limits())


@pytest.mark.parametrize("counted", [False, True])
def test_id_file_is_requested_only_to_find_the_engines_group(counted: bool, tmp_path: Path) -> None:
    """A group of our own needs no search."""
    cidfile = tmp_path / "id" if counted else None
    words = run_command.build_command_line(
        WAY, SPEC, name="n", system=("i",), mounts=(), profile=tmp_path, parent=None, cidfile=cidfile
    )
    assert [word for word in words if word.startswith("--cidfile")] == ([f"--cidfile={cidfile}"] if counted else [])


@pytest.mark.thorough
def test_probe_ends_when_its_processor_time_is_used_up(
    place: Path, group: EngineCgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the engine's count of all processes, long before the wall time is over."""
    monkeypatch.setattr(running, "query_client", lambda *words: "false")
    monkeypatch.setattr(cpu_time, "GRACE_S", 0.05)
    with subprocess.Popen(["/bin/sleep", "60"], stdin=-1, stdout=-1, stderr=-1) as process:
        session = running.ContainerSession(WAY, "n", process, None, group, 1000, None)
        burning = Timer(0.2, write, (place,), {"cpu_us": 9_000_000, "peak": 12288})
        burning.start()
        report = session.send_request(b"", Limits(wall_s=30, cpu_s=0.1), closing=b"")
        burning.join()
        process.kill()
    assert report.ended == TimedOut(where="the whole probe", clock="processor")
    assert report.peak_bytes == 12288


@contextmanager
def _ended(
    says: str, oom_kill: int, monkeypatch: pytest.MonkeyPatch, place: Path
) -> Iterator[running.ContainerSession]:
    """A session of a container that has ended. docker reports ``says``, the kernel counted ``oom_kill``."""
    monkeypatch.setattr(running, "query_client", lambda *words: says)
    write(place, oom_kill=oom_kill)
    (place / "id").write_text(ID)
    group = EngineCgroup(place / "id", root=place.parent, path=place)
    with subprocess.Popen(["/bin/cat"], stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        yield running.ContainerSession(replace(WAY, counted=True), "n", process, None, group, 1000, None)


@pytest.mark.parametrize(
    ("says", "oom_kill", "ran_out"),
    [("false", 0, False), ("true", 0, True), ("false", 1, True)],
)
def test_out_of_memory_is_reported_by_the_kernel_or_the_engine(
    says: str, oom_kill: int, ran_out: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The group may be gone before a reading, and an engine may miss a child's kill: either report is enough."""
    with _ended(says, oom_kill, monkeypatch, tmp_path) as session:
        assert session._ran_out_of_memory(ended=True) is ran_out


def test_engine_is_not_asked_about_a_container_that_answered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The engine's report is about a container that has ended, and costs a client."""
    with _ended("true", 0, monkeypatch, tmp_path) as session:
        assert not session._ran_out_of_memory(ended=False)
