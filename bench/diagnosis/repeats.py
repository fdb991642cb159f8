"""Who is nondeterministic, and why: ``python -m bench.diagnosis.repeats [VERSION…]``.

Every program of tests/runners/guest/programs is repeated under chosen conditions
(``runners/diagnosis/nondeterminism.py``), after two runs as in a search. Those of ``nondeterministic`` must get their
cause; those of ``valid`` must raise no alarm.
"""

from __future__ import annotations

import sys
import time
from statistics import median

from tests.runners.guest.tvm.sweep import programs
from tests.runners.guest.tvm.vary import open_reruns

VERSIONS = ("0.25.0", "0.27.0")


def main(versions: tuple[str, ...]) -> int:
    """1 when something was missed or invented."""
    complaints: list[str] = []
    sys.stdout.write(
        "| release | programs | right | runs, median (most) | seconds, median |\n|---|---|---|---|---|\n"
    )
    for version in versions:
        with open_reruns(version) as repeated:
            for group in ("nondeterministic", "valid"):
                right, runs, seconds = 0, [], []
                for name in programs(group):
                    began = time.monotonic()
                    found = repeated(name)
                    seconds.append(time.monotonic() - began)
                    runs.append(len(found.runs))
                    right += found.cause == expected(name)
                    if found.cause != expected(name):
                        complaints.append(f"{version} {name}: {found.cause}, not {expected(name)}")
                row = f"{right} of {len(runs)} | {median(runs):g} ({max(runs)}) | {median(seconds):.1f}"
                sys.stdout.write(f"| {version} | {group} | {row} |\n")
                sys.stdout.flush()
    sys.stdout.write("\n" + ("\n".join(complaints) or "Nothing missed, nothing invented.") + "\n")
    return int(bool(complaints))


def expected(program: str) -> str | None:
    group, _, name = program.partition("/")
    if group == "valid":
        return None
    return "randomness" if name.startswith("random_") else "memory"


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or VERSIONS))
