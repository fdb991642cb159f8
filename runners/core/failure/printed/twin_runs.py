"""Compare the results of several runs of one program with each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from runners.core.protocol import Claim, ClaimKind, Exited, StepResult
from runners.core.toolchain.failures import FailureVocabulary

_OF_BUILD = re.compile(r"--?(?:module(?:_file)?|device|driver)\b")
"""Flags that select the program and the device. The other words select the inputs."""


def read_twins(
    claim: Claim, steps: Sequence[StepResult], vocabulary: FailureVocabulary, compilers: Collection[str]
) -> tuple[str, ...]:
    """Return the different results of all runs of one program, each once. Empty if the report is not about them.

    A report on two backends, or two sets of flags, that differ quotes both results, or none, and does not say which
    is right. The claim is answered by whether the results are equal on a build, not by their distance from the quoted
    numbers.
    """
    runs = [step for step in steps if step.argv and step.argv[0] not in {*compilers, "python"}]
    inputs = {(run.argv[0], *(word for word in run.argv[1:] if not _OF_BUILD.match(word))) for run in runs}
    if claim.kind is not ClaimKind.WRONG_RESULT or claim.expected or len(runs) < 2 or len(inputs) != 1:
        return ()
    reported = _split_results(claim.actual, vocabulary)
    if claim.actual and (len(reported) != len(runs) or len(set(reported)) == 1):
        return ()
    if not claim.actual and len({_find_module(run) for run in runs}) != len(runs):
        return ()
    printed = [_drop_harness(run.stdout, vocabulary) for run in runs]
    if not all(printed) or any(run.ended != Exited(code=0) or run.truncated for run in runs):
        return ()
    return tuple(dict.fromkeys(printed))


def _find_module(run: StepResult) -> str:
    """Return what a run loads and where it runs it: the words that distinguish twins."""
    return " ".join(word for word in run.argv[1:] if _OF_BUILD.match(word))


def _split_results(text: str, vocabulary: FailureVocabulary) -> list[str]:
    """Return the results in a quoted output: one for each block below lines of the harness."""
    blocks: list[list[str]] = []
    below = True
    for line in filter(str.strip, text.split("\n")):
        if any(pattern.match(line.strip()) for pattern in vocabulary.harness_lines):
            below = True
            continue
        if below:
            blocks.append([])
        blocks[-1].append(" ".join(line.split()))
        below = False
    return ["\n".join(block) for block in blocks]


def _drop_harness(text: str, vocabulary: FailureVocabulary) -> str:
    return "\n".join(_split_results(text, vocabulary))
