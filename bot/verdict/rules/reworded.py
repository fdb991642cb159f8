"""Recognize two other failures of the newest release: the reported one reworded, and a rejected program. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import quote_span
from runners.core.failure.compare import compare_signatures
from runners.core.failure.normalize import name_type
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC, OUTPUT
from runners.core.failure.outcomes import is_rejected
from runners.core.failure.parse import NATIVE
from runners.core.protocol import ANY_ERROR, ClaimKind, Observation, Outcome, Signature, Variant
from runners.core.toolchain.failures import FailureVocabulary
from runners.toolchains import find_toolchain


def is_reworded(evidence: Evidence, newest_bad: str, newest: str) -> bool:
    """True if the newest release fails with the reported error in another wording, as posted or ported.

    Messages change from release to release; the calls that lead to them do not. This applies only to a reported
    error, and only if in every run of the newest release the type, all frames and at least half of the words agree. A
    traceback that ends in native code may have few frames: the native function that raised the error counts as one
    more. A compiler's diagnostic has no frames: there, the same operation of the program must fail in the same stage.
    """
    if evidence.plan.claim.kind is not ClaimKind.ERROR:
        return False
    known = [seen for seen in evidence.list_originals() if seen.version == newest_bad and seen.signature]
    later = [
        seen
        for seen in evidence.observations
        if seen.version == newest and seen.outcome is not Outcome.INCOMPATIBLE and seen.variant in _REPORTED_PROGRAM
    ]
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    return bool(known and later) and all(
        seen.outcome is Outcome.OTHER_FAILURE
        and seen.signature is not None
        and (
            _is_reworded_signature(known[-1].signature, seen.signature, vocabulary)
            or (_fails_at_same_place(known[-1], seen, vocabulary) and not is_rejected(seen, vocabulary))
        )
        for seen in later
    )


_REPORTED_PROGRAM = {Variant.ORIGINAL, Variant.PORTED}
_MIN_FRAMES = 3


def _is_reworded_signature(known: Signature | None, seen: Signature, vocabulary: FailureVocabulary) -> bool:
    if known is None or seen.type in NATIVE or seen.type != known.type or seen.frames != known.frames:
        return False
    frames = len(known.frames) + bool(known.site and known.site == seen.site)
    return frames >= _MIN_FRAMES and compare_signatures(known, seen, vocabulary).score >= 0.5


_DIAGNOSTIC = re.compile(r"^[^\s:][^\n:]{0,300}:(?P<place>\d{1,7}:\d{1,7}): error: (?P<said>[^\n]{0,400})", re.M)
_STAGES = re.compile(r"failed to (?P<stage>configure|run configuration|run translation|translate|serialize)\b")
"""Stages that follow the passes over the whole module."""


def _fails_at_same_place(known: Observation, seen: Observation, vocabulary: FailureVocabulary) -> bool:
    """True if diagnostics of both runs point at one operation of the program, and both runs ended in one stage.

    A third of the words must agree: in a program of one operation, every failure is at the same place.
    """
    before, after = known.signature, seen.signature
    if before is None or after is None or {before.type, after.type} != {COMPILER_DIAGNOSTIC}:
        return False
    (places, stage), (later, ends) = _read_places(known), _read_places(seen)
    alike = compare_signatures(before, after, vocabulary).score >= 1 / 3
    return alike and bool(places & later) and stage == ends


def _read_places(seen: Observation) -> tuple[set[str], str]:
    """Return the places of the diagnostics that are not a note of a stage, and the stage; empty before all stages."""
    found = list(_DIAGNOSTIC.finditer(seen.excerpt))
    stages = [stage["stage"] for one in found if (stage := _STAGES.search(one["said"]))]
    return {one["place"] for one in found if not _STAGES.search(one["said"])}, (stages or [""])[0]


def find_other_signal(evidence: Evidence, newest: str) -> str | None:
    """Return the signal with which the newest release crashes in the statement of the reported crash; None otherwise.

    An invalid memory access ends by one signal or another, depending on the compiler of the build. The running
    statement of the testcase distinguishes the crashes. A port may add a few lines above it.
    """
    if evidence.plan.claim.kind is not ClaimKind.CRASH:
        return None
    files = evidence.plan.testcase.files
    known = {_read_statement(seen, files) for seen in evidence.list_originals() if seen.outcome is Outcome.MATCH}
    later = [
        seen
        for seen in evidence.observations
        if seen.version == newest and seen.outcome is not Outcome.INCOMPATIBLE and seen.variant in _REPORTED_PROGRAM
    ]
    for seen in later:
        if seen.outcome is not Outcome.OTHER_FAILURE or seen.signature is None or seen.signature.type not in NATIVE:
            return None
        at = _read_statement(seen, files)
        if at is None or not any(one is not None and _is_near(one, at) for one in known):
            return None
    return later[-1].signature.type if later and later[-1].signature is not None else None


def _is_near(posted: tuple[str, int], ported: tuple[str, int]) -> bool:
    return posted[0] == ported[0] and 0 <= ported[1] - posted[1] <= MAX_ADDED_LINES


MAX_ADDED_LINES = 2
"""Imports that a port may add."""
_PYTHON_STACK = re.compile(
    r"^Current thread 0x\w{1,20} [^\n]{0,100}\n(?P<stack>(?:  File [^\n]{1,400}\n){1,100})", re.M
)
_PYTHON_FRAME = re.compile(r'^  File "[^"\n]{0,300}/(?P<file>[^"/\n]{1,200})", line (?P<line>\d{1,7}) in ', re.M)


def _read_statement(seen: Observation, files: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the file and line of the testcase in the Python stack of a crash, the innermost first."""
    stack = _PYTHON_STACK.search(seen.excerpt)
    frames = _PYTHON_FRAME.finditer(stack["stack"]) if stack is not None else ()
    return next(((one["file"], int(one["line"])) for one in frames if one["file"] in files), None)


