"""Failure text → Signature. Pure.

The same parser reads what a reporter pasted and what a probe printed, so that the two can be compared
(`runners.core.failure.compare`). Its input is a stranger's text: every pattern here is anchored to a line or runs on
a bounded piece, so that the time stays linear in the size (`bench.robustness.hostile_text`).
"""

from __future__ import annotations

import re

from runners.core.failure.array_mismatch import figures
from runners.core.failure.normalize import MAX_LINE_CHARS, readable
from runners.core.failure.stack_frames import PY_FRAME, native_frames, python_frames, raise_site
from runners.core.protocol import Ended, Exited, NotRun, OutOfMemory, Signalled, Signature, TimedOut

MAX_PARSED_CHARS = 200_000

SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""The signals that a compiler dies of. Others (SIGKILL, SIGTERM) come from outside and are no failure of its own."""

NATIVE = frozenset(SIGNALS.values()) | {"crash"}

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_PYTEST_PREFIX = re.compile(r"^(?:E {2,}|> ?)")
_EXCEPTION = re.compile(
    r"^\s{0,4}`{0,2}(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Fault)"
    r"|Op(?:NotImplemented|Attribute(?:Required|Invalid|UnImplemented))"  # classes of tvm.error, by their bare names
    r"|(?:[A-Za-z_]\w*\.){1,7}(?:errors?|exceptions?)\.[A-Z]\w*)`{0,2}"  # tvm.error.OpNotImplemented
    r"(?::(?P<message>.*))?$"
)
_ANY_EXCEPTION = re.compile(r"^(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*)(?:: (?P<message>.*))?$")
_MLIR_ERROR = re.compile(r"^(?:[^\s:]{1,300}:\d+:\d+|<unknown>:0|loc\(.{1,300}?\)): (?:fatal )?error: (?P<m>.+)$")
_STATUS = re.compile(
    r"(?P<code>CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|"
    r"RESOURCE_EXHAUSTED|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|"
    r"INCOMPATIBLE); (?P<m>[^\n]{1,600})"
)
_FLAG_ERROR = re.compile(
    r"(?P<m>Unknown command line argument '[^']{1,200}'|Cannot find option named '[^']{1,200}'"
    r"|for the --?[\w-]{1,100} option: [^\n]{1,200}|unknown command line flag '[^']{1,200}'"
    r"|flag '[^']{1,200}' not found|unregistered device alias[^\n]{0,200})",
    re.IGNORECASE,
)
_NATIVE_CRASH = (
    (re.compile(r"\bSIGSEGV\b|[Ss]egmentation fault|\b[Ss]egfault encountered"), "SIGSEGV"),
    (re.compile(r"\bSIGFPE\b|[Ff]loating[ -]point exception"), "SIGFPE"),
    (re.compile(r"\bSIGILL\b|[Ii]llegal instruction"), "SIGILL"),
    (re.compile(r"\bSIGBUS\b|[Bb]us error"), "SIGBUS"),
    (re.compile(r"\bSIGTRAP\b|[Tt]race/breakpoint trap"), "SIGTRAP"),
    (re.compile(r"\bSIGABRT\b|^Aborted\b|^LLVM ERROR: |Assertion [`'].{1,300}' failed", re.M), "SIGABRT"),
    (
        re.compile(r"^Stack dump:|\(core dumped\)|PLEASE submit a bug report|include the crash backtrace", re.M),
        "crash",
    ),
)
_ABORT_MESSAGE = re.compile(
    r"^(?:LLVM ERROR: (?P<llvm>.{1,600})|.{0,300}?Assertion [`'](?P<assertion>.{1,300})' failed)", re.M
)


def parse_signature(text: str, ended: Ended | None = None) -> Signature | None:
    """The failure that ``text`` tells of, or None when it tells of none.

    ``ended`` is how the engine saw the process end; it outranks the text. Without it (text pasted in a report),
    only the text speaks.
    """
    lines = clean_lines(text)
    match ended:
        case Signalled(code=code):
            return _crash(SIGNALS.get(code, f"signal {code}"), lines)
        case Exited(code=code) if code in _SHELL_CODES:
            return _crash(SIGNALS[_SHELL_CODES[code]], lines)
        case OutOfMemory():
            return Signature(type="out-of-memory")
        case TimedOut(where=where):
            return Signature(type="timed-out", message=where, frames=python_frames(lines))
        case NotRun():
            return None
        case Exited() | None:
            return _from_text(lines, pasted=ended is None)


# A wrapper script or shell turns death by signal n into 128 + n; IREE's console scripts into 256 - n (facts.md).
_SHELL_CODES = {offset: number for number in SIGNALS for offset in (128 + number, 256 - number)}


def clean_lines(text: str) -> list[str]:
    """The text as clean lines: no terminal codes, no pytest margin, nothing unboundedly long."""
    if len(text) > MAX_PARSED_CHARS:
        text = text[: MAX_PARSED_CHARS // 4] + "\n" + text[-3 * MAX_PARSED_CHARS // 4 :]
    clean = _ANSI.sub("", text)
    return [_PYTEST_PREFIX.sub("", line[:MAX_LINE_CHARS]).rstrip() for line in clean.splitlines()]


def _from_text(lines: list[str], *, pasted: bool) -> Signature | None:
    joined = "\n".join(lines)
    exception = _python_exception(_without_wrapper(lines), pasted=pasted)
    native = next((name for pattern, name in _NATIVE_CRASH if pattern.search(joined)), None)
    if native and (exception is None or _is_crash_reported_by_python(exception, lines)):
        died = _DIED.search(joined) if exception is not None and exception.type.endswith(RELAYS) else None
        return _crash(SIGNALS.get(int(died["signal"]), native) if died else native, lines)
    if exception is not None and exception.type != "SystemExit":
        return _relayed(exception, lines, joined) or exception
    return _diagnostic(lines, joined) or _status(joined) or _schedule_error(lines) or _unexpected_output(lines)


def _relayed(exception: Signature, lines: list[str], joined: str) -> Signature | None:
    """What an exception of IREE's Python side passes on: a diagnostic of its compiler, or a status of its runtime."""
    if exception.type.endswith(RELAYS):
        return _diagnostic(lines, joined)
    status = _status(exception.message)
    return status if status and any(frame.startswith("iree.runtime.") for frame in exception.frames) else None


