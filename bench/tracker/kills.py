"""Kill the sweep, the scheduler or a worker of a cluster at random moments: ``python -m bench.tracker.kills FOLDER``.

Needs root and the package ``distributed``. Every round sweeps new issues of light testcases (CPython of this machine,
in real sandboxes) over a Dask cluster on loopback, and kills one process with SIGKILL: the sweep, the scheduler or a
worker. What was killed is started again, and the sweep repeated until it goes through. A round passes if

- every issue has the verdict that its testcase must get, and was answered once;
- every run is recorded once, and no run is recorded that an undisturbed round does not make;
- no process, control group, mount or temporary file of a sandbox is left after the next clean-up.

``--scale 1,2,4`` instead sweeps equal issues with so many workers, then once more with one killed in the middle. All
rounds run in PID and mount namespaces of their own, so that every leftover is theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.robustness import own_space, remains
from bot.tracker.state import open_tracker_state
from runners.sandbox.select import remove_leftovers

ROOT = Path(__file__).parents[2]
VICTIMS = ("sweep", "scheduler", "worker")
ATTEMPTS = 6
START_S = 60.0
PATIENCE_S = 300.0
ISSUE = """---
created: 2026-11-01
---
# number {number} has no slot

With Python 3.11 this fails:

```python
import time
time.sleep({seconds})
raise ValueError("no slot for number {number}")
```

```
ValueError: no slot for number {number}
```
"""


@dataclass
class Cluster:
    """A scheduler and workers as processes of their own. Each can be killed and started again."""

    folder: Path
    workers: int
    port: int = 0
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def cache(self) -> Path:
        """The cache of the workers, which holds their ledger."""
        return self.folder / "cache"

    def start(self) -> None:
        """Start what does not run."""
        if not self.port:
            self.port = _find_free_port()
        self._start("scheduler", "dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        _wait_for_port(self.port)
        for number in range(self.workers):
            self._start(f"worker {number}", "dask_worker", self.address, "--nthreads", "1", "--no-nanny")

    def _start(self, name: str, module: str, *words: str) -> None:
        known = self.running.get(name)
        if known is not None and known.poll() is None:
            return
        log = (self.folder / f"{name.replace(' ', '-')}.log").open("ab")
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words, "--no-dashboard"]
        with log:
            self.running[name] = subprocess.Popen(
                command, cwd=ROOT, env=self.environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def environment(self) -> dict[str, str]:
        return os.environ | {"REPROBOT_CACHE": str(self.cache), "PYTHONPATH": str(ROOT)}

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def stop(self, of: str = "") -> None:
        """Stop the processes whose names begin with ``of``."""
        ending = [process for name, process in self.running.items() if name.startswith(of)]
        for process in ending:
            process.terminate()
        for process in ending:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _find_free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the scheduler did not start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The outcome of one round. ``faults`` are the sentences that should not be there."""

    number: int
    victim: str
    after_s: float
    attempts: int
    seconds: float
    faults: tuple[str, ...]


def write_issues(folder: Path, first: int, count: int, seconds: float) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(first, first + count):
        (folder / f"{number}.md").write_text(ISSUE.format(number=number, seconds=seconds), encoding="utf-8")


