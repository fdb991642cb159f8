"""Define the wire contract between ``bot`` and ``runners``: every type that crosses, and the schema number.

All types are frozen ``msgspec`` structs that refuse unknown fields. So a reader understands a document completely or
refuses it. The types limit the length of text fields, because the output of a sandbox is a claim by strangers' code.
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
    """Environment variables of all steps, as far as the toolchain's vocabulary allows them. Unset without any: then
    the digest equals that of a testcase from before this field existed."""
    filters: Name | msgspec.UnsetType = msgspec.UNSET
    """The filters behind the last step, as shell text: ``| grep -c x``. They never run as programs: the supervisor
    applies them to the output. Unset without any, as ``variables``."""

    def list_variables(self) -> dict[str, str]:
        return {} if isinstance(self.variables, msgspec.UnsetType) else self.variables

    def read_filters(self) -> str:
        return "" if isinstance(self.filters, msgspec.UnsetType) else self.filters


class Signature(Wire, frozen=True, kw_only=True):
    """The identity of a failure, normalized: without addresses, paths and line numbers."""

    type: Name
    """An exception class, ``SIGSEGV``, ``mlir-error``, ``status:INTERNAL`` …"""
    message: Text = ""
    frames: tuple[Name, ...] = ()
    """Functions of the compiler, innermost first. Functions of the testcase are left out."""
    callees: tuple[Name, ...] = ()
    """Methods of the compiler's common classes in a native stack, innermost first. They are compared only if the
    report's stack ends with them."""
    site: Name = ""
    """The C++ function in which a check failed, without its namespace. Empty unless TVM's traceback names it."""


class ClaimKind(StrEnum):
    CRASH = "crash"
    ERROR = "error"
    WRONG_RESULT = "wrong-result"
    COUNT = "count"
    """The compiler makes a wrong number of things: "two dispatches instead of one". The claim quotes the numbers as
    ``actual`` and ``expected``."""
    ACCEPTED = "accepted"
    """The compiler accepts what it should reject. A run that ends well shows the failure."""
    HANG = "hang"
    SLOW = "slow"
    MEMORY = "memory"
    UNKNOWN = "unknown"


ANY_ERROR = "error"
"""An expected error of any type, in `Claim.wished`."""


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
    """The report's title, prose and quoted output. A failure whose message occurs here counts as reported. Empty if
    the report quotes an exception or a crash, which is compared instead."""
    sometimes: bool = False
    """True if the report calls the failure flaky. Then more than two runs must agree."""
    accused: tuple[Name, ...] = ()
    """Names in the title that look like code: passes, operators, functions. Not all of them are the compiler's."""
    intended: bool = False
    """True if the report states that the quoted error is intended: it is about something else."""
    wished: tuple[Name, ...] = ()
    """Exceptions with which the program should end, according to the report. `ANY_ERROR` if any error would do."""
    system: Name = ""
    """The operating system or the Python that the report is about, if runs use another one: ``macOS``."""
    shown: Annotated[tuple[Name, ...], msgspec.Meta(max_length=40)] = ()
    """Rows of values that a report on wrong values shows outside its code, with a space between the values. A run of
    the reported build decides whether they are printed, expected or neither."""


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
    """``unavailable``: the build or the device does not exist here. ``forbidden``: the operator's limits forbid the
    testcase's requirements. ``infra``: our own failure; a retry may help."""


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
    """The code that the main thread runs. ``compiled``: a call that no longer compiles."""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=32)] = ()
    """Python frames, innermost first."""
    native: Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)] = ()
    """Native functions, innermost first."""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=32)] = ()
    seconds: float = 0.0


class Record(Wire, frozen=True, kw_only=True):
    """Facts about a step beside its output.

    The host records ``forked``, ``peak_bytes`` and the threads of a hang. The testcase's own process writes the rest,
    so the rest is a claim. It may be shown and used to compare failures, but it never decides how a step ended.
    """

    chain: Annotated[tuple[Raised, ...], msgspec.Meta(max_length=8)] = ()
    """The exception that ended a Python step, then its causes. Empty without an exception, or without a record."""
    warnings: Annotated[tuple[tuple[Name, Name], ...], msgspec.Meta(max_length=16)] = ()
    """Category and text."""
    phases: Annotated[tuple[Phase, ...], msgspec.Meta(max_length=128)] = ()
    seconds: float | None = None
    """From the first line of the script to its end. None if the script did not report it."""
    hang: Hang | None = None
    peak_bytes: int = 0
    """Peak resident memory of the step's largest process."""
    forked: bool = False
    """True if the step was forked from a process that had done the script's first imports."""
    not_forked: Short = ""
    """The reason why a requested fork was not made."""


