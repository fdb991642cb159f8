"""Every engine keeps the contract: attacks are contained, and their ends are reported truthfully."""

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
def test_attack_is_contained_and_its_end_is_reported_truthfully(
    engine: Engine, layout: Layout, attack: Attack
) -> None:
    """Nothing outside the scratch directories changes, and ``ended`` is the real end."""
    if attack.counts_all and engine.name == "bubblewrap" and (why := cgroup.find_problem()) is not None:
        pytest.skip(why)
    probe = run_source(engine, layout, PRELUDE + attack.source, limits=attack.limits)
    assert attack.ended(probe.ended), (probe.ended, probe.steps)
    (step,) = probe.steps
    assert step.ended == probe.ended
    assert attack.check(step), step
