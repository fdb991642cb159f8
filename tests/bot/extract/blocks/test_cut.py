"""A description that breaks off inside its program is never run as a whole one."""

from __future__ import annotations

import pytest

from bot.extract import NoRepro, Repro, extract
from bot.extract.blocks.cut import find_cut
from bot.extract.parsed_issue import read_pieces
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import VerdictKind
from tests.bot.extract.reading import extract_repro, make_issue

_HEAD = """\
iree-compile fails with `error: 'linalg.transpose' op has no tiling`.

```
iree-compile --iree-hal-target-backends=llvm-cpu swap.mlir -o swap.vmfb
```

```mlir
"""
_MODULE = """\
// A bracket { of a comment, and of a string, opens nothing.
module attributes {note = "(("} {
  func.func @swap(%in: tensor<4x6xf32>) -> tensor<6x4xf32> {
    %empty = tensor.empty() : tensor<6x4xf32>
    %out = linalg.transpose ins(%in : tensor<4x6xf32>) outs(%empty : tensor<6x4xf32>) permutation = [1, 0]
    return %out : tensor<6x4xf32>
  }
}
"""


def _judge(body: str) -> VerdictKind | None:
    verdict = judge_without_running(extract(make_issue(body, "[CPU] transpose fails", "iree-org/iree")))
    return None if verdict is None else verdict.kind


@pytest.mark.parametrize("rows", range(2, 8))
def test_mlir_that_breaks_off_in_any_row_is_incomplete(rows: int) -> None:
    cut = "\n".join(_MODULE.split("\n")[:rows])
    assert _judge(_HEAD + cut) is VerdictKind.INCOMPLETE


@pytest.mark.parametrize("letters", [-12, -45, -90])
def test_mlir_that_breaks_off_inside_a_word_is_incomplete(letters: int) -> None:
    assert _judge((_HEAD + _MODULE)[:letters]) is VerdictKind.INCOMPLETE


def test_a_whole_program_without_a_closing_fence_is_run() -> None:
    assert _judge(_HEAD + _MODULE) is None


def test_resources_that_break_off_behind_a_whole_program_are_not_missed() -> None:
    resources = '\n{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x0800'
    body = _HEAD + _MODULE + resources
    assert _judge(body) is None
    found = extract(make_issue(body, "[CPU] transpose fails", "iree-org/iree"))
    assert isinstance(found, Repro)
    assert found.testcase.files == {"swap.mlir": _MODULE + "\n"}


def test_resources_that_break_off_are_missed_by_a_program_that_reads_them() -> None:
    data = _MODULE.replace("tensor.empty() :", "arith.constant dense_resource<w> :")
    assert _judge(f'{_HEAD}{data}\n{{-#\n  dialect_resources: {{ builtin: {{ w: "0x08') is VerdictKind.INCOMPLETE


def test_a_command_that_breaks_off_behind_its_input_is_run() -> None:
    """The failure decides: a run that shows it needs no further flag. Wrong values may need one."""
    command = "```\n\n```\niree-compile swap.mlir \\\n  --iree-hal-target-backends=llvm-cpu \\\n"
    module = f"```mlir\n{_MODULE}"
    quoted = extract_repro(f"It ends with `error: 'linalg.transpose' op has no tiling`.\n\n{module}{command}")
    assert quoted.has_open_command
    assert judge_without_running(quoted) is None
    assert _judge(f"It fails.\n\n{module}{command}") is None
    wrong = extract(make_issue(f"It prints 3, expected 4.\n\n{module}{command}", "wrong values", "iree-org/iree"))
    assert [one.kind for one in wrong.missing] == ["rest"]


def test_an_open_bracket_above_the_end_is_the_reporters_own() -> None:
    body = _HEAD + _MODULE.rstrip()[:-1] + "```\n\nThe last bracket is left out on purpose: the parser crashes.\n"
    assert _judge(body) is None


def test_a_cut_log_below_a_whole_program_is_not_missed() -> None:
    body = f"{_HEAD}{_MODULE}```\n\n```\nswap.mlir:5:12: error: 'linalg.transpose' op has no til"
    assert _judge(body) is None


