"""Published builds, artifacts and a build command keep one promise: a release that installs, or Unbuildable."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

from runners.builds import command
from runners.builds.artifacts import ArtifactSource, make_build_name
from runners.builds.command import CommandSource, find_wheel_problem, open_to_all
from runners.builds.commit_range import BuildRegistry, RangeFinder
from runners.builds.history import open_history
from runners.builds.published import locate_release, order_by_version, place_releases
from runners.builds.source import Build, Point, Unbuildable
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Release, load_catalogue
from runners.environments import interpreters
from runners.environments.config import BuildCommand, BuildsConfig
from runners.environments.store import open_store
from runners.sandbox.contract import Engine, EngineReport, SandboxSpec
from runners.sandbox.select import list_sandboxes
from tests.flow.planted import GOOD, Planted, plant
from tests.runners.environments.test_store import build_wheel

LINE = tuple(Point(commit=f"{number:x}" * 40, ordinal=100 + number) for number in range(10))


def release(version: str, **more: object) -> Release:
    plain = Release(
        toolchain="python", version=version, released=date(2026, 1, 1), distributions=("tiny==1",), pythons=("3.11",)
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # merged for brevity


def test_build_name_sorts_between_releases() -> None:
    """Seven commits after 3.10.0, and before 3.10.1."""
    assert make_build_name("3.10.0", LINE[0], LINE[7]) == "3.10.0.post7+g777777777777"
    assert make_build_name("3.10.0rc2+g1234567", LINE[0], LINE[1]).startswith("3.10.0rc2.post1+g")
    for base in ("3.10.0.post1", "3.10.dev0"):
        name = Version(make_build_name(base, LINE[0], LINE[7]))
        assert Version("3.10rc9") < name < Version("3.10.1")


def test_artifact_folders_list_existing_builds_only(tmp_path: Path) -> None:
    """An address lists a build for every commit, existing or not."""
    for point in LINE[2:5]:
        (tmp_path / point.commit).mkdir()
    local = ArtifactSource(location=f"{tmp_path}/{{commit}}", toolchain="python", packages=("tiny",))
    assert [build.point for build in local.list_builds(LINE, "1.0")] == list(LINE[2:5])
    remote = ArtifactSource(location="https://ci.example/{short}/", toolchain="python", packages=("tiny",))
    assert len(remote.list_builds(LINE, "1.0")) == len(LINE)


def test_artifact_is_a_release_or_unbuildable(tmp_path: Path) -> None:
    """It needs all packages for one of our Pythons. Its location is searched before the index."""
    for point in LINE[1:3]:
        (tmp_path / point.commit).mkdir()
    build_wheel(tmp_path / LINE[1].commit, "tiny", "1.0", {})
    source = ArtifactSource(location=f"{tmp_path}/{{commit}}", toolchain="python", packages=("tiny",))
    first, second = source.list_builds(LINE, "1.0")
    found = source.provide_release(first)
    assert (found.distributions, found.commit) == (("tiny==1.0",), LINE[1].commit)
    assert found.links == (f"{tmp_path}/{LINE[1].commit}",)
    with pytest.raises(Unbuildable, match="has no wheel of tiny"):
        source.provide_release(second)


def test_address_without_the_commit_is_unbuildable() -> None:
    """A missing artifact says nothing about a bug, and is no failure of ours."""

    def fetch(address: str) -> str:
        raise InfraError(f"{address} cannot be read (404)")

    source = ArtifactSource(
        location="https://ci.example/{short}/", toolchain="python", packages=("tiny",), fetch=fetch
    )
    with pytest.raises(Unbuildable, match="nothing for"):
        source.provide_release(source.list_builds(LINE, "1.0")[3])


def test_published_builds_are_placed_by_commit_version_or_tag(tmp_path: Path) -> None:
    """Leaves are on no line, and builds of unknown commits are left out."""
    planted = plant(tmp_path, 30, body=lambda number: GOOD, backport=(10, 20, "v1.1"))
    history = open_history(str(planted.path), tmp_path)
    by_commit = release("2.0.dev3", commit=planted.main[3])
    by_version = release(f"2.0.dev5+g{planted.main[5][:9]}")
    by_tag, leaf, unknown = release("1.0"), release("1.1"), release("9.9")
    listed = place_releases([unknown, by_version, leaf, by_tag, by_commit], history, lambda version: f"v{version}")
    line = history.list_points(
        history.find_branch_point(planted.main[0]).at, history.find_branch_point(planted.main[29]).at
    )
    assert [build.name for build in listed.list_builds(line, "1.0")] == ["1.0", "2.0.dev3", by_version.version]
    assert listed.provide_release(listed.list_builds(line, "1.0")[1]) == by_commit
    joined = locate_release(leaf, history, lambda version: f"v{version}")
    assert joined is not None
    assert joined.leaf


def test_versions_give_the_order_without_a_history() -> None:
    """Nightlies are ordered by their own numbers."""
    listed = order_by_version([release("3.9.0rc20251108"), release("3.9.0rc20251107"), release("3.8.0")])
    assert [build.name for build in listed.list_builds((), "3.8.0")] == [
        "3.8.0",
        "3.9.0rc20251107",
        "3.9.0rc20251108",
    ]


# ------------------------------------------------------------------------------------------- the build command

CONNECTS = """\
import socket

