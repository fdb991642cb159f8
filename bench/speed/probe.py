"""What one probe costs, by the way it is started, all in one run: ``python -m bench.speed.probe [ROUNDS] [ENGINE…]``.

The same testcase (a small product and rectifier compiled and run on TVM 0.27.0; the same for IREE 3.13.0 through its
Python interface) by: ``uv run --isolated --with`` (warm cache), the ready environment's interpreter, each sandbox
engine with a process of its own, and each with a fork of a zygote. The ways are interleaved, so that what else the
machine does hits all of them alike; the figures that mean something are the ratios. Each way's record must be the
same: how it ended, and what it printed.

Then twenty probes of one testcase on one version, as a diagnosis makes them: a room opened for them, its zygote's
imports included, against twenty processes of the ready environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from runners.core.packages.catalogue import Release, load_catalogue
from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.environments.store import Environment, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session, run_probe
from runners.probe.task import Conditions, ProbeResult
from runners.sandbox.contract import Engine
from runners.sandbox.select import list_sandboxes
from runners.toolchains import find_toolchain

ROUNDS = 7
LIMITS = Limits(wall_s=120)
FORKED = Conditions(scripts=True, fork=True)
VERSIONS = {"tvm": "0.27.0", "iree": "3.13.0"}
BATCH = 20

_TVM = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            R.output(y)
        return y

machine = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
x = np.arange(256, dtype="float32").reshape(16, 16)
print(machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(x)).numpy().sum())
"""
_IREE = '''\
import numpy as np
import iree.compiler as compiler
import iree.runtime as runtime
TEXT = """
func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = arith.mulf %x, %x : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
"""
module = runtime.load_vm_flatbuffer(compiler.compile_str(TEXT, target_backends=["llvm-cpu"]), driver="local-sync")
print(module.f(np.ones((16, 16), np.float32)).to_host().sum())
'''
PROGRAMS = {"tvm": _TVM, "iree": _IREE}

Way = Callable[[], object]
"""Runs the testcase; returns how it ended and what it printed."""


def main(rounds: int, engines: tuple[Engine, ...]) -> int:
    """1 when two ways show different things."""
    same = True
    for toolchain in PROGRAMS:
        with ExitStack() as stack:
            ways = _ways(toolchain, engines, stack)
            for way in ways.values():
                way()  # caches, imports, the zygote: what is paid once
            times: dict[str, list[float]] = {name: [] for name in ways}
            shown: dict[str, object] = {}
            for _ in range(rounds):
                for name, way in ways.items():
                    began = time.monotonic()
                    shown[name] = way()
                    times[name].append(time.monotonic() - began)
        _report(toolchain, times)
        different = [name for name, result in shown.items() if result != shown["environment"]]
        say("every way shows the same" if not different else f"DIFFERENT: {different}: {shown}")
        same = same and not different
        _batches(toolchain, engines)
    return int(not same)


def _ways(toolchain: str, engines: tuple[Engine, ...], stack: ExitStack) -> dict[str, Way]:
    environment = open_store().get_environment(load_catalogue().find(toolchain, VERSIONS[toolchain]))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "repro.py").write_text(PROGRAMS[toolchain])
    ways: dict[str, Way] = {
        "uv run": partial(_uv_run, environment, toolchain, folder),
        "environment": partial(_in_environment, environment, folder),
    }
    for engine in engines:
        ways[engine.name] = partial(_sandboxed, engine, environment, toolchain)
        room = stack.enter_context(
            open_probe_session(engine, make_layout(environment), limits=LIMITS, run_id="bench")
        )
        ways[f"{engine.name}, zygote"] = lambda room=room: _shown(  # type: ignore[misc]  # a default binds the loop's value
            room.run(make_task(environment, _testcase(toolchain), LIMITS, conditions=FORKED))
        )
    return ways


def _testcase(toolchain: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={"repro.py": PROGRAMS[toolchain]},
        steps=(("python", "repro.py"),),
    )