def start_sweep(cluster: Cluster, issues: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    settings = cluster.folder / "settings.yml"
    settings.write_text("toolchain: python\n", encoding="utf-8")
    words = ["sweep", str(issues), "--out", str(out), "--settings", str(settings), "--jobs", str(jobs)]
    command = [sys.executable, "-m", "bot", *words, "--cluster", cluster.address]
    with (cluster.folder / "sweep.log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=ROOT, env=cluster.environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )


def play_round(
    cluster: Cluster, number: int, chance: random.Random, *, issues: int, longest_s: float, runs_per_issue: int | None
) -> Round:
    """Sweep new issues, kill one process meanwhile, and go on until the sweep goes through."""
    texts, out = cluster.folder / "issues", cluster.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    write_issues(texts, 100 * number, issues, 0.2)
    cluster.start()
    recorded = count_recorded(cluster)
    began = time.monotonic()
    victim = chance.choice(VICTIMS) if runs_per_issue is not None else "nothing"
    after_s = round(chance.uniform(0.5, longest_s), 2)
    attempts = 0
    finished = False
    while attempts < ATTEMPTS and not finished:
        attempts += 1
        sweep = start_sweep(cluster, texts, out, jobs=cluster.workers)
        if attempts == 1 and victim != "nothing":
            victim = _kill_after(cluster, sweep, victim, after_s, chance)
        finished = _wait_for(cluster, sweep) == 0 and _has_every_answer(out, issues)
    faults = list(_find_faults(out, issues, finished))
    made = count_recorded(cluster) - recorded
    if runs_per_issue is not None and made != runs_per_issue * issues:
        faults.append(f"{made} runs recorded, not {runs_per_issue * issues}")
    faults += _find_leftovers(cluster)
    return Round(
        number=number,
        victim=victim,
        after_s=after_s,
        attempts=attempts,
        seconds=round(time.monotonic() - began, 1),
        faults=tuple(faults),
    )


def _wait_for(cluster: Cluster, sweep: subprocess.Popen[bytes]) -> int:
    """Wait for a sweep, and kill it if it hangs. Start again what ends meanwhile.

    Workers that lose their scheduler end some seconds later.
    """
    deadline = time.monotonic() + PATIENCE_S
    while sweep.poll() is None and time.monotonic() < deadline:
        time.sleep(0.5)
        cluster.start()
    sweep.kill()
    code = sweep.wait()
    cluster.start()
    return code


def _kill_after(
    cluster: Cluster, sweep: subprocess.Popen[bytes], victim: str, after_s: float, chance: random.Random
) -> str:
    """Kill the victim after a time, if the sweep still runs then. Return its name, or ``late``."""
    try:
        sweep.wait(after_s)
        return "late"
    except subprocess.TimeoutExpired:
        pass
    if victim == "sweep":
        sweep.kill()
        sweep.wait()
    else:
        name = victim if victim == "scheduler" else f"worker {chance.randrange(cluster.workers)}"
        cluster.kill(name)
        cluster.start()
    return victim


def _has_every_answer(out: Path, issues: int) -> bool:
    verdicts = Counter(row.verdict for row in open_tracker_state(out / "tracker.sqlite").list_rows().values())
    return verdicts == {"confirmed": issues}


def _find_faults(out: Path, issues: int, finished: bool) -> Iterator[str]:
    if not finished:
        yield f"the sweep did not go through in {ATTEMPTS} attempts"
        return
    state = open_tracker_state(out / "tracker.sqlite")
    answers = Counter(answer.id for answer in state.list_answers())
    if twice := [id for id, count in answers.items() if count != 1]:
        seen = [f"{one.answered} {one.verdict} {one.confidence}" for one in state.list_answers() if one.id in twice]
        yield f"answered more than once: {', '.join(twice)} ({'; '.join(seen)})"
    if len(answers) != issues:
        yield f"{len(answers)} issues answered, not {issues}"
    if (out / "work").exists():
        yield "files of finished runs are kept"


def count_recorded(cluster: Cluster) -> int:
    """Return the number of runs in the workers' ledger. Its primary key keeps each run once."""
    path = cluster.cache / "runs.sqlite"
    if not path.is_file():
        return 0
    with closing(sqlite3.connect(path)) as sql, suppress(sqlite3.OperationalError):  # no table yet
        return int(sql.execute("SELECT count(*) FROM runs").fetchone()[0])
    return 0


def _find_leftovers(cluster: Cluster) -> list[str]:
    """Return what is left of killed processes after the clean-up that every next run begins with.

    A worker keeps sandboxes for the next issue, so the workers are stopped before.
    """
    cluster.stop("worker")
    deadline = time.monotonic() + 20
    ours = {os.getpid(), *(process.pid for process in cluster.running.values())}
    while True:
        remove_leftovers()
        named = remains.find_named(remains.is_of_space, with_containers=False)
        children = [
            one.describe()
            for one in remains.list_processes()
            if "runners.cells.server" in one.line or "bwrap" in one.line.partition("\0")[0]
            if one.pid not in ours
        ]
        if not (left := [*named, *children]) or time.monotonic() > deadline:
            return [f"left: {one}" for one in left]
        time.sleep(0.2)


# ---------------------------------------------------------------------------------------------- the campaigns


@contextmanager
def open_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    cluster = Cluster(folder=folder, workers=workers)
    cluster.cache.mkdir(parents=True, exist_ok=True)
    try:
        yield cluster
    finally:
        cluster.stop()


def run_campaign(folder: Path, rounds: int, workers: int, issues: int, seed: int) -> int:
    """Play one undisturbed round, then ``rounds`` with a kill. Return the number of rounds with a fault."""
    wrong = 0
    with open_cluster(folder, workers) as cluster, (folder / "records.jsonl").open("a", encoding="utf-8") as records:
        calm = play_round(cluster, 0, random.Random(seed), issues=issues, longest_s=1.0, runs_per_issue=None)
        per_issue, rest = divmod(count_recorded(cluster), issues)
        sys.stdout.write(
            f"undisturbed: {calm.seconds} s, {per_issue} runs for each issue; {calm.faults or 'no fault'}\n"
        )
        if rest or calm.faults:
            return 1
        done: list[Round] = []
        longest_s = calm.seconds  # the first round also starts the cluster and makes the store
        for number in range(1, rounds + 1):
            chance = random.Random(f"{seed} {number}")
            one = play_round(cluster, number, chance, issues=issues, longest_s=longest_s, runs_per_issue=per_issue)
            done.append(one)
            longest_s = min(longest_s, one.seconds)
            wrong += bool(one.faults)
            records.write(
                json.dumps(one, default=lambda value: {n: getattr(value, n) for n in value.__slots__}) + "\n"
            )
            records.flush()
            sys.stdout.write(
                f"{number}: {one.victim} after {one.after_s} s, {one.attempts} attempts, {one.seconds} s"
                f"{''.join(f'; {fault}' for fault in one.faults)}\n"
            )
            sys.stdout.flush()
        victims = Counter(one.victim for one in done)
        sys.stdout.write(f"{len(done)} rounds, kills: {dict(victims)}, rounds with a fault: {wrong}\n")
    return wrong


def run_scale(folder: Path, counts: Sequence[int], issues: int) -> int:
    """Sweep equal numbers of issues with 1, 2, 4 … workers, and once more with one killed in the middle."""
    wrong = 0
    for count in counts:
        for is_killed in (False, True) if count > 1 else (False,):
            place = folder / f"workers-{count}{'-killed' if is_killed else ''}"
            shutil.rmtree(place, ignore_errors=True)
            with open_cluster(place, count) as cluster:
                one = _play_scaled(cluster, issues, is_killed)
            wrong += bool(one.faults)
            kill = f", one killed after {one.after_s} s" if is_killed else ""
            sys.stdout.write(
                f"{count} workers{kill}: {issues} issues in {one.seconds} s"
                f"{''.join(f'; {fault}' for fault in one.faults)}\n"
            )
            sys.stdout.flush()
    return wrong


def _play_scaled(cluster: Cluster, issues: int, is_killed: bool) -> Round:
    texts, out = cluster.folder / "issues", cluster.folder / "out"
    write_issues(texts, 0, issues, 1.0)
    cluster.start()
    began = time.monotonic()
    sweep = start_sweep(cluster, texts, out, jobs=2 * cluster.workers)
    if is_killed:
        while count_recorded(cluster) < issues and sweep.poll() is None:
            time.sleep(0.1)
        cluster.kill("worker 0")  # and it stays away: the other workers take its cells
    after_s = round(time.monotonic() - began, 1)
    code = sweep.wait(PATIENCE_S * 2)
    seconds = round(time.monotonic() - began, 1)
    faults = [*_find_faults(out, issues, code == 0 and _has_every_answer(out, issues)), *_find_leftovers(cluster)]
    return Round(
        number=0, victim="worker" if is_killed else "nothing", after_s=after_s, attempts=1, seconds=seconds,
        faults=tuple(faults),
    )  # fmt: skip


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--issues", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", default="", help="numbers of workers, such as 1,2,4")
    chosen = parser.parse_args([word for word in words if word != "--inside"])
    if not own_space.is_inside(words):
        return own_space.enter("bench.tracker.kills", words)
    own_space.collect_orphans()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    folder = chosen.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.scale:
        wrong = run_scale(folder, [int(word) for word in chosen.scale.split(",")], chosen.issues)
    else:
        wrong = run_campaign(folder, chosen.rounds, chosen.workers, chosen.issues, chosen.seed)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
