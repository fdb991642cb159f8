"""Kill ``reproduce``, ``sweep`` and ``watch`` at random moments, start the same command again, check the end.

A trial starts the command up to five times and kills the command, one process below the command, or all of them.
The last start is not disturbed, and must end as if nothing had been killed: the verdict is the one found by hand,
every file is whole, no comment is there twice or missing, and nothing of the trial is left. After a kill a file of
output is absent or whole. A command that outlives the kill of another process may give less of an answer, and no
wrong one.

All of this needs a PID namespace of its own (``own_space.py``): every process in it belongs to the trial.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.robustness import remains
from bench.robustness.remains import list_processes
from bot.daemon.feed import make_event_key
from bot.daemon.ledger import EventState, open_ledger
from bot.tracker.dashboard import DASHBOARD
from bot.tracker.sweep import REPORTS
from tests.bot.forge.fake import REPOSITORY, FakeGithub

ROOT = Path(__file__).parents[2]
STARTING_S = 20.0
"""A busy machine may need this to start a command's first child."""
PATIENCE_S = 120.0
"""Time after which a command counts as hanging."""
MAX_STARTS = 5
VERSIONS = "3.11,3.12"
SETTINGS = f"toolchain: python\nversions: '{VERSIONS}'\nlimits: {{timeout: 20}}\nsandbox: "
POLL_S = "5"
KEPT = ("PATH", "HOME", "LANG", "PYENV_ROOT")


@dataclass(frozen=True, slots=True)
class Case:
    """An issue, its verdict found by hand, and the versions of Python where its testcase fails."""

    title: str
    body: str
    verdict: str
    bad: frozenset[str]


CASES = (
    Case(
        "The sum of ten tenths is not one",
        'Python 3.11\n\n```python\ntotal = sum([0.1] * 10)\nassert total == 1.0, f"got {total}"\n```\n\n'
        "```\nAssertionError: got 0.9999999999999999\n```\n",
        "fixed",  # sum() of floats is compensated since 3.12
        frozenset({"3.10", "3.11"}),
    ),
    Case(
        "A list in a list, 5000 times, has no deep copy",
        "Python 3.11\n\n```python\nimport copy\n\nnested = []\nfor _ in range(5000):\n    nested = [nested]\n"
        "copy.deepcopy(nested)\n```\n\n```\nRecursionError: maximum recursion depth exceeded\n```\n",
        "confirmed",
        frozenset({"3.10", "3.11", "3.12", "3.13"}),
    ),
)
WORDS = Case("bfloat16 fails", "It crashes.\n", "no-repro", frozenset())
LESS = frozenset({"inconclusive", "untestable"})
"""Verdicts on a run in which a process of the sandbox was killed: less of an answer, and no wrong one."""


@dataclass(slots=True)
class Trial:
    """One trial under way: its chance, its folder, what was hit, and every fault."""

    verb: str
    seed: int
    engine: str
    folder: Path
    cache: Path
    longest_s: float
    """About how long the command takes: the kill comes within this time."""
    chance: random.Random = field(init=False)
    case: Case = field(init=False)
    others: frozenset[int] = field(init=False)
    """Processes of the bench itself."""
    kept: frozenset[Path] = field(init=False)
    """Temporary files of the bench itself."""
    hits: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.verb} {self.seed}")
        self.case = self.chance.choice(CASES)
        self.others = frozenset(process.pid for process in list_processes())
        self.kept = frozenset(Path(os.environ["TMPDIR"]).iterdir())

    # -------------------------------------------------------------------------------------------- processes

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "REPROBOT_CACHE": str(self.cache), "REPROBOT_CONFIG": str(self.folder / "none.toml"),
            "TMPDIR": os.environ["TMPDIR"], "UV_OFFLINE": "1", **more,
        }  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "bot", *words],
                cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def find_ours(self) -> list[int]:
        """Return the processes of this trial: all in this PID namespace that were not there before."""
        return sorted(process.pid for process in list_processes() if process.pid not in self.others)

    def kill_sometime(self, command: subprocess.Popen[bytes]) -> str:
        """Kill at a random moment. Return what was aimed at; empty if the command had ended."""
        aim = self.chance.choices(("command", "below", "all"), (6, 3, 1))[0]
        with suppress(subprocess.TimeoutExpired):
            command.wait(self.chance.uniform(0, self.longest_s))
            return ""
        below = self._find_below(command)
        deadline = time.monotonic() + STARTING_S
        while aim != "command" and not below and command.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
            below = self._find_below(command)
        if command.poll() is not None:
            return ""
        if not below:  # a watch without work starts nothing
            aim = "command"
        victims = {"command": [command.pid], "all": [command.pid, *below]}.get(aim) or below
        if aim == "below":
            victims = [self.chance.choice(victims)]
        name = "all" if aim == "all" else _read_name(victims[0])
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.hits.append(name if aim != "command" else "command")
        return aim

    def _find_below(self, command: subprocess.Popen[bytes]) -> list[int]:
        return [pid for pid in self.find_ours() if pid != command.pid]

    def wait(self, command: subprocess.Popen[bytes]) -> int:
        """Wait for the end of a command. A command that hangs is a fault, and is killed."""
        try:
            return command.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.faults.append("the command hung")
            command.kill()
            return command.wait()

    def check_nothing_left(self) -> None:
        self.faults += [f"left: {one}" for one in remains.wait_for_none(self._find_left)]

    def _find_left(self) -> list[str]:
        ours = set(self.find_ours())
        running = [process.describe() for process in list_processes() if process.pid in ours]
        temporary = [str(path) for path in Path(os.environ["TMPDIR"]).iterdir() if path not in self.kept]
        drafts = [str(path) for path in (self.cache / "building").glob("*")]
        named = remains.find_named(remains.is_of_space, with_containers=self.engine == "podman")
        return [*running, *temporary, *drafts, *named]

    # -------------------------------------------------------------------------------------------- answers

    def check_document(self, path: Path, case: Case, *, may_be_less: bool) -> None:
        """Check the verdict, and each answer of each run, with what was found by hand."""
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            self.faults.append(f"{path.name}: {error}")
            return
        kind = document["verdict"]["kind"]
        if kind != case.verdict and not (may_be_less and kind in LESS):
            self.faults.append(f"{path.name}: verdict {kind}, not {case.verdict}")
        self.faults += [f"{path.name}: {fault}" for fault in find_wrong_answers(document, case)]

    def check_whole(self, folder: Path) -> None:
        """Every file of output in a folder is whole."""
        files = (path for path in sorted(folder.glob("*.*")) if path.name != "index.md")
        self.faults += [f"{path.name} is not whole" for path in files if not is_whole(path)]


