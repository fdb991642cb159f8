"""Detection, false alarms and cost of the diagnosers: ``python bench/diagnosers.py [iree | iree-valid | VERSION…]``.

``iree`` sends the programs of tests/runners/guest/iree_faults.py and iree_fresh.py through whole investigations.
``iree-valid`` asks every diagnoser of IREE's about each program of iree_valid.py, as if a report said that what it
prints is wrong, and compares its dispatches between devices and between releases.

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
from tests.runners.guest import iree_faults, iree_fresh, iree_search, iree_valid
from tests.runners.guest.guilty import faulty
from tests.runners.guest.sweep import EXPECTED, Ran, programs, run_all
from tests.runners.guest.test_bisect_tvm import search

VERSIONS = ("0.25.0", "0.26.0", "0.27.0")
GROUPS = (*EXPECTED, "valid")
RELEASES = ((("3.13.0", "llvm-cpu"), ("3.5.0", "llvm-cpu")), (("3.5.0", "llvm-cpu"), ("2.9.0", "llvm-cpu")))
"""Between which a valid program is compared, dispatch by dispatch, beside its two devices on each release."""


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
    """The table of IREE's: what was found of each faulty program."""
    bench = open_workbench("auto", load_catalogue(), Silent())
    right: dict[str, list[tuple[bool, float]]] = {}
    for title, faults in (("iree_faults", iree_faults.faults()), ("iree_fresh", iree_fresh.faults())):
        say(f"\n{title}\n\n| program | release | label | how known | shown | found | right | seconds |")
        say("|---|---|---|---|---|---|---|---|")
        for fault in faults:
            sought = iree_search.seek(bench, fault)
            right.setdefault(f"{title}, {fault.level}", []).append((sought.right(fault), sought.seconds))
            names = "; ".join(f"{one.evidence.get('level')}: {one.evidence['name']}" for one in sought.findings)
            label = f"{fault.level}: {fault.name or 'a pass'}"
            marks = ["yes" if mark else "**no**" for mark in (sought.shown, sought.right(fault))]
            say(f"| {fault.title} | {fault.version} | {label} | {fault.known} | {marks[0]} | {names} | {marks[1]}"
                f" | {sought.seconds:.1f} |")  # fmt: skip
    say("\n| set, level | programs | named as labelled | seconds, median (worst) |\n|---|---|---|---|")
    for level, runs in right.items():
        seconds = [one for _, one in runs]
        named = sum(mark for mark, _ in runs)
        say(f"| {level} | {len(runs)} | {named} | {median(seconds):.1f} ({max(seconds):.1f}) |")
    every = [mark for runs in right.values() for mark, _ in runs]
    say(f"\n{sum(every)} of {len(every)} named as labelled.")
    return int(not all(every))


def iree_nothing_at_fault() -> int:
    """The table of IREE's valid programs: on how many each diagnoser could look, and what it should not have said."""
    bench = open_workbench("auto", load_catalogue(), Silent())
    programs = list(iree_valid.valid())
    complaints: list[str] = []
    say("| release | diagnoser | valid programs | looked at | false alarms | seconds, median (worst) |")
    say("|---|---|---|---|---|---|")
    for version in iree_search.VALID_ON:
        asked = {title: iree_search.ask(bench, testcase, version) for title, testcase in programs}
        for name in next(iter(asked.values())):
            found = {title: one[name] for title, one in asked.items() if name in one and one[name].said is not None}
            complaints += [f"{version} {title}: {name}: {one.said}" for title, one in found.items() if one.said]
            seconds = [one.seconds for one in found.values()]
            alarms = sum(bool(one.said) for one in found.values())
            say(f"| {version} | {name} | {len(programs)} | {len(found)} | {alarms}"
                f" | {median(seconds):.1f} ({max(seconds):.1f}) |")  # fmt: skip
            silent = sorted(set(asked) - set(found))
            complaints += [f"({version}: {name} could not look at: {', '.join(silent)})"] if silent else []
    for one, other in RELEASES:
        compared = {title: iree_search.alarms(bench, testcase, one, other) for title, testcase in programs}
        ran = [alarms for alarms in compared.values() if alarms is not None]
        complaints += [f"{one} {other} {title}: {alarms}" for title, alarms in compared.items() if alarms]
        say(f"| {one[0]} and {other[0]} | dispatch | {len(programs)} | {len(ran)} | {sum(map(bool, ran))} | |")
    say("\n" + "\n".join(complaints))
    return int(any(not text.startswith("(") for text in complaints))


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
    match sys.argv[1:]:
        case ["iree"]:
            sys.exit(iree())
        case ["iree-valid"]:
            sys.exit(iree_nothing_at_fault())
        case versions:
            sys.exit(main(tuple(versions) or VERSIONS))
