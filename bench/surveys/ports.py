"""Run programs of 2021 to 2026 on the releases of today, as posted and ported.

Usage: python -m bench.surveys.ports [tvm] [iree]

The programs are in tests/runners/rewrite: ``programs`` for TVM, ``notations`` for IREE. The head of each program says
in the names of which release, or in the notation of which month, it is written, and what it prints. It *runs* if it
prints that and ends with 0. Prints a row for each program, and the shares. Exits with 1 if fewer than nine in ten run
ported on a release, or if a port prints anything else than its original where both run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.rewrite.testcase import port_testcase
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import find_toolchain

FOLDER = Path(__file__).parents[2] / "tests" / "runners" / "rewrite"
RELEASES = {"tvm": ("0.17.dev0", "0.25.0.post1", "0.26.0", "0.27.0.post1"), "iree": ("2.9.0", "3.5.0", "3.13.0")}
"""For TVM also a fork of 2024, to which new programs are ported back."""
ENOUGH = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    testcase: Testcase
    dialect: str
    promised: str


def read_tvm_program(file: Path) -> Program:
    text = file.read_text(encoding="utf-8")
    dialect, prints, *_ = text.splitlines()
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))
    promised = "\n".join(prints.removeprefix("# prints: ").split(" | "))
    return Program(testcase=testcase, dialect=dialect.removeprefix("# dialect: "), promised=promised)


def read_iree_program(file: Path) -> Program:
    """Read MLIR with its input, its own flags and what it prints in comments at its head."""
    text = file.read_text(encoding="utf-8")
    head = dict(re.findall(r"^// (\w+): (.*)$", text, re.M))
    target = head.get("target", "--iree-hal-target-backends=llvm-cpu")
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": text},
        steps=(
            ("iree-compile", target, *head.get("compile", "").split(), "m.mlir", "-o", "m.vmfb"),
            ("iree-run-module", "--device=local-sync", "--module=m.vmfb", "--function=f", f"--input={head['input']}"),
        ),
    )
    return Program(testcase=testcase, dialect=head["dialect"], promised=head["prints"])


PROGRAMS = {
    "tvm": {file.stem: read_tvm_program(file) for file in sorted((FOLDER / "programs").glob("*.txt"))},
    "iree": {file.stem: read_iree_program(file) for file in sorted((FOLDER / "notations").glob("*.txt"))},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    store: Store
    engine: Engine

    def output(self, testcase: Testcase, version: str) -> str | None:
        """What a program prints; None when it doesn't end with 0."""
        environment = self.store.get_environment(load_catalogue().find(testcase.toolchain, version))
        task = make_task(environment, testcase, Limits())
        seen = run_probe(self.engine, make_layout(environment), task, run_id=make_name())
        if seen.ended != Exited(code=0):
            return None
        return _HEADER.sub("", seen.steps[-1].stdout).strip()


_HEADER = re.compile(r"^EXEC @.*\n|^result\[\d+\]: (?:hal\.buffer_view\n)?", re.MULTILINE)
"""The lines that ``iree-run-module`` prints around each result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One program on one release."""

    posted: str | None
    ported: str | None
    changed: bool
    """Whether there was anything to port."""
    promised: str

    @property
    def runs_posted(self) -> bool:
        return self.posted == self.promised

    @property
    def runs_ported(self) -> bool:
        return self.ported == self.promised

    @property
    def differs(self) -> bool:
        """The port computes something else: the one thing it must never do."""
        return None not in (self.posted, self.ported) and self.posted != self.ported

    def render(self) -> str:
        if self.differs:
            return "**differs**"
        ported = ("ported" if self.changed else "as it is") if self.runs_ported else "no"
        return f"{'yes' if self.runs_posted else 'no'} / {ported}"


def study(program: Program, version: str, bench: Bench) -> Result:
    testcase = program.testcase
    posted = bench.output(testcase, version)
    done = port_testcase(testcase, version, find_toolchain(testcase.toolchain))
    ported = posted if done is None else bench.output(done.testcase, version)
    return Result(posted=posted, ported=ported, changed=done is not None, promised=program.promised)


def rows(results: dict[str, dict[str, Result]], toolchain: str) -> Iterator[str]:
    releases = RELEASES[toolchain]
    yield f"| program | written for | {' | '.join(releases)} |"
    yield f"| --- | --- |{' --- |' * len(releases)}"
    for name, by_release in results.items():
        dialect = PROGRAMS[toolchain][name].dialect
        yield f"| {name} | {dialect} | {' | '.join(by_release[v].render() for v in releases)} |"
    for what, runs in (("as posted", "runs_posted"), ("ported", "runs_ported")):
        counts = (sum(getattr(by[v], runs) for by in results.values()) for v in releases)
        shares = (f"{count} of {len(results)} ({count / len(results):.0%})" for count in counts)
        yield f"| **{what}** | | {' | '.join(shares)} |"


def main() -> int:
    bench = Bench(store=open_store(), engine=select_engine("auto"))
    failed = False
    for toolchain in sys.argv[1:] or PROGRAMS:
        releases = RELEASES[toolchain]
        results = {
            name: {version: study(program, version, bench) for version in releases}
            for name, program in PROGRAMS[toolchain].items()
        }
        sys.stdout.write("\n".join(rows(results, toolchain)) + "\n\n")
        differ = any(one.differs for by_release in results.values() for one in by_release.values())
        few = any(sum(by[v].runs_ported for by in results.values()) < ENOUGH * len(results) for v in releases)
        failed = failed or differ or few
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
