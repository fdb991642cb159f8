"""Fetch GitHub's own descriptions and examples from its npm packages, at the time of the test.

Each package is pinned by version and hash. The part that a test needs lies in the cache, not in the repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Unavailable(Exception):
    """The package cannot be fetched here. The message says which program or network is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """``member`` is the JSON document of the package that is used."""

    name: str
    sha256: str
    member: str


def cached(package: Package, cut: Callable[[Any], Any], key: str) -> Any:
    """Return the result of ``cut`` on the package's document, kept in the cache under ``key``.

    Raises:
        Unavailable: npm is not installed, or the package cannot be fetched.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reprobot-tests"
    digest = hashlib.sha256(f"{package.sha256}\n{package.member}\n{key}".encode()).hexdigest()[:12]
    kept = root / f"{re.sub(r'[^a-z0-9.]+', '-', package.name).strip('-')}-{digest}.json"
    if not kept.is_file():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            part = Path(folder) / "cut.json"
            part.write_text(json.dumps(cut(_document(package, Path(folder)))), encoding="utf-8")
            part.replace(kept)
    return json.loads(kept.read_text(encoding="utf-8"))


def _document(package: Package, folder: Path) -> Any:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(f"npm is not installed: apt install npm, to check against GitHub's {package.name}")
    made = subprocess.run(
        [npm, "pack", package.name, "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    archives = list(folder.glob("*.tgz"))
    if made.returncode != 0 or not archives:
        raise Unavailable(f"npm cannot fetch {package.name}: {made.stderr.strip()[-300:] or made.returncode}")
    if (found := hashlib.sha256(archives[0].read_bytes()).hexdigest()) != package.sha256:
        raise AssertionError(
            f"{package.name} has sha256 {found}, not {package.sha256}: look at what changed before you pin it"
        )
    with tarfile.open(archives[0]) as archive:
        inner = archive.extractfile(package.member)
        assert inner is not None
        return json.load(inner)
