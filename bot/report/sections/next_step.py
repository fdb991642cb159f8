"""The reader's next step for each verdict: upgrade, commits to inspect, or the missing evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from bot.extract.types import ABSENT_PROGRAM, NATIVE_PROGRAM, PRODUCT, SOURCE_SCRIPT, NoRepro, Repro
from bot.report.matrix import sort_versions
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.ranges import (
    MAX_LOG,
    format_log_command,
    is_public_repository,
    link_candidates,
    link_commits,
    map_forks,
    name_build,
)
from bot.report.sections.run_again import fails_with_other_versions, find_unranked_change
from bot.verdict.rules.phrases import join_names
from bot.verdict.verdict import TO_DECIDE, Report, VerdictKind
from runners.core.findings.kinds import Vote
from runners.core.findings.record import read_evidence
from runners.core.findings.types import CallEvidence, MissingEvidence, ReferenceEvidence, SignatureEvidence
from runners.core.packages.versions import is_dated
from runners.core.protocol import Answer, Bisection, ClaimKind, NotRun, Observation, Outcome, TestcaseKind, Variant
from runners.toolchains import find_device, find_toolchain


def render_next_step(report: Report) -> str:
    """Return the next step as one paragraph; empty if the request for missing parts is the next step."""
    text = _describe_next_step(report)
    return f"**Next step:** {text}" if text else ""


def _describe_next_step(report: Report) -> str:
    match report.verdict.kind:
        case VerdictKind.REGRESSION:
            return _name_commits(report) or _confirm_here(report)
        case VerdictKind.CONFIRMED:
            return _confirm_here(report)
        case VerdictKind.FIXED:
            return _advise_upgrade(report)
        case VerdictKind.NOT_REPRODUCED:
            unknown = _list_unknown(report)
            return _join(
                _ask_for_decision(report),
                f"retry with {_name_newest(report)}; if it works, this can be closed.",
                f"if it fails there, add {join_names(unknown)}." if unknown else "",
            )
        case VerdictKind.DIFFERENT_FAILURE:
            quoted = report.extraction.claim.signature is not None
            other = "say whether this is the failure" if quoted else "add the complete error message"
            return f"{other}, or change the testcase so that it fails as described."
        case VerdictKind.INVALID_REPRO:
            return _advise_repair(report)
        case VerdictKind.FLAKY:
            return f"compare a failing and a clean run, which {_COMMANDS} repeat."
        case VerdictKind.UNTESTABLE:
            return (
                _ask_for_program(report)
                or _ask_for_limit(report)
                or _ask_for_device(report)
                or _ask_for_decision(report)
                or _offer_port(report)
                or "add a version of the testcase for the API of the newest release."
            )
        case VerdictKind.INCONCLUSIVE:
            return _ask_for_decision(report) or _offer_another_try(report) or _ask_for_failure(report)
        case VerdictKind.INCOMPLETE:
            return _ask_for_decision(report)  # the missing parts are requested elsewhere
        case VerdictKind.NO_REPRO | VerdictKind.NO_CLAIM:
            return ""
        case other:
            assert_never(other)


_COMMANDS = "the commands under *Reproduce it by hand*"


def _join(*sentences: str) -> str:
    told = [one for one in sentences if one]
    return " ".join([*told[:1], *(one[:1].upper() + one[1:] for one in told[1:])])


def _list_unknown(report: Report) -> list[str]:
    """Return what may differ on the reporter's machine and is not in the report.

    A testcase that only compiles, parses, checks flags or prints a program does the same on each machine.
    """
    claim = report.extraction.claim
    if not _runs_compiled_code(report):
        lacks = claim.kind in (ClaimKind.ERROR, ClaimKind.CRASH) and claim.signature is None
        return ["the complete output"] if lacks else []
    return [
        *([] if claim.devices else ["the device"]),
        *([] if claim.actual or claim.signature is not None else ["the complete output"]),
    ] or ["the processor"]


def _runs_compiled_code(report: Report) -> bool:
    """True if the testcase runs what the compiler makes, so that its machine may matter."""
    if not isinstance(report.extraction, Repro):
        return False
    testcase = report.extraction.testcase
    if testcase.kind is TestcaseKind.PYTHON:
        return any(_RUNS.search(text) for text in testcase.files.values())
    toolchain = find_toolchain(testcase.toolchain)
    tools = toolchain.REPORTS.tools
    return tools is not None and any(step[0] in tools.runners for step in testcase.steps)


_RUNS = re.compile(
    r"\b(?:VirtualMachine|GraphModule|create_executor|time_evaluator|load_vm_(?:flatbuffer|module)|SystemContext)\b"
    r"|\.(?:as)?numpy\(|\bnd\.(?:array|empty)\(|\bruntime\.(?:tensor|empty)\(|\.to_host\("
)
"""Calls by which a Python program runs compiled code, or takes its values."""


def _ask_for_failure(report: Report) -> str:
    """Return a request for the parts of the failure that the report does not quote."""
    claim = report.extraction.claim
    if claim.kind in (ClaimKind.ERROR, ClaimKind.CRASH):
        wanted = [] if claim.signature is not None else ["the complete error message"]
    else:
        wanted = [
            *([] if claim.actual else ["the output"]),
            *([] if claim.expected else ["the expected output"]),
        ]
    if not wanted:
        return "say which run below shows the failure that is meant."
    return f"add {join_names(wanted)}, as text."


def _ask_for_limit(report: Report) -> str:
    """Return who can raise the limit that prevents the runs; empty if no limit does."""
    if not any(isinstance(one.ended, NotRun) and one.ended.cause == "forbidden" for one in report.observations):
        return ""
    return (
        "the operator can raise the limit: `limits.download` and `allow` in the settings of the repository, or"
        " `download_mib` in the configuration of the machine."
    )


def _ask_for_decision(report: Report) -> str:
    """Return the evidence that would settle the verdict, from its reasons."""
    wanted = [one.removeprefix(TO_DECIDE) for one in report.verdict.reasons if one.startswith(TO_DECIDE)]
    return f"what would settle it: {escape_prose('; '.join(wanted))}." if wanted else ""


def _offer_another_try(report: Report) -> str:
    """Return how to run the newest release again; empty if a run of it started: the failure is not ours then."""
    newest = report.plan.order[-1] if report.plan is not None else ""
    runs = [one.ended for one in report.observations if one.version == newest and one.variant is Variant.ORIGINAL]
    if not runs or not all(isinstance(end, NotRun) and end.cause == "infra" for end in runs):
        return ""
    return f"`/repro rerun` tries {quote_code(newest)} again, which did not start here."


def _name_newest(report: Report) -> str:
    if report.plan is not None:
        return quote_code(report.plan.order[-1])
    return quote_code(report.observations[-1].version) if report.observations else "the newest release"


def _confirm_here(report: Report) -> str:
    """Return where the failure occurs: on the newest release that fails as posted, else after porting.

    No command shows it on a fork, whose compiler no package index has by itself.
    """
    bad = [
        one.version
        for one in report.observations
        if not one.fork
        and ((one.answer is Answer.BAD and one.variant is Variant.ORIGINAL) or fails_with_other_versions(one))
    ]
    if bad:
        return f"{_COMMANDS} show the failure on {quote_code(sort_versions(bad)[-1])} without this bot."
    if all(one.answer is not Answer.BAD for one in report.observations):
        return f"{_COMMANDS} print the result on {_name_newest(report)} without this bot."
    return f"the changes under *Reproduce it by hand* port the testcase, so that it fails on {_name_newest(report)}."


# ---------------------------------------------------------------------------------------------- changes


_CLOSE = "if it works there, this can be closed"


def _find_change(report: Report, direction: str) -> Bisection | None:
    return next((one for one in report.bisections if one.direction == direction), None)


def _name_commits(report: Report) -> str:
    """Return where to look for the cause: the range, with candidates or a command that lists some of its commits."""
    found = _find_change(report, "introduced")
    if found is None or found.last_good is None or found.first_bad is None:
        return ""
    if found.deep:
        return "look at the commits of the change above."
    commits = link_commits(found.commits) or "the changes"
    ends = f"from {quote_code(found.last_good)} (clean) to {quote_code(found.first_bad)}"
    if candidates := link_candidates(found, 3):
        return f"look for the cause in {commits} {ends}. Most related, which is no evidence: {candidates}."
    if listed := format_log_command(found.commits, report.sources):
        shown = quote_code(listed, MAX_LOG)
        return _join(
            f"look for the cause in {commits} {ends}. Those to the part that failed: {shown}.",
            _explain_unranked(report),
        )
    ranks = (
        ""
        if report.unranked or find_unranked_change(report) is None
        else "; a command under *Reproduce it by hand* ranks them"
    )
    return _join(f"look for the cause in {commits} {ends}{ranks}.", _explain_unranked(report))


def _explain_unranked(report: Report) -> str:
    """Return why the commits of the change are not listed, and how to list them; empty without such a reason."""
    if not report.unranked or find_unranked_change(report) is None:
        return ""
    return (
        f"the commits are not listed: {escape_prose(report.unranked)};"
        " a command under *Reproduce it by hand* ranks them."
    )


def _advise_upgrade(report: Report) -> str:
    found = _find_change(report, "fixed")
    if found is None or found.first_good is None:
        newest = report.plan.order[-1] if report.plan is not None else ""
        upgrade = f"upgrade to {_name_newest(report)}{_link_notes(report, newest)}"
        ran = [seen for seen in report.observations if seen.version == newest]
        is_rejected = bool(ran) and all(seen.answer is not Answer.GOOD for seen in ran)
        return (
            f"{upgrade}, and change the program as its diagnostic says." if is_rejected else f"{upgrade}; {_CLOSE}."
        )
    forks = map_forks(report.observations)
    if found.first_good in forks or is_dated(found.first_good):
        return _join(_advise_numbered(report, found.first_good, forks), _name_fix(report, found))
    notes = _link_notes(report, found.first_good)
    if unclean := _name_later_failure(report, found.first_good):
        upgrade = f"upgrade to {quote_code(found.first_good)}{notes}, not to {unclean}, which fails in another way."
    else:
        upgrade = f"upgrade to {quote_code(found.first_good)} or later{notes}; {_CLOSE}."
    return _join(upgrade, _name_fix(report, found))


def _name_fix(report: Report, found: Bisection) -> str:
    """Return the commit most related to a fix. The folded changes have the others, for a reader who wants the fix."""
    commits = link_commits(found.commits)
    if found.last_bad is None or found.deep or not commits:
        return ""
    if candidate := link_candidates(found, 1):
        after = f"{commits} after {_name_start(report, found.last_bad)}"
        return f"most related of {after}, which is no evidence: {candidate}."
    return _explain_unranked(report)


def _name_start(report: Report, version: str) -> str:
    """Return the release, or for a fork the commit of the compiler's own history on which it is based."""
    forks = map_forks(report.observations)
    return f"the base of fork {quote_code(version)}" if version in forks else quote_code(version)


