"""Runs that confirm a statement have a sandbox of their own, with no zygote in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Investigation,
    Plan,
    Signature,
    StepResult,
    Testcase,
    TestcaseKind,
    Variant,
    Varied,
)
from runners.core.runs import Execute, RunRequest, RunResult
from runners.diagnosis.nondeterminism import AS_IT_IS, SEEDED, Setup
from runners.environments.interpreters import Interpreter
from runners.environments.store import Environment, Store
from runners.hardware import gpu
from runners.hardware.detect import Present
from runners.hardware.gpu import Gpu, Health
from runners.investigation.state import make_cell
from runners.probe.canary import Canaries
from runners.probe.layout import Layout
from runners.probe.task import Conditions, ProbeResult, Task
from runners.sandbox import owner
from runners.sandbox.contract import Engine, SessionEngine
from runners.workbench import Workbench, probes
from runners.workbench.ahead import NoRunsAhead
from runners.workbench.means import make_means, run_under
from runners.workbench.probes import choose_conditions, make_run
from runners.workbench.tools import make_tools
from tests.runners.sandbox.conftest import engine, python_layout

__all__ = ["engine"]

FAILING = "import json\nprint('begin')\nraise ValueError('boom')\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "r.py", line 3, in <module>\nValueError: boom\n'
TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="python", files={"r.py": FAILING}, steps=(("python", "r.py"),)
)
PLAN = Plan(
    testcase=TESTCASE,
    claim=Claim(kind=ClaimKind.ERROR, signature=Signature(type="ValueError", message="boom")),
    device="cpu",
    order=("3.10", "3.11"),
    first=("3.11",),
)

CONFIRMING = replace(SEEDED, fresh=True)


class Recorder:
    """An `Execute` that records its requests. ``fails`` decides the end of each run."""

    def __init__(self, fails: Callable[[RunRequest], bool] = lambda _request: False) -> None:
        self.fails = fails
        self.asked: list[RunRequest] = []

    def __call__(self, request: RunRequest) -> RunResult:
        self.asked.append(request)
        fails = self.fails(request)
        ended = Exited(code=int(fails))
        step = StepResult(argv=("python", "r.py"), ended=ended, stderr=TRACEBACK if fails else "")
        return RunResult(ended=ended, steps=(step,))


def is_fresh(request: RunRequest) -> bool:
    """True if the run has its own sandbox and is no fork."""
    return request.fresh and not choose_conditions(request).fork


@pytest.mark.parametrize(
    "ask",
    [
        lambda execute: make_means(execute, Silent(), PLAN).run("3.11", Variant.CONTROL, TESTCASE, "cpu"),
        lambda execute: make_means(execute, Silent(), PLAN).run("3.11", Variant.RETARGETED, TESTCASE, "cpu"),
        lambda execute: make_means(execute, Silent(), PLAN, Varied(fill=0x55)).run_hook("3.11", TESTCASE),
        lambda execute: run_under(execute, PLAN, "3.11", TESTCASE, AS_IT_IS),
        lambda execute: run_under(execute, PLAN, "3.11", TESTCASE, CONFIRMING),
    ],
    ids=["control", "variant", "hook", "rerun-as-it-is", "confirming-rerun"],
)
def test_runs_of_a_diagnosis_that_a_finding_rests_on_are_fresh(ask: Callable[[Execute], object]) -> None:
    """Controls, instrumented runs, and the reruns that confirm a cause."""
    execute = Recorder()
    ask(execute)
    assert execute.asked
    assert all(map(is_fresh, execute.asked))


def test_expected_control_is_the_run_that_is_asked_for() -> None:
    """The run that begins early is fresh too, and answers the request of the diagnosis."""
    asked = Recorder()
    expected: list[RunRequest] = []
    means = make_means(asked, Silent(), PLAN, Varied(fill=0x55), expect=expected.append)
    means.expect("3.11", Variant.CONTROL, TESTCASE, "cpu")
    means.run("3.11", Variant.CONTROL, TESTCASE, "cpu")
    assert expected == asked.asked
    assert is_fresh(expected[0])


def test_controls_of_the_report_are_fresh_and_the_matrix_is_forked() -> None:
    """The first run of a release is a fork, for speed. The second, which confirms it, has a sandbox of its own."""
    execute = Recorder()
    with ThreadPoolExecutor(1) as executor:
        tools = make_tools(PLAN, NoRunsAhead(execute), executor, Silent())
        tools.run(make_cell(PLAN, "3.11", variant=Variant.CONTROL), 1)
        tools.run(make_cell(PLAN, "3.11"), 1)
        tools.run(make_cell(PLAN, "3.11"), 2)
    control, first, second = execute.asked
    assert is_fresh(control)
    assert not first.fresh
    assert choose_conditions(first).fork
    assert choose_conditions(second).scripts is choose_conditions(second).fork is False


def test_the_smaller_testcase_is_run_in_fresh_sandboxes_at_the_end(tmp_path: Path) -> None:
    """The workbench passes the wish of the reduction on, for the failing and for the passing release."""
    execute = Recorder(lambda request: request.version == "3.11" and "raise" in request.testcase.files["r.py"])

    class Recording(Workbench):
        def execute(self, request: RunRequest, day: date | None = None) -> RunResult:
            return execute(request)

    bench = Recording(
        engine=cast("Engine", None),
        store=cast("Store", None),
        catalogue=load_catalogue(),
        progress=Silent(),
        run_id="confirmation",
        canaries=Canaries(tmp_path),
    )
    smaller = bench.minimize(PLAN, "3.11", control="3.10")
    confirming = [request for request in execute.asked if request.fresh]
    assert confirming == execute.asked[-3:]
    assert [request.version for request in confirming] == ["3.11", "3.11", "3.10"]
    assert all(is_fresh(request) and request.testcase == smaller.testcase for request in confirming)


def test_a_recording_of_a_fork_answers_a_fresh_run() -> None:
    """Both ask for the same run. Forbidding the fork alone asks for another: its addresses are its own."""
    request = RunRequest(version="3.11", device="cpu", testcase=TESTCASE)
    assert msgspec.structs.replace(request, fresh=True).key == request.key
    assert msgspec.structs.replace(request, may_fork=False).key != request.key
    assert msgspec.structs.replace(request, seed=1).key != request.key


@pytest.mark.parametrize("setup", [SEEDED, CONFIRMING, AS_IT_IS], ids=lambda setup: f"{setup.name} {setup.fresh}")
def test_a_rerun_on_a_gpu_has_its_seed_and_a_sandbox_of_its_own(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question whether random numbers decide a result is asked with seeds, on any device."""
    card = Gpu(index=0, uuid="GPU-1", name="H", driver="570", total=2**30, used=0, ecc_errors=None)
    made: list[tuple[Conditions, tuple[str, ...]]] = []

    def record(engine: Engine, layout: Layout, task: Task, *, run_id: str, devices: tuple[str, ...]) -> ProbeResult:
        made.append((task.conditions, devices))
        return ProbeResult(steps=(), ended=Exited(code=0), seconds=0.0, peak_bytes=0, engine=engine.name)

    monkeypatch.setattr(probes, "run_probe", record)
    monkeypatch.setattr(probes, "detect_hardware", lambda _hardware: Present(nodes=card.nodes))
    monkeypatch.setattr(probes, "default_root", lambda: tmp_path)
    monkeypatch.setattr(gpu, "find_gpu_problems", lambda _environment, containers: ())
    monkeypatch.setattr(gpu, "choose_gpu", lambda _environment: card)
    monkeypatch.setattr(gpu, "read_health", lambda _card: Health(gpu=card, faults=()))
    monkeypatch.setattr(gpu, "await_health", lambda before: before)
    bench = make_bench(cast("Engine", SimpleNamespace(name="bubblewrap", own_system=False, image="")), tmp_path)
    environment = replace(make_environment(tmp_path), toolchain="tvm", version="0.27.0")
    plan = msgspec.structs.replace(
        PLAN, device="cuda", testcase=msgspec.structs.replace(TESTCASE, toolchain="tvm"), order=("0.27.0",)
    )
    run_under(partial(make_run, bench, environment), plan, "0.27.0", plan.testcase, setup)
    ((conditions, devices),) = made
    assert (conditions.seed, conditions.scripts, conditions.fork) == (setup.seed, True, False)
    assert devices == card.nodes


