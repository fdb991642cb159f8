"""Define the kinds of finding: title, permitted source, party at fault, and refutation.

`KINDS` is the only table of them. A new diagnosis needs one diagnoser (`runners.core.toolchain.diagnosis`), one value
of `FindingKind` and one row here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

import msgspec

from runners.core.protocol import Finding, FindingKind

CONTROL = "control"
"""Evidence: the host's description of its own run with the suspected cause removed."""
CONTROL_END = "control_end"
"""Evidence: the end of the run of `CONTROL`, a value of `ControlEnd`."""
REFUTED_BY = "refuted_by"
"""Evidence: the host's description of an observation that would refute the finding."""
ORIGIN = "origin"
"""Evidence: origin of the cause; ``testcase``, ``testcase-data``, ``computed-data`` or ``unknown``."""
LEVEL = "level"
"""Evidence of a culprit pass: the level of the search. Absent for TVM's own passes."""
VOTE = "vote"
"""Evidence of a reference: a `Vote`."""
BY_DEFINITION = "definition"
"""Name of a reference that computes by the definitions of the operations. Other references compute with NumPy."""
BY_LIBRARY = "library"
"""The name of the reference that computes the functions of the compiler's own library with NumPy."""
BY_POINTS = "points"
"""Name of a reference that evaluates, at points, an expression about which the compiler made a statement."""
BY_REWRITE = "rewrite"
"""Name of a reference that evaluates a function before a pass or a schedule. Both must preserve its meaning."""
EXACT = "exact"
"""Evidence of a reference that agrees: True if every printed digit is equal."""
HELPERS = "written by"
"""Evidence of a vote: helper functions that generated the program. The reference did not check them."""
DIFFERENCE = "difference"
"""Evidence: lines of a diff."""
CALL_FAULT = "call_fault"
"""Evidence of a wrong call: a value of `CallFault`."""
RULE = "rule"
"""Evidence of a broken rule: a value of `Rule`."""
RULE_OF = "rule_of"
"""Evidence of a broken rule: the dimensions, the argument or the input that the rule is about."""
MOVED = "moved"
"""Evidence of a moved name: a value of `Moved`."""
MOVED_IN = "moved_in"
"""Evidence of a moved name: the build that `MOVED` is about."""
ADDED_IN = "added_in"
"""Evidence of a moved name: the build that added the name, if the name is too new."""
HOST_EVIDENCE = frozenset({CONTROL, CONTROL_END, REFUTED_BY})
"""Evidence that a guest cannot claim."""


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
    NOT_CLEAN = "not-clean"
    """It neither fails as reported nor is clean, and so is no proof."""


CONTROL_ENDS: Mapping[ControlEnd, str] = {
    ControlEnd.FAILURE_GONE: "the failure is gone",
    ControlEnd.REACHES_CHECK: "it runs to the check of its result",
    ControlEnd.OTHER_VALUE: "it no longer prints what the report calls wrong",
}
"""The ends of a run with a repaired testcase, in words of a finding."""

MAX_EVIDENCE_DEPTH = 8
"""Most levels of lists and objects in the evidence of a finding. A deeper nest ends readers that recurse."""


def is_shallow(evidence: object) -> bool:
    """True if ``evidence`` has at most `MAX_EVIDENCE_DEPTH` levels. Takes any depth itself."""
    level = [evidence]
    for _ in range(MAX_EVIDENCE_DEPTH + 1):
        nested: list[object] = []
        for value in level:
            if isinstance(value, Mapping):
                nested += value.values()
            elif isinstance(value, list | tuple):
                nested += value
        level = nested
    return not level


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
    """The build of `MOVED_IN` removed the name."""
    MISSING_SINCE = "missing-since"
    """The build of `MOVED_IN` is the first available one that lacks the name."""
    ABSENT = "absent"
    """The build of `MOVED_IN` lacks the name, and other builds have it."""
    UNKNOWN = "unknown"
    """The build of `MOVED_IN` lacks the name. No other build is known."""
    NEEDED = "needed"
    """The build of `MOVED_IN` needs the flag to read the input. Other builds do not."""


