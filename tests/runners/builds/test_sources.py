"""Listed builds, stored artifacts and a build command keep one promise: a release that installs, or Unbuildable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

from runners.builds.artifacts import Artifacts, build_name
from runners.builds.command import Workshop
from runners.builds.history import open_history
from runners.builds.listed import join, ordered, place
from runners.builds.source import Build, Point, Unbuildable
from runners.core.catalogue import Release
from runners.core.errors import InfraError
from runners.environments import interpreters
from runners.environments.config import BuildCommand, Builds
from runners.environments.store import open_store
from runners.sandbox.contract import Engine, EngineReport, SandboxSpec
from runners.sandbox.select import sandboxes
from tests.flow.planted import GOOD, Planted, plant
from tests.runners.environments.test_store import build_wheel

LINE = tuple(Point(commit=f"{number:x}" * 40, ordinal=100 + number) for number in range(10))


def release(version: str, **more: object) -> Release:
    plain = Release(
        toolchain="python", version=version, released=date(2026, 1, 1), distributions=("tiny==1",), pythons=("3.11",)
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # merged for brevity


def test_a_build_is_named_so_that_it_sorts_between_releases() -> None:
    """137 commits after 3.10.0, and before 3.10.1."""
    assert build_name("3.10.0", LINE[0], LINE[7]) == "3.10.0.post7+g777777777777"
    assert build_name("3.10.0rc2+g1234567", LINE[0], LINE[1]).startswith("3.10.0rc2.post1+g")
    for base in ("3.10.0.post1", "3.10.dev0"):
        name = Version(build_name(base, LINE[0], LINE[7]))
        assert Version("3.10rc9") < name < Version("3.10.1")


def test_artifacts_of_a_folder_are_those_that_are_there(tmp_path: Path) -> None:
    """Of an address every commit may have some, until it is looked for."""
    for point in LINE[2:5]:
        (tmp_path / point.commit).mkdir()
    local = Artifacts(place=f"{tmp_path}/{{commit}}", toolchain="python", packages=("tiny",))
    assert [build.point for build in local.builds(LINE, "1.0")] == list(LINE[2:5])
    remote = Artifacts(place="https://ci.example/{short}/", toolchain="python", packages=("tiny",))
    assert len(remote.builds(LINE, "1.0")) == len(LINE)


def test_an_artifact_is_a_release_or_unbuildable(tmp_path: Path) -> None:
    """All packages, for a Python of ours; its place is looked at before the index."""
    for point in LINE[1:3]:
        (tmp_path / point.commit).mkdir()
    build_wheel(tmp_path / LINE[1].commit, "tiny", "1.0", {})
    source = Artifacts(place=f"{tmp_path}/{{commit}}", toolchain="python", packages=("tiny",))
    first, second = source.builds(LINE, "1.0")
    found = source.provide(first)
    assert (found.distributions, found.commit) == (("tiny==1.0",), LINE[1].commit)
    assert found.links == (f"{tmp_path}/{LINE[1].commit}",)
    with pytest.raises(Unbuildable, match="has no wheel of tiny"):
        source.provide(second)


def test_an_address_without_the_commit_is_unbuildable() -> None:
    """What is not there says nothing about a bug, and is no failure of ours."""

    def get(address: str) -> str:
        raise InfraError(f"{address} cannot be read (404)")

    source = Artifacts(place="https://ci.example/{short}/", toolchain="python", packages=("tiny",), get=get)
    with pytest.raises(Unbuildable, match="nothing for"):
        source.provide(source.builds(LINE, "1.0")[3])


def test_listed_builds_are_placed_by_commit_version_or_tag(tmp_path: Path) -> None:
    """A leaf is no point between others; what no history knows is left out."""
    planted = plant(tmp_path, 30, body=lambda number: GOOD, backport=(10, 20, "v1.1"))
    history = open_history(str(planted.path), tmp_path)
    by_commit = release("2.0.dev3", commit=planted.main[3])
    by_version = release(f"2.0.dev5+g{planted.main[5][:9]}")
    by_tag, leaf, unknown = release("1.0"), release("1.1"), release("9.9")
    listed = place([unknown, by_version, leaf, by_tag, by_commit], history, lambda version: f"v{version}")
    line = history.between(history.join(planted.main[0]).at, history.join(planted.main[29]).at)
    assert [build.name for build in listed.builds(line, "1.0")] == ["1.0", "2.0.dev3", by_version.version]
    assert listed.provide(listed.builds(line, "1.0")[1]) == by_commit
    joined = join(leaf, history, lambda version: f"v{version}")
    assert joined is not None
    assert joined.leaf


def test_without_a_history_versions_give_the_order() -> None:
    """Nightlies by their own numbers."""
    listed = ordered([release("3.9.0rc20251108"), release("3.9.0rc20251107"), release("3.8.0")])
    assert [build.name for build in listed.builds((), "3.8.0")] == ["3.8.0", "3.9.0rc20251107", "3.9.0rc20251108"]


# ------------------------------------------------------------------------------------------- the build command

CONNECTS = """\
import socket

