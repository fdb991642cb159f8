"""Store toolchain environments: resolved as of the release's day, built with uv, named by their content.

Every folder under the root can be deleted. The store makes it again::

    uv/                         uv's cache
    resolutions/<key>.json      requirements and date → lock (`runners.environments.resolve`)
    wheels/<sha256>-<minor>/    one wheel, unpacked, bytecode compiled (`runners.environments.wheels`)
    environments/<digest>/      site/ (mounted into sandboxes) and lock.txt: hard links to wheels
    building/  locks/           of `runners.environments.atomic_dirs`
    catalogue/                  refreshed listings
    builds/  compiler-caches/   of `runners.builds.command`
    history/                    of `runners.builds.history`
    canaries/                   of `runners.probe.canary`: environments in which a canary has passed

No code of a wheel runs here: uv unpacks wheels, and compiles bytecode without importing.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import takewhile
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.hostile.folders import remove_folder
from runners.core.packages.catalogue import AS_OF_MARGIN, Release
from runners.core.packages.requirements import check_requirements, pin_layers
from runners.environments import bundles
from runners.environments.atomic_dirs import AtomicDirs
from runners.environments.config import Config, read_config
from runners.environments.files import measure_disk_bytes, measure_unshared_bytes, translate_disk_errors, write_text
from runners.environments.interpreters import Interpreter, choose_interpreter
from runners.environments.resolve import MAX_DOWNLOAD_BYTES, Forbidden, Resolver, add_links
from runners.environments.stand_ins import gpu
from runners.environments.uv import Uv
from runners.environments.wheels import WheelAssembler
from runners.toolchains import find_toolchain

UNUSED_S = 3600.0
"""Seconds after its last use during which an environment is not removed."""
TRIM_S = 2.0
"""Seconds that a start may spend on a store above its limit."""
CANARIES = "canaries"
"""Folder of the canaries' answers, one file for each copy of an environment (`runners.probe.canary`)."""
BESIDE = ("builds", "compiler-caches", "guest", "history")
"""Folders under the same root that the store does not measure or trim; their owners limit them."""

Say = Callable[[str], None]


