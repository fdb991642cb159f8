"""One failure printed in several ways is one; one sentence about several things is several. Texts are our own."""

from __future__ import annotations

import pytest

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.parse import parse_signature
from runners.core.failure.stack_frames import find_raise_site
from runners.core.protocol import Exited, Signalled, Signature, TimedOut
from runners.toolchains import ALL_FAILURES

SITE = "/opt/env/lib/python3.11/site-packages"


def traceback(site: str, error: str, folder: str = "ir") -> str:
    return (
        'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n    fold(x)\n'
        f'  File "{SITE}/tvm/ir/fold.py", line 30, in fold\n    return _ffi_api.Fold(x)\n'
        '  File "python/tvm_ffi/cython/function.pxi", line 968, in tvm_ffi.core.Function.__call__\n'
        f'  File "/project/src/{folder}/fold.h", line 30, in {site}\n{error}\n'
    )


QUOTIENT = "tvm::ffi::Optional<tvm::PrimExpr> tvm::arith::Fold(tvm::PrimExpr) [with Op = tvm::tirx::FloorDiv]"
REST = QUOTIENT.replace("FloorDiv", "Mod")
MOVED = QUOTIENT.replace("tvm::arith::", "tvm::prim::detail::").replace("tirx", "prim")
ZERO = "tvm.error.InternalError: Check failed: b->value != 0 (0 vs. 0) : Divide by zero"
WRAPPER = (
    "\nThe above exception was the direct cause of the following exception:\n\n"
    'Traceback (most recent call last):\n  File "a.py", line 12, in <module>\n'
    '    raise RuntimeError("no plan") from e\nRuntimeError: no plan\n'
)
MLIR = (
    "a.mlir:2:3: error: failed to legalize operation 'gpu.sync'\n  gpu.sync\n  ^\n"
    "a.mlir:1:1: note: called from\na.mlir:0:0: error: conversion failed\n"
)
RELAY = (
    f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    compile_file("a.mlir")\n'
    f'  File "{SITE}/iree/compiler/tools/core.py", line 255, in compile_file\n    result = invoke(cl)\n'
    "iree.compiler.tools.binaries.CompilerToolError: Error invoking IREE compiler tool iree-compile\n"
    "Error code: {code}\nDiagnostics:\n{text}\n\nInvoked with:\n iree-compile a.mlir\n"
)
STACK = (
    "Stack dump:\n0.\tProgram arguments: iree-compile a.mlir\n"
    " #0 0x00007f01 llvm::sys::PrintStackTrace(x) S.cpp:0:0\n"
    " #4 0x00007f02 mlir::FloatType::getWidth() Types.cpp:0:0\n"
    " #5 0x00007f03 mlir::iree_compiler::{function}(mlir::Location) Fold.cpp:0:0\n"
    " #6 0x00007f04 mlir::PassManager::run(mlir::Operation*) Pass.cpp:0:0\n"
)


def read(text: str) -> Signature:
    found = parse_signature(text, ALL_FAILURES, Exited(code=1))
    assert found is not None
    return found


def same(one: str, other: str) -> bool:
    forth, back = (
        compare_signatures(read(one), read(other), ALL_FAILURES).score >= SAME,
        compare_signatures(read(other), read(one), ALL_FAILURES).score >= SAME,
    )
    assert forth is back
    return forth


def test_one_sentence_of_two_functions_is_two_failures() -> None:
    """The quotient's fold and the remainder's refuse a zero in the same words; only the C++ frame tells."""
    assert not same(traceback(QUOTIENT, ZERO), traceback(REST, ZERO))


def test_a_function_that_moved_is_still_the_same() -> None:
    """Another file, another namespace, another release."""
    assert same(traceback(QUOTIENT, ZERO), traceback(MOVED, ZERO, "ir/prim"))
    assert read(traceback(MOVED, ZERO)).site == "Fold[FloorDiv]"


def test_a_function_renamed_with_the_struct_infos_is_still_the_same() -> None:
    """TVM 0.26 called types what had been struct infos."""
    wanted = "ValueError: Flip wants an axis of the tensor's own"
    old, new = (f"tvm::Type tvm::relax::{name}(const Call&)" for name in ("InferStructInfoFlip", "InferTypeFlip"))
    assert same(traceback(old, wanted), traceback(new, wanted))


