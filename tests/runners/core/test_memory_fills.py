"""Unwritten memory that decides the output of a testcase, where no output tells right from wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from runners.core.findings.kinds import ControlEnd
from runners.core.protocol import Exited, Observation, Outcome, Signalled
from runners.core.toolchain.memory_fills import decide_origin
from tests.support.observed import observe


def find_origin(
    *prints: tuple[str, str], unjudged: bool = True, crashes: bool = False
) -> tuple[str, str, str | None]:
    """Return the origin, the control and its end.

    ``prints`` are a fill with what its first run prints; the others print ``1``.
    """
    told, asked = dict(prints), Counter[str]()

    def run(fill: str) -> Observation:
        asked[fill] += 1
        text = told.get(fill if asked[fill] == 1 else f"{fill} again", told.get(fill, "1"))
        outcome = Outcome.OTHER_FAILURE if unjudged else Outcome.MATCH
        return observe("1.0", outcome, ended=Signalled(code=11) if crashes else Exited(code=0), excerpt=text)

    _, decided = decide_origin(run)
    assert decided.origin is not None
    return decided.origin, decided.control or "", decided.control_end


def test_another_output_with_another_constant_blames_the_testcase() -> None:
    """Each of the two constants runs twice."""
    origin, control, end = find_origin(("fill-highest", "3.4e38"))
    assert (origin, end) == ("testcase", ControlEnd.FILL_IS_PRINTED)
    assert "filled with 0 the testcase prints one output, twice" in control


@pytest.mark.parametrize(
    ("prints", "how"),
    [
        ([], {}),
        ([("fill-highest", "2"), ("fill-highest again", "3")], {}),
        ([("fill-highest", "2"), ("fill-zero again", "3")], {}),
        ([("fill-highest", "2")], {"unjudged": False}),
        ([("fill-highest", "2")], {"crashes": True}),
    ],
    ids=["one output", "the output varies", "the first output varies", "a failure as reported", "a crash"],
)
def test_outputs_that_do_not_decide_blame_no_party(prints: list[tuple[str, str]], how: dict[str, bool]) -> None:
    """A time in the output differs without any fault, and a judged run has an outcome to compare."""
    origin, _, end = find_origin(*prints, **how)
    assert (origin, end) == ("unknown", None)
