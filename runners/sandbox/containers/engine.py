"""Docker and podman, through their command lines: one builder of arguments, no library of either.

Podman's defaults are not enough (measured with 4.3): new user namespaces are allowed inside, "OOMKilled" says
false after the kernel killed for memory, ending politely takes ten seconds, and killing the client leaves the
container. Hence the seccomp profile, a control group of our own around the container, ``--stop-timeout 0``, and a
name to kill by.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from runners.core.errors import InfraError
from runners.core.protocol import Limits
from runners.sandbox import owner, selftest
from runners.sandbox.containers import engine_cgroup
from runners.sandbox.containers.clients import CLIENT_S, client_says, image_id, kill, remove
from runners.sandbox.containers.command_line import Way
from runners.sandbox.containers.podman_store import import_once, packed, remove_forgotten, storage
from runners.sandbox.containers.session import ContainerSession, open_session
from runners.sandbox.contract import (
    COUNTED,
    FILES,
    FILTERED,
    IDENTITY,
    LIMITED,
    NO_NETWORK,
    PROCESSES,
    EngineReport,
    SandboxSpec,
)
from runners.sandbox.limits import cgroup

Kind = Literal["docker", "podman", "gvisor"]
"""gVisor is podman with ``runsc`` for its runtime."""
RUNSC_FLAGS = ("network=none", "oci-seccomp")
"""It has the network of a sandbox of its own, not that of a namespace; and filters are left out unless asked for. The
platform is runsc's own choice (ptrace in 2022, systrap now)."""
IMAGE_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,255}")
"""What an image may be called here; above all no option."""
STAGE = "io.reprobot.stage"
"""The label that our images have: see ``Dockerfile``."""
RUNNERS = ("runner", "runner-gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containers:
    """See ``contract.Engine``. ``image_name`` empty: the skeleton."""

    name: Kind
    image_name: str = field(default_factory=lambda: os.environ.get("REPROBOT_IMAGE", ""))
    remaps_paths: bool = True

    @property
    def guarantees(self) -> tuple[str, ...]:
        kernel = ("a kernel of its own (gVisor): its system calls are not the host's",)
        return (
            *(kernel if self.name == "gvisor" else ()),
            NO_NETWORK,
            FILES,
            PROCESSES,
            IDENTITY,
            FILTERED,
            COUNTED,
            LIMITED,
            "killed by name, and everything in it; what a killed run left, by the next",
        )

    @property
    def gives_up(self) -> tuple[str, ...]:
        if self.name == "gvisor":
            return (
                "each run takes up to a second longer",
                "the limits on memory, processes and processor time include what gVisor needs itself; too many "
                "processes end the whole sandbox instead of being refused",
            )
        if self.unusable() is not None or _way(self)[0].grouped or _way(self)[0].counted:
            return ()
        return (
            "peak memory is not measured, and running out of it is the engine's word, not the kernel's",
            "processor time is limited per process only",
        )

    @property
    def image(self) -> str:
        way = _way(self)[0]
        if not self.image_name and way.own_store:
            return f"sha256:{hashlib.sha256(packed()[1]).hexdigest()}"
        return image_id(way.client, self.image_name or import_once(way.client))

    @property
    def own_system(self) -> bool:
        return bool(self.image_name)

    def unusable(self) -> str | None:
        return _way(self)[1]

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start, wait, kill everything, report.

        Raises:
            InfraError: the engine could not start the container.
        """
        with self.session(spec) as session:
            return session.ask(spec.stdin, spec.limits, closing=b"")

    def session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[ContainerSession]:
        """See ``contract.Resident``."""
        return open_session(_way(self)[0], self.image_name, spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed(Containers):
    """One way of calling, on trial."""

    way: Way

    def session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[ContainerSession]:
        return open_session(self.way, self.image_name, spec)


@functools.cache
def _way(engine: Containers) -> tuple[Way, str | None]:
    """The first way of calling that passes the self-test, and None; or the last one tried and why it failed."""
    absent = _absent(engine.name)
    if absent is not None:
        return Way(client=(engine.name,), grouped=False), absent
    why = _no_runner(engine.name, engine.image_name)
    if why is not None:
        return Way(client=(engine.name,), grouped=False), why
    for way in _ways(engine.name, engine.image_name):
        trial = _Fixed(name=engine.name, image_name=engine.image_name, way=way)
        why = selftest.failure_of_a_step(trial) if way.own_kernel else selftest.failure(trial)
        why = why or (None if way.grouped else selftest.unlimited(trial))
        if why is None:
            return replace(way, counted=not way.grouped and engine_cgroup.possible() and _counts(trial)), None
    return way, why


def _counts(trial: _Fixed) -> bool:
    """Whether the engine's own group of a container is found while that runs."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=CLIENT_S), run_id="selftest")
    way = replace(trial.way, counted=True)
    with contextlib.suppress(InfraError, OSError), open_session(way, trial.image_name, spec) as session:
        session.waits = True
        deadline = time.monotonic() + CLIENT_S / 3
        while session.theirs is not None and not session.theirs.found() and time.monotonic() < deadline:
            time.sleep(0.05)
        return session.theirs is not None and session.theirs.found()
    return False


def _absent(kind: Kind) -> str | None:
    """What this kind lacks here, and the mend."""
    for program in ("podman", "runsc") if kind == "gvisor" else (kind,):
        if shutil.which(program) is None:
            return f"{program} is not installed: install it, or start it"
    if kind == "gvisor" and (why := cgroup.unavailable()) is not None:
        return f"its memory could not be limited: {why}"
    return None


def _no_runner(kind: Kind, image_name: str) -> str | None:
    """Why the named image is none for testcases to run in, with the mend; None when it is, or none is named.

    By its label: our runner images have what compilers need, nothing set-user-id, and no secret of anybody's.
    """
    if not image_name:
        return None
    shown = image_name[:100]
    if not IMAGE_NAME.fullmatch(image_name):
        return f"{shown!r} is no name of an image: name it as `podman images` does, localhost/reprobot-runner"
    client = "docker" if kind == "docker" else "podman"
    if not image_id((client,), image_name):
        return f"{client} has no image {shown} here, or is not running: build one with tools/images.sh runner"
    found = client_says(
        (client,), "image", "inspect", "--format", f'{{{{index .Config.Labels "{STAGE}"}}}}', image_name
    )
    if found in RUNNERS:
        return None
    return (
        f"{shown} is not one of our runner images (it has no label {STAGE}=runner): build one with "
        "tools/images.sh runner, or give yours that label"
    )


def _ways(kind: Kind, image_name: str) -> list[Way]:
    grouped = cgroup.unavailable() is None
    if kind == "docker":
        grouped = grouped and client_says(("docker",), "info", "--format", "{{.CgroupDriver}}") == "cgroupfs"
        return [Way(client=("docker",), grouped=grouped)]
    client = ("podman", *storage(image_name), *(["--cgroup-manager=cgroupfs"] if grouped else []))
    if kind == "gvisor":
        flags = (f"--runtime={shutil.which('runsc')}", *(f"--runtime-flag={flag}" for flag in RUNSC_FLAGS))
        return [Way(client=(*client, *flags), grouped=grouped, own_kernel=True, own_store=not image_name)]
    plain = Way(client=client, grouped=grouped, own_store=not image_name)
    if shutil.which("runc") is None:
        return [plain]
    # crun, the usual default, refuses machines that mix control groups of versions 1 and 2.
    return [plain, replace(plain, client=(*client, "--runtime=runc"))]


def sweep() -> list[str]:
    """Remove containers whose makers are dead, in every store that we use; returns their names."""
    removed = []
    for client in stores():
        for name in _leftovers(client):
            kill(client, name)
            remove(client, name)
            removed.append(name)
    return [*removed, *remove_forgotten()]


def stores() -> list[tuple[str, ...]]:
    clients: list[tuple[str, ...]] = [("docker",), ("podman",), ("podman", *storage(""))]
    return [client for client in clients if shutil.which(client[0]) is not None]


def _leftovers(client: tuple[str, ...]) -> list[str]:
    names = client_says(client, "ps", "--all", "--filter", f"name=^{owner.PREFIX}-", "--format", "{{.Names}}")
    return [name for name in names.split() if owner.is_leftover(name)]
