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
    calls = _Calls()
    tensors: list[tuple[str, str, list[str]]] = []
    places: dict[str, int] = {}
    side: list[int] | None = None
    for line in lines:
        banner = _BANNER.match(line)
        if banner is not None:
            side = calls.inputs(banner["name"]) if banner["side"] == "inputs" else calls.outputs(banner["name"])
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
    return {"dispatches": calls.made, "tensors": tensors}


class _Calls:
    """Which call the tensors behind a banner belong to. ``None``: to none that can be told.

    A banner has only the name of the dispatch, which many calls share. Some releases move what is traced: the inputs
    of several calls then come before the outputs of the first, and which outputs are whose is not said. Such calls
    are left without outputs, until all of that name have ended.
    """

    def __init__(self) -> None:
        self.made: list[Json] = []
        self._open: dict[str, list[Json]] = {}
        self._tangled: set[str] = set()

    def inputs(self, name: str) -> list[int] | None:
        if len(self.made) >= MAX_DISPATCHES:
            self._tangled.add(name)
            return None
        taken: list[int] = []
        self.made.append({"name": name, "inputs": taken, "outputs": []})
        waiting = self._open.setdefault(name, [])
        waiting.append(self.made[-1])
        if len(waiting) > 1:
            self._tangled.add(name)
        return taken

    def outputs(self, name: str) -> list[int] | None:
        waiting = self._open.get(name)
        if not waiting:
            return None
        given: list[int] = waiting.pop(0)["outputs"]
        tangled = name in self._tangled
        if not waiting:
            self._tangled.discard(name)
        return None if tangled else given


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
