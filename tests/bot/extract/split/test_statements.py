"""A block in Python's syntax is a program, or the rows of a printed function."""

from __future__ import annotations

import pytest

from bot.extract.blocks.pieces import Kind
from bot.extract.parsed_issue import read_pieces
from tests.bot.extract.reading import make_issue

BODY = """with R.dataflow():
    lv: R.Tensor((m, n), "float32") = R.add(x, y)
    R.output(lv)
return lv
"""
WHOLE = """import tvm
from tvm.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y: R.Tensor((4,), "float32") = R.add(x, x)
        return y

print(M)
return M
"""


@pytest.mark.parametrize(("code", "kinds"), [(BODY, {Kind.OUTPUT}), (WHOLE, {Kind.PYTHON, Kind.OUTPUT})])
def test_rows_of_a_printed_function_are_output_and_a_program_stays_one(code: str, kinds: set[Kind]) -> None:
    """A pasted program may have lost its indentation, or end in a stray row."""
    issue = make_issue(f"The pass leaves a copy:\n\n```\n{code}```\n")
    assert {piece.kind for piece in read_pieces(issue, "tvm").pieces} == kinds
