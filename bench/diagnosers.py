"""Detection, false alarms and cost of the diagnosers: ``python bench/diagnosers.py [iree | VERSION…]``.

``iree`` sends the programs of tests/runners/guest/iree_faults.py through whole investigations, and its valid ones
through the comparison of dispatches, between devices and between releases.

Every program under tests/runners/guest/programs is run plain and instrumented, with every diagnoser at once. Cost is
the ratio of their times without the import of TVM, which both share; with it, it is nearer to 1. The sixteen programs
of tests/runners/guest/guilty.py, each with one planted pass, go through the search for it; there the time is the
whole search's.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runners.catalogue import load_catalogue
from runners.progress import Silent
from runners.workbench import open_workbench
from tests.runners.guest import iree_faults, iree_search
from tests.runners.guest.guilty import faulty
from tests.runners.guest.sweep import EXPECTED, Ran, programs, run_all
from tests.runners.guest.test_bisect_tvm import search

VERSIONS = ("0.25.0", "0.26.0", "0.27.0")
GROUPS = (*EXPECTED, "valid")
PAIRS = (
    (("3.13.0", "llvm-cpu"), ("3.13.0", "vmvx")),
    (("3.5.0", "llvm-cpu"), ("3.5.0", "vmvx")),
    (("3.13.0", "llvm-cpu"), ("3.4.0", "llvm-cpu")),
    (("3.9.0", "llvm-cpu"), ("2.9.0", "llvm-cpu")),
)
"""Between which a valid program is compared, dispatch by dispatch."""


def main(versions: tuple[str, ...]) -> int:
    worst = 0
    say("| release | programs | diagnosed | false alarms | outcome changed | cost, median (worst) |")
    say("|---|---|---|---|---|---|")
    complaints: list[str] = []
    for version in versions:
        for group in GROUPS:
            names = programs(group)
            plain, seen = run_all(version, names, "plain"), run_all(version, names)
            say(row(version, group, plain, seen))
            complaints += [
                text for before, after in zip(plain, seen, strict=True) for text in wrong(version, before, after)
            ]
            worst = max(worst, len(complaints))
    say("\n| release | planted passes | found | seconds, median (worst) |")
    say("|---|---|---|---|")
    for version in versions:
        found, seconds, missed = guilty(version)
        complaints += missed
        say(f"| {version} | {len(seconds)} | {found} | {median(seconds):.1f} ({max(seconds):.1f}) |")
        worst = max(worst, len(complaints))
    say("\n" + ("\n".join(complaints) or "Nothing missed, nothing invented."))
    return int(worst > 0)


def guilty(version: str) -> tuple[int, list[float], list[str]]:
    """How many planted passes the search named, what each search took in seconds, and the ones it missed."""
    seconds, missed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, (program, planted, _) in faulty().items():
            began = time.monotonic()
            found = search(program, version, Path(folder))
            seconds.append(time.monotonic() - began)
            if found is None or found["pass"] != planted:
                missed.append(f"{version}: {name}: {found and found['pass']!r}")
    return len(seconds) - len(missed), seconds, missed


def iree() -> int:
    """The table of IREE's: what was found of each faulty program, and the false alarms of the valid ones."""
    bench = open_workbench("auto", load_catalogue(), Silent())
    say("| program | release | label | how known | shown | found | right | seconds |")
    say("|---|---|---|---|---|---|---|---|")
    right = []
    for fault in iree_faults.faults():
        sought = iree_search.seek(bench, fault)
        right.append(sought.right(fault))
        names = "; ".join(f"{one.evidence.get('level')}: {one.evidence['name']}" for one in sought.findings)
        label = f"{fault.level}: {fault.name or 'a pass'}"
        marks = ["yes" if mark else "**no**" for mark in (sought.shown, right[-1])]
        say(f"| {fault.title} | {fault.version} | {label} | {fault.known} | {marks[0]} | {names} | {marks[1]}"
            f" | {sought.seconds:.1f} |")  # fmt: skip
    say(f"\n{sum(right)} of {len(right)} named as labelled.\n")
    say("| compared | valid programs | ran on both | false alarms |")
    say("|---|---|---|---|")
    invented = 0
    for one, other in PAIRS:
        found = [iree_search.alarms(bench, testcase, one, other) for _, testcase in iree_faults.valid()]
        ran = [alarms for alarms in found if alarms is not None]
        invented += sum(map(bool, ran))
        say(f"| {' on '.join(one)}, {' on '.join(other)} | {len(found)} | {len(ran)} | {sum(map(bool, ran))} |")
    return int(not all(right) or invented > 0)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def row(version: str, group: str, plain: tuple[Ran, ...], seen: tuple[Ran, ...]) -> str:
    wanted = EXPECTED.get(group)
    right = sum(wanted in ran.kinds for ran in seen) if wanted else 0
    alarms = sum(bool(ran.kinds - allowed(ran.program)) for ran in seen)
    changed = sum(a.code != b.code or a.stdout != b.stdout for a, b in zip(plain, seen, strict=True))
    ratios = [b.seconds / a.seconds for a, b in zip(plain, seen, strict=True)]
    diagnosed = f"{right} of {len(seen)}" if wanted else "–"
    cost = f"{median(ratios):.2f} ({max(ratios):.2f})"
    return f"| {version} | {len(seen)} {group} | {diagnosed} | {alarms} | {changed if not wanted else '–'} | {cost} |"


def allowed(program: str) -> set[str]:
    """Findings that are true of a program: its group's, and a second change by a pass that changes its input."""
    wanted = EXPECTED.get(program.split("/")[0])
    return {wanted, "not-idempotent"} if wanted == "input-mutated" else {wanted} if wanted else set()


def wrong(version: str, plain: Ran, seen: Ran) -> list[str]:
    """What a run should not have shown, in words."""
    wanted = EXPECTED.get(seen.program.split("/")[0])
    texts = []
    if wanted and wanted not in seen.kinds:
        texts.append(f"{version} {seen.program}: missed {wanted}: {seen.claims or seen.stderr[-300:]}")
    for finding in seen.findings:
        if str(finding.kind) not in allowed(seen.program):
            texts.append(f"{version} {seen.program}: false {finding.kind}: {finding.summary}")
    if not wanted and (plain.code, plain.stdout) != (seen.code, seen.stdout):
        texts.append(
            f"{version} {seen.program}: outcome changed from {plain.code} to {seen.code}: {seen.stderr[-300:]}"
        )
    return texts


if __name__ == "__main__":
    sys.exit(iree() if sys.argv[1:] == ["iree"] else main(tuple(sys.argv[1:]) or VERSIONS))
