"""From observations to a verdict: precision first, and the same answer whatever the order of the records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.extract.python.reference.same_model import runs_same_model
from bot.extract.types import Missing, NoRepro
from bot.verdict.evidence import Evidence, Gaps
from bot.verdict.grounds import Ground
from bot.verdict.judge import judge, judge_without_running
from bot.verdict.verdict import Verdict, VerdictKind
from runners.core.failure.printed.programs.changed_since import mark_by_change
from runners.core.failure.printed.programs.told_parts import mark_by_told_parts
from runners.core.findings.kinds import ControlEnd
from runners.core.protocol import (
    ANY_ERROR,
    SAID_TO_WORK,
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    NotRun,
    Observation,
    Outcome,
    Plan,
    Reason,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
    Varied,
)
from runners.sandbox.contract import WORK
from tests.support.observed import ORDER, PLAN, observe

M, P, S, I = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.INCOMPATIBLE  # noqa: E741 -- a table reads by letters
U, T = Outcome.UNAVAILABLE, Outcome.TIMEOUT
CLAIM = PLAN.claim


def evidence(outcomes: Sequence[Outcome | None], *more: Observation, plan: Plan = PLAN, **kept: object) -> Evidence:
    seen = [
        observe(version, outcome) for version, outcome in zip(ORDER, outcomes, strict=True) if outcome is not None
    ]
    return Evidence(plan=plan, observations=(*seen, *more), findings=kept.get("findings", ()))  # type: ignore[arg-type]  # one keyword


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((M, M, M, M), VerdictKind.CONFIRMED),
        ((I, M, M, M), VerdictKind.CONFIRMED),
        ((S, S, M, M), VerdictKind.CONFIRMED),
        ((P, P, M, M), VerdictKind.REGRESSION),
        ((P, I, M, M), VerdictKind.REGRESSION),
        ((M, M, P, P), VerdictKind.FIXED),
        ((P, M, P, P), VerdictKind.FIXED),
        ((M, P, I, I), VerdictKind.FIXED),
        ((M, M, I, I), VerdictKind.INCONCLUSIVE),
        ((M, M, M, S), VerdictKind.INCONCLUSIVE),
        ((P, P, P, P), VerdictKind.NOT_REPRODUCED),
        ((P, P, P, S), VerdictKind.INCONCLUSIVE),
        ((I, I, I, I), VerdictKind.UNTESTABLE),
        ((U, U, U, U), VerdictKind.UNTESTABLE),
        ((S, S, S, S), VerdictKind.INCONCLUSIVE),
        ((T, T, T, T), VerdictKind.INCONCLUSIVE),
        ((S, I, I, I), VerdictKind.UNTESTABLE),
        ((S, T, T, T), VerdictKind.INCONCLUSIVE),
        ((I, I, I, S), VerdictKind.INCONCLUSIVE),
    ],
)
def test_verdicts_from_answers(outcomes: tuple[Outcome, ...], kind: VerdictKind) -> None:
    """One row of releases, oldest first."""
    assert judge(evidence(outcomes)).kind is kind


MISSES = msgspec.structs.replace(
    PLAN, reported="1.1", claim=Claim(kind=ClaimKind.ACCEPTED, versions=("1.1",), told="It accepts a bad shape.")
)
BAD_SHAPE = Signature(type="mlir-error", message="the shape is bad")


@pytest.mark.parametrize(
    ("outcomes", "kind", "sentence"),
    [
        ((M, M, M, M), VerdictKind.CONFIRMED, "accept the testcase without an error"),
        ((M, M, P, P), VerdictKind.FIXED, "1.2 refuses it"),
        ((P, P, M, M), VerdictKind.REGRESSION, "1.0 and 1.1 refuse the testcase; 1.2 and 1.3 accept it"),
        ((P, P, P, P), VerdictKind.NOT_REPRODUCED, "refuse the testcase, as the report expects"),
        ((S, S, S, S), VerdictKind.INCONCLUSIVE, "refuse the testcase: `the shape is bad`"),
    ],
)
def test_a_report_that_misses_an_error_asks_which_builds_refuse_the_testcase(
    outcomes: tuple[Outcome, ...], kind: VerdictKind, sentence: str
) -> None:
    seen = [
        observe(version, outcome, signature=BAD_SHAPE, ended=Exited(code=int(outcome is not M)))
        for version, outcome in zip(ORDER, outcomes, strict=True)
    ]
    verdict = judge(Evidence(plan=MISSES, observations=tuple(seen), findings=()))
    assert verdict.kind is kind
    assert sentence in verdict.headline


def test_runs_of_one_build_that_disagree_are_flaky() -> None:
    """The rate is said, and nothing is bisected from it."""
    verdict = judge(evidence((M, M, M, M), observe("1.3", P, attempt=2)))
    assert verdict.kind is VerdictKind.FLAKY
    assert "1 of 2" in verdict.headline


@pytest.mark.parametrize(("clean", "kind"), [(7, VerdictKind.FIXED), (6, VerdictKind.FLAKY)])
def test_a_flaky_failure_is_fixed_where_clean_runs_of_the_newest_release_are_no_luck(
    clean: int, kind: VerdictKind
) -> None:
    older = [observe("1.0", outcome, attempt=i) for i, outcome in enumerate((M, P))]
    newest = [observe("1.3", P, attempt=i) for i in range(clean)]
    assert judge(Evidence(plan=PLAN, observations=(*older, *newest), findings=())).kind is kind


def test_a_report_without_a_message_may_be_about_values_that_the_newest_release_prints_otherwise() -> None:
    """ "It does not work" is no error message: two clean runs with different output leave the question open."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR, versions=("1.1",)), reported="1.1")

    def judge_outputs(old: str, new: str) -> VerdictKind | None:
        runs = tuple(
            observe(version, P, excerpt=new if version == "1.3" else old, ended=Exited(code=0)) for version in ORDER
        )
        return judge(Evidence(plan=plan, observations=runs, findings=())).leaning

    assert judge_outputs("(3, 0.0)", "(3, 2.5)") is None
    assert judge_outputs("(3, 2.5)", "(3, 2.50001)") is VerdictKind.NOT_REPRODUCED
    assert judge_outputs("done", "finished") is VerdictKind.NOT_REPRODUCED


def test_what_the_newest_release_supplies_itself_is_no_fault_of_the_testcase() -> None:
    lacks = Finding(kind=FindingKind.MISSING, summary="x", evidence={"name": "a.b", "control": "import a.b"})
    seen = [observe(version, outcome) for version, outcome in zip(ORDER, (M, M, P, P), strict=True)]
    assert judge(Evidence(plan=PLAN, observations=tuple(seen), findings=(lacks,))).kind is VerdictKind.FIXED
    failing = [observe(version, M) for version in ORDER]
    at_fault = judge(Evidence(plan=PLAN, observations=tuple(failing), findings=(lacks,)))
    assert at_fault.kind is VerdictKind.INVALID_REPRO


def test_a_fault_of_the_repro_outranks_the_flakiness_it_causes() -> None:
    """Reading outside a tensor gives other values each time: the verdict is the cause."""
    finding = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="index 17 of 12")
    verdict = judge(evidence((M, M, M, M), observe("1.3", P, attempt=2), findings=(finding,)))
    assert verdict.kind is VerdictKind.INVALID_REPRO


def test_a_verdict_points_at_the_runs_it_rests_on() -> None:
    """At runs of the text as posted on its own device; not at a control, or one retargeted, on the same release."""
    others = (
        observe("1.1", M, variant=Variant.CONTROL),
        observe("1.1", M, variant=Variant.RETARGETED, device="cuda"),
    )
    whole = evidence((M, M, P, P), *others)
    verdict = judge(whole)
    assert verdict.kind is VerdictKind.FIXED
    assert [whole.observations[i] for i in verdict.evidence] == [observe("1.1", M), observe("1.2", P)]


def test_a_verdict_that_uses_ported_runs_lists_them_as_evidence() -> None:
    """The headline about the newest release rests on these runs."""
    ported = observe("1.3", M, variant=Variant.PORTED)
    whole = evidence((M, M, I, I), ported)
    assert ported in [whole.observations[i] for i in judge(whole).evidence]


@pytest.mark.parametrize("kind", [FindingKind.MISSING, FindingKind.SIGNATURE_CHANGED])
def test_a_control_that_passed_shows_nothing_where_runs_disagree(kind: FindingKind) -> None:
    """The control may have been clean by luck, as a run of the testcase was, so no party is blamed."""
    finding = Finding(kind=kind, summary="with it the testcase runs", evidence={"version": "1.3"})
    assert judge(evidence((M, M, M, M), findings=(finding,))).kind is VerdictKind.INVALID_REPRO
    unsteady = judge(evidence((M, M, M, M), observe("1.3", P, attempt=2), findings=(finding,)))
    assert unsteady.kind is VerdictKind.FLAKY


def test_a_fault_of_the_testcase_may_show_in_another_way_than_reported() -> None:
    """The fault explains the failure that was seen. Where a release runs cleanly, nothing is said of the testcase."""
    finding = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="x[9]", evidence={"origin": "testcase"})
    verdict = judge(evidence((S, S, S, S), findings=(finding,)))
    assert verdict.kind is VerdictKind.INVALID_REPRO
    usual = judge(evidence((M, M, M, M), findings=(finding,)))
    assert verdict.confidence < usual.confidence
    assert "not as reported" in verdict.headline
    assert judge(evidence((S, S, P, P), findings=(finding,))).kind is not VerdictKind.INVALID_REPRO


FLAG_NAMED = {"call_fault": "flag", "name": "--x", "program": "iree-compile", "origin": "testcase"}
WRONG_CALL = Finding(kind=FindingKind.WRONG_CALL, summary="--x is no flag", evidence=FLAG_NAMED)


def test_a_wrong_call_is_the_testcases_fault() -> None:
    verdict = judge(evidence((M, M, M, M), findings=(WRONG_CALL,)))
    assert verdict.kind is VerdictKind.INVALID_REPRO
    assert "no known release of `iree-compile` has the flag `--x`" in verdict.headline


@pytest.mark.parametrize("outcomes", [(P, P, M, M), (S, S, S, S)])
def test_a_call_that_a_release_takes_or_that_fails_otherwise_is_not_blamed(outcomes: tuple[Outcome, ...]) -> None:
    """A wrong call is rejected everywhere, and in one way."""
    assert judge(evidence(outcomes, findings=(WRONG_CALL,))).kind is not VerdictKind.INVALID_REPRO


@pytest.mark.parametrize(
    ("claim", "blamed"),
    [
        (Claim(kind=ClaimKind.ERROR), True),
        (Claim(kind=ClaimKind.ERROR, signature=Signature(type="InternalError", message="another one")), False),
        (Claim(kind=ClaimKind.CRASH), False),
        (Claim(kind=ClaimKind.WRONG_RESULT), False),
    ],
)
def test_a_wrong_call_explains_an_error_that_the_report_does_not_quote(claim: Claim, blamed: bool) -> None:
    """The same runs were called *confirmed*, beside the finding that mends them."""
    runs = evidence((S, S, S, S), findings=(WRONG_CALL,))
    verdict = judge(replace(runs, plan=msgspec.structs.replace(runs.plan, claim=claim)))
    assert (verdict.kind is VerdictKind.INVALID_REPRO) is blamed
    assert not blamed or "quotes no failure" in verdict.headline


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("--x is documented but not accepted", VerdictKind.CONFIRMED),
        ("The manual explains --xy", VerdictKind.INVALID_REPRO),
    ],
)
def test_a_name_that_the_report_defends_is_the_question_itself(sentence: str, kind: VerdictKind) -> None:
    """Whether a tool keeps what it promises is not decided by the tool's own message."""
    runs = evidence((M, M, M, M), findings=(WRONG_CALL,))
    assert judge(replace(runs, defences=(sentence,))).kind is kind


def _refuse(message: str, program: str, outcomes: tuple[Outcome, ...] = (M, M, M, M)) -> VerdictKind:
    signature = Signature(type="status:INVALID_ARGUMENT", message=message)
    runs = evidence(outcomes)
    seen = tuple(msgspec.structs.replace(one, signature=signature) for one in runs.observations)
    testcase = msgspec.structs.replace(runs.plan.testcase, toolchain="iree", files={"a.py": program})
    plan = msgspec.structs.replace(runs.plan, testcase=testcase, claim=Claim(kind=ClaimKind.ERROR))
    return judge(replace(runs, plan=plan, observations=seen)).kind


DTYPE = "input0 element type mismatch; expected f32 (21000020) but have f64 (21000040); while invoking"
SHAPE = "input0 shape dimension 0 mismatch; expected 1 but have 28; expected shape `1x784`, actual shape `28x28`"


@pytest.mark.parametrize(
    ("message", "program", "invalid"),
    [
        (DTYPE, "func.func @f(%x: tensor<4xf32>)", True),
        (DTYPE, "func.func @f(%x: tensor<4xf64>)", False),  # the compiler demoted what the program declares
        (DTYPE, "func.func @f(%x: tensor<4xf32>, %y: tensor<4xf64>)", False),
        (DTYPE, "f(%x: tensor<4xf32>)\nasdevicearray(d, x, element_type=HalElementType.FLOAT_32)", False),
        (DTYPE, "f(%x: tensor<4xf32>)\nf(np.zeros(4, np.float64))", True),
        (DTYPE.replace("f32", "i32").replace("f64", "si32"), "func.func @f(%x: tensor<4xi32>)", False),
        (SHAPE, "func.func @f(%x: tensor<1x784xf32>)", True),
        (SHAPE, "func.func @f(%x: tensor<28x28xf32>)", False),
        (SHAPE, "func.func @f(%x: tensor<?x?xf32>)", False),
        ("input0 is null", "func.func @f(%x: tensor<4xf32>)", False),
    ],
)
def test_an_argument_of_another_type_than_declared_is_the_testcases_fault(
    message: str, program: str, *, invalid: bool
) -> None:
    """The same error is right or wrong by what the program declares."""
    assert (_refuse(message, program) is VerdictKind.INVALID_REPRO) is invalid
    assert (_refuse(message, program, (I, M, M, M)) is VerdictKind.INVALID_REPRO) is invalid
    assert _refuse(message, program, (P, P, M, M)) is not VerdictKind.INVALID_REPRO


