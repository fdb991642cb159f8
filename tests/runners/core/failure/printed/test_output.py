"""Printed output is held against what the report quotes: precision before recall."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from runners.core.failure.printed.lines.compare import read_output
from runners.core.failure.printed.lines.other_values import find_other_rows, find_other_values
from runners.core.failure.printed.quoted_code import prints_code, read_attribute
from runners.core.failure.printed.reading import Reading
from runners.toolchains import ALL_FAILURES

IREE = "EXEC @f\nresult[0]: hal.buffer_view\n"
ARRAYS = "tvm    [ 2.75 3.25 4.75]\nnumpy  [ 5.25 6.25 9.25]\nequal? False\n"

FUNCTION = """
def main(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        y: R.Tensor((4,), "float32") = R.add(x, x)
        R.output(y)
    z: R.Tensor((4,), "float32") = R.exp(y)
    return z
['Binding', 'Dataflow']
"""
WRAPPED = FUNCTION.replace("    z:", "    with R.dataflow():\n        z:")


@pytest.mark.parametrize(
    ("output", "actual", "expected", "reading"),
    [
        ("output: y = nan", "output: y = nan", "", Reading.WRONG),
        ("error: max diff = 0.12341", "error: max diff = 0.12340", "", Reading.WRONG),
        ("step: train = 5\nstep: test = 7", "step: train = 6\nstep: test = 7", "step = 5", Reading.UNKNOWN),
        ("launch(grid = dim, block = b)\nout 3", "launch(grid = dim, block = c)\nout 3", "", Reading.CHANGED),
    ],
    ids=["not-a-number", "nearly-equal", "a-log", "keywords"],
)
def test_a_row_with_a_colon_is_no_typed_value(output: str, actual: str, expected: str, reading: Reading) -> None:
    assert read_output(output, ALL_FAILURES, actual=actual, expected=expected) is reading


@pytest.mark.parametrize(("result", "reading"), [("R.exp(x)", Reading.RIGHT), ("y", Reading.WRONG)])
def test_an_expected_row_needs_no_type(result: str, reading: Reading) -> None:
    """The printer of TVMScript writes the types, and people leave these out."""
    copied = FUNCTION.replace("R.exp(y)", "y")
    printed = FUNCTION.replace("R.exp(y)", result)
    assert read_output(printed, ALL_FAILURES, actual=copied, expected="z = R.exp(x)") is reading


@pytest.mark.parametrize(
    ("output", "reading"),
    [
        (FUNCTION, Reading.WRONG),
        (WRAPPED, Reading.UNKNOWN),
        (WRAPPED + FUNCTION, Reading.WRONG),
        (WRAPPED.replace("main", "other") + FUNCTION, Reading.WRONG),
        (FUNCTION.replace("'Dataflow'", "'Dataflow', 'Binding'"), Reading.UNKNOWN),
        (FUNCTION + "['Binding', 'Dataflow', 'Binding']", Reading.WRONG),
        (FUNCTION.replace("['Binding', 'Dataflow']", ""), Reading.WRONG),
        (FUNCTION.replace("R.exp(y)", "R.exp(x)"), Reading.CHANGED),
        (FUNCTION.replace("R.exp(y)", "R.exp(x)").replace("        y: ", "        v: "), Reading.UNKNOWN),
        (FUNCTION.replace("R.exp(y)", "R.exp(x)") + FUNCTION, Reading.WRONG),
    ],
    ids=[
        *("same", "other-blocks", "before-and-after", "another-function", "other-names", "two-lists", "no-list"),
        *("another-definition", "beside-a-lost-value", "both-definitions"),
    ],
)
def test_rows_without_values_distinguish_outputs_with_equal_values(output: str, reading: Reading) -> None:
    assert read_output(output, ALL_FAILURES, actual=FUNCTION, expected="") is reading


@pytest.mark.parametrize(
    ("output", "actual", "expected", "reading"),
    [
        (ARRAYS, ARRAYS, "equal? True", Reading.WRONG),
        (ARRAYS.replace("2.75 3.25 4.75", "5.25").replace("False", "True"), ARRAYS, "equal? True", Reading.RIGHT),
        ("4x2xf32=[1.5 0][2.5 0]", "4x2xf32=[1.5 2.5][0 0]", "4x2xf32=[1.5 0][2.5 0]", Reading.RIGHT),
        ("EXEC @f\n4x2xf32=[1.5 2.5][0 0]", "4x2xf32=[1.5 2.5][0 0]", "4x2xf32=[1.5 0][2.5 0]", Reading.WRONG),
        ("max diff: 0.0", "max diff: 0.53", "", Reading.CHANGED),
        ("max diff: 0.7", "max diff: 0.53", "", Reading.UNKNOWN),
        ("sum 12.0", "sum nan", "", Reading.CHANGED),
        ("a [1. 4.] ok\nb [2. 4.] ok", "a [1. 4.] ok\nb [-1. 4.] WRONG", "", Reading.CHANGED),
        ("a [1. 4.] ok", "a [1. 4.] ok\nb [-1. 4.] WRONG", "", Reading.WRONG),
        ("same: True", "same: False", "", Reading.CHANGED),
        ("same: False", "", "same: True", Reading.WRONG),
        ("f p + q\ns T.max(q, p + q)", "f p + q\ns T.max(q, p + q)", "f p + q\ns p + q", Reading.WRONG),
        ("f p + q\ns p + q", "f p + q\ns T.max(q, p + q)", "f p + q\ns p + q", Reading.RIGHT),
        ("f p + q\ns 2 * q", "f p + q\ns T.max(q, p + q)", "f p + q\ns p + q", Reading.UNKNOWN),
        ("2xf32=-0 3", "2xf32=-0 3", "2xf32=0 3", Reading.WRONG),
        ("2xf32=0 3", "2xf32=-0 3", "2xf32=0 3", Reading.RIGHT),
        ("2xf32=-0 3", "2xf32=0 3", "2xf32=0 3", Reading.UNKNOWN),
        ("f32: 2.5\nf64: 2.5", "f32: 0.0\nf64: 2.5", "", Reading.UNKNOWN),
        ("2xf32=0.5 0.5", "nan", "", Reading.CHANGED),
        ("2xf32=0.5 NAN", "nan", "", Reading.WRONG),
        ("done", "nan", "", Reading.UNKNOWN),
        ("static [[8. 9.]]\ndynamic [[0. 4e-44]]", "", "[[8. 9.]]", Reading.UNKNOWN),
        ("static [[8. 9.]]\ndynamic [[8. 9.]]", "", "[[8. 9.]]", Reading.RIGHT),
        ("result 3", "", "", Reading.UNKNOWN),
        (f"{IREE}2xi32=1 2", f"{IREE}2xi32=3 4", "", Reading.UNKNOWN),
        (f"{IREE}2xi32=3 4", f"{IREE}2xi32=3 4", "", Reading.WRONG),
        ("loading\nshape 3 4\nsum 9", "loading\nshape 3 4\nsum 7\nmax 5\nmin 1", "", Reading.UNKNOWN),
        ("done", "done", "", Reading.UNKNOWN),
        ('R.Tensor((), dtype="bool")', 'R.Tensor((), dtype="bool")', "", Reading.WRONG),
        ("ref\n[0 0 1]\ntvm\n[0 1 1]\nmax_abs=4.0", "[0 1 1]\nmax_abs=4.0", "[0 0 1]", Reading.WRONG),
        ("ref\n[0 0 1]\ntvm\n[0 0 1]\nmax_abs=0.0", "[0 1 1]\nmax_abs=4.0", "[0 0 1]", Reading.RIGHT),
        ("ref\n[0 0 1]\ntvm\n[0 1 1]", "[0 1 1]", "[0 0 1]", Reading.UNKNOWN),
        ("before\nx 3\nafter\nx 2\nsum 4", "x 3\nsum 4", "x 2", Reading.UNKNOWN),
        ("sum of it: 0.0", "sum of it: 168.0", "0.0", Reading.RIGHT),
        ("sum of it: 168.0", "sum of it: 168.0", "0.0", Reading.WRONG),
        ("sum of it: 7.0", "sum of it: 168.0", "0.0", Reading.UNKNOWN),
        ("EXEC @f\n2xi64=1 0", "2xi64=2 4", "1, 0", Reading.RIGHT),
        ("EXEC @f\n2xi64=3 0", "2xi64=2 4", "1, 0", Reading.UNKNOWN),
        ("EXEC @f\n2xi64=2 4", "2xi64=2 4", "1, 0", Reading.WRONG),
        ("EXEC @f\n4xf32=1 -2 3 4", "4xf32=1 2 3 4", "-2", Reading.RIGHT),
        ("EXEC @f\n4xf32=1 -2 3 9", "4xf32=1 2 3 4", "-2", Reading.UNKNOWN),
        ("llvm True [6 0]\nc True [6 0]", "False", "True", Reading.RIGHT),
        ("llvm True [6 0]\nc False [6 1]", "False", "True", Reading.WRONG),
        ("llvm True [6 0]\nc True [6 0]", "False", "", Reading.CHANGED),
        ("[13. 14.]\n[13. 14.]", "[13. 14.]\n[4.5e-44 0.0]", "", Reading.UNKNOWN),
        ("[13. 14.]\n[9.1e-44 0.0]", "[13. 14.]\n[4.5e-44 0.0]", "", Reading.WRONG),
        ("[1 1]\nok", "[1 0]\nWRONG, expected\n[1 1]", "", Reading.CHANGED),
        ("[1 0]\nWRONG, expected\n[1 1]", "[1 0]\nWRONG, expected\n[1 1]", "", Reading.WRONG),
        ("mask [True False]", "False", "True", Reading.UNKNOWN),
        ("[0. 0. 0.]", "[1.17e-38 nan 4.4e-44]", "", Reading.UNKNOWN),
        ("[0. 0. 0.]", "[3.8e-33 0.0 4.4e-44]", "", Reading.UNKNOWN),
        ("[0.5 1e-40]\n[2. 3.]", "[nan 1e-40]\n[2. 4.]", "", Reading.UNKNOWN),
        ("[0.5 1e-35]", "[nan 1e-35]", "", Reading.UNKNOWN),
        ("[[7. nan]\n [9.1e-41 -8e7]]", "[[1.17e-38 nan]\n [2.1e-44 0.]]", "", Reading.WRONG),
        ("[9.1e-41 0. 5e-39]", "[3.8e-33 0.0 4.4e-44]", "", Reading.WRONG),
        ("EXEC @f\n4xf32=1 -2 3 -4", "4xf32=1 2 3 4", "-2", Reading.RIGHT),
        ("EXEC @f\n4xf32=1 7 3 9", "4xf32=1 2 3 4", "7", Reading.RIGHT),
        ("EXEC @f\n4xi32=-3 -7 -7 -2", "4xi32=-3 7 -7 2", "-7", Reading.RIGHT),
        ("EXEC @f\n4xf32=1 7 3 4", "4xf32=1 2 3 4", "-2", Reading.UNKNOWN),
        ("EXEC @f\n4xf32=1 2 3 4", "4xf32=1 2 3 4", "-2", Reading.WRONG),
        ("EXEC @f\n4xf32=-0 0 1 3", "4xf32=-0 0 1 3", "-0.0", Reading.WRONG),
        ("EXEC @f\n4xf32=0 0 1 3", "4xf32=-0 0 1 3", "-0.0", Reading.CHANGED),
        ("EXEC @f\n4xf32=0 0 1 4", "4xf32=-0 0 1 3", "-0.0", Reading.UNKNOWN),
        ("EXEC @f\n4xf32=0 0 1 3", "4xf32=-0 0 1 3", "", Reading.WRONG),
        ("a diff 0.0 ok\nb diff 9e-07 ok", "a diff 0.0 ok\nb diff 3.18 FAIL", "", Reading.CHANGED),
        ("a diff 0.0 ok\nb diff 3.18 FAIL", "a diff 0.0 ok\nb diff 3.18 FAIL", "", Reading.WRONG),
        ("a diff 0.0 ok\nb diff 2.9 FAIL", "a diff 0.0 ok\nb diff 3.18 FAIL", "", Reading.WRONG),
        ("EXEC @f\n2xi64=3 16777217", "2xi64=3 16777216", "2xi64=3 16777217", Reading.RIGHT),
        ("EXEC @f\n2xi64=3 16777216", "2xi64=3 16777216", "2xi64=3 16777217", Reading.WRONG),
        ("[09:12:07] a.cc:4: Warning: slow path x", "[10:30:00] a.cc:4: Warning: slow path x", "", Reading.WRONG),
        ("loop None\nstore None", "loop None\nstore None", "Span(..., 8)", Reading.WRONG),
        ("loop Span(a.py, 8)\nstore Span(a.py, 9)", "loop None\nstore None", "Span(..., 8)", Reading.CHANGED),
        ("loop None\nstore Span(a.py, 9)", "loop None\nstore None", "", Reading.WRONG),
        ("3x2xf32=[1 2][3 4][7 1e9]", "3x2xf32=[1 2][3 4][0 9e8]", "[3 4]", Reading.UNKNOWN),
        ("3x2xf32=[1 2][3 4][3 4]", "3x2xf32=[1 2][3 4][0 9e8]", "[3 4]", Reading.RIGHT),
        ("[True False]\n[nan 1. 2.]", "[True False]\n[-1. 1. 2.]", "nan", Reading.RIGHT),
        ("[True False]\n[0. 1. 2.]", "[True False]\n[-1. 1. 2.]", "nan", Reading.UNKNOWN),
        ("x % x -> T.u(0)\nx // x -> T.u(1)", "x % x -> x % x\nx // x -> x // x", "", Reading.CHANGED),
        ("x % x -> T.u(0)\nx // x -> x // x", "x % x -> x % x\nx // x -> x // x", "", Reading.CHANGED),
        ("for i:\n  t[i] = T.f(a[i])\n  c = 1", "for i:\n  t[i] = T.Cast(a[i])\n  c = 1", "", Reading.CHANGED),
        ("for i:\n  t[i] = T.Cast(a[i])\n  c = 1", "for i:\n  t[i] = T.Cast(...\n  c = 1", "", Reading.WRONG),
        ("t = T.f(a)\nt = T.g(t)\nc = T.h(t)", "t = T.f(a)\nc = T.h(t)", "", Reading.WRONG),
        ("", "x 1", "x 2", Reading.UNKNOWN),
        ("loaded 16 files", "3", "4", Reading.UNKNOWN),
    ],
)  # fmt: skip
def test_reading(output: str, actual: str, expected: str, reading: Reading) -> None:
    """Only quoted values decide between wrong and right; everything else is unknown."""
    assert read_output(output, ALL_FAILURES, actual=actual, expected=expected) is reading


CONFIG = "lowering_config = #cpu.config<cache = [64, 64], distribution = [64, 64], vector = {}, reduction = [0, 1]>"


def test_the_same_words_with_lists_of_another_form_are_another_output() -> None:
    """A list may get another depth or length. Text around the words does not count."""
    quoted = f"linalg.matmul {{{CONFIG.format('[8, 16]')}}}"
    other = f"  %7 = linalg.matmul {{{CONFIG.format('[8, [8]]')}}} ins(%4, %5 : T)"
    assert "vector = [8, [8]]" in find_other_values(other, ALL_FAILURES, actual=quoted)
    assert find_other_values(f"%7 = {quoted} ins(%4)", ALL_FAILURES, actual=quoted) == ""
    assert find_other_values(f"{other}\n{other.replace('[8]', '[4]')}", ALL_FAILURES, actual=quoted) == ""


@pytest.mark.parametrize(
    ("printed", "quoted", "told"),
    [
        ('x {cpu = "m4", cpu_features = "+a"}', 'cpu_features = ""', (False, 'cpu_features = "+a"')),
        ('x {cpu = "m4", cpu_features = ""}', 'cpu_features = ""', (True, 'cpu_features = ""')),
        ('x {cpu_features = "+a"}\ny {cpu_features = ""}', 'cpu_features = ""', None),
        ('x {cpu = "m4"}', 'cpu_features = ""', None),
        ("error = 0.5", "error = 0.25", None),
        ("c<distribution = [512], vector = [4]>", "distribution = [64]", (False, "distribution = [512]")),
    ],
)
def test_an_attribute_is_found_wherever_it_stands(printed: str, quoted: str, told: tuple[bool, str] | None) -> None:
    assert read_attribute(printed, actual=quoted) == told


def test_expected_code_counts_within_a_row() -> None:
    wrong, right = "mbarrier.arrive.shared.b64", "mbarrier.arrive.shared::cluster.b64"
    assert prints_code(f'asm("{right} _, [%0];"', expected=right, actual=f'asm("{wrong} _"')
    assert not prints_code(f'asm("{wrong} _, [%0];"', expected=right, actual=f'asm("{wrong} _"')
    assert not prints_code(f'asm("{right}x"', expected=right, actual="")
    assert not prints_code("the result is 3", expected="result", actual="")
    assert not prints_code(f"{right} {wrong}", expected=right, actual=f"{right} and {wrong}")


def test_rows_with_an_ellipsis_are_compared_by_their_text() -> None:
    """The rows without values stand in good and bad outputs alike."""
    quoted = "bad: Kind 69 NONE = Var[Kind] = ...\nreal: create_at(sem: Sem, value: int) -> Fence"
    assert read_output(quoted, ALL_FAILURES, actual=quoted, expected="") is Reading.WRONG
    assert read_output(quoted.split("\n")[1], ALL_FAILURES, actual=quoted, expected="") is Reading.UNKNOWN


NAMES = "['', '.up', '.up.weight']\n['up.weight']"


@pytest.mark.parametrize(
    ("output", "expected", "reading"),
    [
        (NAMES, "up", Reading.WRONG),
        ("['', 'up', 'up.weight']\n['up.weight']", "up", Reading.RIGHT),
        ("['', 'up', 'up.weight']\n['up.weight']", "", Reading.UNKNOWN),
        ("['', 'top', 'up.weight']\n['up.weight']", "up", Reading.UNKNOWN),
    ],
)
def test_strings_of_a_list_are_compared_whole(output: str, expected: str, reading: Reading) -> None:
    """A row that is the same in the right output proves nothing."""
    assert read_output(output, ALL_FAILURES, actual=NAMES, expected=expected) is reading


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("x < 2", ""),
        ("x * 8 + y < 16", "x * 8 + y < 16"),
        ("x * 8 < 16\ny < 2", ""),
        ("16", ""),
    ],
    ids=["the same", "other text", "more rows", "a number"],
)
def test_another_text_in_place_of_the_whole_reported_output(output: str, told: str) -> None:
    assert find_other_rows(output, ALL_FAILURES, actual="x < 2") == told


def test_numbers_differ_a_little_between_machines() -> None:
    """The last digit of a float is no evidence."""
    assert read_output("loss 0.123457", ALL_FAILURES, actual="loss 0.123456", expected="loss 0.5") is Reading.WRONG


@given(output=st.text(max_size=400), actual=st.text(max_size=200), expected=st.text(max_size=200))
def test_any_text_has_a_reading(output: str, actual: str, expected: str) -> None:
    """Guest output and report text never make the reader fail."""
    read_output(output, ALL_FAILURES, actual=actual, expected=expected)


@example("0\n0:")
@given(st.text(max_size=300))
def test_equal_actual_and_expected_output_decide_nothing(text: str) -> None:
    """Equal actual and expected output have no telling line."""
    assert read_output(text, ALL_FAILURES, actual=text, expected=text) is Reading.UNKNOWN


def test_scalars_of_a_run_are_values() -> None:
    """A buffer stands below the line of its index, a scalar on it."""
    wrong, right = "result[0]: f32=1\nresult[1]: i64=0", "result[0]: f32=1\nresult[1]: i64=2"
    assert read_output(right, ALL_FAILURES, actual=wrong, expected=right) is Reading.RIGHT
    assert read_output(wrong, ALL_FAILURES, actual=wrong, expected=right) is Reading.WRONG


def test_a_row_of_a_tensor_with_other_values_contradicts_the_expected_row() -> None:
    """Its type and shape stand in the place of a label."""
    expected = "4xf32=0.25 -NAN 4 5.96046E-08"
    printed = "EXEC @f\nresult[0]: hal.buffer_view\n4xf32=NAN -NAN 4 NAN"
    assert read_output(printed, ALL_FAILURES, actual="nan", expected=expected) is Reading.WRONG
    assert read_output(expected, ALL_FAILURES, actual="nan", expected=expected) is Reading.RIGHT


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("[[9. 8.]]\n[[4.8e+30 7.]]", "[[4.8e+30 7]]"),
        ("[[9. 8.]]\n[[9. 8.]]", "[[9 8]]"),
        ("[[9. 8.]]\n[[3. 2.]]", "[[9 8]]"),
        ("[[3. 2.]]", ""),
        ("nothing of this form", ""),
    ],
)
def test_a_line_that_the_report_does_not_quote_is_the_other_output(printed: str, line: str) -> None:
    """The report quotes a right line above the wrong one."""
    assert find_other_values(printed, ALL_FAILURES, actual="[[9. 8.]]\n[[3. 2.]]") == line
