"""Choice of an engine, the unprotected engine, and parts that can be tested without a sandbox."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import cast

import msgspec
import pytest

from runners.core.errors import InfraError, UserError
from runners.core.protocol import Exited, Limits, Signalled, Testcase, TestcaseKind, TimedOut
from runners.probe.layout import Layout
from runners.probe.run import run_probe
from runners.probe.task import ProbeResult, Task
from runners.sandbox import bubblewrap, bubblewrap_command, owner, select, selftest
from runners.sandbox.containers import command_line, engine as containers, podman_store, skeleton
from runners.sandbox.contract import Engine, EngineReport, Mount, SandboxSpec
from runners.sandbox.limits import cgroup, seccomp
from runners.sandbox.unprotected import Unprotected
from tests.runners.sandbox.conftest import TOOLS, name_of, run_source
from tests.runners.sandbox.kit.attack import FLOODING, LIMITS, QUICK
from tests.runners.sandbox.test_lifecycle import FOREVER, SLEEP, guests, traces

SPEC = SandboxSpec(argv=("/bin/true",), mounts=(), limits=Limits(memory_bytes=1000, processes=7, disk_bytes=5000))


# ------------------------------------------------------------------------------------------- choosing


class Broken(Unprotected):
    """An engine that does not work."""

    def find_problem(self) -> str | None:
        return "it is broken: mend it"


class Whole(Unprotected):
    """An engine that works and lacks no guarantee."""

    limitations = ()

    def find_problem(self) -> str | None:
        return None


def test_auto_selects_bubblewrap_if_it_lacks_no_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs the least for each run. With a limitation, or if its self-test fails, the others come first."""
    podman, full, less = Unprotected(name="podman"), Whole(name="bubblewrap"), Unprotected(name="bubblewrap")
    for found, chosen in (((podman, full), full), ((podman, less), podman), ((less,), less)):
        monkeypatch.setattr(select, "list_sandboxes", lambda found=found: found)
        assert select.select_engine("auto") is chosen
    monkeypatch.setattr(Whole, "find_problem", lambda _: "its self-test ended")
    monkeypatch.setattr(select, "list_sandboxes", lambda: (podman, full))
    assert select.select_engine("auto") is podman


def test_auto_selects_the_first_engine_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is docker, podman, bubblewrap. Engines that fail their self-test are passed over."""
    good = Unprotected(name="podman")
    monkeypatch.setattr(select, "list_sandboxes", lambda: (Broken(name="docker"), good, Broken(name="bubblewrap")))
    assert select.select_engine("auto") is good


def test_auto_never_selects_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no sandbox works, the error has each engine's reason and remedy, and the testcase does not run
    unprotected."""
    monkeypatch.setattr(select, "list_sandboxes", lambda: (Broken(name="docker"), Broken(name="bubblewrap")))
    with pytest.raises(UserError, match="docker: it is broken: mend it; bubblewrap: it is broken: mend it"):
        select.select_engine("auto")


def test_none_is_selected_by_name_only_and_lists_its_limitations() -> None:
    """The list starts with the worst limitation."""
    engine = select.select_engine("none")
    assert engine.name == "none"
    assert "RUNS AS YOU" in engine.limitations[0]


def test_unknown_engine_name_is_refused_with_the_known_names() -> None:
    """A typing error in the name never selects another engine."""
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
def test_self_test_finds_each_breach(old: str, new: str, breach: str) -> None:
    """An engine that starts but does not protect is as unusable as an engine that does not start."""
    assert selftest.list_breaches(STATUS) == []
    assert selftest.list_breaches(STATUS.replace(old, new)) == [breach]
    assert selftest.list_breaches("") != []


class _Told:
    """An engine whose runs end as told, in turn."""

    def __init__(self, *ends: EngineReport | InfraError) -> None:
        self.left = list(ends)

    def run(self, spec: SandboxSpec) -> EngineReport:
        end = self.left.pop(0)
        if isinstance(end, InfraError):
            raise end
        return end


