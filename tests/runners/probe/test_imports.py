"""The imports that may be executed before a testcase is forked."""

from __future__ import annotations

import pytest

from runners.core.protocol import Testcase, TestcaseKind
from runners.probe.imports import are_fast_after_base, find_leading_imports, hides_stdlib
from runners.toolchains import tvm


def leading(code: str, **files: str) -> tuple[str, ...]:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"repro.py": code, **{f"{name}.py": text for name, text in files.items()}},
        steps=(("python", "repro.py"),),
    )
    return find_leading_imports(testcase, "repro.py")


def test_the_imports_at_the_start_are_taken_in_their_order() -> None:
    """A docstring and imports from ``__future__`` do not affect the imports after them."""
    code = '"""A."""\nfrom __future__ import annotations\nimport numpy as np\nimport tvm\nfrom tvm import relax\nx'
    assert leading(code) == ("import numpy as np", "import tvm", "from tvm import relax")


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.environ['TVM_NUM_THREADS'] = '1'",
        "import sys; sys.path.insert(0, '/work')",
        "import faulthandler; faulthandler.enable()",
        "try:\n    import torch\nexcept ImportError:\n    pass",
        "from .sibling import x",
        "if True:\n    import torch",
    ],
)
def test_imports_after_another_statement_are_not_taken(line: str) -> None:
    """Only statements before the first other statement are sure to have the same effect early."""
    assert "import tvm" not in leading(f"{line}\nimport tvm\n")


def test_the_testcases_own_files_are_not_imported_early() -> None:
    """The files do not exist yet when a zygote starts, and they belong to the testcase."""
    assert leading("import numpy\nfrom model import Net\nimport tvm", model="Net = 1") == ("import numpy",)
    assert leading("import numpy, model.part\nimport tvm", model="") == ()


@pytest.mark.parametrize("code", ["import tvm\nprint(", "\0", "(" * 5000, "import tvm\n" + "#" * 300_000, ""])
def test_code_that_cannot_be_parsed_has_no_early_imports(code: str) -> None:
    """There are no early imports and no exception: the interpreter reports the error."""
    assert leading(code) == ()


@pytest.mark.parametrize(
    ("name", "hides"),
    [("json.py", True), ("random/__init__.py", True), ("ast.so", True), ("helper.py", False), ("json.mlir", False)],
)
def test_a_file_that_hides_a_module_of_the_standard_library_is_noticed(name: str, hides: bool) -> None:
    """Only importable files count; other files of such names have no effect."""
    files = {"repro.py": "import json\n", name: ""}
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files=files, steps=(("python", "repro.py"),))
    assert hides_stdlib(testcase) is hides


@pytest.mark.parametrize(
    ("code", "fast"),
    [
        ("import numpy as np\nimport tvm\nfrom tvm import relax, te", True),
        ("import os, sys\nfrom tvm.script import ir as I", True),
        ("import tvm\nfrom tvm.relax.frontend import nn", True),
        ("import tvm\nimport onnx", False),
        ("from tvm.relax.frontend.onnx import from_onnx", False),
        ("from tvm.relax.frontend import onnx", False),
        ("import numpy as np", False),
        ("import tvmlike", False),
        ("x = 1", False),
    ],
)
def test_testcases_of_several_issues_start_from_the_compiler_alone(code: str, fast: bool) -> None:
    """Not those that import another framework: each fork would import it again."""
    assert are_fast_after_base(leading(code), tvm.GUEST) is fast
