"""A wheel of this commit's Python files over the compiled libraries of an installed release.

``python3 overlay.py DISTRIBUTION PACKAGE SOURCES OUT COMMIT``, for example ``apache-tvm tvm /build/python/tvm /out
1a2b3c4``. Of the release, files of the package that are Python's are left out; of the sources, only those are taken.
The wheel's version says what it is: ``0.26.0+python.g1a2b3c4`` is Python of that commit on libraries of 0.26.0.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path

PYTHON = {".py", ".pyi"}


def main(name: str, package: str, sources: Path, out: Path, commit: str) -> None:
    release = distribution(name)
    (info,) = {path.parts[0] for path in release.files or () if path.name == "METADATA" and len(path.parts) == 2}
    version = f"{release.version.partition('+')[0]}+python.g{commit}"
    new_info = f"{info.partition('-')[0]}-{version}.dist-info"
    tag = next(line[5:] for line in (release.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: "))
    files = {path.as_posix(): path.locate().read_bytes() for path in kept(release, package)}
    files |= taken(sources, package)
    text = release.read_text("METADATA") or ""
    files[f"{new_info}/METADATA"] = text.replace(
        f"\nVersion: {release.version}\n", f"\nVersion: {version}\n"
    ).encode()
    files[f"{new_info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: overlay\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    write(out / f"{info.partition('-')[0]}-{version}-{tag}.whl", files, f"{new_info}/RECORD")


def kept(release: Distribution, package: str) -> list[PackagePath]:
    """The package's compiled libraries and data in the release, and the libraries that lie beside it."""
    inside = [path for path in release.files or () if path.parts[0] in {package, f"{package}.libs"}]
    return [path for path in inside if path.suffix not in {*PYTHON, ".pyc"}]


def taken(sources: Path, package: str) -> dict[str, bytes]:
    """The commit's Python files, by their place in the wheel."""
    found = {path for path in sources.rglob("*") if path.suffix in PYTHON and path.is_file()}
    if not found:
        raise SystemExit(f"no Python files below {sources}: the package lay elsewhere at this commit")
    return {f"{package}/{path.relative_to(sources).as_posix()}": path.read_bytes() for path in sorted(found)}


def write(place: Path, files: dict[str, bytes], record: str) -> None:
    rows = [f"{name},sha256={digest(data)},{len(data)}" for name, data in files.items()]
    with zipfile.ZipFile(place, "w") as wheel:  # stored: packing a compiler takes longer than its copy
        for name, data in files.items():
            wheel.writestr(name, data)
        wheel.writestr(record, "\n".join([*rows, f"{record},,", ""]))


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