HOLDS = EngineReport(ended=Exited(code=0), stdout=STATUS.encode(), seconds=0.1)
KILLED = EngineReport(ended=Signalled(code=9), stdout=b"", seconds=0.1)
REFUSED = EngineReport(ended=Exited(code=1), stdout=b"", seconds=0.1, stderr=b"no user namespaces")


def test_one_kill_of_the_self_test_refuses_no_engine() -> None:
    """An exhausted machine kills it. A second end of that kind, and a refusal, count."""
    lost = InfraError("bwrap failed (-9): it printed no message")
    for first in (KILLED, lost):
        assert selftest.find_problem(cast("Engine", _Told(first, HOLDS))) is None
        assert selftest.find_problem(cast("Engine", _Told(first, lost))) is not None
    once = _Told(REFUSED, HOLDS)
    assert "no user namespaces" in (selftest.find_problem(cast("Engine", once)) or "")
    assert once.left == [HOLDS]


# ------------------------------------------------------------------------------------------- none


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("print('x')", Exited(code=0)),
        ("raise SystemExit(3)", Exited(code=3)),
        ("import os; os.abort()", Signalled(code=6)),
    ],
)
def test_unprotected_engine_reports_the_end(layout: Layout, source: str, ended: object) -> None:
    """The unprotected engine keeps the rest of the contract."""
    assert run_source(Unprotected(), layout, source).ended == ended


@pytest.mark.thorough
def test_unprotected_engine_leaves_no_process_after_a_timeout(layout: Layout) -> None:
    """Daemons in other sessions are found and killed, and the temporary directory is removed."""
    source = f"import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '{SLEEP}'])\n{FOREVER}"
    assert isinstance(run_source(Unprotected(), layout, source, limits=QUICK).ended, TimedOut)
    assert guests() == []
    assert traces(os.getpid()) == []


