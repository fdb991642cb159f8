"""Judge runs of which none is clean: other failures, and results without a judgement. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.not_reproduced.facts import ends_well, fails_where_reported
from bot.verdict.rules.not_reproduced.unanswered import judge_unanswered
from bot.verdict.rules.phrases import (
    count_tried,
    join_names,
    list_versions,
    name_all,
    name_failure,
    name_releases,
    quote_span,
)
from bot.verdict.rules.untestable import name_build
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC, OUTPUT
from runners.core.failure.outcomes import is_rejected
from runners.core.failure.printed.lines.tokens import NUMBER_PATTERN
from runners.core.protocol import ClaimKind, Observation, Outcome, Plan
from runners.toolchains import find_toolchain


@dataclass(frozen=True)
class OtherFailures:
    """Failures that all differ from the report, and runs that end well without an answer."""

    evidence: Evidence

    @property
    def plan(self) -> Plan:
        return self.evidence.plan

    @cached_property
    def failing(self) -> list[Observation]:
        """The failures. Builds that reject the text count only if there are no others."""
        vocabulary = find_toolchain(self.plan.testcase.toolchain).FAILURES
        others = [seen for seen in self.evidence.list_originals() if seen.outcome is Outcome.OTHER_FAILURE]
        return [seen for seen in others if not is_rejected(seen, vocabulary)] or others

    @property
    def latest(self) -> Observation:
        return self.failing[-1]

    @property
    def end(self) -> str:
        """The name of the latest failure."""
        return _name_end(self.latest)

    @cached_property
    def used(self) -> tuple[int, ...]:
        seen = enumerate(self.evidence.observations)
        return tuple(at for at, one in seen if one.outcome is Outcome.OTHER_FAILURE)


def _name_end(seen: Observation) -> str:
    return name_failure(seen.signature.type) if seen.signature is not None else "another failure"


def judge_other_failures(evidence: Evidence) -> Verdict:
    """Return the verdict of the first question that has one, on failures that all differ from the report."""
    runs = OtherFailures(evidence)
    answers = (ask(runs) for ask in _QUESTIONS)
    answer = next((one for one in answers if one is not None), None)
    return answer or make_verdict(
        VerdictKind.INCONCLUSIVE,
        (Ground.NO_ANSWER,),
        f"Inconclusive: it ends with {runs.end} on {runs.latest.version}, and {_describe_difference(evidence)}.",
        ("to decide: the full error message as printed",),
        runs.used,
    )


# ---------------------------------------------------------------------------------------------- questions


def _rejects_text(runs: OtherFailures) -> Verdict | None:
    """Answer if no build reads the text. Not if the reporter's own release is among them: it read the text."""
    evidence, latest = runs.evidence, runs.latest
    vocabulary = find_toolchain(runs.plan.testcase.toolchain).FAILURES
    refused = all(is_rejected(seen, vocabulary) for seen in evidence.list_originals())
    if not refused or evidence.has_reported_release():
        return None
    return make_verdict(
        VerdictKind.UNTESTABLE,
        (Ground.CANNOT_RUN,),
        f"No release here accepts the testcase as written ({count_tried(evidence)}).",
        (
            f"{latest.version} says: {quote_span(latest.why)}",
            name_build(evidence),
            "to decide: the release that reads this text, or the text in today's syntax",
        ),
        evidence.find_indices(*list_versions(runs.plan, runs.failing)),
    )


def _prints_other_values(runs: OtherFailures) -> Verdict | None:
    """Answer if all runs end well. The same other output of all builds is an answer."""
    evidence = runs.evidence
    if not all(map(ends_well, runs.failing)):
        return None
    printed = _find_other_output(evidence)
    if printed is None:
        return judge_unanswered(evidence, runs.failing, runs.used)
    where = name_all(evidence, list_versions(runs.plan, runs.failing))
    here = evidence.has_build_of_its_time()
    return make_verdict(
        VerdictKind.NOT_REPRODUCED,
        (Ground.CLEAN, Ground.OTHER_VALUES, *(() if here else (Ground.BUILD_NOT_HERE,))),
        f"Not reproduced: it prints {quote_span(printed, 80)} on {where}, and never the values that the report calls"
        " wrong.",
        (_OTHER_MACHINE if here else "the failure may have been fixed before the oldest of these releases",),
        runs.used,
    )


def _ends_well_lately(runs: OtherFailures) -> Verdict | None:
    """Answer if the latest run ends well, after failures of earlier builds."""
    if not ends_well(runs.latest):
        return None
    unanswered = judge_unanswered(runs.evidence, list(filter(ends_well, runs.failing)), runs.used)
    ended = [seen for seen in runs.failing if not ends_well(seen)]
    where = name_releases(runs.evidence, list_versions(runs.plan, ended))
    kinds = dict.fromkeys(map(_name_end, ended))
    return replace(unanswered, headline=f"{unanswered.headline} On {where}, it ends with {join_names([*kinds])}.")


def _fails_otherwise(runs: OtherFailures) -> Verdict | None:
    """Answer if the reported failure is known, and the reported release or the newest one fails differently.

    A run that ends by itself is not a hang, whatever the report quotes.
    """
    evidence, claim = runs.evidence, runs.plan.claim
    known = claim.signature is not None or claim.kind is ClaimKind.HANG
    if not known or claim.kind is ClaimKind.UNKNOWN or not fails_where_reported(evidence, runs.failing):
        return None
    where = name_releases(evidence, list_versions(runs.plan, runs.failing))
    return make_verdict(
        VerdictKind.DIFFERENT_FAILURE,
        (Ground.FAILS, Ground.NOT_AS_REPORTED, *((Ground.NO_VALUE,) if _ends_before_values(evidence) else ())),
        f"It fails on {where}, but not as reported: on {runs.latest.version}, it ends with {runs.end}.",
        ("this says nothing about the reported failure",),
        runs.used,
    )


_QUESTIONS = (_rejects_text, _prints_other_values, _ends_well_lately, _fails_otherwise)


# ---------------------------------------------------------------------------------------------- facts


def _ends_before_values(evidence: Evidence) -> bool:
    """True if a report shows a wrong value, and an error of the compiler itself ends the runs of several builds.

    An exception of the testcase's Python may come from a wrong extraction. An error of the compiler does not.
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


def _find_other_output(evidence: Evidence) -> str | None:
    """Return the only output of all builds, if the report quotes other values.

    Unwritten memory prints other values on each build. The output must have the form of a quoted line, so that the
    report quotes the output of this program. A build of the report's time must be the named build: a neighbour may
    lack the failure.
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
