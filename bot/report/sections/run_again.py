"""Commands that repeat the runs: with uv alone, and with this project. Pure."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence

from bot.extract.types import Repro
from bot.report.matrix import WORDS, sort_versions
from bot.report.quote import clean_text, cut_end, quote_block, quote_code
from bot.report.sections.ranges import link_commits, name_ends
from bot.verdict.behaviour import find_behaviour
from bot.verdict.rules.phrases import join_names
from bot.verdict.verdict import Report, VerdictKind
from runners.core.conditions import USUAL, describe_conditions, list_shell_variables
from runners.core.findings.kinds import read_other_versions
from runners.core.packages.catalogue import Release
from runners.core.protocol import Answer, Bisection, Observation, Testcase, Variant
from runners.core.toolchain.contract import Toolchain
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
    again = quote_block(cut_end(report.command, MAX_COMMAND), "sh")
    own = f"All runs again, in a sandbox{_name_fork_runs(report)}:\n\n{again}"
    return "\n\n".join(filter(None, (by_hand, own, render_ranking(report))))


def _name_fork_runs(report: Report) -> str:
    """Say where the failure can be seen if only forks show it: no package index has their compiler by itself."""
    bad = [seen for seen in report.observations if seen.answer is Answer.BAD]
    forks = sort_versions(seen.version for seen in bad if seen.fork)
    if not forks or any(not seen.fork for seen in bad):
        return ""
    return f". Only this shows the failure, which was seen on {join_names([f'fork {quote_code(v)}' for v in forks])}"


def render_ranking(report: Report) -> str:
    """Return the command that ranks the commits of the change; empty if they are ranked, or without a range."""
    change = find_unranked_change(report)
    if change is None or change.commits is None or report.plan is None:
        return ""
    start, end = name_ends(change.commits)
    toolchain = report.plan.testcase.toolchain
    source = "-" if report.issue.source == "standard input" else report.issue.source
    command = shlex.join(["reprobot", "suspects", source, "--toolchain", toolchain, "--from", start, "--to", end])
    shown = quote_block(cut_end(command, MAX_RANKING), "sh")
    commits = link_commits(change.commits)
    return f"The most related of {commits} of the change (clones the compiler's repository first):\n\n{shown}"


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
    """Return a bad and a good run where both exist, else the newest run that says the most.

    Both are of one build if its runs disagree, else the ends of a change, else the newest of each kind. A ported run
    says more than a run that shows that a build cannot run the text. Forks are left out: their compiler is inside
    another package, where ``import`` does not find it.
    """
    device = report.plan.device if report.plan is not None else ""
    here = [seen for seen in report.observations if device in ("", seen.device) and not seen.fork]
    originals = [seen for seen in here if seen.variant in (Variant.ORIGINAL, Variant.RETARGETED)]
    if (younger := next(filter(fails_with_other_versions, here), None)) is not None:
        return (younger, *[seen for seen in originals if seen.version == younger.version][:1])
    if pair := next(filter(None, (_find_pair(originals, one.version) for one in reversed(originals))), ()):
        return pair
    ported = [seen for seen in here if seen.variant is Variant.PORTED]
    telling = [seen for seen in (*originals, *ported) if seen.answer is not Answer.SKIP]
    ends = [
        version
        for change in report.bisections[:1]
        for version in (change.last_good, change.first_bad, change.last_bad, change.first_good)
        if version is not None
    ]
    chosen = [found for version in ends if (found := next((s for s in telling if s.version == version), None))]
    for answer in (Answer.BAD, Answer.GOOD):
        if all(seen.answer is not answer for seen in chosen):
            chosen += _find_newest([seen for seen in telling if seen.answer is answer])
    chosen = chosen or _find_newest(originals)
    places = {version: at for at, version in enumerate(sort_versions(seen.version for seen in chosen))}
    return tuple(sorted(chosen, key=lambda seen: places[seen.version]))


def _find_newest(runs: Sequence[Observation]) -> list[Observation]:
    """Return the first run of the newest build, as posted if such a run is there."""
    newest = next(reversed(sort_versions(seen.version for seen in runs)), "")
    return [seen for seen in runs if seen.version == newest][:1]


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
    ported = find_port(seen, repro)
    patch = make_patch(repro.testcase, ported) if ported is not None else ""
    changed = ", with the changes below" if seen.variant is Variant.PORTED and ported is None else ""
    changed = ", ported" if patch else changed
    testcase = ported or repro.testcase
    commands = [
        shlex.join([*start, *_list_uv_words(release, _list_companions(toolchain, testcase), repro, seen), *step])
        for step in _list_steps(seen, testcase)
    ]
    if repro.filters and commands:
        commands[-1] += f" {repro.filters}"
    return [
        f"# {seen.toolchain} {seen.version}: {WORDS[find_behaviour(seen)]}{changed}{under}",
        *([_APPLY] if patch else []),
        *commands,
        *([_TAKE_BACK] if patch else []),
    ]


PATCH = "ported.diff"
_APPLY, _TAKE_BACK = f"patch -p0 < {PATCH}", f"patch -R -p0 < {PATCH}"


def find_patch(report: Report) -> tuple[str, str]:
    """Return the version of the ported run among the commands, and the patch that ports the files for it.

    Both are empty without such a run, and if the port cannot be made again exactly.
    """
    repro = report.extraction
    for seen in _choose_runs(report) if isinstance(repro, Repro) else ():
        release = report.find_release(seen.version)
        if seen.variant is Variant.PORTED and (release is None or release.source == "index"):
            assert isinstance(repro, Repro)
            if (ported := find_port(seen, repro)) and (patch := make_patch(repro.testcase, ported)):
                return seen.version, patch
    return "", ""


def find_port(seen: Observation, repro: Repro) -> Testcase | None:
    """Return the text of a ported run, which its record names by its changes alone.

    Porting is pure, so the text can be made again. None if that gives other changes: the text was then ported by what
    a release said, or has generated data.
    """
    if seen.variant is not Variant.PORTED or not seen.changes:
        return None
    from runners.rewrite.testcase import port_testcase  # its parser takes 0.15 s, which few reports need

    made = port_testcase(repro.testcase, seen.version, find_toolchain(seen.toolchain))
    if made is None:
        return None
    changes = tuple(dict.fromkeys(f"{one.old} → {one.new}"[:500] for one in made.substitutions))
    return made.testcase if changes == seen.changes else None


def make_patch(posted: Testcase, ported: Testcase) -> str:
    """Return a unified diff that `patch` applies to the posted files; empty if no file differs."""
    parts: list[str] = []
    for name, text in posted.files.items():
        before, after = (clean_text(one).strip("\n").split("\n") for one in (text, ported.files.get(name, text)))
        parts += difflib.unified_diff(before, after, name, name, lineterm="")
    return "\n".join(parts)


def _list_companions(toolchain: Toolchain, testcase: Testcase) -> tuple[str, ...]:
    """Return the packages that the toolchain's own modules import without requiring them, if the testcase does."""
    text = "\n".join((*testcase.files.values(), *(word for step in testcase.steps for word in step)))
    return tuple(one for one in toolchain.COMPANIONS if re.search(toolchain.COMPANION_IMPORTS.get(one, one), text))


def _list_steps(seen: Observation, testcase: Testcase) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a run. One for another target than the assumed one lists them as its changes."""
    changed = seen.variant is Variant.RETARGETED
    return tuple(tuple(line.split()) for line in seen.changes) if changed else testcase.steps


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
