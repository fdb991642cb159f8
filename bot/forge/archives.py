"""Unpack a zip in memory, within limits. A zip that looks like a bomb is refused whole. No error is raised."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath

from bot.forge.file_rules import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, check_file_name
from bot.issue import RefusedFile

MAX_ENTRIES = 200
"""Limit for the entries in the directory of a zip."""
MAX_RATIO = 200
"""Limit for unpacked to packed size. Deflate reaches 1032; MLIR with a written-out splat of zeros about 100."""
_ARCHIVE = frozenset({".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar", ".zst", ".whl"})
_DAMAGED = "cannot be unpacked: it is damaged, or no zip"

NamedBytes = tuple[str, bytes]
"""A file's bare name and its content."""


def unpack_zip(name: str, data: bytes, *, url: str, budget: int) -> list[NamedBytes | RefusedFile]:
    """Return the files of the zip ``name`` by their bare names, and a refusal for every other entry.

    ``url`` is the zip's, for the refusals; ``budget`` is the limit for all unpacked bytes.
    """
    # Opening a zip builds its whole directory in memory, so the size of the directory is checked first.
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:
        return [RefusedFile(name=name, url=url, why=f"is a zip of more than {MAX_ENTRIES} entries")]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not _is_litter(entry)]
            if why := _check_directory(entries, len(data), budget):
                return [RefusedFile(name=name, url=url, why=why)]
            return list(_unpack_entries(archive, entries, url))
    except Exception:  # a damaged zip raises errors of many types: IndexError, struct.error, NotImplementedError
        return [RefusedFile(name=name, url=url, why=_DAMAGED)]


def _is_litter(entry: zipfile.ZipInfo) -> bool:
    """True for folders, and for files that file managers add."""
    return (
        entry.filename.endswith("/")
        or entry.filename.startswith("__MACOSX/")
        or entry.filename.endswith((".DS_Store", "Thumbs.db"))
    )


def _check_directory(entries: Sequence[zipfile.ZipInfo], packed: int, budget: int) -> str:
    """Return why the whole zip is refused; empty if it is not.

    The sizes are the zip's own claims. Reading an entry stops at its claimed size.
    """
    total = sum(entry.file_size for entry in entries if not _check_entry(entry))
    if total > budget:
        return f"unpacks to more than the {MAX_TOTAL_BYTES // 1024**2} MiB there is for all files"
    if total > MAX_RATIO * packed:
        return f"unpacks to more than {MAX_RATIO} times its size"
    return ""


def _unpack_entries(
    archive: zipfile.ZipFile, entries: Iterable[zipfile.ZipInfo], url: str
) -> Iterator[NamedBytes | RefusedFile]:
    taken: set[str] = set()
    for entry in entries:
        name = PurePosixPath(entry.filename).name
        refuse = partial(RefusedFile, name=name[:200], url=url)
        if why := _check_entry(entry):
            yield refuse(why=why)
        elif name in taken:
            yield refuse(why="is in its zip twice")
        elif len(taken) == MAX_FILES:
            yield refuse(why=f"is in a zip of more than {MAX_FILES} files")
        else:
            taken.add(name)
            try:
                with archive.open(entry) as file:
                    yield name, file.read(MAX_FILE_BYTES)
            except Exception:  # see `unpack_zip`
                yield refuse(why=_DAMAGED)


def _check_entry(entry: zipfile.ZipInfo) -> str:
    """Return why one entry is refused; empty if it is not."""
    path = PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", entry.filename):
        return "has a path that leads out of its zip"
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device in its zip"
    if path.suffix.lower() in _ARCHIVE:
        return "is an archive inside an archive"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way"  # other methods may ask for gigabytes of memory before the first byte
    if entry.file_size > MAX_FILE_BYTES:
        return f"is larger than {MAX_FILE_BYTES // 1024**2} MiB"
    return check_file_name(path.name)
