"""Define the kinds of finding: title, permitted source, party at fault, and refutation.

`KINDS` is the only table of them. A new diagnosis needs one diagnoser (`runners.core.toolchain.diagnosis`), one value
of `FindingKind`, one row here, and the type of its evidence (`runners.core.findings.types`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from runners.core.protocol import FindingKind


class Origin(StrEnum):
    """The origin of the cause of a failure."""

    TESTCASE = "testcase"
    TESTCASE_KERNEL = "testcase-kernel"
    """The testcase wrote the kernel."""
    TESTCASE_DATA = "testcase-data"
    """A value of the testcase."""
    COMPUTED_DATA = "computed-data"
    """A value that arithmetic computes from the testcase's values."""
    UNKNOWN = "unknown"
    """The testcase or the compiler, or an origin that cannot be read."""


class PassLevel(StrEnum):
    """The level of a search for a culprit pass. A search over TVM's own passes has none."""

    PASS = "pass"
    PARSING = "parsing"
    PHASE = "phase"
    WRITTEN = "written"
    """Passes that the command line writes."""
    LLVM = "llvm-pass"
    DISPATCH = "dispatch"
    UNKNOWN = "unknown"
    """The search does not know the level, or the level cannot be read."""


class Reference(StrEnum):
    """A computation of a value without the compiler."""

    NUMPY = "NumPy"
    ONNX = "ONNX"
    ONNX_SHAPES = "ONNX shapes"
    DEFINITION = "definition"
    """By the definitions of the operations."""
    LIBRARY = "library"
    """The functions of the compiler's own library, computed with NumPy."""
    POINTS = "points"
    """The values, at points, of an expression about which the compiler made a statement."""
    REWRITE = "rewrite"
    """The function before a pass or a schedule. Both must preserve its meaning."""


class Differ(StrEnum):
    """How the runs of two devices differ."""

    OUTCOMES = "outcomes"
    """Only one device fails as reported."""
    VALUES = "values"
    """Both compute, and the values differ."""


class ControlEnd(StrEnum):
    """The end of a run with the suspected cause removed."""

    FAILURE_GONE = "failure-gone"
    REACHES_CHECK = "reaches-check"
    """It gets past the reported error, and prints a value that its command calls wrong."""
    OTHER_VALUE = "other-value"
    """It prints another value than the reported one, and the report quotes no right value."""
    FILL_DECIDES = "fill-decides"
    """It is clean with one content of its unwritten memory, and fails with another."""
    FILL_IS_PRINTED = "fill-is-printed"
    """Its output depends on its unwritten memory, and no output tells right from wrong."""
    REFUSED = "refused"
    """A check that does not use the compiler refuses the input."""
    NOT_CLEAN = "not-clean"
    """It neither fails as reported nor is clean, and so is no proof."""


CONTROL_ENDS: Mapping[ControlEnd, str] = {
    ControlEnd.FAILURE_GONE: "the failure is gone",
    ControlEnd.REACHES_CHECK: "it runs to the check of its result",
    ControlEnd.OTHER_VALUE: "it no longer prints what the report calls wrong",
}
"""The ends of a run with a repaired testcase, in words of a finding."""


class Blame(StrEnum):
    TESTCASE = "testcase"
    COMPILER = "compiler"
    RELEASE = "release"
    """The release lacks something that the testcase needs."""
    NOBODY = "nobody"


class Vote(StrEnum):
    """The result of a computation without the compiler, for the values of a failing build."""

    DIFFERS = "differs"
    AGREES = "agrees"


class Rule(StrEnum):
    """Rules of operations that a testcase may break."""

    PARALLEL_WRITES = "parallel-writes"
    LIVE_ARGUMENT = "live-argument"
    ZERO_DIVISOR = "zero-divisor"
    SHIFT_TOO_FAR = "shift-too-far"
    CAST_OUT_OF_RANGE = "cast-out-of-range"
    WRONG_EXTENT = "wrong-extent"
    EQUAL_INDICES = "equal-indices"
    BROKEN_PROMISE = "broken-promise"
    MISSING_INIT = "missing-init"
    DATAFLOW_OUTPUT = "dataflow-output"
    OTHER_ACCESS = "other-access"
    SAFEGUARD_OFF = "safeguard-off"
    ARGUMENT_ORDER = "argument-order"
    NOT_ASSOCIATIVE = "not-associative"
    CHANGES_VALUES = "changes-values"
    INVALID_MODEL = "invalid-model"
    UNFIT_SHAPES = "unfit-shapes"


SHARED_MEMORY = "one memory for two arguments"
"""The operation of an undefined operand that is not a value: a call whose arguments overlap."""


