"""The command line with which docker or podman runs one container, and nothing that runs it."""

from __future__ import annotations

import csv
import io
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.core.toolchain.hardware import NVIDIA
from runners.sandbox import owner
from runners.sandbox.containers.podman_store import settings
from runners.sandbox.contract import SCRATCH, WORK, Mount, SandboxSpec

SENTRY_PROCESSES = 96
"""Threads of gVisor's own, which the group counts."""
NOBODY = "65534:65534"
SUPERVISOR_OF_GVISOR = (
    "--user=0:0",
    "--env=REPROBOT_STEPS_APART=1",
    *(f"--cap-add={one}" for one in ("SETUID", "SETGID", "SETPCAP", "KILL")),
)
"""There process 1 is root in gVisor's kernel, so as to become another for its steps, which then have no capability:
that kernel lets processes of one user open each other's descriptors, undumpable or not. To the host all of it is an
unprivileged process all the same."""
MAX_OPEN_FILES = 4096
MAX_PROCESSES_OF_NOBODY = 16384
"""A ceiling over all sandboxes of this machine (the kernel counts per user); a probe's own limit is its group's."""
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where the toolkits of GPU vendors describe their devices for containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How this machine's engine wants to be called."""

    client: tuple[str, ...]
    grouped: bool
    """Whether the container runs below a control group of ours."""
    counted: bool = False
    """Whether, without that, the counters of the engine's own group can be read."""
    own_kernel: bool = False
    """Whether gVisor stands between it and the host's kernel."""
    own_store: bool = False
    """Whether it is podman with a store and settings of ours, which starts from the unpacked skeleton."""

    @property
    def variables(self) -> dict[str, str] | None:
        """The client's environment, where it is not ours."""
        return settings() if self.own_store else None


def bind(mount: Mount) -> str:
    """The value of ``--mount``: comma-separated values, quoted where a path has a comma."""
    line = io.StringIO()
    access = [] if mount.writable else ["ro=true"]
    csv.writer(line, lineterminator="").writerow(["type=bind", f"src={mount.host}", f"dst={mount.guest}", *access])
    return line.getvalue()


def _ulimit(name: str, kind: int, wanted: int) -> str:
    """As wanted, or what we have ourselves: raising a hard limit needs a capability that not every root has."""
    hard = resource.getrlimit(kind)[1]
    value = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    return f"--ulimit={name}={value}:{value}"


def limit_options(spec: SandboxSpec, *, grouped: bool) -> list[str]:
    limits = spec.limits
    memory = [] if grouped else [f"--memory={limits.memory_bytes}", f"--memory-swap={limits.memory_bytes}"]
    return [
        *memory,
        f"--pids-limit={limits.processes}",
        f"--shm-size={limits.disk_bytes}",
        *(f"--tmpfs={path}:rw,exec,size={limits.disk_bytes},mode=1777" for path in SCRATCH if path != "/dev/shm"),
        _ulimit("nofile", resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        _ulimit("nproc", resource.RLIMIT_NPROC, MAX_PROCESSES_OF_NOBODY),
        _ulimit("fsize", resource.RLIMIT_FSIZE, limits.disk_bytes),
        "--ulimit=core=0:0",
    ]


def podman_only(spec: SandboxSpec) -> list[str]:
    """What podman adds by default and docker doesn't; and an end of its own, should we be killed."""
    seconds = int(spec.limits.wall_s) + 60
    return ["--http-proxy=false", "--no-hosts", "--read-only-tmpfs=false", f"--timeout={seconds}"]


def devices_of(spec: SandboxSpec, specifications: Sequence[Path] = CDI_FOLDERS) -> list[str]:
    """How the accelerator is named: by the Container Device Interface where it was set up, which brings the driver's
    libraries along; else its device files, one by one. Never ``all``, and never a privileged container."""
    first = spec.devices[0] if spec.devices else ""
    described = any(file for folder in specifications if folder.is_dir() for file in folder.glob("nvidia*"))
    if first.startswith("/dev/nvidia") and described:
        return [f"{NVIDIA.cdi}={first.removeprefix('/dev/nvidia')}"]
    return [node for node in spec.devices if Path(node).exists()]


def command_line(
    way: Way,
    spec: SandboxSpec,
    *,
    name: str,
    system: tuple[str, ...],
    mounts: tuple[Mount, ...],
    profile: Path,
    parent: str | None,
    cidfile: Path | None = None,
) -> list[str]:
    """The whole ``run`` command; ``system`` names what it starts from. Order of the options doesn't matter to either
    program."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **spec.environment}
    return [
        *way.client,
        "run",
        *(f"--name={name}", f"--label={owner.PREFIX}.run={spec.run_id}", f"--label={owner.PREFIX}.owner={name}"),
        *("--interactive", "--pull=never", "--log-driver=none", "--stop-timeout=0", "--hostname=sandbox"),
        # Podman's default on version 1 is the host's control groups: their names would be seen.
        *("--network=none", "--cgroupns=private"),
        *("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        *(f"--security-opt=seccomp={profile}", f"--workdir={WORK}"),
        *(SUPERVISOR_OF_GVISOR if way.own_kernel else (f"--user={NOBODY}",)),
        # Relabelling the host's /usr would be worse than doing without labels.
        *(["--security-opt=label=disable"] if Path("/sys/fs/selinux/enforce").exists() else []),
        # Without a group of ours the container must outlive its process: it is asked how that ended.
        *(["--rm", f"--cgroup-parent={parent}"] if parent is not None else []),
        *([f"--cidfile={cidfile}"] if cidfile is not None else []),
        *(podman_only(spec) if way.client[0] == "podman" else []),
        *limit_options(spec, grouped=parent is not None),
        *(f"--env={key}={value}" for key, value in environment.items()),
        *(f"--mount={bind(mount)}" for mount in mounts),
        *(f"--device={node}" for node in devices_of(spec)),
        "--entrypoint=",
        *system,
        *spec.argv,
    ]
