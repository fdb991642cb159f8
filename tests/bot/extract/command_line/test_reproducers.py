"""Run a crash reproducer that the issue shows."""

from __future__ import annotations

import textwrap

import pytest

from tests.bot.extract.reading import extract_repro, list_repairs

TITLE = "iree-compile crashes"
FUNCTION = """\
func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
RESOURCE = (
    FUNCTION
    + """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(func.func(cse))",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
"""
)
COMMENT = f"// configuration: -pass-pipeline='func.func(canonicalize, cse)' -verify-each=1 -o -\n{FUNCTION}"


def show(mlir: str, words: str = "") -> str:
    return f"{words}\n\n```mlir\n{textwrap.dedent(mlir)}```\n"


def test_a_reproducer_without_a_command_is_run_as_one() -> None:
    """The compiler would read the MLIR, and ignore the passes."""
    found = extract_repro(show(RESOURCE, "It dies with a segmentation fault."), TITLE)
    assert found.testcase.steps == (("iree-opt", "--run-reproducer", "input.mlir"),)
    assert list_repairs(found) == ["run-reproducer"]


@pytest.mark.parametrize("words", ["It dies.", "Run `iree-opt --run-reproducer a.mlir`."])
def test_the_flags_in_the_comment_of_an_old_reproducer_are_used(words: str) -> None:
    """Today's ``--run-reproducer`` ignores the comment: it would run no pass, and succeed."""
    (step,) = extract_repro(show(COMMENT, words), TITLE).testcase.steps
    assert step[:-1] == ("iree-opt", "-pass-pipeline=func.func(canonicalize, cse)", "-verify-each=1")


def test_a_reproducer_stands_in_for_the_input_of_the_compile_call() -> None:
    """The report gives what the compiler wrote, and not the model. No module is made that a later call could run."""
    words = "`iree-compile --iree-hal-target-backends=vmvx model.mlir -o m.vmfb && iree-run-module --module=m.vmfb`"
    found = extract_repro(show(RESOURCE, words), TITLE)
    assert [step[:2] for step in found.testcase.steps] == [("iree-opt", "--run-reproducer")]
    assert not found.missing
    assert list_repairs(found) == ["run-reproducer", "drop-command"]


def test_a_call_gets_its_own_input_beside_a_reproducer() -> None:
    """The plain MLIR is the input of the compiler, and the reproducer that of the call that runs reproducers."""
    words = "```\niree-compile --iree-hal-target-backends=vmvx a.mlir\niree-opt --run-reproducer b.mlir\n```"
    found = extract_repro(show(RESOURCE) + show(FUNCTION) + words, TITLE)
    assert found.testcase.files["a.mlir"] == FUNCTION
    assert found.testcase.files["b.mlir"] == RESOURCE
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "iree-opt"]


def test_a_reproducer_that_the_report_itself_compiles_stays_an_input() -> None:
    """The file name of the report decides."""
    words = "```\niree-compile --iree-hal-target-backends=vmvx crash.mlir\n```\nwith `crash.mlir`:"
    (step,) = extract_repro(show(RESOURCE, words), TITLE).testcase.steps
    assert step[0] == "iree-compile"


@pytest.mark.parametrize("head", ["// configuration: see below\n", "// configuration: -x='open\n"])
def test_other_comments_are_no_reproducers(head: str) -> None:
    (step,) = extract_repro(show(head + FUNCTION, "It dies."), TITLE).testcase.steps
    assert step[0] == "iree-compile"