def _advise_numbered(report: Report, early: str, forks: Mapping[str, str]) -> str:
    """Return the oldest release after an early build that runs cleanly, ported too.

    A fork cannot be installed instead. A release with a date as its version has an older package's name.
    """
    order = report.plan.order if report.plan is not None else ()
    clean = {
        seen.version
        for seen in report.observations
        if seen.answer is Answer.GOOD and seen.variant in (Variant.ORIGINAL, Variant.PORTED)
    }
    later = order[order.index(early) + 1 :] if early in order else ()
    numbered = (version for version in later if version not in forks and not is_dated(version))
    release = next((version for version in numbered if version in clean), None)
    if release is None:
        return f"upgrade to a release newer than {name_build(early, forks)}."
    return f"upgrade to {quote_code(release)} or later{_link_notes(report, release)}; {_CLOSE}."


def _name_later_failure(report: Report, first_good: str) -> str:
    """Return the newest release from ``first_good`` on that only fails in another way; empty without one."""
    if report.plan is None or first_good not in report.plan.order:
        return ""
    later = report.plan.order[report.plan.order.index(first_good) :]
    runs = [seen for seen in report.observations if seen.version in later and seen.device == report.plan.device]
    clean = {seen.version for seen in runs if seen.answer is Answer.GOOD}
    failing = [seen.version for seen in runs if seen.outcome is Outcome.OTHER_FAILURE and seen.version not in clean]
    return quote_code(max(failing, key=later.index)) if failing else ""


