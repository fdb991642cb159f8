"""The wire contract between ``bot`` and ``runners``: every type that crosses, and its schema number.

All of them are frozen ``msgspec`` structs that refuse unknown fields, so that a document written by one side
is either understood whole by the other or refused whole. Text fields carry length limits in their types:
what comes out of a sandbox is a claim made by strangers' code.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec

SCHEMA = 1

MAX_TEXT_BYTES = 64 * 1024
"""Longest excerpt, message or file list entry that crosses, in characters."""

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_BYTES)]
Name = Annotated[str, msgspec.Meta(max_length=512)]


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of everything that crosses."""


# ---------------------------------------------------------------------------------------------- testcase


class TestcaseKind(StrEnum):
    PYTHON = "python"
    COMMAND_LINE = "command-line"


class Testcase(Wire, frozen=True, kw_only=True):
    """What is run: files by relative path, then steps in order, each an argv whose first word is a *tool*.

    A tool is ``python`` or a program of the toolchain (``iree-compile``): a name that the toolchain maps to a
    path inside the sandbox, never a path taken from the issue.
    """

    kind: TestcaseKind
    toolchain: Name
    files: dict[str, str]
    steps: tuple[tuple[str, ...], ...]
    requirements: tuple[Name, ...] = ()


class Signature(Wire, frozen=True, kw_only=True):
    """The identity of a failure, normalised (no addresses, paths, line numbers).

    ``type`` is an exception class, ``SIGSEGV``, ``mlir-error``, ``status:INTERNAL`` … ; ``frames`` are functions of
    the compiler, innermost first, never of the testcase.
    """

    type: Name
    message: Text = ""
    frames: tuple[Name, ...] = ()
    site: Name = ""
    """The C++ function in which a check failed, without its namespace, where a traceback of TVM's names it."""


class ClaimKind(StrEnum):
    CRASH = "crash"
    ERROR = "error"
    WRONG_RESULT = "wrong-result"
    HANG = "hang"
    UNKNOWN = "unknown"


class Claim(Wire, frozen=True, kw_only=True):
    """What the reporter says happens, as far as the text tells.

    ``actual`` and ``expected`` are output lines quoted in the report (what is printed; what should have been).
    """

    kind: ClaimKind = ClaimKind.UNKNOWN
    signature: Signature | None = None
    versions: tuple[Name, ...] = ()
    devices: tuple[Name, ...] = ()
    actual: Text = ""
    expected: Text = ""
    told: Text = ""
    """Title, prose and quoted output of a report from which no failure's signature could be read: a failure whose
    message stands there is the reported one. Empty for other reports."""
    sometimes: bool = False
    """The report says that it comes and goes: then runs that agree have to be more than two."""


# ---------------------------------------------------------------------------------------------- one probe


class Exited(Wire, frozen=True, kw_only=True, tag_field="kind", tag="exited"):
    code: int


class Signalled(Wire, frozen=True, kw_only=True, tag_field="kind", tag="signalled"):
    code: int
    """The signal's number."""


class TimedOut(Wire, frozen=True, kw_only=True, tag_field="kind", tag="timed-out"):
    where: Text = ""
    """Which step, and the innermost frames when they are known."""
    clock: Literal["wall", "processor"] = "wall"
    """Which time was up: that on the wall, or what all its processes together had of the processors."""


class OutOfMemory(Wire, frozen=True, kw_only=True, tag_field="kind", tag="out-of-memory"):
    limit_bytes: int = 0


class NotRun(Wire, frozen=True, kw_only=True, tag_field="kind", tag="not-run"):
    why: Text = ""
    cause: Literal["unavailable", "infra"] = "infra"
    """``unavailable``: no such build or device here. ``infra``: our own failure, worth a retry elsewhere."""


Ended = Exited | Signalled | TimedOut | OutOfMemory | NotRun


Short = Annotated[str, msgspec.Meta(max_length=2000)]


class Frame(Wire, frozen=True, kw_only=True):
    file: Name
    line: int
    function: Name


class Raised(Wire, frozen=True, kw_only=True):
    """One exception of a chain. ``type`` has its module unless that is ``builtins`` or the script; ``frames``
    innermost first."""

    type: Name
    message: Short = ""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=32)] = ()
    because: Literal["", "cause", "context"] = ""
    """How it led to the one before it in the chain."""


class Phase(Wire, frozen=True, kw_only=True):
    """What a script was doing from ``at`` on, in seconds since it began."""

    name: Literal["compile", "run"]
    at: float


