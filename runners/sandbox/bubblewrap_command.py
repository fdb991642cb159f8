"""Build the command line by which bubblewrap runs one process."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path, PurePosixPath
from resource import RLIMIT_NOFILE, RLIMIT_NPROC

from runners.sandbox.containers import skeleton
from runners.sandbox.contract import SCRATCH, WORK, Mount, SandboxSpec
from runners.sandbox.limits.hard_limits import cap_limit
from runners.sandbox.limits.users import NOBODY

MAX_OPEN_FILES = 4096
MAX_PROCESSES_OF_NOBODY = 16384
"""Limit for all sandboxes of this machine together, as for containers. The control group limits each probe."""
_PROCESSORS = "/sys/devices/system/cpu"
"""Shows the number of processors to libraries. Containers show all of /sys, read-only."""


def build_command_line(
    spec: SandboxSpec, *, user: int, root: bool, grouped: bool, files: dict[str, int], descriptors: list[str]
) -> list[str]:
    """Return the whole command. As ``root``, the process becomes ``user``.

    ``files`` maps a path inside to the descriptor of its content. ``descriptors`` are options that name other
    inherited descriptors.
    """
    return [
        "bwrap",
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--hostname", "sandbox", "--as-pid-1", "--die-with-parent", "--new-session"),
        *build_identity_options(root=root, help_text=_read_help()),
        *build_environment_options(spec.environment),
        *build_mount_options(spec.mounts, files, spec.limits.disk_bytes, spec.devices),
        *("--chdir", WORK),
        *descriptors,
        "--",
        *build_inner_argv(spec, user=user, root=root, grouped=grouped),
    ]


@functools.cache
def _read_help() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout


def build_identity_options(*, root: bool, help_text: str) -> list[str]:
    """Return options that change the identity of the process.

    ``--unshare-all`` is not used, because it adds a user namespace that keeps uid 0 outside.
    """
    if root:
        # setpriv needs these capabilities to drop all others, and then also drops these.
        return ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    nested = ["--disable-userns"] if "--disable-userns" in help_text else []  # since 0.8.0; seccomp refuses it too
    return ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY), *nested]


def build_environment_options(environment: dict[str, str]) -> list[str]:
    """Return options for the whole environment inside. PATH and HOME have defaults."""
    whole = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **environment}
    return ["--clearenv", *(word for name, value in whole.items() for word in ("--setenv", name, value))]


def build_mount_options(
    mounts: tuple[Mount, ...], files: dict[str, int], scratch_bytes: int, devices: tuple[str, ...] = ()
) -> list[str]:
    """Return options for the file system: the host's system, scratch, then ``mounts``.

    The last options make the root and /dev read-only, so only scratch and writable mounts can be written.
    """
    options: list[str] = []
    for path in skeleton.list_host_mounts():
        options += [*_make_parents(path), "--ro-bind", path, path]
    if Path(_PROCESSORS).exists():
        options += [*_make_parents(_PROCESSORS), "--ro-bind", _PROCESSORS, _PROCESSORS]
    for path, target in skeleton.read_host_links().items():
        options += ["--symlink", target, path]
    # POSIX queues exist without this mount too, but a session can see leftover queues only through the mount.
    options += ["--proc", "/proc", "--dev", "/dev", "--mqueue", "/dev/mqueue"]
    for node in devices:
        options += ["--dev-bind-try", node, node]
    for path, descriptor in files.items():
        options += [*_make_parents(path), "--perms", "0444", "--ro-bind-data", str(descriptor), path]
    for path in SCRATCH:
        options += ["--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", path]
    for mount in mounts:
        bind = "--bind" if mount.writable else "--ro-bind"
        options += [*_make_parents(mount.guest), bind, str(mount.host), mount.guest]
    own = ((path, path) for path in skeleton.list_host_mounts())
    for path in skeleton.list_hidden([*own, *((str(mount.host), mount.guest) for mount in mounts)]):
        options += ["--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _make_parents(path: str) -> list[str]:
    """Return options for the directories above a mount point. Only root could access those that bwrap makes."""
    above = [str(parent) for parent in reversed(PurePosixPath(path).parents) if str(parent) != "/"]
    return [word for parent in above for word in ("--perms", "0755", "--dir", parent)]


def build_inner_argv(spec: SandboxSpec, *, user: int, root: bool, grouped: bool) -> list[str]:
    """Return the command inside: set the limits, drop to ``user`` (as root), start the process."""
    limits = ["--core=0", f"--fsize={spec.limits.disk_bytes}", f"--nofile={cap_limit(RLIMIT_NOFILE, MAX_OPEN_FILES)}"]
    if grouped:
        limits += [f"--nproc={cap_limit(RLIMIT_NPROC, MAX_PROCESSES_OF_NOBODY)}"]
    else:
        # The best limits without a control group: memory per process, and processes per namespace.
        processes = cap_limit(RLIMIT_NPROC, spec.limits.processes)
        limits += [f"--data={spec.limits.memory_bytes}", f"--nproc={processes}"]
    identity = ["--reuid", str(user), "--regid", str(NOBODY), "--clear-groups"]
    drop = [*identity, "--bounding-set=-all", "--inh-caps=-all"]
    # A change of the user id clears the parent-death signal, hence "keep".
    become = ["/usr/bin/setpriv", *drop, "--no-new-privs", "--pdeathsig", "keep", "--"] if root else []
    return ["/usr/bin/prlimit", *limits, "--", *become, *spec.argv]
