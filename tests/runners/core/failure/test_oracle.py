"""How a probe ended x what was claimed -> what it shows. Only a match is bad, only a clean run is good."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.failure.oracle import READ_BACK, Classification, Drift, OracleContext, classify_run
from runners.core.failure.outcomes import explains_outcome, get_answer
from runners.core.protocol import (
    ANY_ERROR,
    Answer,
    Claim,
    ClaimKind,
    Ended,
    Exited,
    NotRun,
    Outcome,
    OutOfMemory,
    Reason,
    Signalled,
    Signature,
    StepResult,
    TimedOut,
)
from runners.toolchains import ALL_FAILURES, find_toolchain

ERROR = Claim(
    kind=ClaimKind.ERROR,
    signature=Signature(
        type="InternalError", message="Check failed: (slot != end) is false: no slot for the variable"
    ),
)
CRASH = Claim(kind=ClaimKind.CRASH, signature=Signature(type="SIGSEGV"))
PRINTED = Claim(kind=ClaimKind.WRONG_RESULT, actual="equal? False", expected="equal? True")
HANG = Claim(kind=ClaimKind.HANG)
UNKNOWN = Claim()
TITLED = Claim(kind=ClaimKind.ERROR, told="[Bug] f: Check failed: (slot != end) is false\nIt fails.")
MISSES = Claim(kind=ClaimKind.ACCEPTED, told="A slot without a variable is accepted. It should be refused.")
NUMERIC = Claim(
    kind=ClaimKind.WRONG_RESULT,
    signature=Signature(type="AssertionError", message="Not equal to tolerance rtol=1e-05, atol=0"),
)

REPORTED_ERROR = """\
Traceback (most recent call last):
  File "repro.py", line 9, in <module>
    f()
tvm.error.InternalError: Check failed: (slot != end) is false: no slot for the variable
"""
OTHER_ERROR = """\
Traceback (most recent call last):
  File "repro.py", line 2, in <module>
    from tvm import tir
