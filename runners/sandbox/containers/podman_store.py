"""Keep our own podman store.

Choose its folder, fill it with the skeleton, and remove containers that podman forgot.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runners.core.errors import InfraError
from runners.sandbox import owner
from runners.sandbox.containers import skeleton
from runners.sandbox.containers.clients import CLIENT_S, query_client

SETTINGS = Path(__file__).with_name("podman.conf")
CONTAINERS = "vfs-containers"
"""Podman's folder for containers below its root, with the storage driver that copies instead of using overlays."""
FORGOTTEN_S = 60.0
"""Age at which a container folder that podman does not list counts as forgotten."""


def find_store() -> Path:
    """Return the folder for podman's store, in memory if possible.

    podman waits for the disk about thirty times in one run. On a busy disk, this is half of the time of an empty
    container (0.31 s against 0.16 s). The store must also be gone after a reboot, and podman needs short paths.
    """
    uid = os.geteuid()
    runtime = Path("/run") if uid == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or "/")
    for folder in (runtime / "reprobot", Path(f"/dev/shm/{owner.PREFIX}-store-{uid}")):
        if _in_memory(folder.parent) and _is_ours(folder):
            return folder
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "reprobot", "podman")


def _in_memory(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """True if a tmpfs is mounted at ``folder``."""
    lines = (line.split() for line in mounts.read_text().splitlines())
    return any(words[1] == str(folder) and words[2] == "tmpfs" for words in lines)


def _is_ours(folder: Path) -> bool:
    """True if the folder is new, or belongs to us and is closed to others. In /dev/shm, any user may be first."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def remove_skeleton() -> bool:
    """Remove podman's store of the skeleton. Return False while a container runs in it.

    The next probe makes a new store. Without its store, podman could not report how a running container ends.
    """
    try:
        held = _lock_store(fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:
        store = find_store()
        if (store / "root").exists() and query_client(("podman", *build_storage_options("")), "ps", "--quiet"):
            return False  # of a process that was killed
        shutil.rmtree(store, ignore_errors=True)
        return True
    finally:
        os.close(held)


@contextlib.contextmanager
def hold_store() -> Iterator[None]:
    """Keep the store while a container may start or run, because a container that starts is not listed yet."""
    held = None
    with contextlib.suppress(OSError):  # some network folders have no locks
        held = _lock_store(fcntl.LOCK_SH)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _lock_store(operation: int) -> int:
    """Make the store's folder if it is missing, lock it, and return its descriptor. Closing it ends the lock.

    Raises:
        BlockingIOError: with ``LOCK_NB``, another process holds the store.
    """
    while True:
        store = find_store()
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, operation)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(folder), os.stat(store)):
                    return folder
        except BaseException:
            os.close(folder)
            raise
        os.close(folder)  # another process removed the store meanwhile: lock the new one


def build_storage_options(image_name: str) -> tuple[str, ...]:
    """Return podman's options for our store, without overlay mounts; none for a named image.

    A named image is in the user's store.

    In the user's store, two clients that start at the same moment can mount the store over a running container
    ("device or resource busy"). After that, podman is stuck for every user. The skeleton is so small that copying it
    (vfs) is free.
    """
    if image_name:
        return ()
    store = find_store()
    places = (f"--root={store}/root", f"--runroot={store}/run", f"--tmpdir={store}/libpod")
    return (*places, "--storage-driver=vfs", "--events-backend=none")


def build_client_environment() -> dict[str, str]:
    """Return our environment with podman's settings for our store, unless the user names other settings.

    GOGC is off, because the client ends before garbage matters. A long-lived client collects garbage after
    GOMEMLIMIT.
    """
    return {"CONTAINERS_CONF": str(SETTINGS), **os.environ, "GOGC": "off", "GOMEMLIMIT": "256MiB"}


@functools.cache
def pack_skeleton() -> tuple[str, bytes]:
    """Return the skeleton's name and its archive."""
    data = skeleton.build_archive()
    return skeleton.make_image_name(data), data


@functools.cache
def import_skeleton(client: tuple[str, ...]) -> str:
    """Import the skeleton into the engine's own store if it is missing. Return the image's name.

    Raises:
        InfraError: the engine refused the image.
    """
    name, data = pack_skeleton()
    if query_client(client, "image", "inspect", "--format", "{{.Id}}", name):
        return name
    words = [*client, "import", "-", name]
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=CLIENT_S, check=False)
    except subprocess.TimeoutExpired as reason:
        raise InfraError(f"{client[0]} import took longer than {CLIENT_S:g} s: is its store locked?") from reason
    if done.returncode != 0:
        raise InfraError(f"{client[0]} import failed: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return name


def unpack_skeleton() -> Path:
    """Unpack the skeleton if it is missing. Return its folder.

    A start from a folder needs no look-up of an image, no new layer, no copy, and no locks for which two clients
    would wait. The guest cannot write there; only the runtime adds mount points. The folder is checked on each call,
    because another process may have removed it (``reprobot clean``).
    """
    name, data = pack_skeleton()
    folder = find_store() / name.replace(":", "-")
    if not folder.exists():
        _unpack_archive(data, folder)
    return folder


def _unpack_archive(data: bytes, folder: Path) -> None:
    """Unpack completely or not at all, even if another process does the same."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside, tarfile.open(fileobj=io.BytesIO(data)) as tar:
        whole = Path(beside, "root")
        tar.extraction_filter = lambda member, _: member  # this is our own archive: keep its modes and links
        tar.extractall(whole)
        whole.chmod(0o755)
        with contextlib.suppress(OSError):  # another process finished first
            whole.rename(folder)


def is_container_left(id_file: Path) -> bool:
    """True if podman still keeps a folder for the container whose id is in ``id_file``."""
    with contextlib.suppress(OSError):
        number = id_file.read_text(encoding="ascii").strip()
        return len(number) == 64 and (find_store() / "root" / CONTAINERS / number).exists()
    return False


def remove_forgotten_containers() -> list[str]:
    """Remove containers that podman no longer lists but left mounted in our store; return their ids.

    Two concurrent removals can leave the container's folder behind, with /dev/shm still mounted (seen with podman
    4.3). Podman never removes it.
    """
    store = find_store()
    old = time.time() - FORGOTTEN_S
    folders = [
        folder
        for folder in (store / "root" / CONTAINERS).glob("?" * 64)
        if (folder / "userdata").exists() and folder.stat().st_mtime < old
    ]
    if not folders:
        return []
    # Ask podman after listing the folders, so that a container made meanwhile does not count as forgotten. If the
    # client fails, no folder is known to be forgotten.
    words = ["podman", *build_storage_options(""), "ps", "--all", "--external", "--no-trunc", "--format", "{{.ID}}"]
    try:
        known = subprocess.run(words, capture_output=True, text=True, timeout=CLIENT_S, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return []
    gone = [folder for folder in folders if folder.name not in known]
    for folder in gone:
        subprocess.run(["umount", str(folder / "userdata" / "shm")], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    return [folder.name for folder in gone]
