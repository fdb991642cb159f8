"""Commands that repeat the runs: with uv alone, and with this project. Pure."""

from __future__ import annotations

import shlex

from bot.extract.types import Repro
from bot.report.matrix import WORDS, sort_versions
from bot.report.quote import cut_end, quote_block
from bot.verdict.behaviour import find_behaviour
from bot.verdict.verdict import Report, VerdictKind
from runners.core.conditions import USUAL, describe_conditions, list_shell_variables
from runners.core.findings import read_other_versions
from runners.core.packages.catalogue import Release
from runners.core.protocol import Answer, Bisection, Observation, Variant
from runners.core.toolchain.facts import USUAL_PYTHON
from runners.toolchains import find_toolchain

MAX_COMMAND, MAX_COMMANDS, MAX_RANKING = 2_000, 4_000, 500


def render_commands(report: Report) -> str:
    """Return the commands that repeat the deciding runs with uv alone, then the command of this project."""
    if not report.observations:
        return ""
    lines = list_shell_lines(report)
    by_hand = (
        f"With uv alone, in a folder with the files below. This runs the reporter's code without a sandbox:\n\n"
        f"{quote_block(cut_end(lines, MAX_COMMANDS), 'sh')}"
        if lines
        else ""
    )
    steps = (
        "\n".join(map(shlex.join, report.extraction.testcase.steps)) if isinstance(report.extraction, Repro) else ""
    )
    by_hand = by_hand or (f"Steps:\n\n{quote_block(cut_end(steps, MAX_COMMANDS), 'sh')}" if steps else "")
    own = f"All runs again, in a sandbox:\n\n{quote_block(cut_end(report.command, MAX_COMMAND), 'sh')}"
    return "\n\n".join(filter(None, (by_hand, own, render_ranking(report))))


def render_ranking(report: Report) -> str:
    """Return the command that ranks the commits of the change; empty if they are ranked, or without a range."""
    change = find_unranked_change(report)
    if change is None or change.commits is None or report.plan is None:
        return ""
    start, end = change.commits.start, change.commits.end
    toolchain = report.plan.testcase.toolchain
    source = "-" if report.issue.source == "standard input" else report.issue.source
    command = shlex.join(["reprobot", "suspects", source, "--toolchain", toolchain, "--from", start, "--to", end])
    return f"The commits of the change, the most related first:\n\n{quote_block(cut_end(command, MAX_RANKING), 'sh')}"


def find_unranked_change(report: Report) -> Bisection | None:
    """Return the first change between two releases whose commits are known by their ends alone."""
    if report.verdict.kind not in (VerdictKind.REGRESSION, VerdictKind.FIXED):
        return None
    return next((one for one in report.bisections if one.commits and not one.suspects and not one.deep), None)


def list_shell_lines(report: Report) -> str:
    """Return the commands of one bad run and of one good run: of one build if its runs disagree, else of two.

    The packages are those of the run: resolved as of the build's date. Each step has the variables of its run. Empty
    if no build comes from the package index. The text contains the testcase's steps and belongs inside a fence.
    """
    repro = report.extraction
    if not isinstance(repro, Repro):
        return ""
    lines: list[str] = []
    runs = _choose_runs(report)
    exact = len({seen.version for seen in runs}) < len(runs)
    for seen in runs:
        lines += _format_run(seen, repro, report.find_release(seen.version), exact=exact)
    return "\n".join(lines)