OPERAND = "'arith.addf' op operand #0 must be floating-point-like, but got 'tensor<4xi32>'"
VERIFIED = "'linalg.matmul' op expected operand rank (1) to match the result rank of indexing_map #1"
READ = Finding(kind=FindingKind.GUILTY_PASS, summary="x", evidence={"name": "parsing", "level": "parsing"})
LATER = Finding(
    kind=FindingKind.GUILTY_PASS, summary="x", evidence={"name": "cse", "level": "pass", "version": "1.3"}
)


@pytest.mark.parametrize(
    ("message", "finding", "defences", "outcomes", "kind"),
    [
        (OPERAND, READ, (), (M, M, M, M), VerdictKind.INVALID_REPRO),
        (OPERAND, READ, ("arith.addf should take integers",), (M, M, M, M), VerdictKind.CONFIRMED),
        (OPERAND, LATER, (), (M, M, M, M), VerdictKind.CONFIRMED),
        (OPERAND, READ, (), (P, P, M, M), VerdictKind.REGRESSION),
        (VERIFIED, READ, (), (M, M, M, M), VerdictKind.CONFIRMED),
        (VERIFIED, READ, (), (I, M, M, M), VerdictKind.CONFIRMED),
        ("block with no terminator, has %1 = f()", READ, (), (M, M, M, M), VerdictKind.INVALID_REPRO),
        ("operand #0 does not dominate this use", READ, (), (M, M, M, M), VerdictKind.INVALID_REPRO),
        ("operand #0 does not dominate this use", LATER, (), (M, M, M, M), VerdictKind.CONFIRMED),
    ],
)
def test_a_text_that_breaks_a_rule_of_the_language_is_at_fault(
    message: str, finding: Finding, defences: tuple[str, ...], outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """Only by a message of the parser or of a declared operand, from every build, and before any pass.

    A rule that only newer builds have may be right too.
    """
    said = Signature(type="mlir-error", message=message)
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, toolchain="iree"),
        claim=Claim(kind=ClaimKind.ERROR, signature=said),
    )
    seen = tuple(observe(version, outcome, signature=said) for version, outcome in zip(ORDER, outcomes, strict=True))
    runs = Evidence(plan=plan, observations=seen, findings=(finding,), defences=defences)
    verdict = judge(runs)
    assert verdict.kind is kind
    doubted = kind in (VerdictKind.CONFIRMED, VerdictKind.REGRESSION) and finding is READ and not defences
    assert ("the text is at fault" in verdict.headline) is doubted


@pytest.mark.parametrize(
    ("code", "kind"),
    [("f('a.b')\nf('a.b')", VerdictKind.INCONCLUSIVE), ("f('a.b')", VerdictKind.CONFIRMED)],
)
def test_a_name_that_the_testcase_gives_twice_may_be_taken(code: str, kind: VerdictKind) -> None:
    """A compiler that takes a name of the testcase for itself would be at fault."""
    said = Signature(type="RuntimeError", message="Global Function `a.b` is already registered")
    testcase = msgspec.structs.replace(PLAN.testcase, files={"a.py": code})
    plan = msgspec.structs.replace(PLAN, testcase=testcase, claim=Claim(kind=ClaimKind.ERROR, signature=said))
    seen = tuple(observe(version, M, signature=said) for version in ORDER)
    verdict = judge(Evidence(plan=plan, observations=seen, findings=()))
    assert verdict.kind is kind
    assert ("gives the name `a.b` twice" in verdict.headline) is (kind is VerdictKind.INCONCLUSIVE)


def test_a_package_that_is_younger_than_the_release_is_named() -> None:
    """The recorded run with that package decides; the finding alone is a claim."""
    known = {"version": "1.3", "name": "runtime", "older": "1.0", "younger": "2.0"}
    found = Finding(kind=FindingKind.YOUNGER_PACKAGE, summary="x", evidence=known)
    with_it = observe("1.3", M, variant=Variant.CONTROL, changes=("runtime 1.0 → 2.0",))
    verdict = judge(evidence((P, P, P, P), with_it, findings=(found,)))
    assert verdict.kind is VerdictKind.CONFIRMED
    assert "`runtime` 2.0, which is younger than the release; with `runtime` 1.0 it runs cleanly" in verdict.headline
    other = observe("1.3", M, variant=Variant.CONTROL, changes=("other 1.0 → 2.0",))
    for runs in ((), (other,), (observe("1.3", P, variant=Variant.CONTROL, changes=with_it.changes),)):
        assert judge(evidence((P, P, P, P), *runs, findings=(found,))).kind is VerdictKind.NOT_REPRODUCED


@pytest.mark.parametrize(("type", "doubted"), [("ScheduleError", True), ("InternalError", False)])
def test_a_request_that_every_build_refuses_by_a_stated_rule_is_doubted(type: str, doubted: bool) -> None:
    """The rule may be right. A rule that an older build did not have is a regression all the same."""
    said = Signature(type=type, message="the loop of a reduction cannot be vectorized")
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR, signature=said))

    def judge_runs(*outcomes: Outcome) -> Verdict:
        seen = (observe(version, outcome, signature=said) for version, outcome in zip(ORDER, outcomes, strict=True))
        return judge(Evidence(plan=plan, observations=tuple(seen), findings=()))

    verdict = judge_runs(M, M, M, M)
    assert verdict.kind is VerdictKind.CONFIRMED
    assert (Ground.REQUEST_REFUSED in verdict.grounds) is doubted
    assert Ground.REQUEST_REFUSED not in judge_runs(P, P, M, M).grounds


@pytest.mark.parametrize(
    ("frame", "code", "kind"),
    [
        ("tvm.relax.analysis.analysis.well_formed", "check(module)", VerdictKind.INCONCLUSIVE),
        ("tvm.relax.analysis.analysis.well_formed", "relax.transform.FuseOps()(m)", VerdictKind.CONFIRMED),
        ("tvm.relax.op.matmul", "check(module)", VerdictKind.CONFIRMED),
    ],
    ids=["a check of what was built", "a pass ran before", "no check"],
)
def test_a_check_of_a_program_that_the_testcase_builds_accuses_no_compiler(
    frame: str, code: str, kind: VerdictKind
) -> None:
    said = Signature(type="ValueError", message="x is used outside its block", frames=(frame,))
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, files={"a.py": code}),
        claim=Claim(kind=ClaimKind.ERROR, signature=said),
    )
    seen = tuple(observe(version, M, signature=said) for version in ORDER)
    assert judge(Evidence(plan=plan, observations=seen, findings=())).kind is kind


OWN_FILE = f"{WORK}/a.py"
TRACE = """Traceback (most recent call last):
  File "{own}", line 9, in <module>
    M().export()
  File "/opt/env/tvm/nn.py", line 5, in export
    return self.forward()
  File "{last}", line 7, in forward
    return self.fc(x).relu()
AttributeError: 'Tensor' object has no attribute 'relu'
"""


@pytest.mark.parametrize(
    ("last", "defences", "outcomes", "kind"),
    [
        (OWN_FILE, (), (M, M, M, M), VerdictKind.INVALID_REPRO),
        ("/opt/env/tvm/op.py", (), (M, M, M, M), VerdictKind.CONFIRMED),
        (OWN_FILE, ("the docs list relu",), (M, M, M, M), VerdictKind.CONFIRMED),
        (OWN_FILE, (), (P, P, M, M), VerdictKind.REGRESSION),
    ],
    ids=["a row of the testcase", "a row of the compiler", "defended", "known before"],
)
def test_an_attribute_that_no_release_has_is_the_testcases_fault(
    last: str, defences: tuple[str, ...], outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    said = Signature(type="AttributeError", message="'Tensor' object has no attribute 'relu'")
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, files={"a.py": "y = self.fc(x).relu()"}),
        claim=Claim(kind=ClaimKind.ERROR, signature=said, versions=("1.3",)),
        reported="1.3",
    )
    seen = tuple(
        observe(version, outcome, signature=said, excerpt=TRACE.format(own=OWN_FILE, last=last))
        for version, outcome in zip(ORDER, outcomes, strict=True)
    )
    assert judge(Evidence(plan=plan, observations=seen, findings=(), defences=defences)).kind is kind


@pytest.mark.parametrize(("file", "supported"), [(OWN_FILE, False), ("/opt/env/tvm/topi/grid.py", True)])
def test_an_assertion_of_the_compilers_python_code_is_an_error(file: str, supported: bool) -> None:
    """The testcase's own one states what its author expects, and needs a second source."""
    said = Signature(type="AssertionError", message="height should be greater than 1")
    stack = f"""Traceback (most recent call last):
  File "{OWN_FILE}", line 2, in <module>
    grid(x)
  File "{file}", line 7, in grid
    assert h > 1, "height should be greater than 1"
AssertionError: height should be greater than 1
"""
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, files={"a.py": "grid(x)"}),
        claim=Claim(kind=ClaimKind.ERROR, signature=said),
    )
    seen = tuple(observe(version, M, signature=said, excerpt=stack) for version in ORDER)
    verdict = judge(Evidence(plan=plan, observations=seen, findings=()))
    assert (Ground.ONLY_CLAIMED not in verdict.grounds) is supported


def unwritten(origin: str) -> Finding:
    return Finding(kind=FindingKind.UNINITIALIZED_READ, summary="t[0]", evidence={"origin": origin, "version": "1.3"})


@pytest.mark.parametrize("more", [(), (observe("1.3", P, attempt=2),)])
def test_uninitialized_memory_that_decides_the_result_is_a_fault_of_the_repro(more: tuple[Observation, ...]) -> None:
    """Whether the runs agree or not: the deciding memory was filled on purpose, twice for each value."""
    verdict = judge(evidence((M, M, M, M), *more, findings=(unwritten("testcase"),)))
    assert verdict.kind is VerdictKind.INVALID_REPRO


def test_uninitialized_memory_without_shown_effect_makes_a_wrong_value_inconclusive() -> None:
    """An error or a crash is the compiler's fault even if the testcase reads uninitialized memory."""
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    assert (
        judge(evidence((M, M, M, M), plan=wrong, findings=(unwritten("unknown"),))).kind is VerdictKind.INCONCLUSIVE
    )
    assert judge(evidence((M, M, M, M), findings=(unwritten("unknown"),))).kind is VerdictKind.CONFIRMED


def differing(cause: str, version: str = "1.3") -> Finding:
    return Finding(kind=FindingKind.NONDETERMINISTIC, summary="s", evidence={"cause": cause, "version": version})


def under(seen: Observation, **conditions: int) -> Observation:
    return msgspec.structs.replace(seen, varied=Varied(**conditions))


@pytest.mark.parametrize("outcomes", [(M, M, M, M), (P, P, M, M), (M, M, P, P)])
@pytest.mark.parametrize("cause", ["memory", "threads", "hashes", "unknown"])
def test_a_result_decided_outside_the_testcase_is_less_certain(outcomes: tuple[Outcome, ...], cause: str) -> None:
    """Even if the answers agree: the verdict stays, the confidence is lower, and a reason explains this."""
    again = [observe(version, outcome, attempt=2) for version, outcome in zip(ORDER, outcomes, strict=True)]
    steady, doubted = (judge(evidence(outcomes, *again, findings=found)) for found in ((), (differing(cause),)))
    assert doubted.kind is steady.kind
    assert steady.confidence > doubted.confidence
    assert any(reason.startswith("on 1.3, ") for reason in doubted.reasons)


def test_the_testcases_own_random_numbers_do_not_weaken_a_constant_failure() -> None:
    """The printed values differ from run to run; the failure does not."""
    steady, drawn = (judge(evidence((M, M, M, M), findings=found)) for found in ((), (differing("randomness"),)))
    assert drawn == steady


SOMETIMES = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, sometimes=True))


@pytest.mark.parametrize(
    ("outcomes", "found", "sure"),
    [
        ((M, M, M, M), (), True),
        ((P, P, M, M), (), False),
        ((M, M, P, P), (), False),
        ((M, M, M, M), (differing("randomness"),), False),
    ],
)
def test_an_intermittent_failure_may_be_absent_by_luck(
    outcomes: tuple[Outcome, ...], found: tuple[Finding, ...], sure: bool
) -> None:
    """A change between releases, or a failure for all random numbers, gets less confidence."""
    again = [observe(version, outcome, attempt=2) for version, outcome in zip(ORDER, outcomes, strict=True)]
    doubted = judge(evidence(outcomes, *again, findings=found, plan=SOMETIMES))
    assert (doubted.confidence == judge(evidence(outcomes, *again, findings=found)).confidence) is sure


@pytest.mark.parametrize(
    ("cause", "conditions", "said"),
    [
        ("hashes", {"hash_seed": 3}, "with hash seed 0, it fails; with hash seed 3, it runs cleanly"),
        (
            "memory",
            {"fill": 0x55},
            "with new memory as usual, it fails; with new memory filled with 0xaa, it runs cleanly",
        ),
        ("threads", {"threads": 1}, "with the usual threads, it fails; with 1 thread, it runs cleanly"),
        ("randomness", {}, ""),
    ],
)
def test_flaky_states_the_deciding_condition_and_the_rate(cause: str, conditions: dict[str, int], said: str) -> None:
    """With the failing and the passing values. Unseeded random numbers are attributed to the testcase."""
    clean = under(observe("1.3", P, attempt=2), **conditions)
    verdict = judge(evidence((M, M, M, M), clean, findings=(differing(cause),)))
    assert verdict.kind is VerdictKind.FLAKY
    assert "it fails in 1 of 2 runs" in verdict.headline
    assert "interval" not in verdict.headline
    assert not said or said in verdict.reasons
    assert ("that the testcase draws" in verdict.headline) is (cause == "randomness")
    assert verdict.confidence > judge(evidence((M, M, M, M), clean)).confidence


