"""The kit can fail: each protection that is taken away alone makes its attack succeed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runners.core.protocol import Limits
from runners.probe import layout as inside
from runners.probe.layout import Layout
from runners.sandbox import bubblewrap, bubblewrap_command
from runners.sandbox.containers import (
    command_line as run_command,
    engine as containers,
    podman_store,
    session as running,
)
from runners.sandbox.contract import Engine, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time, seccomp
from runners.sandbox.select import list_engines, remove_leftovers
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.attacks import ATTACKS, PRELUDE
from tests.runners.sandbox.test_lifecycle import SLEEP, guests, traces
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sandbox

Weaken = Callable[[pytest.MonkeyPatch, Path], None]


def edit(module: Any, change: Callable[[list[str]], list[str]]) -> Weaken:
    """Change the command line that an engine builds."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = module.build_command_line
        patch.setattr(module, "build_command_line", lambda *args, **named: change(build(*args, **named)))

    return weaken


def without(module: Any, *prefixes: str) -> Weaken:
    """Leave out the options with these prefixes, and values that are part of the same word."""
    return edit(module, lambda words: [word for word in words if not word.startswith(prefixes)])


def with_fresh_mount_point(weaken: Weaken) -> Weaken:
    """Remove podman's mount point for /var/tmp first.

    It would stay in the skeleton and give the next mount its mode.
    """

    def weakened(patch: pytest.MonkeyPatch, directory: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            (podman_store.unpack_skeleton() / "var" / "tmp").rmdir()
        weaken(patch, directory)

    return weakened


def replace_word(module: Any, word: str, by: str) -> Weaken:
    return edit(module, lambda words: [by if one == word else one for one in words])


def edit_guest(file: str, old: str, new: str) -> Weaken:
    """Change one of the guest programs that guard the steps. ``file`` is a path below the guest folder."""
    return edit_guest_files({file: (old, new)})


def edit_guest_files(changes: dict[str, tuple[str, str]]) -> Weaken:
    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        weak = directory / "guest"
        shutil.copytree(inside.GUEST, weak, ignore=shutil.ignore_patterns("__pycache__"))
        for file, (old, new) in changes.items():
            source = (weak / file).read_text()
            assert old in source
            (weak / file).write_text(source.replace(old, new))
        weak.chmod(0o755)
        patch.setattr(inside, "GUEST", weak)

    return weaken


def remove_filter(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(seccomp, "find_problem", lambda: "taken away")


def keep_privileges(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Keep capabilities and root."""
    build = bubblewrap_command.build_inner_argv
    patch.setattr(
        bubblewrap_command,
        "build_inner_argv",
        lambda spec, *, user, root, grouped: build(spec, user=user, root=False, grouped=grouped),
    )
    patch.setattr(bubblewrap_command, "build_identity_options", lambda **_: [])


def remove_group(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(bubblewrap, "_find_cgroup_problem", lambda: "taken away")


def remove_size(words: list[str]) -> list[str]:
    """Leave out ``--size N`` of bwrap's tmpfs."""
    drop = {index for index, word in enumerate(words) if word == "--size"}
    return [word for index, word in enumerate(words) if index not in drop and index - 1 not in drop]


def remove_tmpfs_size(words: list[str]) -> list[str]:
    return [word.split(":")[0] + ":rw,exec,mode=1777" if word.startswith("--tmpfs=") else word for word in words]


def ignore_processor_time(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Do not read the processor time of the whole tree."""
    patch.setattr(cpu_time, "start_meter", lambda total, cpu_s: None)


DUMPABLE = edit_guest("probe/supervisor.py", "(PR_SET_DUMPABLE, 0)", "(PR_SET_DUMPABLE, 1)")


def combine(*parts: Weaken) -> Weaken:
    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        for part in parts:
            part(patch, directory)

    return weaken


def without_pair(module: Any, first: str, count: int) -> Weaken:
    """Leave out an option and the words that follow it."""

    def change(words: list[str]) -> list[str]:
        gone = {place + more for place, word in enumerate(words) if word == first for more in range(count + 1)}
        return [word for place, word in enumerate(words) if place not in gone]

    return edit(module, change)


def edit_inner_word(word: str, by: str | None = None) -> Weaken:
    """Change or leave out a word of the command that bwrap executes."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = bubblewrap_command.build_inner_argv

        def weak(*args: Any, **named: Any) -> list[str]:
            words = build(*args, **named)
            assert any(one.startswith(word) for one in words)
            return [by or "" if one.startswith(word) else one for one in words if by or not one.startswith(word)]

        patch.setattr(bubblewrap_command, "build_inner_argv", weak)

    return weaken


def set_inner_value(word: str, value: str) -> Weaken:
    """Change the value, the next word, of an option of the command that bwrap executes."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = bubblewrap_command.build_inner_argv

        def weak(*args: Any, **named: Any) -> list[str]:
            words: list[str] = build(*args, **named)
            words[words.index(word) + 1] = value
            return words

        patch.setattr(bubblewrap_command, "build_inner_argv", weak)

    return weaken


def keep_writable(place: str) -> Weaken:
    """Leave out one of bwrap's two ``--remount-ro``."""

    def change(words: list[str]) -> list[str]:
        at = next(n for n, word in enumerate(words) if word == "--remount-ro" and words[n + 1] == place)
        return words[:at] + words[at + 2 :]

    return edit(bubblewrap, change)


def raise_limit(limit: str) -> Weaken:
    """Raise a container's limit above ours. Without any limit, podman asks for more than every root may give."""
    name, value = limit.split("=")
    more = int(value) + 1000
    return replace_word(running, f"--ulimit={name}={value}:{value}", f"--ulimit={name}={more}:{more}")


def raise_group_processes(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Raise the group's limit on processes so far that it does not matter."""
    make = cgroup.create_group

    def create(name: str, limits: Limits, *, root: Path = cgroup.ROOT) -> cgroup.Cgroup:
        return make(name, msgspec.structs.replace(limits, processes=10_000), root=root)

    patch.setattr(cgroup, "create_group", create)


def remove_own_group(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Keep podman's own limits alone, as on a machine where no control group can be made."""
    invocation = containers._choose_invocation(containers.ContainerEngine(name="podman"))[0]
    client = tuple(word for word in invocation.client if word != "--cgroup-manager=cgroupfs")
    weak = run_command.Invocation(client=(*client, "--cgroup-manager=cgroupfs"), grouped=False, own_store=True)
    patch.setattr(containers, "_choose_invocation", lambda _: (weak, None))


LEAKY = edit_guest("probe/processes.py", "os.dup2(outputs[0], 1)", "os.dup2(outputs[0], 1); os.dup2(1, 9)")

WEAKENED: dict[tuple[str, str, str], Weaken] = {
    ("bubblewrap", "no --unshare-net", "interfaces"): without(bubblewrap, "--unshare-net"),
    ("bubblewrap", "no --unshare-uts", "other-processes"): without(
        bubblewrap, "--unshare-uts", "--hostname", "sandbox"
    ),
    ("bubblewrap", "no seccomp", "new-namespaces"): remove_filter,
    ("bubblewrap", "no seccomp", "raw-and-odd-sockets"): remove_filter,
    ("bubblewrap", "no drop of privileges", "who-am-i"): keep_privileges,
    ("bubblewrap", "no control group", "memory-bomb"): remove_group,
    ("bubblewrap", "no size", "fill-the-disk"): edit(bubblewrap, remove_size),
    ("bubblewrap", "dumpable supervisor", "read-the-supervisor"): DUMPABLE,
    ("bubblewrap", "inherited records", "descriptors"): LEAKY,
    ("bubblewrap", "no watch over processor time", "burn-in-children-that-die-unseen"): ignore_processor_time,
    ("podman", "no watch over processor time", "burn-in-children-that-die-unseen"): ignore_processor_time,
    ("bubblewrap", "no --unshare-ipc", "namespaces-of-its-own"): without(bubblewrap, "--unshare-ipc"),
    ("bubblewrap", "no --unshare-cgroup", "namespaces-of-its-own"): without(bubblewrap, "--unshare-cgroup"),
    ("bubblewrap", "no --unshare-pid", "namespaces-of-its-own"): without(bubblewrap, "--unshare-pid", "--as-pid-1"),
    ("bubblewrap", "no --as-pid-1", "read-the-supervisor"): without(bubblewrap, "--as-pid-1"),
    ("bubblewrap", "no --hostname", "other-processes"): without_pair(bubblewrap, "--hostname", 1),
    ("bubblewrap", "no --new-session", "session-of-its-own"): without(bubblewrap, "--new-session"),
    ("bubblewrap", "writable mounts", "table-of-mounts"): replace_word(bubblewrap, "--ro-bind", "--bind"),
    ("bubblewrap", "uid stays", "who-am-i"): set_inner_value("--reuid", "0"),
    ("bubblewrap", "gid stays", "who-am-i"): set_inner_value("--regid", "0"),
    ("bubblewrap", "groups of root", "who-am-i"): edit_inner_word("--clear-groups", "--groups=0"),
    ("bubblewrap", "no --remount-ro /", "table-of-mounts"): keep_writable("/"),
    ("bubblewrap", "bounding set stays", "who-am-i"): edit_inner_word("--bounding-set"),
    ("bubblewrap", "no --core", "limits-of-the-supervisor"): edit_inner_word("--core"),
    ("bubblewrap", "no --fsize", "limits-of-the-supervisor"): edit_inner_word("--fsize"),
    ("bubblewrap", "no --nofile", "limits-of-the-supervisor"): edit_inner_word("--nofile"),
    ("bubblewrap", "no --nproc", "limits-of-the-supervisor"): edit_inner_word("--nproc"),
    ("podman", "the host's control groups", "namespaces-of-its-own"): replace_word(
        running, "--cgroupns=private", "--cgroupns=host"
    ),
    ("podman", "no --read-only", "table-of-mounts"): without(running, "--read-only"),
    ("podman", "no --read-only-tmpfs", "write-anywhere"): with_fresh_mount_point(
        without(running, "--read-only-tmpfs")
    ),
    ("podman", "writable mounts", "table-of-mounts"): edit(
        running, lambda words: [word.replace(",ro=true", "") for word in words]
    ),
    ("podman", "no --no-hosts", "names-of-the-host"): without(running, "--no-hosts"),
    ("podman", "no --hostname", "other-processes"): without(running, "--hostname"),
    ("podman", "no --shm-size", "fill-the-disk"): without(running, "--shm-size"),
    ("podman", "no --cgroup-parent", "memory-bomb-in-children"): without(running, "--cgroup-parent"),
    ("podman", "ungrouped, no --memory", "memory-bomb-in-children"): combine(
        remove_own_group, without(running, "--memory")
    ),
    ("podman", "no core", "limits-of-the-supervisor"): without(running, "--ulimit=core"),
    ("podman", "no fsize", "limits-of-the-supervisor"): without(running, "--ulimit=fsize"),
    ("podman", "no nofile", "limits-of-the-supervisor"): raise_limit("nofile=4096"),
    ("podman", "no nproc", "limits-of-the-supervisor"): raise_limit("nproc=16384"),
    ("podman", "the host's network", "interfaces"): replace_word(running, "--network=none", "--network=host"),
    ("podman", "the default filter", "new-namespaces"): without(running, "--security-opt=seccomp"),
    ("podman", "no --cap-drop", "who-am-i"): without(running, "--cap-drop"),
    ("podman", "no --user", "who-am-i"): without(running, "--user"),
    ("podman", "new privileges", "who-am-i"): without(running, "--security-opt=no-new-privileges"),
    ("podman", "no size", "fill-the-disk"): edit(running, remove_tmpfs_size),
    ("podman", "dumpable supervisor", "read-the-supervisor"): DUMPABLE,
    ("podman", "inherited records", "descriptors"): LEAKY,
}


DOUBLED: dict[tuple[str, str, str], tuple[Weaken, Weaken]] = {
    # engine, protection, attack: the protection and the second one that covers for it, removed one after the other
    ("bubblewrap", "--remount-ro /dev by the user", "write-anywhere"): (keep_writable("/dev"), keep_privileges),
    ("podman", "--pids-limit by the group", "thread-bomb"): (
        replace_word(running, f"--pids-limit={LIMITS.processes}", "--pids-limit=10000"),
        raise_group_processes,
    ),
}


def find_usable(name: str) -> Engine:
    (engine,) = [engine for engine in list_engines() if engine.name == name]
    why = engine.find_problem()
    if why is not None:
        pytest.skip(why)
    return engine


def is_contained(engine: Engine, layout: Layout, attack_name: str) -> bool:
    """True if the attack is contained and its end is reported truthfully."""
    (attack,) = [attack for attack in ATTACKS if attack.name == attack_name]
    found = run_source(engine, layout, PRELUDE + attack.source, limits=attack.limits)
    return bool(attack.ended(found.ended) and found.steps and all(attack.check(step) for step in found.steps))


@pytest.mark.parametrize("case", WEAKENED, ids=lambda case: " ".join(case))
def test_attack_succeeds_when_its_protection_is_removed(
    case: tuple[str, str, str], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that is contained on a weakened engine as well would prove nothing on a whole one."""
    name, _, attack = case
    engine = find_usable(name)
    if cgroup.find_problem() is not None:
        pytest.skip("as an ordinary user there is less to take away")
    WEAKENED[case](monkeypatch, tmp_path)
    assert not is_contained(engine, layout, attack)


@pytest.mark.parametrize("case", DOUBLED, ids=lambda case: " ".join(case))
def test_attack_succeeds_when_both_protections_are_removed(
    case: tuple[str, str, str], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one of the two protections gone, the attack is still contained."""
    name, _, attack = case
    engine = find_usable(name)
    if cgroup.find_problem() is not None:
        pytest.skip("as an ordinary user there is less to take away")
    first, other = DOUBLED[case]
    first(monkeypatch, tmp_path)
    assert is_contained(engine, layout, attack)
    other(monkeypatch, tmp_path)
    assert not is_contained(engine, layout, attack)


# ------------------------------------------------------------------------------------------- killed hosts

ORPHAN = """
import os, sys, types
from runners.core.protocol import Limits
from runners.sandbox import bubblewrap, owner
from runners.sandbox.containers import session as running
from runners.sandbox.contract import SandboxSpec
from runners.sandbox.select import select_engine
engine, changes = select_engine(sys.argv[1]), [change.split(">") for change in sys.argv[3:]]
owner.os = types.SimpleNamespace(**{**vars(os), "getpid": lambda: int(sys.argv[2])})
def weak(build):
    def built(*args, **named):
        text = "\\n".join(build(*args, **named)) + "\\n"
        for old, new in changes:
            text = text.replace(old.replace(" ", "\\n") + "\\n", new and new + "\\n")
        return text[:-1].split("\\n")
    return built
for module in (bubblewrap, running):
    module.build_command_line = weak(module.build_command_line)
argv = ("/usr/bin/env", "sleep", "SLEEP")
engine.run(SandboxSpec(argv=argv, mounts=(), limits=Limits(wall_s=100), run_id="orphan"))
""".replace("SLEEP", str(SLEEP))
"""A host whose guest ignores its input: a plain ``sleep`` instead of the supervisor. Arguments: engine, the process
that the names of its resources tell, OLD>NEW words."""

SOON = "--timeout=160>--timeout=3"
ORPHANS: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "bubblewrap, whole": ("bubblewrap", (), False),
    "bubblewrap, no --die-with-parent": ("bubblewrap", ("--die-with-parent>",), True),
    "podman, whole": ("podman", (SOON,), False),
    "podman, no --timeout": ("podman", ("--timeout=160>",), True),
}


@contextlib.contextmanager
def start_orphan(name: str, changes: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a guest that ignores its input, kill its host, and return the process that counts as its maker.

    While the maker lives, `remove_leftovers` of any other run on this machine leaves the guest alone.
    """
    find_usable(name)
    with subprocess.Popen(["sleep", "1000"]) as maker:
        try:
            with subprocess.Popen([sys.executable, "-c", ORPHAN, name, str(maker.pid), *changes]) as host:
                try:
                    assert wait_until(guests), "the guest did not start"
                finally:
                    host.kill()
            yield maker
        finally:
            maker.kill()  # `Popen.__exit__` waits: a process that ended, but was not waited for, counts as alive
            for pid in guests():
                os.kill(pid, signal.SIGKILL)
    remove_leftovers()


def find_wrappers() -> list[str]:
    """Return command lines of living bwrap processes that run such a guest."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().decode("utf-8", "replace"))
    return [line for line in lines if line.startswith("bwrap\0") and line.endswith(f"sleep\0{SLEEP}\0")]


@pytest.mark.parametrize("case", ORPHANS)
def test_engine_ends_by_itself_when_its_host_is_killed(case: str) -> None:
    """bwrap dies with its host, a container at its own time-out. Without the option they stay.

    As root bwrap cannot do more: it has no capabilities left, so it may not signal a process of "nobody". The
    supervisor normally ends the guest because it notices the end of the host. A guest that ignores its input is ended
    by the next `remove_leftovers`.
    """
    name, changes, stays = ORPHANS[case]
    left = find_wrappers if name == "bubblewrap" else guests
    with start_orphan(name, changes):
        assert wait_until(lambda: not left(), 1.5 if stays else 6.0) is not stays


def test_remove_leftovers_ends_a_guest_that_ignores_its_input(engine: Engine) -> None:
    """By its control group, or by the name of the container."""
    with start_orphan(engine.name, ()) as maker:
        assert traces(maker.pid), "its names do not tell the maker"
        maker.kill()
        maker.wait()
        remove_leftovers()
        assert wait_until(lambda: not guests(), 2.0)
        assert traces(maker.pid) == []


OURS = {"PATH", "HOME", "PWD", "HOSTNAME", "TERM", "container", "SHLVL", "OLDPWD", "_"}


def list_foreign_variables(engine: Engine) -> set[str]:
    """Return names of variables of a sandbox's first process that are not in the contract."""
    report = engine.run(SandboxSpec(argv=("/usr/bin/env",), mounts=(), limits=LIMITS, run_id="environment"))
    return {line.partition("=")[0] for line in report.stdout.decode().splitlines()} - OURS


def keep_environment(patch: pytest.MonkeyPatch) -> None:
    """Give bwrap our environment, so that ``--clearenv`` alone keeps it out."""
    real = subprocess.Popen

    def start(words: list[str], **named: Any) -> subprocess.Popen[bytes]:
        if words[0] == "bwrap":
            named["env"] = None
        return real(words, **named)

    patch.setattr(subprocess, "Popen", start)


def test_first_process_gets_no_variable_of_ours(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Podman hands on proxy variables by default, and these may carry a password."""
    monkeypatch.setenv("HTTPS_PROXY", "http://name:password@proxy.example")
    assert list_foreign_variables(engine) == set()


def test_podman_hands_on_the_proxy_without_http_proxy_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the option is needed."""
    monkeypatch.setenv("HTTPS_PROXY", "http://name:password@proxy.example")
    without(running, "--http-proxy")(monkeypatch, tmp_path)
    assert list_foreign_variables(find_usable("podman")) == {"HTTPS_PROXY"}


def test_bubblewrap_keeps_our_environment_out_in_two_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--clearenv`` and bwrap's empty environment: our variables get in only without both."""
    engine = find_usable("bubblewrap")
    monkeypatch.setenv("CONFORMANCE_SECRET", "s3cr3t")
    with monkeypatch.context() as patch:
        keep_environment(patch)
        assert list_foreign_variables(engine) == set()
        without(bubblewrap, "--clearenv")(patch, tmp_path)
        assert "CONFORMANCE_SECRET" in list_foreign_variables(engine)
    without(bubblewrap, "--clearenv")(monkeypatch, tmp_path)
    assert list_foreign_variables(engine) == set()
