"""Time to an answer, against the shell loop that an answer replaces.

    python -m bench.speed.loop [ROUNDS] [ISSUE…]

For each issue (by default three of ``examples/issues``), warm, in turns within each round:

- ``reprobot reproduce``, from outside: until the first run has ended, until the last run of the testcase as posted
  has ended (the verdict rests on these), and until the comment is printed;
- the loop over the same releases, each as often as Reprobot ran it: ``uv run --with`` (offline, its cache warm), and
  the interpreters of the ready environments.

The floor is the least that any way could take: each run's own time after the imports, divided by the processors; and
the same with one warm-up for each release. Both are measured once, with one fork of a warm process for each release.

A ratio is the median over the rounds of two ways in the same round, with the least and the most. Stages and runs go
to ``--stages FILE`` as JSON, one line for each bar of a Gantt chart: checkout, round, issue, name, begin and end in
seconds. ``--also DIR`` measures another checkout in the same rounds, such as the commit before a change.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.speed.probe import LIMITS, make_uv_words, run_process, say
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Testcase
from runners.environments.store import Environment, open_store
from runners.probe.layout import GUEST_ENV, make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import Conditions
from runners.sandbox.contract import Engine
from runners.sandbox.select import select_engine
from runners.toolchains import find_toolchain

ROOT = Path(__file__).parents[2]
ISSUES = ("two-dense-layers-share-one-weight", "take-columns-reordered", "named-add-unknown-after-upgrade")
ROUNDS = 5
UV, READY = "uv run --with", "ready environments"
FIRST, VERDICT, COMMENT = "first answer", "verdict", "comment"
_RUN = re.compile(r"(?P<mark>\S+) \S+ (?P<run>\S+ on \S+?)(?P<variant> \(\w+\))?: .*, (?P<s>[\d.]+) s$")
_STAGE = re.compile(r"(?P<stage>[a-z][a-z ]+) …$")


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage or a run, in seconds since the start."""

    name: str
    begin: float
    end: float
    as_posted: bool = False
    """True for a run of the testcase as posted."""


@dataclass(frozen=True, slots=True)
class Course:
    """One call of ``reprobot reproduce``, seen from outside."""

    bars: tuple[Bar, ...]
    seconds: float

    @property
    def times(self) -> dict[str, float]:
        posted = [bar.end for bar in self.bars if bar.as_posted]
        return {FIRST: min(posted), VERDICT: max(posted), COMMENT: self.seconds}


@dataclass(frozen=True, slots=True)
class Subject:
    """An issue, and the runs that its answer takes: release → number of runs."""

    path: Path
    testcase: Testcase
    runs: Counter[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.speed.loop")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("issues", nargs="*", default=[str(ROOT / f"examples/issues/{name}.md") for name in ISSUES])
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="DIR")
    parser.add_argument("--stages", type=Path)
    chosen = parser.parse_args()
    stages: list[str] = []
    ratios: dict[str, list[float]] = {}
    for issue in chosen.issues:
        measured = measure_issue(Path(issue), chosen.rounds, chosen.sandbox, (ROOT, *chosen.also), stages)
        for name, value in measured.items():
            ratios.setdefault(name, []).append(value)
    say(f"\nmedian over {len(chosen.issues)} issues\n")
    for name, values in ratios.items():
        say(f"- {name}: {median(values):.2f} ({min(values):.2f} … {max(values):.2f})")
    if chosen.stages is not None:
        chosen.stages.write_text("".join(stages))
    return 0


def measure_issue(
    path: Path, rounds: int, sandbox: str, checkouts: Sequence[Path], stages: list[str]
) -> dict[str, float]:
    """Measure one issue, and print its table. Return the ratios."""
    subject = read_subject(path, sandbox, checkouts)
    with tempfile.TemporaryDirectory() as name:
        ways = make_loops(subject, Path(name))
        ended = {name: way() for name, way in ways.items()}  # uv's cache is warm then
        if ended[UV] != ended[READY]:
            raise SystemExit(f"the two loops end in different ways: {ended}")
        times: dict[str, list[float]] = {}
        for number in range(rounds):
            order: list[Path | str] = [*checkouts, *ways]
            for way in order[number % len(order) :] + order[: number % len(order)]:
                if isinstance(way, Path):
                    course = reproduce(path, sandbox, way)
                    stages += list_bars(course, path, number, way)
                    for event, seconds in course.times.items():
                        times.setdefault(name_event(event, way), []).append(seconds)
                else:
                    began = time.monotonic()
                    ways[way]()
                    times.setdefault(way, []).append(time.monotonic() - began)
    floor = measure_floor(subject, select_engine(sandbox))
    return report(subject, dict(sorted(times.items())), floor)


def name_event(event: str, checkout: Path) -> str:
    return event if checkout == ROOT else f"{event}, {checkout.name}"


def read_subject(path: Path, sandbox: str, checkouts: Sequence[Path]) -> Subject:
    """Read the issue, and reproduce it once: for the runs of its answer, and to warm every cache."""
    extraction = extract(parse_issue(path.read_bytes(), source=path.name, today=datetime.now(tz=UTC).date()))
    if not isinstance(extraction, Repro):
        raise SystemExit(f"{path} has no testcase")
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "document.json")
        for checkout in checkouts[::-1]:
            reproduce(path, sandbox, checkout, ("--json", str(document)))
        seen = json.loads(document.read_text())["observations"]
    posted = [one for one in seen if one["variant"] == "original" and one["device"] == extraction.device]
    return Subject(path, extraction.testcase, Counter(one["version"] for one in posted))