@pytest.mark.parametrize(
    ("cause", "conditions"), [("hashes", {"hash_seed": 3}), ("memory", {"fill": 0x55}), ("threads", {"threads": 1})]
)
def test_releases_are_compared_under_the_condition_that_decides(cause: str, conditions: dict[str, int]) -> None:
    """The newest release always fails under the usual one, and the release before never, under both: a regression."""
    found = (differing(cause),)
    runs = [observe("1.3", M, attempt=2), under(observe("1.3", P, attempt=3), **conditions)]
    older = under(observe("1.2", P, attempt=2), **conditions)
    verdict = judge(evidence((P, P, P, M), *runs, older, findings=found))
    assert verdict.kind is VerdictKind.REGRESSION
    assert Ground.DEPENDS_ON_CONDITION in verdict.grounds
    assert "1.2 runs cleanly under the same conditions; 1.3" in verdict.headline
    assert any("it fails; with" in reason for reason in verdict.reasons)
    untested = evidence((P, P, P, M), *runs, findings=found)
    unsteady = evidence((P, P, P, M), *runs, older, observe("1.3", P, attempt=4), findings=found)
    failing = evidence((P, P, M, M), *runs, observe("1.2", M, attempt=2), findings=found)
    unknown = evidence((P, P, P, M), *runs, older)
    said = evidence((P, P, P, M), *runs, older, findings=found, plan=SOMETIMES)
    for other in (untested, unsteady, failing, unknown, said):
        assert judge(other).kind is VerdictKind.FLAKY


def test_values_that_overlap_decide_nothing() -> None:
    """The reason does not repeat a finding that the runs do not confirm."""
    more = [observe("1.3", P, attempt=2), observe("1.3", M, attempt=3)]
    verdict = judge(evidence((M, M, M, M), *more, findings=(differing("hashes"),)))
    assert not any("hash seed 0" in reason for reason in verdict.reasons)


def test_flaky_prefers_the_build_whose_cause_is_known() -> None:
    """Runs of two builds disagree, and the cause is known for the older: the headline is about the older build."""
    more = [observe("1.2", P, attempt=2), observe("1.3", P, attempt=2)]
    verdict = judge(evidence((M, M, M, M), *more, findings=(differing("memory", "1.2"),)))
    assert "on 1.2" in verdict.headline


def test_a_failure_seen_often_states_its_rate() -> None:
    """Five of five runs are compatible with a rate of 57 %, and the reason says so."""
    again = [observe("1.3", M, attempt=attempt) for attempt in range(2, 6)]
    verdict = judge(evidence((M, M, M, M), *again))
    assert "on 1.3 it fails in 5 of 5 runs (95 % interval 57 to 100 %)" in verdict.reasons


def test_a_finding_alone_is_no_verdict() -> None:
    """The guest wrote the finding: without a failure that the host observed, it has no effect."""
    finding = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="index 17 of 12")
    assert judge(evidence((P, P, P, P), findings=(finding,))).kind is VerdictKind.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (ControlEnd.FAILURE_GONE.value, "made the new way runs cleanly"),
        (ControlEnd.NOT_CLEAN.value, "the fault was seen in a rerun"),
        ("merge it", "the fault was seen in a rerun"),
        (None, "the fault was seen in a rerun"),
    ],
)
def test_the_reason_for_a_fault_names_only_runs_that_happened(end: str | None, said: str) -> None:
    """A control is named as a reason only where it ran cleanly, and as the control that it was."""
    shown = {"call_that_works": "f(x)"} | ({} if end is None else {"control_end": end})
    finding = Finding(kind=FindingKind.SIGNATURE_CHANGED, summary="the old way", evidence=shown)
    verdict = judge(evidence((M, M, M, M), findings=(finding,)))
    assert verdict.kind is VerdictKind.INVALID_REPRO
    assert said in verdict.reasons[0]


def test_a_finding_that_blames_a_pass_is_no_fault_of_the_repro() -> None:
    """A pass that mutates its input is the compiler's bug."""
    finding = Finding(kind=FindingKind.INPUT_MUTATED, summary="RealizeDevice")
    assert judge(evidence((M, M, M, M), findings=(finding,))).kind is VerdictKind.CONFIRMED


def test_a_ported_run_decides_only_where_the_original_cannot() -> None:
    """Ported evidence is named as such in the headline."""
    ported_bad = observe("1.3", M, variant=Variant.PORTED)
    verdict = judge(evidence((I, I, I, I), ported_bad))
    assert verdict.kind is VerdictKind.CONFIRMED
    assert "port" in verdict.headline
    verdict = judge(evidence((M, M, I, I), observe("1.3", P, variant=Variant.PORTED)))
    assert verdict.kind is VerdictKind.FIXED
    assert "port" in verdict.headline


def crash(version: str, signal: str, line: int, outcome: Outcome, **kept: object) -> Observation:
    frames = f'  File "/lib/tvm/x.py", line 3 in f\n  File "{WORK}/r.py", line {line} in <module>\n'
    stack = f"Current thread 0x7f (most recent call first):\n{frames}"
    return observe(
        version,
        outcome,
        signature=Signature(type=signal),
        excerpt=f"Fatal Python error\n\n{stack}\nExtension",
        **kept,
    )


@pytest.mark.parametrize(
    ("line", "variant", "kind"),
    [
        (8, Variant.PORTED, VerdictKind.CONFIRMED),
        (9, Variant.PORTED, VerdictKind.CONFIRMED),
        (8, Variant.ORIGINAL, VerdictKind.CONFIRMED),
        (5, Variant.PORTED, VerdictKind.INCONCLUSIVE),
        (30, Variant.PORTED, VerdictKind.INCONCLUSIVE),
        (30, Variant.ORIGINAL, VerdictKind.INCONCLUSIVE),
    ],
)
def test_a_crash_in_the_same_statement_is_the_reported_one_whatever_the_signal(
    line: int, variant: Variant, kind: VerdictKind
) -> None:
    """A bad access to memory may end by another signal. A crash elsewhere is another crash."""
    testcase = msgspec.structs.replace(PLAN.testcase, files={"r.py": "\n" * 40})
    claim = Claim(kind=ClaimKind.CRASH, signature=Signature(type="SIGSEGV"))
    plan = msgspec.structs.replace(PLAN, claim=claim, testcase=testcase)
    runs = [crash(version, "SIGSEGV", 8, M, attempt=attempt) for version in ORDER[:2] for attempt in (1, 2)]
    posted = () if variant is Variant.ORIGINAL else (observe(ORDER[-1], I),)
    last = crash(ORDER[-1], "SIGILL", line, S, variant=variant)
    verdict = judge(evidence((None, None, I, None), *runs, *posted, last, plan=plan))
    assert verdict.kind is kind
    assert ("same statement" in verdict.headline) == (kind is VerdictKind.CONFIRMED)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("TypeError: cosine of an integer tensor", VerdictKind.INCONCLUSIVE),
        ("InternalError: Check failed: a < b", VerdictKind.INCONCLUSIVE),
        ("TypeError: f() got an unexpected keyword argument 'x'", VerdictKind.UNTESTABLE),
        ("TypeError: Mismatched type on argument #0 when calling: `f`", VerdictKind.UNTESTABLE),
        ("AttributeError: 'Call' object has no attribute 'x'", VerdictKind.UNTESTABLE),
    ],
)
@pytest.mark.parametrize("posted", [(I, I, I, I), (M, M, I, I)])
def test_a_port_that_ends_with_an_error_of_the_compiler_is_no_lack_of_a_build(
    posted: tuple[Outcome, ...], said: str, kind: VerdictKind
) -> None:
    """It may be the answer that the report asks for. An error about the port itself says nothing."""
    end = Signature(type=said.partition(": ")[0], message=said.partition(": ")[2])
    ported = observe("1.3", S, variant=Variant.PORTED, signature=end)
    verdict = judge(evidence(posted, ported))
    assert verdict.kind is kind or posted[0] is M
    assert verdict.kind is not VerdictKind.UNTESTABLE or kind is VerdictKind.UNTESTABLE
    assert (said.partition(": ")[2][:20] in verdict.headline) == (kind is VerdictKind.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("with_data", "kind"),
    [
        ((M, M), VerdictKind.CONFIRMED),
        ((M, P), VerdictKind.FIXED),
        ((P, P), VerdictKind.INCONCLUSIVE),
        ((M, S), VerdictKind.INCONCLUSIVE),
        ((P, M), VerdictKind.CONFIRMED),
    ],
)
def test_runs_with_generated_data_decide_only_if_they_fail_as_reported(
    with_data: tuple[Outcome, Outcome], kind: VerdictKind
) -> None:
    """A clean run may owe itself to the generated values. The missing data is named."""
    made = {"variant": Variant.PORTED, "changes": ("dense_resource<w> → generated data",)}
    runs = [
        observe(version, outcome, attempt=attempt, **made)
        for version, outcome in zip((ORDER[0], ORDER[-1]), with_data, strict=True)
        for attempt in (1, 2)
    ]
    verdict = judge(evidence((S, S, S, S), *runs))
    assert verdict.kind is kind
    assert "`dense_resource<w>`" in verdict.headline


def test_a_report_without_a_failure_to_look_for_is_never_not_reproduced() -> None:
    """Without a claimed failure, a clean run refutes no claim."""
    plan = msgspec.structs.replace(PLAN, claim=Claim())
    assert judge(evidence((P, P, P, P), plan=plan)).kind is VerdictKind.INCONCLUSIVE


def test_an_issue_without_all_its_parts_is_not_run() -> None:
    """The verdict names the missing parts."""
    nothing = NoRepro(reason="no code", claim=Claim(), toolchain=None)
    partial = NoRepro(
        reason="no file", claim=Claim(), toolchain="iree", missing=(Missing(kind="file", name="m.mlir"),)
    )
    output_only = NoRepro(
        reason="output only", claim=Claim(), toolchain="tvm", missing=(Missing(kind="code", name="the program"),)
    )
    without, incomplete = judge_without_running(nothing), judge_without_running(partial)
    assert without is not None
    assert incomplete is not None
    told = judge_without_running(output_only)
    assert told is not None
    assert told.kind is VerdictKind.NO_REPRO
    assert (without.kind, incomplete.kind) == (VerdictKind.NO_REPRO, VerdictKind.INCOMPLETE)


def test_a_wrong_value_that_no_pass_causes_gives_no_verdict() -> None:
    """Every release shows it without any single pass: only the report says that the value is wrong."""
    none = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "none", "version": "1.3"})
    llvm = msgspec.structs.replace(none, evidence={"name": "none", "level": "llvm"})
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    seen = ((M, M, M, M), observe("1.3", M, attempt=2))
    doubted = judge(evidence(seen[0], seen[1], plan=wrong, findings=(none,)))
    assert (doubted.kind, doubted.leaning) == (VerdictKind.INCONCLUSIVE, VerdictKind.CONFIRMED)
    assert "only the report says" in " ".join(doubted.reasons)
    assert judge(evidence(seen[0], seen[1], plan=PLAN, findings=(none,))).kind is VerdictKind.CONFIRMED
    below = judge(evidence(seen[0], seen[1], plan=wrong, findings=(llvm,)))
    assert (below.kind, below.leaning) == (VerdictKind.INCONCLUSIVE, VerdictKind.CONFIRMED)
    assert "only the report, or its own testcase, says which value is right" in below.headline


@pytest.mark.parametrize(
    "finding",
    [
        Finding(kind=FindingKind.DEVICE_SPECIFIC, summary="s", evidence={"device": "vmvx"}),
        Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "FuseOps", "version": "1.3"}),
    ],
    ids=["another device", "a pass"],
)
def test_a_second_computation_of_a_wrong_value_supports_the_report(finding: Finding) -> None:
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    told = judge(evidence((M, M, M, M), plan=wrong, findings=(finding,)))
    assert told.kind is VerdictKind.CONFIRMED
    alone = judge(evidence((M, M, M, M), plan=wrong))
    assert (alone.kind, alone.leaning) == (VerdictKind.INCONCLUSIVE, VerdictKind.CONFIRMED)


def test_a_crash_needs_no_support() -> None:
    """Whatever a testcase asks, no compiler may end by a signal."""
    crash = Signature(type="SIGSEGV", message="", frames=("lower",))
    claim = Claim(kind=ClaimKind.CRASH, signature=crash, versions=("1.1",))
    seen = tuple(observe(version, M, signature=crash) for version in ORDER)
    crashed = judge(Evidence(plan=msgspec.structs.replace(PLAN, claim=claim), observations=seen, findings=()))
    assert crashed.kind is VerdictKind.CONFIRMED
    assert crashed.confidence > judge(evidence((M, M, M, M))).confidence


def test_a_quoted_error_decides_although_the_reported_release_runs_cleanly() -> None:
    """Its author had another build, or the text names a clean release. The confidence is lower."""

    def name(version: str) -> Plan:
        return msgspec.structs.replace(
            PLAN, claim=msgspec.structs.replace(CLAIM, versions=(version,)), reported=version
        )

    verdict = judge(evidence((M, M, P, P), plan=name("1.3")))
    assert (verdict.kind, Ground.OWN_BUILD_CLEAN in verdict.grounds) == (VerdictKind.FIXED, True)
    assert judge(evidence((M, P, M, M), plan=name("1.1"))).kind is VerdictKind.INCONCLUSIVE


def test_a_failing_release_that_the_report_names_beside_an_older_clean_one_is_no_contradiction() -> None:
    """``| 1.1 | [1 2] |``, ``| 1.3 | does not compile |``: the first release named is the clean one."""
    named = msgspec.structs.replace(
        PLAN, claim=msgspec.structs.replace(CLAIM, versions=("1.1", "1.3")), reported="1.1"
    )
    assert judge(evidence((P, P, M, M), plan=named)).kind is VerdictKind.REGRESSION
    assert judge(evidence((M, P, M, M), plan=named)).kind is VerdictKind.INCONCLUSIVE


