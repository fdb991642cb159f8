"""What the outcome of a run means: its reasons, and whether the build read the text."""

from __future__ import annotations

import pytest

from runners.core.failure.outcomes import explains_outcome, is_rejected, judge_again
from runners.core.protocol import Answer, Outcome, Reason, Signature
from runners.toolchains import iree
from tests.support.observed import observe


@pytest.mark.parametrize(
    ("message", "rejected"),
    [
        ("custom op 'memref.expand_shape' expected 'output_shape'", True),
        ("custom op 'addf' is unknown (tried 'func.addf' as well)", True),
        ("Dialect `mhlo' not found for custom op 'mhlo.abs'", True),
        ("For output_format= argument, expected one of: A, B", True),
        ("can't run 'func' pass manager on 'builtin.module' op", True),
        ("resource does not exist", True),
        ("resource data missing in input IR (removed by user?); cannot serialize resource: dense_resource<w>", True),
        ("failed to legalize operation 'tensor.insert' that was explicitly marked illegal", False),
        ("expected output shape of 4", False),
        ("undefined symbol alias id 'map'", True),
        ("undefined symbol: log10f", False),
    ],
)
def test_the_message_of_a_parser_is_a_refusal(message: str, rejected: bool) -> None:
    """Messages of passes are failures."""
    seen = observe("3.13.0", Outcome.OTHER_FAILURE, signature=Signature(type="mlir-error", message=message))
    assert is_rejected(seen, iree.FAILURES) is rejected


def test_a_missing_name_is_a_refusal_and_a_clean_run_is_none() -> None:
    assert is_rejected(observe("3.13.0", Outcome.INCOMPATIBLE), iree.FAILURES)
    assert not is_rejected(observe("3.13.0", Outcome.PASS), iree.FAILURES)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_reason(outcome: Outcome) -> None:
    """A single run that has it can be recorded."""
    assert any(explains_outcome(reason, outcome) for reason in Reason)


def test_what_all_runs_decide_is_no_reason_of_a_single_run() -> None:
    """A run that is judged again has a reason that no record of one run may have, and loses the old detail."""
    seen = observe("1.0", Outcome.OTHER_FAILURE, detail="old")
    again = judge_again(seen, Outcome.MATCH, Reason.CHANGED_SINCE, "why")
    assert (again.outcome, again.answer, again.detail) == (Outcome.MATCH, Answer.BAD, "")
    assert not explains_outcome(again.reason, again.outcome)
    assert not explains_outcome(None, Outcome.PASS)
