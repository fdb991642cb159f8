"""Read and write the JSON record of a finding's evidence: the only module that knows both forms. Pure.

A record may come from a machine that ran strangers' code. So `read_evidence` takes any record: a field with a value
of another type is absent, and an origin or a level that is not known is `UNKNOWN`, which blames and clears nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

import msgspec

from runners.core.findings.calls import TAG, CallDifference
from runners.core.findings.kinds import SHARED_MEMORY, Origin, PassLevel
from runners.core.findings.types import (
    ByteAccess,
    CallEvidence,
    CauseEvidence,
    Confirmation,
    ConstantsEvidence,
    DeviceEvidence,
    DispatchEvidence,
    FindingEvidence,
    IndexAccess,
    KernelAccess,
    MissingEvidence,
    MovedEvidence,
    MutationEvidence,
    NanEvidence,
    PackageEvidence,
    PassEvidence,
    ReachEvidence,
    ReferenceEvidence,
    RuleEvidence,
    SignatureEvidence,
    UndefinedStep,
    UndefinedValue,
    UnwrittenEvidence,
)
from runners.core.protocol import Finding, FindingKind

HOST_FIELDS = frozenset({"control", "control_end", "refuted_by"})
"""Fields that a guest cannot claim."""
MAX_DEPTH = 8
"""Most levels of lists and objects in a record. A deeper nest ends readers that recurse."""

KIND_OF: Mapping[type[FindingEvidence], FindingKind] = {
    KernelAccess: FindingKind.OUT_OF_BOUNDS_ACCESS,
    ByteAccess: FindingKind.OUT_OF_BOUNDS_ACCESS,
    IndexAccess: FindingKind.OUT_OF_BOUNDS_ACCESS,
    UndefinedStep: FindingKind.UNDEFINED_OPERAND,
    UndefinedValue: FindingKind.UNDEFINED_OPERAND,
    UnwrittenEvidence: FindingKind.UNINITIALIZED_READ,
    RuleEvidence: FindingKind.BROKEN_RULE,
    SignatureEvidence: FindingKind.SIGNATURE_CHANGED,
    CallEvidence: FindingKind.WRONG_CALL,
    MissingEvidence: FindingKind.MISSING,
    PassEvidence: FindingKind.GUILTY_PASS,
    DispatchEvidence: FindingKind.GUILTY_PASS,
    MutationEvidence: FindingKind.INPUT_MUTATED,
    ConstantsEvidence: FindingKind.VALUES_REPLACED,
    NanEvidence: FindingKind.NAN_INEQUALITY,
    DeviceEvidence: FindingKind.DEVICE_SPECIFIC,
    CauseEvidence: FindingKind.NONDETERMINISTIC,
    ReferenceEvidence: FindingKind.REFERENCE,
    ReachEvidence: FindingKind.REACH,
    PackageEvidence: FindingKind.YOUNGER_PACKAGE,
    MovedEvidence: FindingKind.API_MOVED,
}
_ONLY_SHAPE: Mapping[FindingKind, type[FindingEvidence]] = {kind: shape for shape, kind in KIND_OF.items()}
_FIELDS = {shape: msgspec.structs.fields(shape) for shape in get_args(FindingEvidence)}
_UNREADABLE: Mapping[str, object] = {"origin": Origin.UNKNOWN, "level": PassLevel.UNKNOWN}
"""Values of fields whose absence states something. A value that cannot be read is not absent."""


# ---------------------------------------------------------------------------------------------- read


def read_evidence(finding: Finding) -> FindingEvidence:
    """Return the evidence of a finding. Takes any record."""
    return _decode(_choose_shape(finding), finding.evidence)


def _choose_shape(finding: Finding) -> type[FindingEvidence]:
    """Return the type of a finding's evidence. The fields of the record tell the types of one kind apart."""
    record = finding.evidence
    match finding.kind:
        case FindingKind.OUT_OF_BOUNDS_ACCESS:
            return ByteAccess if "offset" in record else IndexAccess if "operation" in record else KernelAccess
        case FindingKind.UNDEFINED_OPERAND:
            is_value = "at" in record or record.get("operation") == SHARED_MEMORY
            return UndefinedValue if is_value else UndefinedStep
        case FindingKind.GUILTY_PASS:
            return DispatchEvidence if record.get("level") == PassLevel.DISPATCH else PassEvidence
        case kind:
            return _ONLY_SHAPE[kind]


def _decode(shape: type[FindingEvidence], record: Mapping[str, object]) -> FindingEvidence:
    """Return the evidence with each field that the record has in the right type."""
    read: dict[str, Any] = {}
    for field in _FIELDS[shape]:
        value = record if shape is CallEvidence and field.name == "call" else record.get(field.encode_name)
        try:
            read[field.name] = msgspec.convert(value, field.type)
        except (msgspec.ValidationError, UnicodeError):  # half of a surrogate pair fits no closed set
            read[field.name] = _UNREADABLE.get(field.name)
    return shape(**read)


def _warm_up() -> None:
    """Use each type once: msgspec 0.22 ends the process if two threads are the first to use a type."""
    for fields in _FIELDS.values():
        for field in fields:
            with suppress(msgspec.ValidationError):
                msgspec.convert({}, field.type)


_warm_up()


# ---------------------------------------------------------------------------------------------- write


def make_finding(evidence: FindingEvidence, summary: str) -> Finding:
    """Return the finding with this evidence."""
    return Finding(kind=KIND_OF[type(evidence)], summary=summary, evidence=write_record(evidence))


def add_evidence(finding: Finding, more: FindingEvidence | Confirmation) -> Finding:
    """Return the finding with more evidence. Fields of its record that ``more`` lacks stay as they are."""
    return msgspec.structs.replace(finding, evidence={**finding.evidence, **write_record(more)})


def write_record(evidence: FindingEvidence | Confirmation) -> dict[str, object]:
    """Return the JSON record of evidence. Fields that are None are left out."""
    if not isinstance(evidence, CallEvidence) or evidence.call is None:
        return _make_plain(evidence)
    rest = _make_plain(msgspec.structs.replace(evidence, call=None))
    works = {name: rest.pop(name) for name in ("call_that_works",) if name in rest}
    return {**write_call(evidence.call), **works, TAG: evidence.call.fault.value, **rest}


def write_call(call: CallDifference) -> dict[str, object]:
    """Return the fields of a difference, without its name."""
    return {name: value for name, value in _make_plain(call).items() if name != TAG}


def _make_plain(value: msgspec.Struct) -> dict[str, object]:
    return {name: _list_items(one) for name, one in msgspec.to_builtins(value).items()}


def _list_items(value: object) -> object:
    """Return plain JSON: msgspec keeps tuples."""
    if isinstance(value, list | tuple):
        return [_list_items(one) for one in value]
    return value


def rename_file(finding: Finding, file: str, source: str) -> Finding:
    """Return the finding with another name of a file in its summary and its evidence."""
    record = {
        name: value.replace(file, source) if isinstance(value, str) else value
        for name, value in finding.evidence.items()
    }
    return msgspec.structs.replace(finding, summary=finding.summary.replace(file, source), evidence=record)


def is_shallow(record: object) -> bool:
    """True if ``record`` has at most `MAX_DEPTH` levels. Takes any depth itself."""
    level = [record]
    for _ in range(MAX_DEPTH + 1):
        nested: list[object] = []
        for value in level:
            if isinstance(value, Mapping):
                nested += value.values()
            elif isinstance(value, list | tuple):
                nested += value
        level = nested
    return not level