class StepResult(Wire, frozen=True, kw_only=True):
    """The result of one step, as seen by the host.

    ``stdout`` and ``stderr`` come from the guest: bounded and not escaped. Common terminal codes are removed. Hostile
    text may still contain terminal codes; it is escaped where it is shown.
    """

    argv: tuple[str, ...]
    ended: Ended
    stdout: Text = ""
    stderr: Text = ""
    seconds: float = 0.0
    truncated: bool = False
    filtered: Text | msgspec.UnsetType = msgspec.UNSET
    """What the testcase's filters leave of the output of its last step. Unset without filters, and if the result is
    too long."""
    record: Record | None = None


class Outcome(StrEnum):
    """The outcome of a probe, relative to the claim. Only ``match`` is bad, only ``pass`` is good."""

    MATCH = "match"
    OTHER_FAILURE = "other-failure"
    PASS = "pass"
    COMPILED = "compiled"
    """It compiles for a target that the report does not name. This is not a clean run of the reporter's program."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    INCOMPATIBLE = "incompatible"
    UNAVAILABLE = "unavailable"
    INFRA = "infra"


class Answer(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


class Reason(StrEnum):
    """Why a run has its outcome. Rules branch on the reason, and never on the sentence in `Observation.why`."""

    # The run was not made, or was cut short.
    NOT_RUN = "not-run"
    OUT_OF_MEMORY = "out-of-memory"
    TIMED_OUT = "timed-out"
    # The run failed.
    AS_QUOTED = "fails-as-quoted"
    """It shows the failure that the report quotes."""
    AS_TOLD = "fails-as-told"
    """It shows a failure that the report tells of in words."""
    CHECK_FAILS = "check-fails"
    """The testcase's own check of the result fails."""
    REFUSED = "refused"
    """It ends with the error that the report misses."""
    PAST_COMPILING = "past-compiling"
    """It compiles, and the report fails while compiling."""
    NO_DEVICE = "no-device"
    COMPILES_WITHOUT_DEVICE = "compiles-without-device"
    """It compiles, and the device to run the result is absent."""
    LACKS_PART = "lacks-part"
    """The build lacks a part of the compiler that the testcase needs."""
    DEVICE_FAULT = "device-fault"
    """The device or its driver failed, and not the compiler."""
    API_MOVED = "api-moved"
    NEEDS_FLAG = "needs-flag"
    """The build reads the input only with a flag that the testcase lacks."""
    FAILS_DIFFERENTLY = "fails-differently"
    # The run ended well.
    ENDS_WELL = "ends-well"
    """It ends without the reported failure."""
    ACCEPTED = "accepted"
    """It ends without the error that the report misses."""
    CHECK_HOLDS = "check-holds"
    """The testcase's own check of the result holds."""
    CATCHES_ANOTHER = "catches-another"
    """It catches another failure than the reported one."""
    NOTHING_NAMED = "nothing-named"
    """The report names no failure to look for."""
    COMPILES_ONLY = "compiles-only"
    """It compiles for a target that the report does not name."""
    COUNTED = "counted"
    """Things in its output were counted."""
    NOT_COUNTED = "not-counted"
    PRINTS_WRONG = "prints-wrong"
    """It prints what the report calls wrong."""
    PRINTS_EXPECTED = "prints-expected"
    """It prints what the report expects."""
    PRINTS_SIMILAR = "prints-similar"
    """It prints a similar program to the one that the report calls wrong."""
    PRINTS_CHANGED = "prints-changed"
    """It no longer prints what the report calls wrong."""
    KEEPS_OPERATION = "keeps-operation"
    """Its program has an operation of the testcase that the quoted program lacks: `Observation.detail`."""
    PRINTS_UNKNOWN = "prints-unknown"
    """It prints something else than the report quotes, or nothing that can be compared."""
    OTHER_REFERENCE = "other-reference"
    """It prints another result than its own reference."""
    SAME_REFERENCE = "same-reference"
    TWINS_DIFFER = "twins-differ"
    """Several runs of one program print different results."""
    TWINS_AGREE = "twins-agree"
    # All runs together decide: no single run has these reasons, and no result file may claim them.
    OTHER_VALUES = "other-values"
    """It prints other values than those that the report calls wrong, which another build prints."""
    OTHER_GARBAGE = "other-garbage"
    """It prints neither the output that the report calls wrong nor that of other builds."""
    UNEXPECTED = "unexpected"
    """It prints other values than the expected ones, which other runs of the build print."""
    VOTED_VALUES = "voted-values"
    """It prints what a computation without the compiler gives."""
    FAILS_ALIKE = "fails-alike"
    """It fails in the same way as a build on which the reported failure was recognized."""
    AS_POSTED = "as-posted"
    """The posted call lacks a flag that the build needs, and the report quotes the refusal."""
    NAMED_BUILD = "named-build"
    """It prints what a build prints that the report names."""
    SHOWN_VALUES = "shown-values"
    """It prints values that the report shows."""
    TOLD_PARTS = "told-parts"
    """Its program has or lacks parts that the report names."""
    COMPARED_INPUT = "compared-input"
    """Its program is the posted one, which the report says a pass does not change, or a changed one."""
    CHANGED_SINCE = "changed-since"
    """Its program is the one of the reported build, or the one that came after it."""
    COSTLY = "costly"
    """It takes several times as much as other builds."""


