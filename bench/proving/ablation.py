"""What each kind of finding is worth to verdicts: ``python -m bench.proving.ablation``.

Each recorded story of the corpus and of the planted programs is judged again with the findings of one kind withheld.
The diagnosers still run, and their runs still count as evidence: only what they conclude is missing. A kind that
fires on no unseen report (`bench.proving.yields`) and loses no verdict here has to go.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from bench.proving.grades import Graded
from bench.proving.planted.builds import add_broken_builds
from bench.proving.trials import (
    CORPUS,
    PLANTED,
    Trial,
    grade_trial,
    list_corpus,
    list_planted,
    load_recordings,
    play_product,
)
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import FindingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """One story judged with and without the findings of one kind."""

    set: str
    kind: FindingKind
    whole: Graded
    without: Graded

    @property
    def lost(self) -> bool:
        """True if the verdict is worse without the finding. An accepted one is worse than the right one."""
        return _rank(self.whole) > _rank(self.without)

    @property
    def gained(self) -> bool:
        return _rank(self.without) > _rank(self.whole)


def _rank(graded: Graded) -> int:
    return {"right": 2, "accepted": 1}.get(graded.grade, 0)


def withhold_each(job: tuple[str, Trial]) -> list[Withheld]:
    """One entry for each kind of finding that the story has. Runs in a process of its own."""
    name, trial = job
    catalogue = add_broken_builds(load_catalogue()) if name == PLANTED else load_catalogue()
    recordings = load_recordings(trial, name)
    answer = play_product(trial, recordings, catalogue)
    whole = grade_trial(trial, answer)
    done = []
    for kind in map(FindingKind, answer.findings):
        again = grade_trial(trial, play_product(trial, recordings, catalogue, without={kind}))
        done.append(Withheld(set=name, kind=kind, whole=whole, without=again))
    return done


def withhold_all(jobs: Iterable[tuple[str, Trial]], processes: int) -> Iterator[Withheld]:
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        for done in pool.map(withhold_each, jobs, chunksize=8):
            yield from done


def tabulate(results: Iterable[Withheld]) -> str:
    """One row for each kind of finding, those that decide most verdicts first."""
    seen: dict[FindingKind, list[Withheld]] = {kind: [] for kind in FindingKind}
    for one in results:
        seen[one.kind].append(one)
    rows = [
        "| finding | " + " | ".join(f"{name}: stories | verdicts lost | gained" for name in (CORPUS, PLANTED)) + " |"
    ]
    rows.append("| --- | " + " | ".join(["--:"] * 6) + " |")
    for kind in sorted(seen, key=lambda kind: -sum(one.lost for one in seen[kind])):
        cells = []
        for name in (CORPUS, PLANTED):
            part = [one for one in seen[kind] if one.set == name]
            cells += [len(part), sum(one.lost for one in part), sum(one.gained for one in part)]
        rows.append(f"| `{kind}` | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args()
    jobs = [(CORPUS, trial) for trial in list_corpus()] + [(PLANTED, trial) for trial in list_planted()]
    sys.stdout.write(tabulate(withhold_all(jobs, chosen.jobs)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
