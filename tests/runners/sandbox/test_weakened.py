"""The kit can fail: each protection, taken away alone, turns its attack red."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners import probe
from runners.probe import Layout
from runners.sandbox import bubblewrap, cgroup, containers, meter, seccomp
from runners.sandbox.contract import Engine
from runners.sandbox.select import engines
from tests.runners.sandbox.attacks import ATTACKS, PRELUDE
from tests.runners.sandbox.conftest import run_source

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


def replaced(module: Any, word: str, by: str) -> Weaken:
    return edit(module, lambda words: [by if one == word else one for one in words])


def guest(file: str, old: str, new: str) -> Weaken:
    """Change one of the programs that guard the steps."""

    def weaken(patch: pytest.MonkeyPatch, directory: Path) -> None:
        weak = directory / "guest"
        shutil.copytree(probe.GUEST, weak, ignore=shutil.ignore_patterns("__pycache__"))
        source = (weak / file).read_text()
        assert old in source
        (weak / file).write_text(source.replace(old, new))
        weak.chmod(0o755)
        patch.setattr(probe, "GUEST", weak)

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
    patch.setattr(meter, "watch", lambda total, cpu_s: None)


DUMPABLE = guest("supervisor.py", "(PR_SET_DUMPABLE, 0)", "(PR_SET_DUMPABLE, 1)")
LEAKY = guest("processes.py", "os.dup2(outputs[0], 1)", "os.dup2(outputs[0], 1); os.dup2(1, 9)")

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
    ("podman", "the host's network", "interfaces"): replaced(containers, "--network=none", "--network=host"),
    ("podman", "the default filter", "new-namespaces"): without(containers, "--security-opt=seccomp"),
    ("podman", "no --cap-drop", "who-am-i"): without(containers, "--cap-drop"),
    ("podman", "no --user", "who-am-i"): without(containers, "--user"),
    ("podman", "new privileges", "who-am-i"): without(containers, "--security-opt=no-new-privileges"),
    ("podman", "no size", "fill-the-disk"): edit(containers, roomy_tmpfs),
    ("podman", "dumpable supervisor", "read-the-supervisor"): DUMPABLE,
    ("podman", "inherited records", "descriptors"): LEAKY,
}


def usable(name: str) -> Engine:
    (engine,) = [engine for engine in engines() if engine.name == name]
    why = engine.unusable()
    if why is not None:
        pytest.skip(why)
    return engine


@pytest.mark.parametrize("case", WEAKENED, ids=lambda case: " ".join(case))
def test_without_one_protection_its_attack_is_noticed(
    case: tuple[str, str, str], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that stays green on a weakened engine would prove nothing on a whole one."""
    name, _, attack_name = case
    engine = usable(name)
    if cgroup.unavailable() is not None:
        pytest.skip("as an ordinary user there is less to take away")
    (attack,) = [attack for attack in ATTACKS if attack.name == attack_name]
    WEAKENED[case](monkeypatch, tmp_path)
    found = run_source(engine, layout, PRELUDE + attack.source, limits=attack.limits)
    assert not (attack.ended(found.ended) and all(attack.check(step) for step in found.steps)), found
