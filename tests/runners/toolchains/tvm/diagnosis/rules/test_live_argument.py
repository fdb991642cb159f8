"""Tests of the search for arguments that are mutated in place and read again."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, strategies as st

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.tvm.diagnosis.rules.live_argument import find_live_argument

TEXT = """@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "float32"), é: R.Tensor((4,), "float32")):
        cls = M
        with R.dataflow():
            y = R.multiply(x, x)
            c = R.call_tir_inplace(cls.f, (x, y), inplace_indices=[1], out_ty=R.Tensor((4,), "float32"))
            z = R.add(c, x)
            R.output(z)
        return z
"""
LIVE = TEXT.replace("R.add(c, x)", "R.add(c, y)")


def program(text: str) -> Testcase:
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))


def test_an_argument_that_is_read_again_is_given_as_a_copy() -> None:
    """The mended text differs in that one argument and still is Python."""
    breach = find_live_argument(program(LIVE))
    assert breach is not None
    assert (breach.file, breach.line) == ("r.py", 8)
    assert (breach.rule, breach.of) == (Rule.LIVE_ARGUMENT, "y")
    assert "writes into y" in str(breach)
    mended = breach.mended.files["r.py"]
    assert mended == LIVE.replace("(x, y), inplace", "(x, R.add(y, R.zeros_like(y))), inplace")
    ast.parse(mended)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        LIVE.replace("z = R.add(c, y)", "y = R.add(c, x)"),
        LIVE.replace("inplace_indices=[1]", "inplace_indices=[0]"),
        LIVE.replace("call_tir_inplace", "call_tir"),
        LIVE.replace("with R.dataflow()", "with R.dataflow("),
    ],
)
def test_an_argument_that_is_not_read_again_is_no_fault(text: str) -> None:
    """Another argument, a name assigned again, another operation, text that is no Python."""
    assert find_live_argument(program(text)) is None


def test_offsets_are_counted_as_the_syntax_tree_does() -> None:
    """A letter of two bytes before the argument on its line."""
    breach = find_live_argument(program(LIVE.replace("(x, y)", "(é, y)")))
    assert breach is not None
    assert "(é, R.add(y, R.zeros_like(y)))" in breach.mended.files["r.py"]


@given(st.text(max_size=200))
def test_any_text_is_read_to_its_end(text: str) -> None:
    """No text makes the search fail."""
    find_live_argument(program(f"# call_tir_inplace\n{text}"))
    find_live_argument(program(f"{LIVE}{text}"))


DEEP = {
    "a long chain of names": LIVE.replace("R.call_tir_inplace", f"R{'.b' * 600}.call_tir_inplace"),
    "an index below many signs": LIVE.replace("[1]", f"[{'-' * 900}1]"),
    "an index of many sums": LIVE.replace("[1]", f"[{'0+' * 900}1]"),
    "line ends of another kind": LIVE.replace("\n", "\r"),
    "many calls": "def f():\n" + "".join(f"  R.call_tir_inplace(g, (y{n},), [0])\n" for n in range(2_500)),
    "many indices": f"def f():\n  R.call_tir_inplace(g, ({'y,' * 20_000}), [{'0,' * 20_000}])\n  y = 1\n",
}


@pytest.mark.parametrize("what", DEEP)
def test_a_deep_or_slow_text_is_ignored(what: str) -> None:
    """No finding, no exception, and little time: some of these texts took minutes."""
    assert find_live_argument(program(DEEP[what])) is None
