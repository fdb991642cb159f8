"""How well commits are ranked on real history: ``python -m bench.suspects --tvm CLONE --iree CLONE``.

``bench/suspects/fixed_issues.json`` holds issues of apache/tvm and iree-org/iree whose fixes are known: number, day
of the report, the two releases around the fix (before IREE's first ones, a snapshot a quarter), the fixing commits,
and the report in one to three lines of our own with the identifiers that its thread gave; no link, no number, no word
taken from the fix. They were met in searches for topics ("crash in a pass", "wrong result on llvm-cpu"), not for
fixes; those are the commits that name the issue, save nine of TVM that were found by the issue's subject, which
favours any ranking. Weights were chosen on the issues with even numbers; odd ones are the held-out half, though which
priors exist at all was seen on both. ``run_issues.json`` holds issues whose failure the releases at hand still show,
with the record of one run: the failure and the findings; six are also in the first file, two were met in the same
searches. ``run_reports.json`` holds reports of ``bench.suspects.written`` with the record of a run on the newest
release that fails; no weight was chosen on them. ``not_bugs.json`` holds reports without a fix: scores do not tell
them from bugs, so only the wording and the rule "no change of behaviour, no commit" keep them from an accusation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

from bench.first_looks.score import FOLDER
from bot.cli.context import read_issue
from bot.extract import extract
from bot.report.sections.ranges import render_suspects
from bot.suspects.observed import locate_parts, read_messages, read_parts
from bot.suspects.rank import ReportQuery, Weights, compute_beliefs, make_query, rank_commits, select_suspects
from bot.suspects.sources import read_sources
from bot.verdict.evidence import Evidence
from runners.builds.commit_log import CommitLog, open_log
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    Commit,
    CommitRange,
    Exited,
    Finding,
    Observation,
    Outcome,
    Plan,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.environments.store import default_root

DATA = Path(__file__).parent
ALONE = replace(
    Weights(), title=1, subject=1, paths=1, related=0, fixing=1, chore=1, elsewhere=1, untimely=1, falling=0
)
"""BM25 over subject, body and paths, and nothing else."""
WANTED_HIT, WANTED_MRR = 0.85, 0.70
ACCUSING = ("culprit", "caused by", "introduced by", "to blame", "broke", "responsible")


@dataclass(frozen=True, slots=True)
class Case:
    row: dict[str, Any]
    commits: tuple[Commit, ...]

    @property
    def query(self) -> ReportQuery:
        if "report" in self.row:
            issue = read_issue(str(FOLDER / "written" / self.row["report"]), None, attach=False)
            return make_query(issue, extract(issue))
        title, _, text = self.row["query"].partition("\n")
        return ReportQuery(title=title, text=text, day=date.fromisoformat(self.row["reported"]))

    def rank_of_fix(self, weights: Weights, query: ReportQuery | None = None) -> int:
        """The best rank of a fixing commit, from 1."""
        ranked = rank_commits(query or self.query, self.commits, "fixed", weights)
        return next(i for i, one in enumerate(ranked, 1) if one.commit.sha.startswith(tuple(self.row["fixes"])))


def load(name: str, logs: Mapping[str, CommitLog]) -> list[Case]:
    rows = json.loads((DATA / name).read_text(encoding="utf-8"))
    return [Case(row, logs[row["project"]].between(row["start"], row["end"])) for row in rows]


def table(cases: Sequence[Case]) -> tuple[float, float]:
    """Prints the table, and gives Hit@5 and MRR over all."""
    groups = {
        "all": cases,
        "tuned on (even numbers)": [one for one in cases if one.row["issue"] % 2 == 0],
        "held out (odd numbers)": [one for one in cases if one.row["issue"] % 2 == 1],
        "TVM": [one for one in cases if one.row["project"] == "tvm"],
        "IREE": [one for one in cases if one.row["project"] == "iree"],
    }
    say("| issues | n | range, mean (median) | ranking | Hit@1 | Hit@3 | Hit@5 | Hit@10 | MRR |")
    say("|---|---|---|---|---|---|---|---|---|")
    found = (0.0, 0.0)
    for title, group in groups.items():
        sizes = [len(one.commits) for one in group]
        for name, weights in (("BM25 alone", ALONE), ("ours", Weights())):
            ranks = [one.rank_of_fix(weights) for one in group]
            hits = [mean(place <= n for place in ranks) for n in (1, 3, 5, 10)]
            mrr = mean(1 / place for place in ranks)
            cells = " | ".join(f"{hit:.2f}" for hit in hits)
            size = f"{mean(sizes):.0f} ({median(sizes):.0f})"
            say(f"| {title} | {len(group)} | {size} | {name} | {cells} | {mrr:.2f} |")
            found = (hits[2], mrr) if (title, name) == ("all", "ours") else found
    return found


def with_runs(cases: Sequence[Case], logs: Mapping[str, CommitLog]) -> None:
    """Prints the rank of the fix by the report's words, with the runs' evidence, and by that evidence alone."""
    say("\n| ran | n | Hit@1 | Hit@5 | MRR | ranks |\n|---|---|---|---|---|---|")
    ranks: dict[str, list[int]] = {"words": [], "words and runs": [], "runs alone": []}
    narrowed: list[tuple[int, int, bool]] = []
    for one in cases:
        seen = make_evidence(one.row)
        if sources := read_sources(seen):
            among = [commit.sha for commit in one.commits if _changes(commit, sources)]
            has_fix = any(sha.startswith(tuple(one.row["fixes"])) for sha in among)
            narrowed.append((len(one.commits), len(among), has_fix))
        files = logs[one.row["project"]].list_files(one.row["start"])
        parts, said = locate_parts(read_parts(seen), files), read_messages(seen)
        both = replace(one.query, parts=parts, text=f"{said}\n{one.query.text}")
        alone = ReportQuery(title="", text=said, day=one.query.day, parts=parts)
        for name, query in zip(ranks, (one.query, both, alone), strict=True):
            ranks[name].append(one.rank_of_fix(Weights(), query))
    for name, found in ranks.items():
        hits = " | ".join(f"{mean(place <= n for place in found):.2f}" for n in (1, 5))
        shown = ", ".join(map(str, found))
        say(f"| {name} | {len(found)} | {hits} | {mean(1 / place for place in found):.2f} | {shown} |")
    every, few = (median(one[at] for one in narrowed) for at in (0, 1))
    say(
        f"\nThe runs name paths for {len(narrowed)} of {len(cases)}: {every:g} commits of the range become {few:g}"
        f" (medians), and a fix is among them for {sum(one[2] for one in narrowed)}."
    )


def _changes(commit: Commit, sources: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(f"{source}/") for path in commit.paths for source in sources)


def make_evidence(row: Mapping[str, Any]) -> Evidence:
    """The recorded run of an issue that still fails on a release at hand, with the findings of its diagnosis."""
    run = row["run"]
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain=row["project"], files={}, steps=())
    seen = Observation(
        toolchain=row["project"],
        version=run["version"],
        device=run["device"],
        attempt=1,
        variant=Variant.ORIGINAL,
        outcome=Outcome.MATCH,
        answer=Answer.BAD,
        ended=Exited(code=1),
        signature=msgspec.convert(run["signature"], Signature | None),
        excerpt="\n".join(run.get("stack", ())),
    )
    order = (run["version"],)
    plan = Plan(testcase=testcase, claim=Claim(kind=ClaimKind.ERROR), device=run["device"], order=order, first=order)
    return Evidence(plan=plan, observations=(seen,), findings=msgspec.convert(run["findings"], tuple[Finding, ...]))


def not_bugs(cases: Sequence[Case]) -> int:
    """Prints what would be shown of reports that no commit fixed; the number of accusations."""
    say("\n| not a bug | because | first of the list | its share |\n|---|---|---|---|")
    accused = 0
    for one in cases:
        commits = CommitRange(start=one.row["start"], end=one.row["end"], count=len(one.commits))
        shown = select_suspects(one.query, one.commits, "fixed")
        text = render_suspects(commits, shown, "have to do with it").casefold()
        accused += any(word in text for word in ACCUSING) or "not evidence" not in text
        first = rank_commits(one.query, one.commits, "fixed")
        share = compute_beliefs(first)[first[0].commit.sha]
        name = f"{one.row['project']} {one.row['issue']}"
        say(f"| {name} | {one.row['why']} | {first[0].commit.sha[:10]} | {share:.2f} |")
    say(f"\nCalled a culprit: {accused} of {len(cases)}.")
    return accused


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tvm", type=Path, required=True, help="a clone of apache/tvm with its history")
    parser.add_argument("--iree", type=Path, required=True, help="a clone of iree-org/iree with its history")
    given = parser.parse_args()
    logs = {name: open_log(clone, default_root()) for name, clone in (("tvm", given.tvm), ("iree", given.iree))}
    hit, mrr = table(load("fixed_issues.json", logs))
    with_runs(load("run_issues.json", logs), logs)
    with_runs(load("run_reports.json", logs), logs)
    accused = not_bugs(load("not_bugs.json", logs))
    return int(hit < WANTED_HIT or mrr < WANTED_MRR or accused > 0)
