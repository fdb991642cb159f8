"""Time to an answer, against the loops that an answer replaces.

    python -m bench.speed.loop [ROUNDS] [ISSUE…]

For each issue (by default eight of ``examples/issues``, half of them about TVM), in turns within each round:

- ``reprobot reproduce`` with a warm store, from outside: until the first run has ended, until the last run of the
  testcase as posted has ended (the verdict rests on these), and until the comment is printed;
- the same answer by the processes of ``reprobot watch``, which have answered it before;
- the same answer from a ledger of its runs: ``reprobot sweep`` of a folder with this one issue;
- the loop over the same releases, each as often as Reprobot ran it: ``uv run --with`` (offline, its cache warm), the
  interpreters of ready environments, ``nox`` (one session for each release, its environments ready), and
  ``podman run`` (a container for each run, from the folder of our podman engine). A way that this machine lacks is
  left out, with the reason. All ways must end in the same exit codes; an issue for which they do not is left out, and
  the exit code is 1.

Once for each issue: ``reprobot reproduce`` with an empty store beside a warm cache of uv, and the floor. The floor is
the least that any way could take: each run's own time after the imports, divided by the processors; and the same with
one warm-up for each release. It is measured with one fork of a warm process for each release.

A ratio is the median over the rounds of two ways in the same round, with the least and the most. ``--times FILE``
takes all seconds as JSON, one line for each issue and way. Stages and runs go to ``--stages FILE`` as JSON, one line
for each bar of a Gantt chart: checkout, round, issue, name, begin and end in seconds. ``--also DIR`` measures another
checkout in the same rounds, such as the commit before a change. ``--only WAY`` limits the ways.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median

from bench.speed.answers import (
    COLD,
    LEDGER,
    ROOT,
    WATCH,
    Ledger,
    Subject,
    Watch,
    read_subject,
    reproduce,
    reproduce_cold,
)
from bench.speed.course import COMMENT, FIRST, VERDICT, CallFailed, list_bars
from bench.speed.probe import LIMITS, say
from bench.speed.ways import NOX, PODMAN, READY, UV, Way, find_environment, open_ways
from runners.cells.processes import CellProcesses
from runners.environments.store import default_root
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import Conditions
from runners.sandbox.contract import Engine
from runners.sandbox.select import select_engine

ISSUES = {
    "two-dense-layers-share-one-weight": "TVM, fixed",
    "take-columns-reordered": "TVM, the testcase is invalid",
    "equal-on-bool-tensors": "TVM, confirmed",
    "topk-repeated-values-from-source-build": "TVM, not reproduced",
    "named-add-unknown-after-upgrade": "IREE: an operation in the notation of older releases",
    "unused-tensor-argument-crash": "IREE, a crash, fixed",
    "f16-row-sums-stuck-at-256": "IREE, a regression: wrong values on the command line",
    "python-float-argument-arrives-as-zero": "IREE, wrong values through Python, fixed",
}
ROUNDS = 5
FLOOR = "floor and warm-ups"
LOOPS = (UV, READY, NOX, PODMAN)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.speed.loop")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("issues", nargs="*", default=[str(ROOT / f"examples/issues/{name}.md") for name in ISSUES])
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--only", action="append", choices=(*LOOPS, LEDGER, COLD, WATCH), metavar="WAY")
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="DIR")
    parser.add_argument("--stages", type=Path)
    parser.add_argument("--times", type=Path)
    chosen = parser.parse_args()
    wanted = frozenset(chosen.only or (*LOOPS, LEDGER, COLD, WATCH))
    checkouts = (ROOT, *chosen.also)
    stages: list[str] = []
    rows: list[str] = []
    ratios: dict[tuple[str, str], list[float]] = {}
    failed = []
    for issue in map(Path, chosen.issues):
        try:
            subject = read_subject(issue, chosen.sandbox, checkouts)
            times = measure_issue(subject, chosen.rounds, chosen.sandbox, checkouts, wanted, stages)
        except CallFailed as reason:
            failed.append(f"{issue.stem} is left out: {reason}")
            say(failed[-1])
            continue
        floor = measure_floor(subject, select_engine(chosen.sandbox))
        rows += [make_row(subject, name, seconds) for name, seconds in times.items()]
        rows += [make_row(subject, name, [seconds]) for name, seconds in floor.items()]
        for name, value in report(subject, times, floor).items():
            ratios.setdefault(name, []).append(value)
        if chosen.times is not None:
            chosen.times.write_text("".join(rows))
        if chosen.stages is not None:
            chosen.stages.write_text("".join(stages))
    say(f"\nmedian over {len(chosen.issues) - len(failed)} issues (least … most)\n")
    for line in format_ratios(ratios):
        say(line)
    return int(bool(failed))


def make_row(subject: Subject, name: str, seconds: Sequence[float]) -> str:
    return json.dumps({"issue": subject.path.stem, "way": name, "seconds": list(seconds)}, ensure_ascii=False) + "\n"


def measure_issue(
    subject: Subject, rounds: int, sandbox: str, checkouts: Sequence[Path], wanted: frozenset[str], stages: list[str]
) -> dict[str, list[float]]:
    """Return way or event → its seconds in each round; once for a cold store.

    Raises:
        CallFailed: two ways end differently, or the ledger gives another verdict.
    """
    times: dict[str, list[float]] = {}
    # On the disk of uv's cache, environments are hard links into it.
    beside = tempfile.TemporaryDirectory(dir=default_root().parent, prefix="reprobot-bench-")
    with beside as name, ExitStack() as stack:
        folder = Path(name)
        # Both loops on the host are always there: they are the measure of the others.
        ways, problems = open_ways(subject.testcase, subject.runs, folder, stack, wanted | {UV, READY})
        for problem in problems:
            say(problem)
        check_endings(subject, {name: way() for name, way in ways.items()})  # uv's cache is warm then
        turns: dict[str, Callable[[int], dict[str, float]]] = {}
        for checkout in checkouts:
            turns[str(checkout)] = partial(time_answer, subject, sandbox, checkout, stages)
        if LEDGER in wanted:
            ledger = Ledger(subject, folder / "ledger")
            ledger.answer()
            turns[LEDGER] = partial(time_ledger, ledger)
        if WATCH in wanted:
            processes = stack.enter_context(closing(CellProcesses(os.environ)))
            watch = Watch(subject, folder / "watch", processes)
            watch.answer()
            turns[WATCH] = partial(time_watch, watch)
        turns |= {name: partial(time_way, name, way) for name, way in ways.items()}
        names = list(turns)
        for number in range(rounds):
            for turn in names[number % len(names) :] + names[: number % len(names)]:
                for event, seconds in turns[turn](number).items():
                    times.setdefault(event, []).append(seconds)
    if COLD in wanted:
        course = reproduce_cold(subject.path, sandbox)
        times |= {f"{event}, {COLD}": [seconds] for event, seconds in course.times.items()}
    return dict(sorted(times.items()))


def check_endings(subject: Subject, ended: dict[str, list[int]]) -> None:
    """Refuse ways that end differently. Say so if Reprobot's runs did: it varies the conditions of its runs."""
    if len({tuple(codes) for codes in ended.values()}) > 1:
        raise CallFailed(f"the ways end differently: {ended}")
    seen = {version: set[int]() for version in subject.runs}
    for version, code in zip(subject.runs.elements(), next(iter(ended.values())), strict=True):
        seen[version].add(code)
    if seen != subject.endings:
        say(f"{subject.path.stem}: Reprobot's runs ended as {subject.endings}, those of the loops as {seen}")


