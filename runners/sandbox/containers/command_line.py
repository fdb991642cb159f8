"""Build the command line by which docker or podman runs one container. Pure: this module starts no process."""

from __future__ import annotations

import csv
import io
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.core.toolchain.facts import NVIDIA
from runners.sandbox import owner
from runners.sandbox.containers import skeleton
from runners.sandbox.containers.podman_store import build_client_environment
from runners.sandbox.contract import SCRATCH, WORK, Mount, SandboxSpec
from runners.sandbox.limits.hard_limits import cap_limit
from runners.sandbox.limits.users import NOBODY

SENTRY_PROCESSES = 96
"""Additional processes for the threads of gVisor's own kernel, which the control group counts."""
MAX_SENTRY_PROCESSES = 4096
"""Limit for the threads in which gVisor runs processes of the guest: a quarter of the user's limit."""
SUPERVISOR_OF_GVISOR = (
    "--user=0:0",
    "--env=REPROBOT_STEPS_APART=1",
    *(f"--cap-add={one}" for one in ("SETUID", "SETGID", "SETPCAP", "KILL")),
)
"""In gVisor's kernel, process 1 is root, so that it can start its steps as another user without capabilities. That
kernel lets processes of one user open each other's descriptors, even if they are not dumpable. For the host, the
whole sandbox is an unprivileged process."""
MAX_OPEN_FILES = 4096
MAX_PROCESSES_OF_NOBODY = 16384
"""Limit for all sandboxes of this machine together (the kernel counts per user). The group limits each probe."""
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Folders in which the toolkits of GPU vendors describe their devices for containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How to invoke the container program on this machine."""

    client: tuple[str, ...]
    """Program and global options."""
    grouped: bool
    """True if the container runs below our own control group."""
    counted: bool = False
    """True if we have no such group, but can read the counters of the engine's own group."""
    own_kernel: bool = False
    """True for gVisor, which is between the container and the host's kernel."""
    own_store: bool = False
    """True for podman with our own store and settings. Its containers start from the unpacked skeleton."""

    @property
    def variables(self) -> dict[str, str] | None:
        """The environment of the client. None for our own environment."""
        return build_client_environment() if self.own_store else None


def render_mount(mount: Mount) -> str:
    """Return a value for ``--mount``: comma-separated, and quoted if a path contains a comma."""
    line = io.StringIO()
    access = [] if mount.writable else ["ro=true"]
    csv.writer(line, lineterminator="").writerow(["type=bind", f"src={mount.host}", f"dst={mount.guest}", *access])
    return line.getvalue()


def _render_ulimit(name: str, kind: int, wanted: int) -> str:
    value = cap_limit(kind, wanted)
    return f"--ulimit={name}={value}:{value}"


def build_limit_options(spec: SandboxSpec, *, grouped: bool) -> list[str]:
    limits = spec.limits
    memory = [] if grouped else [f"--memory={limits.memory_bytes}", f"--memory-swap={limits.memory_bytes}"]
    return [
        *memory,
        f"--pids-limit={limits.processes}",
        f"--shm-size={limits.disk_bytes}",
        *(f"--tmpfs={path}:rw,exec,size={limits.disk_bytes},mode=1777" for path in SCRATCH if path != "/dev/shm"),
        _render_ulimit("nofile", resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        _render_ulimit("nproc", resource.RLIMIT_NPROC, MAX_PROCESSES_OF_NOBODY),
        _render_ulimit("fsize", resource.RLIMIT_FSIZE, limits.disk_bytes),
        "--ulimit=core=0:0",
    ]


def build_podman_options(spec: SandboxSpec) -> list[str]:
    """Return options that undo podman's additions to docker's defaults, and a time-out in case we are killed."""
    seconds = int(spec.limits.wall_s) + 60
    return ["--http-proxy=false", "--no-hosts", "--read-only-tmpfs=false", f"--timeout={seconds}"]


def hide_paths(invocation: Invocation, mounts: Sequence[Mount]) -> list[str]:
    """Return the option that hides what no testcase needs. docker has no such option, and gVisor ignores it."""
    if invocation.client[0] != "podman" or invocation.own_kernel:
        return []
    hidden = skeleton.list_hidden((str(mount.host), mount.guest) for mount in mounts)
    return [f"--security-opt=mask={':'.join(('/proc/cmdline', *hidden))}"]


def list_devices(spec: SandboxSpec, specifications: Sequence[Path] = CDI_FOLDERS) -> list[str]:
    """Return values for ``--device``.

    These are names of the Container Device Interface if it is set up, because it adds the driver's libraries.
    Otherwise they are the device files. Never ``all``, and never a privileged container.
    """
    first = spec.devices[0] if spec.devices else ""
    described = any(file for folder in specifications if folder.is_dir() for file in folder.glob("nvidia*"))
    if first.startswith("/dev/nvidia") and described:
        return [f"{NVIDIA.cdi}={first.removeprefix('/dev/nvidia')}"]
    return [node for node in spec.devices if Path(node).exists()]


def build_command_line(
    invocation: Invocation,
    spec: SandboxSpec,
    *,
    name: str,
    system: tuple[str, ...],
    mounts: tuple[Mount, ...],
    profile: Path,
    parent: str | None,
    user: int = NOBODY,
    cidfile: Path | None = None,
) -> list[str]:
    """Return the whole ``run`` command. ``system`` names the initial file system.

    Both programs accept the options in any order.
    """
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **spec.environment}
    return [
        *invocation.client,
        "run",
        *(f"--name={name}", f"--label={owner.PREFIX}.run={spec.run_id}", f"--label={owner.PREFIX}.owner={name}"),
        *("--interactive", "--pull=never", "--log-driver=none", "--stop-timeout=0", "--hostname=sandbox"),
        # With version 1, podman defaults to the host's control groups. Then the guest would see their names.
        *("--network=none", "--cgroupns=private"),
        *("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        *(f"--security-opt=seccomp={profile}", f"--workdir={WORK}"),
        *(SUPERVISOR_OF_GVISOR if invocation.own_kernel else (f"--user={user}:{NOBODY}",)),
        # Relabelling the host's /usr would be worse than having no labels.
        *(["--security-opt=label=disable"] if Path("/sys/fs/selinux/enforce").exists() else []),
        # Without our own group, the container must outlive its process: `inspect` then shows how the process ended.
        *(["--rm", f"--cgroup-parent={parent}"] if parent is not None else []),
        *([f"--cidfile={cidfile}"] if cidfile is not None else []),
        *(build_podman_options(spec) if invocation.client[0] == "podman" else []),
        *hide_paths(invocation, mounts),
        *build_limit_options(spec, grouped=parent is not None),
        *(f"--env={key}={value}" for key, value in environment.items()),
        *(f"--mount={render_mount(mount)}" for mount in mounts),
        *(f"--device={node}" for node in list_devices(spec)),
        "--entrypoint=",
        *system,
        *spec.argv,
    ]
