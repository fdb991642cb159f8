"""The programs that run inside, compiled for the interpreter that runs them.

A sandbox shows them read-only, so that no Python could keep there what it compiled: each start would compile them
again (4 to 8 ms).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

COMPILE_S = 60.0


def compiled(source: Path, python: Path, root: Path) -> Path:
    """A copy of ``source`` in ``runners/guest`` of a folder below ``root``, with the byte code of ``python``.

    ``source`` itself where none can be made. An interpreter that finds byte code of another version, or none,
    compiles: only the time differs.
    """
    try:
        place = root / _name(source, python)
        if not place.exists():  # asked each time: somebody may have emptied the cache
            _make(source, python, place)
    except (OSError, subprocess.SubprocessError):
        return source
    return place / "runners" / "guest"


@functools.cache
def _name(source: Path, python: Path) -> str:
    files = sorted(source.rglob("*.py"))
    state = python.stat()
    told = [
        f"{python} {state.st_size} {state.st_mtime_ns}",
        *(f"{file.relative_to(source)}\n{file.read_text()}" for file in files),
    ]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]


def _make(source: Path, python: Path, place: Path) -> None:
    """Whole or not at all, whoever else does the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        whole = Path(beside, "whole")
        shutil.copytree(source, whole / "runners" / "guest", ignore=shutil.ignore_patterns("__pycache__"))
        words = [str(python), "-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([*words, str(whole)], capture_output=True, timeout=COMPILE_S, check=True)
        for path in (whole, *whole.rglob("*")):  # readable by "nobody", whatever our umask
            path.chmod(0o755 if path.is_dir() else 0o644)
        with contextlib.suppress(OSError):  # there already, by another
            whole.rename(place)