@pytest.mark.parametrize(
    "frames",
    [
        [],
        ['  File "/x/a.cc", line 0, in tvm::F(int)'],
        ['  File "/x/a.cc", line 3, in tvm::F(int)', '  File "b.py", line 1, in f'],
    ],
)
def test_a_site_is_the_innermost_frame_and_of_known_place(frames: list[str]) -> None:
    """A frame without a line is one of the call's; where Python's frame is the innermost, Python raised it."""
    assert find_raise_site(frames) == ""


def test_what_a_testcase_wraps_around_an_error_does_not_hide_it() -> None:
    """``raise RuntimeError(...) from e``: the compiler's exception is the failure, whoever reports it how."""
    plain = traceback(QUOTIENT, ZERO)
    assert same(plain, plain + WRAPPER)
    assert same(plain, plain + WRAPPER + WRAPPER)
    assert not same(traceback(REST, ZERO) + WRAPPER, plain + WRAPPER)


def test_an_error_of_the_testcases_own_is_not_looked_behind() -> None:
    """Where nothing of the compiler's was raised, the last exception is what it always was."""
    own = 'Traceback (most recent call last):\n  File "a.py", line 2, in f\n    {}["k"]\nKeyError: \'k\'\n'
    assert read(own + WRAPPER).type == "RuntimeError"
    compilers = traceback(QUOTIENT, ZERO)
    behind = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert read(own + behind + compilers).type == "InternalError"


def test_a_relayed_diagnostic_is_the_compilers() -> None:
    """The same message from the command line and from Python; the relay's own words are those of every failure."""
    relayed = RELAY.format(code=1, text=MLIR)
    assert same(MLIR, relayed)
    assert not same(relayed, relayed.replace("gpu.sync", "gpu.lane"))


def test_a_relayed_crash_keeps_its_signal_and_its_stack() -> None:
    """The child's status is in the relay's text."""
    seen = read(RELAY.format(code=-11, text=STACK.format(function="Fold")))
    assert seen.type == "SIGSEGV"
    assert seen.frames == ("mlir::iree_compiler::Fold",)


def test_two_crashes_in_one_accessor_are_two() -> None:
    """The width of a type is asked for everywhere: who asked tells, not MLIR's own classes."""
    one, other = (RELAY.format(code=-11, text=STACK.format(function=name)) for name in ("Fold", "Pack"))
    assert same(one, one)
    assert not same(one, other)


def test_a_stack_that_breaks_off_behind_its_callees_is_compared_by_their_class() -> None:
    """Builds inline different methods, so the innermost one need not be the report's."""
    cut = STACK.partition(" #5")[0]
    reported = parse_signature(cut, ALL_FAILURES, Signalled(code=11))
    assert reported is not None
    for method, score in (("FloatType::isF32", 0.95), ("Block::getTerminator", 0.3)):
        whole = STACK.format(function="fold").replace("FloatType::getWidth", method)
        observed = parse_signature(whole, ALL_FAILURES, Signalled(code=11))
        assert observed is not None
        assert compare_signatures(reported, observed, ALL_FAILURES).score == score


@pytest.mark.parametrize(
    ("asserted", "stack", "same"),
    [
        ('isa<To>(Val) && "cast<Ty>() argument of incompatible type!"', "", True),
        ("isa<To>(Val)", STACK.format(function="Pack"), False),  # it has a stack to compare, and another one
        ("LLVM ERROR: out of memory", "", False),  # no assertion
    ],
)
def test_a_crash_may_be_an_assertion_that_releases_leave_out(asserted: str, stack: str, same: bool) -> None:
    reported = parse_signature(
        f"iree-opt: Casting.h:572: To cast(From): Assertion `{asserted}' failed.\n{stack}",
        ALL_FAILURES,
        Signalled(code=6),
    )
    observed = parse_signature(STACK.format(function="Fold"), ALL_FAILURES, Signalled(code=11))
    assert reported is not None
    assert observed is not None
    assert (compare_signatures(reported, observed, ALL_FAILURES).score >= SAME) is same


