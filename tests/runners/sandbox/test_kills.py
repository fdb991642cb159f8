"""Random kills leave nothing behind: a short run of ``bench.robustness.kills``."""

from __future__ import annotations

import pytest

from bench.robustness.kills import run_trials, usable

pytestmark = pytest.mark.sandbox

TRIALS = 24
SEED = 20261121


def test_random_kills_of_host_engine_and_guest_leave_nothing_behind() -> None:
    """No process, control group, mount, container or temporary file is left after a second, or after
    `remove_leftovers`."""
    if not usable():
        pytest.skip("no sandbox works here")
    outcomes = run_trials(TRIALS, SEED)
    assert [one for one in outcomes if one.left] == []
    assert {one.trial.victim for one in outcomes if one.hit} == {"host", "engine", "guest"}
