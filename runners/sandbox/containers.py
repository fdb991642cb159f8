"""Docker and podman, through their command lines: one builder of arguments, no library of either.

Podman's defaults are not enough (measured with 4.3): new user namespaces are allowed inside, "OOMKilled" says
false after the kernel killed for memory, ending politely takes ten seconds, and killing the client leaves the
container. Hence the seccomp profile, a control group of our own around the container, ``--stop-timeout 0``, and a
name to kill by.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import os
import re
import resource
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from runners.errors import InfraError
from runners.protocol import Limits, OutOfMemory
from runners.sandbox import cgroup, meter, owner, seccomp, seen, selftest, skeleton
from runners.sandbox.contract import (
    ANSWER_END,
    COUNTED,
    FILES,
    FILTERED,
    IDENTITY,
    LIMITED,
    NO_NETWORK,
    PROCESSES,
    SCRATCH,
    WORK,
    EngineReport,
    Mount,
    SandboxSpec,
)
from runners.sandbox.process import DRAIN_S, Conversation, close_streams, communicate, ended_by
from runners.toolchains.hardware import NVIDIA

Kind = Literal["docker", "podman", "gvisor"]
"""gVisor is podman with ``runsc`` for its runtime."""
RUNSC_FLAGS = ("network=none", "oci-seccomp")
"""It has the network of a sandbox of its own, not that of a namespace; and filters are left out unless asked for. The
platform is runsc's own choice (ptrace in 2022, systrap now)."""
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
CLIENT_S = 30.0
"""How long a client may take for anything but a probe."""
IMAGE_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,255}")
"""What an image may be called here; above all no option."""
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where the toolkits of GPU vendors describe their devices for containers."""
ENGINE_FAILED = (125, 126, 127)
"""Exit codes of ``run`` for: the engine failed; the program can't be executed; there is no such program."""


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
        return _settings() if self.own_store else None


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
            return f"sha256:{hashlib.sha256(_packed()[1]).hexdigest()}"
        return _image_id(way.client, self.image_name or _import_once(way.client))

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

    def session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[_Session]:
        """See ``contract.Resident``."""
        return _session(_way(self)[0], self.image_name, spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed(Containers):
    """One way of calling, on trial."""

    way: Way

    def session(self, spec: SandboxSpec) -> contextlib.AbstractContextManager[_Session]:
        return _session(self.way, self.image_name, spec)


# ------------------------------------------------------------------------------------------- finding out


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
            return replace(way, counted=not way.grouped and seen.possible() and _counts(trial)), None
    return way, why


def _counts(trial: _Fixed) -> bool:
    """Whether the engine's own group of a container is found while that runs."""
    spec = SandboxSpec(argv=("/bin/cat",), mounts=(), limits=Limits(wall_s=CLIENT_S), run_id="selftest")
    way = replace(trial.way, counted=True)
    with contextlib.suppress(InfraError, OSError), _session(way, trial.image_name, spec) as session:
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


STAGE = "io.reprobot.stage"
"""The label that our images have: see ``Dockerfile``."""
RUNNERS = ("runner", "runner-gpu")


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
    if not _image_id((client,), image_name):
        return f"{client} has no image {shown} here, or is not running: build one with tools/images.sh runner"
    found = _client_says(
        (client,), "image", "inspect", "--format", f'{{{{index .Config.Labels "{STAGE}"}}}}', image_name
    )
    if found in RUNNERS:
        return None
    return (
        f"{shown} is not one of our runner images (it has no label {STAGE}=runner): build one with "
        "tools/images.sh runner, or give yours that label"
    )


def _our_store() -> Path:
    """A folder of our own for podman's store, in memory where that can be had.

    podman waits for the disk some thirty times in one run: half of the time of an empty one where the disk is busy
    (0.31 s against 0.16 s). The store also has to be gone after a reboot, and podman wants its paths short.
    """
    uid = os.geteuid()
    runtime = Path("/run") if uid == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or "/")
    for folder in (runtime / "reprobot", Path(f"/dev/shm/{owner.PREFIX}-store-{uid}")):
        if _in_memory(folder.parent) and _is_ours(folder):
            return folder
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "reprobot", "podman")


