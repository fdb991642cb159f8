"""Choosing an engine, the one that protects nothing, and the parts that need no sandbox to be tested."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from runners.core.errors import UserError
from runners.core.protocol import Exited, Limits, Signalled, TimedOut
from runners.probe.layout import Layout
from runners.sandbox import bubblewrap, owner, select, selftest
from runners.sandbox.containers import command_line, engine as containers, podman_store, skeleton
from runners.sandbox.contract import Mount, SandboxSpec
from runners.sandbox.limits import cgroup, seccomp
from runners.sandbox.unprotected import Unprotected
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import QUICK
from tests.runners.sandbox.test_lifecycle import FOREVER, SLEEP, guests, traces

SPEC = SandboxSpec(argv=("/bin/true",), mounts=(), limits=Limits(memory_bytes=1000, processes=7, disk_bytes=5000))


# ------------------------------------------------------------------------------------------- choosing


class Broken(Unprotected):
    """An engine that doesn't work."""

    def unusable(self) -> str | None:
        return "it is broken: mend it"


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is docker, podman, bubblewrap; the ones that fail their self-test are passed over."""
    good = Unprotected(name="podman")
    monkeypatch.setattr(select, "sandboxes", lambda: (Broken(name="docker"), good, Broken(name="bubblewrap")))
    assert select.select_engine("auto") is good


def test_auto_never_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no sandbox works, each one's reason and mend is told, and nothing is run unprotected."""
    monkeypatch.setattr(select, "sandboxes", lambda: (Broken(name="docker"), Broken(name="bubblewrap")))
    with pytest.raises(UserError, match="docker: it is broken: mend it; bubblewrap: it is broken: mend it"):
        select.select_engine("auto")


def test_none_must_be_asked_for_by_name_and_says_what_it_gives_up() -> None:
    """Its losses begin with the worst."""
    engine = select.select_engine("none")
    assert engine.name == "none"
    assert "RUNS AS YOU" in engine.gives_up[0]


def test_an_unknown_engine_is_refused_with_the_names_that_exist() -> None:
    """A slip in the name never falls back to another engine."""
    with pytest.raises(UserError, match=r"'dokcer'.*docker, podman, bubblewrap, gvisor, none"):
        select.select_engine("dokcer")


STATUS = (
    "Uid:\t65534\t65534\nNoNewPrivs:\t1\nCapEff:\t0\nCapPrm:\t0\nCapBnd:\t0\ninterfaces\nInter-|  x\n    lo: 0 0\n"
)


@pytest.mark.parametrize(
    ("old", "new", "breach"),
    [
        ("65534\t65534", "0\t0", "it runs as root"),
        ("CapEff:\t0", "CapEff:\t3fff", "it has capabilities"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "it may gain privileges"),
        ("    lo:", "  eth0: 0\n    lo:", "it sees the network (eth0)"),
    ],
)
def test_the_self_test_finds_what_does_not_hold(old: str, new: str, breach: str) -> None:
    """An engine that starts but doesn't protect is as unusable as one that doesn't start."""
    assert selftest.breaches(STATUS) == []
    assert selftest.breaches(STATUS.replace(old, new)) == [breach]
    assert selftest.breaches("") != []


# ------------------------------------------------------------------------------------------- none


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("print('x')", Exited(code=0)),
        ("raise SystemExit(3)", Exited(code=3)),
        ("import os; os.abort()", Signalled(code=6)),
    ],
)
def test_without_a_sandbox_the_end_is_told_all_the_same(layout: Layout, source: str, ended: object) -> None:
    """The unprotected engine keeps the rest of the contract."""
    assert run_source(Unprotected(), layout, source).ended == ended