class Thread(Wire, frozen=True, kw_only=True):
    """A thread at the time-out, as the kernel describes it. ``busy``: share of a processor, 0 … 1."""

    process: int
    name: Name
    state: Name
    busy: float
    waits_in: Name = ""


class Hang(Wire, frozen=True, kw_only=True):
    """Where a step was when its time was up. ``threads`` are the kernel's word, the stacks the guest's."""

    doing: Literal["computing", "waiting", "unknown"]
    """``waiting``: no thread uses a processor."""
    place: Literal["testcase", "compiler", "compiled", "library", "unknown"]
    """Whose code the main thread is in; ``compiled``: in a call that is no compilation any more."""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=32)] = ()
    """Python, innermost first."""
    native: Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)] = ()
    """Functions of libraries, innermost first."""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=32)] = ()
    seconds: float = 0.0


class Record(Wire, frozen=True, kw_only=True):
    """What is known of a step beside its output. All but ``forked``, ``peak_bytes`` and a hang's threads was told by
    the testcase's own process: claims, good for showing and for comparing failures, never for how it ended."""

    chain: Annotated[tuple[Raised, ...], msgspec.Meta(max_length=8)] = ()
    """The exception that ended a Python step, then those it came from. Empty: none, or no record."""
    warnings: Annotated[tuple[tuple[Name, Name], ...], msgspec.Meta(max_length=16)] = ()
    """Category and text."""
    phases: Annotated[tuple[Phase, ...], msgspec.Meta(max_length=128)] = ()
    seconds: float | None = None
    """From the script's first line to its end; None where it did not tell."""
    hang: Hang | None = None
    peak_bytes: int = 0
    """Resident memory of the step's largest process."""
    forked: bool = False
    """Forked from a process that had done the script's first imports."""
    not_forked: Short = ""
    """Why it was not, where that was asked for."""


class StepResult(Wire, frozen=True, kw_only=True):
    """One step as the host saw it end. ``stdout`` and ``stderr`` are the guest's words: bounded and unescaped."""

    argv: tuple[str, ...]
    ended: Ended
    stdout: Text = ""
    stderr: Text = ""
    seconds: float = 0.0
    truncated: bool = False
    record: Record | None = None


class Outcome(StrEnum):
    """What a probe shows, relative to the claim (design: only ``match`` is bad, only ``pass`` is good)."""

    MATCH = "match"
    OTHER_FAILURE = "other-failure"
    PASS = "pass"
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
    """Which text was run: the reporter's, or one derived from it (and always shown as derived)."""

    ORIGINAL = "original"
    PORTED = "ported"
    RETARGETED = "retargeted"
    CONTROL = "control"


SAID_TO_WORK = "what the report says works"
"""The change of a control that is the reporter's; controls of our own say what they changed."""


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
    NOT_IDEMPOTENT = "not-idempotent"
    GUILTY_PASS = "guilty-pass"
    NONDETERMINISTIC = "nondeterministic"
    API_MOVED = "api-moved"
    MISSING = "missing"


class Finding(Wire, frozen=True, kw_only=True):
    """One diagnosis. ``evidence`` holds plain JSON values that a maintainer can check."""

    kind: FindingKind
    summary: Text
    evidence: dict[str, Any] = {}


class Limits(Wire, frozen=True, kw_only=True):
    """What one probe may use. Times in seconds, sizes in bytes."""

    wall_s: float = 120.0
    cpu_s: float | None = None
    """Of processor time, all its processes together. None: a share of what the machine could give in ``wall_s``, see
    ``runners.sandbox.limits.cpu_time.compute_allowance``."""
    memory_bytes: int = 8 * 1024**3
    processes: int = 256
    output_bytes: int = 256 * 1024
    disk_bytes: int = 512 * 1024**2


class Varied(Wire, frozen=True, kw_only=True):
    """Conditions of a run that are no part of its testcase and can decide its result. The defaults are the usual."""

    hash_seed: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 0
    """``PYTHONHASHSEED``: the order of Python's sets of strings, and of what else hashes by its words."""
    fill: Annotated[int, msgspec.Meta(ge=1, le=255)] | None = None
    """``MALLOC_PERTURB_``: the C library fills new memory with the complement of this byte."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    """Of the compiled program's runtime; None: the toolchain's usual number."""


class Cell(Wire, frozen=True, kw_only=True):
    """One thing to run: which build, on which device, which text, under what."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._+-]{0,127}$")]
    toolchain: Name
    version: Name
    device: Name
    variant: Variant = Variant.ORIGINAL
    testcase: Testcase
    changes: tuple[Name, ...] = ()
    """How a derived text differs from the posted one, in words: ``tvm.tir → tvm.tirx``."""
    varied: Varied = Varied()
    limits: Limits = Limits()