def _diagnostic(lines: list[str], joined: str) -> Signature | None:
    return _mlir_error(lines) or _flag_error(joined)


RELAYS = "CompilerToolError"
"""IREE's exception around what its compiler printed and how it ended: the same for every failure."""
_DIED = re.compile(r"^Error code: -(?P<signal>\d{1,3})$", re.M)
_CAUSED = "The above exception was the direct cause of the following exception:"


def _without_wrapper(lines: list[str]) -> list[str]:
    """Up to the compiler's own exception, where the testcase's code put one of its own around it: ``raise X from e``.

    Only where the wrapper has no frame of the compiler, and what it wraps has one: then it says what the testcase was
    doing, and its cause what failed.
    """
    ends = [i for i, line in enumerate(lines) if line == _CAUSED]
    starts = [0, *(at + 1 for at in ends)]
    inside = [_in_compiler(lines[start:end]) for start, end in zip(starts, [*ends, len(lines)], strict=True)]
    innermost = next((i for i in range(len(inside) - 1, -1, -1) if inside[i]), len(ends))
    return lines[: ends[innermost]] if innermost < len(ends) else lines


def _in_compiler(lines: list[str]) -> bool:
    return bool(python_frames(lines) or raise_site(lines))


def _is_crash_reported_by_python(exception: Signature, lines: list[str]) -> bool:
    """A compiler tool run from Python died: the exception only relays it (IREE's CompilerToolError)."""
    return exception.type.endswith(RELAYS) or any(line.startswith("Fatal Python error") for line in lines)


def _crash(name: str, lines: list[str]) -> Signature:
    found = _ABORT_MESSAGE.search("\n".join(lines))
    message = (found["llvm"] or found["assertion"] or "") if found else ""
    return Signature(type=name, message=readable(message), frames=native_frames(lines) or python_frames(lines))


def _mlir_error(lines: list[str]) -> Signature | None:
    # The first diagnostic is the cause; those after it ("failed to translate executables") are its echoes.
    for line in lines:
        if found := _MLIR_ERROR.match(line.strip().lstrip("`")):
            return Signature(type="mlir-error", message=readable(found["m"].rstrip("`")))
        if line.lstrip().startswith("error: ") and not line.lstrip().startswith("error: aborting"):
            return Signature(type="mlir-error", message=readable(line.lstrip()[len("error: ") :]))
    return None