class CallFault(StrEnum):
    """Differences between a call of a testcase and the program or the tool that is called."""

    COUNT = "count"
    TYPE = "type"
    VALUES = "values"
    NO_FUNCTION = "no-function"
    PRIVATE = "private"
    TARGET = "target"
    FLAG = "flag"
    DEVICE = "device"
    RAW_FILE = "raw-file"
    DEMOTED = "demoted"
    TYPE_REPLACED = "type-replaced"
    OPTION = "option"
    PARAMETER = "parameter"
    NOTATION = "notation"


class Moved(StrEnum):
    """The known facts about a name that a build lacks."""

    REMOVED = "removed"
    """The build of `MovedEvidence.moved_in` removed the name."""
    MISSING_SINCE = "missing-since"
    """The build of `MovedEvidence.moved_in` is the first available one that lacks the name."""
    ABSENT = "absent"
    """The build of `MovedEvidence.moved_in` lacks the name, and other builds have it."""
    UNKNOWN = "unknown"
    """The build of `MovedEvidence.moved_in` lacks the name. No other build is known."""
    NEEDED = "needed"
    """The build of `MovedEvidence.moved_in` needs the flag to read the input. Other builds do not."""
    ELSEWHERE = "elsewhere"
    """The build of `MovedEvidence.moved_in` runs the pass on functions, and not on the module."""


class Cause(StrEnum):
    """Why runs of one testcase on one build differ."""

    RANDOMNESS = "randomness"
    UNKNOWN = "unknown"
    RACE = "race"
    HASHES = "hashes"
    THREADS = "threads"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFacts:
    """The facts about one cause."""

    sentence: str
    """The cause as a clause, without its build."""
    refuted_by: str


CAUSES: Mapping[Cause, CauseFacts] = {
    Cause.RANDOMNESS: CauseFacts(
        sentence="the testcase draws random numbers without a seed; with seeds, every run gives the same result",
        refuted_by="two runs with the same seeds that differ",
    ),
    Cause.UNKNOWN: CauseFacts(
        sentence="runs under the same conditions end differently",
        refuted_by="a condition that decides which of the results comes",
    ),
    Cause.RACE: CauseFacts(
        sentence="runs with two threads differ among themselves, and runs with one thread agree",
        refuted_by="two runs with one thread that differ",
    ),
    Cause.HASHES: CauseFacts(
        sentence="the result depends on Python's hash seed, so on the order of a set or on a hash itself",
        refuted_by="two runs with the same hash seed and the same seeds that differ",
    ),
    Cause.THREADS: CauseFacts(
        sentence="the result depends on the number of threads",
        refuted_by="two runs with the same number of threads that differ",
    ),
    Cause.MEMORY: CauseFacts(
        sentence="the result depends on the content of newly allocated memory, so memory is read that nothing wrote",
        refuted_by="two runs with the same pattern that differ, or two with different patterns that do not",
    ),
}
"""The only table of the causes, the most specific last."""


class Settles(StrEnum):
    """Whether a finding settles the cause, so that costlier diagnosers need not run."""

    ALWAYS = "always"
    IF_TRACED = "if traced to the testcase"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFacts:
    """The facts about one kind of finding."""

    title: str
    """Heading in a report, without a full stop."""
    titles: Mapping[PassLevel, str] = field(default_factory=dict)
    """Headings that replace ``title``, by the level of the search."""
    blames: Blame
    """The party at fault, unless the evidence states that its origin is unknown."""
    settles: Settles = Settles.NEVER
    from_guest: bool = False
    """True if the guest's instrumentation may claim it. Other kinds state actions and observations of the host."""
    refuted_by: str = ""
    """The observation that would refute it. Empty if it depends on the runs; then the diagnoser states it."""
    fault: str = ""
    """For kinds that blame the testcase: its fault, as a clause."""
    proof: str = ""
    """For kinds that blame the testcase: the proof by a control run. ``{ends}`` stands for the end of that run."""
    needs_control: bool = False
    """True if only the clean control run shows the fault. For a flaky failure, that run may be clean by accident."""
    difference: str = "The module before and after"
    """Heading of the lines of a diff."""
    is_cause: bool = True
    """False if it describes the circumstances of a run, not the cause of a failure."""


_PUT_RIGHT = "the same testcase with only that repaired {ends}"

