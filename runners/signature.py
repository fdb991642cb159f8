"""Failure text → Signature, and whether two signatures are the same failure. Pure.

The same parser reads what a reporter pasted and what a probe printed, so that the two can be compared. Its
input is a stranger's text: every pattern here is anchored to a line or runs on a bounded piece, so that the time
stays linear in the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from runners.protocol import Ended, Exited, NotRun, OutOfMemory, Signalled, Signature, TimedOut
from runners.unequal import another, figures, unequal

MAX_PARSED_CHARS = 200_000
MAX_LINE_CHARS = 2_000
MAX_MESSAGE_CHARS = 1_000
MAX_FRAMES = 8

SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""The signals that a compiler dies of. Others (SIGKILL, SIGTERM) come from outside and are no failure of its own."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_PYTEST_PREFIX = re.compile(r"^(?:E {2,}|> ?)")
_EXCEPTION = re.compile(
    r"^\s{0,4}`{0,2}(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Fault)"
    r"|Op(?:NotImplemented|Attribute(?:Required|Invalid|UnImplemented))"  # classes of tvm.error, by their bare names
    r"|(?:[A-Za-z_]\w*\.){1,7}(?:errors?|exceptions?)\.[A-Z]\w*)`{0,2}"  # tvm.error.OpNotImplemented
    r"(?::(?P<message>.*))?$"
)
_ANY_EXCEPTION = re.compile(r"^(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*)(?:: (?P<message>.*))?$")
_PY_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d+(?:, in (?P<name>.{1,300}))?$')
_NATIVE_FRAME = re.compile(
    r"^\s*(?:\[bt\] )?(?:#?\(?\d+\)?:?)\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?"
    r"(?P<name>(?:[a-z]+ )?[A-Za-z_(][^\n]{0,600})$"
)
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
        return (_diagnostic(lines, joined) if exception.type.endswith(RELAYS) else None) or exception
    return _diagnostic(lines, joined) or _status(joined) or _schedule_error(lines) or _unexpected_output(lines)


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
    return Signature(type=name, message=readable(message), frames=_native_frames(lines) or python_frames(lines))


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
        frames=_native_frames(lines[: at + 1]) or python_frames(lines[: at + 1]),
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
        and any(_PY_FRAME.match(lines[at - k]) for k in (2, 3) if at >= k)
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


_NOISE_FRAMES = (
    *("llvm::sys::", "llvm::function_ref", "SignalHandler", "std::", "operator()", "(anonymous namespace)::operator"),
    *("tvm::ffi::", "TVMFFI", "TVMFuncCall", "__libc", "_start", "abort", "raise", "gsignal", "start_thread"),
    *("mlir::iree_compiler::runIreecMain", "ireeCompiler", "mlir::detail::", "mlir::impl::", "llvm::detail::"),
    *("mlir::applyPartialConversion", "mlir::applyFullConversion", "applyConversion", "mlir::applyPatternsGreedily"),
    *("(anonymous namespace)::GreedyPattern", "(anonymous namespace)::Operation", "mlir::failableParallelForEach"),
    *(
        "llvm::StdThreadPool",
        "llvm::ThreadPool",
        "(anonymous namespace)::ConversionPattern",
        "mlir::parallelForEach",
        "mlir::verify",
    ),
)
"""Frames that every failure shares: signal plumbing, the C library, interpreters, call marshalling, and the machinery
that runs MLIR's passes and patterns."""
_MLIR_CORE = re.compile(r"mlir::[A-Z]\w*(?:<.{0,300}>)?::")
"""A method of one of MLIR's own classes (a type's width, an operation's model): who called it is what tells. Passes
and dialects live in namespaces of their own."""


def _native_frames(lines: Iterable[str]) -> tuple[str, ...]:
    """C++ functions of a stack dump, innermost first, without arguments and addresses."""
    found = (_function_name(one["name"]) for line in lines if (one := _NATIVE_FRAME.match(line)))
    names = [name for name in found if name and "::" in name and not name.startswith(_NOISE_FRAMES)]
    return _distinct(name for name in names if not _MLIR_CORE.match(name)) or _distinct(names)


