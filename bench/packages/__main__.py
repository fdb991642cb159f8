"""PyTorch beside every TVM release: the cost of the layer, its disk use, and programs that use it.

Usage: python -m bench.packages [--versions LIST|RANGE|all] [--torch VERSION] [--root DIR] [--json FILE] [--no-cost]

*Cold* is the first environment with PyTorch in an empty store: the download and the unpacking of the wheel. *Warm* is
the next release's environment, whose PyTorch is linked. Each is the time beyond the release's own wheels, which are
there before. *Disk* is what the store grows by, hard links counted once. Each program runs in a sandbox, as the
testcase of a report does, canaries included. Prints Markdown; exits 1 if a program gives another result than its
framework.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.packages.programs import MODELS, MODULES, make_export_testcase, make_onnx_testcase
from runners.core.catalogue import Release, load_catalogue
from runners.core.errors import ReprobotError
from runners.core.progress import Silent
from runners.core.protocol import Exited, NotRun, Testcase
from runners.core.requirements import pin_layers
from runners.core.runs import RunRequest, RunResult
from runners.environments.store import Store, default_root, open_store
from runners.toolchains import find_toolchain
from runners.workbench import Workbench, open_workbench

PROGRAMS: Mapping[str, Callable[..., Testcase]] = {
    **dict.fromkeys(MODULES, make_export_testcase),
    **dict.fromkeys(MODELS, make_onnx_testcase),
}


def measure_cost(store: Store, releases: tuple[Release, ...], requirement: str) -> Iterator[dict[str, object]]:
    """Yield seconds and bytes of each release's environment with PyTorch, beyond the environment without it."""
    for release in releases:
        store.get_environment(release)
        before, began = store.measure_size(), time.perf_counter()
        try:
            environment = store.get_environment(release, (requirement,))
        except ReprobotError as reason:
            yield {"version": release.version, "refused": str(reason)[:300]}
            continue
        built = time.perf_counter() - began
        began = time.perf_counter()
        store.get_environment(release, (requirement,))
        yield {
            "version": release.version,
            "torch": environment.list_packages()["torch"],
            "built_s": round(built, 2),
            "found_s": round(time.perf_counter() - began, 2),
            "added_mib": round((store.measure_size() - before) / 2**20),
        }


def run_programs(bench: Workbench, release: Release, requirement: str) -> dict[str, str]:
    """Return the end of each program on one release: ``same``, or the reason why not."""
    bundle = find_toolchain("tvm").find_bundle(release.version)
    ends = {}
    for name, make in PROGRAMS.items():
        testcase = make(name, compiles=bundle is None or bundle.compiles)
        pinned = tuple(requirement if one == "torch" else one for one in testcase.requirements)
        request = RunRequest(version=release.version, device="llvm", testcase=_require(testcase, pinned))
        ends[name] = describe_end(bench.execute(request))
    return ends


def _require(testcase: Testcase, requirements: tuple[str, ...]) -> Testcase:
    return Testcase(
        kind=testcase.kind,
        toolchain=testcase.toolchain,
        files=testcase.files,
        steps=testcase.steps,
        requirements=requirements,
    )


def describe_end(result: RunResult) -> str:
    """Return ``same`` for a program that compared equal, else its last line."""
    if isinstance(result.ended, NotRun):
        return f"not run: {result.ended.why[:200]}"
    last = result.steps[-1]
    if result.ended == Exited(code=0) and "same result" in last.stdout:
        return "imported" if "imported only" in last.stdout else "same"
    lines = (last.stderr or last.stdout).strip().splitlines()
    return f"fails: {lines[-1][:160] if lines else result.ended}"


@contextmanager
def open_root(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="reprobot-packages-", dir=Path.home()) as folder:
        yield Path(folder)


def say(line: str) -> None:
    """Write a line at once: a row may take a minute."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", default="0.16.dev0..0.27.0.post1")
    parser.add_argument("--torch")
    parser.add_argument("--root", type=Path, help="an empty folder for the store; temporary by default")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-cost", action="store_true", help="run the programs in the usual store")
    wishes = parser.parse_args()
    catalogue = load_catalogue()
    releases = catalogue.select("tvm", wishes.versions)
    requirement = f"torch=={wishes.torch}" if wishes.torch else pin_layers(("torch",), None)[0]
    with open_root(default_root() if wishes.no_cost else wishes.root) as root:
        bench = replace(open_workbench("auto", catalogue, Silent()), store=open_store(root))
        costs = [] if wishes.no_cost else list(measure_cost(bench.store, releases, requirement))
        for row in costs:
            say(" | ".join(map(str, row.values())))
        if costs:
            say(f"disk of the store: {bench.store.measure_size() / 2**20:.0f} MiB")
        say("\n| version | " + " | ".join(PROGRAMS) + " |\n| --- |" + " --- |" * len(PROGRAMS))
        ends = {}
        with closing(bench.sessions):
            for release in releases:
                ends[release.version] = run_programs(bench, release, requirement)
                say(f"| `{release.version}` | " + " | ".join(ends[release.version].values()) + " |")
        document = {
            "requirement": requirement,
            "cost": costs,
            "disk_mib": round(bench.store.measure_size() / 2**20),
            "programs": ends,
        }
    if wishes.json:
        wishes.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(any("AssertionError" in end or "Mismatched" in end for row in ends.values() for end in row.values()))


if __name__ == "__main__":
    sys.exit(main())
