"""The wire contract between ``bot`` and ``runners``: every type that crosses, and the schema number.

All types are frozen ``msgspec`` structs that refuse unknown fields, so that the reader either understands a document
completely or refuses it. Text fields have length limits in their types: the output of a sandbox is a claim by
strangers' code.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec

SCHEMA = 1

MAX_TEXT_BYTES = 64 * 1024
"""Maximum length of a text field, in characters."""

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_BYTES)]
Name = Annotated[str, msgspec.Meta(max_length=512)]


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base class of every type that crosses."""


# ---------------------------------------------------------------------------------------------- testcase


class TestcaseKind(StrEnum):
    PYTHON = "python"
    COMMAND_LINE = "command-line"


class Testcase(Wire, frozen=True, kw_only=True):
    """The program to run: files by relative path, and steps in order. Each step is an argv that begins with a tool.

    A tool is ``python`` or a program of the toolchain (``iree-compile``). The toolchain maps the name to a path
    inside the sandbox; a path from the issue is never run.
    """

    kind: TestcaseKind
    toolchain: Name
    files: dict[str, str]
    steps: tuple[tuple[str, ...], ...]
    requirements: tuple[Name, ...] = ()
    variables: dict[Name, Name] | msgspec.UnsetType = msgspec.UNSET
    """Environment variables of all steps, of those that the toolchain's vocabulary allows. Unset without any: then
    the digest is that of a testcase from before this field existed."""

    def list_variables(self) -> dict[str, str]:
        return {} if isinstance(self.variables, msgspec.UnsetType) else self.variables


class Signature(Wire, frozen=True, kw_only=True):
    """The identity of a failure, normalized: without addresses, paths and line numbers."""

    type: Name
    """An exception class, ``SIGSEGV``, ``mlir-error``, ``status:INTERNAL`` …"""
    message: Text = ""
    frames: tuple[Name, ...] = ()
    """Functions of the compiler, innermost first; none of the testcase."""
    callees: tuple[Name, ...] = ()
    """Methods of the compiler's common classes in a native stack, innermost first. They identify a failure only where
    the report's stack is cut behind them."""
    site: Name = ""
    """The C++ function in which a check failed, without its namespace, if TVM's traceback names the function."""


class ClaimKind(StrEnum):
    CRASH = "crash"
    ERROR = "error"
    WRONG_RESULT = "wrong-result"
    COUNT = "count"
    """The compiler makes another number of things than it should: "two dispatches instead of one". The claim quotes
    the numbers as ``actual`` and ``expected``."""
    ACCEPTED = "accepted"
    """The compiler accepts what it should refuse: a run that ends well shows the failure."""
    HANG = "hang"
    SLOW = "slow"
    MEMORY = "memory"
    UNKNOWN = "unknown"


ANY_ERROR = "error"
"""A wish for an error of any type, in `Claim.wished`."""


class Claim(Wire, frozen=True, kw_only=True):
    """The reporter's claim, as far as the text of the report states it."""

    kind: ClaimKind = ClaimKind.UNKNOWN
    signature: Signature | None = None
    versions: tuple[Name, ...] = ()
    devices: tuple[Name, ...] = ()
    actual: Text = ""
    """Output lines that the report quotes as wrong."""
    expected: Text = ""
    """Output lines that the report quotes as right."""
    good: tuple[Name, ...] = ()
    """Versions that the report calls good."""
    told: Text = ""
    """Title, prose and quoted output: a failure whose message stands there is a reported one. Empty beside an
    exception or a crash, with which no other failure is compared."""
    sometimes: bool = False
    """True if the report calls the failure flaky: then more than two runs have to agree."""
    accused: tuple[Name, ...] = ()
    """Names in the title that look like code: passes, operators, functions. Not all of them are the compiler's."""
    intended: bool = False
    """True if the report calls the error that it quotes its own doing: the report is about something beside it."""
    wished: tuple[Name, ...] = ()
    """Exceptions with which the program should end, by the report; `ANY_ERROR` where any error would do."""
    system: Name = ""
    """The operating system or the Python that the report is about, if runs here have another one: ``macOS``."""
    shown: Annotated[tuple[Name, ...], msgspec.Meta(max_length=40)] = ()
    """Rows of values that a report on wrong values shows outside its code, with a space between the values. Whether
    they are printed, expected or neither is open: a run of the reported build decides."""


