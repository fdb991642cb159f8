"""A confidence is the sum of fitted weights: each ground moves it in its own direction, and none to certainty."""

from __future__ import annotations

from hypothesis import given, strategies as st

from bench.proving.fit import INTERCEPT, Row, compute_probability, fit_weights
from bot.verdict.grounds import BASES, IN_FAVOUR, MEANINGS, Ground, load_weights, weigh_grounds


@given(st.sets(st.sampled_from(Ground)), st.sampled_from([one for one in Ground if one not in BASES]))
def test_a_ground_never_moves_a_confidence_in_the_wrong_direction(grounds: set[Ground], more: Ground) -> None:
    without, with_it = weigh_grounds(grounds - {more}), weigh_grounds({*grounds, more})
    assert with_it >= without if more in IN_FAVOUR else with_it <= without
    assert 0.01 <= with_it <= 0.99


def test_the_order_and_the_number_of_mentions_do_not_count() -> None:
    grounds = [Ground.FAILS, Ground.SEEN_ONCE, Ground.PORTED]
    assert weigh_grounds(grounds) == weigh_grounds([*reversed(grounds), *grounds])


def test_every_ground_has_a_weight_and_a_meaning() -> None:
    assert set(load_weights().grounds) == set(MEANINGS) == set(Ground)


def test_the_fit_finds_the_rates_of_its_data() -> None:
    """Two hundred stories right in nineteen of twenty, and two hundred with a doubt, right in one of two."""
    plain = [Row(f"a{n}", frozenset({INTERCEPT, Ground.FAILS}), n % 20 > 0) for n in range(200)]
    doubt = [Row(f"b{n}", frozenset({INTERCEPT, Ground.FAILS, Ground.PORTED}), n % 2 > 0) for n in range(200)]
    weights = fit_weights([*plain, *doubt])
    assert abs(compute_probability(weights, plain[0].features) - 0.95) < 0.03
    assert abs(compute_probability(weights, doubt[0].features) - 0.5) < 0.05


def test_many_tellings_of_one_story_weigh_as_one() -> None:
    features = frozenset({INTERCEPT, Ground.FAILS, Ground.PORTED})
    once, often = ([Row("a", features, False)] * n for n in (1, 50))
    assert abs(fit_weights(once)[Ground.PORTED] - fit_weights(often)[Ground.PORTED]) < 1e-3
