"""Tests of casts that NumPy warns about."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.core.protocol import Exited, Observation, Outcome, Record, Testcase, Variant
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.undefined_casts import WARNING, check_numpy_casts, find_cast
from tests.support.means import make_means
from tests.support.observed import observe
from tests.support.untrusted import make_program

CODE = "import numpy as np\nx = np.float64([-1, 3e9])\ny = x.astype(np.uint32)\nprint(y)\n"
SEEN = observe(
    "1.0",
    Outcome.MATCH,
    ended=Exited(code=0),
    excerpt="[4294967295]\nrepro.py:3: RuntimeWarning: invalid value encountered in cast\n  y = x",
)


@pytest.mark.parametrize(("outcome", "blamed"), [(Outcome.PASS, True), (Outcome.MATCH, False)])
def test_the_cast_is_at_fault_if_the_failure_is_gone_without_it(outcome: Outcome, blamed: bool) -> None:
    runs: list[Testcase] = []

    def run(_version: str, _variant: Variant, testcase: Testcase, _device: str) -> Observation:
        runs.append(testcase)
        return observe("1.0", outcome, ended=Exited(code=0))

    seen = observe(
        "1.0", Outcome.MATCH, ended=Exited(code=0), excerpt=SEEN.excerpt, record=Record(warnings=(WARNING,))
    )
    found = check_numpy_casts(Failure(testcase=make_program(CODE), seen=seen), make_means(run))
    assert [finding.evidence["rule"] for finding in found.findings] == [Rule.CAST_OUT_OF_RANGE.value] * blamed
    assert "y = np.clip(np.nan_to_num(x), 0.0, 4294967295.0).astype(np.uint32)" in runs[0].files["repro.py"]
    compile(runs[0].files["repro.py"], "repro.py", "exec")


@pytest.mark.parametrize(
    "code",
    [
        CODE.replace("np.uint32", "np.float32"),
        CODE.replace("np.uint32", "kind"),
        CODE.replace("x.astype(np.uint32)", "x.astype('i4'), x.astype(np.int8), x.astype(np.uint8)"),
        CODE.replace("x.astype", "x["),
        "",
    ],
)
def test_any_other_line_is_left_alone(code: str) -> None:
    assert find_cast(make_program(code), "repro.py", 3) is None


def test_without_the_warning_nothing_runs() -> None:
    assert check_numpy_casts(Failure(testcase=make_program(CODE), seen=SEEN), make_means()).findings == ()
