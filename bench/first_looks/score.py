"""Score a first look: real reports whose labels were committed before the product ran.

    python -m bench.first_looks.score ROUND              # labels + outputs → row, reliability, misses by class
    python -m bench.first_looks.score ROUND --run DIR    # first run the product on DIR/NUMBER.md, keep the outputs

``bench/first_looks/round-N.json`` holds the labels, ``round-N.outputs.json`` the product's answers at a named commit.
Texts that were written for a round are in ``written/N``. Other texts are not in the repository: they belong to other
people.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.proving.grades import (
    HEAD,
    SILENT,
    Answer,
    Graded,
    Label,
    count_classes,
    grade_answer,
    render_misses,
    render_reliability,
    render_row,
)
from bench.proving.mechanisms import list_mechanisms

FOLDER = Path(__file__).parent


def grade_round(labels: Sequence[dict[str, Any]], outputs: dict[str, dict[str, Any]]) -> dict[str, list[Graded]]:
    """The graded answers by repository; reports without an answer are left out."""
    graded: dict[str, list[Graded]] = {}
    for entry in labels:
        output = outputs.get(f"{entry['repository']}#{entry['number']}")
        if output is None:
            continue
        label = Label(
            verdict=entry["truth"],
            accepted=tuple(entry["accept"]),
            never=tuple(entry["never"]),
            classes=tuple(entry.get("class", ())),
            decidable=bool(entry.get("decidable")),
        )
        verdict = SILENT if output["verdict"] == "no-claim" else output["verdict"]
        answer = Answer(
            verdict=verdict,
            confidence=output["confidence"],
            headline=output["headline"],
            grounds=tuple(output.get("grounds", ())),
            leaning=output.get("leaning") or "",
            findings=tuple(
                mechanism.removeprefix("finding ")
                for mechanism in output.get("mechanisms", ())
                if mechanism.startswith("finding ")
            ),
        )
        name = f"{entry['repository'].partition('/')[2]}#{entry['number']}"
        graded.setdefault(entry["repository"], []).append(
            Graded(
                name=name,
                label=label,
                answer=answer,
                # our own failure to answer is no answer, whatever a label accepts
                grade="useless" if output.get("failed") else grade_answer(label, answer),
            )
        )
    return graded


def load_round(number: int | str, outputs: Path | None = None) -> dict[str, list[Graded]]:
    """The graded answers of a recorded round.

    Raises:
        FileNotFoundError: the round has no labels, or has not been run.
    """
    labels = json.loads((FOLDER / f"round-{number}.json").read_text(encoding="utf-8"))
    answers = json.loads((outputs or FOLDER / f"round-{number}.outputs.json").read_text(encoding="utf-8"))["answers"]
    return grade_round(labels, answers)


def list_rounds() -> list[str]:
    """The numbers of the rounds that have been run, in order."""
    rounds = (path.name.removeprefix("round-").partition(".")[0] for path in FOLDER.glob("round-*.outputs.json"))
    return sorted(rounds, key=int)


# ---------------------------------------------------------------------------------------------- running


def run_product(labels: Sequence[dict[str, Any]], texts: Path, outputs: Path) -> dict[str, dict[str, Any]]:
    """Run ``reprobot reproduce`` on each text that has no output yet; the outputs are kept after each run."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    kept: dict[str, Any] = (
        json.loads(outputs.read_text())
        if outputs.exists()
        else {"commit": commit, "date": datetime.now(UTC).date().isoformat(), "answers": {}}
    )
    for label in labels:
        key = f"{label['repository']}#{label['number']}"
        text = texts / f"{label['repository'].partition('/')[2]}-{label['number']}.md"
        if key in kept["answers"] or not text.exists():
            continue
        kept["answers"][key] = _answer(text)
        outputs.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stderr.write(f"{key}: {kept['answers'][key]['verdict']}\n")
    return dict(kept["answers"])


def _answer(text: Path) -> dict[str, Any]:
    out = text.with_suffix(".out.json")
    words = [sys.executable, "-m", "bot", "reproduce", str(text), "--json", str(out)]
    begun = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        return {"verdict": "inconclusive", "confidence": 0.0, "headline": done.stderr.strip()[-300:], "failed": True}
    document = json.loads(out.read_text(encoding="utf-8"))
    verdict = document["verdict"]
    kept = {name: verdict[name] for name in ("confidence", "grounds", "leaning")}
    return {
        "verdict": verdict["kind"],
        **kept,
        "headline": verdict["headline"][:400],
        "mechanisms": sorted({str(one) for one in list_mechanisms(document)}),
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("round", help="the number of the round")
    parser.add_argument("--run", type=Path, help="folder with REPOSITORY-NUMBER.md; run the product first")
    parser.add_argument("--outputs", type=Path, help="answers to score instead of the round's own")
    chosen = parser.parse_args()
    if chosen.run is not None:
        labels = json.loads((FOLDER / f"round-{chosen.round}.json").read_text(encoding="utf-8"))
        run_product(labels, chosen.run, chosen.outputs or FOLDER / f"round-{chosen.round}.outputs.json")
    graded = load_round(chosen.round, chosen.outputs)
    every = [one for part in graded.values() for one in part]
    rows = [HEAD, render_row("all", every), *(render_row(name, part) for name, part in sorted(graded.items()))]
    tables = ["\n".join(rows), render_reliability(every), count_classes(every), render_misses(every)]
    sys.stdout.write("\n\n".join(tables) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
