"""How well the fix of a written report is ranked: ``python -m bench.suspects.written --tvm CLONE --iree CLONE``.

The reports of ``bench/first_looks/written`` since round 117 are about faults that a commit of the history mends. The
number of a report is the number in the subject of that commit. The range reaches from the last release before the
commit to the first one that has it, or to the end of the clone. No weight was chosen on these reports. They favour
the ranking: their writers had read the commit, although they had to write what a user would know. The number of the
report is not used.

Left out are commits that change tests or documents alone, and reports whose failure the newest release still shows:
their writers took the number of any commit of the day.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from bench.first_looks.score import FOLDER
from bench.suspects.measure import ALONE
from bot.cli.context import read_issue
from bot.extract import extract
from bot.suspects.rank import Weights, make_query, rank_commits
from runners.builds.commit_log import CommitLog, open_log
from runners.core.protocol import Commit
from runners.environments.store import default_root

FIRST_ROUND = 117
REPOSITORIES = {"apache/tvm": "tvm", "iree-org/iree": "iree"}
MENDED = ("fixed", "not-reproduced")
"""Truths of a report whose fault is mended."""
_RELEASE = re.compile(r"(?:v|iree-)\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A report, the number of commits in its range, and the rank of its fix with and without the priors."""

    name: str
    project: str
    commits: int
    rank: int
    plain: int


def list_reports() -> Iterator[tuple[str, int, Path]]:
    """Yield repository, number and text of each written report on a fault."""
    for labels in sorted(FOLDER.glob("round-*.json")):
        number = labels.name.removeprefix("round-").partition(".")[0]
        if ".outputs" in labels.name or int(number) < FIRST_ROUND:
            continue
        for entry in json.loads(labels.read_text(encoding="utf-8")):
            text = FOLDER / "written" / number / f"{entry['number']}.md"
            if entry["repository"] in REPOSITORIES and entry["truth"] in MENDED and text.exists():
                yield entry["repository"], entry["number"], text


def find_fix(clone: Path, number: int) -> str | None:
    """Return the commit with the number in its subject; None without one, or with several."""
    found = _git(clone, "log", "--all", "--format=%H", "--fixed-strings", f"--grep=(#{number})").split()
    named = [one for one in found if f"(#{number})" in _git(clone, "log", "-1", "--format=%s", one)]
    return named[0] if len(named) == 1 else None


def find_range(clone: Path, commit: str) -> tuple[str, str] | None:
    """Return the releases around a commit, or the last release and the end of the clone; None without either."""
    after = _list_releases(clone, "--contains", commit)
    day = _git(clone, "log", "-1", "--format=%cI", commit)
    before = _list_releases(clone, "--no-contains", commit)
    older = [tag for tag in before if _git(clone, "log", "-1", "--format=%cI", tag) <= day]
    return (older[-1], (after or ["HEAD"])[0]) if older else None


def _list_releases(clone: Path, *words: str) -> list[str]:
    return list(filter(_is_release, _git(clone, "tag", *words, "--sort=creatordate").split()))


def _is_source(path: str) -> bool:
    return re.search(r"(?:^|/)(?:tests?|docs?)/", path) is None


def _is_release(tag: str) -> bool:
    return _RELEASE.fullmatch(tag) is not None


def _git(clone: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(clone), *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def rank_report(text: Path, commits: Sequence[Commit], fix: str) -> tuple[int, int]:
    """Return the rank of the fix with the priors, and by BM25 alone."""
    issue = read_issue(str(text), None, attach=False)
    query = make_query(issue, extract(issue))
    ours, plain = (rank_commits(query, commits, "fixed", weights) for weights in (Weights(), ALONE))
    first, second = (next(at for at, one in enumerate(some, 1) if one.commit.sha == fix) for some in (ours, plain))
    return first, second


def rank_all(clones: dict[str, Path], logs: dict[str, CommitLog]) -> Iterator[Ranked]:
    for repository, number, text in list_reports():
        project = REPOSITORIES[repository]
        fix = find_fix(clones[project], number)
        ends = find_range(clones[project], fix) if fix is not None else None
        commits = logs[project].between(*ends) if ends is not None else ()
        if fix is not None and any(one.sha == fix and any(map(_is_source, one.paths)) for one in commits):
            rank, plain = rank_report(text, commits, fix)
            yield Ranked(f"{project}#{number}", project, len(commits), rank, plain)


def render_row(title: str, group: Sequence[Ranked], *, plain: bool) -> str:
    ranks = [one.plain if plain else one.rank for one in group]
    hits = " | ".join(f"{mean(place <= n for place in ranks):.2f}" for n in (1, 5))
    size = f"{mean(one.commits for one in group):.0f} ({median(one.commits for one in group):.0f})"
    ranking = "BM25, commits left out as above" if plain else "this"
    return f"| {title} | {len(group)} | {size} | {ranking} | {hits} | {mean(1 / place for place in ranks):.2f} |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tvm", type=Path, required=True, help="a clone of apache/tvm with its history")
    parser.add_argument("--iree", type=Path, required=True, help="a clone of iree-org/iree with its history")
    given = parser.parse_args()
    clones = {"tvm": given.tvm, "iree": given.iree}
    found = list(rank_all(clones, {name: open_log(clone, default_root()) for name, clone in clones.items()}))
    groups = {"all": found} | {name: [one for one in found if one.project == name] for name in clones}
    sys.stdout.write(
        "| reports | n | range, mean (median) | ranking | Hit@1 | Hit@5 | MRR |\n|---|---|---|---|---|---|---|\n"
    )
    for title, group in groups.items():
        for plain in (True, False) if group else ():
            sys.stdout.write(render_row(title, group, plain=plain))
    late = sorted((one for one in found if one.rank > 5), key=lambda one: -one.rank)
    sys.stdout.write("\nnot among the first five: " + ", ".join(f"{one.name} ({one.rank})" for one in late) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
