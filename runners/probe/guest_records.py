"""Read the supervisor's records, and the claims of a script in them. Never raise because of their content.

The testcase cannot change the supervisor's records, but it can forge the texts in them: the streams, the lines that
``runners/guest/script/`` writes, the stacks. Texts are limited in size, and a line that does not match its schema is
dropped.
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
"""Share of a processor from which a thread counts as computing. Below it, the thread polls or waits. The value is
low, because a computation gets no more on an overloaded machine."""


class StepRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argv: tuple[str, ...]
    status: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    timed_out: bool
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    maxrss_bytes: int
    stdout: Text
    stderr: Text
    truncated: bool
    filtered: Text | None = None
    """What the filters of the step leave of its output. None without filters, or if that is too long."""
    used_up: bool = False
    """True if the kernel killed the step's first process because the whole probe used up its processor time."""
    forked: bool = False
    not_forked: Short = ""
    claims: Text = ""
    stacks: Text = ""
    last_words: Text = ""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=32)] = ()


class _StartRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pid: int
    python: str


class EndRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    probe_file: Annotated[str, msgspec.Meta(max_length=160 * 1024)] | None
    """Longer than other texts, because the arguments and results of calls may have thousands of elements."""


class _SessionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    spent: Short


class _RecordLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the supervisor. Exactly one field is set."""

    started: _StartRecord | None = None
    step: StepRecord | None = None
    end: EndRecord | None = None
    session: _SessionRecord | None = None
    error: Text | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """All records of a supervisor. ``broken``: why reading stopped. ``spent``: why no further job is accepted."""

    started: bool
    steps: tuple[StepRecord, ...]
    end: EndRecord | None
    error: str | None
    broken: str | None
    spent: str


_RECORD_LINES = msgspec.json.Decoder(_RecordLine)
"""Made at import: msgspec 0.22 ends the process if two threads are the first to use a type."""


def read_records(data: bytes) -> Records:
    """Read JSON lines up to the first that is not a record. A blank line ends an answer and is skipped."""
    started, steps, end, error, broken = False, [], None, None, None
    spent = "it ended without a word"
    for line in filter(None, data.splitlines()):
        try:
            record = _RECORD_LINES.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as reason:
            if end is None:
                broken = str(reason)
            break  # after the end of the probe, a broken line does not affect the probe: the session is spent
        started = started or record.started is not None
        if record.step is not None:
            steps.append(record.step)
        end, error = record.end or end, record.error or error
        spent = spent if record.session is None else record.session.spent
    return Records(started, tuple(steps), end, error, broken, spent)


# ------------------------------------------------------------------------------------------- a script's claims


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


def build_record(step: StepRecord, facts: GuestFacts, *, script: str) -> Record:
    """Build the record of a step. ``script`` is the testcase's file that the step runs. Empty without one."""
    phases: list[Phase] = []
    last = _ClaimLine(at=0.0)
    for line in _read_claims(step.claims):
        last = line
        if line.phase is not None:
            phases.append(Phase(name=line.phase, at=line.at))
    is_complete = last.failed is not None or last.ended is not None
    return Record(
        chain=tuple(map(_build_raised, (last.failed or [])[:6])),
        warnings=tuple((kind[:200], text[:300]) for kind, text in last.warnings[:12]),
        phases=tuple(phases[:100]),
        seconds=last.at if is_complete else None,
        hang=_build_hang(step, phases, facts, script) if step.timed_out else None,
        peak_bytes=step.maxrss_bytes,
        forked=step.forked,
        not_forked=step.not_forked,
    )


_CLAIM_LINES = msgspec.json.Decoder(_ClaimLine)


def _read_claims(text: str) -> Iterable[_ClaimLine]:
    for line in text.splitlines()[:MAX_LINES]:
        try:
            yield _CLAIM_LINES.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue


def _build_raised(line: _RaisedLine) -> Raised:
    return Raised(
        type=line.type[:200],
        message=line.message[:2000],
        frames=tuple(Frame(file=file[:300], line=at, function=name[:200]) for file, at, name in line.frames[:30]),
        because=line.because,
    )


