"""Tests of the rows in which a program prints results beside references, or what its comparisons say."""

from __future__ import annotations

import pytest

from bot.extract.python.reference.printed_rows import find_printed_rows
from runners.core.failure.printed.reading import Reading
from runners.core.failure.printed.rows import judge_rows
from tests.support.untrusted import make_program

HEAD = """import numpy as np, tvm
x = np.array([3, 1, 2])
out = tvm.compile(tvm.parse(x))(x).numpy()
ref = np.sort(x)
"""
LOOP = """def run(kind, x):
    return tvm.compile(kind)(x).numpy()
for name, kind in {"a": tvm.A, "b": tvm.B}.items():
    got, want = run(kind, x), np.sort(x)
"""


@pytest.mark.parametrize(
    ("printed", "output", "reading"),
    [
        ('print("tvm", out, "numpy", ref)', "tvm [1 2 3] numpy [1 2 3]", Reading.RIGHT),
        ('print("tvm", out, "numpy", ref)', "tvm [1 2 4] numpy [1 2 3]", Reading.WRONG),
        ('print("tvm", out, "numpy", ref)', "tvm [1 2\n 4] numpy [1 2\n 3]", Reading.WRONG),
        ('print(f"{out} should be {ref}")', "[1 2 4] should be [1 2 3]", Reading.WRONG),
        ("print(out, ref)", "[1 2 4] [1 2 3]", Reading.WRONG),
        ("print(np.array_equal(out, ref))", "True", Reading.RIGHT),
        ("print(np.array_equal(out, ref))", "False", Reading.WRONG),
        ("print(out.shape, np.allclose(out, ref))", "(3,) False", Reading.WRONG),
        ("print('differs:', (out != ref).any())", "differs: True", Reading.WRONG),
        ("print('differs:', not np.allclose(out, ref))", "differs: False", Reading.RIGHT),
        ("ok = np.allclose(out, ref)\nprint('ok =', ok)", "ok = False", Reading.WRONG),
        ("print(out, '' if (out == ref).all() else '<--')", "[1 2 3]", Reading.RIGHT),
        ("print(out, '' if (out == ref).all() else '<--')", "[1 2 4] <--", Reading.WRONG),
        ("print('MATCH' if np.allclose(out, ref) else 'MISMATCH')", "MISMATCH", Reading.WRONG),
        ("print('MATCH' if np.allclose(out, ref) else 'MISMATCH')", "MATCH", Reading.RIGHT),
        ("if not np.allclose(out, ref):\n    print('differs at', out)", "differs at [1 2 4]", Reading.WRONG),
        ("if np.allclose(out, ref):\n    print('fine')\nelse:\n    print('broken')", "fine", Reading.RIGHT),
        (f"{LOOP}    print(name, got, want)", "a [1 2 3] [1 2 3]\nb [1 1 1] [1 2 3]", Reading.WRONG),
        (f"{LOOP}    print(name, got, want)", "a [1 2 3] [1 2 3]\nb [1 2 3] [1 2 3]", Reading.RIGHT),
        ("for g, w in zip(out, ref):\n    print(g, w, '' if g == w else 'BAD')", "1 1\n2 2\n4 3 BAD", Reading.WRONG),
        ('print("tvm  ", out)\nprint("numpy", ref)', "tvm   [1 2 4]\nnumpy [1 2 3]", Reading.WRONG),
        ('print("tvm  ", out)\nprint("numpy", ref)', "tvm   [1 2 3]\nnumpy [1 2 3]", Reading.RIGHT),
        (
            f'{LOOP}    print(name, "got", got)\n    print(name, "want", want)',
            "a got [1 2]\na want [1 3]",
            Reading.WRONG,
        ),
        (
            'print("a", out)\nprint("want", ref)\nprint("b", out)\nprint("want", ref)',
            "a [1 2]\nwant [1 2]\nb [3 4]\nwant [3 4]",
            Reading.RIGHT,
        ),
        (
            'print("tvm")\nprint(out)\nprint("onnx")\nprint(ref)',
            "tvm\n[[1. 0.]\n [2. 1.]]\nonnx\n[[1. 3.]\n [2. 1.]]",
            Reading.WRONG,
        ),
        # Rows that say nothing of whether the result is right.
        ("print(out)\nprint(ref)", "[1 2 4]\n[1 2 3]", Reading.UNKNOWN),
        ("print(out)", "[1 2 4]", Reading.UNKNOWN),
        ("print(out.shape == ref.shape)", "False", Reading.UNKNOWN),
        ("print(np.allclose(ref, np.sort(x)))", "False", Reading.UNKNOWN),
        ("print(str(tvm.A) == str(tvm.B))", "False", Reading.UNKNOWN),
        ("print((out == ref).any())", "False", Reading.UNKNOWN),
        # How far a result is from its reference.
        ("print('err', np.abs(out - ref).max())", "err 3.0", Reading.WRONG),
        ("print('err', np.abs(out - ref).max())", "err 2e-07", Reading.RIGHT),
        ("print('err', np.abs(out - ref).max())", "err 0.02", Reading.UNKNOWN),
        ("d = np.max(np.abs(ref - out))\nprint(f'err {d}')", "err nan", Reading.WRONG),
        ("print('err', np.abs(ref - np.sort(x)).max())", "err 3.0", Reading.UNKNOWN),
        ('print("tvm", out, "numpy", ref)', "nothing of this form", Reading.UNKNOWN),
        ('print("tvm", out, "numpy", ref, sep=";")', "tvm;[1 2 4];numpy;[1 2 3]", Reading.UNKNOWN),
        ('print("tvm", out[-1], "numpy", ref[-1])', "tvm 44 numpy 300", Reading.UNKNOWN),
    ],
)
def test_a_row_is_judged_by_the_programs_own_comparison(printed: str, output: str, reading: Reading) -> None:
    rows = find_printed_rows(make_program(f"{HEAD}{printed}\n"))
    assert judge_rows(output, "", rows) is reading


