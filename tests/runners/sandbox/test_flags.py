"""Every option of an engine's command line has a weakened variant that fails a test, or a reason why it has none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runners.sandbox import bubblewrap_command
from runners.sandbox.containers import command_line as run_command
from runners.sandbox.contract import Mount, SandboxSpec
from tests.runners.sandbox.kit.attack import LIMITS
from tests.runners.sandbox.kit.test_weakened import DOUBLED, ORPHANS, WEAKENED

if shutil.which("bwrap") is None:
    # `make check` collects this file on machines without a sandbox.
    pytest.skip("bubblewrap is not installed", allow_module_level=True)
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
        "--http-proxy": "",  # test_podman_hands_on_the_proxy_without_http_proxy_false
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
"""Option → the weakened variant with which an attack succeeds."""

NOT_MISSED = {
    "bubblewrap": {
        "--clearenv": "bwrap is started with no environment: test_bubblewrap_keeps_our_environment_out_in_two_ways",
        "--cap-drop": "for bwrap before the drop; --bounding-set and --reuid empty the same sets",
        "--cap-add": "no protection: gives setpriv the capabilities that --reuid and --bounding-set remove",
        "--inh-caps": "bwrap leaves none; a second protection",
        "--no-new-privs": "bwrap sets it for every process and has no option against it",
        "--pdeathsig": "for kernels on which a signal needs no right; ours refuses bwrap, which has dropped CAP_KILL",
        "--setenv": "no protection: provides a part of the sandbox",
        "--dir": "no protection: a mount point",
        "--perms": "modes of mount points",
        "--symlink": "no protection: provides a part of the sandbox",
        "--proc": "no protection: provides a part of the sandbox",
        "--dev": "no protection: provides a part of the sandbox",
        "--mqueue": "shows queues that a session left: sessions:posix-queue",
        "--ro-bind-data": "no protection: provides a part of the sandbox",
        "--tmpfs": "no protection: provides a part of the sandbox",
        "--chdir": "no protection: provides a part of the sandbox",
        "--block-fd": "no protection: bwrap waits until process 1 is in the group",
        "--json-status-fd": "no protection: reports the end",
        "--data": "used without a control group: tests of an ordinary user",
        "--unshare-user": "used for an ordinary user, who cannot start a sandbox without it",
        "--uid": "used for an ordinary user",
        "--gid": "used for an ordinary user",
        "--disable-userns": "used for an ordinary user; seccomp refuses the same",
        "--cpu": "see the tests of processor time",
    },
    "podman": {
        "--name": "no protection: name to kill and remove by",
        "--label": "no protection: label to search for",
        "--cidfile": "no protection: id to check the removal and find the group: test_lifecycle, test_engine_cgroup",
        "--interactive": "no protection: provides the input",
        "--pull": "limits podman, not the guest",
        "--log-driver": "keeps output from the host's disk, where podman would not limit it",
        "--stop-timeout": "only for speed",
        "--workdir": "no protection: provides a part of the sandbox",
        "--rm": "removes at the end; remove_container and remove_leftovers do it as well",
        "--memory-swap": "with --memory",
        "--env": "no protection: provides a part of the sandbox",
        "--entrypoint": "no protection: replaces the image's entry point",
        "--rootfs": "no protection: names the file system; --read-only protects it",
        "--ulimit=cpu": "see the tests of processor time",
        "--security-opt=mask": "hides what no testcase needs: test_no_configuration_of_the_host_is_readable",
        "--security-opt=label": "no protection: leaves the labels of the host's files unchanged",
    },
}
"""Option → the reason why no attack succeeds if this option alone is removed."""

Words = list[str]


def list_bubblewrap_options() -> Words:
    lines = [
        bubblewrap_command.build_command_line(
            SPEC, user=60706, root=root, grouped=grouped, files={"/etc/x": 3}, descriptors=_DESCRIPTORS
        )
        for root in (True, False)
        for grouped in (True, False)
    ]
    return [word for line in lines for word in line if word.startswith("--") and word != "--"]


_DESCRIPTORS = ["--json-status-fd", "3", "--block-fd", "4", "--seccomp", "5"]


def list_podman_options() -> Words:
    lines = [
        run_command.build_command_line(
            run_command.Invocation(client=("podman",), grouped=parent is not None, own_store=True),
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


def get_option_name(word: str) -> str:
    """Return the option's name, with the first part of its value if one name has several meanings."""
    name, _, value = word.partition("=")
    return f"{name}={value.split('=')[0]}" if name in ("--ulimit", "--security-opt") else name


@pytest.mark.parametrize(
    ("engine", "words"), [("bubblewrap", list_bubblewrap_options()), ("podman", list_podman_options())]
)
def test_every_option_has_a_weakened_variant_or_a_reason(engine: str, words: Words) -> None:
    """A new option needs a weakened variant that shows its purpose, or a reason why there is none."""
    known = MISSED[engine].keys() | NOT_MISSED[engine].keys()
    assert {get_option_name(word) for word in words} - known == set()
    assert not MISSED[engine].keys() & NOT_MISSED[engine].keys()


@pytest.mark.parametrize("engine", MISSED)
def test_named_variants_exist(engine: str) -> None:
    """A renamed variant is no longer a proof."""
    variants = {what for name, what, _ in (*WEAKENED, *DOUBLED) if name == engine} | ORPHANS.keys() | {""}
    assert set(MISSED[engine].values()) <= variants
