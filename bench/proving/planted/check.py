"""Check the truth of every program by running it plainly: ``python -m bench.proving.planted.check --wheels DIR``.

Runs each program on its builds, and its control, and prints where the result is not the one that the program claims.
``--record`` also writes the outputs that the reports quote. The broken builds are made in DIR first, where they are
not there. Exits 1 on any disagreement.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from bench.proving.planted.broken_wheels import make_wheels
from bench.proving.planted.catalogue import Telling, digest_text, list_untold, read_tellings, write_tellings
from bench.proving.planted.program import Planted, Steps
from bench.proving.planted.running import Run, run_plainly
from runners.environments.store import Environment, open_store
from runners.environments.wheel_sources import open_catalogue

LIMIT_S = 90.0
HANG_S = 20.0
"""A program that hangs would have ended after a tenth of this; a build that runs it rightly has LIMIT_S."""
TRIES = 12
"""Runs of a build that must be seen both to fail and to be clean."""
MOST_TEXT = 6000

Build = Callable[[str], Environment]
"""Version → environment."""


def check(planted: Planted, build: Build) -> tuple[list[str], Telling | None]:
    """Where the program does not do what is claimed, and what its report may quote."""
    story = planted.story
    wrong: list[str] = []
    runs: dict[str, Run] = {}
    told = planted.told_by

    def run(version: str, files: Mapping[str, str] = story.files, steps: Steps = story.steps) -> Run:
        hangs = planted.ending == "hang" and (version == told or planted.outcomes.get(version) == "match")
        limit = HANG_S if hangs else LIMIT_S
        return run_plainly(files, steps, build(version), limit_s=limit)

    if told:
        found = _find_failure(planted, lambda: run(told))
        if found is None:
            return [f"{story.name} {told}: does not fail as reported"], None
        runs[told] = found
    clean = next((v for v, outcome in planted.outcomes.items() if outcome == "pass"), "")
    if planted.control is not None and not clean:
        clean = planted.control.clean_on[0]
    if planted.ending == "printed" and not story.right and told and clean:
        runs[clean] = run(clean)
    telling = _make_telling(planted, runs.get(told), runs.get(clean))
    if telling is not None:
        planted = replace(planted, story=replace(story, wrong=telling.wrong, right=telling.right))
    for version, outcome in planted.outcomes.items():
        tried = [runs.get(version) or run(version)]
        while outcome == "flaky" and len(tried) < TRIES and len({fails(planted, one) for one in tried}) < 2:
            tried.append(run(version))
        if not _agrees(planted, outcome, tried):
            wrong.append(f"{story.name} {version}: not {outcome}: {_describe(tried[-1])}")
    control = planted.control
    if control is not None:
        for version in control.clean_on:
            one = run(version, control.files, control.steps)
            if not one.clean or control.shows not in one.output:
                wrong.append(f"{story.name} {version}: its control is not clean: {_describe(one)}")
        for version in control.fails_on:
            one = run(version, control.files, control.steps)
            if one.clean:
                wrong.append(f"{story.name} {version}: its control is clean")
    return wrong, telling


def fails(planted: Planted, run: Run) -> bool:
    """Whether a run fails as the report says."""
    story = planted.story
    match planted.ending:
        case "signal":
            return run.ended == planted.shows
        case "hang":
            return run.ended == "time-out"
        case "printed":
            other = not story.wrong or _has_printed(run, story.wrong)
            return run.clean and other and not _has_printed(run, story.right)
        case _:
            return (
                run.ended.startswith("exit")
                and not run.clean
                and any(part in run.output for part in planted.shows.split("|"))
            )


def _has_printed(run: Run, lines: str) -> bool:
    return bool(lines) and lines in run.stdout


def _agrees(planted: Planted, outcome: str, runs: Sequence[Run]) -> bool:
    failed = [fails(planted, one) for one in runs]
    good = [one.clean and (planted.ending != "printed" or _has_printed(one, planted.story.right)) for one in runs]
    match outcome:
        case "match":
            return all(failed)
        case "pass":
            return all(good)
        case "flaky":
            return any(failed) and any(good) and all(a or b for a, b in zip(failed, good, strict=True))
        case _:
            return not any(failed) and not any(one.clean for one in runs)


def _find_failure(planted: Planted, run: Callable[[], Run]) -> Run | None:
    """The first run that fails as reported; of a build that always fails the first, else one of some."""
    tries = TRIES if "flaky" in planted.outcomes.values() else 1
    story = (
        planted.story if planted.story.right or planted.ending != "printed" else replace(planted.story, right="\0")
    )
    asked = replace(planted, story=story)
    return next((one for one in (run() for _ in range(tries)) if fails(asked, one)), None)


def _make_telling(planted: Planted, failed: Run | None, clean: Run | None) -> Telling | None:
    if failed is None:
        return None
    story = planted.story
    telling = Telling(name=story.name, text=digest_text(planted))
    if planted.ending != "printed":
        return Telling(name=telling.name, text=telling.text, failure=_shorten(failed.as_pasted()))
    if story.right:
        first, *_ = story.right.split("\n")
        label = first.partition("=")[0] + "="
        wrong = [line for line in failed.stdout.split("\n") if line.startswith(label) or "\n" in story.right]
        return Telling(name=telling.name, text=telling.text, wrong="\n".join(wrong).strip("\n"), right=story.right)
    assert clean is not None
    before, after = failed.stdout.split("\n"), clean.stdout.split("\n")
    differing = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    return Telling(
        name=telling.name,
        text=telling.text,
        wrong="\n".join(a for a, _ in differing),
        right="\n".join(b for _, b in differing),
    )


def _shorten(text: str) -> str:
    """The end of a long output, from the start of a line on."""
    if len(text) <= MOST_TEXT:
        return text
    return text[-MOST_TEXT:].partition("\n")[2]


def _describe(run: Run) -> str:
    last = run.output.strip().rpartition("\n")[2]
    return f"{run.ended} after {run.seconds} s, {last[:160]!r}"


def check_all(chosen: Sequence[Planted], build: Build, jobs: int) -> Iterator[tuple[list[str], Telling | None]]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda planted: check(planted, build), chosen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the broken builds")
    parser.add_argument("--family", action="append", default=[], help="part of the families to check")
    parser.add_argument("--only", action="append", default=[], help="names of programs to check")
    parser.add_argument("--record", action="store_true", help="keep the outputs that the reports quote")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    chosen = [
        planted
        for planted in list_untold()
        if (not asked.family or any(part in planted.family for part in asked.family))
        and (not asked.only or planted.story.name in asked.only)
    ]
    store = open_store()
    make_wheels(asked.wheels, store)
    catalogue = open_catalogue(None, [str(asked.wheels.absolute())])
    toolchains = {version: planted.story.toolchain for planted in list_untold() for version in _list_builds(planted)}

    @cache
    def build(version: str) -> Environment:
        return store.get_environment(catalogue.find(toolchains[version], version))

    for version in sorted({version for planted in chosen for version in _list_builds(planted)}):
        build(version)
    recorded: dict[str, Telling] = {}
    disagreements = 0
    for wrong, telling in check_all(chosen, build, asked.jobs):
        for line in wrong:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        disagreements += len(wrong)
        if telling is not None:
            recorded[telling.name] = telling
    if asked.record:
        names = {planted.story.name for planted in list_untold()}
        write_tellings(one for one in {**read_tellings(), **recorded}.values() if one.name in names)
    sys.stdout.write(f"{len(chosen)} programs, {disagreements} disagreements\n")
    return 1 if disagreements else 0


def _list_builds(planted: Planted) -> Iterator[str]:
    yield from planted.versions
    if planted.told_by:
        yield planted.told_by
    if planted.control is not None:
        yield from (*planted.control.clean_on, *planted.control.fails_on)


if __name__ == "__main__":
    sys.exit(main())
