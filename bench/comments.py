"""Measure the comments of all recorded cases: visible lines, their median and maximum, and the longest comments.

``python -m bench.comments`` replays the corpus from recordings, without a compiler. ``--write DIR`` writes each
comment and page to a file, to be read.

A line is visible if it stands outside ``<details>``. Prose wraps at `WIDTH` characters, as in a comment on GitHub at
1000 pixels. Blank lines, a table's rule, hidden comments, markup and link targets do not count.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench.proving.recordings import NOT_RECORDED, Replay
from bench.proving.replay import replay_issue
from bench.proving.trials import Trial, list_corpus, load_recordings
from bot.report.comment import render_comment
from bot.report.page import render_page
from bot.verdict.verdict import Report
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import load_catalogue

WIDTH = 110
_HIDDEN = re.compile(r"<!--.*?-->|</?sub>", re.DOTALL)
_LINK = re.compile(r"\]\(<?[^)>\s]*>?\)")
_RULE = re.compile(r"\|(?: ?:?-+:? ?\|)+")
_INNER_FOLD = re.compile(r"<details>(?:(?!<details>).)*?</details>", re.DOTALL)


def list_visible_lines(comment: str) -> list[str]:
    """Return the lines of a comment that a reader sees before any click, as they wrap."""
    text = comment
    while (inner := _INNER_FOLD.sub("", text)) != text:
        text = inner
    lines: list[str] = []
    for line in _HIDDEN.sub("", text).splitlines():
        shown = _LINK.sub("]", line).replace("**", "").replace("`", "").replace("\\", "").strip()
        if not shown or _RULE.fullmatch(shown):
            continue
        width = len(shown) if shown.startswith("|") else WIDTH
        lines += [shown[i : i + width] for i in range(0, len(shown), width)]
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The comment and the page of one recorded case."""

    name: str
    verdict: str
    comment: str
    page: str

    @property
    def lines(self) -> int:
        return len(list_visible_lines(self.comment))

    @property
    def folds(self) -> int:
        return self.comment.count("<details>")


def replay_trial(trial: Trial) -> Report | None:
    """Return the report of a case from its recordings; None if its runs are not recorded."""
    try:
        return replay_issue(trial.issue, Replay(load_recordings(trial)), load_catalogue(), trial.options)
    except ReprobotError as error:
        if NOT_RECORDED in str(error):
            return None
        raise


def show_trial(trial: Trial) -> Shown | None:
    """Return the comment and the page of a case; None if its runs are not recorded."""
    if (report := replay_trial(trial)) is None:
        return None
    return Shown(
        name=trial.name,
        verdict=report.verdict.kind.value,
        comment=render_comment(report),
        page=render_page(report),
    )


def show_corpus(trials: Sequence[Trial], processes: int) -> Iterator[Shown]:
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        yield from filter(None, pool.map(show_trial, trials))


def render_measure(shown: Sequence[Shown], longest: int) -> str:
    """Return the table of visible lines by verdict, and the longest comments."""
    rows = ["| verdict | comments | median | maximum | folded parts, median |", "| --- | --: | --: | --: | --: |"]
    for verdict in ["all", *sorted({one.verdict for one in shown})]:
        own = [one for one in shown if verdict in ("all", one.verdict)]
        lines = [one.lines for one in own]
        folds = statistics.median(one.folds for one in own)
        rows.append(f"| {verdict} | {len(own)} | {statistics.median(lines):g} | {max(lines)} | {folds:g} |")
    top = sorted(shown, key=lambda one: -one.lines)[:longest]
    return "\n".join([*rows, "", *(f"- {one.lines} lines: {one.name} ({one.verdict})" for one in top)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="part of the names of cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--longest", type=int, default=8, help="longest comments to name")
    parser.add_argument("--write", type=Path, help="write each comment and page into this folder")
    chosen = parser.parse_args()
    trials = [one for one in list_corpus() if not chosen.only or any(part in one.name for part in chosen.only)]
    shown = list(show_corpus(trials, chosen.jobs))
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        for one in shown:
            name = one.name.replace("/", "-")
            (chosen.write / f"{name}.md").write_text(one.comment, encoding="utf-8")
            (chosen.write / f"{name}.html").write_text(one.page, encoding="utf-8")
    sys.stdout.write(render_measure(shown, chosen.longest) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
