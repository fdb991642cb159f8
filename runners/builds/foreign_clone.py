"""Read a clone that the operator names without trusting its configuration.

git executes programs that a clone's configuration names: filters, hooks, file system monitors, the upload-pack of a
promisor remote. `protocol.allow` and the variables of git do not prevent all of these in every release. So git never
runs in such a clone. Our own repository borrows the clone's objects. It has the clone's branches and tags, but not
its configuration. Branches and tags are read here as text.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import UserError
from runners.environments.atomic_dirs import AtomicDirs
from runners.environments.files import translate_disk_errors, walk_files, write_text

MOST_REFS = 200_000
MOST_FILE_BYTES = 64 * 1024**2
_SHA = r"[0-9a-f]{40}"
_REF = re.compile(r"refs/(?:heads|tags|remotes)/[A-Za-z0-9][\w.+/-]{0,199}", re.ASCII)
_BAD_PARTS = re.compile(r"\.\.|//|/\.|\.lock(?:/|\Z)|[/.]\Z")
_PACKED = re.compile(rf"({_SHA}) (\S+)")
_SYMBOLIC = re.compile(r"ref: (\S+)\s*")
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clone:
    """The parts of a clone that are copied or borrowed."""

    objects: Path
    refs: Mapping[str, str]
    """Name → sha. A tag's sha may be that of a tag object."""
    head: str
    """Name of the checked-out branch, or a sha."""
    shallow: tuple[str, ...]
    """Commits whose parents the clone lacks."""


def borrow_clone(clone: Path, root: Path) -> Path:
    """Return our own bare repository below ``root`` with the objects, branches and tags of ``clone``.

    The repository's name is a digest of its contents. A clone keeps its repository until a branch moves.

    Raises:
        UserError: ``clone`` is not a complete, independent git repository.
        InfraError: the store cannot be written.
    """
    found = _read_clone(clone.expanduser().absolute())
    files = {
        "config": _CONFIG,
        "HEAD": found.head + "\n",
        "objects/info/alternates": f"{found.objects}\n",
        "refs/README": "The references are in packed-refs.\n",  # git needs a folder refs/ in a repository
        "packed-refs": "".join(f"{sha} {name}\n" for name, sha in sorted(found.refs.items())),
        **({"shallow": "".join(f"{sha}\n" for sha in found.shallow)} if found.shallow else {}),
    }
    name = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:32]

    def fill(draft: Path) -> None:
        for path, text in files.items():
            write_text(draft / path, text)

    with translate_disk_errors(root):
        dirs = AtomicDirs(root=root, kind="borrowed")
        return dirs.find(name) or dirs.build(name, fill, on_wait=lambda: None)


def _read_clone(clone: Path) -> _Clone:
    own, common = _find_folders(clone)
    objects = common.resolve() / "objects"
    _check_objects(clone, objects)
    refs = {**_read_packed_refs(clone, common), **_read_loose_refs(clone, common)}
    shallow = re.findall(rf"^{_SHA}$", _read_file(common / "shallow"), re.MULTILINE)
    return _Clone(objects=objects, refs=refs, head=_read_head(own), shallow=tuple(shallow))


def _find_folders(clone: Path) -> tuple[Path, Path]:
    """Return git's folder for this clone and the folder that all its work trees share.

    A ``.git`` file may name any folder of the machine. It is followed only to a work tree that names it in return.
    """
    if not clone.is_dir():
        raise UserError(f"{clone} is no directory: give a clone of the toolchain's repository")
    entry = clone / ".git"
    if entry.is_symlink():
        raise UserError(f"{clone} keeps its history elsewhere: give the clone to which it belongs")
    if entry.is_file():
        own = Path(clone, _read_file(entry).removeprefix("gitdir:").strip()).resolve()
        back = Path(own, _read_file(own / "gitdir").strip())
        if own.parent.name != "worktrees" or back.resolve() != entry.resolve():
            raise UserError(f"{clone} keeps its history elsewhere: give the clone to which it belongs")
        return own, own.parent.parent
    for folder in (entry, clone):
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
            return folder, folder
    raise UserError(f"{clone} is no git repository: give a clone of the toolchain's repository")


def _check_objects(clone: Path, objects: Path) -> None:
    """Refuse objects in another place, because another repository of this machine may be private."""
    if "\n" in str(objects):
        raise UserError(f"{clone} has a name that git cannot borrow from: rename it")
    for name in ("alternates", "http-alternates"):
        if os.path.lexists(objects / "info" / name):
            raise UserError(
                f"{clone} borrows objects from another repository: make it complete with `git repack -a -d` and "
                f"remove objects/info/{name}"
            )
    plain = not stat.S_ISDIR(objects.lstat().st_mode)
    link = objects if plain else next((path for path, s in walk_files(objects) if not stat.S_ISREG(s.st_mode)), None)
    if link is not None:
        raise UserError(f"{clone} has a link or a special file among its objects ({link}): give a complete clone")


def _read_packed_refs(clone: Path, common: Path) -> dict[str, str]:
    if (common / "reftable").exists():
        raise UserError(f"{clone} keeps its references as reftable, which is not read: use `git refs migrate`")
    rows = (_PACKED.fullmatch(line.strip()) for line in _read_file(common / "packed-refs").splitlines())
    return {row[2]: row[1] for row in rows if row is not None and _is_ref_name(row[2])}


def _read_loose_refs(clone: Path, common: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (Path(file) for file, _ in walk_files(common / "refs")):
        name = path.relative_to(common).as_posix()
        text = _read_file(path).strip()
        if _is_ref_name(name) and re.fullmatch(_SHA, text):
            found[name] = text
        if len(found) > MOST_REFS:
            raise UserError(f"{clone} has more than {MOST_REFS} references: pack them with `git pack-refs --all`")
    return found


def _is_ref_name(name: str) -> bool:
    return _REF.fullmatch(name) is not None and _BAD_PARTS.search(name) is None


def _read_head(own: Path) -> str:
    text = _read_file(own / "HEAD").strip()
    symbolic = _SYMBOLIC.fullmatch(text)
    if symbolic is not None and _is_ref_name(symbolic[1]):
        return f"ref: {symbolic[1]}"
    return text if re.fullmatch(_SHA, text) else "ref: refs/heads/main"


def _read_file(path: Path) -> str:
    """Return the text of a regular file. Empty if there is none. Links and pipes are not opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(MOST_FILE_BYTES).decode("utf-8", "replace")
    return ""
