"""The rows of values that a report shows, whatever stands around them."""

from __future__ import annotations

from tests.bot.extract.reading import extract_repro


def fence(code: str) -> str:
    return f"```python\n{code}\n```"


PROGRAM = "import numpy as np, tvm\nbuilt = tvm.compile(kernel)\nprint(built(np.arange(4)))\n"
TEXT = f"""\
The result of the kernel is wrong.

{fence(PROGRAM)}

Good: `[1.5, 2, 3]`, and with the kernel `array([7., 2.], dtype=float32)`; it ran 3 times. NumPy has 4, 5, 6.25.

| element | NumPy | kernel | |
|---|---|---|---|
| 0 | 53 | **0** | wrong |
| 1 | 47 | 4 | [1, 2] |
"""


def test_spans_sentences_columns_and_cells_are_rows() -> None:
    shown = extract_repro(TEXT, "wrong values of a kernel").claim.shown
    assert shown == ("1.5 2 3", "7 2", "4 5 6.25", "0 1", "53 47", "0 4", "1 2")


def test_a_report_about_an_error_shows_none() -> None:
    text = TEXT.replace("The result of the kernel is wrong.", "It crashes with SIGSEGV.")
    assert extract_repro(text, "the kernel crashes").claim.shown == ()


NOTEBOOK = """\
The second cell prints wrong values.

**In [1]:**
```python
import numpy as np, tvm
def run(dtype):
    return tvm.compile(make(dtype))(np.ones(2)).numpy()
make = lambda dtype: dtype
```

**In [2]:** `run("float16")`

**Out[2]:** `[9.99 1.03]`

**In [3]:** `not python at all`
"""


def test_a_cell_in_a_code_span_belongs_to_the_program_and_shows_its_value() -> None:
    found = extract_repro(NOTEBOOK, "wrong values")
    assert found.testcase.files["repro.py"].rstrip().endswith('print(repr(run("float16")))')
    assert "not python" not in found.testcase.files["repro.py"]
    assert found.claim.shown == ("9.99 1.03",)


def test_the_last_expression_of_a_cell_is_code() -> None:
    """Its names are bound above: printed values have none. Comments behind it stay."""
    above, below = PROGRAM.replace("print", "", 1), "s, n = built(np.ones(4)), 3\ns / n   # array([3., 4.])"
    cells = f"{fence(above)}\nThen\n{fence(below)}"
    code = extract_repro(f"Wrong values: `[3.5, 4.25, 5.125]`\n\n{cells}", "wrong values").testcase.files["repro.py"]
    assert "print(repr(s / n))   # array([3., 4.])" in code
    assert "print(repr((built(np.arange(4)))))" in code
