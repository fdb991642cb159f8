"""Count how many reports run, and what stops the others.

    python -m bench.surveys.reach FOLDER… [--only tvm-12375,…] [--json FILE] [--read]

A folder holds reports as ``REPOSITORY-NUMBER.md``. A report *runs* if its testcase ends on at least one build in a
state that says something about the claim: as posted on a release, on a fork, ported, or on a stand-in device. A
refusal to read the text, a name that a build lacks, and a missing package or device do not count.
``--read`` only extracts, and starts no sandbox.

The reported build runs first, then the newest, the oldest and the forks. A report that runs is not run again.
Texts without a claim of failure or without code are left out of the shares, and so are texts whose archive ends
inside the program.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.cli.context import open_local_catalogue, open_local_workbench, read_issue
from bot.extract import extract
from bot.extract.types import Intent, NoRepro, Repro
from bot.plan import PlanWithNotes, RunOptions, make_plan
from runners.core.failure.outcomes import is_rejected
from runners.core.packages.catalogue import Catalogue
from runners.core.progress import Silent
from runners.core.protocol import Observation, Outcome, Reason, Testcase, Variant
from runners.investigation.state import make_cell
from runners.probe.observe import observe_cell
from runners.rewrite.testcase import port_testcase, retarget_testcase
from runners.toolchains import find_toolchain
from runners.workbench.workbench import Workbench

RUNS = ("as posted", "on a fork", "ported", "on a stand-in", "compiled for an absent device")
LEFT_OUT = ("no claim of failure", "no code", "cut off by the archive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """One report: how its testcase runs, or the class of the obstacle."""

    name: str
    group: str
    detail: str = ""

    @property
    def runs(self) -> bool:
        return self.group in RUNS

    @property
    def counts(self) -> bool:
        return self.group not in LEFT_OUT


def read_report(path: Path) -> Repro | Reach:
    """Extract a report's testcase, or classify the report that has none."""
    found = extract(read_issue(str(path), None, attach=False))
    text = path.read_text(encoding="utf-8")
    cut = _is_cut_off(text)
    if found.intent is not Intent.FAILURE:
        return Reach(name=path.stem, group="no claim of failure", detail=found.intent.value)
    if isinstance(found, NoRepro):
        if cut:
            return Reach(name=path.stem, group="cut off by the archive", detail=found.reason)
        missing = "holds no code" in found.reason or "link only" in found.reason or "shows output" in found.reason
        return Reach(name=path.stem, group="no code" if missing else "testcase not found", detail=found.reason)
    files = found.testcase.files.values()
    if cut and (found.missing or any(map(_has_open_bracket, files)) or _ends_with(text, files)):
        return Reach(name=path.stem, group="cut off by the archive", detail=_list_missing(found))
    if found.missing:
        kinds = "/".join(sorted({entry.kind for entry in found.missing}))
        return Reach(name=path.stem, group=f"incomplete: {kinds}", detail=_list_missing(found))
    return found


def _is_cut_off(text: str) -> bool:
    """True if the archive ends inside a program: a fence is open, or the last block has an open bracket."""
    fences = re.split(r"^ {0,3}`{3,}[^\n]*$", text, flags=re.M)
    last = fences[-1] if len(fences) % 2 == 0 else fences[-2] if not fences[-1].strip() and len(fences) > 2 else ""
    return (len(fences) % 2 == 0 or _has_open_bracket(last)) and len(text) > MIN_CUT_CHARS


def _ends_with(text: str, files: Iterable[str]) -> bool:
    """True if the text ends inside a fence with the last row of a file."""
    rows = {file.rstrip().rpartition("\n")[2].strip() for file in files}
    return len(re.findall(r"^ {0,3}`{3,}", text, re.M)) % 2 == 1 and text.rstrip().rpartition("\n")[2].strip() in rows


def _has_open_bracket(text: str) -> bool:
    return any(text.count(left) > text.count(right) for left, right in ("{}", "()", "[]"))


MIN_CUT_CHARS = 1_200
"""The archive holds about 1,500 characters of a text."""


def _list_missing(repro: Repro) -> str:
    return ", ".join(f"{entry.kind} {entry.name}" for entry in repro.missing)


def run_report(name: str, repro: Repro, planned: PlanWithNotes, bench: Workbench, catalogue: Catalogue) -> Reach:
    """Run a testcase until one run says something about the claim."""
    last = Reach(name=name, group="not run")
    for group, seen in _try_builds(repro.testcase, planned, bench, catalogue):
        note = f"{seen.version}, {seen.device}: {seen.outcome}: {seen.why}"[:300]
        if (reached := _classify_run(seen, group)) in RUNS:
            return Reach(name=name, group=reached, detail=note)
        if last.group == "not run" or seen.variant is Variant.PORTED:
            last = Reach(name=name, group=reached, detail=f"{note} | {_get_error(seen)}")
    return last