def test_only_the_rows_count_that_are_wrong_in_the_report() -> None:
    """A program may print comparisons of other results, which are none of the report."""
    text = f"{HEAD}print('whole', np.allclose(out, ref))\nprint('close', np.array_equal(out, ref))\n"
    rows = find_printed_rows(make_program(text))
    assert judge_rows("whole True\nclose False", "whole False\nclose False", rows) is Reading.WRONG
    assert judge_rows("whole True\nclose False", "whole False\nclose True", rows) is Reading.RIGHT
    assert judge_rows("whole False\nclose False", "whole True\nclose True", rows) is Reading.UNKNOWN


def test_a_warning_that_is_gone_is_a_right_result() -> None:
    """Only if the report shows the warning: a program that prints nothing may have stopped checking."""
    rows = find_printed_rows(make_program(f"{HEAD}if not np.allclose(out, ref):\n    print('differs at', out)\n"))
    assert judge_rows("done", "differs at [1 2 4]", rows) is Reading.RIGHT
    assert judge_rows("done", "", rows) is Reading.UNKNOWN


@pytest.mark.parametrize(
    "code", ["ok = not ok\nprint(ok)", f"print({'not ' * 90}(out == ref))", f"print({'abs(' * 60}out{')' * 60}, ref)"]
)
def test_a_comparison_that_is_defined_by_itself_says_nothing(code: str) -> None:
    assert judge_rows("True", "", find_printed_rows(make_program(f"{HEAD}{code}\n"))) is Reading.UNKNOWN


def test_a_value_that_the_report_quotes_alone_is_no_row() -> None:
    """The other rows count: each part of a row prints a word at least."""
    rows = find_printed_rows(make_program(HEAD + 'print(1, out[0], ref[0], "" if out[0] == ref[0] else "<-- BAD")\n'))
    assert judge_rows("1 4 3 <-- BAD", "-8", rows) is Reading.WRONG
    assert judge_rows("1 3 3", "-8", rows) is Reading.RIGHT
    assert judge_rows("1 3 3", "1 3 3", rows) is Reading.UNKNOWN
