"""Check what a text says about releases against the runs: every span, every ``all``, every ``no release``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.version import InvalidVersion

from bot.verdict.behaviour import Behaviour, find_behaviour
from runners.core.packages.versions import order_version
from runners.core.protocol import Observation, Plan, Variant

_VERSION = r"\d+(?:\.\d+)+(?:\.?(?:post|dev|rc)\d+)*"
_SPAN = re.compile(rf"(?<![\w.])`?({_VERSION})`? to `?({_VERSION})`?(?![\w.]*\w)")
_ALL = re.compile(rf"\b(?:all (\d+)|(both)) releases that were run, ({_VERSION})(?: to| and) ({_VERSION})")


def find_false_claims(text: str, plan: Plan, observations: Sequence[Observation]) -> list[str]:
    """Return each claim about releases that the runs contradict."""
    return [
        *_find_mixed_spans(text, observations),
        *_find_false_totals(text, plan, observations),
        *_find_false_negations(text, plan, observations),
    ]


def _find_mixed_spans(text: str, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield each span with builds that have no behaviour in common: on each device and in each variant."""
    groups = {(seen.device, seen.variant) for seen in observations}
    for found in _SPAN.finditer(text):
        if not any(_share_behaviour(found[1], found[2], observations, *group) for group in groups):
            yield f"{found[0]}: builds between behave differently"


def _share_behaviour(
    first: str, last: str, observations: Sequence[Observation], device: str, variant: Variant
) -> bool:
    own = [seen for seen in observations if (seen.device, seen.variant) == (device, variant)]
    inside = [seen for seen in own if _is_between(first, seen.version, last)]
    told = list(_group_behaviours(inside).values())
    ends = {seen.version for seen in inside}
    return {first, last} <= ends and bool(set.intersection(*told))


def _is_between(first: str, version: str, last: str) -> bool:
    try:
        return order_version(first) <= order_version(version) <= order_version(last)
    except InvalidVersion:
        return False


def _group_behaviours(observations: Iterable[Observation]) -> dict[str, set[Behaviour]]:
    found: dict[str, set[Behaviour]] = {}
    for seen in observations:
        found.setdefault(seen.version, set()).add(find_behaviour(seen))
    return found


def _find_false_totals(text: str, plan: Plan, observations: Sequence[Observation]) -> Iterator[str]:
    ran = _group_behaviours(_list_originals(plan, observations))
    for found in _ALL.finditer(text):
        number = 2 if found[2] else int(found[1])
        if number != len(ran) or not set.intersection(*ran.values()):
            yield f"{found[0]}: {len(ran)} releases ran, and not all behave alike"


def _find_false_negations(text: str, plan: Plan, observations: Sequence[Observation]) -> Iterator[str]:
    clean = [seen for seen in _list_originals(plan, observations) if find_behaviour(seen) is Behaviour.CLEAN]
    if "no release runs it cleanly" in text.lower() and clean:
        yield f"no release runs it cleanly: {clean[0].version} does"
    if "none gave an answer" in text and any(
        find_behaviour(seen) in (Behaviour.CLEAN, Behaviour.FAILS) for seen in _list_originals(plan, observations)
    ):
        yield "none gave an answer: one did"


def _list_originals(plan: Plan, observations: Sequence[Observation]) -> list[Observation]:
    return [seen for seen in observations if seen.variant is Variant.ORIGINAL and seen.device == plan.device]
