"""Judge a report about a missing error: the compiler accepts what it should refuse. Pure.

A run that ends well shows the failure. A run that ends with an error in words of the report is clean.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import name_all, name_newest, name_releases, quote_span
from bot.verdict.rules.reproduced import list_grounds
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.bisection import releases as search
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Answer, ClaimKind, Exited, Observation, Outcome

_OPEN = "whether the program should be refused, no run can show"


def judge_accepted(evidence: Evidence) -> Verdict | None:
    """Return the verdict on what the report wants refused, if builds accept or refuse it; None for other reports."""
    if evidence.plan.claim.kind is not ClaimKind.ACCEPTED:
        return None
    accept, refuse = evidence.find_versions(Answer.BAD), evidence.find_versions(Answer.GOOD)
    newest, answers = evidence.plan.order[-1], evidence.combine_answers()
    if not (accept or refuse):
        return _judge_refused_otherwise(evidence)
    if newest not in (*accept, *refuse):
        return None
    used = evidence.find_indices(*accept, *refuse)
    if not accept:
        return make_verdict(
            VerdictKind.NOT_REPRODUCED,
            (Ground.CLEAN, Ground.KIND_ONLY),
            f"Not reproduced: {_name_subject(evidence, refuse)} {_agree(refuse, 'refuse')} the testcase, as"
            " the report expects.",
            (),
            used,
        )
    grounds = list_grounds(evidence, accept[-1])
    if newest in refuse:
        gone = search.find_fix(evidence.plan.order, answers)
        since = gone.newer if gone is not None and gone.newer is not None else newest
        return make_verdict(
            VerdictKind.FIXED,
            grounds,
            f"Already fixed: {name_releases(evidence, accept)} {_agree(accept, 'accept')} the testcase, and {since}"
            f"{f', {name_newest(evidence)},' if since == newest else ''} refuses it.",
            (),
            used,
        )
    if refuse and min(map(evidence.plan.order.index, refuse)) < evidence.plan.order.index(accept[-1]):
        return make_verdict(
            VerdictKind.REGRESSION,
            grounds,
            f"{name_releases(evidence, refuse)} {_agree(refuse, 'refuse')} the testcase;"
            f" {name_releases(evidence, accept)} {_agree(accept, 'accept')} it, {name_newest(evidence)} included.",
            (),
            used,
        )
    return make_verdict(
        VerdictKind.CONFIRMED,
        grounds,
        f"As reported, {_name_subject(evidence, accept)} {_agree(accept, 'accept')} the testcase without an error.",
        (_OPEN,),
        used,
    )


def _name_subject(evidence: Evidence, versions: Sequence[str]) -> str:
    """Return the releases, with the comma that ends an apposition."""
    names = name_all(evidence, versions)
    return names + "," * (" that were run, " in names)


def _judge_refused_otherwise(evidence: Evidence) -> Verdict | None:
    """Return ``not-reproduced`` if the reported build and the newest refuse the program in their own words."""
    plan, newest = evidence.plan, evidence.plan.order[-1]
    ends = {seen.version: seen for seen in evidence.list_originals()}
    needed = {plan.reported or "", newest}
    refused = [seen for version, seen in ends.items() if version in needed and _is_refused(seen)]
    if not evidence.has_reported_release() or {seen.version for seen in refused} != needed:
        return None
    names = name_releases(evidence, tuple(dict.fromkeys(seen.version for seen in refused)))
    message = refused[-1].signature.message if refused[-1].signature is not None else ""
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, Ground.KIND_ONLY, Ground.UNQUOTED),
        f"Not reproduced: {names} {_agree(refused, 'refuse')} the testcase: {quote_span(message, 200)}.",
        ("the report says that the testcase is accepted, and quotes no error to compare with",),
        evidence.find_indices(*needed),
    )


def _is_refused(seen: Observation) -> bool:
    signature = seen.signature
    refused = seen.outcome is Outcome.OTHER_FAILURE and isinstance(seen.ended, Exited)
    return refused and signature is not None and bool(signature.message) and signature.type not in NATIVE


def _agree(versions: Sequence[object], verb: str) -> str:
    return f"{verb}s" if len(versions) == 1 else verb
