"""Kill something at a random moment of a probe, and look for what is left: ``python -m bench.robustness.kills [TRIALS
[SEED]]``.

Each trial starts a host of its own, which runs a probe through an engine (in a sandbox of its own or in a room), and
kills the host, a process of the engine (podman, conmon, runc, bwrap) or one in the sandbox, with SIGKILL. Where the
host lived, nothing may be left a second after it told how the probe ended; where it was killed, nothing after the
next sweep. Everything in a trial follows from its seed, but for what the scheduler makes of it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from bench.robustness import remains
from bench.robustness.remains import list_processes
from runners.sandbox import owner
from runners.sandbox.containers import engine as containers, engine_cgroup
from runners.sandbox.containers.clients import query_client
from runners.sandbox.containers.podman_store import find_store
from runners.sandbox.limits import cgroup
from runners.sandbox.select import list_sandboxes, remove_leftovers

Victim = Literal["host", "engine", "guest"]
VICTIMS: tuple[Victim, ...] = ("host", "engine", "guest")
WORKERS = 2
START_S = {"bubblewrap": 0.15}
"""About how long a sandbox takes to start; the kill comes between the host's beginning and the probe's end."""
SLOWEST_START_S = 0.4
PATIENCE_S = 90.0

HOST = """
import sys
from pathlib import Path
from runners.core.errors import InfraError
from runners.probe.run import run_probe
from runners.probe.task import PLAIN, Conditions, Task
from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.probe.sessions import SessionPool
from runners.sandbox.select import select_engine
from tests.runners.sandbox.conftest import TOOLS, python_layout
name, way, seconds, folder = sys.argv[1:]
GUEST = '''
import json
import os, subprocess, time
open("/tmp/left", "w").write("x" * 2**20)
subprocess.Popen(["setsid", "sleep", "1000"])
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
time.sleep(SECONDS)
'''.replace("SECONDS", seconds)
steps = (("python", "repro.py"),)
case = Testcase(kind=TestcaseKind.PYTHON, toolchain="none", files={"repro.py": GUEST}, steps=steps)
engine, layout, rooms = select_engine(name), python_layout(Path(folder)), SessionPool()
print("ready", flush=True)
run, conditions = (rooms.run, Conditions(scripts=True, fork=True)) if way == "room" else (run_probe, PLAIN)
limits = Limits(wall_s=20, memory_bytes=2**28, processes=48, disk_bytes=2**24)
try:
    task = Task(testcase=case, tools=TOOLS, limits=limits, conditions=conditions)
    found = run(engine, layout, task, run_id="kills")
    print(found.ended)
except InfraError as error:
    print("InfraError:", str(error)[:100])
finally:
    rooms.close()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a seed stands for: ``after_s`` the host's beginning, a process of ``victim``'s is killed."""

    seed: int
    engine: str
    way: str
    victim: Victim
    after_s: float
    guest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``hit``: there was something to kill; ``said``: the host's last words; ``left``: what should not be there.

    An error for which the product has no words should not be there either.
    """

    trial: Trial
    hit: str
    said: str
    left: tuple[str, ...]


def make_trial(seed: int, engines: Sequence[str]) -> Trial:
    """The same trial for the same seed and engines."""
    chance = random.Random(seed)
    engine, guest_s = engines[seed % len(engines)], round(chance.uniform(0.05, 0.4), 3)
    return Trial(
        seed=seed,
        engine=engine,
        way=chance.choice(("room", "single")),
        victim=chance.choice(VICTIMS),
        after_s=chance.uniform(0, START_S.get(engine, SLOWEST_START_S) + guest_s),
        guest_s=guest_s,
    )


def usable() -> list[str]:
    """Names of the engines that work here.

    Not gVisor: its processes on the host are its own, not the testcase's. One that is killed leaves it waiting for
    the time limit, and its folders for some seconds longer than one.
    """
    return [engine.name for engine in list_sandboxes() if engine.name != "gvisor" and engine.find_problem() is None]


def run_trial(trial: Trial) -> Outcome:
    """Start a host, kill, wait, look."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        os.chmod(folder, 0o755)
        words = [sys.executable, "-c", HOST, trial.engine, trial.way, str(trial.guest_s), folder]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as host:
            assert host.stdout is not None
            if host.stdout.readline() != "ready\n":
                raise RuntimeError(f"seed {trial.seed}: the host did not start: {host.stdout.read()[-500:]}")
            time.sleep(trial.after_s)
            hit = _kill(trial, host)
            try:
                said = host.communicate(timeout=PATIENCE_S)[0].strip().splitlines()[-1:] or ["nothing"]
            except subprocess.TimeoutExpired:
                host.kill()
                said = ["IT HUNG"]
        if host.returncode == -signal.SIGKILL:
            remove_leftovers()
        left = remains.wait_for_none(partial(_left, host.pid))
    hung = ("the host hung",) if said == ["IT HUNG"] else ()
    failed = (f"the host failed: {said[0][:150]}",) if host.returncode > 0 else ()
    remove_leftovers()
    return Outcome(trial=trial, hit=hit, said=said[0][:150], left=(*left, *hung, *failed))


def _kill(trial: Trial, host: subprocess.Popen[str]) -> str:
    """Kill one; its command's first word, or empty where there was none any more."""
    chance = random.Random(trial.seed)
    if trial.victim == "host":
        host.kill()
        return "host"
    find = _of_engine if trial.victim == "engine" else _of_guest
    while host.poll() is None:
        candidates = sorted(find(host.pid))
        with contextlib.suppress(OSError):
            if candidates:
                pid = chance.choice(candidates)
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                os.kill(pid, signal.SIGKILL)
                return name
        time.sleep(0.005)
    return ""


