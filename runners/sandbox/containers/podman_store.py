"""Podman's store of our own: where it is, what it starts from, and what podman forgot in it."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from runners.core.errors import InfraError
from runners.sandbox import owner
from runners.sandbox.containers import skeleton
from runners.sandbox.containers.clients import CLIENT_S, client_says

SETTINGS = Path(__file__).with_name("podman.conf")
CONTAINERS = "vfs-containers"
"""Podman's folder for containers, below its root, where it copies instead of mounting overlays."""
FORGOTTEN_S = 60.0
"""How old a place of the store must be before we take it for one that podman forgot."""


def our_store() -> Path:
    """A folder of our own for podman's store, in memory where that can be had.

    podman waits for the disk some thirty times in one run: half of the time of an empty one where the disk is busy
    (0.31 s against 0.16 s). The store also has to be gone after a reboot, and podman wants its paths short.
    """
    uid = os.geteuid()
    runtime = Path("/run") if uid == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or "/")
    for folder in (runtime / "reprobot", Path(f"/dev/shm/{owner.PREFIX}-store-{uid}")):
        if _in_memory(folder.parent) and _is_ours(folder):
            return folder
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "reprobot", "podman")


def _in_memory(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a tmpfs is mounted there."""
    lines = (line.split() for line in mounts.read_text().splitlines())
    return any(words[1] == str(folder) and words[2] == "tmpfs" for words in lines)


def _is_ours(folder: Path) -> bool:
    """Made now, or before by us and closed to others: in /dev/shm anyone may have been first."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def drop_skeleton() -> bool:
    """Remove podman's store of the skeleton, which the next probe makes anew; False while a container runs in it.

    Without its store podman no longer knows how that container ended.
    """
    store = our_store()
    if (store / "root").exists() and client_says(("podman", *storage("")), "ps", "--quiet"):
        return False
    shutil.rmtree(store, ignore_errors=True)
    return True


def storage(image_name: str) -> tuple[str, ...]:
    """Where podman keeps the skeleton: a store of ours, without overlay mounts.

    In the user's own store two clients that start at the same moment can mount the store over a running container
    ("device or resource busy"), after which podman is stuck for everybody. The skeleton is so small that copying it
    (vfs) costs nothing. A named image is where the user has put it.
    """
    if image_name:
        return ()
    store = our_store()
    places = (f"--root={store}/root", f"--runroot={store}/run", f"--tmpdir={store}/libpod")
    return (*places, "--storage-driver=vfs", "--events-backend=none")


def settings() -> dict[str, str]:
    """Our environment with podman's settings for a store of ours, unless the user names others.

    The client, too, ends before garbage would matter; one that lives long collects it once it has used the memory
    named here.
    """
    return {"CONTAINERS_CONF": str(SETTINGS), **os.environ, "GOGC": "off", "GOMEMLIMIT": "256MiB"}


@functools.cache
def packed() -> tuple[str, bytes]:
    """The skeleton's name and its archive."""
    data = skeleton.archive()
    return skeleton.tag(data), data


@functools.cache
def import_once(client: tuple[str, ...]) -> str:
    """The skeleton image's name, imported into the engine's own store if it isn't there yet.

    Raises:
        InfraError: the engine refused it.
    """
    name, data = packed()
    if client_says(client, "image", "inspect", "--format", "{{.Id}}", name):
        return name
    words = [*client, "import", "-", name]
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=CLIENT_S, check=False)
    except subprocess.TimeoutExpired as reason:
        raise InfraError(f"{client[0]} import took longer than {CLIENT_S:g} s: is its store locked?") from reason
    if done.returncode != 0:
        raise InfraError(f"{client[0]} import failed: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return name


def unpacked() -> Path:
    """The folder of the skeleton, made if it isn't there yet.

    From a folder podman starts without looking up an image, making a layer and copying it, and without the locks that
    two at a time then wait for. Nobody inside can write there; what appears in it is what the runtime makes to mount
    on. It is looked for each time, because another process may have dropped it (``reprobot clean``).
    """
    name, data = packed()
    place = our_store() / name.replace(":", "-")
    if not place.exists():
        _unpack(data, place)
    return place


def _unpack(data: bytes, place: Path) -> None:
    """Whole or not at all, whoever else does the same."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside, tarfile.open(fileobj=io.BytesIO(data)) as tar:
        whole = Path(beside, "root")
        tar.extraction_filter = lambda member, _: member  # our own archive: modes and links as they are in it
        tar.extractall(whole)
        whole.chmod(0o755)
        with contextlib.suppress(OSError):  # there already, by another
            whole.rename(place)


def is_in_our_store(id_file: Path) -> bool:
    """Whether podman still keeps a folder for the container of that id, although its client came to its own end."""
    with contextlib.suppress(OSError):
        number = id_file.read_text(encoding="ascii").strip()
        return len(number) == 64 and (our_store() / "root" / CONTAINERS / number).exists()
    return False


def remove_forgotten() -> list[str]:
    """Remove what podman no longer knows and left mounted in our store; returns container ids.

    Two removals of one container at the same moment (its own ``--rm`` and a sweep, say) can leave its folder with
    /dev/shm mounted in it, which nobody removes then (seen with 4.3 when processes were killed at random).
    """
    store = our_store()
    old = time.time() - FORGOTTEN_S
    places = [
        place
        for place in (store / "root" / CONTAINERS).glob("?" * 64)
        if (place / "userdata").exists() and place.stat().st_mtime < old
    ]
    if not places:
        return []
    # Listed after the folders: who is in neither list has none. A client that fails knows nothing, and nor do we.
    words = ["podman", *storage(""), "ps", "--all", "--external", "--no-trunc", "--format", "{{.ID}}"]
    try:
        known = subprocess.run(words, capture_output=True, text=True, timeout=CLIENT_S, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return []
    gone = [place for place in places if place.name not in known]
    for place in gone:
        subprocess.run(["umount", str(place / "userdata" / "shm")], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)
    return [place.name for place in gone]
