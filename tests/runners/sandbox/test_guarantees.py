"""The table of SECURITY.md is what the engines say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sandbox import bubblewrap
from runners.sandbox.contract import Engine
from runners.sandbox.limits import seccomp
from runners.sandbox.select import engines

PAPER = Path(__file__).parents[3] / "SECURITY.md"
BEGIN, END = "<!-- engines -->\n", "<!-- /engines -->"


def table(found: tuple[Engine, ...]) -> str:
    """A row for each thing that any engine guarantees, in the order in which they name them first."""
    rows = dict.fromkeys(said for engine in found for said in engine.guarantees)
    names = [engine.name for engine in found]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for said in rows:
        cells = ["yes" if said in engine.guarantees else "" for engine in found]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_guarantees_is_the_engines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything is to be had; a guarantee that changes in the code changes there, or this fails."""
    monkeypatch.setattr(seccomp, "unavailable", lambda: None)
    monkeypatch.setattr(bubblewrap, "_no_cgroup", lambda: None)
    text = PAPER.read_text(encoding="utf-8")
    written = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert written == table(engines()), "write this into SECURITY.md:\n" + table(engines())
