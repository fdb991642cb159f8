"""Tests of MLIR in the strings of Python programs: it is read, mended and put back as MLIR in a file is."""

from __future__ import annotations

import ast

import pytest

from runners.core.protocol import FindingKind, Observation, Outcome, Testcase, TestcaseKind, TimedOut, Variant
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis import DIAGNOSERS
from runners.toolchains.iree.diagnosis.python_programs.embedded import list_embedded
from tests.support.means import diagnose_once, make_means
from tests.support.observed import observe

WALK = """\
func.func @walk(%n: index) -> index {
  %back = arith.constant -2 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %one to %n step %back iter_args(%a = %one) -> (index) {
    scf.yield %i : index
  }
  return %r : index
}
func.func @other(%n: index) -> index {
  return %n : index
}
"""
SUM = """
func.func @total(%a: tensor<4x8xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.reduce { arith.addi } ins(%a : tensor<4x8xi32>) outs(%e : tensor<4xi32>) dimensions = [1]
  return %r : tensor<4xi32>
}
"""


def program(literal: str, call: str = "walk") -> Testcase:
    code = (
        "import iree.compiler as ireec, iree.runtime as rt\n"
        f"TEXT = {literal}\n"
        'flat = ireec.compile_str(TEXT, target_backends=["vmvx"], input_type="none", extra_args=["--iree-x=1"])\n'
        f"module = rt.load_vm_flatbuffer(flat, driver='local-task')\nmodule.{call}(3)\n"
    )
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="iree", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )


@pytest.mark.parametrize(
    "literal",
    [f'"""{WALK}"""', f"'''{WALK}'''", repr(WALK), f"b{WALK!r}", f'"""é""" and r"""{WALK}"""', f"({WALK!r}\n'')"],
    ids=("quoted", "single", "escaped", "bytes", "beside other text", "in parts"),
)
def test_a_step_that_is_not_positive_is_found_in_a_string(literal: str) -> None:
    """The program runs with the mended string; the compiler alone runs on the string as it is."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        ended = {} if testcase.kind is TestcaseKind.PYTHON else {"ended": observe("1.0", Outcome.PASS).ended}
        return observe(version, Outcome.PASS, device=device, **ended)

    failure = Failure(testcase=program(literal), seen=observe("1.0", Outcome.MATCH, ended=TimedOut(where="step 1")))
    found = diagnose_once(DIAGNOSERS, failure, make_means(run)).findings
    assert [(one.kind, one.evidence["origin"], one.evidence["file"]) for one in found] == [
        (FindingKind.UNDEFINED_OPERAND, "testcase", "repro.py")
    ]
    flags = ("--iree-hal-target-backends=vmvx", "--iree-input-type=none", "--iree-x=1")
    assert ran[0].steps == (("iree-compile", *flags, "repro.py.mlir", "-o", "repro.py.vmfb"),)
    assert ran[1].steps == (("python", "repro.py"),)
    assert list(ran[1].files) == ["repro.py"]
    mended = [node.value for node in ast.walk(ast.parse(ran[1].files["repro.py"])) if isinstance(node, ast.Constant)]
    assert any("step %reprobot_mended" in (one.decode() if isinstance(one, bytes) else str(one)) for one in mended)


def test_lines_are_those_of_the_program() -> None:
    for literal in (f'"""{WALK}"""', f'"""\\\n{WALK}"""'):
        testcase = program(literal)
        (module,) = list_embedded(testcase)
        rows = module.as_file().files["repro.py.mlir"].split("\n")
        lines = testcase.files["repro.py"].split("\n")
        at = next(at for at, row in enumerate(rows) if "scf.for" in row)
        assert lines[at].strip() == rows[at].strip()


def test_a_read_of_an_unwritten_tensor_is_found_in_a_string() -> None:
    """The fills reach the program; its clean and failing runs decide."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        assert testcase.kind is TestcaseKind.PYTHON
        return observe(version, Outcome.PASS if "dense<0>" in testcase.files["repro.py"] else Outcome.MATCH)

    failure = Failure(testcase=program(repr(SUM), "total"), seen=observe("1.0", Outcome.MATCH))
    (finding,) = diagnose_once(DIAGNOSERS, failure, make_means(run)).findings
    assert (finding.kind, finding.evidence["origin"]) == (FindingKind.UNINITIALIZED_READ, "testcase")


@pytest.mark.parametrize(
    "literal", ['"no module"', 'f"""{1}' + SUM.replace("{ arith.addi }", "{{ arith.addi }}") + '"""', '"""(']
)
def test_a_program_without_a_module_in_a_literal_has_none(literal: str) -> None:
    assert list_embedded(program(literal)) == ()
