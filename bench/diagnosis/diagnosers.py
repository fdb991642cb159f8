"""Detection, false alarms and cost of the diagnosers: ``python bench/diagnosis/diagnosers.py [PART…] [VERSION…]``.

Parts, those of TVM where none is named:

- ``findings``: every program under tests/runners/guest/programs plain and instrumented, with every diagnoser at once;
- ``fills``: those that read what they never wrote with that memory filled, by each of four constants;
- ``guilty``: the sixteen programs of tests/runners/guest/tvm/guilty.py, each with one planted pass, through the
  search for it; and the valid ones with an assertion of their own that no pass has a part in, where it must
  name none;
- ``cost``: every third valid program with each diagnoser alone, and with all of them;
- ``iree``: the programs of tests/runners/guest/iree/faults.py, fresh.py and iree_written.py through whole
  investigations;
- ``iree-valid``: every diagnoser of IREE's about each program of iree_valid.py, as if a report said that what it
  prints is wrong;
- ``iree-dispatches``: the dispatches of each of these compared between devices and between releases.

For TVM cost is the ratio of the times instrumented and plain, without the import of TVM, which both share; with it,
it is nearer to 1. For a search and for IREE it is the time that the diagnoser takes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from runners.core.findings.record import read_evidence
from runners.core.findings.types import PassEvidence, UnwrittenEvidence
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Finding
from runners.toolchains.iree.diagnosis.dispatch_traces import Trace
from runners.workbench import Workbench, open_workbench
from tests.runners.guest.iree import (
    faults as iree_faults,
    fresh as iree_fresh,
    search as iree_search,
    valid as iree_valid,
    written as iree_written,
)
from tests.runners.guest.tvm.guilty import make_faulty
from tests.runners.guest.tvm.sweep import (
    EXPECTED,
    FILLS,
    MODES,
    PROGRAMS,
    ProgramRun,
    filled_alike,
    labelled_buffer,
    programs,
    run_all,
)
from tests.runners.guest.tvm.test_pass_bisect import bisect_program

VERSIONS = ("0.25.0", "0.26.0", "0.27.0")
GROUPS = (*EXPECTED, "valid", "written")
PAIRS = (
    (("3.5.0", "llvm-cpu"), ("2.9.0", "llvm-cpu")),
    (("3.13.0", "llvm-cpu"), ("3.5.0", "llvm-cpu")),
    (("3.13.0", "llvm-cpu"), ("3.13.0", "vmvx")),
    (("3.5.0", "llvm-cpu"), ("3.5.0", "vmvx")),
    (("2.9.0", "llvm-cpu"), ("2.9.0", "vmvx")),
)
"""Between which a valid program is compared, dispatch by dispatch."""


def findings(versions: Sequence[str]) -> list[str]:
    """The table of the instrumentation's diagnosers; in words, what it missed or invented."""
    complaints: list[str] = []
    say("| release | programs | diagnosed | false alarms | outcome changed | cost, median (worst) |")
    say("|---|---|---|---|---|---|")
    for version in versions:
        for group in GROUPS:
            names = programs(group)
            plain, seen = run_all(version, names, "plain"), run_all(version, names)
            say(row(version, group, plain, seen))
            complaints += [
                text for before, after in zip(plain, seen, strict=True) for text in wrong(version, before, after)
            ]
    return complaints


def guilty(versions: Sequence[str]) -> list[str]:
    """The table of the search for a pass; in words, what it missed or invented."""
    complaints: list[str] = []
    say("\n| release | programs | a pass named | no pass to blame | nothing said | seconds, median (worst) |")
    say("|---|---|---|---|---|---|")
    for version in versions:
        searched = {name: sought(program, version) for name, (program, _, _) in make_faulty().items()}
        say(guilty_row(version, "with a planted pass", searched))
        for name, (_, planted, _) in make_faulty().items():
            found, _ = searched[name]
            if found is None or found["pass"] != planted:
                complaints.append(f"{version} {name}: {found and found['pass']!r}")
        searched = {name: sought(innocent(name), version) for name in programs("valid")}
        say(guilty_row(version, "that no pass has a part in", searched))
        complaints += [f"{version} {name}: {found['pass']}" for name, (found, _) in searched.items() if blames(found)]
    return complaints


def innocent(name: str) -> str:
    """A valid program that then fails by itself."""
    return (PROGRAMS / f"{name}.repro").read_text() + "\nassert len(__name__) == 1, 'the testcase is wrong'\n"


Sought = tuple[dict[str, Any] | None, float]


def sought(program: str, version: str) -> Sought:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        return bisect_program(program, version, Path(folder)), time.monotonic() - began


def blames(found: dict[str, Any] | None) -> bool:
    return found is not None and found["application"] > 0


