"""A whole program in Relay's text format is a testcase without a line of Python."""

from __future__ import annotations

import pytest

from bot.extract.types import Intent
from tests.bot.extract.reading import extract_no_repro, extract_repro, list_repairs

PROGRAM = '#[version = "0.0.5"]\ndef @main(%data: Tensor[(2, 3), float32]) {\n  nn.relu(%data)\n}'


def show(program: str) -> str:
    return f"The program\n\n```\n{program}\n```\n\nends with\n\n```\nTVMError: no such attribute\n```\n"


@pytest.mark.parametrize(
    ("title", "calls"),
    [
        ("[Bug] relay cannot parse a program", ["module = relay.fromtext(TEXT)"]),
        ("[Bug] relay fails", ["module = relay.fromtext(TEXT)", 'relay.build(module, target="llvm")']),
    ],
)
def test_a_relay_program_is_read_and_compiled(title: str, calls: list[str]) -> None:
    """Of a report about the parser, the text is only read: compiling could fail in another way."""
    found = extract_repro(show(PROGRAM), title, "apache/tvm")
    code = found.testcase.files["repro.py"]
    compile(code, "repro.py", "exec")
    assert PROGRAM in code
    assert [repair.detail for repair in found.repairs if repair.kind == "add-compile-step"] == calls
    assert found.intent is Intent.FAILURE
    assert found.spans[0].block == 1


@pytest.mark.parametrize(
    "text",
    [
        show(PROGRAM[:-2]),
        show(PROGRAM.replace("%data)", "%data, meta[relay.Constant][0])")),
        show(PROGRAM.partition("\n")[2]),
        show(PROGRAM).replace("TVMError: no such attribute", "the result is wrong"),
    ],
)
def test_a_part_of_a_program_and_a_report_of_wrong_values_are_not_run(text: str) -> None:
    """The text breaks off, leaves out its constants, lacks its head, or is called with inputs that are not told."""
    extract_no_repro(text, "[Bug] relay differs" if "wrong" in text else "[Bug] relay fails", "apache/tvm")


def test_a_script_beside_the_program_is_the_testcase() -> None:
    script = "```python\nimport tvm\nfrom tvm import relay\nrelay.build(relay.fromtext(open(0).read()))\n```\n"
    found = extract_repro(f"{script}\n{show(PROGRAM)}", "[Bug] relay fails", "apache/tvm")
    assert list_repairs(found) == []


def test_the_answer_to_a_part_of_a_program_speaks_of_no_other_language() -> None:
    """Relay's operations look like MLIR. A compiler without programs for MLIR is not asked for commands."""
    part = "%0 = nn.relu(%data);\n%1 = nn.batch_flatten(%0);\n%2 = add(%1, %1);"
    found = extract_no_repro(show(part), "[Bug] relay fails", "apache/tvm")
    assert "MLIR" not in found.reason
    assert [one.name for one in found.missing] == ["the Python code that compiles and runs the program shown"]
