"""Read the tensors that an IREE program with dispatch traces prints, and pack them as a claim."""

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
"""Limit of the claim. The host accepts 48 KiB."""
FEWER = (1024, 256, 64, 16, 0)
"""Numbers of values to keep of each tensor. The first that fits is used."""

_BANNER = re.compile(r"^=== (?P<name>\S{1,300}) (?P<side>inputs|outputs) ===$")
_TENSOR = re.compile(r"^(?P<type>(?:\d{1,9}x)*[a-zA-Z]\w{0,15})=(?P<values>.*)$")

Json = dict[str, Any]


def parse_trace(lines: Iterable[str]) -> Json:
    """Return the dispatches of a trace in the order of their runs, and each different tensor once."""
    calls = _TracedCalls()
    tensors: list[tuple[str, str, list[str]]] = []
    indices: dict[str, int] = {}
    side: list[int] | None = None
    for line in lines:
        banner = _BANNER.match(line)
        if banner is not None:
            is_input = banner["side"] == "inputs"
            side = calls.add_inputs(banner["name"]) if is_input else calls.add_outputs(banner["name"])
            continue
        tensor = _TENSOR.match(line) if side is not None else None
        if side is None or tensor is None:
            side = side if line.strip() else None
            continue
        digest = hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:16]
        if digest not in indices:
            indices[digest] = len(tensors)
            words = tensor["values"].replace("[", " ").replace("]", " ").split()
            tensors.append((tensor["type"], digest, words[: FEWER[0]]))
        side.append(indices[digest])
    return {"dispatches": calls.calls, "tensors": tensors}


class _TracedCalls:
    """Assigns the tensors below a banner to a call. The methods return None if the call is ambiguous.

    A banner contains only the name of the dispatch, which many calls share. In some releases, the inputs of several
    calls precede the outputs of the first, and the outputs do not name their call. Such calls get no outputs until
    all calls of that name have ended.
    """

    def __init__(self) -> None:
        self.calls: list[Json] = []
        self._open: dict[str, list[Json]] = {}
        self._ambiguous: set[str] = set()

    def add_inputs(self, name: str) -> list[int] | None:
        if len(self.calls) >= MAX_DISPATCHES:
            self._ambiguous.add(name)
            return None
        inputs: list[int] = []
        self.calls.append({"name": name, "inputs": inputs, "outputs": []})
        waiting = self._open.setdefault(name, [])
        waiting.append(self.calls[-1])
        if len(waiting) > 1:
            self._ambiguous.add(name)
        return inputs

    def add_outputs(self, name: str) -> list[int] | None:
        waiting = self._open.get(name)
        if not waiting:
            return None
        outputs: list[int] = waiting.pop(0)["outputs"]
        ambiguous = name in self._ambiguous
        if not waiting:
            self._ambiguous.discard(name)
        return None if ambiguous else outputs


def pack_claim(found: Json) -> str:
    """Return the claim, with as many values of each tensor as fit."""
    data = ""
    for kept in FEWER:
        tensors = [[kind, digest, " ".join(words[:kept])] for kind, digest, words in found["tensors"]]
        text = json.dumps({**found, "tensors": tensors})
        data = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
        if len(data) <= MAX_CLAIM:
            break
    return data if len(data) <= MAX_CLAIM else ""
