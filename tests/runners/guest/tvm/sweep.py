"""Run the programs in this folder plain and instrumented, in a release's environment, and return the findings."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Finding
from runners.core.toolchain.claims import read_findings
from runners.environments.store import Environment, open_store
from tests.runners.guest.tvm.forks import STREAMS

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
ROOT = Path(__file__).parents[4]
LAUNCHER = ROOT / "runners" / "guest" / "launch.py"
MAX_TEXT = 20_000
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
    return tuple(_run_program(version, name, modes) for name in names)


def _run_program(version: str, name: str, modes: str) -> ProgramRun:
    hooks = () if modes == "plain" else (str(LAUNCHER), "tvm.diagnose", modes)
    with TemporaryDirectory() as folder:
        shutil.copy(PROGRAMS / f"{name}.repro", Path(folder, "repro.py"))
        findings = Path(folder, "findings")
        ended = run_forked(version, (*hooks, "repro.py"), Path(folder), REPROBOT_FINDINGS=str(findings))
        claims = findings.read_text(errors="replace")[-MAX_TEXT:] if findings.exists() else ""
    return ProgramRun(
        program=name,
        code=ended.code,
        seconds=ended.seconds,
        stdout=ended.stdout[-MAX_TEXT:],
        stderr=ended.stderr[-MAX_TEXT:],
        findings=read_findings(claims),
        claims=claims,
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended in a fork. ``code`` is the exit status or minus the signal."""

    code: int
    seconds: float
    stdout: str
    stderr: str


def run_forked(version: str, arguments: Sequence[str], folder: Path, **more: str) -> Ended:
    """Run ``python ARGUMENT…`` in ``folder``, in a fork of a process that has imported the release."""
    server = _start_server(version)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"arguments": arguments, "folder": str(folder), "variables": more}) + "\n")
    server.stdin.flush()
    answer = json.loads(server.stdout.readline())
    stdout, stderr = ((folder / name).read_text(errors="replace") for name in STREAMS)
    return Ended(int(answer["code"]), float(answer["seconds"]), stdout, stderr)


def read_report(version: str, program: str) -> dict[str, Any]:
    """Run a program of this folder that compares by itself. Return the object in its last line."""
    with TemporaryDirectory() as folder:
        ended = run_forked(version, (str(PROGRAMS / f"{program}.repro"), str(ROOT)), Path(folder))
    assert ended.code == 0, ended.stderr
    return dict(json.loads(ended.stdout.splitlines()[-1]))


@cache
def _start_server(version: str) -> subprocess.Popen[str]:
    """Start a process that imports the release once. The end of its standard input ends it, with the tests."""
    words = [str(environment(version).interpreter.executable), str(HERE / "forks.py"), str(ROOT)]
    server = subprocess.Popen(words, env=variables(version), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def variables(version: str, *requirements: str) -> dict[str, str]:
    site = str(environment(version, *requirements).site_packages)
    # One thread in numpy's pool: more threads do not survive the forks of forks.py.
    return {**os.environ, "PYTHONPATH": site, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