try:
    socket.create_connection(("1.1.1.1", 80), 2)
except OSError:
    raise SystemExit(0)
raise SystemExit(9)
"""


@pytest.fixture(params=[engine.name for engine in sandboxes() if engine.name != "gvisor"])  # which builds nothing
def engine(request: pytest.FixtureRequest) -> Engine:
    (found,) = [engine for engine in sandboxes() if engine.name == request.param]
    if (why := found.unusable()) is not None:
        pytest.skip(why)
    return found


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return plant(tmp_path, 6, body=lambda number: GOOD, broken=lambda number: number == 3)


def workshop(engine: Engine, planted: Planted, root: Path, *command: str, **more: object) -> Workshop:
    """A workshop with a store of its own, that tells what it builds."""
    settings = BuildCommand(command=command, **more)  # type: ignore[arg-type]  # merged for brevity
    minor = interpreters.choose(("3.11", "3.12", "3.10", "3.13")).version
    tools = open_store(root, offline=True).environment(
        release(minor, source="machine", distributions=(), pythons=(minor,))
    )
    said: list[str] = []
    made = Workshop(
        settings=Builds(toolchain="python", repository=str(planted.path), build=settings),
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


def builds(made: Workshop) -> tuple[tuple[int, str], ...]:
    """Number and expected seconds of every build along main."""
    line = made.history.between(
        made.history.join(made.history.line[0]).at, made.history.join(made.history.line[-1]).at
    )
    return tuple((build.point.ordinal, str(build.seconds)) for build in made.builds(line, "1.0"))


def build_at(made: Workshop, number: int) -> Build:
    line = made.history.between(
        made.history.join(made.history.line[0]).at, made.history.join(made.history.line[-1]).at
    )
    return made.builds(line, "1.0")[number]


@pytest.mark.sandbox
def test_a_build_is_made_once_and_kept(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """The wheel of that commit, from its own files; the second time nothing is started."""
    made = workshop(engine, planted, tmp_path / "store", "python3", "build.py", "/out", expected_s=7.0)
    found = made.provide(build_at(made, 2))
    assert found.distributions == ("tinycalc==1.0.2",)
    assert found.commit == planted.main[2]
    assert [seconds for _, seconds in builds(made)] == ["7.0", "7.0", "0.0", "7.0", "7.0", "7.0"]
    assert replace(made, engine=Broken()).provide(build_at(made, 2)) == found


@dataclass(frozen=True)
class Broken:
    """An engine that must not be used."""

    name: str = "broken"
    guarantees: tuple[str, ...] = ()
    gives_up: tuple[str, ...] = ()
    remaps_paths: bool = True
    image: str = ""
    own_system: bool = False

    def unusable(self) -> str | None:
        return None

    def run(self, spec: SandboxSpec) -> EngineReport:
        raise AssertionError(f"a build was started: {spec.argv}")


@pytest.mark.sandbox
def test_a_build_that_fails_is_remembered_with_its_last_words(
    engine: Engine, planted: Planted, tmp_path: Path
) -> None:
    """It is not built a second time."""
    made = workshop(engine, planted, tmp_path / "store", "python3", "build.py", "/out")
    with pytest.raises(Unbuildable, match="this commit does not build"):
        made.provide(build_at(made, 3))
    with pytest.raises(Unbuildable, match="exit code 1"):
        replace(made, engine=Broken()).provide(build_at(made, 3))


@pytest.mark.sandbox
def test_a_build_that_takes_too_long_is_unbuildable_here(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """And not remembered: another machine may be faster."""
    made = workshop(engine, planted, tmp_path / "store", "sleep", "30", timeout_s=1.0)
    with pytest.raises(Unbuildable, match="TimedOut"):
        made.provide(build_at(made, 1))
    assert not list((tmp_path / "store" / "builds").glob("*"))


@pytest.mark.sandbox
def test_a_build_sees_no_network_and_only_what_it_is_given(
    engine: Engine, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not root, nothing of our environment; what is given can be read and not written; the cache stays."""
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
    made = workshop(engine, planted, tmp_path / "store", "sh", "-c", script, given={"/given": str(given)})
    assert made.provide(build_at(made, 0)).distributions == ("tinycalc==1.1",)
    assert made.provide(build_at(made, 1)).distributions == ("tinycalc==1.2",)


@pytest.mark.sandbox
def test_finished_builds_keep_within_their_limit(engine: Engine, planted: Planted, tmp_path: Path) -> None:
    """Those used longest ago go first; what was just made stays."""
    made = workshop(engine, planted, tmp_path / "store", "python3", "build.py", "/out")
    for number in (0, 1, 2):
        made.provide(build_at(made, number))
    made.trim(1, unused_s=0.0, keep=made._key(planted.main[2]))
    assert [seconds == "0.0" for _, seconds in builds(made)] == [False, False, True, False, False, False]
