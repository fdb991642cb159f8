"""Compare runs of one program whose results should be equal, such as runs on two backends. Pure.

A report on such a difference quotes both results and calls neither of them right. Whether they are equal on a build
answers the claim; how near they are to the quoted numbers does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from runners.core.protocol import Claim, ClaimKind, Exited, StepResult
from runners.core.toolchain.failures import FailureVocabulary

_OF_BUILD = re.compile(r"--?(?:module(?:_file)?|device|driver)\b")
"""Flags that say what is run, and on what; the other words say with which inputs."""


def are_twins_equal(
    claim: Claim, steps: Sequence[StepResult], vocabulary: FailureVocabulary, compilers: Collection[str]
) -> bool | None:
    """Return whether all runs print the same; None if the report quotes no different results of several such runs."""
    runs = [step for step in steps if step.argv and step.argv[0] not in {*compilers, "python"}]
    inputs = {(run.argv[0], *(word for word in run.argv[1:] if not _OF_BUILD.match(word))) for run in runs}
    if claim.kind is not ClaimKind.WRONG_RESULT or claim.expected or len(runs) < 2 or len(inputs) != 1:
        return None
    reported = _split_results(claim.actual, vocabulary)
    if len(reported) != len(runs) or len(set(reported)) == 1:
        return None
    printed = [_drop_harness(run.stdout, vocabulary) for run in runs]
    if not all(printed) or any(run.ended != Exited(code=0) or run.truncated for run in runs):
        return None
    return len(set(printed)) == 1


def _split_results(text: str, vocabulary: FailureVocabulary) -> list[str]:
    """Return the results in a quoted output: one for each block of lines below lines of the harness."""
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
