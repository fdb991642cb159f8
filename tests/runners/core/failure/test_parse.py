"""What is the same failure, and what is not. Texts are our own, in the shapes that compilers print."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.normalize import describe_type, name_type, normalize_message
from runners.core.failure.parse import parse_signature
from runners.core.protocol import Exited, OutOfMemory, Signalled, Signature
from runners.toolchains import ALL_FAILURES

PYTHON_TRACEBACK = """\
building
Traceback (most recent call last):
  File "/home/kim/models/net.py", line 31, in <module>
    lib = tvm.compile(Net, target="llvm")
  File "/opt/env/lib/python3.11/site-packages/tvm/driver/build_module.py", line 104, in compile
    return relax.build(mod)
  File "/opt/env/lib/python3.11/site-packages/tvm/relax/vm_build.py", line 263, in build
    mod = pipeline(mod)
tvm.error.InternalError: Check failed: (it != slots.end()) is false: no slot for variable h_12
"""
NESTED_TVM = """\
Traceback (most recent call last):
  File "t.py", line 3, in <module>
    f()
tvm._ffi.base.TVMError: Traceback (most recent call last):
  3: TVMFuncCall
  2: tvm::runtime::PackedFuncObj::Extractor<tvm::relax::Lower>::Call(tvm::runtime::TVMArgs)
  1: tvm::relax::LowerSlots::VisitExpr_(tvm::relax::CallNode const*)
  0: tvm::relax::SlotMap::Find(tvm::relax::Var)
  File "/src/relax/slots.cc", line 77
TVMError: Check failed: (it != slots.end()) is false: no slot for variable h_3
"""
MLIR = """\
net.mlir:4:9: error: 'flow.slice' op expected 2 offsets, got 3
    %0 = flow.slice %a
         ^
net.mlir:4:9: note: see current operation: %7 = "flow.slice"(%4)
net.mlir:1:1: error: failed to translate executables
"""
STACK = """\
Please report issues to the tracker and include the crash backtrace.
Stack dump:
0.\tProgram arguments: /opt/x/iree-compile a.mlir
 #0 0x00007f00 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/x/lib.so+0x63b49a8)
 #1 0x00007f01 mlir::iree_compiler::(anonymous namespace)::Fold<mlir::CastOp>::run(mlir::Op*) const F.cpp:0:0
 #2 0x00007f02 mlir::iree_compiler::FoldPass::runOnOperation() Fold.cpp:0:0
Segmentation fault (core dumped)
"""
NUMPY = """\
Traceback (most recent call last):
  File "t.py", line 9, in <module>
    np.testing.assert_allclose(a, b, rtol=1e-5)
AssertionError:
Not equal to tolerance rtol=1e-05, atol=0

Mismatched elements: 3 / 16 (18.8%)
Max absolute difference: 0.25
"""
SCHEDULE = """\
Traceback (most recent call last):
  File "t.py", line 9, in <module>
    s.compute_inline(b)
tvm.s_tir.schedule.ScheduleError: An error occurred in the schedule primitive 'compute-inline'.

