"""A verdict that is withheld keeps its sentence, and says what is missing."""

from __future__ import annotations

import pytest

from bot.verdict.verdict import Verdict, VerdictKind, make_verdict, withhold


def decide(headline: str, kind: VerdictKind = VerdictKind.CONFIRMED) -> Verdict:
    return make_verdict(kind, (), headline, ("it ran",))


@pytest.mark.parametrize(
    ("kind", "headline", "said"),
    [
        (VerdictKind.CONFIRMED, "It fails on 1.0.", "it fails on 1.0"),
        (VerdictKind.CONFIRMED, "A pass fails.", "a pass fails"),
        (VerdictKind.CONFIRMED, "NumPy computes 3.", "NumPy computes 3"),
        (VerdictKind.CONFIRMED, "IREE fails.", "IREE fails"),
        (VerdictKind.FIXED, "Already fixed: 1.0 fails.", "1.0 fails"),
        (VerdictKind.NOT_REPRODUCED, "Not reproduced: it runs cleanly.", "it runs cleanly"),
        (VerdictKind.CONFIRMED, "", ""),
    ],
)
def test_a_withheld_verdict_keeps_its_sentence_but_not_its_kind(kind: VerdictKind, headline: str, said: str) -> None:
    """A name at the start keeps its capitals."""
    held = withhold(decide(headline, kind), doubt="the device is a guess")
    assert held.headline == f"Inconclusive: {said}; the device is a guess."
    assert (held.kind, held.leaning) == (VerdictKind.INCONCLUSIVE, kind)


def test_the_doubt_and_what_would_settle_it_are_reasons() -> None:
    held = withhold(decide("It fails."), doubt="the device is a guess", settled_by="the device")
    assert held.reasons == ("it ran", "the device is a guess", "to decide: the device")


def test_evidence_that_is_missing_needs_no_doubt() -> None:
    held = withhold(decide("It fails."), settled_by="the device")
    assert held.headline == "Inconclusive: it fails."
    assert held.reasons == ("it ran", "to decide: the device")
    assert withhold(decide("It fails.")).reasons == ("it ran",)