def vote(says: str) -> Finding:
    return Finding(
        kind=FindingKind.REFERENCE, summary="s", evidence={"name": "NumPy", "vote": says, "version": "1.3"}
    )


def test_a_reference_that_differs_confirms_a_wrong_value() -> None:
    """No pass causes the value, and NumPy computes another one. An error has no value, so a vote changes nothing."""
    none = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "none", "version": "1.3"})
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    twice = observe("1.3", M, attempt=2)
    verdict = judge(evidence((M, M, M, M), twice, plan=wrong, findings=(none, vote("differs"))))
    assert verdict.kind is VerdictKind.CONFIRMED
    assert [(one.wrong, one.version) for one in verdict.votes] == [(True, "1.3")]
    assert "NumPy" in " ".join(verdict.reasons)
    told = judge(evidence((M, M, M, M), twice, findings=(vote("agrees"),)))
    assert (told.kind, told.votes) == (VerdictKind.CONFIRMED, ())


def test_an_error_that_the_report_asks_for_ends_the_failure() -> None:
    """Any error will do in the place of a crash, if the report says so; else the error must have the named type."""
    said = Signature(type="ValueError", message="not equal at <root>")

    def judge_claim(kind: ClaimKind, *wished: str) -> VerdictKind:
        plan = msgspec.structs.replace(PLAN, claim=Claim(kind=kind, wished=wished))
        return judge(evidence((P, M, M, None), refused("1.3", said), plan=plan)).kind

    assert judge_claim(ClaimKind.CRASH, "ValueError") is VerdictKind.FIXED
    assert judge_claim(ClaimKind.CRASH, ANY_ERROR) is VerdictKind.FIXED
    assert judge_claim(ClaimKind.WRONG_RESULT, "ValueError") is VerdictKind.FIXED
    assert judge_claim(ClaimKind.WRONG_RESULT, ANY_ERROR) is VerdictKind.INCONCLUSIVE
    assert judge_claim(ClaimKind.CRASH, "TypeError") is VerdictKind.INCONCLUSIVE
    assert judge_claim(ClaimKind.CRASH) is VerdictKind.INCONCLUSIVE
    assert judge_claim(ClaimKind.ERROR, "ValueError") is VerdictKind.FIXED  # it met an error of another type
    assert judge_claim(ClaimKind.ERROR, ANY_ERROR) is VerdictKind.INCONCLUSIVE


def test_an_error_that_the_report_provokes_decides_nothing() -> None:
    meant = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, intended=True))
    assert judge(evidence((M, M, M, M), plan=meant)).kind is VerdictKind.INCONCLUSIVE
    assert judge(evidence((M, M, M, M))).kind is VerdictKind.CONFIRMED


@pytest.mark.parametrize(
    ("outcomes", "exact", "kind"),
    [
        ((M, M, M, M), True, VerdictKind.INVALID_REPRO),
        ((M, M, M, M), False, VerdictKind.INCONCLUSIVE),
        ((P, P, M, M), True, VerdictKind.INCONCLUSIVE),
    ],
)
def test_a_value_of_every_release_that_is_right_by_definition_is_a_wrong_expectation(
    outcomes: tuple[Outcome, ...], exact: bool, kind: VerdictKind
) -> None:
    """To each printed digit, and on every release; otherwise the reference only withholds the verdict."""
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    known = {"name": "definition", "vote": "agrees", "version": "1.3", "exact": exact}
    right = Finding(kind=FindingKind.REFERENCE, summary="s", evidence=known)
    verdict = judge(evidence(outcomes, plan=wrong, findings=(right,)))
    assert verdict.kind is kind
    assert [one.wrong for one in verdict.votes if "definitions" in one.reference] == [False]


@pytest.mark.parametrize(
    ("actual", "kind"), [("-0 1", VerdictKind.INCONCLUSIVE), ("x-0 1", VerdictKind.INVALID_REPRO)]
)
def test_a_reported_negative_zero_is_not_what_a_definition_gives(actual: str, kind: VerdictKind) -> None:
    """Runs are compared as numbers: a run that prints 0 counts as showing the -0."""
    claim = msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT, actual=actual)
    known = {"name": "definition", "vote": "agrees", "version": "1.3", "exact": True}
    right = Finding(kind=FindingKind.REFERENCE, summary="s", evidence=known)
    plan = msgspec.structs.replace(PLAN, claim=claim)
    assert judge(evidence((M, M, M, M), plan=plan, findings=(right,))).kind is kind


@pytest.mark.parametrize(
    ("accused", "kind"), [(("ceildiv",), VerdictKind.INCONCLUSIVE), (("floordiv",), VerdictKind.INVALID_REPRO)]
)
def test_a_vote_on_a_program_that_the_accused_function_wrote_is_none(
    accused: tuple[str, ...], kind: VerdictKind
) -> None:
    """The function may have written other operations than its name says, and the vote is on what it wrote."""
    claim = msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT, accused=accused)
    known = {"name": "definition", "vote": "agrees", "version": "1.3", "exact": True, "written by": ["ceildiv"]}
    right = Finding(kind=FindingKind.REFERENCE, summary="s", evidence=known)
    verdict = judge(evidence((M, M, M, M), plan=msgspec.structs.replace(PLAN, claim=claim), findings=(right,)))
    assert verdict.kind is kind
    assert any("definitions" in one.reference for one in verdict.votes) is (kind is VerdictKind.INVALID_REPRO)


@pytest.mark.parametrize(
    ("outcomes", "version"), [((M, M, M, M), "1.3"), ((P, P, M, M), "1.3"), ((M, M, P, P), "1.1")]
)
def test_one_dissent_withholds_any_verdict_on_a_wrong_value(outcomes: tuple[Outcome, ...], version: str) -> None:
    """NumPy computes what the failing build returns, whatever the other releases and passes say."""
    wrong = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT))
    guilty = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "FuseOps", "version": "1.3"})
    clear = judge(evidence(outcomes, plan=wrong, findings=(guilty,)))
    agrees = vote("agrees")
    agrees = msgspec.structs.replace(agrees, evidence={**agrees.evidence, "version": version})
    doubted = judge(evidence(outcomes, plan=wrong, findings=(guilty, agrees)))
    assert (doubted.kind, doubted.leaning) == (VerdictKind.INCONCLUSIVE, clear.kind)
    assert clear.kind is not VerdictKind.INCONCLUSIVE
    assert {one.wrong for one in doubted.votes} == {True, False}


def test_a_crash_that_became_a_diagnostic_is_fixed() -> None:
    """As posted, or ported where the newest release lacks the API. An internal error is no diagnostic."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.CRASH))
    said = Signature(type="DiagnosticError", message="expected a tuple")
    again = observe("1.2", M, attempt=2)
    posted = judge(evidence((P, M, M, None), again, refused("1.3", said), plan=plan))
    ported = observe("1.3", S, variant=Variant.PORTED, signature=said)
    assert posted.kind is judge(evidence((P, M, M, I), again, ported, plan=plan)).kind is VerdictKind.FIXED
    assert "rejects the program with a diagnostic instead: `" in posted.headline
    internal = msgspec.structs.replace(said, type="InternalError")
    assert judge(evidence((P, M, M, None), refused("1.3", internal), plan=plan)).kind is VerdictKind.INCONCLUSIVE
    wrong = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT))
    assert judge(evidence((P, M, M, None), refused("1.3", said), plan=wrong)).kind is VerdictKind.INCONCLUSIVE


def test_a_newest_release_that_ends_well_is_not_said_to_fail() -> None:
    """The headline says what the table shows: the newest release runs to its end, and older ones do not."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT))
    older = observe("1.1", S, signature=Signature(type="ValueError", message="no"))
    verdict = judge(evidence((None, None, None, None), older, observe("1.3", S, ended=Exited(code=0)), plan=plan))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.headline.startswith("Inconclusive: it runs to its end")
    assert verdict.headline.endswith("On 1.1, it ends with ValueError.")


def test_a_similar_program_is_clean_only_beside_the_quoted_one() -> None:
    """A pass may print other operations today, and still the wrong ones."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT, actual="a"))
    newest = observe("1.3", P, reason=Reason.PRINTS_SIMILAR)
    older = observe("1.1", P, reason=Reason.PRINTS_SIMILAR)
    assert judge(evidence((None, None, None, None), older, newest, plan=plan)).kind is VerdictKind.INCONCLUSIVE
    assert judge(evidence((None, M, None, None), newest, plan=plan)).kind is VerdictKind.FIXED


def test_a_program_that_keeps_what_the_quoted_one_lost_is_not_as_reported() -> None:
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT, actual="a"))
    newest, older = (observe(one, P, reason=Reason.KEEPS_OPERATION, detail="util.align") for one in ("1.3", "1.1"))
    verdict = judge(evidence((None, None, None, None), older, newest, plan=plan))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert verdict.headline.endswith(" Its output keeps `util.align`, which the quoted program lacks.")
    assert Ground.OTHER_VALUES in verdict.grounds
    assert judge(evidence((None, M, None, None), newest, plan=plan)).kind is VerdictKind.FIXED
    words = f"a` **b**\n@everyone {'x' * 900}"
    hostile = observe("1.3", P, reason=Reason.KEEPS_OPERATION, detail=words)
    headline = judge(evidence((None, None, None, None), older, hostile, plan=plan)).headline
    assert len(headline) < 400
    assert headline.count("`") == 2
    hidden = judge(evidence((None, None, None, None), hostile, plan=plan)).headline
    assert "\n" not in hidden
    assert hidden.count("`") == 2


def test_a_name_that_newer_releases_do_not_know_is_no_regression() -> None:
    """It may have gone on purpose. A name that the testcase does not have is the compiler's own."""
    files = {"a.mlir": "func.func @f() {\n  linalg.add\n}\n"}
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, toolchain="iree", files=files),
        claim=Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="custom op")),
    )

    def judge_unknown(name: str) -> Verdict:
        unknown = Signature(type="mlir-error", message=f"custom op '{name}' is unknown")
        runs = (observe("1.3", M, signature=unknown, attempt=at) for at in (1, 2))
        return judge(evidence((None, P, P, None), observe("1.2", P, attempt=2), *runs, plan=plan))

    withheld = judge_unknown("linalg.add")
    assert (withheld.kind, withheld.leaning) == (VerdictKind.INCONCLUSIVE, VerdictKind.REGRESSION)
    assert "does not know `linalg.add`" in withheld.headline
    assert judge_unknown("util.inner").kind is VerdictKind.REGRESSION


def test_releases_that_print_another_program_are_named_where_the_report_quotes_none() -> None:
    """A pass prints the same program on each run of a build, so the change is a fact; which one is right is open."""
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": ""}, steps=(("iree-opt", "a.mlir"),)
    )
    claim = Claim(kind=ClaimKind.WRONG_RESULT)
    plan = msgspec.structs.replace(PLAN, testcase=testcase, claim=claim, reported=None)

    def observe_printed(version: str, operation: str) -> Observation:
        printed = f"func.func @f(%a: i32) -> i32 {{\n  %0 = {operation} %a, %a : i32\n  return %0 : i32\n}}"
        return observe(version, S, toolchain="iree", ended=Exited(code=0), excerpt=printed)

    runs = [observe_printed(version, "arith.muli" if version < "1.2" else "arith.addi") for version in ORDER]
    verdict = judge(Evidence(plan=plan, observations=tuple(runs), findings=()))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "1.2 and 1.3 print another program than 1.0 and 1.1" in verdict.headline
    same = judge(Evidence(plan=plan, observations=(runs[0], msgspec.structs.replace(runs[1])), findings=()))
    assert "another program" not in same.headline


def test_remarks_of_a_compiler_are_no_output_that_changed() -> None:
    """A report that quotes no failure may be about values, unless nothing is run."""
    steps = (("iree-compile", "a.mlir", "-o", "a.vmfb"), ("iree-run-module", "--module=a.vmfb"))
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree", steps=steps)
    plan = msgspec.structs.replace(PLAN, testcase=testcase, reported="1.2", claim=Claim(kind=ClaimKind.ERROR))
    runs = tuple(observe(version, P, excerpt=f"level {at}") for at, version in enumerate(("1.2", "1.3")))
    changed = judge(evidence((None, None, None, None), *runs, plan=plan))
    assert "prints something else" in changed.headline
    compiled = msgspec.structs.replace(plan, testcase=msgspec.structs.replace(testcase, steps=steps[:1]))
    assert "prints" not in judge(evidence((None, None, None, None), *runs, plan=compiled)).headline


