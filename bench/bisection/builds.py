"""Every build of the catalogue: does it install, how long does that take, what does it add, does its canary live?

Usage: python -m bench.bisection.builds [--root DIR] [--toolchain NAME]… [--versions LIST|RANGE]

Begins with an empty store in ``--root`` (a temporary directory, removed afterwards), so that *cold* includes every
download that this build needs and no earlier build needed; *warm* puts the environment together again from wheels
that are unpacked already; *found* looks it up. Disk is what the store grows by, hard links counted once.
Prints a Markdown table; exits 1 when a canary dies.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Catalogue, Release, load_catalogue
from runners.core.progress import Silent
from runners.environments.store import Environment, Store, open_store
from runners.toolchains import find_toolchain, make_canary_testcase
from runners.workbench import Workbench, open_workbench
from runners.workbench.environments import run_canary

HEAD = (
    "| toolchain | version | source | commit | released | Python "
    "| cold, s | warm, s | found, s | disk, MiB | canary |\n"
    "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    release: Release
    python: str
    cold_s: float
    warm_s: float
    found_s: float
    disk_bytes: int
    canary: str

    def render(self) -> str:
        release = self.release
        cells = (
            *(release.toolchain, f"`{release.version}`", _source(release), f"`{_commit(release)}`"),
            *(f"{release.released}", self.python, f"{self.cold_s:.1f}", f"{self.warm_s:.2f}", f"{self.found_s:.2f}"),
            *(f"{self.disk_bytes / 2**20:.0f}", self.canary),
        )
        return f"| {' | '.join(cells)} |"


def _source(release: Release) -> str:
    carrier = release.distributions[0].replace("==", " ") if release.distributions else ""
    return {
        "index": "package index",
        "bundle": f"a fork, in {carrier}",
        "wheels": "configured wheels",
        "machine": "this machine",
    }[release.source]


def _commit(release: Release) -> str:
    return (release.fork or release.commit or "unknown")[:10]


def _timed(store: Store, release: Release) -> tuple[Environment, float]:
    began = time.perf_counter()
    environment = store.get_environment(release)
    return environment, time.perf_counter() - began


def survey(release: Release, bench: Workbench) -> Row:
    """One build, from nothing of it to its canary."""
    store = bench.store
    before = store.measure_size()
    environment, cold = _timed(store, release)
    added = store.measure_size() - before
    shutil.rmtree(environment.folder)
    _, warm = _timed(store, release)
    _, found = _timed(store, release)
    program = make_canary_testcase(find_toolchain(release.toolchain), release.version)
    dead = run_canary(bench, environment, program)
    return Row(
        release=release,
        python=environment.interpreter.version,
        cold_s=cold,
        warm_s=warm,
        found_s=found,
        disk_bytes=added,
        canary="passes" if dead is None else f"**fails**: {dead.why}",
    )


@contextmanager
def empty_root(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="reprobot-builds-", dir=Path.home()) as folder:
        yield Path(folder)


def chosen(catalogue: Catalogue, toolchain: str, versions: str | None) -> tuple[Release, ...]:
    return catalogue.select(toolchain, versions) if versions else catalogue.list_releases(toolchain, prereleases=True)


def say(line: str) -> None:
    """At once: a row may take a minute."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--toolchain", action="append", choices=("tvm", "iree"))
    parser.add_argument("--versions")
    wishes = parser.parse_args()
    catalogue, died = load_catalogue(), 0
    with empty_root(wishes.root) as root:
        bench = replace(open_workbench("auto", catalogue, Silent()), store=open_store(root))
        say(HEAD)
        for toolchain in wishes.toolchain or ("tvm", "iree"):
            for release in chosen(catalogue, toolchain, wishes.versions):
                try:
                    row = survey(release, bench)
                except ReprobotError as failure:
                    died += 1
                    say(f"| {toolchain} | `{release.version}`{' |' * 9} **not built**: {failure} |")
                    continue
                died += row.canary != "passes"
                say(row.render())
    return int(died > 0)


if __name__ == "__main__":
    raise SystemExit(main())
