"""How the time of an answer grows.

    python -m bench.speed.growth [--rounds N] [releases | cores | size | issues …]

- releases: an issue about IREE on the newest 1, 2, 4 and 8 releases;
- cores: an issue about TVM and one about IREE on one and on two processors, as far as the machine has them;
- size: an issue about TVM whose testcase has 1, 10 and 100 times as many statements;
- issues: a sweep of a folder with 1, 2, 4 and 8 issues, whose testcases differ in one statement.

The steps of a row are measured in turns within each round. ``× first`` is the median over the rounds of the ratio to
the first step of the same round. Everything is warm, but no ledger is used.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.speed.answers import ROOT
from bench.speed.course import run_command
from bench.speed.loop import divide, format_spread
from bench.speed.probe import say
from runners.core.packages.catalogue import load_catalogue

EXAMPLES = ROOT / "examples/issues"
TVM, IREE = EXAMPLES / "equal-on-bool-tensors.md", EXAMPLES / "named-add-unknown-after-upgrade.md"
RELEASES = ISSUES = (1, 2, 4, 8)
CORES = (1, 2, 4, 8)
FACTORS = (1, 10, 100)
ROUNDS = 3
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Measured:
    """One call."""

    seconds: float
    runs: int
    """Runs of testcases, diagnoses included."""


@dataclass(frozen=True, slots=True)
class Step:
    """A point of a row, and the call that measures it."""

    label: str
    measure: Callable[[], Measured]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.speed.growth")
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"by default all of {', '.join(AXES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    if unknown := set(chosen.axes) - set(AXES):
        parser.error(f"no axis is named {', '.join(sorted(unknown))}: choose among {', '.join(AXES)}")
    say("| growth with | step | seconds, median (least … most) | × first | runs |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for axis in chosen.axes or AXES:
            for title, steps in AXES[axis](Path(name)):
                measured = measure_in_turns(steps, chosen.rounds)
                for line in format_rows(title, [step.label for step in steps], measured):
                    say(line)
    return 0


def measure_in_turns(steps: Sequence[Step], rounds: int) -> list[list[Measured]]:
    """Return the calls of each step. One call of the first step comes before: it warms what is common to all."""
    steps[0].measure()
    measured: list[list[Measured]] = [[] for _ in steps]
    for number in range(rounds):
        for place in range(len(steps)):
            turn = (place + number) % len(steps)
            measured[turn].append(steps[turn].measure())
    return measured


def format_rows(title: str, labels: Sequence[str], measured: Sequence[Sequence[Measured]]) -> Iterator[str]:
    """Yield a line of a table for each step."""
    first = [one.seconds for one in measured[0]]
    for label, calls in zip(labels, measured, strict=True):
        seconds = [one.seconds for one in calls]
        runs = median(one.runs for one in calls)
        yield f"| {title} | {label} | {format_spread(seconds)} | {format_spread(divide(seconds, first))} | {runs:g} |"


# ---------------------------------------------------------------------------------------------- the axes


def list_release_steps(_folder: Path) -> Iterator[tuple[str, list[Step]]]:
    releases = [release.version for release in load_catalogue().list_releases("iree")]
    yield (
        "releases",
        [Step(f"{n}", partial(time_reproduce, IREE, ("--versions", ",".join(releases[-n:])))) for n in RELEASES],
    )


def list_core_steps(_folder: Path) -> Iterator[tuple[str, list[Step]]]:
    cores = sorted(os.sched_getaffinity(0))
    if shutil.which("taskset") is None:
        say("growth with cores is left out: taskset is not installed")
        return
    for name, issue in (("TVM", TVM), ("IREE", IREE)):
        steps = [
            Step(f"{n}", partial(time_reproduce, issue, prefix=("taskset", "-c", ",".join(map(str, cores[:n])))))
            for n in CORES
            if n <= len(cores)
        ]
        yield f"cores, {name}", steps


def list_size_steps(folder: Path) -> Iterator[tuple[str, list[Step]]]:
    text = TVM.read_text(encoding="utf-8")
    statements = count_statements(text)
    steps = []
    for factor in FACTORS:
        path = folder / f"size-{factor}.md"
        path.write_text(add_statements(text, (factor - 1) * statements), encoding="utf-8")
        steps.append(Step(f"{factor * statements} statements", partial(time_reproduce, path)))
    yield "testcase", steps


def list_issue_steps(folder: Path) -> Iterator[tuple[str, list[Step]]]:
    text = TVM.read_text(encoding="utf-8")
    steps = []
    for count in ISSUES:
        issues = folder / f"issues-{count}"
        issues.mkdir()
        for number in range(count):
            (issues / f"{number}.md").write_text(add_statements(text, 1, first=number), encoding="utf-8")
        steps.append(Step(f"{count}", partial(time_sweep, issues)))
    yield "issues", steps


AXES: dict[str, Callable[[Path], Iterator[tuple[str, list[Step]]]]] = {
    "releases": list_release_steps,
    "cores": list_core_steps,
    "size": list_size_steps,
    "issues": list_issue_steps,
}


def count_statements(text: str) -> int:
    """Return the number of top-level statements in the first Python block of an issue."""
    return len(ast.parse(_find_block(text)["code"]).body)


def add_statements(text: str, count: int, *, first: int = 0) -> str:
    """Return the issue with ``count`` more statements after the imports of its first Python block.

    The statements are cheap to run, and numbered from ``first``.
    """
    block = _find_block(text)
    imports = [one for one in ast.parse(block["code"]).body if isinstance(one, ast.Import | ast.ImportFrom)]
    lines = block["code"].splitlines(keepends=True)
    end = max(one.end_lineno or 0 for one in imports)
    more = [f"padding_{number} = {number} + 1\n" for number in range(first, first + count)]
    return text[: block.start("code")] + "".join([*lines[:end], *more, *lines[end:]]) + text[block.end("code") :]


def _find_block(text: str) -> re.Match[str]:
    found = _BLOCK.search(text)
    if found is None:
        raise ValueError("the issue has no Python block")
    return found


# ---------------------------------------------------------------------------------------------- the calls


def time_reproduce(issue: Path, more: Sequence[str] = (), *, prefix: Sequence[str] = ()) -> Measured:
    """Measure one call of ``reprobot reproduce``."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "document.json")
        words = ("reproduce", str(issue), "--json", str(document), *more)
        _, seconds = run_command(ROOT, words, prefix=prefix)
        return Measured(seconds, len(json.loads(document.read_text())["times"]["runs"]))


def time_sweep(issues: Path) -> Measured:
    """Measure one call of ``reprobot sweep``, with a ledger and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        lines, _ = run_command(ROOT, ("sweep", str(issues), "--out", str(Path(folder, "out"))))
        seconds = time.monotonic() - began
    return Measured(seconds, read_runs_made([line for _, line in lines]))


def read_runs_made(lines: Sequence[str]) -> int:
    """Return the number of runs in the summary of a sweep."""
    return next(int(found[1]) for line in lines if (found := re.match(r"(\d+) runs? made", line)))


if __name__ == "__main__":
    sys.exit(main())