def reproduce(path: Path, sandbox: str, checkout: Path, more: Sequence[str] = ()) -> Course:
    """Run ``reprobot reproduce`` and note when each line of progress arrives."""
    words = [sys.executable, "-m", "bot", "reproduce", str(path.absolute()), "--sandbox", sandbox, *more]
    began = time.monotonic()
    # An installed package has byte code. A checkout gets it from its first call, if the shell does not forbid that.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        words,
        cwd=checkout,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        lines = [(time.monotonic() - began, line.strip()) for line in process.stderr]
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit("\n".join(line for _, line in lines[-5:]))
    return Course(tuple(read_bars(lines, seconds)), seconds)


def read_bars(lines: Sequence[tuple[float, str]], seconds: float) -> Iterator[Bar]:
    begun = [(at, found["stage"]) for at, line in lines if (found := _STAGE.match(line))]
    yield Bar("start", 0.0, begun[0][0])
    for (at, stage), (after, _) in zip(begun, [*begun[1:], (seconds, "")], strict=True):
        yield Bar(stage, at, after)
    for at, line in lines:
        if (found := _RUN.match(line)) is not None:
            name = f"{found['mark']} {found['run']}{found['variant'] or ''}"
            yield Bar(name, at - float(found["s"]), at, as_posted=found["variant"] is None)


def list_bars(course: Course, path: Path, number: int, checkout: Path) -> Iterator[str]:
    for bar in course.bars:
        row: dict[str, object] = {
            "checkout": checkout.name,
            "round": number,
            "issue": path.stem,
            "name": bar.name,
            "begin": bar.begin,
            "end": bar.end,
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def make_loops(subject: Subject, folder: Path) -> dict[str, Callable[[], list[int]]]:
    """Return the two loops. Both run the releases one after the other, as a shell does."""
    for name, text in subject.testcase.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    environments = {version: find_environment(subject.testcase, version) for version in subject.runs}
    runs = [environments[version] for version in subject.runs.elements()]
    return {
        UV: lambda: [run_with_uv(one, subject.testcase, folder) for one in runs],
        READY: lambda: [run_ready(one, subject.testcase, folder) for one in runs],
    }


def find_environment(testcase: Testcase, version: str) -> Environment:
    return open_store().get_environment(load_catalogue().find(testcase.toolchain, version), testcase.requirements)


def run_with_uv(environment: Environment, testcase: Testcase, folder: Path, *, limit: tuple[str, ...] = ()) -> int:
    """Run the steps with ``uv run --with``, each behind the words of ``limit``, such as ``timeout 60``."""
    words = [*limit, *make_uv_words(environment, testcase.toolchain, testcase.requirements)]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables = {**quiet, **find_toolchain(testcase.toolchain).VARIABLES, "UV_CACHE_DIR": str(open_store().uv.cache)}
    return run_steps([[*words, *step] for step in testcase.steps], folder, variables)


def run_ready(environment: Environment, testcase: Testcase, folder: Path) -> int:
    site, python = str(environment.site_packages), str(environment.interpreter.executable)
    task = make_task(environment, testcase, LIMITS)
    inside = f"{GUEST_ENV}/lib/python{environment.interpreter.version}/site-packages"
    commands = []
    for name, *arguments in testcase.steps:
        program = task.tools[name]
        words = (program,) if isinstance(program, str) else program
        shown = [word.replace(inside, site).replace(f"{GUEST_ENV}/bin/python", python) for word in words]
        commands.append([*shown, *arguments])
    variables = {**find_toolchain(testcase.toolchain).VARIABLES, "PYTHONPATH": site, "PATH": os.environ["PATH"]}
    return run_steps(commands, folder, variables)


def run_steps(commands: Sequence[Sequence[str]], folder: Path, variables: dict[str, str]) -> int:
    """Run the steps up to the first that fails, as a shell does with ``set -e``. Return the last exit code.

    ``uv run`` exits with the number of a signal, negative, as a byte.
    """
    codes = (run_process(list(words), folder, variables)[0] % 256 for words in commands)
    return next((code for code in codes if code), 0)


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
    return {"floor": own / cores, "floor and warm-ups": (own + warm_up) / cores}


def report(subject: Subject, times: dict[str, list[float]], floor: dict[str, float]) -> dict[str, float]:
    say(f"\n{subject.path.stem}: {subject.runs.total()} runs of {len(subject.runs)} releases\n")
    say(f"| until | seconds, median (least … most) | × {UV} | × {READY} |\n|---|---|---|---|")
    for name, seconds in times.items():
        ratios = [_format_spread(_divide(seconds, times[way])) for way in (UV, READY)]
        say(f"| {name} | {_format_spread(seconds)} | {ratios[0]} | {ratios[1]} |")
    for name, value in floor.items():
        say(f"| {name} | {value:.2f} | {value / median(times[UV]):.2f} | {value / median(times[READY]):.2f} |")
    shown = {f"{name} × {UV}": median(_divide(times[name], times[UV])) for name in times if name not in (UV, READY)}
    limit = floor["floor and warm-ups"]
    return {**shown, f"{VERDICT} × floor and warm-ups": median(seconds / limit for seconds in times[VERDICT])}


def _divide(mine: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(mine, others, strict=True)]


def _format_spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} … {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