ImportError: cannot import name 'tir' from 'tvm'
"""
ASSERTION = "Traceback (most recent call last):\nAssertionError: \nNot equal to tolerance rtol=1e-05, atol=0\n"


def steps(ended: Ended, *, stdout: str = "", stderr: str = "") -> list[StepResult]:
    return [StepResult(argv=("python", "repro.py"), ended=ended, stdout=stdout, stderr=stderr)]


def judge(claim: Claim, ended: Ended, *, stdout: str = "", stderr: str = "", **facts: object) -> Classification:
    context = OracleContext(claim=claim, vocabulary=ALL_FAILURES, **facts)  # type: ignore[arg-type]  # its keywords
    ruling = classify_run(ended, steps(ended, stdout=stdout, stderr=stderr), context)
    assert explains_outcome(ruling.reason, ruling.outcome), ruling  # else the bot would refuse its record
    return ruling


def test_a_run_that_keeps_an_operation_which_the_report_says_is_lost_is_clean() -> None:
    program = "func.func @f(%n: i32) -> i32 {\n  %0 = util.align %n, %n : i32\n  return %0 : i32\n}"
    lost = "func.func @f(%n: i32) -> i32 {\n  return %n : i32\n}"
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual=lost)
    clean = judge(claim, Exited(code=0), stdout=program, given=program)
    assert (clean.outcome, clean.reason, clean.detail) == (Outcome.PASS, Reason.KEEPS_OPERATION, "util.align")
    assert judge(claim, Exited(code=0), stdout=lost, given=program).outcome is Outcome.MATCH
    assert judge(claim, Exited(code=0), stdout=program).outcome is not Outcome.MATCH


@pytest.mark.parametrize(
    ("claim", "ended", "stdout", "stderr", "outcome"),
    [
        (ERROR, Exited(code=1), "", REPORTED_ERROR, Outcome.MATCH),
        (ERROR, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (ERROR, Exited(code=0), "done", "", Outcome.PASS),
        (ERROR, Exited(code=0), REPORTED_ERROR, "", Outcome.MATCH),
        (ERROR, Signalled(code=11), "", "", Outcome.OTHER_FAILURE),
        (CRASH, Signalled(code=11), "", "", Outcome.MATCH),
        (CRASH, Exited(code=139), "", "", Outcome.MATCH),
        (CRASH, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (CRASH, Exited(code=0), "", "", Outcome.PASS),
        (CRASH, Exited(code=0), "", "Fatal Python error: Segmentation fault", Outcome.MATCH),
        (PRINTED, Exited(code=0), "equal? False", "", Outcome.MATCH),
        (PRINTED, Exited(code=0), "equal? True", "", Outcome.PASS),
        (PRINTED, Exited(code=0), "nothing of the kind", "", Outcome.OTHER_FAILURE),
        (PRINTED, Exited(code=1), "", ASSERTION, Outcome.MATCH),
        (PRINTED, Exited(code=1), "equal? False", OTHER_ERROR, Outcome.MATCH),
        (PRINTED, Exited(code=1), "equal? True", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (NUMERIC, Exited(code=1), "", ASSERTION, Outcome.MATCH),
        (NUMERIC, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (HANG, TimedOut(where="step 1"), "", "", Outcome.MATCH),
        (ERROR, TimedOut(where="step 1"), "", "", Outcome.TIMEOUT),
        (HANG, TimedOut(where="step 1", clock="processor"), "", "", Outcome.MATCH),
        (ERROR, TimedOut(where="step 1", clock="processor"), "", "", Outcome.TIMEOUT),
        (ERROR, OutOfMemory(limit_bytes=2**30), "", "", Outcome.OUT_OF_MEMORY),
        (ERROR, NotRun(why="no wheel", cause="unavailable"), "", "", Outcome.UNAVAILABLE),
        (ERROR, NotRun(why="engine gone"), "", "", Outcome.INFRA),
        (TITLED, Exited(code=1), "", REPORTED_ERROR, Outcome.MATCH),
        (TITLED, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (MISSES, Exited(code=0), "done", "", Outcome.MATCH),
        (MISSES, Exited(code=1), "", REPORTED_ERROR, Outcome.PASS),
        (MISSES, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
        (MISSES, Signalled(code=11), "", "", Outcome.OTHER_FAILURE),
        (UNKNOWN, Exited(code=0), "", "", Outcome.PASS),
        (UNKNOWN, Exited(code=1), "", OTHER_ERROR, Outcome.OTHER_FAILURE),
    ],
)
def test_table(claim: Claim, ended: Ended, stdout: str, stderr: str, outcome: Outcome) -> None:
    """The table of the module's docstring, row by row."""
    ruling = judge(claim, ended, stdout=stdout, stderr=stderr)
    assert ruling.outcome is outcome
    assert ruling.why


LINKED = "m.mlir:2:8: error: failed to link the executable (see above)\nm.mlir:2:8: error: failed to serialize\n"


@pytest.mark.parametrize(
    ("quoted", "outcome"),
    [
        ("failed to serialize", Outcome.MATCH),
        ("failed to link the executable (see above)", Outcome.MATCH),
        ("failed to parse", Outcome.OTHER_FAILURE),
    ],
)
def test_each_diagnostic_of_a_failing_compiler_is_the_reported_one(quoted: str, outcome: Outcome) -> None:
    """A report may quote the last diagnostic alone, because a dump of the program hides the others."""
    claim = Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message=quoted))
    assert judge(claim, Exited(code=1), stderr=LINKED).outcome is outcome


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ("It ends with `ref is null; while invoking native function x`", Outcome.MATCH),
        ("It ends.", Outcome.PASS),
    ],
)
def test_a_run_may_end_with_the_second_failure_that_a_report_quotes(told: str, outcome: Outcome) -> None:
    """The diagnostic of the compiler comes first, and another release may not print it."""
    claim = Claim(
        kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="initializer is out of order"), told=told
    )
    compiled = StepResult(argv=("iree-compile", "a.mlir"), ended=Exited(code=0))
    said = "c/vm/ref.h:223: INVALID_ARGUMENT; ref is null; while invoking native function x"
    ran = StepResult(argv=("iree-run-module",), ended=Exited(code=1), stderr=said)
    context = OracleContext(claim=claim, vocabulary=ALL_FAILURES, compilers=("iree-compile",))
    assert classify_run(Exited(code=1), [compiled, ran], context).outcome is outcome


