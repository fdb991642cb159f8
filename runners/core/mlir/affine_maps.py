"""Read affine maps in MLIR's text, inline (``affine_map<(d0) -> (d0)>``) or by the name of a row (``#map``). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runners.core.mlir.brackets import split_list

_ROW = re.compile(r"^[ \t]*(?P<name>#\w+)\s*=\s*(?P<map>affine_map<[^\n]*>)\s*$", re.M)
_USED = re.compile(r"#\w+|affine_map<[^<>]*->[^<>]*>")
_PARTS = re.compile(r"\((?P<dimensions>[^()]*)\)\s*->\s*\((?P<results>.*)\)>\s*$")
MAX_CHARS = 2_000
"""A longer map is not read."""


@dataclass(frozen=True, slots=True)
class AffineMap:
    """A map without symbols, as written: ``AffineMap(("d0", "d1"), ("d1", "d0 + 1"))``."""

    dimensions: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        return f"affine_map<({', '.join(self.dimensions)}) -> ({', '.join(self.results)})>"


def read_named_maps(text: str) -> dict[str, str]:
    """Return the maps that the rows of a program name, as text."""
    return {found["name"]: found["map"] for found in _ROW.finditer(text)}


def list_maps(text: str, named: Mapping[str, str]) -> list[AffineMap | None]:
    """Return the maps that a list of maps contains, in order. None stands for an unknown map, or one with symbols."""
    return [parse_map(named.get(used, used)) for used in _USED.findall(text)]


def parse_map(text: str) -> AffineMap | None:
    found = _PARTS.search(text) if len(text) <= MAX_CHARS else None
    if found is None:
        return None
    return AffineMap(tuple(split_list(found["dimensions"])), tuple(split_list(found["results"])))
