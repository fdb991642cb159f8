"""The store of toolchain environments: built once with uv, named by what is in them, never used half-built.

Layout under the root, all of it disposable::

    uv/                         uv's cache; environments are hard links into it
    resolutions/<key>.json      requirements and date → lock
    environments/<digest>/      site/ (mounted into sandboxes), lock.txt, environment.json
    building/<digest>-*/        an environment on its way; swept when its builder is gone
    locks/<digest>              held while building that environment

An environment appears under its name by one rename, when everything in it has been checked. Nothing from a wheel is
executed here: uv unpacks, and compiles bytecode without importing.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runners import interpreters
from runners.catalogue import Release
from runners.errors import InfraError, UserError
from runners.interpreters import Interpreter
from runners.sandbox.contract import Mount
from runners.toolchains import Toolchain, find_toolchain
from runners.uv import NoSolution, Pin, Uv, download_bytes

GUEST_SITE = "/opt/site"
"""Where an environment's packages appear inside a sandbox."""

MAX_DOWNLOAD_BYTES = 1536 * 1024**2
"""A testcase's requirements may not make one environment larger than this to download (torch with CUDA: 3 GB)."""

Say = Callable[[str], None]


def default_root() -> Path:
    """``$REPROBOT_CACHE``, else ``reprobot`` in the user's cache directory."""
    chosen = os.environ.get("REPROBOT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "reprobot"


class Unresolvable(UserError):
    """No set of wheels meets the testcase's requirements together with this release: says nothing about a bug."""


# ------------------------------------------------------------------------------------------------ requirements


class Refusal(NamedTuple):
    """A requirement that no environment may have, and why, in words."""

    requirement: str
    why: str


def allowed_requirements() -> frozenset[str]:
    """Names that a testcase may ask for: a closed list, because its author is a stranger."""
    text = (resources.files("runners") / "allowed_requirements.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)["names"])


def check_requirements(requirements: Sequence[str]) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """Requirements split into those that may be installed, in canonical spelling and order, and those refused."""
    allowed = allowed_requirements()
    kept, refused = set(), []
    for text in requirements:
        parsed = _parse_requirement(text, allowed)
        if isinstance(parsed, Refusal):
            refused.append(parsed)
        else:
            kept.add(parsed)
    return tuple(sorted(kept)), tuple(refused)


def _parse_requirement(text: str, allowed: frozenset[str]) -> str | Refusal:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return Refusal(text, "is not a requirement such as numpy or numpy>=2")
    name = canonicalize_name(parsed.name)
    if parsed.url:
        return Refusal(text, "names an address; only wheels of the package index are installed")
    if name not in allowed:
        return Refusal(text, f"{name} is not on the list of packages that a testcase may install")
    return f"{name}{parsed.specifier}"


# ------------------------------------------------------------------------------------------------ environments


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

    def mounts(self) -> tuple[Mount, ...]:
        """What a sandbox must show, read-only."""
        return (*self.interpreter.mounts(), Mount(host=self.site_packages, guest=GUEST_SITE))

    def variables(self) -> dict[str, str]:
        """The environment of a process in it: the toolchain's own, and where its packages are."""
        toolchain = find_toolchain(self.toolchain)
        return {**toolchain.VARIABLES, **self.interpreter.variables(), "PYTHONPATH": GUEST_SITE}

    def tools(self) -> dict[str, tuple[str, ...]]:
        """Programs of the toolchain: name → argv prefix with paths as seen inside."""
        python = self.interpreter.guest_executable
        return {
            name: tuple(python if word == "python" else _guest_word(word) for word in argv)
            for name, argv in find_toolchain(self.toolchain).tools(self.site_packages).items()
        }

    def packages(self) -> dict[str, str]:
        """Name → version of everything in it."""
        return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", self.lock, re.MULTILINE))


def _guest_word(word: str) -> str:
    return f"{GUEST_SITE}/{word}" if "/" in word else word


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """``environment.json``: written last; an entry without one that reads back does not exist."""

    schema: int
    digest: str
    files: int
    bytes: int
    commit: str | None = None
    built: str | None = None


_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """All environments of this user on this machine. Safe for any number of processes at once."""

    root: Path
    uv: Uv
    max_download_bytes: int = MAX_DOWNLOAD_BYTES
    say: Say = field(default=lambda message: None)
    """Told, in words, what takes time."""

    def environment(self, release: Release, requirements: Sequence[str] = ()) -> Environment:
        """The environment of a release and the testcase's requirements: found, or resolved and built.

        Raises:
            UserError: a requirement is not allowed, or doesn't go with this release (`Unresolvable`).
            InfraError: no network where it is needed, a full disk, no fitting Python.
        """
        kept, refused = check_requirements(requirements)
        if refused:
            raise UserError(f"requirement {refused[0].requirement!r} {refused[0].why}")
        interpreter = interpreters.choose(release.pythons)
        with _disk_errors(self.root):
            lock = self._lock_text(release, kept, interpreter)
            return self._found(release, lock, interpreter) or self._built(release, lock, interpreter)

    # ---- resolving

    def _lock_text(self, release: Release, requirements: tuple[str, ...], interpreter: Interpreter) -> str:
        """The lock, from the cache of resolutions where one can be reused for ever: its date is in the past."""
        toolchain = find_toolchain(release.toolchain)
        wanted = (*release.distributions, *release.pins, *_companions(toolchain, requirements), *requirements)
        if not wanted:
            return ""
        key = _digest(json.dumps([wanted, str(release.as_of), interpreter.version, interpreter.platform]))
        path = self.root / "resolutions" / f"{key}.json"
        known = _read_resolution(path)
        if known is None:
            self.say(f"resolving {release.toolchain} {release.version} as of {_day(release)}")
            known = self._resolve(release, wanted, requirements, interpreter)
            _write(path, json.dumps({"wanted": wanted, "lock": known}, indent=1))
        return known

    def _resolve(
        self, release: Release, wanted: tuple[str, ...], requirements: tuple[str, ...], interpreter: Interpreter
    ) -> str:
        try:
            pins = self.uv.resolve(
                wanted, python=interpreter.executable, minor=interpreter.version, newest=release.as_of
            )
        except NoSolution as explanation:
            if not requirements:
                raise InfraError(f"{release.toolchain} {release.version} cannot be resolved: {explanation}") from None
            asked = ", ".join(requirements)
            raise Unresolvable(
                f"{asked} as of {_day(release)} does not go with {release.toolchain} {release.version} in wheels: "
                f"{explanation}"
            ) from None
        if requirements:
            self._weigh(pins, release)
        return render_lock(pins)

    def _weigh(self, pins: Sequence[Pin], release: Release) -> None:
        """Refuse what a stranger's testcase makes too big to fetch; the toolchain itself is never refused."""
        size = download_bytes(pins)
        if size > self.max_download_bytes:
            largest = max(pins, key=lambda p: download_bytes([p])).name
            raise Unresolvable(
                f"the testcase's requirements make {release.toolchain} {release.version} a download of "
                f"{size // 1024**2} MiB (most of it for {largest}); the limit is {self.max_download_bytes // 1024**2}"
            )

    # ---- finding

    def _found(self, release: Release, lock: str, interpreter: Interpreter) -> Environment | None:
        digest = _environment_digest(lock, interpreter)
        folder = self._folder(digest)
        record = _read_record(folder, digest)
        if record is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)  # when it was last used, for `clean`
        return Environment(
            digest=digest,
            toolchain=release.toolchain,
            version=release.version,
            folder=folder,
            interpreter=interpreter,
            lock=lock,
            commit=record.commit or release.commit,
            built=record.built or release.built,
        )

    def _folder(self, digest: str) -> Path:
        return self.root / "environments" / digest.removeprefix("sha256:")

    # ---- building

    def _built(self, release: Release, lock: str, interpreter: Interpreter) -> Environment:
        digest = _environment_digest(lock, interpreter)
        with self._building_lock(digest, f"{release.toolchain} {release.version}"):
            found = self._found(release, lock, interpreter)  # someone else built it while we waited
            if found is not None:
                return found
            self._sweep(digest)
            self.say(f"building {release.toolchain} {release.version} for Python {interpreter.version}")
            self._build(release, lock, interpreter, digest)
        built = self._found(release, lock, interpreter)
        if built is None:
            raise InfraError(f"the environment of {release.toolchain} {release.version} vanished after it was built")
        return built

    def _build(self, release: Release, lock: str, interpreter: Interpreter, digest: str) -> None:
        folder = self._folder(digest)
        parent = _make(self.root / "building")
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=parent))
        try:
            if lock:
                self._install(lock, draft / "site", interpreter)
            self._seal(draft, release, lock, digest)
            _make(folder.parent)
            if folder.exists():  # it was there and unreadable
                shutil.rmtree(folder)
            draft.rename(folder)
            _sync(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _install(self, lock: str, site: Path, interpreter: Interpreter) -> None:
        """Install, and check that each file has the length its wheel says.

        An environment shares its files with uv's cache, so what damaged one has damaged the other: such a package is
        downloaded anew.
        """
        self.uv.install(lock, site, python=interpreter.executable)
        damaged = damaged_packages(site)
        if not damaged:
            return
        self.say(f"uv's cache of {', '.join(damaged)} is damaged: downloading again")
        for package in damaged:
            self.uv.forget(package)
        shutil.rmtree(site)
        self.uv.install(lock, site, python=interpreter.executable)
        still = damaged_packages(site)
        if still:
            raise InfraError(f"{', '.join(still)} does not unpack to what its wheel lists: run `reprobot clean`")

    def _seal(self, draft: Path, release: Release, lock: str, digest: str) -> None:
        """Lock first, record last. What a power cut truncates is found by the sizes in the record."""
        _make(draft / "site")
        built, commit = find_toolchain(release.toolchain).built_from(draft / "site")
        files, size = _measure(draft / "site")
        record = _Record(schema=_SCHEMA, digest=digest, files=files, bytes=size, commit=commit, built=built)
        draft.chmod(0o755)
        _write(draft / "lock.txt", lock)
        _write(draft / "environment.json", msgspec.json.encode(record).decode())
        _sync(draft)

    @contextlib.contextmanager
    def _building_lock(self, digest: str, what: str) -> Iterator[None]:
        """Hold this digest's lock; the kernel lets go of it when its holder dies."""
        path = _make(self.root / "locks") / digest.removeprefix("sha256:")
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say(f"waiting for another process that is building {what}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sweep(self, ours: str) -> None:
        """Remove what killed builders left: drafts whose lock nobody holds, or we do."""
        for draft in (self.root / "building").glob("*-*"):
            name = draft.name.partition("-")[0]
            if name == ours.removeprefix("sha256:") or _is_free(self.root / "locks" / name):
                shutil.rmtree(draft, ignore_errors=True)

    # ---- housekeeping

    def size(self) -> int:
        """Bytes on disk, hard links counted once."""
        return _disk_bytes(self.root)

    def clean(self) -> int:
        """Remove everything; returns the bytes freed.

        Raises:
            InfraError: something there cannot be removed.
        """
        before = self.size()
        try:
            for part in ("building", "environments", "resolutions", "locks", "uv", "catalogue"):
                if (self.root / part).exists():
                    shutil.rmtree(self.root / part)
        except OSError as error:
            raise InfraError(f"{self.root} cannot be removed: {error.strerror}") from error
        return before - self.size()


def open_store(root: Path | None = None, *, offline: bool = False, say: Say = lambda message: None) -> Store:
    """The user's store, or one at ``root``."""
    place = root or default_root()
    return Store(root=place, uv=Uv(cache=place / "uv", offline=offline), say=say)


def render_lock(pins: Sequence[Pin]) -> str:
    """Pins as sorted, hashed requirement lines: no addresses, so that the same wheels always give the same text."""
    return "".join(f"{p.name}=={p.version} --hash=sha256:{p.sha256}\n" for p in sorted(pins, key=lambda p: p.name))


def _companions(toolchain: Toolchain, requirements: tuple[str, ...]) -> tuple[str, ...]:
    """The toolchain's own extras, except where the testcase says which version it wants."""
    named = {Requirement(r).name for r in requirements}
    return tuple(c for c in toolchain.COMPANIONS if c not in named)


def _day(release: Release) -> str:
    return f"{release.as_of:%Y-%m-%d}" if release.as_of else "today"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _environment_digest(lock: str, interpreter: Interpreter) -> str:
    return "sha256:" + _digest(f"{_SCHEMA}\n{interpreter.version}\n{interpreter.platform}\n{lock}")


def damaged_packages(site: Path) -> tuple[str, ...]:
    """Names of the packages of which a file is missing or has another length than its RECORD says."""
    records = sorted(site.glob("*.dist-info/RECORD"))
    return tuple(r.parent.name.partition("-")[0] for r in records if not all(_as_recorded(site, r)))


def _as_recorded(site: Path, record: Path) -> Iterator[bool]:
    for path, _, size in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if size and not path.startswith("../"):
            with contextlib.suppress(FileNotFoundError):
                yield (site / path).stat().st_size == int(size)
                continue
            yield False


def _read_resolution(path: Path) -> str | None:
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))["lock"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return lock if isinstance(lock, str) else None


def _read_record(folder: Path, digest: str) -> _Record | None:
    """The record of a complete entry; None where there is none, or it doesn't describe what is there."""
    try:
        record = msgspec.json.decode((folder / "environment.json").read_bytes(), type=_Record)
    except (OSError, msgspec.MsgspecError):
        return None
    whole = record.schema == _SCHEMA and record.digest == digest
    return record if whole and _measure(folder / "site") == (record.files, record.bytes) else None


def _measure(folder: Path) -> tuple[int, int]:
    """Number and total size of the files below a folder: tells a truncated or lost file at the price of a walk."""
    files = size = 0
    for _, entry in _walk(folder):
        files, size = files + 1, size + entry.st_size
    return files, size


def _disk_bytes(folder: Path) -> int:
    return sum({(e.st_dev, e.st_ino): e.st_blocks * 512 for _, e in _walk(folder)}.values())


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files below a folder; what vanishes meanwhile is left out."""
    try:
        with os.scandir(folder) as entries:
            inside = list(entries)
    except OSError:
        return
    for entry in inside:
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            else:
                yield entry.path, entry.stat(follow_symlinks=False)


def _is_free(lock: Path) -> bool:
    try:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _make(folder: Path) -> Path:
    """A folder that other users may read: sandboxes run as nobody."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(0o755)
    return folder


def _write(path: Path, text: str) -> None:
    """Atomic and durable."""
    _make(path.parent)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o644)
    Path(file.name).replace(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}:
            raise InfraError(
                f"the store {root} cannot be written ({error.strerror}): free some space, or set REPROBOT_CACHE"
            ) from error
        raise