def _function_name(symbol: str) -> str:
    """``void ns::f<int>(ns::A&) const x.cpp:0:0`` → ``ns::f<int>``; an anonymous namespace stays in the name."""
    symbol = symbol.replace("(anonymous namespace)", "{anonymous}")
    depth, end = 0, len(symbol)
    for i, char in enumerate(symbol):
        if char == "<":
            depth += 1
        elif char == ">" and (i == 0 or symbol[i - 1] != "-"):
            depth = max(0, depth - 1)
        elif char == "(" and depth == 0 and i > 0:
            end = i
            break
    name = symbol[:end].strip()
    depth = 0
    for i in range(len(name) - 1, -1, -1):  # cut a return type: the last space outside angle brackets
        if name[i] == ">":
            depth += 1
        elif name[i] == "<":
            depth = max(0, depth - 1)
        elif name[i] == " " and depth == 0:
            name = name[i + 1 :]
            break
    return name.replace("{anonymous}", "(anonymous namespace)")[:300]


def python_frames(lines: Iterable[str]) -> tuple[str, ...]:
    """Functions of the compiler's Python side, innermost first: ``tvm.relax.vm_build.build``."""
    frames = []
    for line in lines:
        found = _PY_FRAME.match(line)
        if not found or not found["name"]:
            continue
        path = found["path"].replace("\\", "/")
        _, marker, inside = path.rpartition("site-packages/")
        if not marker:
            _, marker, inside = path.rpartition("/python/")
        if marker and inside.split("/")[0] in _COMPILER_PACKAGES:
            module = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            frames.append(f"{module}.{found['name'].strip()}"[:300])
    return _distinct(reversed(frames))


_COMPILER_PACKAGES = {"tvm", "tvm_ffi", "iree"}


_SITE_FRAME = re.compile(
    r'^ {2,4}File "[^"]{1,400}\.(?:cc|cpp|cu|h|hpp)", line [1-9]\d{0,6}, in (?P<name>.{1,2000})$'
)
_TEMPLATE = re.compile(r"\[with [^\]]{0,200}?= (?:\w+::){0,8}(?P<of>\w+)\]$")


def raise_site(lines: Iterable[str]) -> str:
    """The innermost C++ function of TVM's traceback, without its namespace: ``TryConstFold[FloorDiv]``.

    Namespaces, files and lines change from release to release. A template's argument stays: an operation that is
    folded, a node that is built. Empty where the innermost frame is no C++ one: then Python's side raised it.
    """
    frames = [line for line in lines if line.startswith("  ") and line.lstrip().startswith('File "')]
    found = _SITE_FRAME.match(frames[-1]) if frames else None
    if found is None:
        return ""
    name = _function_name(found["name"].removeprefix("virtual ").removeprefix("static "))
    of = _TEMPLATE.search(found["name"])
    bare = re.sub(r"<.{0,300}>|\(anonymous namespace\)::|\{anonymous\}::", "", name).rpartition("::")[2]
    return f"{bare}[{of['of']}]" if of and bare else bare


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:MAX_FRAMES]


# ---------------------------------------------------------------------------------------------- normalising

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_DIRECTORY = r"(?:[\w.+@~-]{1,100}/)"
_PATH = re.compile(
    rf"(?<![\w:])(?:/{_DIRECTORY}{{1,30}}|{_DIRECTORY}{{2,30}}|{_DIRECTORY}(?=[\w+-]{{0,100}}\.\w))([\w.+-]{{1,100}})"
)
"""One slash between two words without a dot is no path: ``I/O type``, ``read/write``."""
_LINE_COLUMN = re.compile(r":\d+(?::\d+)?\b")
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_TOKEN = re.compile(r"[A-Za-z_][\w.:]*|<N>|[^\s\w]")
_SSA = re.compile(r"[%@#][\w.-]+")


_OPERATOR = re.compile(r'\bir\.Op\(span=[^"\n]{0,120}name="([\w.]{1,100})"[^\n]{0,1500}?support_level=\d{1,3}\)')
"""An operator printed with all its fields, which no two releases have alike and which hides what is said of it."""


def readable(message: str) -> str:
    """The message as people may read it: one line, no addresses, no directories."""
    text = _ADDRESS.sub("0x…", " ".join(message[:MAX_LINE_CHARS].split()))
    text = _OPERATOR.sub(r"Op(\1)", text)
    return _PATH.sub(r"\1", text)[:MAX_MESSAGE_CHARS]


