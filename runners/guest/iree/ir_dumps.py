"""Read the dumps of ``--mlir-print-ir-before-all --mlir-print-ir-after-failure`` from a stream.

The dumps are megabytes long. Only the beginning of the last dump of each pass is kept.
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
"""``Name Failed (argument)`` until release 3.11, ``Name Failed: argument{options}`` since then."""
_SYMBOL = re.compile(r"^(?P<kind>[a-z][\w.]*)(?: (?:public|private|nested|protected))? @(?P<symbol>[\w.$-]+)")
_DIAGNOSTIC = re.compile(r"^\S[^\n]{0,300}?:\d+:\d+: (?:error|warning|note|remark):")
_CRASH = re.compile(r"(?:Please report issues to|PLEASE submit a bug report|Stack dump:|Stack trace:)", re.IGNORECASE)
"""First lines of LLVM's crash reports. No IR follows them."""


@dataclass
class Dump:
    """A pass and its IR. ``application`` counts the runs of this pass so far, ``ordinal`` the runs of all passes."""

    name: str
    argument: str
    application: int = 0
    ordinal: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def operation(self) -> tuple[str, str]:
        """Kind and symbol of the operation on which the pass ran."""
        for line in self.lines[:200]:
            found = _SYMBOL.match(line)
            if found:
                return found["kind"], found["symbol"]
        return "", ""


@dataclass
class Dumps:
    """``last``: last pass begun. ``failed``: IR after the first failing pass. ``before``: last dump of each pass."""

    last: Dump | None = None
    failed: Dump | None = None
    before: dict[str, Dump] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    begun: int = 0


def read_dumps(lines: Iterable[str]) -> Dumps:
    """Return the passes that began and the first that failed, from the lines of standard error."""
    dumps = Dumps()
    block: Dump | None = None
    for line in lines:
        header = _HEADER.match(line) if line.startswith("// -----// IR Dump") else None
        if header is not None:
            block = _add_dump(dumps, header)
        elif block is not None:
            if _DIAGNOSTIC.match(line) or _CRASH.match(line):
                block = None
            elif len(block.lines) < MAX_BLOCK_LINES:
                block.lines.append(line.rstrip("\n")[:MAX_LINE])
    return dumps


def _add_dump(dumps: Dumps, header: re.Match[str]) -> Dump | None:
    name, argument = header["name"], header["old"] or header["new"] or ""
    if header["when"] == "Before":
        dumps.begun += 1
        if name not in dumps.counts and len(dumps.counts) >= MAX_PASSES:
            return None
        dumps.counts[name] = dumps.counts.get(name, 0) + 1
        dump = Dump(name, argument, dumps.counts[name], dumps.begun)
        dumps.before[name] = dumps.last = dump
        return dump
    if header["failed"] and dumps.failed is None:
        # A pass that runs other passes fails after them, so the first failure is the innermost.
        dumps.failed = Dump(name, argument, dumps.counts.get(name, 0), dumps.begun)
        return dumps.failed
    return None
