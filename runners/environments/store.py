"""The store of toolchain environments: resolved as of the release's day, built with uv, named by what is in them.

Layout under the root, all of it disposable::

    uv/                         uv's cache
    resolutions/<key>.json      requirements and date → lock
    wheels/<sha256>-<minor>/    one wheel, unpacked, bytecode compiled
    environments/<digest>/      site/ (mounted into sandboxes) and lock.txt: wheels put together by hard links
    building/  locks/           of `runners.environments.atomic_dirs`
    catalogue/                  refreshed listings
    builds/  compiler-caches/   of `runners.builds.command`
    history/                    of `runners.builds.history`
    canaries/                   of `runners.probe.canary`: which environments have been seen to work

Nothing from a wheel is executed here: uv unpacks, and compiles bytecode without importing.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from runners.core.catalogue import Release
from runners.core.errors import InfraError, UserError
from runners.core.requirements import check_requirements
from runners.environments import bundles, interpreters
from runners.environments.atomic_dirs import Shelf, disk_bytes, disk_errors, link_tree, make_folder, write_text
from runners.environments.interpreters import Interpreter
from runners.environments.uv import NoSolution, Pin, Uv, download_bytes
from runners.toolchains import Toolchain, find_toolchain

MAX_DOWNLOAD_BYTES = 1536 * 1024**2
"""A testcase's requirements may not make one environment larger than this to download (torch with CUDA: 3 GB)."""

CANARIES = "canaries"
"""Folder of the canaries' answers, one file for each copy of an environment (`runners.probe.canary`)."""
BESIDE = ("builds", "compiler-caches", "guest", "history")
"""What `runners.builds.source` and `runners.builds.history` keep under the same root: within limits of their own."""
BUILDERS = 4
"""Wheels of one environment that are fetched and unpacked at once."""

Say = Callable[[str], None]


