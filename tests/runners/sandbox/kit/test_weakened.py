"""The kit can fail: each protection, taken away alone, turns its attack red."""

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
from runners.sandbox import bubblewrap
from runners.sandbox.containers import (
    command_line as run_command,
    engine as containers,
    podman_store,
    session as running,
)
from runners.sandbox.contract import Engine, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time, seccomp
from runners.sandbox.select import engines, sweep
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.attacks import ATTACKS, PRELUDE
from tests.runners.sandbox.test_lifecycle import SLEEP, guests, traces, wait_until

pytestmark = pytest.mark.sandbox

Weaken = Callable[[pytest.MonkeyPatch, Path], None]


def edit(module: Any, change: Callable[[list[str]], list[str]]) -> Weaken:
    """Change the command line that an engine builds."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = module.command_line
        patch.setattr(module, "command_line", lambda *args, **named: change(build(*args, **named)))

    return weaken


def without(module: Any, *prefixes: str) -> Weaken:
    """Leave out the options that begin so (with their values, where those are part of the word)."""
    return edit(module, lambda words: [word for word in words if not word.startswith(prefixes)])


def mounted_afresh(weaken: Weaken) -> Weaken:
    """What podman makes in the skeleton to mount on stays there, and gives the next mount its mode."""

    def weakened(patch: pytest.MonkeyPatch, directory: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            (podman_store.unpacked() / "var" / "tmp").rmdir()
        weaken(patch, directory)

    return weakened


def replaced(module: Any, word: str, by: str) -> Weaken:
    return edit(module, lambda words: [by if one == word else one for one in words])


def guest(file: str, old: str, new: str) -> Weaken:
    """Change one of the programs that guard the steps."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        weak = directory / "guest"
        shutil.copytree(inside.GUEST, weak, ignore=shutil.ignore_patterns("__pycache__"))
        source = (weak / file).read_text()
        assert old in source
        (weak / file).write_text(source.replace(old, new))
        weak.chmod(0o755)
        patch.setattr(inside, "GUEST", weak)

    return weaken


