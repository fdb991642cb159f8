"""Builds made here: the toolchain's own build command, run in the sandbox at one commit.

The command sees its sources, a folder for its wheels, a compiler cache that stays, what the operator gave it, and no
network. What it leaves is unpacked like any wheel, and never runs outside the sandbox. A build that fails is
remembered, one that ran out of time or memory is not: another machine may have more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from runners.builds.artifacts import build_name, release_of
from runners.builds.history import History
from runners.builds.source import Build, Point, Unbuildable
from runners.core.catalogue import Release
from runners.core.protocol import Exited, Limits
from runners.environments.atomic_dirs import Shelf, disk_bytes, make_folder, write_text
from runners.environments.config import BuildCommand, Builds
from runners.environments.store import Environment
from runners.sandbox.contract import Engine, Mount, SandboxSpec
from runners.sandbox.owner import private_directory

SOURCES, OUT, CACHE, PYTHON, SITE = "/build", "/out", "/cache", "/opt/python", "/opt/site"
MOST_OUTPUT_BYTES = 64 * 1024**2
"""A build that prints more is stopped."""
MOST_FILE_BYTES = 16 * 1024**3
_LAST_WORDS = 800
_FAILED = "failed.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """See ``sources.Source``. Everything a build needs of this machine."""

    settings: Builds
    command: BuildCommand
    packages: tuple[str, ...]
    history: History
    engine: Engine
    tools: Environment
    """A Python with the packages that building needs."""
    root: Path
    """Of the store: finished builds and compiler caches lie below it."""
    run_id: str
    say: Callable[[str], None]

    @property
    def name(self) -> str:
        return f"builds of {self.settings.repository} made here"

    def builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """One for every commit."""
        days = self.history.days(line)
        found = (
            Build(
                name=build_name(base, line[0], point),
                point=point,
                seconds=0.0 if self._shelf.find(self._key(point.commit)) else self.command.expected_s,
                source=self.name,
                day=self.command.as_of or days.get(point.commit),
            )
            for point in line
        )
        return tuple(found)

    def provide(self, build: Build) -> Release:
        """Its wheels: found finished, or built."""
        key = self._key(build.point.commit)
        entry = self._shelf.find(key) or self._shelf.build(
            key,
            lambda draft: self._make(build, draft),
            waiting=lambda: self.say(f"waiting for another process that is building {build.point.commit[:12]}"),
        )
        with contextlib.suppress(FileNotFoundError):
            raise Unbuildable((entry / _FAILED).read_text(encoding="utf-8"))
        self.trim(int(self.command.keep_gib * 2**30), keep=key)
        names = sorted(path.name for path in entry.iterdir())
        return release_of(build, names, str(entry), toolchain=self.settings.toolchain, packages=self.packages)

    def trim(self, limit_bytes: int, *, keep: str = "", unused_s: float = 3600.0) -> None:
        """Remove finished builds, longest unused first, until the rest takes no more than this."""
        sizes = {name: disk_bytes(self.root / "builds" / name) for name in self._shelf.names()}
        for name in list(sizes):
            if sum(sizes.values()) <= limit_bytes:
                return
            if name != keep and self._shelf.unused_s(name) >= unused_s:
                self._shelf.remove(name)
                del sizes[name]

    @property
    def _shelf(self) -> Shelf:
        return Shelf(root=self.root, kind="builds")

    def _key(self, commit: str) -> str:
        """Names a build by all it is made of."""
        made_of = msgspec.json.encode([self.settings.repository, self.command, self.tools.digest, commit])
        return hashlib.sha256(made_of).hexdigest()[:32]

    # ------------------------------------------------------------------------------------------ building

    def _make(self, build: Build, draft: Path) -> None:
        """Fill a draft with wheels, or with the reason why there are none.

        Raises:
            Unbuildable: time or memory ran out.
            InfraError: the sources cannot be had, the sandbox failed.
        """
        self.say(f"building {self.settings.toolchain} at {build.point.commit[:12]}")
        with private_directory() as place:
            sources, out = place / "sources", place / "out"
            self.history.export(build.point.commit, sources)
            out.mkdir()
            cache = make_folder(self.root / "compiler-caches") / hashlib.sha256(self._cache_of).hexdigest()[:16]
            cache.mkdir(exist_ok=True)
            _open_to_all(place, sources, out, cache)
            report = self.engine.run(self._spec(build, sources, out, cache))
            said = (report.stdout + report.stderr).decode("utf-8", "replace").strip()[-_LAST_WORDS:]
            wheels = sorted(path for path in out.glob("*.whl") if path.is_file() and not path.is_symlink())
            what = f"{build.point.commit[:12]} does not build"
            if not isinstance(report.ended, Exited):
                raise Unbuildable(f"{what} here ({report.ended}): {said}")
            if report.ended.code != 0 or not wheels:
                why = f"exit code {report.ended.code}" if report.ended.code else "it leaves no wheel"
                write_text(draft / _FAILED, f"{what} ({why}): {said}")
            for wheel in wheels if report.ended.code == 0 else ():
                shutil.copyfile(wheel, draft / wheel.name)

    @property
    def _cache_of(self) -> bytes:
        return f"{self.settings.toolchain} {self.settings.repository}".encode()

    def _spec(self, build: Build, sources: Path, out: Path, cache: Path) -> SandboxSpec:
        written = (Mount(host=sources, guest=SOURCES, writable=True), Mount(host=out, guest=OUT, writable=True))
        kept = Mount(host=cache, guest=CACHE, writable=True)
        given = tuple(
            Mount(host=Path(host).expanduser(), guest=inside) for inside, host in self.command.given.items()
        )
        fill = self._fill(build)
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

    def _fill(self, build: Build) -> Callable[[str], str]:
        stands = {
            "{commit}": build.point.commit,
            "{short}": build.point.commit[:7],
            "{count}": str(build.point.ordinal),
            "{name}": build.name,
        }

        def fill(word: str) -> str:
            for placeholder, value in stands.items():
                word = word.replace(placeholder, value)
            return word

        return fill


def _open_to_all(place: Path, *folders: Path) -> None:
    """The build runs as nobody, who must be able to write into what is its own."""
    place.chmod(0o711)
    for folder in folders:
        for path in (folder, *_below(folder)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o777 if path.is_dir() else 0o666))


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