The IR with diagnostic is:
# from tvm.script import ir
Error message: The block T_add is the only consumer of nothing
"""


def test_the_last_words_of_a_dying_process_are_no_message() -> None:
    """The C library prints them below the traceback of a failed check."""
    text = (
        'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    assert a == b\nAssertionError\n'
    )
    found = parse_signature(f"{text}free(): invalid next size (fast)\n", ALL_FAILURES)
    assert found is not None
    assert (found.type, found.message) == ("AssertionError", "")


def test_an_exception_is_named_without_its_module_and_without_paths() -> None:
    """The same class is known by several module paths over the years."""
    seen = parse_signature(PYTHON_TRACEBACK, ALL_FAILURES)
    assert seen is not None
    assert seen.type == "InternalError"
    assert seen.message == "Check failed: (it != slots.end()) is false: no slot for variable h_12"
    assert seen.frames == ("tvm.relax.vm_build.build", "tvm.driver.build_module.compile")


def test_the_nested_native_traceback_gives_its_last_line_and_native_frames() -> None:
    """TVM prints a second traceback inside the message; the failed check identifies the failure."""
    seen = parse_signature(NESTED_TVM, ALL_FAILURES)
    assert seen is not None
    assert seen.message.startswith("Check failed: (it != slots.end())")
    assert "tvm::relax::SlotMap::Find" in seen.frames


def test_the_same_check_failing_under_two_class_names_is_one_failure() -> None:
    """TVMError became InternalError; variables are numbered differently in each run."""
    a, b = parse_signature(NESTED_TVM, ALL_FAILURES), parse_signature(PYTHON_TRACEBACK, ALL_FAILURES)
    assert a is not None
    assert b is not None
    assert compare_signatures(a, b, ALL_FAILURES).score >= SAME


def test_an_exception_class_may_have_any_name() -> None:
    """Below the frames of a traceback, any class name counts, with or without "Error"."""
    text = PYTHON_TRACEBACK.replace("tvm.error.InternalError: Check", "tvm.error.OpNotImplemented: Check")
    seen = parse_signature(text, ALL_FAILURES)
    assert seen is not None
    assert seen.type == "OpNotImplemented"


def test_the_first_diagnostic_is_the_cause() -> None:
    """Errors that follow are its echoes."""
    seen = parse_signature(MLIR, ALL_FAILURES)
    assert seen == Signature(type="mlir-error", message="'flow.slice' op expected 2 offsets, got 3")


def test_frames_without_numbers_count() -> None:
    """People leave out rows of a stack, and write "..." in the place of a number and an address."""
    text = (
        "Please report issues and include the crash backtrace.\n"
        " #0 0x00007f31 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (lib.so+0x6d)\n"
        " #1 0x00007f32 mlir::unit::ScalePattern::matchAndRewrite(mlir::Operation*) const Scale.cpp:0:0\n"
        " [conversion frames]\n ... mlir::unit::ScalePass::runOnOperation() Scale.cpp:0:0\n"
    )
    seen = parse_signature(text, ALL_FAILURES)
    assert seen is not None
    assert seen.frames == ("mlir::unit::ScalePattern::matchAndRewrite", "mlir::unit::ScalePass::runOnOperation")


def test_a_stack_dump_gives_the_compilers_functions() -> None:
    """Signal plumbing and arguments are left out."""
    seen = parse_signature(STACK, ALL_FAILURES)
    assert seen is not None
    assert seen.type == "SIGSEGV"
    assert seen.frames[0] == ("mlir::iree_compiler::(anonymous namespace)::Fold<mlir::CastOp>::run")
    assert seen.frames[1] == "mlir::iree_compiler::FoldPass::runOnOperation"


def test_a_message_on_the_next_line_is_found() -> None:
    """numpy begins its message with a line break."""
    seen = parse_signature(NUMPY, ALL_FAILURES)
    assert seen is not None
    assert seen.message == "Not equal to tolerance rtol=1e-05, atol=0 | Mismatched elements: 3 / 16 (18.8%)"


def test_a_fatal_row_of_a_log_is_the_failure() -> None:
    """TVM printed failures like this until 2020. A row with one place only is a remark."""
    remark = "[17:01:51] src/lang/ir.cc:23: no rule for this node"
    seen = parse_signature(f"[17:01:51] /src/dmlc/logging.h:308: {remark}\n\nStack trace returned 10", ALL_FAILURES)
    assert (seen and seen.type, seen and seen.message) == ("InternalError", "no rule for this node")
    assert parse_signature(remark, ALL_FAILURES) is None


NOTICE = """\
TVMError:
---------------------------------------------------------------
An error occurred during the execution of TVM.
For more information, please see: https://tvm.apache.org/docs/errors.html
---------------------------------------------------------------
  Check failed: (a < b) is false: no such loop
