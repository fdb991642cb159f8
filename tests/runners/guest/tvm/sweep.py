"""The programs beside this file, run plain and instrumented with a release's environment, and what was found."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runners.core.catalogue import load_catalogue
from runners.core.protocol import Finding
from runners.diagnosis.diagnose import read_findings
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
    "idempotent": "not-idempotent",
    "unwritten": "uninitialized-read",
}
"""The finding that each group of faulty programs must lead to; groups ``valid`` and ``written`` must lead to none.

Those of ``written`` look as if they read what nothing wrote: it does not matter, or a pass of theirs lost the store.
"""
MISSED = frozenset({"unwritten/unrolled_and_vectorised"})
"""Not diagnosed: an element that iterations of a vectorised loop both read and write counts as written."""
FILLS = ("fill-zero", "fill-highest", "fill-lowest", "fill-one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One program, once. ``code`` is its exit status, or minus the signal; ``seconds`` without importing TVM."""

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
def environment(version: str) -> Environment:
    return open_store().get_environment(load_catalogue().find("tvm", version))


def programs(group: str) -> tuple[str, ...]:
    return tuple(f"{group}/{path.stem}" for path in sorted((PROGRAMS / group).glob("*.repro")))


def filled_alike(version: str, names: tuple[str, ...], fill: str) -> tuple[Ran, ...]:
    """Programs of group ``unwritten`` with what they are seen to read filled, each as the host would ask for it."""
    named = {name for found in seen_unwritten(version, names) for name in found}
    return run_all(version, names, f"{fill}={'+'.join(sorted(named))}")


@cache
def seen_unwritten(version: str, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """What each program is seen to read and not to have written, as ``function/buffer``."""
    ran = run_all(version, names, "unwritten")
    return tuple(tuple(str(name) for one in each.findings for name in one.evidence["fill"]) for each in ran)


def labelled_buffer(program: str) -> str:
    """What a program of group ``unwritten`` says in its first line: the buffer that it reads and never wrote."""
    with (PROGRAMS / f"{program}.repro").open(encoding="utf-8") as text:
        return text.readline().removeprefix("# read and never written: ").strip()


def run_all(version: str, names: tuple[str, ...], modes: str = MODES) -> tuple[Ran, ...]:
    """Run programs in one process that forks for each; ``plain`` as modes runs them without instrumentation."""
    files = [str(PROGRAMS / f"{name}.repro") for name in names]
    done = subprocess.run(
        [str(environment(version).interpreter.executable), str(HERE / "batch.py"), str(ROOT), modes, *files],
        env=variables(version),
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(_ran(name, json.loads(line)) for name, line in zip(names, done.stdout.splitlines(), strict=True))


def variables(version: str) -> dict[str, str]:
    site = str(environment(version).site_packages)
    # One thread in numpy's pool: more of them don't survive the forks of batch.py.
    return {**os.environ, "PYTHONPATH": site, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _ran(name: str, line: dict[str, object]) -> Ran:
    return Ran(
        program=name,
        code=int(str(line["code"])),
        seconds=float(str(line["seconds"])),
        stdout=str(line["stdout"]),
        stderr=str(line["stderr"]),
        findings=read_findings(str(line["findings"])),
        claims=str(line["findings"]),
    )
