"""What an IREE program prints around its dispatches when it was compiled with traces: read, and packed as a claim."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from typing import Any

MAX_DISPATCHES = 2_000
MAX_CLAIM = 46 * 1024
"""The host takes 48 KiB."""
FEWER = (1024, 256, 64, 16, 0)
"""Values kept of each tensor: as many as fit."""

_BANNER = re.compile(r"^=== (?P<name>\S{1,300}) (?P<side>inputs|outputs) ===$")
_TENSOR = re.compile(r"^(?P<type>(?:\d{1,9}x)*[a-zA-Z]\w{0,15})=(?P<values>.*)$")

Json = dict[str, Any]


def read(lines: Iterable[str]) -> Json:
    """The lines of a trace → dispatches in the order of their runs, and each tensor once."""
    dispatches: list[Json] = []
    tensors: list[tuple[str, str, list[str]]] = []
    places: dict[str, int] = {}
    side: list[int] | None = None
    for line in lines:
        banner = _BANNER.match(line)
        if banner is not None:
            side = _side(dispatches, banner["name"], banner["side"])
            continue
        tensor = _TENSOR.match(line) if side is not None else None
        if side is None or tensor is None:
            side = side if line.strip() else None
            continue
        digest = hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:16]
        if digest not in places:
            places[digest] = len(tensors)
            words = tensor["values"].replace("[", " ").replace("]", " ").split()
            tensors.append((tensor["type"], digest, words[: FEWER[0]]))
        side.append(places[digest])
    return {"dispatches": dispatches, "tensors": tensors}


def _side(dispatches: list[Json], name: str, side: str) -> list[int] | None:
    """Where the tensors behind a banner belong; outputs to the dispatch of that name that has none yet."""
    if side == "inputs":
        if len(dispatches) >= MAX_DISPATCHES:
            return None
        dispatches.append({"name": name, "inputs": [], "outputs": []})
        return list_of(dispatches[-1], side)
    waiting = next((one for one in reversed(dispatches) if one["name"] == name and not one["outputs"]), None)
    return list_of(waiting, side) if waiting is not None else None


def list_of(dispatch: Json, side: str) -> list[int]:
    found: list[int] = dispatch[side]
    return found


def packed(found: Json) -> str:
    """The claim, with as many values of each tensor as it has room for."""
    data = ""
    for kept in FEWER:
        tensors = [[kind, digest, " ".join(words[:kept])] for kind, digest, words in found["tensors"]]
        text = json.dumps({**found, "tensors": tensors})
        data = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
        if len(data) <= MAX_CLAIM:
            break
    return data if len(data) <= MAX_CLAIM else ""