"""


@pytest.mark.parametrize("margin", ["", "E   "])
def test_a_notice_between_rulers_is_not_the_message(margin: str) -> None:
    """TVM 0.8 to 0.13 print one above each failed check. Otherwise all failed checks are the same failure."""
    seen = parse_signature("".join(margin + row for row in NOTICE.splitlines(keepends=True)), ALL_FAILURES)
    assert seen is not None
    assert seen.message == "Check failed: (a < b) is false: no such loop"


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_a_quotation_that_breaks_off_in_the_notice_has_no_message(rows: int) -> None:
    seen = parse_signature("".join(NOTICE.splitlines(keepends=True)[:rows]), ALL_FAILURES)
    assert seen is not None
    assert (seen.type, seen.message) == ("TVMError", "")


def test_a_generic_header_is_completed_by_the_telling_line() -> None:
    """Two schedule errors with one header differ in their last line."""
    one = parse_signature(SCHEDULE, ALL_FAILURES)
    other = parse_signature(
        SCHEDULE.replace("is the only consumer of nothing", "reads a buffer that it also writes"), ALL_FAILURES
    )
    assert one is not None
    assert other is not None
    assert "only consumer" in one.message
    assert compare_signatures(one, other, ALL_FAILURES).score < 1.0


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Signalled(code=11), "SIGSEGV"),
        (Exited(code=139), "SIGSEGV"),
        (Exited(code=245), "SIGSEGV"),
        (Exited(code=248), "SIGFPE"),
        (Signalled(code=6), "SIGABRT"),
        (Exited(code=251), "SIGTRAP"),
        (OutOfMemory(), "out-of-memory"),
    ],
)
def test_the_observed_end_outranks_the_output(ended: Signalled | Exited | OutOfMemory, kind: str) -> None:
    """Exit statuses that stand for a signal (128 + n, 256 - n) are read as one."""
    seen = parse_signature("AssertionError: nothing to do with it", ALL_FAILURES, ended)
    assert seen is not None
    assert seen.type == kind


@pytest.mark.parametrize(
    "text",
    ["", "all good\n", "no error: 0 warnings", "def error(): pass", "expected error rate 0.1", "x = ValueError"],
)
def test_ordinary_text_has_no_failure(text: str) -> None:
    """The word error alone is not a failure."""
    assert parse_signature(text, ALL_FAILURES) is None


@pytest.mark.parametrize(
    ("reported", "observed"),
    [
        (Signature(type="AssertionError", message="bad scale"), Signature(type="ValueError", message="bad scale")),
        (
            Signature(type="InternalError", message="Check failed: (n > 0) is false: empty shape in reshape"),
            Signature(type="InternalError", message="Check failed: (lhs.dtype == rhs.dtype) is false: types differ"),
        ),
        (
            Signature(type="mlir-error", message="operand #0 does not dominate this use"),
            Signature(type="mlir-error", message="'hal.interface.binding' op lowering failed to a common type"),
        ),
        (
            Signature(type="SIGSEGV", frames=("mlir::A::run", "mlir::B::visit")),
            Signature(type="SIGSEGV", frames=("mlir::C::run", "mlir::D::visit")),
        ),
        (
            Signature(type="AttributeError", message="module 'tvm.relax.frontend' has no attribute 'onnx'"),
            Signature(type="AttributeError", message="module 'tvm' has no attribute 'relay'"),
        ),
    ],
)  # fmt: skip
def test_other_failures_do_not_match(reported: Signature, observed: Signature) -> None:
    """Another class, another check, another diagnostic, another stack: another bug."""
    assert compare_signatures(reported, observed, ALL_FAILURES).score < SAME


def test_a_crash_in_the_same_function_is_the_same_whatever_the_signal() -> None:
    """A report may name the wrong signal; the stack identifies the crash."""
    reported = Signature(type="SIGSEGV", frames=("mlir::A::run",))
    assert (
        compare_signatures(
            reported, Signature(type="SIGTRAP", frames=("mlir::A::run", "mlir::B::visit")), ALL_FAILURES
        ).score
        >= SAME
    )
    assert (
        compare_signatures(reported, Signature(type="SIGTRAP", frames=("mlir::C::run",)), ALL_FAILURES).score < SAME
    )
    assert compare_signatures(reported, Signature(type="SIGTRAP"), ALL_FAILURES).score < SAME


def test_messages_that_drift_with_the_api_still_match() -> None:
    """A class renamed between releases does not make another failure."""
    old = Signature(
        type="InternalError", message="expects a relax.TensorStructInfo but got relax.TupleStructInfo here"
    )
    new = Signature(type="InternalError", message="expects a relax.TensorType but got relax.TupleType here")
    renames = {"relax.TensorStructInfo": "relax.TensorType", "relax.TupleStructInfo": "relax.TupleType"}
    assert compare_signatures(old, new, ALL_FAILURES, renames).score >= SAME


@given(st.text(max_size=300))
def test_normalising_twice_changes_nothing(text: str) -> None:
    """Idempotence: a stored message compares like a fresh one."""
    once = normalize_message(text)
    assert normalize_message(once) == once


@given(st.text(max_size=2000))
def test_any_text_is_parsed_without_failing(text: str) -> None:
    """The parser reads strangers' output."""
    parse_signature(text, ALL_FAILURES)
    parse_signature(text, ALL_FAILURES, Signalled(code=11))


@pytest.mark.parametrize(
    "name", ["tvm.error.OpNotImplemented", "torch.onnx.errors.Unsupported", "a.exceptions.Refused"]
)
def test_an_exception_of_an_errors_module_needs_no_frames_above_it(name: str) -> None:
    """Pasted alone, an exception without "Error" in its name is recognized by its module."""
    found = parse_signature(f"{name}: the operator Blur is not known", ALL_FAILURES)
    assert found is not None
    assert (found.type, found.message) == (
        name.rpartition(".")[2],
        "the operator Blur is not known",
    )
    assert parse_signature("relay.op.Blur: the operator is not known", ALL_FAILURES) is None
    bare = parse_signature("OpAttributeInvalid: a mode of Blur", ALL_FAILURES)
    assert bare is not None
    assert bare.type == "OpAttributeInvalid"


