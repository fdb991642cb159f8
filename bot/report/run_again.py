"""Shell commands for a failure that occurs only under some conditions. Pure."""

from __future__ import annotations

import shlex

from bot.extract.types import Repro
from bot.verdict.verdict import Report
from runners.core.conditions import USUAL, describe_conditions, list_shell_variables
from runners.core.protocol import Answer, Observation, Variant
from runners.toolchains import find_toolchain


def list_shell_lines(report: Report) -> str:
    """Return the commands of a bad and of a good run of one build, each with its environment variables.

    Empty where no build has both. The text contains the testcase's steps and belongs inside a fence.
    """
    repro = report.extraction
    originals = [seen for seen in report.observations if seen.variant is Variant.ORIGINAL]
    pair = next(filter(None, (_find_pair(originals, one.version) for one in reversed(originals))), ())
    if not isinstance(repro, Repro) or not pair:
        return ""
    return "\n".join(line for seen in pair for line in _format_run(seen, repro.testcase.steps))


def _find_pair(originals: list[Observation], version: str) -> tuple[Observation, ...]:
    """Return the first bad and the first good run of a build, under the most usual conditions; empty without both."""
    own = sorted((seen for seen in originals if seen.version == version), key=lambda seen: seen.attempt)
    bad, good = (next((seen for seen in own if seen.answer is one), None) for one in (Answer.BAD, Answer.GOOD))
    return (bad, good) if bad is not None and good is not None else ()


def _format_run(seen: Observation, steps: tuple[tuple[str, ...], ...]) -> list[str]:
    answer = "failed" if seen.answer is Answer.BAD else "ran cleanly"
    under = "as usual" if seen.varied == USUAL else f"with {describe_conditions(seen.varied)}"
    toolchain = find_toolchain(seen.toolchain)
    variables = [f"{name}={value}" for name, value in list_shell_variables(seen.varied, toolchain).items()]
    return [
        f"# {answer} on {seen.toolchain} {seen.version}, {under}",
        *(shlex.join(["env", *variables, *step]) for step in steps),
    ]
