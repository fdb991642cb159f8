"""What holds on this machine, for this user: ``python -m bench.robustness.machine [--kills N] [--no-examples]``.

Prints Markdown: the kernel and the engines with their versions; and of each engine what its self-test says, how many
attacks of the kit were contained and told truthfully, and whether two example issues get their verdict through it,
from text to comment, with real releases of TVM and IREE. 1 when anything that an engine claims does not hold.
``tools/vm.sh check`` runs it in a virtual machine with systemd, docker and control groups of version 2.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from runners.sandbox.contract import Engine
from runners.sandbox.select import list_sandboxes

KIT = "tests/runners/sandbox/kit/test_conformance.py"


@dataclass(frozen=True, slots=True)
class Example:
    """An issue, the releases to run it on, and the verdict found by hand (``examples/issues/README.md``)."""

    issue: str
    versions: str
    verdict: str


EXAMPLES = (
    Example("examples/issues/two-dense-layers-share-one-weight.md", "0.25.0.post1,0.26.0", "fixed"),
    Example("examples/issues/unused-tensor-argument-crash.md", "3.8.0,3.9.0", "fixed"),
)
PROGRAMS = (
    ("uname", "-r"),
    ("systemctl", "--version"),
    ("docker", "version", "--format", "{{.Server.Version}}"),
    ("docker", "info", "--format", "{{.CgroupDriver}}, {{.Driver}}, {{.SecurityOptions}}"),
    ("podman", "--version"),
    ("crun", "--version"),
    ("runc", "--version"),
    ("bwrap", "--version"),
    ("runsc", "--version"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """How many attacks were contained; the names of those that were not, and of those that could not be tried."""

    contained: int
    failed: tuple[str, ...]
    skipped: tuple[str, ...]


def first_line(words: Sequence[str]) -> str:
    """Of what a program says; empty when there is none, or it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip().splitlines() or [""])[0] if done.returncode == 0 else ""


def machine() -> Iterator[str]:
    version = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
    yield f"user {os.geteuid()}, control groups of version {version}"
    for words in PROGRAMS:
        if line := first_line(words):
            yield f"{' '.join(words[:2])}: {line}"


def read_kit(report: Path) -> Kit:
    """From pytest's JUnit XML."""
    cases = list(ElementTree.parse(report).iter("testcase"))  # written by our own pytest, a moment ago
    failed = tuple(_attack(case) for case in cases if _has(case, "failure", "error"))
    skipped = tuple(_attack(case) for case in cases if _has(case, "skipped"))
    return Kit(contained=len(cases) - len(failed) - len(skipped), failed=failed, skipped=skipped)


def _has(case: ElementTree.Element, *names: str) -> bool:
    return any(case.find(name) is not None for name in names)


def _attack(case: ElementTree.Element) -> str:
    return case.get("name", "").partition("[")[2].rstrip("]")


def run_kit(engine: str, expression: str) -> Kit:
    with tempfile.TemporaryDirectory(prefix="machine-") as folder:
        report = Path(folder, "kit.xml")
        wanted = f"{engine} and ({expression})" if expression else engine
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            "-k",
            wanted,
            KIT,
        ]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if not report.exists():
            raise SystemExit(f"the kit did not run: {done.stdout[-1000:]}")
        for line in done.stdout.splitlines():
            if line.startswith(("FAILED", "ERROR")):
                sys.stderr.write(f"{line[:600]}\n")
        return read_kit(report)


def run_example(engine: str, example: Example, timeout_s: int) -> str:
    """The verdict in bold where it is another than the one found by hand, and the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="machine-") as folder:
        document, began = Path(folder, "answer.json"), time.monotonic()
        words = [sys.executable, "-m", "bot", "reproduce", example.issue, "--versions", example.versions]
        words += ["--sandbox", engine, "--timeout", str(timeout_s), "--json", str(document)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(f"{' '.join(words[2:])}: {done.stderr[-600:]}\n")
            return f"**exit code {done.returncode}**"
        kind = str(json.loads(document.read_text())["verdict"]["kind"])
        return f"{kind if kind == example.verdict else f'**{kind}**'} ({time.monotonic() - began:.0f} s)"


def row(engine: Engine, expression: str, examples: Sequence[Example], timeout_s: int) -> str:
    why = engine.find_problem()
    if why is not None:
        return f"| {engine.name} | no: {why} | | | |"
    kit = run_kit(engine.name, expression)
    verdicts = [run_example(engine.name, example, timeout_s) for example in examples]
    skipped = f", {len(kit.skipped)} not tried" if kit.skipped else ""
    failed = f", **not: {', '.join(kit.failed)}**" if kit.failed else ""
    losses = "; ".join(engine.limitations)
    return f"| {engine.name} | yes | {kit.contained}{skipped}{failed} | {', '.join(verdicts)} | {losses} |"


def main(words: Sequence[str]) -> int:
    """1 when something that should hold does not."""
    parser = argparse.ArgumentParser(prog="python -m bench.robustness.machine", description=__doc__)
    parser.add_argument("--kit", default="", metavar="EXPRESSION", help="which attacks, as pytest's -k takes it")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="so many trials of bench.robustness.kills")
    parser.add_argument("--engine", action="append", help="only this one; may be repeated")
    parser.add_argument("--no-examples", action="store_true", help="without the two issues, which need a network")
    parser.add_argument("--timeout", type=int, default=120, metavar="S", help="for one run of an example")
    wanted = parser.parse_args(words)
    say = sys.stdout.write
    say("".join(f"- {line}\n" for line in machine()))
    say("\n| engine | self-test | attacks contained | TVM, IREE | gives up |\n|---|---|---|---|---|\n")
    wrong = False
    for engine in list_sandboxes():
        if wanted.engine and engine.name not in wanted.engine:
            continue
        line = row(engine, wanted.kit, () if wanted.no_examples else EXAMPLES, wanted.timeout)
        wrong = wrong or "**" in line
        say(f"{line}\n")
        sys.stdout.flush()
    if wanted.kills:
        say("\n")
        sys.stdout.flush()
        wrong = (
            subprocess.run(
                [sys.executable, "-m", "bench.robustness.kills", str(wanted.kills)], check=False
            ).returncode
            != 0
            or wrong
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