@pytest.mark.parametrize(
    "text",
    [
        "Check failed: lanes == 4 (8 vs. 4) : the vector is too wide",
        "Error Msg: Check failed : lanes == 4 (8 vs. 4) : the vector is too wide",
        "[10:11:12] /src/vector.cc:33: Check failed: lanes == 4 (8 vs. 4) : the vector is too wide\n",
        '[Bug] It says "Check failed: lanes == 4 (8 vs. 4) : the vector is too wide" for a mask',
        '"""\n  Check failed: lanes == 4 (8 vs. 4) :\n  the vector is too wide\n"""\n',
    ],
)
def test_a_failed_check_is_known_without_its_exception(text: str) -> None:
    """Quoted in a title, a row of a log, a docstring. In the output of a run, the exception is printed."""
    found = parse_signature(text, ALL_FAILURES)
    assert found is not None
    whole = parse_signature(
        "InternalError: Check failed: lanes == 4 (8 vs. 4) : the vector is too wide", ALL_FAILURES
    )
    assert whole == found
    assert parse_signature(text, ALL_FAILURES, ended=Exited(code=1)) is None
    assert parse_signature("The Check failed: and then it went on", ALL_FAILURES) is None


def test_the_last_line_of_a_schedule_error_matches_the_whole() -> None:
    """Reporters copy the specific line, which the exception prints last."""
    whole = parse_signature(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3, in <module>\n    sch.fuse(i, j)\n'
        "tvm.s_tir.schedule.schedule.ScheduleError: ScheduleError: An error occurred in the primitive 'fuse'.\n"
        "Error message: The loop tirx.For#0 is bound to a thread",
        ALL_FAILURES,
    )
    part = parse_signature("Error message: The loop tirx.For#0 is bound to a thread\n", ALL_FAILURES)
    assert whole is not None
    assert part is not None
    assert compare_signatures(part, whole, ALL_FAILURES).score >= SAME
    assert whole.message.startswith("An error occurred in the primitive")  # the type is said once
    other = parse_signature("Error message: The block tirx.SBlock#1 has two writers", ALL_FAILURES)
    assert other is not None
    assert compare_signatures(other, whole, ALL_FAILURES).score < SAME


def test_a_slash_between_two_words_is_no_directory() -> None:
    """``I/O`` stays; directories, whole or relative, go."""
    found = parse_signature(
        "a.mlir:1:1: error: I/O type of /tmp/x/dump.mlir and out/dump.mlir and b/c/dump is wrong", ALL_FAILURES
    )
    assert found is not None
    assert found.message == "I/O type of dump.mlir and dump.mlir and dump is wrong"


@pytest.mark.parametrize(
    ("reported", "observed", "same"),
    [
        ("Check failed: pads.size() == 1 (2 vs. 1) : One pad is needed, however two are given",
         "Check failed: steps.size() == 1 (2 vs. 1) : One step is needed, however two are given", False),
        ("Check failed: (lhs_info.as<A>()) is false: The left side must be a tensor, but it is a shape",
         "Check failed: (lhs_type.as<B>()) is false: The left side must be a tensor, but it is a tuple", True),
        ("No kernel has an input type like this: int32", "No kernel has an output type like this: int8", False),
        ("No kernel has an input type like this: int32", "No kernel has an input type like this: int8", True),
        ("The rank of the operand must be 2. However, the given one is a vector",
         "The rank of the operand must be 2. However, the given one is a scalar", True),
    ],
)  # fmt: skip
def test_one_sentence_about_two_things_is_two_failures(reported: str, observed: str, same: bool) -> None:
    """The requirement names the subject; the given value, types and figures depend on the testcase."""
    first, second = (Signature(type="InternalError", message=text) for text in (reported, observed))
    assert (compare_signatures(first, second, ALL_FAILURES).score >= SAME) is same
    assert (compare_signatures(second, first, ALL_FAILURES).score >= SAME) is same


def test_types_of_this_project_have_names_for_readers() -> None:
    """A sentence never shows ``mlir-error``; names of exceptions and signals stay as they are."""
    assert (describe_type("mlir-error"), name_type("mlir-error")) == ("an MLIR error", "MLIR error")
    assert (describe_type("status:NOT_FOUND"), name_type("status:NOT_FOUND")) == ("status NOT_FOUND",) * 2
    assert (describe_type("TypeError"), name_type("SIGSEGV")) == ("TypeError", "SIGSEGV")


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("EXEC @sum\nexit 245", "SIGSEGV"),
        ("Process finished with exit code 139", "SIGSEGV"),
        ("returncode: -6", "SIGABRT"),
        ("rc=132", "SIGILL"),
        ("exit code 1", None),
        ("exit code 1390", None),
        ("the return code is 0.139", None),
        ("returned 139 values", None),
    ],
)
def test_a_status_in_pasted_text_tells_a_signal(text: str, signal: str | None) -> None:
    """A shell adds 128 to the number of a signal, Python's callers negate it or subtract it from 256."""
    found = parse_signature(text, ALL_FAILURES)
    assert (found.type if found else None) == signal
    assert parse_signature(text, ALL_FAILURES, Exited(code=0)) is None
