"""Verdicts and outcomes on the corpus, on real compilers, against the truth found by hand: ``make accuracy``.

A case of ``tests/corpus`` (or of another folder of the same layout, given as an argument) counts when its
``expected.json`` has a ``verdict``; ``outcomes`` per release are compared where the run looked at that release.
Prints a line per case, then the confusion matrix. Exits 1 when a verdict with confidence of at least .9 is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot import app
from bot.plan import Wishes
from bot.source import parse_issue
from bot.verdict import Report
from runners.catalogue import load_catalogue
from runners.errors import ReprobotError
from runners.progress import Silent
from runners.protocol import Variant
from runners.workbench import open_workbench

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
SURE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    name: str
    wanted: str
    accepted: tuple[str, ...]
    got: str
    confidence: float
    cells: int
    wrong_cells: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.got in (self.wanted, *self.accepted)

    @property
    def wrong(self) -> bool:
        """Inconclusive is no answer, and so no wrong one."""
        return not self.right and self.got != "inconclusive"


def cases(folder: Path, only: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*/*/expected.json")):
        expected = json.loads(path.read_text())
        if expected.get("verdict") and only in str(path) and "heldout" not in path.parts:
            yield path.parent, expected


def score(folder: Path, expected: dict[str, Any], report: Report) -> Scored:
    seen = {o.version: str(o.outcome) for o in reversed(report.observations) if o.variant is Variant.ORIGINAL}
    told = {version: outcome for version, outcome in expected.get("outcomes", {}).items() if version in seen}
    return Scored(
        name=f"{folder.parent.name}/{folder.name}",
        wanted=expected["verdict"],
        accepted=tuple(expected.get("also_acceptable", ())),
        got=str(report.verdict.kind),
        confidence=report.verdict.confidence,
        cells=len(told),
        wrong_cells=tuple(f"{v}: {seen[v]}, not {wanted}" for v, wanted in told.items() if seen[v] != wanted),
    )


def run(folder: Path, sandbox: str) -> Report:
    catalogue = load_catalogue()
    issue = parse_issue(
        (folder / "issue.md").read_bytes(), source=str(folder / "issue.md"), today=datetime.now(UTC).date()
    )
    return app.reproduce(
        issue,
        toolchain=None,
        wishes=Wishes(),
        catalogue=catalogue,
        open_bench=lambda: open_workbench(sandbox, catalogue, Silent()),
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    arguments.add_argument("--only", default="", help="part of the names of the cases to run")
    arguments.add_argument("--sandbox", default="auto")
    chosen = arguments.parse_args()
    results = []
    for folder, expected in cases(chosen.folder, chosen.only):
        try:
            results.append(score(folder, expected, run(folder, chosen.sandbox)))
        except ReprobotError as error:
            say(f"{folder.name}: {error}")
            continue
        say(line(results[-1]))
    summary(results)
    return 1 if any(r.wrong and r.confidence >= SURE for r in results) else 0


def line(result: Scored) -> str:
    mark = "right " if result.right else "WRONG " if result.wrong else "unsure"
    wanted = "" if result.right else f" (truth: {result.wanted})"
    cells = f"; {', '.join(result.wrong_cells)}" if result.wrong_cells else ""
    return f"{mark} {result.name}: {result.got} {result.confidence:.2f}{wanted}{cells}"


def summary(results: list[Scored]) -> None:
    pairs = Counter((result.wanted, result.got) for result in results)
    say("\ntruth → verdict")
    for (wanted, got), count in sorted(pairs.items()):
        say(f"  {wanted:18} {got:18} {count}")
    cells, wrong_cells = sum(r.cells for r in results), sum(len(r.wrong_cells) for r in results)
    right, wrong = sum(r.right for r in results), sum(r.wrong for r in results)
    sure = [r for r in results if r.confidence >= SURE]
    say(f"\n{right} of {len(results)} right, {wrong} wrong, {len(results) - right - wrong} inconclusive")
    say(f"with confidence of at least {SURE}: {sum(r.wrong for r in sure)} wrong of {len(sure)}")
    say(f"{cells - wrong_cells} of {cells} outcomes per release as found by hand")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
