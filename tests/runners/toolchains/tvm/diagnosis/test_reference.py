"""Tests of NumPy's vote: asked for wrong values only, and read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.core.failure.oracle import ASSERTION, OUTPUT
from runners.core.findings.kinds import Vote
from runners.core.findings.questions import get_vote
from runners.core.protocol import Exited, Finding, FindingKind, Outcome, Signature, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.guest import is_launch_step
from runners.toolchains.tvm.diagnosis.reference import ask_reference
from tests.support.means import make_means
from tests.support.observed import observe

TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": ""}, steps=(("python", "r.py", "--size", "4"),)
)
SHARED = "one memory for two arguments"
VALUES = {"function": "main", "returned": "0.0", "expected": "nan", "at": "[1]"}


def ask(evidence: dict[str, Any], type: str = ASSERTION) -> tuple[Finding, ...]:
    asked: list[Testcase] = []

    def answer(_version: str, testcase: Testcase) -> str:
        asked.append(testcase)
        return json.dumps({"kind": "reference", "summary": "anything", "evidence": evidence})

    seen = observe("1.0", Outcome.MATCH, ended=Exited(code=1), signature=Signature(type=type))
    found = ask_reference(Failure(testcase=TESTCASE, seen=seen), make_means(hook=answer)).findings
    assert all(is_launch_step(one.steps[0], "tvm.reference.vote") for one in asked)
    assert all(one.steps[0][3:] == ("r.py", "--size", "4") for one in asked)
    return found


@pytest.mark.parametrize("type", [ASSERTION, OUTPUT])
def test_a_vote_is_a_finding_about_the_failing_build(type: str) -> None:
    """A difference has its values; an agreement has none, whatever the guest adds."""
    (differs,) = ask({"vote": "differs", **VALUES}, type)
    (agrees,) = ask({"vote": "agrees", **VALUES}, type)
    assert (get_vote(differs), get_vote(agrees)) == (Vote.DIFFERS, Vote.AGREES)
    assert differs.evidence == {"name": "NumPy", "vote": "differs", "version": "1.0", **VALUES}
    assert agrees.evidence == {"name": "NumPy", "vote": "agrees", "version": "1.0"}


def test_where_all_defined_values_agree_a_wrong_value_is_an_undefined_one() -> None:
    """Only of operations whose result may be undefined, in the host's words."""
    claim = {"vote": "undefined", "function": "main", "at": "arguments[1][2]", "by": "definitions"}
    (found,) = ask({**claim, "operation": "an overflow"})
    assert found.kind is FindingKind.UNDEFINED_OPERAND
    assert get_vote(found) is None
    (shared,) = ask({"vote": "undefined", "function": "main", "by": "definitions", "operation": SHARED})
    assert shared.kind is FindingKind.UNDEFINED_OPERAND
    assert (shared.evidence["operation"], shared.evidence["at"]) == (SHARED, "")
    assert ask({**claim, "operation": "a whim"}) == ()
    assert ask(claim) == ()


@pytest.mark.parametrize("type", ["InternalError", "SIGSEGV"])
def test_an_error_or_a_crash_has_no_value_to_vote_on(type: str) -> None:
    assert ask({"vote": "differs", **VALUES}, type) == ()


@pytest.mark.parametrize("evidence", [{}, {"vote": "abstains"}, {"vote": "differs", "returned": "9" * 200}])
def test_other_words_are_no_vote(evidence: dict[str, Any]) -> None:
    assert ask(evidence) == ()