class Budget(Wire, frozen=True, kw_only=True):
    """How much one investigation may spend."""

    probes: int = 36
    """Runs of the testcase altogether, repeats and diagnoses included."""
    wall_s: float = 1500.0
    workers: int = 2


class RangeBuild(Wire, frozen=True, kw_only=True):
    """One build of a range."""

    name: Name
    """What observations call its version."""
    commit: Name = ""
    """Full sha; empty where it isn't known."""
    commits: int
    """Of the main branch, since the first build of the range."""
    weight: float = 1.0
    """How much of the prior lies on the commits since the build before it; 0 or more."""


class BuildRange(Wire, frozen=True, kw_only=True):
    """Builds between two ends that answer differently, oldest first. A search looks for the change among them.

    The answer can be computed again from the range and the observations.
    """

    direction: Literal["introduced", "fixed"]
    builds: Annotated[tuple[RangeBuild, ...], msgspec.Meta(min_length=2, max_length=20_000)]
    repository: Name = ""
    """``owner/name``, for compare links."""
    confidence: float = 0.95
    """Belief in a range with which the search ends."""
    publish: float = 0.993
    """Belief in one commit with which it may be named."""
    calibration: int = 10
    """Runs of each end before anything else."""
    probes: int = 150
    """Runs that the search may take."""
    notes: tuple[Text, ...] = ()
    """Facts about the list that a reader must know: builds left out, sources without builds."""
    over: Text = ""
    """What all these builds have that their commits did not make; empty where each is whole."""


class Plan(Wire, frozen=True, kw_only=True):
    """What is to be found out, and within which bounds: the whole input of a runner."""

    schema: int = SCHEMA
    testcase: Testcase
    claim: Claim
    device: Name
    """The device that the testcase as posted asks for."""
    checks_itself: bool = False
    """The testcase contains an assertion, so that ending well means something."""
    order: tuple[Name, ...]
    """Every release that may be probed, oldest first."""
    first: tuple[Name, ...]
    """Those that are probed whatever happens: the reporter's, the oldest, the newest."""
    controls: tuple[Testcase, ...] = ()
    """Variants that the report says work."""
    reported: Name | None = None
    """The release nearest to the one the report names; None when it names none that is available."""
    devices: tuple[Name, ...] = ()
    """Further devices to run the testcase on, retargeted."""
    bisect: bool = True
    chosen: bool = False
    """The releases were named by the caller: the newest of them need not be the newest there is."""
    deepen: bool = False
    """Go on from the releases between which it changes, to nightlies and commits, where builds of them can be had."""
    trail: BuildRange | None = None
    """Only search along this."""
    limits: Limits = Limits()
    budget: Budget = Budget()


class Observation(Wire, frozen=True, kw_only=True):
    """What one run of one cell showed. The only thing a verdict may rest on."""

    toolchain: Name
    version: Name
    device: Name
    attempt: int
    variant: Variant
    varied: Varied = Varied()
    """The conditions under which it was made."""
    outcome: Outcome
    answer: Answer
    ended: Ended
    why: Text = ""
    """The oracle's reason, in words."""
    signature: Signature | None = None
    seconds: float = 0.0
    peak_bytes: int = 0
    excerpt: Text = ""
    """The end of the output of the step that ended the probe: the guest's words."""
    environment: Name = ""
    """Digest of the environment's lock."""
    engine: Name = ""
    image: Name = ""
    """Digest of the image that the sandbox ran on; empty where that was the host's own system."""
    changes: tuple[Name, ...] = ()
    """Of a derived text: the cell's."""
    fork: Name = ""
    """What the build really is when it is no release of the toolchain: a fork's commit and the wheel carrying it."""
    driver: Name = ""
    """What stood for the device when that is software rather than hardware."""
    findings: tuple[Finding, ...] = ()
    record: Record | None = None
    """Of the step that ended the probe."""


# ---------------------------------------------------------------------------------------------- search


class CommitRange(Wire, frozen=True, kw_only=True):
    """``start`` (exclusive) to ``end`` (inclusive) in the toolchain's repository; names or shas."""

    start: Name
    end: Name
    count: int | None = None
    """Commits between them on the main branch; None where it isn't known offline."""
    compare_url: Name = ""