def test_a_refused_notation_is_no_diagnostic_beside_its_port() -> None:
    """MLIR's syntax changed: what the ported text ends with says whether the crash is gone."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree")
    plan = msgspec.structs.replace(PLAN, testcase=testcase, claim=Claim(kind=ClaimKind.CRASH))
    syntax = Signature(type="mlir-error", message="custom op 'tosa.reduce_sum' expected 'axis'")
    said = Signature(type="mlir-error", message="failed to legalize operation 'tosa.reduce_sum'")
    again = observe("1.2", M, attempt=2)
    gone, stays = (
        judge(evidence((P, M, M, None), again, refused("1.3", syntax), ported, plan=plan))
        for ported in (
            observe("1.3", S, variant=Variant.PORTED, signature=said),
            observe("1.3", S, variant=Variant.PORTED, signature=Signature(type="SIGSEGV")),
        )
    )
    assert gone.kind is VerdictKind.FIXED
    assert "failed to legalize" in gone.headline
    assert stays.kind is not VerdictKind.FIXED


def test_what_only_forks_run_cleanly_is_not_testable() -> None:
    """No release has the API of the testcase, and a port that runs cleanly is an answer of a release."""
    forked = observe("1.0", P, fork="a fork at 123")
    moved = (None, I, I, I)
    verdict = judge(evidence(moved, forked))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert "It runs cleanly on fork 1.0" in verdict.headline
    assert judge(evidence(moved, observe("1.0", P))).kind is VerdictKind.INCONCLUSIVE
    ported = observe("1.3", P, variant=Variant.PORTED)
    assert judge(evidence(moved, forked, ported)).kind is not VerdictKind.UNTESTABLE


def test_what_fails_on_forks_only_is_not_testable() -> None:
    """The failure of a fork is shown, and decides nothing about releases that lack the API, as posted or ported."""
    fork = "a fork at 123"
    moved = (None, I, I, I)
    posted = judge(evidence(moved, observe("1.0", M, fork=fork)))
    ported = judge(evidence((I, I, I, I), observe("1.0", M, variant=Variant.PORTED, fork=fork)))
    assert posted.kind is ported.kind is VerdictKind.UNTESTABLE
    assert "its API has moved" in posted.headline
    assert "It fails as reported on fork 1.0" in posted.headline
    assert "Ported to their API, it fails as reported on fork 1.0" in ported.headline
    assert judge(evidence(moved, observe("1.0", M))).kind is VerdictKind.INCONCLUSIVE  # a release, not a fork
    assert judge(evidence((None, I, I, T), observe("1.0", M, fork=fork))).kind is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize(("fork", "kind"), [("", VerdictKind.REGRESSION), ("a fork at 1", VerdictKind.CONFIRMED)])
def test_a_port_that_fails_on_the_newest_release_counts_beside_early_builds_that_are_clean(
    fork: str, kind: VerdictKind
) -> None:
    """A fork tells little about a change between releases. A clean build after a failing one contradicts."""
    ported = [observe(version, M, variant=Variant.PORTED) for version in ("1.1", "1.3")]
    clean = observe("1.0", P, fork=fork)
    verdict = judge(evidence((None, I, I, I), clean, *ported))
    assert verdict.kind is kind
    assert "Ported to a newer API, it fails as reported" in verdict.headline
    between = evidence((None, I, P, I), clean, *ported)
    assert judge(between).kind is VerdictKind.INCONCLUSIVE


def test_a_failure_beside_clean_forks_alone_is_no_regression() -> None:
    """Three of three such answers were wrong: a fork lacks what the release has, or has what it lacks."""
    fork = observe("1.0", P, fork="a fork at 123")
    assert judge(evidence((None, M, M, M), fork)).kind is VerdictKind.CONFIRMED
    assert judge(evidence((P, M, M, M))).kind is VerdictKind.REGRESSION
    assert judge(evidence((None, P, M, M), fork)).kind is VerdictKind.REGRESSION


def test_a_clean_newest_release_in_todays_notation_is_said() -> None:
    refused = observe("1.3", S, signature=Signature(type="mlir-error", message="custom op 'a.b' is unknown"))
    ported = observe("1.3", P, variant=Variant.PORTED, notation_only=True)
    verdict = judge(evidence((M, M, P, None), refused, ported))
    assert verdict.kind is VerdictKind.FIXED
    assert "In today's notation, it runs cleanly on 1.3, the newest release, too." in verdict.headline


def test_a_check_of_the_testcase_tells_how_the_error_looks() -> None:
    """Such a report needs no quoted message, and another output of the newest release changes nothing."""
    claim = Claim(kind=ClaimKind.ERROR)
    runs = [observe(version, P, excerpt=version) for version in ("1.1", "1.3")]
    unquoted = msgspec.structs.replace(PLAN, claim=claim, reported="1.1")
    checked = msgspec.structs.replace(unquoted, checks_itself=True)
    assert judge(evidence((None,) * 4, *runs, plan=checked)).kind is VerdictKind.NOT_REPRODUCED
    assert judge(evidence((None,) * 4, *runs, plan=unquoted)).kind is VerdictKind.INCONCLUSIVE


def test_runs_that_disagree_on_forks_only_are_not_testable() -> None:
    """A fork's runs tell nothing about the releases, which lack the API."""
    drawn = [observe("1.0", outcome, fork="a fork at 123", attempt=at) for at, outcome in enumerate((M, M, P), 1)]
    verdict = judge(evidence((None, I, I, I), *drawn))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert "it fails in 2 of 3 runs" in verdict.headline


@pytest.mark.parametrize(
    ("outcomes", "type_", "kind"),
    [
        ((S, P, P, P), "InternalError", VerdictKind.INCONCLUSIVE),
        ((S, P, P, P), "ValueError", VerdictKind.NOT_REPRODUCED),
        ((P, S, P, P), "InternalError", VerdictKind.NOT_REPRODUCED),
        ((I, P, P, P), "InternalError", VerdictKind.NOT_REPRODUCED),
    ],
)
def test_the_reported_exception_before_all_clean_builds_is_no_clean_run(
    outcomes: Sequence[Outcome], type_: str, kind: VerdictKind
) -> None:
    """No build stands for the named version. The report may word the message, and a fix may follow."""
    plan = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(PLAN.claim, versions=("0.9.dev3",)))
    other = Signature(type=type_, message="another message")
    seen = [
        observe(version, outcome, signature=other if outcome is S else None)
        for version, outcome in zip(ORDER, outcomes, strict=True)
    ]
    verdict = judge(Evidence(plan=plan, observations=tuple(seen), findings=()))
    assert verdict.kind is kind
    assert ("1.0, the build before these, ends with" in verdict.headline) is (kind is VerdictKind.INCONCLUSIVE)


def test_what_a_port_shows_is_told_where_it_decides_nothing() -> None:
    """A ported run that fails otherwise, or prints values that nothing can be compared with, is evidence too."""
    ported = {"variant": Variant.PORTED, "fork": "a fork at 123"}
    fails = judge(evidence((I, I, I, I), observe("1.0", Outcome.OTHER_FAILURE, ended=Exited(code=1), **ported)))
    prints = judge(evidence((I, I, I, I), observe("1.0", Outcome.OTHER_FAILURE, ended=Exited(code=0), **ported)))
    assert fails.kind is prints.kind is VerdictKind.UNTESTABLE
    assert "Ported to a newer API, it fails otherwise than reported on fork 1.0." in fails.headline
    assert "it runs to its end on fork 1.0, and nothing shows whether its output is right" in prints.headline


@pytest.mark.parametrize(
    ("outcome", "kind"), [(M, VerdictKind.CONFIRMED), (P, VerdictKind.FIXED), (I, VerdictKind.UNTESTABLE)]
)
def test_a_port_decides_what_only_a_fork_runs_as_posted(outcome: Outcome, kind: VerdictKind) -> None:
    ported = observe("1.3", outcome, variant=Variant.PORTED)
    forked = [observe("1.0", M, attempt=attempt, fork="a fork at 123") for attempt in (1, 2)]
    assert judge(evidence((None, I, I, I), *forked, ported)).kind is kind


@pytest.mark.parametrize(
    ("older", "newest", "kind"),
    [
        (M, P, VerdictKind.FIXED),
        (M, M, VerdictKind.CONFIRMED),
        (M, S, VerdictKind.INCONCLUSIVE),
        (P, P, VerdictKind.NOT_REPRODUCED),
        (S, P, VerdictKind.UNTESTABLE),
    ],
)
def test_a_port_that_fails_as_reported_on_an_older_release_keeps_what_fails(
    older: Outcome, newest: Outcome, kind: VerdictKind
) -> None:
    """So its clean run on the newest release counts. A port that is clean on one build may have lost the failure."""
    runs = [observe("1.0", older, variant=Variant.PORTED), observe("1.3", newest, variant=Variant.PORTED)]
    assert judge(evidence((I, I, I, I), *runs)).kind is kind


def test_a_clean_ported_run_on_the_newest_completes_clean_runs_of_the_original() -> None:
    """Clean as posted on the reported release and ported on the newest: not reproduced; without the port, unsure."""
    claim = msgspec.structs.replace(CLAIM, versions=("1.2",))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported="1.2")
    verdict = judge(evidence((P, P, P, I), observe("1.3", P, variant=Variant.PORTED), plan=plan))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert "ported to the API of 1.3" in verdict.headline
    assert judge(evidence((P, P, P, I), plan=plan)).kind is VerdictKind.INCONCLUSIVE
    silent_there = evidence((P, P, I, I), observe("1.3", P, variant=Variant.PORTED), plan=plan)
    assert judge(silent_there).kind is VerdictKind.INCONCLUSIVE


def test_a_clean_run_on_the_reported_release_contradicts_the_match() -> None:
    """What is printed elsewhere is then not what the report is about: better no verdict than a reversed one."""
    printed = Signature(type="output", message="[1 2]")
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="[1 2]", signature=printed, versions=("v1.3",))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported="1.3")
    assert judge(evidence((M, M, P, P), plan=plan)).kind is VerdictKind.INCONCLUSIVE
    near = msgspec.structs.replace(plan, claim=msgspec.structs.replace(claim, versions=("1.3.dev7",)))
    assert judge(evidence((M, M, P, P), plan=near)).kind is VerdictKind.FIXED


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("InternalError", VerdictKind.DIFFERENT_FAILURE),
        ("ValueError", VerdictKind.INCONCLUSIVE),  # maybe of a part that was taken wrongly
    ],
)
def test_an_error_of_the_compiler_before_any_value_is_another_failure_than_a_wrong_value(
    type: str, kind: VerdictKind
) -> None:
    signature = Signature(type="output", message="0 0 0")
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="0 0 0", signature=signature, versions=("1.3",))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported="1.3")
    ended = Signature(type=type, message="power only applies to float")
    code = Exited(code=1)
    runs = tuple(observe(v, S, attempt=n, signature=ended, ended=code) for v in ORDER for n in (1, 2))
    assert judge(Evidence(plan=plan, observations=runs, findings=())).kind is kind


def test_a_clean_release_that_is_older_than_all_failing_ones_is_named_to_compare_with() -> None:
    """``with 1.1: 8, with a newer one: nan``. A report without a message may mean any failure."""
    claim = msgspec.structs.replace(CLAIM, versions=("1.1",))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported="1.1")
    assert judge(evidence((P, P, M, M), plan=plan)).kind is VerdictKind.REGRESSION
    assert judge(evidence((M, P, M, M), plan=plan)).kind is VerdictKind.INCONCLUSIVE
    vague = msgspec.structs.replace(claim, kind=ClaimKind.CRASH, signature=None)
    said = judge(evidence((P, P, M, M), plan=msgspec.structs.replace(plan, claim=vague)))
    assert said.kind is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((P, P, P, P), VerdictKind.INCOMPLETE),
        ((S, S, S, S), VerdictKind.INCOMPLETE),
        ((I, I, I, I), VerdictKind.INCOMPLETE),
        ((M, M, P, P), VerdictKind.FIXED),
        ((M, M, M, M), VerdictKind.CONFIRMED),
    ],
)
def test_a_command_that_breaks_off_is_decided_by_the_quoted_failure_alone(
    outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """A clean run, another failure and a refusal may come from the flags that are missing."""
    assert judge(replace(evidence(outcomes), gaps=Gaps(has_open_command=True))).kind is kind


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((P, P, P, P), VerdictKind.INCONCLUSIVE),
        ((S, S, S, S), VerdictKind.INCONCLUSIVE),
        ((M, M, P, P), VerdictKind.FIXED),
        ((M, M, M, M), VerdictKind.CONFIRMED),
    ],
)
def test_operations_in_a_function_of_our_own_are_decided_by_the_quoted_failure_alone(
    outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """A clean run and another failure may come from the function that was added."""
    assert judge(replace(evidence(outcomes), gaps=Gaps(is_wrapped=True))).kind is kind


def test_an_older_crash_is_not_the_crash_of_a_report_without_a_message() -> None:
    """The build closest to the report is clean, and one before it. A message would tell the two crashes apart."""
    vague = msgspec.structs.replace(CLAIM, signature=None, kind=ClaimKind.CRASH, versions=())
    plan = msgspec.structs.replace(PLAN, claim=vague, reported="1.3")
    verdict = judge(evidence((M, P, P, P), plan=plan))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "closest to the report" in verdict.headline
    quoted = msgspec.structs.replace(plan, claim=msgspec.structs.replace(CLAIM, versions=()))
    assert judge(evidence((M, P, P, P), plan=quoted)).kind is VerdictKind.FIXED
    neighbour = msgspec.structs.replace(plan, reported="1.1")
    assert "closest to the report" not in judge(evidence((M, P, P, P), plan=neighbour)).headline


def test_a_failure_that_the_report_does_not_quote_is_fixed_if_only_its_build_fails() -> None:
    """Nothing tells the reported failure from the observed one. Where all fail, the testcase may be broken."""
    claim = msgspec.structs.replace(CLAIM, signature=None, kind=ClaimKind.ERROR, versions=("1.1",))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported="1.1")
    fixed = judge(evidence((S, S, P, P), plan=plan))
    assert fixed.kind is VerdictKind.FIXED
    assert fixed.confidence < judge(evidence((M, M, P, P), observe("1.1", M, attempt=2), plan=PLAN)).confidence
    assert judge(evidence((S, S, S, S), plan=plan)).kind is VerdictKind.INCONCLUSIVE
    assert judge(evidence((S, P, P, P), plan=plan)).kind is not VerdictKind.FIXED
    quoted = msgspec.structs.replace(plan, claim=msgspec.structs.replace(CLAIM, versions=("1.1",)))
    assert judge(evidence((S, S, P, P), plan=quoted)).kind is not VerdictKind.FIXED


