"""Everything about GPUs that needs one: ``make gpu-check``, on any machine with an NVIDIA GPU and its driver.

No root, no services; without a network when the store was filled before (``--prepare`` on a machine that has one,
then bring the folder along and name it in ``REPROBOT_CACHE``). ``--rehearse`` runs the same steps on the CPU, so that
a machine without a GPU can test this program itself; what only hardware shows is then skipped, and said to be.

Prints a line per step; exits 0 when all passed, 1 when one failed, 75 where there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic

from bot.extract import Repro, extract
from bot.issue import Issue
from bot.plan import RunOptions, make_plan
from runners.core.errors import InfraError, UserError
from runners.core.findings.record import read_evidence
from runners.core.findings.types import DeviceEvidence
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import FindingKind, Investigation, Observation, Outcome
from runners.hardware import gpu
from runners.workbench import Workbench, open_workbench

IREE, TVM = "3.13.0", "0.27.0.post1"
ADD = """\
func.func @f(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %a, %b : tensor<64xf32>
  %1 = math.exp %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}
"""
REMAINDER = """\
func.func @f(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.remf %a, %b : tensor<64xf32>
  return %0 : tensor<64xf32>
}
"""
"""vmvx rounds where the others truncate: a fault of one backend that is really there (2.9.0 to 3.13.0)."""
ENDLESS = """\
func.func @f(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = flow.dispatch.region -> (tensor<64xf32>) {
    %1 = linalg.generic {
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]}
        ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%a : tensor<64xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %last = scf.while (%s = %x) : (f32) -> f32 {
        %more = arith.cmpf ole, %s, %s : f32
        scf.condition(%more) %s : f32
      } do {
      ^bb0(%s: f32):
        %next = arith.addf %s, %y : f32
        scf.yield %next : f32
      }
      linalg.yield %last : f32
    } -> tensor<64xf32>
    flow.return %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}
"""
"""A kernel that ends only when a sum becomes NaN, which this one does not."""
KERNEL = """\
import numpy as np
import tvm
from tvm import relax

block = relax.BlockBuilder()
annotation = getattr(relax, "TensorStructInfo", None) or relax.TensorType
x = relax.Var("x", annotation((64, 64), "float32"))
with block.function("main", [x]):
    with block.dataflow():
        out = block.emit_output(block.emit(relax.op.exp(x)))
    block.emit_func_output(out)
executable = tvm.compile(block.get(), target=tvm.target.Target("TARGET"))
device = tvm.device("DEVICE", 0)
machine = relax.VirtualMachine(executable, device)
data = np.linspace(-1, 1, 64 * 64, dtype="float32").reshape(64, 64)
result = machine["main"](tvm.runtime.tensor(data, device)).numpy()
np.testing.assert_allclose(result, np.exp(data), rtol=1e-5)
"""
TOO_MUCH = """\
import tvm

