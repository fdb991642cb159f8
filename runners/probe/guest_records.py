"""What the supervisor's records say, and what a script said of itself in them: bounded, checked, and never raising.

The supervisor is ours and out of the testcase's reach. The texts in its records are not: the streams, the lines that
``script.py`` leaves, the stacks. Whatever of them isn't exactly what was agreed on is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Literal

import msgspec

from runners.core.protocol import Frame, Hang, Phase, Raised, Record, Short, Text, Thread
from runners.core.toolchain.guest import GuestFacts

MAX_FRAMES = 24
MAX_LINES = 400
BUSY = 0.05
"""Share of a processor from which on a thread is computing rather than looking whether it may go on. Low, because on
a machine with much else to do a computation gets no more."""


class StepRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argv: tuple[str, ...]
    status: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    timed_out: bool
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    maxrss_bytes: int
    stdout: Text
    stderr: Text
    truncated: bool
    used_up: bool = False
    """Its first process alone had all the processor time that the probe may have: the kernel killed it."""
    forked: bool = False
    not_forked: Short = ""
    claims: Text = ""
    stacks: Text = ""
    last_words: Text = ""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=32)] = ()


class _Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pid: int
    python: str


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    probe_file: Text | None


class _SessionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    spent: Short


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One record: exactly one of these."""

    started: _Started | None = None
    step: StepRecord | None = None
    end: End | None = None
    session: _SessionWords | None = None
    error: Text | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """What the supervisor said. ``broken`` is why we stopped reading; ``spent`` why it takes no further job."""

    started: bool
    steps: tuple[StepRecord, ...]
    end: End | None
    error: str | None
    broken: str | None
    spent: str


def read_records(data: bytes) -> Records:
    """JSON lines up to the first that isn't a record; blank ones end an answer and say nothing."""
    started, steps, end, error, broken = False, [], None, None, None
    spent = "it ended without a word"
    for line in filter(None, data.splitlines()):
        try:
            record = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError) as reason:
            broken = str(reason)
            break
        started = started or record.started is not None
        if record.step is not None:
            steps.append(record.step)
        end, error = record.end or end, record.error or error
        spent = spent if record.session is None else record.session.spent
    return Records(started, tuple(steps), end, error, broken, spent)


# ------------------------------------------------------------------------------------------- a script's own words


class _RaisedLine(msgspec.Struct, frozen=True):
    type: str
    message: str = ""
    frames: list[tuple[str, int, str]] = []
    because: Literal["", "cause", "context"] = ""


class _ClaimLine(msgspec.Struct, frozen=True):
    at: float
    phase: Literal["compile", "run"] | None = None
    failed: list[_RaisedLine] | None = None
    ended: int | None = None
    warnings: list[tuple[str, str]] = []


def read_record(step: StepRecord, facts: GuestFacts, *, script: str) -> Record:
    """What is known of a step; ``script`` is the testcase's file that it runs, or empty."""
    phases: list[Phase] = []
    last = _ClaimLine(at=0.0)
    for line in _claims(step.claims):
        last = line
        if line.phase is not None:
            phases.append(Phase(name=line.phase, at=line.at))
    told = last.failed is not None or last.ended is not None
    return Record(
        chain=tuple(map(_raised, (last.failed or [])[:6])),
        warnings=tuple((kind[:200], text[:300]) for kind, text in last.warnings[:12]),
        phases=tuple(phases[:100]),
        seconds=last.at if told else None,
        hang=_hang(step, phases, facts, script) if step.timed_out else None,
        peak_bytes=step.maxrss_bytes,
        forked=step.forked,
        not_forked=step.not_forked,
    )


def _claims(text: str) -> Iterable[_ClaimLine]:
    for line in text.splitlines()[:MAX_LINES]:
        try:
            yield msgspec.json.decode(line, type=_ClaimLine)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue


def _raised(line: _RaisedLine) -> Raised:
    return Raised(
        type=line.type[:200],
        message=line.message[:2000],
        frames=tuple(Frame(file=file[:300], line=at, function=name[:200]) for file, at, name in line.frames[:30]),
        because=line.because,
    )


# ------------------------------------------------------------------------------------------- where it hangs

