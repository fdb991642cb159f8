"""Parse failure text → `Signature`. Pure.

The same parser reads the text of a report and the output of a run, so that both can be compared
(`runners.core.failure.compare`). The input is untrusted: every pattern is anchored to a line or searches a bounded
piece, so the time is linear in the size (`bench.robustness.hostile_text`).
"""

from __future__ import annotations

import re

from runners.core.failure.array_mismatch import extract_figures
from runners.core.failure.normalize import MAX_LINE_CHARS, make_readable
from runners.core.failure.stack_frames import PY_FRAME, find_native_frames, find_python_frames, find_raise_site
from runners.core.protocol import Ended, Exited, NotRun, OutOfMemory, Signalled, Signature, TimedOut
from runners.core.toolchain.failures import FailureVocabulary, Relay

MAX_PARSED_CHARS = 200_000

SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""Signals of a crashing compiler. Others (SIGKILL, SIGTERM) come from outside."""

NATIVE = frozenset(SIGNALS.values()) | {"crash"}


def is_bare_crash(signature: Signature) -> bool:
    """True for a crash of which only the signal is known: neither a message nor a stack."""
    return signature.type in NATIVE and not (signature.message or signature.frames)


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_PYTEST_PREFIX = re.compile(r"^(?:E {2,}|> ?)")
_EXCEPTION = re.compile(
    r"^\s{0,4}`{0,2}(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Fault)"
    r"|(?:[A-Za-z_]\w*\.){1,7}(?:errors?|exceptions?)\.[A-Z]\w*)`{0,2}"  # package.errors.NotImplemented
    r"(?::(?P<message>.*))?$"
)
_CLASS = r"(?=[A-Z0-9_]{0,60}[a-z])[A-Z]\w*"
"""The name of a class. Words in capitals only are labels: ``ACTUAL: array([1])``."""
_BARE_CLASS = re.compile(rf"^\s{{0,4}}`{{0,2}}(?P<type>{_CLASS})`{{0,2}}(?::(?P<message>.*))?$")
_ANY_EXCEPTION = re.compile(rf"^(?P<type>(?:[A-Za-z_]\w*\.){{0,8}}{_CLASS})(?:: (?P<message>.*))?$")
_MLIR_ERROR = re.compile(
    r"^(?:[^\n]{1,80}?[ \t])?"  # a program may print its own words before a diagnostic
    r"(?:[^\s:]{1,300}:\d+:\d+|<unknown>:0|loc\(.{1,300}?\)|[\w.+-]{1,40}-lld): (?:fatal )?error: (?P<m>.+)$"
)
_FLAG_ERROR = re.compile(  # LLVM's command line
    r"(?P<m>Unknown command line argument '[^']{1,200}'|Cannot find option named '[^']{1,200}'"
    r"|for the --?[\w-]{1,100} option: [^\n]{1,200})",
    re.IGNORECASE,
)
_NATIVE_CRASH = {
    "SIGSEGV": re.compile(r"\bSIGSEGV\b|[Ss]egmentation fault"),
    "SIGFPE": re.compile(r"\bSIGFPE\b|[Ff]loating[ -]point exception"),
    "SIGILL": re.compile(r"\bSIGILL\b|[Ii]llegal instruction"),
    "SIGBUS": re.compile(r"\bSIGBUS\b|[Bb]us error"),
    "SIGTRAP": re.compile(r"\bSIGTRAP\b|[Tt]race/breakpoint trap"),
    "SIGABRT": re.compile(r"\bSIGABRT\b|^Aborted\b|^LLVM ERROR: |Assertion [`'].{1,300}' failed", re.M),
    "crash": re.compile(r"^Stack dump:|\(core dumped\)|PLEASE submit a bug report|include the crash backtrace", re.M),
}
"""Messages about a crash, by type of failure. The first match counts."""
_ABORT_MESSAGE = re.compile(
    r"^(?:LLVM ERROR: (?P<llvm>.{1,600})|.{0,1200}?Assertion [`'](?P<assertion>.{1,300})' failed)", re.M
)


def parse_signature(text: str, vocabulary: FailureVocabulary, ended: Ended | None = None) -> Signature | None:
    """Return the failure in ``text``. None if the text contains none.

    ``ended`` is the end of the process as the engine observed it, and overrides the text. It is absent for text of a
    report.
    """
    lines = clean_lines(text)
    match ended:
        case Signalled(code=code):
            return _make_crash(SIGNALS.get(code, f"signal {code}"), lines, vocabulary)
        case Exited(code=code) if code in _SHELL_CODES:
            return _make_crash(SIGNALS[_SHELL_CODES[code]], lines, vocabulary)
        case OutOfMemory():
            return Signature(type="out-of-memory")
        case TimedOut(where=where):
            return Signature(type="timed-out", message=where, frames=find_python_frames(lines, vocabulary))
        case NotRun():
            return None
        case Exited() | None:
            return _parse_lines(lines, vocabulary, pasted=ended is None)


def find_exception_before_crash(text: str, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the uncaught exception of a script that a signal killed afterwards. None without one.

    Python's fault handler finds no frame after the end of the script, so the last traceback is an uncaught one.
    """
    before, _, dump = text.rpartition("Fatal Python error: ")
    if "<no Python frame>" not in dump or "Traceback (most recent call last)" not in before:
        return None
    return _find_python_exception(clean_lines(before), vocabulary, pasted=False)