def _choose_runs(report: Report) -> tuple[Observation, ...]:
    """Return a bad and a good run of one build, or the ends of a change; else the newest run with the most evidence.

    A bad run is more evidence than a good one. A ported run is more than a run of a build that cannot run the text.
    Forks are left out: their compiler is inside another package, where ``import`` does not find it.
    """
    device = report.plan.device if report.plan is not None else ""
    here = [seen for seen in report.observations if device in ("", seen.device) and not seen.fork]
    originals = [seen for seen in here if seen.variant in (Variant.ORIGINAL, Variant.RETARGETED)]
    if (younger := next(filter(fails_with_other_versions, here), None)) is not None:
        return (younger, *[seen for seen in originals if seen.version == younger.version][:1])
    if pair := next(filter(None, (_find_pair(originals, one.version) for one in reversed(originals))), ()):
        return pair
    ends = [
        version
        for change in report.bisections[:1]
        for version in (change.last_good, change.first_bad, change.last_bad, change.first_good)
        if version is not None
    ]
    at_ends = [next((seen for seen in originals if seen.version == version), None) for version in ends]
    if found := tuple(seen for seen in at_ends if seen is not None):
        return found
    clear = [seen for seen in originals if seen.answer is not Answer.SKIP]
    ported = [seen for seen in here if seen.variant is Variant.PORTED and seen.answer is not Answer.SKIP]
    telling = [seen for seen in originals if seen.answer is Answer.BAD] or clear or ported or originals
    newest = next(reversed(sort_versions(seen.version for seen in telling)), "")
    return tuple(seen for seen in telling if seen.version == newest)[:1]


def fails_with_other_versions(seen: Observation) -> bool:
    """True for a control run that fails as reported with packages in other versions."""
    return seen.variant is Variant.CONTROL and seen.answer is Answer.BAD and bool(read_other_versions(seen.changes))


def _find_pair(originals: list[Observation], version: str) -> tuple[Observation, ...]:
    """Return the first bad and the first good run of a build, under the most usual conditions; empty without both."""
    own = sorted((seen for seen in originals if seen.version == version), key=lambda seen: seen.attempt)
    bad, good = (next((seen for seen in own if seen.answer is one), None) for one in (Answer.BAD, Answer.GOOD))
    return (bad, good) if bad is not None and good is not None else ()


def _format_run(seen: Observation, repro: Repro, release: Release | None, *, exact: bool) -> list[str]:
    """Return a comment and the steps. ``exact``: also set the variables of a run under the usual conditions."""
    toolchain = find_toolchain(seen.toolchain)
    if release is not None and release.source != "index":
        return []
    usual = seen.varied == USUAL
    under = "" if usual and not exact else ", as usual" if usual else f", with {describe_conditions(seen.varied)}"
    settings = {} if usual and not exact else list_shell_variables(seen.varied, toolchain)
    variables = [f"{name}={value}" for name, value in (settings | repro.testcase.list_variables()).items()]
    start = ["env", *variables] if variables else []
    changed = ", with the changes below" if seen.variant is Variant.PORTED else ""
    return [
        f"# {seen.toolchain} {seen.version}: {WORDS[find_behaviour(seen)]}{changed}{under}",
        *(
            shlex.join([*start, *_list_uv_words(release, toolchain.COMPANIONS, repro, seen), *step])
            for step in _list_steps(seen, repro)
        ),
    ]


def _list_steps(seen: Observation, repro: Repro) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a run. One for another target than the assumed one lists them as its changes."""
    changed = seen.variant is Variant.RETARGETED
    return tuple(tuple(line.split()) for line in seen.changes) if changed else repro.testcase.steps


def _choose_python(pythons: tuple[str, ...]) -> str:
    return USUAL_PYTHON if USUAL_PYTHON in pythons else pythons[-1]


def _list_uv_words(
    release: Release | None, companions: tuple[str, ...], repro: Repro, seen: Observation
) -> list[str]:
    """Return ``uv run`` with the packages of a run; empty for a build that the catalogue does not know."""
    if release is None:
        return []
    other = read_other_versions(seen.changes) if seen.variant is Variant.CONTROL else {}
    pins = (f"{name}=={version}" for name, version in other.items())
    needed = (*release.distributions, *release.pins, *companions, *repro.testcase.requirements, *pins)
    dated = release.as_of is not None and not other
    day = ["--exclude-newer", f"{release.as_of:%Y-%m-%d}"] if dated else []
    python = ["--python", _choose_python(release.pythons)] if release.pythons else []
    return ["uv", "run", "--no-project", *python, *day, *(word for one in needed for word in ("--with", one))]
