"""Where the TVM diagnosers write: a bounded list of JSON lines, rewritten whole at every change.

The file is a claim. The testcase runs in this very process and could write anything to it, so the host bounds,
checks and escapes every line; the limits here only keep an honest run inside what the host accepts.
"""

from __future__ import annotations

import json
import os
from typing import Any

MAX_FILE_BYTES = 60 * 1024
MAX_FINDINGS = 20
MAX_SUMMARY = 300
MAX_STRING = 400
MAX_ITEMS = 24

Json = dict[str, Any]


def bounded(value: Any, depth: int = 0) -> Any:
    """Plain JSON made of ``value``, with strings, lists and nesting cut to what a reader would look at."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # JSON has no NaN or infinity, and the host refuses documents that use them.
        return value if value - value == 0 else repr(value)
    if depth < 5 and isinstance(value, dict):
        return {str(k)[:80]: bounded(v, depth + 1) for k, v in list(value.items())[:MAX_ITEMS]}
    if depth < 5 and isinstance(value, list | tuple):
        return [bounded(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    if isinstance(value, dict | list | tuple):
        return "…"  # too deep; its text could be of any size
    return cut(str(value), MAX_STRING)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Findings:
    """Findings and notes by key; a later one with the same key replaces the earlier.

    The file is written anew each time, so that a testcase which then crashes or is killed leaves what was found so
    far. Errors of writing are swallowed: a diagnoser is never a reason for a testcase to fail.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._pid = os.getpid()
        self._by_key: dict[str, Json] = {}

    def __bool__(self) -> bool:
        return any(item["kind"] != "note" for item in self._by_key.values())

    def add(self, key: str, kind: str, summary: str, evidence: Json) -> None:
        """Record one finding; ``kind`` is a value of ``runners.core.protocol.FindingKind`` or ``note``."""
        if key not in self._by_key and len(self._by_key) >= MAX_FINDINGS:
            return
        line = {"kind": kind, "summary": cut(" ".join(summary.split()), MAX_SUMMARY), "evidence": bounded(evidence)}
        self._by_key[key] = line
        self._write()

    def drop(self, key: str) -> None:
        """Take back a finding that later events refuted."""
        if self._by_key.pop(key, None) is not None:
            self._write()

    def note(self, summary: str, **evidence: Any) -> None:
        """Something that limits what a missing finding means, such as an instrumentation this build refused."""
        self.add("note:" + summary, "note", summary, evidence)

    def _write(self) -> None:
        # A forked child of the testcase must not overwrite what its parent found.
        if self._path is None or os.getpid() != self._pid:
            return
        lines: list[str] = []
        size = 0
        for item in sorted(self._by_key.values(), key=lambda item: bool(item["kind"] == "note")):
            line = json.dumps(item, allow_nan=False) + "\n"
            if size + len(line) > MAX_FILE_BYTES:
                break
            lines.append(line)
            size += len(line)
        try:
            with open(self._path, "w", encoding="ascii") as out:
                out.write("".join(lines))
        except OSError:
            self._path = None
