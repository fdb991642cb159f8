"""Verdicts and outcomes on the corpus, on real compilers, against the truth found by hand: ``make accuracy``.

A case of ``tests/corpus`` (or of another folder of the same layout, given as an argument) counts when its
``expected.json`` has a ``verdict``; ``outcomes`` per release are compared where the run looked at that release.
Prints a line per case as it ends, then the tables of `bench.accuracy.tables`. Exits 1 when a verdict with confidence
of at least .9 is wrong.

``--only PART`` (may be repeated) chooses cases by their names; ``--jobs N`` runs N of them side by side; ``--json``
keeps the records, and ``--from FILE`` prints the tables of kept records again, later files replacing earlier cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from bench.accuracy.tables import Scored, failed, line, report
from bot.cli import verbs
from bot.forge.source import parse_issue
from bot.plan import RunOptions
from bot.verdict.verdict import Report
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Variant
from runners.workbench import open_workbench

CORPUS = Path(__file__).parents[2] / "tests" / "corpus"


def cases(folder: Path, only: Sequence[str] = ()) -> Iterator[Path]:
    """The folders of the cases that have a verdict found by hand, held-out ones aside."""
    for path in sorted(folder.glob("*/*/expected.json")):
        wanted = not only or any(part in str(path) for part in only)
        if wanted and "heldout" not in path.parts and json.loads(path.read_text()).get("verdict"):
            yield path.parent


def score(folder: Path, expected: dict[str, Any], ran: Report, seconds: float) -> Scored:
    """The run of one case beside its truth; of a release that ran twice, its first run."""
    seen = {o.version: str(o.outcome) for o in reversed(ran.observations) if o.variant is Variant.ORIGINAL}
    told = expected.get("outcomes", {})
    return Scored(
        name=f"{folder.parent.name}/{folder.name}",
        bullets=tuple(expected.get("bullets", ())),
        wanted=expected["verdict"],
        accepted=tuple(expected.get("also_acceptable", ())),
        debatable=bool(expected.get("debatable")),
        got=str(ran.verdict.kind),
        confidence=ran.verdict.confidence,
        headline=ran.verdict.headline,
        seconds=round(seconds, 1),
        cells=tuple((version, wanted, seen[version]) for version, wanted in told.items() if version in seen),
    )


def run(folder: Path, sandbox: str) -> Scored | str:
    """One case from its text to its verdict; words where the machine could not run it."""
    catalogue = load_catalogue()
    path = folder / "issue.md"
    issue = parse_issue(path.read_bytes(), source=str(path), today=datetime.now(UTC).date())
    began = time.monotonic()
    try:
        ran = verbs.reproduce_issue(
            issue,
            toolchain=None,
            options=RunOptions(),
            catalogue=catalogue,
            open_bench=lambda: open_workbench(sandbox, catalogue, Silent()),
        )
    except ReprobotError as error:
        return f"{folder.name}: {error}"
    return score(folder, json.loads((folder / "expected.json").read_text()), ran, time.monotonic() - began)


def run_all(folders: Sequence[Path], sandbox: str, jobs: int) -> Iterator[Scored | str]:
    """The cases in the order in which they end."""
    if jobs <= 1:
        yield from (run(folder, sandbox) for folder in folders)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, folder, sandbox) for folder in folders]):
            yield done.result()


def kept(files: Sequence[Path]) -> dict[str, Scored]:
    """The records of ``--json`` files by name, later files winning."""
    return {one.name: one for file in files for one in msgspec.json.decode(file.read_bytes(), type=list[Scored])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--only", action="append", default=[], help="part of the names of the cases to run")
    parser.add_argument("--jobs", type=int, default=1, help="cases run side by side")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--from", dest="kept", type=Path, action="append", default=[], help="records to start from")
    chosen = parser.parse_args()
    results = kept(chosen.kept)
    if chosen.only or not chosen.kept:
        for one in run_all(tuple(cases(chosen.folder, chosen.only)), chosen.sandbox, chosen.jobs):
            if isinstance(one, Scored):
                results[one.name] = one
            say(line(one) if isinstance(one, Scored) else one)
    ordered = [results[name] for name in sorted(results)]
    if chosen.json:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(ordered)))
    say("\n" + report(ordered))
    return 1 if failed(ordered) else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