def guilty_row(version: str, what: str, searched: Mapping[str, Sought]) -> str:
    named = sum(blames(found) for found, _ in searched.values())
    silent = sum(found is None for found, _ in searched.values())
    seconds = [one for _, one in searched.values()]
    none = len(searched) - named - silent
    cost = f"{median(seconds):.1f} ({max(seconds):.1f})"
    return f"| {version} | {len(searched)} {what} | {named} | {none} | {silent} | {cost} |"


EVERY, AT_ONCE = 3, 6
"""Every third valid program is enough for a ratio. All ways take turns, a few programs at once, so that a machine
that becomes slower does not look like a diagnoser that is."""


def cost(versions: Sequence[str]) -> list[str]:
    """The table of what each diagnoser of the instrumentation costs on valid programs."""
    say("\n| release | diagnoser | valid programs | × plain, median (worst) |\n|---|---|---|---|")
    names = programs("valid")[::EVERY]
    ways = ("plain", *MODES.split(","), MODES)
    for version in versions:
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for begin in range(0, len(names), AT_ONCE):
            for way in ways:
                ran = run_all(version, names[begin : begin + AT_ONCE], way)
                seconds[way] += [one.seconds for one in ran]
        for way in ways[1:]:
            ratios = [b / a for a, b in zip(seconds["plain"], seconds[way], strict=True)]
            say(f"| {version} | {way} | {len(names)} | {median(ratios):.2f} ({max(ratios):.2f}) |")
    return []


def iree() -> int:
    """The table of IREE's: what was found of each faulty program."""
    bench = open_workbench("auto", load_catalogue(), Silent())
    right: dict[str, list[tuple[bool, float]]] = {}
    for module in (iree_faults, iree_fresh, iree_written):
        title, faults = module.__name__.rpartition(".")[2], module.list_faults()
        say(f"\n{title}\n\n| program | release | label | how known | shown | found | right | seconds |")
        say("|---|---|---|---|---|---|---|---|")
        for fault in faults:
            sought = iree_search.search_fault(bench, fault)
            right.setdefault(f"{title}, {fault.level}", []).append((sought.is_right(fault), sought.seconds))
            known = [one for one in map(read_evidence, sought.findings) if isinstance(one, PassEvidence)]
            names = "; ".join(f"{one.level}: {one.name}" for one in known)
            label = f"{fault.level}: {fault.name or 'a pass'}"
            marks = ["yes" if mark else "**no**" for mark in (sought.shown, sought.is_right(fault))]
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
    programs = list(iree_valid.list_valid_programs())
    complaints: list[str] = []
    say("| release | diagnoser | valid programs | looked at | false alarms | seconds, median (worst) |")
    say("|---|---|---|---|---|---|")
    for version in iree_search.VALID_ON:
        asked = {title: iree_search.ask_diagnosers(bench, testcase, version) for title, testcase in programs}
        for name in next(iter(asked.values())):
            found = {title: one[name] for title, one in asked.items() if name in one and one[name].said is not None}
            complaints += [f"{version} {title}: {name}: {one.said}" for title, one in found.items() if one.said]
            seconds = [one.seconds for one in found.values()]
            alarms = sum(bool(one.said) for one in found.values())
            say(f"| {version} | {name} | {len(programs)} | {len(found)} | {alarms}"
                f" | {median(seconds):.1f} ({max(seconds):.1f}) |")  # fmt: skip
            silent = sorted(set(asked) - set(found))
            complaints += [f"({version}: {name} could not look at: {', '.join(silent)})"] if silent else []
    say("\n" + "\n".join(complaints))
    return int(any(not text.startswith("(") for text in complaints))


def traced(bench: Workbench, side: tuple[str, str]) -> tuple[dict[str, Trace | None], list[float]]:
    """Each valid program's trace on one release and device, and the seconds that each took."""
    found, seconds = {}, []
    for title, testcase in iree_valid.list_valid_programs():
        began = time.monotonic()
        found[title] = iree_search.trace_testcase(bench, testcase, *side)
        seconds.append(time.monotonic() - began)
    return found, seconds


