"""Unpack wheels once, and assemble environments from them by hard links.

uv unpacks wheels and compiles bytecode without importing. No code of a wheel runs here.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.hostile.folders import remove_folder
from runners.environments.atomic_dirs import AtomicDirs
from runners.environments.files import link_tree, make_folder
from runners.environments.interpreters import Interpreter
from runners.environments.uv import Uv

BUILDERS = 4
"""Number of wheels of one environment that are fetched and unpacked at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelAssembler:
    """Assembles the wheels of a lock for one interpreter. Unpacked wheels are kept in ``unpacked``."""

    unpacked: AtomicDirs
    uv: Uv
    interpreter: Interpreter
    say: Callable[[str], None]

    def assemble(self, lock: str, site: Path) -> None:
        """Link the wheels of every line of ``lock`` into the folder ``site``.

        Raises:
            InfraError: a download, a hash or the disk failed.
        """
        make_folder(site)
        with ThreadPoolExecutor(max_workers=BUILDERS) as pool:
            wheels = list(pool.map(self._provide_wheel, lock.splitlines()))
        for wheel in wheels:
            link_tree(wheel / "site", site)

    def _provide_wheel(self, line: str) -> Path:
        name = f"{line.rpartition(':')[2]}-{self.interpreter.version}"
        return self.unpacked.find(name) or self.unpacked.build(
            name,
            lambda draft: self._unpack(line, draft / "site"),
            on_wait=lambda: self.say(f"waiting for another process that is unpacking {line.partition(' ')[0]}"),
        )

    def _unpack(self, line: str, site: Path) -> None:
        """Install one wheel, and check every file against the wheel's RECORD.

        Unpacked files are hard links to uv's cache, so a damaged file here means a damaged cache. Then the wheel is
        downloaded again.
        """
        package = line.partition("==")[0]
        for attempt in (1, 2):
            self.uv.install(line, site, python=self.interpreter.executable)
            (site / ".lock").unlink(missing_ok=True)  # uv's own file
            # The second installation is from an archive with a checked hash. If a hash in RECORD is still wrong, the
            # wheel itself is wrong, and its files are accepted.
            if matches_record(site, hashes=attempt == 1):
                return
            if attempt == 1:
                self.say(f"uv's cache of {package} is damaged: downloading it again")
                self.uv.forget(package)
                remove_folder(site)
        raise InfraError(f"the wheel of {package} does not unpack to what it lists: run `reprobot clean`")


def matches_record(site: Path, *, hashes: bool) -> bool:
    """True if every file in a wheel's RECORD exists with its length, and with its hash if ``hashes``."""
    records = list(site.glob("*.dist-info/RECORD"))
    return bool(records) and all(ok for record in records for ok in _check_files(site, record, hashes=hashes))


def _check_files(site: Path, record: Path, *, hashes: bool) -> Iterator[bool]:
    for path, digest, size in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if size and not path.endswith(".pyc"):  # some wheels ship bytecode, which is compiled again
            file = site / path
            yield file.exists() and file.stat().st_size == int(size)
            yield not hashes or _has_hash(file, digest)


def _has_hash(file: Path, digest: str) -> bool:
    """True if the file has a hash in RECORD's format: ``sha256=`` and urlsafe base64 without padding.

    Other algorithms are not checked.
    """
    algorithm, _, expected = digest.partition("=")
    if algorithm != "sha256":
        return True
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == expected
