"""Tables whose headings say which values are printed and which are expected."""

from __future__ import annotations

import pytest

from bot.extract.blocks.markdown import parse_markdown
from bot.extract.claim.values.tables import TableValues, read_table_values


@pytest.mark.parametrize(
    ("table", "printed", "expected"),
    [
        ("| in | expected | IREE |\n|--|--|--|\n| 1.9 | 1 | 1 |\n| 300 | 44 | 127 |", "1 127", "1 44"),
        (
            "| | col 0 | col 1 |\n|---|---|---|\n| expected (torch) | -0.1 | -0.2 |\n| TVM | -0.1 | -0.1 |",
            "-0.1 -0.1",
            "-0.1 -0.2",
        ),
        ("| x | NumPy | got |\n|--|--|--|\n| a | `1` | **2** |\n| b | 3 | nan |", "2 nan", "1 3"),
        ("| x | numpy | tvm llvm | tvm cuda |\n|--|--|--|--|\n| a | 1 | 2 | 3 |\n| b | 3 | 4 | 5 |", "", "1 3"),
        ("| x | numpy | torch |\n|--|--|--|\n| a | 1 | 2 |\n| b | 3 | 4 |", "", ""),
        ("| release | result |\n|--|--|\n| 3.1.0 | 1 |\n| 3.2.0 | 2 |", "", ""),
        ("| case | expected | got |\n|--|--|--|\n| a | runs | fails |\n| b | runs | fails |", "", ""),
        ("| in | expected | got |\n|--|--|--|\n| 1 | 2 | 3 |", "", ""),
        ("| in | expected |\n|--|--|\n| 1 |", "", ""),
        ("| batch | TVM time | PyTorch |\n|--|--|--|\n| 1 | 1.2 | 0.4 |\n| 2 | 3.2 | 0.9 |", "", ""),
        ("| torch version | exit code |\n|--|--|\n| 2.1 | 1 |\n| 2.2 | 1 |", "", ""),
        ("| left | right | got |\n|--|--|--|\n| 1 | 2 | 3 |\n| 1 | 2 | 4 |", "", ""),
        ("|\n|\n|", "", ""),
    ],
    ids=[
        *("columns", "rows", "code", "two-printed", "two-expected", "no-roles", "words"),
        *("one-value", "short-row", "times", "versions", "operands", "no-cells"),
    ],
)
def test_a_heading_names_the_side_of_its_values(table: str, printed: str, expected: str) -> None:
    """No values of a side: the table says nothing."""
    values = TableValues(expected, printed) if expected else None
    assert read_table_values(parse_markdown(f"The values are wrong:\n\n{table}\n")) == values
