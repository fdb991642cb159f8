"""Define the evidence of each kind of finding. Pure.

A field is None if the record lacks it, or if its value has another type. The record may contain more: fields that
only a reader of the document uses. The order of the fields is their order in the record.
"""

from __future__ import annotations

import msgspec

from runners.core.findings.calls import CallDifference
from runners.core.findings.kinds import Cause, ControlEnd, Differ, Moved, Origin, PassLevel, Reference, Rule, Vote


class _Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"pass_name": "pass"}):
    """Base class. ``pass`` is a keyword of Python, so its field has another name."""


NO_PASS = "none"
"""The name of the culprit if the failure remains with each pass left out."""


# ---------------------------------------------------------------------------------------------- faults of testcases


class KernelAccess(_Evidence, frozen=True, kw_only=True):
    """An access of a kernel outside of an axis, seen under instrumentation. Without ``access``, a request for more
    elements than the axis has."""

    kernel: str | None = None
    operator: str | None = None
    access: str | None = None
    """``store`` or ``load``."""
    buffer: str | None = None
    axis: int | None = None
    outside_range: tuple[int, int] | None = None
    """The lowest and the highest index outside."""
    extent: int | None = None
    origin: Origin | None = None
    testcase_value: str | None = None
    """The value of the testcase that contains the index."""
    version: str | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class ByteAccess(_Evidence, frozen=True, kw_only=True):
    """An access of a run that checks accesses in bytes."""

    offset: int | None = None
    length: int | None = None
    extent: int | None = None
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class IndexAccess(_Evidence, frozen=True, kw_only=True):
    """An index of an operation outside of its axis, read in the text."""

    operation: str | None = None
    file: str | None = None
    line: int | None = None
    value: int | None = None
    instead: int | None = None
    """The index of the repaired testcase."""
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    extent: int | None = None
    axis: int | None = None
    refuted_by: str | None = None


class UndefinedStep(_Evidence, frozen=True, kw_only=True):
    """A step that must be positive and is not, read in the text."""

    operation: str | None = None
    file: str | None = None
    line: int | None = None
    value: int | None = None
    instead: int | None = None
    """The step of the repaired testcase."""
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class UndefinedValue(_Evidence, frozen=True, kw_only=True):
    """A computed value that no definition gives, while all defined ones are right."""

    function: str | None = None
    at: str | None = None
    operation: str | None = None
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class UnwrittenEvidence(_Evidence, frozen=True, kw_only=True):
    """Memory that is read and was never written, by an operation of the text or by a function."""

    operation: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    buffer: str | None = None
    fill: tuple[str, ...] | None = None
    """The buffers to fill, as ``function/buffer``."""
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class RuleEvidence(_Evidence, frozen=True, kw_only=True):
    operation: str | None = None
    file: str | None = None
    line: int | None = None
    version: str | None = None
    rule: Rule | None = None
    rule_of: str | None = None
    """The dimensions, the argument or the input that the rule is about."""
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    difference: tuple[str, ...] | None = None
    """Lines of a diff."""
    refuted_by: str | None = None


class SignatureEvidence(_Evidence, frozen=True, kw_only=True):
    """A pass that changed the parameters of a function, which the testcase calls the old way."""

    pass_name: str | None = None
    function: str | None = None
    call_that_works: str | None = None
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class CallEvidence(_Evidence, frozen=True, kw_only=True):
    """A call that does not fit. The record contains the fields of ``call`` themselves."""

    call: CallDifference | None = None
    call_that_works: str | None = None
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


class MissingEvidence(_Evidence, frozen=True, kw_only=True):
    """A part that the report lacks (``kind``, ``name``), or a submodule that the testcase never imports."""

    kind: str | None = None
    name: str | None = None
    module: str | None = None
    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    control_end: ControlEnd | None = None
    refuted_by: str | None = None


# ---------------------------------------------------------------------------------------------- passes


class PassEvidence(_Evidence, frozen=True, kw_only=True):
    """A culprit pass or phase, or that there is none (`NO_PASS`)."""

    name: str | None = None
    level: PassLevel | None = None
    """The level of the search. None for TVM's own passes."""
    version: str | None = None
    pass_name: str | None = None
    """The class of the pass."""
    operation: str | None = None
    symbol: str | None = None
    phase: str | None = None
    option: str | None = None
    """The flag that leaves the phase or the pass out."""
    written: str | None = None
    """The pass as the command line writes it."""
    application: int | None = None
    of: int | None = None
    difference: tuple[str, ...] | None = None
    """Lines of a diff."""
    refuted_by: str | None = None
    under_way: tuple[str, ...] | None = None
    """Passes that ran at the failure, outermost first."""

    @property
    def names_none(self) -> bool:
        """True if the failure remains with each pass left out."""
        return self.name == NO_PASS


