"""Record runs: ``python -m bench.proving.record [corpus|retellings|planted] [--only PART] [--shard I/N]``.

Runs only requests that are not recorded yet. ``--again`` forgets the recordings that other guest programs made.
``planted`` needs ``--wheels``: the folder of broken builds that `bench.proving.planted.broken_wheels` makes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from bench.proving import recordings as recorded
from bench.proving.planted.builds import add_broken_builds
from bench.proving.recordings import Recordings, Replay
from bench.proving.replay import replay_issue
from bench.proving.trials import CORPUS, PLANTED, Trial, list_corpus, list_planted, play_product, retell
from bot.extract import extract
from bot.extract.types import Repro
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Limits
from runners.core.runs import Execute, RunRequest
from runners.workbench import open_workbench

RUN_TIMEOUT_S = 120.0

Record = Callable[[Trial, Recordings, Catalogue, Execute], object]


def record_case(trial: Trial, runs: Recordings, catalogue: Catalogue, live: Execute) -> None:
    """Record the investigation of a case's own text, and its testcase on every release, twice."""
    extraction = extract(trial.issue)
    if not isinstance(extraction, Repro) or extraction.missing:
        return
    replay_issue(trial.issue, Replay(runs, live), catalogue, trial.options, extraction)
    testcase = extraction.testcase
    every = Replay(runs, live)
    limits = Limits(wall_s=trial.options.timeout_s or RUN_TIMEOUT_S)
    for release in catalogue.get_listing(testcase.toolchain).releases:
        if release.fork is None:
            for attempt in (1, 2):
                request = RunRequest(
                    version=release.version, device=extraction.device, testcase=testcase, attempt=attempt
                )
                every(msgspec.structs.replace(request, limits=limits))


def record_tellings(number: int, trial: Trial, runs: Recordings, catalogue: Catalogue, live: Execute) -> None:
    """Record the runs that the investigations of the first ``number`` tellings of a case need beyond its own."""
    for telling in retell(trial, runs, catalogue, number):
        play_product(telling, runs, catalogue, live)


def order_by_family(trials: Sequence[Trial]) -> list[Trial]:
    """Return the first program of each family, then each second: an interrupted recording covers all families."""
    seen: Counter[str] = Counter()
    places = []
    for trial in trials:
        family = trial.label.classes[0] if trial.label.classes else trial.name
        places.append(seen[family])
        seen[family] += 1
    return [trials[index] for index in sorted(range(len(trials)), key=lambda index: places[index])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", choices=("corpus", "retellings", "planted"), default="corpus")
    parser.add_argument("--only", action="append", default=[], help="part of the names of the stories to record")
    parser.add_argument("--tellings", type=int, default=10, help="tellings of each story")
    parser.add_argument("--wheels", type=Path, help="folder of the broken builds")
    parser.add_argument("--again", action="store_true", help="forget what other guest programs recorded")
    parser.add_argument(
        "--shard", default="1/1", help="I/N: each Nth story, from the Ith; for several processes at once"
    )
    chosen = parser.parse_args()
    if chosen.set == "planted" and chosen.wheels is None:
        parser.error("planted needs --wheels: python -m bench.proving.planted.broken_wheels DIR makes them")
    kind = PLANTED if chosen.set == "planted" else CORPUS
    catalogue = load_catalogue() if kind == CORPUS else add_broken_builds(load_catalogue(), chosen.wheels)
    record: Record = {
        "corpus": record_case,
        "retellings": partial(record_tellings, chosen.tellings),
        "planted": play_product,
    }[chosen.set]
    bench = open_workbench("auto", catalogue, Silent())
    first, _, every = chosen.shard.partition("/")
    trials = [
        trial
        for trial in (list_corpus() if kind == CORPUS else list_planted())
        if not chosen.only or any(part in trial.name for part in chosen.only)
    ]
    # The programs are the project's own, so that stories may share sandboxes. Each run is still a process of its own.
    with closing(bench.sessions):
        for number, trial in enumerate(order_by_family(trials)[int(first) - 1 :: int(every)]):
            story = trial.name.partition("@")[0]
            runs = recorded.load_story(kind, story)
            for stale in runs.list_stale() if chosen.again else ():
                del runs.runs[stale.key, stale.ordinal]
            began, before = time.monotonic(), len(runs.runs)
            try:
                record(trial, runs, catalogue, bench.execute)
            except ReprobotError as error:
                say(f"{story}: {error}")
            say(f"{number + 1:4} {story}: {len(runs.runs) - before} runs, {time.monotonic() - began:.0f} s")
            if len(runs.runs) > before:
                recorded.save_story(kind, story, runs)
    return 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
