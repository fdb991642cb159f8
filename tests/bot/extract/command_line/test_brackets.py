"""MLIR copied without the line that opens or closes its module is completed, and the change is recorded."""

from __future__ import annotations

import pytest

from bot.extract.command_line.brackets import balance_braces
from tests.bot.extract.reading import extract_repro, list_repairs

FUNCTION = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> attributes {x = "}"} {
  %0 = arith.addf %a, %a : tensor<4xf32> // }
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (f"{FUNCTION}}}\n", FUNCTION),
        (f"{FUNCTION}  }}\n}}\n", FUNCTION),
        (f"module {{\n{FUNCTION}", f"module {{\n{FUNCTION}}}\n"),
        (FUNCTION.removesuffix("}\n"), FUNCTION),
        (
            f"module {{\n{FUNCTION.removesuffix('}' + chr(10))}",
            f"module {{\n{FUNCTION.removesuffix('}' + chr(10))}}}}}\n",
        ),
    ],
)
def test_braces_at_the_end_are_completed_or_left_out(text: str, whole: str) -> None:
    """Braces in strings and comments do not count."""
    balanced, why = balance_braces(text)
    assert balanced == whole
    assert why


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION,
        f"}}\n{FUNCTION}",  # a brace above the program
        f"{FUNCTION}}}\n{FUNCTION}",  # text behind the brace
        FUNCTION.partition("  return")[0],  # breaks off before the end of the region
        "module {\n  module {\n    module {\n" + FUNCTION,  # a part of a file
        "func.func @f(%a: tensor<4xf32>\n  return\n",  # a parenthesis is open
    ],
)
def test_any_other_text_stays_as_posted(text: str) -> None:
    """Its parser's error may be what the report is about."""
    assert balance_braces(text) == (text, "")


def test_the_change_is_recorded() -> None:
    found = extract_repro(
        f"iree-compile fails:\n\n```mlir\n{FUNCTION}}}\n```\n", "iree-compile error", "iree-org/iree"
    )
    assert next(iter(found.testcase.files.values())) == FUNCTION
    assert "balance-braces" in list_repairs(found)


def test_a_command_of_a_lit_log_keeps_the_parentheses_of_its_pipeline() -> None:
    run = "(iree-opt --pass-pipeline=builtin.module(func.func(cse)) %s | FileCheck %s)"
    body = f"A test fails:\n\n```\n// RUN: {run}\nSegmentation fault\n```"
    found = extract_repro(body, "iree-opt segfaults", "iree-org/iree")
    assert "--pass-pipeline=builtin.module(func.func(cse))" in found.testcase.steps[0]


def test_the_command_of_a_failing_test_of_lit_lacks_the_tests_file() -> None:
    log = "// RUN: (iree-compile --x=y %s | iree-run-module --entry=f) | FileCheck %s\nSegmentation fault"
    body = f"A test fails:\n\n```\n{log}\n```"
    found = extract_repro(body, "iree-run-module segfaults", "iree-org/iree")
    assert found.testcase.steps[0][0] == "iree-compile"
    assert found.missing