class Commit(Wire, frozen=True, kw_only=True):
    """One commit as its author wrote it. Text and paths are untrusted, and cut to what a ranking can use."""

    sha: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}$")]
    day: date
    """When it was committed, in UTC."""
    subject: Name
    body: Text = ""
    paths: tuple[Name, ...] = ()
    """Files it touches, against its first parent."""


class Suspect(Wire, frozen=True, kw_only=True):
    """A commit that may have to do with a failure. A ranking of words, never evidence: it accuses nobody."""

    commit: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}$")]
    subject: Name
    score: float
    """Its share of the belief spread over the range's commits, 0 … 1."""
    why: tuple[Text, ...] = ()


class Bisection(Wire, frozen=True, kw_only=True):
    """Where the behaviour changes between releases. Either pair, or both, may be known.

    ``skipped`` are the builds between a pair that could answer neither good nor bad, ``untested`` those that were not
    run: the change may lie on either side of them.
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
    """The commits of the range most related to the report, best first; five at most."""
    culprit: Name | None = None
    """Full sha: of two builds one commit apart one fails and the other does not, seen as often as it takes."""
    deep: bool = False
    """Found along builds between releases."""
    notes: tuple[Text, ...] = ()
    """In words: failure rates, more than one change, what could not be searched."""


class Smaller(Wire, frozen=True, kw_only=True):
    """A testcase cut down to what its failure needs, and what shows that it is the same failure."""

    testcase: Testcase
    version: Name
    """The release on which each step of the reduction was seen to fail as reported."""
    device: Name
    control: Name = ""
    """The release on which each step was seen to pass; empty where none was asked."""
    signature: Signature | None = None
    """The failure, as the smaller testcase shows it."""
    before: int
    """Lines that are not blank, in all files and steps."""
    after: int
    probes: int
    seconds: float
    confirmed: int
    """How often the result was run again at the end and failed the same way."""
    stopped: Literal["minimal", "probes", "time"]
    """Whether no piece could go any more, or what ran out first."""


class Investigation(Wire, frozen=True, kw_only=True):
    """Everything that the runs of one plan showed. ``observations`` are in the order of their runs."""

    observations: Annotated[tuple[Observation, ...], msgspec.Meta(max_length=1000)] = ()
    findings: Annotated[tuple[Finding, ...], msgspec.Meta(max_length=200)] = ()
    trail: BuildRange | None = None
    """The builds between releases along which a search went on."""
    smaller: Smaller | None = None
    conditions: Annotated[tuple[Text, ...], msgspec.Meta(max_length=50)] = ()
    """Facts about the machine and the sandbox that a reader of the verdict must know."""


# ---------------------------------------------------------------------------------------------- jobs, over files

CellId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
"""A name of ours, free of anything an issue says: it names files, artifacts and rows of a job matrix."""
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


MAX_PLAN_BYTES = 8 * 1024 * 1024
"""Of ``plan.json``. A testcase with its attachments that makes more of it is none."""


class JobCell(Wire, frozen=True, kw_only=True):
    """What one job runs: a whole investigation, on one kind of machine."""

    id: CellId
    machine: Name = ""
    """The kind of machine, by its name in the settings; empty for any ordinary one."""
    plan: Plan
    testcase_sha256: Digest
    """Of ``plan.testcase``. On a machine that needs approval the job compares it once more before it starts."""
    sandbox: Name = "auto"
    allow: tuple[Name, ...] = ()
    """Packages that the testcase may install besides those on the list."""
    minimize: bool = False
    """Also cut the testcase down."""


class JobPlan(Wire, frozen=True, kw_only=True):
    """``plan.json``: the cells, for whoever runs them, and ``case``, which only its writer reads."""

    schema: int = SCHEMA
    cells: tuple[JobCell, ...]
    case: msgspec.Raw


class CellResult(Wire, frozen=True, kw_only=True):
    """``results/<cell>.json``: written on the host by the process that started the sandbox, never inside it."""

    schema: int = SCHEMA
    cell: CellId
    plan_sha256: Digest
    """Of the ``plan.json`` that was run."""
    seen: Investigation = Investigation()
    problem: Text = ""
    """The reason why no run was made, if the failure is ours."""


def digest_of(testcase: Testcase) -> str:
    """The sha256 of all that a testcase is: files, steps, requirements. What an approval is bound to."""
    return sha256(msgspec.json.encode(testcase, order="deterministic")).hexdigest()
