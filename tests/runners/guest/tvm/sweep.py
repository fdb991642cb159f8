"""Run the programs in this folder plain and instrumented, in a release's environment, and return the findings."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Finding
from runners.core.toolchain.claims import read_findings
from runners.environments.store import Environment, open_store

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
ROOT = Path(__file__).parents[4]
LAUNCHER = ROOT / "runners" / "guest" / "launch.py"
MODES = "bounds,signature,mutation,nan,unwritten"

EXPECTED = {
    "bounds": "out-of-bounds-access",
    "signature": "signature-changed",
    "mutation": "input-mutated",
    "nan": "nan-inequality",
    "values": "values-replaced",
    "unwritten": "uninitialized-read",
}
"""Expected finding of each group of faulty programs. The groups ``valid`` and ``written`` must have none.

Programs of ``written`` seem to read undefined memory: the value has no effect, or a pass of the program lost the
store.
"""
MISSED = frozenset({"unwritten/unrolled_and_vectorised"})
"""Not diagnosed: an element that iterations of a vectorized loop both read and write counts as written."""
FILLS = ("fill-zero", "fill-highest", "fill-lowest", "fill-one")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """One run of a program. ``code`` is the exit status or minus the signal. ``seconds`` excludes importing TVM."""

    program: str
    code: int
    seconds: float
    stdout: str
    stderr: str
    findings: tuple[Finding, ...]
    claims: str
    """The findings file as written, notes included."""

    @property
    def kinds(self) -> set[str]:
        return {str(finding.kind) for finding in self.findings}


@cache
def environment(version: str, *requirements: str) -> Environment:
    return open_store().get_environment(load_catalogue().find("tvm", version), requirements)


def programs(group: str) -> tuple[str, ...]:
    return tuple(f"{group}/{path.stem}" for path in sorted((PROGRAMS / group).glob("*.repro")))


def filled_alike(version: str, names: tuple[str, ...], fill: str) -> tuple[ProgramRun, ...]:
    """Run programs of group ``unwritten`` with their unwritten buffers filled, as the host does."""
    named = {name for found in seen_unwritten(version, names) for name in found}
    return run_all(version, names, f"{fill}={'+'.join(sorted(named))}")


@cache
def seen_unwritten(version: str, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the unwritten buffers that each program reads, as ``function/buffer``."""
    ran = run_all(version, names, "unwritten")
    return tuple(tuple(str(name) for one in each.findings for name in one.evidence["fill"]) for each in ran)


def labelled_buffer(program: str) -> str:
    """Return the unwritten buffer in the first line of a program of group ``unwritten``."""
    with (PROGRAMS / f"{program}.repro").open(encoding="utf-8") as text:
        return text.readline().removeprefix("# read and never written: ").strip()


def run_all(version: str, names: tuple[str, ...], modes: str = MODES) -> tuple[ProgramRun, ...]:
    """Run programs in forks of one process. The mode ``plain`` runs them without instrumentation."""
    files = [str(PROGRAMS / f"{name}.repro") for name in names]
    done = subprocess.run(
        [str(environment(version).interpreter.executable), str(HERE / "batch.py"), str(ROOT), modes, *files],
        env=variables(version),
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(
        _read_run(name, json.loads(line)) for name, line in zip(names, done.stdout.splitlines(), strict=True)
    )


def variables(version: str, *requirements: str) -> dict[str, str]:
    site = str(environment(version, *requirements).site_packages)
    # One thread in numpy's pool: more threads do not survive the forks of batch.py.
    return {**os.environ, "PYTHONPATH": site, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _read_run(name: str, line: dict[str, object]) -> ProgramRun:
    return ProgramRun(
        program=name,
        code=int(str(line["code"])),
        seconds=float(str(line["seconds"])),
        stdout=str(line["stdout"]),
        stderr=str(line["stderr"]),
        findings=read_findings(str(line["findings"])),
        claims=str(line["findings"]),
    )