def test_unprotected_engine_builds_the_environment_from_nothing(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The testcase can read our files, but it gets no variable of ours."""
    monkeypatch.setenv("CONFORMANCE_SECRET", "s3cr3t")
    found = run_source(Unprotected(), layout, "import os, json; print(json.dumps(dict(os.environ)))")
    assert set(json.loads(found.steps[0].stdout)) - {"LC_CTYPE", "LD_LIBRARY_PATH"} == {
        *("HOME", "PATH", "TMPDIR", "LANG", "PYTHONFAULTHANDLER")
    }


# ------------------------------------------------------------------------------------------- the supervisor


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", ".", "", "a\0b"])
def test_supervisor_writes_no_file_outside_its_directory(tmp_path: Path, name: str) -> None:
    """A job with a path that leads out is refused as a whole, before any step runs."""
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
def test_supervisor_refuses_an_invalid_job(tmp_path: Path, job: bytes) -> None:
    """A record has the error, and no step runs."""
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


def test_seccomp_filter_and_profile_have_the_same_rules() -> None:
    """Both come from one table: the profile has every call of the table, and the filter can be built."""
    profile = json.loads(seccomp.render_profile())
    named = {name for entry in profile["syscalls"] for name in entry["names"]}
    assert named == {name for rule in seccomp.RULES for name in rule.names}
    if seccomp.find_problem() is None:
        assert len(seccomp.compile_program()) % 8 == 0  # struct sock_filter
        assert len(seccomp.compile_program()) > 8 * len(named)


def test_skeleton_is_reproducible() -> None:
    """The same host gives the same image at any time and for any user."""
    assert skeleton.build_archive() == skeleton.build_archive()
    assert skeleton.make_image_name(skeleton.build_archive()) != skeleton.make_image_name(b"another")


def test_mount_path_with_a_comma_is_quoted() -> None:
    """The value of ``--mount`` is comma-separated."""
    assert command_line.render_mount(Mount(host=Path("/a,b"), guest="/c")) == 'type=bind,"src=/a,b",dst=/c,ro=true'


def test_store_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    """Nor is an open folder or a link: in /dev/shm any user may be the first to create the folder."""
    for name, mode, fine in (("closed", 0o700, True), ("open", 0o755, False)):
        (tmp_path / name).mkdir(mode=mode)
        (tmp_path / name).chmod(mode)
        assert podman_store._is_ours(tmp_path / name) is fine
    (tmp_path / "link").symlink_to(tmp_path / "closed")
    assert not podman_store._is_ours(tmp_path / "link")
    assert podman_store._is_ours(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_folder_is_in_memory_if_a_tmpfs_is_mounted_there(tmp_path: Path) -> None:
    """Not every /run is a tmpfs."""
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/vda /run ext4 rw 0 0\n")
    found = [podman_store._in_memory(Path(path), mounts) for path in ("/dev/shm", "/run", "/elsewhere")]
    assert found == [True, False, False]


@pytest.mark.parametrize("root", [True, False])
def test_bubblewrap_never_keeps_the_callers_identity(root: bool) -> None:
    """As root the process drops its rights for good; as an ordinary user a user namespace hides the user."""
    options = bubblewrap_command.build_identity_options(root=root, help_text="--disable-userns")
    inner = bubblewrap_command.build_inner_argv(SPEC, user=65534, root=root, grouped=True)
    assert ("--bounding-set=-all" in inner) == root
    assert ("--unshare-user" in options) != root
    assert ("--disable-userns" in options) != root


def test_without_a_control_group_each_process_is_limited() -> None:
    """These limits are weaker than those of all processes together, and the engine's limitations state this."""
    inner = bubblewrap_command.build_inner_argv(SPEC, user=65534, root=False, grouped=False)
    assert {"--data=1000", "--nproc=7"} <= set(inner)
    assert "--data=1000" not in bubblewrap_command.build_inner_argv(SPEC, user=65534, root=False, grouped=True)


def test_a_limit_above_our_own_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root of a container cannot raise a limit, and the sandbox would fail."""
    monkeypatch.setattr("resource.getrlimit", lambda kind: (500, 500))
    inner = bubblewrap_command.build_inner_argv(SPEC, user=65534, root=True, grouped=True)
    assert {"--nofile=500", "--nproc=500"} <= set(inner)
    monkeypatch.setattr("resource.getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    inner = bubblewrap_command.build_inner_argv(SPEC, user=65534, root=True, grouped=True)
    assert f"--nproc={bubblewrap_command.MAX_PROCESSES_OF_NOBODY}" in inner


def test_without_libseccomp_the_missing_filter_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """bubblewrap then gives up one of its guarantees, and names the package."""
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    monkeypatch.setattr(seccomp, "find_problem", seccomp.find_problem.__wrapped__)
    (stated,) = [loss for loss in bubblewrap.Bubblewrap().limitations if "not filtered" in loss]
    assert "libseccomp2" in stated


LONG_AGO = int(time.time() - owner.MAX_LIFE_S) - 60


def test_name_is_leftover_if_its_maker_is_dead() -> None:
    """A dead or reused process id makes a leftover. A name that is not ours never is one."""
    assert not owner.is_leftover(owner.make_name())
    assert not owner.is_leftover(name_of(made=LONG_AGO))
    assert owner.is_leftover(name_of(start=1))
    assert owner.is_leftover(name_of(pid=4194305))
    for name in ("reprobot-selftest", "reprobot-1-2", name_of(prefix="other", start=1), f"{name_of(start=1)}-suffix"):
        assert not owner.is_leftover(name)


@pytest.mark.parametrize("space", ["0123abcd.4026531836", "{boot}.1", "0123abcd.{namespace}"])
def test_name_from_elsewhere_is_leftover_only_after_a_day(space: str) -> None:
    """A process id of another PID namespace or boot says nothing about the processes here, dead or alive."""
    boot, namespace = owner.make_name().split("-")[3].split(".")
    elsewhere = space.format(boot=boot, namespace=namespace)
    assert not owner.is_leftover(name_of(space=elsewhere))
    assert not owner.is_leftover(name_of(space=elsewhere, pid=4194305))
    assert owner.is_leftover(name_of(space=elsewhere, made=LONG_AGO))


def test_only_directories_of_dead_makers_are_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories of living processes and other names stay."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = [tmp_path / owner.make_name(), tmp_path / "reprobot-notes"]
    dead = tmp_path / name_of(pid=4194305)
    for path in (*kept, dead):
        path.mkdir()
    assert owner.find_leftover_directories() == [dead]


class TestsOfControlGroups:
    """Version 2, on a tree of ordinary files, because this machine may have version 1."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "cgroup.controllers").write_text("memory pids")
        (tmp_path / "cgroup.subtree_control").write_text("")
        return tmp_path

    def test_group_limits_are_written_to_the_kernels_files(self, root: Path) -> None:
        """Memory, no swap, processes. The controllers are enabled in the parent first."""
        group = cgroup.create_group("reprobot-1-2-3", SPEC.limits, root=root)
        assert group.parent_path == "/reprobot-1-2-3"
        written = {path.name: path.read_text() for path in (root / "reprobot-1-2-3").iterdir()}
        assert written == {"pids.max": "7", "memory.max": "1000", "memory.swap.max": "0"}
        assert (root / "cgroup.subtree_control").read_text() == "+memory +pids"

    @pytest.mark.parametrize(("events", "ran_out"), [("oom 3\noom_kill 0\n", False), ("oom 1\noom_kill 2\n", True)])
    def test_only_a_kill_counts_as_running_out_of_memory(self, root: Path, events: str, ran_out: bool) -> None:
        """Reaching the limit without a kill does not count."""
        group = cgroup.create_group("reprobot-1-2-3", SPEC.limits, root=root)
        (root / "reprobot-1-2-3" / "memory.events").write_text(events)
        assert group.ran_out_of_memory() is ran_out

    def test_peak_is_zero_on_kernels_without_a_peak(self, root: Path) -> None:
        """Older kernels have no such file: the peak is unknown, not wrong."""
        group = cgroup.create_group("reprobot-1-2-3", SPEC.limits, root=root)
        assert group.read_peak_bytes() == 0
        (root / "reprobot-1-2-3" / "memory.peak").write_text("4096\n")
        assert group.read_peak_bytes() == 4096

    def test_processor_time_is_read_from_cpu_stat(self, root: Path) -> None:
        """In seconds. Every group has this file."""
        group = cgroup.create_group("reprobot-1-2-3", SPEC.limits, root=root)
        (root / "reprobot-1-2-3" / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
        assert group.read_cpu_s() == 2.5

    def test_group_of_another_user_stays_and_is_not_reported_as_removed(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An ordinary user meets such a group where root's run was killed. That is no error."""

        def refuse(pid: int, number: int) -> None:
            raise PermissionError

        (root / "reprobot-1-2-3").mkdir()
        (root / "reprobot-1-2-3" / "cgroup.procs").write_text("4194305\n")
        monkeypatch.setattr(os, "kill", refuse)
        monkeypatch.setattr(cgroup, "_REMOVE_S", 0.05)
        assert not cgroup.remove_group("reprobot-1-2-3", root)
        (root / "reprobot-1-2-3" / "cgroup.procs").unlink()
        assert cgroup.remove_group("reprobot-1-2-3", root)

    def test_missing_right_to_make_groups_is_explained(self, tmp_path: Path) -> None:
        """The engine's limitations show the reason."""
        assert "no control group of our own" in (cgroup.find_problem(tmp_path / "absent") or "")


def test_bubblewrap_refuses_a_named_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows the host's system, so it cannot run in the image, and must not silently run elsewhere."""
    monkeypatch.setenv("REPROBOT_IMAGE", "localhost/reprobot-runner")
    refusal = bubblewrap.Bubblewrap().find_problem()
    assert refusal is not None
    assert "localhost/reprobot-runner" in refusal


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("label", "refusal"),
    [("io.reprobot.stage=runner", None), ("io.reprobot.stage=bot", "not one of our runner images"), ("x=y", "label")],
)
def test_only_images_with_the_runner_label_are_accepted(label: str, refusal: str | None, tmp_path: Path) -> None:
    """Any other image is refused with the way to get a runner image, before any command runs in it."""
    if shutil.which("podman") is None or os.geteuid() != 0:
        pytest.skip("needs podman, as root")
    name = f"localhost/{owner.make_name()}:x"
    archive = tmp_path / "empty.tar"
    tarfile.open(archive, "w").close()
    subprocess.run(
        ["podman", "import", f"--change=LABEL {label}", str(archive), name], check=True, capture_output=True
    )
    try:
        why = containers._find_image_problem("podman", name)
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=False, capture_output=True)
    assert (why is None) == (refusal is None)
    assert (refusal or "") in (why or "")


@pytest.mark.parametrize("name", ["--volume=/:/host", "-v", "a b", "$(id)", "x" * 300])
def test_image_name_that_could_be_an_option_is_refused(name: str) -> None:
    """podman gets the name among its arguments: a name must not become another argument."""
    assert "is no name of an image" in (containers._find_image_problem("podman", name) or "")


@pytest.mark.sandbox
def test_missing_image_is_reported() -> None:
    """No sandbox works then: neither another image nor the host's system is used instead."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    engine = containers.ContainerEngine(name="podman", image_name="localhost/nobody-made-this:1")
    assert "podman has no image localhost/nobody-made-this:1" in (engine.find_problem() or "")


def test_first_process_that_is_killed_at_the_start_is_an_infrastructure_error() -> None:
    """bwrap tells the number of a process that is dead by the time that we read it."""
    with subprocess.Popen(["/bin/true"], stderr=subprocess.PIPE) as dead:
        dead.wait()
        reader, writer = os.pipe()
        os.write(writer, json.dumps({"child-pid": dead.pid}).encode() + b"\n")
        os.close(writer)
        with os.fdopen(reader, "rb") as status:
            running = bubblewrap._RunningBwrap(dead, status)
            with pytest.raises(InfraError, match="its first process was killed"):
                running.join_group(None)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "engine",
    [containers.ContainerEngine(name="docker"), containers.ContainerEngine(name="podman")],
    ids=lambda engine: engine.name,
)
def test_client_that_is_killed_before_the_first_request_is_an_infrastructure_error(
    engine: containers.ContainerEngine,
) -> None:
    """Nothing collects the dead client before its end is read: another process may get its number."""
    if (why := engine.find_problem()) is not None:
        pytest.skip(why)
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=20), run_id="killed")
    with engine.open_session(spec) as session:
        session.process.kill()
        with pytest.raises(InfraError, match="run failed"):
            session.send_request(b"", spec.limits)


# ------------------------------------------------------------------------------------------- filters


@pytest.mark.sandbox
def test_filters_read_the_whole_output_of_the_last_step(engine: Engine, layout: Layout) -> None:
    """The recorded output of a step is bounded, and the row that the filter counts may be in the middle."""
    source = "import sys\nfor at in range(100_000):\n    print(at, 'here' if at == 50_000 else '-')\n"
    source += "print('here', file=sys.stderr)\n"
    expected = {"| grep -c here": "1", "2>&1 | grep -c here": "2", "| grep here | head -1": "50000 here"}
    for filters, left in expected.items():
        first, last = run_filtered(engine, layout, source, filters, LIMITS).steps
        assert first.filtered is msgspec.UNSET
        assert (last.filtered, last.truncated, last.ended) == (left, True, Exited(code=0))


@pytest.mark.sandbox
def test_filters_leave_nothing_of_a_step_that_its_limit_ended(engine: Engine, layout: Layout) -> None:
    """The rows that the program did not get to print may be the rows that the report counts."""
    source = "import time\nprint('here', flush=True)\ntime.sleep(1000)\n"
    *_, last = run_filtered(engine, layout, source, "| grep -c here", FLOODING).steps
    assert isinstance(last.ended, TimedOut)
    assert (last.stdout, last.filtered) == ("here\n", msgspec.UNSET)


def run_filtered(engine: Engine, layout: Layout, source: str, filters: str, limits: Limits) -> ProbeResult:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"repro.py": source},
        steps=(("python", "-c", "print('here')"), ("python", "repro.py")),
        filters=filters,
    )
    return run_probe(engine, layout, Task(testcase=testcase, tools=TOOLS, limits=limits), run_id="filters")
