"""Play many trials in several processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from bench.proving.dummies import list_dummies
from bench.proving.grades import Graded
from bench.proving.planted.builds import add_broken_builds
from bench.proving.trials import CORPUS, PLANTED, Trial, explain_miss, grade_trial, load_recordings, retell
from runners.core.packages.catalogue import load_catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All trials of one story for one judge."""

    trial: Trial
    set: str
    judge: str
    tellings: int = 0
    explain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A graded trial with its telling, and the options that matter if it was missed and reduced."""

    set: str
    judge: str
    graded: Graded
    options: tuple[tuple[str, str], ...] = ()
    reduced: tuple[tuple[str, str], ...] = ()


def play_job(job: Job) -> list[Done]:
    """Grade all trials of a job. Runs in a process of its own."""
    planted = job.set == PLANTED
    catalogue = add_broken_builds(load_catalogue()) if planted else load_catalogue()
    recordings = load_recordings(job.trial, PLANTED if planted else CORPUS)
    play = list_dummies()[job.judge]()
    trials = retell(job.trial, recordings, catalogue, job.tellings) if job.set == "retellings" else [job.trial]
    done = []
    for trial in trials:
        graded = grade_trial(trial, play(trial, recordings, catalogue))
        missed = not graded.good and graded.grade != "unrecorded"
        reduced = explain_miss(trial, recordings, catalogue) if job.explain and missed and trial.telling else {}
        done.append(
            Done(
                set=job.set,
                judge=job.judge,
                graded=graded,
                options=trial.telling.options if trial.telling else (),
                reduced=tuple(reduced.items()),
            )
        )
    return done


def play_jobs(jobs: Sequence[Job], processes: int) -> Iterator[Done]:
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        for number, done in enumerate(pool.map(play_job, jobs, chunksize=1)):
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number + 1} of {len(jobs)} stories")
            yield from done
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
