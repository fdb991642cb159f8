"""A program between single backticks, or in a quotation, is read whole, with its last call."""

from __future__ import annotations

import pytest

from bot.extract.python.parse import parse_python
from bot.extract.split import spans
from bot.extract.split.spans import MAX_FAILED, uncover_spans
from tests.bot.extract.reading import extract_no_repro, extract_repro

ROWS = (
    "import tvm",
    "from tvm import te",
    'A = te.placeholder((8,), name="A")',
    "B = te.compute((8,), lambda i: A[i] * 2.0)",
    'tvm.build(te.create_prim_func([A, B]), target="llvm")',
)
PROGRAM = "\n".join(ROWS)
FAILURE = "\n\nIt ends with\n\n`TVMError: Check failed: no such loop`\n"
INDENTED = "\n\n    " + "\n    ".join(ROWS)


@pytest.mark.parametrize(
    "shown",
    [
        f"`{PROGRAM}`",
        f"`\n{PROGRAM}\n`",
        f"``{PROGRAM}``.",
        "`" + PROGRAM.replace("\nA =", "\n\nA =") + "`",
        "\n".join(f"`{row}`" for row in ROWS),
        "\n\n".join(f"`{row}`" for row in ROWS),
        f"case:\n`{INDENTED}`",
        "> " + PROGRAM.replace("\n", "\n> "),
        "> The program:\n>\n> " + PROGRAM.replace("\n", "\n> "),
        f"```{PROGRAM}```",
        f"```python\n{PROGRAM}```",
    ],
)
def test_backticks_around_a_program_hide_none_of_its_rows(shown: str) -> None:
    """The row that ends with the closing backtick is the call that fails."""
    found = extract_repro(f"Run this:\n\n{shown}{FAILURE}", "[Bug] build fails", "apache/tvm")
    code = found.testcase.files["repro.py"]
    assert [row for row in code.split("\n") if row] == list(ROWS)
    assert found.missing == ()
    assert found.claim.signature is not None
    assert found.claim.signature.message == "Check failed: no such loop"


def test_a_program_without_an_import_is_completed() -> None:
    shown = "\n".join(ROWS[2:])
    found = extract_repro(f"Run this:\n\n`{shown}`{FAILURE}", "[Bug] build fails", "apache/tvm")
    assert [repair.kind for repair in found.repairs] == ["add-import", "add-import"]
    assert found.testcase.files["repro.py"].endswith(f"{ROWS[-1]}\n")


@pytest.mark.parametrize(
    "rows",
    [
        ("`import tvm`", "is the only import", "`tvm.build(x)`"),
        ("`one span", "without an end"),
        ("`words that are", "no Python at all`"),
        ("`a = 1", "b = `c`", "d = 2`"),
        ("``a = 1", "b = 2`"),
        ("`a = 1", "```", "b = 2`"),
        ("> import tvm", "> fails since Monday", "> for me"),
        ("> a = 1", "> b = 2"),
    ],
)
def test_other_backticks_stay(rows: tuple[str, ...]) -> None:
    """A single span, an unclosed span, words, spans within spans, other numbers of backticks, quoted sentences."""
    assert uncover_spans(rows) == rows


def test_imports_named_in_a_list_are_no_program() -> None:
    extract_no_repro(f"I tried\n\n`import tvm`\n`from tvm import relax`{FAILURE}", "[Bug] fails", "apache/tvm")


@pytest.mark.parametrize("rows", [("`x = 1`", "`x = (`"), ("> import a", "> x = (")])
def test_a_text_of_failing_candidates_is_parsed_a_bounded_number_of_times(
    rows: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row may begin a program of 300 rows: 60 KB took ten seconds."""
    tried: list[str] = []

    def count(code: str) -> object:
        tried.append(code)
        return parse_python(code)

    monkeypatch.setattr(spans, "parse_python", count)
    source = rows * 2500
    assert uncover_spans(source) == source
    assert len(tried) == MAX_FAILED
