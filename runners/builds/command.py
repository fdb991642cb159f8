"""Make builds here: run the operator's build command in the sandbox at one commit.

The command sees its sources, a folder for its wheels, a compiler cache that is kept, the operator's ``given`` paths,
and no network. Its wheels are unpacked like any wheel and never run outside the sandbox. A failed build is recorded.
A build that ran out of time or memory is not recorded, because another machine may have more.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from runners.builds.artifacts import make_build_name, make_release
from runners.builds.history import MainHistory
from runners.builds.source import Build, Point, Unbuildable
from runners.core.packages.catalogue import Release
from runners.core.protocol import Exited, Limits
from runners.environments.atomic_dirs import AtomicDirs
from runners.environments.config import BuildCommand, BuildsConfig
from runners.environments.files import make_folder, measure_disk_bytes, write_text
from runners.environments.store import Environment
from runners.sandbox.contract import Engine, Mount, SandboxSpec
from runners.sandbox.owner import open_private_directory

SOURCES, OUT, CACHE, PYTHON, SITE = "/build", "/out", "/cache", "/opt/python", "/opt/site"
MOST_OUTPUT_BYTES = 64 * 1024**2
"""Maximum output of a build. A build that prints more is killed."""
MOST_FILE_BYTES = 16 * 1024**3
MOST_DEPTH = 64
"""Maximum depth of folders that are open to the build, in the sources and the cache."""
MOST_WHEELS = 50
MOST_WHEEL_BYTES = 4 * 1024**3
MOST_WHEEL_FILES = 200_000
MOST_UNPACKED_BYTES = 16 * 1024**3
"""Limits for the wheels of a build. They are copied and unpacked outside the sandbox."""
_LAST_WORDS = 800
_FAILED = "failed.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSource:
    """See ``source.BuildSource``. Contains everything that a build needs of this machine."""

    settings: BuildsConfig
    command: BuildCommand
    packages: tuple[str, ...]
    history: MainHistory
    engine: Engine
    tools: Environment
    """A Python with the packages that the build command needs."""
    root: Path
    """Root of the store, with finished builds and compiler caches."""
    run_id: str
    say: Callable[[str], None]

    @property
    def name(self) -> str:
        return f"builds of {self.settings.repository} made here"

    def list_builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Return one build for every commit."""
        days = self.history.read_days(line)
        return tuple(
            Build(
                name=make_build_name(base, line[0], point),
                point=point,
                seconds=0.0 if self._finished.find(self._make_key(point.commit)) else self.command.expected_s,
                source=self.name,
                day=self.command.as_of or days.get(point.commit),
            )
            for point in line
        )

    def provide_release(self, build: Build) -> Release:
        """Return the finished build's wheels. Build them if they are absent."""
        key = self._make_key(build.point.commit)
        entry = self._finished.find(key) or self._finished.build(
            key,
            lambda draft: self._run_build(build, draft),
            on_wait=lambda: self.say(f"waiting for another process that is building {build.point.commit[:12]}"),
        )
        with contextlib.suppress(FileNotFoundError):
            raise Unbuildable((entry / _FAILED).read_text(encoding="utf-8"))
        self.trim(int(self.command.keep_gib * 2**30), keep=key)
        names = sorted(path.name for path in entry.iterdir())
        return make_release(build, names, str(entry), toolchain=self.settings.toolchain, packages=self.packages)

    def trim(self, limit_bytes: int, *, keep: str = "", unused_s: float = 3600.0) -> None:
        """Remove finished builds except ``keep``, longest unused first, until the rest is within the limit."""
        sizes = {name: measure_disk_bytes(self.root / "builds" / name) for name in self._finished.list_names()}
        for name in list(sizes):
            if sum(sizes.values()) <= limit_bytes:
                return
            if name != keep and self._finished.measure_unused_s(name) >= unused_s:
                self._finished.remove(name)
                del sizes[name]

    @property
    def _finished(self) -> AtomicDirs:
        return AtomicDirs(root=self.root, kind="builds")

    def _make_key(self, commit: str) -> str:
        """Return the name of a build: a digest of all its inputs."""
        inputs = msgspec.json.encode([self.settings.repository, self.command, self.tools.digest, commit])
        return hashlib.sha256(inputs).hexdigest()[:32]

    # ------------------------------------------------------------------------------------------ building

    def _run_build(self, build: Build, draft: Path) -> None:
        """Fill a draft with wheels, or with the reason why the commit cannot be built.

        Raises:
            Unbuildable: time or memory ran out.
            InfraError: the sources cannot be fetched, or the sandbox failed.
        """
        self.say(f"building {self.settings.toolchain} at {build.point.commit[:12]}")
        with open_private_directory() as folder:
            sources, out = folder / "sources", folder / "out"
            self.history.export_files(build.point.commit, sources)
            out.mkdir()
            folder.chmod(0o711)
            with self._open_cache() as cache:
                for written in (sources, out, cache):
                    open_to_all(written)
                report = self.engine.run(self._make_spec(build, sources, out, cache))
            output = (report.stdout + report.stderr).decode("utf-8", "replace").strip()[-_LAST_WORDS:]
            wheels = sorted(path for path in out.glob("*.whl") if path.is_file() and not path.is_symlink())
            problem = find_wheel_problem(wheels) if report.ended == Exited(code=0) else ""
            failure = f"{build.point.commit[:12]} does not build"
            if not isinstance(report.ended, Exited):
                raise Unbuildable(f"{failure} here ({report.ended}): {output}")
            if report.ended.code != 0 or not wheels or problem:
                why = f"exit code {report.ended.code}" if report.ended.code else problem or "it leaves no wheel"
                write_text(draft / _FAILED, f"{failure} ({why}): {output}")
                return
            for wheel in wheels:
                shutil.copyfile(wheel, draft / wheel.name)

    @contextlib.contextmanager
    def _open_cache(self) -> Iterator[Path]:
        """Return the repository's compiler cache. Only one build at a time writes into a cache."""
        name = hashlib.sha256(self._cache_key).hexdigest()[:16]
        cache = make_folder(self.root / "compiler-caches") / name
        cache.mkdir(exist_ok=True)
        with _lock_file(
            make_folder(self.root / "locks") / f"compiler-caches~{name}",
            lambda: self.say("waiting for another build that uses the same compiler cache"),
        ):
            yield cache

    @property
    def _cache_key(self) -> bytes:
        return f"{self.settings.toolchain} {self.settings.repository}".encode()

    def _make_spec(self, build: Build, sources: Path, out: Path, cache: Path) -> SandboxSpec:
        written = (Mount(host=sources, guest=SOURCES, writable=True), Mount(host=out, guest=OUT, writable=True))
        kept = Mount(host=cache, guest=CACHE, writable=True)
        given = tuple(
            Mount(host=Path(host).expanduser(), guest=inside) for inside, host in self.command.given.items()
        )
        fill = _make_filler(build)
        interpreter = self.tools.interpreter
        prefix = "/usr" if interpreter.in_system else PYTHON
        return SandboxSpec(
            argv=("/usr/bin/env", f"--chdir={SOURCES}", *(fill(word) for word in self.command.command)),
            mounts=(
                *written,
                kept,
                Mount(host=self.tools.site_packages, guest=SITE),
                *(() if interpreter.in_system else (Mount(host=interpreter.prefix, guest=PYTHON),)),
                *given,
            ),
            environment={
                "PATH": f"{SITE}/bin:{prefix}/bin:/usr/bin:/bin",
                "PYTHONPATH": SITE,
                **({} if interpreter.in_system else {"LD_LIBRARY_PATH": f"{PYTHON}/lib"}),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PIP_NO_INDEX": "1",
                "CCACHE_DIR": f"{CACHE}/ccache",
                "SCCACHE_DIR": f"{CACHE}/sccache",
                "XDG_CACHE_HOME": CACHE,
                "LC_ALL": "C.UTF-8",
                **{name: fill(value) for name, value in self.command.variables.items()},
            },
            limits=Limits(
                wall_s=self.command.timeout_s,
                memory_bytes=int(self.command.memory_gib * 2**30),
                processes=self.command.processes,
                output_bytes=MOST_OUTPUT_BYTES,
                disk_bytes=MOST_FILE_BYTES,
            ),
            run_id=self.run_id,
        )