ZYGOTES = """\
import json
import os
def command(pid):
    try: return open(f"/proc/{pid}/cmdline").read()
    except OSError: return ""
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
print(json.dumps(["script.zygote" in command(pid) for pid in others].count(True)))
"""


@pytest.mark.sandbox
def test_a_fresh_run_shares_no_sandbox_with_a_zygote(engine: Engine, tmp_path: Path) -> None:
    """A probe of a session sees the zygote of its sandbox. A fresh run sees none, while the session stays open."""
    if not isinstance(engine, SessionEngine):
        pytest.skip(f"{engine.name} keeps no session")
    bench = make_bench(engine, tmp_path)
    environment = make_environment(tmp_path)
    testcase = msgspec.structs.replace(TESTCASE, files={"r.py": ZYGOTES})
    request = RunRequest(version="3.11", device="cpu", testcase=testcase)
    try:
        seen = [
            make_run(bench, environment, one).steps[0].stdout
            for one in (request, request, msgspec.structs.replace(request, fresh=True), request)
        ]
    finally:
        bench.sessions.close()
    shared = [int(text) for text in (seen[0], seen[1], seen[3])]
    assert min(shared) >= 1
    assert seen[2] == "0\n"


START = "print(open('/proc/1/stat').read().rpartition(')')[2].split()[19])\n"
"""Prints the start of the sandbox's first process: another sandbox has another one."""


@pytest.mark.thorough
def test_two_issues_never_share_a_sandbox(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of one plan share a sandbox. It is closed with the plan, and the next plan gets its own."""
    if not isinstance(engine, SessionEngine):
        pytest.skip(f"{engine.name} keeps no session")
    bench = make_bench(engine, tmp_path)
    environment = make_environment(tmp_path)
    request = RunRequest(
        version="3.11", device="cpu", testcase=msgspec.structs.replace(TESTCASE, files={"r.py": START})
    )
    seen: list[str] = []

    def investigate(plan: Plan, tools: object) -> Investigation:
        seen.extend(make_run(bench, environment, request).steps[0].stdout for _ in range(2))
        return Investigation()

    monkeypatch.setattr("runners.workbench.workbench.investigate_plan", investigate)
    for _ in range(2):
        bench.run(PLAN)
    assert all(text.strip().isdigit() for text in seen)
    assert (seen[0] == seen[1], seen[2] == seen[3]) == (True, True)
    assert seen[1] != seen[2]


def make_bench(engine: Engine, folder: Path) -> Workbench:
    return Workbench(
        engine=engine,
        store=cast("Store", None),
        catalogue=load_catalogue(),
        progress=Silent(),
        run_id=owner.make_name(),
        canaries=Canaries(folder),
    )


def make_environment(directory: Path) -> Environment:
    """This interpreter without packages, as an environment of a store."""
    layout = python_layout(directory)
    layout.site_packages.rename(directory / "site")
    interpreter = Interpreter(
        version=layout.version, prefix=layout.prefix, executable=layout.executable, platform=sys.platform
    )
    return Environment(
        digest="sha256:0", toolchain="python", version="3.11", folder=directory, interpreter=interpreter, lock=""
    )