class DispatchEvidence(_Evidence, frozen=True, kw_only=True):
    """The first dispatch that takes the same inputs in two runs and computes other values."""

    name: str | None = None
    level: PassLevel | None = None
    version: str | None = None
    device: str | None = None
    against: str | None = None
    """The other run: ``VERSION on DEVICE``."""
    against_name: str | None = None
    position: int | None = None
    of: int | None = None
    same_before: int | None = None
    inputs: tuple[str, ...] | None = None
    output: int | None = None
    type: str | None = None
    differing: int | None = None
    first_index: tuple[int, ...] | None = None
    values: tuple[str, str] | None = None
    """The value of the run with the wrong result, and the other one."""
    refuted_by: str | None = None


class MutationEvidence(_Evidence, frozen=True, kw_only=True):
    """A pass that changed the module that it receives."""

    pass_name: str | None = None
    defined_in_testcase: bool | None = None
    version: str | None = None
    difference: tuple[str, ...] | None = None
    """Lines of a diff."""
    refuted_by: str | None = None


class ConstantsEvidence(_Evidence, frozen=True, kw_only=True):
    """A pass that replaced values by constants."""

    pass_name: str | None = None
    function: str | None = None
    constants: tuple[str, ...] | None = None
    version: str | None = None
    refuted_by: str | None = None


class NanEvidence(_Evidence, frozen=True, kw_only=True):
    """A comparison that calls modules different because of NaN."""

    comparison: str | None = None
    version: str | None = None
    refuted_by: str | None = None


# ---------------------------------------------------------------------------------------------- circumstances


class DeviceEvidence(_Evidence, frozen=True, kw_only=True):
    """A device that differs from others."""

    device: str | None = None
    differs_from: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None
    agree_on: tuple[str, ...] | None = None
    """Versions on which the devices agree."""
    how: str | None = None
    differ: Differ | None = None
    result: int | None = None
    count: int | None = None
    total: int | None = None
    worst: tuple[str, str] | None = None
    version: str | None = None
    refuted_by: str | None = None


class EqualRuns(_Evidence, frozen=True, kw_only=True):
    """Runs under one condition that ended in one way."""

    way: str
    ended: str
    differs_in: str
    """The first line of the result that another run lacks."""
    times: int


class CauseEvidence(_Evidence, frozen=True, kw_only=True):
    """Why the runs of a build differ."""

    cause: Cause | None = None
    version: str | None = None
    results: int | None = None
    runs: tuple[EqualRuns, ...] | None = None
    refuted_by: str | None = None


class ReferenceEvidence(_Evidence, frozen=True, kw_only=True, rename={"helpers": "written by"}):
    """A computation of the values without the compiler."""

    name: Reference | None = None
    vote: Vote | None = None
    version: str | None = None
    function: str | None = None
    returned: str | None = None
    expected: str | None = None
    at: str | None = None
    helpers: tuple[str, ...] | None = None
    """Helper functions that generated the program. The reference did not check them."""
    exact: bool | None = None
    """For a reference that agrees: True if every printed digit is equal."""
    refuted_by: str | None = None


class ReachEvidence(_Evidence, frozen=True, kw_only=True):
    """Names of the title that a clean run never calls."""

    names: tuple[str, ...] | None = None
    version: str | None = None
    refuted_by: str | None = None


class PackageEvidence(_Evidence, frozen=True, kw_only=True):
    """A package that is younger than the release, without which the release is clean."""

    version: str | None = None
    name: str | None = None
    older: str | None = None
    younger: str | None = None
    refuted_by: str | None = None


class MovedEvidence(_Evidence, frozen=True, kw_only=True):
    """A name that a build lacks."""

    name: str | None
    successor: str | None
    """Written as null if there is none."""
    moved: Moved | None = None
    moved_in: str | None = None
    """The build that ``moved`` is about."""
    added_in: str | None = None
    """The build that added the name, if the name is too new."""
    version: str | None = None
    refuted_by: str | None = None


# ---------------------------------------------------------------------------------------------- additions


class Confirmation(_Evidence, frozen=True, kw_only=True):
    """What the host adds to the evidence of a finding. It is the evidence of no kind."""

    version: str | None = None
    origin: Origin | None = None
    control: str | None = None
    """The host's description of its own run with the suspected cause removed."""
    control_end: ControlEnd | None = None
    refuted_by: str | None = None
    """The host's description of an observation that would refute the finding."""


AccessEvidence = KernelAccess | ByteAccess | IndexAccess
OperandEvidence = UndefinedStep | UndefinedValue
FaultEvidence = (
    AccessEvidence
    | OperandEvidence
    | UnwrittenEvidence
    | RuleEvidence
    | SignatureEvidence
    | CallEvidence
    | MissingEvidence
)
"""The evidence of a fault of the testcase: a control run may prove it."""
OtherEvidence = (
    PassEvidence
    | DispatchEvidence
    | MutationEvidence
    | ConstantsEvidence
    | NanEvidence
    | DeviceEvidence
    | CauseEvidence
    | ReferenceEvidence
    | ReachEvidence
    | PackageEvidence
    | MovedEvidence
)
FindingEvidence = FaultEvidence | OtherEvidence
