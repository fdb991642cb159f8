"""The evaluation in one table: ``python -m bench.proving [SET …]``.

Tuning sets: ``corpus`` (the project's own cases), ``retellings`` (the same cases in other words), ``planted``
(programs whose fault is known by construction), ``pairs`` (is it the same failure?). First looks: recorded rounds on
real reports; they are only printed, because each was run once, at its own commit.

``--dummies`` puts the same trials to judges that know nothing, and to the product without two of its rules.
``--misses`` lists what was missed; ``--explain`` reduces each missed telling to the options that matter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.first_looks.score import list_rounds, load_round
from bench.pairs.score import summarize
from bench.proving.dummies import list_dummies
from bench.proving.grades import HEAD, render_misses, render_reliability, render_row, render_unchanged
from bench.proving.play import Done, Job, play_jobs
from bench.proving.recordings import load
from bench.proving.telling import AXES
from bench.proving.trials import CORPUS, PLANTED, Trial, list_corpus, list_planted

SETS = ("corpus", "retellings", "planted", "pairs", "first-looks")


# ---------------------------------------------------------------------------------------------- tables


def render_options(done: Iterable[Done], most: int = 15) -> str:
    """The options of tellings that are missed most, with the number of tellings that have them."""
    told = [one for one in done if one.options and one.graded.grade != "unrecorded"]
    rows = []
    for axis, options in AXES.items():
        for option in options:
            with_it = [one for one in told if (axis, option) in one.options]
            missed = sum(not one.graded.good for one in with_it)
            if missed:
                rows.append((missed / len(with_it), f"| {axis} | {option} | {len(with_it)} | {missed} |"))
    lines = [row for _, row in sorted(rows, reverse=True)[:most]]
    return "\n".join(["| axis | option | tellings | missed |", "| --- | --- | --: | --: |", *lines])


def render_reduced(done: Iterable[Done]) -> str:
    rows = []
    for one in done:
        if one.reduced:
            options = ", ".join(f"{axis}={option}" for axis, option in one.reduced)
            rows.append(f"- {one.graded.name}: {options}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all without it")
    parser.add_argument("--only", action="append", default=[], help="part of the names of stories")
    parser.add_argument("--tellings", type=int, default=10, help="tellings of each story")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--dummies", action="store_true", help="put the trials to dummies too")
    parser.add_argument("--misses", action="store_true", help="list what was missed")
    parser.add_argument("--explain", action="store_true", help="reduce missed tellings")
    parser.add_argument("--json", type=Path, help="write each graded trial to this file")
    chosen = parser.parse_args()
    sets = chosen.sets or SETS
    if unknown := set(sets) - set(SETS):
        parser.error(f"no such set: {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    judges = list(list_dummies()) if chosen.dummies else list(list_dummies())[:1]
    corpus = _choose(list_corpus(), chosen.only)
    planted = _choose(list_planted(), chosen.only) if "planted" in sets else []
    stories = {"corpus": corpus, "retellings": corpus, "planted": planted}
    jobs = [
        Job(trial=trial, set=name, judge=judge, tellings=chosen.tellings, explain=chosen.explain)
        for name in ("corpus", "retellings", "planted")
        if name in sets
        for judge in judges
        for trial in stories[name]
    ]
    done = list(play_jobs(jobs, chosen.jobs))
    product = [one for one in done if one.judge == judges[0]]
    write("## Tuning sets\n\n" + HEAD)
    for name in sets:
        for judge in judges:
            graded = [one.graded for one in done if (one.set, one.judge) == (name, judge)]
            if graded:
                write(render_row(name if judge == judges[0] else f"{name}, {judge}", graded))
    if {"corpus", "retellings"} <= set(sets):
        told = {name: [one.graded for one in product if one.set == name] for name in ("corpus", "retellings")}
        write("\n" + render_unchanged(told["corpus"], told["retellings"]))
    for name in (CORPUS, PLANTED):
        runs = load(name)
        write(f"\n{name}: {len(runs.runs)} recorded runs, {len(runs.list_stale())} with other guest programs.")
    write("\n" + render_reliability(one.graded for one in product))
    if "retellings" in sets:
        write("\n" + render_options(product))
    if chosen.misses:
        write("\n" + render_misses([one.graded for one in product]))
    if chosen.explain:
        write("\n" + render_reduced(product))
    if "pairs" in sets and not chosen.only:
        write("\n" + summarize())
    if "first-looks" in sets:
        write("\n## First looks (recorded; see docs/first-looks.md)\n\n" + HEAD)
        for number in list_rounds():
            write(render_row(f"round {number}", [one for part in load_round(number).values() for one in part]))
    if chosen.json:
        chosen.json.write_text(json.dumps([_as_record(one) for one in done], indent=1) + "\n", encoding="utf-8")
    return 0


def _choose(trials: Iterable[Trial], only: Sequence[str]) -> list[Trial]:
    return [one for one in trials if not only or any(part in one.name for part in only)]


def _as_record(one: Done) -> dict[str, object]:
    answer = one.graded.answer
    return {
        "set": one.set,
        "judge": one.judge,
        "name": one.graded.name,
        "truth": one.graded.label.verdict,
        "accepted": list(one.graded.label.accepted),
        "verdict": answer.verdict,
        "confidence": answer.confidence,
        "grade": one.graded.grade,
        "fault": answer.fault,
        "headline": answer.headline,
        "grounds": list(answer.grounds),
        "leaning": answer.leaning,
        "options": dict(one.options),
        "reduced": dict(one.reduced),
    }


def write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