def default_root() -> Path:
    """``$REPROBOT_CACHE``, else ``reprobot`` in the user's cache directory."""
    chosen = os.environ.get("REPROBOT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "reprobot"


class Unresolvable(UserError):
    """A testcase's requirements cannot be had together with this release: says nothing about a bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One toolchain release with its dependencies, on disk and complete."""

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

    def packages(self) -> dict[str, str]:
        """Name → version of everything in it."""
        return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", self.lock, re.MULTILINE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """All environments of this user on this machine. Safe for any number of processes at once."""

    root: Path
    uv: Uv
    max_download_bytes: int = MAX_DOWNLOAD_BYTES
    say: Say = field(default=lambda message: None)
    """Told, in words, what takes time."""
    also_allowed: frozenset[str] = frozenset()
    """Distributions that a testcase may ask for besides those on the list."""

    def environment(self, release: Release, requirements: Sequence[str] = ()) -> Environment:
        """The environment of a release and the testcase's requirements: found, or resolved and built.

        Raises:
            UserError: a requirement is not allowed, or doesn't go with this release (`Unresolvable`).
            InfraError: no network where it is needed, a full disk, no fitting Python.
        """
        kept, refused = check_requirements(requirements, self.also_allowed)
        if refused:
            raise Unresolvable(f"requirement {refused[0].requirement!r} {refused[0].why}")
        interpreter = interpreters.choose(release.pythons)
        with disk_errors(self.root):
            lock = self._lock_text(release, kept, interpreter)
            layout = bundles.LAYOUT if find_toolchain(release.toolchain).bundle(release.version) else ""
            digest = environment_digest(lock, interpreter, layout)
            folder = self._environments.find(digest) or self._built(release, lock, interpreter, digest)
        return _describe(release, folder, lock, interpreter, digest)

    @property
    def _environments(self) -> Shelf:
        return Shelf(root=self.root, kind="environments")

    @property
    def _wheels(self) -> Shelf:
        return Shelf(root=self.root, kind="wheels")

    # ---- resolving

    def _uv(self, links: Sequence[str]) -> Uv:
        """uv that looks at these pages and folders first."""
        options = [word for place in links for word in ("--find-links", place)]
        return replace(self.uv, options=(*self.uv.options, *options)) if links else self.uv

    def _lock_text(self, release: Release, requirements: tuple[str, ...], interpreter: Interpreter) -> str:
        """The lock, from the cache of resolutions where one can be reused for ever: its date is in the past."""
        wanted = _wanted(release, requirements)
        if not wanted.together:
            return ""
        looked_at = [wanted, str(release.as_of), interpreter.version, interpreter.platform, *release.links]
        key = _digest(json.dumps(looked_at))
        path = self.root / "resolutions" / f"{key}.json"
        known = _read_resolution(path)
        if known is None:
            self.say(f"resolving {release.toolchain} {release.version} as of {_day(release)}")
            known = self._resolve(release, wanted, requirements, interpreter)
            write_text(path, json.dumps({"wanted": wanted, "lock": known}, indent=1))
        return known

    def _resolve(
        self, release: Release, wanted: Wanted, requirements: tuple[str, ...], interpreter: Interpreter
    ) -> str:
        pins = self._pins(release, wanted.together, requirements, interpreter)
        if wanted.alone:
            python, minor = interpreter.executable, interpreter.version
            pins += self._uv(release.links).resolve(
                wanted.alone, python=python, minor=minor, newest=release.as_of, deps=False
            )
        if requirements:
            self._weigh(pins, release)
        return render_lock(pins)

    def _pins(
        self, release: Release, wanted: tuple[str, ...], requirements: tuple[str, ...], interpreter: Interpreter
    ) -> tuple[Pin, ...]:
        """As of the release's day; a version that the testcase pins may be younger than the release."""
        pinned = [Requirement(r).name for r in requirements if Requirement(r).specifier]
        explanation = ""
        for undated in ([], pinned) if pinned else ([],):
            try:
                return self._uv(release.links).resolve(
                    wanted,
                    python=interpreter.executable,
                    minor=interpreter.version,
                    newest=release.as_of,
                    undated=undated,
                )
            except NoSolution as failure:
                explanation = str(failure)
        what = f"{release.toolchain} {release.version}"
        if not requirements:
            raise InfraError(f"{what} cannot be resolved as of {_day(release)}: {explanation}")
        asked = ", ".join(requirements)
        raise Unresolvable(f"{asked} as of {_day(release)} does not go with {what} in wheels: {explanation}")

    def _weigh(self, pins: Sequence[Pin], release: Release) -> None:
        """Refuse what a stranger's testcase makes too big to fetch; the toolchain itself is never refused."""
        size, limit = download_bytes(pins) // 1024**2, self.max_download_bytes // 1024**2
        if size > limit:
            largest = max(pins, key=lambda p: download_bytes([p])).name
            raise Unresolvable(
                f"the testcase's requirements make {release.toolchain} {release.version} a download of "
                f"{size} MiB (most of it for {largest}); the limit is {limit} MiB"
            )

    # ---- building

    def _built(self, release: Release, lock: str, interpreter: Interpreter, digest: str) -> Path:
        what = f"{release.toolchain} {release.version}"

        def fill(draft: Path) -> None:
            self.say(f"building {what} for Python {interpreter.version}")
            self._assemble(lock, draft / "site", interpreter, self._uv(release.links))
            bundle = find_toolchain(release.toolchain).bundle(release.version)
            if bundle:
                bundles.complete(bundle, draft / "site")
            write_text(draft / "lock.txt", lock)

        return self._environments.build(
            digest, fill, waiting=lambda: self.say(f"waiting for another process that is building {what}")
        )

    def _assemble(self, lock: str, site: Path, interpreter: Interpreter, uv: Uv) -> None:
        make_folder(site)
        with ThreadPoolExecutor(max_workers=BUILDERS) as pool:
            wheels = list(pool.map(lambda line: self._wheel(line, interpreter, uv), lock.splitlines()))
        for wheel in wheels:
            link_tree(wheel / "site", site)

    def _wheel(self, line: str, interpreter: Interpreter, uv: Uv) -> Path:
        name = f"{line.rpartition(':')[2]}-{interpreter.version}"
        return self._wheels.find(name) or self._wheels.build(
            name,
            lambda draft: self._unpack(line, draft / "site", interpreter, uv),
            waiting=lambda: self.say(f"waiting for another process that is unpacking {line.partition(' ')[0]}"),
        )

    def _unpack(self, line: str, site: Path, interpreter: Interpreter, uv: Uv) -> None:
        """Install one wheel, and check that each file is what its wheel says.

        Files are shared with uv's cache, so what damaged them here has damaged them there: then the wheel is
        downloaded anew.
        """
        package = line.partition("==")[0]
        for attempt in (1, 2):
            uv.install(line, site, python=interpreter.executable)
            (site / ".lock").unlink(missing_ok=True)  # uv's own
            # The second time it comes out of an archive whose hash was checked: a wrong RECORD is the wheel's own.
            if is_as_recorded(site, hashes=attempt == 1):
                return
            if attempt == 1:
                self.say(f"uv's cache of {package} is damaged: downloading it again")
                uv.forget(package)
                shutil.rmtree(site)
        raise InfraError(f"the wheel of {package} does not unpack to what it lists: run `reprobot clean`")

    # ---- housekeeping

    def size(self) -> int:
        """Bytes on disk that environments take, hard links counted once."""
        return disk_bytes(self.root) - sum(disk_bytes(self.root / part) for part in BESIDE)

    def keep_within(self, limit_bytes: int) -> int:
        """`trim`, but only if the wheels' own records say that it is needed: measuring takes seconds. Bytes freed."""
        if self._wheels.recorded_bytes() <= limit_bytes:
            return 0  # environments, and uv's cache, are hard links to the wheels
        try:
            return self.trim(limit_bytes)
        except OSError:  # a read-only store grows no more, and serves what it has
            return 0

    def trim(self, limit_bytes: int, *, unused_s: float = 3600.0) -> int:
        """Remove environments, longest unused first, until the store takes no more than this; returns bytes freed.

        What was used in the last ``unused_s`` seconds stays: a sandbox may be showing it.
        """
        before = size = self.size()
        for name in self._environments.names():
            if size <= limit_bytes or self._environments.unused_s(name) < unused_s:
                break
            self._environments.remove(name)
            for answer in (self.root / CANARIES).glob(f"{name}~*"):
                answer.unlink(missing_ok=True)
            self._drop_wheels(unused_s)
            size = self.size()
        return before - size

    def _drop_wheels(self, unused_s: float) -> None:
        """Remove wheels that no environment is made of, from uv's cache too: they share their files with it."""
        locks = [path.read_text(encoding="utf-8") for path in self.root.glob("environments/*/lock.txt")]
        used = {line.rpartition(":")[2] for lock in locks for line in lock.splitlines()}
        for name in self._wheels.names():
            if name.partition("-")[0] in used or self._wheels.unused_s(name) < unused_s:
                continue  # the second: someone may be putting an environment together
            for record in (self.root / "wheels" / name / "site").glob("*.dist-info"):
                self.uv.forget(record.name.partition("-")[0])
            self._wheels.remove(name)

    def clean(self) -> int:
        """Remove everything; returns the bytes freed.

        Raises:
            InfraError: something there cannot be removed.
        """
        before = disk_bytes(self.root)
        parts = ("environments", "wheels", "building", "resolutions", "locks", "uv", "catalogue", CANARIES, *BESIDE)
        try:
            for part in parts:
                if (self.root / part).exists():
                    shutil.rmtree(self.root / part)
        except OSError as error:
            raise InfraError(f"{self.root} cannot be removed: {error.strerror}") from error
        return before - disk_bytes(self.root)


def open_store(
    root: Path | None = None,
    *,
    offline: bool = False,
    say: Say = lambda message: None,
    also_allowed: frozenset[str] = frozenset(),
) -> Store:
    """The user's store, or one at ``root``."""
    place = root or default_root()
    return Store(root=place, uv=Uv(cache=place / "uv", offline=offline), say=say, also_allowed=also_allowed)


def render_lock(pins: Sequence[Pin]) -> str:
    """Pins as sorted, hashed requirement lines: no addresses, so that the same wheels always give the same text."""
    return "".join(f"{p.name}=={p.version} --hash=sha256:{p.sha256}\n" for p in sorted(pins, key=lambda p: p.name))


class Wanted(NamedTuple):
    """What an environment is resolved from."""

    together: tuple[str, ...]
    """With all their dependencies, so that they fit each other."""
    alone: tuple[str, ...]
    """Without: wheels of which only a part is used."""


def _wanted(release: Release, requirements: tuple[str, ...]) -> Wanted:
    toolchain = find_toolchain(release.toolchain)
    bundle = toolchain.bundle(release.version)
    if bundle:
        return Wanted((*bundle.requirements, *release.pins, *requirements), release.distributions)
    return Wanted((*release.distributions, *release.pins, *_companions(toolchain, requirements), *requirements), ())


def _companions(toolchain: Toolchain, requirements: tuple[str, ...]) -> tuple[str, ...]:
    """The toolchain's own extras, except where the testcase says which version it wants."""
    named = {Requirement(r).name for r in requirements}
    return tuple(c for c in toolchain.COMPANIONS if c not in named)


def _day(release: Release) -> str:
    return f"{release.as_of:%Y-%m-%d}" if release.as_of else "today"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def environment_digest(lock: str, interpreter: Interpreter, layout: str = "") -> str:
    """Names an environment by what is in it; ``layout`` stands for what is there besides wheels."""
    return _digest("\n".join([interpreter.version, interpreter.platform, *([layout] if layout else []), lock]))


def is_as_recorded(site: Path, *, hashes: bool) -> bool:
    """Whether every file that a wheel's RECORD lists is there, as long as it says, and with ``hashes`` as it was."""
    records = list(site.glob("*.dist-info/RECORD"))
    return bool(records) and all(ok for record in records for ok in _checked(site, record, hashes=hashes))


def _checked(site: Path, record: Path, *, hashes: bool) -> Iterator[bool]:
    for path, digest, size in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if size and not path.endswith(".pyc"):  # some wheels ship bytecode, which is compiled again
            file = site / path
            yield file.exists() and file.stat().st_size == int(size)
            yield not hashes or _has_hash(file, digest)


def _has_hash(file: Path, digest: str) -> bool:
    """As RECORD writes it: ``sha256=`` and urlsafe base64 without padding. Other algorithms are taken on trust."""
    algorithm, _, wanted = digest.partition("=")
    if algorithm != "sha256":
        return True
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == wanted


def _read_resolution(path: Path) -> str | None:
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))["lock"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return lock if isinstance(lock, str) else None


def _describe(release: Release, folder: Path, lock: str, interpreter: Interpreter, digest: str) -> Environment:
    built, commit = find_toolchain(release.toolchain).built_from(folder / "site")
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
