"""The table in SECURITY.md lists the guarantees of the engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sandbox import bubblewrap
from runners.sandbox.contract import Engine
from runners.sandbox.limits import seccomp
from runners.sandbox.select import list_engines

PAPER = Path(__file__).parents[3] / "SECURITY.md"
BEGIN, END = "<!-- engines -->\n", "<!-- /engines -->"


def table(found: tuple[Engine, ...]) -> str:
    """Return the table: one row per guarantee of any engine, in the order of first mention."""
    rows = dict.fromkeys(said for engine in found for said in engine.guarantees)
    names = [engine.name for engine in found]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for said in rows:
        cells = ["yes" if said in engine.guarantees else "" for engine in found]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_guarantees_in_security_md_are_those_of_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is for a machine on which everything works. A guarantee that changes in the code must change
    there."""
    monkeypatch.setattr(seccomp, "find_problem", lambda: None)
    monkeypatch.setattr(bubblewrap, "_find_cgroup_problem", lambda: None)
    text = PAPER.read_text(encoding="utf-8")
    written = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert written == table(list_engines()), "write this into SECURITY.md:\n" + table(list_engines())
