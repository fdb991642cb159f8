"""Counters of a control group that an engine made, on trees of ordinary files as systemd and docker shape them."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from runners.core.protocol import Limits, TimedOut
from runners.sandbox.containers import command_line as run_command, engine_cgroup, session as running
from runners.sandbox.containers.engine_cgroup import EnginesGroup
from runners.sandbox.contract import SandboxSpec
from runners.sandbox.limits import cpu_time

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
def group(place: Path, tmp_path: Path) -> EnginesGroup:
    (tmp_path / "id").write_text(ID)
    return EnginesGroup(tmp_path / "id", root=tmp_path / "cgroup")


def test_the_counters_are_those_of_the_container(group: EnginesGroup, place: Path) -> None:
    """Wherever the engine or systemd put it."""
    assert group.found()
    assert group.place == place
    assert (group.cpu_s(), group.peak_bytes(), group.ran_out_of_memory()) == (2.5, 4096, False)


def test_what_happens_between_two_questions_is_followed(place: Path, group: EnginesGroup, tmp_path: Path) -> None:
    """Nobody asks while the container runs, and it is gone when somebody does; also where it comes late."""
    shutil.move(tmp_path / "id", tmp_path / "later")
    with group.watched():
        shutil.move(tmp_path / "later", tmp_path / "id")
        wait_until(lambda: group._peak_bytes == 4096)
        write(place, oom_kill=1, peak=8192)
        wait_until(lambda: group._peak_bytes == 8192)
        shutil.rmtree(place)
    assert group.ran_out_of_memory()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it was not followed"
        time.sleep(0.01)


def test_before_the_container_has_begun_nothing_is_counted(tmp_path: Path) -> None:
    """The id is written first, the group made later."""
    group = EnginesGroup(tmp_path / "id", root=tmp_path)
    assert (group.found(), group.cpu_s(), group.peak_bytes(), group.ran_out_of_memory()) == (False, 0, 0, False)
    (tmp_path / "id").write_text(ID)
    assert not group.found()


def test_an_id_that_is_none_finds_no_group(place: Path, tmp_path: Path) -> None:
    """Half an id, or none, would be a part of any name."""
    for text in ("", ID[:12], f"{ID}{ID}"):
        (tmp_path / "id").write_text(text)
        assert not EnginesGroup(tmp_path / "id", root=tmp_path / "cgroup").found()


def test_what_was_read_stays_when_the_group_is_gone(group: EnginesGroup, place: Path) -> None:
    """Engines remove it at once; the readings before that are true still."""
    write(place, oom_kill=1, cpu_us=9_000_000)
    assert group.ran_out_of_memory()
    shutil.rmtree(place)
    assert (group.cpu_s(), group.peak_bytes(), group.ran_out_of_memory()) == (9.0, 4096, True)


def test_a_kernel_without_a_peak_still_counts_the_rest(group: EnginesGroup, place: Path) -> None:
    """Before 5.19."""
    (place / "memory.peak").unlink()
    assert (group.cpu_s(), group.peak_bytes()) == (2.5, 0)


def test_meeting_the_limit_and_getting_by_is_not_running_out(group: EnginesGroup) -> None:
    """The file counts both: only a kill is the end of something."""
    assert not group.ran_out_of_memory()


def test_version_1_has_no_such_group(tmp_path: Path) -> None:
    """There an ordinary user's containers have none at all, and root makes one of our own."""
    assert not engine_cgroup.possible(tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    assert engine_cgroup.possible(tmp_path)


# ------------------------------------------------------------------------------- as docker is called with it

WAY = run_command.Way(client=("docker",), grouped=False)
SPEC = SandboxSpec(argv=("/bin/true",), mounts=(), limits=Limits())


@pytest.mark.parametrize("counted", [False, True])
def test_the_id_is_asked_for_only_to_find_the_group(counted: bool, tmp_path: Path) -> None:
    """A group of our own needs no looking for."""
    cidfile = tmp_path / "id" if counted else None
    words = run_command.command_line(
        WAY, SPEC, name="n", system=("i",), mounts=(), profile=tmp_path, parent=None, cidfile=cidfile
    )
    assert [word for word in words if word.startswith("--cidfile")] == ([f"--cidfile={cidfile}"] if counted else [])


def test_a_probe_ends_when_its_processor_time_is_up(
    place: Path, group: EnginesGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the engine's account of all its processes, long before the wall's clock."""
    monkeypatch.setattr(running, "client_says", lambda *words: "false")
    monkeypatch.setattr(cpu_time, "GRACE_S", 0.05)
    with subprocess.Popen(["/bin/sleep", "60"], stdin=-1, stdout=-1, stderr=-1) as process:
        session = running.ContainerSession(WAY, "n", process, None, group, 1000, None)
        burning = Timer(0.2, write, (place,), {"cpu_us": 9_000_000, "peak": 12288})
        burning.start()
        report = session.ask(b"", Limits(wall_s=30, cpu_s=0.1), closing=b"")
        burning.join()
        process.kill()
    assert report.ended == TimedOut(where="the whole probe", clock="processor")
    assert report.peak_bytes == 12288


@contextmanager
def _ended(
    says: str, oom_kill: int, monkeypatch: pytest.MonkeyPatch, place: Path
) -> Iterator[running.ContainerSession]:
    """A container that has ended; docker says ``says``, and the kernel counted ``oom_kill``."""
    monkeypatch.setattr(running, "client_says", lambda *words: says)
    write(place, oom_kill=oom_kill)
    (place / "id").write_text(ID)
    group = EnginesGroup(place / "id", root=place.parent, place=place)
    with subprocess.Popen(["/bin/cat"], stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        yield running.ContainerSession(replace(WAY, counted=True), "n", process, None, group, 1000, None)


@pytest.mark.parametrize(
    ("says", "oom_kill", "ran_out"),
    [("false", 0, False), ("true", 0, True), ("false", 1, True)],
)
def test_running_out_is_the_kernels_word_or_the_engines(
    says: str, oom_kill: int, ran_out: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The group may be gone before it was read, and an engine may miss what happened to a child: either is enough."""
    with _ended(says, oom_kill, monkeypatch, tmp_path) as session:
        assert session._ran_out_of_memory(ended=True) is ran_out


def test_one_that_answered_is_not_asked_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The engine's word is about a container that ended, and costs a client."""
    with _ended("true", 0, monkeypatch, tmp_path) as session:
        assert not session._ran_out_of_memory(ended=False)
