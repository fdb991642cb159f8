"""A missing name explains a failure only when the testcase itself uses it."""

from __future__ import annotations

import pytest

from runners.core.failure.api_drift import find_drift, find_moved_name
from runners.core.findings.kinds import Moved
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains import iree, tvm


def python(code: str) -> Testcase:
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": code}, steps=(("python", "r.py"),))


def command(*step: str, mlir: str = "") -> Testcase:
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": mlir}, steps=(step,))


@pytest.mark.parametrize(
    ("code", "failure", "name", "successor"),
    [
        ("from tvm import tir", "ImportError: cannot import name 'tir' from 'tvm' (x.py)", "tvm.tir", "tvm.tirx"),
        ("import tvm.relay", "ModuleNotFoundError: No module named 'tvm.relay'", "tvm.relay", None),
        ("a = tvm.arith.Analyzer()", "AttributeError: module 'tvm' has no attribute 'arith'", "tvm.arith", "tvm.sym"),
        (
            'PassContext(config={"tir.noalias": 1})',
            "AttributeError: Invalid config option 'tir.noalias' candidates are: tirx.noalias",
            "tir.noalias",
            "tirx.noalias",
        ),
    ],
)
def test_known_drift_of_tvm(code: str, failure: str, name: str, successor: str | None) -> None:
    """The table names the release and the successor."""
    moved = find_drift(failure, python(code), tvm, "0.27.0")
    assert moved is not None
    assert (moved.name, moved.successor) == (name, successor)
    assert (moved.moved, f"was removed in {moved.version}" in moved.why) == (Moved.REMOVED, True)


def test_a_missing_name_of_an_exception_that_a_program_catches_and_prints() -> None:
    """``except Exception as e: print("crashed:", e)`` prints the message without the name of its class."""
    printed = "crashed: module 'tvm' has no attribute 'compile'"
    moved = find_drift(printed, python("tvm.compile(m)"), tvm, "0.25.0", caught=True)
    assert moved is not None
    assert moved.name == "tvm.compile"
    assert find_drift(printed, python("tvm.compile(m)"), tvm, "0.25.0") is None


def test_a_missing_name_outside_the_table_is_drift_too() -> None:
    """Reverse drift: a testcase newer than the build."""
    failure = "TypeError: relax_call() got an unexpected keyword argument 'layout_hint'"
    moved = find_drift(failure, python("relax_call(x, layout_hint=1)"), tvm, "0.25.0")
    assert moved is not None
    assert "0.25.0" in moved.why
    assert (moved.moved, moved.version) == (Moved.UNKNOWN, "0.25.0")


@pytest.mark.parametrize(
    ("code", "failure", "version", "says", "fields"),
    [
        (
            "topi.vision.generate_anchor(x)",
            "AttributeError: module 'tvm.topi.vision' has no attribute 'generate_anchor'",
            "0.27.0",
            "tvm.topi.vision.generate_anchor is missing from every available build since 0.22.0",
            (Moved.MISSING_SINCE, "0.22.0", ""),
        ),
        (
            "relax.transform.FuseTransposeMatmul()",
            "AttributeError: module 'tvm.relax.transform' has no attribute 'FuseTransposeMatmul'",
            "0.17.dev0",
            "does not exist in 0.17.dev0; 0.22.0 has it",
            (Moved.ABSENT, "0.17.dev0", "0.22.0"),
        ),
    ],
)
def test_a_listed_name_states_the_first_build_without_it(
    code: str, failure: str, version: str, says: str, fields: tuple[Moved, str, str]
) -> None:
    """The list has exactly this name, and no replacement is invented."""
    moved = find_drift(failure, python(code), tvm, version)
    assert moved is not None
    assert moved.successor is None
    assert says in moved.why
    assert (moved.moved, moved.version, moved.added_in) == fields


