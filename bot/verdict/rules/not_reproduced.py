"""Judge runs without the reported failure: clean runs, other failures, or no answer at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import (
    are_all,
    count_tried,
    find_last_reason,
    find_newest_run,
    join_names,
    list_versions,
    name_all,
    name_failure,
    name_releases,
    quote_span,
)
from bot.verdict.rules.reworded import OTHER_END, find_ported_end
from bot.verdict.rules.unquoted import find_build_after, list_failing
from bot.verdict.rules.untestable import (
    describe_hardware,
    describe_moved,
    describe_needs,
    describe_stand_ins,
    is_only_for_forks,
    name_build,
)
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.costs import QUANTITIES
from runners.core.failure.normalize import STATUS
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC, COUNTED, OUTPUT, PRINTS_EXPECTED, PRINTS_SIMILAR
from runners.core.failure.printed.output import NUMBER_PATTERN, are_equal_lines, split_lines
from runners.core.failure.rejection import is_rejected
from runners.core.protocol import Answer, ClaimKind, Exited, Observation, Outcome, Variant
from runners.toolchains import find_toolchain


def judge_not_reproduced(evidence: Evidence) -> Verdict:
    """Return the verdict where no run failed as reported."""
    good = evidence.find_versions(Answer.GOOD)
    if good:
        return _judge_clean(evidence, good)
    if (clean_port := _judge_clean_port(evidence)) is not None:
        return clean_port
    skips = evidence.count_skips()
    if not skips:
        return make_verdict(VerdictKind.INCONCLUSIVE, (Ground.NO_ANSWER,), "Inconclusive: nothing was run.")
    cannot_run = [kind for kind in (Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE) if skips[kind]]
    others = [seen for seen in evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
    ends_well = any(map(_has_exit_zero, others))  # it runs there, although nothing tells whether its output is right
    if others and (
        ends_well or _fails_where_reported(evidence, others) or not cannot_run or _fails_unquoted(evidence)
    ):
        return _judge_other_failures(evidence)
    outcome = max(sorted(skips), key=lambda kind: (kind in cannot_run, skips[kind]))
    newest = find_newest_run(evidence)
    why = find_last_reason(evidence, newest)
    used = evidence.find_indices(newest)
    match outcome:
        case Outcome.INCOMPATIBLE if ended := find_ported_end(evidence, evidence.plan.order[-1]):
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER, Ground.PORTED),
                f"Inconclusive: no release here runs the testcase as posted; ported to {evidence.plan.order[-1]},"
                f" it ends with another error than the reported one: {ended}.",
                (OTHER_END, why),
                used,
            )
        case Outcome.INCOMPATIBLE:
            return make_verdict(
                VerdictKind.UNTESTABLE,
                (Ground.CANNOT_RUN,),
                f"{describe_moved(evidence)}{_describe_ports(evidence)}",
                (why, name_build(evidence)),
                used,
            )
        case Outcome.UNAVAILABLE:
            return make_verdict(
                VerdictKind.UNTESTABLE,
                (Ground.CANNOT_RUN,),
                describe_needs(evidence) + describe_stand_ins(evidence),
                (why,),
                evidence.find_indices(*evidence.plan.order, variants=(Variant.ORIGINAL, Variant.RETARGETED)),
            )
        case _:
            named = {Outcome.TIMEOUT: "the time limit was reached", Outcome.OUT_OF_MEMORY: "memory ran out"}
            return make_verdict(
                VerdictKind.INCONCLUSIVE,
                (Ground.NO_ANSWER,),
                f"Inconclusive: on {newest}, {named.get(outcome, 'the run could not be completed')};"
                f" {count_tried(evidence)}, and none gave an answer.",
                (why,),
                used,
            )


def _describe_ports(evidence: Evidence) -> str:
    """Return a sentence on the ported runs, which are not of the posted text; empty if they say nothing."""
    if clean := evidence.find_versions(Answer.GOOD, Variant.PORTED):
        where = name_releases(evidence, clean, Variant.PORTED)
        return f" Ported to a newer API, it runs cleanly on {where}."
    others = [
        seen
        for seen in evidence.observations
        if seen.variant is Variant.PORTED and seen.outcome is Outcome.OTHER_FAILURE
    ]
    where = name_releases(evidence, list_versions(evidence.plan, others), Variant.PORTED)
    if others and all(map(_has_exit_zero, others)):
        return f" Ported to a newer API, it ends well on {where}, and nothing shows whether its output is right."
    return f" Ported to a newer API, it fails otherwise than reported on {where}." if others else ""


def _judge_clean(evidence: Evidence, good: Sequence[str]) -> Verdict:
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
    if {seen.why for seen in evidence.list_originals() if seen.answer is Answer.GOOD} == {PRINTS_SIMILAR}:
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
        f"Not reproduced: it runs cleanly on {name_all(evidence, good)}.{_mention_other_answers(evidence, good)}",
        (),
        used,
    )


_NOT_HERE = "the version that the report names is not available"


def _is_absent(evidence: Evidence, version: str | None) -> bool:
    """True for a build that lacks a part that every run needs, such as a code generator."""
    runs = [seen for seen in evidence.list_originals() if seen.version == version]
    return bool(runs) and all(seen.outcome is Outcome.UNAVAILABLE for seen in runs)


def _quotes_no_error(evidence: Evidence) -> bool:
    return _quotes_no_failure(evidence) and evidence.plan.claim.kind is ClaimKind.ERROR


def _find_changed_output(evidence: Evidence) -> str | None:
    """Return the reported release if it prints something else than the newest, and the report quotes no failure.

    A report in words such as "does not work" may be about values. All runs of each of the two must print the same.
    """
    reported, newest = evidence.plan.reported, evidence.plan.order[-1]
    if not _quotes_no_error(evidence) or reported is None or _only_compiles(evidence):
        return None
    printed = {
        version: {seen.excerpt.strip() for seen in evidence.list_originals() if seen.version == version}
        for version in (reported, newest)
    }
    if any(len(one) != 1 for one in printed.values()):
        return None
    (before,), (now,) = (list(map(split_lines, printed[version])) for version in (reported, newest))
    numbers = any(isinstance(token, float) for line in before for token in line)
    return reported if numbers and len(before) == len(now) and not are_equal_lines(before, now) else None


def _judge_stand_in_driver(evidence: Evidence, good: Sequence[str]) -> Verdict | None:
    """Return the verdict where software in place of the hardware runs cleanly what the report saw at run time.

    The compiler is the same; the driver, its limits and the hardware are not. None if the compiler itself is said to
    fail, or if a run was on the hardware.
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
    """Return the failure of the build of the report's time, if each of its runs fails, and not for the text."""
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    runs = [seen for seen in evidence.list_originals() if seen.version == plan.reported]
    fails = all(seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary) for seen in runs)
    if not runs or not fails or not evidence.has_near_build() or any(map(_has_exit_zero, runs)):
        return None
    return runs[0]