# ---------------------------------------------------------------------------------------------- one probe


class Exited(Wire, frozen=True, kw_only=True, tag_field="kind", tag="exited"):
    code: int


class Signalled(Wire, frozen=True, kw_only=True, tag_field="kind", tag="signalled"):
    code: int
    """Number of the signal."""


class TimedOut(Wire, frozen=True, kw_only=True, tag_field="kind", tag="timed-out"):
    where: Text = ""
    """The step, and the innermost frames if they are known."""
    clock: Literal["wall", "processor"] = "wall"
    """The exceeded limit: wall-clock time, or processor time of all processes together."""


class OutOfMemory(Wire, frozen=True, kw_only=True, tag_field="kind", tag="out-of-memory"):
    limit_bytes: int = 0


class NotRun(Wire, frozen=True, kw_only=True, tag_field="kind", tag="not-run"):
    why: Text = ""
    cause: Literal["unavailable", "forbidden", "infra"] = "infra"
    """``unavailable``: the build or the device does not exist here. ``forbidden``: a limit that the operator sets
    forbids the testcase's requirements. ``infra``: our own failure; a retry may help."""


Ended = Exited | Signalled | TimedOut | OutOfMemory | NotRun


Short = Annotated[str, msgspec.Meta(max_length=2000)]


class Frame(Wire, frozen=True, kw_only=True):
    file: Name
    line: int
    function: Name


class Raised(Wire, frozen=True, kw_only=True):
    """One exception of a chain."""

    type: Name
    """With its module, unless the module is ``builtins`` or the script."""
    message: Short = ""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=32)] = ()
    """Innermost first."""
    because: Literal["", "cause", "context"] = ""
    """Relation to the preceding exception of the chain: its ``__cause__`` or its ``__context__``."""


class Phase(Wire, frozen=True, kw_only=True):
    """The beginning of a phase of a script."""

    name: Literal["compile", "run"]
    at: float
    """Seconds since the start of the script."""


class Thread(Wire, frozen=True, kw_only=True):
    """A thread at the time-out, as the kernel describes it."""

    process: int
    name: Name
    state: Name
    busy: float
    """Share of a processor, 0 … 1."""
    waits_in: Name = ""


class Hang(Wire, frozen=True, kw_only=True):
    """The state of a step at its time-out. ``threads`` comes from the kernel, the stacks come from the guest."""

    doing: Literal["computing", "waiting", "unknown"]
    """``waiting``: no thread uses a processor."""
    place: Literal["testcase", "compiler", "compiled", "library", "unknown"]
    """The code that the main thread runs; ``compiled``: a call that no longer compiles."""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=32)] = ()
    """Python frames, innermost first."""
    native: Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)] = ()
    """Native functions, innermost first."""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=32)] = ()
    seconds: float = 0.0


class Record(Wire, frozen=True, kw_only=True):
    """Facts about a step beside its output.

    The host records ``forked``, ``peak_bytes`` and the threads of a hang. The testcase's own process writes the rest,
    so the rest is a claim: it may be shown, and may be used to compare failures, but never decides how a step ended.
    """

    chain: Annotated[tuple[Raised, ...], msgspec.Meta(max_length=8)] = ()
    """The exception that ended a Python step, then its causes. Empty without an exception or without a record."""
    warnings: Annotated[tuple[tuple[Name, Name], ...], msgspec.Meta(max_length=16)] = ()
    """Category and text."""
    phases: Annotated[tuple[Phase, ...], msgspec.Meta(max_length=128)] = ()
    seconds: float | None = None
    """From the first line of the script to its end; None if the script did not report it."""
    hang: Hang | None = None
    peak_bytes: int = 0
    """Peak resident memory of the step's largest process."""
    forked: bool = False
    """True if the step was forked from a process that had done the script's first imports."""
    not_forked: Short = ""
    """The reason why a requested fork was not made."""


class StepResult(Wire, frozen=True, kw_only=True):
    """The result of one step, as seen by the host.

    ``stdout`` and ``stderr`` are the guest's: bounded and not escaped. Common terminal codes are removed. Hostile
    text may still hold terminal codes, and is escaped where it is shown.
    """

    argv: tuple[str, ...]
    ended: Ended
    stdout: Text = ""
    stderr: Text = ""
    seconds: float = 0.0
    truncated: bool = False
    record: Record | None = None