@pytest.mark.parametrize(
    "end",
    [
        "```\niree-compile \\\n  --iree-hal-target-backends=llvm-cpu \\\n",
        "```\niree-compile \\\n  --iree-hal-target-backends=llvm-cpu \\\n  --iree-opt-lev",
    ],
)
def test_a_command_that_breaks_off_before_its_input_is_run_on_the_only_module(end: str) -> None:
    body = f"It fails with `error: op has no tiling`.\n\n```mlir\n{_MODULE}```\n\n{end}"
    assert _judge(body) is None
    found = extract_repro(body, "[CPU] transpose fails", "iree-org/iree")
    assert found.has_open_command
    assert found.testcase.steps == (
        ("iree-compile", "input.mlir", "--iree-hal-target-backends=llvm-cpu", "-o", "input.vmfb"),
    )


def test_a_command_that_breaks_off_before_one_of_two_modules_is_incomplete() -> None:
    modules = f"```mlir\n{_MODULE}```\n\nand\n\n```mlir\n{_MODULE.replace('swap', 'turn')}```\n\n"
    end = "```\niree-compile --iree-hal-target-backends=llvm-cpu --iree-op"
    assert _judge(f"It fails with `error: op has no tiling`.\n\n{modules}{end}") is VerdictKind.INCOMPLETE


@pytest.mark.parametrize(
    "end",
    [
        "```\niree-compile --iree-hal-target-backends=llvm-cpu swap.mlir",
        "```\niree-compile --iree-hal-target-backends=llvm-cpu < swap.mlir",
        "```\niree-compile --iree-hal-target-backends=llvm-cpu\n```",
    ],
)
def test_a_whole_command_at_the_end_is_run(end: str) -> None:
    body = f"It fails with `error: op has no tiling`.\n\n```mlir\n{_MODULE}```\n\n{end}"
    assert _judge(body) is None


def test_a_command_in_an_open_code_span_is_incomplete_where_there_is_no_other() -> None:
    body = "The result is wrong.\n\nCompile with `iree-compile --iree-hal-target-backends=llvm-cpu ~/swap."
    found = extract(make_issue(body, "wrong values", "iree-org/iree"))
    assert isinstance(found, NoRepro)
    assert [one.kind for one in found.missing] == ["rest"]


@pytest.mark.parametrize(
    "code",
    [
        "import tvm\nprint(tvm.build(\n    1,",
        'import tvm\nfrom tvm.script import relax\nCODE = """\n@relax.function\n',
        "import tvm\nx = [tvm.tir.Var('(', 'int32'),  # (",
    ],
)
def test_python_that_breaks_off_is_incomplete(code: str) -> None:
    found = extract(make_issue(f"It crashes with a segmentation fault.\n\n```python\n{code}", "tvm crashes"))
    assert "rest" in [one.kind for one in found.missing]
    assert not [one for one in found.missing if one.kind == "code"]


def test_python_that_breaks_off_inside_a_word_is_incomplete() -> None:
    """The name alone on the last line of a notebook is bound above, and is whole."""
    whole = (
        "It prints the wrong value.\n\n```python\nimport iree.compiler\nvalue = iree.compiler.api()\nprint(value)\n"
    )
    assert _judge(f"{whole}mod_val") is VerdictKind.INCOMPLETE
    assert _judge(f"{whole}value") is None


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ("with open(__file__) as file:\n    made = tvm.build(file.read())\n", VerdictKind.INCOMPLETE),
        ("for n in range(3):\n    tvm.build(n)\n", VerdictKind.INCOMPLETE),
        ("for n in range(3):\n    tvm.build(n)\nprint(n)\n", None),
        ("for n in range(3):\n    tvm.build(n)\n```\n", None),
        ("if __name__ == '__main__':\n    tvm.build(3)\n", None),
    ],
    ids=["with", "loop", "behind-a-loop", "closed-fence", "main"],
)
def test_python_that_ends_inside_a_block_of_an_open_fence_is_incomplete(end: str, kind: VerdictKind | None) -> None:
    """Either alone is ordinary."""
    body = f"It aborts.\n\n```python\nimport tvm\n{end}"
    verdict = judge_without_running(extract(make_issue(body, "[Bug] build aborts", "apache/tvm")))
    assert (None if verdict is None else verdict.kind) is kind