KINDS: Mapping[FindingKind, KindFacts] = {
    FindingKind.OUT_OF_BOUNDS_ACCESS: KindFacts(
        title="The testcase reads or writes outside its own data",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        from_guest=True,
        refuted_by="the same failure with every index inside its axis",
        fault="it reads or writes outside one of its own tensors",
        proof=_PUT_RIGHT,
    ),
    FindingKind.UNDEFINED_OPERAND: KindFacts(
        title="The testcase gives an operation a value for which it is undefined",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        refuted_by="the same failure with a value for which the operation is defined",
        fault="it gives an operation a value for which that is undefined",
        proof=_PUT_RIGHT,
    ),
    FindingKind.UNINITIALIZED_READ: KindFacts(
        title="The testcase reads memory that it never wrote",
        blames=Blame.TESTCASE,
        settles=Settles.IF_TRACED,
        from_guest=True,
        refuted_by="the same failure with that memory written before it is read",
        fault="it reads memory of its own that it never wrote, and what that holds decides",
        proof="with that memory filled the same testcase runs cleanly or fails, by what it is filled with",
    ),
    FindingKind.BROKEN_RULE: KindFacts(
        title="The testcase breaks a rule of an operation that it uses",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        refuted_by="the same failure with only that repaired",
        fault="it breaks a rule of an operation that it uses, and the result is undefined",
        proof=_PUT_RIGHT,
        difference="What was repaired",
    ),
    FindingKind.SIGNATURE_CHANGED: KindFacts(
        title="A pass changed a function's parameters, and the testcase calls it the old way",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        from_guest=True,
        refuted_by="the same failure when the function is called the new way",
        fault="it calls a function the old way after a pass changed its parameters",
        proof="the same testcase with that call made the new way {ends}",
        needs_control=True,
    ),
    FindingKind.WRONG_CALL: KindFacts(
        title="A call does not fit the program or the tool that is called",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        refuted_by="the same failure with that part of the call repaired",
        fault="its call does not fit the program or the tool that is called",
        proof="the same testcase with that part of the call repaired {ends}",
        needs_control=True,
    ),
    FindingKind.MISSING: KindFacts(
        title="The testcase needs something that the issue does not give",
        blames=Blame.TESTCASE,
        settles=Settles.ALWAYS,
        refuted_by="the same failure with it added",
        fault="it uses a submodule that it never imports; with the import it runs",
        proof="the same testcase with that import added {ends}",
        needs_control=True,
    ),
    FindingKind.INPUT_MUTATED: KindFacts(
        title="A pass changed its input module in place",
        blames=Blame.COMPILER,
        from_guest=True,
        refuted_by="the same failure when the pass is given a copy; or an input that prints as before it",
    ),
    FindingKind.VALUES_REPLACED: KindFacts(
        title="A pass replaced live values by constants",
        blames=Blame.COMPILER,
        from_guest=True,
        refuted_by="outputs after that pass that still depend on the parameters",
    ),
    FindingKind.NAN_INEQUALITY: KindFacts(
        title="Equal modules compare unequal because of NaN",
        blames=Blame.NOBODY,
        from_guest=True,
        refuted_by="the same inequality with numbers in the place of each NaN",
    ),
    FindingKind.GUILTY_PASS: KindFacts(
        title="Passes left out one after another",
        titles={
            PassLevel.PASS: "The pass in which compiling fails",
            PassLevel.PARSING: "Compiling fails before any pass",
            PassLevel.PHASE: "The phase in which compiling fails",
            PassLevel.WRITTEN: "Passes of the command line left out one after another",
            PassLevel.LLVM: "LLVM's passes left out one after another",
            PassLevel.DISPATCH: "The first dispatch that takes the same and gives something else",
        },
        blames=Blame.COMPILER,
    ),
    FindingKind.DEVICE_SPECIFIC: KindFacts(title="Devices differ on the same input", blames=Blame.NOBODY),
    FindingKind.NONDETERMINISTIC: KindFacts(title="The same input gives different results", blames=Blame.NOBODY),
    FindingKind.REFERENCE: KindFacts(
        title="The same computation without the compiler",
        blames=Blame.NOBODY,
        from_guest=True,
        refuted_by="an operation that this reference defines in another way than the compiler's documentation",
        is_cause=False,
    ),
    FindingKind.REACH: KindFacts(
        title="A clean run calls none of the names in the title",
        blames=Blame.NOBODY,
        refuted_by="a call of one of these names during the run",
        is_cause=False,
    ),
    FindingKind.YOUNGER_PACKAGE: KindFacts(
        title="The failure needs a package that is younger than the release",
        blames=Blame.RELEASE,
        refuted_by="a clean run with that package, or a failing run with the older one",
        is_cause=False,
    ),
    FindingKind.API_MOVED: KindFacts(
        title="The testcase uses a name that this release no longer has",
        blames=Blame.RELEASE,
        refuted_by="a run on that release that finds the name",
        is_cause=False,
    ),
}


_OTHER_VERSION = re.compile(r"(?P<name>[\w.-]{1,100}) (?P<older>[\w.+-]{1,60}) → (?P<younger>[\w.+-]{1,60})")


def describe_other_version(name: str, older: str, younger: str) -> str:
    """Return the entry of `Observation.changes` for a package with another version."""
    return f"{name} {older} → {younger}"


def read_other_versions(changes: Iterable[str]) -> dict[str, str]:
    """Return the packages whose versions a control run changed: name → version of the run."""
    found = (_OTHER_VERSION.fullmatch(change) for change in changes)
    return {one["name"]: one["younger"] for one in found if one is not None}