def _read_name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "gone"


def find_wrong_answers(document: Mapping[str, Any], case: Case) -> Iterator[str]:
    """Yield each run of the testcase itself whose answer is not the true one. No answer is none."""
    for seen in document["observations"]:
        truth = "bad" if seen["version"] in case.bad else "good"
        if seen["variant"] == "original" and seen["answer"] in ("good", "bad") and seen["answer"] != truth:
            yield f"{seen['version']} is {truth}, and the run says {seen['answer']}"


ENDS: Mapping[str, bytes] = {".html": b"</html>", ".md": b"-->"}
"""The end of a page and of a comment."""


def is_whole(path: Path) -> bool:
    """True if a file of output has its end."""
    data = path.read_bytes().rstrip()
    if path.suffix == ".json":
        try:
            return isinstance(json.loads(data), dict)
        except ValueError:
            return False
    return data.endswith(ENDS.get(path.suffix, b""))


# ------------------------------------------------------------------------------------------------- the verbs


def play_reproduce(trial: Trial) -> None:
    """Kill ``reproduce``; the last one gives the verdict."""
    issue, out = trial.folder / "issue.txt", trial.folder / "out"
    issue.write_text(f"# {trial.case.title}\n\n{trial.case.body}")
    out.mkdir()
    files = (option for kind in ("json", "html") for option in (f"--{kind}", str(out / f"answer.{kind}")))
    words = [
        *("reproduce", str(issue), "--toolchain", "python", "--versions", VERSIONS, "--sandbox", trial.engine),
        *("--timeout", "20", *files, "--comment", str(out / "answer.md")),
    ]
    for _ in range(trial.chance.randint(1, MAX_STARTS)):
        command = trial.start(*words)
        aim = trial.kill_sometime(command)
        code = trial.wait(command)
        trial.check_whole(out)
        if aim not in ("command", "all"):
            _check_survivor(trial, code)
            if (out / "answer.json").exists():
                trial.check_document(out / "answer.json", trial.case, may_be_less=True)
    if trial.wait(trial.start(*words)) != 0:
        trial.faults.append("the last start failed")
    trial.check_whole(out)
    trial.check_document(out / "answer.json", trial.case, may_be_less=False)
    _check_names(trial, out, {"answer.json", "answer.html", "answer.md"})


def _check_survivor(trial: Trial, code: int) -> None:
    if code not in (0, 75):
        trial.faults.append(f"a command that was not killed itself ended with {code}")
    trial.check_nothing_left()


def _check_names(trial: Trial, folder: Path, wanted: set[str]) -> None:
    found = {path.name for path in folder.iterdir()}
    if found != wanted:
        trial.faults.append(f"files {sorted(found)}, not {sorted(wanted)}")


