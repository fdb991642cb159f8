"""Record the runs of a set: ``python -m bench.proving.record [corpus|retellings] [--only PART] [--shard I/N]``.

Runs only requests that are not recorded yet. ``--again`` forgets the recordings that other guest programs made.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import msgspec

from bench.proving import recordings as recorded
from bench.proving.corpus import CorpusCase, choose_options, list_cases
from bench.proving.recordings import Recordings, Replay
from bench.proving.replay import replay_issue
from bench.proving.trials import list_corpus, play_product, retell
from bot.extract import extract
from bot.extract.types import Repro
from runners.core.catalogue import Catalogue, load_catalogue
from runners.core.errors import ReprobotError
from runners.core.progress import Silent
from runners.core.protocol import Limits
from runners.core.runs import Execute, RunRequest
from runners.workbench import Workbench, open_workbench

SET = "corpus"
RUN_TIMEOUT_S = 120.0


def record_case(case: CorpusCase, runs: Recordings, catalogue: Catalogue, live: Execute) -> None:
    """Record the investigation of a case's own text, and its testcase on every release, twice."""
    extraction = extract(case.issue)
    if not isinstance(extraction, Repro) or extraction.missing:
        return
    options = choose_options(case)
    replay_issue(case.issue, Replay(runs, live), catalogue, options, extraction)
    testcase = extraction.testcase
    every = Replay(runs, live)
    for release in catalogue.get_listing(testcase.toolchain).releases:
        if release.fork is None:
            for attempt in (1, 2):
                request = RunRequest(
                    version=release.version, device=extraction.device, testcase=testcase, attempt=attempt
                )
                every(msgspec.structs.replace(request, limits=Limits(wall_s=options.timeout_s or RUN_TIMEOUT_S)))


def record_tellings(case: CorpusCase, runs: Recordings, catalogue: Catalogue, live: Execute, number: int) -> None:
    """Record what the investigations of the first ``number`` tellings of a case ask for beyond the case's own."""
    trial = next(one for one in list_corpus() if one.name == case.truth.name)
    for telling in retell(trial, runs, catalogue, number):
        play_product(telling, runs, catalogue, live)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", choices=("corpus", "retellings"), default="corpus")
    parser.add_argument("--only", action="append", default=[], help="part of the names of the cases to record")
    parser.add_argument("--tellings", type=int, default=10, help="tellings of each story")
    parser.add_argument("--again", action="store_true", help="forget what other guest programs recorded")
    parser.add_argument(
        "--shard", default="1/1", help="I/N: each Nth case, from the Ith; for several processes at once"
    )
    chosen = parser.parse_args()
    first, _, every = chosen.shard.partition("/")
    catalogue = load_catalogue()
    bench = open_workbench("auto", catalogue, Silent())
    for number, case in enumerate(list(_choose(chosen.only))[int(first) - 1 :: int(every)]):
        runs = recorded.load_story(SET, case.truth.name)
        if chosen.again:
            for stale in runs.list_stale():
                del runs.runs[stale.key, stale.ordinal]
        began, before = time.monotonic(), len(runs.runs)
        with closing(bench.sessions):
            _record(chosen.set, case, runs, catalogue, bench, chosen.tellings)
        say(f"{number + 1:4} {case.truth.name}: {len(runs.runs) - before} runs, {time.monotonic() - began:.0f} s")
        if len(runs.runs) > before:
            recorded.save_story(SET, case.truth.name, runs)
    return 0


def _record(
    name: str, case: CorpusCase, runs: Recordings, catalogue: Catalogue, bench: Workbench, number: int
) -> None:
    try:
        if name == "corpus":
            record_case(case, runs, catalogue, bench.execute)
        else:
            record_tellings(case, runs, catalogue, bench.execute, number)
    except ReprobotError as error:
        say(f"{case.truth.name}: {error}")


def _choose(only: list[str]) -> Iterator[CorpusCase]:
    return (case for case in list_cases() if not only or any(part in case.truth.name for part in only))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