class Outcome(StrEnum):
    """The outcome of a probe, relative to the claim. Only ``match`` is bad, only ``pass`` is good."""

    MATCH = "match"
    OTHER_FAILURE = "other-failure"
    PASS = "pass"
    COMPILED = "compiled"
    """It compiles for a target that the report does not name: no clean run of the reporter's program."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    INCOMPATIBLE = "incompatible"
    UNAVAILABLE = "unavailable"
    INFRA = "infra"


class Answer(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


class Variant(StrEnum):
    """The text that was run: the reporter's, or a derived text, which is always shown as derived."""

    ORIGINAL = "original"
    PORTED = "ported"
    RETARGETED = "retargeted"
    CONTROL = "control"


SAID_TO_WORK = "what the report says works"
"""`Observation.changes` of a control that comes from the report. Our own controls list their changes."""


GENERATED = " → generated data"
"""The end of an entry of `Observation.changes` for data that the report leaves out and that was generated."""


class FindingKind(StrEnum):
    OUT_OF_BOUNDS_ACCESS = "out-of-bounds-access"
    NAN_INEQUALITY = "nan-inequality"
    VALUES_REPLACED = "values-replaced"
    DEVICE_SPECIFIC = "device-specific"
    SIGNATURE_CHANGED = "signature-changed"
    UNDEFINED_OPERAND = "undefined-operand"
    UNINITIALIZED_READ = "uninitialized-read"
    BROKEN_RULE = "broken-rule"
    INPUT_MUTATED = "input-mutated"
    GUILTY_PASS = "guilty-pass"
    NONDETERMINISTIC = "nondeterministic"
    REFERENCE = "reference"
    API_MOVED = "api-moved"
    MISSING = "missing"
    WRONG_CALL = "wrong-call"
    REACH = "reach"
    YOUNGER_PACKAGE = "younger-package"


class Finding(Wire, frozen=True, kw_only=True):
    """One finding of a diagnosis. ``evidence`` holds plain JSON values that a maintainer can check."""

    kind: FindingKind
    summary: Text
    evidence: dict[str, Any] = {}


class Limits(Wire, frozen=True, kw_only=True):
    """The resource limits of one probe. Times are in seconds, sizes in bytes."""

    wall_s: float = 120.0
    cpu_s: float | None = None
    """Processor time of all processes together. None: a share of the machine's processor time in ``wall_s``, see
    ``runners.sandbox.limits.cpu_time.compute_allowance``."""
    memory_bytes: int = 8 * 1024**3
    processes: int = 256
    output_bytes: int = 256 * 1024
    disk_bytes: int = 512 * 1024**2


class Varied(Wire, frozen=True, kw_only=True):
    """Conditions of a run that are no part of its testcase and can decide its result. The defaults are the usual
    conditions."""

    hash_seed: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 0
    """``PYTHONHASHSEED``: the order of sets of strings, and of other objects with a string's hash."""
    fill: Annotated[int, msgspec.Meta(ge=1, le=255)] | None = None
    """``MALLOC_PERTURB_``: the C library fills new memory with the complement of this byte."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    """Threads of the compiled program's runtime. None: the toolchain's usual number."""


class Cell(Wire, frozen=True, kw_only=True):
    """One cell of the matrix: a build, a device, a text and the conditions of the run."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._+-]{0,127}$")]
    toolchain: Name
    version: Name
    device: Name
    variant: Variant = Variant.ORIGINAL
    testcase: Testcase
    changes: tuple[Name, ...] = ()
    """The changes of a derived text, in words: ``tvm.tir → tvm.tirx``."""
    notation_only: bool = False
    """True if a ported text is the same program in another notation: it calls no API that moved."""
    compile_only: bool = False
    """True if the text only compiles, for a target that the report does not name."""
    varied: Varied = Varied()
    limits: Limits = Limits()


class Budget(Wire, frozen=True, kw_only=True):
    """The limits of one investigation."""

    probes: int = 36
    """Runs of the testcase in all, reruns and diagnoses included."""
    wall_s: float = 1500.0
    workers: int = 2