def play_sweep(trial: Trial) -> None:
    """Kill ``sweep`` over a testcase and a question; the last one finishes the tracker."""
    out, settings = trial.folder / "out", trial.folder / "settings.yml"
    settings.write_text(SETTINGS + trial.engine)
    name = REPOSITORY.replace("/", "-")
    disturbed = False
    with FakeGithub() as github:
        github.open_issue(7, trial.case.body, title=trial.case.title)
        github.open_issue(8, WORDS.body, title=WORDS.title)
        words = ("sweep", REPOSITORY, "--out", str(out), "--settings", str(settings))
        for _ in range(trial.chance.randint(1, MAX_STARTS - 1)):
            command = trial.start(*words, **github.environment())
            aim = trial.kill_sometime(command)
            disturbed = disturbed or aim == "below"
            code = trial.wait(command)
            trial.check_whole(out)
            if aim not in ("command", "all"):
                _check_survivor(trial, code)
        if trial.wait(trial.start(*words, **github.environment())) != 0:
            trial.faults.append("the last start failed")
        if github.ours(7) or github.ours(8):
            trial.faults.append("a sweep that only reads wrote a comment")
    trial.check_whole(out)
    trial.check_whole(out / REPORTS)
    trial.check_document(out / REPORTS / f"{name}-7.json", trial.case, may_be_less=disturbed)
    trial.check_document(out / REPORTS / f"{name}-8.json", WORDS, may_be_less=False)
    reports = {f"{name}-{number}.{kind}" for number in (7, 8) for kind in ("json", "html", "md")}
    _check_names(trial, out / REPORTS, reports)
    _check_names(trial, out, {*DASHBOARD, REPORTS, "lock", "runs.sqlite", "runs.sqlite-runs", "tracker.sqlite"})
    lines = (out / "index.md").read_text().splitlines()[2:]
    if {line.split()[1] for line in lines} != {"#7", "#8"}:
        trial.faults.append(f"the index has {lines}")


def play_watch(trial: Trial) -> None:
    """Kill ``watch``; the last one answers the issue, and is then stopped."""
    disturbed = False
    with FakeGithub() as github:
        github.now = datetime.now(tz=UTC) - timedelta(minutes=5)
        github.files[".github/reprobot.yml"] = (SETTINGS + trial.engine).encode()
        github.open_issue(7, trial.case.body, title=trial.case.title)
        _add_event(github, trial.folder)
        words = ("watch", REPOSITORY, "--state", str(trial.folder), "--every", POLL_S)
        for _ in range(trial.chance.randint(1, MAX_STARTS)):
            command = trial.start(*words, **github.environment())
            aim = trial.kill_sometime(command)
            disturbed = disturbed or aim == "below"
            if aim == "below":
                time.sleep(trial.chance.uniform(0, 2))
                command.kill()
            command.wait()
        command = trial.start(*words, **github.environment())
        deadline = time.monotonic() + PATIENCE_S
        while command.poll() is None and time.monotonic() < deadline and not _is_done(trial.folder):
            time.sleep(0.2)
        command.terminate()
        if trial.wait(command) != 0:
            trial.faults.append("the last start failed")
        _check_answer(trial, github, disturbed)
    if list((trial.folder / "work").glob("*")):
        trial.faults.append("files of a finished run")
    trial.check_whole(trial.folder / "reports")


def _add_event(github: FakeGithub, state: Path) -> None:
    """Put the opened issue into the ledger, as a webhook does."""
    ledger = open_ledger(state / "ledger.sqlite")
    payload = github.event("opened", 7)
    key = make_event_key("issues", payload, (REPOSITORY,))
    assert key is not None
    ledger.add_event(key, "issues", payload, datetime.now(tz=UTC))
    ledger.close()


def _is_done(state: Path) -> bool:
    ledger = open_ledger(state / "ledger.sqlite")
    try:
        return not ledger.list_unfinished()
    finally:
        ledger.close()


def _check_answer(trial: Trial, github: FakeGithub, disturbed: bool) -> None:
    """One comment with the verdict, and the event is done."""
    ledger = open_ledger(trial.folder / "ledger.sqlite")
    done = ledger.list_due(datetime.now(tz=UTC), EventState.DONE)
    if ledger.list_unfinished() or len(done) != 1:
        trial.faults.append(f"{len(done)} events are done, {len(ledger.list_unfinished())} are not")
    ledger.close()
    comments = github.ours(7)
    if len(comments) != 1:
        trial.faults.append(f"{len(comments)} comments")
    allowed = {trial.case.verdict, *(LESS if disturbed else ())}
    for comment in comments:
        if not any(f"verdict={kind} " in comment for kind in allowed):
            trial.faults.append(f"a comment ends with {comment[-200:]!r}")


PLAYS = {"reproduce": play_reproduce, "sweep": play_sweep, "watch": play_watch}


def play(trial: Trial) -> None:
    """Play a trial to its end. Everything found is in the trial."""
    PLAYS[trial.verb](trial)
    trial.check_nothing_left()
