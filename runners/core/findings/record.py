"""Read and write the JSON record of a finding's evidence: the only module that knows both forms. Pure.

A record may come from a machine that ran strangers' code. So `read_evidence` takes any record: a field with a value
of another type is absent, and an origin or a level that is not known is `UNKNOWN`, which blames and clears nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, assert_never, get_args

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

_FIELDS = {shape: msgspec.structs.fields(shape) for shape in get_args(FindingEvidence)}
_UNREADABLE: Mapping[str, object] = {"origin": Origin.UNKNOWN, "level": PassLevel.UNKNOWN}
"""Values of fields whose absence states something. A value that cannot be read is not absent."""


# ---------------------------------------------------------------------------------------------- read


def read_evidence(finding: Finding) -> FindingEvidence:
    """Return the evidence of a finding. Takes any record."""
    return _decode(_choose_shape(finding), finding.evidence)


def _choose_shape(finding: Finding) -> type[FindingEvidence]:
    record = finding.evidence
    match finding.kind:
        case FindingKind.OUT_OF_BOUNDS_ACCESS:
            return ByteAccess if "offset" in record else IndexAccess if "operation" in record else KernelAccess
        case FindingKind.UNDEFINED_OPERAND:
            is_value = "at" in record or record.get("operation") == SHARED_MEMORY
            return UndefinedValue if is_value else UndefinedStep
        case FindingKind.GUILTY_PASS:
            return DispatchEvidence if record.get("level") == PassLevel.DISPATCH else PassEvidence
        case FindingKind.UNINITIALIZED_READ:
            return UnwrittenEvidence
        case FindingKind.BROKEN_RULE:
            return RuleEvidence
        case FindingKind.SIGNATURE_CHANGED:
            return SignatureEvidence
        case FindingKind.WRONG_CALL:
            return CallEvidence
        case FindingKind.MISSING:
            return MissingEvidence
        case FindingKind.INPUT_MUTATED:
            return MutationEvidence
        case FindingKind.VALUES_REPLACED:
            return ConstantsEvidence
        case FindingKind.NAN_INEQUALITY:
            return NanEvidence
        case FindingKind.DEVICE_SPECIFIC:
            return DeviceEvidence
        case FindingKind.NONDETERMINISTIC:
            return CauseEvidence
        case FindingKind.REFERENCE:
            return ReferenceEvidence
        case FindingKind.REACH:
            return ReachEvidence
        case FindingKind.YOUNGER_PACKAGE:
            return PackageEvidence
        case FindingKind.API_MOVED:
            return MovedEvidence
        case never:
            assert_never(never)


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
    return Finding(kind=_get_kind(evidence), summary=summary, evidence=write_record(evidence))


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


def _get_kind(evidence: FindingEvidence) -> FindingKind:
    match evidence:
        case KernelAccess() | ByteAccess() | IndexAccess():
            return FindingKind.OUT_OF_BOUNDS_ACCESS
        case UndefinedStep() | UndefinedValue():
            return FindingKind.UNDEFINED_OPERAND
        case UnwrittenEvidence():
            return FindingKind.UNINITIALIZED_READ
        case RuleEvidence():
            return FindingKind.BROKEN_RULE
        case SignatureEvidence():
            return FindingKind.SIGNATURE_CHANGED
        case CallEvidence():
            return FindingKind.WRONG_CALL
        case MissingEvidence():
            return FindingKind.MISSING
        case PassEvidence() | DispatchEvidence():
            return FindingKind.GUILTY_PASS
        case MutationEvidence():
            return FindingKind.INPUT_MUTATED
        case ConstantsEvidence():
            return FindingKind.VALUES_REPLACED
        case NanEvidence():
            return FindingKind.NAN_INEQUALITY
        case DeviceEvidence():
            return FindingKind.DEVICE_SPECIFIC
        case CauseEvidence():
            return FindingKind.NONDETERMINISTIC
        case ReferenceEvidence():
            return FindingKind.REFERENCE
        case ReachEvidence():
            return FindingKind.REACH
        case PackageEvidence():
            return FindingKind.YOUNGER_PACKAGE
        case MovedEvidence():
            return FindingKind.API_MOVED
        case never:
            assert_never(never)


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
