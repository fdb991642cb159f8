"""The search for the pass with which a testcase begins to fail, on real releases.

All sixteen programs on three releases are run by bench/diagnosis/diagnosers.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runners.guest.tvm.guilty import MODEL, faulty
from tests.runners.guest.tvm.sweep import LAUNCHER, PROGRAMS, environment, variables

pytestmark = pytest.mark.compilers


def search(program: str, version: str, tmp_path: Path) -> dict[str, Any] | None:
    """The finding's evidence; None when there is no finding."""
    script, findings = tmp_path / "program.py", tmp_path / "findings"
    script.write_text(program)
    words = [
        str(environment(version).interpreter.executable),
        str(LAUNCHER),
        "tvm.pass_bisect.search",
        "search",
        "60",
        str(script),
    ]
    done = subprocess.run(
        words,
        env={**variables(version), "REPROBOT_FINDINGS": str(findings)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in findings.read_text().splitlines()]
    return next((line["evidence"] for line in lines if line["kind"] == "guilty-pass"), None)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("SubtractInstead, alone", "0.25.0"),
        ("NegativeRelu, between", "0.27.0"),
        ("OtherWayRound, sequence", "0.27.0"),
        ("AddInstead, pipeline", "0.27.0"),
    ],
)
def test_the_planted_pass_is_found(name: str, version: str, tmp_path: Path) -> None:
    """Among the testcase's own passes and among those of the build, with what it did to the module."""
    program, planted, scope = faulty()[name]
    found = search(program, version, tmp_path)
    assert found is not None
    assert (found["pass"], found["scope"]) == (planted, scope)
    assert found["application"] - found["passes_without"] == 1
    assert any(line.startswith(("+", "-")) for line in found["difference"])


def test_a_failure_that_needs_no_pass_blames_none(tmp_path: Path) -> None:
    """The testcase's expectation is wrong: every pass can be left out, and it fails all the same."""
    program, _, _ = faulty()["SubtractInstead, alone"]
    innocent = program.replace("module = planted(module)", "module = relax.transform.Normalize()(module)")
    found = search(innocent.replace("- data, rtol", "+ 7, rtol"), "0.27.0", tmp_path)
    assert found is not None
    assert (found["pass"], found["application"]) == ("", 0)


def test_a_testcase_that_runs_cleanly_leads_to_nothing(tmp_path: Path) -> None:
    """No failure, no pass to find."""
    program, _, _ = faulty()["SubtractInstead, alone"]
    assert search(program.replace("module = planted(module)\n", ""), "0.27.0", tmp_path) is None


RAISES_INSIDE = """
@tvm.transform.module_pass(opt_level=0, name="Raises")
def raises(module, _context):
    {end}

raises(module)
"""


@pytest.mark.parametrize("end", ["raise ValueError('no')", "import os; os.abort()"])
def test_what_ran_when_it_failed_is_told(end: str, tmp_path: Path) -> None:
    """Also of a crash, after which the one that crashed tells nothing any more."""
    found = search(MODEL + RAISES_INSIDE.format(end=end) + end, "0.27.0", tmp_path)
    assert found is not None
    assert (found["application"], found["under_way"]) == (0, ["Raises"])


def test_a_pass_that_crashes_is_found(tmp_path: Path) -> None:
    """The run with it leaves no words of its own; which passes it came through was told as it went."""
    passes = "[relax.transform.CanonicalizeBindings(), raises, relax.transform.DeadCodeElimination()]"
    alone = RAISES_INSIDE.format(end="import os; os.abort()").replace("\nraises(module)\n", "")
    found = search(f"{MODEL}{alone}tvm.transform.Sequential({passes})(module)\n", "0.27.0", tmp_path)
    assert found is not None
    assert (found["pass"], found["inside"]) == ("Raises", "sequential")
    assert found["application"] - found["passes_without"] == 1


def test_a_search_of_many_passes_needs_few_runs(tmp_path: Path) -> None:
    """A network whose sixty-odd passes have no part in its failure: runs that are spared are what makes it quick."""
    network = (PROGRAMS / "valid" / "residual_network_of_two_blocks.repro").read_text()
    found = search(network + "\nassert len(__name__) == 1\n", "0.27.0", tmp_path)
    assert found is not None
    assert found["application"] == 0
    assert found["trials"] <= 24
