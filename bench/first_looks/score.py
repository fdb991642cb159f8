"""Score a first look: real reports whose labels were committed before the product ran.

    python -m bench.first_looks.score ROUND              # labels + outputs → row, reliability, misses by class
    python -m bench.first_looks.score ROUND --run DIR    # first run the product on DIR/NUMBER.md, keep the outputs

``bench/first_looks/round-N.json`` holds the labels, ``round-N.outputs.json`` the product's answers at a named commit.
The texts of the issues are not in the repository: they are other people's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bot.verdict.rules.rate import compute_interval

FOLDER = Path(__file__).parent
SILENT = "silent"
"""The verdict on a text that claims no failure: the product stays quiet."""
HUMBLE = frozenset({"inconclusive", "untestable", "incomplete", "no-repro", SILENT})
"""Verdicts that accuse neither the compiler nor the testcase."""

Grade = Literal["right", "accepted", "useless", "wrong", "harmful"]


@dataclass(frozen=True, slots=True)
class Scored:
    """One report: its label, the product's answer and the grade."""

    label: dict[str, Any]
    verdict: str
    confidence: float
    headline: str
    grade: Grade

    @property
    def name(self) -> str:
        return f"{self.label['repository'].partition('/')[2]}#{self.label['number']}"


def grade(label: dict[str, Any], verdict: str) -> Grade:
    if verdict == label["truth"]:
        return "right"
    if verdict in label["accept"]:
        return "accepted"
    if verdict in label["never"]:
        return "harmful"
    return "useless" if verdict in HUMBLE else "wrong"


def score(labels: Sequence[dict[str, Any]], outputs: dict[str, dict[str, Any]]) -> list[Scored]:
    scored = []
    for label in labels:
        key = f"{label['repository']}#{label['number']}"
        if (output := outputs.get(key)) is not None:
            verdict = output["verdict"]
            scored.append(Scored(label, verdict, output["confidence"], output["headline"], grade(label, verdict)))
    return scored


# ---------------------------------------------------------------------------------------------- tables


def render_row(name: str, scored: Sequence[Scored]) -> str:
    """One Markdown row: n, each grade, right or accepted with its interval, wrong or harmful with its interval."""
    counts = Counter(one.grade for one in scored)
    n = len(scored)
    good, bad = counts["right"] + counts["accepted"], counts["wrong"] + counts["harmful"]
    sure = [one for one in scored if one.confidence >= 0.9 and one.verdict not in HUMBLE]
    sure_wrong = sum(one.grade in ("wrong", "harmful") for one in sure)
    decidable = [one for one in scored if one.label.get("decidable") and one.label["truth"] != SILENT]
    decided = sum(one.grade in ("right", "accepted") and one.verdict != "inconclusive" for one in decidable)
    grades = " | ".join(str(counts[name]) for name in ("right", "accepted", "useless", "wrong", "harmful"))
    return (
        f"| {name} | {n} | {grades} | {_share(good, n)} | {_share(bad, n)} | {sure_wrong} of {len(sure)} "
        f"| {_share(decided, len(decidable))} |"
    )


HEAD = (
    "| set | n | right | accepted | useless | wrong | harmful | right or accepted | wrong or harmful "
    "| wrong at ≥ .9 | decidable decided |\n| --- | --: | --: | --: | --: | --: | --: | --- | --- | --- | --- |"
)


def _share(part: int, whole: int) -> str:
    low, high = compute_interval(part, whole)
    return f"{part} of {whole}, {100 * part / max(1, whole):.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def render_reliability(scored: Sequence[Scored]) -> str:
    """Confidence in bins, beside the share that was right or accepted; verdicts that claim something only."""
    rows = ["| confidence | n | right or accepted |", "| --- | --: | --- |"]
    for low, high in ((0.0, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)):
        bin_ = [one for one in scored if low <= one.confidence < high and one.verdict not in HUMBLE]
        good = sum(one.grade in ("right", "accepted") for one in bin_)
        rows.append(f"| {low:.1f} – {min(high, 1.0):.1f} | {len(bin_)} | {_share(good, len(bin_))} |")
    return "\n".join(rows)


def render_misses(scored: Sequence[Scored]) -> str:
    rows = []
    for one in sorted(scored, key=lambda it: it.grade):
        if one.grade not in ("right", "accepted"):
            classes = ", ".join(one.label.get("class", ()))
            rows.append(
                f"- {one.grade}: {one.name} is {one.label['truth']}, got {one.verdict} at {one.confidence:.2f} "
                f"({classes}): {one.headline[:160]}"
            )
    return "\n".join(rows)


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
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        return {"verdict": "inconclusive", "confidence": 0.0, "headline": done.stderr.strip()[-300:], "failed": True}
    verdict = json.loads(out.read_text(encoding="utf-8"))["verdict"]
    return {"verdict": verdict["kind"], "confidence": verdict["confidence"], "headline": verdict["headline"][:400]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("round", help="the number of the round")
    parser.add_argument("--run", type=Path, help="folder with REPOSITORY-NUMBER.md; run the product first")
    parser.add_argument("--outputs", type=Path, help="answers to score instead of the round's own")
    chosen = parser.parse_args()
    labels = json.loads((FOLDER / f"round-{chosen.round}.json").read_text(encoding="utf-8"))
    outputs = chosen.outputs or FOLDER / f"round-{chosen.round}.outputs.json"
    if chosen.run is not None:
        answers = run_product(labels, chosen.run, outputs)
    else:
        answers = json.loads(outputs.read_text(encoding="utf-8"))["answers"]
    scored = score(labels, answers)
    sets = {"all": scored} | {
        name: [one for one in scored if one.label["repository"] == name]
        for name in sorted({one.label["repository"] for one in scored})
    }
    rows = [HEAD, *(render_row(name, part) for name, part in sets.items())]
    sys.stdout.write("\n".join([*rows, "", render_reliability(scored), "", render_misses(scored)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