# ------------------------------------------------------------------------------------------- stacks of a hang

_PYTHON = re.compile(r'^ +File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,9}) in (?P<name>[^\n]{1,200})$', re.M)
_NATIVE = re.compile(
    r'^ +File "[^"\n]{0,300}", line \d{1,9}, in (?P<traceback>[^\n]{1,300})$'
    r"|^ *#\d{1,4} 0x[0-9a-f]{1,16} (?:in )?(?P<stack>[^\n]{1,300})$",
    re.M,
)
"""Frames as printed by handlers of fatal signals: in the format of Python's tracebacks, or of LLVM."""
_OURS = re.compile(
    r'^ +File "[^"\n]{0,300}/runners/guest/(?:script/(?:run|zygote|record)|launch)\.py", line \d{1,9}'
    r"(?: in [^\n]{1,200}\n|, in [^\n]{1,200}\n(?:    [^\n]*\n)?(?: {4,}[~^]+ *\n)?)",
    re.M,
)
_INFORMATIVE = re.compile(r"::|\(|futex|poll|sleep|wait")
"""C++ functions and functions that wait. Other C functions belong to the interpreter and are in every stack."""
_CALLED_OUT = re.compile(r"^_?PyObject_(?:MakeTpCall|Vectorcall|Call)|vectorcall", re.I)
"""The interpreter's functions that call others. They are innermost only if the called code has no frames, such as
code that was compiled in memory."""
_HANDLER = re.compile(r"^llvm::sys::(?:PrintStackTrace|RunSignalHandlers)|^SignalHandler\(")
_NO_PLACE = re.compile(r" ?\(/[^)\n]*\)$| \S+\.(?:cpp|cc|c|h|inc):\d+:\d+$")


def remove_own_frames(text: str) -> str:
    """Remove the frames of the guest programs from a stack or traceback, because a plain run has no such frames."""
    return _OURS.sub("", text)


def _build_hang(step: StepRecord, phases: list[Phase], facts: GuestFacts, script: str) -> Hang:
    frames = _parse_python_frames(step.stacks) or _parse_python_frames(step.last_words)
    names = _parse_native_names(step.last_words)
    native = tuple(name for name, _ in groupby(names) if _INFORMATIVE.search(name))
    return Hang(
        doing=_classify_threads(step.threads),
        place=_locate_hang(step, frames, names, phases, facts, script),
        frames=frames[:MAX_FRAMES],
        native=native[:MAX_FRAMES],
        threads=step.threads,
        seconds=step.seconds,
    )


def _parse_native_names(text: str) -> list[str]:
    """Return the functions, innermost first, without file names and without functions that print the stack."""
    names = [match["traceback"] or match["stack"] for match in _NATIVE.finditer(text)]
    bare = [_NO_PLACE.sub("", name).strip()[:200] for name in names]
    return [name for name in bare if name and not _HANDLER.search(name)]


def _parse_python_frames(text: str) -> tuple[Frame, ...]:
    """Return the main thread's frames in the last stack. The main thread is printed last."""
    _, found, dump = remove_own_frames(text).rpartition("(most recent call first):")
    return (
        tuple(Frame(file=m["file"], line=int(m["line"]), function=m["name"]) for m in _PYTHON.finditer(dump))
        if found
        else ()
    )


def _classify_threads(threads: tuple[Thread, ...]) -> Literal["computing", "waiting", "unknown"]:
    if not threads:
        return "unknown"
    return "computing" if any(thread.busy >= BUSY for thread in threads) else "waiting"


def _locate_hang(
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
        # The compiler may call a pass that the testcase defines. Then the innermost of the two decides.
        return "testcase" if compiling is not None and own is not None and own < compiling else "compiler"
    if not frames:
        return "unknown"
    if own == 0:
        innermost = next((name for name in names if not name.startswith("0x")), "")
        return "compiled" if _CALLED_OUT.search(innermost) else "testcase"
    return "compiled" if phases else "library"


def _is_compiling(frame: Frame, facts: GuestFacts) -> bool:
    return any(part in frame.file for part in facts.compiling_files)
