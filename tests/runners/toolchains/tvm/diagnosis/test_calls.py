"""Tests of the comparison of a call with the signature that a Relax testcase declares."""

from __future__ import annotations

import ast

import pytest

from runners.core.protocol import (
    Ended,
    Exited,
    FindingKind,
    Observation,
    Outcome,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.core.toolchain.diagnosis import Diagnosis, Failure
from runners.toolchains.tvm.diagnosis.calls import check_call
from tests.support.means import make_means
from tests.support.observed import observe

TEXT = """@I.ir_module
class M:
    @R.function
    def main(é: R.Tensor((2,), "float32"), x: R.Tensor(("n", 4), dtype="float32")):
        return x


vm = relax.VirtualMachine(tvm.compile(M, target="llvm"), tvm.cpu())
got = vm["main"](é, tvm.runtime.tensor(y)).numpy()
"""
CONTEXT = 'ErrorContext(fn=main, loc=param[1], param=x, annotation=R.Tensor((n, 4), dtype="float32"))'
WRONG_TYPE = f"Check failed: {CONTEXT}  expect Tensor with dtype float32 but get int8"
WRONG_EXTENT = f"Check failed: input_shape[i] == reg (5 vs. 4) : {CONTEXT}  match_cast error,  shape[1] mismatch."
WRONG_SYMBOL = f"Check failed: input_shape[i] == h[reg] (5 vs. 2) : {CONTEXT}  match_cast error,  shape[0] mismatch."
ABSENT = "Module has no function 'forward'"


def check(
    text: str,
    message: str,
    *,
    control: Outcome = Outcome.PASS,
    ended: Ended | None = None,
    type: str = "RuntimeError",
) -> tuple[Diagnosis, str]:
    """Return the diagnosis, and the text of the control run; empty without one."""
    ran: list[str] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.extend(testcase.files.values())
        return observe(version, control, device=device)

    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))
    signature = Signature(type=type, message=message)
    seen = observe("1.0", Outcome.MATCH, signature=signature, ended=ended or Exited(code=1))
    found = check_call(Failure(testcase=testcase, seen=seen), make_means(run))
    return found, "".join(ran)


@pytest.mark.parametrize(
    ("message", "shape", "given"),
    [
        (WRONG_TYPE, "a.shape[0] if len(a.shape) == 2 else 1, 4, ", "dtype int8"),
        (WRONG_EXTENT, "a.shape[0] if len(a.shape) == 2 else 1, 4, ", "shape[1] = 5"),
        (WRONG_SYMBOL, "2, 4, ", "shape[0] = 5"),
    ],
)
def test_an_argument_that_its_declaration_does_not_allow_is_the_testcases_fault(
    message: str, shape: str, given: str
) -> None:
    """The control passes the same values in the declared shape and type, and changes nothing else."""
    found, control = check(TEXT, message)
    (finding,) = found.findings
    assert finding.kind is FindingKind.WRONG_CALL
    assert (finding.evidence["function"], finding.evidence["argument"]) == ("main", 2)
    assert finding.evidence["given"] == given
    before, _, after = TEXT.partition("tvm.runtime.tensor(y)")
    assert control.startswith(before)
    assert control.endswith(f")(tvm.runtime.tensor(y)){after}")
    assert f'.resize(a.numpy(), ({shape})).astype("float32")' in control
    ast.parse(control)


ANOTHER = (
    '@I.ir_module\nclass N:\n    @R.function\n    def main(é: R.Tensor((3,), "float16"), x):\n        return x\n\n\n'
)


@pytest.mark.parametrize("text", [TEXT, TEXT + ANOTHER, ANOTHER + TEXT], ids=["alone", "first", "second"])
def test_other_arguments_are_corrected_too_if_one_correction_is_not_enough(text: str) -> None:
    """TVM's check stops at the first wrong argument. A function of another module may have the same name."""
    tried: list[str] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        tried.append(testcase.files["r.py"])
        both = tried[-1].count(".resize(") == 2
        return observe(version, Outcome.PASS if both else Outcome.MATCH, device=device)

    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))
    signature = Signature(type="RuntimeError", message=WRONG_TYPE)
    seen = observe("1.0", Outcome.MATCH, signature=signature, ended=Exited(code=1))
    found = check_call(Failure(testcase=testcase, seen=seen), make_means(run))
    assert [one.count(".resize(") for one in tried] == [1, 2]
    assert ")(é)" in tried[1]
    ast.parse(tried[1])
    (finding,) = found.findings
    assert finding.evidence["argument"] == 2


