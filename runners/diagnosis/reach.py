"""Check whether a clean run calls what the report suspects. One instrumented run reports the called names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import msgspec

from runners.core.failure.normalize import simplify_name
from runners.core.findings.record import make_finding
from runners.core.findings.types import ReachEvidence
from runners.core.protocol import Finding, FindingKind, Testcase, TestcaseKind
from runners.core.toolchain.claims import read_claim
from runners.core.toolchain.diagnosis import Means
from runners.core.toolchain.guest import make_launch_step

_WORD = re.compile(r"[A-Za-z_]\w*")


class Reach(msgspec.Struct, frozen=True):
    """Suspect names that the run called, and those that exist in the compiler."""

    reached: list[str] = []
    known: list[str] = []


def check_reach(
    testcase: Testcase, version: str, accused: Sequence[str], packages: Sequence[str], means: Means
) -> tuple[Finding, ...]:
    """Return a finding with the suspect names of the compiler, if a run of the testcase called none of them.

    Only a testcase whose own code uses none of them is run. Otherwise its run reaches them, or fails before.
    """
    if testcase.kind is not TestcaseKind.PYTHON or len(testcase.steps) != 1 or not accused:
        return ()
    if uses_names(testcase, accused):
        return ()
    _, script, *arguments = testcase.steps[0]
    step = make_launch_step("script.exercise", ",".join(packages), ",".join(accused), script, *arguments)
    claims = means.run_hook(version, msgspec.structs.replace(testcase, steps=(step,)))
    found = read_claim(claims, FindingKind.REACH, Reach)
    missed = [name for name in accused if found is not None and name in found.known]
    if found is None or found.reached or not missed:
        return ()
    summary = f"the run on {version} called none of {', '.join(missed)}"
    return (make_finding(ReachEvidence(names=tuple(missed), version=version), summary),)


def uses_names(testcase: Testcase, names: Sequence[str]) -> bool:
    """True if the code of a testcase uses one of the names. An import alone is not a use."""
    wanted = {simplify_name(name) for name in names}
    return any(simplify_name(word) in wanted for code in testcase.files.values() for word in _list_words(code))


def _list_words(code: str) -> list[str]:
    """Return the names in a program's expressions, and the words of its strings. All words if it cannot be parsed."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _WORD.findall(code)
    words: list[str] = []
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                words.append(name)
            case ast.Constant(value=str(text)):
                words += _WORD.findall(text)
            case _:
                pass
    return words
