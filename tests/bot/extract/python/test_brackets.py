"""One bracket of a program is mended where one place comes into question, and every other text stays."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, strategies as st

from bot.extract import extract
from bot.extract.python.brackets import mend_brackets
from bot.extract.python.parse import parse_python
from tests.bot.extract.reading import extract_repro, make_issue

HEAD = "import tvm\nx = tvm.var('x')\n"


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("print(tvm.abs(x - 1)\n", "print(tvm.abs(x - 1))\n"),
        ("print(tvm.abs(x)  # of (x\nprint(x\n", "print(tvm.abs(x))  # of (x\nprint(x)\n"),
        (
            "y = tvm.select(x > 0,\n               x, -x\nprint(y)\n",
            "y = tvm.select(x > 0,\n               x, -x)\nprint(y)\n",
        ),
        ("y = tvm.abs((x + 1))) + 2\n", "y = tvm.abs((x + 1)) + 2\n"),
        ("y = [tvm.abs(x), ')'\n", "y = [tvm.abs(x), ')']\n"),
        ("def f(a):\n    return tvm.abs(a\nprint(f(x))\n", "def f(a):\n    return tvm.abs(a)\nprint(f(x))\n"),
    ],
)
def test_one_bracket_of_a_statement_is_mended(written: str, mended: str) -> None:
    text, repairs = mend_brackets(HEAD + written, 11)
    assert text == HEAD + mended
    assert all(one.kind == "balance-brackets" for one in repairs)
    assert repairs[0].detail.endswith(("line 13", "line 14"))


@pytest.mark.parametrize(
    "written",
    [
        "print(tvm.abs((x - 1)\n",  # two are missing
        "y = tvm.select(x > 0,\nprint(y),\nx, -x\n",  # more than one program
        "tvm.abs(x,\ny = 1\nz = 2\n",  # closed on the first line, or with the arguments y and z
        "print(unknown(x)\n",  # a name that nothing binds
        "Mismatch (x\n",
        "print(x[0)\n",
        "x = (1, 2\n",  # a printed value
    ],
)
def test_other_damage_stays(written: str) -> None:
    assert mend_brackets(HEAD + written) == (HEAD + written, ())


def test_a_text_with_many_slips_is_no_program() -> None:
    assert mend_brackets(HEAD + "print(x\n" * 4) == (HEAD + "print(x\n" * 4, ())


def test_a_mended_program_is_a_testcase_and_says_so() -> None:
    body = f"It prints the wrong sign:\n\n```python\n{HEAD}print(tvm.abs(x)\nprint(tvm.abs(-x)\n```\n"
    found = extract_repro(body)
    assert not found.missing
    assert found.testcase.files["repro.py"].endswith("print(tvm.abs(x))\nprint(tvm.abs(-x))\n")
    assert [one.detail for one in found.repairs if one.kind == "balance-brackets"] == [
        "added a ')' at the end of line 6",
        "added a ')' at the end of line 7",
    ]


def test_a_program_that_breaks_off_is_not_completed() -> None:
    found = extract(make_issue(f"It fails.\n\n```python\n{HEAD}print(tvm.abs(x)"))
    assert found.missing


@given(st.lists(st.sampled_from(["(", ")", "[", "]", "{", "}", "\n", "x", "print", "#", "'", ",", " ", "=", "1"])))
def test_a_mended_text_parses_where_it_did_not(parts: list[str]) -> None:
    text = HEAD + "".join(parts) + "\n"
    mended, repairs = mend_brackets(text)
    assert bool(repairs) == (mended != text)
    assert not repairs or parse_python(text) is None


def test_long_output_is_read_in_little_time() -> None:
    start = process_time()
    mend_brackets(HEAD + "print(((x)))) + (1\n" * 5_000)
    assert process_time() - start < 5
