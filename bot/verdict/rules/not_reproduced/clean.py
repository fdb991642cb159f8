"""Judge clean runs, as posted or ported. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.not_reproduced.facts import ends_well, only_compiles, quotes_no_failure
from bot.verdict.rules.not_reproduced.others import describe_other_builds
from bot.verdict.rules.phrases import find_last_reason, join_names, name_all, name_failure, name_releases, quote_span
from bot.verdict.rules.unquoted import find_build_after, list_failing
from bot.verdict.rules.untestable import describe_hardware, describe_moved, is_only_for_forks
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.normalize import STATUS
from runners.core.failure.outcomes import is_rejected
from runners.core.failure.printed.lines.tokens import Number, are_equal_lines, split_lines
from runners.core.protocol import Answer, ClaimKind, Observation, Outcome, Reason, Variant
from runners.toolchains import find_toolchain


def judge_clean(evidence: Evidence, good: Sequence[str]) -> Verdict:
    plan = evidence.plan
    used = evidence.find_indices(*good)
    if plan.claim.kind is ClaimKind.UNKNOWN:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: it runs to its end on {name_all(evidence, good)}, and the report names no failure to look"
            " for.",
            ("to decide: the exact error message, or the wrong output and the expected output",),
            used,
        )
    if {seen.reason for seen in evidence.list_originals() if seen.answer is Answer.GOOD} == {Reason.PRINTS_SIMILAR}:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: {name_releases(evidence, good)} print another program than the report quotes, and no"
            " release prints the quoted one.",
            ("to decide: the lines that are wrong, and the right ones",),
            used,
        )
    if (differing := _find_unexpected(evidence)) is not None:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: {name_releases(evidence, good)} print what the report expects; {differing}, the closest"
            " build to the report, prints something else.",
            ("to decide: the wrong output as printed",),
            used + evidence.find_indices(differing),
        )
    if is_only_for_forks(evidence):
        return make_verdict(
            VerdictKind.UNTESTABLE,
            (Ground.CANNOT_RUN,),
            f"{describe_moved(evidence)} It runs cleanly on {name_releases(evidence, good)}.",
            (find_last_reason(evidence, plan.order[-1]) or "",),
            used,
        )
    said = plan.claim.signature.message if plan.claim.signature is not None else ""
    if (library := _MISSING_LIBRARY.search(said)) is not None:
        return make_verdict(
            VerdictKind.UNTESTABLE,
            (Ground.CANNOT_RUN,),
            f"The failure is about {quote_span(library['name'], 60)} on the reporter's machine. Here, it runs cleanly"
            f" on {name_releases(evidence, good)}.",
            ("a library that one machine lacks shows nothing about another machine",),
            used,
        )
    if (on_software := _judge_stand_in_driver(evidence, good)) is not None:
        return on_software
    newest = plan.order[-1]
    found = _find_failure_at_home(evidence) or _find_failure_after(evidence) or _find_failure_before(evidence, good)
    if (failing := found) is not None:
        ends = name_failure(failing.signature.type) if failing.signature is not None else "another failure"
        role = _name_role(evidence, failing.version)
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: it runs cleanly on {name_releases(evidence, good)}, and {failing.version}, {role}, ends"
            f" with {ends}.",
            ("to decide: the full error message as printed",),
            used + evidence.find_indices(failing.version),
        )
    absent = _is_absent(evidence, plan.reported)
    at_home = None if evidence.is_dated() or absent else plan.reported
    silent = [v for v in (at_home, newest) if v is not None and v not in good]
    if silent == [newest] and evidence.combine_answers(Variant.PORTED).get(newest) is Answer.GOOD:
        return make_verdict(
            VerdictKind.NOT_REPRODUCED,
            (Ground.CLEAN, Ground.PORTED),
            f"Not reproduced: it runs cleanly on {name_releases(evidence, good)} and, ported to the API of {newest},"
            " there too.",
            (f"on {newest}, as posted: {find_last_reason(evidence, newest)}",),
            used + evidence.find_indices(newest, variants=(Variant.PORTED,)),
        )
    if silent:
        why = find_last_reason(evidence, silent[0])
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: it runs cleanly on {name_releases(evidence, good)}, but {silent[0]} gives no answer.",
            (f"on {silent[0]}: {why}" if why else "",),
            used,
        )
    named = bool(plan.claim.versions)
    exact = plan.reported is not None and not evidence.is_dated()
    if named and (plan.reported is None or absent):
        where = name_releases(evidence, good) if plan.reported else name_all(evidence, good)
        lacking = f"{name_releases(evidence, [plan.reported])} cannot run it here" if plan.reported else _NOT_HERE
        return make_verdict(
            VerdictKind.NOT_REPRODUCED,
            (Ground.CLEAN, Ground.BUILD_NOT_HERE),
            f"Not reproduced: it runs cleanly on {where}; {lacking}.",
            ("the failure may have been fixed before the oldest of these",),
            used,
        )
    if (changed := _find_changed_output(evidence)) is not None:
        return make_verdict(
            VerdictKind.INCONCLUSIVE,
            (Ground.NO_ANSWER,),
            f"Inconclusive: it runs cleanly on {name_all(evidence, good)}, and {changed} prints something else than"
            f" {newest}.",
            ("to decide: the exact error message, or the wrong output and the expected output",),
            used,
        )
    unquoted = (Ground.UNQUOTED,) if _quotes_no_error(evidence) else ()
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, *unquoted) if exact else (Ground.CLEAN, Ground.BUILD_NOT_NAMED, *unquoted),
        f"Not reproduced: it runs cleanly on {name_all(evidence, good)}.{describe_other_builds(evidence, good)}",
        (),
        used,
    )


_NOT_HERE = "the version that the report names is not available"


def _is_absent(evidence: Evidence, version: str | None) -> bool:
    """True for a build that lacks a part that every run needs, such as a code generator."""
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    return bool(runs) and all(seen.outcome is Outcome.UNAVAILABLE for seen in runs)


def _quotes_no_error(evidence: Evidence) -> bool:
    """True if the form of the reported error is unknown: no quoted message, and no check in the testcase."""
    plan = evidence.plan
    return quotes_no_failure(evidence) and plan.claim.kind is ClaimKind.ERROR and not plan.checks_itself


def _find_changed_output(evidence: Evidence) -> str | None:
    """Return the reported release if its output differs from the newest, and the report quotes no failure.

    A report in words such as "does not work" may be about values. All runs of each of the two must print the same.
    """
    reported, newest = evidence.plan.reported, evidence.plan.order[-1]
    if not _quotes_no_error(evidence) or reported is None or only_compiles(evidence):
        return None
    printed = {
        version: {seen.excerpt.strip() for seen in evidence.list_originals() if seen.version == version}
        for version in (reported, newest)
    }
    if any(len(one) != 1 for one in printed.values()):
        return None
    (before,), (now,) = (list(map(split_lines, printed[version])) for version in (reported, newest))
    numbers = any(isinstance(token, Number) for line in before for token in line)
    return reported if numbers and len(before) == len(now) and not are_equal_lines(before, now) else None


def _judge_stand_in_driver(evidence: Evidence, good: Sequence[str]) -> Verdict | None:
    """Return the verdict on a failure at run time, if software runs cleanly instead of the hardware.

    The compiler is the same; the driver, its limits and the hardware are not. Return None if the compiler itself
    fails according to the report, or if a run was on the hardware.
    """
    claim = evidence.plan.claim
    clean = [seen for seen in evidence.list_originals() if seen.answer is Answer.GOOD]
    drivers = {seen.driver for seen in clean}
    status = claim.signature is not None and claim.signature.type.startswith(STATUS)
    if "" in drivers or not (status or claim.kind in _AT_RUN_TIME):
        return None
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"{describe_hardware(evidence)} On {join_names(sorted(drivers))}, it runs cleanly on"
        f" {name_all(evidence, good)}.",
        ("a clean run on software says nothing about the reported hardware and its driver",),
        evidence.find_indices(*good),
    )


_AT_RUN_TIME = frozenset({ClaimKind.WRONG_RESULT, *QUANTITIES})


def _find_failure_at_home(evidence: Evidence) -> Observation | None:
    """Return the failure of the build of the report's time, if each of its runs fails, and not because of the
    text."""
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if seen.version == plan.reported]
    fails = all(seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary) for seen in runs)
    if not runs or not fails or not evidence.has_near_build() or any(map(ends_well, runs)):
        return None
    return runs[0]


def _find_failure_after(evidence: Evidence) -> Observation | None:
    """Return the failure of the first build after a report that quotes no failure and names no build."""
    after = find_build_after(evidence)
    runs = [seen for seen in list_failing(evidence) if seen.version == after and not ends_well(seen)]
    return runs[0] if runs and quotes_no_failure(evidence) else None


def _name_role(evidence: Evidence, version: str) -> str:
    if version == evidence.plan.reported:
        return "the build of the report's time"
    return "the build after the report" if version == find_build_after(evidence) else "the build before these"


def _find_failure_before(evidence: Evidence, good: Sequence[str]) -> Observation | None:
    """Return the failure of the build before all clean ones, if its exception is the reported one.

    Only if no build represents the version that the report names. The report may give the message in its own words,
    and the failure may have been fixed after that build.
    """
    plan, claim = evidence.plan, evidence.plan.claim
    if plan.reported is not None or not claim.versions or claim.signature is None:
        return None
    tried = evidence.list_tested(Variant.ORIGINAL)
    older = tried[: min(map(tried.index, good))]
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if older and seen.version == older[-1]]
    same = all(
        seen.outcome is Outcome.OTHER_FAILURE
        and seen.signature is not None
        and seen.signature.type == claim.signature.type
        and not is_rejected(seen, vocabulary)
        for seen in runs
    )
    return runs[0] if runs and same and not any(map(ends_well, runs)) else None


_MISSING_LIBRARY = re.compile(
    r"(?P<name>\blib[\w.+-]{1,80}\.(?:so|dylib)[\w.]{0,20}|\b[\w-]{1,80}\.dll\b)[^\n]{0,200}?"
    r"(?:cannot open shared object file|image not found|undefined symbol|symbol not found|module could not be found)"
)
"""The loader's message about a shared library that is missing, or has another version."""


