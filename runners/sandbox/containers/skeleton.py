"""Build the skeleton: the file system of containers without a named image.

It contains mount points, links and a few small files. The skeleton is a tar archive that is made here, so no registry
is needed. The programs come from the host's ``/usr``, mounted read-only. A named image (``REPROBOT_IMAGE``) replaces
both.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

from runners.sandbox.limits import users

NAME = "reprobot-skeleton"

SYSTEM_MOUNTS = ("/usr", "/etc/ld.so.cache", "/etc/alternatives")
"""Paths of the host that a dynamically linked program needs. Absent ones are left out."""

HIDDEN = ("/usr/local/etc", "/usr/local/share/ca-certificates", "/usr/local/src", "/usr/src")
"""Folders below mounted ones that no program of a testcase needs: configuration of the host, and sources."""

SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Symbolic links into /usr on every merged-usr system."""

ETC = {
    "etc/passwd": users.render_passwd(),
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files for libraries that look up the user's name or localhost. They are the same for every engine."""

_DIRECTORIES = ("proc", "dev", "sys", "run", "usr", "etc", "etc/alternatives", "opt")
_SCRATCH = ("tmp", "work")


def list_host_mounts() -> tuple[str, ...]:
    """Return the paths of `SYSTEM_MOUNTS` that this host has."""
    return tuple(path for path in SYSTEM_MOUNTS if Path(path).exists())


def list_hidden(mounts: Iterable[tuple[str, str]]) -> list[str]:
    """Return where the folders of `HIDDEN` appear inside, for mounts of a path of the host at a path inside."""
    folders = [path for path in map(Path, HIDDEN) if path.is_dir() and path.resolve() == path]
    return [
        str(Path(guest) / folder.relative_to(host))
        for host, guest in mounts
        for folder in folders
        if folder.is_relative_to(host) and folder != Path(host)
    ]


def read_host_links() -> dict[str, str]:
    """Return this host's links, such as ``/bin`` → ``usr/bin``."""
    return {f"/{name}": os.readlink(f"/{name}") for name in SYSTEM_LINKS if Path("/", name).is_symlink()}


def build_archive() -> bytes:
    """Return the skeleton as a tar archive. The same host layout gives the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in _DIRECTORIES:
            tar.addfile(_make_entry(name, tarfile.DIRTYPE, 0o755))
        for name in _SCRATCH:  # engines give the tmpfs at this path the mode of the image's directory
            tar.addfile(_make_entry(name, tarfile.DIRTYPE, 0o1777))
        for path, target in read_host_links().items():
            link = _make_entry(path.lstrip("/"), tarfile.SYMTYPE, 0o777)
            link.linkname = target
            tar.addfile(link)
        for name, text in {**ETC, "etc/ld.so.cache": ""}.items():
            file = _make_entry(name, tarfile.REGTYPE, 0o644)
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
    return buffer.getvalue()


def make_image_name(data: bytes) -> str:
    """Return the image's name, which contains a digest of its content."""
    return f"{NAME}:{hashlib.sha256(data).hexdigest()[:16]}"


def _make_entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.mode = mode
    return entry