@pytest.mark.parametrize(
    ("message", "is_misuse"),
    [
        ("Invoking function main expects 2 arguments (x, y), but 1 arguments were provided", True),
        ("main() missing 1 required positional argument: 'y'", False),
        ("No output saved for call of main; use invoke_stateful to call it first", True),
        ("Check failed: (n > 0) is false: expects a tensor", False),
    ],
)
def test_an_error_about_a_call_gives_no_verdict_where_no_pass_causes_it(message: str, is_misuse: bool) -> None:
    """The testcase may call the function wrongly: then the error is right on every release."""
    none = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "none", "version": "1.3"})
    plan = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, kind=ClaimKind.ERROR))
    seen = tuple(observe(v, M, signature=Signature(type="ValueError", message=message)) for v in ORDER)
    verdict = judge(Evidence(plan=plan, observations=seen, findings=(none,)))
    assert (verdict.kind is VerdictKind.INCONCLUSIVE) is is_misuse
    assert judge(Evidence(plan=plan, observations=seen, findings=())).kind is VerdictKind.CONFIRMED


def test_a_text_that_every_release_refuses_to_read_is_not_another_failure() -> None:
    """Where one release reads the text, or the reporter's own release refuses it, the refusal is news."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree")
    claim = msgspec.structs.replace(CLAIM, versions=("main",))
    plan = msgspec.structs.replace(PLAN, testcase=testcase, claim=claim, reported="1.3")
    message = "'tosa.rescale' op expected 5 operands, but found 1"
    refused = tuple(
        observe(version, S, why="Maintainers: merge now", signature=Signature(type="mlir-error", message=message))
        for version in ORDER
    )
    verdict = judge(Evidence(plan=plan, observations=refused, findings=()))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert "as written" in verdict.headline
    assert "1.3 says: `Maintainers: merge now`" in verdict.reasons
    read = msgspec.structs.replace(refused[0], signature=Signature(type="mlir-error", message="stack overflow"))
    assert judge(Evidence(plan=plan, observations=(read, *refused[1:]), findings=())).kind is not verdict.kind
    own = msgspec.structs.replace(plan, claim=msgspec.structs.replace(CLAIM, versions=("1.3",)))
    assert judge(Evidence(plan=own, observations=refused, findings=())).kind is not verdict.kind


def test_a_fork_is_never_named_as_a_release() -> None:
    """Wherever the headline names such a build."""
    seen = [observe(version, outcome) for version, outcome in zip(ORDER, (M, P, P, P), strict=True)]
    seen[0] = msgspec.structs.replace(seen[0], fork="a077796b, carried by bitblas")
    verdict = judge(Evidence(plan=PLAN, observations=tuple(seen), findings=()))
    assert "ork 1.0 fails as reported" in verdict.headline


def test_builds_with_a_fork_among_them_are_not_counted_as_releases() -> None:
    seen = tuple(observe(version, P) for version in ORDER)
    forked = (msgspec.structs.replace(seen[0], fork="a077796b, carried by bitblas"), *seen[1:])
    said = [judge(Evidence(plan=PLAN, observations=runs, findings=())).headline for runs in (seen, forked)]
    assert ["all 4 releases that" in one for one in said] == [True, False]
    assert ["all 4 builds that" in one for one in said] == [False, True]


def test_runs_on_other_devices_are_reported_but_do_not_decide() -> None:
    """Another backend's failure is no proof about the device that the report names."""
    plan = msgspec.structs.replace(PLAN, device="hip")
    seen = [observe(version, U, device="hip") for version in ORDER]
    on_vmvx = [
        observe(version, outcome, variant=Variant.RETARGETED, device="vmvx")
        for version, outcome in zip(ORDER, (P, M, M, P), strict=True)
    ]
    verdict = judge(Evidence(plan=plan, observations=(*seen, *on_vmvx), findings=()))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert "vmvx, it fails as reported on 1.1 and 1.2 and runs cleanly on 1.0 and 1.3" in verdict.headline


OUTCOMES = st.tuples(*[st.sampled_from([M, P, S, I, U, T, Outcome.INFRA, Outcome.OUT_OF_MEMORY, None])] * 4)


@given(outcomes=OUTCOMES, seed=st.integers(0, 1000))
def test_the_order_of_observations_is_irrelevant(outcomes: tuple[Outcome | None, ...], seed: int) -> None:
    """Cells end in any order."""
    whole = evidence(outcomes)
    shuffled = list(whole.observations)
    random.Random(seed).shuffle(shuffled)
    other = Evidence(plan=PLAN, observations=tuple(shuffled), findings=())
    assert judge(other).kind is judge(whole).kind


@given(outcomes=OUTCOMES, at=st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_repeated_observation_counts_once(outcomes: tuple[Outcome | None, ...], at: list[int]) -> None:
    """A result that arrives twice does not change the verdict or its confidence."""
    whole = evidence(outcomes)
    again = [whole.observations[place] for place in at if place < len(whole.observations)]
    once, twice = judge(whole), judge(Evidence(plan=PLAN, observations=(*whole.observations, *again), findings=()))
    assert (twice.kind, twice.confidence, twice.headline) == (once.kind, once.confidence, once.headline)


@given(outcomes=OUTCOMES, at=st.integers(0, 3))
def test_contradicting_runs_never_give_high_confidence(outcomes: tuple[Outcome | None, ...], at: int) -> None:
    """One build, good once and bad once: every verdict has less than high confidence."""
    both = (observe(ORDER[at], M, attempt=2), observe(ORDER[at], P, attempt=3))
    verdict = judge(evidence(outcomes, *both))
    assert verdict.kind in {VerdictKind.FLAKY, VerdictKind.INCONCLUSIVE} or verdict.confidence < 0.9


DIRECTED = {VerdictKind.FIXED, VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.NOT_REPRODUCED}


@given(outcomes=OUTCOMES, skip=st.sampled_from([T, Outcome.INFRA, U, Outcome.OUT_OF_MEMORY]), at=st.integers(0, 3))
def test_one_more_skip_never_reverses_a_verdict(outcomes: tuple[Outcome | None, ...], skip: Outcome, at: int) -> None:
    """A skipped build may lower the confidence and never leads to the opposite verdict."""
    before = judge(evidence(outcomes)).kind
    after = judge(evidence(outcomes, observe(ORDER[at], skip, attempt=2))).kind
    if before in DIRECTED and after in DIRECTED:
        assert after is before


@given(outcomes=OUTCOMES)
def test_a_verdict_about_the_bug_rests_on_observations_of_it(outcomes: tuple[Outcome | None, ...]) -> None:
    """No bad run, no confirmation; no good run, no fix."""
    verdict = judge(evidence(outcomes))
    if verdict.kind in {VerdictKind.CONFIRMED, VerdictKind.REGRESSION, VerdictKind.FIXED}:
        assert M in outcomes
    if verdict.kind in {VerdictKind.FIXED, VerdictKind.REGRESSION, VerdictKind.NOT_REPRODUCED}:
        assert P in outcomes
    assert 0.0 <= verdict.confidence <= 1.0


def without_device(version: str, reason: Reason, device: str = "hip") -> Observation:
    return observe(version, U, device=device, reason=reason)


def on_hip(*steps: tuple[str, ...]) -> Plan:
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": ""}, steps=steps)
    return msgspec.structs.replace(PLAN, testcase=testcase, device="hip")


def test_a_testcase_that_only_compiles_here_names_the_missing_device() -> None:
    """The chip comes from the flags, so that a maintainer with that card can run the testcase."""
    plan = on_hip(("iree-compile", "--iree-hip-target=gfx942", "a.mlir"), ("iree-run-module", "--device=hip"))
    runs = [without_device(version, Reason.COMPILES_WITHOUT_DEVICE) for version in ORDER]
    verdict = judge(evidence((None,) * 4, *runs, plan=plan))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert verdict.headline.startswith("The testcase compiles on all 4 releases that were run, 1.0 to 1.3;")
    assert "an AMD GPU and its driver (gfx942), which this machine does not have" in verdict.headline


def test_an_unavailable_build_is_not_a_missing_device() -> None:
    """The verdict requests hardware only if the compiler's output says that the hardware is missing."""
    runs = [without_device(version, Reason.NOT_RUN) for version in ORDER]
    assert "needs" not in judge(evidence((None,) * 4, *runs, plan=on_hip(("iree-compile", "a.mlir")))).headline


def test_devices_that_did_the_same_are_named_together() -> None:
    """Three backends, one sentence."""
    runs = [without_device("1.3", Reason.NO_DEVICE)]
    for device in ("vmvx", "llvm-cpu", "vulkan"):
        seen = observe("1.2", M, variant=Variant.RETARGETED)
        runs.append(msgspec.structs.replace(seen, device=device))
    headline = judge(evidence((None,) * 4, *runs, plan=on_hip(("iree-compile", "a.mlir")))).headline
    assert "Changed to run on llvm-cpu, vmvx and vulkan, it fails as reported on 1.2." in headline


def control(version: str, outcome: Outcome, *changes: str) -> Observation:
    return observe(version, outcome, variant=Variant.CONTROL, changes=changes)


def test_a_failing_control_of_the_reporter_lowers_the_confidence() -> None:
    """The report rests on a difference that the runs do not show."""
    steady = judge(evidence((P, M, M, M)))
    borne_out = judge(evidence((P, M, M, M), control("1.3", P, SAID_TO_WORK)))
    refuted = judge(evidence((P, M, M, M), control("1.3", M, SAID_TO_WORK)))
    assert borne_out.confidence == steady.confidence
    assert "the variant that the report calls working runs cleanly on 1.3" in borne_out.reasons
    assert refuted.confidence < steady.confidence
    assert "the variant that the report calls working fails in the same way on 1.3" in refuted.reasons


def test_our_own_controls_are_not_the_reporters() -> None:
    """A diagnosis changes the testcase on purpose, so its runs do not replace the reporter's control."""
    plain, ours = judge(evidence((P, M, M, M))), judge(evidence((P, M, M, M), control("1.3", M)))
    assert (ours.kind, ours.confidence, ours.reasons) == (plain.kind, plain.confidence, plain.reasons)


def refused(version: str, signature: Signature) -> Observation:
    return observe(version, S, signature=signature)


@pytest.mark.parametrize("kind", [ClaimKind.WRONG_RESULT, ClaimKind.CRASH])
def test_a_newest_release_that_rejects_the_program_is_neither_fixed_nor_confirmed(kind: ClaimKind) -> None:
    """The newest release rejects the program that others miscompile: the verdict quotes its message."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=kind))
    said = Signature(type="ValueError", message="axis 3 is out of range")
    verdict = judge(evidence((P, M, M, None), refused("1.3", said), plan=plan))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "1.3, the newest release, rejects it instead: `ValueError: axis 3 is out of range`" in verdict.headline


def test_a_crash_is_not_a_rejection() -> None:
    """Another failure that is no diagnostic stays what it is."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT))
    crash = Signature(type="SIGSEGV", message="at an address")
    assert "refuses" not in judge(evidence((P, M, M, None), refused("1.3", crash), plan=plan)).headline


CALLS = ("tvm.topi.power", "tvm.relax.block_builder.call_te", "tvm.relax.vm_build.build")
WORDS = Signature(
    type="InternalError", message="Check failed: (x.is_float()) is false: only for floats", frames=CALLS
)


def says(version: str, outcome: Outcome, signature: Signature, variant: Variant = Variant.ORIGINAL) -> Observation:
    return observe(version, outcome, variant=variant, signature=signature)


def reworded(
    message: str, frames: tuple[str, ...] = CALLS, variant: Variant = Variant.ORIGINAL, **plan: object
) -> Evidence:
    known = [says(version, M, WORDS) for version in ORDER[:3]]
    newest = says("1.3", S, Signature(type="InternalError", message=message, frames=frames), variant)
    gone = [observe("1.3", I)] if variant is Variant.PORTED else []
    changed = msgspec.structs.replace(PLAN, **plan)
    return Evidence(plan=changed, observations=(*known, *gone, newest), findings=())


@pytest.mark.parametrize("variant", [Variant.ORIGINAL, Variant.PORTED])
def test_a_reworded_error_is_the_same_error(variant: Variant) -> None:
    """Same type, same calls, half of the words: confirmed with less than high confidence."""
    verdict = judge(reworded("Check failed: (IsFloat(x)) is false: only for floats", variant=variant))
    assert verdict.kind is VerdictKind.CONFIRMED
    assert verdict.confidence < 0.9
    assert "another message" in verdict.headline


@pytest.mark.parametrize(("site", "kind"), [("Lower", VerdictKind.CONFIRMED), ("", VerdictKind.INCONCLUSIVE)])
def test_the_native_function_that_raises_counts_as_a_frame(site: str, kind: VerdictKind) -> None:
    """Two frames of Python alone lead to many errors. With the same raising function, they lead to one."""
    evidence = reworded("Check failed: (IsFloat(x)) is false: only for floats")
    seen = [
        msgspec.structs.replace(
            one, signature=msgspec.structs.replace(one.signature, frames=one.signature.frames[:2], site=site)
        )
        for one in evidence.observations
        if one.signature is not None
    ]
    assert judge(Evidence(plan=evidence.plan, observations=tuple(seen), findings=())).kind is kind


@pytest.mark.parametrize(
    "seen",
    [
        reworded("the pool of buffers has no more room"),
        reworded("Check failed: (IsFloat(x)) is false: only for floats", frames=(*CALLS[:2], "tvm.other")),
        reworded("Check failed: (IsFloat(x)) is false: only for floats", frames=()),
        reworded("Check failed: (IsFloat(x)) is false: only for floats", claim=Claim(kind=ClaimKind.CRASH)),
    ],
)
def test_another_error_is_not_a_reworded_one(seen: Evidence) -> None:
    """Other words, other calls, no calls at all, or a report of no error."""
    assert judge(seen).kind is VerdictKind.INCONCLUSIVE


def diagnosed(place: str, said: str, stage: str = "run translation of source executable") -> Evidence:
    """The reported diagnostic on three releases, and another on the newest."""
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, toolchain="iree"),
        claim=Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message=LEGALIZE)),
    )
    printed = [(version, M, "4:8", LEGALIZE, "run translation of source executable") for version in ORDER[:3]]
    seen = [
        observe(
            version, outcome, toolchain="iree", signature=Signature(type="mlir-error", message=message),
            excerpt=f"a.mlir:{at}: error: {message}\na.mlir:1:1: error: failed to {ended}\n",
        )
        for version, outcome, at, message, ended in [*printed, ("1.3", S, place, said, stage)]
    ]  # fmt: skip
    return Evidence(plan=plan, observations=tuple(seen), findings=())