class RangeBuild(Wire, frozen=True, kw_only=True):
    """One build of a range."""

    name: Name
    """The version of the build in observations."""
    commit: Name = ""
    """Full sha; empty if unknown."""
    commits: int
    """Number of commits of the main branch since the first build of the range."""
    weight: float = 1.0
    """Share of the prior on the commits since the preceding build; 0 or more, not normalized."""


class BuildRange(Wire, frozen=True, kw_only=True):
    """The builds between two ends that answer differently, oldest first, and the parameters of the search among them.

    The answer can be computed again from the range and the observations.
    """

    direction: Literal["introduced", "fixed"]
    builds: Annotated[tuple[RangeBuild, ...], msgspec.Meta(min_length=2, max_length=20_000)]
    repository: Name = ""
    """``owner/name``, for compare links."""
    confidence: float = 0.95
    """Belief in a range at which the search ends."""
    publish: float = 0.993
    """Belief in one commit from which on it may be named."""
    calibration: int = 10
    """Runs of each end before any other run."""
    probes: int = 150
    """Most runs of the search."""
    notes: tuple[Text, ...] = ()
    """Facts about the list that a reader must know: builds left out, sources without builds."""
    over: Text = ""
    """The part that all these builds share and that was not built from their commits; empty for complete builds."""


class PartRole(StrEnum):
    OTHER = "other"
    RESULT = "result"
    """A value that the compiler takes part in."""
    REFERENCE = "reference"
    """A value that the program computes without the compiler."""
    CHECK = "check"
    """What a comparison of the program says."""
    DIFFERENCE = "difference"
    """How far a result is from a reference."""


class PrintedPart(Wire, frozen=True, kw_only=True):
    """A literal text or a value in a row that a program prints."""

    text: Text = ""
    """The literal text; empty for a value."""
    role: PartRole = PartRole.OTHER
    good: Text = ""
    """For a comparison: the word that says that the result is right. It may be empty."""
    bad: Text = ""
    """For a comparison: the word that says that the result is wrong. It may be empty."""


class PrintedRow(Wire, frozen=True, kw_only=True):
    """One call of ``print``, or several calls in a row: their literal texts and values, in order."""

    parts: tuple[PrintedPart, ...]
    lines: Annotated[int, msgspec.Meta(ge=1, le=4)] = 1
    tells: Text = ""
    """``bad`` or ``good`` if the row is only printed where the program's own comparison fails or holds."""


class Plan(Wire, frozen=True, kw_only=True):
    """The question of an investigation and its limits: the complete input of a runner."""

    schema: int = SCHEMA
    testcase: Testcase
    claim: Claim
    device: Name
    """The device that the testcase as posted asks for."""
    checks_itself: bool = False
    """True if the testcase contains an assertion: then a run without a failure is evidence."""
    prints_reference: bool = False
    """True if the testcase prints a result of the compiler and, beside it, a reference for that result."""
    rows: tuple[PrintedRow, ...] = ()
    """The rows in which the testcase prints results beside references, or what its own comparisons say."""
    caught: tuple[Text, ...] = ()
    """The texts that the testcase prints before an exception that it caught; empty where no text leads to its row."""
    order: tuple[Name, ...]
    """Every release that may be probed, oldest first."""
    first: tuple[Name, ...]
    """The releases that are always probed: the reported, the oldest and the newest."""
    controls: tuple[Testcase, ...] = ()
    """Variants that the report says work."""
    reported: Name | None = None
    """The release nearest to the reported version; None if the report names no available version."""
    good: tuple[Name, ...] = ()
    """The builds of ``order`` that the report calls good, where only their output tells right from wrong."""
    answered: Name | None = None
    """The newest release of an earlier answer. If the newest release behaves as this release did, the reruns and the
    diagnosis of this release stand for both."""
    day: date | None = None
    """Day of the report. Large packages without a version in the testcase get the version of that day on every
    release."""
    devices: tuple[Name, ...] = ()
    """Further devices to run the testcase on, retargeted."""
    bisect: bool = True
    chosen: bool = False
    """True if the caller named the releases: the newest of them need not be the newest available."""
    deepen: bool = False
    """Continue the search from the regression range of releases to nightlies and commits, if builds are available."""
    trail: BuildRange | None = None
    """If set, search these builds only."""
    diagnose: bool = True
    """Look for the cause of a failure in further runs."""
    limits: Limits = Limits()
    budget: Budget = Budget()