try:
    socket.create_connection(("1.1.1.1", 80), 2)
except OSError:
    raise SystemExit(0)
raise SystemExit(9)
"""


BUILDERS = [engine.name for engine in list_sandboxes() if engine.name != "gvisor"]
"""gVisor refuses writable mounts, so it builds nothing."""


@pytest.fixture(params=BUILDERS)
def engine(request: pytest.FixtureRequest) -> Engine:
    (found,) = [engine for engine in list_sandboxes() if engine.name == request.param]
    if (why := found.find_problem()) is not None:
        pytest.skip(why)
    return found


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return plant(tmp_path, 6, body=lambda number: GOOD, broken=lambda number: number == 3)


def make_source(engine: Engine, planted: Planted, root: Path, *words: str, **more: object) -> CommandSource:
    """A source of builds with a store of its own."""
    settings = BuildCommand(command=words, **more)  # type: ignore[arg-type]  # merged for brevity
    minor = interpreters.choose_interpreter(("3.11", "3.12", "3.10", "3.13")).version
    tools = open_store(root, offline=True).get_environment(
        release(minor, source="machine", distributions=(), pythons=(minor,))
    )
    said: list[str] = []
    made = CommandSource(
        settings=BuildsConfig(toolchain="python", repository=str(planted.path), build=settings),
        command=settings,
        packages=("tinycalc",),
        history=open_history(str(planted.path), root),
        engine=engine,
        tools=tools,
        root=root,
        run_id="test",
        say=said.append,
    )
    assert made.say == said.append
    return made


def builds(made: CommandSource) -> tuple[tuple[int, str], ...]:
    """Return ordinal and expected seconds of every build on main."""
    line = made.history.list_points(
        made.history.find_branch_point(made.history.line[0]).at,
        made.history.find_branch_point(made.history.line[-1]).at,
    )
    return tuple((build.point.ordinal, str(build.seconds)) for build in made.list_builds(line, "1.0"))


def build_at(made: CommandSource, number: int) -> Build:
    line = made.history.list_points(
        made.history.find_branch_point(made.history.line[0]).at,
        made.history.find_branch_point(made.history.line[-1]).at,
    )
    return made.list_builds(line, "1.0")[number]


@pytest.mark.sandbox
def test_build_is_made_once_and_kept(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """The wheel is made from the commit's own files. The second call starts no build."""
    made = make_source(engine, planted, tmp_path / "store", "python3", "build.py", "/out", expected_s=7.0)
    found = made.provide_release(build_at(made, 2))
    assert found.distributions == ("tinycalc==1.0.2",)
    assert found.commit == planted.main[2]
    assert [seconds for _, seconds in builds(made)] == ["7.0", "7.0", "0.0", "7.0", "7.0", "7.0"]
    assert replace(made, engine=Broken()).provide_release(build_at(made, 2)) == found


def test_wheels_that_would_fill_the_disk_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse files, contents that are longer than stated, many files, and files that are no wheels."""
    monkeypatch.setattr(command, "MOST_UNPACKED_BYTES", 3_000_000)
    monkeypatch.setattr(command, "MOST_WHEEL_FILES", 3)
    wheel = tmp_path / "a-1-py3-none-any.whl"

    def pack(*contents: bytes) -> None:
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, content in enumerate(contents):
                archive.writestr(f"f{number}", content)

    pack(b"x" * 2_900_000, b"", b"y")
    assert find_wheel_problem([wheel]) == ""
    pack(b"x" * 3_000_001)
    assert "unpack to more" in find_wheel_problem([wheel])
    length = (3_000_001).to_bytes(4, "little")
    assert length in wheel.read_bytes()
    wheel.write_bytes(wheel.read_bytes().replace(length, (10).to_bytes(4, "little")))
    assert "unpack to more" in find_wheel_problem([wheel])
    pack(*[b""] * 4)
    assert "files" in find_wheel_problem([wheel])
    wheel.write_bytes(b"no archive")
    assert "cannot be read" in find_wheel_problem([wheel])
    os.truncate(wheel, command.MOST_WHEEL_BYTES + 1)
    assert "4 GiB" in find_wheel_problem([wheel])
    wheel.unlink()


SWAPS = """\
import os, signal, sys, time

cache, folder, file = sys.argv[1:]
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
while not ended:
    for name, target in (("d", folder), ("f", file)):
        os.rename(f"{cache}/{name}", f"{cache}/../kept")
        os.symlink(target, f"{cache}/{name}")
        time.sleep(0.0002)
        os.unlink(f"{cache}/{name}")
        os.rename(f"{cache}/../kept", f"{cache}/{name}")
        time.sleep(0.0002)