def _of_guest(maker: int) -> set[int]:
    """Processes in the control groups that a host made, or an engine for it."""
    groups = (cgroup.ROOT / "pids", cgroup.ROOT)
    pattern = f"{owner.PREFIX}-{maker}-*-{remains.SPACE}-*"
    made = [place for top in groups for place in top.glob(pattern)]
    ids = Path(tempfile.gettempdir()).glob(f"{pattern}/id")
    theirs = [place for place in map(engine_cgroup.find_group, ids) if place is not None]
    found: set[int] = set()
    for folder, _, _ in (step for place in (*made, *theirs) for step in os.walk(place)):
        with contextlib.suppress(OSError):  # groups vanish meanwhile, which `Path.glob` does not forgive
            found |= {int(word) for word in Path(folder, "cgroup.procs").read_text().split()}
    return found - {0}  # 0: a process of another PID namespace


def _of_engine(maker: int) -> set[int]:
    """Processes that name something of a host's, and what it started: but not what runs inside."""
    mine, inside = f"{owner.PREFIX}-{maker}-", _of_guest(maker)
    return {one.pid for one in list_processes() if one.parent == maker or mine in one.line} - inside - {maker}


def _left(maker: int) -> list[str]:
    """What a host made and that is still there."""
    members = [f"process {pid} in its control group" for pid in _of_guest(maker)]
    return [*remains.find_named(remains.is_of_maker(maker)), *members]


def orphans() -> set[str]:
    """Folders and mounts of podman's store that belong to no container it knows."""
    store = find_store()
    known: set[str] = set()
    for client in containers.list_stores():
        known |= set(query_client(client, "ps", "--all", "--no-trunc", "--format", "{{.ID}}").split())
    tops = (store / "root" / "vfs-containers", store / "run" / "vfs-containers")
    folders = {str(path) for top in tops if top.is_dir() for path in top.iterdir() if len(path.name) == 64}
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    ours = folders | {mount for mount in mounts if mount.startswith(f"{store}/")}
    return {place for place in ours if not any(number in place for number in known)}


def run_trials(count: int, first_seed: int) -> list[Outcome]:
    """Several at a time, as probes are."""
    return list(follow_trials(count, first_seed))


def follow_trials(count: int, first_seed: int) -> Iterator[Outcome]:
    """Yield each outcome as soon as the trials before it have ended too."""
    engines = usable()
    pool = ThreadPoolExecutor(WORKERS)
    try:
        yield from pool.map(lambda seed: run_trial(make_trial(seed, engines)), range(first_seed, first_seed + count))
    finally:
        pool.shutdown(cancel_futures=True)


def main(count: int, first_seed: int) -> int:
    """Print a line for each trial and, at the end or at SIGINT, a table. 1 when something was left."""
    before, began, outcomes, say = orphans(), time.monotonic(), list[Outcome](), sys.stdout.write
    try:
        for one in follow_trials(count, first_seed):
            outcomes.append(one)
            say(f"seed {one.trial.seed}: {one.trial.engine}, {one.trial.victim}, hit {one.hit or 'nothing'}\n")
            if one.left:
                say(f"LEFT {one}\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        say("stopped\n")
    say(f"\n{len(outcomes)} trials from seed {first_seed} on, {time.monotonic() - began:.0f} s\n\n")
    _say_table(outcomes)
    strangers = orphans() - before
    say(f"left in podman's store: {sorted(strangers) or 'nothing'}\n")
    return int(bool(strangers) or any(one.left for one in outcomes))


def _say_table(outcomes: Sequence[Outcome]) -> None:
    say = sys.stdout.write
    say("| engine | killed | trials | something was there | something left |\n|---|---|---|---|---|\n")
    for engine in usable():
        for victim in VICTIMS:
            those = [one for one in outcomes if (one.trial.engine, one.trial.victim) == (engine, victim)]
            hits, left = sum(bool(one.hit) for one in those), sum(bool(one.left) for one in those)
            say(f"| {engine} | {victim} | {len(those)} | {hits} | {left} |\n")
    say(f"\nhit: {dict(Counter(one.hit for one in outcomes).most_common())}\n")
    living = (one for one in outcomes if one.trial.victim != "host")
    said = Counter((one.trial.victim, one.said.split(":")[0][:60]) for one in living)
    say("".join(f"{victim} killed, said {words}: {times}\n" for (victim, words), times in said.most_common()))


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or ["500"])[0]), int((sys.argv[2:] or ["1"])[0])))