def _make_filler(build: Build) -> Callable[[str], str]:
    """Return a function that replaces the configuration's placeholders in a word."""
    placeholders = {
        "{commit}": build.point.commit,
        "{short}": build.point.commit[:7],
        "{count}": str(build.point.ordinal),
        "{name}": build.name,
    }

    def fill(word: str) -> str:
        for placeholder, value in placeholders.items():
            word = word.replace(placeholder, value)
        return word

    return fill


def find_wheel_problem(wheels: Sequence[Path]) -> str:
    """Return the reason why the wheels would fill the disk. Empty if they would not.

    The contents are unpacked and discarded, because a wheel's list of contents may understate their lengths. A sparse
    file takes no disk space in the sandbox, but its copy does. So the length counts.
    """
    if len(wheels) > MOST_WHEELS or sum(wheel.stat().st_size for wheel in wheels) > MOST_WHEEL_BYTES:
        return f"it leaves more than {MOST_WHEELS} wheels or {MOST_WHEEL_BYTES >> 30} GiB"
    files = length = 0
    try:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                files += len(archive.infolist())
                if files > MOST_WHEEL_FILES:
                    return f"its wheels have more than {MOST_WHEEL_FILES} files"
                for member in archive.infolist():
                    member.file_size = (
                        MOST_UNPACKED_BYTES + 1
                    )  # read to the end of the data, not to the stated length
                    with archive.open(member) as content:
                        while piece := content.read(1024 * 1024):
                            length += len(piece)
                            if length > MOST_UNPACKED_BYTES:
                                return f"its wheels unpack to more than {MOST_UNPACKED_BYTES >> 30} GiB"
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        return f"it leaves a wheel that cannot be read: {ascii(str(error))[1:201]}"
    return ""


@contextlib.contextmanager
def _lock_file(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def open_to_all(folder: Path) -> None:
    """Let every user write into ``folder``, because each build runs as another unprivileged user.

    A build may replace a file by a link meanwhile, for example if its maker was killed. So each file is opened first,
    without following links, and its mode is changed by its descriptor. Folders deeper than `MOST_DEPTH` are skipped,
    because a compiler cache has fewer levels.
    """
    top = os.open(folder, _FOLDER)
    try:
        _open_descriptor(top, MOST_DEPTH)
    finally:
        os.close(top)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _open_descriptor(descriptor: int, depth: int) -> None:
    """Open a file, or a folder and everything below it, to all users. Other kinds of files are unchanged."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        os.fchmod(descriptor, stat.S_IMODE(mode) | 0o666)
    elif stat.S_ISDIR(mode):
        os.fchmod(descriptor, stat.S_IMODE(mode) | 0o777)
        for name in os.listdir(descriptor) if depth else ():
            with contextlib.suppress(OSError):  # a link, a socket, or a file that is gone
                below = os.open(name, _FILE, dir_fd=descriptor)
                try:
                    _open_descriptor(below, depth - 1)
                finally:
                    os.close(below)