device = tvm.device("DEVICE", 0)
kept = [tvm.runtime.empty((1 << 30,), "float32", device) for _ in range(512)]
assert not kept
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The machine under test: ``gpu`` is None when rehearsing."""

    bench: Workbench
    gpu: gpu.Gpu | None

    @property
    def iree(self) -> tuple[str, str]:
        return ("llvm-cpu", "local-task") if self.gpu is None else ("cuda", "cuda")

    def mlir(self, text: str, *devices: str, timeout_s: float = 120.0) -> Investigation:
        backend, device = self.iree
        steps = (
            f"iree-compile --iree-hal-target-backends={backend} a.mlir -o a.vmfb\n"
            f"iree-run-module --device={device} --module=a.vmfb --function=f --input=64xf32=7.5 --input=64xf32=4\n"
        )
        return self._run(f"```mlir\n{text}```\n\n```\n{steps}```\n", "IREE", IREE, devices, timeout_s)

    def python(self, text: str, timeout_s: float = 120.0) -> Investigation:
        target, device = ("llvm", "cpu") if self.gpu is None else ("cuda", "cuda")
        code = text.replace("DEVICE", device).replace("TARGET", target)
        return self._run(f"```python\n{code}```\n", "TVM", TVM, (), timeout_s)

    def _run(self, body: str, title: str, version: str, devices: Sequence[str], timeout_s: float) -> Investigation:
        issue = Issue(
            source="gpu-check", title=f"{title}: wrong values", body=f"The values are wrong.\n\n{body}",
            sha256="0" * 64, created=date(2026, 11, 1),
        )  # fmt: skip
        found = extract(issue)
        assert isinstance(found, Repro), found
        options = RunOptions(versions=version, devices=tuple(devices), bisect=False, timeout_s=timeout_s)
        return self.bench.run(make_plan(found, self.bench.catalogue, options).plan)


def main() -> int:
    options = _options()
    try:
        card = None if options.rehearse or options.prepare else gpu.choose_gpu(os.environ)
        check = Check(bench=_bench(), gpu=card)
    except InfraError as reason:
        sys.stdout.write(f"no GPU to check: {reason}\n")
        return 75
    if options.one:
        return _report("one cell", _computes, check)
    if options.prepare:
        for version, testcase in ((IREE, check.mlir(ADD)), (TVM, check.python(KERNEL))):
            sys.stdout.write(f"{version}: {testcase.observations[0].why}\n")
        return 0
    sys.stdout.write(f"on {'the CPU, rehearsing' if card is None else f'{card.name}, driver {card.driver}'}, ")
    sys.stdout.write(f"sandbox {check.bench.engine.name}\n")
    return max(_report(name, step, check) for name, step in STEPS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--prepare", action="store_true", help="only fill the store, for a machine without a network")
    parser.add_argument("--rehearse", action="store_true", help="the same steps on the CPU")
    parser.add_argument("--one", action="store_true", help="only one cell: what the step about turns starts twice")
    return parser.parse_args()


def _bench() -> Workbench:
    """A sandbox where one works; our own programs may run without."""
    try:
        return open_workbench("auto", load_catalogue(), Silent())
    except UserError:
        return open_workbench("none", load_catalogue(), Silent())


def _report(name: str, step: Callable[[Check], str | None], check: Check) -> int:
    began = monotonic()
    wrong = step(check)
    skipped = wrong is not None and wrong.startswith("skipped")
    mark = "ok" if wrong is None else "--" if skipped else "NO"
    sys.stdout.write(f"{mark}  {name} ({monotonic() - began:.1f} s){'' if wrong is None else f': {wrong}'}\n")
    return int(wrong is not None and not skipped)


# ---------------------------------------------------------------------------------------------- the steps


def _fit(check: Check) -> str | None:
    if check.gpu is None:
        return "skipped: no hardware"
    reasons = gpu.find_gpu_problems(os.environ, containers=check.bench.engine.name in ("docker", "podman"))
    return "; ".join(reasons) or None


def _agrees(check: Check) -> str | None:
    seen = check.mlir(ADD, *(("vmvx",) if check.gpu is None else ("llvm-cpu", "vmvx")))
    told = [finding.summary for finding in seen.findings if finding.kind is FindingKind.DEVICE_SPECIFIC]
    return "; ".join(told) or _all_ran(seen.observations)


def _all_ran(observations: Sequence[Observation]) -> str | None:
    silent = [f"{seen.device}: {seen.why}" for seen in observations if "result[0]" not in seen.excerpt]
    return "; ".join(silent) or None


def _computes(check: Check) -> str | None:
    seen = check.python(KERNEL).observations[0]
    return None if seen.outcome is Outcome.PASS else f"{seen.why}: {seen.excerpt[-300:]}"


def _differs(check: Check) -> str | None:
    seen = check.mlir(REMAINDER, "vmvx", *(() if check.gpu is None else ("llvm-cpu",)))
    found = [known for known in map(read_evidence, seen.findings) if isinstance(known, DeviceEvidence)]
    if not found:
        return f"vmvx was not told apart: {[(one.device, one.excerpt[-80:]) for one in seen.observations]}"
    return None if found[0].device == "vmvx" else f"{found[0].device} differs: {found[0].how}"


def _runs_out(check: Check) -> str | None:
    if check.gpu is None:
        return "skipped: no hardware"
    seen = check.python(TOO_MUCH).observations[0]
    if seen.outcome is not Outcome.INFRA:
        return f"{seen.outcome} on {seen.device}: {seen.why}: {seen.excerpt[-300:]}"
    return _computes(check)


def _hangs(check: Check) -> str | None:
    before = None if check.gpu is None else gpu.read_health(check.gpu)
    seen = check.mlir(ENDLESS, timeout_s=6 if check.gpu is None else 20).observations[0]
    if seen.outcome is not Outcome.TIMEOUT:
        return f"{seen.outcome}: {seen.why}"
    ill = None if before is None or check.gpu is None else gpu.find_fault(before, gpu.read_health(check.gpu))
    return ill or _computes(check)


def _queue(check: Check) -> str | None:
    """Two processes that want the device at once, as two jobs of one machine do."""
    words = [sys.executable, "-m", "bench.gpu_check", "--one", *(["--rehearse"] if check.gpu is None else [])]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0].strip() for process in both]
    return None if all(process.returncode == 0 for process in both) else "; ".join(said)


STEPS: tuple[tuple[str, Callable[[Check], str | None]], ...] = (
    ("the machine is fit for strangers' code", _fit),
    ("IREE: the GPU and the CPU agree", _agrees),
    ("TVM: the GPU computes what numpy does", _computes),
    ("a fault of one device is told apart", _differs),
    ("device memory that is used up is nobody's bug", _runs_out),
    ("a kernel that never ends is killed, and frees the device", _hangs),
    ("two cells take turns", _queue),
)


if __name__ == "__main__":
    sys.exit(main())
