"""Every option of an engine's command line is a protection that a test misses, or is none, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sandbox import bubblewrap
from runners.sandbox.containers import command_line as run_command
from runners.sandbox.contract import Mount, SandboxSpec
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.test_weakened import DOUBLED, ORPHANS, WEAKENED

pytestmark = pytest.mark.sandbox  # asks bwrap which options it has

SPEC = SandboxSpec(argv=("/bin/true",), mounts=(Mount(host=Path("/usr"), guest="/usr"),), limits=LIMITS, run_id="x")

MISSED = {
    "bubblewrap": {
        "--unshare-ipc": "no --unshare-ipc",
        "--unshare-pid": "no --unshare-pid",
        "--unshare-net": "no --unshare-net",
        "--unshare-uts": "no --unshare-uts",
        "--unshare-cgroup-try": "no --unshare-cgroup",
        "--hostname": "no --hostname",
        "--as-pid-1": "no --as-pid-1",
        "--die-with-parent": "bubblewrap, no --die-with-parent",
        "--new-session": "no --new-session",
        "--ro-bind": "writable mounts",
        "--size": "no size",
        "--remount-ro": "no --remount-ro /",
        "--seccomp": "no seccomp",
        "--core": "no --core",
        "--fsize": "no --fsize",
        "--nofile": "no --nofile",
        "--nproc": "no --nproc",
        "--reuid": "uid stays",
        "--regid": "gid stays",
        "--clear-groups": "groups of root",
        "--bounding-set": "bounding set stays",
    },
    "podman": {
        "--network": "the host's network",
        "--cgroupns": "the host's control groups",
        "--read-only": "no --read-only",
        "--cap-drop": "no --cap-drop",
        "--security-opt=no-new-privileges": "new privileges",
        "--security-opt=seccomp": "the default filter",
        "--user": "no --user",
        "--hostname": "no --hostname",
        "--cgroup-parent": "no --cgroup-parent",
        "--http-proxy": "",  # test_podman_would_hand_on_the_proxy
        "--no-hosts": "no --no-hosts",
        "--read-only-tmpfs": "no --read-only-tmpfs",
        "--timeout": "podman, no --timeout",
        "--memory": "ungrouped, no --memory",
        "--pids-limit": "--pids-limit by the group",
        "--shm-size": "no --shm-size",
        "--tmpfs": "no size",
        "--ulimit=nofile": "no nofile",
        "--ulimit=nproc": "no nproc",
        "--ulimit=fsize": "no fsize",
        "--ulimit=core": "no core",
        "--mount": "writable mounts",
    },
}
"""Option → the weakened variant that turns an attack red."""

NOT_MISSED = {
    "bubblewrap": {
        "--clearenv": "bwrap is started with no environment: test_bubblewrap_keeps_our_environment_out_twice",
        "--cap-drop": "bwrap before the drop; --bounding-set and --reuid empty the same sets",
        "--cap-add": "gives, for the drop, what --reuid and --bounding-set take",
        "--inh-caps": "bwrap leaves none; setpriv is told all the same",
        "--no-new-privs": "bwrap sets it for whatever it runs, and has no option to leave that out",
        "--pdeathsig": "for kernels that ask for no right to signal; ours refuses bwrap, which gave up CAP_KILL",
        "--setenv": "gives",
        "--dir": "a place to mount on",
        "--perms": "modes of such places",
        "--symlink": "gives",
        "--proc": "gives",
        "--dev": "gives",
        "--mqueue": "shows what a session left: rooms:posix-queue",
        "--ro-bind-data": "gives",
        "--tmpfs": "gives",
        "--chdir": "gives",
        "--block-fd": "waits until the group is joined",
        "--json-status-fd": "tells us the end",
        "--data": "without a control group: tests of an ordinary user",
        "--unshare-user": "of an ordinary user, who can start nothing without",
        "--uid": "of an ordinary user",
        "--gid": "of an ordinary user",
        "--disable-userns": "of an ordinary user; seccomp refuses the same",
        "--cpu": "see the tests of processor time",
    },
    "podman": {
        "--name": "to be killed and swept by",
        "--label": "to be found by",
        "--cidfile": "to see that it is gone, and to read the counters of its group by: test_lifecycle, test_seen",
        "--interactive": "gives the input",
        "--pull": "what podman may do, not the guest",
        "--log-driver": "keeps output from the host's disk, where podman would bound nothing",
        "--stop-timeout": "no polite end: only speed",
        "--workdir": "gives",
        "--rm": "removes at the end; remove() and the sweep do it as well",
        "--memory-swap": "with --memory",
        "--env": "gives",
        "--entrypoint": "the image's is not ours",
        "--rootfs": "names what to start from; --read-only closes it",
        "--ulimit=cpu": "see the tests of processor time",
        "--security-opt=label": "no labels on the host's files",
    },
}
"""Option → why nothing turns red when it alone is left out."""

Words = list[str]


def of_bubblewrap() -> Words:
    lines = [
        bubblewrap.command_line(SPEC, root=root, grouped=grouped, files={"/etc/x": 3}, descriptors=_DESCRIPTORS)
        for root in (True, False)
        for grouped in (True, False)
    ]
    return [word for line in lines for word in line if word.startswith("--") and word != "--"]


_DESCRIPTORS = ["--json-status-fd", "3", "--block-fd", "4", "--seccomp", "5"]


def of_podman() -> Words:
    lines = [
        run_command.command_line(
            run_command.Way(client=("podman",), grouped=parent is not None, own_store=True),
            SPEC,
            name="x",
            system=("--rootfs", "/x/skeleton"),
            mounts=SPEC.mounts,
            profile=Path("/x"),
            parent=parent,
            cidfile=None if parent else Path("/x/id"),
        )
        for parent in ("/x", None)
    ]
    return [word for line in lines for word in line if word.startswith("--")]


def option(word: str) -> str:
    """Its name, with what it is about where one name serves several."""
    name, _, value = word.partition("=")
    return f"{name}={value.split('=')[0]}" if name in ("--ulimit", "--security-opt") else name


@pytest.mark.parametrize(("engine", "words"), [("bubblewrap", of_bubblewrap()), ("podman", of_podman())])
def test_every_option_is_missed_by_a_test_or_is_no_protection(engine: str, words: Words) -> None:
    """Whoever adds an option adds the weakened variant that shows what it is for, or says why there is none."""
    known = MISSED[engine].keys() | NOT_MISSED[engine].keys()
    assert {option(word) for word in words} - known == set()
    assert not MISSED[engine].keys() & NOT_MISSED[engine].keys()


@pytest.mark.parametrize("engine", MISSED)
def test_the_variants_named_here_exist(engine: str) -> None:
    """A renamed variant is no longer a proof."""
    variants = {what for name, what, _ in (*WEAKENED, *DOUBLED) if name == engine} | ORPHANS.keys() | {""}
    assert set(MISSED[engine].values()) <= variants
