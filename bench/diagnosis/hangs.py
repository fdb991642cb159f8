"""Where programs hang, against labels: ``python -m bench.diagnosis.hangs [--no-valid] [TVM-VERSION…]``.

Every program of tests/runners/guest/script/hangs.py is stopped when its time is up: what its threads did and whose
code it was in must be as labelled. Programs that end in time, the valid ones of the other studies among them, must
leave no word of a hang. The cost is what is spent beyond the time limit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median

from runners.core.protocol import Exited, Testcase, TimedOut
from tests.runners.guest.script import hangs
from tests.runners.guest.tvm import sweep

TVM = ("0.25.0", "0.26.0", "0.27.0")
IREE = ("2.9.0", "3.5.0", "3.13.0")
LIMIT_S = 8.0
PATIENT_S = 60.0
"""For programs that end by themselves."""


def main(arguments: list[str]) -> int:
    versions = tuple(word for word in arguments if not word.startswith("--")) or TVM
    complaints: list[str] = []
    say("| release | programs that hang | told as labelled | seconds beyond the limit, median (worst) |")
    say("|---|---|---|---|")
    for version in (*versions, *IREE):
        complaints += hanging(version)
    if "--no-valid" not in arguments:
        say("\n| release | programs that end | called a hang |\n|---|---|---|")
        for version in versions:
            complaints += ending(version)
    say("\n" + ("\n".join(complaints) or "Nothing told wrongly."))
    return int(bool(complaints))


def hanging(version: str) -> list[str]:
    """A row of the first table; what was told otherwise than labelled, in words."""
    wrong, beyond, told = [], [], 0
    for title, testcase, label in labelled(version):
        probe = hangs.run_until_stopped(testcase, version, wall_s=LIMIT_S)
        found = hangs.find_hang(probe)
        seen = (found.doing, found.place) if found is not None and isinstance(probe.ended, TimedOut) else None
        told += seen == label
        beyond.append(probe.seconds - LIMIT_S)
        if seen != label:
            wrong.append(f"{version} {title}: {seen or probe.ended}, not {label}: {found and found.frames[:2]}")
    say(f"| {version} | {len(beyond)} | {told} | {median(beyond):.1f} ({max(beyond):.1f}) |")
    return wrong


def labelled(version: str) -> Iterator[tuple[str, Testcase, hangs.Label]]:
    if version in IREE:
        yield from hangs.list_iree_programs()
        return
    for name, label in hangs.TVM.items():
        yield name, hangs.read_tvm_program(f"hang/{name}"), label


def ending(version: str) -> list[str]:
    """A row of the second table; whom it calls a hang, in words."""
    programs = [
        *((title, testcase, LIMIT_S) for title, testcase in hangs.list_slow_programs()),
        *((name, hangs.read_tvm_program(name), PATIENT_S) for name in sweep.programs("valid")),
    ]
    wrong = []
    for title, testcase, limit in programs:
        probe = hangs.run_until_stopped(testcase, version, wall_s=limit)
        if probe.ended != Exited(code=0) or hangs.find_hang(probe) is not None:
            wrong.append(f"{version} {title}: {probe.ended}")
    say(f"| {version} | {len(programs)} | {len(wrong)} |")
    return wrong


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
