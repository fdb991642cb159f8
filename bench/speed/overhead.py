"""What each engine adds to a run, and whether two at a time are in each other's way: ``python -m
bench.speed.overhead``.

    python -m bench.speed.overhead [ROUNDS] [ENGINE…]
    python -m bench.speed.overhead pairs ROUNDS ENGINE

A matrix product, compiled and run on TVM 0.27.0 and on IREE 3.13.0: as a bare process of the ready environment, by
the engine that protects nothing (our supervisor, without a sandbox), and by each sandbox that works here. The ways
take turns, each round in another order, so that what else the machine does hits all of them alike. ``× bare`` is the
median over rounds of a way's seconds by the bare process's of the same round. Then two of each at a time, again in
turns: the seconds until both are done, by those of two bare processes. What is shown must be the same everywhere; 1
when not.

With ``pairs``, an engine and bubblewrap run the same testcase one after the other, in each pair in another order. The
processor time is that of a control group around both and this process, so it counts the engine's own processes and,
with gVisor, its kernel. Needs root and control groups of version 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from unittest.mock import patch

from bench.speed.probe import LIMITS, _in_environment, _shown, say
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.environments.store import Environment, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.sandbox import owner
from runners.sandbox.contract import Engine
from runners.sandbox.limits import cgroup, cpu_time
from runners.sandbox.select import list_engines

ROUNDS = 15
GOAL = 1.15
VERSIONS = {"tvm": "0.27.0", "iree": "3.13.0"}
BARE = "bare process"
BASE = "bubblewrap"

_TVM = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 64), "float32"), w: R.Tensor((64, 64), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

machine = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
x = (np.arange(4096, dtype="float32").reshape(64, 64) % 7)
y = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(x)).numpy()
print(y.shape, y.sum(), np.allclose(y, x @ x))
"""
_IREE = '''\
import numpy as np
import iree.compiler as compiler
import iree.runtime as runtime
TEXT = """
func.func @matmul(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>)
                     outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
"""
module = runtime.load_vm_flatbuffer(compiler.compile_str(TEXT, target_backends=["llvm-cpu"]), driver="local-sync")
x = (np.arange(4096, dtype="float32").reshape(64, 64) % 7)
y = module.matmul(x, x).to_host()
print(y.shape, y.sum(), np.allclose(y, x @ x))
'''
PROGRAMS = {"tvm": _TVM, "iree": _IREE}

Way = Callable[[], object]
"""Runs the testcase; returns how it ended and what it printed."""


def main(rounds: int, chosen: Sequence[Engine]) -> int:
    same = [_measure(toolchain, rounds, chosen) for toolchain in PROGRAMS]
    return int(not all(same))


def _measure(toolchain: str, rounds: int, chosen: Sequence[Engine]) -> bool:
    environment = open_store().get_environment(load_catalogue().find(toolchain, VERSIONS[toolchain]))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "repro.py").write_text(PROGRAMS[toolchain])
        bare = partial(_in_environment, environment, folder)
        ways: dict[str, Way] = {BARE: bare}
        ways |= {engine.name: partial(_sandboxed, engine, environment, toolchain) for engine in chosen}
        shown = {name: way() for name, way in ways.items()}  # and what is paid once
        say(f"\n{toolchain} {VERSIONS[toolchain]}, {rounds} rounds; it shows {shown[BARE]!r}\n")
        _say_use(bare)
        one = _in_turns(ways, rounds, shown)
        pool = stack.enter_context(ThreadPoolExecutor(2))
        two = _in_turns({name: partial(_twice, pool, way) for name, way in ways.items()}, rounds, shown)
    _table(one, two)
    different = [name for name, result in shown.items() if result != shown[BARE]]
    say("every run shows the same" if not different else f"DIFFERENT: {different}: {shown}")
    return not different