@pytest.mark.parametrize(
    ("title", "matches"),
    [
        ("f(x): undefined symbol: truncf", True),
        ("f(x): undefined symbol", False),
        ("failed-to-link-executable: nothing", False),
    ],
)
def test_a_title_that_holds_a_whole_error_quotes_it(title: str, matches: bool) -> None:
    """Another error may end the run."""
    printed = "ld: error: undefined symbol: truncf\na.mlir:1:1: error: failed to link executable\n"
    seen = judge(Claim(kind=ClaimKind.ERROR, told=f"{title}\nIt ends in the linker."), Exited(code=1), stderr=printed)
    assert (seen.outcome is Outcome.MATCH) is matches


def test_a_moved_name_is_incompatible_and_a_missing_device_unavailable() -> None:
    """Neither is evidence about the reported failure."""
    moved = Drift(name="tvm.tir", successor="tvm.tirx", why="tvm.tir is gone")
    assert judge(ERROR, Exited(code=1), stderr=OTHER_ERROR, drift=moved).outcome is Outcome.INCOMPATIBLE
    absent = judge(ERROR, Exited(code=1), stderr=OTHER_ERROR, missing_device="no cuda device here")
    assert absent.outcome is Outcome.UNAVAILABLE


DIED_AFTER = (
    "free(): invalid next size (fast)\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
)


@pytest.mark.parametrize(
    ("frames", "outcome"),
    [
        ("  Garbage-collecting\n  <no Python frame>\n", Outcome.MATCH),
        ('  File "repro.py", line 9 in f\n', Outcome.OTHER_FAILURE),
    ],
)
def test_a_process_that_dies_after_its_script_ended_with_the_reported_failure(frames: str, outcome: Outcome) -> None:
    """A write past the end of a buffer is often noticed when memory is freed. A caught exception does not count."""
    seen = judge(NUMERIC, Signalled(code=6), stderr=f"{ASSERTION}{DIED_AFTER}{frames}")
    assert seen.outcome is outcome


@pytest.mark.parametrize(
    ("actual", "outcome"),
    [("[SUCCESS] all outputs matched their values\n4E-05", Outcome.OTHER_FAILURE), ("4E-05", Outcome.PASS)],
)
def test_a_check_that_holds_is_no_answer_where_the_report_calls_it_wrong(actual: str, outcome: Outcome) -> None:
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual=actual)
    said = "EXEC @f\n[SUCCESS] all outputs matched their values\n"
    assert judge(claim, Exited(code=0), stdout=said, checks_itself=True).outcome is outcome


def test_a_reported_failure_that_looks_like_drift_is_still_a_match() -> None:
    """The report may be about exactly that missing name: adding the name would hide the reported failure."""
    claim = Claim(
        kind=ClaimKind.ERROR, signature=Signature(type="ImportError", message="cannot import name 'tir' from 'tvm'")
    )
    moved = Drift(name="tvm.tir", successor="tvm.tirx", why="tvm.tir is gone")
    assert judge(claim, Exited(code=1), stderr=OTHER_ERROR, drift=moved).outcome is Outcome.MATCH


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ("wrong shape\nThe error says that the shapes (2, 4) and (6,) can't be broadcast.", Answer.BAD),
        ("wrong shape\nThe shapes (2, 4) and (6,) can't be broadcast here, I think.", Answer.SKIP),
        ("wrong shape\nThe error says that the dtype float32 is not supported.", Answer.SKIP),
        ("wrong shape\nIt fails with 4 errors, 1 for each shape of 6 rows.", Answer.SKIP),
    ],
    ids=["its words and values", "no error", "another error", "values and one word"],
)
def test_an_error_may_be_described_in_other_words(told: str, answer: Answer) -> None:
    claim = Claim(kind=ClaimKind.ERROR, told=told)
    said = "ValueError: the first input shape at dim 1 is 4 and the second input shape is 6, not broadcastable.\n"
    assert judge(claim, Exited(code=1), stderr=f"Traceback (most recent call last):\n{said}").answer is answer


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [("5xf32=31 2 43 4 35", Outcome.PASS), ("5xf32=31 2 43 4 5", Outcome.OTHER_FAILURE), ("2xf32=1 2", Outcome.PASS)],
)
def test_a_crash_that_became_a_wrong_value_is_not_clean(printed: str, outcome: Outcome) -> None:
    claim = Claim(kind=ClaimKind.CRASH, expected="tensor([31.,  2., 43.,  4., 35.])")
    assert judge(claim, Exited(code=0), stdout=f"EXEC @main\n{printed}\n").outcome is outcome