class Variant(StrEnum):
    """The text that was run: the reporter's, or a derived one. A derived text is always shown as such."""

    ORIGINAL = "original"
    PORTED = "ported"
    RETARGETED = "retargeted"
    CONTROL = "control"


SAID_TO_WORK = "what the report says works"
"""`Observation.changes` of a control that comes from the report. Our own controls list their changes."""


GENERATED = " → generated data"
"""The end of an entry of `Observation.changes` for generated data that replaces data missing from the report."""


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
    """One finding of a diagnosis. ``evidence`` contains plain JSON values that a maintainer can check."""

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
    """Conditions of a run that are not part of its testcase but can decide its result. The defaults are the usual
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
    """True if a ported text is the same program in another notation, without calls of moved APIs."""
    compile_only: bool = False
    """True if the text only compiles, for a target that the report does not name."""
    varied: Varied = Varied()
    limits: Limits = Limits()


class Budget(Wire, frozen=True, kw_only=True):
    """The limits of one investigation."""

    probes: int = 36
    """Maximum number of runs of the testcase, including reruns and diagnoses."""
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
    """The builds between two ends that answer differently, oldest first, and the parameters of the search.

    The answer can be recomputed from the range and the observations.
    """

    direction: Literal["introduced", "fixed"]
    builds: Annotated[tuple[RangeBuild, ...], msgspec.Meta(min_length=2, max_length=20_000)]
    repository: Name = ""
    """``owner/name``, for compare links."""
    confidence: float = 0.95
    """Belief in a range at which the search ends."""
    publish: float = 0.993
    """Belief in one commit above which the report may name it."""
    calibration: int = 10
    """Runs of each end before any other run."""
    probes: int = 150
    """Maximum number of runs of the search."""
    notes: tuple[Text, ...] = ()
    """Facts about the list that a reader must know: builds left out, sources without builds."""
    over: Text = ""
    """The part that all these builds share and that was not built from their commits. Empty for complete builds."""


class PartRole(StrEnum):
    OTHER = "other"
    RESULT = "result"
    """A value to whose computation the compiler contributes."""
    REFERENCE = "reference"
    """A value that the program computes without the compiler."""
    CHECK = "check"
    """The outcome of a comparison by the program."""
    DIFFERENCE = "difference"
    """The distance of a result from a reference."""


class PrintedPart(Wire, frozen=True, kw_only=True):
    """A literal text or a value in a row that a program prints."""

    text: Text = ""
    """The literal text; empty for a value."""
    role: PartRole = PartRole.OTHER
    good: Text = ""
    """For a comparison: the word that states that the result is right. It may be empty."""
    bad: Text = ""
    """For a comparison: the word that states that the result is wrong. It may be empty."""


class PrintedRow(Wire, frozen=True, kw_only=True):
    """The literal texts and values, in order, of one call of ``print`` or of several calls in succession."""

    parts: tuple[PrintedPart, ...]
    lines: Annotated[int, msgspec.Meta(ge=1, le=4)] = 1
    tells: Text = ""
    """``bad`` or ``good`` if the row is printed only when the program's own comparison fails or succeeds."""