def iree_dispatches() -> int:
    """The table of IREE's valid programs compared with themselves: how many could be, and which part all the same."""
    bench = open_workbench("auto", load_catalogue(), Silent())
    traces: dict[tuple[str, str], dict[str, Trace | None]] = {}
    complaints: list[str] = []
    say("| compared | valid programs | looked at | false alarms | seconds for one more side, median (worst) |")
    say("|---|---|---|---|---|")
    for one, other in PAIRS:
        seconds = []
        for side in (one, other):
            if side not in traces:
                traces[side], seconds = traced(bench, side)
        compared = {
            title: iree_search.compare_traces(found, traces[other][title]) for title, found in traces[one].items()
        }
        looked = sum(found is not None for found in compared.values())
        alarms = {title: found for title, found in compared.items() if found}
        complaints += [f"{one} {other} {title}: {part.dispatch.name}" for title, (part,) in alarms.items()]
        say(f"| {' on '.join(one)}, {' on '.join(other)} | {len(compared)} | {looked} | {len(alarms)}"
            f" | {median(seconds):.1f} ({max(seconds):.1f}) |")  # fmt: skip
    say("\n" + ("\n".join(complaints) or "Nothing invented."))
    return int(bool(complaints))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def row(version: str, group: str, plain: tuple[ProgramRun, ...], seen: tuple[ProgramRun, ...]) -> str:
    wanted = EXPECTED.get(group)
    right = sum(wanted in ran.kinds for ran in seen) if wanted else 0
    alarms = sum(bool(ran.kinds - allowed(ran.program)) for ran in seen)
    changed = sum(_ended(a) != _ended(b) for a, b in zip(plain, seen, strict=True))
    ratios = [b.seconds / a.seconds for a, b in zip(plain, seen, strict=True)]
    diagnosed = f"{right} of {len(seen)}" if wanted else "–"
    cost = f"{median(ratios):.2f} ({max(ratios):.2f})"
    return f"| {version} | {len(seen)} {group} | {diagnosed} | {alarms} | {changed if not wanted else '–'} | {cost} |"


def allowed(program: str) -> set[str]:
    """Findings that are true of a program: its group's."""
    wanted = EXPECTED.get(program.split("/")[0])
    return {wanted} if wanted else set()


def wrong(version: str, plain: ProgramRun, seen: ProgramRun) -> list[str]:
    """What a run should not have shown, in words."""
    wanted = EXPECTED.get(seen.program.split("/")[0])
    texts = []
    if wanted and wanted not in seen.kinds:
        texts.append(f"{version} {seen.program}: missed {wanted}: {seen.claims or seen.stderr[-300:]}")
    for finding in seen.findings:
        if str(finding.kind) not in allowed(seen.program):
            texts.append(f"{version} {seen.program}: false {finding.kind}: {finding.summary}")
    if not wanted and _ended(plain) != _ended(seen):
        texts.append(
            f"{version} {seen.program}: outcome changed from {plain.code} to {seen.code}: {seen.stderr[-300:]}"
        )
    return texts


def _ended(ran: ProgramRun) -> tuple[int, str]:
    """What must not change under the instrumentation; a program that is broken on purpose prints what it finds."""
    return ran.code, "" if ran.program.startswith("written/") and ran.code else ran.stdout


def _list_buffers(findings: Sequence[Finding]) -> set[str | None]:
    return {one.buffer for one in map(read_evidence, findings) if isinstance(one, UnwrittenEvidence)}


def fills(versions: Sequence[str]) -> list[str]:
    """The table of what the programs that read unwritten memory do when it is filled; in words, those undecided."""
    complaints: list[str] = []
    say("\n| release | programs | buffer named as labelled | follows the constant | seconds, median |")
    say("|---|---|---|---|---|")
    for version in versions:
        names = programs("unwritten")
        claimed = {ran.program: ran.findings for ran in run_all(version, names, "unwritten")}
        named = {name for name in names if labelled_buffer(name) in _list_buffers(claimed[name])}
        ended = {fill: {ran.program: ran for ran in filled_alike(version, names, fill)} for fill in FILLS}
        codes = {name: {ran[name].code for ran in ended.values()} for name in names}
        decided = {name for name in names if 0 in codes[name] and len(codes[name]) > 1}
        seconds = median(ran[name].seconds for ran in ended.values() for name in names)
        say(f"| {version} | {len(names)} | {len(named)} | {len(decided)} | {seconds:.2f} each |")
        complaints += [
            f"{version} {name}: {claimed[name]}, {codes[name]}" for name in names if name not in named & decided
        ]
    return complaints


TVM: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "findings": findings,
    "fills": fills,
    "guilty": guilty,
    "cost": cost,
}
IREE: dict[str, Callable[[], int]] = {
    "iree": iree,
    "iree-valid": iree_nothing_at_fault,
    "iree-dispatches": iree_dispatches,
}


def main(words: Sequence[str]) -> int:
    """1 where something was missed or invented."""
    versions = [word for word in words if word[0].isdigit()] or VERSIONS
    parts = [word for word in words if not word[0].isdigit()]
    if unknown := set(parts) - {*TVM, *IREE}:
        say(f"{', '.join(sorted(unknown))}: no part; there are {', '.join([*TVM, *IREE])}")
        return 2
    failed = [IREE[part]() for part in parts if part in IREE]
    complaints = [text for part in (parts or TVM) if part in TVM for text in TVM[part](versions)]
    if not failed:
        say("\n" + ("\n".join(complaints) or "Nothing missed, nothing invented."))
    return int(any(failed) or bool(complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