def _uv_run(environment: Environment, toolchain: str, folder: Path) -> object:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables = find_toolchain(toolchain).VARIABLES
    words = [*make_uv_words(environment, toolchain), "python", "repro.py"]
    return run_process(words, folder, {**quiet, **variables, "UV_CACHE_DIR": str(open_store().uv.cache)})


def make_uv_words(environment: Environment, toolchain: str, requirements: Sequence[str] = ()) -> list[str]:
    """Return the words before a command that uv is to run with an environment's release."""
    release = load_catalogue().find(toolchain, environment.version)
    words = [open_store().uv.binary, "run", "--quiet", "--isolated", "--no-project", "--offline"]
    words += [*list_date_options(release), "--python", str(environment.interpreter.executable)]
    return words + [word for name in list_packages(release, requirements) for word in ("--with", name)]


def list_packages(release: Release, requirements: Sequence[str] = ()) -> list[str]:
    """Return the packages that a release needs to run a testcase."""
    return [*release.distributions, "numpy", *find_toolchain(release.toolchain).COMPANIONS, *requirements]


def list_date_options(release: Release) -> list[str]:
    """Return the options of uv that resolve a release as of its day."""
    return ["--exclude-newer", f"{release.as_of:%Y-%m-%dT%H:%M:%SZ}"] if release.as_of else []


def _in_environment(environment: Environment, folder: Path) -> object:
    variables = {
        **find_toolchain(environment.toolchain).VARIABLES,
        "PYTHONPATH": str(environment.site_packages),
    }
    done = run_process([str(environment.interpreter.executable), "repro.py"], folder, variables)
    if done[0]:
        say(f"it ended with {done[0]}")
    return done


def run_process(words: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Run a command to its end. Return its exit code and what it printed."""
    # A session of its own, as every engine gives: the scheduler shares the processors out by session.
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False, start_new_session=True
    )
    return done.returncode, done.stdout


def _sandboxed(engine: Engine, environment: Environment, toolchain: str) -> object:
    task = make_task(environment, _testcase(toolchain), LIMITS)
    return _shown(run_probe(engine, make_layout(environment), task, run_id="bench"))


def _shown(probe: ProbeResult) -> object:
    return getattr(probe.ended, "code", probe.ended), probe.steps[-1].stdout


def _report(toolchain: str, times: dict[str, list[float]]) -> None:
    venv, uv = median(times["environment"]), median(times["uv run"])
    say(f"\n{toolchain} {VERSIONS[toolchain]}\n")
    say("| way | seconds, median (least … most) | × environment | × uv run |\n|---|---|---|---|")
    for name, seconds in times.items():
        middle = median(seconds)
        spread = f"{middle:.3f} ({min(seconds):.3f} … {max(seconds):.3f})"
        say(f"| {name} | {spread} | {middle / venv:.2f} | {middle / uv:.2f} |")


def _batches(toolchain: str, engines: tuple[Engine, ...]) -> None:
    """Twenty probes, everything included, against twenty processes."""
    with ExitStack() as stack:
        alone = _ways(toolchain, (), stack)["environment"]
        processes = _timed(lambda: [alone() for _ in range(BATCH)])
        for engine in engines:
            seconds = _timed(partial(_batch, toolchain, engine))
            say(
                f"{BATCH} probes: {engine.name} with a zygote {seconds:.2f} s, processes {processes:.2f} s: "
                f"{seconds / processes:.0%}"
            )


def _batch(toolchain: str, engine: Engine) -> None:
    with ExitStack() as stack:
        way = _ways(toolchain, (engine,), stack)[f"{engine.name}, zygote"]
        for _ in range(BATCH):
            way()


def _timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    rounds_wanted, *names = [*sys.argv[1:], str(ROUNDS)][:1] + sys.argv[2:]
    wanted = [
        e for e in list_sandboxes() if (e.name in names if names else e.name != "gvisor")
    ]  # which has no zygotes
    usable = tuple(e for e in wanted if e.find_problem() is None)
    sys.exit(main(int(rounds_wanted), usable))
