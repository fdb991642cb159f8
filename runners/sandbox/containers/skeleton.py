"""The image that containers start from when none is named: mount points and links, no files worth naming.

It is imported from a tar archive made here, so that no registry is needed; the programs come from the host's
``/usr``, mounted read-only. Naming an image (``REPROBOT_IMAGE``) replaces both.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

NAME = "reprobot-skeleton"

SYSTEM_MOUNTS = ("/usr", "/etc/ld.so.cache", "/etc/alternatives")
"""What a dynamically linked program needs of the host, as far as present."""

SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Symbolic links into /usr on every merged-usr system."""

ETC = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Enough for libraries that ask for the user's name or for localhost; the same for every engine."""

_DIRECTORIES = ("proc", "dev", "sys", "run", "usr", "etc", "etc/alternatives", "opt")
_SCRATCH = ("tmp", "work")


def host_mounts() -> tuple[str, ...]:
    return tuple(path for path in SYSTEM_MOUNTS if Path(path).exists())


def host_links() -> dict[str, str]:
    """``/bin`` → ``usr/bin`` and so on, as this host has them."""
    return {f"/{name}": os.readlink(f"/{name}") for name in SYSTEM_LINKS if Path("/", name).is_symlink()}


def archive() -> bytes:
    """A tar archive, the same bytes for the same host layout."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in _DIRECTORIES:
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for name in _SCRATCH:  # engines give the tmpfs there the mode that the image's directory has
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o1777))
        for path, target in host_links().items():
            link = _entry(path.lstrip("/"), tarfile.SYMTYPE, 0o777)
            link.linkname = target
            tar.addfile(link)
        for name, text in {**ETC, "etc/ld.so.cache": ""}.items():
            file = _entry(name, tarfile.REGTYPE, 0o644)
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
    return buffer.getvalue()


def tag(data: bytes) -> str:
    """The image's name: changes when its content does."""
    return f"{NAME}:{hashlib.sha256(data).hexdigest()[:16]}"


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.mode = mode
    return entry