def _find_failure_after(evidence: Evidence) -> Observation | None:
    """Return the failure of the first build after a report that quotes no failure and names no build."""
    after = find_build_after(evidence)
    runs = [seen for seen in list_failing(evidence) if seen.version == after and not _has_exit_zero(seen)]
    return runs[0] if runs and _quotes_no_failure(evidence) else None


def _name_role(evidence: Evidence, version: str) -> str:
    if version == evidence.plan.reported:
        return "the build of the report's time"
    return "the build after the report" if version == find_build_after(evidence) else "the build before these"


def _find_failure_before(evidence: Evidence, good: Sequence[str]) -> Observation | None:
    """Return the failure of the build before all clean ones, if its exception is the reported one.

    Only where no build stands for the version that the report names. The report may tell the message in its own
    words, and the failure may be fixed since that build.
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
    return runs[0] if runs and same and not any(map(_has_exit_zero, runs)) else None


_MISSING_LIBRARY = re.compile(
    r"(?P<name>\blib[\w.+-]{1,80}\.(?:so|dylib)[\w.]{0,20}|\b[\w-]{1,80}\.dll\b)[^\n]{0,200}?"
    r"(?:cannot open shared object file|image not found|undefined symbol|symbol not found|module could not be found)"
)
"""The loader's message about a shared library that is not there, or that is another version."""


