"""Write the findings of the TVM diagnosers: a bounded list of JSON lines, rewritten whole at every change.

The file is a claim. The testcase runs in the same process and can write anything to the file. So the host limits,
checks and escapes every line. The limits here only keep an honest run within the host's limits.
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


def limit_value(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as plain JSON, with strings, lists and nesting cut to a readable size."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # JSON has no NaN or infinity. The host refuses documents that contain them.
        return value if value - value == 0 else repr(value)
    if depth < 5 and isinstance(value, dict):
        return {str(k)[:80]: limit_value(v, depth + 1) for k, v in list(value.items())[:MAX_ITEMS]}
    if depth < 5 and isinstance(value, list | tuple):
        return [limit_value(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    if isinstance(value, dict | list | tuple):
        return "…"  # too deep: its text could be of any size
    return cut_text(str(value), MAX_STRING)


def cut_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Findings:
    """Findings and notes by key. A later entry replaces an earlier entry with the same key.

    Each change writes the whole file, so that the findings survive a later crash of the testcase. Write errors are
    ignored, because a diagnoser must never make a testcase fail.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._pid = os.getpid()
        self._by_key: dict[str, Json] = {}

    def __bool__(self) -> bool:
        return any(item["kind"] != "note" for item in self._by_key.values())

    def add(self, key: str, kind: str, summary: str, evidence: Json) -> None:
        """Record a finding. ``kind`` is a value of ``runners.core.protocol.FindingKind`` or ``note``."""
        if key not in self._by_key and len(self._by_key) >= MAX_FINDINGS:
            return
        line = {
            "kind": kind,
            "summary": cut_text(" ".join(summary.split()), MAX_SUMMARY),
            "evidence": limit_value(evidence),
        }
        self._by_key[key] = line
        self._write_file()

    def drop(self, key: str) -> None:
        """Remove a finding that later events refuted."""
        if self._by_key.pop(key, None) is not None:
            self._write_file()

    def note(self, summary: str, **evidence: Any) -> None:
        """Record a limit of the diagnosis, such as an instrumentation that this release does not support."""
        self.add("note:" + summary, "note", summary, evidence)

    def _write_file(self) -> None:
        # A forked child of the testcase must not overwrite the findings of its parent.
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
