"""The yield of each mechanism on unseen reports: ``python -m bench.proving.yields ROUND [ROUND …]``.

The answers of a first look name the mechanisms that left a trace. For each finding kind, kind of repair and kind of
change of a port: the reports in which it appears, how many of them got a right or accepted verdict, and the lines of
the modules that mention it. A mechanism that never appears on unseen reports has to pay in another way, or to go.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.first_looks.score import FOLDER, load_round
from bench.proving.grades import Graded
from bench.proving.mechanisms import Mechanism, parse_mechanism
from bench.proving.recordings import load
from bench.proving.trials import CORPUS
from runners.core.protocol import FindingKind

ROOT = Path(__file__).parents[2]
TABLES = {"runners/core/protocol.py", "runners/core/findings/kinds.py", "runners/core/findings/record.py"}
"""Modules that name every kind."""


def count_lines(mechanism: Mechanism) -> int:
    """The lines of code of the modules that mention a mechanism; modules that serve several count for each."""
    words = [f'"{mechanism.name}"']
    if mechanism.sort == "finding":
        words.append(f"FindingKind.{mechanism.name.replace('-', '_').upper()}")
    folders = ("runners",) if mechanism.sort != "repair" else ("bot/extract",)
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    texts = (path.read_text() for path in paths if str(path.relative_to(ROOT)) not in TABLES)
    return sum(
        sum(bool(line.strip()) for line in text.split("\n")) for text in texts if any(w in text for w in words)
    )


def load_mechanisms(number: str) -> dict[str, tuple[Mechanism, ...]]:
    """The mechanisms of each report of a round by the report's name; rounds before the ninth did not keep them."""
    kept = json.loads((FOLDER / f"round-{number}.outputs.json").read_text(encoding="utf-8"))["answers"]
    return {
        name.partition("/")[2]: tuple(parse_mechanism(text) for text in answer["mechanisms"])
        for name, answer in kept.items()
        if "mechanisms" in answer
    }


def tabulate(mechanisms: Mapping[str, Sequence[Mechanism]], graded: Mapping[str, Graded]) -> str:
    seen: dict[Mechanism, set[str]] = {Mechanism("finding", str(kind)): set() for kind in FindingKind}
    for name, found in mechanisms.items():
        for mechanism in found:
            seen.setdefault(mechanism, set()).add(name)
    rows = ["| mechanism | reports | verdict right or accepted | lines |", "| --- | --: | --: | --: |"]
    order = sorted(seen, key=lambda one: (one.sort, -len(seen[one]), one.name))
    for mechanism in order:
        names = seen[mechanism]
        good = sum(graded[name].good for name in names)
        lines = count_lines(mechanism) if mechanism.sort in ("finding", "repair") else 0
        rows.append(f"| {mechanism.sort} `{mechanism.name}` | {len(names)} | {good} | {lines or '–'} |")
    return "\n".join(rows)


def tabulate_times() -> str:
    """The recorded run time of each guest program over the corpus, in seconds, beside plain runs."""
    seconds: dict[str, list[float]] = {}
    for one in load(CORPUS).runs.values():
        seconds.setdefault(_name_program(one.result.steps[0].argv if one.result.steps else ()), []).append(
            one.result.seconds
        )
    rows = ["| program | runs | seconds |", "| --- | --: | --: |"]
    for name, times in sorted(seconds.items(), key=lambda item: -sum(item[1])):
        rows.append(f"| {name} | {len(times)} | {sum(times):.0f} |")
    return "\n".join(rows)


def _name_program(argv: Sequence[str]) -> str:
    at = next((i for i, word in enumerate(argv) if word.endswith("launch.py")), None)
    return f"guest `{argv[at + 1]}`" if at is not None and at + 1 < len(argv) else "the testcase"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="+")
    chosen = parser.parse_args()
    graded: dict[str, Graded] = {}
    mechanisms: dict[str, tuple[Mechanism, ...]] = {}
    for number in chosen.rounds:
        graded |= {one.name: one for part in load_round(number).values() for one in part}
        mechanisms |= load_mechanisms(number)
    sys.stdout.write(f"{len(mechanisms)} reports\n\n{tabulate(mechanisms, graded)}\n\n{tabulate_times()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