LEGALIZE = "failed to legalize operation 'vector.insert' that was explicitly marked illegal"
OF_ANOTHER = "failed to legalize operation 'vector.broadcast' that was explicitly marked illegal: %2 ="


def test_a_diagnostic_about_the_same_operation_in_the_same_stage_is_the_same_error() -> None:
    """The pass names what it made of the operation, which changes from release to release."""
    verdict = judge(diagnosed("4:8", OF_ANOTHER))
    assert verdict.kind is VerdictKind.CONFIRMED
    assert verdict.confidence < 0.9


@pytest.mark.parametrize(
    "seen",
    [
        diagnosed("7:8", OF_ANOTHER),
        diagnosed("4:8", OF_ANOTHER, "serialize executables"),
        diagnosed("4:8", "one or more operations with large vector sizes were found"),
    ],
)
def test_a_diagnostic_elsewhere_or_in_other_words_is_another_error(seen: Evidence) -> None:
    """Another operation of the program, another stage, or nothing in common."""
    assert judge(seen).kind is VerdictKind.INCONCLUSIVE


def test_a_clean_port_is_not_overruled_by_words() -> None:
    """Ported to the newest release it runs cleanly: fixed, even if the posted testcase fails with another message."""
    said = reworded("Check failed: (IsFloat(x)) is false: only for floats")
    clean = observe("1.3", P, variant=Variant.PORTED)
    assert judge(Evidence(plan=PLAN, observations=(*said.observations, clean), findings=())).kind is VerdictKind.FIXED


@pytest.mark.parametrize(
    ("reported", "kind"), [(None, VerdictKind.FIXED), ("1.1", VerdictKind.FIXED), ("1.2", VerdictKind.NOT_REPRODUCED)]
)
def test_a_failure_in_an_older_notation_is_fixed_unless_the_reported_build_is_clean(
    reported: str | None, kind: VerdictKind
) -> None:
    """The failing build does not read the posted text, so that the reporter cannot have met its failure."""
    failing = observe("1.0", M, variant=Variant.PORTED, notation_only=True)
    plan = msgspec.structs.replace(PLAN, reported=reported)
    seen = [observe(one, outcome) for one, outcome in zip(ORDER, (S, S, P, P), strict=True)]
    verdict = judge(Evidence(plan=plan, observations=(*seen, failing), findings=()))
    assert verdict.kind is kind
    told = "1.0 does not read the posted text, and fails as reported in an older notation; 1.1 fails in another way."
    assert (told in verdict.headline) is (kind is VerdictKind.NOT_REPRODUCED)


def port_cleanly(*versions: str, notation_only: bool = True) -> list[Observation]:
    return [observe(one, P, variant=Variant.PORTED, notation_only=notation_only) for one in versions]


def test_the_same_program_in_todays_notation_shows_that_the_failure_is_not_there() -> None:
    """No release reads the posted text, so that its notation is all that keeps the program from running."""
    verdict = judge(evidence((I, I, I, I), *port_cleanly("1.0", "1.3")))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert {Ground.CLEAN, Ground.PORTED, Ground.BUILD_NOT_HERE} <= set(verdict.grounds)


def test_a_port_that_prints_what_the_report_expects_does_what_the_program_should() -> None:
    """Whatever API it calls. A build that is not available says nothing."""
    expected = observe("1.3", P, variant=Variant.PORTED, reason=Reason.PRINTS_EXPECTED)
    verdict = judge(evidence((U, I, I, I), expected))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert "prints what the report expects" in verdict.headline


@pytest.mark.parametrize(
    ("outcomes", "ports"),
    [
        ((I, I, I, I), port_cleanly("1.3", notation_only=False)),
        ((I, I, I, I), port_cleanly("1.0")),
        ((S, I, I, I), port_cleanly("1.3")),
        ((U, U, U, U), port_cleanly("1.3")),
    ],
    ids=["one build", "not the newest", "read and failed", "no build answers"],
)
def test_other_clean_ports_show_nothing(outcomes: Sequence[Outcome], ports: Sequence[Observation]) -> None:
    assert judge(evidence(outcomes, *ports)).kind is not VerdictKind.NOT_REPRODUCED


def test_ports_to_another_api_answer_a_quoted_failure_where_two_builds_agree() -> None:
    """Never wrong values, and never where a build fails. A change of notation counts at least as much."""
    ports = port_cleanly("1.0", "1.3", notation_only=False)
    verdict = judge(evidence((I, I, I, I), *ports))
    same = judge(evidence((I, I, I, I), *port_cleanly("1.0", "1.3")))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert "ported to a newer API" in verdict.headline
    assert verdict.confidence <= same.confidence
    fails = observe("1.2", M, variant=Variant.PORTED)
    assert judge(evidence((I, I, I, I), *ports, fails)).kind is not VerdictKind.NOT_REPRODUCED
    for claim in (Claim(kind=ClaimKind.WRONG_RESULT, actual="[2]"), Claim(kind=ClaimKind.ERROR)):
        plan = msgspec.structs.replace(PLAN, claim=claim)
        assert judge(evidence((I, I, I, I), *ports, plan=plan)).kind is VerdictKind.UNTESTABLE


def test_a_failure_on_the_build_of_the_report_is_told_where_the_newest_release_cannot_read_the_text() -> None:
    """The report quotes no failure. That no release can run the testcase would contradict the table."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR), reported="1.1")
    verdict = judge(evidence((S, S, I, I), plan=plan))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "quotes no failure" in verdict.headline
    elsewhere = msgspec.structs.replace(plan, reported="1.2")
    assert judge(evidence((S, S, I, I), plan=elsewhere)).kind is VerdictKind.UNTESTABLE


def test_a_clean_port_shows_nothing_where_the_reported_release_says_otherwise() -> None:
    plan = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(PLAN.claim, versions=("1.1",)), reported="1.1")
    failing = observe("1.1", S, variant=Variant.PORTED, notation_only=True)
    seen = evidence((I, I, I, I), *port_cleanly("1.3"), failing, plan=plan)
    assert judge(seen).kind is VerdictKind.UNTESTABLE


def test_a_clean_port_shows_nothing_where_the_report_names_no_failure() -> None:
    plan = msgspec.structs.replace(PLAN, claim=Claim())
    assert judge(evidence((I, I, I, I), *port_cleanly("1.3"), plan=plan)).kind is VerdictKind.UNTESTABLE


def test_clean_runs_of_an_intermittent_failure_state_the_possible_rate() -> None:
    """Ten clean runs are compatible with a failure in every fourth run."""
    again = [observe("1.3", P, attempt=attempt) for attempt in range(2, 11)]
    plans = (
        msgspec.structs.replace(one, claim=msgspec.structs.replace(one.claim, versions=("1.3",)), reported="1.3")
        for one in (PLAN, SOMETIMES)
    )
    named, said = (judge(evidence((P, P, P, P), *again, plan=plan)) for plan in plans)
    assert named.kind is said.kind is VerdictKind.NOT_REPRODUCED
    assert said.confidence < named.confidence
    assert "on 1.3 it fails in 0 of 10 runs (95 % interval 0 to 28 %)" in said.reasons


VARIED = st.builds(
    Varied,
    hash_seed=st.integers(0, 3),
    fill=st.sampled_from([None, 0x55, 0x80]),
    threads=st.sampled_from([None, 1]),
)
REPEATED = st.builds(
    lambda version, outcome, attempt, varied: observe(version, outcome, attempt=attempt, varied=varied),
    st.sampled_from(ORDER),
    st.sampled_from([M, P, S, T]),
    st.integers(1, 5),
    VARIED,
)
CAUSES = st.sampled_from(["memory", "threads", "hashes", "race", "randomness", "unknown", "made up"])


@given(
    seen=st.lists(REPEATED, max_size=12),
    found=st.lists(st.builds(differing, CAUSES, st.sampled_from(ORDER)), max_size=3),
    chance=st.randoms(use_true_random=False),
)
def test_no_order_of_repeats_and_findings_changes_a_word(
    seen: list[Observation], found: list[Finding], chance: random.Random
) -> None:
    """Under whatever conditions they were made; and told of twice they are the same runs."""
    first = judge(Evidence(plan=PLAN, observations=tuple(seen), findings=tuple(found)))
    shuffled = [*seen, *seen[:1]]
    chance.shuffle(shuffled)
    again = judge(Evidence(plan=PLAN, observations=tuple(shuffled), findings=tuple(reversed(found))))
    assert (again.kind, again.confidence, again.headline, again.reasons) == (
        first.kind,
        first.confidence,
        first.headline,
        first.reasons,
    )
    told = Ground.DEPENDS_ON_CONDITION in first.grounds or first.confidence < 0.9
    assert first.kind is VerdictKind.FLAKY or told or not found_to_vary(found)


def found_to_vary(found: Sequence[Finding]) -> bool:
    return any(one.evidence["cause"] not in ("randomness", "made up") for one in found)


ASKED = "Check failed: ErrorContext(fn=main, loc=param[0], param=x) expect Tensor with dtype float32 but get float64"


@pytest.mark.parametrize(
    ("toolchain", "message", "told"),
    [
        ("tvm", ASKED, True),
        ("iree", "input0 shape dimension 0 mismatch; while invoking native function hal.buffer_view.assert", True),
        ("iree", "no function `forward` exported by module; looking up function 'forward'", True),
        ("tvm", "Check failed: (lhs.dtype().is_bool()) is false", False),
    ],
)
def test_an_error_from_a_check_of_the_arguments_is_named_as_such(toolchain: str, message: str, told: bool) -> None:
    """No verdict, because the testcase may call wrongly; the reader decides whether the check is correct."""
    signature = Signature(type="ValueError", message=message)
    claim = Claim(kind=ClaimKind.ERROR, signature=signature, versions=("1.1",))
    seen = [observe(version, M, signature=signature) for version in ORDER]
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain=toolchain)
    plan = msgspec.structs.replace(PLAN, claim=claim, testcase=testcase)
    verdict = judge(Evidence(plan=plan, observations=tuple(seen), findings=()))
    assert VerdictKind.CONFIRMED in (verdict.kind, verdict.leaning)
    assert (verdict.kind is VerdictKind.INCONCLUSIVE) is told
    assert ("a check of the arguments" in verdict.headline) is told


def test_a_newest_release_that_fails_anew_is_named_beside_the_fix() -> None:
    """The reported failure is fixed, and the headline mentions the other failure of the newest release."""
    assert judge(evidence((M, M, P, S))).headline.endswith("the newest release, fails in another way.")
    assert "another way" not in judge(evidence((M, M, P, P))).headline
    assert "another way" not in judge(evidence((M, P, I, I))).headline


def test_a_newest_release_that_rejects_the_program_of_a_wrong_result_is_no_fix() -> None:
    """The program ran cleanly between: whether it may be rejected is a question for people."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="[0, 0]", expected="[3, 4]", versions=("1.1",))
    refusal = Signature(type="mlir-error", message="'linalg.generic' op has a map that cannot be tiled")
    seen = [*(observe(version, outcome) for version, outcome in zip(ORDER, (M, M, P), strict=False))]
    seen.append(observe(ORDER[3], S, signature=refusal, ended=Exited(code=1)))
    plan = msgspec.structs.replace(PLAN, claim=claim)
    verdict = judge(Evidence(plan=plan, observations=tuple(seen), findings=()))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "rejects it instead" in verdict.headline


def test_a_crash_without_stack_and_message_is_less_certain() -> None:
    """A run with only a signal would match every other crash as well."""
    claim = Claim(kind=ClaimKind.CRASH, signature=Signature(type="SIGSEGV", frames=("f", "g")))
    plan = msgspec.structs.replace(PLAN, claim=claim)
    told, bare = (Signature(type="SIGSEGV", frames=frames) for frames in (("f", "g"), ()))
    sure = [
        judge(
            Evidence(plan=plan, observations=tuple(observe(v, M, signature=seen) for v in ORDER), findings=())
        ).confidence
        for seen in (told, bare)
    ]
    assert sure[0] > sure[1]


def test_a_repaired_testcase_that_only_prints_another_value_is_less_certain() -> None:
    """A clean run shows that the broken rule was the cause; another value shows only an effect."""
    sure = [
        judge(evidence((M, M, M, M), findings=(Finding(kind=FindingKind.BROKEN_RULE, summary="x", evidence=said),)))
        for said in (
            {"control_end": ControlEnd.FAILURE_GONE.value},
            {"control_end": ControlEnd.OTHER_VALUE.value},
        )
    ]
    assert {one.kind for one in sure} == {VerdictKind.INVALID_REPRO}
    assert sure[0].confidence > sure[1].confidence


