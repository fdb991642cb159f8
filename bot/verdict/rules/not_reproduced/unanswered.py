"""Judge runs that end well, if nothing compares their output with the claim. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.not_reproduced.facts import only_compiles
from bot.verdict.rules.phrases import join_names, list_versions, name_all, name_releases, quote_span
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.printed.programs.program_runs import read_programs
from runners.core.protocol import ClaimKind, Observation, Reason
from runners.toolchains import find_toolchain


def _stops_at_program(evidence: Evidence) -> bool:
    """True if the commands request a program of a compiler's phase, and not code that computes values."""
    tools = find_toolchain(evidence.plan.testcase.toolchain).REPORTS.tools
    steps = evidence.plan.testcase.steps
    return tools is not None and all(
        step[0] == tools.optimizer or tools.output_suffix(step).endswith(_PROGRAM) for step in steps
    )


_PROGRAM = "mlir"
"""End of the suffix of an output file that contains a program."""


def judge_unanswered(evidence: Evidence, ended: Sequence[Observation], used: tuple[int, ...]) -> Verdict:
    """Return ``inconclusive`` if each run ends well, and nothing compares its result with the claim."""
    claim = evidence.plan.claim
    if made := _list_made(ended):
        counts = ", and ".join(
            f"{quote_span(one)} on {name_releases(evidence, where)}" for one, where in made.items()
        )
        said = join_names([quote_span(one) for one in (claim.actual, claim.expected) if one])
        headline = f"Inconclusive: it compiles to {counts}, and the report speaks of {said}."
        settle = "to decide: the program and the flags with which the report counts"
    elif (change := _find_printed_change(evidence, ended)) is not None:
        before, after = (name_releases(evidence, versions) for versions in change)
        headline = (
            f"Inconclusive: {after} print{'s' if len(change[1]) == 1 else ''} another program than {before}; what the"
            " report says of it could not be turned into a check."
        )
        settle = "to decide: which of the two programs is wrong, and in which row"
    elif only_compiles(evidence):
        headline = (
            f"Inconclusive: it compiles on {name_all(evidence, list_versions(evidence.plan, ended))}; the report"
        )
        if claim.kind is ClaimKind.WRONG_RESULT and not _stops_at_program(evidence):
            headline += f" is about values computed on {quote_span(evidence.plan.device)}, and gives no call that"
            headline += " computes them."
            settle = "to decide: the call with its inputs"
        else:
            headline += " is about the compiled program, and what it says of it could not be turned into a check."
            settle = "to decide: the lines that the output should or should not have, or a wrong result of a run"
    else:
        headline = "Inconclusive: it runs to its end, and neither testcase nor report shows whether its output is"
        headline += " right."
        settle = "to decide: an assertion in the testcase, or the expected output beside the actual output"
    return make_verdict(VerdictKind.INCONCLUSIVE, (Ground.NO_ANSWER,), headline, (settle,), used)


def _find_printed_change(
    evidence: Evidence, ended: Sequence[Observation]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the builds before and since the newest change of the printed program; None without a change.

    For tools that print a program, such as ``iree-opt``: a pass gives the same program on every run of a build.
    """
    if evidence.plan.claim.kind is not ClaimKind.WRONG_RESULT or not only_compiles(evidence):
        return None
    printed = read_programs(ended)
    versions = [version for version in evidence.plan.order if version in printed]
    programs = [printed[version] for version in versions]
    first = next((at for at in range(len(versions) - 1, -1, -1) if programs[at] != programs[-1]), None)
    return None if first is None else (tuple(versions[: first + 1]), tuple(versions[first + 1 :]))


def _list_made(ended: Sequence[Observation]) -> dict[str, tuple[str, ...]]:
    """Return the numbers of things that builds make, as text, with the builds; empty unless each run shows one."""
    found: dict[str, tuple[str, ...]] = {}
    for seen in ended:
        if seen.signature is None or seen.reason is not Reason.COUNTED:
            return {}
        at = found.get(seen.signature.message, ())
        found[seen.signature.message] = at if seen.version in at else (*at, seen.version)
    return found