def test_a_parser_that_passes_an_error_on_does_not_change_it() -> None:
    """TVM's script parser raises it again as its own, with the line of the script."""
    words = "Flip wants an axis of the tensor's own, this is not one"
    assert same(f"ValueError: {words}", f"tvm.error.DiagnosticError: error: {words}\n --> a.py:3:4")
    assert not same(f"AssertionError: {words}", f"tvm.error.DiagnosticError: error: {words}")
    assert not same("ValueError: no axis", "tvm.error.DiagnosticError: error: no axis")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            'ValueError: In ir.Op(span=None, name="relax.argmax", support_level=10), the axis 7 is too large',
            'ValueError: In ir.Op(span=None, name="relax.softmax", support_level=10), the axis 7 is too large',
        ),
        (
            "ScheduleError: An error occurred in the schedule primitive 'rfactor'.\nError message: no reduction here",
            "ScheduleError: An error occurred in the schedule primitive 'split-reduction'.\n"
            "Error message: no reduction here",
        ),
        (
            "RuntimeError: Check failed: shape[i] == r (4 vs. 3) : In(fn=f, p=q)  mismatch to the fixed constant",
            "RuntimeError: Check failed: shape[i] == heap[r] (4 vs. 3) : In(fn=f, p=q)  mismatch to an earlier one",
        ),
    ],
    ids=["operator", "primitive", "condition and sentence"],
)  # fmt: skip
def test_one_check_of_two_subjects_is_two_failures(one: str, other: str) -> None:
    """One function checks several operations: the operation is part of the failure."""
    assert not same(one, other)


def test_a_rewritten_condition_with_the_same_sentence_matches() -> None:
    """The sentence behind it is the same, word for word."""
    words = ": Expected an integer on the left of the operator, but received n of type float32"
    condition = "a.dtype().is_int() || a.dtype().is_uint() || a.dtype().is_bool()"
    old = f"InternalError: Check failed: ({condition}) is false{words}"
    assert same(old, f"InternalError: Check failed: (a.ty().Matches(kInt, kUInt, kBool)) is false{words}")


def test_names_of_the_testcase_do_not_distinguish_failures() -> None:
    """Another variant of the testcase has other names; an operation's name is the compiler's."""
    assert same(
        "a.mlir:1:1: error: 'util.load' op type mismatch; global \"weight\" is 'tensor<4xf32>' but load is 'f32'",
        "a.mlir:9:1: error: 'util.load' op type mismatch; global \"b\" is 'tensor<17xf32>' but load is 'f32'",
    )
    assert not same(
        "INTERNAL; no driver `vulkan` in this build of it", "INTERNAL; no driver `metal` in this build of it"
    )


def test_a_result_other_than_the_expected_one_is_a_failure() -> None:
    """iree-run-module compares by itself; a shape is not a value."""
    value = (
        "[FAILED] result[0]: element at index 0 (4) does not match the expected (8); expected that the view is equal"
    )
    shape = (
        "[FAILED] result[0]: metadata is 4xf32; expected that the view matches 5xf32; expected that the view is equal"
    )
    assert same(value, value.replace("(4)", "(5)"))
    assert not same(value, shape)


INVOKED = (
    'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n    module.f(x)\n'
    f'  File "{SITE}/iree/runtime/function.py", line 166, in _invoke\n    self._context.invoke(x)\n'
)
STATUS = "c/runtime/diagnostics.c:225: INVALID_ARGUMENT; input0 shape dimension 0 mismatch; expected 4 but have 5"


def test_a_status_that_python_passes_on_is_the_runtimes() -> None:
    """iree-run-module prints it, iree.runtime raises it; words of a testcase that look like one are its own."""
    assert same(f"EXEC @f\n{STATUS}", f"{INVOKED}ValueError: Error invoking function: {STATUS}")
    other = STATUS.replace("shape dimension 0 mismatch", "element type mismatch")
    assert not same(f"{INVOKED}ValueError: Error invoking function: {STATUS}", f"{INVOKED}ValueError: Error: {other}")
    assert read(f"ValueError: I saw INTERNAL; {STATUS}").type == "ValueError"


def test_another_requirement_of_the_same_function_is_another_failure() -> None:
    """One opening, one function, two sentences: words in the place of words. A cut report has none in their place."""
    groups = "ValueError: Norm expects that the size of the channel axis must be divisible by 3, but got 4"
    length = (
        "ValueError: Norm expects that the size of input 1 must be equal to the size of the axis, but got 5 and 4"
    )
    assert not same(groups, length)
    assert same(length, "ValueError: Norm expects that the size of input 1 must be equal to the size")


def test_hangs_differ_by_step_not_by_time_limit() -> None:
    """Compiling for ever is not running for ever."""
    first, later, second = (
        parse_signature("", ALL_FAILURES, TimedOut(where=where))
        for where in (
            "step 1 (iree-compile a), after 10 s",
            "step 1 (iree-compile b), after 60 s",
            "step 2 (c), after 10 s",
        )
    )
    assert first is not None
    assert later is not None
    assert second is not None
    assert compare_signatures(first, later, ALL_FAILURES).score >= SAME
    assert compare_signatures(first, second, ALL_FAILURES).score < SAME