def _flag_error(text: str) -> Signature | None:
    found = _FLAG_ERROR.search(text)
    return Signature(type="flag-error", message=readable(found["m"])) if found else None


_UNEXPECTED = re.compile(r"^\[FAILED\] result\[\d{1,6}\]: (?P<m>[^;]{1,600})")


def _unexpected_output(lines: list[str]) -> Signature | None:
    """iree-run-module's word for a result that is not the ``--expected_output``."""
    found = next((one for line in lines if (one := _UNEXPECTED.match(line))), None)
    return Signature(type="unexpected-output", message=readable(found["m"])) if found else None


def _schedule_error(lines: list[str]) -> Signature | None:
    """The last line of TVM's ScheduleError, where the exception's own line was not copied with it."""
    said = next((line.strip() for line in reversed(lines) if line.startswith("Error message: ")), None)
    return Signature(type="ScheduleError", message=readable(said)) if said else None


def _status(text: str) -> Signature | None:
    found = _STATUS.search(text)
    return Signature(type=f"status:{found['code']}", message=readable(found["m"])) if found else None


def _python_exception(lines: list[str], *, pasted: bool) -> Signature | None:
    """The last exception printed: Python ends with the one that reached the top.

    TVM nests a second "Traceback" with the native frames inside the message; its last header line is the telling one.
    """
    at = next((i for i in range(len(lines) - 1, -1, -1) if _exception_header(lines, i)), None)
    if at is None:
        return None
    header = _EXCEPTION.match(lines[at]) or _ANY_EXCEPTION.match(lines[at])
    assert header is not None
    name = header["type"].rpartition(".")[2]
    message = (header["message"] or "").strip().removeprefix(f"{name}: ")  # TVM's ScheduleError says it twice
    if pasted and (lines[at].lstrip().startswith("`") or message.count("`") % 2):
        message = message.partition("`")[0]  # quoted in running text: the sentence goes on behind the code span
    following = _continuation(lines, at)
    if message.startswith("Traceback (most recent call last)"):
        message = ""
    if not message:
        message = next((line.strip() for line in following if line.strip()), "")
    if name.endswith("DiagnosticError"):
        message = message.removeprefix("error: ")
    telling = _telling_line(name, lines[:at], following)
    return Signature(
        type=name,
        message=readable(f"{message} | {telling}" if telling else message),
        frames=native_frames(lines[: at + 1]) or python_frames(lines[: at + 1]),
        site=raise_site(lines[max(0, at - MAX_TRACEBACK) : at]),
    )


MAX_TRACEBACK = 200
"""Lines above an exception in which its own traceback is looked for."""


def _exception_header(lines: list[str], at: int) -> bool:
    """A class that is called like one; or any class name, right below the frames of a traceback."""
    line = lines[at]
    if _EXCEPTION.match(line):
        return not line.lstrip().startswith(("File ", "raise "))
    below_frames = at > 1 and lines[at - 1].startswith("    ")
    return (
        below_frames
        and bool(_ANY_EXCEPTION.match(line))
        and any(PY_FRAME.match(lines[at - k]) for k in (2, 3) if at >= k)
    )


def _continuation(lines: list[str], at: int, most: int = 60) -> list[str]:
    """The lines of a message that runs over several, up to the next traceback."""
    taken: list[str] = []
    for line in lines[at + 1 : at + 1 + most]:
        if line.startswith(("Traceback (most recent", "During handling of", "The above exception")):
            break
        taken.append(line)
    return taken


def _telling_line(name: str, before: list[str], after: list[str]) -> str:
    """What a generic header leaves to another line.

    TVM's ScheduleError ends with "Error message: …"; its DiagnosticError says only that something was printed above;
    numpy's checks of arrays say first how they compared and then what they found.
    """
    if name == "AssertionError" and (found := figures(after)):
        return found
    if name.endswith("DiagnosticError"):
        errors = [line.strip() for line in before if line.strip().startswith("error: ")]
        return errors[-1] if errors else ""
    return next((line.strip() for line in after if line.strip().startswith("Error message: ")), "")
