"""A failing test inside a patch is the testcase. A patch of the compiler is a proposed fix."""

from __future__ import annotations

import pytest

from tests.bot.extract.reading import extract_no_repro, extract_repro

TEST = """\
+def test_bound_of_a_sum():
+    analyzer = tvm.arith.Analyzer()
+    x = te.var("x", "int64")
+    assert analyzer.const_int_bound(x + 1).max_value > 0
+
"""
HEADER = (
    "diff --git a/{path} b/{path}\n"
    "index 84fc7fd64..0bcdff487 100644\n"
    "--- a/{path}\n"
    "+++ b/{path}\n"
    "@@ -50,6 +50,10 @@ def test_cast_bound():\n"
    "     assert bd.max_value == 2\n"
    " \n"
    " \n"
)
CONTEXT = " def test_add_sub_bound():\n     analyzer = tvm.arith.Analyzer()\n"
FAILURE = "\n\nIt ends with\n\n```\nTVMError: Check failed: no such bound\n```\n"
PYTHON = "tests/python/unittest/test_arith_const_int_bound.py"


def make_patch(path: str, added: str = TEST, *, context: str = CONTEXT) -> str:
    return HEADER.format(path=path) + added + context


@pytest.mark.parametrize("info", ["", "diff", "patch", "python"])
def test_added_test_is_run_alone(info: str) -> None:
    """The rows around it belong to other tests, and are incomplete."""
    found = extract_repro(
        f"Patch to reproduce:\n\n```{info}\n{make_patch(PYTHON)}```{FAILURE}", repository="apache/tvm"
    )
    code = found.testcase.files["repro.py"]
    assert "test_add_sub_bound" not in code
    assert "bd.max_value == 2" not in code
    assert code.rstrip().endswith("test_bound_of_a_sum()")
    assert found.repairs[0].kind == "strip-patch"
    span = found.spans[0]
    rows = ["Patch to reproduce:", "", "```", *make_patch(PYTHON).split("\n")]
    assert rows[span.lines[0] - 1].startswith("+def test_bound")
    assert rows[span.lines[1] - 1].startswith("+    assert")


def test_a_new_file_of_mlir_is_the_input_of_the_command() -> None:
    added = "+func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n+  return %x : tensor<4xf32>\n+}\n"
    patch = "--- /dev/null\n+++ b/compiler/src/test/fold.mlir\n@@ -0,0 +1,3 @@\n" + added
    body = f"```diff\n{patch}```\n\n`iree-compile --iree-hal-target-backends=llvm-cpu fold.mlir -o a.vmfb` crashes"
    found = extract_repro(body, "crash", "iree-org/iree")
    (text,) = found.testcase.files.values()
    assert text == added.replace("+", "")


@pytest.mark.parametrize(
    "patch",
    [
        make_patch("src/arith/const_int_bound.cc", "+  if (a < b) return c;\n", context=""),
        make_patch("python/tvm/relax/op.py", "+def relu(x):\n+    return _ffi_api.relu(x)\n"),
        make_patch(PYTHON) + make_patch("python/tvm/arith/analyzer.py", "+def bound(x):\n+    return x\n"),
        make_patch(PYTHON, "+    assert bd.min_value == 0\n"),
        make_patch(PYTHON, ""),
        "@@ -1,2 +1,3 @@\n+def test_a():\n+    f()\n",
    ],
)
def test_no_other_patch_is_a_testcase(patch: str) -> None:
    """Of a change inside a function, the rest of the function is not shown. Without a path, nothing tells a test."""
    extract_no_repro(f"```diff\n{patch}```{FAILURE}", repository="apache/tvm")
