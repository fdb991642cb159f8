"""A command of the compiler's own Python driver is a testcase: it runs the driver's module."""

from __future__ import annotations

import pytest

from bot.extract.types import Intent
from tests.bot.extract.reading import extract_no_repro, extract_repro, list_missing, list_repairs

TITLE = "[Bug] tvmc fails with an error"


@pytest.mark.parametrize(
    "told",
    [
        "Run `python -m tvm.driver.tvmc --help` to see the error.",
        "Steps:\n\n$python3 -m tvm.driver.tvmc --help",
        "```sh\n$ tvmc --help\n```",
        "```\ntvmc --help > out.txt 2>&1\n```",
        "```\nC:\\Users\\ann>tvmc --help\n```",
        "(base) PS C:\\some where>python -m tvm.driver.tvmc --help",
        "ann@host:~/net$ tvmc --help",
    ],
)
def test_a_command_of_the_driver_runs_its_module(told: str) -> None:
    found = extract_repro(told, TITLE, "apache/tvm")
    code = found.testcase.files["repro.py"]
    compile(code, "repro.py", "exec")
    assert "import tvm.driver.tvmc\n" in code
    assert "['--help']" in code
    assert list_repairs(found) == ["run-module"]
    assert found.intent is Intent.FAILURE
    assert not found.missing


def test_the_model_that_the_command_reads_is_missing() -> None:
    """The value of a flag is no input: it may be an output."""
    told = "```\npython -m tvm.driver.tvmc compile --target llvm -o out.tar models/net.onnx\n```"
    assert list_missing(extract_repro(told, TITLE, "apache/tvm")) == [("file", "models/net.onnx")]


@pytest.mark.parametrize("told", ["I use tvmc on Windows.", "`python -m pip install tvm`", "tvmcon is broken"])
def test_other_words_are_no_command_of_the_driver(told: str) -> None:
    assert extract_no_repro(f"It fails.\n\n{told}", TITLE, "apache/tvm")


def test_a_program_goes_before_a_command_of_the_driver() -> None:
    told = "```python\nimport tvm\nprint(tvm.nope)\n```\n\nIt also fails with `tvmc --help`."
    assert "runpy" not in extract_repro(told, TITLE, "apache/tvm").testcase.files["repro.py"]