def _try_builds(
    testcase: Testcase, planned: PlanWithNotes, bench: Workbench, catalogue: Catalogue
) -> Iterator[tuple[str, Observation]]:
    """Yield the runs, those of the posted text first, with how each run would reach the claim."""
    plan, toolchain = planned.plan, find_toolchain(testcase.toolchain)
    forks = {r.version for r in catalogue.list_releases(testcase.toolchain, prereleases=True) if r.source == "bundle"}
    versions = tuple(dict.fromkeys([*plan.first, *sorted(forks, reverse=True)]))

    def observe(version: str, variant: Variant, text: Testcase, device: str) -> Observation:
        cell = make_cell(plan, version, variant=variant, testcase=text, device=device)
        return observe_cell(bench.execute, plan, cell, 1)

    unavailable = []
    for version in versions:
        seen = observe(version, Variant.ORIGINAL, testcase, plan.device)
        yield "on a fork" if version in forks else "as posted", seen
        if seen.outcome is Outcome.UNAVAILABLE:
            unavailable.append(version)
    for version in versions:
        if (ported := port_testcase(testcase, version, toolchain)) is not None:
            yield "ported", observe(version, Variant.PORTED, ported.testcase, plan.device)
    for device in toolchain.STAND_INS:
        for version in unavailable:
            if (moved := retarget_testcase(testcase, device)) is not None:
                yield "on a stand-in", observe(version, Variant.RETARGETED, moved, device)


def _classify_run(seen: Observation, group: str) -> str:
    """Return ``group`` for a run that says something about the claim, else the class of the obstacle."""
    match seen.outcome:
        case Outcome.MATCH | Outcome.PASS | Outcome.OUT_OF_MEMORY | Outcome.TIMEOUT:
            return group
        case Outcome.UNAVAILABLE if seen.reason is Reason.COMPILES_WITHOUT_DEVICE:
            return "compiled for an absent device"
        case Outcome.UNAVAILABLE:
            return "a device or package is missing"
        case Outcome.INCOMPATIBLE:
            return "a name is gone"
        case Outcome.INFRA:
            return "this machine"
        case Outcome.OTHER_FAILURE:
            return "the text is refused" if _is_refused(seen) else group


_NOT_STARTED = {
    "ModuleNotFoundError",
    "ImportError",
    "SyntaxError",
    "NameError",
    "FileNotFoundError",
    "IndentationError",
}
_WRONG_CALL = {"AttributeError", "TypeError", "ValueError"}
"""Errors of Python that an older interface raises, if no compile phase was reached."""


def _is_refused(seen: Observation) -> bool:
    """True if the build refused the text, or the script did not get as far as the compiler."""
    if is_rejected(seen, find_toolchain(seen.toolchain).FAILURES):
        return True
    kind = seen.signature.type if seen.signature is not None else ""
    compiled = seen.record is not None and bool(seen.record.phases)
    return kind in _NOT_STARTED or (kind in _WRONG_CALL and not compiled)


def _get_error(seen: Observation) -> str:
    rows = [row for row in seen.excerpt.splitlines() if re.search(r"[Ee]rror", row)] or seen.excerpt.splitlines()
    return (rows[-1] if "Traceback" in seen.excerpt else rows[0])[:240] if rows else ""


# ---------------------------------------------------------------------------------------------- figures


def render_rows(results: Sequence[Reach]) -> Iterator[str]:
    """Yield a table of the classes by compiler, and the shares."""
    yield "| class | tvm | iree |"
    yield "| --- | --: | --: |"
    counts = Counter((one.group, _get_compiler(one)) for one in results)
    groups = sorted({one.group for one in results}, key=lambda g: (_rank(g), -sum(counts[g, c] for c in _COMPILERS)))
    for group in groups:
        yield f"| {group} | {counts[group, 'tvm']} | {counts[group, 'iree']} |"
    for compiler in (*_COMPILERS, ""):
        counted = [one for one in results if one.counts and compiler in (_get_compiler(one), "")]
        runs = sum(one.runs for one in counted)
        yield f"**{compiler or 'both'}**: {runs} of {len(counted)} run ({runs / max(1, len(counted)):.0%})"


_COMPILERS = ("tvm", "iree")


def _get_compiler(one: Reach) -> str:
    return one.name.partition("-")[0]


def _rank(group: str) -> int:
    return RUNS.index(group) if group in RUNS else 20 if group in LEFT_OUT else 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="names of reports, separated by commas")
    parser.add_argument("--json", type=Path, help="file for the result of each report")
    parser.add_argument("--read", action="store_true", help="extract only")
    chosen = parser.parse_args()
    only = set(filter(None, chosen.only.split(",")))
    paths = {path.stem: path for folder in chosen.folders for path in sorted(folder.glob("*-*.md"))}
    catalogue = open_local_catalogue()
    results: list[Reach] = []
    bench = None if chosen.read else open_local_workbench("auto", catalogue, Silent())
    for name, path in sorted(paths.items()):
        if only and name not in only:
            continue
        found = read_report(path)
        if isinstance(found, Repro) and bench is not None:
            with closing(bench.sessions):
                found = run_report(name, found, make_plan(found, catalogue, RunOptions()), bench, catalogue)
        one = found if isinstance(found, Reach) else Reach(name=name, group="extracted")
        results.append(one)
        sys.stderr.write(f"{one.name}: {one.group}: {one.detail}\n")
        if chosen.json is not None:
            chosen.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(render_rows(results)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
