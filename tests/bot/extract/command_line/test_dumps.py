"""A report that gives the IR before a pass and after it needs no command: the dump names the pass."""

from __future__ import annotations

import pytest

from bot.extract.types import ADD_RUN, NoRepro
from tests.bot.extract.reading import extract_no_repro, extract_repro

BEFORE = """// -----// IR Dump Before Folder ({flag}) ('{anchor}' operation{name}) //----- //
func.func @double(%x: i32) -> i32 {{
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}}
"""
AFTER = """// -----// IR Dump After Folder ({flag}) ('{anchor}' operation{name}) //----- //
func.func @double(%x: i32) -> i32 {{
  %c = arith.constant 2 : i32
  return %c : i32
}}
"""
IREE = "iree-org/iree"


def write(*dumps: str, flag: str = "sum-to-product", anchor: str = "builtin.module", name: str = "") -> str:
    return "\n".join(dumps).format(flag=flag, anchor=anchor, name=name)


@pytest.mark.parametrize("between", ["\n", "\n```\nbecomes\n```mlir\n"])
def test_the_pass_runs_on_the_first_dump_and_the_second_is_its_output(between: str) -> None:
    """In one block or in two."""
    body = f"The sum is folded incorrectly.\n\n```mlir\n{write(BEFORE)}{between}{write(AFTER)}```\n"
    repro = extract_repro(body, "Wrong result of a fold", IREE)
    assert repro.testcase.steps == (("iree-opt", "--sum-to-product", "before.mlir"),)
    assert "arith.addi" in repro.testcase.files["before.mlir"]
    assert "constant 2" not in repro.testcase.files["before.mlir"]
    assert "arith.constant 2" in repro.claim.actual
    assert ADD_RUN in {repair.kind for repair in repro.repairs}


def test_a_pass_on_functions_is_nested() -> None:
    dumps = write(BEFORE, AFTER, anchor="func.func", name=": @double")
    body = f"The sum is folded incorrectly.\n\n```mlir\n{dumps}```\n"
    repro = extract_repro(body, "Wrong result of a fold", IREE)
    assert repro.testcase.steps[0][1] == "--pass-pipeline=builtin.module(func.func(sum-to-product))"


def test_a_crash_needs_the_dump_before_the_pass_alone() -> None:
    body = f"It crashes:\n\n```mlir\n{write(BEFORE)}```\n\n```\nSegmentation fault (core dumped)\n```\n"
    assert extract_repro(body, "Crash in a fold", IREE).testcase.steps[0][1] == "--sum-to-product"


def test_a_dump_without_its_other_side_shows_no_wrong_result() -> None:
    for dump in (BEFORE, AFTER):
        found = extract_no_repro(f"The result is wrong.\n\n```mlir\n{write(dump)}```\n", "Wrong result", IREE)
        assert isinstance(found, NoRepro)


def test_a_command_of_the_report_comes_first() -> None:
    body = f"Run `iree-opt --cse a.mlir` on this:\n\n```mlir\n{write(BEFORE, AFTER)}```\n"
    assert extract_repro(body, "Wrong result of a fold", IREE).testcase.steps[0][:2] == ("iree-opt", "--cse")