def test_without_a_sandbox_a_timeout_leaves_no_process(layout: Layout) -> None:
    """Daemons in other sessions are found and killed, and the temporary directory is gone."""
    source = f"import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '{SLEEP}'])\n{FOREVER}"
    assert isinstance(run_source(Unprotected(), layout, source, limits=QUICK).ended, TimedOut)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_without_a_sandbox_the_environment_is_built_from_nothing(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where files are open to it, no variable of ours is handed over."""
    monkeypatch.setenv("CONFORMANCE_SECRET", "s3cr3t")
    found = run_source(Unprotected(), layout, "import os, json; print(json.dumps(dict(os.environ)))")
    assert set(json.loads(found.steps[0].stdout)) - {"LC_CTYPE", "LD_LIBRARY_PATH"} == {
        *("HOME", "PATH", "TMPDIR", "LANG", "PYTHONFAULTHANDLER")
    }


# ------------------------------------------------------------------------------------------- the supervisor


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", ".", "", "a\0b"])
def test_the_supervisor_writes_nothing_outside_its_directory(tmp_path: Path, name: str) -> None:
    """A path from an issue that leads out is refused as a whole, before any step runs."""
    job = {"files": {name: "x"}, "steps": [], "wall_s": 1, "environment": {}, "limits": {}}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path("runners/guest/launch.py").resolve()), "probe.supervisor"],
        input=json.dumps(job).encode() + b"\n",
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"not a relative path" in done.stdout
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("job", [b"", b"{}", b"{}\n", b"[]\n", b"not json\n", b'{"files": {}}\n', b"\xff\n"])
def test_the_supervisor_refuses_a_job_that_is_none(tmp_path: Path, job: bytes) -> None:
    """It says what is wrong in a record, and runs nothing."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path("runners/guest/launch.py").resolve()), "probe.supervisor"],
        input=job,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert "error" in json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1


# ------------------------------------------------------------------------------------------- parts


def test_the_filter_and_the_profile_say_the_same() -> None:
    """Both come from one table; every call it names is in the profile, and the filter can be built."""
    profile = json.loads(seccomp.profile_json())
    named = {name for entry in profile["syscalls"] for name in entry["names"]}
    assert named == {name for rule in seccomp.RULES for name in rule.names}
    if seccomp.unavailable() is None:
        assert len(seccomp.program()) % 8 == 0  # struct sock_filter
        assert len(seccomp.program()) > 8 * len(named)


def test_the_skeleton_is_reproducible() -> None:
    """The same host gives the same image, whenever and by whomever it is made."""
    assert skeleton.archive() == skeleton.archive()
    assert skeleton.tag(skeleton.archive()) != skeleton.tag(b"another")


def test_a_path_with_a_comma_stays_one_mount() -> None:
    """The value of ``--mount`` is comma-separated; a path is quoted rather than cut."""
    assert command_line.bind(Mount(host=Path("/a,b"), guest="/c")) == 'type=bind,"src=/a,b",dst=/c,ro=true'


def test_the_store_in_memory_is_ours_alone(tmp_path: Path) -> None:
    """In a folder where anyone may make one, what another made, or could enter, is not used; nor is a link."""
    for name, mode, fine in (("closed", 0o700, True), ("open", 0o755, False)):
        (tmp_path / name).mkdir(mode=mode)
        (tmp_path / name).chmod(mode)
        assert podman_store._is_ours(tmp_path / name) is fine
    (tmp_path / "link").symlink_to(tmp_path / "closed")
    assert not podman_store._is_ours(tmp_path / "link")
    assert podman_store._is_ours(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_folder_in_memory_is_known_by_its_mount(tmp_path: Path) -> None:
    """Not every /run is a tmpfs."""
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/vda /run ext4 rw 0 0\n")
    found = [podman_store._in_memory(Path(path), mounts) for path in ("/dev/shm", "/run", "/elsewhere")]
    assert found == [True, False, False]


@pytest.mark.parametrize("root", [True, False])
def test_bubblewrap_is_never_given_the_callers_identity(root: bool) -> None:
    """As root the process drops for good; as an ordinary user a user namespace hides who we are."""
    options = bubblewrap.identity_options(root=root, help_text="--disable-userns")
    inner = bubblewrap.inner_argv(SPEC, root=root, grouped=True)
    assert ("--bounding-set=-all" in inner) == root
    assert ("--unshare-user" in options) != root
    assert ("--disable-userns" in options) != root


def test_without_a_control_group_each_process_is_limited() -> None:
    """Weaker than counting all together, and said so; never nothing."""
    inner = bubblewrap.inner_argv(SPEC, root=False, grouped=False)
    assert {"--data=1000", "--nproc=7"} <= set(inner)
    assert "--data=1000" not in bubblewrap.inner_argv(SPEC, root=False, grouped=True)


def test_names_tell_whether_their_maker_lives() -> None:
    """Ours are not leftovers while we live; a dead or reused process id makes one; strangers' names never are."""
    mine = owner.new_name()
    prefix, pid, start, _ = mine.split("-")
    assert not owner.is_leftover(mine)
    assert owner.is_leftover(f"{prefix}-{pid}-{int(start) + 1}-1")
    assert owner.is_leftover(f"{prefix}-4194305-1-1")
    for name in ("reprobot-selftest", "reprobot-1-2", "other-4194305-1-1", f"{prefix}-4194305-1-1-suffix"):
        assert not owner.is_leftover(name)


def test_sweeping_spares_the_living_and_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only directories whose makers are dead are removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = [tmp_path / owner.new_name(), tmp_path / "reprobot-notes"]
    dead = tmp_path / "reprobot-4194305-1-1"
    for path in (*kept, dead):
        path.mkdir()
    assert owner.leftover_directories() == [dead]


class TestsOfControlGroups:
    """Version 2, on a tree of ordinary files (the machine at hand may have version 1)."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "cgroup.controllers").write_text("memory pids")
        (tmp_path / "cgroup.subtree_control").write_text("")
        return tmp_path

    def test_limits_are_written_where_the_kernel_reads_them(self, root: Path) -> None:
        """Memory, no swap, processes; and the controllers are handed down first."""
        group = cgroup.create("reprobot-1-2-3", SPEC.limits, root=root)
        assert group.parent_path == "/reprobot-1-2-3"
        written = {path.name: path.read_text() for path in (root / "reprobot-1-2-3").iterdir()}
        assert written == {"pids.max": "7", "memory.max": "1000", "memory.swap.max": "0"}
        assert (root / "cgroup.subtree_control").read_text() == "+memory +pids"

    @pytest.mark.parametrize(("events", "ran_out"), [("oom 3\noom_kill 0\n", False), ("oom 1\noom_kill 2\n", True)])
    def test_running_out_is_being_killed_for_it(self, root: Path, events: str, ran_out: bool) -> None:
        """Meeting the limit and getting by doesn't count."""
        group = cgroup.create("reprobot-1-2-3", SPEC.limits, root=root)
        (root / "reprobot-1-2-3" / "memory.events").write_text(events)
        assert group.ran_out_of_memory() is ran_out

    def test_the_peak_is_the_kernels_where_it_counts_one(self, root: Path) -> None:
        """Older kernels have no such file: the peak is unknown, not wrong."""
        group = cgroup.create("reprobot-1-2-3", SPEC.limits, root=root)
        assert group.peak_bytes() == 0
        (root / "reprobot-1-2-3" / "memory.peak").write_text("4096\n")
        assert group.peak_bytes() == 4096

    def test_processor_time_is_the_kernels(self, root: Path) -> None:
        """In seconds, of a file that every group has."""
        group = cgroup.create("reprobot-1-2-3", SPEC.limits, root=root)
        (root / "reprobot-1-2-3" / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
        assert group.cpu_s() == 2.5

    def test_another_users_group_stays_and_is_not_said_to_be_removed(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Found as an ordinary user on a machine where root's run was killed: neither a crash nor a false word."""

        def refuse(pid: int, number: int) -> None:
            raise PermissionError

        (root / "reprobot-1-2-3").mkdir()
        (root / "reprobot-1-2-3" / "cgroup.procs").write_text("4194305\n")
        monkeypatch.setattr(os, "kill", refuse)
        monkeypatch.setattr(cgroup, "_REMOVE_S", 0.05)
        assert not cgroup.remove("reprobot-1-2-3", root)
        (root / "reprobot-1-2-3" / "cgroup.procs").unlink()
        assert cgroup.remove("reprobot-1-2-3", root)

    def test_where_groups_cannot_be_made_it_says_why(self, tmp_path: Path) -> None:
        """The reason goes into what the engine gives up."""
        assert "no control group of our own" in (cgroup.unavailable(tmp_path / "absent") or "")


def test_an_image_that_was_asked_for_is_never_silently_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """bubblewrap shows the host's system: it refuses rather than run on another one than was named."""
    monkeypatch.setenv("REPROBOT_IMAGE", "localhost/reprobot-runner")
    refusal = bubblewrap.Bubblewrap().unusable()
    assert refusal is not None
    assert "localhost/reprobot-runner" in refusal


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("label", "refusal"),
    [("io.reprobot.stage=runner", None), ("io.reprobot.stage=bot", "not one of our runner images"), ("x=y", "label")],
)
def test_only_a_runner_image_is_run_in(label: str, refusal: str | None, tmp_path: Path) -> None:
    """By the label that our images have; any other is refused with the way to one, before anything runs in it."""
    if shutil.which("podman") is None or os.geteuid() != 0:
        pytest.skip("needs podman, as root")
    name = f"localhost/{owner.new_name()}:x"
    archive = tmp_path / "empty.tar"
    tarfile.open(archive, "w").close()
    subprocess.run(
        ["podman", "import", f"--change=LABEL {label}", str(archive), name], check=True, capture_output=True
    )
    try:
        why = containers._no_runner("podman", name)
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=False, capture_output=True)
    assert (why is None) == (refusal is None)
    assert (refusal or "") in (why or "")


@pytest.mark.parametrize("name", ["--volume=/:/host", "-v", "a b", "$(id)", "x" * 300])
def test_what_could_be_an_option_is_no_name_of_an_image(name: str) -> None:
    """It stands among the words that podman takes: a name from a configuration must not become another word."""
    assert "is no name of an image" in (containers._no_runner("podman", name) or "")


@pytest.mark.sandbox
def test_an_image_that_is_not_here_is_said_to_be_missing() -> None:
    """No sandbox works then: neither is another image taken, nor the host's system."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    engine = containers.Containers(name="podman", image_name="localhost/nobody-made-this:1")
    assert "podman has no image localhost/nobody-made-this:1" in (engine.unusable() or "")