class Observation(Wire, frozen=True, kw_only=True):
    """The record of one run of one cell. Verdicts rest on observations only."""

    toolchain: Name
    version: Name
    device: Name
    attempt: int
    variant: Variant
    varied: Varied = Varied()
    """The conditions of the run."""
    outcome: Outcome
    answer: Answer
    ended: Ended
    why: Text = ""
    """The reason of the oracle, in words."""
    signature: Signature | None = None
    seconds: float = 0.0
    peak_bytes: int = 0
    excerpt: Text = ""
    """The end of the output of the step that ended the probe. The text comes from the guest."""
    environment: Name = ""
    """Digest of the environment's lock."""
    engine: Name = ""
    image: Name = ""
    """Digest of the sandbox's image; empty for the host's own system."""
    changes: tuple[Name, ...] = ()
    """The changes of the cell's derived text."""
    notation_only: bool = False
    """True if the cell's ported text is the same program in another notation."""
    fork: Name = ""
    """For a build that is no release of the toolchain: the commit of the fork, and the wheel that carries it."""
    driver: Name = ""
    """The software that stands in for the device's hardware, if any."""
    findings: tuple[Finding, ...] = ()
    record: Record | None = None
    """The record of the step that ended the probe."""


# ---------------------------------------------------------------------------------------------- search


class CommitRange(Wire, frozen=True, kw_only=True):
    """``start`` (exclusive) to ``end`` (inclusive) in the toolchain's repository; names or shas."""

    start: Name
    end: Name
    count: int | None = None
    """Number of commits between them on the main branch; None if that is unknown offline."""
    compare_url: Name = ""


class Commit(Wire, frozen=True, kw_only=True):
    """One commit as its author wrote it. Text and paths are untrusted, and shortened to the needs of a ranking."""

    sha: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}$")]
    day: date
    """Day of the commit, in UTC."""
    subject: Name
    body: Text = ""
    paths: tuple[Name, ...] = ()
    """The files that differ from the first parent."""


class Suspect(Wire, frozen=True, kw_only=True):
    """A commit that may be related to a failure. The ranking compares words: it is no evidence."""

    commit: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}$")]
    subject: Name
    score: float
    """Share of the belief over the commits of the range, 0 … 1."""
    why: tuple[Text, ...] = ()


class Bisection(Wire, frozen=True, kw_only=True):
    """The regression range of one change of behaviour: last good and first bad, or last bad and first good.

    ``skipped`` are builds inside the range that answered neither good nor bad, ``untested`` are builds that were not
    run. The change may lie on either side of them.
    """

    direction: Literal["introduced", "fixed"]
    last_good: Name | None = None
    first_bad: Name | None = None
    last_bad: Name | None = None
    first_good: Name | None = None
    skipped: tuple[Name, ...] = ()
    untested: tuple[Name, ...] = ()
    confidence: float = 0.0
    probes: int = 0
    commits: CommitRange | None = None
    suspects: tuple[Suspect, ...] = ()
    """At most five commits of the range, the most related to the report first."""
    culprit: Name | None = None
    """Full sha of the first bad commit, or of the fix: two builds one commit apart differ, in as many runs as the
    failure rates demand."""
    deep: bool = False
    """True if found along builds between releases."""
    notes: tuple[Text, ...] = ()
    """Facts in words: failure rates, further changes, parts that could not be searched."""


class Smaller(Wire, frozen=True, kw_only=True):
    """A minimized testcase, and the evidence that its failure is the same."""

    testcase: Testcase
    version: Name
    """The release on which each step of the reduction failed as reported."""
    device: Name
    control: Name = ""
    """The release on which each step of the reduction passed; empty without a control."""
    signature: Signature | None = None
    """The failure of the smaller testcase."""
    before: int
    """Lines that are not blank, in all files and steps."""
    after: int
    probes: int
    seconds: float
    confirmed: int
    """Number of reruns of the result at the end that failed the same way."""
    stopped: Literal["minimal", "probes", "time"]
    """``minimal``: no piece can be removed. Otherwise the limit that was reached first."""