def find_diagnostic(evidence: Evidence, version: str) -> str | None:
    """Return the diagnostic with which a release rejects a program on which others crash, quoted; None without one.

    A diagnostic points into the program, so the compiler has read the program and has not crashed. If the release
    does not read the posted program, its ported form counts.
    """
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    ported = [s for s in evidence.observations if s.version == version and s.variant is Variant.PORTED]
    incompatible = all(seen.outcome is Outcome.INCOMPATIBLE for seen in runs)
    if incompatible or (ported and all(is_rejected(seen, vocabulary) for seen in runs)):
        runs = ported
    told = [seen.signature for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and seen.signature is not None]
    types = {*vocabulary.diagnostic_errors, COMPILER_DIAGNOSTIC}
    if not runs or len(told) < len(runs) or any(one.type not in types or not one.message for one in told):
        return None
    return quote_span(f"{name_type(told[-1].type)}: {told[-1].message[:120]}")


def find_refusal(evidence: Evidence, version: str) -> str | None:
    """Return the diagnostic with which a release rejects a program that others miscompile or crash on, quoted.

    Return None if the release does not reject the program.
    """
    wrong = evidence.plan.claim.kind in (ClaimKind.WRONG_RESULT, ClaimKind.CRASH)
    return _quote_refusal(evidence, version) if wrong else None


def _quote_refusal(evidence: Evidence, version: str) -> str | None:
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    refused = [seen for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and seen.signature is not None]
    if not runs or len(refused) < len(runs):
        return None
    last = refused[-1].signature
    if last is None or last.type in NATIVE or last.type == OUTPUT or not last.message:
        return None
    return quote_span(f"{name_type(last.type)}: {last.message[:120]}")


def find_wished_error(evidence: Evidence, version: str) -> str | None:
    """Return the error with which a release rejects the program as the report asks for, quoted; None for another one.

    A report of a crash that asks for an error, of any type, accepts each error except a crash. A report on an error
    may ask for one of another type.
    """
    claim = evidence.plan.claim
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    types = {"" if seen.signature is None else seen.signature.type for seen in runs}
    any_is_right = ANY_ERROR in claim.wished and claim.kind is ClaimKind.CRASH
    if not types or not (any_is_right or types <= set(claim.wished)):
        return None
    return _quote_refusal(evidence, version)


def find_ported_end(evidence: Evidence, version: str) -> str | None:
    """Return the error with which the ported testcase ends on a release that cannot run the posted one, quoted.

    Return None if the port did not reach the compiler: a name is missing, a call does not fit its function, or the
    text is refused. Such an error is the port's own.
    """
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    runs = [s for s in evidence.observations if s.version == version and s.variant is Variant.PORTED]
    ended = [
        seen.signature for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary)
    ]
    if not runs or len(ended) < len(runs):
        return None
    last = ended[-1]
    if last is not None and last.type in NATIVE:
        return quote_span(name_type(last.type)) if evidence.plan.claim.kind is ClaimKind.CRASH else None
    if last is None or last.type in {*_PYTHON_NAME_ERRORS, OUTPUT} or not last.message:
        return None
    return None if _WRONG_CALL.search(last.message) else quote_span(f"{name_type(last.type)}: {last.message[:120]}")


_PYTHON_NAME_ERRORS = {
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "SyntaxError",
    "AssertionError",
}
_WRONG_CALL = re.compile(
    r"Mismatched (?:type|number) |\bargument'?s?\b.{0,40}\b(?:given|missing|unexpected)|unexpected keyword|missing \d"
)
"""Python and the FFI about a call that does not fit its function."""
OTHER_END = "to decide: whether this is the reported failure today, what the report asks for, or a fault of the port"
