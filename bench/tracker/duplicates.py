"""Plant duplicates among 300 issues and look for them: ``python -m bench.tracker.duplicates FOLDER [--issues N]``.

A stand-in for TVM has faults that are drawn at random: an operator that fails in a range of releases with a message.
Each fault is reported by one to three issues, whose testcases have other names, sizes and surroundings. Some
surroundings need an API that came later, so that the testcase cannot run on older releases. Faults come in families
that share their message, their type or their range, and differ in one thing: these must not be called the same.

The sweep, the reduction and the comparison are the product's own. Each suggestion and each confirmed pair is compared
with the faults that were planted.
"""

from __future__ import annotations

import argparse
import ast
import random
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from bench.tracker.in_process import make_runner
from bot.settings import Settings
from bot.tracker.crosscheck import CrossChecker, confirm_duplicates
from bot.tracker.duplicates import mark_alike
from bot.tracker.rows import IssueRow
from bot.tracker.sources import FolderSource, Selection
from bot.tracker.state import open_tracker_state
from bot.tracker.sweep import TrackerSweep, list_tasks, sweep_tracker
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import Exited, Signalled, StepResult
from runners.core.runs import Execute, RunRequest, RunResult
from runners.workbench.run_ledger import open_run_ledger

TODAY = datetime(2026, 11, 22, tzinfo=UTC)
OPERATORS = (
    *(
        "conv1d",
        "conv3d",
        "cumsum",
        "einsum",
        "gather",
        "layer_norm",
        "matmul",
        "nll_loss",
        "one_hot",
        "pad",
        "prelu",
    ),
    *(
        "quantize",
        "reshape",
        "resize2d",
        "roll",
        "scatter",
        "sort",
        "split",
        "squeeze",
        "strided_slice",
        "take",
        "tril",
    ),
)
CHECKS = (
    *("rank of the {} operand must be known", "layout of {} is not supported by the legalizer"),
    *("the shape of {} cannot be proven equal", "dtype of {} was not unified with the output"),
    *("{} has no registered schedule for this target", "buffer of {} is used after its release"),
)
LATER_API = {"0.26.0": "relax.op.view_as", "0.27.0": "relax.op.fold_all"}
"""Names that the stand-in has since a release. A testcase that uses one cannot run before."""
FIRST = "0.25.0"
CHANGES = ("range", "message", "operator", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An operator that fails from one release on, before another."""

    operator: str
    argument: str
    """The value of ``mode`` that meets the fault; empty for all."""
    since: str
    before: str
    message: str
    crashes: bool = False

    @property
    def call(self) -> str:
        return f"relax.op.{self.operator}"


def draw_faults(rng: random.Random, count: int, releases: Sequence[str]) -> list[Fault]:
    """Draw faults in families: an original, then relatives that differ in range, message or operator alone.

    No two faults have the same words on the same releases: seen from outside, these are one fault.
    """
    faults: dict[tuple[str, str, str], Fault] = {}
    taken: set[tuple[str, str]] = set()
    while len(faults) < count:
        one = _draw_fault(rng, releases, taken)
        family = [one, *(_vary_fault(rng, one, change, releases, taken) for change in rng.sample(CHANGES, 2))]
        for fault in family:
            if fault is not None:
                words = f"crash in {fault.operator}" if fault.crashes else fault.message
                faults.setdefault((words, fault.since, fault.before), fault)
    return list(faults.values())[:count]


def _draw_fault(rng: random.Random, releases: Sequence[str], taken: set[tuple[str, str]]) -> Fault:
    operator, argument = _draw_trigger(rng, taken)
    since, before = _draw_range(rng, releases)
    crashes = rng.random() < 0.15
    message = rng.choice(CHECKS).format(operator)
    return Fault(operator=operator, argument=argument, since=since, before=before, message=message, crashes=crashes)


def _draw_trigger(rng: random.Random, taken: set[tuple[str, str]]) -> tuple[str, str]:
    while True:
        trigger = rng.choice(OPERATORS), f"m{rng.randrange(40)}"
        if trigger not in taken:
            taken.add(trigger)
            return trigger


def _draw_range(rng: random.Random, releases: Sequence[str]) -> tuple[str, str]:
    """Return a range of at least one release: since the first, later, or until a fix."""
    start = rng.choice((0, 0, 0, rng.randrange(len(releases) - 1)))
    end = rng.choice((len(releases), len(releases), rng.randrange(start + 1, len(releases) + 1)))
    return releases[start], releases[end] if end < len(releases) else ""


def _vary_fault(
    rng: random.Random, one: Fault, change: str, releases: Sequence[str], taken: set[tuple[str, str]]
) -> Fault | None:
    """Return another fault of the same operator, or one with the same words, that differs in one thing."""
    argument = f"m{rng.randrange(40)}"
    if (one.operator, argument) in taken:
        return None
    match change:
        case "range":
            since, before = _draw_range(rng, releases)
            if (since, before) == (one.since, one.before):
                return None
            taken.add((one.operator, argument))
            return Fault(
                operator=one.operator, argument=argument, since=since, before=before, message=one.message,
                crashes=one.crashes,
            )  # fmt: skip
        case "message":
            message = rng.choice([text for text in CHECKS if text.format(one.operator) != one.message])
            taken.add((one.operator, argument))
            return Fault(
                operator=one.operator, argument=argument, since=one.since, before=one.before,
                message=message.format(one.operator), crashes=one.crashes,
            )  # fmt: skip
        case "operator":
            operator, argument = _draw_trigger(rng, taken)
            words = one.message.replace(one.operator, operator)
            return Fault(
                operator=operator, argument=argument, since=one.since, before=one.before, message=words,
                crashes=one.crashes,
            )  # fmt: skip
        case _:
            return None


# ---------------------------------------------------------------------------------------------- issues


def write_issue(folder: Path, number: int, fault: Fault, rng: random.Random, releases: Sequence[str]) -> str:
    """Write a report of a fault in new words. Return the file's name."""
    reported = _choose_reported(rng, fault, releases)
    x, y = rng.sample(("x", "data", "inp", "lhs", "value", "t0", "operand"), 2)
    noise = [
        f"{y} = relax.const({rng.randrange(9)})",
        f"size = {rng.randrange(2, 99)}",
        f"relax.op.{rng.choice(('add', 'multiply', 'exp', 'tanh'))}({x})",
        f"print({rng.choice(('size', '1', 'None'))})" if rng.random() < 0.5 else "pass",
    ]
    later = [name for since, name in LATER_API.items() if _is_since(releases, reported, since)]
    if later and rng.random() < 0.35:
        noise.append(f"{rng.choice(later)}({x})")
    rng.shuffle(noise)
    lines = [
        "import tvm",
        "from tvm import relax",
        f'{x} = relax.Var("{x}", relax.TensorStructInfo(({rng.randrange(2, 64)}, 8), "float32"))',
        "size = 4",
        *noise,
        f'{fault.call}({x}, mode="{fault.argument}")',
    ]
    said = "Fatal Python error: Segmentation fault" if fault.crashes else _format_error(fault)
    name = f"{number:04}.md"
    (folder / name).write_text(
        f"---\ncreated: 2026-{rng.randrange(7, 11):02}-{rng.randrange(1, 28):02}\n---\n"
        f"# {rng.choice(('[Bug] ', ''))}{fault.operator} {rng.choice(('fails', 'is broken', 'aborts'))}\n\n"
        f"With apache-tvm {reported} this {rng.choice(('program', 'script', 'test'))} fails:\n\n"
        "```python\n" + "\n".join(lines) + f"\n```\n\nOutput:\n\n```\n{said}\n```\n",
        encoding="utf-8",
    )
    return name


def _choose_reported(rng: random.Random, fault: Fault, releases: Sequence[str]) -> str:
    return rng.choice([one for one in releases if _fails_on(fault, one, releases)])


def _is_since(releases: Sequence[str], version: str, since: str) -> bool:
    return releases.index(version) >= releases.index(since)


def _fails_on(fault: Fault, version: str, releases: Sequence[str]) -> bool:
    return _is_since(releases, version, fault.since) and not (
        fault.before and _is_since(releases, version, fault.before)
    )


def _format_error(fault: Fault) -> str:
    return f"tvm.error.InternalError: Check failed: (ok) is false: {fault.message}"


# ---------------------------------------------------------------------------------------------- the stand-in


@dataclass(frozen=True, slots=True)
class StandIn:
    """Runs a testcase line by line, as far as calls and names matter: the first call that meets a fault ends it."""

    faults: Sequence[Fault]
    releases: Sequence[str]

    def __call__(self, request: RunRequest) -> RunResult:
        (text,) = request.testcase.files.values()
        ended, said = self._interpret(text, request.version)
        step = StepResult(argv=request.testcase.steps[0], ended=ended, stderr=said, seconds=0.5)
        return RunResult(steps=(step,), ended=ended, seconds=0.5)

    def _interpret(self, text: str, version: str) -> tuple[Exited | Signalled, str]:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            return Exited(code=1), f"SyntaxError: {error.msg}\n"
        if version not in self.releases:
            return Exited(code=1), "ImportError: no such release in this world\n"
        known = {"print"}
        for statement in tree.body:
            for name in _list_loads(statement):
                if name not in known:
                    return Exited(code=1), _trace(f"NameError: name '{name}' is not defined")
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                if (ended := self._call(call, version)) is not None:
                    return ended
            known |= _list_stores(statement)
        return Exited(code=0), ""

    def _call(self, call: ast.Call, version: str) -> tuple[Exited | Signalled, str] | None:
        name = ast.unparse(call.func)
        for since, later in LATER_API.items():
            if name == later and not _is_since(self.releases, version, since):
                attribute = later.rpartition(".")[2]
                return Exited(code=1), _trace(f"AttributeError: module 'tvm.relax.op' has no attribute '{attribute}'")
        mode = next((ast.literal_eval(word.value) for word in call.keywords if word.arg == "mode"), "")
        for fault in self.faults:
            if (name, mode) == (fault.call, fault.argument) and _fails_on(fault, version, self.releases):
                if fault.crashes:
                    frame = f"0x00 in tvm::relax::{fault.operator}()\n"
                    return Signalled(code=11), f"Fatal Python error: Segmentation fault\n{frame}"
                return Exited(code=1), _trace(_format_error(fault))
        return None


def _trace(last: str) -> str:
    return f'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\n{last}\n'


def _list_loads(statement: ast.stmt) -> list[str]:
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def _list_stores(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


# ---------------------------------------------------------------------------------------------- the measurement


def plant_issues(folder: Path, count: int, seed: int, catalogue: Catalogue) -> tuple[StandIn, dict[str, int]]:
    """Write the issues. Return the stand-in for the compiler, and file → number of its fault."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    releases = [
        one.version for one in catalogue.list_releases("tvm") if one.order >= catalogue.find("tvm", FIRST).order
    ]
    faults = draw_faults(rng, count, releases)
    planted: dict[str, int] = {}
    for number, fault in enumerate(faults):
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            if len(planted) < count:
                planted[write_issue(folder, len(planted), fault, rng, releases)] = number
    return StandIn(faults, releases), planted


def make_sweep(folder: Path, out: Path, catalogue: Catalogue, live: Execute, jobs: int) -> TrackerSweep:
    return TrackerSweep(
        source=FolderSource(folder=folder, today=TODAY.date()),
        settings=Settings(versions=f">={FIRST}"),
        catalogue=catalogue,
        state=open_tracker_state(out / "tracker.sqlite"),
        out=out,
        attach=lambda issue: issue,
        run_plan=make_runner(live, open_run_ledger(out / "runs.sqlite")),
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        read_cpu=lambda: resource.getrusage(resource.RUSAGE_SELF).ru_utime,
        measure_ledger=lambda: 0,
        log=lambda _: None,
        jobs=jobs,
    )


def count_pairs(pairs: Iterable[frozenset[str]], rows: Mapping[str, IssueRow], planted: Mapping[str, int]) -> str:
    """Return precision over pairs, and the share of issues with a planted twin that have a right pair."""
    every = set(pairs)
    right = {pair for pair in every if len({planted[id] for id in pair}) == 1}
    groups: dict[int, list[str]] = defaultdict(list)
    for id, number in planted.items():
        if rows[id].failure is not None:
            groups[number].append(id)
    with_twin = {id for group in groups.values() if len(group) > 1 for id in group}
    found = {id for pair in right for id in pair}
    twins = sum(len(list(combinations(group, 2))) for group in groups.values())
    precision = len(right) / len(every) if every else 1.0
    recall = len(found & with_twin) / len(with_twin) if with_twin else 1.0
    return (
        f"precision {precision:.3f} ({len(right)} of {len(every)} pairs), recall {recall:.3f} "
        f"({len(found & with_twin)} of {len(with_twin)} issues with a twin; {twins} pairs planted)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--issues", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    catalogue = load_catalogue()
    live, planted = plant_issues(chosen.folder / "issues", chosen.issues, chosen.seed, catalogue)
    sweep = make_sweep(chosen.folder / "issues", chosen.folder / "out", catalogue, live, chosen.jobs)
    began = time.process_time()
    issues, tasks = list_tasks(sweep, Selection(state="all"))
    sweep_tracker(sweep, issues, tasks)
    rows = sweep.state.list_rows()
    verdicts = Counter(row.verdict for row in rows.values())
    sys.stdout.write(f"{len(planted)} issues of {len(set(planted.values()))} faults: {dict(verdicts)}\n")
    alike = {frozenset({row.issue.id, other}) for row in mark_alike(list(rows.values())) for other in row.like}
    sys.stdout.write(f"alike, without further runs: {count_pairs(alike, rows, planted)}\n")
    checker = CrossChecker(
        settings=sweep.settings, catalogue=catalogue, run_plan=sweep.run_plan, folder=sweep.out / "work"
    )
    checked = 0
    while new := confirm_duplicates(checker, sweep.state, sweep.source.fetch_issue, sweep.log):
        checked += new
    rows = sweep.state.list_rows()
    same = {frozenset({row.issue.id, other}) for row in rows.values() for other in row.same}
    refuted = Counter(
        check.why.partition(" on ")[0] for check in sweep.state.list_pair_checks().values() if not check.same
    )
    sys.stdout.write(f"confirmed by runs of both minimised testcases: {count_pairs(same, rows, planted)}\n")
    wrong = [sorted(pair) for pair in same if len({planted[id] for id in pair}) > 1]
    sys.stdout.write(
        f"{checked} pairs compared, {refuted.total()} refuted {dict(refuted.most_common(4))}; wrong: {wrong[:5]}; "
        f"{time.process_time() - began:.0f} s of processor time\n"
    )


if __name__ == "__main__":
    main()