class Cost(Wire, frozen=True, kw_only=True):
    """The runs behind an investigation, diagnoses included."""

    made: int = 0
    reused: int = 0
    """Runs taken from a ledger."""
    seconds: float = 0.0
    """Time of the runs that were made."""


Instant = Annotated[float, msgspec.Meta(ge=0, le=7 * 24 * 3600)]
"""Seconds since the start of an investigation."""


StageName = Literal["matrix", "bisection", "confirmation", "diagnosis", "between releases", "minimization"]


class TimedStage(Wire, frozen=True, kw_only=True):
    """A stage of an investigation."""

    name: StageName
    begin: Instant
    end: Instant


class TimedRun(Wire, frozen=True, kw_only=True):
    """A run that was made, also one for a diagnosis and one that was made early and not used."""

    version: Name
    device: Name
    begin: Instant
    end: Instant
    seconds: Instant = 0.0
    """Time of the testcase in its sandbox. The rest of the time prepared the environment and the sandbox."""


class Times(Wire, frozen=True, kw_only=True):
    """How an investigation spent its time."""

    stages: Annotated[tuple[TimedStage, ...], msgspec.Meta(max_length=50)] = ()
    runs: Annotated[tuple[TimedRun, ...], msgspec.Meta(max_length=2000)] = ()

    @property
    def seconds(self) -> float:
        """The end of the last stage or run."""
        return max([*(one.end for one in self.stages), *(one.end for one in self.runs)], default=0.0)


class Investigation(Wire, frozen=True, kw_only=True):
    """The results of all runs of one plan. ``observations`` are in the order of their runs."""

    observations: Annotated[tuple[Observation, ...], msgspec.Meta(max_length=1000)] = ()
    findings: Annotated[tuple[Finding, ...], msgspec.Meta(max_length=200)] = ()
    trail: BuildRange | None = None
    """The builds between releases that were searched."""
    smaller: Smaller | None = None
    conditions: Annotated[tuple[Text, ...], msgspec.Meta(max_length=50)] = ()
    """Facts about the machine and the sandbox that a reader of the verdict must know."""
    cost: Cost = Cost()
    times: Times = Times()


# ---------------------------------------------------------------------------------------------- jobs, over files

CellId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
"""A name that contains no text of an issue. It names files, artifacts and rows of a job matrix."""
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


MAX_PLAN_BYTES = 8 * 1024 * 1024
"""Maximum size of ``plan.json``. A larger testcase with attachments is not accepted."""


class JobCell(Wire, frozen=True, kw_only=True):
    """The work of one job: a whole investigation, on one kind of machine."""

    id: CellId
    machine: Name = ""
    """The kind of machine, by its name in the settings; empty for any ordinary machine."""
    plan: Plan
    testcase_sha256: Digest
    """Digest of ``plan.testcase``. On a machine that needs approval, the job compares it again before it starts."""
    sandbox: Name = "auto"
    allow: tuple[Name, ...] = ()
    """Packages that the testcase may install besides those on the list."""
    download_mib: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Limit of an environment's download if the testcase requires packages; None for the machine's own limit."""
    minimize: bool = False
    """Also minimize the testcase."""


class JobPlan(Wire, frozen=True, kw_only=True):
    """``plan.json``: the cells to run, and ``case``, which only the bot reads."""

    schema: int = SCHEMA
    cells: tuple[JobCell, ...]
    case: msgspec.Raw


class CellResult(Wire, frozen=True, kw_only=True):
    """``results/<cell>.json``: written on the host by the process that started the sandbox, never inside it."""

    schema: int = SCHEMA
    cell: CellId
    plan_sha256: Digest
    """Digest of the ``plan.json`` that was run."""
    seen: Investigation = Investigation()
    problem: Text = ""
    """The reason why no run was made, if the failure is our own."""


def count_lines(testcase: Testcase) -> int:
    """Count the lines of all files that are not blank, and the steps."""
    return sum(bool(line.strip()) for text in testcase.files.values() for line in text.splitlines()) + len(
        testcase.steps
    )


def digest_of(testcase: Testcase) -> str:
    """Return the sha256 of a testcase, all fields included. An approval names this digest."""
    return sha256(msgspec.json.encode(testcase, order="deterministic")).hexdigest()