def normalise(message: str, renames: Mapping[str, str] | None = None) -> str:
    """The message without what differs between two sightings of one failure. Idempotent.

    ``renames`` maps old API names to new ones, since messages drift with the API (facts.md §3).
    """
    text = readable(message).replace("0x…", "<N>").replace("`", "'").replace('"', "'")
    for old, new in (renames or {}).items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new.replace("\\", r"\\"), text)
    text = _SSA.sub("%_", _LINE_COLUMN.sub("", text))
    return " ".join(_NUMBER.sub("<N>", text).split())


def tokens(message: str, renames: Mapping[str, str] | None = None) -> list[str]:
    return [t for t in _TOKEN.findall(normalise(message, renames)) if t not in "'|,.;:()"]


# ---------------------------------------------------------------------------------------------- comparing

_SAME_CLASS = (
    {"InternalError", "TVMError"},  # one class under two names: TVM raised TVMError until 0.8, InternalError since
    {"DiagnosticError", "error", "mlir-error"},
)
NATIVE = frozenset(SIGNALS.values()) | {"crash"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """``score`` 0 … 1; ``why`` says in words what agreed or not. At least ``SAME`` counts as the same failure."""

    score: float
    why: str


SAME = 0.7


def compare(reported: Signature, observed: Signature, renames: Mapping[str, str] | None = None) -> Similarity:
    """How alike two failures are. ``reported`` may be partial (one line, cut by "..."); ``observed`` is whole.

    Frames follow ClusterFuzz's comparer (two common frames among the top ones count); the message is compared by
    its words in order, relative to the shorter text, because reports quote only part of it.
    """
    frames = _frame_overlap(reported.frames, observed.frames)
    both_crash = reported.type in NATIVE and observed.type in NATIVE
    if not (_same_type(reported.type, observed.type) or (both_crash and frames) or _parsed(reported, observed)):
        return Similarity(score=0.0, why=f"ended with {observed.type}, the report says {reported.type}")
    if both_crash:
        return _compare_crashes(reported, observed, frames, renames)
    if reported.type == observed.type == "timed-out":
        return _compare_hangs(reported, observed)
    arrays = unequal(reported.message), unequal(observed.message)
    if arrays[0] and arrays[1]:
        other = another(arrays[0], arrays[1])
        return Similarity(score=0.4 if other else 0.9, why=other or f"{arrays[0].kind} of arrays differ, as reported")
    words = _word_overlap(*(tokens(_nameless(one.message, renames)) for one in (reported, observed)))
    if other := _another(reported, observed, renames):
        return Similarity(score=0.5, why=other)
    if words is None:  # one side has no message: only the type and the frames speak
        if not frames and tokens(reported.message) and not tokens(observed.message):
            return Similarity(score=0.4, why=f"{observed.type} without a word, the report has words")
        if frames is None:
            both_bare = not reported.message and not observed.message
            return Similarity(
                score=0.75 if both_bare else 0.7, why=f"the same {observed.type}; no message to compare"
            )
        return Similarity(score=0.75 if frames else 0.4, why=f"the same {observed.type}, {_frames_in_words(frames)}")
    words = max(words, _sentence_overlap(reported, observed, renames))
    score = words if frames is None else max(words, 0.85 * words + (0.15 if frames else 0.0))
    return Similarity(score=round(score, 3), why=f"{observed.type} whose message agrees to {words:.0%}")


def _another(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> str | None:
    """Why the two are of different things, though their sentences may be alike; None where nothing says so."""
    return (
        _another_operation(reported, observed, renames)
        or _another_site(reported, observed)
        or _another_subject(reported, observed, renames)
    )


_OPERATION = re.compile(r"'([a-z]\w*(?:\.[\w$]+)+)'")
_OPERATOR_NAMED = re.compile(r"\bOp\(([\w.]+)\)|schedule primitive '([\w-]+)'")


def _another_operation(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> str | None:
    """MLIR's sentences are the same for every operation, and a helper's of TVM's for every operator that reaches it:
    the one that they name is what failed."""
    pattern = _OPERATION if observed.type == "mlir-error" else _OPERATOR_NAMED
    said, seen = (
        dict.fromkeys(found[found.lastindex or 0] for found in pattern.finditer(normalise(one.message, renames)))
        for one in (reported, observed)
    )
    if not said or not seen or said.keys() & seen.keys():
        return None
    return f"{observed.type} about {next(iter(seen))}, the report says {next(iter(said))}"


_SITE_RENAMES = (("StructInfo", "Type"),)
"""TVM 0.26 renamed struct info to type, in the names of its functions too (facts of the drift table)."""


def _another_site(reported: Signature, observed: Signature) -> str | None:
    """One sentence, checked in two functions: of an integer, or of a float; while folding a quotient, or a rest."""
    said, seen = reported.site, observed.site
    for old, new in _SITE_RENAMES:
        said, seen = said.replace(old, new), seen.replace(old, new)
    return f"raised in {observed.site}, in the report in {reported.site}" if said and seen and said != seen else None


_CONDITION = re.compile(
    r"Check failed: (?P<c>.{1,300}?)(?: is false\b|\(<N> vs\. <N>\)|\(\S{1,80} vs\. \S{1,80}\)|: |$)"
)
_OPERAND = re.compile(r"[A-Za-z_][\w.]*")
_WORD = re.compile(r"[A-Za-z_]+")
_VALUE = re.compile(r"(?:T\.)?(?:u?int|b?float|bool|void|handle|None|True|False)\d*\w*$|\w+\.\w")
_OWN_NAME = re.compile(r"\b(global|function|symbol|variable|parameter|argument|buffer|block) '[\w.$-]{1,100}'")
"""What the testcase calls a thing of its own."""
_GIVEN = re.compile(r"\b[Hh]owever\b|\bbut\b|\bgot\b|\bwhile the\b|: ")


def _nameless(message: str, renames: Mapping[str, str] | None) -> str:
    return _OWN_NAME.sub(r"\1", normalise(message, renames))


def _another_subject(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> str | None:
    """One sentence about two things: of the strides, or of the dilation; of an input, or of the output.

    A check's condition tells them apart, where no operand is in both. Else a word of what is required that stands
    where another one stood, all others being the same. What was given (behind "However" and the like), types and
    figures are no subject: they are the values of a testcase.
    """
    said, seen = (_nameless(one.message, renames) for one in (reported, observed))
    conditions = [_CONDITION.search(text) for text in (said, seen)]
    if conditions[0] and conditions[1]:
        first, second = (set(_OPERAND.findall(found["c"].replace("<N>", ""))) for found in conditions if found)
        rest = [
            text[found.end() :].lstrip(" :)") for text, found in zip((said, seen), conditions, strict=True) if found
        ]
        told = {_GIVEN.split(text, maxsplit=1)[0] for text in rest}
        if first and second and not first & second and len(told) > 1:  # renamed operands leave the sentence alone
            return "a check of something else"
        if first != second and _other_words(*(_GIVEN.split(text, maxsplit=1)[0] for text in rest)):
            return "another condition, with another sentence"
    a, b = (_TOKEN.findall(_GIVEN.split(text, maxsplit=1)[0])[:100] for text in (said, seen))
    changes = [one for one in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if one[0] != "equal"]
    for _, i, j, k, m in changes:
        if (j - i, m - k) == (1, 1) and len(changes) <= 2 and min(len(a), len(b)) > MIN_SENTENCE:
            old, new = a[i], b[k]
            if _WORD.fullmatch(old) and _WORD.fullmatch(new) and not _VALUE.match(old) and not _VALUE.match(new):
                return f"says {new!r} where the report says {old!r}"
    return None


def _sentence_overlap(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> float:
    """What agrees of the sentences behind two conditions: the code of a check is rewritten, its words are kept."""
    said, seen = (normalise(one.message, renames) for one in (reported, observed))
    first, second = _CONDITION.search(said), _CONDITION.search(seen)
    if not first or not second or first["c"] == second["c"]:
        return 0.0
    a, b = tokens(said[first.end() :]), tokens(seen[second.end() :])
    return (_word_overlap(a, b) or 0.0) if min(len(a), len(b)) > MIN_SENTENCE else 0.0


_ASSIGNED = re.compile(r"\b\w+=(?:'[^']{0,200}'|[^\s,()]+(?:\([^()]{0,200}\)+)?)")


def _other_words(said: str, seen: str) -> bool:
    """Whether words of the sentence stand where others stood; ``name=value`` is a testcase's own."""
    a, b = (_WORD.findall(_ASSIGNED.sub("", text))[:100] for text in (said, seen))
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return any(
        tag == "replace" and any(not _VALUE.match(w) for w in a[i:j]) and any(not _VALUE.match(w) for w in b[k:m])
        for tag, i, j, k, m in changes
    )


MIN_SENTENCE = 4
"""Words without which there is no sentence that a single word could turn into another's."""


_STEP = re.compile(r"step (\d{1,6}) ")


def _compare_hangs(reported: Signature, observed: Signature) -> Similarity:
    """Where the time was up; how much it was, and the step's arguments, say nothing."""
    said, seen = (_STEP.match(one.message) for one in (reported, observed))
    if said and seen and said[1] != seen[1]:
        return Similarity(score=0.4, why=f"still running in step {seen[1]}, in the report in step {said[1]}")
    frames = _frame_overlap(reported.frames, observed.frames)
    if frames == 0:
        return Similarity(score=0.5, why="still running, elsewhere in the compiler")
    return Similarity(score=0.75, why="still running when the time was up")


def _compare_crashes(
    reported: Signature, observed: Signature, frames: int | None, renames: Mapping[str, str] | None
) -> Similarity:
    words = _word_overlap(tokens(reported.message, renames), tokens(observed.message, renames))
    if words is not None and words < SAME:
        return Similarity(score=words, why=f"{observed.type} with another message")
    if frames is not None:
        return Similarity(score=0.95 if frames else 0.3, why=f"{observed.type}, {_frames_in_words(frames)}")
    if words is not None:
        return Similarity(score=0.9, why=f"{observed.type} with the same message")
    return Similarity(score=0.75, why=f"{observed.type}, as reported; no stack to compare")


def _parsed(reported: Signature, observed: Signature) -> bool:
    """TVM's script parser raises what an operator refused as an error of its own, in the same words."""
    pair = (reported, observed)
    return any(one.type == "DiagnosticError" for one in pair) and all(
        _PYTHON_TYPE.search(one.type) and len(tokens(one.message)) > MIN_SENTENCE for one in pair
    )


_PYTHON_TYPE = re.compile(r"(?<!^Assertion)Error$")


def _same_type(reported: str, observed: str) -> bool:
    a, b = reported.rpartition(".")[2], observed.rpartition(".")[2]
    if a == "crash":
        return b in NATIVE
    return a == b or any(a in group and b in group for group in _SAME_CLASS)


def _frame_overlap(reported: tuple[str, ...], observed: tuple[str, ...]) -> int | None:
    """How many of the report's top five frames are in the probe's stack; None when either has none."""
    if not reported or not observed:
        return None
    seen = {_bare(name) for name in observed}
    return sum(_bare(name) in seen for name in reported[:5])


def _bare(frame: str) -> str:
    """A frame without namespaces' anonymous parts, lambdas and template arguments, which differ between builds."""
    return re.sub(r"<.{0,300}>|\(anonymous namespace\)::|\$_\d+", "", frame)


def _frames_in_words(common: int) -> str:
    return f"{common} of the reported frames in the stack" if common else "in none of the reported frames"


def _word_overlap(reported: list[str], observed: list[str]) -> float | None:
    """Words in common, in order, as a share of the shorter side; None when either side has none.

    Compilers' sentences share their ordinary words ("expects the input tensors to have"), so that of longer messages
    runs of three words count as much as single ones.
    """
    if not reported or not observed:
        return None
    a, b = reported[:200], observed[:200]
    common = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    shorter = min(len(a), len(b))
    if shorter < 4:  # contained in almost anything: then both sides must agree in length as well
        return common / max(len(a), len(b))
    share = common / shorter
    return share if shorter < 8 else (share + _runs_in_common(a, b)) / 2


def _runs_in_common(a: list[str], b: list[str]) -> float:
    """Runs of three words in common, as a share of the side that has fewer."""
    first, second = (set(zip(words, words[1:], words[2:], strict=False)) for words in (a, b))
    return len(first & second) / min(len(first), len(second))