def test_a_quotation_that_breaks_off_inside_its_native_stack_has_no_message() -> None:
    """Its last row is a frame. The frames of Python above it have nothing in common with a native stack."""
    head = traceback(QUOTIENT, "").partition('  File "python/tvm_ffi')[0] + "tvm._ffi.base.TVMError: "
    cut = f"{head}Traceback (most recent call last):\n  [bt] (8) 9   libtvm.dylib  0x11dea6d79 tvm::Fold(int) + 425\n"
    whole = f"{cut}  [bt] (7) 8   libtvm.dylib  0x11dea6d78 tvm::Find(int)\n{ZERO}\n"
    first, seen = (parse_signature(text, ALL_FAILURES) for text in (cut, whole))
    assert first is not None
    assert seen is not None
    assert first.message == ""
    assert seen.message == ZERO.partition(": ")[2]
    assert compare_signatures(first, seen, ALL_FAILURES).score >= SAME
    native = Signature(type="InternalError", message=ZERO, frames=("tvm::Find",))
    assert compare_signatures(first, native, ALL_FAILURES).score >= SAME
    other = Signature(type="ValueError", message=ZERO)
    assert compare_signatures(first, other, ALL_FAILURES).score < SAME


RULE = "Check failed: (a.is_int()) is false: Expected an integer on the left side of >>, but received buffer_1"


@pytest.mark.parametrize(
    ("quoted", "same"),
    [
        ("Check failed: ... Expected an integer on the left side of >>, but received buffer", True),
        ("Check failed: … : Expected an integer on the left side of >>", True),
        ("Check failed: ... Expected a constant extent of the loop, but received buffer", False),
        ("Check failed: ... Another rule of another operation", False),
    ],
)
def test_a_quote_may_leave_out_the_condition_of_a_check(quoted: str, same: bool) -> None:
    compared = compare_signatures(
        Signature(type="InternalError", message=quoted), Signature(type="InternalError", message=RULE), ALL_FAILURES
    )
    assert (compared.score >= SAME) is same


@pytest.mark.parametrize(
    ("quoted", "same"),
    [
        ("StructuralEqual check failed", True),
        ("StructuralEqual check failed.", True),
        ("StructuralEqual check", False),
        ("Another check failed", False),
    ],
)
def test_a_quote_may_end_at_a_mark(quoted: str, same: bool) -> None:
    printed = "StructuralEqual check failed, caused by lhs at <root>.body.value: T.int32(1) and rhs at <root>"
    compared = compare_signatures(
        Signature(type="ValueError", message=quoted), Signature(type="ValueError", message=printed), ALL_FAILURES
    )
    assert (compared.score >= SAME) is same


def test_a_crash_with_the_same_last_words_may_end_by_another_signal() -> None:
    """A compiler prints a sentence before the banner of its crash handler. Rows of a program are no such sentence."""
    said = "ElementsAttr does not provide iteration facilities for type `mlir::Attribute`"
    banner = "Please report issues to https://example.org/issues and include the crash backtrace."
    reported = parse_signature(f"{said}\n{banner}\nStack dump:\nAborted (core dumped)\n", ALL_FAILURES)
    seen = parse_signature(f"{said}\n{banner}\n", ALL_FAILURES, Signalled(code=5))
    assert reported is not None
    assert seen is not None
    assert (reported.type, seen.type) == ("SIGABRT", "SIGTRAP")
    assert compare_signatures(reported, seen, ALL_FAILURES).score >= SAME
    other = parse_signature(f"another sentence of the same length here\n{banner}\n", ALL_FAILURES, Signalled(code=5))
    assert other is not None
    assert compare_signatures(reported, other, ALL_FAILURES).score < SAME
    program = parse_signature(f"%0 = tosa.add %a and more words\n{banner}\n", ALL_FAILURES, Signalled(code=5))
    assert program is not None
    assert program.message == ""


@pytest.mark.parametrize(
    "reported",
    [
        "Check failed: (value >= 0) is false: cannot make uint from negative value -1",
        "cannot make uint from negative value -1",
        "(value >= 0) is false: cannot make uint from negative value -1",
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_a_condition_that_one_side_lacks_is_no_difference(reported: str, complete: bool) -> None:
    """Its author left it out, or another release prints none."""
    sentence = "cannot make uint from negative value -1"
    message = f"Check failed: (value >= 0) is false: {sentence}" if complete else sentence
    said, seen = (Signature(type="InternalError", message=one) for one in (reported, message))
    assert compare_signatures(said, seen, ALL_FAILURES).score >= SAME