def judge_clean_port(evidence: Evidence) -> Verdict | None:
    """Return the verdict if no release reads the posted text, and the newest runs the same program cleanly.

    A change of notation counts, and so does a run that prints the expected output. A port to another API may do
    something else: a clean port of a schedule once lost the operation that failed. So a clean port answers a quoted
    error or crash only if a second build runs a port cleanly, and no build fails.
    """
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    originals = [seen for seen in evidence.list_originals() if seen.outcome is not Outcome.UNAVAILABLE]
    refused = bool(originals) and all(is_rejected(seen, vocabulary) for seen in originals)
    ported = [seen for seen in evidence.observations if seen.variant is Variant.PORTED]
    answers = evidence.combine_answers(Variant.PORTED)
    deciding = {plan.order[-1], plan.reported} if evidence.has_reported_release() else {plan.order[-1]}
    clean = all(version is not None and answers.get(version) is Answer.GOOD for version in deciding)
    good = evidence.find_versions(Answer.GOOD, Variant.PORTED)
    quoted = plan.claim.kind in (ClaimKind.ERROR, ClaimKind.CRASH) and plan.claim.signature is not None
    agree = quoted and len(good) > 1 and set(answers.values()) <= {Answer.GOOD, Answer.SKIP}
    same = agree or all(seen.notation_only or seen.reason is Reason.PRINTS_EXPECTED for seen in ported)
    answered = plan.claim.kind is not ClaimKind.UNKNOWN and plan.claim.kind not in QUANTITIES  # no run answers those
    if not (answered and refused and clean and same):
        return None
    where = name_releases(evidence, good, Variant.PORTED)
    once: tuple[Ground, ...] = ()
    if all(seen.notation_only for seen in ported):
        how = "with its notation adapted, it runs cleanly"
    elif all(seen.reason is Reason.PRINTS_EXPECTED for seen in ported if seen.answer is Answer.GOOD):
        how = "ported, it prints what the report expects"
    else:
        how, once = "ported to a newer API, it runs cleanly", (Ground.SEEN_ONCE,)
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, Ground.PORTED, Ground.BUILD_NOT_HERE, *once),
        f"Not reproduced: {how} on {where}; no release here reads it as posted.",
        ("the failure may have been fixed before the oldest of these releases",),
        evidence.find_indices(*good, variants=(Variant.PORTED,)),
    )


def _find_unexpected(evidence: Evidence) -> str | None:
    """Return the reported build, or the closest one, if it does not print the output that the report expects.

    The report does not quote the wrong output, so this run neither matches nor passes.
    """
    claim, reported = evidence.plan.claim, evidence.plan.reported
    if claim.kind is not ClaimKind.WRONG_RESULT or not claim.expected or claim.actual:
        return None
    runs = [seen for seen in evidence.list_originals() if seen.version == reported]
    differs = bool(runs) and all(find_behaviour(seen) is Behaviour.UNJUDGED for seen in runs)
    return reported if differs else None