class Plan(Wire, frozen=True, kw_only=True):
    """The question of an investigation and its limits: the complete input of a runner."""

    schema: int = SCHEMA
    testcase: Testcase
    claim: Claim
    device: Name
    """The device that the testcase as posted asks for."""
    checks_itself: bool = False
    """True if the testcase checks its own result: then a run without a failure is evidence."""
    prints_reference: bool = False
    """True if the testcase prints a result of the compiler and a reference for it."""
    rows: tuple[PrintedRow, ...] = ()
    """The rows in which the testcase prints results beside references, or the outcome of its own comparisons."""
    caught: tuple[Text, ...] = ()
    """The texts that the testcase prints before a caught exception. Empty if no text precedes it in its row."""
    order: tuple[Name, ...]
    """Every release that may be probed, oldest first."""
    first: tuple[Name, ...]
    """The releases that are always probed: the reported, the oldest and the newest."""
    controls: tuple[Testcase, ...] = ()
    """Variants that work according to the report."""
    reported: Name | None = None
    """The release nearest to the reported version. None if the report names no available version."""
    good: tuple[Name, ...] = ()
    """The builds of ``order`` that the report calls good, if only their output distinguishes right from wrong."""
    answered: Name | None = None
    """The newest release of an earlier answer. If the newest release behaves the same, its reruns and its diagnosis
    are taken from this release."""
    day: date | None = None
    """Day of the report. Large packages without a version in the testcase get the version of that day on every
    release."""
    devices: tuple[Name, ...] = ()
    """Further devices to run the testcase on, retargeted."""
    bisect: bool = True
    chosen: bool = False
    """True if the caller named the releases. Then the newest of them may not be the newest available."""
    deepen: bool = False
    """Continue the search from the regression range of releases to nightlies and commits, if builds are available."""
    trail: BuildRange | None = None
    """If set, search these builds only."""
    diagnose: bool = True
    """Look for the cause of a failure in further runs."""
    limits: Limits = Limits()
    budget: Budget = Budget()


class Observation(Wire, frozen=True, kw_only=True):
    """The record of one run of one cell. Verdicts use only observations."""

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
    """The reason in words, for people."""
    reason: Reason | None = None
    """None in a record from before this field existed."""
    detail: Name = ""
    """What the reason is about: the operation of `Reason.KEEPS_OPERATION`. The text comes from the guest."""
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
    """For a build that is not a release of the toolchain: the commit of the fork, and the wheel that contains it."""
    driver: Name = ""
    """The software that replaces the device's hardware, if any."""
    findings: tuple[Finding, ...] = ()
    record: Record | None = None
    """The record of the step that ended the probe."""


# ---------------------------------------------------------------------------------------------- search


class CommitRange(Wire, frozen=True, kw_only=True):
    """``start`` (exclusive) to ``end`` (inclusive) in the toolchain's repository; names or shas."""

    start: Name
    end: Name
    count: int | None = None
    """Number of commits between them, as ``git log START..END`` lists them along the main branch. Without those that
    ``start`` has as cherry-picks, if a history was read. None if it is unknown offline."""
    compare_url: Name = ""


class Commit(Wire, frozen=True, kw_only=True):
    """One commit as its author wrote it. Text and paths are untrusted, and shortened for the ranking."""

    sha: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}$")]
    day: date
    """Day of the commit, in UTC."""
    subject: Name
    body: Text = ""
    paths: tuple[Name, ...] = ()
    """The files that differ from the first parent."""


class Suspect(Wire, frozen=True, kw_only=True):
    """A commit that may be related to a failure. The ranking compares words, so it is not evidence."""

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
    """Full sha of the first bad commit, or of the fix. Two builds that are one commit apart differ, in as many runs
    as the failure rates demand."""
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
    """A run that was made. Runs for a diagnosis, and early runs that were not used, are included."""

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
    """Digest of ``plan.testcase``. On a machine that needs approval, the job checks it again before it starts."""
    sandbox: Name = "auto"
    allow: tuple[Name, ...] = ()
    """Packages that the testcase may install besides those on the list."""
    download_mib: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Limit of an environment's download if the testcase requires packages. None for the machine's own limit."""
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
