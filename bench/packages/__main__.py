"""PyTorch beside every TVM release: the cost of the layer, its disk use, and programs that use it.

Usage: python -m bench.packages [--versions LIST|RANGE|all] [--torch VERSION] [--root DIR] [--json FILE] [--no-cost]

*Cold* is the first environment with PyTorch in an empty store: the download and the unpacking of the wheel. *Warm* is
the next release's environment, whose PyTorch is linked. Each is the time beyond the release's own wheels, which are
there before. *Disk* is what the store grows by, hard links counted once. Each program runs in a sandbox, as the
testcase of a report does, canaries included. Prints Markdown; exits 1 if a module or a
model does not give the framework's own result.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.packages.programs import MODELS, MODULES, make_export_testcase, make_onnx_testcase, read_ends
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Release, load_catalogue
from runners.core.packages.requirements import pin_layers
from runners.core.progress import Silent
from runners.core.protocol import Limits, NotRun
from runners.core.runs import RunRequest, RunResult
from runners.environments.store import Store, default_root, open_store
from runners.toolchains import find_toolchain
from runners.workbench import Workbench, open_workbench

LIMITS = Limits(wall_s=300)
"""More time than a report's testcase has: the table is about results, also on a busy machine."""
RELEASES = "0.25.0rc0,0.25.0rc1,0.25.0,0.25.0.post1,0.26.0rc0,0.26.0,0.27.0rc0,0.27.0rc1,0.27.0,0.27.0.post1"
"""Every wheel of TVM's own on the package index, candidates included."""
PROGRAMS = (*MODULES, *MODELS)


def measure_cost(store: Store, releases: tuple[Release, ...], requirement: str) -> Iterator[dict[str, object]]:
    """Yield seconds and bytes of each release's environment with PyTorch, beyond the environment without it."""
    for release in releases:
        store.get_environment(release)
        before, began, used = store.measure_size(), time.perf_counter(), _measure_cpu()
        try:
            environment = store.get_environment(release, (requirement,))
        except ReprobotError as reason:
            yield {"version": release.version, "refused": str(reason)[:300]}
            continue
        built, used = time.perf_counter() - began, _measure_cpu() - used
        began = time.perf_counter()
        store.get_environment(release, (requirement,))
        yield {
            "version": release.version,
            "torch": environment.list_packages()["torch"],
            "built_s": round(built, 2),
            "processor_s": round(used, 2),
            "found_s": round(time.perf_counter() - began, 2),
            "added_mib": round((store.measure_size() - before) / 2**20),
        }


def _measure_cpu() -> float:
    """Return the processor time of this process and its children, which other work on the machine does not change."""
    parts = (resource.getrusage(one) for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def run_programs(bench: Workbench, release: Release, requirement: str) -> dict[str, str]:
    """Return the end of each module and model on one release: ``same``, or the reason why not."""
    bundle = find_toolchain("tvm").find_bundle(release.version)
    compiles = bundle is None or bundle.compiles
    ends = {}
    for names, testcase in (
        (MODULES, make_export_testcase(compiles=compiles)),
        (MODELS, make_onnx_testcase(compiles=compiles)),
    ):
        pinned = tuple(requirement if one == "torch" else one for one in testcase.requirements)
        asked = msgspec.structs.replace(testcase, requirements=pinned)
        result = bench.execute(
            RunRequest(version=release.version, device="llvm", testcase=asked, limits=LIMITS, fresh=True)
        )
        printed = read_ends(result.steps[-1].stdout) if result.steps else {}
        ends |= {name: printed.get(name, _describe_end(result)) for name in names}
    return ends


def _describe_end(result: RunResult) -> str:
    """Return why a program printed nothing about a module."""
    if isinstance(result.ended, NotRun):
        return f"not run: {result.ended.why[:200]}"
    lines = (result.steps[-1].stderr or result.steps[-1].stdout).strip().splitlines()
    return f"ends early: {lines[-1][:160] if lines else result.ended}"


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
    parser.add_argument("--versions", default=RELEASES)
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
        document: dict[str, Any] = {"requirement": requirement, "cost": [], "disk_mib": None, "programs": {}}
        if not wishes.no_cost:
            for row in measure_cost(bench.store, releases, requirement):
                document["cost"].append(row)
                say(" | ".join(map(str, row.values())))
            document["disk_mib"] = round(bench.store.measure_size() / 2**20)
            say(f"disk of the store: {document['disk_mib']} MiB")
        say(f"\n| version | {' | '.join(PROGRAMS)} |\n| --- |{' --- |' * len(PROGRAMS)}")
        with closing(bench.sessions):
            for release in releases:
                row = run_programs(bench, release, requirement)
                document["programs"][release.version] = row
                say(f"| `{release.version}` | {' | '.join(row.values())} |")
                if wishes.json:
                    wishes.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    ends = [end for row in document["programs"].values() for end in row.values()]
    return int(any(end not in ("same", "imported") for end in ends))


if __name__ == "__main__":
    sys.exit(main())
