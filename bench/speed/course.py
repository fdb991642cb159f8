"""One call of Reprobot, seen from outside: its lines of progress as bars, and the times of its events."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FIRST, VERDICT, COMMENT = "first answer", "verdict", "comment"
_RUN = re.compile(r"(?P<mark>\S+) \S+ (?P<run>\S+ on \S+?)(?P<variant> \([^)]+\))?: .*, (?P<s>[\d.]+) s$")
_STAGE = re.compile(r"(?P<stage>[a-z][a-z ]+) …$")

Line = tuple[float, str]
"""Seconds since the start, and the text."""


class CallFailed(Exception):
    """A call failed, or ended in another way than the others. The message says how."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage or a run, in seconds since the start."""

    name: str
    begin: float
    end: float
    as_posted: bool = False
    """True for a run of the testcase as posted."""


@dataclass(frozen=True, slots=True)
class Course:
    """One call of ``reprobot reproduce``."""

    bars: tuple[Bar, ...]
    seconds: float

    @property
    def times(self) -> dict[str, float]:
        posted = [bar.end for bar in self.bars if bar.as_posted]
        return {FIRST: min(posted), VERDICT: max(posted), COMMENT: self.seconds}


def run_command(
    checkout: Path, words: Sequence[str], *, prefix: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> tuple[list[Line], float]:
    """Run a command of Reprobot to its end. Return its lines of progress, and its seconds.

    ``prefix`` are words before the command, such as those of ``taskset``. ``more`` adds variables.

    Raises:
        CallFailed: the command failed.
    """
    began = time.monotonic()
    # An installed package has byte code. A checkout gets it from its first call, if the shell does not forbid that.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [*prefix, sys.executable, "-m", "bot", *words],
        cwd=checkout,
        env={**variables, **(more or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        lines = [(time.monotonic() - began, line.strip()) for line in process.stderr]
    seconds = time.monotonic() - began
    if process.returncode:
        raise CallFailed("\n".join(line for _, line in lines[-5:]))
    return lines, seconds


def read_bars(lines: Sequence[Line], seconds: float) -> Iterator[Bar]:
    """Yield the stages, each up to the next, and the runs, which are reported at their ends."""
    begun = [(at, found["stage"]) for at, line in lines if (found := _STAGE.match(line))]
    yield Bar("start", 0.0, begun[0][0] if begun else seconds)
    for (at, stage), (after, _) in zip(begun, [*begun[1:], (seconds, "")], strict=bool(begun)):
        yield Bar(stage, at, after)
    for at, line in lines:
        if (found := _RUN.match(line)) is not None:
            name = f"{found['mark']} {found['run']}{found['variant'] or ''}"
            yield Bar(name, at - float(found["s"]), at, as_posted=found["variant"] is None)


def list_bars(course: Course, path: Path, number: int, checkout: Path) -> Iterator[str]:
    """Yield a line of JSON for each bar of the course. ``number`` is that of the round."""
    for bar in course.bars:
        row: dict[str, object] = {
            "checkout": checkout.name,
            "round": number,
            "issue": path.stem,
            "name": bar.name,
            "begin": bar.begin,
            "end": bar.end,
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def list_endings(observations: Sequence[Mapping[str, object]], device: str) -> dict[str, set[int]]:
    """Return release → the exit codes of the runs of the testcase as posted. A signal counts as a shell tells it."""
    found: dict[str, set[int]] = {}
    for seen in observations:
        ended = seen["ended"]
        assert isinstance(ended, dict)
        if seen["variant"] == "original" and seen["device"] == device and ended["code"] is not None:
            code = -ended["code"] if ended["kind"] == "signalled" else ended["code"]
            found.setdefault(str(seen["version"]), set()).add(code % 256)
    return found