# A shell returns 128 + n for signal n. A Python script that exits with a child's return code returns 256 - n.
_SHELL_CODES = {offset: number for number in SIGNALS for offset in (128 + number, 256 - number)}


def drop_terminal_codes(text: str) -> str:
    """Return a text without colours, titles and cursor movements."""
    return _ANSI.sub("", text)


def clean_lines(text: str) -> list[str]:
    """Split text into lines of limited length, without terminal codes and pytest's margin."""
    if len(text) > MAX_PARSED_CHARS:
        text = text[: MAX_PARSED_CHARS // 4] + "\n" + text[-3 * MAX_PARSED_CHARS // 4 :]
    clean = drop_terminal_codes(text)
    return [_PYTEST_PREFIX.sub("", line[:MAX_LINE_CHARS]).rstrip() for line in clean.splitlines()]


def _parse_lines(lines: list[str], vocabulary: FailureVocabulary, *, pasted: bool) -> Signature | None:
    joined = "\n".join(lines)
    exception = _find_python_exception(_drop_wrapper(lines, vocabulary), vocabulary, pasted=pasted)
    relay = None if exception is None else _find_relay(exception.type, vocabulary)
    native = _find_native_crash(joined, vocabulary)
    if native and (exception is None or relay is not None or _has_fatal_error(lines)):
        died = None if relay is None else relay.died.search(joined)
        return _make_crash(SIGNALS.get(int(died["signal"]), native) if died else native, lines, vocabulary)
    if exception is not None and exception.type != "SystemExit":
        passed_on = (
            _find_diagnostic(lines, joined, vocabulary) if relay else _find_passed_status(exception, vocabulary)
        )
        return passed_on or exception
    return (
        _find_diagnostic(lines, joined, vocabulary)
        or _find_status(joined, vocabulary)
        or _find_bare_detail(lines, vocabulary)
        or _find_output_error(lines, vocabulary)
        or (_find_quoted_end(joined, vocabulary) if pasted else None)
    )


def _find_told_signal(text: str) -> Signature | None:
    """Return the signal of a status in a report: ``exit 139``, ``rc=-11``, ``exit code 245``."""
    codes = (int(found["code"]) for found in _TOLD_STATUS.finditer(text))
    numbers = (_SHELL_CODES.get(code, -code) for code in codes)
    return next((Signature(type=SIGNALS[number]) for number in numbers if number in SIGNALS), None)


_TOLD_STATUS = re.compile(
    r"\b(?:exit(?:ed|s)?(?: with)?(?: code| status| value)?|(?:return|exit|status)[ _]?(?:code|value|status)"
    r"|rc)(?: is| was| of)?[ \t]{0,4}[:=]?[ \t]{0,4}(?P<code>-?\d{1,3})\b(?![.,]?\d)",
    re.I,
)


def _find_native_crash(text: str, vocabulary: FailureVocabulary) -> str | None:
    banners = {name for name, banner in vocabulary.crash_banners if banner.search(text)}
    return next((name for name, message in _NATIVE_CRASH.items() if name in banners or message.search(text)), None)


def _has_fatal_error(lines: list[str]) -> bool:
    return any(line.startswith("Fatal Python error") for line in lines)


def _find_passed_status(exception: Signature, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the status in an exception that the runtime's Python side raised. None otherwise."""
    inside = tuple(f"{package}." for package in vocabulary.status_packages)
    if not any(frame.startswith(inside) for frame in exception.frames):
        return None
    return _find_status(exception.message, vocabulary)


def _find_diagnostic(lines: list[str], joined: str, vocabulary: FailureVocabulary) -> Signature | None:
    return _find_mlir_error(lines, vocabulary) or _find_flag_error(joined, vocabulary)


def _find_relay(exception: str, vocabulary: FailureVocabulary) -> Relay | None:
    return next((relay for relay in vocabulary.relays if exception.endswith(relay.exception)), None)


def is_relay(exception: str, vocabulary: FailureVocabulary) -> bool:
    """True if the exception only relays the output and the end of one of the compiler's tools."""
    return _find_relay(exception, vocabulary) is not None


_CAUSED = "The above exception was the direct cause of the following exception:"


def _drop_wrapper(lines: list[str], vocabulary: FailureVocabulary) -> list[str]:
    """Cut the lines after the compiler's exception if the testcase wrapped that exception: ``raise X from e``.

    The wrapper must have no frame of the compiler, and its cause must have one. Then only the cause describes the
    failure.
    """
    ends = [i for i, line in enumerate(lines) if line == _CAUSED]
    starts = [0, *(at + 1 for at in ends)]
    parts = zip(starts, [*ends, len(lines)], strict=True)
    inside = [_is_in_compiler(lines[start:end], vocabulary) for start, end in parts]
    innermost = next((i for i in range(len(inside) - 1, -1, -1) if inside[i]), len(ends))
    return lines[: ends[innermost]] if innermost < len(ends) else lines


def _is_in_compiler(lines: list[str], vocabulary: FailureVocabulary) -> bool:
    return bool(find_python_frames(lines, vocabulary) or find_raise_site(lines))


def _make_crash(name: str, lines: list[str], vocabulary: FailureVocabulary) -> Signature:
    found = _ABORT_MESSAGE.search("\n".join(lines))
    message = (found["llvm"] or found["assertion"] or "") if found else _find_last_words(lines)
    native, callees = find_native_frames(lines, vocabulary)
    frames = native or find_python_frames(lines, vocabulary)
    return Signature(type=name, message=make_readable(message, vocabulary), frames=frames, callees=callees)


def _find_last_words(lines: list[str]) -> str:
    """Return the sentence that a compiler prints just before the banner of its crash handler. Empty without one."""
    at = next((at for at, line in enumerate(lines) if _CRASH_BANNER.match(line)), 0)
    last = lines[at - 1].strip() if at else ""
    return last if len(last.split()) >= MIN_LAST_WORDS and not _NO_LAST_WORDS.match(last) else ""


_CRASH_BANNER = re.compile(r"(?:Please report issues to https?://|PLEASE (?:submit a bug report|ATTACH) )")
_NO_LAST_WORDS = re.compile(r"[\[({<%^#$>]|\S{1,300}:\d+(?::\d+)?:|\w+: |\d")
"""Rows that are not a sentence of the compiler: diagnostics, rows of a program, of a session or of a log."""
MIN_LAST_WORDS = 5


def _find_mlir_error(lines: list[str], vocabulary: FailureVocabulary) -> Signature | None:
    # The first diagnostic is the cause. Later ones ("failed to translate executables") follow from it.
    for line in lines:
        if found := _MLIR_ERROR.match(line.strip().lstrip("`")):
            return Signature(type="mlir-error", message=make_readable(found["m"].rstrip("`"), vocabulary))
        if line.lstrip().startswith("error: ") and not line.lstrip().startswith("error: aborting"):
            return Signature(type="mlir-error", message=make_readable(line.lstrip()[len("error: ") :], vocabulary))
    return None


def _find_flag_error(text: str, vocabulary: FailureVocabulary) -> Signature | None:
    found = [one for pattern in (_FLAG_ERROR, *vocabulary.flag_errors) if (one := pattern.search(text))]
    first = min(found, key=lambda one: one.start(), default=None)
    return Signature(type="flag-error", message=make_readable(first["m"], vocabulary)) if first else None


WRONG_OUTPUT = "unexpected-output"
"""Signature type of a result that a runner compared with the expected value. The message contains both values."""


def _find_output_error(lines: list[str], vocabulary: FailureVocabulary) -> Signature | None:
    messages = (one for line in lines for pattern in vocabulary.output_errors if (one := pattern.match(line)))
    found = next(messages, None)
    return Signature(type=WRONG_OUTPUT, message=make_readable(found["m"], vocabulary)) if found else None


def _find_bare_detail(lines: list[str], vocabulary: FailureVocabulary) -> Signature | None:
    """Return a failure from the last line of an exception that was copied without its header."""
    for detail in vocabulary.details:
        if text := next((line.strip() for line in reversed(lines) if line.startswith(detail.start)), None):
            return Signature(type=detail.exception, message=make_readable(text, vocabulary))
    return None


def _find_quoted_end(text: str, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the failure of a report that quotes no exception: a log line, a message, or a signal in words."""
    for log in vocabulary.fatal_logs:
        if found := log.row.search(text):
            return Signature(type=log.exception, message=make_readable(found["m"], vocabulary))
    return _find_unnamed(text, vocabulary) or _find_told_signal(text)


def _find_unnamed(text: str, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the failure from a message that was copied without its exception: a row, a labelled row, or a quotation.

    A message over several rows ends at the first row that closes its brackets.
    """
    for message in vocabulary.unnamed:
        start = re.escape(message.start).replace(r":\ ", " ?: ?")
        found = re.search(rf"(?:{_BEFORE_MESSAGE}|[\"'`“]){start}(?P<m>\S[^\n]{{0,600}})", text, re.M)
        if found is None:
            continue
        said, rest = found["m"], text[found.end() :].split("\n")[1:MAX_ROWS]
        while (
            rest
            and _ROW.match(rest[0])
            and (said.endswith((":", ",", "&&", "||")) or said.count("(") > said.count(")"))
        ):
            said = f"{said} {rest.pop(0).strip()}"
        quoted = found[0][0]
        said = said.partition("”" if quoted == "“" else quoted)[0] if quoted in "\"'`“" else said
        return Signature(type=message.exception, message=make_readable(message.start + said.strip(), vocabulary))
    return None


MAX_ROWS = 8
"""Maximum number of rows of one message."""


def cut_at_span_end(text: str) -> str:
    """Return the text before the end of the code span that it is in.

    A single backtick ends the span. The text may quote a name in two backticks, as Markdown allows.
    """
    ends = re.split(r"(?<!`)`(?!`)", text, maxsplit=1)
    return ends[0] if len(ends) > 1 else text.partition("`")[0]


_ROW = re.compile(r"[^\"'`]*\S[^\"'`]*$")
_BEFORE_MESSAGE = r"^[ \t>*]{0,8}(?:[A-Za-z][\w ]{0,30}: ?|\[[\d:]{5,8}\] [^\s:]{1,200}:\d{1,6}: )?"
"""A label, or the time and the location of a log line."""


def find_detail(lines: list[str], vocabulary: FailureVocabulary) -> str:
    """Return the line below an exception's header that describes the failure. Empty without such a line."""
    starts = tuple(detail.start for detail in vocabulary.details)
    return next((line.strip() for line in lines if line.strip().startswith(starts)), "")


def _find_status(text: str, vocabulary: FailureVocabulary) -> Signature | None:
    found = next((one for pattern in vocabulary.statuses if (one := pattern.search(text))), None)
    return Signature(type=f"status:{found['code']}", message=make_readable(found["m"], vocabulary)) if found else None


def _find_python_exception(lines: list[str], vocabulary: FailureVocabulary, *, pasted: bool) -> Signature | None:
    """Return the last printed exception: Python prints the uncaught exception last.

    A compiler may print a second "Traceback" with native frames inside the message. Then the last header counts.
    """
    at = next((i for i in range(len(lines) - 1, -1, -1) if _is_exception_header(lines, i, vocabulary)), None)
    if at is None:
        return None
    header = _match_named_exception(lines[at], vocabulary) or _ANY_EXCEPTION.match(lines[at])
    assert header is not None
    name = header["type"].rpartition(".")[2]
    message = (header["message"] or "").strip().removeprefix(f"{name}: ")  # some exceptions print their names twice
    if pasted and (lines[at].lstrip().startswith("`") or message.count("`") % 2):
        message = cut_at_span_end(message)  # quoted in running text, which continues after the code span
    following = _read_continuation(lines, at)
    if message.startswith("Traceback (most recent call last)"):
        message = ""
    if not message:
        rows = _skip_notice([line.strip() for line in following if line.strip() and not _STACK_ROW.match(line)])
        message = next(iter(rows), "")
    if name.endswith(vocabulary.diagnostic_errors):
        message = message.removeprefix("error: ")
    detail = _find_telling_line(name, lines[:at], following, vocabulary)
    return Signature(
        type=name,
        message=make_readable(f"{message} | {detail}" if detail else message, vocabulary),
        frames=find_native_frames(lines[: at + 1], vocabulary)[0] or find_python_frames(lines[: at + 1], vocabulary),
        site=find_raise_site(lines[max(0, at - MAX_TRACEBACK) : at]),
    )


_STACK_ROW = re.compile(r"\s{0,8}(?:\[bt\] \(\d{1,4}\)|\d{1,4}: \S|#\d{1,4} |File \")")
"""A row of a native stack inside a message. If a quotation ends there, the message is unknown."""
_RULER = re.compile(r"([-=*_#])\1{7,}")


def _skip_notice(rows: list[str]) -> list[str]:
    """Return the rows below a notice between two rulers. Without a notice, return all rows.

    TVM 0.8 to 0.13 print such a notice above the message of every failed check.
    """
    if not rows or not _RULER.fullmatch(rows[0]):
        return rows
    end = next((at for at, row in enumerate(rows) if at and _RULER.fullmatch(row)), len(rows) - 1)
    return rows[end + 1 :]


MAX_TRACEBACK = 200
"""Maximum number of lines above an exception that are searched for its traceback."""


def _match_named_exception(line: str, vocabulary: FailureVocabulary) -> re.Match[str] | None:
    """Match a line that begins with the name of an exception."""
    if named := _EXCEPTION.match(line):
        return named
    bare = _BARE_CLASS.match(line) if vocabulary.error_classes else None
    return bare if bare is not None and bare["type"] in vocabulary.error_classes else None


def _is_exception_header(lines: list[str], at: int, vocabulary: FailureVocabulary) -> bool:
    """True for the name of an exception, and for any class name directly below the frames of a traceback."""
    line = lines[at]
    if _match_named_exception(line, vocabulary):
        return not line.lstrip().startswith(("File ", "raise "))
    below_frames = at > 1 and lines[at - 1].startswith("    ")
    return (
        below_frames
        and bool(_ANY_EXCEPTION.match(line))
        and any(PY_FRAME.match(lines[at - k]) for k in (2, 3) if at >= k)
    )


_LAST_WORDS = re.compile(
    r"(?:(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\): |double free or corruption"
    r"|corrupted (?:size|double)|\*\*\* stack smashing|Fatal Python error: |Segmentation fault|Aborted\b)"
)
"""The beginning of a message of the C library, the fault handler or a shell about a process that a signal killed."""


def _read_continuation(lines: list[str], at: int, most: int = 60) -> list[str]:
    """Return the continuation lines of a message, up to the next traceback."""
    taken: list[str] = []
    for line in lines[at + 1 : at + 1 + most]:
        if line.startswith(("Traceback (most recent", "During handling of", "The above exception")):
            break
        if _LAST_WORDS.match(line):
            break
        taken.append(line)
    return taken


def _find_telling_line(name: str, before: list[str], after: list[str], vocabulary: FailureVocabulary) -> str:
    """Return the line that completes a generic header. Empty if the header needs none.

    NumPy's array checks print the comparison first, then its result. The vocabulary lists the compiler's exceptions
    that have such a line.
    """
    if name == "AssertionError" and (found := extract_figures(after)):
        return found
    if name.endswith(vocabulary.diagnostic_errors):
        errors = [line.strip() for line in before if line.strip().startswith("error: ")]
        return errors[-1].removeprefix("error: ") if errors else ""  # a report may contain only this line
    return find_detail(after, vocabulary)
