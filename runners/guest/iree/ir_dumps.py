"""What ``--mlir-print-ir-before-all --mlir-print-ir-after-failure`` prints, read as it comes: megabytes of it.

Of each pass only its last dump is kept, and of that only its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_BLOCK_LINES = 1_500
MAX_LINE = 400
MAX_PASSES = 20_000

_HEADER = re.compile(
    r"// -----// IR Dump (?P<when>Before|After) (?P<name>\S+?)(?P<failed> Failed)?"
    r"(?: \((?P<old>[\w.-]+)\)|: (?P<new>[\w.-]+)(?:\{[^\n]*\})?)?"
    r"(?: \('(?P<kind>[\w.]+)' operation(?:: @(?P<symbol>\"[^\"]*\"|[\w.$-]+))?\))? //----- //"
)
"""``Name Failed (argument)`` until 3.11, ``Name Failed: argument{options}`` since."""
_SYMBOL = re.compile(r"^(?P<kind>[a-z][\w.]*)(?: (?:public|private|nested|protected))? @(?P<symbol>[\w.$-]+)")
_DIAGNOSTIC = re.compile(r"^\S[^\n]{0,300}?:\d+:\d+: (?:error|warning|note|remark):")
_CRASH = re.compile(r"(?:Please report issues to|PLEASE submit a bug report|Stack dump:|Stack trace:)", re.IGNORECASE)
"""How LLVM begins to tell of a crash: no IR comes after it."""


@dataclass
class Dump:
    """A pass and the IR it was shown with. ``application``: how often it had run by then; ``ordinal``: all passes."""

    name: str
    argument: str
    application: int = 0
    ordinal: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def where(self) -> tuple[str, str]:
        """Kind and symbol of the operation that the pass ran on."""
        for line in self.lines[:200]:
            found = _SYMBOL.match(line)
            if found:
                return found["kind"], found["symbol"]
        return "", ""


@dataclass
class Dumps:
    """``last``: the last pass begun; ``failed``: what the first failing pass left; ``before``: each pass's last."""

    last: Dump | None = None
    failed: Dump | None = None
    before: dict[str, Dump] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    begun: int = 0


def read(lines: Iterable[str]) -> Dumps:
    """Lines of standard error → what passes were begun and which of them failed."""
    found = Dumps()
    block: Dump | None = None
    for line in lines:
        header = _HEADER.match(line) if line.startswith("// -----// IR Dump") else None
        if header is not None:
            block = _begin(found, header)
        elif block is not None:
            if _DIAGNOSTIC.match(line) or _CRASH.match(line):
                block = None
            elif len(block.lines) < MAX_BLOCK_LINES:
                block.lines.append(line.rstrip("\n")[:MAX_LINE])
    return found


def _begin(found: Dumps, header: re.Match[str]) -> Dump | None:
    name, argument = header["name"], header["old"] or header["new"] or ""
    if header["when"] == "Before":
        found.begun += 1
        if name not in found.counts and len(found.counts) >= MAX_PASSES:
            return None
        found.counts[name] = found.counts.get(name, 0) + 1
        dump = Dump(name, argument, found.counts[name], found.begun)
        found.before[name] = found.last = dump
        return dump
    if header["failed"] and found.failed is None:
        # Passes that ran the failing one fail with it, and say so later: the first is the innermost.
        found.failed = Dump(name, argument, found.counts.get(name, 0), found.begun)
        return found.failed
    return None
