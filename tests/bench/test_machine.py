"""The table of a machine says what its kit's report says, and a wrong cell makes it fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.robustness import machine
from runners.sandbox.unprotected import Unprotected

REPORT = """<testsuites><testsuite>
<testcase name="test_it[docker-fork-bomb]"/>
<testcase name="test_it[docker-exit-3]"/>
<testcase name="test_it[docker-memory-bomb]"><failure message="m">t</failure></testcase>
<testcase name="test_it[docker-sleep]"><error message="m">t</error></testcase>
<testcase name="test_it[docker-burn]"><skipped message="m">t</skipped></testcase>
</testsuite></testsuites>"""


def test_an_attack_counts_as_contained_only_where_it_was_tried_and_passed(tmp_path: Path) -> None:
    """Failures, errors and skips are named, not counted."""
    report = tmp_path / "kit.xml"
    report.write_text(REPORT)
    assert machine.read_kit(report) == machine.Kit(
        contained=2, failed=("docker-memory-bomb", "docker-sleep"), skipped=("docker-burn",)
    )


@pytest.mark.parametrize(("failed", "wrong"), [((), False), (("docker-sleep",), True)])
def test_a_failed_attack_makes_the_whole_fail(
    failed: tuple[str, ...], wrong: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name is in the table, and the exit code says so."""
    kit = machine.Kit(contained=3, failed=failed, skipped=())
    monkeypatch.setattr(machine, "run_kit", lambda engine, expression: kit)
    monkeypatch.setattr(machine, "list_sandboxes", lambda: (Unprotected(),))
    assert machine.main(["--no-examples"]) == int(wrong)
    assert ("**not: docker-sleep**" in capsys.readouterr().out) is wrong


def test_an_engine_that_is_refused_says_why_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not to work somewhere is no fault."""
    monkeypatch.setattr(Unprotected, "find_problem", lambda self: "it is not here")
    monkeypatch.setattr(machine, "list_sandboxes", lambda: (Unprotected(),))
    assert machine.main([]) == 0
    assert "| none | no: it is not here |" in capsys.readouterr().out
