"""The change of behaviour: its two releases, the commits between, and the commits most related to the report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from bot.report.quote import cut_end, escape_prose, quote_block, quote_code
from bot.verdict.landing import find_landing
from bot.verdict.verdict import LikelyFix, Report, VerdictKind
from runners.core.protocol import Bisection, CommitRange, Observation, Suspect

_COMPARE = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/compare/(?P<start>[\w.+-]+?)\.\.\.(?P<end>[\w.+-]+)", re.ASCII
)
_SHA = re.compile(r"[0-9a-f]{40}")
MAX_SUBJECT = 56
"""Three candidates with their introduction take three lines of a comment."""
MAX_LOG = 600


def map_forks(observations: Sequence[Observation]) -> Mapping[str, str]:
    """Return version → fork for the builds that are not releases."""
    return {seen.version: seen.fork for seen in observations if seen.fork}


def render_changes(report: Report) -> tuple[str, ...]:
    """Return one paragraph per change of behaviour, with the commits most related to the report.

    Empty for a testcase at fault: no commit breaks or repairs an undefined result.
    """
    if report.verdict.kind is VerdictKind.INVALID_REPRO:
        return ()
    forks = map_forks(report.observations)
    return tuple(text for one in report.bisections if (text := render_change(one, forks, report.sources)))


def render_deep_change(report: Report) -> str:
    """Return the change that was found between releases, which no table shows; empty without such a search."""
    forks = map_forks(report.observations)
    return "\n\n".join(
        describe_change(one, forks)
        for one in report.bisections
        if one.deep and report.verdict.kind is not VerdictKind.INVALID_REPRO
    )


def render_landing(report: Report) -> str:
    """Return ``Fixed in A, first released in B, not in C``; empty if the timeline shows all of it."""
    landing = find_landing(report)
    if landing is None:
        return ""
    change = quote_code(landing.change[:12] if landing.is_commit else landing.change)
    release = quote_code(landing.release)
    parts = [f"Fixed in {'commit ' if landing.is_commit else ''}{change}"] if landing.change else []
    if landing.release:
        parts.append(f"first released in {release}" if parts else f"Fixed in {release}")
    if landing.without:
        later = ", ".join(map(quote_code, landing.without))
        parts.append(f"not in {later}, released after the fix")
    return ", ".join(parts) + "."


def render_change(bisection: Bisection, forks: Mapping[str, str], sources: Sequence[str] = ()) -> str:
    """Return the change, and the commits most related to the report, or a command that lists some of the commits."""
    suspects = render_suspects(bisection.commits, bisection.suspects, "have changed it")
    listed = "" if suspects or bisection.deep else _render_log(bisection.commits, sources)
    return "\n\n".join(filter(None, (describe_change(bisection, forks), suspects, listed)))


def _render_log(commits: CommitRange | None, sources: Sequence[str]) -> str:
    command = format_log_command(commits, sources)
    return f"The commits among them to the part that failed:\n\n{quote_block(command, 'sh')}" if command else ""


def name_build(version: str, forks: Mapping[str, str]) -> str:
    """Return the version, and the commit of the fork for a build that is not a release."""
    fork = forks.get(version, "").partition(",")[0]
    return f"fork {quote_code(version)} (at {quote_code(fork)})" if fork else quote_code(version)


def describe_change(bisection: Bisection, forks: Mapping[str, str]) -> str:
    """Return ``Last good A → first bad B`` with the commits between, or the one end that is known."""

    def named(version: str) -> str:
        return name_build(version, forks)

    match bisection:
        case Bisection(direction="introduced", last_good=str(good), first_bad=str(bad)):
            ends = f"Last good {named(good)} → first bad {named(bad)}{_add_commits(bisection.commits)}"
        case Bisection(direction="fixed", last_bad=str(bad), first_good=str(good)):
            ends = f"Last bad {named(bad)} → first good {named(good)}{_add_commits(bisection.commits)}"
        case Bisection(direction="introduced", first_bad=str(bad)):
            ends = f"Bad since {named(bad)} or earlier"
        case Bisection(direction="fixed", first_good=str(good)):
            ends = f"Good since {named(good)} or earlier"
        case _:
            return ""
    silent = _list_builds("No answer", bisection.skipped) + _list_builds("Not run", bisection.untested)
    return f"{ends}.{silent}{_describe_search(bisection)}"


def _list_builds(label: str, builds: Sequence[str]) -> str:
    return f" {label}: {', '.join(map(quote_code, builds[:8]))}{' …' if builds[8:] else ''}." if builds else ""


def _describe_search(bisection: Bisection) -> str:
    """Return runs and certainty of a change found along nightlies or commits; empty for a change among releases."""
    if not bisection.deep:
        return ""
    sure = f"{min(99.9, int(1000 * bisection.confidence) / 10):g} %"
    first = "First commit with it" if bisection.direction == "introduced" else "First commit without it"
    named = f" {first}: {quote_code(bisection.culprit)}." if bisection.culprit else ""
    notes = "".join(f" {escape_prose(note[:1].upper() + note[1:])}." for note in bisection.notes)
    return f" Found in {bisection.probes} runs, certainty {sure}.{named}{notes}"


def render_likely_fix(likely: LikelyFix | None) -> str:
    """Return the commits that may have fixed a failure that no available build shows; empty without such commits."""
    if likely is None:
        return ""
    good = quote_code(likely.first_good)
    sentence = f"No available build shows the failure; {good} is the oldest newer build that passes."
    return f"{sentence}\n\n{render_suspects(likely.commits, likely.suspects, 'have fixed it')}"


def render_suspects(commits: CommitRange | None, suspects: Sequence[Suspect], did: str) -> str:
    """Return ``One of 187 commits …; most related to the report:`` and at most five of these commits."""
    if commits is None or not suspects:
        return ""
    count = f"{commits.count} commits" if commits.count else "the commits"
    span = f"{quote_code(commits.start[:12])}..{quote_code(commits.end[:12])}"
    lines = (
        f"- {_link_commit(one.commit, commits.compare_url)} {quote_code(one.subject, 120)}:"
        f" {escape_prose(', '.join(one.why))}"
        for one in suspects[:5]
    )
    ranked = "The order rests on names, words and dates, and is not evidence against any commit."
    return f"One of {count} in {span} may {did}; most related to the report:\n\n" + "\n".join(lines) + f"\n\n{ranked}"


def _link_commit(sha: str, compare_url: str) -> str:
    if not _COMPARE.fullmatch(compare_url):
        return quote_code(sha[:10])
    return f"[{quote_code(sha[:10])}](<{compare_url.partition('/compare/')[0]}/commit/{sha}>)"


def link_candidates(bisection: Bisection, most: int) -> str:
    """Return the most related commits of a change, linked, with their subjects; empty without a ranking."""
    if bisection.commits is None:
        return ""
    url = bisection.commits.compare_url
    return "; ".join(
        f"{_link_commit(one.commit, url)} {quote_code(one.subject, MAX_SUBJECT)}" for one in bisection.suspects[:most]
    )


def format_log_command(commits: CommitRange | None, sources: Sequence[str]) -> str:
    """Return the command that lists the commits of a range to these paths; empty without a range or a path."""
    if commits is None or not sources:
        return ""
    start, end = name_ends(commits)
    return cut_end(shlex.join(["git", "log", "--oneline", f"{start}..{end}", "--", *sources]), MAX_LOG)


def name_ends(commits: CommitRange) -> tuple[str, str]:
    """Return the two ends as git knows them: by their tags where the link has them, else by their commits."""
    found = _COMPARE.fullmatch(commits.compare_url)
    ends = (found["start"], found["end"]) if found is not None else (commits.start, commits.end)
    start, end = (one[:12] if _SHA.fullmatch(one) else one for one in ends)
    return start, end


def is_public_repository(name: str) -> bool:
    """True for ``owner/name`` as GitHub writes it."""
    return re.fullmatch(r"[\w-]{1,39}/[\w.-]{1,100}", name, re.ASCII) is not None


def _add_commits(commits: CommitRange | None) -> str:
    return f", {words}" if (words := link_commits(commits)) else ""


def link_commits(commits: CommitRange | None) -> str:
    """Return ``296 commits`` with a link to them, or with the two ends in words; empty without a range."""
    if commits is None:
        return ""
    words = (
        f"{commits.count} commits"
        if commits.count not in (None, 1)
        else "1 commit"
        if commits.count
        else "the commits"
    )
    if _COMPARE.fullmatch(commits.compare_url):
        return f"[{words}](<{commits.compare_url}>)"
    start, end = name_ends(commits)
    return f"{words}: {quote_code(start)} to {quote_code(end)}"
