"""How much of the past still runs: the programs of tests/runners/port on TVM's releases, as posted and ported.

Usage: python -m bench.surveys.ports

Each program says on its first line in the names of which release it is written, on its second what it prints. It
*runs* when it prints that and ends with 0. Prints a Markdown row per program and the shares; exits 1 when fewer than
nine in ten run ported on a release, or when a port prints anything else than its original where both run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.core.catalogue import load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.rewrite.testcase import port_testcase
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import tvm

PROGRAMS = Path(__file__).parents[2] / "tests" / "runners" / "rewrite" / "programs"
RELEASES = ("0.17.dev0", "0.25.0.post1", "0.26.0", "0.27.0.post1")
"""A fork of 2024, to which new programs are ported back, and the releases."""
ENOUGH = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    store: Store
    engine: Engine

    def output(self, testcase: Testcase, version: str) -> str | None:
        """What a program prints; None when it doesn't end with 0."""
        environment = self.store.get_environment(load_catalogue().find("tvm", version))
        task = make_task(environment, testcase, Limits())
        seen = run_probe(self.engine, make_layout(environment), task, run_id=make_name())
        return seen.steps[-1].stdout.strip() if seen.ended == Exited(code=0) else None


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


def study(text: str, version: str, bench: Bench) -> Result:
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))
    posted = bench.output(testcase, version)
    done = port_testcase(testcase, version, tvm)
    promised = "\n".join(text.splitlines()[1].removeprefix("# prints: ").split(" | "))
    ported = posted if done is None else bench.output(done.testcase, version)
    return Result(posted=posted, ported=ported, changed=done is not None, promised=promised)


def rows(results: dict[str, dict[str, Result]], dialects: dict[str, str]) -> Iterator[str]:
    yield f"| program | written for | {' | '.join(RELEASES)} |"
    yield f"| --- | --- |{' --- |' * len(RELEASES)}"
    for name, by_release in results.items():
        yield f"| {name} | {dialects[name]} | {' | '.join(by_release[v].render() for v in RELEASES)} |"
    for what, runs in (("as posted", "runs_posted"), ("ported", "runs_ported")):
        counts = (sum(getattr(by[v], runs) for by in results.values()) for v in RELEASES)
        shares = (f"{count} of {len(results)} ({count / len(results):.0%})" for count in counts)
        yield f"| **{what}** | | {' | '.join(shares)} |"


def main() -> int:
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(PROGRAMS.glob("*.txt"))}
    bench = Bench(store=open_store(), engine=select_engine("auto"))
    results = {name: {v: study(text, v, bench) for v in RELEASES} for name, text in texts.items()}
    dialects = {name: text.splitlines()[0].removeprefix("# dialect: ") for name, text in texts.items()}
    sys.stdout.write("\n".join(rows(results, dialects)) + "\n")
    differ = any(one.differs for by_release in results.values() for one in by_release.values())
    few = any(sum(by[v].runs_ported for by in results.values()) < ENOUGH * len(results) for v in RELEASES)
    return int(differ or few)


if __name__ == "__main__":
    raise SystemExit(main())
