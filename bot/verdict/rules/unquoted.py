"""Judge a report that says "it fails" and quotes no failure to compare with. Pure."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.references import list_votes, name_reference
from bot.verdict.rules.caveats import HOW_TO_CALL
from bot.verdict.rules.phrases import join_names, name_failure, name_newest, name_releases
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.outcomes import is_rejected
from runners.core.failure.parse import NATIVE, is_bare_crash
from runners.core.protocol import Answer, ClaimKind, Observation, Outcome, Signature, Variant
from runners.toolchains import find_toolchain

_WHY = "the report quotes no failure to compare with; this is the failure on the build that it is about"
_WHY_NEAR = (
    "the report quotes no failure to compare with and names no build; this failure names what the report names"
)

_WHY_SIGNAL = (
    "the report gives only a signal, and the signal that ends a crash depends on the build and on the system"
)


def judge_unquoted(evidence: Evidence) -> Verdict | None:
    """Return the verdict if the reported build fails, and the report quotes no failure to compare with.

    Such a report only states "it fails". If the newest release runs cleanly, all failing builds must fail in the same
    way. Otherwise it must end with the error of the reported build. If the newest release no longer reads the text,
    its clean run is one in today's notation. A report that gives only a signal does not say more than "it crashes":
    then its build has to crash, and the builds between it and the newest may fail in any way.
    """
    plan = evidence.plan
    claim = plan.claim
    gives_signal = claim.signature is not None and is_bare_crash(claim.signature)
    if not (claim.signature is None or gives_signal) or claim.kind not in (ClaimKind.CRASH, ClaimKind.ERROR):
        return None
    failing = list_failing(evidence)
    clean = find_clean_newest(evidence)
    if claim.kind is ClaimKind.ERROR and clean is None and plan.reported is not None:
        return _judge_same_error(evidence, plan.reported, [one for one in failing if one.variant is Variant.ORIGINAL])
    home = _find_home(evidence, failing)
    if gives_signal:
        failing = [seen for seen in failing if seen.version == home]
    types = {seen.signature.type if seen.signature is not None else "a failure" for seen in failing}
    if home is None or len(types) != 1 or clean is None or (gives_signal and not types <= _CRASHES):
        return None
    at_home = [seen for seen in failing if seen.version == home]
    ported = any(seen.variant is Variant.PORTED for seen in at_home)
    changed = (Ground.PORTED,) if ported or clean is Variant.PORTED else ()
    away = (Ground.BUILD_NOT_NAMED,) if home != plan.reported else ()
    after = away and plan.reported is not None
    where = f"{home}, the build after the report," if after else f"{'ported to ' if ported else ''}{home}"
    named = " with a name that the report has" if away else ""
    versions = tuple(dict.fromkeys(seen.version for seen in failing))
    return make_verdict(
        VerdictKind.FIXED,
        (Ground.FAILS, Ground.UNQUOTED, *changed, *away),
        f"Already fixed: {where}{' it' if ported else ''} fails with {name_failure(types.pop())}{named},"
        f" and {name_newest(evidence)} runs it cleanly{' in its notation' if clean is Variant.PORTED else ''}.",
        (_WHY_SIGNAL if gives_signal else _WHY_NEAR if away else _WHY,),
        (
            *evidence.find_indices(*versions, variants={seen.variant for seen in failing}),
            *evidence.find_indices(plan.order[-1], variants=(clean,)),
        ),
    )


_CRASHES = NATIVE - {"SIGILL"}
"""Signals that may stand for each other. A build with assertions aborts (SIGABRT) where one without them reads a null
pointer (SIGSEGV). SIGILL is often a processor that lacks the instructions of the build."""


def judge_unquoted_value(evidence: Evidence) -> Verdict | None:
    """Return the verdict of the references on values that the report calls wrong and does not quote.

    Then no output of a run decides. A reference that computes another value on the newest release confirms the
    report. A reference that does so on the reported release, and agrees with the newest, shows a fix.
    """
    plan = evidence.plan
    decided = [*evidence.find_versions(Answer.GOOD), *evidence.find_versions(Answer.BAD)]
    if plan.claim.kind is not ClaimKind.WRONG_RESULT or decided:
        return None
    newest, reported = plan.order[-1], plan.reported
    votes = [one for one in list_votes(evidence) if one.version]
    now = {one.wrong for one in votes if one.version == newest}
    before = {one.wrong for one in votes if one.version == reported != newest}
    if now == {True} and before in ({True}, set()):
        failing = [version for version in (reported, newest) if version and (version == newest or before)]
        kind, told = VerdictKind.CONFIRMED, f"The result of {join_names(list(dict.fromkeys(failing)))} is not what"
    elif now == {False} and before == {True}:
        kind, told = VerdictKind.FIXED, f"Already fixed: the result of {reported} is not what"
    else:
        return None
    names = [name_reference(one) for one in dict.fromkeys(one.reference for one in votes)]
    voters = f"{join_names(names)} {'computes' if len(names) == 1 else 'compute'}"
    same = f", and the result of {newest} is" if kind is VerdictKind.FIXED else ""
    verdict = make_verdict(
        kind,
        (Ground.FAILS, Ground.UNQUOTED, Ground.REFERENCE_DIFFERS),
        f"{told} {voters}{same}.",
        ("the report quotes no output to compare with; a reference tells which values are wrong",),
        evidence.find_indices(*dict.fromkeys(one.version for one in votes)),
    )
    return replace(verdict, votes=tuple(votes))


def list_failing(evidence: Evidence) -> list[Observation]:
    """Return the runs that read the program and do not fail as reported, also in the notation of their build."""
    vocabulary = find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    same = [
        *evidence.list_originals(),
        *(one for one in evidence.observations if one.variant is Variant.PORTED and one.notation_only),
    ]
    others = [seen for seen in same if seen.outcome is Outcome.OTHER_FAILURE]
    return [
        seen
        for seen in others
        if not is_rejected(seen, vocabulary)
        or _is_about_a_made_operation(evidence, seen)
        or _is_between_clean_builds(evidence, seen)
    ]


def _is_between_clean_builds(evidence: Evidence, seen: Observation) -> bool:
    """True if an older and a newer build run the posted text cleanly: then its notation is not the refused part."""
    order = evidence.plan.order
    if seen.variant is not Variant.ORIGINAL or seen.version not in order:
        return False
    clean = [order.index(version) for version in evidence.find_versions(Answer.GOOD) if version in order]
    return bool(clean) and min(clean) < order.index(seen.version) < max(clean)


def _is_about_a_made_operation(evidence: Evidence, seen: Observation) -> bool:
    """True if a verifier refuses an operation that is not in the text: the compiler itself made it."""
    found = _ABOUT_OPERATION.match(seen.signature.message) if seen.signature is not None else None
    if found is None:
        return False
    text = "\n".join(evidence.plan.testcase.files.values())
    return re.search(rf"(?<!\w){re.escape(found['name'])}(?!\w)", text) is None


_ABOUT_OPERATION = re.compile(r"'\w{1,60}\.(?:\w{1,60}\.){0,3}(?P<name>\w{1,60})' op ")


def _find_home(evidence: Evidence, failing: Sequence[Observation]) -> str | None:
    """Return the failing build that the report is about; None if that build does not fail.

    A report that names no build was written between two builds. The second represents the reported build only if each
    of its errors names an operation, a type or a function that the report names too. Without a date, the newest
    failing build represents it, if each error of each build does so.
    """
    plan, versions = evidence.plan, {seen.version for seen in failing}
    if plan.reported in versions:
        return plan.reported
    dated = plan.reported is not None
    home = find_build_after(evidence) if dated else max(versions, key=plan.order.index, default=None)
    messages = [
        seen.signature.message if seen.signature is not None else ""
        for seen in failing
        if seen.version == home or not dated
    ]
    told = plan.claim.told
    return home if messages and all(names_part(told, message) for message in messages) else None


def find_build_after(evidence: Evidence) -> str | None:
    """Return the first build after the report, if the report names none and the one before it is known."""
    order, reported = evidence.plan.order, evidence.plan.reported
    if reported is None or reported not in order[:-1] or not evidence.is_dated():
        return None
    return order[order.index(reported) + 1]


def find_clean_newest(evidence: Evidence) -> Variant | None:
    """Return the variant that the newest release runs cleanly: the posted text, or its text in another notation."""
    newest, vocabulary = evidence.plan.order[-1], find_toolchain(evidence.plan.testcase.toolchain).FAILURES
    if evidence.combine_answers().get(newest) is Answer.GOOD:
        return Variant.ORIGINAL
    posted = [seen for seen in evidence.list_originals() if seen.version == newest]
    ported = [one for one in evidence.observations if one.version == newest and one.variant is Variant.PORTED]
    same = bool(ported) and all(one.notation_only for one in ported)
    refused = bool(posted) and all(is_rejected(seen, vocabulary) for seen in posted)
    clean = evidence.combine_answers(Variant.PORTED).get(newest) is Answer.GOOD
    return Variant.PORTED if refused and same and clean else None


def _judge_same_error(evidence: Evidence, reported: str, failing: Sequence[Observation]) -> Verdict | None:
    """Return the verdict if the reported build and the newest end with the same error of the compiler; else None.

    The reported build must be available. The testcase itself may cause three kinds of error: a text that the build
    cannot parse, a wrong call in Python, and a message that names a missing step. A release that runs it cleanly must
    be older than the reported build. If the report shows its failure in a picture or behind a link, its words must
    name a part of the error. The picture may show another failure.
    """
    plan = evidence.plan
    newest = plan.order[-1]
    deciding = [seen for seen in failing if seen.version in (reported, newest)]
    good = evidence.find_versions(Answer.GOOD)
    if not evidence.has_near_build() or {seen.version for seen in deciding} != {reported, newest}:
        return None
    if any(plan.order.index(version) > plan.order.index(reported) for version in good):
        return None
    signature = _find_common_error(evidence, deciding)
    if signature is None or HOW_TO_CALL.search(signature.message):
        return None
    if evidence.gaps.shows_elsewhere and not good and not names_part(plan.claim.told, signature.message):
        return None
    last = f"{newest}, {name_newest(evidence)},"
    here = last if reported == newest else f"{reported} and {last}"
    headline = f"{here} {'fails' if reported == newest else 'fail'} with {name_failure(signature.type)}"
    return make_verdict(
        VerdictKind.REGRESSION if good else VerdictKind.CONFIRMED,
        (Ground.FAILS, Ground.SEEN_ONCE, Ground.UNQUOTED),
        f"{headline}; {name_releases(evidence, good)} {'runs' if len(good) == 1 else 'run'} cleanly."
        if good
        else f"{headline}.",
        (_WHY,),
        evidence.find_indices(reported, newest, *good),
    )


def names_part(told: str, message: str) -> bool:
    """True if a report has a name that the message has: an operation, a type, a pass, a function."""
    words = set(_NAME.findall(told.lower()))
    return any(name.lower() in words for name in _NAME.findall(message) if _IS_NAME.search(name))


_NAME = re.compile(r"[A-Za-z_][\w.-]*\w")
_IS_NAME = re.compile(r"\w[._]\w|\d|[a-z][A-Z]")
"""Characters of a name in code that an English word does not have."""


def _find_common_error(evidence: Evidence, deciding: Sequence[Observation]) -> Signature | None:
    """Return the error of the compiler with which all these runs end; None if one ends in another way."""
    toolchain = find_toolchain(evidence.plan.testcase.toolchain)
    vocabulary = toolchain.FAILURES
    if any(re.search(one, evidence.plan.claim.told) for one in toolchain.REPORTS.failures.unnamed_patterns):
        return None  # a message without its exception: the runs were compared with it, and differ from it
    signatures = [seen.signature for seen in deciding if seen.signature is not None and seen.signature.message]
    if len(signatures) < len(deciding) or any(
        is_rejected(seen, vocabulary) and not _is_about_a_made_operation(evidence, seen) for seen in deciding
    ):
        return None
    first = signatures[0]
    if first.type == OUTPUT or first.type in _PYTHON_ERRORS:
        return None
    alike = (
        one.type == first.type and compare_signatures(first, one, vocabulary).score >= SAME for one in signatures
    )
    return first if all(alike) else None


_PYTHON_ERRORS = {name for name in dir(builtins) if name.endswith("Error")} - {"RuntimeError", "NotImplementedError"}
"""Errors that a testcase can raise without the compiler's help."""