class Cause(StrEnum):
    """Why runs of one testcase on one build differ: the evidence ``cause`` of a nondeterministic result."""

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


def get_cause(evidence: Mapping[str, object]) -> Cause | None:
    """Return the cause of a nondeterministic result; None for a name that is no cause."""
    found = evidence.get("cause")
    return next((cause for cause in Cause if cause == found), None)


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
    titles: Mapping[str, str] = field(default_factory=dict)
    """Headings that replace ``title``, by `LEVEL`."""
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
    """Heading of `DIFFERENCE`."""
    is_cause: bool = True
    """False if it describes the circumstances of a run, not the cause of a failure."""


_PUT_RIGHT = "the same testcase with only that repaired {ends}"
_INSTRUMENTED = "the fault was seen in a rerun of the unmodified testcase under instrumentation"

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
            "pass": "The pass in which compiling fails",
            "parsing": "Compiling fails before any pass",
            "phase": "The phase in which compiling fails",
            "written": "Passes of the command line left out one after another",
            "llvm-pass": "LLVM's passes left out one after another",
            "dispatch": "The first dispatch that takes the same and gives something else",
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


def render_title(finding: Finding) -> str:
    """Return the heading of a finding in a report."""
    kind = KINDS[finding.kind]
    return kind.titles.get(str(finding.evidence.get(LEVEL)), kind.title)


def get_blame(finding: Finding) -> Blame:
    """Return the party at fault. No party if the origin is unknown, because the access may be the compiler's."""
    return Blame.NOBODY if finding.evidence.get(ORIGIN) == "unknown" else KINDS[finding.kind].blames


def settles_cause(finding: Finding) -> bool:
    """True if the cause is known, so that costlier diagnosers need not run."""
    settles = KINDS[finding.kind].settles
    traced = finding.evidence.get(ORIGIN) == Blame.TESTCASE
    known = get_blame(finding) is not Blame.NOBODY
    return (settles is Settles.ALWAYS and known) or (settles is Settles.IF_TRACED and traced)


def clears_passes(finding: Finding, level: str | None = None) -> bool:
    """True if the failure remains with each pass of a level left out. TVM's passes have no level."""
    evidence = finding.evidence
    names_none = finding.kind is FindingKind.GUILTY_PASS and evidence.get("name") == "none"
    return names_none and evidence.get(LEVEL) == level


def get_vote(finding: Finding) -> Vote | None:
    """Return the vote of a computation without the compiler. None for another finding."""
    vote = finding.evidence.get(VOTE)
    return Vote(vote) if finding.kind is FindingKind.REFERENCE and vote in list(Vote) else None


def get_control_end(evidence: Mapping[str, object]) -> ControlEnd | None:
    """Return the end of the control run of a finding; None without a run that proves or refutes something."""
    found = evidence.get(CONTROL_END)
    return next((end for end in ControlEnd if end == found), None)


def explain_proof(finding: Finding) -> str:
    """Describe the proof of the testcase's fault, as a clause."""
    proof = KINDS[finding.kind].proof
    match get_control_end(finding.evidence):
        case None | ControlEnd.NOT_CLEAN:
            return _INSTRUMENTED
        case ControlEnd.FILL_IS_PRINTED:
            return "with that memory filled the same testcase prints one output or another: the filling decides"
        case ControlEnd.OTHER_VALUE:
            return proof.format(ends="prints another value")
        case ControlEnd.REACHES_CHECK:
            return proof.format(ends="runs to the check of its result")
        case ControlEnd.FAILURE_GONE | ControlEnd.FILL_DECIDES:
            return proof.format(ends="runs cleanly")
        case _ as never:
            assert_never(never)


def add_refutation(finding: Finding) -> Finding:
    """Add the refutation of its kind to a finding, unless the diagnoser stated one."""
    refuted_by = KINDS[finding.kind].refuted_by
    if not refuted_by or REFUTED_BY in finding.evidence:
        return finding
    return msgspec.structs.replace(finding, evidence={**finding.evidence, REFUTED_BY: refuted_by})