def time_answer(subject: Subject, sandbox: str, checkout: Path, stages: list[str], number: int) -> dict[str, float]:
    course = reproduce(subject.path, sandbox, checkout)
    stages += list_bars(course, subject.path, number, checkout)
    return {name_event(event, checkout): seconds for event, seconds in course.times.items()}


def name_event(event: str, checkout: Path) -> str:
    return event if checkout == ROOT else f"{event}, {checkout.name}"


def time_ledger(ledger: Ledger, _number: int) -> dict[str, float]:
    return {f"{COMMENT}, {LEDGER}": ledger.answer()}


def time_watch(watch: Watch, _number: int) -> dict[str, float]:
    return {f"{event}, {WATCH}": seconds for event, seconds in watch.answer().items()}


def time_way(name: str, way: Way, _number: int) -> dict[str, float]:
    began = time.monotonic()
    way()
    return {name: time.monotonic() - began}


# ---------------------------------------------------------------------------------------------- floor, report


def measure_floor(subject: Subject, engine: Engine) -> dict[str, float]:
    """Return the seconds of all runs without and with one warm-up for each release, divided by the processors."""
    own = warm_up = 0.0
    for version, times in subject.runs.items():
        environment = find_environment(subject.testcase, version)
        task = make_task(environment, subject.testcase, LIMITS, conditions=Conditions(scripts=True, fork=True))
        began = time.monotonic()
        with open_probe_session(engine, make_layout(environment), limits=LIMITS, run_id="bench") as session:
            session.run(task)
            first = time.monotonic() - began
            seconds = median(sum(step.seconds for step in session.run(task).steps) for _ in range(3))
        own += times * seconds
        warm_up += max(0.0, first - seconds)
    cores = os.cpu_count() or 1
    return {"floor": own / cores, FLOOR: (own + warm_up) / cores}


def report(subject: Subject, times: dict[str, list[float]], floor: dict[str, float]) -> dict[tuple[str, str], float]:
    """Print the table of an issue. Return its ratios: an event and its measure → the median."""
    say(f"\n{subject.path.stem} ({subject.verdict}): {subject.runs.total()} runs of {len(subject.runs)} releases\n")
    loops = [name for name in LOOPS if name in times]
    say(f"| until | seconds, median (least … most) | {' | '.join(f'× {name}' for name in loops)} |")
    say(f"|{'---|' * (2 + len(loops))}")
    for name, seconds in times.items():
        ratios = [format_spread(divide(seconds, times[way])) for way in loops]
        say(f"| {name} | {format_spread(seconds)} | {' | '.join(ratios)} |")
    for name, value in floor.items():
        say(f"| {name} | {value:.2f} | {' | '.join(f'{value / median(times[way]):.2f}' for way in loops)} |")
    shown = {
        (name, way): median(divide(seconds, times[way]))
        for way in loops
        for name, seconds in times.items()
        if name not in LOOPS
    }
    limit = floor[FLOOR]
    events = [name for name in times if name.partition(",")[0] in (FIRST, VERDICT, COMMENT)]
    return {**shown, **{(event, FLOOR): median(times[event]) / limit for event in events}}


def format_ratios(ratios: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[str]:
    """Yield a table: a line for each event, a column for each measure. A ratio that was not measured is a dash."""
    if not ratios:
        return
    events, measures = (list(dict.fromkeys(names)) for names in zip(*ratios, strict=True))
    yield f"| until | {' | '.join(f'× {measure}' for measure in measures)} |"
    yield f"|{'---|' * (1 + len(measures))}"
    for event in events:
        found = (ratios.get((event, measure)) for measure in measures)
        yield f"| {event} | {' | '.join('–' if one is None else format_spread(one) for one in found)} |"


def divide(mine: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the ratios of the same rounds; of a single value, to the median of all rounds."""
    if len(mine) != len(others):
        return [one / median(others) for one in mine]
    return [one / other for one, other in zip(mine, others, strict=True)]


def format_spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} … {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
