"""Use docker, podman and gVisor as engines: choose how to invoke them, and remove leftover containers.

Podman's defaults are not enough (measured with 4.3). New user namespaces are allowed inside. "OOMKilled" is false
after the kernel killed because of memory. A normal stop takes ten seconds. The container outlives a killed client. So
the engine adds a seccomp profile, our own control group around the container, ``--stop-timeout 0``, and a name by
which to kill the container.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal

from runners.core.errors import InfraError
from runners.core.protocol import Limits
from runners.sandbox import owner, selftest
from runners.sandbox.containers import engine_cgroup
from runners.sandbox.containers.clients import CLIENT_S, kill_container, query_client, read_image_id, remove_container
from runners.sandbox.containers.command_line import Invocation
from runners.sandbox.containers.podman_store import (
    build_storage_options,
    import_skeleton,
    pack_skeleton,
    remove_forgotten_containers,
)
from runners.sandbox.containers.session import ContainerSession, start_container
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
"""gVisor is podman with the runtime ``runsc``."""
RUNSC_FLAGS = ("network=none", "oci-seccomp")
"""gVisor uses the network of its own sandbox instead of a namespace's, and omits the filter by default. runsc chooses
the platform itself (ptrace in 2022, systrap now)."""
IMAGE_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,255}")
"""Names that an image may have. No option matches."""
STAGE = "io.reprobot.stage"
"""The label of our images: see ``Dockerfile``."""
RUNNERS = ("runner", "runner-gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEngine:
    """See ``contract.Engine``. An empty ``image_name`` means the skeleton."""

    name: Kind
    image_name: str = field(default_factory=lambda: os.environ.get("REPROBOT_IMAGE", ""))
    remaps_paths: bool = True

    @property
    def guarantees(self) -> tuple[str, ...]:
        kernel = ("its own kernel (gVisor): system calls do not reach the host's kernel directly",)
        return (
            *(kernel if self.name == "gvisor" else ()),
            NO_NETWORK,
            FILES,
            PROCESSES,
            IDENTITY,
            FILTERED,
            COUNTED,
            LIMITED,
            "killed by name, with all its processes; the next run removes leftovers of a killed run",
        )

    @property
    def limitations(self) -> tuple[str, ...]:
        if self.name == "gvisor":
            return (
                "each run takes up to a second longer",
                "the limits on memory, processes and processor time include what gVisor needs itself; too many "
                "processes end the whole sandbox instead of being refused",
            )
        invocation, problem = _choose_invocation(self)
        if problem is not None or invocation.grouped or invocation.counted:
            return ()
        return (
            "peak memory is not measured, and running out of it is the engine's word, not the kernel's",
            "processor time is limited per process only",
        )

    @property
    def image(self) -> str:
        invocation = _choose_invocation(self)[0]
        if not self.image_name and invocation.own_store:
            return f"sha256:{hashlib.sha256(pack_skeleton()[1]).hexdigest()}"
        return read_image_id(invocation.client, self.image_name or import_skeleton(invocation.client))

    @property
    def own_system(self) -> bool:
        return bool(self.image_name)

    def find_problem(self) -> str | None:
        return _choose_invocation(self)[1]

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start the container, wait for its end, kill what remains, and report.

        Raises:
            InfraError: the engine could not start the container.
        """
        with self.open_session(spec) as session:
            return session.send_request(spec.stdin, spec.limits, closing=b"")

    def open_session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[ContainerSession]:
        """See ``contract.SessionEngine``."""
        return start_container(_choose_invocation(self)[0], self.image_name, spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrialEngine(ContainerEngine):
    """An engine with one fixed invocation, for the self-test."""

    invocation: Invocation

    def open_session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[ContainerSession]:
        return start_container(self.invocation, self.image_name, spec)


# ------------------------------------------------------------------------------------------- choosing an invocation


@functools.cache
def _choose_invocation(engine: ContainerEngine) -> tuple[Invocation, str | None]:
    """Return the first invocation that passes the self-test, and None; otherwise the last one, and its problem."""
    problem = _find_missing_part(engine.name) or _find_image_problem(engine.name, engine.image_name)
    if problem is not None:
        return Invocation(client=(engine.name,), grouped=False), problem
    for invocation in _list_invocations(engine.name, engine.image_name):
        trial = _TrialEngine(name=engine.name, image_name=engine.image_name, invocation=invocation)
        problem = selftest.find_step_problem(trial) if invocation.own_kernel else selftest.find_problem(trial)
        problem = problem or (None if invocation.grouped else selftest.find_missing_limits(trial))
        if problem is None:
            counted = not invocation.grouped and engine_cgroup.can_read_groups() and _can_read_counters(trial)
            return replace(invocation, counted=counted), None
    return invocation, problem


def _can_read_counters(trial: _TrialEngine) -> bool:
    """True if the engine's own group of a container can be found while the container runs."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=CLIENT_S), run_id="selftest")
    invocation = replace(trial.invocation, counted=True)
    with (
        contextlib.suppress(InfraError, OSError),
        start_container(invocation, trial.image_name, spec) as session,
    ):
        session.waits = True
        group = session.engine_group
        deadline = time.monotonic() + CLIENT_S / 3
        while group is not None and not group.is_found() and time.monotonic() < deadline:
            time.sleep(0.05)
        return group is not None and group.is_found()
    return False


def _find_missing_part(kind: Kind) -> str | None:
    """Return None if this machine has the programs and control groups of ``kind``, else the reason and the remedy."""
    for program in ("podman", "runsc") if kind == "gvisor" else (kind,):
        if shutil.which(program) is None:
            return f"{program} is not installed: install it, or start it"
    if kind == "gvisor" and (problem := cgroup.find_problem()) is not None:
        return f"its memory could not be limited: {problem}"
    return None


def _find_image_problem(kind: Kind, image_name: str) -> str | None:
    """Return None if testcases may run in the named image, or if none is named, else the reason and the remedy.

    The label decides: our runner images contain the libraries that compilers need, no set-user-id file, and no
    secret.
    """
    if not image_name:
        return None
    shown = image_name[:100]
    if not IMAGE_NAME.fullmatch(image_name):
        return f"{shown!r} is no name of an image: name it as `podman images` does, localhost/reprobot-runner"
    client = "docker" if kind == "docker" else "podman"
    if not read_image_id((client,), image_name):
        return f"{client} has no image {shown} here, or is not running: build one with tools/images.sh runner"
    label = query_client(
        (client,), "image", "inspect", "--format", f'{{{{index .Config.Labels "{STAGE}"}}}}', image_name
    )
    if label in RUNNERS:
        return None
    return (
        f"{shown} is not one of our runner images (it has no label {STAGE}=runner): build one with "
        "tools/images.sh runner, or give yours that label"
    )


def _list_invocations(kind: Kind, image_name: str) -> list[Invocation]:
    """Return the invocations to try on this machine, the preferred one first."""
    grouped = cgroup.find_problem() is None
    if kind == "docker":
        grouped = grouped and query_client(("docker",), "info", "--format", "{{.CgroupDriver}}") == "cgroupfs"
        return [Invocation(client=("docker",), grouped=grouped)]
    client = (
        "podman",
        *build_storage_options(image_name),
        *(["--cgroup-manager=cgroupfs"] if grouped else []),
    )
    if kind == "gvisor":
        flags = (f"--runtime={shutil.which('runsc')}", *(f"--runtime-flag={flag}" for flag in RUNSC_FLAGS))
        return [Invocation(client=(*client, *flags), grouped=grouped, own_kernel=True, own_store=not image_name)]
    plain = Invocation(client=client, grouped=grouped, own_store=not image_name)
    if shutil.which("runc") is None:
        return [plain]
    # crun, the usual default, rejects machines that mix control groups of versions 1 and 2.
    return [plain, replace(plain, client=(*client, "--runtime=runc"))]


# ------------------------------------------------------------------------------------------- leftovers


def remove_leftover_containers() -> list[str]:
    """Remove containers whose makers are dead, in every store that we use. Return their names or ids.

    The stores are queried in parallel, because a client takes 0.1 s to answer that there is none.
    """
    stores = list_stores()
    with ThreadPoolExecutor(max(1, len(stores))) as asking:
        removed = [name for names in asking.map(_remove_leftovers, stores) for name in names]
    return [*removed, *remove_forgotten_containers()]


def _remove_leftovers(client: tuple[str, ...]) -> list[str]:
    names = _find_leftovers(client)
    for name in names:
        kill_container(client, name)
        remove_container(client, name)
    return names


def list_stores() -> list[tuple[str, ...]]:
    """Return one client command for each store of containers: docker's, podman's, and our own of podman."""
    clients: list[tuple[str, ...]] = [("docker",), ("podman",), ("podman", *build_storage_options(""))]
    return [client for client in clients if shutil.which(client[0]) is not None]


def _find_leftovers(client: tuple[str, ...]) -> list[str]:
    names = query_client(client, "ps", "--all", "--filter", f"name=^{owner.PREFIX}-", "--format", "{{.Names}}")
    return [name for name in names.split() if owner.is_leftover(name)]
