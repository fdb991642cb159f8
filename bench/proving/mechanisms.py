"""The mechanisms that left a trace in the document of a report: findings, rules, repairs and changes of ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``sort`` is ``finding``, ``repair``, ``port`` or ``rule``; ``name`` is the word in the document."""

    sort: str
    name: str

    def __str__(self) -> str:
        return f"{self.sort} {self.name}"


def parse_mechanism(text: str) -> Mechanism:
    """The mechanism that `str` wrote."""
    sort, _, name = text.partition(" ")
    return Mechanism(sort, name)


def list_mechanisms(document: Mapping[str, Any]) -> Iterator[Mechanism]:
    """Yield every mechanism that left a trace in the document of one report."""
    for finding in document["findings"]:
        yield Mechanism("finding", finding["kind"])
        if rule := finding["evidence"].get("rule"):
            yield Mechanism("rule", str(rule)[:60])
    for repair in (document["repro"] or {}).get("repairs", ()):
        yield Mechanism("repair", repair["kind"])
    for observation in document["observations"]:
        for change in observation.get("changes", ()):
            yield Mechanism(
                "port", change["kind"] if isinstance(change, dict) else re.split(r"[:\s]", str(change))[0]
            )