@pytest.mark.parametrize(
    ("wished", "ended", "stderr", "outcome"),
    [
        ((ANY_ERROR,), Exited(code=1), "TVMError: thread creation failed with 11", Outcome.PASS),
        ((), Exited(code=1), "TVMError: thread creation failed with 11", Outcome.OTHER_FAILURE),
        ((ANY_ERROR,), Exited(code=1), "TVMError: no such function", Outcome.OTHER_FAILURE),
    ],
    ids=["the error asked for", "no error asked for", "an error about something else"],
)
def test_a_crash_that_became_the_error_that_the_report_asks_for_is_clean(
    wished: tuple[str, ...], ended: Exited, stderr: str, outcome: Outcome
) -> None:
    told = "It aborts if thread creation fails. I would expect a normal error."
    claim = Claim(kind=ClaimKind.CRASH, wished=wished, told=told)
    assert judge(claim, ended, stderr=f"Traceback (most recent call last):\n{stderr}\n").outcome is outcome


def test_the_message_about_a_missing_device_is_not_the_failure_that_a_report_describes() -> None:
    """A report on generated code for a device names the device's compiler, too."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told="No such constant: nvcc gets the file with a zero, no directory.")
    said = "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'"
    assert judge(claim, Exited(code=1), stderr=said, missing_device="no nvcc here").outcome is Outcome.UNAVAILABLE


ROW = "not in the language that the driver reads: ['atan2f', 'hypotf']\n"


@pytest.mark.parametrize(("told", "outcome"), [(ROW, Outcome.MATCH), ("", Outcome.OTHER_FAILURE)])
def test_a_check_that_prints_what_the_report_holds_fails_as_reported(told: str, outcome: Outcome) -> None:
    """The report is about a driver's error, and its program checks the text that the driver would read."""
    driver = Signature(type="mlir-error", message="implicit declaration of function is invalid")
    claim = Claim(kind=ClaimKind.ERROR, signature=driver, told=f"The names do not exist in the driver. {told}")
    failed = "Traceback (most recent call last):\nAssertionError: ['atan2f', 'hypotf']\n"
    assert judge(claim, Exited(code=1), stdout=ROW, stderr=failed, checks_itself=True).outcome is outcome
    missing = Claim(kind=ClaimKind.ACCEPTED, told=f"I expect an AssertionError. {told}")
    assert judge(missing, Exited(code=1), stdout=ROW, stderr=failed, checks_itself=True).outcome is not Outcome.MATCH


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("ran: (0,)", Outcome.PASS),
        ("crashed: Check failed: (slot != end) is false: no slot for the variable", Outcome.MATCH),
        ("crashed: the module has no such part", Outcome.OTHER_FAILURE),
    ],
)
def test_a_program_that_catches_its_errors_is_clean_only_without_one(printed: str, outcome: Outcome) -> None:
    """It ends well on each build, also on an old one that lacks what it calls."""
    assert judge(ERROR, Exited(code=0), stdout=printed, caught=("crashed:",)).outcome is outcome