"""


@pytest.mark.thorough
def test_opening_the_cache_follows_no_link(tmp_path: Path) -> None:
    """A build that runs meanwhile swaps a file, and a folder, of the cache for links to files of root's."""
    (outside := tmp_path / "outside").mkdir()
    victims = [outside / f"secret{number}" for number in range(50)]
    for victim in victims:
        victim.touch(mode=0o600)
    cache = tmp_path / "cache"
    (cache / "d").mkdir(parents=True)
    for victim in victims:
        (cache / "d" / victim.name).touch(mode=0o600)
    (cache / "f").touch(mode=0o600)
    (cache / "link").symlink_to(victims[0])
    swapping = subprocess.Popen([sys.executable, "-c", SWAPS, *map(str, (cache, outside, victims[0]))])
    try:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            open_to_all(cache)
    finally:
        swapping.send_signal(signal.SIGTERM)
        swapping.wait()
    open_to_all(cache)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (outside, *victims)} == {0o755, 0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cache / "f", *(cache / "d").iterdir())} == {0o666}


@pytest.mark.sandbox
def test_builds_share_a_cache_one_at_a_time(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """Each build runs as another user and writes into the folder that the first one made."""
    script = (
        "mkdir /cache/busy || exit 1; mkdir -p /cache/d; echo {commit} >> /cache/d/log; sleep 1; rmdir /cache/busy"
    )
    made = make_source(engine, planted, tmp_path / "store", "sh", "-c", f"{script}; python3 build.py /out")
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(made.provide_release, [build_at(made, 1), build_at(made, 2)]))
    assert [one.commit for one in found] == [planted.main[1], planted.main[2]]
    (log,) = (tmp_path / "store" / "compiler-caches").glob("*/d/log")
    assert sorted(log.read_text().split()) == sorted(planted.main[1:3])


@dataclass(frozen=True)
class Broken:
    """An engine that must not be used."""

    name: str = "broken"
    guarantees: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    remaps_paths: bool = True
    image: str = ""
    own_system: bool = False

    def find_problem(self) -> str | None:
        return None

    def run(self, spec: SandboxSpec) -> EngineReport:
        raise AssertionError(f"a build was started: {spec.argv}")


@pytest.mark.sandbox
def test_failed_build_is_recorded_with_its_last_output(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """It is not built a second time."""
    made = make_source(engine, planted, tmp_path / "store", "python3", "build.py", "/out")
    with pytest.raises(Unbuildable, match="this commit does not build"):
        made.provide_release(build_at(made, 3))
    with pytest.raises(Unbuildable, match="exit code 1"):
        replace(made, engine=Broken()).provide_release(build_at(made, 3))


@pytest.mark.sandbox
def test_build_that_takes_too_long_is_unbuildable_and_not_recorded(
    engine: Engine, planted: Planted, tmp_path: Path
) -> None:
    """Another machine may be faster."""
    made = make_source(engine, planted, tmp_path / "store", "sleep", "30", timeout_s=1.0)
    with pytest.raises(Unbuildable, match="TimedOut"):
        made.provide_release(build_at(made, 1))
    assert not list((tmp_path / "store" / "builds").glob("*"))


@pytest.mark.sandbox
def test_build_has_no_network_and_sees_only_its_given_paths(
    engine: Engine, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not root and has no variable of ours. Given paths are read-only, and the cache is kept."""
    monkeypatch.setenv("BUILD_SECRET", "s3cr3t")
    given = tmp_path / "given"
    given.mkdir()
    (given / "note.txt").write_text("from the operator")
    given.chmod(0o755)
    (given / "net.py").write_text(CONNECTS)
    script = (
        "set -e; test $(id -u) != 0; ! env | grep -q s3cr3t; ! (echo x > /given/y) 2>/dev/null;"
        " python3 /given/net.py;"
        " grep -q operator /given/note.txt; echo run >> /cache/runs; wc -l < /cache/runs > VERSION;"
        " sed -i 's/^/1./' VERSION; python3 build.py /out"
    )
    made = make_source(engine, planted, tmp_path / "store", "sh", "-c", script, given={"/given": str(given)})
    assert made.provide_release(build_at(made, 0)).distributions == ("tinycalc==1.1",)
    assert made.provide_release(build_at(made, 1)).distributions == ("tinycalc==1.2",)


@pytest.mark.sandbox
def test_trim_removes_the_longest_unused_builds(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """The build that was made last stays."""
    made = make_source(engine, planted, tmp_path / "store", "python3", "build.py", "/out")
    for number in (0, 1, 2):
        made.provide_release(build_at(made, number))
    made.trim(1, unused_s=0.0, keep=made._make_key(planted.main[2]))
    assert [seconds == "0.0" for _, seconds in builds(made)] == [False, False, True, False, False, False]


def test_no_build_lies_between_versions_that_the_machine_has() -> None:
    """Without a history, a search between two versions of Python ends with these versions, by a `UserError`."""
    catalogue = load_catalogue()
    finder = RangeFinder(
        toolchain="python",
        catalogue=catalogue,
        history=None,
        sources=(order_by_version(()),),
        find_tag=lambda version: None,
        registry=BuildRegistry(),
    )
    with pytest.raises(UserError, match="no builds between"):
        finder.find_range(finder.find_end("3.11"), finder.find_end("3.12"))