def default_root() -> Path:
    """Return ``$REPROBOT_CACHE``, else ``reprobot`` in the user's cache directory."""
    chosen = os.environ.get("REPROBOT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "reprobot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One toolchain release with its dependencies, complete on disk."""

    digest: str
    """``sha256:…`` of lock, Python minor and platform."""
    toolchain: str
    version: str
    folder: Path
    interpreter: Interpreter
    lock: str
    """``name==version --hash=…`` lines."""
    commit: str | None = None
    """Full sha that the toolchain was built from."""
    built: str | None = None
    """The version under which the wheel was first built."""

    @property
    def site_packages(self) -> Path:
        return self.folder / "site"

    def list_packages(self) -> dict[str, str]:
        """Return name → version of every package."""
        return list_packages(self.lock)


def list_packages(lock: str) -> dict[str, str]:
    """Return name → version of every package of a lock."""
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", lock, re.MULTILINE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """All environments of this user on this machine. Safe for any number of processes at once."""

    root: Path
    uv: Uv
    max_download_bytes: int = MAX_DOWNLOAD_BYTES
    gpu_packages: bool = False
    """True: PyTorch gets CUDA's packages. False: stand-ins replace them."""
    say: Say = field(default=lambda message: None)
    """Receives a message before each slow step."""
    also_allowed: frozenset[str] = frozenset()
    """Distributions that a testcase may require besides those on the list."""
    trust_s: float = 0.0
    """Seconds for which the comparison of an environment's 20,000 files is trusted. It takes 0.07 s."""

    def get_environment(self, release: Release, requirements: Sequence[str] = ()) -> Environment:
        """Return the environment of a release and a testcase's requirements. Build it if it is absent.

        Raises:
            UserError: a requirement does not fit this release (`Unresolvable`), or is not allowed (`Forbidden`).
            InfraError: the network is needed and absent, the disk is full, or no Python fits.
        """
        kept, refused = check_requirements(requirements, self.also_allowed)
        if refused:
            raise Forbidden(f"requirement {refused[0].requirement!r} {refused[0].why}")
        kept = pin_layers(kept, None)  # a caller with a report has already pinned them
        interpreter = choose_interpreter(release.pythons)
        with translate_disk_errors(self.root):
            lock = self._resolver.resolve(release, kept, interpreter)
            digest = digest_environment(lock, interpreter, self._describe_layout(release, lock))
            folder = self._environments.find(digest) or self._build(release, lock, interpreter, digest)
        return _describe_environment(release, folder, lock, interpreter, digest)

    def find_younger(self, release: Release, day: date) -> dict[str, tuple[str, str]]:
        """Return the open dependencies of the compiler's project of which a later installation gets newer versions.

        The result maps each package to its version as of the release's day and its version as of ``day``.
        """
        names = find_toolchain(release.toolchain).OPEN_DEPENDENCIES
        if not names or release.as_of is None or release.source == "bundle" or day <= release.as_of.date():
            return {}
        interpreter = choose_interpreter(release.pythons)
        later = replace(release, released=day - AS_OF_MARGIN)
        then, now = (list_packages(self._resolver.resolve(one, (), interpreter)) for one in (release, later))
        return {
            name: (then[name], now[name]) for name in names if name in now and then.get(name) not in (None, now[name])
        }

    @property
    def _environments(self) -> AtomicDirs:
        return AtomicDirs(root=self.root, kind="environments", trust_s=self.trust_s)

    @property
    def _wheels(self) -> AtomicDirs:
        return AtomicDirs(root=self.root, kind="wheels")

    @property
    def _resolver(self) -> Resolver:
        return Resolver(
            folder=self.root / "resolutions",
            uv=self.uv,
            say=self.say,
            max_download_bytes=self.max_download_bytes,
            gpu_packages=self.gpu_packages,
        )

    def _build(self, release: Release, lock: str, interpreter: Interpreter, digest: str) -> Path:
        build = f"{release.toolchain} {release.version}"
        assembler = WheelAssembler(
            unpacked=self._wheels, uv=add_links(self.uv, release.links), interpreter=interpreter, say=self.say
        )

        def fill(draft: Path) -> None:
            self.say(f"building {build} for Python {interpreter.version}")
            assembler.assemble(lock, draft / "site")
            bundle = find_toolchain(release.toolchain).find_bundle(release.version)
            replaced = self._needs_stand_ins(lock)
            if bundle:
                beside = gpu.list_missing(draft / "site") if replaced else {}
                bundles.complete_bundle(bundle, draft / "site", beside)
            if replaced:
                gpu.add_stand_ins(draft / "site")
            write_text(draft / "lock.txt", lock)

        return self._environments.build(
            digest, fill, on_wait=lambda: self.say(f"waiting for another process that is building {build}")
        )

    def _needs_stand_ins(self, lock: str) -> bool:
        return not self.gpu_packages and gpu.needs_stand_ins(list_packages(lock))

    def _describe_layout(self, release: Release, lock: str) -> str:
        """Return the parts of an environment's content that its lock does not specify."""
        bundle = bundles.LAYOUT if find_toolchain(release.toolchain).find_bundle(release.version) else ""
        return ", ".join(filter(None, (bundle, gpu.LAYOUT if self._needs_stand_ins(lock) else "")))

    # ------------------------------------------------------------------------------------- disk space

    def measure_size(self) -> int:
        """Return the bytes that environments take on disk, with hard links counted once."""
        return measure_disk_bytes(self.root) - sum(measure_disk_bytes(self.root / part) for part in BESIDE)

    def keep_within(self, limit_bytes: int, *, seconds: float = TRIM_S) -> int:
        """Trim if the wheels' own records exceed the limit, for at most ``seconds``; return the bytes freed.

        A start waits for this. Measuring the disk of a full store takes minutes, so the records are used instead.
        Later starts remove the remaining excess. Leftovers of killed uv processes are removed too.
        """
        self.uv.remove_old_drafts()
        size = self._wheels.sum_recorded_bytes()
        if size <= limit_bytes:
            return 0  # environments and uv's cache are hard links to the wheels
        try:
            return self._trim_from(size, limit_bytes, unused_s=UNUSED_S, end=time.monotonic() + seconds)
        except OSError:  # a read-only store does not grow, and its content can be used
            return 0

    def trim(self, limit_bytes: int, *, unused_s: float = UNUSED_S) -> int:
        """Remove environments, longest unused first, until the store is within the limit; return the bytes freed.

        An environment that was used in the last ``unused_s`` seconds is kept, because a sandbox may show it.
        """
        if not self._list_removable(unused_s):
            return 0  # no measurement is needed
        before = self.measure_size()
        self._trim_from(before, limit_bytes, unused_s=unused_s, end=float("inf"))
        return before - self.measure_size()

    def _list_removable(self, unused_s: float) -> tuple[str, ...]:
        names = self._environments.list_names()
        return tuple(takewhile(lambda name: self._environments.measure_unused_s(name) >= unused_s, names))

    def _trim_from(self, size: int, limit_bytes: int, *, unused_s: float, end: float) -> int:
        """Remove environments and their wheels until ``size`` is within the limit or the clock reads ``end``.

        Return the reduction of ``size``: the recorded bytes of the wheels, and the unshared bytes of the
        environments.
        """
        before, packages = size, set[str]()
        for name in self._list_removable(unused_s):
            if size <= limit_bytes or time.monotonic() >= end:
                break
            size -= measure_unshared_bytes(self.root / "environments" / name)
            self._environments.remove(name)
            for answer in (self.root / CANARIES).glob(f"{name}~*"):
                answer.unlink(missing_ok=True)
            for wheel in self._list_unused_wheels(unused_s):
                size -= self._wheels.get_recorded_bytes(wheel)
                packages |= {
                    record.name.partition("-")[0]
                    for record in (self.root / "wheels" / wheel / "site").glob("*.dist-info")
                }
                self._wheels.remove(wheel)
        if packages:
            self.uv.forget(*sorted(packages))  # its cache shares the files of the wheels
        return before - size

    def _list_unused_wheels(self, unused_s: float) -> list[str]:
        """Return the wheels that no environment uses.

        A recently used wheel may belong to an environment that another process assembles.
        """
        locks = [path.read_text(encoding="utf-8") for path in self.root.glob("environments/*/lock.txt")]
        used = {line.rpartition(":")[2] for lock in locks for line in lock.splitlines()}
        return [
            name
            for name in self._wheels.list_names()
            if name.partition("-")[0] not in used and self._wheels.measure_unused_s(name) >= unused_s
        ]

    def clean(self) -> int:
        """Remove everything; return the bytes freed.

        Raises:
            InfraError: a folder cannot be removed.
        """
        before = measure_disk_bytes(self.root)
        parts = ("environments", "wheels", "building", "resolutions", "locks", "checked", "uv", "catalogue", CANARIES)
        try:
            for part in (*parts, *BESIDE):
                if (self.root / part).exists():
                    remove_folder(self.root / part)
        except OSError as error:
            raise InfraError(f"{self.root} cannot be removed: {error.strerror}") from error
        return before - measure_disk_bytes(self.root)


def open_store(
    root: Path | None = None,
    *,
    offline: bool = False,
    say: Say = lambda message: None,
    also_allowed: frozenset[str] = frozenset(),
    config: Config | None = None,
) -> Store:
    """Return the user's store, or the store at ``root``, with the limits and sources of the operator's file."""
    folder = root or default_root()
    chosen = read_config() if config is None else config
    return Store(
        root=folder,
        uv=add_links(Uv(cache=folder / "uv", offline=offline), [source.link for source in chosen.packages]),
        max_download_bytes=int(chosen.requirements.download_mib * 1024**2),
        gpu_packages=chosen.requirements.gpu_packages,
        say=say,
        also_allowed=also_allowed,
    )


def digest_environment(lock: str, interpreter: Interpreter, layout: str = "") -> str:
    """Return the name of an environment: a digest of its content. ``layout`` describes files beyond the wheels."""
    text = "\n".join([interpreter.version, interpreter.platform, *([layout] if layout else []), lock])
    return hashlib.sha256(text.encode()).hexdigest()


def _describe_environment(
    release: Release, folder: Path, lock: str, interpreter: Interpreter, digest: str
) -> Environment:
    built, commit = find_toolchain(release.toolchain).read_build_info(folder / "site")
    return Environment(
        digest=f"sha256:{digest}",
        toolchain=release.toolchain,
        version=release.version,
        folder=folder,
        interpreter=interpreter,
        lock=lock,
        commit=commit or release.commit,
        built=built or release.built,
    )