def test_a_caught_failure_is_found_behind_values_of_the_run() -> None:
    printed = "[1] ok\n[16, 1, 1] InternalError Check failed: (slot != end) is false: no slot for the variable"
    assert judge(ERROR, Exited(code=0), stdout=printed, caught=("",)).outcome is Outcome.MATCH
    assert judge(ERROR, Exited(code=0), stdout=printed).outcome is Outcome.PASS
    assert judge(ERROR, Exited(code=0), stdout="[1] ok\n[16, 1, 1] ok", caught=("",)).outcome is Outcome.PASS


def test_a_missing_name_that_a_program_catches_is_incompatible() -> None:
    moved = Drift(name="tvm.compile", successor=None, why="no tvm.compile in 0.17")
    seen = judge(ERROR, Exited(code=0), stdout="crashed: ...", caught=("crashed:",), drift=moved)
    assert seen.outcome is Outcome.INCOMPATIBLE


def test_regions_count_where_the_testcase_prints_no_dispatches_yet() -> None:
    claim = Claim(kind=ClaimKind.COUNT, actual="2 dispatches", expected="1 dispatch")
    regions = "%0 = flow.dispatch.region -> (T) {\n}\n%2 = flow.dispatch.region -> (U) {\n}\n"
    assert judge(claim, Exited(code=0), stdout=regions).outcome is Outcome.MATCH
    assert judge(claim, Exited(code=0), stdout=f"{regions}%9 = flow.dispatch @a::@b").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("actual", "expected", "left", "outcome"),
    [
        ("3 counted rows", "2 counted rows", "3", Outcome.MATCH),
        ("3 counted rows", "2 counted rows", "2", Outcome.PASS),
        ("3 counted rows", "2 counted rows", "7", Outcome.MATCH),
        ("0 counted rows", "", "0", Outcome.MATCH),
        ("0 counted rows", "", "640", Outcome.PASS),
        ("3 counted rows", "", "1", Outcome.OTHER_FAILURE),
        ("", "4 counted rows", "6", Outcome.OTHER_FAILURE),
        ("", "4 counted rows", "4", Outcome.PASS),
        ("3 counted rows", "2 counted rows", "three", Outcome.OTHER_FAILURE),
        ("3 counted rows", "2 counted rows", msgspec.UNSET, Outcome.OTHER_FAILURE),
    ],
)
def test_counted_rows_are_compared_with_the_reported_number(
    actual: str, expected: str, left: str | msgspec.UnsetType, outcome: Outcome
) -> None:
    """The unfiltered output, which also contains the number, does not count."""
    step = StepResult(argv=("iree-opt",), ended=Exited(code=0), stdout="%3 = arith.addi\n2\n", filtered=left)
    claim = Claim(kind=ClaimKind.COUNT, actual=actual, expected=expected)
    ruling = classify_run(step.ended, [step], OracleContext(claim=claim, vocabulary=ALL_FAILURES))
    assert explains_outcome(ruling.reason, ruling.outcome)
    assert ruling.outcome is outcome


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ("We have accuracy failures for tiny inputs", Outcome.OTHER_FAILURE),
        ("atanh loses precision by cancellation", Outcome.OTHER_FAILURE),
        ("A sum in mixed precision is compared", Outcome.PASS),
    ],
)
def test_equal_large_values_do_not_show_that_small_ones_kept_their_digits(told: str, outcome: Outcome) -> None:
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told=told)
    printed = "[5.5e-01 0.0]\n[5.5e-01 1e-08]"
    assert judge(claim, Exited(code=0), stdout=printed, prints_reference=True).outcome is outcome


def test_an_uncheckable_result_is_neither_good_nor_bad() -> None:
    """Exit status 0 is not "fixed" if the testcase only prints and the report quotes no output."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT)
    assert judge(claim, Exited(code=0), stdout="[1 2 3]").answer is Answer.SKIP
    assert judge(claim, Exited(code=0), stdout="[1 2 3]", checks_itself=True).answer is Answer.GOOD


@pytest.mark.parametrize(
    ("code", "checks", "answer"), [(1, True, Answer.BAD), (2, True, Answer.SKIP), (1, False, Answer.SKIP)]
)
def test_a_program_that_ends_by_its_result_fails_as_reported(code: int, checks: bool, answer: Answer) -> None:
    """``sys.exit(0 if close else 1)`` is a check as ``assert`` is. Status 2 refuses the arguments of a call."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT)
    assert judge(claim, Exited(code=code), stdout="[1 2 3]", checks_itself=checks).answer is answer


