"""Does a failure come of what the testcase's own TIR reads and never wrote? Runs with that memory filled, compared.

The guest follows the TIR as it was parsed, before any pass (``runners/guest/tvm/uninitialized/definedness.py``), and
claims what it reads undefined. That alone explains no failure: the elements may not matter, and a compiler may be
wrong beside them. So the unmodified testcase is run again with these buffers filled where they are allocated, with
one constant and with another. Clean with one and failing with another, twice each: what was never written decides
whether it fails.

A store that the compiler loses leads to neither: the TIR as parsed has it, so nothing is claimed and nothing filled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from runners.core.guest_programs import launch
from runners.core.protocol import Finding, FindingKind, Observation, Outcome, Testcase, Variant
from runners.toolchains.iree.mlir_unwritten import find_unwritten

Run = Callable[[str, Variant, Testcase, str], Observation]

FILLS: Mapping[str, str] = {
    "fill-zero": "0",
    "fill-highest": "the highest number of its type",
    "fill-lowest": "the lowest number of its type",
    "fill-one": "1",
}
"""What the guest can fill with, by the name of its mode, in the order in which they are tried."""
_NAME = re.compile(r"[A-Za-z_][\w.]{0,79}/[A-Za-z_][\w.]{0,79}", re.ASCII)
MOST_NAMES = 8
_NOT_FILLED = {"origin": "unknown", "control": "it could not be filled, so nothing tells whether it decides"}
FAILS = (Outcome.MATCH, Outcome.OTHER_FAILURE)


def traced(
    found: Sequence[Finding], testcase: Testcase, failing: Observation, run: Run
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """Control runs, and the findings with their ``origin``: ``testcase`` where what was never written decides.

    Whatever the guest claims of origin or control is replaced; at most six runs, and none without such a claim.
    """
    if len(testcase.steps) != 1 or not any(one.kind is FindingKind.UNINITIALIZED_READ for one in found):
        return (), tuple(one for one in found if one.kind is not FindingKind.UNINITIALIZED_READ)
    named = _named(found)

    def filled(fill: str) -> Observation:
        return _filled(testcase, failing, fill, named, run)

    controls, said = decided(filled) if named else ((), _NOT_FILLED)
    return controls, tuple(
        msgspec.structs.replace(one, evidence={**one.evidence, "version": failing.version, **said})
        if one.kind is FindingKind.UNINITIALIZED_READ
        else one
        for one in found
    )


def read_empty(
    testcase: Testcase, failing: Observation, run: Run
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """The same for an MLIR testcase, whose text shows what it reads of a ``tensor.empty``."""
    unwritten = find_unwritten(testcase)
    if unwritten is None:
        return (), ()

    def filled(fill: str) -> Observation:
        seen = run(failing.version, Variant.CONTROL, unwritten.filled(fill), failing.device)
        return _changed(seen, fill)

    controls, said = decided(filled)
    finding = Finding(
        kind=FindingKind.UNINITIALIZED_READ,
        summary=str(unwritten),
        evidence={
            "operation": unwritten.operation,
            "file": unwritten.file,
            "line": unwritten.line,
            "buffer": unwritten.name,
            "version": failing.version,
            **said,
        },
    )
    return controls, (finding,)


def decided(filled: Callable[[str], Observation]) -> tuple[tuple[Observation, ...], dict[str, str]]:
    """The runs, and what they say of the origin: clean with one constant and failing with another, twice each."""
    seen = _until_they_differ(filled)
    clean = next((fill for fill, one in seen.items() if one.outcome is Outcome.PASS), None)
    fails = next((fill for fill, one in seen.items() if one.outcome in FAILS), None)
    runs = tuple(seen.values())
    if clean is None or fails is None:
        return runs, {"origin": "unknown", "control": _undecided(seen)}
    again = {fill: filled(fill) for fill in (clean, fails)}
    runs = (*runs, *again.values())
    if again[clean].outcome is not Outcome.PASS or again[fails].outcome not in FAILS:
        return runs, {"origin": "unknown", "control": _undecided(again)}
    return runs, {"origin": "testcase", "control": _in_words(clean, fails)}


def _named(found: Sequence[Finding]) -> tuple[str, ...]:
    """The buffers that the guest names, as ``function/buffer``; what is no such name is left out."""
    claimed = [one.evidence.get("fill") for one in found if one.kind is FindingKind.UNINITIALIZED_READ]
    names = [str(name) for claim in claimed if isinstance(claim, list) for name in claim]
    return tuple(dict.fromkeys(name for name in names if _NAME.fullmatch(name)))[:MOST_NAMES]


def _until_they_differ(filled: Callable[[str], Observation]) -> dict[str, Observation]:
    """One run with each constant, until one is clean and one fails."""
    seen: dict[str, Observation] = {}
    for fill in FILLS:
        seen[fill] = filled(fill)
        outcomes = {one.outcome for one in seen.values()}
        if Outcome.PASS in outcomes and outcomes & set(FAILS):
            break
    return seen


def _filled(testcase: Testcase, failing: Observation, fill: str, named: Sequence[str], run: Run) -> Observation:
    (_, script, *arguments) = testcase.steps[0]
    step = launch("tvm.diagnose", f"{fill}={'+'.join(named)}", script, *arguments)
    changed = msgspec.structs.replace(testcase, steps=(step,))
    seen = run(failing.version, Variant.CONTROL, changed, failing.device)
    return _changed(seen, fill)


def _changed(seen: Observation, fill: str) -> Observation:
    return msgspec.structs.replace(seen, changes=(f"what it never wrote filled with {FILLS[fill]}",))


def _in_words(clean: str, fails: str) -> str:
    return (
        f"with what it never wrote filled with {FILLS[clean]} the testcase runs cleanly, twice;"
        f" with {FILLS[fails]} it fails, twice"
    )


def _undecided(seen: Mapping[str, Observation]) -> str:
    ended = ", ".join(f"{FILLS[fill]}: {one.outcome}" for fill, one in seen.items())
    return f"filled before its first pass it ends as follows, so this does not decide whether it fails: {ended}"
