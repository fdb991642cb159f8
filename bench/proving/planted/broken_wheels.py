"""Make wheels of compilers with faults of our own: ``python -m bench.proving.planted.broken_wheels DIR``.

Each is a release as the store has it, under a version of its own, with one module (TVM) or program (IREE) of
``wheel_code`` added. Faults that are already in DIR are made again only where their code changed. The wheels are for
``--wheels DIR``.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time
from pathlib import Path

from bench.proving.planted.builds import BROKEN, Broken
from runners.core.packages.catalogue import load_catalogue
from runners.environments.store import Store, open_store

CODE = Path(__file__).parent / "wheel_code"
LEFT_OUT = re.compile(r"__pycache__/|^(?:\.\./|bin/)|\.dist-info/(?:INSTALLER|REQUESTED|RECORD|direct_url\.json)$")
"""What an installer adds to the files of a wheel."""
PROGRAMS = "iree/compiler/_mlir_libs"
PACKAGES = {"tvm": ("apache-tvm",), "iree": ("iree-base-compiler", "iree-base-runtime")}
EXECUTABLE = 0o100755


def make_wheels(folder: Path, store: Store) -> list[Path]:
    """Make every broken build in a folder, or leave it where it is up to date; returns the wheels."""
    folder.mkdir(parents=True, exist_ok=True)
    catalogue = load_catalogue()
    made: list[Path] = []
    for broken in BROKEN:
        stamp = folder / f"{broken.toolchain}-{broken.version}.made"
        wheels = sorted(folder.glob(f"*-{broken.version}-*.whl"))
        if not wheels or not stamp.exists() or stamp.read_text() != digest_code(broken.toolchain):
            site = store.get_environment(catalogue.find(broken.toolchain, broken.base)).site_packages
            wheels = [make_wheel(site, package, broken, folder) for package in PACKAGES[broken.toolchain]]
            forget_resolutions(store, broken)
            stamp.write_text(digest_code(broken.toolchain))
        made += wheels
    return made


def forget_resolutions(store: Store, broken: Broken) -> None:
    """Remove the store's locks of a build: a lock holds for ever, as no published wheel ever changes."""
    for path in (store.root / "resolutions").glob("*.json"):
        if f"=={broken.version} " in path.read_text(encoding="utf-8"):
            path.unlink()


def digest_code(toolchain: str) -> str:
    """Name the faults of a toolchain's broken builds by their code."""
    texts = (path.read_bytes() for path in sorted(CODE.glob(f"{toolchain}_*.py")))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def make_wheel(site: Path, package: str, broken: Broken, folder: Path) -> Path:
    """Put one installed package together again as a wheel of another version, with what makes it broken."""
    (info,) = site.glob(f"{package.replace('-', '_')}-*.dist-info")
    files = {name: site / name for name in list_files(info)}
    changed = {name: (text, mode) for name, text, mode in list_changes(site, package, broken)}
    name = f"{package.replace('-', '_')}-{broken.version}"
    tags = re.findall(r"^Tag: (\S+)$", (info / "WHEEL").read_text(), re.M)
    wheel = folder / f"{name}-{'-'.join(tags[0].split('-')[:2])}-{'.'.join(t.split('-')[2] for t in tags)}.whl"
    record: list[tuple[str, str, object]] = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted({*files, *changed}):
            if path in changed:
                data, mode = changed[path]
            else:
                data, mode = files[path].read_bytes(), files[path].stat().st_mode
            inside = path.replace(info.name, f"{name}.dist-info")
            if path == f"{info.name}/METADATA":
                data = rewrite_metadata(data.decode(), site, broken.version).encode()
            _write(archive, inside, data, mode)
            record.append((inside, _hash(data), len(data)))
        _write(archive, f"{name}.dist-info/RECORD", _format_record(record, f"{name}.dist-info/RECORD"), 0o100644)
    # The catalogue takes a build's day from its file's time, and uv takes a file of the same time for the same file.
    second = int(digest_code(broken.toolchain)[:4], 16) % 3600
    made = datetime.combine(broken.made_on, time(12), tzinfo=UTC).timestamp() + second
    os.utime(wheel, (made, made))
    return wheel


def rewrite_metadata(text: str, site: Path, version: str) -> str:
    """Give a wheel's METADATA another version, and pin what it requires to what its base was resolved with.

    A later apache-tvm-ffi than the base was built for makes the compiler crash.
    """
    infos = (path.name.removesuffix(".dist-info").split("-") for path in site.glob("*.dist-info"))
    installed = {name.lower(): number for name, number in infos}

    def pin(line: re.Match[str]) -> str:
        number = installed.get(line["name"].replace("-", "_").lower())
        return f"Requires-Dist: {line['name']}=={number}" if number else line[0]

    text = re.sub(r"^Version: \S+", f"Version: {version}", text, flags=re.M)
    return re.sub(r"^Requires-Dist: (?P<name>[\w.-]+)[^;\n]*$", pin, text, flags=re.M)


def list_files(info: Path) -> Iterator[str]:
    """The files that a wheel's RECORD lists, without those that the installer made."""
    for name, *_ in csv.reader((info / "RECORD").read_text(encoding="utf-8").splitlines()):
        if not LEFT_OUT.search(name):
            yield name


def list_changes(site: Path, package: str, broken: Broken) -> Iterator[tuple[str, bytes, int]]:
    """Path, content and mode of each file in which the broken build differs from its base."""
    if package == "apache-tvm":
        yield from _change_tvm(site, broken)
    elif package == "iree-base-compiler":
        yield from _change_iree(site, broken)


def _change_tvm(site: Path, broken: Broken) -> Iterator[tuple[str, bytes, int]]:
    text = (site / "tvm/__init__.py").read_text()
    yield "tvm/__init__.py", f"{text}\nfrom .relax import shape_rules\n".encode(), 0o100644
    yield "tvm/relax/shape_rules.py", (CODE / "tvm_shape_rules.py").read_bytes(), 0o100644
    version = (site / "tvm/_version.py").read_text()
    yield "tvm/_version.py", version.replace(f"'{broken.base}'", f"'{broken.version}'").encode(), 0o100644


def _change_iree(site: Path, broken: Broken) -> Iterator[tuple[str, bytes, int]]:
    """The compiler's programs make way for one of ours, and lie beside it under another name."""
    driver = (CODE / "iree_driver.py").read_bytes()
    for program in ("iree-compile", "iree-opt"):
        yield f"{PROGRAMS}/{program}", driver, EXECUTABLE
        yield f"{PROGRAMS}/{program.removeprefix('iree-')}-main", (site / PROGRAMS / program).read_bytes(), EXECUTABLE
    commit = hashlib.sha1(broken.version.encode(), usedforsecurity=False).hexdigest()
    about: Mapping[str, object] = {"IREE": commit}
    text = f'PACKAGE_SUFFIX = ""\nVERSION = "{broken.version}"\nREVISIONS = {about!r}\n'.replace("'", '"')
    yield "iree/compiler/version.py", text.encode(), 0o100644


def _write(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def _hash(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _format_record(rows: list[tuple[str, str, object]], own: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*rows, (own, "", "")])
    return text.getvalue().encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for wheel in make_wheels(parser.parse_args().folder, open_store()):
        sys.stdout.write(f"{wheel}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