@pytest.mark.parametrize("outcomes", [(P, P, P, P), (M, M, P, P), (P, M, P, P)])
def test_a_part_of_the_program_gives_no_verdict_on_clean_runs(outcomes: tuple[Outcome, ...]) -> None:
    """Code that was left out may be what fails: neither ``not-reproduced`` nor ``fixed`` rests on the remainder."""
    whole = evidence(outcomes)
    assert judge(whole).kind in (VerdictKind.NOT_REPRODUCED, VerdictKind.FIXED)
    partial = judge(replace(whole, gaps=Gaps(left_out=("left out 'raise ValueError(x)'",))))
    assert partial.kind is VerdictKind.INCONCLUSIVE
    assert any("leaves out" in reason for reason in partial.reasons)


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((P, P, P, P), VerdictKind.INCONCLUSIVE),
        ((M, M, M, M), VerdictKind.CONFIRMED),
        ((M, M, P, P), VerdictKind.FIXED),
    ],
)
def test_clean_runs_with_generated_inputs_decide_nothing_alone(
    outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """The failure may need other inputs, unless an older release fails with these."""
    assert judge(replace(evidence(outcomes), gaps=Gaps(generates_inputs=True))).kind is kind


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((P, P, P, P), VerdictKind.INCONCLUSIVE),
        ((M, M, M, M), VerdictKind.CONFIRMED),
        ((M, M, P, P), VerdictKind.FIXED),
    ],
)
def test_clean_runs_for_an_assumed_device_decide_nothing_alone(
    outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """Without a command and a device in the report, the failure may belong to another device."""
    assert judge(replace(evidence(outcomes), gaps=Gaps(assumed_device="llvm-cpu"))).kind is kind


def test_definitions_alone_can_fail_but_are_never_clean() -> None:
    """A clean run says nothing about the use of a definition. A definition that no longer fails is fixed."""
    clean, fixed = evidence((P, P, P, P)), evidence((M, M, P, P))
    withheld = judge(replace(clean, gaps=Gaps(only_defines=True)))
    assert withheld.kind is VerdictKind.INCONCLUSIVE
    assert any("only defines" in reason for reason in withheld.reasons)
    assert judge(replace(fixed, gaps=Gaps(only_defines=True))) == judge(fixed)


def test_a_clean_run_that_never_calls_what_the_title_names_is_no_answer() -> None:
    """What it prints counts as reached; and a failure as reported reached it."""
    plan = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(CLAIM, accused=("fuse_ops", "MyNet")))
    missed = Finding(kind=FindingKind.REACH, summary="", evidence={"names": ["fuse_ops"], "version": ORDER[-1]})
    withheld = judge(evidence((P, P, P, P), plan=plan, findings=(missed,)))
    assert withheld.leaning is VerdictKind.NOT_REPRODUCED
    assert "`fuse_ops`, which the run never calls" in withheld.headline
    printing = msgspec.structs.replace(observe(ORDER[-1], P, attempt=2), excerpt="def FuseOps(x):")
    assert judge(evidence((P, P, P, P), printing, plan=plan, findings=(missed,))).kind is VerdictKind.NOT_REPRODUCED
    assert judge(evidence((M, M, P, P), plan=plan, findings=(missed,))).kind is VerdictKind.FIXED


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((P, P, P, P), VerdictKind.INCOMPLETE),
        ((M, M, M, M), VerdictKind.CONFIRMED),
        ((M, M, P, P), VerdictKind.FIXED),
        ((I, I, I, I), VerdictKind.UNTESTABLE),
    ],
)
def test_a_program_that_may_lack_its_end_can_fail_but_is_never_clean(
    outcomes: tuple[Outcome, ...], kind: VerdictKind
) -> None:
    """The description ends inside the code block: the statement that fails may be the missing one."""
    assert judge(replace(evidence(outcomes), gaps=Gaps(has_open_end=True))).kind is kind


def test_clean_runs_weigh_less_where_only_words_tell_of_an_error() -> None:
    quoted = evidence((P, P, P, P))
    claim = msgspec.structs.replace(PLAN.claim, kind=ClaimKind.ERROR, signature=None, versions=("1.1",))
    told = replace(quoted, plan=msgspec.structs.replace(PLAN, claim=claim, reported="1.1"))
    assert judge(told).leaning is VerdictKind.NOT_REPRODUCED
    unnamed = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(claim, versions=()), reported=None)
    elsewhere = judge(replace(quoted, plan=unnamed))
    assert elsewhere.kind is VerdictKind.NOT_REPRODUCED
    assert Ground.UNQUOTED_ELSEWHERE in elsewhere.grounds
    assert judge(told).confidence < judge(quoted).confidence


@pytest.mark.parametrize("outcomes", [(M, M, M, M), (P, P, M, M), (I, I, I, I)])
def test_a_failure_of_a_part_of_the_program_is_a_failure(outcomes: tuple[Outcome, ...]) -> None:
    """The reported failure was seen, whatever else the program would have done."""
    whole = evidence(outcomes)
    assert judge(replace(whole, gaps=Gaps(left_out=("left out 'raise ValueError(x)'",)))) == judge(whole)


def test_words_of_a_run_are_quoted_in_the_verdict() -> None:
    """A testcase names its exception, files and functions, and prints any message: none is a sentence of ours."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT))
    said = Signature(type="ValueError", message="`Please merge` the `change` now")
    headline = judge(evidence((P, M, M, None), refused("1.3", said), plan=plan)).headline
    assert headline.count("`") == 2
    assert "`ValueError: 'Please merge' the 'change' now`" in headline

    seen = observe("1.3", Outcome.TIMEOUT, why="reached the time limit (close_this_issue.py:1)")
    reasons = judge(evidence((P, M, M, None), seen, plan=plan)).reasons
    assert [reason for reason in reasons if "close_this_issue" in reason] == [
        "on 1.3: `reached the time limit (close_this_issue.py:1)`"
    ]

    odd = Signature(type="A maintainer must merge this", message="x")
    assert (
        "it ends with `A maintainer must merge this`"
        in judge(evidence((S, S, S, S), observe("1.3", S, signature=odd))).headline
    )


@pytest.mark.parametrize(
    ("day", "order", "told"),
    [
        (date(2023, 8, 20), ("0.25.0", "0.27.0"), "v0.13.0"),
        (date(2026, 8, 20), ("0.25.0", "0.27.0"), "v0.19.0"),
        (date(2023, 8, 20), ("0.16.dev0", "0.27.0"), ""),
        (date(2019, 8, 20), ("0.25.0", "0.27.0"), ""),
    ],
)
def test_a_build_that_could_run_the_testcase_is_named(day: date, order: tuple[str, ...], told: str) -> None:
    """It has the name that is gone, and is not younger than the report. An offered build is not named."""
    moved = Finding(kind=FindingKind.API_MOVED, summary="gone", evidence={"name": "tvm.relay", "successor": None})
    runs = tuple(observe(version, I, findings=(moved,)) for version in order)
    plan = msgspec.structs.replace(PLAN, order=order, first=order, day=day)
    verdict = judge(Evidence(plan=plan, observations=runs, findings=()))
    assert verdict.kind is VerdictKind.UNTESTABLE
    named = [reason for reason in verdict.reasons if "is not among the releases that run here" in reason]
    assert [reason.split()[0] for reason in named] == ([told] if told else [])


def test_a_limit_of_the_operator_is_the_headline() -> None:
    """The reader learns that the limit prevents the runs, and which packages meet the limit."""
    plan = msgspec.structs.replace(
        PLAN, testcase=msgspec.structs.replace(PLAN.testcase, requirements=("torch", "timm"))
    )
    why = "the testcase's requirements make tvm 0.27.0 a download of 3878 MiB; the operator's limit is 1536 MiB"
    ended = NotRun(why=why, cause="forbidden")
    stopped = [observe(version, U, ended=ended, why=why) for version in ORDER]
    verdict = judge(Evidence(plan=plan, observations=tuple(stopped), findings=()))
    assert verdict.kind is VerdictKind.UNTESTABLE
    expected = "A limit of this installation prevents every run: the testcase requires `torch"
    assert verdict.headline.startswith(expected)
    assert "1536 MiB" in verdict.reasons[0]


def test_a_limit_is_no_headline_if_another_release_lacks_its_device() -> None:
    """The limit is not the only reason then."""
    stopped = [observe(ORDER[0], U, ended=NotRun(why="x", cause="forbidden")), observe(ORDER[1], U)]
    assert "limit" not in judge(Evidence(plan=PLAN, observations=tuple(stopped), findings=())).headline


def test_a_testcase_that_ends_on_some_releases_is_not_called_impossible_to_run() -> None:
    """Its API has moved on the others, and nothing tells whether the printed values are right."""
    ended = tuple(observe(version, S, ended=Exited(code=0)) for version in ORDER[:2])
    gone = tuple(observe(version, I) for version in ORDER[2:])
    verdict = judge(Evidence(plan=PLAN, observations=(*ended, *gone), findings=()))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "runs to its end" in verdict.headline


@pytest.mark.parametrize(
    "message",
    [
        "libnvrtc.so.10.0: cannot open shared object file: No such file or directory",
        "/opt/a/libz3.so.4: undefined symbol: Z3_mk",
    ],
)
def test_a_library_that_one_machine_lacks_is_not_looked_for_here(message: str) -> None:
    """A clean run says nothing about it. A release that lacks the library too fails as reported."""
    claim = Claim(kind=ClaimKind.ERROR, signature=Signature(type="OSError", message=message))
    plan = msgspec.structs.replace(PLAN, claim=claim)
    verdict = judge(evidence((P, P, P, P), plan=plan))
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert "on the reporter's machine" in verdict.headline
    assert judge(evidence((M, M, M, M), plan=plan)).kind is VerdictKind.CONFIRMED


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("program.module()(x).numpy()", VerdictKind.CONFIRMED),
        ("net(x).detach().numpy()", VerdictKind.CONFIRMED),
        ("np.flip(x.numpy())", VerdictKind.INCONCLUSIVE),
    ],
)
def test_the_framework_that_runs_the_exported_model_is_a_second_source(reference: str, kind: VerdictKind) -> None:
    """A formula of the author is none."""
    code = (
        "import numpy as np, torch, tvm\n"
        "net, x = torch.nn.Linear(2, 2), torch.ones(2)\n"
        "program = torch.export.export(net, (x,))\n"
        "got = tvm.compile(tvm.translate(program))(x).numpy()\n"
        f"np.testing.assert_allclose(got, {reference})\n"
    )
    testcase = msgspec.structs.replace(PLAN.testcase, files={"a.py": code})
    claim = msgspec.structs.replace(CLAIM, kind=ClaimKind.WRONG_RESULT)
    wrong = msgspec.structs.replace(PLAN, claim=claim, testcase=testcase)
    none = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "none", "version": "1.3"})
    assert judge(evidence((M, M, M, M), plan=wrong, findings=(none,))).kind is kind


@pytest.mark.parametrize(
    ("reference", "same"),
    [
        ("ReferenceEvaluator(model).run(None, {'x': x})[0]", True),
        ("session.run(None, {'x': x})[0]", True),
        ("ReferenceEvaluator(other).run(None, {'x': x})[0]", False),
        ("x + x.sum()", False),
    ],
)
def test_a_session_of_the_model_that_the_compiler_gets_is_a_second_source(reference: str, same: bool) -> None:
    code = (
        "import numpy as np, onnxruntime as ort\nfrom onnx.reference import ReferenceEvaluator\n"
        "import tvm\nfrom tvm.frontend import from_onnx\n"
        "model, other, x = make(), make(), np.ones(2)\n"
        "session = ort.InferenceSession(model.SerializeToString(), providers=['CPU'])\n"
        f"ref = {reference}\n"
        "got = tvm.compile(from_onnx(model))(x).numpy()\n"
        "np.testing.assert_allclose(got, ref)\n"
    )
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="tvm", files={"a.py": code})
    assert runs_same_model(testcase) is same


@pytest.mark.parametrize(("versions", "told"), [(("0.1.0",), True), ((ORDER[0],), False)], ids=["older", "its build"])
def test_clean_runs_of_later_builds_alone_may_mean_that_the_failure_is_fixed(
    versions: tuple[str, ...], told: bool
) -> None:
    claim = Claim(kind=ClaimKind.CRASH, versions=versions)
    plan = msgspec.structs.replace(PLAN, claim=claim, reported=ORDER[0], order=ORDER)
    seen = tuple(observe(version, Outcome.PASS) for version in ORDER)
    verdict = judge(Evidence(plan=plan, observations=seen, findings=()))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert (f"may have been fixed before {ORDER[0]}" in verdict.headline) is told


def test_a_change_of_the_printed_program_after_the_reported_release_is_a_fix_of_moderate_confidence() -> None:
    old, new = ("f.scale %0\nf.scale %1\nf.b %0", "f.scale %0\nf.b %0")
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told="Two scales are not merged.", versions=(ORDER[1],))
    plan = msgspec.structs.replace(PLAN, claim=claim, reported=ORDER[1], order=ORDER)
    seen = tuple(
        observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=old if at < 2 else new)
        for at, version in enumerate(ORDER)
    )
    verdict = judge(Evidence(plan=plan, observations=mark_by_change(plan, seen), findings=()))
    assert verdict.kind is VerdictKind.FIXED
    assert Ground.CHANGED_SINCE in verdict.grounds
    assert 0.55 < verdict.confidence < 0.9
    assert f"another program than {ORDER[1]}: `f.scale` occurs once (2 before)" in verdict.headline
    unnamed = msgspec.structs.replace(plan, claim=msgspec.structs.replace(claim, versions=()))
    assert judge(Evidence(plan=unnamed, observations=mark_by_change(unnamed, seen), findings=())).kind is (
        VerdictKind.INCONCLUSIVE
    )


def test_parts_of_printed_programs_that_the_report_names_lower_the_confidence_and_are_told() -> None:
    """No output is quoted as a whole."""
    old, new = ('f.a %0 {s = "no"}\nf.b %0', 'f.a %0 {s = "yes"}\nf.b %0')
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told='It keeps `s = "no"`. I expect `s = "yes"`.')
    plan = msgspec.structs.replace(PLAN, claim=claim)
    seen = tuple(
        observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=old if at < 2 else new)
        for at, version in enumerate(ORDER)
    )
    verdict = judge(Evidence(plan=plan, observations=mark_by_told_parts(plan, seen), findings=()))
    assert verdict.kind is VerdictKind.FIXED
    assert Ground.TOLD_PARTS in verdict.grounds
    assert any('it complains of `s = "no"`, and asks for `s = "yes"`' in reason for reason in verdict.reasons)
    alike = tuple(msgspec.structs.replace(one, excerpt=new) for one in seen)
    clean = judge(Evidence(plan=plan, observations=mark_by_told_parts(plan, alike), findings=()))
    assert clean.kind is VerdictKind.NOT_REPRODUCED
    assert any('each release prints what the report names: it asks for `s = "yes"`' in one for one in clean.reasons)