def test_a_part_of_a_word_is_not_asked_for() -> None:
    """The rest of the program is missing, and no definition of a name that only the cut made."""
    code = "import tvm\nfrom tvm import relax\n\nbuilder = relax.BlockBuilder()\nbui"
    found = extract(make_issue(f"`BlockBuilder` crashes.\n\n```python\n{code}", "[Bug] crash", "apache/tvm"))
    assert isinstance(found, Repro)
    assert [one.kind for one in found.missing] == ["rest"]


def test_python_with_brackets_in_strings_and_comments_is_whole() -> None:
    code = 'import tvm\nx = \'([\'  # {\ny = """ ( """\nassert tvm.tir.Var(x, \'int32\') is None\n'
    parsed = read_pieces(make_issue(f"Wrong.\n\n```python\n{code}"), "tvm")
    assert find_cut(parsed.document, parsed.pieces) is None


def test_a_reply_with_the_whole_program_completes_a_cut_description() -> None:
    from bot.issue import Comment

    whole = Comment(author="reporter", body=f"Again:\n\n```mlir\n{_MODULE}```\n")
    issue = make_issue((_HEAD + _MODULE)[:-45], "[CPU] fails", "iree-org/iree", (whole,))
    found = extract(issue)
    assert isinstance(found, Repro)
    assert _MODULE.strip() in "\n".join(found.testcase.files.values()) or found.missing


def test_a_program_whose_fence_stays_open_may_lack_its_last_statements() -> None:
    """Its clean run is no evidence. A closed fence, or text below the program, ends it."""
    head = "It fails with an error.\n\n```python\nimport tvm\nvalue = tvm.runtime.ndarray\nprint(value)\n"
    cut, closed, behind = (extract_repro(head + end) for end in ("", "```\n", "```\n\n```\nErr"))
    assert cut.has_open_end
    assert not cut.missing
    assert not closed.has_open_end
    assert not behind.has_open_end


@pytest.mark.parametrize("last", ["from tvm import relax as", "from tvm.script import relax as R", "import num"])
def test_a_description_that_ends_with_the_imports_of_a_program_breaks_off(last: str) -> None:
    """The program has no fence. One import in a sentence is no program."""
    head = "LegalizeOps fails with an error.\n\n### Steps to reproduce\n\n"
    assert _judge(f"{head}  import numpy as np\n  import tvm\n  {last}") is VerdictKind.INCOMPLETE
    assert _judge(f"{head}It is enough to\nimport tvm") is VerdictKind.NO_REPRO


@pytest.mark.parametrize(
    "end",
    [
        "```\nRuntimeError: verification failed:\n  `T_power` is accessed by host memory (it is no",
        '```\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\n    build(mod)\n    ^^^^^^',
        "The model `model_div_i64_",
        "### Steps to reproduce\n\n  import numpy as",
    ],
)
def test_a_description_that_breaks_off_before_its_program_is_incomplete(end: str) -> None:
    """Its last row is half a sentence, half a stack, or the first row of the program."""
    assert _judge(f"LegalizeOps in tvm fails with an error.\n\n{end}") is VerdictKind.INCOMPLETE


@pytest.mark.parametrize(
    "end",
    [
        "```\nRuntimeError: verification failed: no thread is bound",
        '```\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: no',
        '```\n  File "a.py", line 3\n```',
        "The model `model_div_i64_1` is attached.",
        "A stray backtick ` in the last sentence of the report.",
    ],
)
def test_a_whole_description_without_a_program_has_no_testcase(end: str) -> None:
    assert _judge(f"LegalizeOps in tvm fails with an error.\n\n{end}") is VerdictKind.NO_REPRO


_SCRIPT = """\
A script fails with `RuntimeError: no kernel`:

```python
import numpy as np
from iree.compiler import compile_str

x = np.random.randn(4, 4)
"""


@pytest.mark.parametrize(
    ("end", "kind"),
    [("y = x.astyp", VerdictKind.INCOMPLETE), ("y = x.T", None), ("y = x.astype(int)", None), ("x.T", None)],
)
def test_python_that_breaks_off_inside_the_name_of_a_method_is_incomplete(end: str, kind: VerdictKind | None) -> None:
    """An attribute that is not called ends a program rarely, and holds data then."""
    assert _judge(_SCRIPT + end) is kind