@pytest.mark.parametrize(
    "failure",
    [
        "AttributeError: Check failed: (reg != nullptr) is false: Operator tir.isnullptr is not registered",
        "ValueError: Cannot handle str op argument tir.isnullptr. This function only handles str argument with",
    ],
)
def test_a_registered_name_is_known_from_the_registries_of_builds(failure: str) -> None:
    """They tell the first build without it, which need not be the release that moved it, and its successor."""
    moved = find_drift(failure, python("call_intrin('bool', 'tir.isnullptr', x)"), tvm, "0.25.0")
    assert moved is not None
    assert moved.why == "tir.isnullptr is missing from every available build since 0.25.0; tirx.isnullptr replaces it"
    assert (moved.successor, moved.moved) == ("tirx.isnullptr", Moved.MISSING_SINCE)
    assert find_drift(failure, python("topi.nn.relu(x)"), tvm, "0.25.0") is None


def test_a_missing_name_outside_the_testcase_is_a_fault_of_the_compiler() -> None:
    """The testcase never wrote that name."""
    failure = "AttributeError: 'NoneType' object has no attribute 'struct_info'"
    assert find_drift(failure, python("tvm.compile(mod)"), tvm, "0.27.0") is None


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        (
            ("iree-compile", "--iree-hal-target-device=llvm-cpu"),
            'error: unregistered device alias "llvm-cpu"; ensure',
        ),
        (("iree-compile", "--iree-old-switch"), "iree-compile: Unknown command line argument '--iree-old-switch'."),
        (
            ("iree-compile", "--iree-hal-target-backends=old-backend"),
            "m.mlir:0:0: error: target backend 'old-backend' not registered; registered backends: [llvm-cpu, vmvx]",
        ),
        (
            ("iree-compile", "--iree-input-type=old-dialect"),
            "error: unknown custom value for --iree-input-type='old-dialect' (available: 'stablehlo' 'onnx')",
        ),
        (
            ("iree-opt", "--pass-pipeline=builtin.module(old-pass)"),
            "PassPipeline Parser:1:1: error: 'old-pass' does not refer to a registered pass or pass pipeline",
        ),
    ],
)
def test_flags_of_other_releases(step: tuple[str, ...], failure: str) -> None:
    """An unknown flag is neither good nor bad."""
    assert find_drift(failure, command(*step), iree, "3.13.0") is not None


def test_an_op_of_another_release_is_drift() -> None:
    """Dialects move too."""
    failure = "m.mlir:1:1: error: custom op 'flow.dispatch.tensor.load' is unknown (tried 'func.flow')"
    assert find_drift(failure, command("iree-opt", mlir="%0 = flow.dispatch.tensor.load %a"), iree, "3.5.0")


@pytest.mark.parametrize("failure", ["", "AssertionError: wrong", "error: operand #0 does not dominate this use"])
def test_an_ordinary_failure_is_no_drift(failure: str) -> None:
    """Only a missing name is."""
    assert find_drift(failure, python("assert x"), tvm, "0.27.0") is None


def test_a_target_that_is_no_longer_accepted_is_drift() -> None:
    """When it is the testcase's own."""
    failure = 'ValueError: Cannot parse target string "llvm -mcpu=x". CLI target string form is no longer supported.'
    moved = find_drift(failure, python('Target("llvm -mcpu=x")'), tvm, "0.27.0")
    assert moved is not None
    assert "dictionary" in moved.why
    assert find_drift(failure, python('Target("llvm")'), tvm, "0.27.0") is None


def test_an_owner_that_is_loaded_was_not_removed() -> None:
    """`tvm.auto_scheduler` is gone since 0.20; a report from inside of it is about something else."""
    table = tvm.DRIFT
    gone = find_moved_name("AttributeError: module 'tvm' has no attribute 'auto_scheduler'", table)
    assert gone is not None
    inside = "AttributeError: module 'tvm.auto_scheduler._ffi_api' has no attribute 'RandomModel'"
    assert find_moved_name(inside, table) is None