def test_a_call_by_way_of_a_name_and_a_parameter_of_a_builder_count_too() -> None:
    text = (
        'x = relax.Var("x", R.Tensor(("n", 4), "float32"))\n'
        'with bb.function("main", [first, x]):\n    pass\n'
        'run = vm["main"]\nrun(1, y)\n'
    )
    found, control = check(text, WRONG_TYPE)
    assert found.findings
    assert control.endswith(")(y))\n")


def test_parameters_with_one_symbol_have_one_extent_in_each_call() -> None:
    """The control passes the extent of the other argument, call by call."""
    text = (
        'spec = {"q": nn.spec.Tensor(["n", 4], "float32"), "x": nn.spec.Tensor(["n", 4], "float32")}\n'
        'vm["main"](q, y)\nvm["main"](make(3), y)\n'
    )
    found, control = check(text, WRONG_SYMBOL)
    assert found.findings
    assert control.count("resize(a.numpy(), (n, 4, ))") == 2
    assert control.endswith(")(y, (make(3)).shape[0]))\n")
    assert ")(y, (q).shape[0]))\n" in control


def test_an_input_of_an_exported_layer_is_declared_by_its_specification() -> None:
    text = 'mod, _ = Net().export_tvm({"main": {"x": nn.spec.Tensor(("n", 4), "float32")}})\nvm["main"](1, y)\n'
    found, control = check(text, WRONG_TYPE)
    assert found.findings
    assert control.endswith(")(y))\n")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace('("n", 4)', '("n", 5)'),
        TEXT.replace("x: R.", "z: R."),
        TEXT.replace('vm["main"](é,', 'vm["main"](*more,'),
        TEXT.replace('vm["main"](', 'vm["other"]('),
        TEXT.replace("class M:", "class M"),
        TEXT.replace('("n", 4)', f"(n{'.n' * 900}, 4)"),
        TEXT.replace("x: R.Tensor(", f"x: R{'.R' * 900}.Other("),
    ],
    ids=[
        "another annotation",
        "another parameter",
        "unknown arguments",
        "another function",
        "no Python",
        "deep",
        "deep name",
    ],
)
def test_an_annotation_that_the_text_does_not_declare_is_no_fault_of_the_testcase(text: str) -> None:
    """A pass that changes a signature by mistake gives the same message."""
    found, control = check(text, WRONG_TYPE)
    assert not found.findings
    assert not control


def test_a_check_that_rejects_a_fitting_argument_too_is_the_compilers_fault() -> None:
    found, control = check(TEXT, WRONG_TYPE, control=Outcome.MATCH)
    assert not found.findings
    assert control


def test_neither_a_crash_nor_a_wrong_value_is_explained_by_a_call() -> None:
    assert not check(TEXT, WRONG_TYPE, ended=Signalled(code=11))[1]
    assert not check(TEXT, WRONG_TYPE, type="AssertionError")[1]


def test_a_function_that_the_text_does_not_declare_is_called_by_its_name() -> None:
    found, control = check(TEXT.replace('vm["main"]', 'vm["forward"]'), ABSENT)
    assert found.findings[0].evidence["functions"] == ["main"]
    assert control == TEXT


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace('vm["main"]', 'vm["forward"]').replace("def main", "def forward"),
        TEXT.replace('vm["main"]', 'vm["forward"]').replace("@R.function", "@R.function(private=True)"),
        TEXT.replace('vm["main"]', 'vm["forward"]') + "@R.function\ndef other(): ...\n",
    ],
    ids=["not called", "declared", "no public function", "two functions"],
)
def test_a_function_that_the_compiler_may_have_lost_is_no_fault_of_the_testcase(text: str) -> None:
    assert not check(text, ABSENT)[1]


@pytest.mark.parametrize(
    ("call", "mended"),
    [
        ("m.script()", "m.script(show_meta=True)"),
        ('é = m.script(name="é")', 'é = m.script(name="é", show_meta=True)'),
        ("f(m.script(),\n  n.script(\n))", "f(m.script(show_meta=True),\n  n.script(\nshow_meta=True))"),
        ("m.script(show_meta=False)", ""),
        ("m.script(**words)", ""),
        ("m.show()", ""),
    ],
)
@pytest.mark.parametrize("ended", [Exited(code=1), Exited(code=0)], ids=["raised", "printed"])
def test_text_that_leaves_out_metadata_is_the_calls_fault(call: str, mended: str, ended: Ended) -> None:
    """``IRModule.script`` documents ``show_meta``. The error may be caught and printed."""
    found, ran = check(call, "error: Undefined variable: metadata", ended=ended)
    assert ran == mended
    assert [one.kind for one in found.findings] == [FindingKind.WRONG_CALL] * bool(mended)