def pair(name: str, rounds: int) -> int:
    """Print the cost of an engine as a multiple of bubblewrap's: median (least … most)."""
    pairs = {engine.name: engine for engine in list_engines() if engine.name in (BASE, name)}
    say(f"| testcase | engine | wall, s | processor, s | wall × {BASE} | processor × {BASE} |")
    say("|---|---|---|---|---|---|")
    different = False
    with _count_cpu() as read_cpu_s:
        for toolchain in PROGRAMS:
            environment = open_store().get_environment(load_catalogue().find(toolchain, VERSIONS[toolchain]))
            ways = {each: partial(_sandboxed, engine, environment, toolchain) for each, engine in pairs.items()}
            shown = {str(way()) for way in ways.values()}  # and what is paid once
            walls: dict[str, list[float]] = {each: [] for each in ways}
            cpus: dict[str, list[float]] = {each: [] for each in ways}
            for number in range(rounds):
                for each in sorted(ways, reverse=number % 2 == 1):
                    wall, cpu = time.monotonic(), read_cpu_s()
                    shown.add(str(ways[each]()))
                    walls[each].append(time.monotonic() - wall)
                    cpus[each].append(read_cpu_s() - cpu)
            for each in sorted(ways):
                columns = [_spread(walls[each]), _spread(cpus[each])]
                columns += [_spread(_divide(times[each], times[BASE])) for times in (walls, cpus)]
                say(f"| {toolchain} {VERSIONS[toolchain]} | {each} | {' | '.join(columns)} |")
            different = different or len(shown) > 1
    say(f"\n{rounds} pairs of each; {'NOT every' if different else 'every'} run shows the same")
    return int(different)


def _divide(times: list[float], others: list[float]) -> list[float]:
    return [one / other for one, other in zip(times, others, strict=True)]


@contextmanager
def _count_cpu() -> Iterator[Callable[[], float]]:
    """Yield a function that reads the processor time of this process and of every sandbox that it starts."""
    name, create = owner.make_name(), cgroup.create_group

    def create_below(below: str, limits: Limits, **more: Path) -> cgroup.Cgroup:
        return create(f"{name}/{below}", limits, **more)

    tops = [cgroup.ROOT / controller / name for controller in ("memory", "pids", "cpuacct")]
    for top in tops:
        top.mkdir()
    (tops[2] / "cgroup.procs").write_text(str(os.getpid()))
    try:
        with patch.object(cgroup, "create_group", create_below):
            yield lambda: int((tops[2] / "cpuacct.usage").read_text()) / 1e9
    finally:
        (tops[2].parent / "cgroup.procs").write_text(str(os.getpid()))
        cgroup.remove_group(name)


def _say_use(bare: Way) -> None:
    """How far a real compile is from the default limit of processor time."""
    before = getrusage(RUSAGE_CHILDREN)
    bare()
    after = getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    say(
        f"processor time of a bare process: {used:.2f} s; "
        f"the limit by default: {cpu_time.compute_allowance(LIMITS):g} s\n"
    )


def _twice(pool: ThreadPoolExecutor, way: Way) -> object:
    """Two at a time; the odd one out, if they differ."""
    first, second = pool.map(lambda _: way(), range(2))
    return first if first == second else (first, second)


def _in_turns(ways: dict[str, Way], rounds: int, shown: dict[str, object]) -> dict[str, list[float]]:
    """Seconds of each way in each round. A result that differs from the way's first replaces it in ``shown``."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            began = time.monotonic()
            result = ways[name]()
            times[name].append(time.monotonic() - began)
            if result != shown[BARE]:
                shown[name] = result
    return times


def _table(one: dict[str, list[float]], two: dict[str, list[float]]) -> None:
    say("| way | seconds, median (least … most) | × bare | two at a time | × two bare | goal |")
    say("|---|---|---|---|---|---|")
    for name in one:
        alone, both = _ratio(one, name), _ratio(two, name)
        met = "" if name == BARE else ("met" if alone <= GOAL else "missed")
        say(f"| {name} | {_spread(one[name])} | {alone:.2f} | {_spread(two[name])} | {both:.2f} | {met} |")


def _ratio(times: dict[str, list[float]], name: str) -> float:
    return median(mine / bare for mine, bare in zip(times[name], times[BARE], strict=True))


def _spread(seconds: list[float]) -> str:
    return f"{median(seconds):.3f} ({min(seconds):.3f} … {max(seconds):.3f})"


def _sandboxed(engine: Engine, environment: Environment, toolchain: str) -> object:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={"repro.py": PROGRAMS[toolchain]},
        steps=(("python", "repro.py"),),
    )
    return _shown(
        run_probe(engine, make_layout(environment), make_task(environment, testcase, LIMITS), run_id="bench")
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["pairs"]:
        sys.exit(pair(sys.argv[3], int(sys.argv[2])))
    rounds_wanted, *wanted = sys.argv[1:] or [str(ROUNDS)]
    found = [engine for engine in list_engines() if not wanted or engine.name in wanted]
    sys.exit(main(int(rounds_wanted), [engine for engine in found if engine.find_problem() is None]))