def _link_notes(report: Report, version: str) -> str:
    """Return `` ([release notes](…))``; empty for a build without a tag in a repository on GitHub."""
    release = report.find_release(version)
    if release is None or release.source != "index" or not is_public_repository(report.repository):
        return ""
    tag = release.tag or find_toolchain(release.toolchain).find_tag(version)
    if not tag or not _TAG.fullmatch(tag):
        return ""
    return f" ([release notes](<https://github.com/{report.repository}/releases/tag/{tag}>))"


_TAG = re.compile(r"[\w.+-]{1,80}", re.ASCII)


# ---------------------------------------------------------------------------------------------- testcases


def _advise_repair(report: Report) -> str:
    """Return the repair of the testcase, as far as a run has shown it."""
    run = ": a run starts by itself." if report.follows else " and write `/repro run`."
    then = f"If it still fails then, edit the issue{run}"
    for finding in report.findings:
        match read_evidence(finding):
            case SignatureEvidence(call_that_works=str() as works) if works.strip():
                return f"call {quote_code(works)} instead. {then}"
            case CallEvidence(call_that_works=str() as works) if works.strip():
                return f"run {quote_code(works)} instead. {then}"
            case MissingEvidence(control=str() as control) if control.strip():
                return f"add {quote_code(control)} to the testcase. {then}"
            case ReferenceEvidence(vote=Vote.AGREES):
                return (
                    "compare the expected values with the definitions of the operations. If a definition gives other"
                    " values, quote it in the issue, and write `/repro rerun`."
                )
            case _:
                pass
    return f"repair the testcase. {then}"