def _in_memory(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a tmpfs is mounted there."""
    lines = (line.split() for line in mounts.read_text().splitlines())
    return any(words[1] == str(folder) and words[2] == "tmpfs" for words in lines)


def _is_ours(folder: Path) -> bool:
    """Made now, or before by us and closed to others: in /dev/shm anyone may have been first."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def drop_skeleton() -> bool:
    """Remove podman's store of the skeleton, which the next probe makes anew; False while a container runs in it.

    Without its store podman no longer knows how that container ended.
    """
    store = _our_store()
    if (store / "root").exists() and _client_says(("podman", *_storage("")), "ps", "--quiet"):
        return False
    shutil.rmtree(store, ignore_errors=True)
    return True


def _storage(image_name: str) -> tuple[str, ...]:
    """Where podman keeps the skeleton: a store of ours, without overlay mounts.

    In the user's own store two clients that start at the same moment can mount the store over a running container
    ("device or resource busy"), after which podman is stuck for everybody. The skeleton is so small that copying it
    (vfs) costs nothing. A named image is where the user has put it.
    """
    if image_name:
        return ()
    store = _our_store()
    places = (f"--root={store}/root", f"--runroot={store}/run", f"--tmpdir={store}/libpod")
    return (*places, "--storage-driver=vfs", "--events-backend=none")


SETTINGS = Path(__file__).with_name("podman.conf")


def _settings() -> dict[str, str]:
    """Our environment with podman's settings for a store of ours, unless the user names others.

    The client, too, ends before garbage would matter; one that lives long collects it once it has used the memory
    named here.
    """
    return {"CONTAINERS_CONF": str(SETTINGS), **os.environ, "GOGC": "off", "GOMEMLIMIT": "256MiB"}


def _ways(kind: Kind, image_name: str) -> list[Way]:
    grouped = cgroup.unavailable() is None
    if kind == "docker":
        grouped = grouped and _client_says(("docker",), "info", "--format", "{{.CgroupDriver}}") == "cgroupfs"
        return [Way(client=("docker",), grouped=grouped)]
    client = ("podman", *_storage(image_name), *(["--cgroup-manager=cgroupfs"] if grouped else []))
    if kind == "gvisor":
        flags = (f"--runtime={shutil.which('runsc')}", *(f"--runtime-flag={flag}" for flag in RUNSC_FLAGS))
        return [Way(client=(*client, *flags), grouped=grouped, own_kernel=True, own_store=not image_name)]
    plain = Way(client=client, grouped=grouped, own_store=not image_name)
    if shutil.which("runc") is None:
        return [plain]
    # crun, the usual default, refuses machines that mix control groups of versions 1 and 2.
    return [plain, replace(plain, client=(*client, "--runtime=runc"))]


def _client_says(client: tuple[str, ...], *words: str) -> str:
    """Standard output of a client command, stripped; empty when it fails."""
    done = _done(client, *words)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def _image_id(client: tuple[str, ...], name: str) -> str:
    return _client_says(client, "image", "inspect", "--format", "{{.Id}}", name)


def _system(way: Way, image_name: str) -> tuple[str, ...]:
    """The words that name what a container starts from; the skeleton is put there if it isn't yet.

    From a folder podman starts without looking up an image, making a layer and copying it, and without the locks that
    two at a time then wait for. Nobody inside can write there; what appears in it is what the runtime makes to mount
    on. It is looked for each time, because another process may have dropped it (``reprobot clean``).

    Raises:
        InfraError: the engine refused the image.
    """
    if image_name or not way.own_store:
        return (image_name or _import_once(way.client),)
    name, data = _packed()
    place = _our_store() / name.replace(":", "-")
    if not place.exists():
        _unpack(data, place)
    return ("--rootfs", str(place))


def _unpack(data: bytes, place: Path) -> None:
    """Whole or not at all, whoever else does the same."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside, tarfile.open(fileobj=io.BytesIO(data)) as tar:
        whole = Path(beside, "root")
        tar.extraction_filter = lambda member, _: member  # our own archive: modes and links as they are in it
        tar.extractall(whole)
        whole.chmod(0o755)
        with contextlib.suppress(OSError):  # there already, by another
            whole.rename(place)


@functools.cache
def _packed() -> tuple[str, bytes]:
    data = skeleton.archive()
    return skeleton.tag(data), data


@functools.cache
def _import_once(client: tuple[str, ...]) -> str:
    """The skeleton image's name, imported into the engine's own store if it isn't there yet.

    Raises:
        InfraError: the engine refused it.
    """
    name, data = _packed()
    if _client_says(client, "image", "inspect", "--format", "{{.Id}}", name):
        return name
    words = [*client, "import", "-", name]
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=CLIENT_S, check=False)
    except subprocess.TimeoutExpired as reason:
        raise InfraError(f"{client[0]} import took longer than {CLIENT_S:g} s: is its store locked?") from reason
    if done.returncode != 0:
        raise InfraError(f"{client[0]} import failed: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return name


# ------------------------------------------------------------------------------------------- command line


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


# ------------------------------------------------------------------------------------------- running


@contextlib.contextmanager
def _profile(way: Way) -> Iterator[Path]:
    with owner.private_directory() as directory:
        path = directory / "seccomp.json"
        path.write_text(seccomp.profile_json(own_kernel=way.own_kernel))
        yield path


@contextlib.contextmanager
def _group(way: Way, name: str, spec: SandboxSpec) -> Iterator[cgroup.Cgroup | None]:
    if not way.grouped:
        yield None
        return
    group = cgroup.create(name, spec.limits)
    try:
        yield group
    finally:
        group.close()


@contextlib.contextmanager
def _client(
    way: Way, name: str, words: list[str], place: Path, group: cgroup.Cgroup | None
) -> Iterator[subprocess.Popen[bytes]]:
    """The running client; on the way out the container is gone, whatever became of the client.

    Removing costs two more clients, about half of the whole overhead; a client that was asked to remove (``--rm``)
    and came to its own end has done it, or left a folder that says otherwise.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours to handle
        env=way.variables,
        cwd=place,  # conmon writes a file named "oom" where it was started when the memory is used up
    )
    try:
        yield process
    finally:
        removes = "--rm" in words
        if not removes or _failed(process.poll()):
            if way.own_kernel and group is not None:
                group.kill()  # gVisor is asked to kill by a message, which it answers late or never when it is busy
            if kill(way.client, name) and removes and not way.own_kernel:
                # Killed while it removes, it would leave a container half removed. (gVisor's waits for a monitor
                # that was killed with the group.)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(DRAIN_S)
            process.kill()
            process.wait()
            remove(way.client, name)
        elif way.own_store and _is_in_our_store(place / ID_FILE):
            remove(way.client, name)
        close_streams(process)