def test_a_tool_that_only_ends_with_a_status_failed_no_check() -> None:
    """The check of such a testcase is a flag of a later step, which was not reached."""
    context = OracleContext(claim=Claim(kind=ClaimKind.WRONG_RESULT), vocabulary=ALL_FAILURES, checks_itself=True)
    compiled = StepResult(argv=("iree-compile", "a.mlir"), ended=Exited(code=1))
    assert classify_run(Exited(code=1), [compiled], context).answer is Answer.SKIP


def test_a_printed_reference_decides_where_the_report_quotes_no_output() -> None:
    """Quoted output comes first: the report says which of the values is wrong."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT)
    differing, equal = "[3. nan 1.]\n[1. 3. nan]", "[1. 3. nan]\n[1. 3. nan]"
    assert judge(claim, Exited(code=0), stdout=differing, prints_reference=True).answer is Answer.BAD
    assert judge(claim, Exited(code=0), stdout=equal, prints_reference=True).answer is Answer.GOOD
    assert judge(claim, Exited(code=0), stdout=differing).answer is Answer.SKIP
    quoted = Claim(kind=ClaimKind.WRONG_RESULT, actual="[1. 3. nan]", expected="[9. 9. 9.]")
    assert judge(quoted, Exited(code=0), stdout=equal, prints_reference=True).answer is Answer.BAD


def test_the_sentence_of_a_check_is_told_without_its_condition() -> None:
    """People quote the sentence alone, and releases change the condition in front of the sentence."""
    claim = Claim(kind=ClaimKind.ERROR, told="fails with\n`cannot make uint from negative value -1`")
    stderr = f"{OTHER_ERROR.splitlines()[0]}\ntvm.error.InternalError: Check failed: (value >= 0) is false: "
    said = judge(claim, Exited(code=1), stderr=f"{stderr}cannot make uint from negative value -1")
    assert said.answer is Answer.BAD
    assert judge(claim, Exited(code=1), stderr=f"{stderr}cannot make an integer of this").answer is Answer.SKIP


@pytest.mark.parametrize(("printed", "answer"), [("f32 1e-7", Answer.SKIP), ("f32 1e-7\nf16 0.2", Answer.BAD)])
def test_a_run_that_ends_before_the_last_quoted_row_is_another_failure(printed: str, answer: Answer) -> None:
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="f32 1e-7\nf16 0.2")
    assert judge(claim, Exited(code=1), stdout=printed, stderr="RuntimeError: unknown intrinsic").answer is answer


@pytest.mark.parametrize("type", ["AssertionError", "unexpected-output"])
def test_a_holding_check_outweighs_quoted_output(type: str) -> None:
    """ "Some runs print 1 and go through": quoted output need not be wrong, so the check decides."""
    check = Signature(type=type, message="not fused")
    claim = Claim(kind=ClaimKind.WRONG_RESULT, signature=check, actual="1 kernels")
    assert judge(claim, Exited(code=0), stdout="1 kernels", checks_itself=True).answer is Answer.GOOD
    assert judge(claim, Exited(code=0), stdout="1 kernels").answer is Answer.BAD


@given(outcome=st.sampled_from(list(Outcome)))
def test_only_match_is_bad_and_only_pass_is_good(outcome: Outcome) -> None:
    """All other outcomes are skipped."""
    expected = {Outcome.MATCH: Answer.BAD, Outcome.PASS: Answer.GOOD}.get(outcome, Answer.SKIP)
    assert get_answer(outcome) is expected


@given(stdout=st.text(max_size=500), stderr=st.text(max_size=500), code=st.integers(-5, 300))
def test_any_output_is_classified(stdout: str, stderr: str, code: int) -> None:
    """No output of a guest makes the oracle fail."""
    for claim in (ERROR, CRASH, PRINTED, HANG, UNKNOWN):
        assert judge(claim, Exited(code=code), stdout=stdout, stderr=stderr).why


def test_a_compilers_diagnostic_needs_no_device_to_be_gone() -> None:
    """The report fails in iree-compile; a build that compiles has passed there, whatever hardware lacks behind it."""
    claim = Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="failed to legalize 'a.b'"))
    steps = (
        StepResult(argv=("iree-compile",), ended=Exited(code=0)),
        StepResult(argv=("iree-run-module",), ended=Exited(code=1), stderr="UNAVAILABLE; HIP runtime"),
    )
    context = OracleContext(claim=claim, vocabulary=ALL_FAILURES, missing_device="no hip device or runtime here")
    assert classify_run(Exited(code=1), steps, context).outcome is Outcome.PASS
    assert classify_run(Exited(code=1), steps[1:], context).outcome is Outcome.UNAVAILABLE
    at_run_time = Claim(kind=ClaimKind.ERROR, signature=Signature(type="status:INTERNAL", message="bad"))
    unavailable = classify_run(
        Exited(code=1),
        steps,
        OracleContext(claim=at_run_time, vocabulary=ALL_FAILURES, missing_device="no hip device or runtime here"),
    )
    assert unavailable.outcome is Outcome.UNAVAILABLE
    assert unavailable.reason is Reason.COMPILES_WITHOUT_DEVICE


def test_wall_time_and_processor_time_are_distinguished() -> None:
    """A reader learns whether it ran too long or computed too much."""
    wall, processor = (
        judge(ERROR, TimedOut(where="step 1", clock=one), stdout="", stderr="").why for one in ("wall", "processor")
    )
    assert wall == "reached the time limit (step 1)"
    assert processor == "reached the limit of processor time (step 1)"


TOLD = 'chlo.digamma not legalized\nnote: see current operation: %0 = "chlo.digamma"(%arg0) : (tensor<4xf32>)'


@pytest.mark.parametrize(
    ("stderr", "outcome"),
    [
        (
            "a.mlir:2:8: error: failed to legalize operation\n"
            'a.mlir:2:8: note: see current operation: %3 = "chlo.digamma"(%x) : (tensor<4xf32>)',
            Outcome.MATCH,
        ),
        ("a.mlir:2:8: error: chlo.digamma not legalized", Outcome.OTHER_FAILURE),
        ("a.mlir:2:8: error: something else is wrong with this operation here", Outcome.OTHER_FAILURE),
        ('  File "a.py", line 3, in digamma_of_a_long_name\nValueError: no', Outcome.OTHER_FAILURE),
    ],
)
def test_a_failure_whose_line_the_report_holds_is_the_reported_one(stderr: str, outcome: Outcome) -> None:
    """A long line of the output, in a report without a signature. Short messages and stack frames say too little."""
    told = f'A title\n{TOLD}\n  File "a.py", line 3, in digamma_of_a_long_name'
    seen = judge(Claim(kind=ClaimKind.ERROR, told=told), Exited(code=1), stderr=stderr)
    assert seen.outcome is outcome
    assert judge(Claim(kind=ClaimKind.ERROR), Exited(code=1), stderr=stderr).outcome is Outcome.OTHER_FAILURE


def test_a_line_of_the_input_that_a_diagnostic_repeats_is_no_failure_that_the_report_holds() -> None:
    """The report holds its own command. Whatever is wrong with it, the parser prints it above a caret."""
    pipeline = "func.func(some-pass-with-a-long-name{tile-sizes=4,4,1 interchange=0,2,1}"
    stderr = f"<unknown>:0: error: encountered unbalanced parentheses\n{pipeline}\n          ^"
    claim = Claim(kind=ClaimKind.CRASH, told=f"iree-opt -pass-pipeline={pipeline}\n{pipeline} crashes")
    assert judge(claim, Exited(code=1), stderr=stderr).outcome is Outcome.OTHER_FAILURE


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("4xf32=1 2 3 4", "4xf32 = 1 2 3 4"),
        ("4xf32=1 NAN 3 4", ""),
        ("done", ""),
    ],
)
def test_other_values_than_the_quoted_ones_are_named(printed: str, message: str) -> None:
    """They decide nothing alone: the verdict compares them with the other builds."""
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="4xf32=1 NAN 3 5")
    seen = judge(claim, Exited(code=0), stdout=printed)
    assert seen.outcome is not Outcome.MATCH
    if message:
        assert seen.outcome is Outcome.OTHER_FAILURE
        assert seen.signature is not None
        assert seen.signature.message == message


DIAGNOSTIC = Claim(
    kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="failed to legalize operation 'tosa.cast'")
)


@pytest.mark.parametrize(
    ("claim", "programs", "outcome"),
    [
        (DIAGNOSTIC, ("iree-compile", "iree-run-module"), Outcome.PASS),
        (DIAGNOSTIC, ("iree-compile", "iree-opt"), Outcome.OTHER_FAILURE),
        (DIAGNOSTIC, ("iree-run-module",), Outcome.OTHER_FAILURE),
        (ERROR, ("iree-compile", "iree-run-module"), Outcome.OTHER_FAILURE),
        (CRASH, ("iree-compile", "iree-run-module"), Outcome.OTHER_FAILURE),
    ],
)
def test_a_run_that_fails_behind_the_compiler_is_past_a_diagnostic_of_the_compiler(
    claim: Claim, programs: tuple[str, ...], outcome: Outcome
) -> None:
    """The inputs may be wrong, or be missing in the report: the reported failure came before them."""
    said = "INVALID_ARGUMENT; input list and function mismatch; expected 2 arguments but passed 1"
    done = [StepResult(argv=(program, "a"), ended=Exited(code=0)) for program in programs[:-1]]
    failed = StepResult(argv=(programs[-1], "a"), ended=Exited(code=1), stderr=said)
    context = OracleContext(claim=claim, vocabulary=ALL_FAILURES, compilers=("iree-compile", "iree-opt"))
    assert classify_run(Exited(code=1), [*done, failed], context).outcome is outcome


IREE = find_toolchain("iree").FAILURES
ASSERTED = Claim(
    kind=ClaimKind.CRASH,
    signature=Signature(type="SIGABRT", message="succeeded(Type::verify(context))"),
    told="a.mlir: error: invalid element type\niree-opt: T.h:18: Assertion `succeeded(...)' failed.",
)


@pytest.mark.parametrize(
    ("claim", "file", "says", "outcome"),
    [
        (ASSERTED, READ_BACK, "invalid element type", Outcome.MATCH),
        (ASSERTED, READ_BACK, "invalid element", Outcome.OTHER_FAILURE),
        (ASSERTED, "a.mlir", "invalid element type", Outcome.OTHER_FAILURE),
        (CRASH, READ_BACK, "invalid element type", Outcome.OTHER_FAILURE),
    ],
)
def test_a_printed_program_that_the_compiler_refuses_shows_an_assertion(
    claim: Claim, file: str, says: str, outcome: Outcome
) -> None:
    """With the error above the assertion. The same error about the testcase itself is how a release should end."""
    printed = StepResult(argv=("iree-opt", "a.mlir", "-o", file), ended=Exited(code=0))
    read = StepResult(argv=("iree-opt", file), ended=Exited(code=1), stderr=f"{file}:3:9: error: {says}\n")
    context = OracleContext(claim=claim, vocabulary=IREE)
    assert classify_run(Exited(code=1), [printed, read], context).outcome is outcome


def test_a_crash_stands_for_a_check_that_releases_are_built_without() -> None:
    used = "'affine.for' op operation destroyed but still has uses"
    claims = (Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message=one)) for one in (used, "x"))
    crash = [StepResult(argv=("iree-opt", "a.mlir"), ended=Signalled(code=11))]
    outcomes = [classify_run(Signalled(code=11), crash, OracleContext(claim=one, vocabulary=IREE)) for one in claims]
    assert [one.outcome for one in outcomes] == [Outcome.MATCH, Outcome.OTHER_FAILURE]
