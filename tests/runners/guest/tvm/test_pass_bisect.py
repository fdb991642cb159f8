"""Pass bisection of TVM testcases, on real releases.

bench/diagnosis/diagnosers.py runs all sixteen programs on three releases.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runners.guest.tvm.guilty import MODEL, make_faulty
from tests.runners.guest.tvm.sweep import LAUNCHER, PROGRAMS, environment, variables

pytestmark = pytest.mark.compilers


def bisect_program(program: str, version: str, tmp_path: Path) -> dict[str, Any] | None:
    """Bisect a program. Return the evidence of the finding; None without a finding."""
    script, findings = tmp_path / "program.py", tmp_path / "findings"
    script.write_text(program)
    words = [
        str(environment(version).interpreter.executable),
        str(LAUNCHER),
        "tvm.pass_bisect.search",
        "search",
        "240",  # seconds: the promises are about runs, and a loaded machine needs more than a diagnosis may take
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
def test_planted_pass_is_found(name: str, version: str, tmp_path: Path) -> None:
    """The pass is found among the testcase's own passes and among the build's, with its change of the module."""
    program, planted, scope = make_faulty()[name]
    found = bisect_program(program, version, tmp_path)
    assert found is not None
    assert (found["pass"], found["scope"]) == (planted, scope)
    assert found["application"] - found["passes_without"] == 1
    assert any(line.startswith(("+", "-")) for line in found["difference"])


def test_failure_without_passes_blames_no_pass(tmp_path: Path) -> None:
    """The testcase's expectation is wrong, so it also fails without any pass."""
    program, _, _ = make_faulty()["SubtractInstead, alone"]
    innocent = program.replace("module = planted(module)", "module = relax.transform.Normalize()(module)")
    found = bisect_program(innocent.replace("- data, rtol", "+ 7, rtol"), "0.27.0", tmp_path)
    assert found is not None
    assert (found["pass"], found["application"]) == ("", 0)


def test_passing_testcase_has_no_finding(tmp_path: Path) -> None:
    """Without a failure there is no pass to find."""
    program, _, _ = make_faulty()["SubtractInstead, alone"]
    assert bisect_program(program.replace("module = planted(module)\n", ""), "0.27.0", tmp_path) is None


RAISES_INSIDE = """
@tvm.transform.module_pass(opt_level=0, name="Raises")
def raises(module, _context):
    {end}

raises(module)
"""


@pytest.mark.parametrize("end", ["raise ValueError('no')", "import os; os.abort()"])
def test_finding_names_the_pass_that_was_running(end: str, tmp_path: Path) -> None:
    """The finding also names the pass after a crash."""
    found = bisect_program(MODEL + RAISES_INSIDE.format(end=end) + end, "0.27.0", tmp_path)
    assert found is not None
    assert (found["application"], found["under_way"]) == (0, ["Raises"])


def test_crashing_pass_is_found(tmp_path: Path) -> None:
    """The log of a run survives the crash, with all passes until then."""
    passes = "[relax.transform.CanonicalizeBindings(), raises, relax.transform.DeadCodeElimination()]"
    alone = RAISES_INSIDE.format(end="import os; os.abort()").replace("\nraises(module)\n", "")
    found = bisect_program(f"{MODEL}{alone}tvm.transform.Sequential({passes})(module)\n", "0.27.0", tmp_path)
    assert found is not None
    assert (found["pass"], found["inside"]) == ("Raises", "sequential")
    assert found["application"] - found["passes_without"] == 1


def test_a_search_of_many_passes_needs_few_runs(tmp_path: Path) -> None:
    """A network has more than sixty passes without influence on its failure. The search takes at most 24 runs."""
    network = (PROGRAMS / "valid" / "residual_network_of_two_blocks.repro").read_text()
    found = bisect_program(network + "\nassert len(__name__) == 1\n", "0.27.0", tmp_path)
    assert found is not None
    assert found["application"] == 0
    assert found["trials"] <= 24
