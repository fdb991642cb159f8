"""Tests of arrays that become parameters of another element type."""

from __future__ import annotations

import pytest

from runners.core.failure.oracle import OUTPUT
from runners.core.findings.calls import OtherParameterType
from runners.core.protocol import Ended, Exited, Outcome, Signalled, Signature, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.calls.parameter_types import find_parameter_of_other_type
from tests.support.observed import observe

MODULE = 'M = """util.global private @b = #flow.parameter.named<"model"::"bias"> : tensor<6xf32>"""\n'
DONE = Exited(code=0)
WRONG = Signature(type=OUTPUT, message="[1. 2.75]")


def fail(code: str, ended: Ended = DONE, signature: Signature = WRONG) -> Failure:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="iree", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )
    return Failure(
        testcase=testcase, seen=observe("3.13.0", Outcome.MATCH, ended=ended, signature=signature, device="llvm-cpu")
    )


@pytest.mark.parametrize(
    ("call", "mended"),
    [
        ('index.add_buffer("bias", bias)', 'index.add_buffer("bias", (bias).astype("float32"))'),
        (
            'p.add_buffer("bias", np.ones(6) * é)',
            'p.add_buffer("bias", (np.ones(6) * é).astype("float32"))',
        ),
        (
            'rt.save_archive_file({"bias": b}, "p.irpa")',
            'rt.save_archive_file({"bias": (b).astype("float32")}, "p.irpa")',
        ),
        ('d = {"bias": b}\nsave_file(d, "p")', 'd = {"bias": (b).astype("float32")}\nsave_file(d, "p")'),
    ],
)
def test_the_array_is_converted_to_the_type_that_the_module_declares(call: str, mended: str) -> None:
    found = find_parameter_of_other_type(fail(f"{MODULE}{call}\n"))
    assert found is not None
    assert found.mended[0].files["repro.py"] == f"{MODULE}{mended}\n"
    assert isinstance(found.call, OtherParameterType)
    assert (found.call.name, found.call.taken) == ("bias", "f32")


@pytest.mark.parametrize(
    ("element", "dtype"), [("f16", "float16"), ("i8", "int8"), ("ui8", "uint8"), ("si32", "int32"), ("i64", "int64")]
)
def test_each_type_has_its_name_in_numpy(element: str, dtype: str) -> None:
    code = f"{MODULE.replace('xf32', f'x{element}')}index.add_buffer('bias', b)\n"
    found = find_parameter_of_other_type(fail(code))
    assert found is not None
    assert f'(b).astype("{dtype}")' in found.mended[0].files["repro.py"]


def test_other_programs_have_no_such_fault() -> None:
    """Another key, no declaration, a crash, or an error of the runtime."""
    assert find_parameter_of_other_type(fail(f'{MODULE}index.add_buffer("scale", b)\n')) is None
    assert find_parameter_of_other_type(fail('index.add_buffer("bias", b)\n')) is None
    assert find_parameter_of_other_type(fail(f'{MODULE}shapes = {{"bias": b}}\n')) is None
    code = f'{MODULE}index.add_buffer("bias", b)\n'
    assert find_parameter_of_other_type(fail(code, Signalled(code=11), Signature(type="SIGSEGV"))) is None
    assert find_parameter_of_other_type(fail(code, Exited(code=1), Signature(type="ValueError", message="x"))) is None