def _judge_clean_port(evidence: Evidence) -> Verdict | None:
    """Return the verdict where no release reads the posted text, and the newest runs the same program cleanly.

    A change of notation counts, and a run that prints what the report expects. A port to another API may do something
    else: observed where a clean port of a schedule lost the operation that failed. So a clean port answers a quoted
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
    same = agree or all(seen.notation_only or seen.why == PRINTS_EXPECTED for seen in ported)
    answered = plan.claim.kind is not ClaimKind.UNKNOWN and plan.claim.kind not in QUANTITIES  # no run answers those
    if not (answered and refused and clean and same):
        return None
    where = name_releases(evidence, good, Variant.PORTED)
    once: tuple[Ground, ...] = ()
    if all(seen.notation_only for seen in ported):
        how = "with its notation adapted, it runs cleanly"
    elif all(seen.why == PRINTS_EXPECTED for seen in ported if seen.answer is Answer.GOOD):
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


def _mention_other_answers(evidence: Evidence, good: Sequence[str]) -> str:
    return "" if are_all(evidence, good) else " The other releases neither fail as reported nor run cleanly."


def _fails_where_reported(evidence: Evidence, failing: Sequence[Observation]) -> bool:
    """True if one of the other failures occurs on the reported release itself or on the newest release.

    Another failure on an older release, or on a build that stands in for the reported one, means little.
    """
    plan = evidence.plan
    relevant = {plan.order[-1]}
    if plan.reported is not None and evidence.has_reported_release():
        relevant.add(plan.reported)
    return any(seen.version in relevant for seen in failing)


def _fails_unquoted(evidence: Evidence) -> bool:
    """True if the build that is closest to the report reads the text and fails, and the report quotes no failure.

    A report that tells neither a build nor a date may be about any build that fails.
    """
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    own = (seen for seen in evidence.list_originals() if plan.reported in (None, seen.version))
    return _quotes_no_failure(evidence) and any(
        seen.outcome is Outcome.OTHER_FAILURE and not is_rejected(seen, vocabulary) for seen in own
    )


def _quotes_no_failure(evidence: Evidence) -> bool:
    claim = evidence.plan.claim
    return claim.signature is None and claim.kind in (ClaimKind.CRASH, ClaimKind.ERROR)


def _judge_other_failures(evidence: Evidence) -> Verdict:
    """Return the verdict on failures that all differ from the report.

    ``different-failure`` needs one on the reported release itself or on the newest release.
    """
    plan = evidence.plan
    vocabulary = find_toolchain(plan.testcase.toolchain).FAILURES
    others = [seen for seen in evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
    failing = [seen for seen in others if not is_rejected(seen, vocabulary)] or others
    latest = failing[-1]
    refused = all(is_rejected(seen, vocabulary) for seen in evidence.list_originals())
    if refused and not evidence.has_reported_release():  # the reporter's own release read the text
        return make_verdict(
            VerdictKind.UNTESTABLE,
            (Ground.CANNOT_RUN,),
            f"No release here accepts the testcase as written ({count_tried(evidence)}).",
            (
                f"{latest.version} says: {quote_span(latest.why)}",
                name_build(evidence),
                "to decide: the release that reads this text, or the text in today's syntax",
            ),
            evidence.find_indices(*list_versions(plan, failing)),
        )
    named = name_failure(latest.signature.type) if latest.signature is not None else "another failure"
    used = tuple(i for i, s in enumerate(evidence.observations) if s.outcome is Outcome.OTHER_FAILURE)
    if all(_has_exit_zero(s) for s in failing):
        if (printed := _find_other_output(evidence)) is not None:
            where = name_all(evidence, list_versions(plan, failing))
            here = evidence.has_build_of_its_time()
            return make_verdict(
                VerdictKind.NOT_REPRODUCED,
                (Ground.CLEAN, Ground.OTHER_VALUES, *(() if here else (Ground.BUILD_NOT_HERE,))),
                f"Not reproduced: it prints {quote_span(printed, 80)} on {where}, and never the values that the"
                " report calls wrong.",
                (_OTHER_MACHINE if here else "the failure may have been fixed before the oldest of these releases",),
                used,
            )
        return _judge_unanswered(evidence, failing, used)
    if _has_exit_zero(latest):
        unanswered = _judge_unanswered(evidence, [s for s in failing if _has_exit_zero(s)], used)
        ended = [s for s in failing if not _has_exit_zero(s)]
        where = name_releases(evidence, list_versions(plan, ended))
        kinds = dict.fromkeys(name_failure(s.signature.type) if s.signature else "another failure" for s in ended)
        said = f"{unanswered.headline} On {where}, it ends with {join_names([*kinds])}."
        return replace(unanswered, headline=said)
    # A run that ends by itself is no hang, whatever the report quotes.
    known = plan.claim.signature is not None or plan.claim.kind is ClaimKind.HANG
    claim_is_known = known and plan.claim.kind is not ClaimKind.UNKNOWN
    if claim_is_known and _fails_where_reported(evidence, failing):
        return make_verdict(
            VerdictKind.DIFFERENT_FAILURE,
            (Ground.FAILS, Ground.NOT_AS_REPORTED, *((Ground.NO_VALUE,) if _ends_before_values(evidence) else ())),
            f"It fails on {name_releases(evidence, list_versions(plan, failing))}, but not as reported: on"
            f" {latest.version}, it ends with {named}.",
            ("this says nothing about the reported failure",),
            used,
        )
    return make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: it ends with {named} on {latest.version}, and {_describe_difference(evidence)}.",
        ("to decide: the full error message as printed",),
        used,
    )


def _ends_before_values(evidence: Evidence) -> bool:
    """True if a report shows a wrong value, and an error of the compiler itself ends the runs of several builds.

    An exception of the testcase's Python may come from a wrong extraction. Such an error does not.
    """
    claim, runs = evidence.plan.claim, evidence.list_originals()
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    own = {COMPILER_DIAGNOSTIC, *(detail.exception for detail in vocabulary.unnamed)}
    types = {seen.signature.type if seen.signature is not None else "" for seen in runs}
    shows = claim.kind is ClaimKind.WRONG_RESULT and bool(claim.actual)
    return shows and types <= own and len({seen.version for seen in runs}) > 1


def _describe_difference(evidence: Evidence) -> str:
    claim = evidence.plan.claim
    if claim.kind not in (ClaimKind.CRASH, ClaimKind.ERROR) or claim.signature is not None:
        return "the report describes another failure"
    if evidence.gaps.shows_elsewhere:
        return "the report shows its failure only in a picture or behind a link"
    return "the report quotes no failure to compare with"


def _only_compiles(evidence: Evidence) -> bool:
    """True if no command runs what the compiler makes. A compiler prints remarks, and no values."""
    testcase = evidence.plan.testcase
    return all(step[0] in find_toolchain(testcase.toolchain).GUEST.compilers for step in testcase.steps)


def _judge_unanswered(evidence: Evidence, ended: Sequence[Observation], used: tuple[int, ...]) -> Verdict:
    """Return ``inconclusive`` where each run ends well, and nothing compares what it made with the claim."""
    claim = evidence.plan.claim
    if made := _list_made(ended):
        counts = ", and ".join(
            f"{quote_span(one)} on {name_releases(evidence, where)}" for one, where in made.items()
        )
        said = join_names([quote_span(one) for one in (claim.actual, claim.expected) if one])
        headline = f"Inconclusive: it compiles to {counts}, and the report speaks of {said}."
        settle = "to decide: the program and the flags with which the report counts"
    elif _only_compiles(evidence):
        headline = (
            f"Inconclusive: it compiles on {name_all(evidence, list_versions(evidence.plan, ended))}; the report"
        )
        if claim.kind is ClaimKind.WRONG_RESULT:
            headline += f" is about values computed on {quote_span(evidence.plan.device)}, and gives no call that"
            headline += " computes them."
            settle = "to decide: the call with its inputs"
        else:
            headline += " is about what the compiler makes, and nothing tells how that would look."
            settle = "to decide: the lines that the output should or should not have, or a wrong result of a run"
    else:
        headline = "Inconclusive: it runs to its end, and neither testcase nor report shows whether its output is"
        headline += " right."
        settle = "to decide: an assertion in the testcase, or the expected output beside the actual output"
    return make_verdict(VerdictKind.INCONCLUSIVE, (Ground.NO_ANSWER,), headline, (settle,), used)


def _list_made(ended: Sequence[Observation]) -> dict[str, tuple[str, ...]]:
    """Return the numbers of things that builds make, as text, with the builds; empty unless each run shows one."""
    found: dict[str, tuple[str, ...]] = {}
    for seen in ended:
        if seen.signature is None or not seen.why.startswith(COUNTED):
            return {}
        at = found.get(seen.signature.message, ())
        found[seen.signature.message] = at if seen.version in at else (*at, seen.version)
    return found


def _find_other_output(evidence: Evidence) -> str | None:
    """Return the one output of all builds where the report quotes other values.

    Memory that nothing wrote prints other values on each build. The output must have the form of a quoted line, so
    that the report quotes the output of this program. A build of the report's time must be the named one: of a build
    beside it, the failure may be just before or after.
    """
    claim, runs = evidence.plan.claim, evidence.list_originals()
    printed = {
        seen.signature.message for seen in runs if seen.signature is not None and seen.signature.type == OUTPUT
    }
    answered = claim.kind is ClaimKind.WRONG_RESULT and bool(claim.actual) and not claim.expected
    versions = {seen.version for seen in runs}
    known = evidence.has_reported_release() and evidence.plan.reported in versions
    settled = all(seen.signature is not None for seen in runs) and (known or not evidence.has_build_of_its_time())
    if not answered or not settled or len(printed) != 1 or len(versions) < MIN_AGREEING:
        return None
    (output,) = printed
    form = _mask_numbers(output)
    forms = [_mask_numbers(text) for text in (claim.actual, *claim.actual.splitlines())]
    return output if evidence.plan.order[-1] in versions and form and form in forms else None


_OTHER_MACHINE = "the release that the report names is among them: the device, the machine or the inputs may differ"


MIN_AGREEING = 3
"""Fewest builds that must print the same output."""


def _mask_numbers(text: str) -> list[str]:
    """Return the words and signs of ``text``, with the same sign for each number; empty without a number."""
    words = re.findall(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\w+|[^\w\s,]", text, re.IGNORECASE)
    masked = ["#" if re.fullmatch(NUMBER_PATTERN, word, re.IGNORECASE) else word for word in words]
    return masked if "#" in masked else []


def _has_exit_zero(seen: Observation) -> bool:
    return isinstance(seen.ended, Exited) and seen.ended.code == 0