_PYTHON = re.compile(r'^ +File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,9}) in (?P<name>[^\n]{1,200})$', re.M)
_NATIVE = re.compile(
    r'^ +File "[^"\n]{0,300}", line \d{1,9}, in (?P<traceback>[^\n]{1,300})$'
    r"|^ *#\d{1,4} 0x[0-9a-f]{1,16} (?:in )?(?P<stack>[^\n]{1,300})$",
    re.M,
)
"""As handlers of fatal signals print them: like a traceback of Python's, or like LLVM."""
_OURS = re.compile(
    r'^ +File "[^"\n]{0,300}/runners/guest/(?:script/(?:run|zygote|record)|launch)\.py", line \d{1,9}'
    r"(?: in [^\n]{1,200}\n|, in [^\n]{1,200}\n(?:    [^\n]*\n)?(?: {4,}[~^]+ *\n)?)",
    re.M,
)
_TELLING = re.compile(r"::|\(|futex|poll|sleep|wait")
"""C++, or waiting: the functions of the interpreter are plain C, and in every stack."""
_CALLED_OUT = re.compile(r"^_?PyObject_(?:MakeTpCall|Vectorcall|Call)|vectorcall", re.I)
"""The interpreter's functions that call others: innermost only where what they called has no frames, as code that was
compiled in memory."""
_HANDLER = re.compile(r"^llvm::sys::(?:PrintStackTrace|RunSignalHandlers)|^SignalHandler\(")
_NO_PLACE = re.compile(r" ?\(/[^)\n]*\)$| \S+\.(?:cpp|cc|c|h|inc):\d+:\d+$")


def without_our_frames(text: str) -> str:
    """A stack or traceback without the frames of what runs the script: a plain run has none."""
    return _OURS.sub("", text)


def _hang(step: StepRecord, phases: list[Phase], facts: GuestFacts, script: str) -> Hang:
    frames = _python_frames(step.stacks) or _python_frames(step.last_words)
    names = _native_names(step.last_words)
    native = tuple(name for name, _ in groupby(names) if _TELLING.search(name))
    return Hang(
        doing=_doing(step.threads),
        place=_place(step, frames, names, phases, facts, script),
        frames=frames[:MAX_FRAMES],
        native=native[:MAX_FRAMES],
        threads=step.threads,
        seconds=step.seconds,
    )


def _native_names(text: str) -> list[str]:
    """Functions innermost first, without those that print the stack, and without files that say nothing."""
    names = [match["traceback"] or match["stack"] for match in _NATIVE.finditer(text)]
    bare = [_NO_PLACE.sub("", name).strip()[:200] for name in names]
    return [name for name in bare if name and not _HANDLER.search(name)]


def _python_frames(text: str) -> tuple[Frame, ...]:
    """Of the main thread, which is printed last, in the last stack that was printed."""
    _, found, dump = without_our_frames(text).rpartition("(most recent call first):")
    return (
        tuple(Frame(file=m["file"], line=int(m["line"]), function=m["name"]) for m in _PYTHON.finditer(dump))
        if found
        else ()
    )


def _doing(threads: tuple[Thread, ...]) -> Literal["computing", "waiting", "unknown"]:
    if not threads:
        return "unknown"
    return "computing" if any(thread.busy >= BUSY for thread in threads) else "waiting"


def _place(
    step: StepRecord,
    frames: tuple[Frame, ...],
    names: list[str],
    phases: list[Phase],
    facts: GuestFacts,
    script: str,
) -> Literal["testcase", "compiler", "compiled", "library", "unknown"]:
    program = step.argv[0].rpartition("/")[2] if step.argv else ""
    if program in facts.compilers:
        return "compiler"
    if program.startswith(facts.programs):
        return "compiled"
    compiling = next((at for at, frame in enumerate(frames) if _is_compiling(frame, facts)), None)
    own = next((at for at, frame in enumerate(frames) if script and frame.file.endswith(f"/{script}")), None)
    if compiling is not None or (phases and phases[-1].name == "compile"):
        # A pass of the testcase's own is called by the compiler, and is still the testcase's.
        return "testcase" if compiling is not None and own is not None and own < compiling else "compiler"
    if not frames:
        return "unknown"
    if own == 0:
        innermost = next((name for name in names if not name.startswith("0x")), "")
        return "compiled" if _CALLED_OUT.search(innermost) else "testcase"
    return "compiled" if phases else "library"


def _is_compiling(frame: Frame, facts: GuestFacts) -> bool:
    return any(part in frame.file for part in facts.compiling_files)