def no_filter(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(seccomp, "unavailable", lambda: "taken away")


def no_drop(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Capabilities and root stay."""
    build = bubblewrap.inner_argv
    patch.setattr(bubblewrap, "inner_argv", lambda spec, *, root, grouped: build(spec, root=False, grouped=grouped))
    patch.setattr(bubblewrap, "identity_options", lambda **_: [])


def no_group(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(bubblewrap, "_no_cgroup", lambda: "taken away")


def roomy(words: list[str]) -> list[str]:
    """bwrap without ``--size N`` for its tmpfs."""
    drop = {index for index, word in enumerate(words) if word == "--size"}
    return [word for index, word in enumerate(words) if index not in drop and index - 1 not in drop]


def roomy_tmpfs(words: list[str]) -> list[str]:
    return [word.split(":")[0] + ":rw,exec,mode=1777" if word.startswith("--tmpfs=") else word for word in words]


def uncounted(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Nobody looks at what the whole tree has had."""
    patch.setattr(cpu_time, "watch", lambda total, cpu_s: None)


DUMPABLE = guest("probe/supervisor.py", "(PR_SET_DUMPABLE, 0)", "(PR_SET_DUMPABLE, 1)")


def together(*ways: Weaken) -> Weaken:
    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        for way in ways:
            way(patch, directory)

    return weaken


def without_pair(module: Any, first: str, count: int) -> Weaken:
    """Leave out an option and the words that follow it."""

    def change(words: list[str]) -> list[str]:
        gone = {place + more for place, word in enumerate(words) if word == first for more in range(count + 1)}
        return [word for place, word in enumerate(words) if place not in gone]

    return edit(module, change)


def inside_bwrap(word: str, by: str | None = None) -> Weaken:
    """Change or leave out a word of what bwrap executes."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = bubblewrap.inner_argv

        def weak(*args: Any, **named: Any) -> list[str]:
            words = build(*args, **named)
            assert any(one.startswith(word) for one in words)
            return [by or "" if one.startswith(word) else one for one in words if by or not one.startswith(word)]

        patch.setattr(bubblewrap, "inner_argv", weak)

    return weaken


def as_given(word: str, value: str) -> Weaken:
    """Another value for an option of what bwrap executes, whose value is the next word."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        build = bubblewrap.inner_argv

        def weak(*args: Any, **named: Any) -> list[str]:
            words: list[str] = build(*args, **named)
            words[words.index(word) + 1] = value
            return words

        patch.setattr(bubblewrap, "inner_argv", weak)

    return weaken


def stays_writable(place: str) -> Weaken:
    """Leave out one of bwrap's two ``--remount-ro``."""

    def change(words: list[str]) -> list[str]:
        at = next(n for n, word in enumerate(words) if word == "--remount-ro" and words[n + 1] == place)
        return words[:at] + words[at + 2 :]

    return edit(bubblewrap, change)


def raised(limit: str) -> Weaken:
    """A container's limit above ours; without any, podman asks for more than every root may give."""
    name, value = limit.split("=")
    more = int(value) + 1000
    return replaced(running, f"--ulimit={name}={value}:{value}", f"--ulimit={name}={more}:{more}")


def no_limits_but_memory(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """The group's own limit on processes is as good as none."""
    make = cgroup.create

    def create(name: str, limits: Limits, *, root: Path = cgroup.ROOT) -> cgroup.Cgroup:
        return make(name, msgspec.structs.replace(limits, processes=10_000), root=root)

    patch.setattr(cgroup, "create", create)


def ungrouped(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Podman's own limits alone, as where no control group can be made."""
    way = containers._way(containers.Containers(name="podman"))[0]
    client = tuple(word for word in way.client if word != "--cgroup-manager=cgroupfs")
    weak = run_command.Way(client=(*client, "--cgroup-manager=cgroupfs"), grouped=False, own_store=True)
    patch.setattr(containers, "_way", lambda _: (weak, None))


LEAKY = guest("probe/processes.py", "os.dup2(outputs[0], 1)", "os.dup2(outputs[0], 1); os.dup2(1, 9)")

WEAKENED: dict[tuple[str, str, str], Weaken] = {
    ("bubblewrap", "no --unshare-net", "interfaces"): without(bubblewrap, "--unshare-net"),
    ("bubblewrap", "no --unshare-uts", "other-processes"): without(
        bubblewrap, "--unshare-uts", "--hostname", "sandbox"
    ),
    ("bubblewrap", "no seccomp", "new-namespaces"): no_filter,
    ("bubblewrap", "no seccomp", "raw-and-odd-sockets"): no_filter,
    ("bubblewrap", "no drop of privileges", "who-am-i"): no_drop,
    ("bubblewrap", "no control group", "memory-bomb"): no_group,
    ("bubblewrap", "no size", "fill-the-disk"): edit(bubblewrap, roomy),
    ("bubblewrap", "dumpable supervisor", "read-the-supervisor"): DUMPABLE,
    ("bubblewrap", "inherited records", "descriptors"): LEAKY,
    ("bubblewrap", "no watch over processor time", "burn-in-children-that-die-unseen"): uncounted,
    ("podman", "no watch over processor time", "burn-in-children-that-die-unseen"): uncounted,
    ("bubblewrap", "no --unshare-ipc", "namespaces-of-its-own"): without(bubblewrap, "--unshare-ipc"),
    ("bubblewrap", "no --unshare-cgroup", "namespaces-of-its-own"): without(bubblewrap, "--unshare-cgroup"),
    ("bubblewrap", "no --unshare-pid", "namespaces-of-its-own"): without(bubblewrap, "--unshare-pid", "--as-pid-1"),
    ("bubblewrap", "no --as-pid-1", "read-the-supervisor"): without(bubblewrap, "--as-pid-1"),
    ("bubblewrap", "no --hostname", "other-processes"): without_pair(bubblewrap, "--hostname", 1),
    ("bubblewrap", "no --new-session", "session-of-its-own"): without(bubblewrap, "--new-session"),
    ("bubblewrap", "writable mounts", "table-of-mounts"): replaced(bubblewrap, "--ro-bind", "--bind"),
    ("bubblewrap", "uid stays", "who-am-i"): as_given("--reuid", "0"),
    ("bubblewrap", "gid stays", "who-am-i"): as_given("--regid", "0"),
    ("bubblewrap", "groups of root", "who-am-i"): inside_bwrap("--clear-groups", "--groups=0"),
    ("bubblewrap", "no --remount-ro /", "table-of-mounts"): stays_writable("/"),
    ("bubblewrap", "bounding set stays", "who-am-i"): inside_bwrap("--bounding-set"),
    ("bubblewrap", "no --core", "limits-of-the-supervisor"): inside_bwrap("--core"),
    ("bubblewrap", "no --fsize", "limits-of-the-supervisor"): inside_bwrap("--fsize"),
    ("bubblewrap", "no --nofile", "limits-of-the-supervisor"): inside_bwrap("--nofile"),
    ("bubblewrap", "no --nproc", "limits-of-the-supervisor"): inside_bwrap("--nproc"),
    ("podman", "the host's control groups", "namespaces-of-its-own"): replaced(
        running, "--cgroupns=private", "--cgroupns=host"
    ),
    ("podman", "no --read-only", "table-of-mounts"): without(running, "--read-only"),
    ("podman", "no --read-only-tmpfs", "write-anywhere"): mounted_afresh(without(running, "--read-only-tmpfs")),
    ("podman", "writable mounts", "table-of-mounts"): edit(
        running, lambda words: [word.replace(",ro=true", "") for word in words]
    ),
    ("podman", "no --no-hosts", "names-of-the-host"): without(running, "--no-hosts"),
    ("podman", "no --hostname", "other-processes"): without(running, "--hostname"),
    ("podman", "no --shm-size", "fill-the-disk"): without(running, "--shm-size"),
    ("podman", "no --cgroup-parent", "memory-bomb-in-children"): without(running, "--cgroup-parent"),
    ("podman", "ungrouped, no --memory", "memory-bomb-in-children"): together(
        ungrouped, without(running, "--memory")
    ),
    ("podman", "no core", "limits-of-the-supervisor"): without(running, "--ulimit=core"),
    ("podman", "no fsize", "limits-of-the-supervisor"): without(running, "--ulimit=fsize"),
    ("podman", "no nofile", "limits-of-the-supervisor"): raised("nofile=4096"),
    ("podman", "no nproc", "limits-of-the-supervisor"): raised("nproc=16384"),
    ("podman", "the host's network", "interfaces"): replaced(running, "--network=none", "--network=host"),
    ("podman", "the default filter", "new-namespaces"): without(running, "--security-opt=seccomp"),
    ("podman", "no --cap-drop", "who-am-i"): without(running, "--cap-drop"),
    ("podman", "no --user", "who-am-i"): without(running, "--user"),
    ("podman", "new privileges", "who-am-i"): without(running, "--security-opt=no-new-privileges"),
    ("podman", "no size", "fill-the-disk"): edit(running, roomy_tmpfs),
    ("podman", "dumpable supervisor", "read-the-supervisor"): DUMPABLE,
    ("podman", "inherited records", "descriptors"): LEAKY,
}


DOUBLED: dict[tuple[str, str, str], tuple[Weaken, Weaken]] = {
    # engine, a protection and the one that covers for it, attack: taken away one after the other
    ("bubblewrap", "--remount-ro /dev by the user", "write-anywhere"): (stays_writable("/dev"), no_drop),
    ("podman", "--pids-limit by the group", "thread-bomb"): (
        replaced(running, f"--pids-limit={LIMITS.processes}", "--pids-limit=10000"),
        no_limits_but_memory,
    ),
}


def usable(name: str) -> Engine:
    (engine,) = [engine for engine in engines() if engine.name == name]
    why = engine.unusable()
    if why is not None:
        pytest.skip(why)
    return engine


def holds(engine: Engine, layout: Layout, attack_name: str) -> bool:
    """Whether the attack is contained and its end told truthfully."""
    (attack,) = [attack for attack in ATTACKS if attack.name == attack_name]
    found = run_source(engine, layout, PRELUDE + attack.source, limits=attack.limits)
    return bool(attack.ended(found.ended) and found.steps and all(attack.check(step) for step in found.steps))


@pytest.mark.parametrize("case", WEAKENED, ids=lambda case: " ".join(case))
def test_without_one_protection_its_attack_is_noticed(
    case: tuple[str, str, str], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that stays green on a weakened engine would prove nothing on a whole one."""
    name, _, attack = case
    engine = usable(name)
    if cgroup.unavailable() is not None:
        pytest.skip("as an ordinary user there is less to take away")
    WEAKENED[case](monkeypatch, tmp_path)
    assert not holds(engine, layout, attack)


@pytest.mark.parametrize("case", DOUBLED, ids=lambda case: " ".join(case))
def test_a_protection_that_another_covers_for_is_missed_when_both_are_gone(
    case: tuple[str, str, str], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may fail and nothing happens: that, too, is shown."""
    name, _, attack = case
    engine = usable(name)
    if cgroup.unavailable() is not None:
        pytest.skip("as an ordinary user there is less to take away")
    first, other = DOUBLED[case]
    first(monkeypatch, tmp_path)
    assert holds(engine, layout, attack)
    other(monkeypatch, tmp_path)
    assert not holds(engine, layout, attack)


# ------------------------------------------------------------------------------- when we are killed, and around it

ORPHAN = """
import sys
from runners.core.protocol import Limits
from runners.sandbox import bubblewrap
from runners.sandbox.containers import session as running
from runners.sandbox.contract import SandboxSpec
from runners.sandbox.select import select_engine
engine, changes = select_engine(sys.argv[1]), [change.split(">") for change in sys.argv[2:]]
def weak(build):
    def built(*args, **named):
        text = "\\n".join(build(*args, **named)) + "\\n"
        for old, new in changes:
            text = text.replace(old.replace(" ", "\\n") + "\\n", new and new + "\\n")
        return text[:-1].split("\\n")
    return built
bubblewrap.command_line, running.command_line = weak(bubblewrap.command_line), weak(running.command_line)
engine.run(SandboxSpec(argv=("/usr/bin/env", "sleep", "7919"), mounts=(), limits=Limits(wall_s=100), run_id="orphan"))
"""
"""A host whose guest does not listen to it: a plain ``sleep`` instead of the supervisor. Arguments: OLD>NEW words."""

SOON = "--timeout=160>--timeout=3"
ORPHANS: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "bubblewrap, whole": ("bubblewrap", (), False),
    "bubblewrap, no --die-with-parent": ("bubblewrap", ("--die-with-parent>",), True),
    "podman, whole": ("podman", (SOON,), False),
    "podman, no --timeout": ("podman", ("--timeout=160>",), True),
}


@contextlib.contextmanager
def orphan(name: str, changes: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """A guest that does not listen, and whose host was killed."""
    usable(name)
    with subprocess.Popen([sys.executable, "-c", ORPHAN, name, *changes]) as host:
        try:
            assert wait_until(guests), "the guest did not start"
        finally:
            host.kill()
    try:
        yield host
    finally:
        for pid in guests():
            os.kill(pid, signal.SIGKILL)
        sweep()


def wrappers() -> list[str]:
    """Living bwrap processes that run such a guest."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().decode("utf-8", "replace"))
    return [line for line in lines if line.startswith("bwrap\0") and line.endswith(f"sleep\0{SLEEP}\0")]


@pytest.mark.parametrize("case", ORPHANS)
def test_an_engine_ends_by_itself_when_we_are_killed(case: str) -> None:
    """bwrap dies with us, a container at its own time-out. Without the option they stay.

    As root that is all bwrap can do: having no capabilities left, it may not signal a process of nobody's. What runs
    in it normally ends because the supervisor listens for our end; what doesn't listen, the next sweep ends.
    """
    name, changes, stays = ORPHANS[case]
    left = wrappers if name == "bubblewrap" else guests
    if not stays:
        with orphan(name, changes):
            assert wait_until(lambda: not left(), 6.0)
        return
    for _ in range(3):  # the sweep of any other run on this machine ends those that stay
        with orphan(name, changes):
            if not wait_until(lambda: not left(), 1.5):
                return
    pytest.fail("it ended although the option was left out, three times")


def test_sweeping_ends_a_guest_that_does_not_listen(engine: Engine) -> None:
    """By its control group, or by the container's name."""
    with orphan(engine.name, ()) as host:
        sweep()
        assert wait_until(lambda: not guests(), 2.0)
        assert traces(host.pid) == []


OURS = {"PATH", "HOME", "PWD", "HOSTNAME", "TERM", "container", "SHLVL", "OLDPWD", "_"}


def inherited(engine: Engine) -> set[str]:
    """Names of variables that a sandbox's first process has and that are not those of the contract."""
    report = engine.run(SandboxSpec(argv=("/usr/bin/env",), mounts=(), limits=LIMITS, run_id="environment"))
    return {line.partition("=")[0] for line in report.stdout.decode().splitlines()} - OURS


def keep_environment(patch: pytest.MonkeyPatch) -> None:
    """bwrap itself gets ours; ``--clearenv`` is then what keeps it out."""
    real = subprocess.Popen

    def start(words: list[str], **named: Any) -> subprocess.Popen[bytes]:
        if words[0] == "bwrap":
            named["env"] = None
        return real(words, **named)

    patch.setattr(subprocess, "Popen", start)


def test_no_variable_of_ours_reaches_a_first_process(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, which podman hands on by default, may carry a password."""
    monkeypatch.setenv("HTTPS_PROXY", "http://name:password@proxy.example")
    assert inherited(engine) == set()


def test_podman_would_hand_on_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``--http-proxy=false``."""
    monkeypatch.setenv("HTTPS_PROXY", "http://name:password@proxy.example")
    without(running, "--http-proxy")(monkeypatch, tmp_path)
    assert inherited(usable("podman")) == {"HTTPS_PROXY"}


def test_bubblewrap_keeps_our_environment_out_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``--clearenv``, and because bwrap is started with none: only without both does it get in."""
    engine = usable("bubblewrap")
    monkeypatch.setenv("CONFORMANCE_SECRET", "s3cr3t")
    with monkeypatch.context() as patch:
        keep_environment(patch)
        assert inherited(engine) == set()
        without(bubblewrap, "--clearenv")(patch, tmp_path)
        assert "CONFORMANCE_SECRET" in inherited(engine)
    without(bubblewrap, "--clearenv")(monkeypatch, tmp_path)
    assert inherited(engine) == set()