def _let_end(process: subprocess.Popen[bytes]) -> None:
    """The end of its input ends a supervisor that waits for a job, and with it the client: that saves the two clients
    which kill and remove. One that does not go is killed as any other."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(DRAIN_S)


def _failed(status: int | None) -> bool:
    """Whether a client's status is about itself: still running, killed, or the engine could not do it."""
    return status is None or status < 0 or status in ENGINE_FAILED


def kill(client: tuple[str, ...], name: str) -> bool:
    """Kill a container by name; False when there is none of that name (yet).

    Before removing, because ``rm --force`` alone begins with a polite signal and waits.
    """
    return not _is_unknown(_done(client, "kill", "--signal=KILL", name))


def remove(client: tuple[str, ...], name: str) -> bool:
    """Remove a container by name; whether it is gone, as it may have been before.

    Asked again while it refuses: a container's own ``--rm``, its monitor's clean-up and this one can meet, and then
    each finds something in use.
    """
    deadline = time.monotonic() + CLIENT_S
    while True:
        done = _done(client, "rm", "--force", name)
        if done.returncode == 0 or _is_unknown(done):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)


def _is_unknown(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a client failed because there is no container of that name; podman and docker say it in these words."""
    return done.returncode != 0 and "no such container" in done.stderr.lower()


def _done(client: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    """What a client says; one that cannot be run, or takes too long, failed."""
    try:
        return subprocess.run(
            [*client, *words], capture_output=True, encoding="utf-8", errors="replace", timeout=CLIENT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        return subprocess.CompletedProcess(words, returncode=1, stdout="", stderr=str(reason))


ID_FILE = "id"
"""Where the client writes the container's id, in the directory of its run."""


def _is_in_our_store(id_file: Path) -> bool:
    """Whether podman still keeps a folder for the container of that id, although its client came to its own end."""
    with contextlib.suppress(OSError):
        number = id_file.read_text(encoding="ascii").strip()
        return len(number) == 64 and (_our_store() / "root" / CONTAINERS / number).exists()
    return False


@dataclass(slots=True)
class _Session:
    """A running client. ``began`` is when it was started: the first request's time includes that."""

    way: Way
    name: str
    process: subprocess.Popen[bytes]
    group: cgroup.Cgroup | None
    theirs: seen.EnginesGroup | None
    memory_bytes: int
    began: float | None
    waits: bool = False
    """It answered, and waits for a further request."""

    def ask(self, request: bytes, limits: Limits, *, closing: bytes = ANSWER_END) -> EngineReport:
        """See ``contract.Session``; without ``closing`` it is the only request."""
        began, self.began = self.began or time.monotonic(), None
        counters = self.group or self.theirs
        talk = communicate(
            self.process,
            stdin=request,
            stdout_limit=limits.output_bytes,
            wall_s=limits.wall_s,
            closing=closing,
            watch=meter.watch(None if counters is None else counters.cpu_s, limits.cpu_s),
        )
        self.waits = talk.answered
        oom = self._ran_out_of_memory(ended=not talk.answered)
        if talk.status is not None and _failed(talk.status) and not oom:
            raise InfraError(f"{self.way.client[0]} run failed ({talk.status}): {_last_words(talk)}")
        return EngineReport(
            ended=OutOfMemory(limit_bytes=self.memory_bytes) if oom else ended_by(talk),
            stdout=talk.stdout,
            stderr=talk.stderr,
            seconds=time.monotonic() - began,
            peak_bytes=0 if counters is None else counters.peak_bytes(),
            truncated=talk.truncated,
        )

    def _ran_out_of_memory(self, *, ended: bool) -> bool:
        """The kernel's word, where it was heard; else, of one that ended, the engine's (podman 4.3 says "false" where
        the kernel killed, on version 2 too)."""
        if self.group is not None:
            return self.group.ran_out_of_memory()
        if self.theirs is not None and self.theirs.ran_out_of_memory():
            return True
        return (
            ended
            and _client_says(self.way.client, "inspect", "--format", "{{.State.OOMKilled}}", self.name) == "true"
        )


def _with_room_for_gvisor(spec: SandboxSpec) -> SandboxSpec:
    """It runs each process in another of its own, and has a thread for it, which the limit counts."""
    processes = 3 * spec.limits.processes + SENTRY_PROCESSES
    return replace(spec, limits=msgspec.structs.replace(spec.limits, processes=processes))


@contextlib.contextmanager
def _session(way: Way, image_name: str, spec: SandboxSpec) -> Iterator[_Session]:
    name = owner.new_name()
    if way.own_kernel and any(mount.writable for mount in spec.mounts):
        # What is built is process 1 itself, which is root there, and gVisor writes as the host's root.
        raise InfraError("gVisor builds no compilers: take another engine for that (--sandbox podman)")
    spec = _with_room_for_gvisor(spec) if way.own_kernel else spec
    system = _system(way, image_name)
    shown = () if image_name else tuple(Mount(host=Path(path), guest=path) for path in skeleton.host_mounts())
    began = time.monotonic()
    with _profile(way) as profile, _group(way, name, spec) as group:
        parent = None if group is None else group.parent_path
        with owner.private_directory() as place:
            theirs = seen.EnginesGroup(place / ID_FILE) if way.counted and group is None else None
            words = command_line(
                way,
                spec,
                name=name,
                system=system,
                mounts=(*shown, *spec.mounts),
                profile=profile,
                parent=parent,
                cidfile=place / ID_FILE if way.own_store or theirs is not None else None,
            )
            following = contextlib.nullcontext() if theirs is None else theirs.watched()
            with _client(way, name, words, place, group) as process, following:
                session = _Session(way, name, process, group, theirs, spec.limits.memory_bytes, began)
                yield session
                if session.waits:
                    _let_end(process)


def _last_words(talk: Conversation) -> str:
    return talk.stderr.decode("utf-8", "replace").strip()[-500:] or "it said nothing"


def sweep() -> list[str]:
    """Remove containers whose makers are dead, in every store that we use; returns their names."""
    removed = []
    for client in _stores():
        for name in _leftovers(client):
            kill(client, name)
            remove(client, name)
            removed.append(name)
    return [*removed, *_forgotten()]


CONTAINERS = "vfs-containers"
"""Podman's folder for containers, below its root, where it copies instead of mounting overlays."""
FORGOTTEN_S = 60.0
"""How old a place of the store must be before we take it for one that podman forgot."""


def _forgotten() -> list[str]:
    """Remove what podman no longer knows and left mounted in our store; returns container ids.

    Two removals of one container at the same moment (its own ``--rm`` and a sweep, say) can leave its folder with
    /dev/shm mounted in it, which nobody removes then (seen with 4.3 when processes were killed at random).
    """
    store = _our_store()
    old = time.time() - FORGOTTEN_S
    places = [
        place
        for place in (store / "root" / CONTAINERS).glob("?" * 64)
        if (place / "userdata").exists() and place.stat().st_mtime < old
    ]
    if not places:
        return []
    # Listed after the folders: who is in neither list has none. A client that fails knows nothing, and nor do we.
    words = ["podman", *_storage(""), "ps", "--all", "--external", "--no-trunc", "--format", "{{.ID}}"]
    try:
        known = subprocess.run(words, capture_output=True, text=True, timeout=CLIENT_S, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return []
    gone = [place for place in places if place.name not in known]
    for place in gone:
        subprocess.run(["umount", str(place / "userdata" / "shm")], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)
    return [place.name for place in gone]


def _stores() -> list[tuple[str, ...]]:
    clients: list[tuple[str, ...]] = [("docker",), ("podman",), ("podman", *_storage(""))]
    return [client for client in clients if shutil.which(client[0]) is not None]


def _leftovers(client: tuple[str, ...]) -> list[str]:
    names = _client_says(client, "ps", "--all", "--filter", f"name=^{owner.PREFIX}-", "--format", "{{.Names}}")
    return [name for name in names.split() if owner.is_leftover(name)]