def _offer_port(report: Report) -> str:
    """Return how to use the ported testcase; empty if no run of it was good or bad."""
    ported = [
        seen for seen in report.observations if seen.variant is Variant.PORTED and seen.answer is not Answer.SKIP
    ]
    if not ported:
        return ""
    newest = sort_versions(one.version for one in ported)[-1]
    clean = all(one.answer is Answer.GOOD for one in ported if one.version == newest)
    does = "runs cleanly" if clean else "fails"
    return (
        f"confirm that the ported testcase, which {does} on {quote_code(newest)}, is the same program."
        " Its changes are under *Reproduce it by hand*."
    )


def _ask_for_program(report: Report) -> str:
    """Return what the report could give instead of an unavailable part; empty if no part is unavailable."""
    kinds = {one.kind for one in report.extraction.missing}
    if SOURCE_SCRIPT in kinds:
        return "add the part of the script that fails, as a program that runs with a release alone."
    if ABSENT_PROGRAM in kinds:
        return "if a program of the releases fails too, add a call of that program."
    if NATIVE_PROGRAM in kinds:
        return "add a script or a command that shows the failure with a release alone, if one does."
    if PRODUCT in kinds:
        return f"report it to that product, or add a program that calls {_name_compiler(report)} alone."
    return ""


def _name_compiler(report: Report) -> str:
    name = report.extraction.toolchain if isinstance(report.extraction, NoRepro) else None
    return find_toolchain(name).TITLE if name else "the compiler"


def _ask_for_device(report: Report) -> str:
    """Return how to run the testcase on its own device; empty if this machine has the device."""
    if report.plan is None:
        return ""
    device = find_device(find_toolchain(report.plan.testcase.toolchain), report.plan.device)
    lacking = any(
        one.device == report.plan.device and one.outcome is Outcome.UNAVAILABLE and not _is_forbidden(one)
        for one in report.observations
    )
    if device is None or device.needs is None or not lacking:
        return ""
    return f"try *Reproduce it by hand* on a machine with {escape_prose(device.needs)}, or add it as a runner."


def _is_forbidden(seen: Observation) -> bool:
    """True if an operator's limit prevented the run, so that another machine would not help."""
    return isinstance(seen.ended, NotRun) and seen.ended.cause == "forbidden"
