"""Say why the builds beside the clean ones gave no answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import join_names, name_releases, quote_span
from runners.core.findings.kinds import Moved
from runners.core.findings.record import read_evidence
from runners.core.findings.types import MovedEvidence
from runners.core.protocol import Answer, Observation, Variant

MAX_REASONS = 3
_SILENT = {Behaviour.API_DIFFERS, Behaviour.UNAVAILABLE, Behaviour.NOT_RUN}


def describe_other_builds(evidence: Evidence, good: Sequence[str]) -> str:
    """Return one clause for each reason, with its builds: ``2.9.0 to 3.6.0 do not have `--x`.``

    A fork that cannot run the testcase is left out, because it is no evidence about a release.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    ported = evidence.combine_answers(Variant.PORTED)
    for version in evidence.list_tested(Variant.ORIGINAL):
        runs = [seen for seen in evidence.list_originals() if seen.version == version]
        if version in good or not runs:
            continue
        as_ported = _AS_PORTED.get(ported.get(version, Answer.SKIP))
        if as_ported is None and any(seen.fork for seen in runs) and {find_behaviour(s) for s in runs} <= _SILENT:
            continue
        reason = as_ported or _find_reason(runs)
        groups.setdefault(reason, []).append(version)
    told = [
        f"{_name(evidence, versions)} {one if len(versions) == 1 else several}"
        for (one, several), versions in groups.items()
    ]
    return f" {'; '.join(told[:MAX_REASONS])}." if told else ""


def _name(evidence: Evidence, versions: Sequence[str]) -> str:
    return name_releases(evidence, versions).partition(" (")[0]


def _find_reason(runs: Sequence[Observation]) -> tuple[str, str]:
    """Return why a build gave no answer, as the predicate of one build and of several."""
    found = [read_evidence(one) for seen in runs for one in seen.findings]
    lacking = [
        quote_span(one.name, 80)
        for one in found
        if isinstance(one, MovedEvidence) and one.name and one.moved is not Moved.NEEDED
    ]
    if lacking:
        names = join_names(list(dict.fromkeys(lacking))[:2])
        return f"does not have {names}", f"do not have {names}"
    return _REASONS.get(find_behaviour(runs[-1]), _NO_ANSWER)


_AS_PORTED = {
    Answer.GOOD: ("runs it cleanly, ported", "run it cleanly, ported"),
    Answer.BAD: (
        "does not read the posted text, and fails as reported in an older notation",
        "do not read the posted text, and fail as reported in an older notation",
    ),
}
_NO_ANSWER = ("gives no answer", "give no answer")
_REASONS = {
    Behaviour.FAILS_OTHERWISE: ("fails in another way", "fail in another way"),
    Behaviour.COMPILES: ("compiles it and cannot run it here", "compile it and cannot run it here"),
    Behaviour.UNJUDGED: (
        "runs it, and its output could not be compared with the report",
        "run it, and their output could not be compared with the report",
    ),
    Behaviour.API_DIFFERS: ("does not accept it as posted", "do not accept it as posted"),
    Behaviour.UNAVAILABLE: ("cannot run it here", "cannot run it here"),
    Behaviour.TIMEOUT: ("reaches the time limit", "reach the time limit"),
    Behaviour.OUT_OF_MEMORY: ("runs out of memory", "run out of memory"),
    Behaviour.NOT_RUN: ("could not be run (our failure)", "could not be run (our failure)"),
}
