"""Read which libraries and symbols a shared library needs and which it defines. The file is read, never loaded.

pyelftools was tried, but it makes an object for each symbol, and PyTorch's libraries have a hundred thousand.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB = 1, 4, 5, 6
_DT_GNU_HASH, _DT_VERSYM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
_STB_GLOBAL = 1
_HIDDEN = 0x8000
"""Bit of a version index that is not part of the number."""
MAX_NAME_BYTES = 64 * 1024
"""C++ names of PyTorch have up to about 8,000 bytes."""
MAX_LIBRARIES = 256
"""A broken file may claim any number of needed libraries."""


class Needed(NamedTuple):
    """A symbol that another library must define. Without a version, ``library`` and ``version`` are empty."""

    name: str
    library: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLibrary:
    """The symbols that one file needs and defines."""

    libraries: tuple[str, ...]
    """Names of the libraries that must be loaded with this one (DT_NEEDED)."""
    needs: frozenset[Needed]
    """Symbols that must be found. Weak symbols, which may be absent, are left out."""
    defines: frozenset[str]


def read_library(path: Path) -> SharedLibrary | None:
    """Return the needs and definitions of a 64-bit little-endian shared library. None for any other file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse(data) if data[:6] == b"\x7fELF\x02\x01" else None
    except (OSError, ValueError, struct.error, KeyError, IndexError):
        return None


def _parse(data: mmap.mmap) -> SharedLibrary | None:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, table + number * size) for number in range(count)]
    loaded = [(address, offset, length) for kind, _, offset, address, _, length in segments if kind == _PT_LOAD]

    def locate(address: int) -> int:
        found = [address - start + offset for start, offset, length in loaded if start <= address < start + length]
        return int(found[0])

    dynamic = next((segment for segment in segments if segment[0] == _PT_DYNAMIC), None)
    if dynamic is None:
        return None
    entries = list(_read_dynamic(data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16]))
    tags = dict(entries)
    strings, symbols = locate(tags[_DT_STRTAB]), locate(tags[_DT_SYMTAB])

    def read_name(offset: int) -> str:
        start = strings + offset
        end = data.find(b"\0", start, start + MAX_NAME_BYTES)
        return data[start : max(start, end)].decode("utf-8", "replace")

    versions = _read_versions(data, tags, locate, read_name)
    numbers = locate(tags[_DT_VERSYM]) if _DT_VERSYM in tags else None
    total = _count_symbols(data, tags, locate)
    needs, defines = set(), set()
    for number, symbol in enumerate(struct.iter_unpack("<IBBHQQ", data[symbols : symbols + 24 * total])):
        name, kind, section = read_name(symbol[0]), symbol[1], symbol[3]
        if section:
            defines.add(name)
        elif name and kind >> 4 == _STB_GLOBAL:
            index = struct.unpack_from("<H", data, numbers + 2 * number)[0] & ~_HIDDEN if numbers is not None else 0
            needs.add(Needed(name, *versions.get(index, ("", ""))))
    libraries = tuple(read_name(value) for tag, value in entries if tag == _DT_NEEDED)
    return SharedLibrary(libraries=libraries, needs=frozenset(needs), defines=frozenset(defines))


def _read_dynamic(section: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<QQ", section):
        if tag == 0:
            return
        yield tag, value


def _count_symbols(data: mmap.mmap, tags: Mapping[int, int], locate: Callable[[int], int]) -> int:
    """Return the number of dynamic symbols, which only the hash tables state."""
    if _DT_HASH in tags:
        return int(struct.unpack_from("<II", data, locate(tags[_DT_HASH]))[1])
    table = locate(tags[_DT_GNU_HASH])
    buckets, first, blooms, _ = struct.unpack_from("<IIII", data, table)
    start = table + 16 + 8 * blooms
    last = max(struct.unpack_from(f"<{buckets}I", data, start), default=0)
    if last < first:
        return int(first)
    chains = start + 4 * buckets
    while not struct.unpack_from("<I", data, chains + 4 * (last - first))[0] & 1:  # the last of a chain is odd
        last += 1
    return int(last) + 1


def _read_versions(
    data: mmap.mmap, tags: Mapping[int, int], locate: Callable[[int], int], read_name: Callable[[int], str]
) -> dict[int, tuple[str, str]]:
    """Return the library and the version for each version number of a needed symbol."""
    found: dict[int, tuple[str, str]] = {}
    if _DT_VERNEED not in tags:
        return found
    offset = locate(tags[_DT_VERNEED])
    for _ in range(min(tags[_DT_VERNEEDNUM], MAX_LIBRARIES)):
        _, count, file, inner, following = struct.unpack_from("<HHIII", data, offset)
        place = offset + inner
        for _ in range(count):
            _, _, number, name, step = struct.unpack_from("<IHHII", data, place)
            found[number & ~_HIDDEN] = (read_name(file), read_name(name))
            place += step
        offset += following
    return found
