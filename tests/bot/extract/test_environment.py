"""The environment variables that a report sets for its testcase."""

from __future__ import annotations

import pytest

from tests.bot.extract.reading import extract_repro, list_repairs

PROGRAM = "```python\nimport tvm\nraise ValueError('boom')\n```\nIt says `ValueError: boom`.\n"


def read_variables(text: str) -> dict[str, str]:
    return extract_repro(text + "\n\n" + PROGRAM).testcase.list_variables()


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("```sh\nTVM_NUM_THREADS=1 python a.py\n```", {"TVM_NUM_THREADS": "1"}),
        ("```sh\nexport TVM_LOG_DEBUG='ir/a.cc=1,b.cc=2'\npython a.py\n```", {"TVM_LOG_DEBUG": "ir/a.cc=1,b.cc=2"}),
        ("```sh\n$ env TVM_NUM_THREADS=1 OMP_NUM_THREADS=3 python a.py\n```",
         {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "3"}),
        ("It needs `TVM_NUM_THREADS=1`.", {"TVM_NUM_THREADS": "1"}),
        ("Run it with TVM_LOG_DEBUG=1, on any machine.", {"TVM_LOG_DEBUG": "1"}),
    ],
)  # fmt: skip
def test_variables_of_the_toolchain_reach_the_testcase(text: str, variables: dict[str, str]) -> None:
    assert read_variables(text) == variables


@pytest.mark.parametrize(
    "text",
    [
        "It does not fail with `TVM_NUM_THREADS=1`.",
        "With TVM_NUM_THREADS=1 it works.",
        "With `T.serial` it is right every time. With `TVM_NUM_THREADS=1` too.",
        "```sh\nTVM_NUM_THREADS=1 python a.py\nTVM_NUM_THREADS=4 python a.py\n```",
        "```sh\nTVM_NUM_THREADS=1 python a.py\npython a.py\n```",
        "This works:\n```sh\nTVM_NUM_THREADS=1 python a.py\n```",
        "`TVM_BACKTRACE=1` is how runs are made in any case.",
        "`MY_TVM_NUM_THREADS=1` is another name.",
    ],
)
def test_variables_that_the_failing_program_need_not_have_are_left_out(text: str) -> None:
    """The report compares runs, or the variable is part of what works."""
    assert read_variables(text) == {}


@pytest.mark.parametrize("setting", ["MY_FLAG=x.so", "TVM_NUM_THREADS=$(id)", "TVM_LOG_DEBUG=a;b", "HTTP_PROXY=x"])
def test_other_variables_are_named_and_not_set(setting: str) -> None:
    found = extract_repro(f"```sh\n{setting.replace(';', chr(92) + ';')} python a.py\n```\n\n{PROGRAM}")
    assert found.testcase.list_variables() == {}
    assert "drop-variable" in list_repairs(found)


@pytest.mark.parametrize("setting", ["PYTHONPATH=/x", "CUDA_VISIBLE_DEVICES=0", "TVM_HOME=/x", "LD_LIBRARY_PATH=/x"])
def test_the_reporters_installation_is_not_mentioned(setting: str) -> None:
    found = extract_repro(f"```sh\nexport {setting}\npython a.py\n```\n\n{PROGRAM}")
    assert "drop-variable" not in list_repairs(found)


def test_the_variable_of_a_command_is_one_change() -> None:
    """Commands of compilers name the words that they leave out."""
    mlir = "```mlir\nfunc.func @f() {\n  return\n}\n```"
    command = "```sh\nOMP_NUM_THREADS=4 iree-compile --iree-hal-target-backends=vmvx f.mlir -o f.vmfb\n```"
    found = extract_repro(f"{mlir}\n{command}", "iree-compile crashes")
    assert found.testcase.list_variables() == {"OMP_NUM_THREADS": "4"}
    assert list_repairs(found) == ["set-variable"]


def test_a_variable_that_the_program_sets_is_not_taken_from_a_sentence() -> None:
    program = PROGRAM.replace("import tvm\n", "import os\nos.environ['TVM_NUM_THREADS'] = '8'\nimport tvm\n")
    found = extract_repro(f"On one core it is `TVM_NUM_THREADS=1`.\n\n{program}")
    assert found.testcase.list_variables() == {}
