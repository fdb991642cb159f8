"""Every engine keeps the same contract: attacks are contained, and how each ended is told truthfully."""

from __future__ import annotations

import pytest

from runners.probe.layout import Layout
from runners.sandbox.contract import Engine
from runners.sandbox.limits import cgroup
from tests.runners.sandbox.conftest import run_source
from tests.runners.sandbox.kit.attack import Attack
from tests.runners.sandbox.kit.attacks import ATTACKS, PRELUDE

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("secret")]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_contained_and_its_end_is_told_truthfully(
    engine: Engine, layout: Layout, attack: Attack
) -> None:
    """Whatever the testcase tries, nothing beyond its scratch changes, and ``ended`` is what happened."""
    if attack.counts_all and engine.name == "bubblewrap" and (why := cgroup.unavailable()) is not None:
        pytest.skip(why)
    probe = run_source(engine, layout, PRELUDE + attack.source, limits=attack.limits)
    assert attack.ended(probe.ended), (probe.ended, probe.steps)
    (step,) = probe.steps
    assert step.ended == probe.ended
    assert attack.check(step), step
